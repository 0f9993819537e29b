//! Tests that sessions without progress are stopped and honest ones are not: the table in
//! docs/concepts/limits.md.

use hookloop_core::event::{EventBody, WorktreeSnapshotted};
use hookloop_core::session::facts::{HookPointCompleted, UnclaimedWorkChecked};
use hookloop_core::session::state::MESSAGE;
use hookloop_core::session::{
    AgentFault, AtRetryLimit, FaultCause, GatesEvaluated, IterationStarted, JointVerdict, NextStep,
    PipedOutput, RATE_LIMITED_TURNS_MAX, Session, SessionLimit, SessionLimits, SessionOutcome,
    SessionPhase, SessionPlan, SessionWork, StopDecision, StopEvaluated, StopWhen, TurnEnded,
    TurnKind, TurnResult, Usage, next_step,
};

/// Number of iterations of a recorded run that is not stopped earlier.
const LENGTH: u32 = 20;
/// Thresholds of other tools.
const EQUAL_OUTPUTS: u32 = 3;
const BLOCKS: u32 = 8;

/// One iteration of a recorded run.
struct Iteration {
    files: String,
    says: String,
    /// The failing tests when the agent claims completion; `None` if it does not.
    failing: Option<Vec<String>>,
}

type Run = fn(u32) -> Iteration;

fn iteration(files: &str, says: &str, failing: Option<u32>) -> Iteration {
    let tests = |count: u32| (0..count).map(|n| format!("t{n}")).collect();
    Iteration { files: files.to_owned(), says: says.to_owned(), failing: failing.map(tests) }
}

const RUNS: [(&str, Run); 6] = [
    ("stuck: nothing changes, other words each time", |n| {
        iteration("start", &format!("attempt {n}"), None)
    }),
    ("stuck: claims again and again over the same failing tests, other words", |n| {
        iteration("start", &format!("surely now ({n})"), Some(3))
    }),
    ("oscillating between two states of the files", |n| {
        iteration(if n % 2 == 0 { "a" } else { "b" }, &format!("the other way, {n}"), None)
    }),
    ("claims, rewrites the same file, the same tests fail", |n| {
        iteration(&format!("f{n}"), &format!("rewritten {n}"), Some(3))
    }),
    ("slow and honest: one of 20 tests fixed each time, with a claim", |n| {
        iteration(&format!("f{n}"), &format!("fixed one, {n}"), Some(20 - n))
    }),
    ("repetitive and honest: one file after the other, the same words", |n| {
        iteration(&format!("f{n}"), "converted one more file", None)
    }),
];

fn plan() -> SessionPlan {
    SessionPlan {
        name: "run".into(),
        work: SessionWork::Prompt("x".into()),
        fallback: None,
        model: None,
        permissions: None,
        conversation: hookloop_core::session::ConversationMode::default(),
        keeps_feedback: false,
        promises: Vec::new(),
        agent: "recorded".into(),
        stop_when: vec![StopWhen::Default],
        at_retry_limit: AtRetryLimit::NeedsHuman,
        limits: SessionLimits::default(),
        hooks: String::new(),
        scripts: None,
        fence: "f".into(),
        machine: "m".into(),
        delivers: false,
        worker: None,
        no_changes_ok: false,
        may_change: Vec::new(),
        wants_no_gates: false,
        trace_parent: None,
    }
}

/// Returns a finished turn without changes.
fn turn_ended() -> TurnEnded {
    TurnEnded {
        turn: TurnKind::Work,
        result: TurnResult::Finished,
        agent: "a".into(),
        duration_ms: 1,
        active_ms: 1,
        usage: Usage::default(),
        message: String::new(),
        promises: vec![],
        files: None,
        tree: None,
        head: None,
        changed: vec![],
        is_partial: false,
        is_unpriced: false,
        stderr: None,
        fault: None,
        refused: vec![],
        artifact: None,
        conversation: None,
        near_misses: vec![],
    }
}

/// Returns a session in its first turn.
fn begun() -> Session {
    let mut session = Session::new(plan());
    let point = "session_start".to_owned();
    session.apply(&EventBody::HookPointCompleted(HookPointCompleted { point }));
    session.apply(&iteration_started());
    session
}

fn iteration_started() -> EventBody {
    EventBody::IterationStarted(IterationStarted { number: 1, attempt: 1, items: 0 })
}

#[test]
fn rate_limited_turns_of_an_iteration_are_limited() {
    let mut session = begun();
    let result = TurnResult::RateLimited { error: "429".into(), until_ms: None };
    let limited = EventBody::TurnEnded(TurnEnded { result, ..turn_ended() });
    for _ in 0..RATE_LIMITED_TURNS_MAX {
        session.apply(&limited);
        assert_eq!((session.errors, session.next_iteration()), (0, 1));
        session.apply(&iteration_started());
    }
    session.apply(&limited);
    assert_eq!((session.errors, session.next_iteration()), (1, 2));
}

#[test]
fn a_fault_of_the_agent_ends_the_session_without_another_turn() {
    let mut session = begun();
    let result = TurnResult::Failed { error: "401 Unauthorized".into() };
    let fault = AgentFault { cause: FaultCause::Login, remedy: "Run `a login`".into() };
    let failed = TurnEnded { result, fault: Some(fault), ..turn_ended() };
    session.apply(&EventBody::TurnEnded(failed));
    session
        .apply(&EventBody::HookPointCompleted(HookPointCompleted { point: "on_error".to_owned() }));
    let NextStep::End(SessionOutcome::NeedsHuman { reason }) = next_step(&session, 0) else {
        panic!("{:?}", next_step(&session, 0));
    };
    assert!(reason.contains("401 Unauthorized") && reason.contains("Run `a login`"), "{reason}");
}

