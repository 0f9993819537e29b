//! Attributes of Rust items that belong to tests.

use std::collections::HashMap;

use crate::syntax::NodeRef;

/// Attributes of tests whose names do not end in `test`.
const TEST_ATTRIBUTES: [&str; 6] =
    ["test_case", "test_matrix", "quickcheck", "parameterized", "test_each", "proptest"];
/// Maximum depth of `all`, `any` and `not` in a condition.
const CONDITION_DEPTH_MAX: usize = 16;

/// Returns the attributes before each item, by the position of the item among all nodes.
pub(crate) fn attribute_groups(root: NodeRef<'_>) -> HashMap<usize, Vec<NodeRef<'_>>> {
    let mut groups = HashMap::new();
    let mut pending: Vec<NodeRef<'_>> = Vec::new();
    // The node that follows the last attribute.
    let mut following = usize::MAX;
    for node in root.descendants() {
        let is_following = node.id() == following;
        if node.kind() == "attribute_item" {
            if !is_following {
                pending.clear();
            }
            pending.push(node);
            following = node.next_id();
        } else if is_following && node.is_comment() {
            following = node.next_id();
        } else if is_following {
            groups.insert(node.id(), std::mem::take(&mut pending));
        }
    }
    groups
}

/// Returns the last name of an attribute's path, such as `test` for `#[tokio::test]`.
pub(crate) fn attribute_name(attribute: NodeRef<'_>) -> &str {
    let path = attribute.child_of_kind("attribute").and_then(|inner| inner.children().next());
    path.map_or("", |path| path.text().rsplit(':').next().unwrap_or_default().trim())
}

pub(crate) fn is_test_name(name: &str) -> bool {
    name.ends_with("test") || TEST_ATTRIBUTES.contains(&name)
}

/// Whether the attribute makes a function a test.
pub(crate) fn is_test_attribute(attribute: NodeRef<'_>) -> bool {
    is_test_name(attribute_name(attribute))
}

/// Whether the attribute is a condition that only holds in tests, such as `cfg(all(test, unix))`.
pub(crate) fn requires_test(attribute: NodeRef<'_>) -> bool {
    let Some(inner) = attribute.child_of_kind("attribute") else { return false };
    let is_condition = inner.children().next().is_some_and(|path| path.text() == "cfg");
    let condition = inner.child_of_kind("token_tree").filter(|_| is_condition);
    condition.is_some_and(|condition| parts_require_test(condition, 0).any(|requires| requires))
}

/// Returns for each part of a condition in brackets whether it only holds in tests.
fn parts_require_test(brackets: NodeRef<'_>, depth: usize) -> std::vec::IntoIter<bool> {
    let mut parts = Vec::new();
    if depth < CONDITION_DEPTH_MAX {
        let mut name = "";
        for token in brackets.children() {
            match (token.kind(), name) {
                ("identifier", _) => {
                    name = token.text();
                    parts.push(name == "test");
                }
                ("token_tree", "all") => {
                    parts.pop();
                    parts.push(parts_require_test(token, depth + 1).any(|requires| requires));
                }
                ("token_tree", "any") => {
                    parts.pop();
                    let mut inner = parts_require_test(token, depth + 1);
                    parts.push(inner.len() > 0 && inner.all(|requires| requires));
                }
                _ => {}
            }
        }
    }
    parts.into_iter()
}
