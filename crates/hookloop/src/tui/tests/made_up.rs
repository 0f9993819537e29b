//! A project that is made up: a blocked task, a merge that is held, a session in its second iteration.

use std::sync::Arc;

use hookloop_core::event::EventBody;
use hookloop_core::session::facts::TestFinding;
use hookloop_core::session::plan::CostFigure;
use hookloop_core::session::timeline::Timeline;
use hookloop_core::session::{Session, SessionState};
use hookloop_core::task::TaskState;
use hookloop_core::time::Timestamp;
use hookloop_engine::session::undo::{EditedFile, FileEffect};
use hookloop_engine::store::SessionRow;
use serde_json::{Value, json};

use crate::present::test_changes::test_changes;
use crate::tui::data::{
    AgentOutput, OutputTail, ProblemFacts, ProblemLine, ProblemMatter, ProjectOverview, ScreenNews,
    SessionContent, SessionLine, TaskContent, TaskFacts, TaskLine,
};
use crate::undo_preview::UndoPreview;

/// The time of the test data.
const NOW: i64 = 1_800_000_000_000;

pub(super) fn at(seconds_ago: i64) -> Timestamp {
    Timestamp(NOW - seconds_ago * 1_000)
}

pub(super) fn news() -> ScreenNews {
    let overview = Some(Arc::new(overview()));
    let tasks = Some(Arc::new(tasks()));
    let shown = Some(Arc::new(shown()));
    let facts = ProblemFacts {
        matter: ProblemMatter::Problem("task:parser@41".parse().unwrap()),
        details: vec![
            "fails: tests::reads_latin1".into(),
            "the agent's last words: Which encoding do old files have?".into(),
        ],
        changes: Vec::new(),
        can_allow: false,
        session: Some("s7".parse().unwrap()),
        next: vec![
            "hookloop inbox answer task:parser@41 \"…\"".into(),
            "hookloop inbox dismiss task:parser@41".into(),
        ],
    };
    ScreenNews { overview, tasks, shown, facts: Some(Arc::new(facts)), trouble: None }
}

/// The facts of a problem with a changed test.
pub(super) fn changed_tests() -> ProblemFacts {
    let finding: TestFinding = serde_json::from_value(json!({
        "kind": "expectation_changed", "check": "rounds to cents", "path": "test/price.test.js",
        "cause": "expected 0.35, got 0.34",
        "before": "test('rounds to cents', () => {\n  assert.equal(round(0.345), 0.35);\n});",
        "after": "test('rounds to cents', () => {\n  assert.equal(round(0.345), 0.34);\n});",
    }))
    .unwrap();
    let matter = ProblemMatter::Problem("task:parser@41".parse().unwrap());
    ProblemFacts {
        changes: test_changes(&[finding]),
        can_allow: true,
        next: vec!["hookloop inbox approve session:s7@90".into()],
        ..ProblemFacts::of(matter, Some("s7".parse().unwrap()))
    }
}

pub(super) fn overview() -> ProjectOverview {
    let problem = |key: &str, title: &str, reason: &str, seconds: i64| ProblemLine {
        matter: ProblemMatter::Problem(key.parse().unwrap()),
        title: title.to_owned(),
        reason: reason.to_owned(),
        since: at(seconds),
        can_answer: key.starts_with("task"),
        can_approve: key.contains("login"),
        can_resume: false,
        asks: false,
    };
    ProjectOverview {
        project: "shop".to_owned(),
        problems: vec![
            problem(
                "task:parser@41",
                "task parser is blocked: Read old files",
                "Which encoding?",
                7_300,
            ),
            problem(
                "task:login@77",
                "task login can't be merged: Log in",
                "a push was refused",
                600,
            ),
            problem(
                "session:s5@90",
                "session s5 ended undone: Make the tests pass",
                "its limit of cost was reached",
                42,
            ),
        ],
        problem_count: 3,
        sessions: vec![
            session("s7", "running", None),
            session("s5", "limit", Some("cost")),
            session("s2", "complete", None),
        ],
        running: 1,
        cost_today: CostFigure { micros: 12_340_000, unpriced_turns: 0 },
        tasks: vec![(TaskState::Ready, 1), (TaskState::Active, 1), (TaskState::Blocked, 1)],
        stuck: 1,
    }
}

pub(super) fn session(id: &str, state: &str, reason: Option<&str>) -> SessionLine {
    let row = SessionRow {
        id: id.parse().unwrap(),
        name: id.to_owned(),
        state: state.parse().unwrap(),
        reason: reason.map(str::to_owned),
        work: "Make the tests pass".to_owned(),
        agent: "claude".to_owned(),
        machine: "desk".to_owned(),
        iteration: 3,
        task: None,
        tokens: 123_456,
        cost_micros: 1_500_000,
        unpriced_turns: 0,
        started_at: at(300),
        ended_at: (state != "running").then(|| at(10)),
        proven: state == "complete",
    };
    SessionLine { row, state: state.parse().unwrap() }
}

