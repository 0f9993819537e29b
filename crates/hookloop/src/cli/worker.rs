//! `hookloop worker`

mod told;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use hookloop_config::agents::AgentPermissions;
use hookloop_config::paths::ProjectPaths;
use hookloop_config::user::{ProjectHome, ProjectRules};
use hookloop_core::authority::ActorKind;
use hookloop_core::claim::LEASE_MAX_MS;
use hookloop_core::fleet::WorkerName;
use hookloop_core::id::TaskId;
use hookloop_core::options::Length;
use hookloop_engine::caller::{Caller, CallerIdentity};
use hookloop_engine::error::EngineError;
use hookloop_engine::heartbeat;
use hookloop_engine::log_location::{LaunchContext, LogLocation};
use hookloop_engine::project::{Project, SessionTraces};
use hookloop_engine::store::NatsLinks;
use hookloop_fleet::fleet::Fleet;
use hookloop_fleet::telemetry::TraceExporter;
use hookloop_fleet::worker::{
    SLOTS_MAX, Worker, WorkerPlan, WorkerProject, WorkerProjectParts, WorkerStop, WorkerUpdate,
    check_out,
};
use hookloop_git::repo::RepoError;
use hookloop_process::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use told::{ToldJson, json_of, line_of, log_line};

use super::run::AGENT_VARIABLE;
use super::traces;
use super::value_parsers::{length, permissions};
use crate::cli::context::CommandContext;
use crate::environment::{machine, state_home, user_name};
use crate::error::{CliError, CliResult};
use crate::logs::{LogArgs, LogLevel, LogLine};
use crate::metrics::WorkerTally;
use crate::output::CommandOutput;
use crate::sanitize::plain;
use crate::web::MetricsEndpoint;

/// A lease has to outlast an election of the store's servers, with time for heartbeats.
const LEASE_MIN_MS: u64 = 5_000;
const CANCELLED: i32 = 130;

/// Claim ready tasks and run a session for each, until stopped
///
/// In projects with `delivery:`, the worker also submits and merges the work. After SIGTERM or Ctrl-C the worker claims
/// nothing more, and finishes or releases its tasks within --drain. After a second signal it releases them at once. A
/// worker that was killed resumes its tasks when it starts again; other workers claim them after --lease.
#[derive(clap::Args)]
pub(crate) struct WorkerArgs {
    /// Directories of projects, or names under `projects:` in your own configuration
    ///
    /// The default is the project of the current directory; outside of a project, all projects under `projects:`.
    #[arg(value_name = "PROJECT")]
    projects: Vec<String>,

    /// Agent, as for `run` [default: $HOOKLOOP_AGENT, else the configuration]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Model of the agent
    #[arg(long)]
    model: Option<String>,

    /// Permissions of the agent: read, edit or full
    #[arg(long, value_name = "PERMISSIONS", value_parser = permissions)]
    permissions: Option<String>,

    /// Maximum concurrent tasks
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    jobs: u32,

    /// Name of the worker [default: MACHINE-PID]
    #[arg(long)]
    name: Option<WorkerName>,

    /// Types of the tasks (separated by commas)
    #[arg(short, long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,

    /// Labels of the tasks (separated by commas)
    #[arg(long = "label", value_name = "LABEL", value_delimiter = ',')]
    labels: Vec<String>,

    /// Time without a heartbeat after which other workers claim its tasks
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = lease)]
    lease: u64,

    /// Time to finish running tasks after a signal
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = length)]
    drain: u64,

    /// Do not merge submitted tasks
    #[arg(long)]
    no_merge: bool,

    /// End when no work is left
    #[arg(long)]
    until_idle: bool,

    /// Niceness of agent and hook processes (0–19)
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(i32).range(0..=19))]
    nice: i32,

    /// Address of the Prometheus endpoint /metrics, such as 127.0.0.1:9464
    ///
    /// Clients need the token from the file that the worker names at its start.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// Allow a public metrics address; the token crosses the network in the clear
    #[arg(long, requires = "metrics")]
    metrics_public: bool,

    #[command(flatten)]
    log: LogArgs,
}

