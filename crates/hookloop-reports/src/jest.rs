//! Reads the JSON of Jest, and of Vitest's reporter `json`.

use hookloop_core::checks::CheckOutcome;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ReportError;
use crate::json::{self, LooseNumber, LossyText, ShortList, text_or_empty};
use crate::sink::{ReportSink, title, whole_ms};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestReport<'a> {
    #[serde(borrow)]
    test_results: &'a RawValue,
    success: Option<bool>,
    was_interrupted: Option<bool>,
    #[serde(default)]
    num_failed_tests: LooseNumber,
    #[serde(default)]
    num_runtime_error_test_suites: LooseNumber,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestFile<'a> {
    name: Option<LossyText>,
    status: Option<LossyText>,
    message: Option<LossyText>,
    #[serde(borrow)]
    assertion_results: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestAssertion {
    #[serde(default)]
    ancestor_titles: ShortList,
    title: Option<LossyText>,
    status: Option<LossyText>,
    #[serde(default)]
    duration: LooseNumber,
    #[serde(default)]
    failure_messages: ShortList,
}

pub(crate) fn read(text: &str, sink: &mut ReportSink) -> Result<(), ReportError> {
    let report: JestReport<'_> = json::document(text)?;
    let failed_before = sink.failed();
    json::each(text, report.test_results, |file: JestFile<'_>| read_file(text, &file, sink))?;
    let failed = sink.failed() - failed_before;
    let is_over = |number: LooseNumber, found: u64| number.0.is_some_and(|n| n > found as f64);
    if report.was_interrupted == Some(true)
        || (report.success == Some(false) && failed == 0)
        || is_over(report.num_failed_tests, failed)
        || is_over(report.num_runtime_error_test_suites, 0)
    {
        sink.set_broken();
    }
    Ok(())
}

fn read_file(text: &str, file: &JestFile<'_>, sink: &mut ReportSink) -> Result<(), ReportError> {
    let path = title(text_or_empty(&file.name));
    let failed_before = sink.failed();
    if let Some(assertions) = file.assertion_results {
        json::each(text, assertions, |assertion: JestAssertion| {
            let titles = assertion.ancestor_titles.0.iter().map(String::as_str);
            let title = text_or_empty(&assertion.title);
            let parts = std::iter::once(path).chain(titles).chain([title]);
            let id = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" > ");
            let ms = assertion.duration.0.and_then(whole_ms);
            let cause = assertion.failure_messages.0.join("\n");
            sink.add(&id, outcome(text_or_empty(&assertion.status)), ms, &cause);
            Ok(())
        })?;
    }
    let is_failed = text_or_empty(&file.status) == "failed" || file.assertion_results.is_none();
    if is_failed && sink.failed() == failed_before {
        // The file did not load, or code outside its tests failed.
        sink.add(path, CheckOutcome::Failed, None, text_or_empty(&file.message));
        sink.set_broken();
    }
    Ok(())
}

/// Returns the outcome of a status. An unknown status is a failure.
fn outcome(status: &str) -> CheckOutcome {
    match status {
        "passed" => CheckOutcome::Passed,
        "pending" | "skipped" | "todo" | "disabled" => CheckOutcome::Skipped,
        _ => CheckOutcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hookloop_core::checks::CheckRecords;

    use super::*;

    fn records(text: &str) -> CheckRecords {
        let mut sink = ReportSink::new("jest", Path::new("/project"));
        read(text, &mut sink).unwrap();
        sink.finish()
    }

    #[test]
    fn an_unknown_status_is_a_failure() {
        for (status, expected) in [
            ("passed", CheckOutcome::Passed),
            ("failed", CheckOutcome::Failed),
            ("pending", CheckOutcome::Skipped),
            ("skipped", CheckOutcome::Skipped),
            ("todo", CheckOutcome::Skipped),
            ("disabled", CheckOutcome::Skipped),
            ("focused", CheckOutcome::Failed),
            ("", CheckOutcome::Failed),
        ] {
            assert_eq!(outcome(status), expected, "{status}");
        }
    }

    #[test]
    fn a_failed_file_without_a_failed_test_is_a_failed_check() {
        let text = r#"{"testResults": [{"name": "/project/a.js", "status": "failed", "message": "afterAll",
            "assertionResults": [{"title": "t", "status": "passed", "duration": 3}]}]}"#;
        let records = records(text);
        let checks: Vec<(&str, CheckOutcome)> =
            records.checks.iter().map(|check| (check.id.as_str(), check.outcome)).collect();
        assert_eq!(checks, [("a.js > t", CheckOutcome::Passed), ("a.js", CheckOutcome::Failed)]);
        assert_eq!(records.checks[1].cause, "afterAll");
        assert!(records.is_broken);
    }

    #[test]
    fn a_report_that_names_more_failures_than_it_lists_is_broken() {
        for (fields, is_broken) in [
            (r#""success": true"#, false),
            (r#""success": false"#, true),
            (r#""wasInterrupted": true"#, true),
            (r#""numFailedTests": 1"#, true),
            (r#""numFailedTests": 0, "numRuntimeErrorTestSuites": 0"#, false),
            (r#""numRuntimeErrorTestSuites": 1"#, true),
        ] {
            let text = format!(r#"{{"testResults": [], {fields}}}"#);
            assert_eq!(records(&text).is_broken, is_broken, "{fields}");
        }
    }
}
