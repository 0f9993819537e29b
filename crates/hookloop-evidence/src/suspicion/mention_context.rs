//! The code around a possible mention of a test runner.

use crate::literals::string_content;
use crate::syntax::NodeRef;

/// Maximum bytes of the expression that is searched for other parts of a mention.
const EXPRESSION_BYTES_MAX: usize = 2_000;
/// Maximum bytes of the function, or the part of it, that is searched for other parts of a mention.
const FUNCTION_BYTES_MAX: usize = 8_000;

/// Code that can tell whether a test runner runs it.
pub(super) struct RunnerMention {
    pub(super) line: usize,
    pub(super) text: String,
}

impl RunnerMention {
    pub(super) fn new(node: NodeRef<'_>, text: &str) -> RunnerMention {
        RunnerMention { line: node.line(), text: text.to_owned() }
    }
}

/// Returns the largest expression around a node that is small enough.
pub(super) fn expression_around(node: NodeRef<'_>) -> NodeRef<'_> {
    let is_part = |around: &NodeRef<'_>| {
        let is_expression = matches!(
            around.kind(),
            "comparison_operator"
                | "binary_expression"
                | "subscript"
                | "subscript_expression"
                | "call"
                | "call_expression"
                | "member_expression"
                | "attribute"
                | "argument_list"
                | "arguments"
                | "selector_expression"
                | "index_expression"
                | "list"
                | "tuple"
                | "set"
                | "array"
                | "generator_expression"
                | "list_comprehension"
                | "for_in_clause"
                | "boolean_operator"
                | "not_operator"
                | "parenthesized_expression"
                | "named_expression"
                | "unary_expression"
                | "arrow_function"
        );
        is_expression && around.text().len() <= EXPRESSION_BYTES_MAX
    };
    node.ancestors().take_while(is_part).last().unwrap_or(node)
}

/// Returns the function around a node, or the largest part of it that is small enough.
pub(super) fn function_around(node: NodeRef<'_>) -> NodeRef<'_> {
    let mut largest = node;
    for around in node.ancestors() {
        let is_file = around.parent().is_none();
        if is_file || around.text().len() > FUNCTION_BYTES_MAX {
            break;
        }
        largest = around;
        if is_function(around) {
            break;
        }
    }
    largest
}

fn is_function(node: NodeRef<'_>) -> bool {
    matches!(
        node.kind(),
        "function_definition"
            | "function_declaration"
            | "function_item"
            | "arrow_function"
            | "method_definition"
            | "method_declaration"
            | "function_expression"
    )
}

/// Whether a string below the node contains one of the parts.
pub(super) fn has_text(node: NodeRef<'_>, parts: &[&str]) -> bool {
    let mut texts = node.descendants().filter_map(string_content);
    texts.any(|text| parts.iter().any(|part| text.contains(part)))
}
