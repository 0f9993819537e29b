//! Parses arbitrary exit codes and output of hooks.
//!
//! Input: a byte that selects how the process ended and where it ran, then standard output, then,
//! after a NUL, standard error.

#![no_main]

use hookloop_core::gates::{self, GateRun};
use hookloop_core::hook_protocol::{
    ACTIONS_MAX, ANSWER_MAX, AnswerRules, CapturedOutput, HookOutcome, HookStatus, HookVerdict,
    ProcessExit, interpret, looks_like_answer,
};
use hookloop_core::options::{AllowedAnswers, OnFailure};
use hookloop_core::point::PointKind;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// A gate whose JSON may contain actions.
const ACTING: AnswerRules = AnswerRules {
    kind: PointKind::Gate,
    on_failure: OnFailure::Closed,
    answers: AllowedAnswers::Json,
};
const STRICTER: AnswerRules = AnswerRules { answers: AllowedAnswers::Stricter, ..ACTING };

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let (stdout, stderr) = match text.iter().position(|byte| *byte == 0) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[..0]),
    };
    let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    let ended = match choice & 7 {
        0..=2 => ProcessExit::Exited(0),
        3 => ProcessExit::Exited(2),
        4 => ProcessExit::Exited(i32::from(stderr.len() as u8)),
        5 => ProcessExit::Killed(9),
        6 => ProcessExit::TimedOut,
        _ => ProcessExit::NotStarted("gone".to_owned()),
    };
    let printed = CapturedOutput { stdout: &stdout, stderr: &stderr, is_cut: choice & 8 != 0 };
    let read = |rules| interpret(&ended, printed, rules);
    let closed = read(ACTING);
    let open = read(AnswerRules { on_failure: OnFailure::Open, ..ACTING });
    let reaction = read(AnswerRules { kind: PointKind::Reaction, ..ACTING });
    assert_eq!(closed, read(ACTING), "two parses differ");

    check_stricter(&closed, &read(STRICTER), &ended, printed);
    check_closed(&closed, &ended, printed);
    check_open(&closed, &open, &ended);
    check_reaction(&closed, &reaction);
    check_text(&closed, &ended, printed);
    check_together(&closed);
});

/// Returns the object in standard output if it looks like one; an error if it is invalid or
/// truncated.
fn object(printed: CapturedOutput<'_>) -> Option<Result<Value, ()>> {
    let text = printed.stdout.trim();
    let looks_like_it = text.starts_with('{') && text.ends_with('}');
    looks_like_it.then(|| match printed.is_cut {
        true => Err(()),
        false => serde_json::from_str(text).map_err(drop),
    })
}

fn check_closed(outcome: &HookOutcome, ended: &ProcessExit, printed: CapturedOutput<'_>) {
    assert!(outcome.actions.len() <= ACTIONS_MAX);
    let has_passed = matches!(outcome.status, HookStatus::Passed | HookStatus::Skipped);
    assert_eq!(has_passed, outcome.verdict == HookVerdict::Pass, "{outcome:?}");
    match &outcome.verdict {
        HookVerdict::Pass => assert_eq!(*ended, ProcessExit::Exited(0), "{outcome:?}"),
        HookVerdict::Block { feedback: said } | HookVerdict::Escalate { reason: said } => {
            assert!(!said.trim().is_empty(), "a failed verdict without a reason: {outcome:?}");
        }
    }
    if *ended == ProcessExit::Exited(2) {
        assert_ne!(outcome.verdict, HookVerdict::Pass);
    }
    // The output of a failed process is ignored.
    if !matches!(ended, ProcessExit::Exited(0 | 2)) {
        assert!(outcome.actions.is_empty() && outcome.next_prompt.is_none());
    }
    match object(printed) {
        Some(Err(())) => assert_ne!(outcome.verdict, HookVerdict::Pass, "broken JSON passed"),
        Some(Ok(answer)) if *ended == ProcessExit::Exited(0) => {
            check_answer(outcome, &answer, printed)
        }
        _ => {}
    }
}

fn check_answer(outcome: &HookOutcome, answer: &Value, printed: CapturedOutput<'_>) {
    let ours = &answer["hookloop"];
    let says_no = answer["decision"] == "block"
        || answer["continue"] == false
        || ours["action"] == "continue"
        || ours["action"] == "escalate";
    if says_no || printed.stdout.trim().len() > ANSWER_MAX {
        assert_ne!(outcome.verdict, HookVerdict::Pass, "a blocking verdict was lost: {answer}");
    }
    let asks_for_a_human = answer["continue"] == false || ours["action"] == "escalate";
    if asks_for_a_human && outcome.status != HookStatus::Failed {
        assert!(matches!(outcome.verdict, HookVerdict::Escalate { .. }), "{outcome:?}");
    }
}

