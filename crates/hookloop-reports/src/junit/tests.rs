use std::path::Path;

use hookloop_core::checks::{CheckOutcome, CheckRecords};

use super::*;

fn try_read(text: &str) -> Result<CheckRecords, ReportError> {
    let mut sink = ReportSink::new("junit", Path::new("/project"));
    read(text, &mut sink)?;
    Ok(sink.finish())
}

fn records(text: &str) -> CheckRecords {
    try_read(text).unwrap()
}

fn first_id(case: &str) -> String {
    let text = format!(
        "<testsuite name=\"s\"><testsuite name=\"t\"><testcase {case}/></testsuite></testsuite>"
    );
    records(&text).checks[0].id.clone()
}

#[test]
fn names_are_stable_and_in_the_form_of_the_runner() {
    for (case, expected) in [
        (
            r#"classname="tests.test_a" name="test_x[1]" file="tests/test_a.py""#,
            "tests/test_a.py::test_x[1]",
        ),
        (
            r#"classname="tests.test_a.C.D" name="x" file="/project/tests/test_a.py""#,
            "tests/test_a.py::C::D::x",
        ),
        (r#"classname="" name="tests.test_a" file="tests/test_a.py""#, "tests/test_a.py"),
        (r#"classname="tests.test_ab" name="x" file="tests/test_a.py""#, "tests.test_ab::x"),
        (r#"classname="C" name="x" file="spec/a_spec.rb""#, "C::x"),
        (r#"classname="sum.test.ts" name="a &gt; b""#, "sum.test.ts::a > b"),
        (r#"classname="a b" name="a b c""#, "a b c"),
        (r#"classname="com.A" name="""#, "com.A"),
        (r#"classname="/project/src/a" name="F401" line="3""#, "src/a::F401"),
        (r#"classname="test" name="n""#, "s > t > n"),
        (r#"name="n""#, "n"),
        ("", "unnamed"),
    ] {
        assert_eq!(first_id(case), expected, "{case}");
    }
}

#[test]
fn the_elements_of_a_case_decide_its_outcome() {
    for (content, expected) in [
        ("", CheckOutcome::Passed),
        ("<failure/>", CheckOutcome::Failed),
        ("<error>e</error>", CheckOutcome::Failed),
        ("<rerunFailure/>", CheckOutcome::Failed),
        ("<x:failure/>", CheckOutcome::Failed),
        ("<flakyFailure/>", CheckOutcome::Passed),
        ("<flakyError/><flakyFailure/>", CheckOutcome::Passed),
        ("<flakyFailure/><failure/>", CheckOutcome::Failed),
        ("<skipped/>", CheckOutcome::Skipped),
        ("<skipped/><failure/>", CheckOutcome::Failed),
        ("<skipped type='todo'/><failure/>", CheckOutcome::Skipped),
        ("<system-out>&lt;failure/></system-out>", CheckOutcome::Passed),
        ("<system-out><![CDATA[<failure/>]]></system-out>", CheckOutcome::Passed),
        ("<properties><failure/></properties>", CheckOutcome::Passed),
    ] {
        let text = format!("<testsuite><testcase name='a'>{content}</testcase></testsuite>");
        assert_eq!(records(&text).checks[0].outcome, expected, "{content}");
    }
}

#[test]
fn attributes_can_say_that_a_case_failed_or_did_not_run() {
    for (attributes, expected) in [
        ("status='run' result='completed'", CheckOutcome::Passed),
        ("status='notrun' result='suppressed'", CheckOutcome::Skipped),
        ("status='Failed'", CheckOutcome::Failed),
    ] {
        let text = format!("<testsuite><testcase name='a' {attributes}/></testsuite>");
        assert_eq!(records(&text).checks[0].outcome, expected, "{attributes}");
    }
}

#[test]
fn cases_in_unknown_elements_count() {
    let text = "<testsuite><group><testcase name='a'><failure/></testcase></group></testsuite>";
    assert_eq!(records(text).counts.failed, 1);
}

#[test]
fn times_are_milliseconds() {
    for (time, expected) in
        [("0.0125", Some(13)), ("1,234.5", Some(1_234_500)), ("x", None), ("-1", None)]
    {
        let text = format!("<testsuite><testcase name='a' time='{time}'/></testsuite>");
        assert_eq!(records(&text).checks[0].ms, expected, "{time}");
    }
}

#[test]
fn a_cause_has_the_message_and_the_text_but_no_output() {
    let text = "<testsuite><testcase name='a'><failure message='m'>at &lt;a&gt;<![CDATA[ & b]]>\
        <system-out>noise</system-out></failure><system-err>more noise</system-err></testcase></testsuite>";
    assert_eq!(records(text).checks[0].cause, "m\nat <a> & b");
    let repeated = "<testsuite><testcase name='a'><failure message='m&#10;n'>Error: m\nn</failure></testcase></testsuite>";
    assert_eq!(records(repeated).checks[0].cause, "Error: m\nn");
}

#[test]
fn a_file_or_class_that_did_not_load_is_broken() {
    for (content, is_broken) in [
        ("<testcase classname='C' name='a'><failure/></testcase>", false),
        ("<testcase classname='s' name='s'><failure/></testcase>", true),
        ("<testcase classname='s' name='s'/>", false),
        ("<testcase classname='s' name=''><error/></testcase>", true),
        ("<testcase classname='g a' name='g a'><failure/></testcase>", false),
        ("<testcase classname='test' name='/project/a.mjs'><failure/></testcase>", true),
        ("<testcase classname='C' name='initializationError'><failure/></testcase>", true),
        ("<testcase name='m'><error message='collection failure'/></testcase>", true),
        ("<error message='no server'/>", true),
        ("<testsuite name='t' failures='1'/>", true),
        (
            "<testsuite name='t' errors='1'><testcase name='a'><error/></testcase></testsuite>",
            false,
        ),
    ] {
        let text = format!("<testsuites><testsuite name='s'>{content}</testsuite></testsuites>");
        assert_eq!(records(&text).is_broken, is_broken, "{content}");
    }
}

#[test]
fn a_failure_of_a_suite_is_a_failed_check() {
    let records =
        records("<testsuite name='s' errors='1'><error message='no server'>e</error></testsuite>");
    let check = &records.checks[0];
    assert_eq!((check.id.as_str(), check.cause.as_str()), ("s", "no server\ne"));
    assert_eq!(check.outcome, CheckOutcome::Failed);
}

#[test]
fn a_document_that_is_not_whole_is_refused() {
    for text in [
        "<testsuite>",
        "<testsuite><testcase name='a'></testsuite>",
        "<testsuite/><testsuite/>",
        "<testsuite/>text",
        "text<testsuite/>",
        "<testsuite></testsuites>",
        "</testsuite>",
        "<testsuite><testcase name='a'><testcase name='b'/></testcase></testsuite>",
        "<testsuite><testcase name='a",
        "<testsuite><testcase name=a/></testsuite>",
        "<testsuite><testcase name='a'>&</testcase></testsuite>",
        "<testsuite><!-- ",
        "<testsuite/><",
        "",
    ] {
        let error = try_read(text).map(|_| ()).unwrap_err();
        assert!(matches!(error, ReportError::Malformed { .. }), "{text}: {error}");
    }
}

#[test]
fn document_types_and_entities_are_refused() {
    for text in [
        "<!DOCTYPE testsuite><testsuite/>",
        "<!doctype testsuite [<!ENTITY a \"b\">]><testsuite/>",
        "<testsuite>&a;</testsuite>",
        "<testsuite name='&a;'/>",
        "<testsuite><testcase name='&a;'/></testsuite>",
        "<testsuite/><!DOCTYPE a>",
    ] {
        let error = try_read(text).map(|_| ()).unwrap_err();
        assert!(matches!(error, ReportError::EntityRefused { .. }), "{text}: {error}");
    }
}

#[test]
fn another_root_is_another_format() {
    for text in
        ["<html/>", "<coverage/>", "<testcase/>", "<?xml version='1.0'?><a><testsuite/></a>"]
    {
        let error = try_read(text).map(|_| ()).unwrap_err();
        assert!(matches!(error, ReportError::UnknownFormat), "{text}: {error}");
    }
}

#[test]
fn depth_and_attributes_are_bounded() {
    let nested = |depth| format!("{}{}", "<testsuite>".repeat(depth), "</testsuite>".repeat(depth));
    assert!(try_read(&nested(XML_DEPTH_MAX)).is_ok());
    let error = try_read(&nested(XML_DEPTH_MAX + 1)).unwrap_err();
    assert!(matches!(error, ReportError::TooDeep { limit: XML_DEPTH_MAX, .. }), "{error}");

    let long = |bytes| format!("<testsuite name='{}'/>", "a".repeat(bytes));
    assert!(try_read(&long(ATTRIBUTE_BYTES_MAX)).is_ok());
    let error = try_read(&long(ATTRIBUTE_BYTES_MAX + 1)).unwrap_err();
    assert!(matches!(error, ReportError::TooLarge { .. }), "{error}");

    let many = |number| format!("<testsuite {}/>", "a='' ".repeat(number));
    assert!(try_read(&many(ATTRIBUTES_MAX)).is_ok());
    let error = try_read(&many(ATTRIBUTES_MAX + 1)).unwrap_err();
    assert!(matches!(error, ReportError::TooMany { limit: ATTRIBUTES_MAX, .. }), "{error}");
}

#[test]
fn an_error_has_a_position_and_no_text_of_the_report() {
    let text = "<testsuite>\n <testcase name='a'>\n </secret></testsuite>";
    let error = try_read(text).unwrap_err().to_string();
    assert!(error.starts_with("malformed at line 3, column "), "{error}");
    assert!(!error.contains("secret"), "{error}");
}
