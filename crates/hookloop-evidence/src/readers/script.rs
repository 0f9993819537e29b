//! Reads tests of JavaScript and TypeScript: Jest, Vitest, Mocha, `node:test`, tape, tap, AVA and Deno.

mod call_chain;

use crate::assertions::{AssertionList, TestAssertion};
use crate::error::EvidenceError;
use crate::literals::string_content;
use crate::source_test::{SCOPE_DEPTH_MAX, SourceTest, TestSink, lines_between};
use crate::syntax::NodeRef;
use crate::tokens::{tokens_of, tokens_without};
use call_chain::{CallChain, CallPart, RunnerNames};

/// Methods of a test's context that assert nothing.
const CONTEXT_METHODS: [&str; 13] = [
    "after",
    "afterEach",
    "before",
    "beforeEach",
    "comment",
    "context",
    "end",
    "log",
    "plan",
    "skip",
    "teardown",
    "test",
    "timeout",
];
/// Values whose calls are assertions, beside the parameter of the test.
const ASSERTING_VALUES: [&str; 8] =
    ["assert", "assertType", "chai", "expect", "expectTypeOf", "should", "t", "tap"];

pub(super) fn read(root: NodeRef<'_>, sink: &mut TestSink) -> Result<(), EvidenceError> {
    let runners = RunnerNames::of(root);
    let mut around: Vec<OpenGroup> = Vec::new();
    let calls: Vec<ScriptCall<'_>> = root
        .descendants()
        .filter(|node| node.kind() == "call_expression")
        .filter_map(|call| ScriptCall::of(call, &runners))
        .collect();
    for (index, call) in calls.iter().enumerate() {
        while around.pop_if(|group| group.end <= call.call.id()).is_some() {}
        let is_skipped = around.last().is_some_and(|group| group.is_skipped) || call.is_skipped;
        if call.part == CallPart::Test {
            sink.charge(call.call)?;
            let after = &calls[index + 1..];
            let end = call.call.next_id();
            let within = &after[..after.partition_point(|other| other.call.id() < end)];
            let scope = around.iter().map(|group| group.title.clone()).collect();
            sink.add(call.read(scope, is_skipped, within))?;
        }
        around.push(OpenGroup { end: call.call.next_id(), title: call.title(), is_skipped });
        if around.len() > SCOPE_DEPTH_MAX {
            return Err(EvidenceError::TooDeep { part: "a test", limit: SCOPE_DEPTH_MAX });
        }
    }
    Ok(())
}

/// A group or a test around the current call.
struct OpenGroup {
    end: usize,
    title: String,
    is_skipped: bool,
}

/// A call that defines a test or a group.
struct ScriptCall<'t> {
    call: NodeRef<'t>,
    part: CallPart,
    title: NodeRef<'t>,
    callback: Option<NodeRef<'t>>,
    /// The table of `test.each(table)`.
    table: Option<NodeRef<'t>>,
    /// Whether the name, an option or the body skips it.
    is_skipped: bool,
}

impl<'t> ScriptCall<'t> {
    fn of(call: NodeRef<'t>, runners: &RunnerNames<'t>) -> Option<ScriptCall<'t>> {
        let chain = CallChain::of(call)?;
        let arguments: Vec<NodeRef<'_>> =
            call.field("arguments").filter(|node| node.kind() == "arguments")?.children().collect();
        let title = *arguments.first()?;
        let callback = arguments.iter().copied().find(|argument| is_function(*argument));
        let is_title = matches!(title.kind(), "string" | "template_string");
        let part = runners.part_of(&chain).filter(|part| match part {
            CallPart::Group => callback.is_some(),
            CallPart::Test => is_title || callback.is_some() || chain.table.is_some(),
            CallPart::SubTest => {
                callback.is_some() || is_title && arguments.len() > 1 && !chain.is_skipped()
            }
        })?;
        let part = if part == CallPart::SubTest { CallPart::Test } else { part };
        let is_pending = part == CallPart::Test && callback.is_none() && arguments.len() == 1;
        let skips_itself = callback.is_some_and(|callback| skips_in(callback));
        let is_skipped = chain.is_skipped()
            || is_pending
            || arguments.iter().any(|argument| has_skip_option(*argument))
            || part == CallPart::Test && skips_itself;
        Some(ScriptCall { call, part, title, callback, table: chain.table, is_skipped })
    }

    fn title(&self) -> String {
        if let Some(title) = string_content(self.title) {
            return title;
        }
        match self.title.kind() {
            "template_string" => self.title.text().trim_matches('`').to_owned(),
            kind if is_function_kind(kind) => {
                self.title.field_text("name").unwrap_or_default().to_owned()
            }
            _ => tokens_of(self.title),
        }
    }

    fn read(&self, scope: Vec<String>, is_skipped: bool, within: &[ScriptCall<'_>]) -> SourceTest {
        // A function in place of the title is the test itself.
        let omitted: Vec<NodeRef<'_>> = if is_function(self.title) {
            self.title.field("name").into_iter().collect()
        } else {
            vec![self.title]
        };
        SourceTest {
            name: self.title(),
            scope,
            line: self.call.line(),
            text: tokens_without(self.call, &omitted),
            source: lines_between(self.call, self.call),
            assertions: self.assertions(within),
            is_skipped,
        }
    }

    fn assertions(&self, within: &[ScriptCall<'_>]) -> Vec<TestAssertion> {
        let mut assertions = AssertionList::default();
        self.table.into_iter().for_each(|table| assertions.add_rows(table));
        let Some(callback) = self.callback else { return assertions.finish() };
        let parameters = callback.field("parameters").or(callback.field("parameter"));
        let names: Vec<&str> = parameters
            .into_iter()
            .flat_map(|node| node.descendants().chain([node]))
            .filter(|node| is_name(*node))
            .map(NodeRef::text)
            .collect();
        let is_subtest = |node: NodeRef<'_>| {
            within.binary_search_by_key(&node.id(), |call| call.call.id()).is_ok()
        };
        let mut covered = 0;
        for node in callback.descendants_without(is_subtest) {
            if node.id() < covered {
                continue;
            }
            if is_assertion(node, &names) {
                assertions.add(TestAssertion::of(node));
                covered = node.next_id();
            } else if let Some(table) = table_of(node) {
                assertions.add_rows(table);
                covered = table.next_id();
            } else {
                assertions.pass(node);
            }
        }
        assertions.finish()
    }
}

