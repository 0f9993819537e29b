//! Readers of tests, one for each language.

mod go;
mod python;
mod rust;
mod script;

use crate::error::EvidenceError;
use crate::language::SourceLanguage;
use crate::source_test::{SourceTest, TestSink};
use crate::syntax::SyntaxTree;

/// Returns the tests of a source in source order.
pub fn tests_in(language: SourceLanguage, source: &str) -> Result<Vec<SourceTest>, EvidenceError> {
    let tree = SyntaxTree::parse(language, source)?;
    let mut sink = TestSink::default();
    match language {
        SourceLanguage::Python => python::read(tree.root(), &mut sink)?,
        SourceLanguage::Rust => rust::read(tree.root(), &mut sink)?,
        SourceLanguage::Go => go::read(tree.root(), &mut sink)?,
        SourceLanguage::JavaScript | SourceLanguage::TypeScript | SourceLanguage::Tsx => {
            script::read(tree.root(), &mut sink)?;
        }
    }
    Ok(sink.finish())
}
