//! Checks that the protocol page lists exactly the fields that a hook reads and may print.

use std::collections::BTreeSet;

use hookloop_core::hook_protocol::{AnswerRules, CapturedOutput, ProcessExit, interpret};
use hookloop_core::options::{AllowedAnswers, OnFailure};
use hookloop_core::point::PointKind;
use serde_json::Value;

use crate::book::structure::pages_under;
use crate::documents::{blocks, table};

const GATE: AnswerRules = AnswerRules {
    kind: PointKind::Gate,
    on_failure: OnFailure::Closed,
    answers: AllowedAnswers::Json,
};
const PAGE: &str = "docs/reference/protocol.md";

/// Returns the inputs of hooks that the pages of the hook points show.
fn inputs() -> Vec<Value> {
    let pages = pages_under("points").into_iter().filter(|page| !page.ends_with("README.md"));
    let input = |page: String| {
        let recorded = blocks(&format!("docs/{page}")).into_iter().find(|b| b.language == "json");
        serde_json::from_str(&recorded.unwrap().text).unwrap()
    };
    pages.map(input).collect()
}

fn names(objects: &[&Value]) -> BTreeSet<String> {
    objects.iter().flat_map(|object| object.as_object().unwrap().keys().cloned()).collect()
}

#[test]
fn every_field_of_the_input_is_there() {
    let inputs = inputs();
    let all: Vec<&Value> = inputs.iter().collect();
    let mut outer = names(&all);
    assert!(outer.remove("hookloop"));
    assert_eq!(table(PAGE, "Input", 0), outer);
    let ours: Vec<&Value> = inputs.iter().map(|input| &input["hookloop"]).collect();
    assert_eq!(table(PAGE, "Input", 1), names(&ours));
}

/// Fields of hookloop are parsed strictly; the error for an unknown field lists the known ones.
#[test]
fn every_field_of_an_answer_is_there() {
    let stdout = r#"{"hookloop": {"nonsense": 1}}"#;
    let printed = CapturedOutput { stdout, stderr: "", is_cut: false };
    let outcome = interpret(&ProcessExit::Exited(0), printed, GATE);
    let told = outcome.reason.unwrap();
    let known: BTreeSet<String> = told.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert!(known.len() > 5, "{told}");
    assert_eq!(table(PAGE, "Answer", 1), known);
}

/// Fields of other dialects are parsed leniently, because their owners add fields. So each one is
/// tried.
#[test]
fn every_other_field_of_an_answer_means_something() {
    let plain = outcome("{}");
    let mut tried = BTreeSet::new();
    let mut check = |name: &str, answer: &str| {
        assert_ne!(outcome(answer), plain, "{answer} means nothing");
        tried.insert(name.to_owned());
    };
    check("decision", r#"{"decision": "block"}"#);
    check("reason", r#"{"reason": "why"}"#);
    check("continue", r#"{"continue": false}"#);
    check("systemMessage", r#"{"systemMessage": "text"}"#);
    check("suppressOutput", r#"{"suppressOutput": true}"#);
    let context = r#"{"hookSpecificOutput": {"additionalContext": "text"}}"#;
    check("hookSpecificOutput.additionalContext", context);
    assert_ne!(
        outcome(r#"{"continue": false, "stopReason": "why"}"#),
        outcome(r#"{"continue": false}"#)
    );
    tried.insert("stopReason".to_owned());
    assert_eq!(table(PAGE, "Answer", 0), tried);
}

fn outcome(stdout: &str) -> String {
    let printed = CapturedOutput { stdout, stderr: "", is_cut: false };
    format!("{:?}", interpret(&ProcessExit::Exited(0), printed, GATE))
}
