use std::path::Path;

use hookloop_core::checks::CheckRecords;

use super::*;

fn records(lines: &[&str]) -> CheckRecords {
    let mut sink = ReportSink::new("go test", Path::new("/project"));
    read(&lines.join("\n"), &mut sink).unwrap();
    sink.finish()
}

fn outcomes(records: &CheckRecords) -> Vec<(&str, CheckOutcome)> {
    records.checks.iter().map(|check| (check.id.as_str(), check.outcome)).collect()
}

#[test]
fn a_package_that_does_not_end_is_broken() {
    let start = r#"{"Action": "start", "Package": "a"}"#;
    let pass = r#"{"Action": "pass", "Package": "a"}"#;
    assert!(records(&[start]).is_broken);
    let passed = records(&[start, pass]);
    assert!(!passed.is_broken);
    assert_eq!(passed.counts.total(), 0);
}

#[test]
fn a_test_that_does_not_end_is_a_failure() {
    let records = records(&[
        r#"{"Action": "run", "Package": "a", "Test": "TestX"}"#,
        r#"{"Action": "output", "Package": "a", "Test": "TestX", "Output": "half\n"}"#,
        r#"{"Action": "pass", "Package": "a"}"#,
    ]);
    assert_eq!(outcomes(&records), [("a.TestX", CheckOutcome::Failed)]);
    assert_eq!(records.checks[0].cause, "The test did not finish.\nhalf");
    assert!(records.is_broken);
}

#[test]
fn a_benchmark_ends_without_an_event() {
    let run = r#"{"Action": "run", "Package": "a", "Test": "BenchmarkX"}"#;
    let line =
        r#"{"Action": "output", "Package": "a", "Test": "BenchmarkX", "Output": "1 4 ns/op\n"}"#;
    let pass = r#"{"Action": "pass", "Package": "a"}"#;
    let fail = r#"{"Action": "fail", "Package": "a"}"#;
    for (lines, expected) in [
        (vec![run, pass], CheckOutcome::Passed),
        (vec![run, line, fail], CheckOutcome::Passed),
        (vec![run, fail], CheckOutcome::Failed),
        (vec![run], CheckOutcome::Failed),
    ] {
        assert_eq!(outcomes(&records(&lines))[0], ("a.BenchmarkX", expected), "{lines:?}");
    }
}

#[test]
fn a_test_that_runs_twice_is_two_checks() {
    let run = r#"{"Action": "run", "Package": "a", "Test": "TestX"}"#;
    let pass = r#"{"Action": "pass", "Package": "a", "Test": "TestX", "Elapsed": 0.25}"#;
    let fail = r#"{"Action": "fail", "Package": "a", "Test": "TestX"}"#;
    let records = records(&[run, pass, run, fail, r#"{"Action": "fail", "Package": "a"}"#]);
    assert_eq!(
        outcomes(&records),
        [("a.TestX", CheckOutcome::Passed), ("a.TestX #2", CheckOutcome::Failed)]
    );
    assert_eq!(records.checks[0].ms, Some(250));
    assert!(!records.is_broken);
}

#[test]
fn a_failed_build_without_a_package_is_a_failed_check() {
    let records = records(&[
        r#"{"ImportPath": "a/b [a/b.test]", "Action": "build-output", "Output": "undefined: x\n"}"#,
        r#"{"ImportPath": "a/b [a/b.test]", "Action": "build-fail"}"#,
    ]);
    assert_eq!(outcomes(&records), [("a/b", CheckOutcome::Failed)]);
    assert_eq!(records.checks[0].cause, "undefined: x");
    assert!(records.is_broken);
}

#[test]
fn the_printed_text_has_all_output_in_order() {
    let text = "# before\n{\"Action\": \"output\", \"Package\": \"a\", \"Output\": \"one\\n\"}\n\
        {\"Action\": \"pass\", \"Package\": \"a\"}\n\
        {\"Action\": \"output\", \"Package\": \"a\", \"Output\": \"two\\n\"}\n{ cut";
    assert_eq!(printed(text), "# before\none\ntwo\n{ cut\n");
}
