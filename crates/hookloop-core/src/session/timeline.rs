//! The timeline of a session for people: its parts in order, and the steps of each part with times and results.
//!
//! The TUI, the dashboard and traces use only the timeline.

use std::collections::VecDeque;

use crate::event::EventBody;
use crate::payload::hook_run::{HookRan, ReactionFailed};
use crate::payload::piped::Piped;
use crate::payload::plan::Plan;
use crate::payload::session::{Outcome, SessionReopened, SessionResumed, TaskLeft, TaskTaken};
use crate::payload::turn::{IterationStarted, TurnEnded, TurnKind, TurnStarted};
use crate::payload::verdict::{
    GatesJudged, Receipt, RetryLimitAnswered, StopDecided, SubmitJudged,
};
use crate::point::Point;
use crate::purse::Shortage;
use crate::time::Timestamp;

/// Parts that are kept, the latest; a session may have any number.
pub const PARTS_MAX: usize = 1_000;
/// Steps of a part that are kept, the latest.
pub const STEPS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub plan: Plan,
    pub began: Timestamp,
    pub ended: Option<Timestamp>,
    /// The outcome, known as soon as the session is about to end.
    pub outcome: Option<Outcome>,
    /// The oldest first.
    pub parts: VecDeque<Part>,
    /// Parts before those.
    pub parts_dropped: usize,
}

/// A part of a session: the start, an iteration with its hooks, or the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub kind: PartKind,
    pub began: Timestamp,
    /// The end; none while the part or step runs.
    pub ended: Option<Timestamp>,
    /// The oldest first.
    pub steps: VecDeque<Step>,
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
pub struct Step {
    pub began: Timestamp,
    /// None while it is under way.
    pub ended: Option<Timestamp>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Hook(HookRan),
    Turn {
        kind: TurnKind,
        attempt: u32,
        /// The end of the turn; none while it runs, or if its program died.
        ended: Option<Box<TurnEnded>>,
    },
    Piped(Piped),
    ReactionFailed(ReactionFailed),
    Decided(StopDecided),
    Receipt(Receipt),
    Judged(GatesJudged),
    SubmitJudged(Box<SubmitJudged>),
    Answered(RetryLimitAnswered),
    Taken(TaskTaken),
    Left(TaskLeft),
    Short(Shortage),
    PauseRequested,
    StopRequested,
    Paused,
    Reopened(SessionReopened),
    Resumed(SessionResumed),
}

impl Timeline {
    /// Returns the timeline of these events; none if the first one does not start a session.
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

    pub fn new(plan: Plan, at: Timestamp) -> Timeline {
        let parts = VecDeque::from([Part::new(PartKind::Start, at)]);
        Timeline { plan, began: at, ended: None, outcome: None, parts, parts_dropped: 0 }
    }

