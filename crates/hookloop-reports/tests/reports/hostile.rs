//! Reports that the code under test could write to break or to mislead the reader.

use std::collections::HashSet;
use std::fs;

use hookloop_core::checks::{CHECKS_MAX, CheckRecords};
use hookloop_reports::{
    ATTRIBUTE_BYTES_MAX, ATTRIBUTES_MAX, DIRECTORY_DEPTH_MAX, ENTRIES_MAX, FILE_BYTES_MAX,
    FILES_MAX, JSON_DEPTH_MAX, ReportError, ReportFormat, SUBTEST_DEPTH_MAX, TOTAL_BYTES_MAX,
    XML_DEPTH_MAX, read, recognize,
};
use proptest::prelude::*;

use crate::{captured_bytes, captured_directory, root};

/// The step between the places where a report is truncated.
const CUT_STEP: usize = 7;
/// Limits that no real report reaches.
const _: () = {
    assert!(FILE_BYTES_MAX >= 64 << 20 && TOTAL_BYTES_MAX >= 4 * FILE_BYTES_MAX);
    assert!(FILES_MAX >= 1_000 && ENTRIES_MAX >= 10 * FILES_MAX && DIRECTORY_DEPTH_MAX >= 4);
    assert!(XML_DEPTH_MAX >= 32 && ATTRIBUTES_MAX >= 32 && JSON_DEPTH_MAX >= 32);
    assert!(SUBTEST_DEPTH_MAX >= 32);
};
/// Bytes of input whose reading must not take quadratic time.
const LONG_BYTES: usize = 128 * 1024;

/// Returns the names of all captured reports.
fn captured_reports() -> Vec<String> {
    let mut names = Vec::new();
    for directory in fs::read_dir(captured_directory()).unwrap() {
        let directory = directory.unwrap().path();
        let tool = directory.file_name().unwrap().to_str().unwrap().to_owned();
        for file in fs::read_dir(directory).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".txt") {
                names.push(format!("{tool}/{name}"));
            }
        }
    }
    names.sort();
    assert!(names.len() >= 28, "{names:?}");
    names
}

/// Checks rules that hold for every report that is read.
fn check_records(records: &CheckRecords) {
    let ids: HashSet<&str> = records.checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids.len(), records.checks.len(), "ids are not unique");
    assert!(records.checks.len() <= CHECKS_MAX);
    assert!(!ids.iter().any(|id| id.is_empty() || id.contains('\n')), "{ids:?}");
    let listed = records.checks.len() as u64;
    assert!(records.counts.total() >= listed);
    assert_eq!(records.is_complete, records.counts.total() == listed);
}

