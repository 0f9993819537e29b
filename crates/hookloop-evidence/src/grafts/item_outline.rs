//! The items of a Rust source, and those that only its tests have.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::EvidenceError;
use crate::rust_attributes::{is_test_attribute, requires_test};
use crate::syntax::NodeRef;
use crate::tokens::{tokens_of, tokens_without};

/// Maximum depth of modules.
const MODULE_DEPTH_MAX: usize = 32;

/// The kind and the name of an item, and its number among those with the same kind and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OutlineKey {
    pub(super) kind: String,
    pub(super) name: String,
    number: usize,
}

/// An item with its attributes and doc comments.
pub(super) struct OutlineItem {
    pub(super) key: OutlineKey,
    pub(super) range: Range<usize>,
    /// Whether only tests have it.
    pub(super) is_test_only: bool,
    /// Whether it is a test, or a module of tests.
    pub(super) is_test: bool,
    /// Whether later items depend on its place, as with macros.
    pub(super) is_ordered: bool,
    /// Its tokens, if only tests have it.
    pub(super) tokens: String,
}

/// A file, a module, an `impl` block or a trait.
pub(super) struct ItemContainer {
    /// The modules and blocks around, with itself: `mod a`, `impl A for B`.
    pub(super) path: Vec<String>,
    /// The text before the body, such as `impl A for B`.
    pub(super) header: String,
    pub(super) kind: String,
    /// The place of the first item, and the place behind the last.
    pub(super) inside: Range<usize>,
    pub(super) items: Vec<OutlineItem>,
    by_key: HashMap<OutlineKey, usize>,
}

impl ItemContainer {
    pub(super) fn item(&self, key: &OutlineKey) -> Option<&OutlineItem> {
        self.items.get(*self.by_key.get(key)?)
    }

    pub(super) fn test_items(&self) -> impl Iterator<Item = &OutlineItem> {
        self.items.iter().filter(|item| item.is_test_only)
    }
}

/// Returns the containers of a source that are no test code themselves.
pub(super) fn containers(root: NodeRef<'_>) -> Result<Vec<ItemContainer>, EvidenceError> {
    let mut open = vec![(root, Vec::new(), String::new())];
    let mut found = Vec::new();
    let mut seen: HashMap<Vec<String>, usize> = HashMap::new();
    while let Some((node, mut path, header)) = open.pop() {
        if path.len() > MODULE_DEPTH_MAX {
            let (part, limit) = ("a module", MODULE_DEPTH_MAX);
            return Err(EvidenceError::TooDeep { part, limit });
        }
        // Blocks with the same header are told apart by their numbers.
        let number = seen.entry(path.clone()).or_default();
        *number += 1;
        if let Some(last) = path.last_mut().filter(|_| *number > 1) {
            *last = format!("{last} #{number}");
        }
        let body = node.field("body").unwrap_or(node);
        let (items, within) = items_in(body);
        for (name, header, inner) in within.into_iter().rev() {
            let inner_path = path.iter().cloned().chain([name]).collect();
            open.push((inner, inner_path, header));
        }
        found.push(ItemContainer {
            path,
            header,
            kind: node.kind().to_owned(),
            inside: inside_of(body, root),
            by_key: items.iter().enumerate().map(|(at, item)| (item.key.clone(), at)).collect(),
            items,
        });
    }
    Ok(found)
}

/// Whether an inner attribute makes the whole file test code.
pub(super) fn is_test_file(root: NodeRef<'_>) -> bool {
    let attributes = root.children().filter(|node| node.kind() == "inner_attribute_item");
    attributes.into_iter().any(requires_test)
}

/// Returns the place behind inner attributes and inner comments, and the place before the closing bracket.
fn inside_of(body: NodeRef<'_>, root: NodeRef<'_>) -> Range<usize> {
    let is_inner = |node: &NodeRef<'_>| {
        matches!(node.kind(), "inner_attribute_item" | "shebang")
            || ["//!", "/*!"].iter().any(|begin| node.text().starts_with(begin))
    };
    let last = body.all_children().filter(is_inner).last().map(NodeRef::end);
    if body == root {
        return last.unwrap_or(0)..root.source().len();
    }
    last.unwrap_or(body.start() + 1)..body.end().saturating_sub(1)
}

