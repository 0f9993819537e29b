//! Reads tests of the `testing` package, with subtests, examples and methods of testify suites.

use std::collections::HashSet;

use crate::assertions::{AssertionList, TestAssertion};
use crate::error::EvidenceError;
use crate::literals::string_content;
use crate::source_test::{SourceTest, TestSink, lines_between};
use crate::syntax::NodeRef;
use crate::tokens::{tokens_of, tokens_without};

/// Methods of `testing.T` that fail a test.
const FAILING_METHODS: [&str; 6] = ["Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"];
/// Packages and values whose calls are assertions.
const ASSERTING_PACKAGES: [&str; 7] = ["assert", "require", "is", "qt", "c", "check", "must"];

pub(super) fn read(root: NodeRef<'_>, sink: &mut TestSink) -> Result<(), EvidenceError> {
    for function in root.children() {
        let receiver = match function.kind() {
            "function_declaration" => None,
            "method_declaration" => function.field("receiver").map(receiver_type),
            _ => continue,
        };
        let Some(name) = function.field("name").filter(|name| is_test_name(name.text())) else {
            continue;
        };
        let body = function.field("body").unwrap_or(function);
        let subtests = subtests_below(body);
        sink.charge(function)?;
        let test = GoTestParts { whole: function, name, body, subtests: &subtests };
        let scope: Vec<String> = receiver.into_iter().collect();
        let mut test = test.read(name.text().to_owned(), scope);
        if name.text().starts_with("Example") {
            add_output(body, &mut test);
        }
        let is_skipped = test.is_skipped;
        sink.add(test)?;
        read_subtests(&subtests, name.text(), is_skipped, sink)?;
    }
    Ok(())
}

/// Whether `go test` takes the function for a test: `TestX`, not `Testx`.
fn is_test_name(name: &str) -> bool {
    ["Test", "Fuzz", "Example"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(char::is_lowercase))
    }) && name != "TestMain"
}

fn receiver_type(receiver: NodeRef<'_>) -> String {
    let name = receiver.descendants().filter(|node| node.kind() == "type_identifier").last();
    name.map_or_else(String::new, |name| name.text().to_owned())
}

/// A call of `t.Run` with a constant name and a function.
#[derive(Clone, Copy)]
struct GoSubtest<'t> {
    call: NodeRef<'t>,
    name: NodeRef<'t>,
    body: NodeRef<'t>,
}

fn subtests_below(body: NodeRef<'_>) -> Vec<GoSubtest<'_>> {
    let is_call = |node: &NodeRef<'_>| node.kind() == "call_expression";
    body.descendants().filter(is_call).filter_map(subtest_call).collect()
}

fn subtest_call(call: NodeRef<'_>) -> Option<GoSubtest<'_>> {
    let function = call.field("function")?;
    let mut arguments = call.field("arguments")?.children();
    let (name, body) = (arguments.next()?, arguments.next()?);
    let is_run = function.field_text("field") == Some("Run") && body.kind() == "func_literal";
    (is_run && string_content(name).is_some()).then_some(GoSubtest { call, name, body })
}

fn read_subtests(
    subtests: &[GoSubtest<'_>],
    function: &str,
    is_skipped: bool,
    sink: &mut TestSink,
) -> Result<(), EvidenceError> {
    // The subtests around the current one: the end of each, its name, and whether it is skipped.
    let mut around: Vec<(usize, String, bool)> = Vec::new();
    for (index, subtest) in subtests.iter().enumerate() {
        let GoSubtest { call, name, body } = *subtest;
        sink.charge(call)?;
        while around.pop_if(|(end, ..)| *end <= call.id()).is_some() {}
        let names = around.iter().map(|(_, name, _)| name.clone());
        let scope = std::iter::once(function.to_owned()).chain(names).collect();
        let after = &subtests[index + 1..];
        let within = &after[..after.partition_point(|other| other.call.id() < body.next_id())];
        let test = GoTestParts { whole: call, name, body, subtests: within };
        let mut test = test.read(string_content(name).unwrap_or_default(), scope);
        test.is_skipped |= around.last().map_or(is_skipped, |(.., is_skipped)| *is_skipped);
        around.push((body.next_id(), test.name.clone(), test.is_skipped));
        sink.add(test)?;
    }
    Ok(())
}

/// The parts of a test in the source.
struct GoTestParts<'a, 't> {
    whole: NodeRef<'t>,
    name: NodeRef<'t>,
    body: NodeRef<'t>,
    subtests: &'a [GoSubtest<'t>],
}

impl<'t> GoTestParts<'_, 't> {
    fn read(&self, name: String, scope: Vec<String>) -> SourceTest {
        SourceTest {
            name,
            scope,
            line: self.name.line(),
            text: tokens_without(self.whole, &[self.name]),
            source: lines_between(self.whole, self.whole),
            assertions: self.assertions(),
            is_skipped: self.own_nodes().any(is_skip_call),
        }
    }

    /// Returns the nodes of the body but those of subtests.
    fn own_nodes(&self) -> impl Iterator<Item = NodeRef<'t>> {
        let calls: HashSet<usize> = self.subtests.iter().map(|subtest| subtest.call.id()).collect();
        self.body.descendants_without(move |node| calls.contains(&node.id()))
    }

    fn assertions(&self) -> Vec<TestAssertion> {
        let mut assertions = AssertionList::default();
        let mut conditions = HashSet::new();
        let mut covered = 0;
        for node in self.own_nodes() {
            if node.id() < covered {
                continue;
            }
            if let Some(table) = table_of(node) {
                covered = table.next_id();
                assertions.add_rows(table);
            } else if let Some(assertion) = assertion_of(node, &mut conditions) {
                covered = node.next_id();
                assertions.add(assertion);
            } else {
                assertions.pass(node);
            }
        }
        assertions.finish()
    }
}

