//! The format of a report, recognized from its content, and the reader of each format.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::ReportError;
use crate::sink::ReportSink;
use crate::{ctrf, go_test, jest, json, junit, libtest, sarif, tap};

/// Maximum bytes of one report.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReportFormat {
    Junit,
    Ctrf,
    Tap,
    Sarif,
    GoTest,
    Libtest,
    Jest,
}

impl ReportFormat {
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Junit => "junit",
            ReportFormat::Ctrf => "ctrf",
            ReportFormat::Tap => "tap",
            ReportFormat::Sarif => "sarif",
            ReportFormat::GoTest => "go test",
            ReportFormat::Libtest => "libtest",
            ReportFormat::Jest => "jest",
        }
    }
}

/// Returns the format of a report.
pub fn recognize(bytes: &[u8]) -> Result<ReportFormat, ReportError> {
    format_of(&text_of(bytes)?)
}

/// Returns the text that `go test` prints without `-json`, or `None` if the bytes are no such report.
pub fn go_test_text(bytes: &[u8]) -> Option<String> {
    let text = text_of(bytes).ok()?;
    let is_go = format_of(&text).is_ok_and(|format| format == ReportFormat::GoTest);
    is_go.then(|| go_test::printed(&text))
}

/// Returns a report as text. Bytes that are not UTF-8 are replaced.
pub(crate) fn text_of(bytes: &[u8]) -> Result<Cow<'_, str>, ReportError> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ReportError::TooLarge { part: "the report", limit: FILE_BYTES_MAX });
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    Ok(String::from_utf8_lossy(bytes))
}

pub(crate) fn format_of(text: &str) -> Result<ReportFormat, ReportError> {
    match text.trim_start().as_bytes().first() {
        // The reader checks the root element.
        Some(b'<') => Ok(ReportFormat::Junit),
        Some(b'{') => json_format(text),
        _ if tap::is_tap(text) => Ok(ReportFormat::Tap),
        _ => event_format(text).ok_or(ReportError::UnknownFormat),
    }
}

/// Reads a report of a known format.
pub(crate) fn read_into(
    text: &str,
    format: ReportFormat,
    sink: &mut ReportSink,
) -> Result<(), ReportError> {
    match format {
        ReportFormat::Junit => junit::read(text, sink),
        ReportFormat::Ctrf => ctrf::read(text, sink),
        ReportFormat::Tap => tap::read(text, sink),
        ReportFormat::Sarif => sarif::read(text, sink),
        ReportFormat::GoTest => go_test::read(text, sink),
        ReportFormat::Libtest => libtest::read(text, sink),
        ReportFormat::Jest => jest::read(text, sink),
    }
}

/// Returns the format of a JSON document, or of lines that begin with JSON.
fn json_format(text: &str) -> Result<ReportFormat, ReportError> {
    // Lines that are no JSON may follow, so only the first value counts.
    let first_line = text.trim_start().lines().next().unwrap_or_default();
    if let Some(format) = line_format(first_line) {
        return Ok(format);
    }
    json::check_depth(text)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let keys = reader.deserialize_map(KeyVisitor);
    let keys = keys.map_err(|error| json::malformed(text, text, &error))?;
    keys.format().ok_or(ReportError::UnknownFormat)
}

/// Returns the format of lines that begin with other output.
fn event_format(text: &str) -> Option<ReportFormat> {
    let is_object = |line: &&str| line.starts_with('{');
    text.lines().map(str::trim).filter(is_object).find_map(line_format)
}

/// Returns the format of an event in one line.
fn line_format(line: &str) -> Option<ReportFormat> {
    json::check_depth(line).ok()?;
    let keys: FoundKeys =
        serde_json::Deserializer::from_str(line).deserialize_map(KeyVisitor).ok()?;
    keys.event_format()
}

/// The keys of an object that tell formats apart.
#[derive(Debug, Default)]
struct FoundKeys {
    has_action: bool,
    has_package: bool,
    has_event: bool,
    has_type: bool,
    has_test_results: bool,
    has_runs: bool,
    has_version: bool,
    is_ctrf: bool,
}

impl FoundKeys {
    fn event_format(&self) -> Option<ReportFormat> {
        if self.has_action && self.has_package {
            return Some(ReportFormat::GoTest);
        }
        (self.has_type && self.has_event).then_some(ReportFormat::Libtest)
    }

    fn format(&self) -> Option<ReportFormat> {
        if self.has_test_results {
            return Some(ReportFormat::Jest);
        }
        if self.has_runs && self.has_version {
            return Some(ReportFormat::Sarif);
        }
        if self.is_ctrf {
            return Some(ReportFormat::Ctrf);
        }
        self.event_format()
    }
}

/// Collects the keys of an object. Values are skipped.
struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = FoundKeys;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FoundKeys, A::Error> {
        let mut found = FoundKeys::default();
        while let Some(json::LossyText(key)) = map.next_key()? {
            match key.as_str() {
                "Action" => found.has_action = true,
                "Package" | "ImportPath" => found.has_package = true,
                "event" => found.has_event = true,
                "type" => found.has_type = true,
                "testResults" => found.has_test_results = true,
                "runs" => found.has_runs = true,
                "version" | "$schema" => found.has_version = true,
                "results" => {
                    found.is_ctrf |= has_tests(map.next_value()?);
                    continue;
                }
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(found)
    }
}

/// Whether the `results` of a report are those of CTRF.
fn has_tests(results: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct CtrfProbe {
        tests: Option<IgnoredAny>,
    }
    let is_object = results.get().starts_with('{');
    is_object
        && serde_json::from_str::<CtrfProbe>(results.get()).is_ok_and(|probe| probe.tests.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<ReportFormat>) {
        assert_eq!(recognize(text.as_bytes()).ok(), expected, "{text}");
    }

    #[test]
    fn formats_are_recognized_from_content() {
        check("\u{feff}<testsuite/>", Some(ReportFormat::Junit));
        check(r#"{"results": {"summary": {}, "tests": []}}"#, Some(ReportFormat::Ctrf));
        check(r#"{"$schema": "s", "runs": []}"#, Some(ReportFormat::Sarif));
        check(r#"{"success": true, "testResults": []}"#, Some(ReportFormat::Jest));
        check("TAP version 13\n", Some(ReportFormat::Tap));
        check("# comment\n\nok 1 - a\n1..1\n", Some(ReportFormat::Tap));
        check(r#"{"Action": "start", "Package": "a"}"#, Some(ReportFormat::GoTest));
        check(r#"{"type": "suite", "event": "started"}"#, Some(ReportFormat::Libtest));
    }

    #[test]
    fn events_are_recognized_after_other_output() {
        let text = "warning: a\n{\"type\": \"suite\", \"event\": \"started\"}\n";
        check(text, Some(ReportFormat::Libtest));
        check("# a\n{\"Action\": \"start\", \"Package\": \"a\"}", Some(ReportFormat::GoTest));
    }

    #[test]
    fn other_content_is_no_report() {
        for text in [
            "",
            "\n",
            "{}",
            "[]",
            "1..5 of the pages",
            "passed",
            "ok  \texample.com/sum\t0.003s\n",
            r#"{"results": []}"#,
            r#"{"results": {"tests": null}}"#,
            r#"{"runs": []}"#,
            r#"{"Action": "start"}"#,
            "\0\0",
        ] {
            check(text, None);
        }
    }
}
