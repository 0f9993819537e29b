//! Reads arbitrary exit codes and output of hooks.
//!
//! Input: a byte that chooses how the process ended and where it ran, then standard output, then,
//! after a NUL, standard error.

#![no_main]

use hookloop_core::answer::{
    ACTIONS_MAX, ANSWER_MAX, AnswerRules, Ended, Outcome, Printed, Status, Verdict, interpret,
    looks_like_answer,
};
use hookloop_core::gates::{self, GateRun};
use hookloop_core::options::{AllowedAnswers, OnFailure};
use hookloop_core::point::Kind;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// A gate whose JSON may act.
const ACTING: AnswerRules =
    AnswerRules { kind: Kind::Gate, on_failure: OnFailure::Closed, answers: AllowedAnswers::Json };
const STRICTER: AnswerRules = AnswerRules { answers: AllowedAnswers::Stricter, ..ACTING };

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let (stdout, stderr) = match text.iter().position(|byte| *byte == 0) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[..0]),
    };
    let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    let ended = match choice & 7 {
        0..=2 => Ended::Exited(0),
        3 => Ended::Exited(2),
        4 => Ended::Exited(i32::from(stderr.len() as u8)),
        5 => Ended::Killed(9),
        6 => Ended::TimedOut,
        _ => Ended::NotStarted("gone".to_owned()),
    };
    let printed = Printed { stdout: &stdout, stderr: &stderr, is_cut: choice & 8 != 0 };
    let read = |rules| interpret(&ended, printed, rules);
    let closed = read(ACTING);
    let open = read(AnswerRules { on_failure: OnFailure::Open, ..ACTING });
    let reaction = read(AnswerRules { kind: Kind::Reaction, ..ACTING });
    assert_eq!(closed, read(ACTING), "not the same twice");

    check_stricter(&closed, &read(STRICTER), &ended, printed);
    check_closed(&closed, &ended, printed);
    check_open(&closed, &open, &ended);
    check_reaction(&closed, &reaction);
    check_text(&closed, &ended, printed);
    check_together(&closed);
});

/// The object that standard output is, if it looks like one; an error if it only looks like it, or
/// is not all there.
fn object(printed: Printed<'_>) -> Option<Result<Value, ()>> {
    let text = printed.stdout.trim();
    let looks_like_it = text.starts_with('{') && text.ends_with('}');
    looks_like_it.then(|| match printed.is_cut {
        true => Err(()),
        false => serde_json::from_str(text).map_err(drop),
    })
}

fn check_closed(outcome: &Outcome, ended: &Ended, printed: Printed<'_>) {
    assert!(outcome.actions.len() <= ACTIONS_MAX);
    let has_passed = matches!(outcome.status, Status::Passed | Status::Skipped);
    assert_eq!(has_passed, outcome.verdict == Verdict::Pass, "{outcome:?}");
    match &outcome.verdict {
        Verdict::Pass => assert_eq!(*ended, Ended::Exited(0), "{outcome:?}"),
        Verdict::Block { feedback: said } | Verdict::Escalate { reason: said } => {
            assert!(!said.trim().is_empty(), "a no without a word: {outcome:?}");
        }
    }
    if *ended == Ended::Exited(2) {
        assert_ne!(outcome.verdict, Verdict::Pass);
    }
    // A process that failed is not asked.
    if !matches!(ended, Ended::Exited(0 | 2)) {
        assert!(outcome.actions.is_empty() && outcome.next_prompt.is_none());
    }
    match object(printed) {
        Some(Err(())) => assert_ne!(outcome.verdict, Verdict::Pass, "broken JSON passed"),
        Some(Ok(answer)) if *ended == Ended::Exited(0) => check_answer(outcome, &answer, printed),
        _ => {}
    }
}

fn check_answer(outcome: &Outcome, answer: &Value, printed: Printed<'_>) {
    let ours = &answer["hookloop"];
    let says_no = answer["decision"] == "block"
        || answer["continue"] == false
        || ours["action"] == "continue"
        || ours["action"] == "escalate";
    if says_no || printed.stdout.trim().len() > ANSWER_MAX {
        assert_ne!(outcome.verdict, Verdict::Pass, "a no was lost: {answer}");
    }
    let asks_for_a_human = answer["continue"] == false || ours["action"] == "escalate";
    if asks_for_a_human && outcome.status != Status::Failed {
        assert!(matches!(outcome.verdict, Verdict::Escalate { .. }), "{outcome:?}");
    }
}

