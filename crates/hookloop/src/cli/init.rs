//! `hookloop init`

mod choice;
mod file;
mod report;
mod room;
mod skip;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::Path;

use hookloop_agents::command_access::claude_rule;
use hookloop_agents::readiness::{NotReady, check_ready};
use hookloop_agents::repo_consent;
use hookloop_config::agents::AgentSettings;
use hookloop_config::effective::EffectiveConfig;
use hookloop_config::ids::new_project_name;
use hookloop_config::paths::{FILE_NAME, ProjectPaths};
use hookloop_config::project_file::settings_from;
use hookloop_engine::error::EngineError;
use hookloop_engine::gate_agreement::{HookConsent, agree_to_agents};
use hookloop_engine::log_location::{AfterLoss, LaunchContext};
use hookloop_engine::project::Project;
use hookloop_engine::session::now::NowBoard;
use hookloop_fleet::survey::room_search::RoomFinding;
use hookloop_fleet::survey::trial::{self, GateTrial, GateTrials};
use hookloop_fleet::survey::{GateKind, GateProposal, ProjectSurvey, SurveyGround, survey};
use hookloop_hooks::room_setup::RoomSetup;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust::{HookDefinition, Trust};
use hookloop_process::{WriteOptions, write_whole};
use room::{RoomTrials, TrialGround};
use skip::GateSkipper;

use crate::cli::context::CommandContext;
use crate::environment::{caller, is_person, state_home, surroundings};
use crate::error::{CliError, CliResult};

/// Create hookloop.yaml with the gates of this project
///
/// Inspects the repository and proposes `stop` gates: commands that must pass before an agent is done. Runs each gate
/// here and in a clean room, and writes the gates to hookloop.yaml, with the setup and the files that they need in the
/// room. The command asks before it runs, writes or trusts anything. It does not change an existing file.
///
/// The project's state is in your state directory ($XDG_STATE_HOME or ~/.local/state), never in the repository.
#[derive(clap::Args)]
pub(crate) struct InitArgs {
    /// Run the gates, write the file and trust the gates that ran, without asking
    #[arg(short, long)]
    yes: bool,

    /// Propose gates without running them
    #[arg(long)]
    no_run: bool,

    /// Directory whose projects get gates (repeatable) [default: all]
    ///
    /// A path relative to the root of the project; `.` is the root itself. Without this option, init asks on a terminal
    /// if it finds projects in several directories.
    #[arg(long, value_name = "DIR")]
    only: Vec<String>,

    /// Let Claude Code run the gates' own commands, and no others
    ///
    /// Writes `agents: {claude: {allowed_tools: […]}}` to hookloop.yaml and trusts it for you. Other users of the
    /// repository run `hookloop agents trust`. On a terminal, init asks. Other agents have no rules for single commands:
    /// Codex runs commands in its sandbox, and ACP agents run all commands or none.
    #[arg(long)]
    allow_gate_commands: bool,
}

/// The agent whose rules can name single commands.
pub(super) const CLAUDE: &str = "claude";

/// A proposed gate, and the results of its trial runs.
pub(super) struct TriedGate {
    pub(super) gate: GateProposal,
    /// The result in the working directory.
    pub(super) trial: GateTrial,
    pub(super) room: RoomFinding,
}

/// A directory with a project, and the gates that were found in it.
pub(super) struct FoundDirectory {
    /// From the root; `.` for the root itself.
    pub(super) path: String,
    pub(super) gates: Vec<String>,
    pub(super) is_chosen: bool,
}

/// A hook that installs packages in rooms.
#[derive(Clone)]
pub(super) struct SetupEntry {
    pub(super) name: String,
    pub(super) setup: RoomSetup,
    /// Variables that the setup gets, as its gate does.
    pub(super) env: Vec<String>,
}

/// The configuration to write, and the findings to print.
pub(super) struct InitPlan {
    pub(super) name: String,
    pub(super) survey: ProjectSurvey,
    /// Directories that gates were found in.
    pub(super) directories: Vec<FoundDirectory>,
    pub(super) gates: Vec<TriedGate>,
    /// Hooks that install packages in rooms.
    pub(super) setups: Vec<SetupEntry>,
    /// Agents that are installed.
    pub(super) agents: Vec<String>,
    /// Why the first of them can't work yet.
    pub(super) unready: Option<NotReady>,
    /// It is in a git repository.
    pub(super) has_git: bool,
    /// The rules for commands that Claude Code may run.
    pub(super) allowed: Vec<String>,
}

