//! Conditions, cases and entries of tables that have literals, with the literals of their results.

use crate::language::SourceLanguage;
use crate::literals::{literal_of, literals_below};
use crate::suspicion::source_parts::SourceParts;
use crate::syntax::NodeRef;

/// Maximum literals of a condition or a key.
const KEYS_MAX: usize = 16;
/// Maximum literals of a result. A larger block is no special case.
const OUTCOMES_MAX: usize = 8;
/// Maximum bytes of a block, an arm or a value that is a result.
const RESULT_BYTES_MAX: usize = 600;

/// Values that consist of other values.
const COMPOSITES: [&str; 16] = [
    "list",
    "tuple",
    "set",
    "dictionary",
    "array",
    "object",
    "array_expression",
    "tuple_expression",
    "composite_literal",
    "parenthesized_expression",
    "reference_expression",
    "unary_expression",
    "unary_operator",
    "expression_list",
    "tuple_pattern",
    "slice_pattern",
];

/// Literals that decide about a result.
pub(super) struct SpecialCase {
    pub(super) line: usize,
    /// The keys one by one, and with several keys all of them together.
    pub(super) keys: Vec<Vec<String>>,
    pub(super) outcomes: Vec<String>,
    /// Whether it is an entry of a table, and the table's position.
    pub(super) table: Option<usize>,
}

/// Returns the special cases of a source.
pub(super) fn special_cases(parts: &SourceParts<'_>) -> Vec<SpecialCase> {
    parts.nodes().filter_map(special_case).collect()
}

fn special_case(node: NodeRef<'_>) -> Option<SpecialCase> {
    match node.kind() {
        "if_statement" | "elif_clause" | "if_expression" | "ternary_expression" => {
            let condition = node.field("condition")?;
            of_condition(condition, node.field("consequence")?)
        }
        "conditional_expression" => {
            let mut children = node.children();
            let (result, condition) = (children.next()?, children.next()?);
            of_condition(condition, result)
        }
        "match_arm" => case(node.field("pattern")?, &[node.field("value")?]),
        "case_clause" => case(node.child_of_kind("case_pattern")?, &[node.field("consequence")?]),
        "switch_case" | "expression_case" => {
            let value = node.field("value")?;
            let body: Vec<NodeRef<'_>> = node.children().filter(|child| *child != value).collect();
            case(value, &body)
        }
        "pair" => entry(node.field("key")?, node.field("value")?),
        "keyed_element" => {
            let mut children = node.children();
            entry(children.next()?, children.next()?)
        }
        "tuple" | "tuple_expression" | "array" | "literal_value" => row(node),
        _ => None,
    }
}

fn of_condition(condition: NodeRef<'_>, result: NodeRef<'_>) -> Option<SpecialCase> {
    let mut keys = Vec::new();
    for node in std::iter::once(condition).chain(condition.descendants()) {
        keys.extend(compared_keys(node));
        if keys.len() > KEYS_MAX {
            return None;
        }
    }
    special(condition.line(), keys, &[result])
}

fn case(pattern: NodeRef<'_>, results: &[NodeRef<'_>]) -> Option<SpecialCase> {
    // A range is no special case.
    if pattern.descendants().any(|node| node.kind() == "range_pattern") {
        return None;
    }
    let keys = spelled_below(pattern, KEYS_MAX)?;
    special(pattern.line(), keys, results)
}

