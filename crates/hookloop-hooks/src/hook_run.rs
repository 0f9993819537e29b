//! The result of one hook.

use std::path::Path;

use hookloop_config::clock::now;
use hookloop_core::builtin::Builtin;
use hookloop_core::environment::{CommandResult, EnvironmentFacts, EnvironmentGap, cannot_run};
use hookloop_core::event::HookRan;
use hookloop_core::excerpt::{ExcerptRules, LeftOut, head_and_tail};
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::hook_protocol::{HookOutcome, HookStatus};
use hookloop_core::options::PipeOutput;
use hookloop_core::point::Point;

use crate::environment;

/// The result of one hook.
#[derive(Clone, Debug)]
pub struct HookRun {
    pub hook: String,
    pub outcome: HookOutcome,
    /// The record for the log; `None` if the hook did not run.
    pub ran: Option<HookRan>,
    /// Standard output, as far as it is kept.
    pub stdout: String,
    pub stderr: String,
    /// The output for people and agents: both streams in the order of reading, without an answer.
    pub printed: String,
    /// The parts of `printed` that a note replaces.
    pub left_out: Vec<LeftOut>,
    /// The reason why the command could not be executed, if it could not.
    pub gap: Option<EnvironmentGap>,
}

impl HookRun {
    fn without(hook: &Hook, outcome: HookOutcome) -> HookRun {
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
        }
    }

    /// A hook that had nothing to do, and why.
    pub fn skipped(hook: &Hook, reason: String) -> HookRun {
        let outcome = HookOutcome { reason: Some(reason), ..HookOutcome::of(HookStatus::Skipped) };
        HookRun::without(hook, outcome)
    }

    /// Returns the command that lets the hook run, if it was refused because nobody trusts it as it is.
    pub fn trust_command(&self) -> Option<&'static str> {
        let was_refused = self.ran.is_none() && self.outcome.status == HookStatus::NotStarted;
        let reason = self.outcome.reason.as_deref().filter(|_| was_refused);
        reason.and_then(command_for)
    }

    /// Returns the reason of a run that blocks, then its prompt for the agent, if that says more.
    pub fn blocking_words(&self) -> Vec<&str> {
        let reason = self.outcome.reason.as_deref();
        let prompt = self.outcome.next_prompt.as_deref();
        match (reason, prompt) {
            (Some(reason), Some(prompt)) if prompt.starts_with(reason) => vec![prompt],
            (reason, prompt) => reason.into_iter().chain(prompt).collect(),
        }
    }

    /// Whether it may go better another time.
    pub fn has_failed(&self) -> bool {
        matches!(
            self.outcome.status,
            HookStatus::Failed | HookStatus::TimedOut | HookStatus::Killed
        )
    }

    /// Whether the hook could not check anything, for a reason that is not in the work: it could not start, its
    /// condition has no value, or its command can't be executed.
    pub fn is_misconfigured(&self) -> bool {
        let has_run = self.ran.as_ref().is_some_and(|ran| ran.attempts > 0);
        match self.outcome.status {
            HookStatus::NotStarted => true,
            HookStatus::Failed if !has_run => true,
            _ => self.gap.is_some(),
        }
    }

    /// Notes why the command could not be executed in `directory`, if it could not.
    pub fn with_gap(mut self, directory: &Path) -> HookRun {
        let result = CommandResult {
            exit_code: self.ran.as_ref().and_then(|ran| ran.exit_code),
            stdout: &self.stdout,
            stderr: &self.stderr,
        };
        // Most runs need no look at the project's files.
        if self.outcome.status != HookStatus::Passed
            && cannot_run(result, &EnvironmentFacts::default()).is_some()
        {
            self.gap = cannot_run(result, &environment::facts(directory));
        }
        self
    }

    /// Tells a person why the hook could not check anything, with its command and the step that prepares the
    /// environment.
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
        let setup = self.gap.as_ref().and_then(|gap| gap.setup.as_ref());
        let setup = setup.map_or(String::new(), |setup| format!("; type `{setup}`"));
        let hint = self.outcome.message.as_ref();
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        let name = &self.hook;
        format!("`{name}` can't run here, so no agent can fix it: {cause}{command}{setup}{hint}")
    }

    /// The record of a hook that was not started.
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
            output_tail: Vec::new(),
            message: None,
        }
    }

    /// A hook that was refused, and why.
    pub fn refused(hook: &Hook, point: &Point, refusal: RunRefusal) -> HookRun {
        let RunRefusal { reason, hint } = refusal;
        let mut run = HookRun::unable(hook, point, HookStatus::NotStarted, reason);
        run.outcome.message = hint;
        run
    }

    /// A hook that could not be run, and why.
    pub fn unable(hook: &Hook, point: &Point, status: HookStatus, reason: String) -> HookRun {
        let outcome = HookOutcome::unable(status, reason, point.kind(), hook.options.on_failure);
        HookRun::without(hook, outcome)
    }

    /// A hook whose condition can't be evaluated: it did not run, and the log says why.
    pub fn undecided(hook: &Hook, point: &Point, reason: String) -> HookRun {
        let run = HookRun::unable(hook, point, HookStatus::Failed, reason);
        let ran = run.unstarted_record(point);
        HookRun { ran: Some(ran), ..run }
    }
}

/// Why a hook does not run that nobody trusts as it is.
pub(crate) const NOT_TRUSTED: &str = "it is not trusted";

pub(crate) const CHANGED: &str = "it changed since it was trusted";

/// The command that changes that, for people alone.
const TRUST_COMMAND: &str = "hookloop hooks trust";

/// The command that a person types about a recorded failure, if there is one.
pub fn command_for(failure: &str) -> Option<&'static str> {
    [NOT_TRUSTED, CHANGED].contains(&failure).then_some(TRUST_COMMAND)
}

/// Why a hook does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRefusal {
    /// For everyone, the agent among them.
    pub reason: String,
    /// For the user alone: a command that only a person may type.
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

/// The longest command that a prompt names, in characters.
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

/// The most of one hook's output that a prompt contains.
pub const PIPED_MAX: usize = 32 * 1024;
