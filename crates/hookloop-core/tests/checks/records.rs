//! All checks of each captured output.

use hookloop_core::checks::{self, CheckCounts, CheckOutcome, CheckRecords};
use hookloop_core::feedback::{Feedback, GateFailure, GateOutput, feedback};

use super::{captured, names, report};

fn records(name: &str) -> CheckRecords {
    checks::records(&captured(name)).unwrap()
}

fn counts(passed: u64, failed: u64, skipped: u64) -> CheckCounts {
    CheckCounts { passed, failed, skipped }
}

/// Returns the ids of an outcome.
fn ids(records: &CheckRecords, outcome: CheckOutcome) -> Vec<&str> {
    let of_outcome = records.checks.iter().filter(|check| check.outcome == outcome);
    of_outcome.map(|check| check.id.as_str()).collect()
}

#[test]
fn outputs_that_list_all_checks_have_complete_records() {
    let check = |output: &str, source: &str, expected: CheckCounts| {
        let records = records(output);
        assert_eq!((records.source, records.counts), (source, expected), "{output}");
        assert_eq!(records.checks.len() as u64, expected.total(), "{output}");
        assert!(records.is_complete, "{output}");
    };
    check("cargo/pass", "cargo test", counts(6, 0, 0));
    check("cargo/some", "cargo test", counts(3, 5, 0));
    check("cargo/colour", "cargo test", counts(3, 5, 0));
    check("cargo/one", "cargo test", counts(5, 1, 0));
    check("cargo/next", "cargo test", counts(3, 1, 0));
    check("cargo/binaries", "cargo test", counts(8, 0, 3));
    check("cargo/show-output", "cargo test", counts(8, 0, 3));
    check("cargo/same-name", "cargo test", counts(5, 1, 2));
    check("nextest/pass", "cargo nextest", counts(6, 0, 0));
    check("nextest/some", "cargo nextest", counts(2, 4, 0));
    check("nextest/colour", "cargo nextest", counts(2, 4, 0));
    check("nextest/next", "cargo nextest", counts(4, 1, 0));
    check("nextest/abort", "cargo nextest", counts(1, 1, 0));
    check("nextest/retries", "cargo nextest", counts(1, 1, 0));
    check("nextest/statuses", "cargo nextest", counts(5, 1, 2));
    check("pytest/verbose", "pytest", counts(4, 4, 0));
    check("pytest/outcomes", "pytest", counts(5, 3, 4));
    check("pytest/workers", "pytest", counts(5, 3, 4));
    check("vitest/verbose", "vitest", counts(3, 3, 0));
    check("vitest/outcomes", "vitest", counts(6, 1, 3));
    check("jest/verbose", "jest", counts(3, 3, 0));
    check("jest/outcomes", "jest", counts(5, 1, 3));
    // The parent of a subtest that fails is not counted.
    check("go/verbose", "go test", counts(3, 3, 1));
}

#[test]
fn outputs_that_list_only_failures_have_the_counts_of_their_summary() {
    let check = |output: &str, source: &str, expected: CheckCounts| {
        let records = records(output);
        assert_eq!((records.source, records.counts), (source, expected), "{output}");
        assert!(!records.is_complete, "{output}");
    };
    check("cargo/quiet", "cargo test", counts(3, 5, 0));
    check("cargo/abort", "cargo test", counts(0, 1, 0));
    check("cargo/broken", "cargo test", counts(0, 2, 0));
    check("nextest/broken", "cargo test", counts(0, 2, 0));
    check("pytest/pass", "pytest", counts(8, 0, 0));
    check("pytest/some", "pytest", counts(4, 4, 0));
    check("pytest/quiet", "pytest", counts(4, 4, 0));
    check("pytest/line", "pytest", counts(4, 4, 0));
    check("pytest/broken", "pytest", counts(0, 2, 0));
    check("vitest/pass", "vitest", counts(6, 0, 0));
    check("vitest/some", "vitest", counts(3, 3, 0));
    check("vitest/dot", "vitest", counts(3, 3, 0));
    check("vitest/broken", "vitest", counts(6, 2, 0));
    check("jest/pass", "jest", counts(6, 0, 0));
    check("jest/some", "jest", counts(3, 3, 0));
    check("jest/broken", "jest", counts(6, 2, 0));
    check("go/pass", "go test", counts(0, 0, 0));
    check("go/some", "go test", counts(0, 3, 0));
    check("go/broken", "go test", counts(0, 2, 0));
    check("go/panic", "go test", counts(0, 1, 0));
}

