//! Runs each proposed gate once, as the hook that it would be.
//!
//! This runs code of the repository. The caller has the user's consent for these commands. No other
//! module runs commands that are not trusted hooks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hookloop_config::paths::{FILE_NAME, ProjectPaths};
use hookloop_config::{ConfigError, project_file};
use hookloop_core::environment::{CommandResult, EnvironmentFacts, EnvironmentGap, find_gap};
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::HookStatus;
use hookloop_core::point::Point;
use hookloop_engine::delivery::step_outcome::DeliveryHooks;
use hookloop_engine::delivery_context::StepsInContext;
use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::{self, LaunchContext};
use hookloop_engine::session::now::NowBoard;
use hookloop_engine::session::room_trial::{self, RoomTrial, RoomTrialResult, TrialRooms};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::HookContext;
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::test_detection::directories::is_plain;
use hookloop_hooks::test_detection::python::NO_TESTS;
use hookloop_hooks::trust::{HookOffer, Trust};
use hookloop_hooks::{environment, hook_sequence};
use hookloop_process::Cancel;

use super::{GateKind, GateProposal};

/// Timeouts that `init` writes: the usual one, and one for gates that took longer than [`LONG`].
pub(crate) const TIMEOUT: &str = "10m";
pub(crate) const LONG_TIMEOUT: &str = "30m";
const LONG: Duration = Duration::from_secs(120);
/// Timeout of a setup, in trials and in the file.
pub const SETUP_TIMEOUT: &str = "10m";
/// Maximum ignored files that are read from git's list.
const IGNORED_MAX: usize = 1_000;
/// Maximum ignored files that may be copied into a room, and the largest one in bytes.
const COPIES_MAX: usize = 20;
const COPY_MAX: u64 = 1024 * 1024;
/// Time limit of a trial.
pub const TRIED_WITHIN: Duration = Duration::from_secs(300);
/// The output of Python's unittest when it finds no tests.
const RAN_NONE: &str = "Ran 0 tests";

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateTrial {
    NotTried,
    Passed {
        ms: u64,
    },
    Failed {
        ms: u64,
        why: String,
        output: String,
    },
    /// The environment is not set up, so the failure is no evidence about the project.
    NotReady {
        gap: EnvironmentGap,
        output: String,
    },
    /// There is nothing to run, such as no tests.
    Absent {
        why: String,
        output: String,
    },
    TimedOut {
        output: String,
    },
}

