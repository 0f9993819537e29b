use std::path::Path;

use hookloop_core::checks::CheckRecords;

use super::*;

fn try_read(text: &str) -> Result<CheckRecords, ReportError> {
    let mut sink = ReportSink::new("tap", Path::new("/project"));
    read(text, &mut sink)?;
    Ok(sink.finish())
}

fn check(text: &str, is_broken: bool, expected: &[(&str, CheckOutcome)]) {
    let records = try_read(text).unwrap();
    let found: Vec<(&str, CheckOutcome)> =
        records.checks.iter().map(|check| (check.id.as_str(), check.outcome)).collect();
    assert_eq!(found, expected, "{text}");
    assert_eq!(records.is_broken, is_broken, "{text}");
}

use CheckOutcome::{Failed, Passed, Skipped};

#[test]
fn directives_change_the_outcome() {
    check("1..1\nok 1 - a", false, &[("a", Passed)]);
    check("1..1\nnot ok 1 - a", false, &[("a", Failed)]);
    check("1..1\nok 1 - a # SKIP", false, &[("a", Skipped)]);
    check("1..1\nnot ok 1 - a # SKIP", false, &[("a", Failed)]);
    check("1..1\nnot ok 1 - a # TODO", false, &[("a", Skipped)]);
    check("1..1\nok 1 - a # TODO", false, &[("a", Skipped)]);
}

#[test]
fn a_plan_has_to_match_the_tests() {
    check("TAP version 13\n1..0 # SKIP\n", false, &[]);
    check("TAP version 13\n", true, &[]);
    check("TAP version 13\n1..1\n", true, &[]);
    check("1..2\nok 1 - a", true, &[("a", Passed)]);
    check("1..1\nok 1 - a\nok 2 - b", true, &[("a", Passed), ("b", Passed)]);
    check("TAP version 13\nok 1 - a", true, &[("a", Passed)]);
    check("ok 1 - a\n1..1", false, &[("a", Passed)]);
    check("1..1\nok 1 - a\n1..1", true, &[("a", Passed)]);
    check("1..1\nok 1 - a\nBail out! no database", true, &[("a", Passed)]);
}

#[test]
fn subtests_before_their_parent_have_its_name() {
    let text = "TAP version 14\n# Subtest: p\n    # Subtest: q\n        ok 1 - c\n        1..1\n    \
        ok 1 - q\n    not ok 2 - d\n    1..2\nnot ok 1 - p\nok 2 - e\n1..2\n";
    let expected =
        [("p > q > c", Passed), ("p > q", Passed), ("p > d", Failed), ("p", Failed), ("e", Passed)];
    check(text, false, &expected);
    let indented_comment = text.replace("# Subtest: p\n", "    # Subtest: p\n");
    check(&indented_comment, false, &expected);
    let comments = ["# Subtest: p\n", "    # Subtest: q\n"];
    let without_comments = comments.iter().fold(text.to_owned(), |text, c| text.replacen(c, "", 1));
    check(&without_comments, false, &expected);
}

#[test]
fn subtests_in_a_block_after_their_parent_have_its_name() {
    let text = "1..2\nok 1 - p # time=2ms {\n    1..1\n    ok 1 - q {\n        ok 1 - c\n        1..1\n    }\n}\nok 2 - d {\n";
    let expected = [("p", Passed), ("p > q", Passed), ("p > q > c", Passed), ("d", Passed)];
    check(text, false, &expected);
}

#[test]
fn subtests_without_a_parent_are_broken() {
    check("# Subtest: p\n    ok 1 - c\n    1..1\n1..0\n", true, &[("p > c", Passed)]);
    check(
        "TAP version 13\n# Subtest: p\n    # Subtest: q\n        ok 1 - c\n",
        true,
        &[("p > q > c", Passed)],
    );
    check("1..1\nok 1 - a\n    not ok 1 - c\n    1..1\n", true, &[("a", Passed), ("c", Failed)]);
    check("1..1\n    ok 1 - c\n    1..2\nok 1 - p", true, &[("p > c", Passed), ("p", Passed)]);
}

#[test]
fn unnamed_tests_have_the_name_of_their_group_or_a_number() {
    check("1..2\nok 1\nok\n", false, &[("test 1", Passed), ("test 2", Passed)]);
    check("# Subtest: p\n    1..0 # SKIP\nok 1 # skip\n1..1\n", false, &[("p", Skipped)]);
    check("1..2\nok 1 - a\nok 2 - a\n", false, &[("a", Passed), ("a #2", Passed)]);
}

#[test]
fn streams_after_each_other_are_read() {
    let stream = "TAP version 13\n1..1\nok 1 - a\n";
    check(&stream.repeat(2), false, &[("a", Passed), ("a #2", Passed)]);
    let short = "TAP version 13\n1..2\nok 1 - a\n";
    check(&format!("{short}{stream}"), true, &[("a", Passed), ("a #2", Passed)]);
}

#[test]
fn diagnostics_are_the_cause_and_no_test_points() {
    let text = "1..2\nnot ok 1 - a\n  ---\n  duration_ms: 3\n  message: 'bad'\n  got: |\n    not ok 7\n  ...\n\
        not ok 2 - b\n#   Failed test 'b'\n#   at b.t line 2.\n";
    check(text, false, &[("a", Failed), ("b", Failed)]);
    let records = try_read(text).unwrap();
    assert_eq!(records.checks[0].ms, Some(3));
    assert_eq!(records.checks[0].cause, "bad\ngot: |\n  not ok 7");
    assert_eq!(records.checks[1].cause, "Failed test 'b'\nat b.t line 2.");
    check("1..1\nnot ok 1 - a\n  ---\n  message: b\n", true, &[("a", Failed)]);
}

#[test]
fn a_failed_file_is_broken() {
    check("1..1\nnot ok 1 - /project/a.mjs\n", true, &[("a.mjs", Failed)]);
    check("1..1\nok 1 - /project/a.mjs\n", false, &[("a.mjs", Passed)]);
}

#[test]
fn depth_and_number_are_bounded() {
    let nested = |depth: usize| -> String {
        (0..=depth).map(|level| format!("{}ok 1 - a\n", " ".repeat(level * 4))).collect()
    };
    assert!(try_read(&nested(SUBTEST_DEPTH_MAX)).is_ok());
    let error = try_read(&nested(SUBTEST_DEPTH_MAX + 1)).unwrap_err();
    assert!(matches!(error, ReportError::TooDeep { limit: SUBTEST_DEPTH_MAX, .. }), "{error}");

    let number = CHECKS_MAX + 2;
    let text = format!("1..{number}\n{}not ok - z\n", "ok - a\n".repeat(number - 1));
    let records = try_read(&text).unwrap();
    assert_eq!(records.checks.len(), CHECKS_MAX);
    assert_eq!((records.counts.passed, records.counts.failed), (number as u64 - 1, 1));
    assert!(!records.is_complete && !records.is_broken);
}
