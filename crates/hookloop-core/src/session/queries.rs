//! Questions about the state of a session.

use super::state::{AgentConversation, Session, SessionPhase};
use crate::id::TaskId;
use crate::payload::piped::PipedOutput;
use crate::payload::plan::ConversationMode;
use crate::payload::session::{SessionOutcome, WorktreeSnapshotted};
use crate::payload::session_limits::SessionLimit;
use crate::payload::turn::TurnKind;
use crate::payload::verdict::{StopDecision, StopEvaluated};
use crate::point::Point;
use crate::quantity::{CompactCount, CostFigure, Dollars, Length, counted};
use crate::shared_budget::Amount;

impl Session {
    /// Whether the session is about to complete without a pass of the gates on the current files. Tasks were
    /// proven one by one, so only final delivery can change files after them.
    pub fn is_unproven(&self) -> bool {
        let has_changed = !self.plan.work.is_of_tasks() || self.deliveries > 0;
        self.outcome == Some(SessionOutcome::Complete { unproven: false })
            && self.is_stale
            && has_changed
    }

    /// Whether the session is complete and proven: gates passed on the current files.
    ///
    /// It is not proven if a person accepted work without passing gates. With tasks, this holds for
    /// each task.
    pub fn is_proven(&self) -> bool {
        let is_green = self.is_proof && !self.is_stale;
        if self.outcome != (Some(SessionOutcome::Complete { unproven: false })) {
            false
        } else if self.plan.work.is_of_tasks() {
            let has_done = !self.tasks_completed.is_empty() || !self.tasks_submitted.is_empty();
            has_done
                && self.tasks_unproven.is_empty()
                && self.tasks_lost.is_empty()
                && (self.deliveries == 0 || is_green)
        } else {
            is_green
        }
    }

    /// Whether the last verdict came from at least one gate.
    pub fn has_gates(&self) -> bool {
        self.judged.as_ref().is_some_and(|judged| judged.gates > 0)
    }

    /// Whether the final turn of a session that reached its limit changed files that no gate has seen.
    pub fn has_unjudged_end(&self) -> bool {
        let is_at_limit = matches!(self.outcome, Some(SessionOutcome::Limit { .. }));
        is_at_limit && self.deliveries > 0 && self.is_unjudged
    }

    /// Whether gates have proven the work on the current task.
    pub fn has_proven_task(&self) -> bool {
        !self.is_accepted && (self.is_proof && !self.is_stale || self.is_submission_proof)
    }

    /// Whether the agent's last turn ended without a claim, so that no gate has judged the files.
    pub fn is_unclaimed(&self) -> bool {
        let goes_on = |decided: &StopEvaluated| decided.decision == StopDecision::Continue;
        self.decided.as_ref().is_some_and(goes_on) && !self.plan.is_external()
    }

    /// Whether the session was over before it did anything.
    pub fn had_nothing_to_do(&self) -> bool {
        self.turns == 0 && self.iteration == 0 && self.tasks_lost.is_empty()
    }

    pub fn is_over(&self) -> bool {
        self.phase == SessionPhase::Ended
    }

    /// Returns the cost of the session's turns.
    pub fn cost(&self) -> CostFigure {
        let unpriced_turns = u64::from(self.unpriced_turns);
        CostFigure { micros: self.usage.cost_micros, unpriced_turns }
    }

    /// Returns the amount that the session's own limits still allow.
    pub fn left(&self) -> Amount {
        let limits = &self.plan.limits;
        let all = Amount {
            cost_micros: limits.max_cost_micros,
            tokens: limits.max_tokens,
            turns: u64::MAX,
        };
        all.minus(self.usage.into())
    }

