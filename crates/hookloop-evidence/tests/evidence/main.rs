//! Tests of the crate through its public interface.
#![expect(clippy::unwrap_used, reason = "tests")]

mod functions;
mod go_tests;
mod grafts;
mod limits;
mod manifests;
mod python_tests;
mod roles;
mod rust_tests;
mod script_tests;
mod suspicions;

use hookloop_evidence::{SourceLanguage, SourceTest, tests_in};

fn tests(language: SourceLanguage, source: &str) -> Vec<SourceTest> {
    tests_in(language, source).unwrap()
}

/// Checks the lines, names and marks of all tests in a source: `3 Class::test_name`, with `skip` if it is skipped.
#[track_caller]
fn check_names(language: SourceLanguage, source: &str, expected: &[&str]) {
    let described = |test: &SourceTest| {
        let path: Vec<&str> = test.scope.iter().chain([&test.name]).map(String::as_str).collect();
        let mark = if test.is_skipped { " skip" } else { "" };
        format!("{} {}{mark}", test.line, path.join("::"))
    };
    let found: Vec<String> = tests(language, source).iter().map(described).collect();
    assert_eq!(found, expected);
}

/// Checks the assertions of the only test in a source: their text, inputs and outcomes.
#[track_caller]
fn check_assertions(language: SourceLanguage, source: &str, expected: &[(&str, &str, &str)]) {
    let tests = tests(language, source);
    assert_eq!(tests.len(), 1, "{tests:?}");
    let described = tests[0].assertions.iter().map(|assertion| {
        (assertion.text.as_str(), assertion.inputs.join(" "), assertion.outcomes.join(" "))
    });
    let found: Vec<(&str, String, String)> = described.collect();
    let found: Vec<(&str, &str, &str)> =
        found.iter().map(|(text, inputs, outcomes)| (*text, &**inputs, &**outcomes)).collect();
    assert_eq!(found, expected);
}

/// Checks whether the only tests of two sources have the same text.
#[track_caller]
fn check_same(language: SourceLanguage, left: &str, right: &str, is_same: bool) {
    let text = |source: &str| {
        let tests = tests(language, source);
        tests.into_iter().next().unwrap().text
    };
    let (left, right) = (text(left), text(right));
    assert_eq!(left == right, is_same, "\n{left}\n{right}");
}
