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
            found.add(&format!("test {number}"), String::new());
        }
    }
    assert_eq!((found.failing.len(), found.more), (FAILING_MAX, 5));
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
