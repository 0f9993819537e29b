//! The timeline of a session for people: its parts in order, and the steps of each part with times and results.
//!
//! The TUI, the dashboard and traces use only the timeline.

use std::collections::VecDeque;

use crate::event::EventBody;
use crate::payload::hook_run::{HookRan, ReactionFailed};
use crate::payload::piped::PipedOutput;
use crate::payload::plan::SessionPlan;
use crate::payload::session::{
    SessionOutcome, SessionReopened, SessionResumed, SessionTaskClaimed, SessionTaskReleased,
};
use crate::payload::turn::{IterationStarted, TurnEnded, TurnKind, TurnStarted};
use crate::payload::verdict::{
    DecisionMade, GatesEvaluated, Receipt, StopEvaluated, SubmissionEvaluated,
};
use crate::point::Point;
use crate::shared_budget::Shortage;
use crate::time::Timestamp;

/// Largest number of parts that are kept, the latest. A session may have any number.
pub(crate) const PARTS_MAX: usize = 1_000;
/// Largest number of steps of a part that are kept, the latest.
pub(crate) const STEPS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub plan: SessionPlan,
    pub began: Timestamp,
    pub ended: Option<Timestamp>,
    /// The outcome, known as soon as the session is about to end.
    pub outcome: Option<SessionOutcome>,
    /// The oldest first.
    pub parts: VecDeque<TimelinePart>,
    /// Number of earlier parts that were dropped.
    pub parts_dropped: usize,
}