    /// Returns the sentence for a reached limit: "its limit of 5 iterations was reached".
    pub fn limit_reached(&self, limit: SessionLimit) -> String {
        let limits = &self.plan.limits;
        match limit {
            SessionLimit::Iterations => {
                let most = counted(limits.max_iterations, "iteration", "iterations");
                format!("its limit of {most} was reached")
            }
            SessionLimit::Duration => {
                format!("its time limit of {} was reached", Length { ms: limits.max_duration_ms })
            }
            SessionLimit::Errors => {
                let most = counted(limits.max_errors, "failed turn", "failed turns");
                format!("its limit of {most} in a row was reached")
            }
            SessionLimit::Tokens => format!(
                "its token limit was reached: {} of {}",
                CompactCount(self.usage.tokens()),
                CompactCount(limits.max_tokens)
            ),
            SessionLimit::Cost if self.usage.cost_micros < limits.max_cost_micros => format!(
                "its cost limit was reached: the cost of {} is unknown",
                counted(self.unpriced_turns, "turn", "turns")
            ),
            SessionLimit::Cost => format!(
                "its cost limit was reached: {} of {}",
                Dollars(self.usage.cost_micros),
                Dollars(limits.max_cost_micros)
            ),
            SessionLimit::Budget => {
                "the budget of all sessions does not allow another turn".to_owned()
            }
        }
    }

    /// Returns the agent of the next turn.
    pub fn agent(&self) -> &str {
        let fallback = self.plan.fallback.as_ref();
        let next = |place: usize| fallback.and_then(|fallback| fallback.agents.get(place));
        let instead = self.fallen_back.checked_sub(1).and_then(next);
        instead.unwrap_or(&self.plan.agent)
    }

    /// Returns the conversation that a turn continues.
    ///
    /// Hook output about a turn goes to the conversation of that turn.
    pub fn conversation(&self, kind: TurnKind) -> Option<&AgentConversation> {
        let goes_on = match kind {
            // Problems of a submission go to the conversation that produced it.
            TurnKind::Work => {
                self.plan.conversation == ConversationMode::Continue
                    || self.remediations > 0
                    || self.answers_feedback()
            }
            TurnKind::Recovery | TurnKind::Delivery => true,
        };
        self.conversation.as_ref().filter(|_| goes_on)
    }

    /// Whether the turn answers a `stop` gate's feedback, and continues the conversation only for that.
    ///
    /// After a failed turn the feedback begins a new conversation: the old one may be the cause.
    pub fn answers_feedback(&self) -> bool {
        let is_of_gate = |piped: &PipedOutput| matches!(piped.point.parse(), Ok(Point::Stop));
        let is_for_feedback =
            self.plan.conversation == ConversationMode::Fresh && self.remediations == 0;
        self.plan.keeps_feedback
            && is_for_feedback
            && self.errors == 0
            && self.bound.iter().any(is_of_gate)
    }

    /// Returns the number of the next iteration. A rate-limited iteration is not counted.
    pub fn next_iteration(&self) -> u32 {
        if self.waits > 0 { self.iteration } else { self.iteration + 1 }
    }

    /// Whether a snapshot after hooks differs from the known files.
    pub fn is_news(&self, seen: &WorktreeSnapshotted) -> bool {
        let is_start =
            |start: &WorktreeSnapshotted| (&start.files, &start.head) == (&seen.files, &seen.head);
        let moves_start = self.is_unchanged && !self.start.as_ref().is_some_and(is_start);
        self.files.as_ref() != Some(&seen.files) || moves_start
    }

    /// Returns the outputs about a task that wait until a session continues the task.
    pub fn withheld_for(&self, task: &TaskId) -> impl Iterator<Item = &PipedOutput> {
        let own = self.withheld.iter().filter(move |output| output.task.as_ref() == Some(task));
        own.map(|output| &output.piped)
    }

    /// Whether output of on_error waits for the agent.
    pub(super) fn has_word_of_error(&self) -> bool {
        self.pending.iter().any(Session::is_of_error)
    }

    pub(super) fn is_of_error(piped: &PipedOutput) -> bool {
        piped.point == Point::OnError.name()
    }
}
