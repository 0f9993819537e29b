use super::*;

#[test]
fn terminal_escapes_are_removed_from_output() {
    let check = |text: &str, expected: &str| assert_eq!(plain(text), expected, "{text:?}");
    check("", "");
    check("plain", "plain");
    check("\x1b[31;1mred\x1b[0m and \x1b[38;5;1mmore\x1b[m", "red and more");
    check("\x1b]8;;https://example.com\x07link\x1b]8;;\x07", "link");
    check("\x1b(Btext", "Btext");
    check("\x1b", "");
    check("a\x1b[", "a");
    check("a\x1b[31", "a");
    check("\x1bé", "é");
    check("\x1b[é1m!", "!");
    check("\x1b\x1b[1mx", "x");
}

#[test]
fn check_names_are_one_line_of_limited_length() {
    let check = |name: &str, expected: &str| assert_eq!(clean_name(name), expected);
    check("a::b", "a::b");
    check("  two   words\t", "two words");
    check("bell\u{7}line\nend", "bell line end");
    assert!(clean_name(&"é".repeat(NAME_MAX)).len() <= NAME_MAX);
    assert!(clean_name(&"é".repeat(NAME_MAX)).ends_with('…'));
}

#[test]
fn causes_are_limited_in_lines_and_length() {
    let check = |lines: &[&str], expected: &str| {
        assert_eq!(cause(lines.iter().copied()), expected);
    };
    check(&[], "");
    check(&["", "  a", "", "    b", "  c", ""], "a\n  b\nc");
    let many = vec!["line"; CAUSE_LINES_MAX + 1];
    check(&many, &format!("{}…", "line\n".repeat(CAUSE_LINES_MAX)));
    check(&many[1..], many[1..].join("\n").as_str());
    let long = "x".repeat(CAUSE_LINE_MAX + 1);
    check(&[&long], &format!("{}…", &long[..CAUSE_LINE_MAX - 3]));
}

#[test]
fn checks_beyond_the_limit_are_counted_once() {
    let mut found = FoundChecks::default();
    for _ in 0..2 {
        for number in 0..FAILING_MAX + 5 {
            found.add(&format!("test {number}"), "why".to_owned());
        }
    }
    assert!(found.failing[FAILING_MAX..].iter().all(|check| check.cause.is_empty()));
    let report = found.report("cargo test").unwrap();
    assert_eq!((report.failing.len(), report.more), (FAILING_MAX, 5));
}

#[test]
fn checks_keep_the_first_cause_that_is_known() {
    let mut found = FoundChecks::default();
    for why in ["", "first", "second"] {
        found.add("test", why.to_owned());
    }
    assert_eq!(found.failing, [Check { name: "test".to_owned(), cause: "first".to_owned() }]);
}

#[test]
fn checks_are_read_from_the_end_of_long_output() {
    let output = format!("{}\nFAIL\texample.com/a\t0.1s\n", "é".repeat(READ_MAX));
    let report = read(&output).unwrap();
    assert_eq!(report.failing[0].name, "example.com/a");
    let output = format!("test a ... FAILED\n{}", "x\n".repeat(READ_MAX));
    assert_eq!(read(&output), None);
}

#[test]
fn checks_are_read_from_go_packages_that_crash() {
    let check = |output: &str, expected: &[(&str, &str)]| {
        let report = read(output).unwrap();
        let found: Vec<(&str, &str)> = report
            .failing
            .iter()
            .map(|check| (check.name.as_str(), check.cause.as_str()))
            .collect();
        assert_eq!(found, expected, "{output}");
    };
    let end = "\ngoroutine 1 [running]:\nmain()\nFAIL\tp\t1.0s\n";
    let late = "panic: test timed out after 1s\nrunning tests:\n\tTestB (1s)\n";
    let told = "panic: test timed out after 1s\nrunning tests:\n\tTestB (1s)";
    let failed = "--- FAIL: TestA (0.00s)\n    a_test.go:1: no\n";
    check(&format!("{failed}{late}{end}"), &[("p", told), ("p TestA", "a_test.go:1: no")]);
    check(&format!("=== RUN   TestB\n{late}{end}"), &[("p", told)]);
    check(&format!("{failed}panic: no{end}"), &[("p TestA", "    a_test.go:1: no\npanic: no")]);
    check("FAIL\tp\t1.0s\n", &[("p", "")]);
    check("FAIL\tp [build failed]\n", &[("p [build failed]", "")]);
}

