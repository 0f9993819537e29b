//! Tests of Rust sources.

use hookloop_evidence::SourceLanguage;

use crate::{check_assertions, check_names, check_same};

const RUST: SourceLanguage = SourceLanguage::Rust;

#[test]
fn functions_with_a_test_attribute_are_tests() {
    let source = "
#[test]
fn a() {}
#[cfg(test)]
mod tests {
    mod inner {
        #[tokio::test(flavor = \"multi_thread\")]
        async fn b() {}
    }
    #[rstest]
    #[case(1)]
    fn c(#[case] x: u8) {}
    fn helper() { #[test] fn never_run() {} }
    #[test_case(2; \"two\")]
    fn d(x: u8) {}
}
proptest! {
    #![proptest_config(x)]
    #[test]
    fn e(x in 0..10u8) { prop_assert!(x < 10); }
    #[ignore]
    #[test]
    fn f(x in 0..10u8) {}
    fn not_a_test() {}
}
#[test]
#[ignore = \"slow\"]
fn g() {}
#[test]
#[cfg_attr(miri, ignore)]
// why
fn h() {}
";
    check_names(
        RUST,
        source,
        &[
            "3 a",
            "8 tests::inner::b",
            "12 tests::c",
            "15 tests::d",
            "20 e",
            "23 f skip",
            "28 g skip",
            "32 h skip",
        ],
    );
}

#[test]
fn invocations_of_macros_that_make_tests_are_tests() {
    let source = "
macro_rules! check { ($name:ident, $a:expr => $b:expr) => { #[test] fn $name() { f($a, $b) } } }
macro_rules! other { () => {} }
mod tests {
    check!(camel, \"aB\" => \"a_b\");
    other!(x);
}";
    check_names(RUST, source, &["5 tests::camel"]);
    let row = ("( camel , \"aB\" => \"a_b\" )", "\"aB\"", "\"a_b\"");
    check_assertions(RUST, source, &[row]);
}

#[test]
fn assertions_have_inputs_and_outcomes() {
    let source = "
#[test]
#[should_panic(expected = \"bad\")]
fn a() {
    let parsed = parse(\"1.5\");
    assert_eq!(parsed.major, 1);
    assert_eq!(f(\"x\", -2), Some(\"y\"));
    assert!(matches!(g(b'z'), Err(_)), \"message\");
    for (x, y) in [(3, 4), (5, 6)] { check(x, y); }
}";
    check_assertions(
        RUST,
        source,
        &[
            ("# [ should_panic ( expected = \"bad\" ) ]", "", "\"bad\""),
            ("assert_eq ! ( parsed . major , 1 )", "\"1.5\"", "1"),
            ("assert_eq ! ( f ( \"x\" , - 2 ) , Some ( \"y\" ) )", "\"x\" -2 \"y\"", "\"y\""),
            (
                "assert ! ( matches ! ( g ( b'z' ) , Err ( _ ) ) , \"message\" )",
                "\"z\"",
                "\"message\"",
            ),
            ("( 3 , 4 )", "3", "4"),
            ("( 5 , 6 )", "5", "6"),
        ],
    );
}

#[test]
fn format_comments_and_names_do_not_change_the_text() {
    let test = |body: &str| format!("#[test]\nfn a() {{ {body} }}");
    check_same(
        RUST,
        &test("assert!(f(1, 2));"),
        "/// Doc.\n#[test] fn b() { // x\n  assert!(f(\n1, 2\n) ,\n); }",
        true,
    );
    check_same(RUST, &test("f(1, 2)"), &test("f(\n1,\n2,\n)"), true);
    for (left, right) in [
        ("f(1)", "f(2)"),
        ("x = (1,);", "x = (1);"),
        ("assert_eq!(x, (1,))", "assert_eq!(x, (1))"),
        ("f(\"a b\")", "f(\"a  b\")"),
        ("f()", "f();"),
    ] {
        check_same(RUST, &test(left), &test(right), false);
    }
    check_same(RUST, "#[test] fn a() {}", "#[test] #[ignore] fn a() {}", false);
}