impl GateTrial {
    pub fn name(&self) -> &'static str {
        match self {
            GateTrial::NotTried => "not_tried",
            GateTrial::Passed { .. } => "passed",
            GateTrial::Failed { .. } => "failed",
            GateTrial::NotReady { .. } => "not_ready",
            GateTrial::Absent { .. } => "absent",
            GateTrial::TimedOut { .. } => "timed_out",
        }
    }

    /// Returns the output of a gate that did not pass.
    pub fn output(&self) -> &str {
        match self {
            GateTrial::Failed { output, .. }
            | GateTrial::NotReady { output, .. }
            | GateTrial::Absent { output, .. }
            | GateTrial::TimedOut { output } => output,
            GateTrial::NotTried | GateTrial::Passed { .. } => "",
        }
    }

    /// Whether the gate took so long that it needs more time than usual.
    fn is_long(&self) -> bool {
        match self {
            GateTrial::TimedOut { .. } => true,
            GateTrial::Passed { ms } | GateTrial::Failed { ms, .. } => {
                u128::from(*ms) > LONG.as_millis()
            }
            GateTrial::NotTried | GateTrial::NotReady { .. } | GateTrial::Absent { .. } => false,
        }
    }

    /// Returns the trial of tests whose program is missing but has a known install command.
    ///
    /// Such tests stay a gate, so that no session runs without them. Returns `None` for all other
    /// gates.
    pub fn of_missing(gate: &GateProposal) -> Option<GateTrial> {
        let missing = gate.missing.as_ref().filter(|_| gate.kind == GateKind::Tests)?;
        let setup = Some(missing.setup.clone()?);
        let cause = format!("`{}` is not installed", missing.name);
        Some(GateTrial::NotReady { gap: EnvironmentGap { cause, setup }, output: String::new() })
    }

    fn of(run: &HookRun, facts: &EnvironmentFacts) -> GateTrial {
        let ran = run.ran.as_ref();
        let (code, ms) = (ran.and_then(|ran| ran.exit_code), ran.map_or(0, |ran| ran.duration_ms));
        let output = run.printed.trim_end().to_owned();
        let why = || run.outcome.reason.clone().unwrap_or_else(|| "it did not pass".to_owned());
        let absent = |why: &str| GateTrial::Absent { why: why.to_owned(), output: output.clone() };
        let result = CommandResult { exit_code: code, stdout: &run.stdout, stderr: &run.stderr };
        if let Some(gap) = find_gap(result, facts).filter(|_| code.is_some()) {
            return GateTrial::NotReady { gap, output };
        }
        match (run.outcome.status, code) {
            (_, Some(NO_TESTS)) => absent("it found no tests"),
            _ if output.contains(RAN_NONE) => absent("it found no tests"),
            (HookStatus::Passed, _) => GateTrial::Passed { ms },
            (HookStatus::Cancelled, _) => GateTrial::NotTried,
            (HookStatus::TimedOut, _) => {
                GateTrial::TimedOut { output: format!("{output}\n{}", why()) }
            }
            (HookStatus::NotStarted | HookStatus::Skipped, _) => {
                GateTrial::Absent { why: why(), output }
            }
            (_, Some(code)) => GateTrial::Failed { ms, why: format!("exit code {code}"), output },
            _ => GateTrial::Failed { ms, why: why(), output },
        }
    }
}

/// The result of a gate in a clean room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomResult {
    Ran(GateTrial),
    /// Packages could not be installed in the room.
    SetupFailed(String),
    /// The room could not be prepared.
    NoRoom(String),
    /// git is not installed, so gates of sessions run in the working directory.
    NoGit,
}

/// The gates of a configuration that is not written yet, ready to be tried.
#[derive(Debug)]
pub struct GateTrials {
    runner: HookRunner,
    hooks: Vec<Hook>,
    setup: Vec<Hook>,
}

impl GateTrials {
    /// Prepares the `stop` gates and the setup of `text`, a project configuration for `place`.
    pub fn new(
        place: &ProjectPaths,
        text: &str,
        around: &LaunchContext,
    ) -> Result<GateTrials, EngineError> {
        let settings = project_file::settings_from(Path::new(FILE_NAME), text.as_bytes())?;
        place.prepare()?;
        let registry = &settings.rules.hooks;
        // Trusts the hooks for this run only. The user consented to try them, not to keep them.
        let offer = HookOffer::look(&place.root, &settings.rules)?;
        let mut trust = Trust::load(&place.state)?;
        trust.accept(&offer.digest(), &offer)?;
        let environment = around.environment.clone();
        let exec = ExecContext::new(place.root.clone(), place.state.clone(), environment)
            .with_log(log_location::log_digest(&settings, around));
        let runner = HookRunner::new(exec, trust);
        let at = |point: Point| {
            let hooks = registry.list().iter().filter(|hook| hook.points.contains(&point));
            hooks.cloned().collect::<Vec<Hook>>()
        };
        Ok(GateTrials { runner, hooks: at(Point::Stop), setup: at(Point::Setup) })
    }

    /// Returns the rooms of trials. `scratch` is an empty directory for their copied files.
    pub fn rooms(&self, scratch: &Path) -> TrialRooms {
        TrialRooms::new(&self.runner, scratch)
    }

