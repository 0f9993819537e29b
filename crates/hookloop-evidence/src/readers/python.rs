//! Reads tests of pytest and unittest: functions named `test…` in modules and test classes.

use std::collections::{HashMap, HashSet};

use crate::assertions::{AssertionList, TestAssertion};
use crate::error::EvidenceError;
use crate::source_test::{SourceTest, TestSink, lines_between};
use crate::syntax::NodeRef;
use crate::tokens::tokens_without;

/// Names of decorators and marks that skip a test or expect it to fail.
const SKIP_MARKS: [&str; 7] =
    ["skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "SkipTest"];
/// Functions that skip the test, or the module, that calls them.
const SKIP_CALLS: [&str; 4] =
    ["pytest.skip", "pytest.xfail", "pytest.importorskip", "self.skipTest"];
/// Functions and methods that assert although their names do not begin with `assert`.
const ASSERTING_CALLS: [&str; 8] = [
    "raises",
    "warns",
    "deprecated_call",
    "does_not_raise",
    "failUnless",
    "failIf",
    "failUnlessEqual",
    "failUnlessRaises",
];

pub(super) fn read(root: NodeRef<'_>, sink: &mut TestSink) -> Result<(), EvidenceError> {
    let module = PythonModule::of(root);
    let is_cut = |node: NodeRef<'_>| {
        // Functions within functions are no tests.
        matches!(node.kind(), "parameters" | "call" | "lambda")
            || (node.kind() == "block" && node.is_in("function_definition"))
    };
    for node in root.descendants_without(is_cut) {
        if node.kind() == "function_definition" {
            module.read_function(node, sink)?;
        }
    }
    Ok(())
}

/// The parts of a module that concern all its tests.
struct PythonModule<'t> {
    /// The values that the module assigns to names.
    constants: HashMap<&'t str, NodeRef<'t>>,
    /// The positions of classes that skip their tests.
    skipped_classes: HashSet<usize>,
    is_skipped: bool,
}

