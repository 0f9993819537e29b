//! The effect of verdicts on the state of a session: stop conditions, gates, submissions, and answers of people.

use super::state::{Session, SessionPhase};
use super::stop::NO_CHANGES;
use crate::excerpt::first_names;
use crate::payload::session::{SessionOutcome, TaskExit};
use crate::payload::verdict::{
    GatesEvaluated, JointVerdict, LimitDecision, Receipt, StopDecision, StopEvaluated,
    SubmissionEvaluated, SubmitVerdict,
};
use crate::quantity::counted;

/// The most checks that a reason names.
const NAMED_MAX: usize = 4;

/// The most retries of a submission. After them the task is returned.
pub(crate) const SUBMIT_TRIES_MAX: u32 = 10;

impl Session {
    /// Voids the verdict of the gates after a change, also if the change is reverted.
    pub(super) fn void(&mut self) {
        (self.is_stale, self.green) = (true, None);
        self.is_proof = false;
        self.is_submission_proof = false;
        self.receipts.clear();
    }

    /// Returns the phase in which the task, or the session without one, needs a person.
    pub(super) fn in_need(&mut self, reason: String) -> SessionPhase {
        match self.task {
            Some(_) => SessionPhase::TaskOver { how: TaskExit::Blocked, reason: Some(reason) },
            None => {
                self.outcome = Some(SessionOutcome::NeedsHuman { reason });
                SessionPhase::Ending
            }
        }
    }

    pub(super) fn decide(&mut self, decided: &StopEvaluated) {
        self.decided = Some(decided.clone());
        // Gates judge a claim, so passing rules do not set the mark for them.
        let failing =
            decided.failing.as_deref().filter(|_| decided.decision == StopDecision::Continue);
        let is_better = self.note_failing(failing);
        self.phase = match decided.decision {
            StopDecision::Complete => return self.phase = SessionPhase::Gating,
            StopDecision::Continue => SessionPhase::Ready,
            StopDecision::Escalate => self.in_need(decided.reason.clone()),
        };
        self.progress.judge(is_better);
    }

    /// Records the failing checks. Returns whether fewer fail than ever.
    pub(super) fn note_failing(&mut self, failing: Option<&[String]>) -> bool {
        let Some(failing) = failing else { return false };
        self.failing = Some(failing.iter().cloned().collect());
        self.progress.failing(failing.len())
    }

    /// Keeps a receipt. Only the last receipt of a gate counts.
    pub(super) fn keep(&mut self, receipt: Receipt) {
        let is_other =
            |known: &Receipt| (&known.gate, &known.point) != (&receipt.gate, &receipt.point);
        self.receipts.retain(is_other);
        let tests = receipt.base_tests.as_ref();
        self.was_told_of_tests |= tests.is_some_and(|tests| tests.blocking().next().is_some());
        self.receipts.push(receipt);
    }

    pub(super) fn judge(&mut self, judged: &GatesEvaluated) {
        self.is_stale = judged.verdict != JointVerdict::Pass;
        self.is_proof = judged.is_proof();
        self.judged = Some(judged.clone());
        self.is_unjudged = false;
        if let Some(files) = &judged.files {
            self.files = Some(files.clone());
            // Files that gates write are no progress of the agent's next turn.
            self.progress.begin(files);
        }
        let is_better = self.note_failing(Some(&judged.failing));
        // A session that has reached its limit has its last turn judged only for the record.
        if matches!(self.outcome, Some(SessionOutcome::Limit { .. })) {
            self.withhold_pending();
            self.phase = SessionPhase::Ending;
            return;
        }
        match &judged.verdict {
            JointVerdict::Pass => {
                self.green = Some(judged.files.clone());
                self.gated_tree.clone_from(&judged.tree);
                self.retries = 0;
                self.phase = match (&self.outcome, &self.task) {
                    // Final delivery changed files, and the gates still pass.
                    (Some(_), _) => SessionPhase::Ending,
                    (None, Some(_)) if self.plan.delivers => SessionPhase::Submitting,
                    (None, Some(_)) => self.complete_task(None),
                    (None, None) => {
                        self.outcome = Some(SessionOutcome::Complete { unproven: false });
                        SessionPhase::Ending
                    }
                };
            }
            JointVerdict::Block => {
                self.outcome = None;
                self.was_sent_back = true;
                self.retries = if is_better { 1 } else { self.retries + 1 };
                self.phase = match self.retries > self.plan.limits.gate_retries {
                    true => SessionPhase::AtRetryLimit,
                    false => SessionPhase::Ready,
                };
                self.progress.judge(is_better);
            }
            JointVerdict::Escalate { reason } => {
                self.outcome = None;
                self.phase = self.in_need(reason.clone());
            }
        }
    }