/// Whether standard output is meant as a list of actions.
fn is_action_list(printed: Printed<'_>) -> bool {
    object(printed).is_none() && looks_like_answer(printed.stdout)
}

/// Without permission to act the verdict is the same, and nothing acts. A list of actions is then text.
fn check_stricter(acting: &Outcome, stricter: &Outcome, ended: &Ended, printed: Printed<'_>) {
    if is_action_list(printed) {
        check_same_as_text(stricter, ended, printed, STRICTER);
        assert!(kind_of(&acting.verdict) >= kind_of(&stricter.verdict), "{acting:?}");
    } else {
        assert_eq!(acting.verdict, stricter.verdict);
    }
    assert!(stricter.actions.is_empty() && stricter.values.is_null());
    assert!(stricter.next_prompt.is_none() && stricter.checkpoint.is_none());
    assert_ne!(stricter.status, Status::Skipped);
}

/// `on_failure: open` turns failures into passes, and nothing else.
fn check_open(closed: &Outcome, open: &Outcome, ended: &Ended) {
    assert_eq!(closed.status, open.status);
    match closed.status {
        Status::Passed | Status::Skipped | Status::Blocked => assert_eq!(closed, open),
        _ => assert_eq!(open.verdict, Verdict::Pass),
    }
    if *ended == Ended::Exited(2) {
        assert_ne!(open.verdict, Verdict::Pass, "a block became a pass: {open:?}");
    }
}

fn check_reaction(gate: &Outcome, reaction: &Outcome) {
    assert!(!matches!(reaction.verdict, Verdict::Block { .. }), "there is nothing to block");
    assert_ne!(reaction.status, Status::Blocked);
    let passed = |outcome: &Outcome| matches!(outcome.status, Status::Passed | Status::Skipped);
    assert_eq!(passed(gate), passed(reaction));
    if passed(gate) {
        assert_eq!(gate.actions, reaction.actions);
    } else {
        assert!(gate.actions.is_empty() && gate.values.is_null());
    }
}

/// Text that is no answer decides nothing. A list of actions that cannot be read whole is a failure.
fn check_text(outcome: &Outcome, ended: &Ended, printed: Printed<'_>) {
    if is_action_list(printed) {
        let text = printed.stdout.trim();
        if printed.is_cut || serde_json::from_str::<Value>(text).is_err() {
            assert_ne!(outcome.verdict, Verdict::Pass, "a broken list of actions passed");
        }
    } else if object(printed).is_none() {
        check_same_as_text(outcome, ended, printed, ACTING);
    }
}

fn check_same_as_text(outcome: &Outcome, ended: &Ended, printed: Printed<'_>, rules: AnswerRules) {
    let plain = Printed { stdout: "text", ..printed };
    let other = interpret(ended, plain, rules);
    assert_eq!(outcome.status, other.status);
    assert_eq!(kind_of(&outcome.verdict), kind_of(&other.verdict));
    assert!(outcome.actions.is_empty());
}

fn kind_of(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 0,
        Verdict::Block { .. } => 1,
        Verdict::Escalate { .. } => 2,
    }
}

/// Other gates can make the verdict worse, never better.
fn check_together(outcome: &Outcome) {
    let alone = kind_of(&outcome.verdict);
    let passed = Outcome::of(Status::Passed);
    let failed = ("no".to_owned(), Kind::Gate, OnFailure::Closed);
    let blocked = Outcome::unable(Status::Failed, failed.0, failed.1, failed.2);
    assert_eq!(together([&passed, outcome]), alone);
    for order in [[outcome, &blocked], [&blocked, outcome]] {
        assert!(together(order) >= alone.max(1));
    }
}

fn together(outcomes: [&Outcome; 2]) -> u8 {
    let run = |(name, outcome)| GateRun { name, any_of: None, outcome };
    let runs: Vec<GateRun<'_>> = ["a", "b"].into_iter().zip(outcomes).map(run).collect();
    match gates::verdict(&runs).verdict {
        hookloop_core::session::Verdict::Pass => 0,
        hookloop_core::session::Verdict::Block => 1,
        hookloop_core::session::Verdict::Escalate { .. } => 2,
    }
}
