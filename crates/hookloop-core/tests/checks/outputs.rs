//! Each captured output, with its failing tests and their causes.

use super::{names, report};

const CARGO: [&str; 5] = [
    "cart::tests::loads",
    "cart::tests::overflows",
    "cart::tests::sums",
    "orders_are_kept",
    "src/lib.rs - add",
];
const NEXTEST: [&str; 4] = [
    "shop cart::tests::loads",
    "shop cart::tests::overflows",
    "shop cart::tests::sums",
    "shop::orders orders_are_kept",
];
const COMPILER: [&str; 2] = ["error[E0308] src/lib.rs:58", "error[E0425] src/lib.rs:62"];
const PYTEST: [&str; 4] = [
    "tests/test_cart.py::TestCart::test_sums",
    "tests/test_cart.py::test_load[a b-2]",
    "tests/test_text.py::test_greeting",
    "tests/test_cart.py::test_orders",
];
const UNCOLLECTED: [&str; 2] = ["tests/test_import.py", "tests/test_syntax.py"];
const VITEST: [&str; 3] = [
    "src/cart.test.js > cart > total > adds prices up",
    "src/cart.test.js > loads a b",
    "src/text.test.js > greets › the world",
];
const JEST: [&str; 3] = [
    "src/cart.test.js › cart › total › adds prices up",
    "src/cart.test.js › loads a b",
    "src/text.test.js › greets › the world",
];
const GO: [&str; 3] = [
    "example.com/shop/cart TestTotal/wrong",
    "example.com/shop/cart TestLoad",
    "example.com/shop/text TestGreets",
];

#[test]
fn failing_checks_are_read_from_each_runner() {
    let check = |output: &str, runner: &str, expected: &[&str]| {
        let report = report(output);
        assert_eq!((report.runner, names(&report)), (runner, expected.to_vec()), "{output}");
        assert_eq!((report.more, report.is_broken), (0, false), "{output}");
    };
    check("cargo/some", "cargo test", &CARGO);
    check("cargo/quiet", "cargo test", &CARGO);
    check("cargo/one", "cargo test", &CARGO[3..4]);
    check("cargo/next", "cargo test", &CARGO[2..3]);
    check("nextest/some", "cargo nextest", &NEXTEST);
    check("nextest/one", "cargo nextest", &NEXTEST[3..]);
    check("nextest/next", "cargo nextest", &NEXTEST[2..3]);
    check("nextest/abort", "cargo nextest", &["shop::ends ends"]);
    check("nextest/retries", "cargo nextest", &["shop::ends ends"]);
    for output in ["some", "quiet", "verbose", "no-traceback"] {
        check(&format!("pytest/{output}"), "pytest", &PYTEST);
    }
    let errors_first = [PYTEST[3], PYTEST[0], PYTEST[1], PYTEST[2]];
    check("pytest/no-summary", "pytest", &errors_first);
    check("pytest/one", "pytest", &PYTEST[2..3]);
    check("pytest/next", "pytest", &PYTEST[..1]);
    for output in ["some", "verbose", "dot"] {
        check(&format!("vitest/{output}"), "vitest", &VITEST);
    }
    check("vitest/one", "vitest", &VITEST[2..]);
    check("vitest/next", "vitest", &VITEST[..1]);
    for output in ["some", "verbose"] {
        check(&format!("jest/{output}"), "jest", &JEST);
    }
    check("jest/one", "jest", &JEST[2..]);
    check("jest/next", "jest", &JEST[..1]);
    for output in ["some", "verbose"] {
        check(&format!("go/{output}"), "go test", &GO);
    }
    check("go/one", "go test", &GO[2..]);
    check("go/next", "go test", &GO[1..2]);
}

