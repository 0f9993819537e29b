//! The result of one hook, and the reasons why a hook does not run.

use std::path::Path;

use hookloop_config::clock::now;
use hookloop_core::builtin::Builtin;
use hookloop_core::checks::CheckRecords;
use hookloop_core::environment::{CommandResult, EnvironmentFacts, EnvironmentGap, cannot_run};
use hookloop_core::event::HookRan;
use hookloop_core::excerpt::{ExcerptRules, LeftOut, head_and_tail};
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::hook_protocol::{HookOutcome, HookStatus};
use hookloop_core::options::PipeOutput;
use hookloop_core::point::Point;
use hookloop_core::quantity::counted;

use crate::environment;
use crate::gate_report::{ReportResult, is_test_report};

/// The result of one hook.
#[derive(Clone, Debug)]
pub struct HookRun {
    pub hook: String,
    pub outcome: HookOutcome,
    /// The record for the log, or `None` if the hook did not run.
    pub ran: Option<HookRan>,
    /// Standard output, as far as it is in memory.
    pub stdout: String,
    pub stderr: String,
    /// The output for people and agents: both streams in reading order, without a JSON answer.
    pub printed: String,
    /// The parts of `printed` that a note replaces.
    pub left_out: Vec<LeftOut>,
    /// The reason why the command could not be executed, if it could not.
    pub gap: Option<EnvironmentGap>,
    /// The results of its single checks, if they are known.
    pub checks: Option<CheckRecords>,
    /// Whether the hook ran in a clean room.
    pub in_room: bool,
}

impl HookRun {
    /// Returns the result of a hook that started no process.
    pub fn without_process(hook: &Hook, outcome: HookOutcome) -> HookRun {
        let (stdout, stderr) = (String::new(), String::new());
        HookRun {
            hook: hook.name.clone(),
            outcome,
            ran: None,
            stdout,
            stderr,
            printed: String::new(),
            left_out: Vec::new(),
            gap: None,
            checks: None,
            in_room: false,
        }
    }

    /// Returns the result of a hook that had nothing to do.
    pub fn skipped(hook: &Hook, reason: String) -> HookRun {
        let outcome = HookOutcome { reason: Some(reason), ..HookOutcome::of(HookStatus::Skipped) };
        HookRun::without_process(hook, outcome)
    }

