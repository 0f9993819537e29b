//! Reports that real runners and linters wrote, in projects with the same tests: passing, failing, skipped, with
//! parameters, with an error, and in a file that does not load. Paths of the machine are replaced by `/project`.

use std::path::{Path, PathBuf};

use hookloop_core::checks::CheckOutcome::{Failed, Passed, Skipped};
use hookloop_core::checks::{CheckOutcome, CheckRecords};
use hookloop_reports::{ReportFormat, go_test_text, read, read_files, recognize};

use crate::{captured_bytes, captured_directory, root};

/// The expected reading of a captured report.
struct Expected<'a> {
    format: ReportFormat,
    is_broken: bool,
    checks: &'a [(&'a str, CheckOutcome)],
}

fn check(file: &str, expected: &Expected<'_>) -> CheckRecords {
    let bytes = captured_bytes(file);
    assert_eq!(recognize(&bytes).unwrap(), expected.format, "{file}");
    let records = read(&bytes, root()).unwrap();
    assert_eq!(records.source, expected.format.name(), "{file}");
    assert_eq!(outcomes(&records), expected.checks, "{file}");
    assert_eq!(records.is_broken, expected.is_broken, "{file}");
    assert!(records.is_complete, "{file}");
    let failed = expected.checks.iter().filter(|(_, outcome)| *outcome == Failed).count();
    assert_eq!(records.counts.failed, failed as u64, "{file}");
    assert_eq!(records.counts.total(), expected.checks.len() as u64, "{file}");
    records
}

fn outcomes(records: &CheckRecords) -> Vec<(&str, CheckOutcome)> {
    records.checks.iter().map(|check| (check.id.as_str(), check.outcome)).collect()
}

fn cause<'r>(records: &'r CheckRecords, id: &str) -> &'r str {
    &records.checks.iter().find(|check| check.id == id).unwrap().cause
}

#[test]
fn pytest_with_files_has_the_names_of_pytest() {
    let checks = [
        ("tests/test_broken.py", Failed),
        ("pkg/sub/test_deep.py::DeepTest::test_teardown", Failed),
        ("pkg/sub/test_deep.py::DeepTest::test_unit", Passed),
        ("tests/test_a.py::test_passes", Passed),
        ("tests/test_a.py::test_fails", Failed),
        ("tests/test_a.py::test_skipped", Skipped),
        ("tests/test_a.py::test_many[1]", Passed),
        ("tests/test_a.py::test_many[2]", Failed),
        ("tests/test_a.py::test_many[a::b]", Passed),
        ("tests/test_a.py::test_errors", Failed),
        ("tests/test_a.py::test_expected_failure", Skipped),
        ("tests/test_a.py::TestC::test_x", Passed),
        ("tests/test_a.py::TestC::TestInner::test_y", Failed),
    ];
    let expected = Expected { format: ReportFormat::Junit, is_broken: true, checks: &checks };
    let records = check("pytest/xunit1.xml", &expected);
    let cause = cause(&records, "tests/test_a.py::test_fails");
    assert!(cause.starts_with("AssertionError: assert '<a & b>' == 'c'\n"), "{cause}");
    assert_eq!(records.checks[1].ms, Some(1));
    let collection = Expected { checks: &checks[..1], ..expected };
    check("pytest/collection.xml", &collection);
}

#[test]
fn pytest_without_files_has_modules_as_names() {
    let checks = [
        ("tests.test_broken", Failed),
        ("pkg.sub.test_deep.DeepTest::test_teardown", Failed),
        ("pkg.sub.test_deep.DeepTest::test_unit", Passed),
        ("tests.test_a::test_passes", Passed),
        ("tests.test_a::test_fails", Failed),
        ("tests.test_a::test_skipped", Skipped),
        ("tests.test_a::test_many[1]", Passed),
        ("tests.test_a::test_many[2]", Failed),
        ("tests.test_a::test_many[a::b]", Passed),
        ("tests.test_a::test_errors", Failed),
        ("tests.test_a::test_expected_failure", Skipped),
        ("tests.test_a.TestC::test_x", Passed),
        ("tests.test_a.TestC.TestInner::test_y", Failed),
    ];
    let expected = Expected { format: ReportFormat::Junit, is_broken: true, checks: &checks };
    check("pytest/xunit2.xml", &expected);
}

