//! Where sessions that get nowhere are stopped, and that honest ones are not: the table in docs/sessions.md.

use hookloop_core::event::{EventBody, FilesSeen};
use hookloop_core::session::facts::PointPassed;
use hookloop_core::session::{
    AtRetryLimit, Decision, GatesJudged, IterationStarted, Limits, Outcome, Phase, Plan, Session,
    Step, StopDecided, StopWhen, TurnEnded, TurnKind, TurnResult, Usage, Verdict, Work, next_step,
};

/// Iterations that a recorded run has; one that is not stopped before goes to its end.
const LENGTH: u32 = 20;
/// What other tools stop at.
const EQUAL_OUTPUTS: u32 = 3;
const BLOCKS: u32 = 8;

/// One iteration of a recorded run.
struct Iteration {
    files: String,
    says: String,
    /// The tests that fail when it claims to be done; none if it does not claim.
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

fn plan() -> Plan {
    Plan {
        name: "run".into(),
        work: Work::Prompt("x".into()),
        fallback: None,
        model: None,
        permissions: None,
        conversation: hookloop_core::session::Conversation::default(),
        keeps_feedback: false,
        promises: Vec::new(),
        agent: "recorded".into(),
        stop_when: vec![StopWhen::Default],
        at_retry_limit: AtRetryLimit::NeedsHuman,
        limits: Limits::default(),
        hooks: String::new(),
        scripts: None,
        fence: "f".into(),
        machine: "m".into(),
        delivers: false,
        worker: None,
        no_changes_ok: false,
        wants_no_gates: false,
        trace_parent: None,
    }
}

/// After how many iterations hookloop stops it.
fn ours(run: Run) -> Option<u32> {
    let mut session = Session::new(plan());
    session.apply(&EventBody::FilesSeen(FilesSeen { files: "start".into(), head: None }));
    let passed = |point: &str| EventBody::PointPassed(PointPassed { point: point.to_owned() });
    session.apply(&passed("session_start"));
    for number in 1..=LENGTH {
        match next_step(&session, 0) {
            Step::Begin(_) => {}
            Step::End(Outcome::NeedsHuman { .. }) | Step::AnswerRetryLimit => {
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
        session.apply(&EventBody::TurnEnded(TurnEnded {
            turn: TurnKind::Work,
            result: TurnResult::Finished,
            agent: "a".into(),
            duration_ms: 1,
            active_ms: 1,
            usage: Usage::default(),
            message: says,
            promises: vec![],
            near_misses: Vec::new(),
            files: Some(files.clone()),
            changed: vec![],
            is_partial: false,
            is_unpriced: false,
            stderr: None,
            fault: None,
            refused: vec![],
            artifact: None,
            conversation: None,
            near_misses: Vec::new(),
        }));
        session.apply(&passed("post_iteration"));
        let decision = if failing.is_some() { Decision::Complete } else { Decision::Continue };
        let (reason, by) = ("r".to_owned(), "default".to_owned());
        session.apply(&EventBody::StopDecided(StopDecided { decision, reason, by, failing: None }));
        if let Some(failing) = failing {
            let verdict = if failing.is_empty() { Verdict::Pass } else { Verdict::Block };
            let (tree, files) = (None, Some(files));
            session.apply(&EventBody::GatesJudged(GatesJudged {
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
        if session.phase == Phase::Ending {
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
fn governor_stops_the_stuck_and_no_other() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sessions.md");
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
        assert!(document.contains(&row), "docs/sessions.md should have\n{row}");
    }
}
