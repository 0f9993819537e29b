//! The nodes of a source that are no test code.

use std::collections::HashSet;

use crate::language::SourceLanguage;
use crate::rust_attributes::{attribute_groups, is_test_attribute, requires_test};
use crate::syntax::NodeRef;

/// A source, and the nodes that are test code.
pub(crate) struct SourceParts<'t> {
    pub(super) root: NodeRef<'t>,
    tests: HashSet<usize>,
}

impl<'t> SourceParts<'t> {
    pub(crate) fn of(root: NodeRef<'t>) -> SourceParts<'t> {
        let tests = match root.language() {
            SourceLanguage::Rust => {
                let groups = attribute_groups(root).into_iter();
                let is_test = |attribute: &NodeRef<'_>| {
                    requires_test(*attribute) || is_test_attribute(*attribute)
                };
                let of_tests = groups.filter(|(_, attributes)| attributes.iter().any(is_test));
                of_tests.map(|(id, _)| id).collect()
            }
            SourceLanguage::Python | SourceLanguage::Go => HashSet::new(),
            SourceLanguage::JavaScript | SourceLanguage::TypeScript | SourceLanguage::Tsx => {
                let blocks = root.children().filter(|node| {
                    let condition = node.field_text("condition").unwrap_or_default();
                    node.kind() == "if_statement" && condition.contains("import.meta.vitest")
                });
                blocks.map(NodeRef::id).collect()
            }
        };
        SourceParts { root, tests }
    }

    pub(crate) fn is_test(&self, node: NodeRef<'_>) -> bool {
        self.tests.contains(&node.id())
    }

    /// Returns the nodes of the source, without comments and test code.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeRef<'t>> {
        self.root.descendants_without(|node| node.is_comment() || self.is_test(node))
    }
}
