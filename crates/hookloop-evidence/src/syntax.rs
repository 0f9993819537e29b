//! The syntax tree of a source: a flat list of nodes in source order.
//!
//! Sources are untrusted. The parser stops after a number of steps, trees are limited in size and depth,
//! and no function here recurses. A source with a syntax error is refused.

use std::iter;
use std::num::NonZero;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use crate::error::EvidenceError;
use crate::language::SourceLanguage;

/// Maximum bytes of a source.
pub const SOURCE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum depth of a syntax tree.
pub const SYNTAX_DEPTH_MAX: usize = 2_000;
/// Maximum nodes of a syntax tree.
const SYNTAX_NODES_MAX: usize = 3_000_000;
/// Maximum reports of progress while a source of any size is parsed. A report stands for 100 operations.
const PARSE_REPORTS_MIN: usize = 1_000;
/// Minimum bytes of a source for each further report. Real sources need at least 17.
const BYTES_PER_PARSE_REPORT: usize = 8;
/// Maximum reports of progress behind a syntax error, where the parser only searches for a way to go on.
const RECOVERY_REPORTS_MAX: usize = 100;

/// A source that was parsed without a syntax error.
pub(crate) struct SyntaxTree<'s> {
    pub(crate) language: SourceLanguage,
    source: &'s str,
    /// The names of kinds and of fields in the grammar, by their numbers.
    kind_names: Vec<String>,
    field_names: Vec<String>,
    nodes: Vec<SyntaxNode>,
}

struct SyntaxNode {
    /// The number of its kind in the grammar.
    kind: u16,
    /// The number of the name that the node has in its parent, or 0.
    field: u16,
    start: usize,
    end: usize,
    line: usize,
    parent: usize,
    /// The first node after this one and all nodes below it.
    next: usize,
    is_named: bool,
}

impl<'s> SyntaxTree<'s> {
    pub(crate) fn parse(
        language: SourceLanguage,
        source: &'s str,
    ) -> Result<SyntaxTree<'s>, EvidenceError> {
        let tree = parsed(language, source)?;
        let nodes = flat_nodes(&tree)?;
        let (kind_names, field_names) = grammar_names(&tree);
        Ok(SyntaxTree { language, source, kind_names, field_names, nodes })
    }

    pub(crate) fn root(&self) -> NodeRef<'_> {
        NodeRef { tree: self, id: 0 }
    }
}

fn parsed(language: SourceLanguage, source: &str) -> Result<Tree, EvidenceError> {
    if source.len() > SOURCE_BYTES_MAX {
        let (part, things) = ("the source", "bytes");
        return Err(EvidenceError::TooMany { part, things, limit: SOURCE_BYTES_MAX });
    }
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()).map_err(|_| EvidenceError::GrammarRefused)?;
    let reports_max = PARSE_REPORTS_MIN + source.len() / BYTES_PER_PARSE_REPORT;
    let mut reports = 0;
    let mut recovery_reports = 0;
    let mut error_offset = None;
    let mut count = |state: &ParseState| {
        reports += 1;
        if state.has_error() {
            error_offset.get_or_insert(state.current_byte_offset());
            recovery_reports += 1;
        }
        if reports > reports_max || recovery_reports > RECOVERY_REPORTS_MAX {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    let bytes = source.as_bytes();
    let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut read, None, Some(options));
    tree.ok_or_else(|| match error_offset {
        Some(offset) => {
            let before = bytes.iter().take(offset).filter(|byte| **byte == b'\n').count();
            EvidenceError::Syntax { line: before + 1 }
        }
        None => EvidenceError::TooComplex,
    })
}

/// Returns the names of kinds and of fields by their numbers.
fn grammar_names(tree: &Tree) -> (Vec<String>, Vec<String>) {
    let language = tree.language();
    let numbers = |count: usize| 0..=u16::try_from(count).unwrap_or(u16::MAX);
    let kind = |id| language.node_kind_for_id(id).unwrap_or_default().to_owned();
    let field = |id| language.field_name_for_id(id).unwrap_or_default().to_owned();
    (
        numbers(language.node_kind_count()).map(kind).collect(),
        numbers(language.field_count()).map(field).collect(),
    )
}

fn flat_nodes(tree: &Tree) -> Result<Vec<SyntaxNode>, EvidenceError> {
    let mut cursor = tree.walk();
    let mut nodes: Vec<SyntaxNode> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Err(EvidenceError::Syntax { line: node.start_position().row + 1 });
        }
        if nodes.len() == SYNTAX_NODES_MAX {
            let (part, things) = ("the source", "syntax nodes");
            return Err(EvidenceError::TooMany { part, things, limit: SYNTAX_NODES_MAX });
        }
        let id = nodes.len();
        nodes.push(SyntaxNode {
            kind: node.kind_id(),
            field: cursor.field_id().map_or(0, NonZero::get),
            start: node.start_byte(),
            end: node.end_byte(),
            line: node.start_position().row + 1,
            parent: open.last().copied().unwrap_or(0),
            next: id + 1,
            is_named: node.is_named(),
        });
        if cursor.goto_first_child() {
            open.push(id);
            if open.len() > SYNTAX_DEPTH_MAX {
                return Err(EvidenceError::TooDeep { part: "the source", limit: SYNTAX_DEPTH_MAX });
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            let Some(closed) = open.pop() else { return Ok(nodes) };
            nodes[closed].next = nodes.len();
            cursor.goto_parent();
        }
    }
}

