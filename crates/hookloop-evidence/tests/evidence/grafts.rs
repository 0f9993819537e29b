//! Test code of the base in sources of the work.

use hookloop_evidence::{EvidenceError, SourceLanguage, graft_tests, test_modules};

const RUST: SourceLanguage = SourceLanguage::Rust;

/// Checks the source that the test code of the base makes of the work's, but for blank lines.
#[track_caller]
fn check(language: SourceLanguage, base: &str, work: &str, expected: Option<&str>) {
    let found = graft_tests(language, base, work).unwrap();
    let lines = |text: &str| {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(found.as_deref().map(lines), expected.map(lines));
    if let Some(text) = &found {
        assert_eq!(graft_tests(language, base, text).unwrap(), None, "{text}");
    }
}

#[test]
fn modules_of_tests_are_those_of_the_base() {
    check(
        RUST,
        "fn f() -> u8 { 1 }
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a() { assert_eq!(f(), 1); }
}",
        "fn f() -> u8 { 2 }
fn g() {}
#[cfg(test)]
mod tests {
    #[test]
    fn a() {}
}
fn h() {}",
        Some(
            "fn f() -> u8 { 2 }
fn g() {}
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a() { assert_eq!(f(), 1); }
}
fn h() {}",
        ),
    );
}

#[test]
fn format_and_comments_of_tests_are_no_difference() {
    check(
        RUST,
        "#[cfg(test)] mod tests { #[test] fn a() { f(1); } }",
        "fn new() {}\n#[cfg(test)]\nmod tests {\n    // why\n    #[test]\n    fn a() {\n        f(1,);\n    }\n}",
        None,
    );
    check(RUST, "fn f() {}", "fn g() {}", None);
}

#[test]
fn removed_test_items_come_back_and_added_ones_go() {
    check(
        RUST,
        "//! Doc.
#![allow(x)]
#[cfg(test)]
use std::fmt;
/// Doc of a helper.
#[cfg(all(test, unix))]
fn helper() {}
#[cfg(test)]
macro_rules! check { () => {} }
#[test]
fn a() { helper() }
impl Foo {
    #[cfg(test)]
    fn for_tests() {}
}
#[cfg(test)]
mod outside;
",
        "//! Doc.
#![allow(x)]
struct Foo;
#[cfg(test)]
use std::io;
impl Foo {
    fn real() {}
}
#[test]
fn b() {}
",
        Some(
            "//! Doc.
#![allow(x)]
#[cfg(test)]
macro_rules! check { () => {} }
struct Foo;
impl Foo {
fn real() {}
#[cfg(test)]
fn for_tests() {}
}
#[cfg(test)]
use std::fmt;
/// Doc of a helper.
#[cfg(all(test, unix))]
fn helper() {}
#[test]
fn a() { helper() }
#[cfg(test)]
mod outside;
",
        ),
    );
}

#[test]
fn nested_modules_keep_their_tests() {
    check(
        RUST,
        "mod a { fn f() {} #[cfg(test)] mod tests { #[test] fn t() {} } }",
        "mod a { fn g() {} }",
        Some("mod a { fn g() {}\n#[cfg(test)] mod tests { #[test] fn t() {} }\n}"),
    );
    // The module only has tests now, so it is test code itself.
    let base = "mod a { fn f() {}\n#[cfg(test)] mod tests { #[test] fn t() {} } }";
    let found = graft_tests(RUST, base, "fn f() {}\n").unwrap().unwrap();
    let expected = "fn f() {}\n\n#[cfg(test)]\nmod a {\nuse super::*;\n#[cfg(test)] mod tests { #[test] fn t() {} }\n}\n";
    assert_eq!(found, expected);
}

#[test]
fn tests_and_modules_of_tests_that_became_sources_are_replaced() {
    check(
        RUST,
        "#[test]\nfn a() { f() }\n#[cfg(test)]\nmod tests { #[test] fn b() {} }",
        "fn a() {}\nmod tests {}",
        Some("#[test]\nfn a() { f() }\n#[cfg(test)]\nmod tests { #[test] fn b() {} }"),
    );
}

#[test]
fn helpers_of_tests_that_became_sources_stay() {
    check(
        RUST,
        "#[cfg(test)]\nuse a::B;\n#[cfg(test)]\nfn helper() {}\n#[test]\nfn t() { helper() }",
        "use a::B;\nfn helper() { B }\n#[test]\nfn t() {}",
        Some("use a::B;\nfn helper() { B }\n#[test]\nfn t() { helper() }"),
    );
}

#[test]
fn tests_in_macros_are_those_of_the_base() {
    check(
        RUST,
        "proptest! { #[test] fn a(x in 0..9) { check(x) } }",
        "fn f() {}\nproptest! { #[test] fn a(x in 0..0) { check(x) } }",
        Some("fn f() {}\nproptest! { #[test] fn a(x in 0..9) { check(x) } }"),
    );
}

#[test]
fn items_for_tests_and_others_are_no_test_code() {
    let base = "#[cfg(any(test, feature = \"x\"))]\nfn a() { 1 }\n#[cfg(not(test))]\nfn b() { 1 }";
    check(RUST, base, "#[cfg(any(test, feature = \"x\"))]\nfn a() { 2 }", None);
}

#[test]
fn a_file_of_tests_is_that_of_the_base() {
    check(RUST, "#![cfg(test)]\nfn a() {}", "fn b() {}", Some("#![cfg(test)]\nfn a() {}"));
}

#[test]
fn tests_without_a_place_are_an_error() {
    let base = "mod a { mod b { #[test] fn t() {} } }";
    for work in ["fn f() {}", "mod a;"] {
        let error = graft_tests(RUST, base, work).unwrap_err();
        assert!(matches!(error, EvidenceError::NotInsertable { .. }), "{error}");
    }
    let error = graft_tests(RUST, "#[test] fn a() {}", "fn (").unwrap_err();
    assert!(matches!(error, EvidenceError::Syntax { .. }), "{error}");
}

#[test]
fn in_source_tests_of_vitest_are_those_of_the_base() {
    let script = SourceLanguage::TypeScript;
    check(
        script,
        "export const f = 1\nif (import.meta.vitest) { it('a', () => { expect(f).toBe(1) }) }",
        "export const f = 2\nif (import.meta.vitest) {}\nexport const g = 1",
        Some(
            "export const f = 2\nif (import.meta.vitest) { it('a', () => { expect(f).toBe(1) }) }\nexport const g = 1",
        ),
    );
    check(
        script,
        "if (import.meta.vitest) { it('a', () => {}) }",
        "f()",
        Some("f()\nif (import.meta.vitest) { it('a', () => {}) }"),
    );
    check(script, "it('a', () => {})", "f()", None);
    check(SourceLanguage::Python, "def test_a(): pass", "", None);
}

#[test]
fn modules_of_tests_in_other_files_are_named() {
    let source = "mod a;
#[cfg(test)]
mod b;
#[cfg(all(test, unix))]
mod c { mod d; mod e { mod f; } }
mod g { #[cfg(test)] pub(crate) mod h; mod i; }
#[cfg(not(test))]
mod j;
#[cfg(test)]
mod tests { fn x() {} }";
    assert_eq!(test_modules(source).unwrap(), ["b", "c/d", "c/e/f", "g/h"]);
}
