//! Code of scripts that can tell whether a test runner runs it.

use crate::literals::string_content;
use crate::suspicion::mention_context::{
    RunnerMention, expression_around, function_around, has_text,
};
use crate::syntax::NodeRef;

/// Names that test runners define for every module.
const RUNNER_GLOBALS: [&str; 9] =
    ["jest", "vi", "vitest", "describe", "it", "test", "expect", "mocha", "jasmine"];
/// Words in paths and arguments of test runners.
const RUNNER_WORDS: [&str; 7] = ["jest", "vitest", "mocha", "ava", "tap", "jasmine", "--test"];

pub(super) fn mention(node: NodeRef<'_>) -> Option<RunnerMention> {
    match node.kind() {
        "binary_expression" => compared_environment(node),
        "unary_expression" => {
            let name = node.field("argument").filter(|argument| argument.kind() == "identifier")?;
            let is_typeof = node.text().starts_with("typeof");
            let is_runner = is_typeof && RUNNER_GLOBALS.contains(&name.text());
            is_runner.then(|| RunnerMention::new(node, &format!("typeof {}", name.text())))
        }
        "member_expression" => of_member(node),
        "string" => {
            let text = string_content(node)?;
            let is_word = RUNNER_WORDS.iter().any(|word| text.contains(word));
            let around = expression_around(node).text();
            let is_arguments = around.contains("process.argv") || around.contains("execArgv");
            let is_stack = around.contains(".stack") && (is_word || text.contains("test"));
            (is_word && is_arguments || is_stack)
                .then(|| RunnerMention::new(node, if is_stack { "stack" } else { "process.argv" }))
        }
        _ => None,
    }
}

/// Returns the mention of `process.env.NODE_ENV === 'test'`.
fn compared_environment(node: NodeRef<'_>) -> Option<RunnerMention> {
    let sides = [node.field("left")?, node.field("right")?];
    let is_environment = |side: &NodeRef<'_>| side.text().contains("NODE_ENV");
    let is_test = |side: &NodeRef<'_>| string_content(*side).is_some_and(|text| text == "test");
    let is_compared = sides.iter().any(is_environment) && sides.iter().any(is_test);
    is_compared.then(|| RunnerMention::new(node, "NODE_ENV"))
}

fn of_member(node: NodeRef<'_>) -> Option<RunnerMention> {
    let (object, property) = (node.field_text("object")?, node.field_text("property")?);
    let is_global = matches!(object, "globalThis" | "global" | "window" | "self");
    if is_global && RUNNER_GLOBALS.contains(&property) && property != "test" {
        return Some(RunnerMention::new(node, &format!("{object}.{property}")));
    }
    if object == "import.meta" && property == "vitest" {
        return Some(RunnerMention::new(node, "import.meta.vitest"));
    }
    let is_environment = object.ends_with(".env") || object == "env";
    if is_environment && matches!(property, "TAP" | "MOCHA" | "AVA" | "JEST" | "TEST") {
        return Some(RunnerMention::new(node, property));
    }
    if property == "stack" && object.starts_with("new Error") {
        let function = function_around(node);
        let is_for_tests = has_text(function, &["jest", "vitest", "mocha", ".test.", ".spec."]);
        return is_for_tests.then(|| RunnerMention::new(node, "stack"));
    }
    None
}