#[test]
fn pytest_in_ctrf_has_the_names_of_pytest() {
    let checks = [
        ("pkg/sub/test_deep.py::DeepTest::test_teardown", Failed),
        ("pkg/sub/test_deep.py::DeepTest::test_unit", Passed),
        ("tests/test_a.py::test_passes", Passed),
        ("tests/test_a.py::test_fails", Failed),
        ("tests/test_a.py::test_skipped", Skipped),
        ("tests/test_a.py::test_many[1]", Passed),
        ("tests/test_a.py::test_many[2]", Failed),
        ("tests/test_a.py::test_many[a::b]", Passed),
        ("tests/test_a.py::test_errors", Failed),
        ("tests/test_a.py::test_expected_failure", Skipped),
        ("tests/test_a.py::TestC::test_x", Passed),
        ("tests/test_a.py::TestC::TestInner::test_y", Failed),
    ];
    // The plugin does not report that a module did not load.
    let expected = Expected { format: ReportFormat::Ctrf, is_broken: false, checks: &checks };
    check("pytest/ctrf.json", &expected);
}

#[test]
fn vitest_in_junit() {
    let checks = [
        ("broken.test.ts", Failed),
        ("sum.test.ts::adds", Passed),
        ("sum.test.ts::fails", Failed),
        ("sum.test.ts::is skipped", Skipped),
        ("sum.test.ts::is to be written", Skipped),
        ("sum.test.ts::group > is not two: 1", Passed),
        ("sum.test.ts::group > is not two: 2", Failed),
        ("sum.test.ts::group > inner > throws", Failed),
    ];
    let expected = Expected { format: ReportFormat::Junit, is_broken: true, checks: &checks };
    let records = check("vitest/junit.xml", &expected);
    let cause = cause(&records, "sum.test.ts::group > inner > throws");
    assert_eq!(cause, "Error: inner error\n ❯ sum.test.ts:11:13");
}

#[test]
fn vitest_in_json_and_in_flat_tap_has_the_same_names() {
    let checks = [
        ("broken.test.ts", Failed),
        ("sum.test.ts > adds", Passed),
        ("sum.test.ts > fails", Failed),
        ("sum.test.ts > is skipped", Skipped),
        ("sum.test.ts > is to be written", Skipped),
        ("sum.test.ts > group > is not two: 1", Passed),
        ("sum.test.ts > group > is not two: 2", Failed),
        ("sum.test.ts > group > inner > throws", Failed),
    ];
    let expected = Expected { format: ReportFormat::Jest, is_broken: true, checks: &checks };
    check("vitest/jest.json", &expected);
    let expected = Expected { format: ReportFormat::Tap, is_broken: false, checks: &checks };
    check("vitest/flat.tap", &expected);
}

#[test]
fn vitest_in_nested_tap_has_files_and_groups_as_checks() {
    let checks = [
        ("broken.test.ts", Failed),
        ("sum.test.ts", Failed),
        ("sum.test.ts > adds", Passed),
        ("sum.test.ts > fails", Failed),
        ("sum.test.ts > is skipped", Skipped),
        ("sum.test.ts > is to be written", Skipped),
        ("sum.test.ts > group", Failed),
        ("sum.test.ts > group > is not two: 1", Passed),
        ("sum.test.ts > group > is not two: 2", Failed),
        ("sum.test.ts > group > inner", Failed),
        ("sum.test.ts > group > inner > throws", Failed),
    ];
    let expected = Expected { format: ReportFormat::Tap, is_broken: false, checks: &checks };
    let records = check("vitest/nested.tap", &expected);
    assert_eq!(records.checks[1].ms, Some(14));
}

