//! Where `hookloop doctor` looks, and how it continues when something is broken.

use std::env;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use hookloop_config::channels::NotificationChannel;
use hookloop_config::paths::{PlaceError, ProjectPaths};
use hookloop_config::project_file::{self, ProjectSettings};
use hookloop_config::user::{StoreName, UserConfig};
use hookloop_core::hook::HookRegistry;
use hookloop_core::time::Timestamp;
use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::{LaunchContext, LogLocation};
use hookloop_engine::project::Project;
use hookloop_fleet::doctor::{self, Finding, FindingGroup, FindingStatus, Remedy};
use hookloop_fleet::fleet::{Fleet, GONE_AFTER_MS, WorkerPresence};
use hookloop_fleet::notify::trouble;
use hookloop_hooks::runner::HookRunner;
use hookloop_http::HttpClient;

use crate::cli::context::CommandContext;
use crate::diagnostics;
use crate::environment::{caller, state_home};
use crate::error::CliError;

/// How long a store may take to answer before it counts as unreachable.
const STORE_WITHIN: Duration = Duration::from_secs(5);

/// The facts that need no check.
struct DoctorFacts {
    directory: PathBuf,
    around: LaunchContext,
    state_home: Option<PathBuf>,
    place: Option<ProjectPaths>,
    user: Option<UserConfig>,
    settings: Option<ProjectSettings>,
}

/// Returns all findings, group by group: groups with findings that stop the rest come first.
pub(super) fn all(context: &CommandContext) -> Vec<Finding> {
    let mut first = Vec::new();
    let known = know(context, &mut first);
    let runner = known.runner(&mut first);
    let (git, (store, hooks), agents, network) = std::thread::scope(|scope| {
        let root = known.place.as_ref().map_or(&known.directory, |place| &place.root);
        let git = scope.spawn(|| doctor::examine_git(root, &known.around.environment));
        let store = scope.spawn(|| known.store());
        let agents = scope.spawn(|| match (&known.settings, &runner) {
            (Some(settings), Some(runner)) => doctor::examine_agents(&settings.rules, runner),
            _ => Vec::new(),
        });
        let network = scope.spawn(|| known.network(runner.as_ref()));
        let store = store.join().unwrap_or_default();
        let network = network.join().unwrap_or_default();
        (git.join().unwrap_or_default(), store, agents.join().unwrap_or_default(), network)
    });
    let mut rest = machine();
    rest.extend(network);
    rest.extend(git);
    rest.extend(known.state());
    rest.extend(known.project());
    if let (Some(settings), Some(runner)) = (&known.settings, &runner) {
        let hooks = hooks.as_ref().unwrap_or(&settings.rules.hooks);
        rest.extend(doctor::examine(hooks, &settings.rules, runner));
        rest.extend(doctor::examine_types(&settings.rules));
    }
    rest.extend(store);
    rest.extend(agents);
    rest.extend(known.user.iter().flat_map(|user| people(&user.channels, runner.as_ref())));
    // A finding that stops the rest may appear in its group again.
    rest.retain(|finding| {
        !first.iter().any(|known| known.about == finding.about && known.group == finding.group)
    });
    let urgent: Vec<FindingGroup> = first.iter().map(|finding| finding.group).collect();
    let mut findings: Vec<Finding> = first.into_iter().chain(rest).collect();
    findings.sort_by_key(|finding| group_rank(&urgent, finding.group));
    findings
}

/// Returns the position of a group: those with urgent findings come first, and no group twice.
fn group_rank(urgent: &[FindingGroup], group: FindingGroup) -> usize {
    let position = |groups: &[FindingGroup]| groups.iter().position(|known| *known == group);
    position(urgent)
        .unwrap_or_else(|| urgent.len() + position(&FindingGroup::ALL).unwrap_or_default())
}