fn check_any(bytes: &[u8]) -> Result<CheckRecords, ReportError> {
    let result = read(bytes, root());
    match &result {
        Ok(records) => check_records(records),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    result
}

#[test]
fn entities_are_refused_and_never_expanded() {
    let mut laughs = String::from("<!DOCTYPE lolz [<!ENTITY lol0 \"lol\">");
    for level in 1..10 {
        let references = format!("&lol{};", level - 1).repeat(10);
        laughs += &format!("<!ENTITY lol{level} \"{references}\">");
    }
    laughs += "]><testsuite><testcase name=\"&lol9;\"/></testsuite>";
    for text in [
        laughs.as_str(),
        "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><testsuite>&x;</testsuite>",
        "<!DOCTYPE a SYSTEM \"http://localhost/a.dtd\"><testsuite/>",
        "<!DOCTYPE a [<!ENTITY % p SYSTEM \"file:///dev/zero\"> %p;]><testsuite/>",
        "<?xml version=\"1.0\"?>\n<!-- c -->\n<!DOCTYPE testsuite>\n<testsuite/>",
        "<testsuite><testcase name=\"a\"><failure>&x;</failure></testcase></testsuite>",
        "<testsuite><testcase name=\"&x;\"/></testsuite>",
    ] {
        let error = check_any(text.as_bytes()).unwrap_err();
        assert!(matches!(error, ReportError::EntityRefused { .. }), "{text}: {error}");
    }
    let declared_outside = "<testsuite><!ENTITY x \"y\"></testsuite>";
    assert!(check_any(declared_outside.as_bytes()).is_err());
}

#[test]
fn deep_reports_are_refused() {
    const DEPTH: usize = 100_000;
    let suites = "<testsuite>".repeat(DEPTH);
    let closed = format!("{suites}{}", "</testsuite>".repeat(DEPTH));
    let parts = format!("<testsuite><testcase>{}", "<a>".repeat(DEPTH));
    let indented: String =
        (0..DEPTH / 100).map(|level| format!("{}ok\n", " ".repeat(level))).collect();
    let lists = "[".repeat(DEPTH);
    let maps = "{\"a\":".repeat(DEPTH);
    for text in [
        suites,
        closed,
        parts,
        format!("TAP version 14\n{indented}"),
        format!("{{\"testResults\": {lists}"),
        format!("{{\"testResults\": {lists}{}}}", "]".repeat(DEPTH)),
        format!("{{\"results\": {{\"tests\": [{maps}"),
        format!(
            "{{\"version\": \"2.1.0\", \"runs\": [{{\"results\": {maps}1{}}}]}}",
            "}".repeat(DEPTH)
        ),
        format!("{{\"type\": \"suite\", \"event\": \"started\"}}\n{{\"type\": {lists}"),
        maps.clone(),
    ] {
        let error = check_any(text.as_bytes()).unwrap_err();
        assert!(
            matches!(error, ReportError::TooDeep { .. }),
            "{}: {error}",
            &text[..40].replace(char::is_whitespace, " ")
        );
    }
}

#[test]
fn long_attributes_and_large_reports_are_refused() {
    let attribute = "a".repeat(ATTRIBUTE_BYTES_MAX + 1);
    let text = format!("<testsuite><testcase name=\"{attribute}\"/></testsuite>");
    let error = check_any(text.as_bytes()).unwrap_err();
    assert!(matches!(error, ReportError::TooLarge { part: "an attribute", .. }), "{error}");
    let large = vec![b' '; usize::try_from(FILE_BYTES_MAX).unwrap() + 1];
    let error = check_any(&large).unwrap_err();
    assert!(matches!(error, ReportError::TooLarge { limit: FILE_BYTES_MAX, .. }), "{error}");
}

/// Whether a report that ends at a byte can look complete, because the format has no end.
fn may_look_complete(format: ReportFormat, bytes: &[u8], cut: usize) -> bool {
    let text = String::from_utf8_lossy(bytes);
    match format {
        // The rest of the last test point's line, of its diagnostics and of its block may be missing.
        ReportFormat::Tap => {
            let is_point = |line: &str| {
                line.starts_with("ok") || line.starts_with("not ok") || line.starts_with("1..")
            };
            let mut start = 0;
            let mut last = 0;
            for line in text.split_inclusive('\n') {
                if is_point(line) {
                    last = start;
                }
                start += line.len();
            }
            cut > last
        }
        _ => cut >= text.trim_end().len(),
    }
}

#[test]
fn truncated_reports_are_refused_or_broken() {
    for name in captured_reports() {
        let bytes = captured_bytes(&name);
        let format = recognize(&bytes).unwrap();
        for cut in (0..bytes.len()).step_by(CUT_STEP) {
            let result = check_any(&bytes[..cut]);
            let is_told = result.as_ref().map_or(true, |records| records.is_broken);
            assert!(
                is_told || may_look_complete(format, &bytes, cut),
                "{name} at {cut}: {result:?}"
            );
        }
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_replaced() {
    let bytes =
        b"<testsuite><testcase name='a\xff\xfe'><failure>\xc3</failure></testcase></testsuite>";
    let records = check_any(bytes).unwrap();
    assert_eq!(records.checks[0].id, "a\u{fffd}\u{fffd}");
    let line = b"1..1\nnot ok 1 - \xf0\x9f\n";
    assert_eq!(check_any(line).unwrap().counts.failed, 1);
}

#[test]
fn errors_contain_no_text_of_the_report() {
    for text in [
        "<testsuite><SECRET></testsuite>",
        "<SECRET/>",
        "<testsuite a=\"SECRET></testsuite>",
        "<testsuite>&SECRET;</testsuite>",
        "{\"testResults\": \"SECRET\"}",
        "{\"results\": {\"tests\": [{\"name\": [\"SECRET\"]}]}}",
        "{\"SECRET\": SECRET}",
        "{\"Action\": \"run\", \"Package\": \"a\"}\n{\"Action\": {\"SECRET\": 1}}",
        "SECRET=hunter2",
    ] {
        let error = format!("{:?}", check_any(text.as_bytes()).unwrap_err());
        assert!(!error.contains("SECRET") && !error.contains("hunter2"), "{text}: {error}");
    }
}

#[test]
fn long_repetitions_are_read_in_bounded_time() {
    let times = |text: &str| text.repeat(LONG_BYTES / text.len());
    let event = |fields: &str| times(&format!("{{{fields}}}\n"));
    let title = "t".repeat(LONG_BYTES / 2);
    for text in [
        format!("1..1\nok 1 {}", times(" # time=")),
        format!("1..1\nok 1 {}", times(" # skip")),
        format!("1..1\n{}", times("ok\n  ---\n")),
        format!("1..1\n# Subtest: {title}\n{}", times("    ok\n")),
        format!("1..1\n{}", times("    ok\n        ok\n")),
        format!("<testsuite>{}</testsuite>", times("<testcase/>")),
        format!("<testsuite name='{title}'>{}</testsuite>", times("<testcase classname='test'/>")),
        format!("<testsuite name='{title}'>{}</testsuite>", times("<error/>")),
        format!("<testsuite>{}</testsuite>", times("<!-- -- -->")),
        format!("<testsuite>{}", times("<")),
        format!("<testsuite>{}", times("&amp;")),
        format!(
            "{{\"testResults\": [{{\"assertionResults\": [{}1], \"name\": \"{title}\"}}]}}",
            times("{},")
        ),
        format!("{{\"results\": {{\"tests\": [{}{{}}]}}}}", times("{\"suite\": []},")),
        format!(
            "{{\"runs\": [{{\"artifacts\": [{{\"location\": {{\"uri\": \"{title}\"}}}}], \"results\": [{}{{}}]}}], \"version\": 1}}",
            times(
                "{\"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"index\": 0}}}]},"
            )
        ),
        event(r#""Action": "run", "Package": "a", "Test": "b""#),
        event(r#""Action": "build-fail", "ImportPath": "a""#),
        event(r#""Action": "output", "Package": "a", "Test": "b", "Output": "panic: ""#),
        event(r#""type": "test", "event": "started", "name": "a""#),
        event(r#""type": "suite", "event": "failed""#),
        times("{\n"),
        times("\n"),
    ] {
        let _ = check_any(text.as_bytes());
    }
}

#[test]
fn checks_beyond_the_limit_are_counted() {
    let number = CHECKS_MAX + 10;
    let event = r#"{"type": "test", "event": "failed", "name": "a"}"#;
    for text in [
        format!("<testsuite>{}</testsuite>", "<testcase><error/></testcase>".repeat(number)),
        format!("1..{number}\n{}", "not ok\n".repeat(number)),
        format!("{{\"results\": {{\"tests\": [{}]}}}}", vec!["{}"; number].join(",")),
        format!(
            "{{\"type\": \"suite\", \"event\": \"started\"}}\n{}",
            format!("{event}\n").repeat(number)
        ),
    ] {
        let records = check_any(text.as_bytes()).unwrap();
        assert_eq!(records.counts.failed, number as u64);
        assert_eq!(records.checks.len(), CHECKS_MAX);
        assert!(!records.is_complete);
    }
}

/// Returns the beginnings of all formats, so that arbitrary bytes reach every reader.
fn beginnings() -> Vec<&'static str> {
    vec![
        "",
        "<testsuite>",
        "<testsuite><testcase name='a'>",
        "TAP version 14\n",
        "1..2\nnot ok 1 - a\n  ---\n",
        "{\"testResults\": [",
        "{\"results\": {\"tests\": [{",
        "{\"version\": \"2.1.0\", \"runs\": [{\"results\": [",
        "{\"Action\": \"run\", \"Package\": \"a\"}\n",
        "{\"type\": \"suite\", \"event\": \"started\"}\n",
    ]
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        beginning in prop::sample::select(beginnings()),
        bytes in prop::collection::vec(any::<u8>(), 0..256),
    ) {
        let _ = check_any(&[beginning.as_bytes(), &bytes].concat());
    }

    #[test]
    fn arbitrary_lines_never_panic(
        beginning in prop::sample::select(beginnings()),
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "ok", "not ok", " 1", " - ", "a", "é", "\u{3000}", "#", " # SKIP", " # TODO", " # time=1ms", " {", "}",
                "\n", "\n    ", "\n        ", "\n  ---\n", "\n  ...\n", "1..1", "1..9", "# Subtest: ", "\\", "Bail out!",
                "<testcase>", "</testcase>", "<failure>", "</failure>", "<![CDATA[", "]]>", "&lt;", "&#x0;", "</testsuite>",
                "{", "}", "[", "]", ",", ":", "null", "1e9", "\"name\"", "\"status\"", "\"failed\"", "\"\\ud800\"",
                "\"Action\"", "\"Package\"", "\"Test\"", "\"event\"", "\"type\"", "\"suite\"", "\"ok\"",
            ]),
            0..64,
        ),
    ) {
        let _ = check_any(format!("{beginning}{}", parts.concat()).as_bytes());
    }

    #[test]
    fn changed_reports_never_panic(
        name in prop::sample::select(captured_reports()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        removed in any::<prop::sample::Index>(),
        length in 0..40_usize,
    ) {
        let mut bytes = captured_bytes(&name);
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let start = removed.index(bytes.len());
        let end = bytes.len().min(start + length);
        bytes.drain(start..end);
        let _ = check_any(&bytes);
    }
}
