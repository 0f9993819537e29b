//! Captured output of real test runners, and the parsed results.
#![expect(clippy::unwrap_used, reason = "tests")]

mod anything;
mod outputs;
mod records;

use std::collections::BTreeSet;
use std::path::Path;

use hookloop_core::checks::{self, Report};
use hookloop_core::feedback::{Feedback, GateFailure, GateOutput, feedback};

/// Returns the output of a runner, such as `cargo/some`.
fn captured(name: &str) -> String {
    let outputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checks/outputs");
    std::fs::read_to_string(outputs.join(format!("{name}.txt"))).unwrap()
}

fn report(name: &str) -> Report {
    checks::read(&captured(name)).unwrap()
}

fn names(report: &Report) -> Vec<&str> {
    report.failing.iter().map(|check| check.name.as_str()).collect()
}

/// Returns feedback about a gate without records.
fn told(output: &str, before: Option<&BTreeSet<String>>, max_bytes: usize) -> Feedback {
    let output = GateOutput::from(output);
    let failure = GateFailure { gate: "tests", reason: None, output, records: None, before };
    feedback(&failure, max_bytes)
}

#[test]
fn passing_runs_have_no_report() {
    for runner in ["cargo", "nextest", "pytest", "vitest", "jest", "go"] {
        assert_eq!(checks::read(&captured(&format!("{runner}/pass"))), None, "{runner}");
    }
}

#[test]
fn coloured_output_has_the_same_failing_checks() {
    for runner in ["cargo", "nextest", "pytest", "vitest", "jest"] {
        let (plain, colour) =
            (report(&format!("{runner}/some")), report(&format!("{runner}/colour")));
        let sorted = |report: &Report| -> BTreeSet<String> {
            names(report).into_iter().map(str::to_owned).collect()
        };
        assert_eq!(sorted(&plain), sorted(&colour), "{runner}");
        assert!(colour.failing.iter().all(|check| !check.cause.contains('\x1b')), "{runner}");
    }
}

#[test]
fn checks_each_have_a_cause() {
    for runner in ["cargo", "nextest", "pytest", "vitest", "jest", "go"] {
        for run in ["some", "one", "next", "broken"] {
            for check in report(&format!("{runner}/{run}")).failing {
                assert!(!check.cause.is_empty(), "{runner}/{run}: {}", check.name);
            }
        }
    }
}

#[test]
fn feedback_separates_fixed_new_and_still_failing_checks() {
    let check = |runner: &str, fixed: &str, new: &str| {
        let first = told(&captured(&format!("{runner}/one")), None, 8_000);
        let output = captured(&format!("{runner}/next"));
        let second = told(&output, Some(&first.failing), 8_000);
        let expected = format!(
            "\n\nFixed since the run before, or not run this time:\n- {fixed}\n\nNew:\n- {new}\n\nWhy:\n"
        );
        assert!(second.text.contains(&expected), "{}", second.text);
        assert_eq!(second.failing, BTreeSet::from([format!("tests: {new}")]));
        let third = told(&output, Some(&second.failing), 8_000);
        assert!(third.text.contains(&format!("\n\nStill failing:\n- {new}\n\nWhy:\n")));
    };
    check("cargo", "orders_are_kept", "cart::tests::sums");
    check("nextest", "shop::orders orders_are_kept", "shop cart::tests::sums");
    check("pytest", "tests/test_text.py::test_greeting", "tests/test_cart.py::TestCart::test_sums");
    check(
        "vitest",
        "src/text.test.js > greets › the world",
        "src/cart.test.js > cart > total > adds prices up",
    );
    check(
        "jest",
        "src/text.test.js › greets › the world",
        "src/cart.test.js › cart › total › adds prices up",
    );
    check("go", "example.com/shop/text TestGreets", "example.com/shop/cart TestLoad");
}

#[test]
fn unknown_output_has_no_report() {
    for output in [
        "",
        "\n\n\n",
        "all good",
        "FAILED to connect",
        "FAIL",
        "error: no such file",
        "make: *** [Makefile:3: check] Error 1",
        "ERROR tests/x.py - not a summary",
        "  ● a bullet in a list",
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n--- FAIL: half a line",
        "# Heading\ncart/cart.go is a file\n",
        "warning: unused variable\n --> src/a.rs:1:1\n",
    ] {
        assert_eq!(checks::read(output), None, "{output:?}");
    }
}