impl InitArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let directory = context.directory()?;
        let root = directory
            .canonicalize()
            .map_err(|error| CliError::usage(format!("{}: {error}", directory.display())))?;
        let place = ProjectPaths::of_new(&root, &state_home()?)?;
        let around = surroundings()?;
        if place.config().exists() {
            Project::open(&place, caller(&place), &around)?;
            if self.allow_gate_commands || !self.only.is_empty() {
                return Err(already_written(&place, self.allow_gate_commands));
            }
            return report::kept(context, &place);
        }
        around.policies()?.check_project(&root, None).map_err(EngineError::from)?;
        if !self.yes && !std::io::stdin().is_terminal() {
            return Err(not_written("there is no terminal to ask on"));
        }
        if !self.yes && !is_wanted_inside(context, &place)? {
            return report::declined(context);
        }
        let mut plan = look(&root, &around, &place)?;
        choice::choose(
            context,
            &mut plan,
            &choice::WantedDirectories { only: &self.only, yes: self.yes },
        )?;
        report::found(context, &plan)?;
        self.try_gates(context, &mut plan, &place, &around)?;
        plan.allowed = self.allowed_commands(context, &plan, &place)?;
        let text = file::text(&plan);
        if !self.yes && !agreed(context, &format!("Write {}?", place.config().display()))? {
            return report::declined(context);
        }
        let written = write(&place.config(), &text)?;
        plan.unready = {
            let project = Project::open(&place, caller(&place), &around)?;
            project.runner().and_then(|runner| why_unready(&plan, runner))
        };
        let trusted = if written { self.trust(context, &plan, &place, &text)? } else { None };
        if written && !plan.allowed.is_empty() {
            agree_to_commands(context, &place, &text)?;
        }
        report::done(context, &plan, &report::InitResult { place: &place, written, trusted })
    }

    /// Runs each gate here and in a clean room, if the user agrees.
    fn try_gates(
        &self,
        context: &mut CommandContext,
        plan: &mut InitPlan,
        place: &ProjectPaths,
        around: &LaunchContext,
    ) -> CliResult {
        for tried in &mut plan.gates {
            let Some(trial) = GateTrial::of_missing(&tried.gate) else { continue };
            tried.trial = trial;
            report::tried(context, tried)?;
        }
        let can_run = plan.gates.iter().any(|tried| tried.gate.missing.is_none());
        // An agent must not start commands of a repository outside of its sandbox.
        if self.no_run || !can_run || !is_person(place) {
            return Ok(());
        }
        if !self.yes {
            report::before_trials(context)?;
            if !agreed(context, "Run the gates once?")? {
                return Ok(());
            }
        }
        let trials = GateTrials::new(place, &file::for_trial(plan, &[], None), around)?;
        report::begun(context)?;
        let skipper = GateSkipper::start()?;
        let ground = TrialGround { place, around, skipper: &skipper, here: &trials };
        let mut rooms = RoomTrials::new(ground)?;
        for index in 0..plan.gates.len() {
            let tried = &mut plan.gates[index];
            if tried.gate.missing.is_some() {
                continue;
            }
            let board = NowBoard::default();
            let cancel = skipper.begin()?;
            let running = report::RunningGate::new(&tried.gate, &board, "");
            tried.trial = trials.run(&tried.gate.name, &board, &cancel);
            drop(running);
            skipper.end();
            if cancel.is_triggered() && tried.trial == GateTrial::NotTried {
                report::skipped(context, tried)?;
                continue;
            }
            rooms.settle(plan, index)?;
            report::tried(context, &plan.gates[index])?;
        }
        Ok(())
    }

    /// The rules for the gates' own commands, if the user wants Claude Code to run them.
    fn allowed_commands(
        &self,
        context: &mut CommandContext,
        plan: &InitPlan,
        place: &ProjectPaths,
    ) -> CliResult<Vec<String>> {
        let written = plan.gates.iter().filter(|tried| tried.is_written());
        let mut rules: Vec<String> = Vec::new();
        for rule in written.filter_map(|tried| claude_rule(&tried.gate.command)) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let has_claude = plan.agents.iter().any(|agent| agent == CLAUDE);
        if rules.is_empty() || !is_person(place) {
            return Ok(Vec::new());
        }
        let is_wanted = if self.allow_gate_commands {
            true
        } else if self.yes || !has_claude {
            false
        } else {
            let question =
                "Let Claude Code run these commands itself while it works, and no others?";
            agreed(context, question)?
        };
        Ok(if is_wanted { rules } else { Vec::new() })
    }

    /// Trusts the written gates by content, if the user agrees, and returns their digest. `--yes` covers gates that
    /// were run.
    fn trust(
        &self,
        context: &mut CommandContext,
        plan: &InitPlan,
        place: &ProjectPaths,
        text: &str,
    ) -> CliResult<Option<String>> {
        let gates: Vec<&TriedGate> = plan.gates.iter().filter(|tried| tried.is_written()).collect();
        let was_run = |tried: &&TriedGate| tried.trial != GateTrial::NotTried;
        if gates.is_empty() || !is_person(place) || (self.yes && !gates.iter().all(was_run)) {
            return Ok(None);
        }
        // A gate that could not run is not trusted yet.
        if gates.iter().any(|tried| tried.is_unready()) {
            return Ok(None);
        }
        if !self.yes && !agreed(context, "Trust these gates, so that sessions run them?")? {
            return Ok(None);
        }
        // The text that was shown, even if the file has changed since.
        let settings = settings_from(&place.config(), text.as_bytes())?;
        let mut consent = HookConsent::look(&place.root, &place.state, &settings.rules)?;
        let log =
            Project::open_log(place, caller(place), &context.surroundings()?, AfterLoss::Refuse)?;
        consent.agree(&log)?;
        log.leave();
        Ok(Some(consent.offer.digest()))
    }
}