    /// The current or last part.
    pub fn current(&self) -> Option<&Part> {
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
        let is_open = |step: &Step| step.ended.is_none() && matches!(step.what, What::Turn { .. });
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
                self.add(Step { began, ended: Some(ended), what: What::Hook(ran.clone()) });
            }
            EventBody::OutputPiped(piped) => {
                self.come_to(&piped.point, at);
                self.note(at, What::Piped(piped.clone()));
            }
            EventBody::ReactionFailed(failed) => {
                self.note(at, What::ReactionFailed(failed.clone()));
            }
            EventBody::TaskTaken(taken) => {
                self.foresee(at);
                self.note(at, What::Taken(taken.clone()));
            }
            EventBody::IterationStarted(started) => self.start_iteration(at, started),
            EventBody::TurnStarted(TurnStarted { turn, attempt, .. }) => {
                self.start_turn(at, *turn, *attempt);
            }
            EventBody::TurnEnded(ended) => self.end_turn(at, ended),
            EventBody::StopDecided(decided) => self.note(at, What::Decided(decided.clone())),
            EventBody::ReceiptMade(receipt) => self.note(at, What::Receipt(receipt.clone())),
            EventBody::GatesJudged(judged) => self.note(at, What::Judged(judged.clone())),
            EventBody::SubmitJudged(judged) => {
                self.note(at, What::SubmitJudged(Box::new(judged.clone())));
            }
            EventBody::RetryLimitAnswered(answer) => self.note(at, What::Answered(answer.clone())),
            EventBody::TaskLeft(left) => self.note(at, What::Left(left.clone())),
            EventBody::PurseExhausted(shortage) => self.note(at, What::Short(*shortage)),
            EventBody::PauseRequested(_) => self.note(at, What::PauseRequested),
            EventBody::StopRequested(_) => self.note(at, What::StopRequested),
            EventBody::SessionPaused(_) => self.note(at, What::Paused),
            EventBody::SessionReopened(reopened) => {
                (self.ended, self.outcome) = (None, None);
                self.note(at, What::Reopened(reopened.clone()));
            }
            EventBody::SessionResumed(resumed) => self.note(at, What::Resumed(resumed.clone())),
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
            // Once more, because its program ended.
            Some(part) if part.kind == begun => {}
            _ => self.open(begun, at),
        }
        self.start_turn(at, TurnKind::Work, started.attempt);
    }

    fn start_turn(&mut self, at: Timestamp, kind: TurnKind, attempt: u32) {
        let what = What::Turn { kind, attempt, ended: None };
        self.add(Step { began: at, ended: None, what });
    }

    fn end_turn(&mut self, at: Timestamp, turn: &TurnEnded) {
        let steps = self.parts.back_mut().into_iter().flat_map(|part| part.steps.iter_mut().rev());
        for step in steps {
            if let What::Turn { ended: ended @ None, .. } = &mut step.what {
                *ended = Some(Box::new(turn.clone()));
                step.ended = Some(at);
                return;
            }
        }
        // The start of the turn was dropped.
        let what = What::Turn { kind: turn.turn, attempt: 1, ended: Some(Box::new(turn.clone())) };
        self.add(Step { began: before(at, turn.duration_ms), ended: Some(at), what });
    }

    /// Adds a step without duration.
    fn note(&mut self, at: Timestamp, what: What) {
        self.add(Step { began: at, ended: Some(at), what });
    }

    fn add(&mut self, step: Step) {
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
        self.parts.push_back(Part::new(kind, at));
    }
}

impl Part {
    fn new(kind: PartKind, at: Timestamp) -> Part {
        Part { kind, began: at, ended: None, steps: VecDeque::new(), steps_dropped: 0 }
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
            What::Hook(ran) => Some(ran),
            _ => None,
        })
    }

    pub fn turns(&self) -> impl Iterator<Item = &TurnEnded> {
        self.steps.iter().filter_map(|step| match &step.what {
            What::Turn { ended, .. } => ended.as_deref(),
            _ => None,
        })
    }
}

impl Step {
    /// The duration; none while the step runs.
    pub fn duration_ms(&self) -> Option<u64> {
        let ended = self.ended?;
        Some(u64::try_from(ended.0 - self.began.0).unwrap_or(0))
    }
}

