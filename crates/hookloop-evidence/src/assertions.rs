//! Assertions of tests and rows of their tables, with the literals that go in and come out.

use std::collections::VecDeque;

use crate::literals::{LiteralValue, literal_of, literals_below};
use crate::syntax::NodeRef;
use crate::tokens::tokens_of;

/// Maximum literals of an assertion that are kept, for each direction.
const LITERALS_MAX: usize = 64;
/// Maximum literals before an assertion that count as its inputs.
const RECENT_MAX: usize = 8;
/// Functions that only wrap a value, beside those whose names begin with a capital.
const WRAPPERS: [&str; 14] = [
    "approx",
    "array",
    "bytearray",
    "bytes",
    "date",
    "datetime",
    "dict",
    "from",
    "list",
    "set",
    "to_owned",
    "to_string",
    "tuple",
    "vec",
];
/// Beginnings of names that rows of tables give to expected values.
const OUTCOME_NAMES: [&str; 6] = ["want", "exp", "out", "res", "should", "ret"];

/// An assertion of a test, or a row of its table.
///
/// Literals are spelled `"text"`, as decimal numbers, `true`, `false` or `null`. A literal whose direction is unknown
/// is in both lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestAssertion {
    /// Its tokens, separated by one space.
    pub text: String,
    /// The literals that go into calls. Without any, those of the statements before.
    pub inputs: Vec<String>,
    /// The literals that results are compared with.
    pub outcomes: Vec<String>,
}

impl TestAssertion {
    pub(crate) fn of(node: NodeRef<'_>) -> TestAssertion {
        let mut assertion = TestAssertion::without_literals(tokens_of(node));
        assertion.add_literals(node);
        assertion
    }

    pub(crate) fn without_literals(text: String) -> TestAssertion {
        TestAssertion { text, inputs: Vec::new(), outcomes: Vec::new() }
    }

    /// Adds the literals of an assertion or a part of it.
    pub(crate) fn add_literals(&mut self, whole: NodeRef<'_>) {
        for (node, value) in literals_below(whole) {
            if self.inputs.len().min(self.outcomes.len()) == LITERALS_MAX {
                break;
            }
            let direction = direction_of(node, whole);
            if direction != LiteralDirection::Outcome {
                push(&mut self.inputs, &value);
            }
            if direction != LiteralDirection::Input {
                push(&mut self.outcomes, &value);
            }
        }
    }

    /// Returns the assertion that a row of a table stands for: its last value, or that with a telling name, is expected.
    fn of_row(row: NodeRef<'_>) -> TestAssertion {
        let mut assertion = TestAssertion::without_literals(tokens_of(row));
        let cells = row_cells(row);
        let has_name = cells.iter().any(|cell| is_outcome_cell(*cell));
        for (index, cell) in cells.iter().enumerate() {
            let is_last = index + 1 == cells.len();
            let is_outcome = if has_name { is_outcome_cell(*cell) } else { is_last };
            let list = if is_outcome { &mut assertion.outcomes } else { &mut assertion.inputs };
            literals_below(*cell).for_each(|(_, value)| push(list, &value));
        }
        assertion
    }
}

fn push(list: &mut Vec<String>, value: &LiteralValue) {
    if list.len() < LITERALS_MAX {
        list.push(value.spelling());
    }
}

/// Returns the values of a row.
fn row_cells(row: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    let inner = match row.kind() {
        "attribute_item" => {
            row.child_of_kind("attribute").and_then(|inner| inner.child_of_kind("token_tree"))
        }
        // `pytest.param(1, 2)`
        "call" => row.field("arguments"),
        "literal_element" => row.child_of_kind("literal_value"),
        _ => None,
    };
    inner.unwrap_or(row).children().collect()
}

fn is_outcome_cell(cell: NodeRef<'_>) -> bool {
    let name = cell.children().next().map_or("", NodeRef::text);
    let name = name.trim_matches(['"', '\'']).to_lowercase();
    let is_named =
        matches!(cell.kind(), "keyed_element" | "pair" | "field_initializer" | "keyword_argument");
    is_named && OUTCOME_NAMES.iter().any(|begin| name.starts_with(begin))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LiteralDirection {
    Input,
    Outcome,
    Unknown,
}

/// Returns the direction of a literal by the calls between it and the whole assertion.
fn direction_of(literal: NodeRef<'_>, whole: NodeRef<'_>) -> LiteralDirection {
    let mut direction = LiteralDirection::Outcome;
    for node in literal.ancestors().take_while(|node| *node != whole) {
        let callee = match node.kind() {
            "call" | "call_expression" => node.field_text("function").unwrap_or_default(),
            "new_expression" => node.field_text("constructor").unwrap_or_default(),
            "macro_invocation" => node.field_text("macro").unwrap_or_default(),
            "token_tree" if node.is_in("token_tree") => callee_before(node),
            _ => "",
        };
        let name = callee.trim_end_matches('!').rsplit(['.', ':']).next().unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        if WRAPPERS.contains(&name) || name.starts_with(char::is_uppercase) {
            direction = LiteralDirection::Unknown;
        } else {
            return LiteralDirection::Input;
        }
    }
    direction
}

/// Returns the name directly before brackets among the tokens of a Rust macro.
fn callee_before(brackets: NodeRef<'_>) -> &str {
    let before = brackets.source().get(..brackets.start()).unwrap_or_default();
    let before = before.strip_suffix('!').unwrap_or(before);
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let start = before.char_indices().rev().take_while(|(_, char)| is_name(*char)).last();
    start.map_or("", |(start, _)| &before[start..])
}

/// The assertions of a test, in source order.
#[derive(Default)]
pub(crate) struct AssertionList {
    assertions: Vec<TestAssertion>,
    recent: VecDeque<String>,
}

impl AssertionList {
    /// Visits a node of the test that belongs to no assertion.
    pub(crate) fn pass(&mut self, node: NodeRef<'_>) {
        let Some(value) = literal_of(node) else { return };
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(value.spelling());
    }

    pub(crate) fn add(&mut self, mut assertion: TestAssertion) {
        if assertion.inputs.is_empty() && !assertion.outcomes.is_empty() {
            assertion.inputs.extend(self.recent.iter().cloned());
        }
        self.assertions.push(assertion);
    }

    pub(crate) fn add_row(&mut self, row: NodeRef<'_>) {
        self.assertions.push(TestAssertion::of_row(row));
    }

    pub(crate) fn add_rows(&mut self, table: NodeRef<'_>) {
        table.children().for_each(|row| self.add_row(row));
    }

    pub(crate) fn finish(self) -> Vec<TestAssertion> {
        self.assertions
    }
}