#[test]
fn checks_are_read_from_a_pytest_summary() {
    let check = |entry: &str, name: &str| {
        let report = read(&format!("== short test summary info ==\n{entry}\n")).unwrap();
        assert_eq!(report.failing[0].name, name);
    };
    check("FAILED a.py::test_a", "a.py::test_a");
    check("FAILED a.py::test_a - assert 1 - 1 == [1] - [2]", "a.py::test_a");
    check("FAILED a.py::test_a[x - y] - ValueError: no", "a.py::test_a[x - y]");
    check("FAILED a.py::test_a[x - y]", "a.py::test_a[x - y]");
    check("ERROR a.py - ImportError", "a.py");
    check("SUBFAILED[case 1] a.py::test_a - no", "a.py::test_a");
}

#[test]
fn banners_printed_by_tests_do_not_end_a_section() {
    let output = "== FAILURES ==\n__ test_a __\nE   first\n-- Captured stdout call --\n\
                  == a title ==\n__ test_b __\nE   second\n\
                  == short test summary info ==\nFAILED a.py::test_a\nFAILED a.py::test_b\n";
    let report = read(output).unwrap();
    let causes: Vec<&str> = report.failing.iter().map(|check| check.cause.as_str()).collect();
    assert_eq!(causes, ["E   first", "E   second"]);
}

#[test]
fn checks_are_read_from_output_of_older_nextest_versions() {
    let output = "    Starting 1 test across 1 binary\n        \
                  FAIL [   0.004s] shop cart::sums\n\n\
                  --- STDOUT:              shop cart::sums ---\n\nrunning 1 test\n\
                  test cart::sums ... FAILED\n\nfailures:\n\nfailures:\n    cart::sums\n\n\
                  test result: FAILED. 0 passed; 1 failed\n\n\
                  --- STDERR:              shop cart::sums ---\n\
                  thread 'cart::sums' panicked at src/lib.rs:3:9:\nno\n\n\
                  ------------\n     Summary [   0.005s] 1 test run: 0 passed, 1 failed\n        \
                  FAIL [   0.004s] shop cart::sums\nerror: test run failed\n";
    let report = read(output).unwrap();
    assert_eq!(report.runner, "cargo nextest");
    let cause = "thread 'cart::sums' panicked at src/lib.rs:3:9:\nno".to_owned();
    assert_eq!(report.failing, [Check { name: "shop cart::sums".to_owned(), cause }]);
}

/// Returns the ids of an outcome.
fn ids(records: &CheckRecords, outcome: CheckOutcome) -> Vec<&str> {
    let of_outcome = records.checks.iter().filter(|check| check.outcome == outcome);
    of_outcome.map(|check| check.id.as_str()).collect()
}

#[test]
fn verbose_go_packages_list_all_tests() {
    let cart = "=== RUN   TestTotal\n=== RUN   TestTotal/two\n--- PASS: TestTotal (1.25s)\n    \
                --- PASS: TestTotal/two (1.20s)\n=== RUN   TestSkip\n--- SKIP: TestSkip (0.00s)\n\
                PASS\nok  \tp/cart\t1.252s\n";
    let empty = "?   \tp/plain\t[no test files]\ntesting: warning: no tests to run\nPASS\n\
                 ok  \tp/empty\t0.001s [no tests to run]\n";
    let text = "=== RUN   TestSkip\n--- PASS: TestSkip (0.00s)\nPASS\nok  \tp/text\t(cached)\n";
    let found = records(&format!("{cart}{empty}{text}")).unwrap();
    let passed = ["p/cart TestTotal", "p/cart TestTotal/two", "p/text TestSkip"];
    assert_eq!(ids(&found, CheckOutcome::Passed), passed);
    assert_eq!(ids(&found, CheckOutcome::Skipped), ["p/cart TestSkip"]);
    assert_eq!((found.is_complete, found.checks[0].ms), (true, Some(1_250)));
    for gap in [
        // A package without a list, a test without a result, and a package without its line.
        "ok  \tp/quiet\t0.1s\n",
        "=== RUN   TestA\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nok  \tp/b\t0.1s\n",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n",
    ] {
        assert!(!records(&format!("{cart}{gap}")).unwrap().is_complete, "{gap}");
    }
}

#[test]
fn crashed_binaries_leave_records_incomplete() {
    let begin = "running 2 tests\ntest a ... ok\n";
    let end = "test result: ok. 1 passed; 0 failed; 0 ignored\n";
    let crash = "error: test failed, to rerun pass `--lib`\n\nCaused by:\n  signal: 6\n\n";
    let found = records(&format!("{begin}{crash}running 1 test\ntest b ... ok\n{end}")).unwrap();
    assert_eq!((found.is_complete, found.is_broken), (false, true));
    assert_eq!(ids(&found, CheckOutcome::Passed), ["a", "b"]);
    let killed = records(begin).unwrap();
    assert_eq!((killed.is_complete, killed.counts.passed), (false, 1));
    assert!(records(&begin.replace("running 2 tests\n", "")).is_none());
}