fn before(at: Timestamp, ms: u64) -> Timestamp {
    Timestamp(at.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The parts and steps that these events make, as text; one millisecond between two events.
    fn check(events: &[(&str, Value)], expected: &[&str]) {
        let timeline = timeline(events);
        let mut lines = Vec::new();
        for part in &timeline.parts {
            let end = part.ended.map_or("…".to_owned(), |ended| ended.0.to_string());
            lines.push(format!("{} {}-{end}", name(part.kind), part.began.0));
            for step in &part.steps {
                let end = step.ended.map_or("…".to_owned(), |ended| ended.0.to_string());
                lines.push(format!("  {} {}-{end}", step_name(&step.what), step.began.0));
            }
        }
        assert_eq!(lines, expected);
    }

    fn timeline(events: &[(&str, Value)]) -> Timeline {
        let started = json!({"name": "s", "work": {"prompt": "p"}, "agent": "a", "stopWhen": ["default"],
            "atRetryLimit": "needs_human", "limits": {"iterations": 1, "durationMs": 1, "turnMs": 1, "errors": 1,
            "hookRetries": 1, "noProgress": 1, "tokens": 1, "costMicros": 1}, "hooks": "h", "fence": "f", "machine": "m"});
        let all = std::iter::once(("session_started", started)).chain(events.iter().cloned());
        let bodies: Vec<EventBody> = all
            .map(|(kind, data)| EventBody::decode(kind, 1, &data.to_string()).unwrap())
            .collect();
        let at = |place: usize| Timestamp(i64::try_from(place).unwrap());
        Timeline::of(bodies.iter().enumerate().map(|(place, body)| (at(place), body))).unwrap()
    }

    fn name(kind: PartKind) -> String {
        match kind {
            PartKind::Start => "start".to_owned(),
            PartKind::Iteration { number, has_begun: true } => format!("iteration {number}"),
            PartKind::Iteration { number, has_begun: false } => format!("before {number}"),
            PartKind::End => "end".to_owned(),
        }
    }

    fn step_name(what: &What) -> String {
        match what {
            What::Hook(ran) => format!("{} {}", ran.point, ran.hook_name),
            What::Turn { kind, attempt, ended } => {
                let how = if ended.is_some() { "ended" } else { "open" };
                format!("{kind:?} {attempt} {how}")
            }
            What::Piped(piped) => format!("piped by {}", piped.from),
            What::Judged(judged) => format!("{:?}", judged.verdict),
            What::Taken(taken) => format!("took {}", taken.task),
            other => format!("{other:?}"),
        }
    }

    fn hook(point: &str, name: &str, duration_ms: u64) -> (&'static str, Value) {
        let ran = json!({"hookName": name, "point": point, "status": "passed", "durationMs": duration_ms,
            "attempts": 1, "stdoutBytes": 0, "stderrBytes": 0});
        ("hook_ran", ran)
    }

    fn iteration(number: u32, attempt: u32) -> (&'static str, Value) {
        ("iteration_started", json!({"number": number, "attempt": attempt, "items": 0}))
    }

    fn turn_ended(turn: &str) -> (&'static str, Value) {
        let ended = json!({"turn": turn, "result": "finished", "durationMs": 1, "activeMs": 1});
        ("turn_ended", ended)
    }

    fn passes() -> (&'static str, Value) {
        ("gates_judged", json!({"verdict": "pass", "gates": 1, "failing": []}))
    }

    fn ending() -> (&'static str, Value) {
        ("session_ending", json!({"outcome": "complete"}))
    }

    fn ended() -> (&'static str, Value) {
        ("session_ended", json!({"outcome": "complete"}))
    }

    #[test]
    fn what_is_before_a_prompt_belongs_to_its_iteration() {
        check(
            &[
                hook("session_start", "hello", 1),
                hook("pre_iteration", "pre", 0),
                iteration(1, 1),
                turn_ended("work"),
                hook("stop", "tests", 2),
                passes(),
                hook("session_end", "bye", 1),
                ended(),
            ],
            &[
                "start 0-2",
                "  session_start hello 0-1",
                "iteration 1 2-6",
                "  pre_iteration pre 2-2",
                "  Work 1 ended 3-4",
                "  stop tests 3-5",
                "  Pass 6-6",
                "end 6-8",
                "  session_end bye 6-7",
            ],
        );
    }

    #[test]
    fn a_task_begins_a_part_with_all_that_is_done_for_it() {
        check(
            &[
                ("task_taken", json!({"task": "t", "epoch": 1})),
                hook("session_start", "set-up", 0),
                hook("pre_iteration", "pre", 0),
                iteration(1, 1),
            ],
            &[
                "start 0-1",
                "iteration 1 1-…",
                "  took t 1-1",
                "  session_start set-up 2-2",
                "  pre_iteration pre 3-3",
                "  Work 1 open 4-…",
            ],
        );
    }

    #[test]
    fn an_iteration_that_is_tried_again_is_one() {
        check(
            &[iteration(1, 1), iteration(1, 2), turn_ended("work"), ending()],
            &["start 0-1", "iteration 1 1-4", "  Work 1 open 1-4", "  Work 2 ended 2-3", "end 4-…"],
        );
    }

    #[test]
    fn a_recovery_is_part_of_what_failed() {
        let recovery = ("turn_started", json!({"turn": "recovery", "attempt": 1, "items": 1}));
        check(
            &[
                iteration(1, 1),
                turn_ended("work"),
                hook("on_error", "why", 0),
                recovery,
                turn_ended("recovery"),
                iteration(2, 1),
            ],
            &[
                "start 0-1",
                "iteration 1 1-6",
                "  Work 1 ended 1-2",
                "  on_error why 3-3",
                "  Recovery 1 ended 4-5",
                "iteration 2 6-…",
                "  Work 1 open 6-…",
            ],
        );
    }

    #[test]
    fn hooks_that_were_stored_together_ran_one_after_the_other() {
        let ran = |name: &str, ended_ms: u32| {
            let (kind, mut ran) = hook("session_start", name, 2);
            ran["endedAt"] = json!(format!("1970-01-01T00:00:00.00{ended_ms}Z"));
            (kind, ran)
        };
        let started = json!({"point": "session_start"});
        let first = ("point_passed", started);
        let mut events = vec![first; 5];
        events.extend([ran("a", 3), ran("b", 5), ran("late", 9)]);
        check(
            &events,
            &[
                "start 0-…",
                "  session_start a 1-3",
                "  session_start b 3-5",
                // Nothing ended after it was stored.
                "  session_start late 6-8",
            ],
        );
    }

    #[test]
    fn who_runs_a_hook_or_a_turn_knows_its_place() {
        let mut events = vec![];
        let place = |events: &[(&'static str, Value)], point: Point| {
            let before = timeline(events);
            let after = [events, &[hook(point.name(), "h", 0)]].concat();
            let after = timeline(&after);
            let found =
                after.parts.iter().rposition(|part| part.hooks().any(|ran| ran.hook_name == "h"));
            assert_eq!(Some(before.part_at(&point)), found, "{point:?}");
        };
        place(&events, Point::SessionStart);
        place(&events, Point::PreIteration);
        events.push(hook("pre_iteration", "pre", 0));
        place(&events, Point::PreIteration);
        assert_eq!(timeline(&events).open_turn(), None);
        events.push(iteration(1, 1));
        assert_eq!(timeline(&events).open_turn(), Some((1, 1)));
        events.push(iteration(1, 2));
        assert_eq!(timeline(&events).open_turn(), Some((1, 2)));
        events.push(turn_ended("work"));
        place(&events, Point::Stop);
        place(&events, Point::PreIteration);
        place(&events, Point::SessionEnd);
        events.push(ending());
        place(&events, Point::SessionEnd);
    }

    #[test]
    fn only_the_latest_of_very_many_is_kept() {
        let count = u32::try_from(PARTS_MAX).unwrap() + 10;
        let timeline =
            timeline(&(1..=count).map(|number| iteration(number, 1)).collect::<Vec<_>>());
        assert_eq!((timeline.parts.len(), timeline.parts_dropped), (PARTS_MAX, 11));
        assert_eq!(
            timeline.current().map(|part| name(part.kind)),
            Some(format!("iteration {count}"))
        );
    }

    #[test]
    fn a_flood_of_steps_leaves_the_latest() {
        let count = STEPS_MAX + 7;
        let hooks: Vec<_> = (0..count).map(|_| hook("session_start", "again", 0)).collect();
        let part = timeline(&hooks).parts.pop_front().unwrap();
        assert_eq!((part.steps.len(), part.steps_dropped), (STEPS_MAX, 7));
    }
}
