//! Puts the test code of the base into sources of the work that contain tests.

mod item_outline;
mod rust;
mod script;
mod test_modules;
mod text_edits;

use crate::error::EvidenceError;
use crate::language::SourceLanguage;
use crate::readers::tests_in;
use crate::source_test::SourceTest;

pub use test_modules::test_modules;

/// Returns the work's source with the test code of the base, or nothing if their test code is the same.
///
/// In Rust that is every item that only tests have: `#[cfg(test)]` and functions with a test attribute.
/// In scripts it is `if (import.meta.vitest) { … }`. Sources of other languages contain no tests.
pub fn graft_tests(
    language: SourceLanguage,
    base: &str,
    work: &str,
) -> Result<Option<String>, EvidenceError> {
    let grafted = match language {
        SourceLanguage::Rust => rust::graft(base, work)?,
        SourceLanguage::JavaScript | SourceLanguage::TypeScript | SourceLanguage::Tsx => {
            script::graft(language, base, work)?
        }
        SourceLanguage::Python | SourceLanguage::Go => None,
    };
    let grafted = grafted.filter(|text| text != work);
    if let Some(text) = &grafted
        && sorted_tests(language, text)? != sorted_tests(language, base)?
    {
        return Err(EvidenceError::not_insertable("a test of the base has no place in the source"));
    }
    Ok(grafted)
}

/// Returns the tests of a source in an order that does not depend on their places.
fn sorted_tests(
    language: SourceLanguage,
    source: &str,
) -> Result<Vec<(Vec<String>, String, String)>, EvidenceError> {
    let key = |test: SourceTest| (test.scope, test.name, test.text);
    let mut tests: Vec<_> = tests_in(language, source)?.into_iter().map(key).collect();
    tests.sort();
    Ok(tests)
}
