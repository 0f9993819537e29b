//! Runs each proposed gate once, as the hook that it would be.
//!
//! This runs code of the repository. The caller has the user's consent for these commands. No other
//! module runs commands that are not trusted hooks.

use std::path::Path;
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
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::HookContext;
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::test_detection::python::NO_TESTS;
use hookloop_hooks::trust::{HookOffer, Trust};
use hookloop_hooks::{environment, hook_sequence};
use hookloop_process::Cancel;

use super::{GateKind, GateProposal};

/// Timeouts that `init` writes: the usual one, and one for gates that took longer than [`LONG`].
pub(crate) const TIMEOUT: &str = "10m";
pub(crate) const LONG_TIMEOUT: &str = "30m";
const LONG: Duration = Duration::from_secs(120);
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

    /// Returns the timeout that the gate should have.
    pub fn timeout(&self) -> &'static str {
        match self {
            GateTrial::TimedOut { .. } => LONG_TIMEOUT,
            GateTrial::Passed { ms } | GateTrial::Failed { ms, .. }
                if u128::from(*ms) > LONG.as_millis() =>
            {
                LONG_TIMEOUT
            }
            _ => TIMEOUT,
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

/// The gates of a configuration that is not written yet, ready to be tried.
#[derive(Debug)]
pub struct GateTrials {
    runner: HookRunner,
    hooks: Vec<Hook>,
}

impl GateTrials {
    /// Prepares the `stop` gates of `text`, a project configuration for `place`.
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
        let is_gate = |hook: &&Hook| hook.points.contains(&Point::Stop);
        Ok(GateTrials { runner, hooks: registry.list().iter().filter(is_gate).cloned().collect() })
    }

    /// Runs the gate with this name and returns its result.
    ///
    /// The board shows the gate while it runs. A cancelled gate counts as not tried.
    pub fn run(&self, name: &str, board: &NowBoard, cancel: &Cancel) -> GateTrial {
        let Some(hook) = self.hooks.iter().find(|hook| hook.name == name) else {
            return GateTrial::NotTried;
        };
        let point = Point::Stop;
        let builtins =
            StepsInContext { steps: &DeliveryHooks, runner: &self.runner, delivery_context: None };
        let hook_context = HookContext {
            cancel: Some(cancel),
            builtins: Some(&builtins),
            board: Some(board),
            ..HookContext::at(&point)
        };
        let runs = hook_sequence::run_all(
            &self.runner,
            std::slice::from_ref(hook),
            &hook_context,
            &mut |_| {},
        );
        let directory = self.runner.root().join(hook.options.cwd.as_deref().unwrap_or(""));
        let facts = environment::facts(&directory);
        runs.first().map_or(GateTrial::NotTried, |run| GateTrial::of(run, &facts))
    }
}

/// Returns an error if `text` is not a valid project configuration.
pub fn check(text: &str) -> Result<(), ConfigError> {
    project_file::settings_from(Path::new(FILE_NAME), text.as_bytes()).map(|_| ())
}
