//! Reads Rust functions with a test attribute, also those in the tokens of macros such as `proptest!`.

use std::collections::HashSet;

use crate::assertions::{AssertionList, TestAssertion};
use crate::error::EvidenceError;
use crate::rust_attributes::{attribute_groups, attribute_name, is_test_attribute, is_test_name};
use crate::source_test::{SourceTest, TestSink, lines_between};
use crate::syntax::NodeRef;
use crate::tokens::{tokens_of, tokens_without};

/// Attributes that have the values of one case.
const CASE_ATTRIBUTES: [&str; 4] = ["case", "test_case", "values", "test_matrix"];

pub(super) fn read(root: NodeRef<'_>, sink: &mut TestSink) -> Result<(), EvidenceError> {
    // Functions within functions are never run as tests.
    let is_cut = |node: NodeRef<'_>| {
        node.kind() == "macro_definition"
            || node.kind() == "block" && node.field_name() == Some("body")
    };
    let groups = attribute_groups(root);
    let test_macros = test_macros(root);
    for node in root.descendants_without(is_cut) {
        if node.kind() == "function_item" {
            let attributes = groups.get(&node.id()).map(Vec::as_slice).unwrap_or_default();
            read_function(node, attributes, sink)?;
        } else if node.kind() == "token_tree" {
            read_tokens(node, sink)?;
        } else if node.kind() == "macro_invocation"
            && node.field_text("macro").is_some_and(|name| test_macros.contains(name))
        {
            read_invocation(node, sink)?;
        }
    }
    Ok(())
}

/// Returns the names of macros that expand to functions with a test attribute.
fn test_macros(root: NodeRef<'_>) -> HashSet<&str> {
    let is_test = |macro_: &NodeRef<'_>| macro_.text().contains("#[test]");
    let macros = root.descendants().filter(|node| node.kind() == "macro_definition");
    macros.filter(is_test).filter_map(|macro_| macro_.field_text("name")).collect()
}

/// Reads the invocation of a macro that makes tests, such as `check!(name, "input", "outcome")`.
fn read_invocation(invocation: NodeRef<'_>, sink: &mut TestSink) -> Result<(), EvidenceError> {
    let Some(tokens) = invocation.child_of_kind("token_tree") else { return Ok(()) };
    sink.charge(invocation)?;
    let name = tokens.children().find(|token| token.kind() == "identifier");
    let mut assertions = AssertionList::default();
    assertions.add_row(tokens);
    let macro_name = invocation.field_text("macro").unwrap_or_default();
    sink.add(SourceTest {
        name: name.map_or(macro_name, NodeRef::text).to_owned(),
        scope: modules_around(invocation),
        line: invocation.line(),
        text: tokens_without(invocation, name.as_slice()),
        source: lines_between(invocation, invocation),
        assertions: assertions.finish(),
        is_skipped: false,
    })
}

/// Whether the attribute is `#[ignore]`, perhaps under a condition.
fn is_ignore(attribute: NodeRef<'_>) -> bool {
    let is_word = |node: NodeRef<'_>| node.kind() == "identifier" && node.text() == "ignore";
    match attribute_name(attribute) {
        "ignore" => true,
        "cfg_attr" => attribute.descendants().any(is_word),
        _ => false,
    }
}

fn read_function(
    function: NodeRef<'_>,
    attributes: &[NodeRef<'_>],
    sink: &mut TestSink,
) -> Result<(), EvidenceError> {
    let Some(name) = function.field("name") else { return Ok(()) };
    if !attributes.iter().any(|attribute| is_test_attribute(*attribute)) {
        return Ok(());
    }
    sink.charge(function)?;
    let mut text = String::new();
    let mut assertions = AssertionList::default();
    for attribute in attributes {
        text.push_str(&tokens_of(*attribute));
        text.push(' ');
        let has_values = CASE_ATTRIBUTES.contains(&attribute_name(*attribute))
            || attribute_name(*attribute) == "should_panic";
        if has_values {
            assertions.add_row(*attribute);
        }
    }
    // The values of `rstest` stand at the parameters too.
    let parameters = function.field("parameters").into_iter().flat_map(NodeRef::children);
    let values = parameters.filter(|node| node.kind() == "attribute_item");
    values.for_each(|value| assertions.add_row(value));
    if let Some(body) = function.field("body") {
        add_assertions(body, &mut assertions);
    }
    text.push_str(&tokens_without(function, &[name]));
    let first = attributes.iter().copied().min_by_key(|attribute| attribute.start());
    let first = first.unwrap_or(function);
    sink.add(SourceTest {
        name: name.text().to_owned(),
        scope: modules_around(function),
        line: name.line(),
        text,
        source: lines_between(first, function),
        assertions: assertions.finish(),
        is_skipped: attributes.iter().any(|attribute| is_ignore(*attribute)),
    })
}

/// Returns the names of the modules around a node, outermost first.
fn modules_around(node: NodeRef<'_>) -> Vec<String> {
    let modules = node.ancestors().filter(|node| node.kind() == "mod_item");
    let mut names: Vec<String> =
        modules.filter_map(|module| module.field_text("name")).map(str::to_owned).collect();
    names.reverse();
    names
}

/// Reads tests among the tokens of a macro: `#[test] fn name(…) { … }`.
fn read_tokens(tokens: NodeRef<'_>, sink: &mut TestSink) -> Result<(), EvidenceError> {
    let mut pending: Option<TokenTest<'_>> = None;
    let mut before = "";
    for token in tokens.all_children().filter(|token| !token.is_comment()) {
        let is_bracket = token.kind() == "token_tree";
        if is_bracket && before == "#" {
            let attribute = pending.get_or_insert_with(TokenTest::default);
            attribute.add_attribute(token);
        } else if let Some(test) = &mut pending {
            test.parts.push(token);
            if before == "fn" && token.kind() == "identifier" {
                test.name = Some(token);
            }
            let is_body = is_bracket && token.text().starts_with('{');
            if is_body || token.text() == ";" {
                test.read(sink)?;
                pending = None;
            }
        }
        before = token.text();
    }
    Ok(())
}

/// A function among the tokens of a macro.
#[derive(Default)]
struct TokenTest<'t> {
    attributes: Vec<NodeRef<'t>>,
    is_test: bool,
    is_skipped: bool,
    name: Option<NodeRef<'t>>,
    parts: Vec<NodeRef<'t>>,
}