/// A node of a syntax tree.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'t> {
    tree: &'t SyntaxTree<'t>,
    id: usize,
}

impl PartialEq for NodeRef<'_> {
    fn eq(&self, other: &NodeRef<'_>) -> bool {
        self.id == other.id
    }
}

impl<'t> NodeRef<'t> {
    fn node(self) -> &'t SyntaxNode {
        &self.tree.nodes[self.id]
    }

    fn at(self, id: usize) -> NodeRef<'t> {
        NodeRef { tree: self.tree, id }
    }

    /// The position of the node among all nodes, in source order.
    pub(crate) fn id(self) -> usize {
        self.id
    }

    pub(crate) fn language(self) -> SourceLanguage {
        self.tree.language
    }

    pub(crate) fn source(self) -> &'t str {
        self.tree.source
    }

    pub(crate) fn kind(self) -> &'t str {
        self.tree.kind_names.get(usize::from(self.node().kind)).map_or("", String::as_str)
    }

    /// The name that the node has in its parent.
    pub(crate) fn field_name(self) -> Option<&'t str> {
        let name = self.tree.field_names.get(usize::from(self.node().field));
        name.map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(crate) fn is_named(self) -> bool {
        self.node().is_named
    }

    pub(crate) fn is_comment(self) -> bool {
        matches!(
            self.kind(),
            "comment" | "line_comment" | "block_comment" | "html_comment" | "line_continuation"
        )
    }

    pub(crate) fn start(self) -> usize {
        self.node().start
    }

    pub(crate) fn end(self) -> usize {
        self.node().end
    }

    /// The line of the node, counted from 1.
    pub(crate) fn line(self) -> usize {
        self.node().line
    }

    pub(crate) fn text(self) -> &'t str {
        self.tree.source.get(self.start()..self.end()).unwrap_or_default()
    }

    pub(crate) fn parent(self) -> Option<NodeRef<'t>> {
        (self.id != 0).then(|| self.at(self.node().parent))
    }

    /// Returns the parent, its parent, and so on.
    pub(crate) fn ancestors(self) -> impl Iterator<Item = NodeRef<'t>> {
        iter::successors(self.parent(), |node| node.parent())
    }

    /// Returns the nodes directly below, with punctuation and comments.
    pub(crate) fn all_children(self) -> impl Iterator<Item = NodeRef<'t>> {
        let end = self.node().next;
        let inside = move |id: usize| (id < end).then(|| self.at(id));
        iter::successors(inside(self.id + 1), move |child| inside(child.node().next))
    }

    /// Returns the named nodes directly below, without comments.
    pub(crate) fn children(self) -> impl Iterator<Item = NodeRef<'t>> {
        self.all_children().filter(|child| child.is_named() && !child.is_comment())
    }

    pub(crate) fn field(self, name: &str) -> Option<NodeRef<'t>> {
        self.all_children().find(|child| child.field_name() == Some(name) && !child.is_comment())
    }

    pub(crate) fn field_text(self, name: &str) -> Option<&'t str> {
        self.field(name).map(NodeRef::text)
    }

    pub(crate) fn child_of_kind(self, kind: &str) -> Option<NodeRef<'t>> {
        self.all_children().find(|child| child.kind() == kind)
    }

    /// Whether nothing is below the node.
    pub(crate) fn is_leaf(self) -> bool {
        self.node().next == self.id + 1
    }

    /// Returns every node below, in source order.
    pub(crate) fn descendants(self) -> impl Iterator<Item = NodeRef<'t>> {
        (self.id + 1..self.node().next).map(move |id| self.at(id))
    }

    /// Returns the node and every node below but those below a node that `is_cut` names.
    pub(crate) fn descendants_without(
        self,
        is_cut: impl Fn(NodeRef<'t>) -> bool,
    ) -> impl Iterator<Item = NodeRef<'t>> {
        let end = self.node().next;
        let first = (!is_cut(self)).then_some(self);
        iter::successors(first, move |node| {
            let mut id = node.id + 1;
            while id < end && is_cut(self.at(id)) {
                id = self.at(id).node().next;
            }
            (id < end).then(|| self.at(id))
        })
    }

    /// The first node after this one and all nodes below it.
    pub(crate) fn next_id(self) -> usize {
        self.node().next
    }

    /// Whether the node is directly below a node of the kind.
    pub(crate) fn is_in(self, kind: &str) -> bool {
        self.parent().is_some_and(|parent| parent.kind() == kind)
    }
}