/// A part of a session: the start, an iteration with its hooks, or the end.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelinePart {
    pub kind: PartKind,
    pub began: Timestamp,
    /// The end, or `None` while the part runs.
    pub ended: Option<Timestamp>,
    /// The oldest first.
    pub steps: VecDeque<TimelineStep>,
    pub steps_dropped: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Start,
    Iteration {
        number: u32,
        /// Whether the prompt was sent.
        has_begun: bool,
    },
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TimelineStep {
    pub began: Timestamp,
    /// The end, or `None` while the step runs.
    pub ended: Option<Timestamp>,
    pub what: StepContent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepContent {
    Hook(HookRan),
    Turn {
        kind: TurnKind,
        attempt: u32,
        /// The end of the turn, or `None` while it runs or if its process died.
        ended: Option<Box<TurnEnded>>,
    },
    Piped(PipedOutput),
    ReactionFailed(ReactionFailed),
    Decided(StopEvaluated),
    Receipt(Box<Receipt>),
    Judged(GatesEvaluated),
    SubmissionEvaluated(Box<SubmissionEvaluated>),
    Answered(DecisionMade),
    Taken(SessionTaskClaimed),
    Left(SessionTaskReleased),
    Short(Shortage),
    PauseRequested,
    StopRequested,
    Paused,
    Reopened(SessionReopened),
    Resumed(SessionResumed),
}

impl Timeline {
    /// Returns the timeline of these events, or `None` if the first one does not start a session.
    pub fn of<'e>(
        events: impl IntoIterator<Item = (Timestamp, &'e EventBody)>,
    ) -> Option<Timeline> {
        let mut events = events.into_iter();
        let Some((at, EventBody::SessionStarted(plan))) = events.next() else { return None };
        let mut timeline = Timeline::new(plan.clone(), at);
        for (at, event) in events {
            timeline.apply(at, event);
        }
        Some(timeline)
    }

    pub fn new(plan: SessionPlan, at: Timestamp) -> Timeline {
        let parts = VecDeque::from([TimelinePart::new(PartKind::Start, at)]);
        Timeline { plan, began: at, ended: None, outcome: None, parts, parts_dropped: 0 }
    }

    /// Returns the current or last part.
    pub fn current(&self) -> Option<&TimelinePart> {
        self.parts.back()
    }

    /// Returns the position of the part that hooks of a point run in now, counted from the beginning.
    pub fn part_at(&self, point: &Point) -> usize {
        let next = self.parts_dropped + self.parts.len();
        let begins = match (point, self.parts.back().map(|part| part.kind)) {
            (Point::PreIteration, Some(PartKind::Iteration { has_begun: false, .. })) => false,
            (Point::SessionEnd, Some(PartKind::End)) => false,
            (Point::PreIteration | Point::SessionEnd, _) => true,
            _ => false,
        };
        if begins { next } else { next.saturating_sub(1) }
    }

    /// Returns the positions of the part and the step of the running turn.
    pub fn open_turn(&self) -> Option<(usize, usize)> {
        let part = self.parts.back()?;
        let is_open = |step: &TimelineStep| {
            step.ended.is_none() && matches!(step.what, StepContent::Turn { .. })
        };
        let step = part.steps.iter().rposition(is_open)?;
        Some((self.parts_dropped + self.parts.len() - 1, part.steps_dropped + step))
    }

    /// Applies the next event. Events of other kinds change nothing.
    pub fn apply(&mut self, at: Timestamp, event: &EventBody) {
        match event {
            EventBody::HookRan(ran) => {
                let ended = ran.ended_at.map_or(at, |ended| ended.min(at));
                let began = before(ended, ran.duration_ms);
                self.come_to(&ran.point, began);
                self.add(TimelineStep {
                    began,
                    ended: Some(ended),
                    what: StepContent::Hook(ran.clone()),
                });
            }
            EventBody::OutputPiped(piped) => {
                self.come_to(&piped.point, at);
                self.note(at, StepContent::Piped(piped.clone()));
            }
            EventBody::ReactionFailed(failed) => {
                self.note(at, StepContent::ReactionFailed(failed.clone()));
            }
            EventBody::SessionTaskClaimed(taken) => {
                self.foresee(at);
                self.note(at, StepContent::Taken(taken.clone()));
            }
            EventBody::IterationStarted(started) => self.start_iteration(at, started),
            EventBody::TurnStarted(TurnStarted { turn, attempt, .. }) => {
                self.start_turn(at, *turn, *attempt);
            }
            EventBody::TurnEnded(ended) => self.end_turn(at, ended),
            EventBody::StopEvaluated(decided) => {
                self.note(at, StepContent::Decided(decided.clone()))
            }
            EventBody::ReceiptRecorded(receipt) => {
                self.note(at, StepContent::Receipt(Box::new(receipt.clone())))
            }
            EventBody::GatesEvaluated(judged) => self.note(at, StepContent::Judged(judged.clone())),
            EventBody::SubmissionEvaluated(judged) => {
                self.note(at, StepContent::SubmissionEvaluated(Box::new(judged.clone())));
            }
            EventBody::DecisionMade(answer) => self.note(at, StepContent::Answered(answer.clone())),
            EventBody::SessionTaskReleased(left) => self.note(at, StepContent::Left(left.clone())),
            EventBody::BudgetExhausted(shortage) => self.note(at, StepContent::Short(*shortage)),
            EventBody::PauseRequested(_) => self.note(at, StepContent::PauseRequested),
            EventBody::StopRequested(_) => self.note(at, StepContent::StopRequested),
            EventBody::SessionPaused(_) => self.note(at, StepContent::Paused),
            EventBody::SessionReopened(reopened) => {
                (self.ended, self.outcome) = (None, None);
                self.note(at, StepContent::Reopened(reopened.clone()));
            }
            EventBody::SessionResumed(resumed) => {
                self.note(at, StepContent::Resumed(resumed.clone()))
            }
            EventBody::SessionEnding(outcome) => {
                self.outcome = Some(outcome.clone());
                self.open(PartKind::End, at);
            }
            EventBody::SessionEnded(ended) => {
                self.outcome = Some(ended.outcome.clone());
                self.ended = Some(at);
                if let Some(part) = self.parts.back_mut() {
                    part.end(at);
                }
            }
            _ => {}
        }
    }

    /// Opens the part of a hook point.
    ///
    /// Steps before a prompt belong to its iteration, whose number is not known yet.
    fn come_to(&mut self, point: &str, at: Timestamp) {
        match point.parse() {
            Ok(Point::PreIteration) => self.foresee(at),
            Ok(Point::SessionEnd) => self.open(PartKind::End, at),
            _ => {}
        }
    }

    fn foresee(&mut self, at: Timestamp) {
        if let Some(PartKind::Iteration { has_begun: false, .. }) =
            self.parts.back().map(|part| part.kind)
        {
            return;
        }
        // The end of a session that was reopened may be in between.
        let last = self.parts.iter().rev().find_map(|part| match part.kind {
            PartKind::Iteration { number, .. } => Some(number),
            PartKind::Start | PartKind::End => None,
        });
        let number = last.map_or(1, |number| number + 1);
        self.open(PartKind::Iteration { number, has_begun: false }, at);
    }

    fn start_iteration(&mut self, at: Timestamp, started: &IterationStarted) {
        let begun = PartKind::Iteration { number: started.number, has_begun: true };
        match self.parts.back_mut() {
            Some(part) if matches!(part.kind, PartKind::Iteration { has_begun: false, .. }) => {
                part.kind = begun;
            }
            // The iteration is repeated because its program ended.
            Some(part) if part.kind == begun => {}
            _ => self.open(begun, at),
        }
        self.start_turn(at, TurnKind::Work, started.attempt);
    }

    fn start_turn(&mut self, at: Timestamp, kind: TurnKind, attempt: u32) {
        let what = StepContent::Turn { kind, attempt, ended: None };
        self.add(TimelineStep { began: at, ended: None, what });
    }

    fn end_turn(&mut self, at: Timestamp, turn: &TurnEnded) {
        let steps = self.parts.back_mut().into_iter().flat_map(|part| part.steps.iter_mut().rev());
        for step in steps {
            if let StepContent::Turn { ended: ended @ None, .. } = &mut step.what {
                *ended = Some(Box::new(turn.clone()));
                step.ended = Some(at);
                return;
            }
        }
        // The start of the turn was dropped.
        let what =
            StepContent::Turn { kind: turn.turn, attempt: 1, ended: Some(Box::new(turn.clone())) };
        self.add(TimelineStep { began: before(at, turn.duration_ms), ended: Some(at), what });
    }

    /// Adds a step without duration.
    fn note(&mut self, at: Timestamp, what: StepContent) {
        self.add(TimelineStep { began: at, ended: Some(at), what });
    }

    fn add(&mut self, step: TimelineStep) {
        let Some(part) = self.parts.back_mut() else { return };
        if part.steps.len() == STEPS_MAX {
            part.steps.pop_front();
            part.steps_dropped += 1;
        }
        part.steps.push_back(step);
    }

    /// Begins another part, unless it is the current one.
    fn open(&mut self, kind: PartKind, at: Timestamp) {
        match self.parts.back_mut() {
            Some(part) if part.kind == kind => return,
            Some(part) => part.end(at),
            None => {}
        }
        if self.parts.len() == PARTS_MAX {
            self.parts.pop_front();
            self.parts_dropped += 1;
        }
        self.parts.push_back(TimelinePart::new(kind, at));
    }
}

impl TimelinePart {
    fn new(kind: PartKind, at: Timestamp) -> TimelinePart {
        TimelinePart { kind, began: at, ended: None, steps: VecDeque::new(), steps_dropped: 0 }
    }

    /// Ends the part and its open steps, whose program died.
    fn end(&mut self, at: Timestamp) {
        self.ended = Some(at);
        for step in &mut self.steps {
            step.ended.get_or_insert(at);
        }
    }

    pub fn hooks(&self) -> impl Iterator<Item = &HookRan> {
        self.steps.iter().filter_map(|step| match &step.what {
            StepContent::Hook(ran) => Some(ran),
            _ => None,
        })
    }

    pub fn turns(&self) -> impl Iterator<Item = &TurnEnded> {
        self.steps.iter().filter_map(|step| match &step.what {
            StepContent::Turn { ended, .. } => ended.as_deref(),
            _ => None,
        })
    }
}

impl TimelineStep {
    /// Returns the duration, or `None` while the step runs.
    pub fn duration_ms(&self) -> Option<u64> {
        let ended = self.ended?;
        Some(u64::try_from(ended.0 - self.began.0).unwrap_or(0))
    }
}

fn before(at: Timestamp, ms: u64) -> Timestamp {
    Timestamp(at.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests;
