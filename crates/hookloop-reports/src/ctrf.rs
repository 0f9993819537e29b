//! Reads CTRF, the common test report format in JSON.

use hookloop_core::checks::CheckOutcome;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ReportError;
use crate::json::{self, LooseNumber, LossyText, ShortList, text_or_empty};
use crate::sink::{ReportSink, whole_ms};

/// Statuses of runners for tests that did not run. CTRF has `other` for some of them.
const NOT_RUN: [&str; 5] = ["pending", "skipped", "todo", "disabled", "ignored"];

#[derive(Deserialize)]
struct CtrfReport<'a> {
    #[serde(borrow)]
    results: CtrfResults<'a>,
}

#[derive(Deserialize)]
struct CtrfResults<'a> {
    #[serde(borrow)]
    tests: &'a RawValue,
    summary: Option<CtrfSummary>,
}

#[derive(Deserialize)]
struct CtrfSummary {
    #[serde(default)]
    tests: LooseNumber,
    #[serde(default)]
    failed: LooseNumber,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CtrfTest<'a> {
    name: Option<LossyText>,
    status: Option<LossyText>,
    raw_status: Option<LossyText>,
    #[serde(default)]
    duration: LooseNumber,
    message: Option<LossyText>,
    trace: Option<LossyText>,
    file_path: Option<LossyText>,
    #[serde(borrow)]
    suite: Option<&'a RawValue>,
}

pub(crate) fn read(text: &str, sink: &mut ReportSink) -> Result<(), ReportError> {
    let report: CtrfReport<'_> = json::document(text)?;
    let failed_before = sink.failed();
    let number = json::each(text, report.results.tests, |test: CtrfTest<'_>| {
        let ms = test.duration.0.and_then(whole_ms);
        let cause = [text_or_empty(&test.message), text_or_empty(&test.trace)].join("\n");
        sink.add(&test.id(sink), test.outcome(), ms, &cause);
        Ok(())
    })?;
    let Some(summary) = report.results.summary else { return Ok(()) };
    let failed = sink.failed() - failed_before;
    let promises_more = |promised: LooseNumber, found| promised.0.is_some_and(|n| n > found as f64);
    if promises_more(summary.tests, number) || promises_more(summary.failed, failed) {
        sink.set_broken();
    }
    Ok(())
}

impl CtrfTest<'_> {
    /// Returns the outcome. An unknown status is a failure.
    fn outcome(&self) -> CheckOutcome {
        match text_or_empty(&self.status) {
            "passed" => CheckOutcome::Passed,
            "skipped" | "pending" => CheckOutcome::Skipped,
            "other" if NOT_RUN.contains(&text_or_empty(&self.raw_status)) => CheckOutcome::Skipped,
            _ => CheckOutcome::Failed,
        }
    }

    /// Returns `file > suites > name`, without parts that the name repeats.
    fn id(&self, sink: &ReportSink) -> String {
        let file = sink.relative(text_or_empty(&self.file_path));
        let name = sink.relative(text_or_empty(&self.name));
        if !file.is_empty() && name.starts_with(file.as_ref()) {
            return name.into_owned();
        }
        let mut suites = self.suites();
        let is_file = |suite: &String| {
            file.strip_suffix(suite.as_str())
                .is_some_and(|directory| directory.is_empty() || directory.ends_with('/'))
        };
        if suites.first().is_some_and(is_file) {
            suites.remove(0);
        }
        let titles = suites.join(" ");
        let own_name = name.strip_prefix(&titles).map_or(name.as_ref(), str::trim_start);
        let own_name = if own_name.is_empty() { &name } else { own_name };
        let parts = std::iter::once(file.as_ref()).chain(suites.iter().map(String::as_str));
        let parts = parts.chain([own_name]).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" > ")
    }

    /// Returns the names of the suites, outermost first: a list, or a text with `>`.
    fn suites(&self) -> Vec<String> {
        let raw = self.suite.map_or("null", RawValue::get);
        if let Ok(ShortList(suites)) = serde_json::from_str(raw) {
            return suites;
        }
        let joined: LossyText = serde_json::from_str(raw).unwrap_or_default();
        joined.0.split(" > ").map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hookloop_core::checks::CheckRecords;

    use super::*;

    fn records(tests: &str, summary: &str) -> CheckRecords {
        let mut sink = ReportSink::new("ctrf", Path::new("/project"));
        let text = format!(r#"{{"results": {{"tests": [{tests}], "summary": {summary}}}}}"#);
        read(&text, &mut sink).unwrap();
        sink.finish()
    }

    #[test]
    fn names_have_file_and_suites_once() {
        for (test, expected) in [
            (r#""name": "a""#, "a"),
            (r#""name": "a", "suite": "s""#, "s > a"),
            (r#""name": "s t a", "suite": ["s", "t"]"#, "s > t > a"),
            (
                r#""name": "a", "suite": "b.js > s", "filePath": "/project/x/b.js""#,
                "x/b.js > s > a",
            ),
            (r#""name": "x/b.py::a", "suite": ["x/b.py"], "filePath": "x/b.py""#, "x/b.py::a"),
            (r#""name": "s", "suite": ["s"]"#, "s > s"),
            (r#""suite": 5"#, "unnamed"),
        ] {
            let records = records(&format!("{{{test}}}"), "null");
            assert_eq!(records.checks[0].id, expected, "{test}");
        }
    }

    #[test]
    fn an_unknown_status_is_a_failure() {
        for (test, expected) in [
            (r#""status": "passed""#, CheckOutcome::Passed),
            (r#""status": "failed""#, CheckOutcome::Failed),
            (r#""status": "skipped""#, CheckOutcome::Skipped),
            (r#""status": "pending""#, CheckOutcome::Skipped),
            (r#""status": "other", "rawStatus": "todo""#, CheckOutcome::Skipped),
            (r#""status": "other""#, CheckOutcome::Failed),
            (r#""status": "other", "rawStatus": "passed""#, CheckOutcome::Failed),
            (r#""status": "fine""#, CheckOutcome::Failed),
            (r#""status": null"#, CheckOutcome::Failed),
            ("", CheckOutcome::Failed),
        ] {
            let records = records(&format!("{{{test}}}"), "null");
            assert_eq!(records.checks[0].outcome, expected, "{test}");
        }
    }

    #[test]
    fn a_summary_with_more_tests_than_are_listed_is_broken() {
        let one = r#"{"name": "a", "status": "passed", "duration": 1.6}"#;
        for (summary, is_broken) in [
            (r#"{"tests": 1, "failed": 0}"#, false),
            (r#"{"tests": 2, "failed": 0}"#, true),
            (r#"{"tests": 1, "failed": 1}"#, true),
            ("{}", false),
        ] {
            let records = records(one, summary);
            assert_eq!(records.is_broken, is_broken, "{summary}");
            assert_eq!(records.checks[0].ms, Some(2));
        }
    }
}