#[test]
fn jest_in_json_and_in_ctrf_has_the_same_names() {
    let checks = [
        ("sum.test.js > adds", Passed),
        ("sum.test.js > fails", Failed),
        ("sum.test.js > is skipped", Skipped),
        ("sum.test.js > is to be written", Skipped),
        ("sum.test.js > group > is not two: 1", Passed),
        ("sum.test.js > group > is not two: 2", Failed),
        ("sum.test.js > group > inner > throws", Failed),
        ("broken.test.js", Failed),
    ];
    let expected = Expected { format: ReportFormat::Jest, is_broken: true, checks: &checks };
    let records = check("jest/jest.json", &expected);
    let cause = cause(&records, "sum.test.js > group > inner > throws");
    assert_eq!(cause, "Error: inner error\n    at Object.<anonymous> (sum.test.js:9:13)");
    // The reporter leaves out a file that did not load.
    let expected = Expected { format: ReportFormat::Ctrf, is_broken: false, checks: &checks[..7] };
    check("jest/ctrf.json", &expected);
}

#[test]
fn jest_in_junit() {
    let checks = [
        ("adds", Passed),
        ("fails", Failed),
        ("is skipped", Skipped),
        // The reporter writes it as a test that passed.
        ("is to be written", Passed),
        ("group is not two: 1", Passed),
        ("group is not two: 2", Failed),
        ("group inner throws", Failed),
    ];
    let expected = Expected { format: ReportFormat::Junit, is_broken: false, checks: &checks };
    check("jest/junit.xml", &expected);
}

#[test]
fn node_in_junit() {
    let checks = [
        ("passes", Passed),
        ("fails", Failed),
        ("is skipped", Skipped),
        ("is to be written", Skipped),
        ("group > is not two: 1", Passed),
        ("group > is not two: 2", Failed),
        ("group > inner > throws", Failed),
        ("parent > child # with a hash", Passed),
        ("broken.test.mjs", Failed),
    ];
    let expected = Expected { format: ReportFormat::Junit, is_broken: true, checks: &checks };
    check("node/junit.xml", &expected);
}

#[test]
fn node_in_tap() {
    let checks = [
        ("passes", Passed),
        ("fails", Failed),
        ("is skipped", Skipped),
        ("is to be written", Skipped),
        ("group > is not two: 1", Passed),
        ("group > is not two: 2", Failed),
        ("group > inner > throws", Failed),
        ("group > inner", Failed),
        ("group", Failed),
        ("parent > child # with a hash", Passed),
        ("parent", Passed),
        ("broken.test.mjs", Failed),
    ];
    let expected = Expected { format: ReportFormat::Tap, is_broken: true, checks: &checks };
    let records = check("node/report.tap", &expected);
    let cause = cause(&records, "fails");
    assert!(
        cause.starts_with("Expected values to be strictly equal:\n'<a & b>' !== 'c'\n"),
        "{cause}"
    );
    assert_eq!(records.checks[0].ms, Some(2));
}

#[test]
fn tape_numbers_equal_descriptions() {
    let checks = [
        ("adds", Passed),
        ("is c", Failed),
        ("should be strictly equal", Passed),
        ("not now", Skipped),
        ("later", Skipped),
        ("should not be strictly equal", Passed),
        ("should not be strictly equal #2", Failed),
        ("plan != count", Failed),
    ];
    let expected = Expected { format: ReportFormat::Tap, is_broken: false, checks: &checks };
    check("tape/report.tap", &expected);
    let expected =
        Expected { format: ReportFormat::Tap, is_broken: true, checks: &[("one", Passed)] };
    check("tape/crash.tap", &expected);
}

#[test]
fn perl_with_subtests_and_bailing_out() {
    let checks = [
        ("adds", Passed),
        ("fails", Failed),
        ("test 3", Skipped),
        ("is to be written", Skipped),
        ("group > is not two: 1", Passed),
        ("group > is not two: 2", Failed),
        ("group", Failed),
        ("empty plan", Skipped),
    ];
    let expected = Expected { format: ReportFormat::Tap, is_broken: false, checks: &checks };
    check("perl/report.tap", &expected);
    let expected =
        Expected { format: ReportFormat::Tap, is_broken: true, checks: &[("one", Passed)] };
    check("perl/bail-out.tap", &expected);
}