impl<'t> PythonModule<'t> {
    fn of(root: NodeRef<'t>) -> PythonModule<'t> {
        let assignments = root
            .children()
            .filter(|statement| statement.kind() == "expression_statement")
            .filter_map(|statement| statement.child_of_kind("assignment"));
        let constants = assignments
            .filter_map(|assignment| {
                Some((assignment.field_text("left")?, assignment.field("right")?))
            })
            .collect();
        let is_skipped = skips_below(root) || calls_skip(root, "class_definition");
        let classes = root.descendants().filter(|node| node.kind() == "class_definition");
        let skipped_classes = classes.filter(|class| is_skipped_class(*class)).map(NodeRef::id);
        PythonModule { constants, skipped_classes: skipped_classes.collect(), is_skipped }
    }

    fn read_function(
        &self,
        function: NodeRef<'t>,
        sink: &mut TestSink,
    ) -> Result<(), EvidenceError> {
        let name = function.field("name").filter(|name| name.text().starts_with("test"));
        let Some(name) = name else { return Ok(()) };
        let is_class = |node: &NodeRef<'_>| node.kind() == "class_definition";
        let classes: Vec<NodeRef<'_>> = function.ancestors().filter(is_class).collect();
        if classes.first().is_some_and(|class| !is_test_class(*class)) {
            return Ok(());
        }
        let decorated = function.parent().filter(|node| node.kind() == "decorated_definition");
        let whole = decorated.unwrap_or(function);
        sink.charge(whole)?;
        let mut assertions = AssertionList::default();
        let mut is_skipped = self.is_skipped
            || classes.iter().any(|class| self.skipped_classes.contains(&class.id()));
        for decorator in whole.children().filter(|node| node.kind() == "decorator") {
            is_skipped |= mentions_skip(decorator);
            self.add_rows(decorator, &mut assertions, sink)?;
        }
        if let Some(body) = function.field("body") {
            is_skipped |= calls_skip(body, "");
            add_assertions(body, &mut assertions);
        }
        let class_names = classes.iter().rev().filter_map(|class| class.field_text("name"));
        sink.add(SourceTest {
            name: name.text().to_owned(),
            scope: class_names.map(str::to_owned).collect(),
            line: name.line(),
            text: tokens_without(whole, &[name]),
            source: lines_between(whole, whole),
            assertions: assertions.finish(),
            is_skipped,
        })
    }

    /// Adds the rows of `@pytest.mark.parametrize("a,b", [(1, 2), …])`, also of a constant of the module.
    fn add_rows(
        &self,
        decorator: NodeRef<'t>,
        assertions: &mut AssertionList,
        sink: &mut TestSink,
    ) -> Result<(), EvidenceError> {
        let Some(call) = decorator.child_of_kind("call") else { return Ok(()) };
        let callee = call.field_text("function").unwrap_or_default();
        let is_table = ["parametrize", "expand", "data", "parameterized", "example"]
            .iter()
            .any(|name| callee.ends_with(name));
        let Some(arguments) = call.field("arguments").filter(|_| is_table) else {
            return Ok(());
        };
        for argument in arguments.children() {
            let value = match argument.kind() {
                "identifier" => self.constants.get(argument.text()).copied(),
                "keyword_argument" => argument.field("value"),
                _ => Some(argument),
            };
            let rows = value.filter(|value| matches!(value.kind(), "list" | "tuple" | "set"));
            if let Some(rows) = rows {
                // Many tests may use one constant.
                sink.charge(rows)?;
                assertions.add_rows(rows);
            } else if callee.ends_with("example") {
                assertions.add_row(argument);
            }
        }
        Ok(())
    }
}

/// Whether pytest or unittest can collect the class. A mixin is collected through its subclasses.
fn is_test_class(class: NodeRef<'_>) -> bool {
    let name = class.field_text("name").unwrap_or_default();
    let bases = class.field_text("superclasses").unwrap_or_default();
    name.to_lowercase().contains("test") || bases.to_lowercase().contains("test")
}

fn is_skipped_class(class: NodeRef<'_>) -> bool {
    let decorated = class.parent().filter(|node| node.kind() == "decorated_definition");
    let decorators = decorated.into_iter().flat_map(NodeRef::children);
    let mut decorators = decorators.filter(|node| node.kind() == "decorator");
    decorators.any(mentions_skip) || class.field("body").is_some_and(skips_below)
}

/// Whether a list of statements assigns a mark that skips its tests, such as `pytestmark`.
fn skips_below(statements: NodeRef<'_>) -> bool {
    let assignments = statements
        .children()
        .filter(|statement| statement.kind() == "expression_statement")
        .filter_map(|statement| statement.child_of_kind("assignment"));
    assignments.into_iter().any(|assignment| {
        let value = assignment.field("right");
        match assignment.field_text("left") {
            Some("pytestmark") => value.is_some_and(mentions_skip),
            Some("__test__") => value.is_some_and(|value| value.text() == "False"),
            Some("__unittest_skip__") => value.is_some_and(|value| value.text() == "True"),
            _ => false,
        }
    })
}

/// Whether a mark that skips a test is named at or below the node.
fn mentions_skip(node: NodeRef<'_>) -> bool {
    node.descendants().chain([node]).any(|node| match node.kind() {
        "attribute" => node.field_text("attribute").is_some_and(|name| SKIP_MARKS.contains(&name)),
        "identifier" => {
            node.is_in("decorator") && SKIP_MARKS.contains(&node.text())
                || node.is_in("call") && SKIP_MARKS.contains(&node.text())
        }
        _ => false,
    })
}

/// Whether the node calls a function that skips, outside of functions and nodes of the kind.
fn calls_skip(node: NodeRef<'_>, cut: &str) -> bool {
    let is_cut = |node: NodeRef<'_>| {
        matches!(node.kind(), "function_definition" | "lambda") || node.kind() == cut
    };
    node.descendants_without(is_cut).any(|node| match node.kind() {
        "call" => node.field_text("function").is_some_and(|name| SKIP_CALLS.contains(&name)),
        "raise_statement" => {
            let raised = node.children().next().map_or("", NodeRef::text);
            let raised = raised.split('(').next().unwrap_or_default();
            raised.ends_with("SkipTest") || raised.ends_with("skip.Exception")
        }
        _ => false,
    })
}

fn add_assertions(body: NodeRef<'_>, assertions: &mut AssertionList) {
    let mut covered = 0;
    for node in body.descendants() {
        if node.id() < covered {
            continue;
        }
        if is_assertion(node) {
            assertions.add(TestAssertion::of(node));
            covered = node.next_id();
        } else if let Some(table) = table_of(node) {
            assertions.add_rows(table);
            covered = table.next_id();
        } else {
            assertions.pass(node);
        }
    }
}

fn is_assertion(node: NodeRef<'_>) -> bool {
    if node.kind() == "assert_statement" {
        return true;
    }
    let Some(function) = node.field("function").filter(|_| node.kind() == "call") else {
        return false;
    };
    let name = function.field_text("attribute").unwrap_or(function.text());
    let name = name.trim_start_matches('_');
    name.starts_with("assert") || ASSERTING_CALLS.contains(&name) || function.text() == "self.fail"
}

/// Returns the list of cases that a loop or an assignment has: a list of lists, tuples or dictionaries.
fn table_of(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let table = match node.kind() {
        "for_statement" | "assignment" => node.field("right")?,
        _ => return None,
    };
    let is_row = |row: NodeRef<'_>| matches!(row.kind(), "tuple" | "list" | "dictionary" | "pair");
    let is_table = matches!(table.kind(), "list" | "tuple" | "set" | "dictionary");
    (is_table && table.children().count() > 1 && table.children().all(is_row)).then_some(table)
}
