//! Reads the JSON lines of Rust's test harness, also those of nextest.

use std::collections::HashMap;

use hookloop_core::checks::CheckOutcome;
use serde::Deserialize;

use crate::error::ReportError;
use crate::json::{self, LooseNumber, LossyText, text_or_empty};
use crate::sink::{ReportSink, whole_ms};

#[derive(Deserialize)]
struct LibtestEvent {
    #[serde(rename = "type")]
    kind: Option<LossyText>,
    event: Option<LossyText>,
    name: Option<LossyText>,
    #[serde(default)]
    exec_time: LooseNumber,
    stdout: Option<LossyText>,
    message: Option<LossyText>,
    reason: Option<LossyText>,
}

/// The progress of all suites.
#[derive(Debug, Default)]
struct LibtestProgress {
    suites: u64,
    open_suites: u64,
    /// The number of failed checks when the last suite ended.
    failed_before: u64,
    started: u64,
    /// The tests that run, with the order in which they started.
    running: HashMap<String, u64>,
}

pub(crate) fn read(text: &str, sink: &mut ReportSink) -> Result<(), ReportError> {
    let mut progress = LibtestProgress { failed_before: sink.failed(), ..Default::default() };
    for line in text.lines() {
        let Some(event) = json::event_line::<LibtestEvent>(text, line)? else { continue };
        match text_or_empty(&event.kind) {
            "suite" => progress.suite_event(&event, sink),
            "test" => progress.test_event(&event, sink),
            "bench" => progress.add(&event, CheckOutcome::Passed, sink),
            _ => {}
        }
    }
    progress.finish(sink);
    Ok(())
}

impl LibtestProgress {
    fn suite_event(&mut self, event: &LibtestEvent, sink: &mut ReportSink) {
        let state = text_or_empty(&event.event);
        match state {
            "started" => {
                self.suites += 1;
                self.open_suites += 1;
            }
            "ok" | "failed" => {
                self.open_suites = self.open_suites.saturating_sub(1);
                if state == "failed" && sink.failed() == self.failed_before {
                    sink.set_broken();
                }
                self.failed_before = sink.failed();
            }
            _ => {}
        }
    }

    fn test_event(&mut self, event: &LibtestEvent, sink: &mut ReportSink) {
        let outcome = match text_or_empty(&event.event) {
            "started" => {
                self.started += 1;
                self.running.insert(text_or_empty(&event.name).to_owned(), self.started);
                return;
            }
            // The harness warns about a slow test, or lists a test.
            "timeout" | "discovered" => return,
            "ok" => CheckOutcome::Passed,
            "ignored" => CheckOutcome::Skipped,
            _ => CheckOutcome::Failed,
        };
        self.add(event, outcome, sink);
    }

    fn add(&mut self, event: &LibtestEvent, outcome: CheckOutcome, sink: &mut ReportSink) {
        let name = self.ended(text_or_empty(&event.name));
        let ms = event.exec_time.0.and_then(|seconds| whole_ms(seconds * 1000.0));
        let texts = [&event.message, &event.reason, &event.stdout];
        let cause = texts.map(text_or_empty).join("\n");
        sink.add(name, outcome, ms, &cause);
    }

    /// Removes a test that runs, and returns its name. nextest appends the number of a later try: `name#2`.
    fn ended<'n>(&mut self, name: &'n str) -> &'n str {
        if self.running.remove(name).is_some() {
            return name;
        }
        let later_try = name.rsplit_once('#').filter(|(_, number)| number.parse::<u32>().is_ok());
        match later_try {
            Some((first, _)) if self.running.remove(first).is_some() => first,
            _ => name,
        }
    }

    /// Adds tests that started and did not end as failed.
    fn finish(self, sink: &mut ReportSink) {
        if self.suites == 0 || self.open_suites > 0 || !self.running.is_empty() {
            sink.set_broken();
        }
        let mut unfinished: Vec<(u64, String)> =
            self.running.into_iter().map(|(name, order)| (order, name)).collect();
        unfinished.sort();
        for (_, name) in unfinished {
            sink.add(&name, CheckOutcome::Failed, None, "The test did not finish.");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hookloop_core::checks::CheckRecords;

    use super::*;

    const STARTED: &str = r#"{"type": "suite", "event": "started", "test_count": 1}"#;
    const OK: &str = r#"{"type": "suite", "event": "ok"}"#;
    const FAILED: &str = r#"{"type": "suite", "event": "failed"}"#;

    fn records(lines: &[&str]) -> CheckRecords {
        let mut sink = ReportSink::new("libtest", Path::new("/project"));
        read(&lines.join("\n"), &mut sink).unwrap();
        sink.finish()
    }

    fn test(name: &str, event: &str) -> String {
        format!(r#"{{"type": "test", "name": "{name}", "event": "{event}"}}"#)
    }

    #[test]
    fn an_unknown_event_of_a_test_is_a_failure() {
        for (event, expected) in [
            ("ok", Some(CheckOutcome::Passed)),
            ("failed", Some(CheckOutcome::Failed)),
            ("ignored", Some(CheckOutcome::Skipped)),
            ("strange", Some(CheckOutcome::Failed)),
            ("timeout", None),
        ] {
            let records = records(&[STARTED, &test("a", event), OK]);
            assert_eq!(records.checks.first().map(|check| check.outcome), expected, "{event}");
        }
    }

    #[test]
    fn a_suite_that_does_not_end_or_fails_without_a_test_is_broken() {
        let passed = test("a", "ok");
        let failed = test("a", "failed");
        for (lines, is_broken) in [
            (vec![STARTED, &passed, OK], false),
            (vec![STARTED, &failed, FAILED], false),
            (vec![STARTED, &passed], true),
            (vec![STARTED, &passed, FAILED], true),
            (vec![STARTED, &failed, FAILED, STARTED, FAILED], true),
            (vec![STARTED, STARTED, OK], true),
            (vec![&passed], true),
        ] {
            assert_eq!(records(&lines).is_broken, is_broken, "{lines:?}");
        }
    }

    #[test]
    fn a_test_that_does_not_end_is_a_failure() {
        let lines = [STARTED, &test("b", "started"), &test("a", "started"), OK].map(str::to_owned);
        let records = records(&lines.each_ref().map(String::as_str));
        let ids: Vec<&str> = records.failing().map(|check| check.id.as_str()).collect();
        assert_eq!(ids, ["b", "a"]);
        assert!(records.is_broken);
    }

    #[test]
    fn the_number_of_a_try_is_not_in_the_name() {
        let lines = [
            STARTED.to_owned(),
            test("a", "started"),
            test("a#2", "ok"),
            test("b#2", "started"),
            test("b#2", "ok"),
            test("c#2", "ok"),
            OK.to_owned(),
        ];
        let records = records(&lines.each_ref().map(String::as_str));
        let ids: Vec<&str> = records.checks.iter().map(|check| check.id.as_str()).collect();
        assert_eq!(ids, ["a", "b#2", "c#2"]);
        assert!(!records.is_broken);
    }

    #[test]
    fn a_line_that_begins_like_an_event_has_to_be_one() {
        let mut sink = ReportSink::new("libtest", Path::new("/project"));
        let text = format!("{STARTED}\nprinted by a test\n{{\"type\": \"te");
        let error = read(&text, &mut sink).unwrap_err().to_string();
        assert_eq!(error, "malformed at line 3, column 12: the report ends too early");
    }
}