#[test]
fn go_with_failed_builds_and_panics() {
    let checks = [
        ("example.com/sum.TestAdds", Passed),
        ("example.com/sum.TestFails", Failed),
        ("example.com/sum.TestSkipped", Skipped),
        ("example.com/sum.TestMany", Failed),
        ("example.com/sum.TestMany/n=1", Passed),
        ("example.com/sum.TestMany/n=2", Failed),
        ("example.com/sum.ExampleSum", Passed),
        ("example.com/sum/panics.TestFirst", Passed),
        ("example.com/sum/panics.TestPanics", Failed),
        ("example.com/sum/bad", Failed),
        ("example.com/sum/main_exits", Failed),
    ];
    let expected = Expected { format: ReportFormat::GoTest, is_broken: true, checks: &checks };
    let records = check("go/report.jsonl", &expected);
    let failed = "printed <a & b>\n    sum_test.go:12: got \"<a & b>\", want \"c\"";
    assert_eq!(cause(&records, "example.com/sum.TestFails"), failed);
    assert!(cause(&records, "example.com/sum/bad").contains("bad_test.go:5:32: undefined"));
    assert_eq!(cause(&records, "example.com/sum/main_exits"), "exit status 3");
}

#[test]
fn go_with_parallel_tests_benchmarks_and_fuzzing() {
    let checks = [
        ("example.com/sum.TestAdds", Passed),
        ("example.com/sum.FuzzAdds", Passed),
        ("example.com/sum.FuzzAdds/seed#0", Passed),
        ("example.com/sum.BenchmarkAdds", Passed),
    ];
    let expected = Expected { format: ReportFormat::GoTest, is_broken: false, checks: &checks };
    check("go/passing.jsonl", &expected);
}

#[test]
fn the_text_of_go_is_for_people() {
    let text = go_test_text(&captured_bytes("go/report.jsonl")).unwrap();
    assert!(text.starts_with("# example.com/sum/bad [example.com/sum/bad.test]\nbad/bad_test.go"));
    assert!(
        text.contains("\n    sum_test.go:23: is two\n--- FAIL: TestMany/n=2 (0.00s)\n"),
        "{text}"
    );
    assert!(text.contains("\nFAIL\texample.com/sum\t0.006s\n"), "{text}");
    assert!(!text.contains("{\""), "{text}");
    for other in ["libtest/lib.jsonl", "jest/jest.json", "perl/report.tap", "node/junit.xml"] {
        assert_eq!(go_test_text(&captured_bytes(other)), None, "{other}");
    }
}

#[test]
fn libtest() {
    let checks = [
        ("tests::does_not_panic", Failed),
        ("tests::adds", Passed),
        ("tests::is_ignored", Skipped),
        ("tests::returns_an_error", Failed),
        ("tests::fails", Failed),
        ("aborts", Failed),
        ("passes_at_the_second_try", Failed),
    ];
    let expected =
        Expected { format: ReportFormat::Libtest, is_broken: false, checks: &checks[..5] };
    let records = check("libtest/lib.jsonl", &expected);
    assert_eq!(cause(&records, "tests::returns_an_error"), "Error: \"an error\"");
    // The second executable aborted, and the third has no tests.
    let expected = Expected { format: ReportFormat::Libtest, is_broken: true, checks: &checks };
    let records = check("libtest/abort.jsonl", &expected);
    assert_eq!(cause(&records, "aborts"), "The test did not finish.");
}

#[test]
fn nextest_with_retries() {
    let checks = [
        ("sum::tests::adds", Passed),
        ("sum::tests::does_not_panic", Failed),
        ("sum::tests::fails", Failed),
        ("sum::tests::returns_an_error", Failed),
        ("sum::flaky::aborts", Failed),
        ("sum::flaky::passes_at_the_second_try", Passed),
    ];
    let expected = Expected { format: ReportFormat::Junit, is_broken: false, checks: &checks };
    let records = check("nextest/junit.xml", &expected);
    let cause = cause(&records, "sum::tests::does_not_panic");
    assert_eq!(cause, "note: test did not panic as expected at src/lib.rs:17:8");

    let checks = [
        ("sum::sum$tests::adds", Passed),
        ("sum::sum$tests::is_ignored", Skipped),
        ("sum::sum$tests::does_not_panic", Failed),
        ("sum::sum$tests::fails", Failed),
        ("sum::flaky$aborts", Failed),
        ("sum::flaky$passes_at_the_second_try", Passed),
        ("sum::sum$tests::returns_an_error", Failed),
    ];
    let expected = Expected { format: ReportFormat::Libtest, is_broken: false, checks: &checks };
    check("nextest/libtest.jsonl", &expected);
}

