//! The evidence behind a receipt in words: the counts of its checks, and the place where the gate ran.

use hookloop_core::checks::{CheckCounts, CheckOutcome};
use hookloop_core::quantity::counted_items;
use hookloop_core::session::Receipt;
use hookloop_core::session::facts::{
    BaseTests, BuildState, GateRoom, RoomKind, StrengthStatus, TestStrength,
};

use crate::sanitize::plain;

/// Counts checks by outcome: "412 passed, 2 failed, 3 skipped".
pub(crate) fn check_counts(counts: CheckCounts) -> String {
    let CheckCounts { passed, failed, skipped } = counts;
    let mut text = format!("{passed} {}", CheckOutcome::Passed.name());
    for (count, outcome) in [(failed, CheckOutcome::Failed), (skipped, CheckOutcome::Skipped)] {
        if count > 0 {
            text.push_str(&format!(", {count} {}", outcome.name()));
        }
    }
    text
}

/// Names the directory in which a gate ran.
pub(crate) fn room(room: &GateRoom) -> &'static str {
    match (room.kind, room.build) {
        (RoomKind::Here, _) => "in the working directory",
        (RoomKind::Clean, Some(BuildState::Warm)) => "clean room, warm",
        (RoomKind::Clean, Some(BuildState::Cold)) => "clean room, cold",
        (RoomKind::Clean, None) => "clean room",
    }
}

/// Returns the end of a line about a receipt: ": 412 passed, 3 skipped · clean room, cold".
pub(crate) fn evidence(receipt: &Receipt) -> String {
    let checks =
        receipt.checks.map_or_else(String::new, |counts| format!(": {}", check_counts(counts)));
    let place = match (&receipt.reused_from, &receipt.room) {
        (Some(session), _) => {
            format!(" · passed on this tree before (session {})", plain(session))
        }
        (None, Some(place)) => format!(" · {}", room(place)),
        (None, None) => String::new(),
    };
    let tests = receipt.base_tests.as_deref().map_or_else(String::new, base_tests);
    let strength = receipt.strength.as_deref().map_or_else(String::new, strength);
    format!("{checks}{place}{tests}{strength}")
}

/// Returns the end of a line about the strength of tests: " · strength: 85 % of 20 mutants".
fn strength(strength: &TestStrength) -> String {
    match (strength.status, strength.score) {
        (StrengthStatus::Measured, Some(score)) => {
            let tested = usize::try_from(strength.mutants.tested()).unwrap_or(usize::MAX);
            format!(" · strength: {score} % of {}", counted_items(tested, "mutant", "mutants"))
        }
        (StrengthStatus::NothingToMutate, _) => " · strength: nothing to mutate".to_owned(),
        _ => " · strength: unknown".to_owned(),
    }
}

/// Returns the end of a line about the tests of the base: " · base: 2 findings, 1 allowed".
fn base_tests(tests: &BaseTests) -> String {
    let known = match tests.known_failures {
        0 => String::new(),
        count => format!(" · {count} failed before the work, too"),
    };
    format!("{known}{}", base_findings(tests))
}

fn base_findings(tests: &BaseTests) -> String {
    let count = tests.findings.len() as u64 + tests.more;
    let allowed = tests.findings.iter().filter(|finding| finding.allowed_by.is_some()).count();
    match (&tests.base, count, allowed) {
        (None, ..) => " · base: none".to_owned(),
        (Some(_), 0, _) => " · base: its tests hold".to_owned(),
        (Some(_), count, 0) => {
            format!(
                " · base: {}",
                counted_items(usize::try_from(count).unwrap_or(usize::MAX), "finding", "findings")
            )
        }
        (Some(_), count, allowed) => {
            let findings =
                counted_items(usize::try_from(count).unwrap_or(usize::MAX), "finding", "findings");
            format!(" · base: {findings}, {allowed} allowed")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_receipt_tells_its_checks_and_the_place_of_its_gate() {
        let check = |fields: Value, expected: &str| {
            let mut receipt = json!({
                "gate": "tests", "point": "stop", "definition": "x", "status": "passed",
                "output_sha256": "", "duration_ms": 1,
            });
            receipt.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let receipt: Receipt = serde_json::from_value(receipt).unwrap();
            assert_eq!(evidence(&receipt), expected);
        };
        let counts = json!({"passed": 412, "failed": 0, "skipped": 3});
        let room = |kind: &str, build: Value| json!({"kind": kind, "build": build});
        check(json!({}), "");
        check(json!({ "checks": &counts }), ": 412 passed, 3 skipped");
        check(
            json!({ "checks": &counts, "room": room("clean", json!("cold")) }),
            ": 412 passed, 3 skipped · clean room, cold",
        );
        check(json!({ "room": room("clean", json!("warm")) }), " · clean room, warm");
        check(json!({ "room": room("here", Value::Null) }), " · in the working directory");
        check(
            json!({ "room": room("clean", json!("cold")), "reused_from": "s5" }),
            " · passed on this tree before (session s5)",
        );
        let finding = |allowed: Value| json!({"kind": "gone", "check": "a", "cause": "", "allowed_by": allowed});
        let tests = |findings: Value| json!({"base_tests": {"base": "t", "findings": findings}});
        check(json!({"base_tests": {}}), " · base: none");
        check(
            json!({"base_tests": {"base": "t", "known_failures": 2}}),
            " · 2 failed before the work, too · base: its tests hold",
        );
        check(tests(json!([])), " · base: its tests hold");
        check(tests(json!([finding(Value::Null)])), " · base: 1 finding");
        check(
            tests(json!([finding(Value::Null), finding(json!("may_change"))])),
            " · base: 2 findings, 1 allowed",
        );
        let strength = |status: &str, score: Value| {
            let mutants = json!({"killed": 17, "survived": 3});
            json!({"strength": {"status": status, "at_least": 80, "score": score, "mutants": mutants}})
        };
        check(strength("measured", json!(85)), " · strength: 85 % of 20 mutants");
        check(strength("nothing_to_mutate", Value::Null), " · strength: nothing to mutate");
        check(strength("engine_failed", Value::Null), " · strength: unknown");
        let failed = json!({"passed": 0, "failed": 2, "skipped": 0});
        check(json!({ "checks": failed }), ": 0 passed, 2 failed");
    }
}