#[test]
fn tests_of_one_name_keep_their_own_outcome_and_cause() {
    let binary = |name: &str, why: &str| {
        format!(
            "     Running tests/{name}.rs (target/debug/deps/{name}-0a1b)\n\nrunning 1 test\n\
             test same ... FAILED\n\nfailures:\n\n---- same stdout ----\n{why}\n\n\
             failures:\n    same\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n"
        )
    };
    let output = binary("one", "first") + &binary("two", "second");
    let found = records(&output).unwrap();
    let causes: Vec<(&str, &str)> =
        found.checks.iter().map(|check| (check.id.as_str(), check.cause.as_str())).collect();
    assert_eq!(causes, [("same", "first"), ("two same", "second")]);
    assert!(found.is_complete);
    assert_eq!(read(&output).unwrap().failing.len(), 1);
    // Examples of one item are numbered by their line, independent of the order in which they end.
    let example =
        |line: u32, result: &str| format!("test src/a.rs - a (line {line}) ... {result}\n");
    let end = "test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
    let output = format!("running 2 tests\n{}{}\n{end}", example(20, "FAILED"), example(9, "ok"));
    let found = records(&output).unwrap();
    assert_eq!(ids(&found, CheckOutcome::Passed), ["src/a.rs - a"]);
    assert_eq!(ids(&found, CheckOutcome::Failed), ["src/a.rs - a #2"]);
}

#[test]
fn sections_of_passed_tests_are_no_failures() {
    let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n\
                  ---- a stdout ----\nfine\n\nsuccesses:\n    a\n\nfailures:\n\n\
                  ---- b stdout ----\nsuccesses:\nbad\n\nfailures:\n    b\n\n\
                  test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
    let report = read(output).unwrap();
    let cause = "successes:\nbad".to_owned();
    assert_eq!(report.failing, [Check { name: "b".to_owned(), cause }]);
    assert_eq!(records(output).unwrap().counts.passed, 1);
}

#[test]
fn lists_of_jest_with_other_lines_are_not_read() {
    let end = "\nTest Suites: 1 passed, 1 total\nTests:       1 passed, 1 total\n";
    let check = |list: &str, expected: &[&str]| {
        let found = records(&format!("PASS a.js\n{list}{end}")).unwrap();
        assert_eq!(ids(&found, CheckOutcome::Passed), expected, "{list}");
        assert_eq!((found.counts.passed, found.is_complete), (1, !expected.is_empty()), "{list}");
    };
    check("  ✓ a\n", &["a.js › a"]);
    check("  suite\n    ✓ a (1.5 s)\n", &["a.js › suite › a"]);
    check("  ✓ a\n   odd\n", &[]);
    check("      ✓ a\n", &[]);
    check("  ● Console\n  ✓ a\n", &[]);
    check("printed\n  ✓ a\n", &[]);
}

#[test]
fn summaries_are_read_only_with_known_words() {
    let check = |line: &str, expected: Option<(u64, u64, u64)>| {
        let counts = records(line).map(|found| found.counts);
        let counts = counts.map(|it| (it.passed, it.failed, it.skipped));
        assert_eq!(counts, expected, "{line}");
    };
    check("== 5 passed, 2 skipped, 1 warning in 65.12s (0:01:05) ==", Some((5, 0, 2)));
    check("1 passed, 10 deselected, 1 xpassed in 0.02s", Some((2, 0, 0)));
    check("== no tests ran in 0.01s ==", Some((0, 0, 0)));
    check("2 failed in 0.02s", Some((0, 2, 0)));
    check("5 sheep passed in 2s", None);
    check("5 passed in total", None);
    check(" Test Files  1 passed (1)\n      Tests  4 passed | 1 todo (5)", Some((4, 0, 1)));
    check(" Test Files  1 passed (1)\n      Tests  4 passed (5)", None);
    check("Test Suites: 1 passed, 1 total\nTests: 2 skipped, 4 passed, 6 total", Some((4, 0, 2)));
    check("Test Suites: 1 passed, 1 total\nTests: 4 passed, 5 total", None);
    let summary = "     Summary [   0.3s] 6/7 tests run: ";
    let counts = "4 passed (1 slow, 1 flaky), 1 failed, 1 timed out, 3 skipped";
    check(&format!("{summary}{counts}"), Some((4, 2, 3)));
    check("test result: ok. 5 passed; 0 failed; 2 ignored", Some((5, 0, 2)));
    check("test result: fine. 5 passed; 0 failed", None);
}