pub(super) fn tasks() -> TaskContent {
    let task = |graph: &str, id: &str, state: TaskState, goal: &str| TaskLine {
        graph: graph.to_owned(),
        task: Some(TaskFacts {
            id: id.to_owned(),
            state,
            goal: goal.to_owned(),
            details: vec![format!("{id}: {goal}"), format!("{state}, priority 2")],
            session: (state == TaskState::Active).then(|| "s7".parse().unwrap()),
        }),
    };
    let lines = vec![
        task("◉", "research", TaskState::Active, "Research graph patterns"),
        TaskLine { graph: "├─╮".to_owned(), task: None },
        task("│ ✗", "parser", TaskState::Blocked, "Read old files"),
        task("◌", "write", TaskState::Created, "Write it up"),
    ];
    TaskContent { lines, cut: false }
}

/// The undo of a session with more files than a screen has lines.
pub(super) fn undo_preview() -> UndoPreview {
    let mut files = vec![
        ("src/lib.rs".to_owned(), FileEffect::Changed),
        ("src/latin1.rs".to_owned(), FileEffect::Deleted),
        ("src/old.rs".to_owned(), FileEffect::Created),
    ];
    files.extend((0..37).map(|n| (format!("tests/case-{n}.rs"), FileEffect::Changed)));
    let reason = "it was changed outside of the agent's turns";
    let edited = |path: &str| EditedFile { path: path.to_owned(), reason };
    UndoPreview {
        session: "s5".parse().unwrap(),
        label: "undo of turns 1 to 3".to_owned(),
        file_count: files.len(),
        files,
        edited: vec![edited("README.md"), edited("notes.txt")],
        edited_count: 2,
        old_head: None,
        digest: "d1".to_owned(),
    }
}

fn plan() -> Value {
    json!({"name": "s7", "work": {"prompt": "Make the tests pass"}, "agent": "claude", "stop_when": ["default"],
        "at_retry_limit": "needs_human", "limits": {"max_iterations": 10, "max_duration_ms": 3_600_000, "turn_timeout_ms": 1, "max_errors": 1,
        "gate_retries": 2, "max_no_progress": 1, "max_tokens": 1_000_000, "max_cost_micros": 5_000_000}, "hooks": "h", "fence": "f", "machine": "desk"})
}

/// A session that was sent back once and is in its second turn.
pub(super) fn shown() -> SessionContent {
    let hook = |point: &str, name: &str, status: &str, ms: u64, reason: Option<&str>| {
        (
            "hook_ran",
            json!({"hook_name": name, "point": point, "status": status, "duration_ms": ms, "attempts": 1,
            "reason": reason, "stdout_bytes": 5, "stderr_bytes": 0, "artifact": "/state/artifacts/1"}),
        )
    };
    let events = [
        ("session_started", plan(), 300),
        with(hook("session_start", "set-up", "passed", 1_200, None), 298),
        with(hook("pre_iteration", "context", "passed", 80, None), 297),
        ("iteration_started", json!({"number": 1, "attempt": 1, "items": 0}), 296),
        (
            "turn_ended",
            json!({"turn": "work", "result": "finished", "duration_ms": 90_000, "active_ms": 90_000,
            "usage": {"input_tokens": 40_000, "output_tokens": 2_000, "cost_micros": 310_000}, "changed": ["src/lib.rs"],
            "message": "I fixed the parser.\nAll tests pass.", "artifact": "/state/artifacts/2"}),
            206,
        ),
        (
            "stop_evaluated",
            json!({"decision": "complete", "reason": "it promised", "by": "promise"}),
            206,
        ),
        with(hook("stop", "tests", "blocked", 31_000, Some("2 of 40 tests fail")), 175),
        (
            "receipt_recorded",
            json!({"gate": "tests", "point": "stop", "definition": "cargo test", "status": "blocked", "exit_code": 2,
            "tree": "0123456789abcdef", "output_sha256": "x", "duration_ms": 31_000}),
            175,
        ),
        (
            "gates_evaluated",
            json!({"verdict": "block", "gates": 1, "failing": ["tests::latin1", "tests::empty"]}),
            175,
        ),
        (
            "output_piped",
            json!({"from": "tests", "point": "stop", "status": "blocked", "text": "2 tests fail\n…"}),
            175,
        ),
        ("iteration_started", json!({"number": 2, "attempt": 1, "items": 1}), 174),
        (
            "output_piped",
            json!({"from": "ada", "point": "message", "text": "The files are latin-1."}),
            60,
        ),
    ];
    let bodies: Vec<(Timestamp, EventBody)> = events
        .iter()
        .map(|(kind, data, seconds)| {
            (at(*seconds), EventBody::decode(kind, 1, &data.to_string()).unwrap())
        })
        .collect();
    let mut said = OutputTail::default();
    said.push(
        "Let me look at the failing test.\n→ Bash: cargo test latin1\nIt reads bytes as UTF-8"
            .as_bytes(),
    );
    SessionContent {
        id: "s7".parse().unwrap(),
        state: SessionState::Running,
        machine: "desk".to_owned(),
        timeline: Arc::new(Timeline::of(bodies.iter().map(|(at, body)| (*at, body))).unwrap()),
        session: Arc::new(Session::of(bodies.iter().map(|(_, body)| body)).unwrap()),
        gates: Arc::default(),
        heard: AgentOutput::Here(said),
        now: None,
    }
}

fn with((kind, data): (&'static str, Value), seconds: i64) -> (&'static str, Value, i64) {
    (kind, data, seconds)
}