fn know(context: &CommandContext, first: &mut Vec<Finding>) -> DoctorFacts {
    let directory = context.directory().unwrap_or_else(|_| PathBuf::from("."));
    let around = context.surroundings().unwrap_or_else(|error| {
        first.push(failed(FindingGroup::Store, "store", &error));
        LaunchContext { environment: env::vars_os().collect(), ..LaunchContext::default() }
    });
    let state_home =
        state_home().map_err(|error| first.push(failed(FindingGroup::State, "directory", &error)));
    let state_home = state_home.ok();
    let place = state_home.as_ref().and_then(|home| match ProjectPaths::find(&directory, home) {
        Ok(place) => Some(place),
        Err(error @ PlaceError::NoProject(_)) => {
            let finding = FindingGroup::Project.warning("project", error.to_string());
            first.push(finding.typed("hookloop init"));
            None
        }
        Err(error) => {
            first.push(failed(FindingGroup::Project, "project", &error.into()));
            None
        }
    });
    let user = user(&around, place.as_ref(), first);
    let settings = match (&place, &user) {
        (Some(place), Some(user)) => project_file::settings(&place.config(), user)
            .map_err(|error| {
                first.push(failed(FindingGroup::Project, "hookloop.yaml", &error.into()))
            })
            .ok(),
        _ => None,
    };
    // Errors come before missing files.
    first.sort_by_key(|finding| finding.status != FindingStatus::Error);
    DoctorFacts { directory, around, state_home, place, user, settings }
}

/// The user's own file under the policy, as far as both can be read.
fn user(
    around: &LaunchContext,
    place: Option<&ProjectPaths>,
    first: &mut Vec<Finding>,
) -> Option<UserConfig> {
    let policies = around.policies();
    let policies = policies
        .map_err(|error| first.push(failed(FindingGroup::Project, "policy", &error.into())));
    let policies = policies.ok()?;
    let forbidden = place.and_then(|place| policies.check_project(&place.root, None).err());
    if let Some(error) = forbidden {
        first.push(failed(FindingGroup::Project, "policy", &EngineError::from(error).into()));
        return None;
    }
    let own = around
        .user_file
        .as_ref()
        .map_or(Ok(UserConfig::default()), |file| hookloop_config::user_file::load(file));
    let own = own.map_err(|error| {
        first.push(failed(FindingGroup::Project, "your configuration", &error.into()))
    });
    Some(own.ok()?.under(policies))
}

/// Returns the error of a command as a finding.
fn failed(group: FindingGroup, about: &str, error: &CliError) -> Finding {
    let finding = group.error(about, error.message());
    match error.tip() {
        Some(tip) if tip.starts_with("hookloop ") || tip.starts_with("chmod ") => {
            finding.typed(tip)
        }
        Some(tip) => finding.with_remedy(Remedy::Do(tip.to_owned())),
        None => finding,
    }
}

fn machine() -> Vec<Finding> {
    let version = env!("CARGO_PKG_VERSION");
    let program = env::current_exe().unwrap_or_default();
    let mut findings =
        vec![FindingGroup::Machine.ok("hookloop", format!("{version}, {}", program.display()))];
    let is_linux = cfg!(target_os = "linux");
    findings.push(match Path::new("/proc/self/stat").exists() {
        true => FindingGroup::Machine.ok("keeper", "processes of hooks and agents end with them"),
        false if !is_linux => {
            let message = "processes of hooks and agents end with them, unless they detach and clear their environment";
            FindingGroup::Machine.ok("keeper", message)
        }
        false => {
            let message = "/proc is not mounted, so hooks can't run";
            FindingGroup::Machine.error("keeper", message).typed("sudo mount -t proc proc /proc")
        }
    });
    findings.extend(doctor::examine_keeping());
    findings.push(doctor::examine_room_support());
    let terminal = if std::io::stdout().is_terminal() {
        terminal_size::terminal_size().map_or_else(
            || "unknown size".to_owned(),
            |(width, height)| format!("{} columns, {} lines", width.0, height.0),
        )
    } else {
        "none: output is plain text, and commands ask no questions".to_owned()
    };
    findings.push(FindingGroup::Machine.ok("terminal", terminal));
    findings
}

impl DoctorFacts {
    fn state(&self) -> Vec<Finding> {
        let Some(home) = &self.state_home else { return Vec::new() };
        let mut findings = doctor::examine_state(home);
        findings.extend(doctor::examine_space("space", home));
        findings.extend(doctor::examine_space("space of the project", &self.directory));
        let place = self.place.as_ref();
        findings.extend(place.and_then(|place| doctor::examine_snapshots(&place.state)));
        findings.extend(place.and_then(|place| doctor::examine_rooms(&place.state)));
        let file = diagnostics::file_in(self.place.as_ref().map_or(home, |place| &place.state));
        let file_state = if file.exists() { "" } else { " (no warnings yet)" };
        let message = format!("warnings are in {}{file_state}", file.display());
        findings.push(FindingGroup::State.ok("diagnostics", message));
        findings
    }