fn special(line: usize, keys: Vec<String>, results: &[NodeRef<'_>]) -> Option<SpecialCase> {
    let mut outcomes = Vec::new();
    for result in results {
        if result.text().len() > RESULT_BYTES_MAX {
            return None;
        }
        outcomes.extend(spelled_below(*result, OUTCOMES_MAX)?);
    }
    if keys.is_empty() || outcomes.is_empty() || outcomes.len() > OUTCOMES_MAX {
        return None;
    }
    let mut all: Vec<Vec<String>> = keys.iter().map(|key| vec![key.clone()]).collect();
    if keys.len() > 1 {
        all.push(keys);
    }
    Some(SpecialCase { line, keys: all, outcomes, table: None })
}

/// Returns the special case of a key and its value.
fn entry(key: NodeRef<'_>, value: NodeRef<'_>) -> Option<SpecialCase> {
    let table = key.parent()?.parent()?;
    let keys = match key.kind() {
        "property_identifier" => vec![format!("\"{}\"", key.text())],
        "literal_element" => keys_of(key.children().next()?),
        _ => keys_of(key),
    };
    let is_value = is_constant_value(value);
    let mut special = special(key.line(), keys, &[value]).filter(|_| is_value)?;
    special.table = Some(table.id());
    Some(special)
}

/// Returns the special case of a row: constant values within a list of rows.
fn row(node: NodeRef<'_>) -> Option<SpecialCase> {
    let around = node.parent()?;
    let is_in_table = matches!(
        around.kind(),
        "list" | "tuple" | "set" | "array" | "array_expression" | "literal_element" | "arguments"
    );
    let cells: Vec<NodeRef<'_>> = node.children().take(KEYS_MAX + 1).collect();
    let (last, before) = cells.split_last().filter(|(_, before)| !before.is_empty())?;
    if !is_in_table || cells.len() > KEYS_MAX || !cells.iter().all(|cell| is_constant_value(*cell))
    {
        return None;
    }
    let keys = before.iter().flat_map(|cell| keys_of(*cell)).collect();
    let mut special = special(node.line(), keys, &[*last])?;
    special.table = Some(around.id());
    Some(special)
}

/// Whether a value has no names and calls, but those of wrappers such as `Some` and `"a".to_string()`.
fn is_constant_value(value: NodeRef<'_>) -> bool {
    let is_wrapper = |node: NodeRef<'_>| {
        matches!(node.text(), "to_string" | "to_owned" | "into" | "from" | "vec" | "String")
            || node.text().starts_with(char::is_uppercase)
    };
    let is_name = |node: &NodeRef<'_>| matches!(node.kind(), "identifier" | "field_identifier");
    value.text().len() <= RESULT_BYTES_MAX
        && std::iter::once(value).chain(value.descendants()).filter(is_name).all(is_wrapper)
}

/// Returns the literals that a comparison or a test for membership has.
fn compared_keys(node: NodeRef<'_>) -> Vec<String> {
    let is_operator = |child: NodeRef<'_>| {
        !child.is_named() && matches!(child.text(), "==" | "===" | "is" | "in" | "!=" | "!==")
    };
    match node.kind() {
        "comparison_operator" | "binary_expression" => {
            let operands: Vec<NodeRef<'_>> = node.children().collect();
            let constant = operands.iter().filter(|operand| is_literal(**operand)).count();
            if constant == operands.len() || !node.all_children().any(is_operator) {
                return Vec::new();
            }
            // `"a" in text` looks for a part of a text.
            let is_member = node.all_children().any(|child| child.text() == "in");
            let is_key = |operand: &NodeRef<'_>| !is_member || literal_of(*operand).is_none();
            operands.into_iter().filter(is_key).flat_map(keys_of).collect()
        }
        // `["a", "b"].includes(x)`, `slices.Contains([]string{"a"}, x)`
        "call_expression" => {
            let Some(function) = node.field("function") else { return Vec::new() };
            let name = function.text().rsplit(['.', ':']).next().unwrap_or_default();
            if !matches!(name, "includes" | "has" | "indexOf" | "contains" | "Contains") {
                return Vec::new();
            }
            let value = function.field("object").or(function.field("value"));
            let first = node.field("arguments").and_then(|arguments| arguments.children().next());
            let first = first.filter(|_| node.language() == SourceLanguage::Go);
            let table = value.filter(|_| first.is_none()).or(first);
            table.filter(|table| !is_literal_text(*table)).map(keys_of).unwrap_or_default()
        }
        "macro_invocation" if node.field_text("macro") == Some("matches") => {
            spelled_below(node, KEYS_MAX).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn is_literal(node: NodeRef<'_>) -> bool {
    !keys_of(node).is_empty()
}

/// Whether the node is a text, in which a method looks for a part.
fn is_literal_text(node: NodeRef<'_>) -> bool {
    literal_of(node).is_some()
}

/// Returns the literals of a value that consists of nothing else.
fn keys_of(value: NodeRef<'_>) -> Vec<String> {
    let is_negative = matches!(value.kind(), "unary_expression" | "unary_operator");
    if literal_of(value).is_none() && !COMPOSITES.contains(&value.kind()) {
        return Vec::new();
    }
    let is_constant = is_constant_value(value) && (!is_negative || value.text().starts_with('-'));
    spelled_below(value, KEYS_MAX).filter(|_| is_constant).unwrap_or_default()
}

/// Returns the literals at and below a node, or nothing if they are too many.
fn spelled_below(node: NodeRef<'_>, max: usize) -> Option<Vec<String>> {
    let found: Vec<String> =
        literals_below(node).take(max + 1).map(|(_, value)| value.spelling()).collect();
    (found.len() <= max).then_some(found)
}