impl<'t> TokenTest<'t> {
    /// Adds the brackets of an attribute.
    fn add_attribute(&mut self, brackets: NodeRef<'t>) {
        let words = brackets.children().take_while(|node| node.kind() == "identifier");
        let name = words.last().map_or("", NodeRef::text);
        self.is_test |= is_test_name(name);
        self.is_skipped |= name == "ignore";
        self.attributes.push(brackets);
    }

    fn read(&self, sink: &mut TestSink) -> Result<(), EvidenceError> {
        let Some(name) = self.name.filter(|_| self.is_test) else { return Ok(()) };
        let last = self.parts.last().copied().unwrap_or(name);
        let first = self.attributes.first().copied().unwrap_or(last);
        let mut texts = Vec::new();
        let mut assertions = AssertionList::default();
        for part in self.attributes.iter().chain(&self.parts).filter(|part| **part != name) {
            sink.charge(*part)?;
            texts.push(tokens_of(*part));
            add_assertions(*part, &mut assertions);
        }
        sink.add(SourceTest {
            name: name.text().to_owned(),
            scope: modules_around(name),
            line: name.line(),
            text: texts.join(" "),
            source: lines_between(first, last),
            assertions: assertions.finish(),
            is_skipped: self.is_skipped,
        })
    }
}

fn add_assertions(body: NodeRef<'_>, assertions: &mut AssertionList) {
    let mut covered = 0;
    for node in body.descendants() {
        if node.id() < covered {
            continue;
        }
        if let Some((assertion, end)) = assertion_at(node) {
            assertions.add(assertion);
            covered = end;
        } else if let Some(table) = table_of(node) {
            assertions.add_rows(table);
            covered = table.next_id();
        } else {
            assertions.pass(node);
        }
    }
}

/// Returns the assertion that begins at the node, and the first node behind it.
fn assertion_at(node: NodeRef<'_>) -> Option<(TestAssertion, usize)> {
    if node.kind() == "macro_invocation" {
        let name = node.field_text("macro")?;
        let assertion = is_assertion_name(name).then(|| TestAssertion::of(node))?;
        return Some((assertion, node.next_id()));
    }
    // Within the tokens of another macro: a name, `!`, and brackets.
    let is_name = node.kind() == "identifier" && node.is_in("token_tree");
    if !is_name || !is_assertion_name(node.text()) {
        return None;
    }
    let after = node.source().get(node.end()..)?.trim_start().strip_prefix('!')?;
    let start = node.source().len() - after.trim_start().len();
    let mut siblings = node.parent()?.children().skip_while(|sibling| sibling.id() <= node.id());
    let brackets = siblings.next().filter(|next| next.kind() == "token_tree")?;
    if brackets.start() != start {
        return None;
    }
    let text = format!("{} ! {}", node.text(), tokens_of(brackets));
    let mut assertion = TestAssertion::without_literals(text);
    assertion.add_literals(brackets);
    Some((assertion, brackets.next_id()))
}

fn is_assertion_name(name: &str) -> bool {
    name.rsplit(':').next().is_some_and(|name| name.contains("assert"))
}

/// Returns the list of cases that a loop or a variable has: an array of tuples, arrays or structs.
fn table_of(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let mut table = match node.kind() {
        "for_expression" | "let_declaration" => node.field("value")?,
        _ => return None,
    };
    if table.kind() == "reference_expression" {
        table = table.field("value")?;
    }
    let is_row = |row: NodeRef<'_>| {
        matches!(row.kind(), "tuple_expression" | "array_expression" | "struct_expression")
    };
    let is_table = table.kind() == "array_expression" && table.children().count() > 1;
    (is_table && table.children().all(is_row)).then_some(table)
}