#[test]
fn records_have_the_failing_checks_of_the_report() {
    // Names that several checks have are not in this list.
    let outputs = [
        "cargo/some",
        "cargo/quiet",
        "cargo/one",
        "cargo/next",
        "cargo/abort",
        "cargo/broken",
        "cargo/colour",
        "nextest/some",
        "nextest/one",
        "nextest/abort",
        "nextest/retries",
        "nextest/statuses",
        "pytest/some",
        "pytest/verbose",
        "pytest/no-summary",
        "pytest/no-traceback",
        "pytest/broken",
        "pytest/line",
        "pytest/outcomes",
        "pytest/workers",
        "vitest/some",
        "vitest/verbose",
        "vitest/dot",
        "vitest/broken",
        "vitest/outcomes",
        "jest/some",
        "jest/verbose",
        "jest/broken",
        "jest/outcomes",
        "go/some",
        "go/verbose",
        "go/broken",
        "go/vet",
        "go/import",
        "go/panic",
        "go/timeout",
    ];
    for output in outputs {
        assert_eq!(records(output).report(), Some(report(output)), "{output}");
    }
}

#[test]
fn passed_and_skipped_checks_have_the_names_that_failing_ones_have() {
    use CheckOutcome::{Passed, Skipped};
    let check = |output: &str, outcome: CheckOutcome, expected: &[&str]| {
        assert_eq!(ids(&records(output), outcome), expected, "{output}");
    };
    check(
        "cargo/next",
        Passed,
        &["cart::tests::loads", "cart::tests::empty", "cart::tests::overflows"],
    );
    check("nextest/abort", Passed, &["shop::ends sleeps"]);
    check("nextest/statuses", Skipped, &["a tests::later", "a tests::later_too"]);
    let more = "tests/test_shop.py::test_more";
    check(
        "pytest/outcomes",
        Passed,
        &[
            "tests/test_shop.py::test_passes",
            &format!("{more}[a b]"),
            &format!("{more}[c PASSED d]"),
            &format!("{more}[[1]]"),
            "tests/test_shop.py::test_xpasses",
        ],
    );
    let skipped = [
        "tests/test_shop.py::test_skipped",
        "tests/test_shop.py::test_params[a b]",
        "tests/test_shop.py::test_params[c PASSED d]",
        "tests/test_shop.py::test_xfails",
    ];
    check("pytest/outcomes", Skipped, &skipped);
    let cart = "src/cart.test.js > ";
    let skipped =
        [format!("{cart}later"), format!("{cart}one day"), format!("{cart}cart > no > x")];
    check("vitest/outcomes", Skipped, &skipped.each_ref().map(String::as_str));
    let passed = [
        "src/cart.test.js > sums",
        "src/cart.test.js > waits 5ms",
        "src/cart.test.js > cart > total > same",
        "src/cart.test.js > cart > total > same #2",
        "src/slow.test.js > slow",
        "src/slow.test.js > retried",
    ];
    check("vitest/outcomes", Passed, &passed);
    let passed = [
        "src/cart.test.js › sums",
        "src/cart.test.js › cart › after (3 ms)",
        "src/cart.test.js › cart › total › same",
        "src/cart.test.js › cart › total › same #2",
        "src/slow.test.js › slow",
    ];
    check("jest/outcomes", Passed, &passed);
    let cart = "src/cart.test.js › ";
    let skipped =
        [format!("{cart}later"), format!("{cart}one day"), format!("{cart}cart › no › x")];
    check("jest/outcomes", Skipped, &skipped.each_ref().map(String::as_str));
    check("go/verbose", Skipped, &["example.com/shop/cart TestSkip"]);
}

#[test]
fn a_name_in_two_binaries_gets_the_target_of_the_later_one() {
    let passed = records("cargo/binaries");
    let expected = [
        "tests::works",
        "tests::panics",
        "integrates",
        "flaky",
        "b tests::works",
        "tests::other",
        "a/src/lib.rs - two",
        "a/src/lib.rs - two #2",
    ];
    assert_eq!(ids(&passed, CheckOutcome::Passed), expected);
    let ignored = ["tests::later", "tests::later_too", "a/src/lib.rs - two #3"];
    assert_eq!(ids(&passed, CheckOutcome::Skipped), ignored);
    let failed = records("cargo/same-name");
    assert_eq!(ids(&failed, CheckOutcome::Failed), ["b tests::works"]);
    assert!(failed.checks[0].cause.starts_with("thread 'tests::works'"), "{failed:?}");
    assert_eq!(names(&report("cargo/same-name")), ["tests::works"], "reports have no targets");
}