fn is_name(node: NodeRef<'_>) -> bool {
    matches!(node.kind(), "identifier" | "shorthand_property_identifier_pattern")
}

fn is_function_kind(kind: &str) -> bool {
    matches!(
        kind,
        "arrow_function" | "function_expression" | "generator_function" | "async_arrow_function"
    )
}

fn is_function(node: NodeRef<'_>) -> bool {
    is_function_kind(node.kind())
}

/// Whether the options of a test skip it: `{ skip: true }`, `{ todo: 'later' }`, `{ fails: true }`.
fn has_skip_option(options: NodeRef<'_>) -> bool {
    options.kind() == "object"
        && options.children().any(|option| match option.kind() {
            "shorthand_property_identifier" => matches!(option.text(), "skip" | "todo" | "fails"),
            "pair" => {
                let key = option.field("key").map_or("", NodeRef::text);
                let key = key.trim_matches(['\'', '"']);
                let is_off = matches!(option.field_text("value"), Some("false" | "undefined"));
                matches!(key, "skip" | "todo" | "fails" | "fail" | "ignore") && !is_off
            }
            _ => false,
        })
}

/// Whether a function calls `this.skip()`, `t.skip()` or `pending()`, without the functions of other tests.
fn skips_in(callback: NodeRef<'_>) -> bool {
    let is_other = |node: NodeRef<'_>| is_function(node) && node != callback;
    callback.descendants_without(is_other).any(|node| {
        let function = node.field("function").filter(|_| node.kind() == "call_expression");
        function.is_some_and(|function| {
            let object = function.field_text("object").unwrap_or_default();
            let property = function.field_text("property").unwrap_or_default();
            let is_context =
                matches!(object, "this" | "t" | "ctx" | "context" | "test" | "tap" | "it");
            function.text() == "pending"
                || is_context && matches!(property, "skip" | "todo" | "fixme")
        })
    })
}

/// Whether the node is the whole call of an assertion.
fn is_assertion(node: NodeRef<'_>, parameters: &[&str]) -> bool {
    if node.kind() != "call_expression" {
        // Chai asserts with properties: `expect(a).to.be.true`.
        return node.kind() == "member_expression"
            && node.is_in("expression_statement")
            && CallChain::of_member(node).is_some_and(|chain| chain.root == "expect");
    }
    let Some(chain) = CallChain::of(node) else { return false };
    let first = chain.properties.first().copied().unwrap_or_default();
    let is_asserting = ASSERTING_VALUES.contains(&chain.root)
        || parameters.contains(&chain.root) && !chain.properties.is_empty();
    let is_should = chain.properties.contains(&"should");
    let is_context_call = chain.properties.len() == 1 && CONTEXT_METHODS.contains(&first);
    (is_asserting && !is_context_call) || is_should
}

/// Returns the list of cases that a loop or a variable has: an array of arrays or objects.
fn table_of(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let table = match node.kind() {
        "for_in_statement" => node.field("right")?,
        "variable_declarator" => node.field("value")?,
        "call_expression" => {
            let function = node.field("function")?;
            let is_loop = function.field_text("property") == Some("forEach");
            function.field("object").filter(|_| is_loop)?
        }
        _ => return None,
    };
    let is_row = |row: NodeRef<'_>| matches!(row.kind(), "array" | "object");
    let is_table = table.kind() == "array" && table.children().count() > 1;
    (is_table && table.children().all(is_row)).then_some(table)
}
