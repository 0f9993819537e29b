//! The effect of turns on the state of a session.

use std::collections::VecDeque;

use super::state::{AgentConversation, Session, SessionPhase};
use crate::payload::piped::PipedOutput;
use crate::payload::turn::{
    CompletionClaimed, IterationStarted, TurnEnded, TurnKind, TurnResult, TurnStarted,
};
use crate::usage::Usage;

/// Rate-limited turns within one iteration. The next one counts as a failed turn.
pub const RATE_LIMITED_TURNS_MAX: u32 = 20;

impl Session {
    pub(super) fn start_iteration(&mut self, started: &IterationStarted) {
        if started.attempt == 1 {
            self.bound = self.pending.drain(..count(started.items, &self.pending)).collect();
        }
        (self.iteration, self.attempt) = (started.number, started.attempt);
        self.has_worked = true;
        self.unclaimed = None;
        self.claims.clear();
        self.phase = SessionPhase::Turn(TurnKind::Work);
    }

    pub(super) fn start_turn(&mut self, started: &TurnStarted) {
        if started.attempt == 1 {
            self.bound = match started.turn {
                TurnKind::Recovery => self.take_piped_by_errors(),
                _ => self.pending.drain(..count(started.items, &self.pending)).collect(),
            };
            self.deliveries += u32::from(started.turn == TurnKind::Delivery);
        }
        self.attempt = started.attempt;
        self.phase = SessionPhase::Turn(started.turn);
    }

    pub(super) fn end_turn(&mut self, ended: &TurnEnded) {
        self.turns += 1;
        self.last_tree.clone_from(&ended.tree);
        self.usage.add(ended.usage);
        self.unpriced_turns += u32::from(ended.has_unknown_cost());
        self.remember_conversation(ended);
        self.active_ms = self.active_ms.max(ended.active_ms);
        if ended.files.is_none() || self.green.as_ref() != Some(&ended.files) {
            self.void();
        }
        self.is_unjudged |= ended.files.is_none() || self.files != ended.files;
        self.is_unchanged = self.start.as_ref().is_some_and(|start| {
            ended.files.as_ref() == Some(&start.files) && ended.head == start.head
        });
        self.files.clone_from(&ended.files);
        match &ended.result {
            TurnResult::Finished => self.bound.clear(),
            _ => self.unbind(),
        }
        match ended.turn {
            TurnKind::Work => self.end_work(ended),
            TurnKind::Recovery => {
                match &ended.result {
                    TurnResult::Failed { .. } => self.count_failure(ended),
                    TurnResult::RateLimited { until_ms, .. } => self.count_wait(*until_ms),
                    TurnResult::Finished | TurnResult::Cancelled => {}
                }
                self.phase = SessionPhase::Ready;
            }
            TurnKind::Delivery => {
                if ended.result != TurnResult::Finished {
                    let lost = self.pending.drain(..).count();
                    self.undelivered += lost;
                    self.lost_outputs += lost;
                }
                self.phase = SessionPhase::Ending;
            }
        }
    }

    /// Records a report by a tool. A report between turns has no effect.
    pub(super) fn claim(&mut self, claimed: &CompletionClaimed) {
        if self.phase == SessionPhase::Turn(TurnKind::Work) {
            self.claims.push(claimed.clone());
        }
    }

    pub(super) fn end_work(&mut self, ended: &TurnEnded) {
        let mut last = ended.clone();
        for claimed in &self.claims {
            if !last.promises.contains(&claimed.claim) {
                last.promises.push(claimed.claim);
            }
        }
        self.last = Some(last);
        self.phase = match &ended.result {
            TurnResult::Finished => {
                (self.errors, self.waits) = (0, 0);
                self.progress.files(ended.files.as_deref());
                SessionPhase::After
            }
            TurnResult::Failed { error } => {
                self.count_failure(ended);
                SessionPhase::Failed { error: error.clone() }
            }
            TurnResult::RateLimited { error, .. } if self.waits >= RATE_LIMITED_TURNS_MAX => {
                self.count_error();
                SessionPhase::Failed { error: error.clone() }
            }
            TurnResult::RateLimited { until_ms, .. } => {
                self.count_wait(*until_ms);
                SessionPhase::Ready
            }
            TurnResult::Cancelled => SessionPhase::Ready,
        };
    }

    /// Counts a failed turn. A fault of the agent is not tried again: the next agent takes over at once, and without
    /// one the session ends.
    pub(super) fn count_failure(&mut self, ended: &TurnEnded) {
        let Some(fault) = &ended.fault else { return self.count_error() };
        let agent = if ended.agent.is_empty() { self.agent() } else { &ended.agent };
        let why = ended.failure_line().unwrap_or_default();
        let reason = format!("{}: {why}. {}", fault.cause.about(agent), fault.remedy);
        (self.waits, self.errors) = (0, self.errors + 1);
        if self.has_next_agent() {
            self.fall_back();
        } else {
            self.fault = Some(reason);
        }
    }

    /// Counts an error. After too many, the next agent takes over with a new conversation.
    pub(super) fn count_error(&mut self) {
        (self.waits, self.errors) = (0, self.errors + 1);
        // The fallback has to come before the session's limit.
        let limit = self.plan.limits.max_errors;
        let is_due = |after: u32| self.errors >= after.min(limit);
        let is_due = self.plan.fallback.as_ref().is_some_and(|others| is_due(others.after));
        if is_due && self.has_next_agent() {
            self.fall_back();
        }
    }

    pub(super) fn has_next_agent(&self) -> bool {
        self.plan.fallback.as_ref().is_some_and(|others| self.fallen_back < others.agents.len())
    }

    pub(super) fn fall_back(&mut self) {
        (self.fallen_back, self.errors, self.conversation) = (self.fallen_back + 1, 0, None);
    }

    pub(super) fn count_wait(&mut self, until_ms: Option<u64>) {
        (self.waits, self.wait_until_ms) = (self.waits + 1, until_ms);
    }

    /// Remembers the conversation. Repeated failures end it, because it may be their cause.
    pub(super) fn remember_conversation(&mut self, ended: &TurnEnded) {
        let is_failing = matches!(ended.result, TurnResult::Failed { .. }) && self.errors > 0;
        if is_failing {
            self.conversation = None;
        } else if let Some(id) = &ended.conversation {
            let known = self.conversation.take().filter(|known| known.id == *id);
            let mut usage = known.map_or_else(Usage::default, |known| known.usage);
            usage.add(ended.usage);
            self.conversation = Some(AgentConversation { id: id.clone(), usage });
        }
    }
}

fn count(items: u32, pending: &VecDeque<PipedOutput>) -> usize {
    (items as usize).min(pending.len())
}