#[test]
fn records_have_the_durations_that_the_output_has() {
    let check = |output: &str, id: &str, ms: Option<u64>| {
        let records = records(output);
        let found = records.checks.iter().find(|check| check.id == id);
        assert_eq!(found.map(|check| check.ms), Some(ms), "{output}: {id}");
    };
    check("nextest/statuses", "a tests::panics", Some(113));
    check("nextest/statuses", "b tests::works", Some(129));
    check("nextest/statuses", "a::it flaky", Some(5));
    check("nextest/statuses", "a tests::later", None);
    check("vitest/outcomes", "src/slow.test.js > slow", Some(1_203));
    check("jest/outcomes", "src/slow.test.js › slow", Some(1_210));
    check("jest/verbose", "src/cart.test.js › loads a b", None);
    check("go/verbose", "example.com/shop/cart TestLoad", Some(0));
    check("pytest/verbose", "tests/test_text.py::test_shout", None);
}

#[test]
fn parts_of_an_output_are_not_complete() {
    for name in ["cargo/pass", "nextest/pass", "pytest/verbose", "vitest/verbose", "jest/verbose"] {
        let output = captured(name);
        let lines: Vec<&str> = output.lines().collect();
        for missing in 0..lines.len() {
            let part = [&lines[..missing], &lines[missing + 1..]].concat().join("\n");
            let whole = records(name).checks.len();
            let Some(records) = checks::records(&part) else { continue };
            let has_all = records.checks.len() >= whole;
            assert!(has_all || !records.is_complete, "{name} without {:?}", lines[missing]);
        }
        let cut = format!("{}\n[… 1,234 bytes (5 lines) left out …]\n{output}", lines[0]);
        assert!(!checks::records(&cut).unwrap().is_complete, "{name}");
    }
}

#[test]
fn records_of_two_runners_are_those_of_the_failing_one() {
    let both = format!("{}\n{}", captured("cargo/pass"), captured("pytest/verbose"));
    let records = checks::records(&both).unwrap();
    assert_eq!((records.source, records.is_complete), ("pytest", false));
    let both = format!("{}\n{}", captured("nextest/pass"), captured("cargo/pass"));
    let records = checks::records(&both).unwrap();
    assert_eq!((records.source, records.is_complete), ("cargo nextest", false));
}

#[test]
fn unknown_output_has_no_records() {
    for output in [
        "",
        "all good",
        "test connection ... ok\n",
        "ok 1 - a\nok 2 - b\n1..2\n",
        "5 apples in 3 boxes",
        "3 passed",
        "Summary [3 files] done",
        "  ✓ built in 5ms",
        " ✓ src/a.test.js > a 5ms",
        "Tests: 5 passed",
        "Test Suites: unknown\nTests: many",
        "PASS",
        "--- PASS: TestA (0.00s)",
        "a.py::test_a PASSED",
        "running 3 tests",
    ] {
        assert_eq!(checks::records(output), None, "{output:?}");
    }
}

#[test]
fn feedback_with_records_knows_which_checks_passed() {
    let told = |output: &str, before: Option<&Feedback>| {
        let (text, records) = (captured(output), records(output));
        let failure = GateFailure {
            gate: "tests",
            reason: None,
            output: GateOutput::from(&text),
            records: Some(&records),
            before: before.map(|before| &before.failing),
        };
        feedback(&failure, 8_000)
    };
    let check = |first: &str, second: &str, expected: &str| {
        let second = told(second, Some(&told(first, None)));
        assert!(second.text.contains(expected), "{expected}\n{}", second.text);
    };
    let new = "\n\nNew:\n- cart::tests::sums\n";
    // Cargo does not run the other binaries after a failure.
    check("cargo/one", "cargo/next", &format!("\n\nNot run this time:\n- orders_are_kept{new}"));
    let new = "\n\nNew:\n- shop cart::tests::sums\n";
    let fixed = "\n\nFixed since the run before:\n- shop::orders orders_are_kept";
    check("nextest/one", "nextest/next", &format!("{fixed}{new}"));
    let fixed =
        "\n\nFixed since the run before, or not run this time:\n- src/text.test.js › greets";
    check("jest/one", "jest/next", fixed);
}