impl WorkerArgs {
    pub(super) fn has_log_lines(&self) -> bool {
        self.log.is_asked_for()
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        context.log = self.log.logger(&context.out)?;
        let surroundings =
            LaunchContext { stays: Some(NatsLinks::default()), ..context.surroundings()? };
        let home = state_home()?;
        let sites = self.sites(context, &home, &surroundings)?;
        let Some(first) = sites.first() else {
            return Err(CliError::usage("no project to work on"));
        };
        let urls = |site: &WorkerProjectParts| match site.project.kept() {
            LogLocation::Here => String::new(),
            LogLocation::Nats { urls, .. } => urls.clone(),
        };
        if sites.iter().any(|site| urls(site) != urls(first)) {
            let message = "these projects have different stores, and a worker belongs to the fleet of one store";
            return Err(
                CliError::usage(message).hint("hookloop worker PROJECT, once for each store")
            );
        }
        let fleet = Fleet::beside(&first.project, &home, &surroundings)?;
        let plan = self.plan(&first.project, context.user()?.agent)?;
        let endpoint = self.endpoint(&home)?;
        let exporter = traces::start(context, true)?;
        heartbeat::start();
        let quit = handle_signals()?;
        // Heartbeats get a higher priority than the processes that start from here on. If the system refuses, all have
        // the same priority.
        if let Err(error) = rustix::process::setpriority_process(None, self.nice) {
            tracing::warn!(nice = self.nice, %error, "heartbeats have no priority over the work");
        }
        let sites = sites.into_iter().map(|site| shown(site, exporter.as_ref()));
        let projects: Vec<WorkerProject> =
            sites.map(|site| WorkerProject::open(site, &fleet)).collect();
        let named = projects.iter();
        let named = named.map(|served| (served.name().to_owned(), served.clone_project()));
        let tally = Arc::new(WorkerTally::new(named.collect(), plan.slots, exporter));
        tell_beginning(context, &plan, &projects)?;
        if let Some(endpoint) = endpoint {
            tell_endpoint(context, &endpoint)?;
            endpoint.serve(Arc::clone(&tally))?;
        }
        work(context, &Worker::new(plan, projects, fleet), &quit, &tally)
    }

    /// The projects to work on, each opened.
    fn sites(
        &self,
        context: &CommandContext,
        home: &Path,
        surroundings: &LaunchContext,
    ) -> CliResult<Vec<WorkerProjectParts>> {
        let known = context.user()?.projects;
        let wanted: Vec<WantedProject> = match self.projects.as_slice() {
            [] => match context.place() {
                Ok(place) => vec![WantedProject::There(place)],
                Err(_) if !known.is_empty() => {
                    known.iter().map(|(name, rules)| WantedProject::Known(name, rules)).collect()
                }
                Err(error) => return Err(error),
            },
            named => {
                let find = |named: &'_ String| match known.get_key_value(named) {
                    Some((name, rules)) => Ok(WantedProject::Known(name, rules)),
                    None => Ok(WantedProject::There(ProjectPaths::find(Path::new(named), home)?)),
                };
                named.iter().map(find).collect::<CliResult<_>>()?
            }
        };
        let mut sites: Vec<WorkerProjectParts> = Vec::new();
        for wanted in wanted {
            let site = wanted.open(home, surroundings)?;
            if !sites.iter().any(|known| known.place == site.place) {
                sites.push(site);
            }
        }
        Ok(sites)
    }

    /// Where Prometheus may ask.
    fn endpoint(&self, home: &Path) -> CliResult<Option<MetricsEndpoint>> {
        let Some(address) = self.metrics else { return Ok(None) };
        if !address.ip().is_loopback() && !self.metrics_public {
            let message = format!(
                "other machines can reach {address}, and the token would cross the network in the clear"
            );
            let hint = format!("hookloop worker … --metrics {address} --metrics-public");
            return Err(CliError::usage(message).hint(hint));
        }
        MetricsEndpoint::bind(address, home).map(Some)
    }

    fn plan(&self, first: &Project, own: Option<String>) -> CliResult<WorkerPlan> {
        let named = self.agent.clone().or_else(|| std::env::var(AGENT_VARIABLE).ok());
        let named = named.filter(|agent| !agent.is_empty());
        let rules = first.rules();
        // Only the user can name an agent with full permissions; a repository can't.
        let of_project = rules.session.agent.clone().filter(|agent| {
            self.permissions.is_some()
                || rules.agent(agent).is_ok_and(|agent| agent.permissions != AgentPermissions::Full)
        });
        let no_agent = || {
            let message =
                "no agent: neither --agent, HOOKLOOP_AGENT nor the configuration names one";
            CliError::usage(message).hint("hookloop worker --agent claude")
        };
        let agent = named.or(of_project).or(own).ok_or_else(no_agent)?;
        Ok(WorkerPlan {
            name: self.name.clone().unwrap_or_else(default_name),
            machine: machine(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: self.jobs,
            agent,
            model: self.model.clone(),
            permissions: self.permissions.clone(),
            types: self.types.clone(),
            labels: self.labels.clone(),
            lease: Duration::from_millis(self.lease),
            drain: Duration::from_millis(self.drain),
            merges: !self.no_merge,
            until_idle: self.until_idle,
        })
    }
}

/// A project to work on.
enum WantedProject<'a> {
    There(ProjectPaths),
    Known(&'a str, &'a ProjectRules),
}

