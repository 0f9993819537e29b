//! Tests of `timeline`.

use serde_json::{Value, json};

use super::*;

/// Checks the parts and steps of these events, as text, with one millisecond between two events.
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
    let started = json!({"name": "s", "work": {"prompt": "p"}, "agent": "a", "stop_when": ["default"],
        "at_retry_limit": "needs_human", "limits": {"max_iterations": 1, "max_duration_ms": 1, "turn_timeout_ms": 1, "max_errors": 1,
        "gate_retries": 1, "max_no_progress": 1, "max_tokens": 1, "max_cost_micros": 1}, "hooks": "h", "fence": "f", "machine": "m"});
    let all = std::iter::once(("session_started", started)).chain(events.iter().cloned());
    let bodies: Vec<EventBody> =
        all.map(|(kind, data)| EventBody::decode(kind, 1, &data.to_string()).unwrap()).collect();
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

fn step_name(what: &StepContent) -> String {
    match what {
        StepContent::Hook(ran) => format!("{} {}", ran.point, ran.hook_name),
        StepContent::Turn { kind, attempt, ended } => {
            let how = if ended.is_some() { "ended" } else { "open" };
            format!("{kind:?} {attempt} {how}")
        }
        StepContent::Piped(piped) => format!("piped by {}", piped.from),
        StepContent::Judged(judged) => format!("{:?}", judged.verdict),
        StepContent::Taken(taken) => format!("took {}", taken.task),
        other => format!("{other:?}"),
    }
}

fn hook(point: &str, name: &str, duration_ms: u64) -> (&'static str, Value) {
    let ran = json!({"hook_name": name, "point": point, "status": "passed", "duration_ms": duration_ms,
        "attempts": 1, "stdout_bytes": 0, "stderr_bytes": 0});
    ("hook_ran", ran)
}

fn iteration(number: u32, attempt: u32) -> (&'static str, Value) {
    ("iteration_started", json!({"number": number, "attempt": attempt, "items": 0}))
}

fn turn_ended(turn: &str) -> (&'static str, Value) {
    let ended = json!({"turn": turn, "result": "finished", "duration_ms": 1, "active_ms": 1});
    ("turn_ended", ended)
}

fn passes() -> (&'static str, Value) {
    ("gates_evaluated", json!({"verdict": "pass", "gates": 1, "failing": []}))
}

fn ending() -> (&'static str, Value) {
    ("session_ending", json!({"outcome": "complete"}))
}

fn ended() -> (&'static str, Value) {
    ("session_ended", json!({"outcome": "complete"}))
}

#[test]
fn hooks_before_a_prompt_belong_to_its_iteration() {
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
fn claiming_a_task_starts_an_iteration_with_its_setup_hooks() {
    check(
        &[
            ("session_task_claimed", json!({"task": "t", "epoch": 1})),
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
fn a_retried_iteration_is_one_part_with_two_turns() {
    check(
        &[iteration(1, 1), iteration(1, 2), turn_ended("work"), ending()],
        &["start 0-1", "iteration 1 1-4", "  Work 1 open 1-4", "  Work 2 ended 2-3", "end 4-…"],
    );
}

#[test]
fn a_recovery_turn_belongs_to_the_failed_iteration() {
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
fn hooks_stored_in_one_batch_have_consecutive_time_spans() {
    let ran = |name: &str, ended_ms: u32| {
        let (kind, mut ran) = hook("session_start", name, 2);
        ran["ended_at"] = json!(format!("1970-01-01T00:00:00.00{ended_ms}Z"));
        (kind, ran)
    };
    let started = json!({"point": "session_start"});
    let first = ("hook_point_completed", started);
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
fn the_part_of_the_next_hook_and_the_open_turn_are_known() {
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
fn only_the_latest_parts_are_kept() {
    let count = u32::try_from(PARTS_MAX).unwrap() + 10;
    let timeline = timeline(&(1..=count).map(|number| iteration(number, 1)).collect::<Vec<_>>());
    assert_eq!((timeline.parts.len(), timeline.parts_dropped), (PARTS_MAX, 11));
    assert_eq!(timeline.current().map(|part| name(part.kind)), Some(format!("iteration {count}")));
}

#[test]
fn only_the_latest_steps_of_a_part_are_kept() {
    let count = STEPS_MAX + 7;
    let hooks: Vec<_> = (0..count).map(|_| hook("session_start", "again", 0)).collect();
    let part = timeline(&hooks).parts.pop_front().unwrap();
    assert_eq!((part.steps.len(), part.steps_dropped), (STEPS_MAX, 7));
}
