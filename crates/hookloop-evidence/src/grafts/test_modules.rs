//! Modules of Rust tests whose content is in files of their own.

use crate::error::EvidenceError;
use crate::language::SourceLanguage;
use crate::rust_attributes::{attribute_groups, requires_test};
use crate::syntax::{NodeRef, SyntaxTree};

/// Returns the modules that a Rust source declares only for tests and that are in files of their own.
///
/// A module is written `outer/inner`, relative to the module of the source. The caller takes their files for tests.
pub fn test_modules(source: &str) -> Result<Vec<String>, EvidenceError> {
    let tree = SyntaxTree::parse(SourceLanguage::Rust, source)?;
    let groups = attribute_groups(tree.root());
    let is_test = |module: &NodeRef<'_>| {
        let attributes = groups.get(&module.id());
        attributes.is_some_and(|attributes| attributes.iter().any(|one| requires_test(*one)))
    };
    let is_module = |node: &NodeRef<'_>| node.kind() == "mod_item";
    let mut found = Vec::new();
    for module in tree.root().descendants().filter(is_module) {
        let mut path: Vec<NodeRef<'_>> =
            std::iter::once(module).chain(module.ancestors().filter(is_module)).collect();
        if module.field("body").is_none() && path.iter().any(is_test) {
            path.reverse();
            let names: Vec<&str> = path.iter().filter_map(|part| part.field_text("name")).collect();
            found.push(names.join("/"));
        }
    }
    Ok(found)
}
