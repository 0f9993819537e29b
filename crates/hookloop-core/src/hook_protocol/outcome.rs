//! The outcome of one run of a hook.

use serde_json::Value;

use super::process::CapturedOutput;
use crate::action::Action;
use crate::hook_status::HookStatus;
use crate::options::{AllowedAnswers, OnFailure};
use crate::point::PointKind;

const NOT_PASSED: &str = "a gate that does not pass acts on nothing";

/// The verdict of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookVerdict {
    Pass,
    Block {
        feedback: String,
    },
    /// A person is needed, regardless of other gates.
    Escalate {
        reason: String,
    },
}

/// The outcome of a run, for every kind of handler.
#[derive(Clone, Debug, PartialEq)]
pub struct HookOutcome {
    pub status: HookStatus,
    pub verdict: HookVerdict,
    /// The reason of a status other than passed, in a line.
    pub reason: Option<String>,
    /// A message for the user.
    pub message: Option<String>,
    /// Text for the agent, like piped output.
    pub context: Option<String>,
    pub next_prompt: Option<String>,
    pub actions: Vec<Action>,
    /// Values for later steps, such as `pr_url`.
    pub values: Value,
    pub checkpoint: Option<Value>,
    /// The plain output is not part of the transcript.
    pub is_quiet: bool,
    /// The names of ignored parts of the answer. `message` reports them to the user.
    pub ignored: Vec<&'static str>,
}

/// The rules for reading a hook's output, by its point and its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerRules {
    pub kind: PointKind,
    pub on_failure: OnFailure,
    pub answers: AllowedAnswers,
}

impl HookOutcome {
    pub fn of(status: HookStatus) -> HookOutcome {
        HookOutcome {
            status,
            verdict: HookVerdict::Pass,
            reason: None,
            message: None,
            context: None,
            next_prompt: None,
            actions: Vec::new(),
            values: Value::Null,
            checkpoint: None,
            is_quiet: false,
            ignored: Vec::new(),
        }
    }

    /// Removes actions and values of a gate that did not pass. The next prompt and the checkpoint stay, because
    /// both are for the agent.
    pub(super) fn without_unproven_acts(mut self, kind: PointKind) -> HookOutcome {
        if kind == PointKind::Reaction
            || matches!(self.status, HookStatus::Passed | HookStatus::Skipped)
        {
            return self;
        }
        let mut ignored = Vec::new();
        if !std::mem::take(&mut self.actions).is_empty() {
            ignored.push("actions");
        }
        if !std::mem::take(&mut self.values).is_null() {
            ignored.push("context");
        }
        self.reporting(ignored, NOT_PASSED)
    }

    /// Reports the ignored parts of the answer to the user.
    pub(super) fn reporting(mut self, ignored: Vec<&'static str>, why: &str) -> HookOutcome {
        if ignored.is_empty() {
            return self;
        }
        let names: Vec<String> = ignored.iter().map(|name| format!("`{name}`")).collect();
        let report = format!("it printed JSON that acts ({}); {why}", names.join(", "));
        self.message = Some(match self.message {
            Some(message) => format!("{message}\n{report}"),
            None => report,
        });
        self.ignored = ignored;
        self
    }

    /// Whether the hook failed without blocking: a reaction, or a gate with `on_failure: open`.
    pub fn has_failed_openly(&self) -> bool {
        let is_failure = matches!(
            self.status,
            HookStatus::Failed | HookStatus::TimedOut | HookStatus::Killed | HookStatus::NotStarted
        );
        is_failure && self.verdict == HookVerdict::Pass
    }

    /// Returns the outcome of a hook without a result. A closed gate blocks.
    pub fn unable(
        status: HookStatus,
        reason: String,
        kind: PointKind,
        on_failure: OnFailure,
    ) -> HookOutcome {
        let outcome = HookOutcome { reason: Some(reason), ..HookOutcome::of(status) };
        outcome.judged(kind, on_failure, CapturedOutput::default())
    }

    /// Applies the meaning of the status at a point of this kind.
    pub(super) fn judged(
        mut self,
        kind: PointKind,
        on_failure: OnFailure,
        printed: CapturedOutput<'_>,
    ) -> HookOutcome {
        if kind == PointKind::Reaction {
            // A reaction blocks nothing, because the event has happened. It can still request a
            // person.
            if self.status == HookStatus::Blocked {
                self.status = HookStatus::Failed;
            }
            if let HookVerdict::Block { .. } = self.verdict {
                self.verdict = HookVerdict::Pass;
            }
            return self;
        }
        let is_failure =
            !matches!(self.status, HookStatus::Passed | HookStatus::Blocked | HookStatus::Skipped);
        if is_failure && on_failure == OnFailure::Closed && self.verdict == HookVerdict::Pass {
            let reason = self.reason.clone().unwrap_or_default();
            let parts = [reason.as_str(), printed.stderr.trim(), printed.stdout.trim()];
            let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            self.verdict = HookVerdict::Block { feedback: said.join("\n\n") };
        }
        self
    }
}