impl InitPlan {
    /// Whether a gate also runs with the tests of the base.
    pub(super) fn protects(&self, tried: &TriedGate) -> bool {
        let is_here = matches!(tried.room, RoomFinding::Here { .. });
        self.has_git && tried.gate.kind == GateKind::Tests && !is_here
    }
}

impl TriedGate {
    /// Whether it could not run because the environment is not prepared.
    pub(super) fn is_unready(&self) -> bool {
        matches!(self.trial, GateTrial::NotReady { .. })
    }

    /// Returns the timeout that the gate should have.
    pub(super) fn timeout(&self) -> &'static str {
        let in_room = match &self.room {
            RoomFinding::NotTried => None,
            RoomFinding::Clean { trial, .. } | RoomFinding::Here { trial, .. } => Some(trial),
        };
        trial::timeout_of([&self.trial].into_iter().chain(in_room))
    }

    /// Whether the check becomes a gate, rather than a comment with the reason.
    pub(super) fn is_written(&self) -> bool {
        use GateKind::{Check, Tests};
        match (&self.trial, self.gate.kind) {
            (GateTrial::NotTried, Tests) => self.gate.missing.is_none(),
            (GateTrial::Passed { .. }, _) => true,
            // A gate that can't run yet stays in the file, so that no session goes without it.
            (
                GateTrial::Failed { .. } | GateTrial::TimedOut { .. } | GateTrial::NotReady { .. },
                Tests,
            ) => true,
            (
                GateTrial::NotTried
                | GateTrial::Failed { .. }
                | GateTrial::TimedOut { .. }
                | GateTrial::NotReady { .. },
                Check,
            ) => false,
            (GateTrial::Absent { .. }, _) => false,
        }
    }
}

/// Trusts the definition of Claude Code that was just written, and nothing else of the repository.
fn agree_to_commands(context: &mut CommandContext, place: &ProjectPaths, text: &str) -> CliResult {
    let settings = settings_from(&place.config(), text.as_bytes())?;
    let mut trust = Trust::load(&place.state)?;
    let found = repo_consent::all(&place.root, &settings.rules)?;
    let name = format!("agent {CLAUDE}");
    let mut definitions: Vec<HookDefinition> = trust.agents().to_vec();
    definitions.retain(|definition| definition.name != name);
    definitions.extend(found.into_iter().filter(|definition| definition.name == name));
    let log = Project::open_log(place, caller(place), &context.surroundings()?, AfterLoss::Refuse)?;
    agree_to_agents(&log, &mut trust, definitions)?;
    log.leave();
    Ok(())
}