    fn network(&self, runner: Option<&HookRunner>) -> Vec<Finding> {
        let Some(user) = &self.user else { return Vec::new() };
        let http = HttpClient::new(&self.around.environment, &user.network);
        let mut findings = doctor::examine_network(&http);
        if let (Some(place), Some(settings), Some(runner)) = (&self.place, &self.settings, runner)
            && let Some(rules) = &settings.rules.delivery
        {
            findings.extend(doctor::examine_forge(&place.root, rules, runner));
        }
        findings
    }

    fn project(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(user) = &self.user {
            findings.push(doctor::about_policy(&user.policy));
        }
        if let (Some(place), Some(settings)) = (&self.place, &self.settings) {
            let name = settings.project.as_ref().map_or(String::new(), |name| format!("{name}, "));
            findings.push(
                FindingGroup::Project
                    .ok("hookloop.yaml", format!("{name}{}", place.root.display())),
            );
        }
        findings
    }

    fn runner(&self, first: &mut Vec<Finding>) -> Option<HookRunner> {
        let place = self.place.as_ref()?;
        let settings = self.settings.as_ref()?;
        let user = self.user.as_ref()?;
        match Project::runner_at(place, settings, user, &self.around) {
            Ok(runner) => Some(runner),
            Err(error) => {
                first.push(failed(FindingGroup::Hooks, "trust", &error.into()));
                None
            }
        }
    }

    /// The findings about the store and the fleet, and the hooks with their switches.
    fn store(&self) -> (Vec<Finding>, Option<HookRegistry>) {
        let (Some(place), Some(settings)) = (&self.place, &self.settings) else {
            return (Vec::new(), None);
        };
        let named = self.around.store.as_ref().unwrap_or(&settings.store);
        let mut findings = match named {
            StoreName::Sqlite => doctor::examine_log(place),
            StoreName::Nats(_) => Vec::new(),
        };
        let is_sound = findings.iter().all(|finding| finding.status != FindingStatus::Error);
        let is_there = *named != StoreName::Sqlite || place.database().exists();
        if !is_sound || !is_there {
            return (findings, None);
        }
        let (sender, answer) = mpsc::channel();
        let place = place.clone();
        let around = self.around.clone();
        let state_home = self.state_home.clone();
        // A server that does not answer is not waited for: the thread ends with the program.
        std::thread::spawn(move || sender.send(ask_store(&place, &around, state_home.as_deref())));
        match answer.recv_timeout(STORE_WITHIN) {
            Ok((found, hooks)) => {
                findings.extend(found);
                (findings, hooks)
            }
            Err(_) => {
                let message = format!("{named} did not answer within {} s", STORE_WITHIN.as_secs());
                findings.push(FindingGroup::Store.error("store", message));
                (findings, None)
            }
        }
    }
}

fn ask_store(
    place: &ProjectPaths,
    around: &LaunchContext,
    state_home: Option<&Path>,
) -> (Vec<Finding>, Option<HookRegistry>) {
    let project = match Project::open(place, caller(place), around) {
        Ok(project) => project,
        Err(error) => return (vec![failed(FindingGroup::Store, "store", &error.into())], None),
    };
    let mut findings = Vec::new();
    if let LogLocation::Nats { urls, standing, .. } = project.kept() {
        findings.extend(doctor::examine_servers(urls, standing));
        match doctor::examine_events(&project) {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(failed(FindingGroup::Store, "events", &error.into())),
        }
    }
    if let Some(home) = state_home {
        match fleet(&project, home, around) {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(failed(FindingGroup::Fleet, "fleet", &error.into())),
        }
    }
    let hooks = match project.hooks() {
        Ok(hooks) => Some(hooks),
        Err(error) => {
            findings.push(failed(FindingGroup::Store, "store", &error.into()));
            None
        }
    };
    match doctor::examine_gates(&project) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(failed(FindingGroup::Hooks, "gates", &error.into())),
    }
    project.leave();
    (findings, hooks)
}