    /// Returns the command that lets the hook run, if it was refused for lack of trust.
    pub fn trust_command(&self) -> Option<&'static str> {
        let was_refused = self.ran.is_none() && self.outcome.status == HookStatus::NotStarted;
        let reason = self.outcome.reason.as_deref().filter(|_| was_refused);
        reason.and_then(command_for)
    }

    /// Returns the reason of a blocking run, then its prompt for the agent if that adds something.
    pub fn blocking_words(&self) -> Vec<&str> {
        let reason = self.outcome.reason.as_deref();
        let prompt = self.outcome.next_prompt.as_deref();
        match (reason, prompt) {
            (Some(reason), Some(prompt)) if prompt.starts_with(reason) => vec![prompt],
            (reason, prompt) => reason.into_iter().chain(prompt).collect(),
        }
    }

    /// Whether another attempt may succeed.
    pub fn has_failed(&self) -> bool {
        matches!(
            self.outcome.status,
            HookStatus::Failed | HookStatus::TimedOut | HookStatus::Killed
        )
    }

    /// Whether the hook could check nothing, for a reason outside the work.
    ///
    /// The hook could not start, its condition has no value, or its command cannot be executed.
    pub fn is_misconfigured(&self) -> bool {
        let has_run = self.ran.as_ref().is_some_and(|ran| ran.attempts > 0);
        match self.outcome.status {
            HookStatus::NotStarted => true,
            HookStatus::Failed if !has_run => true,
            _ => self.gap.is_some(),
        }
    }

    /// Records why the command could not be executed in `directory`, if it could not.
    pub fn with_gap(mut self, directory: &Path) -> HookRun {
        let result = CommandResult {
            exit_code: self.ran.as_ref().and_then(|ran| ran.exit_code),
            stdout: &self.stdout,
            stderr: &self.stderr,
        };
        // Reads the project's files only if the output points to a gap.
        if self.outcome.status != HookStatus::Passed
            && cannot_run(result, &EnvironmentFacts::default()).is_some()
        {
            self.gap = cannot_run(result, &environment::facts(directory));
        }
        self
    }

    /// Adds the records of the run's checks.
    ///
    /// A run that passed does not count as passed if its report is missing, or if tests failed in it.
    pub(crate) fn with_report(mut self, hook: &Hook, point: &Point, read: ReportResult) -> HookRun {
        let has_passed = self.outcome.status == HookStatus::Passed;
        let wrong = match &read {
            ReportResult::Unreadable(why) => Some(why.clone()),
            ReportResult::Report(records)
                if records.counts.failed > 0 && is_test_report(records) =>
            {
                let failed = u32::try_from(records.counts.failed).unwrap_or(u32::MAX);
                let failed = counted(failed, "check", "checks");
                Some(format!("{failed} failed in its report, although the command exited with 0"))
            }
            _ => None,
        };
        if let (true, Some(why)) = (has_passed, wrong) {
            let status = HookStatus::Failed;
            self.outcome = HookOutcome::unable(status, why, point.kind(), hook.options.on_failure);
            if let Some(ran) = &mut self.ran {
                ran.status = status.into();
                ran.reason.clone_from(&self.outcome.reason);
            }
        }
        self.checks = match read {
            ReportResult::Report(records) | ReportResult::Output(records) => Some(records),
            ReportResult::Unknown | ReportResult::Unreadable(_) => None,
        };
        self
    }

    /// Explains to a person why the hook could check nothing, with its command and the setup step.
    pub fn why_unable(&self, handler: &HookHandler) -> String {
        let cause = match (&self.gap, &self.outcome.reason) {
            (Some(gap), _) => gap.cause.clone(),
            (None, Some(reason)) => reason.clone(),
            (None, None) => self.outcome.status.name().to_owned(),
        };
        let command = match handler {
            HookHandler::Command(CommandText::Shell(line)) => format!("; its command is `{line}`"),
            HookHandler::Command(CommandText::Exec(args)) => {
                format!("; its command is `{}`", args.join(" "))
            }
            _ => String::new(),
        };
        let setup = match &self.gap {
            None => String::new(),
            Some(EnvironmentGap { setup: Some(setup), .. }) if self.in_room => {
                format!(
                    "; install it in the clean room: `hooks: {{setup: [{{command: {setup}}}]}}`"
                )
            }
            Some(_) if self.in_room => {
                "; if it is installed here, the clean room needs it, too: add a hook at \
                                        `setup`, or `room: here` at the gate"
                    .to_owned()
            }
            Some(EnvironmentGap { setup: Some(setup), .. }) => format!("; type `{setup}`"),
            Some(EnvironmentGap { setup: None, .. }) => String::new(),
        };
        let hint = self.outcome.message.as_ref();
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        let name = &self.hook;
        format!("`{name}` can't run here, so no agent can fix it: {cause}{command}{setup}{hint}")
    }

    /// Returns the record of a hook that was not started.
    pub fn unstarted_record(&self, point: &Point) -> HookRan {
        HookRan {
            hook_name: self.hook.clone(),
            point: point.name().to_owned(),
            status: self.outcome.status.into(),
            exit_code: None,
            duration_ms: 0,
            ended_at: Some(now()),
            attempts: 0,
            reason: self.outcome.reason.clone(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            artifact: None,
            base_tests: false,
            output_tail: Vec::new(),
            message: None,
        }
    }

    /// Returns the result of a hook that was refused.
    pub fn refused(hook: &Hook, point: &Point, refusal: RunRefusal) -> HookRun {
        let RunRefusal { reason, hint } = refusal;
        let mut run = HookRun::unable(hook, point, HookStatus::NotStarted, reason);
        run.outcome.message = hint;
        run
    }

    /// Returns the result of a hook that could not run.
    pub fn unable(hook: &Hook, point: &Point, status: HookStatus, reason: String) -> HookRun {
        let outcome = HookOutcome::unable(status, reason, point.kind(), hook.options.on_failure);
        HookRun::without_process(hook, outcome)
    }

    /// Returns the result of a hook whose condition cannot be evaluated. The log gets the reason.
    pub fn undecided(hook: &Hook, point: &Point, reason: String) -> HookRun {
        let run = HookRun::unable(hook, point, HookStatus::Failed, reason);
        let ran = run.unstarted_record(point);
        HookRun { ran: Some(ran), ..run }
    }
}