    /// Runs the gate with this name in the working directory and returns its result.
    ///
    /// The board shows the gate while it runs. A cancelled gate counts as not tried.
    pub fn run(&self, name: &str, board: &NowBoard, cancel: &Cancel) -> GateTrial {
        let Some(hook) = self.find(name) else { return GateTrial::NotTried };
        self.in_context(board, cancel, |context| {
            let hooks = std::slice::from_ref(hook);
            let runs = hook_sequence::run_all(&self.runner, hooks, context, &mut |_| {});
            runs.first().map_or(GateTrial::NotTried, |run| self.trial_of(hook, run))
        })
    }

    /// Runs the gate with this name in a clean room, after the setup of the configuration.
    pub fn run_in_room(
        &self,
        name: &str,
        rooms: &mut TrialRooms,
        board: &NowBoard,
        cancel: &Cancel,
    ) -> RoomResult {
        let Some(gate) = self.find(name) else { return RoomResult::Ran(GateTrial::NotTried) };
        let result = self.in_context(board, cancel, |context| {
            rooms.run(&self.runner, &RoomTrial { setup: &self.setup, gate, context, cancel })
        });
        match result {
            RoomTrialResult::Ran(run) => RoomResult::Ran(self.trial_of(gate, &run)),
            RoomTrialResult::NoGit => RoomResult::NoGit,
            _ if cancel.is_triggered() => RoomResult::Ran(GateTrial::NotTried),
            RoomTrialResult::SetupFailed(why) => RoomResult::SetupFailed(why),
            RoomTrialResult::NoRoom(why) => RoomResult::NoRoom(why),
        }
    }

    /// Returns the small files that git ignores and that may be copied into a room.
    pub fn ignored_files(&self, cancel: &Cancel) -> Vec<String> {
        let found = room_trial::ignored_files(&self.runner, cancel, IGNORED_MAX);
        // Without the list, no file is copied, and the gate runs in the working directory.
        let found =
            found.inspect_err(|error| tracing::warn!(%error, "ignored files are not listed"));
        let is_small = |path: &PathBuf| {
            let data = std::fs::symlink_metadata(self.runner.root().join(path));
            data.is_ok_and(|data| data.is_file() && data.len() <= COPY_MAX)
        };
        let text = |path: PathBuf| path.to_str().filter(|text| is_plain(text)).map(str::to_owned);
        let found = found.unwrap_or_default().into_iter().filter(is_small);
        found.filter_map(text).take(COPIES_MAX).collect()
    }

    fn find(&self, name: &str) -> Option<&Hook> {
        self.hooks.iter().find(|hook| hook.name == name)
    }

    /// Calls `run` with the context of a gate.
    fn in_context<T>(
        &self,
        board: &NowBoard,
        cancel: &Cancel,
        run: impl FnOnce(&HookContext<'_>) -> T,
    ) -> T {
        let point = Point::Stop;
        let builtins =
            StepsInContext { steps: &DeliveryHooks, runner: &self.runner, delivery_context: None };
        run(&HookContext {
            cancel: Some(cancel),
            builtins: Some(&builtins),
            board: Some(board),
            ..HookContext::at(&point)
        })
    }

    fn trial_of(&self, hook: &Hook, run: &HookRun) -> GateTrial {
        let directory = self.runner.root().join(hook.options.cwd.as_deref().unwrap_or(""));
        GateTrial::of(run, &environment::facts(&directory))
    }
}

/// Returns the timeout that a gate with these trials should have.
pub fn timeout_of<'t>(trials: impl IntoIterator<Item = &'t GateTrial>) -> &'static str {
    if trials.into_iter().any(GateTrial::is_long) { LONG_TIMEOUT } else { TIMEOUT }
}

/// Returns an error if `text` is not a valid project configuration.
pub fn check(text: &str) -> Result<(), ConfigError> {
    project_file::settings_from(Path::new(FILE_NAME), text.as_bytes()).map(|_| ())
}