impl WantedProject<'_> {
    fn open(self, home: &Path, surroundings: &LaunchContext) -> CliResult<WorkerProjectParts> {
        let name = match self {
            WantedProject::There(_) => "",
            WantedProject::Known(name, _) => name,
        };
        let (place, weight, source) = match self {
            WantedProject::There(place) => (place, 1, None),
            WantedProject::Known(_, ProjectRules { home: ProjectHome::Here(path), weight }) => {
                (ProjectPaths::find(path, home)?, *weight, None)
            }
            WantedProject::Known(
                name,
                ProjectRules { home: ProjectHome::Repository(source), weight },
            ) => (ProjectPaths::of_copy(home, name), *weight, Some(source.clone())),
        };
        let mut surroundings = surroundings.clone();
        if let Some(source) = &source {
            surroundings.cloned_from = Some(source.url.clone());
            surroundings
                .user()?
                .policy
                .check_project(&place.root, Some(&source.url))
                .map_err(EngineError::from)?;
            let failed = |error: RepoError| CliError::system(format!("{name}: {error}"));
            check_out(&place, source, &surroundings, &Cancel::new()?).map_err(failed)?;
        }
        let identity = CallerIdentity::service(ActorKind::Worker);
        let worker = Caller::known(&user_name(), identity);
        let project = Project::open(&place, worker, &surroundings)?;
        project.tend()?;
        Ok(WorkerProjectParts { project, place, weight, source, surroundings })
    }
}

/// Runs the worker, and prints its events.
fn work(
    context: &mut CommandContext,
    worker: &Worker,
    quit: &WorkerStop,
    tally: &WorkerTally,
) -> CliResult {
    let log = context.log;
    let out = &mut context.out;
    let (says, said) = mpsc::channel();
    let is_json = out.json;
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            // The sender moves here, so the channel closes when the worker ends.
            let says = says;
            let listener = |told: &WorkerUpdate<'_>| {
                tally.hear(told);
                if let Some(logger) = log {
                    return logger.say(log_line(told, tally.exporter.is_some()));
                }
                let line = if is_json {
                    CommandOutput::json_line(&json_of(told)).unwrap_or_default()
                } else {
                    line_of(told)
                };
                // If standard output is closed, the worker continues.
                let _ = says.send(line);
            };
            worker.run(quit, &listener)
        });
        let mut is_heard = true;
        for line in said {
            is_heard = is_heard && out.line(line).and_then(|()| out.flush()).is_ok();
        }
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Ok(())
}

/// Prints the name, slots, agent and projects of the worker.
fn tell_beginning(
    context: &mut CommandContext,
    plan: &WorkerPlan,
    projects: &[WorkerProject],
) -> CliResult {
    let names: Vec<&str> = projects.iter().map(WorkerProject::name).collect();
    let name = &plan.name;
    let slots = plan.slots;
    let agent = plain(&plan.agent);
    let text = format!(
        "worker {name}: {slots} concurrent, agent {agent}, projects {}",
        plain(&names.join(", "))
    );
    match context.log {
        Some(logger) => {
            logger.say(LogLine::new(LogLevel::Info, "worker", text).with("event", "started"))
        }
        None if context.out.json => {}
        None => {
            context.out.line(text)?;
            context.out.flush()?;
        }
    }
    Ok(())
}

/// Returns a project whose sessions are sent to a collector, if there is one. Each session is its own trace.
fn shown(site: WorkerProjectParts, exporter: Option<&TraceExporter>) -> WorkerProjectParts {
    match exporter.cloned() {
        Some(exporter) => {
            let tracing = SessionTraces { exporter: Arc::new(exporter), parent: None };
            WorkerProjectParts { project: site.project.traced(tracing), ..site }
        }
        None => site,
    }
}

fn tell_endpoint(context: &mut CommandContext, endpoint: &MetricsEndpoint) -> CliResult {
    let url = endpoint.url();
    let file = endpoint.token_file.to_string_lossy().into_owned();
    if let Some(logger) = context.log {
        let line = LogLine::new(LogLevel::Info, "worker", format!("metrics at {url}"));
        logger.say(line.with("event", "metrics").with("url", url).with("token_file", file));
        return Ok(());
    }
    let out = &mut context.out;
    if out.json {
        out.json(&ToldJson::Metrics { url: &url, token_file: &file })?
    } else {
        out.line(format_args!("metrics at {url}, token in {}", plain(&file)))?
    }
    out.flush()
}

/// Returns the machine's name and the process id.
fn default_name() -> WorkerName {
    let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let machine: String = machine().chars().filter(fits).take(40).collect();
    let name = format!("{}-{}", machine.trim_matches('-'), std::process::id());
    name.parse().unwrap_or_else(|_| TaskId::generate(hookloop_core::id::EventId([0; 16])))
}

fn lease(text: &str) -> std::result::Result<u64, String> {
    let ms = length(text)?;
    if (LEASE_MIN_MS..=LEASE_MAX_MS).contains(&ms) {
        Ok(ms)
    } else {
        let least = Length { ms: LEASE_MIN_MS };
        let most = Length { ms: LEASE_MAX_MS };
        Err(format!("a lease is {least} to {most}"))
    }
}

/// Handles signals: the first lets the worker finish, the second releases its tasks, the third ends the program.
fn handle_signals() -> CliResult<WorkerStop> {
    let quit = WorkerStop { drain: Cancel::new()?, now: Cancel::new()? };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let of_thread = quit.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            match count {
                0 => of_thread.drain.trigger(),
                1 => of_thread.now.trigger(),
                _ => std::process::exit(CANCELLED),
            }
        }
    })?;
    Ok(quit)
}