/// A container below another: its name, its header, and its node.
type InnerContainer<'t> = (String, String, NodeRef<'t>);

/// Returns the items of a container, and the containers directly below it.
fn items_in<'t>(body: NodeRef<'t>) -> (Vec<OutlineItem>, Vec<InnerContainer<'t>>) {
    let mut items = Vec::new();
    let mut within = Vec::new();
    let mut numbers: HashMap<(String, String), usize> = HashMap::new();
    let mut pending = PendingAttributes::default();
    for node in body.all_children() {
        let is_item = node.is_named() && !node.is_comment();
        if !is_item || matches!(node.kind(), "attribute_item" | "inner_attribute_item") {
            pending.add(node);
            continue;
        }
        let attributes = std::mem::take(&mut pending);
        let item = attributes.item(node, &mut numbers);
        let is_container = matches!(node.kind(), "mod_item" | "impl_item" | "trait_item");
        if let Some(inner) = node.field("body").filter(|_| is_container && !item.is_test_only) {
            let header = node.source().get(node.start()..inner.start()).unwrap_or_default();
            within.push((tokens_without(node, &[inner]), header.to_owned(), node));
        }
        items.push(item);
    }
    (items, within)
}

/// Attributes and doc comments that belong to the next item.
#[derive(Default)]
struct PendingAttributes<'t> {
    start: Option<usize>,
    attributes: Vec<NodeRef<'t>>,
}

impl<'t> PendingAttributes<'t> {
    fn add(&mut self, node: NodeRef<'t>) {
        let is_doc =
            node.is_comment() && ["///", "/**"].iter().any(|begin| node.text().starts_with(begin));
        if node.kind() == "attribute_item" {
            self.attributes.push(node);
        }
        if node.kind() == "attribute_item" || is_doc {
            self.start.get_or_insert(node.start());
        } else if !node.is_comment() {
            *self = PendingAttributes::default();
        }
    }

    fn item(
        self,
        node: NodeRef<'t>,
        numbers: &mut HashMap<(String, String), usize>,
    ) -> OutlineItem {
        let PendingAttributes { start, attributes } = self;
        let is_test_function = attributes.iter().any(|attribute| is_test_attribute(*attribute))
            || contains_test_tokens(node);
        let is_test_only =
            is_test_function || attributes.iter().any(|attribute| requires_test(*attribute));
        let mut tokens = String::new();
        if is_test_only {
            for attribute in &attributes {
                tokens.push_str(&tokens_of(*attribute));
                tokens.push(' ');
            }
            tokens.push_str(&tokens_of(node));
        }
        let is_macro_use =
            attributes.iter().any(|attribute| attribute.text().contains("macro_use"));
        let (kind, name) = (node.kind().to_owned(), item_name(node));
        let number = numbers.entry((kind.clone(), name.clone())).or_default();
        *number += 1;
        OutlineItem {
            range: start.unwrap_or(node.start())..node.end(),
            is_test_only,
            is_test: is_test_function || is_test_only && kind == "mod_item",
            is_ordered: kind == "macro_definition" || is_macro_use,
            tokens,
            key: OutlineKey { kind, name, number: *number },
        }
    }
}

fn item_name(node: NodeRef<'_>) -> String {
    if let Some(name) = node.field_text("name") {
        return name.to_owned();
    }
    match node.kind() {
        "impl_item" => {
            let body: Vec<NodeRef<'_>> = node.field("body").into_iter().collect();
            tokens_without(node, &body)
        }
        "use_declaration" => node.field("argument").map(tokens_of).unwrap_or_default(),
        _ => {
            let inner = node.child_of_kind("macro_invocation").unwrap_or(node);
            inner.field_text("macro").unwrap_or_default().to_owned()
        }
    }
}

/// Whether a macro is invoked with functions that have a test attribute, as `proptest!` is.
fn contains_test_tokens(node: NodeRef<'_>) -> bool {
    if !matches!(node.kind(), "macro_invocation" | "expression_statement") {
        return false;
    }
    node.descendants().filter(|node| node.kind() == "token_tree").any(|brackets| {
        let before = node.source().get(..brackets.start()).unwrap_or_default().trim_end();
        let words = brackets.children().take_while(|node| node.kind() == "identifier");
        before.ends_with('#') && words.last().is_some_and(|name| name.text().ends_with("test"))
    })
}