#[test]
fn eslint_with_suppressions_and_a_file_that_does_not_parse() {
    let checks = [
        ("no-unused-vars src/a.js", Skipped),
        ("no-undef src/a.js", Failed),
        ("no-undef src/a.js #2", Failed),
        ("no-debugger src/a.js", Skipped),
        ("ESL0999 src/broken.js", Failed),
    ];
    let expected = Expected { format: ReportFormat::Sarif, is_broken: true, checks: &checks };
    let records = check("eslint/report.sarif", &expected);
    let cause = cause(&records, "no-undef src/a.js #2");
    assert_eq!(cause, "src/a.js:3: 'other' is not defined.");
}

#[test]
fn ruff_in_sarif_and_in_junit() {
    let checks = [
        ("F401 src/a.py", Failed),
        ("F401 src/a.py #2", Failed),
        ("F821 src/a.py", Failed),
        ("invalid-syntax src/broken.py", Failed),
        ("invalid-syntax src/broken.py #2", Failed),
        ("invalid-syntax src/broken.py #3", Failed),
    ];
    let expected = Expected { format: ReportFormat::Sarif, is_broken: false, checks: &checks };
    check("ruff/report.sarif", &expected);
    let checks = [
        ("src/a::org.ruff.F401", Failed),
        ("src/a::org.ruff.F401 #2", Failed),
        ("src/a::org.ruff.F821", Failed),
        ("src/broken::org.ruff.invalid-syntax", Failed),
        ("src/broken::org.ruff.invalid-syntax #2", Failed),
        ("src/broken::org.ruff.invalid-syntax #3", Failed),
    ];
    let expected = Expected { format: ReportFormat::Junit, is_broken: false, checks: &checks };
    check("ruff/junit.xml", &expected);
}

#[test]
fn a_directory_of_surefire_is_read_without_its_texts() {
    let checks = [
        ("com.example.BrokenTest", Failed),
        ("com.example.SumTest::errors", Failed),
        ("com.example.SumTest::isNotTwo{int}[1]", Passed),
        ("com.example.SumTest::isNotTwo{int}[2]", Failed),
        ("com.example.SumTest::adds", Passed),
        ("com.example.SumTest::fails", Failed),
        ("com.example.SumTest::passesAtTheSecondTry", Failed),
        ("com.example.SumTest::isSkipped", Skipped),
        ("com.example.SumTest$Inner::isNested", Passed),
    ];
    let broken = Expected { format: ReportFormat::Junit, is_broken: true, checks: &checks[..1] };
    check("surefire/TEST-com.example.BrokenTest.xml", &broken);
    let sum = Expected { format: ReportFormat::Junit, is_broken: false, checks: &checks[1..] };
    check("surefire/TEST-com.example.SumTest.xml", &sum);
    let directory = captured_directory().join("surefire");
    let records = read_files(&[directory], root()).unwrap();
    assert_eq!(outcomes(&records), checks);
    assert!(records.is_broken && records.is_complete);
}

#[test]
fn reports_of_several_formats_are_merged() {
    let files: Vec<PathBuf> = ["perl/report.tap", "go/passing.jsonl", "ruff/junit.xml"]
        .map(|file| captured_directory().join(file))
        .to_vec();
    let records = read_files(&files, Path::new("/project")).unwrap();
    assert_eq!(records.source, "go test");
    assert_eq!(records.counts.total(), 4 + 8 + 6);
    assert!(!records.is_broken && records.is_complete);
}
