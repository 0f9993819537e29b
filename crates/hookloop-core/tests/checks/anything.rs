//! Output that is huge, truncated, mixed or not text.

use std::time::Duration;

use hookloop_core::checks::{self, FAILING_MAX, NAME_MAX};
use hookloop_core::feedback::feedback;
use proptest::prelude::*;

use super::captured;

const HUGE: usize = 10 * 1024 * 1024;
/// Enough for a debug build on a busy machine, and far less than a quadratic loop takes.
const TIME_MAX: Duration = Duration::from_secs(4);

/// Lines that have a meaning for one of the parsers.
const LINES: [&str; 34] = [
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
];

/// Returns the processor time of this thread, which does not include other processes.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

#[test]
fn huge_output_is_read_within_the_time_limit() {
    let mut outputs: Vec<(String, String)> = LINES
        .iter()
        .map(|line| ((*line).to_owned(), format!("{line}\n").repeat(HUGE / (line.len() + 1))))
        .collect();
    let mixed = LINES.join("\n") + "\n";
    outputs.push(("all of them".to_owned(), mixed.repeat(HUGE / mixed.len())));
    outputs.push(("one line".to_owned(), "x".repeat(HUGE)));
    let numbered = |number: usize| {
        format!(
            "--- FAIL: Test{number}/a/b (0.00s)\n---- t{number} stdout ----\n FAIL  f > {number}\n"
        )
    };
    outputs.push(("names".to_owned(), (0..150_000).map(numbered).collect()));
    for (about, output) in outputs {
        let begin = cpu_time();
        let made = feedback("gate", None, &output, None, 10_000);
        let used = cpu_time() - begin;
        assert!(used < TIME_MAX, "{about:?}: {used:?}");
        assert!(made.text.len() <= 10_000);
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
            let distinct: std::collections::BTreeSet<&str> =
                report.failing.iter().map(|check| check.name.as_str()).collect();
            prop_assert_eq!(distinct.len(), report.failing.len());
            prop_assert!(report.failing.iter().all(|check| check.name.len() <= NAME_MAX));
        }
        let first = feedback("gate", Some("no"), &output, None, max_bytes);
        prop_assert!(first.text.len() <= max_bytes);
        let second = feedback("gate", None, &output, Some(&first.failing), max_bytes);
        prop_assert_eq!(first.failing, second.failing);
    }
}