/// Returns the directives in force, and the workers that miss their heartbeats.
fn fleet(
    project: &Project,
    state_home: &Path,
    around: &LaunchContext,
) -> std::result::Result<Vec<Finding>, EngineError> {
    let is_here = matches!(project.kept(), LogLocation::Here);
    if is_here && !ProjectPaths::of_fleet(state_home, "sqlite").database().exists() {
        return Ok(Vec::new());
    }
    let fleet = Fleet::beside(project, state_home, around)?;
    let mut findings = Vec::new();
    for standing in fleet.orders()?.0 {
        let scope = &standing.set.scope;
        let directive = standing.set.directive.name();
        let message = format!("`{directive}` applies to {scope}, set by {}", standing.by);
        findings.push(
            FindingGroup::Fleet
                .warning("directives", message)
                .typed(format!("hookloop fleet resume {scope}")),
        );
    }
    let now = Timestamp(
        std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as i64,
    );
    let workers = fleet.workers()?;
    findings.extend(workers.iter().filter_map(|worker| about_worker(worker, now)));
    if findings.is_empty() && !workers.is_empty() {
        findings.push(FindingGroup::Fleet.ok("workers", format!("{} present", workers.len())));
    }
    Ok(findings)
}

/// Returns the problem of a worker, by the time of its last heartbeat.
fn about_worker(worker: &WorkerPresence, now: Timestamp) -> Option<Finding> {
    let name = &worker.name;
    let machine = &worker.machine;
    let silent_ms = now.millis_since(worker.seen);
    if silent_ms > GONE_AFTER_MS {
        let seconds = silent_ms / 1_000;
        let message = format!(
            "worker {name} on {machine} has sent no heartbeat for {seconds} s; others claim its tasks"
        );
        let remedy = Remedy::Do(format!("start it again there: hookloop worker --name {name}"));
        return Some(FindingGroup::Fleet.warning("workers", message).with_remedy(remedy));
    }
    // It was seen later than now: one of the two clocks is wrong.
    if silent_ms < -GONE_AFTER_MS {
        let seconds = -silent_ms / 1_000;
        let message =
            format!("the clock of {machine} is {seconds} s ahead of this machine's clock");
        let remedy = Remedy::Do("timedatectl set-ntp true, on both".to_owned());
        return Some(FindingGroup::Fleet.warning("clock", message).with_remedy(remedy));
    }
    None
}

/// Checks the notification channels.
fn people(channels: &[NotificationChannel], runner: Option<&HookRunner>) -> Vec<Finding> {
    if channels.is_empty() {
        let message = "no channels: items wait in `hookloop inbox list`";
        return vec![FindingGroup::People.ok("channels", message)];
    }
    let one = |channel: &NotificationChannel| match runner
        .and_then(|runner| trouble(channel, runner))
    {
        None => {
            let message = format!("`hookloop inbox test {}` sends a test message", channel.name);
            FindingGroup::People.ok(&channel.name, message)
        }
        Some(trouble) => {
            let remedy = Remedy::Do(format!("then: hookloop inbox test {}", channel.name));
            FindingGroup::People.warning(&channel.name, trouble).with_remedy(remedy)
        }
    };
    channels.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use hookloop_fleet::fleet::WorkerState;

    use super::*;

    #[test]
    fn a_missed_heartbeat_or_a_wrong_clock_of_a_worker_is_reported() {
        let worker = |seen: i64| WorkerPresence {
            name: "w".parse().unwrap_or_else(|_| panic!()),
            machine: "m".to_owned(),
            pid: 1,
            version: String::new(),
            format: 1,
            state: WorkerState::Working,
            slots: 1,
            agent: String::new(),
            projects: Vec::new(),
            running: Vec::new(),
            started: Timestamp(0),
            seen: Timestamp(seen),
        };
        let about =
            |seen| about_worker(&worker(seen), Timestamp(1_000_000)).map(|found| found.about);
        assert_eq!(about(999_000), None);
        assert_eq!(about(1_001_000), None);
        assert_eq!(about(900_000).as_deref(), Some("workers"));
        assert_eq!(about(1_100_000).as_deref(), Some("clock"));
    }
}
