//! Output that is huge, truncated, mixed or not text.

use std::collections::BTreeSet;
use std::time::Duration;

use hookloop_core::checks::{self, CHECKS_MAX, CheckCounts, FAILING_MAX, NAME_MAX};
use proptest::prelude::*;

use super::{captured, told};

const HUGE: usize = 10 * 1024 * 1024;
/// Bytes of an output that repeats one line. Only 2 MiB are read.
const FLOOD: usize = 3 * 1024 * 1024;
/// Enough for a debug build on a busy machine, and far less than a quadratic loop takes.
const TIME_MAX: Duration = Duration::from_secs(4);

/// Lines that have a meaning for one of the parsers.
const LINES: [&str; 66] = [
    "",
    "x",
    "FAIL",
    "FAIL\ta\t0.1s",
    "--- FAIL: TestA (0.00s)",
    "    --- FAIL: TestA/b (0.00s)",
    "=== RUN   TestA",
    "panic: no",
    "goroutine 1 [running]:",
    "# a",
    "a.go:1:2: no",
    "\tmore",
    "test a ... FAILED",
    "---- a stdout ----",
    "failures:",
    "error[E1]: no",
    "  --> a.rs:1:2",
    "error: test failed, to rerun pass `--lib`",
    "Caused by:",
    " Nextest run ID 1",
    "        FAIL [   0.010s] (2/6) a b",
    "     Summary [   0.2s] 1 test run",
    "= FAILURES =",
    "= short test summary info =",
    "__ test_a __",
    "FAILED a.py::test_a[x - y] - no",
    "E   no",
    "a.py:1: no",
    "1 failed in 0.1s",
    "FAIL a.js",
    "  ● a › b",
    " FAIL  a.js > b",
    "⎯⎯⎯ Failed Tests 1 ⎯⎯⎯",
    "\x1b[31mred\x1b[0m",
    "running 1 test",
    "running 2 tests",
    "test a ... ok",
    "test a ... ignored, later",
    "test src/a.rs - a (line 3) ... ok",
    "successes:",
    "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
    "test result: FAILED. 0 passed; 1 failed; 0 ignored",
    "     Running unittests src/lib.rs (target/debug/deps/a-0123456789abcdef)",
    "   Doc-tests a",
    "        PASS [   0.010s] (1/2) a b",
    "        SKIP [         ] (───) a c",
    "   FLAKY 2/2 [   0.010s] (2/2) a b",
    "     Summary [   0.2s] 2 tests run: 1 passed (1 flaky), 1 failed, 1 skipped",
    "= test session starts =",
    "a.py::test_a PASSED     [ 50%]",
    "a.py::test_a[x - y] FAILED     [ 50%]",
    "a.py::test_b SKIPPED (later)",
    "[gw0] [100%] XFAIL a.py::test_c",
    "= 1 failed, 1 passed, 1 skipped in 0.1s =",
    "--- PASS: TestA (0.00s)",
    "--- SKIP: TestB (0.00s)",
    "=== RUN   TestB",
    "ok  \ta\t0.1s",
    "PASS a.js",
    "  ✓ b (3 ms)",
    "  suite",
    "    ○ skipped c",
    "Test Suites: 1 passed, 1 total",
    "Tests:       1 skipped, 1 passed, 2 total",
    " ✓ a.js > b 3ms",
    "      Tests  1 failed | 1 passed (2)",
];

/// Returns the processor time of this thread, which does not include other processes.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

/// Returns outputs that are larger than the part that is read, each with a name.
fn huge_outputs() -> Vec<(String, String)> {
    let flood = |line: &str| format!("{line}\n").repeat(FLOOD / (line.len() + 1));
    let mut outputs: Vec<(String, String)> =
        LINES.iter().map(|line| ((*line).to_owned(), flood(line))).collect();
    let mixed = LINES.join("\n") + "\n";
    outputs.push(("all of them".to_owned(), mixed.repeat(HUGE / mixed.len())));
    outputs.push(("one line".to_owned(), "x".repeat(HUGE)));
    let numbered = |number: usize| {
        format!(
            "--- FAIL: Test{number}/a/b (0.00s)\n---- t{number} stdout ----\n FAIL  f > {number}\n"
        )
    };
    outputs.push(("names".to_owned(), (0..150_000).map(numbered).collect()));
    outputs
}

#[test]
fn huge_output_is_read_within_the_time_limit() {
    for (about, output) in huge_outputs() {
        let begin = cpu_time();
        let made = told(&output, None, 10_000);
        let used = cpu_time() - begin;
        assert!(used < TIME_MAX, "{about:?}: {used:?}");
        assert!(made.text.len() <= 10_000);
    }
}

#[test]
fn records_of_huge_output_are_read_within_the_time_limit() {
    for (about, output) in huge_outputs() {
        let begin = cpu_time();
        let records = checks::records(&output);
        let used = cpu_time() - begin;
        assert!(used < TIME_MAX, "{about:?}: {used:?}");
        let is_cut = records.is_none_or(|it| it.checks.len() <= CHECKS_MAX && !it.is_complete);
        assert!(is_cut, "{about:?}");
    }
}