fn is_skip_call(node: NodeRef<'_>) -> bool {
    let method = node.field("function").and_then(|function| function.field_text("field"));
    node.kind() == "call_expression" && matches!(method, Some("Skip" | "Skipf" | "SkipNow"))
}

/// Returns the assertion that a call makes. A call of `t.Errorf` asserts with the condition around it.
///
/// `conditions` has the conditions that other assertions contain.
fn assertion_of(node: NodeRef<'_>, conditions: &mut HashSet<usize>) -> Option<TestAssertion> {
    let function = node.field("function").filter(|_| node.kind() == "call_expression")?;
    let Some(method) = function.field_text("field") else {
        return (function.text() == "Expect").then(|| TestAssertion::of(node));
    };
    let operand = function.field("operand")?;
    if FAILING_METHODS.contains(&method) {
        return Some(failure_of(node, conditions));
    }
    // Gomega writes `Expect(x).To(Equal(y))`.
    let first = operand.descendants_without(|node| node.kind() == "argument_list");
    let begins_with_expect = first.last().is_some_and(|first| first.text().ends_with("Expect"))
        || operand.field_text("function").is_some_and(|name| name.ends_with("Expect"));
    let is_asserting = ASSERTING_PACKAGES.contains(&operand.text())
        || operand.field_text("field").is_some_and(|field| {
            matches!(field, "Assert" | "Require") || ASSERTING_PACKAGES.contains(&field)
        })
        || operand.field("function").is_some_and(|function| {
            matches!(function.field_text("field"), Some("Assert" | "Require"))
        });
    (is_asserting || begins_with_expect).then(|| TestAssertion::of(node))
}

/// Returns the assertion of a call that fails the test: the innermost condition, and the call.
///
/// The literals of the message have no part in it.
fn failure_of(call: NodeRef<'_>, conditions: &mut HashSet<usize>) -> TestAssertion {
    let is_end =
        |node: &NodeRef<'_>| !matches!(node.kind(), "func_literal" | "function_declaration");
    let around = call.ancestors().take_while(is_end).find(|node| node.kind() == "if_statement");
    let Some(statement) = around.filter(|statement| conditions.insert(statement.id())) else {
        return TestAssertion::without_literals(tokens_of(call));
    };
    let parts = ["initializer", "condition"].map(|field| statement.field(field));
    let mut assertion = TestAssertion::without_literals(String::new());
    for part in parts.into_iter().flatten() {
        assertion.text.push_str(&tokens_of(part));
        assertion.text.push_str(" ; ");
        assertion.add_literals(part);
    }
    assertion.text.push_str(call.field("function").map_or("", NodeRef::text));
    assertion
}

/// Returns the rows of a table: the elements of a slice or map of composite values.
fn table_of(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    if node.kind() != "literal_value" || !node.is_in("composite_literal") {
        return None;
    }
    let kind = node.parent().and_then(|parent| parent.field("type")).map(NodeRef::kind)?;
    let is_row = |row: NodeRef<'_>| {
        let last = row.children().last().unwrap_or(row);
        let value = last.child_of_kind("literal_value").unwrap_or(last);
        matches!(value.kind(), "literal_value" | "composite_literal")
    };
    let is_table =
        matches!(kind, "slice_type" | "array_type" | "map_type" | "implicit_length_array_type");
    (is_table && node.children().next().is_some() && node.children().all(is_row)).then_some(node)
}

/// Adds the output that an example expects. Without it, `go test` only compiles the example.
fn add_output(body: NodeRef<'_>, test: &mut SourceTest) {
    let comments = body.descendants().filter(|node| node.kind() == "comment");
    let lines: Vec<&str> = comments
        .map(|comment| comment.text().trim_start_matches('/').trim())
        .skip_while(|line| !is_output_head(line))
        .collect();
    test.is_skipped |= lines.is_empty();
    if !lines.is_empty() {
        let text = lines.join("\n");
        let is_content = |line: &&str| !line.is_empty();
        let outputs = lines.iter().map(|line| match line.split_once(':') {
            Some((_, output)) if is_output_head(line) => output.trim(),
            _ => line,
        });
        let outcomes = outputs.filter(is_content).map(|line| format!("\"{line}\"")).collect();
        test.text = format!("{} // {text}", test.text);
        test.assertions.push(TestAssertion { text, inputs: Vec::new(), outcomes });
    }
}

fn is_output_head(line: &str) -> bool {
    let line = line.to_lowercase();
    line.starts_with("output:") || line.starts_with("unordered output:")
}