#[test]
fn build_load_and_crash_failures_are_broken_reports() {
    let check = |output: &str, runner: &str, expected: &[&str]| {
        let report = report(output);
        assert_eq!((report.runner, names(&report)), (runner, expected.to_vec()), "{output}");
        assert!(report.is_broken, "{output}");
    };
    for output in ["cargo/broken", "cargo/broken-colour", "nextest/broken"] {
        check(output, "cargo test", &COMPILER);
    }
    check("cargo/syntax", "cargo test", &["error src/lib.rs:59"]);
    check("cargo/abort", "cargo test", &["--test ends"]);
    for output in ["pytest/broken", "pytest/broken-no-summary"] {
        check(output, "pytest", &UNCOLLECTED);
    }
    check("vitest/broken", "vitest", &["src/import.test.js", "src/syntax.test.js"]);
    check("jest/broken", "jest", &["src/syntax.test.js", "src/import.test.js"]);
    let mismatch = "text/text_test.go: cannot use \"x\" (untyped string constant) as int value in \
                    return statement";
    check("go/broken", "go test", &["cart/cart.go: undefined: absent", mismatch]);
    let format = "text/text.go: fmt.Printf format %d has arg \"x\" of wrong type string";
    check("go/vet", "go test", &[format]);
    let module = "text/slow_test.go: no required module provides package example.com/nowhere; to \
                  add it:";
    check("go/import", "go test", &[module]);
    check("go/panic", "go test", &["example.com/shop/text TestPanics"]);
    check("go/timeout", "go test", &["example.com/shop/text"]);
}

#[test]
fn failures_without_names_are_counted() {
    let report = report("pytest/line");
    assert_eq!((names(&report), report.more), (vec!["test_orders"], 3));
}

#[test]
fn causes_of_failing_checks_are_read_from_each_runner() {
    let check = |output: &str, name: &str, expected: &str| {
        let report = report(output);
        let found = report.failing.iter().find(|check| check.name == name);
        let cause = found.map(|check| check.cause.as_str());
        assert_eq!(cause, Some(expected), "{output}: {name}");
    };
    check("cargo/some", CARGO[0], "Error: \"no such cart\"");
    check("cargo/some", CARGO[1], "note: test did not panic as expected at src/lib.rs:39:12");
    let unresolved = "error[E0425]: cannot find function `absent` in this scope\n  \
                      --> src/lib.rs:62:5\n   |\n62 |     absent(1)\n   |     ^^^^^^ not found in this scope";
    check("cargo/broken", COMPILER[1], unresolved);
    check("nextest/some", NEXTEST[0], "Error: \"no such cart\"");
    check("nextest/colour", NEXTEST[0], "Error: \"no such cart\"");
    check("nextest/some", NEXTEST[1], "note: test did not panic as expected at src/lib.rs:39:12");
    check("nextest/abort", "shop::ends ends", "(test aborted with signal 6: SIGABRT)");
    let server = ">           raise ConnectionError(\"no server at http://127.0.0.1:1\")\n\
                  E           ConnectionError: no server at http://127.0.0.1:1\n\
                  tests/test_cart.py:22: ConnectionError";
    for output in ["pytest/some", "pytest/colour", "pytest/no-summary"] {
        check(output, PYTEST[3], server);
    }
    check("pytest/no-traceback", PYTEST[0], "AssertionError: prices add up");
    let parsed = "SyntaxError: Unexpected token 'a', \"a b\" is not valid JSON\n \
                  ❯ load src/shop.js:2:36\n      \
                  1| export const total = (prices) => prices.reduce((a, b) => a + b, 0);\n      \
                  2| export const load = (text) => JSON.parse(text);\n       \
                  |                                    ^\n      3|\n ❯ src/cart.test.js:15:35";
    check("vitest/some", VITEST[1], parsed);
    let unparsed = "SyntaxError: /project/src/syntax.test.js: Missing semicolon. (1:4)\n\
                    > 1 | this is not ( javascript\n    |     ^\n  2 |";
    assert!(report("jest/broken").failing[0].cause.starts_with(unparsed));
    check("go/some", GO[0], "cart_test.go:21: Total(1, 2) = 3, want 4");
    check("go/verbose", GO[0], "cart_test.go:21: Total(1, 2) = 3, want 4");
    check("go/timeout", "example.com/shop/text", "panic: test timed out after 1s");
}

#[test]
fn checks_of_rust_tests_leave_the_stack_out() {
    for output in ["cargo/some", "cargo/one", "nextest/some", "nextest/one", "nextest/colour"] {
        let report = report(output);
        let kept = report.failing.iter().find(|check| check.name.ends_with("orders_are_kept"));
        let cause = &kept.unwrap().cause;
        assert!(cause.starts_with("thread 'orders_are_kept'"), "{output}: {cause}");
        assert!(cause.ends_with("\n  left: 4\n right: 5"), "{output}: {cause}");
    }
}