fn already_written(place: &ProjectPaths, is_about_commands: bool) -> CliError {
    let error = CliError::usage(format!(
        "{}: the file exists, and init does not change it",
        place.config().display()
    ));
    if !is_about_commands {
        return error.advice("change the gates in the file, then run `hookloop hooks trust`");
    }
    error.advice("add `agents: {claude: {allowed_tools: [\"Bash(npm test)\"]}}` with the commands of your gates, then run `hookloop agents trust`")
}

fn look(root: &Path, around: &LaunchContext, place: &ProjectPaths) -> CliResult<InitPlan> {
    let name = |(name, _): &(std::ffi::OsString, _)| name.to_str().map(str::to_owned);
    let variables: BTreeSet<String> = around.environment.iter().filter_map(name).collect();
    let path = around.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(""), |(_, path)| path);
    let survey = survey(SurveyGround { root, path, variables: &variables });
    let trust = Trust::load(&place.state)?;
    let ground = hookloop_hooks::trust::AgentGround { root, trust: &trust, path };
    let agents = repo_consent::present(&EffectiveConfig::default(), ground);
    let directory = root.file_name().unwrap_or_default().to_string_lossy();
    // A directory of that name may be empty; a file leads to a repository.
    let is_git = |git: std::path::PathBuf| git.is_file() || git.join("HEAD").exists();
    let has_git = root.ancestors().any(|directory| is_git(directory.join(".git")));
    Ok(InitPlan {
        name: new_project_name(&directory).to_string(),
        survey,
        directories: Vec::new(),
        gates: Vec::new(),
        setups: Vec::new(),
        agents,
        unready: None,
        has_git,
        allowed: Vec::new(),
    })
}

/// Whether the user wants a separate project inside of another one.
fn is_wanted_inside(context: &mut CommandContext, place: &ProjectPaths) -> CliResult<bool> {
    let Some(outer) = outer_project(place) else { return Ok(true) };
    let question = format!(
        "This directory is inside the project {}. Create a separate project here?",
        outer.root.display()
    );
    agreed(context, &question)
}

/// Returns the project that contains this one, if there is one.
pub(super) fn outer_project(place: &ProjectPaths) -> Option<ProjectPaths> {
    // Without a state directory, or a project above, this project is the outermost.
    place.root.parent().and_then(|up| ProjectPaths::find(up, &state_home().ok()?).ok())
}

/// Why the agent that `init` proposes can't work yet, if it can't.
fn why_unready(plan: &InitPlan, runner: &HookRunner) -> Option<NotReady> {
    // The plan names known agents; an unknown one has no login to check.
    let settings = AgentSettings::of_name(plan.agents.first()?).ok()?;
    check_ready(&settings, runner).err()
}

/// Writes the file unless it is there by now; answers whether it did.
fn write(path: &Path, text: &str) -> CliResult<bool> {
    // The umask decides who may read the file, as for any file of the project.
    let options = WriteOptions { mode: 0o666, replaces: false, ..WriteOptions::DURABLE };
    match write_whole(path, text.as_bytes(), options) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(CliError::system(format!("{}: {error}", path.display()))),
    }
}

/// Asks on a terminal; Enter alone means yes.
fn agreed(context: &mut CommandContext, question: &str) -> CliResult<bool> {
    let answer = ask(context, &format!("{question} [Y/n] "))?;
    Ok(answer.is_some_and(|answer| matches!(answer.as_str(), "" | "y" | "Y" | "yes")))
}

/// The line that the user types; none at the end of the input.
pub(super) fn ask(context: &mut CommandContext, question: &str) -> CliResult<Option<String>> {
    context.out.flush()?;
    let mut stderr = anstream::stderr();
    write!(stderr, "{question}")?;
    stderr.flush()?;
    let mut answer = String::new();
    let has_answered = std::io::stdin().read_line(&mut answer)? > 0;
    Ok(has_answered.then(|| answer.trim().to_owned()))
}

pub(super) fn not_written(why: &str) -> CliError {
    CliError::refused(format!("{FILE_NAME} was not written: {why}")).hint("hookloop init --yes")
}