    /// Completes the current task, which releases the tasks that depend on it.
    ///
    /// Without proof a person has to decide, unless the user wants no gates.
    pub(super) fn complete_task(&self, reason: Option<String>) -> SessionPhase {
        if self.has_proven_task() || self.is_accepted || self.plan.wants_no_gates {
            return SessionPhase::TaskOver { how: TaskExit::Completed, reason };
        }
        let id = self.task.as_ref().map(|taken| taken.task.to_string()).unwrap_or_default();
        let (result, other) = match &self.judged {
            Some(judged) if judged.gates > 0 => {
                (format!(" ({judged})"), "let one of its gates run and pass")
            }
            _ => (String::new(), "add a `stop` hook to hookloop.yaml"),
        };
        let reason = format!(
            "completed without proof: no gate passed{result}. Accept it with `hookloop task unblock {id} && \
             hookloop task complete {id}`, or {other}"
        );
        SessionPhase::TaskOver { how: TaskExit::Blocked, reason: Some(reason) }
    }

    /// Asks the agent once about a claim without changes, then a person.
    pub(super) fn find_no_changes(&mut self, was_asked: bool) {
        self.outcome = None;
        self.phase = if was_asked {
            let since =
                if self.task.is_some() { "the task was taken" } else { "the session began" };
            self.in_need(format!(
                "{NO_CHANGES}the agent reported COMPLETE again, and no file changed since {since}"
            ))
        } else {
            self.was_asked_for_changes = true;
            SessionPhase::Ready
        };
    }

    pub(super) fn judge_submission(&mut self, judged: &SubmissionEvaluated) {
        self.phase = match &judged.verdict {
            SubmitVerdict::Pass { submission } => {
                self.is_submission_proof = !judged.passed.is_empty();
                self.submission.clone_from(submission);
                match submission {
                    Some(_) => SessionPhase::TaskOver { how: TaskExit::Submitted, reason: None },
                    None => self.complete_task(Some("there is nothing to submit".to_owned())),
                }
            }
            SubmitVerdict::Block => {
                self.submit_failure.clone_from(&judged.failure);
                self.send_back(judged)
            }
            SubmitVerdict::Regate => {
                self.regates += 1;
                self.void();
                SessionPhase::Gating
            }
            SubmitVerdict::Retry { .. } if self.submit_tries < SUBMIT_TRIES_MAX => {
                self.submit_tries += 1;
                SessionPhase::Submitting
            }
            SubmitVerdict::Retry { reason } => {
                SessionPhase::TaskOver { how: TaskExit::Returned, reason: Some(reason.clone()) }
            }
            SubmitVerdict::Escalate { reason } => self.in_need(reason.clone()),
        };
    }

    /// Sends the agent back to fix the problem, up to the limit of remediations.
    pub(super) fn send_back(&mut self, judged: &SubmissionEvaluated) -> SessionPhase {
        self.was_sent_back = true;
        if self.remediations >= self.plan.limits.max_remediations {
            let turns = self.remediations;
            let turns = counted(turns, "remediation turn", "remediation turns");
            return self.in_need(match (&judged.obstacle, &judged.hook) {
                (Some(obstacle), _) => {
                    format!("the work is not submitted after {turns}: {obstacle}")
                }
                (None, Some(hook)) => format!("`{hook}` still fails after {turns}"),
                (None, None) => format!("the work can't be submitted after {turns}"),
            });
        }
        self.remediations += 1;
        SessionPhase::Ready
    }

    pub(super) fn answer(&mut self, answer: LimitDecision) {
        // Of two concurrent decisions, the first one wins.
        if self.phase != SessionPhase::AtRetryLimit {
            return;
        }
        // No turn follows that could use the feedback of gates, unless a person continues the work.
        match answer {
            LimitDecision::Continue => {}
            LimitDecision::Accept => drop(self.take_pending()),
            LimitDecision::Abort => self.withhold_pending(),
        }
        self.is_accepted = answer == LimitDecision::Accept;
        self.phase = match answer {
            LimitDecision::Continue => {
                self.retries = 0;
                self.progress.forgive();
                SessionPhase::Ready
            }
            LimitDecision::Accept if self.task.is_some() && self.plan.delivers => {
                self.has_accepted = true;
                // Accepted work has no verified state.
                (self.green, self.gated_tree) = (None, None);
                SessionPhase::Submitting
            }
            LimitDecision::Accept if self.task.is_some() => {
                self.has_accepted = true;
                let reason = Some("accepted as it is: its gates do not pass".to_owned());
                SessionPhase::TaskOver { how: TaskExit::Completed, reason }
            }
            LimitDecision::Accept => {
                self.outcome = Some(SessionOutcome::Complete { unproven: true });
                SessionPhase::Ending
            }
            LimitDecision::Abort => {
                let retries = counted(self.plan.limits.gate_retries, "retry", "retries");
                let failing: Vec<String> = self.failing.iter().flatten().cloned().collect();
                let failing = named(&failing);
                self.in_need(format!("gates still fail after {retries}{failing}"))
            }
        };
    }
}

/// Returns the first of these checks after a colon, or an empty text without checks.
fn named(failing: &[String]) -> String {
    match failing.is_empty() {
        true => String::new(),
        false => format!(": {}", first_names(failing, NAMED_MAX)),
    }
}