#[test]
fn turns_of_unknown_cost_count_against_the_cost_limit() {
    let mut session = begun();
    session.plan.limits.max_unpriced_turns = 1;
    let failed = TurnResult::Failed { error: "killed".into() };
    let lost = TurnEnded { result: failed, is_unpriced: true, ..turn_ended() };
    session.apply(&EventBody::TurnEnded(lost));
    session
        .apply(&EventBody::HookPointCompleted(HookPointCompleted { point: "on_error".to_owned() }));
    let expected = NextStep::End(SessionOutcome::Limit { limit: SessionLimit::Cost });
    assert_eq!(next_step(&session, 0), expected);
    assert_eq!(session.cost().known_micros(), None);
}

#[test]
fn only_a_message_of_a_person_resets_the_counters_of_retries_and_missing_progress() {
    let mut session = begun();
    session.retries = 4;
    session.progress.stalled = 3;
    let piped = |point: &str| {
        EventBody::OutputPiped(PipedOutput {
            from: "tests".into(),
            point: point.into(),
            text: "try the other way".into(),
            ..PipedOutput::default()
        })
    };
    session.apply(&piped("stop"));
    assert_eq!((session.retries, session.progress.stalled), (4, 3));
    session.apply(&piped(MESSAGE));
    assert_eq!((session.retries, session.progress.stalled), (0, 0));
}

/// Returns the number of iterations after which hookloop stops the run.
fn ours(run: Run) -> Option<u32> {
    let mut session = Session::new(plan());
    session.apply(&EventBody::WorktreeSnapshotted(WorktreeSnapshotted {
        files: "start".into(),
        head: None,
        after_hooks: false,
    }));
    let passed =
        |point: &str| EventBody::HookPointCompleted(HookPointCompleted { point: point.to_owned() });
    session.apply(&passed("session_start"));
    for number in 1..=LENGTH {
        if next_step(&session, 0) == NextStep::CheckUnclaimed {
            let (gates, passed, changed, failing) = (0, false, true, vec![]);
            let checked = UnclaimedWorkChecked { gates, passed, changed, failing };
            session.apply(&EventBody::UnclaimedWorkChecked(checked));
        }
        match next_step(&session, 0) {
            NextStep::Begin(_) => {}
            NextStep::End(SessionOutcome::NeedsHuman { .. }) | NextStep::AnswerRetryLimit => {
                return Some(number - 1);
            }
            other => panic!("{other:?}"),
        }
        let Iteration { files, says, failing } = run(number);
        session.apply(&EventBody::IterationStarted(IterationStarted {
            number,
            attempt: 1,
            items: 0,
        }));
        let turn = TurnEnded { message: says, files: Some(files.clone()), ..turn_ended() };
        session.apply(&EventBody::TurnEnded(turn));
        session.apply(&passed("post_iteration"));
        let decision =
            if failing.is_some() { StopDecision::Complete } else { StopDecision::Continue };
        let (reason, by) = ("r".to_owned(), "default".to_owned());
        session.apply(&EventBody::StopEvaluated(StopEvaluated {
            decision,
            reason,
            by,
            failing: None,
            contradicting: Vec::new(),
        }));
        if let Some(failing) = failing {
            let verdict = if failing.is_empty() { JointVerdict::Pass } else { JointVerdict::Block };
            let (tree, files) = (None, Some(files));
            session.apply(&EventBody::GatesEvaluated(GatesEvaluated {
                verdict,
                gates: 1,
                tree,
                files,
                passed: if failing.is_empty() { vec!["tests".to_owned()] } else { vec![] },
                skipped: vec![],
                failed: vec![],
                failing,
            }));
        }
        if session.phase == SessionPhase::Ending {
            return None;
        }
    }
    None
}

fn equal_outputs(run: Run) -> Option<u32> {
    let mut equal = 1;
    for number in 2..=LENGTH {
        equal = if run(number).says == run(number - 1).says { equal + 1 } else { 1 };
        if equal >= EQUAL_OUTPUTS {
            return Some(number);
        }
    }
    None
}

fn blocks(run: Run) -> Option<u32> {
    let mut blocks = 0;
    for number in 1..=LENGTH {
        let is_block = run(number).failing.is_some_and(|failing| !failing.is_empty());
        blocks = if is_block { blocks + 1 } else { 0 };
        if blocks >= BLOCKS {
            return Some(number);
        }
    }
    None
}

#[test]
fn only_sessions_without_progress_are_stopped() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/limits.md");
    let document = std::fs::read_to_string(document).unwrap();
    for (name, run) in RUNS {
        let is_honest = name.contains("honest");
        let (ours, equal, blocks) = (ours(run), equal_outputs(run), blocks(run));
        assert_eq!(ours.is_none(), is_honest, "{name}: {ours:?}");
        let is_earliest =
            |other: Option<u32>| other.is_none_or(|other| ours.is_some_and(|ours| ours < other));
        assert!(is_honest || (is_earliest(equal) && is_earliest(blocks)), "{name}");
        let cell = |stops: Option<u32>| match stops {
            None => "never".to_owned(),
            Some(after) if is_honest => format!("**stops after {after}**"),
            Some(after) => format!("stops after {after}"),
        };
        let row = format!("| {name} | {} | {} | {} |", cell(ours), cell(equal), cell(blocks));
        assert!(document.contains(&row), "docs/concepts/limits.md should have\n{row}");
    }
}