/// Returns whether standard output is meant as a list of actions.
fn is_action_list(printed: CapturedOutput<'_>) -> bool {
    object(printed).is_none() && looks_like_answer(printed.stdout)
}

/// Checks that without permission to act the verdict is the same and there are no actions. A list
/// of actions is then plain text.
fn check_stricter(
    acting: &HookOutcome,
    stricter: &HookOutcome,
    ended: &ProcessExit,
    printed: CapturedOutput<'_>,
) {
    if is_action_list(printed) {
        check_same_as_text(stricter, ended, printed, STRICTER);
        assert!(kind_of(&acting.verdict) >= kind_of(&stricter.verdict), "{acting:?}");
    } else {
        assert_eq!(acting.verdict, stricter.verdict);
    }
    assert!(stricter.actions.is_empty() && stricter.values.is_null());
    assert!(stricter.next_prompt.is_none() && stricter.checkpoint.is_none());
    assert_ne!(stricter.status, HookStatus::Skipped);
}

/// Checks that `on_failure: open` turns failures into passes, and changes nothing else.
fn check_open(closed: &HookOutcome, open: &HookOutcome, ended: &ProcessExit) {
    assert_eq!(closed.status, open.status);
    match closed.status {
        HookStatus::Passed | HookStatus::Skipped | HookStatus::Blocked => assert_eq!(closed, open),
        _ => assert_eq!(open.verdict, HookVerdict::Pass),
    }
    if *ended == ProcessExit::Exited(2) {
        assert_ne!(open.verdict, HookVerdict::Pass, "a block became a pass: {open:?}");
    }
}

fn check_reaction(gate: &HookOutcome, reaction: &HookOutcome) {
    assert!(!matches!(reaction.verdict, HookVerdict::Block { .. }), "a reaction cannot block");
    assert_ne!(reaction.status, HookStatus::Blocked);
    let passed =
        |outcome: &HookOutcome| matches!(outcome.status, HookStatus::Passed | HookStatus::Skipped);
    assert_eq!(passed(gate), passed(reaction));
    if passed(gate) {
        assert_eq!(gate.actions, reaction.actions);
    } else {
        assert!(gate.actions.is_empty() && gate.values.is_null());
    }
}

/// Checks that plain text decides nothing, and that an incomplete list of actions is a failure.
fn check_text(outcome: &HookOutcome, ended: &ProcessExit, printed: CapturedOutput<'_>) {
    if is_action_list(printed) {
        let text = printed.stdout.trim();
        if printed.is_cut || serde_json::from_str::<Value>(text).is_err() {
            assert_ne!(outcome.verdict, HookVerdict::Pass, "a broken list of actions passed");
        }
    } else if object(printed).is_none() {
        check_same_as_text(outcome, ended, printed, ACTING);
    }
}

fn check_same_as_text(
    outcome: &HookOutcome,
    ended: &ProcessExit,
    printed: CapturedOutput<'_>,
    rules: AnswerRules,
) {
    let plain = CapturedOutput { stdout: "text", ..printed };
    let other = interpret(ended, plain, rules);
    assert_eq!(outcome.status, other.status);
    assert_eq!(kind_of(&outcome.verdict), kind_of(&other.verdict));
    assert!(outcome.actions.is_empty());
}

fn kind_of(verdict: &HookVerdict) -> u8 {
    match verdict {
        HookVerdict::Pass => 0,
        HookVerdict::Block { .. } => 1,
        HookVerdict::Escalate { .. } => 2,
    }
}

/// Checks that other gates can make the verdict worse, never better.
fn check_together(outcome: &HookOutcome) {
    let alone = kind_of(&outcome.verdict);
    let passed = HookOutcome::of(HookStatus::Passed);
    let failed = ("no".to_owned(), PointKind::Gate, OnFailure::Closed);
    let blocked = HookOutcome::unable(HookStatus::Failed, failed.0, failed.1, failed.2);
    assert_eq!(together([&passed, outcome]), alone);
    for order in [[outcome, &blocked], [&blocked, outcome]] {
        assert!(together(order) >= alone.max(1));
    }
}

fn together(outcomes: [&HookOutcome; 2]) -> u8 {
    let run = |(name, outcome)| GateRun { name, any_of: None, outcome };
    let runs: Vec<GateRun<'_>> = ["a", "b"].into_iter().zip(outcomes).map(run).collect();
    match gates::verdict(&runs).verdict {
        hookloop_core::session::JointVerdict::Pass => 0,
        hookloop_core::session::JointVerdict::Block => 1,
        hookloop_core::session::JointVerdict::Escalate { .. } => 2,
    }
}