/// The reasons for refusing a hook that is not trusted in its present form.
pub(crate) const NOT_TRUSTED: &str = "it is not trusted";

pub(crate) const CHANGED: &str = "it changed since it was trusted";

/// The command that trusts hooks. Only a person may run it.
const TRUST_COMMAND: &str = "hookloop hooks trust";

/// Returns the command that fixes a recorded failure, if there is one.
pub fn command_for(failure: &str) -> Option<&'static str> {
    [NOT_TRUSTED, CHANGED].contains(&failure).then_some(TRUST_COMMAND)
}

/// The reason why a hook does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRefusal {
    /// For everyone, including the agent.
    pub reason: String,
    /// For the user only: a command that only a person may run.
    pub hint: Option<String>,
}

impl RunRefusal {
    pub fn untrusted(reason: &str) -> RunRefusal {
        RunRefusal { reason: reason.to_owned(), hint: Some(TRUST_COMMAND.to_owned()) }
    }
}

impl From<String> for RunRefusal {
    fn from(reason: String) -> RunRefusal {
        RunRefusal { reason, hint: None }
    }
}

/// Longest command in a prompt, in characters.
const COMMAND_MAX: usize = 200;

/// Returns the command of a gate, or a description of its check, in one line.
pub fn describe(hook: &Hook) -> String {
    let text = match &hook.handler {
        HookHandler::Command(CommandText::Shell(line)) => line.clone(),
        HookHandler::Command(CommandText::Exec(args)) => args.join(" "),
        HookHandler::Http { .. } => "a web service decides".to_owned(),
        HookHandler::Rule(rule) => rule.to_string(),
        HookHandler::Gatekeepers { agents, .. } => format!("review by {}", agents.join(", ")),
        HookHandler::Declared(_) => hook.name.clone(),
        HookHandler::Builtin(Builtin::RunTests) => "the tests of the project".to_owned(),
        HookHandler::Builtin(builtin) => builtin.name().to_owned(),
    };
    let text = match (&hook.handler, &hook.options.cwd) {
        (HookHandler::Command(_), Some(cwd)) => format!("{text} (in the directory {cwd})"),
        _ => text,
    };
    hookloop_core::inbox::one_line(&text, COMMAND_MAX)
}

/// Returns the part of a run's output that the agent gets, if any.
pub fn piped(hook: &Hook, run: &HookRun) -> Option<String> {
    let is_failure = !matches!(run.outcome.status, HookStatus::Passed | HookStatus::Skipped);
    let is_piped = match hook.options.pipe_output {
        PipeOutput::Always => run.outcome.status != HookStatus::Skipped,
        PipeOutput::OnFailure => is_failure,
        PipeOutput::Never => false,
    };
    let is_plain = is_piped && !run.outcome.is_quiet;
    let reason = run.outcome.reason.as_deref().filter(|_| is_piped && is_failure);
    let parts =
        [run.outcome.context.as_deref(), reason, Some(run.printed.as_str()).filter(|_| is_plain)];
    let parts: Vec<&str> =
        parts.into_iter().flatten().map(str::trim).filter(|part| !part.is_empty()).collect();
    let rules = ExcerptRules { max: PIPED_MAX, head_parts: 2, earlier: &run.left_out };
    (!parts.is_empty()).then(|| head_and_tail(&parts.join("\n"), rules))
}

/// Longest part of one hook's output in a prompt, in bytes.
pub const PIPED_MAX: usize = 32 * 1024;
