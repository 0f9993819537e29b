//! The functions that a change touched.

use hookloop_evidence::{EvidenceError, SourceLanguage, changed_functions};

/// Returns the names and lines of the changed functions.
fn changed(language: SourceLanguage, base: Option<&str>, work: &str) -> Vec<String> {
    let functions = changed_functions(language, base, work).unwrap();
    functions
        .into_iter()
        .map(|function| {
            let name = [function.scope, vec![function.name]].concat().join(".");
            format!("{name} {}-{}", function.first_line, function.last_line)
        })
        .collect()
}

const PYTHON: &str = "import os\n\ndef one():\n    return 1\n\nclass Cart:\n    @property\n    def total(self):\n        \
                      def inner():\n            return 2\n        return inner()\n\n    async def add(self):\n        \
                      pass\n";

#[test]
fn all_functions_of_a_new_source_are_changed() {
    let expected = ["one 3-4", "Cart.total 7-11", "Cart.add 13-14"];
    assert_eq!(changed(SourceLanguage::Python, None, PYTHON), expected);
    let rust = "fn one() {}\nmod inner {\n    impl Cart {\n        fn two(&self) {\n            fn three() {}\n        }\n    }\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn four() {}\n}\n";
    assert_eq!(changed(SourceLanguage::Rust, None, rust), ["one 1-1", "inner.Cart.two 4-6"]);
    let go = "package a\n\nfunc One() {}\n\nfunc (c *Cart) Two() {\n}\n";
    assert_eq!(changed(SourceLanguage::Go, None, go), ["One 3-3", "Two 5-6"]);
    let script = "export const one = (a) =>\n  a + 1;\nclass Cart {\n  two() { return [1].map((x) => x); }\n}\nmodule.exports.three = function () {};\nfunction* four() {}\n";
    let expected = ["one 1-2", "Cart.two 4-4", "module.exports.three 6-6", "four 7-7"];
    assert_eq!(changed(SourceLanguage::TypeScript, None, script), expected);
}

#[test]
fn only_functions_with_a_changed_line_are_returned() {
    let work = PYTHON.replace("return 2", "return 3");
    assert_eq!(changed(SourceLanguage::Python, Some(PYTHON), &work), ["Cart.total 7-11"]);
    let work = PYTHON.replace("import os", "import sys");
    assert_eq!(changed(SourceLanguage::Python, Some(PYTHON), &work), [""; 0]);
    assert_eq!(changed(SourceLanguage::Python, Some(PYTHON), PYTHON), [""; 0]);
}

#[test]
fn a_deleted_line_changes_the_function_around_it() {
    let base = PYTHON.replace("    return 1\n", "    print()\n    return 1\n");
    assert_eq!(changed(SourceLanguage::Python, Some(&base), PYTHON), ["one 3-4"]);
    // A deleted function is no change of its neighbours.
    let base = PYTHON.replace("class Cart", "def gone():\n    return 0\n\nclass Cart");
    assert_eq!(changed(SourceLanguage::Python, Some(&base), PYTHON), [""; 0]);
}

#[test]
fn a_function_has_its_own_line_behind_decorators_and_a_text_without_indentation() {
    let functions = changed_functions(SourceLanguage::Python, None, PYTHON).unwrap();
    let total = &functions[1];
    assert_eq!((total.first_line, total.own_line), (7, 8));
    assert!(total.text.starts_with("@property\ndef total(self):\n    def inner"), "{}", total.text);
}

#[test]
fn a_source_with_a_syntax_error_is_refused() {
    let refused = changed_functions(SourceLanguage::Rust, None, "fn (");
    assert_eq!(refused, Err(EvidenceError::Syntax { line: 1 }));
}
