use std::path::Path;

use hookloop_core::checks::CheckRecords;

use super::*;

fn records(run: &str) -> CheckRecords {
    let mut sink = ReportSink::new("sarif", Path::new("/my project"));
    let text = format!(r#"{{"version": "2.1.0", "runs": [{{{run}}}]}}"#);
    read(&text, &mut sink).unwrap();
    sink.finish()
}

fn check_outcome(finding: &str, expected: CheckOutcome) {
    let rules = r#""tool": {"driver": {"rules": [{"id": "A"},
        {"id": "B", "defaultConfiguration": {"level": "error"}}]},
        "extensions": [{"rules": [{"id": "C", "defaultConfiguration": {"level": "error"}}]}]}"#;
    let records = records(&format!(r#""results": [{{{finding}}}], {rules}"#));
    assert_eq!(records.checks[0].outcome, expected, "{finding}");
    assert!(!records.is_broken);
}

#[test]
fn only_errors_fail() {
    for (finding, expected) in [
        (r#""level": "error""#, CheckOutcome::Failed),
        (r#""level": "fatal""#, CheckOutcome::Failed),
        (r#""level": "warning""#, CheckOutcome::Skipped),
        (r#""level": "note""#, CheckOutcome::Skipped),
        (r#""level": "none""#, CheckOutcome::Skipped),
        (r#""level": "error", "kind": "fail""#, CheckOutcome::Failed),
        (r#""level": "error", "kind": "strange""#, CheckOutcome::Failed),
        (r#""level": "error", "kind": "pass""#, CheckOutcome::Passed),
        (r#""level": "error", "kind": "review""#, CheckOutcome::Skipped),
        (r#""level": "error", "baselineState": "absent""#, CheckOutcome::Skipped),
        (r#""level": "error", "baselineState": "unchanged""#, CheckOutcome::Failed),
    ] {
        check_outcome(finding, expected);
    }
}

#[test]
fn a_finding_without_a_level_has_that_of_its_rule() {
    for (finding, expected) in [
        (r#""ruleId": "A""#, CheckOutcome::Skipped),
        (r#""ruleId": "B""#, CheckOutcome::Failed),
        (r#""ruleId": "B/1""#, CheckOutcome::Failed),
        (r#""ruleIndex": 1"#, CheckOutcome::Failed),
        (r#""rule": {"index": 1}"#, CheckOutcome::Failed),
        (r#""rule": {"id": "C"}"#, CheckOutcome::Failed),
        (r#""ruleIndex": -1"#, CheckOutcome::Skipped),
        (r#""ruleId": "B", "level": "note""#, CheckOutcome::Skipped),
    ] {
        check_outcome(finding, expected);
    }
}

#[test]
fn suppressions_count_unless_one_is_rejected() {
    for (suppressions, expected) in [
        ("null", CheckOutcome::Failed),
        ("[]", CheckOutcome::Failed),
        (r#"[{"kind": "inSource"}]"#, CheckOutcome::Skipped),
        (r#"[{"status": "accepted"}]"#, CheckOutcome::Skipped),
        (r#"[{"status": "accepted"}, {"status": "rejected"}]"#, CheckOutcome::Failed),
        (r#"[{"status": "underReview"}]"#, CheckOutcome::Failed),
    ] {
        let finding = format!(r#""level": "error", "suppressions": {suppressions}"#);
        check_outcome(&finding, expected);
    }
}

#[test]
fn the_line_is_in_the_cause_but_not_in_the_id() {
    let finding = |location: &str, line: u32| {
        format!(
            r#"{{"ruleId": "B", "level": "error", "message": {{"text": "bad"}}, "locations": [{{"physicalLocation":
            {{"artifactLocation": {location}, "region": {{"startLine": {line}}}}}}}]}}"#
        )
    };
    let by_uri = finding(r#"{"uri": "file:///my%20project/src/a.rs"}"#, 3);
    let by_number = finding(r#"{"index": 0}"#, 4);
    let artifacts = r#"[{"location": {"uri": "src/a.rs"}}]"#;
    let records =
        records(&format!(r#""results": [{by_uri}, {by_number}], "artifacts": {artifacts}"#));
    let found: Vec<(&str, &str)> =
        records.checks.iter().map(|check| (check.id.as_str(), check.cause.as_str())).collect();
    assert_eq!(found, [("B src/a.rs", "src/a.rs:3: bad"), ("B src/a.rs #2", "src/a.rs:4: bad")]);
}

#[test]
fn a_run_that_failed_or_has_no_results_is_broken() {
    for (run, is_broken, failed) in [
        (r#""results": []"#, false, 0),
        (r#""results": null"#, true, 0),
        (r#""tool": {}"#, true, 0),
        (r#""results": [], "invocations": [{"executionSuccessful": true}]"#, false, 0),
        (r#""results": [], "invocations": [{"executionSuccessful": false}]"#, true, 0),
        (
            r#""results": [], "invocations": [{"toolExecutionNotifications": [{"level": "error"}]}]"#,
            true,
            1,
        ),
        (r#""results": [], "invocations": [{"toolExecutionNotifications": [{}]}]"#, false, 0),
    ] {
        let records = records(run);
        assert_eq!((records.is_broken, records.counts.failed), (is_broken, failed), "{run}");
    }
}

#[test]
fn tables_are_bounded() {
    let mut sink = ReportSink::new("sarif", Path::new("/"));
    let files = vec!["{}"; TABLE_MAX + 1].join(",");
    let text = format!(r#"{{"runs": [{{"results": [], "artifacts": [{files}]}}]}}"#);
    let error = read(&text, &mut sink).unwrap_err();
    assert!(matches!(error, ReportError::TooMany { limit: TABLE_MAX, .. }), "{error}");
}