#[test]
fn records_keep_failing_checks_beyond_their_limit() {
    let mut output = format!("running {} tests\n", CHECKS_MAX + 2);
    (0..=CHECKS_MAX).for_each(|number| output.push_str(&format!("test t{number} ... ok\n")));
    output.push_str("test last ... FAILED\n");
    output.push_str(&format!(
        "test result: FAILED. {} passed; 1 failed; 0 ignored\n",
        CHECKS_MAX + 1
    ));
    let records = checks::records(&output).unwrap();
    assert_eq!((records.checks.len(), records.is_complete), (CHECKS_MAX, false));
    assert_eq!(records.checks[0].id, "last");
    let passed = CHECKS_MAX as u64 + 1;
    assert_eq!(records.counts, CheckCounts { passed, failed: 1, skipped: 0 });
}

#[test]
fn long_names_take_no_time_for_each_check_below_them() {
    let long = "x".repeat(1_000_000);
    let lines = |line: &str| format!("{line}\n").repeat(500_000 / (line.len() + 1));
    let outputs = [
        format!(
            "     Running a.rs (target/{long}-0a)\nrunning 2 tests\n{}",
            lines("test a ... ok")
        ),
        format!("PASS {long}\n{}", lines("  ✓ a")),
        format!("PASS a.js\n  {long}\n{}", lines("    ✓ a")),
        format!("{}ok  \t{long}\t0.1s\n", lines("--- PASS: A (0.00s)")),
        format!("{}FAIL\t{long}\t0.1s\n", lines("--- FAIL: A (0.00s)")),
    ];
    for output in outputs {
        let begin = cpu_time();
        let records = checks::records(&output);
        let used = cpu_time() - begin;
        assert!(used < TIME_MAX, "{}: {used:?}", &output[..30]);
        let is_short = |id: &str| id.len() <= NAME_MAX;
        assert!(records.is_none_or(|it| it.checks.iter().all(|check| is_short(&check.id))));
    }
}

#[test]
fn truncated_output_invents_no_failing_checks() {
    for name in
        ["cargo/colour", "nextest/some", "pytest/some", "vitest/some", "jest/some", "go/some"]
    {
        let output = captured(name);
        let whole = checks::read(&output).unwrap();
        let cuts = (0..output.len()).step_by(7).filter(|at| output.is_char_boundary(*at));
        for at in cuts {
            for part in [&output[..at], &output[at..]] {
                let Some(report) = checks::read(part) else { continue };
                assert!(report.failing.len() <= whole.failing.len() + 2, "{name} cut at {at}");
            }
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(LINES.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,20}",
        1 => prop::collection::vec(any::<u8>(), 0..20)
            .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn reports_and_feedback_of_any_output_stay_within_limits(lines in prop::collection::vec(line(), 0..40), max_bytes in 0usize..600) {
        let output = lines.join("\n");
        let report = checks::read(&output);
        prop_assert_eq!(&report, &checks::read(&output));
        if let Some(report) = &report {
            prop_assert!((1..=FAILING_MAX).contains(&report.failing.len()));
            let distinct: BTreeSet<&str> =
                report.failing.iter().map(|check| check.name.as_str()).collect();
            prop_assert_eq!(distinct.len(), report.failing.len());
            prop_assert!(report.failing.iter().all(|check| check.name.len() <= NAME_MAX));
        }
        let records = checks::records(&output);
        prop_assert_eq!(&records, &checks::records(&output));
        if report.is_some() {
            prop_assert!(records.is_some());
        }
        if let Some(records) = &records {
            let ids: BTreeSet<&str> = records.checks.iter().map(|check| check.id.as_str()).collect();
            prop_assert_eq!(ids.len(), records.checks.len());
            prop_assert!(ids.iter().all(|id| !id.is_empty() && id.len() <= NAME_MAX));
            let mut listed = CheckCounts::default();
            records.checks.iter().for_each(|check| listed.add(check.outcome));
            prop_assert!(records.counts.passed >= listed.passed);
            prop_assert!(records.counts.failed >= listed.failed);
            prop_assert!(records.counts.skipped >= listed.skipped);
            prop_assert!(!records.is_complete || records.counts == listed);
            let is_failing = |check: &checks::Check| {
                // A check of a later binary, or the second of a name, has a longer id.
                let mut failing = records.failing().map(|failing| failing.id.as_str());
                failing.any(|id| id.contains(check.name.as_str()))
            };
            prop_assert!(report.iter().flat_map(|report| &report.failing).all(is_failing));
        }
        let first = told(&output, None, max_bytes);
        prop_assert!(first.text.len() <= max_bytes);
        let second = told(&output, Some(&first.failing), max_bytes);
        prop_assert_eq!(first.failing, second.failing);
    }
}
