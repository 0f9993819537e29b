//! Code that can tell whether a test runner runs it.

use crate::language::SourceLanguage;
use crate::literals::string_content;
use crate::rust_attributes::{attribute_name, requires_test};
use crate::suspicion::mention_context::{
    RunnerMention, expression_around, function_around, has_text,
};
use crate::suspicion::script_mentions;
use crate::suspicion::source_parts::SourceParts;
use crate::syntax::NodeRef;

/// Beginnings of environment variables that only test runners set.
const RUNNER_VARIABLES: [&str; 13] = [
    "PYTEST_",
    "JEST_WORKER_ID",
    "VITEST",
    "MOCHA_",
    "NODE_TEST_CONTEXT",
    "RUST_TEST_",
    "NEXTEST",
    "CARGO_TARGET_TMPDIR",
    "AVA_PATH",
    "KARMA_",
    "CYPRESS",
    "PLAYWRIGHT_TEST",
    "HOOKLOOP_",
];
/// The variable that gates get, as jobs of CI do.
const OF_GATES: &str = "CI";
/// Packages of Python that only tests import.
const PYTHON_RUNNERS: [&str; 6] = ["pytest", "_pytest", "unittest", "nose", "nose2", "py.test"];
/// Values of Python that show how a program was started.
const PYTHON_STATE: [&str; 5] = ["sys.modules", "sys.argv", "os.environ", "os.getenv", "find_spec"];
/// Functions of Python that show the callers.
const PYTHON_FRAMES: [&str; 5] = [
    "inspect.stack",
    "sys._getframe",
    "inspect.currentframe",
    "traceback.extract_stack",
    "traceback.format_stack",
];

/// Returns the mentions of a source, in source order.
pub(super) fn mentions(parts: &SourceParts<'_>) -> Vec<RunnerMention> {
    let language = parts.root.language();
    let mention = |node: NodeRef<'_>| {
        runner_variable(node).or_else(|| match language {
            SourceLanguage::Python => python_mention(node),
            SourceLanguage::Rust => rust_mention(node),
            SourceLanguage::Go => go_mention(node),
            SourceLanguage::JavaScript | SourceLanguage::TypeScript | SourceLanguage::Tsx => {
                script_mentions::mention(node)
            }
        })
    };
    let mut found: Vec<RunnerMention> = parts.nodes().filter_map(mention).collect();
    if language == SourceLanguage::Rust {
        found.extend(test_only_statements(parts));
    }
    found
}

/// Returns the mention of an environment variable, as a text or a name.
fn runner_variable(node: NodeRef<'_>) -> Option<RunnerMention> {
    let name = match node.kind() {
        "identifier" | "property_identifier" | "shorthand_property_identifier" => {
            node.text().to_owned()
        }
        "string_content" | "string_fragment" | "interpreted_string_literal_content" => {
            node.text().to_owned()
        }
        _ => return None,
    };
    let is_variable = RUNNER_VARIABLES.iter().any(|begin| name.starts_with(begin));
    let is_name =
        name.chars().all(|char| char.is_ascii_uppercase() || "_0123456789".contains(char));
    // The name alone may be anything; `env` is a part of all ways to read a variable.
    let reads_environment = |node: NodeRef<'_>| {
        let around = expression_around(node.parent().unwrap_or(node)).text();
        around.to_ascii_lowercase().contains("env")
    };
    let is_of_gates = name == OF_GATES && reads_environment(node);
    (is_variable && is_name || is_of_gates).then(|| RunnerMention::new(node, &name))
}

fn python_mention(node: NodeRef<'_>) -> Option<RunnerMention> {
    match node.kind() {
        "dotted_name" if is_imported(node) => {
            let package = node.text().split('.').next().unwrap_or_default();
            PYTHON_RUNNERS.contains(&package).then(|| RunnerMention::new(node, package))
        }
        "string" => {
            let text = string_content(node)?;
            let runner = PYTHON_RUNNERS.iter().find(|runner| text.contains(**runner))?;
            let around = expression_around(node).text();
            let is_state = PYTHON_STATE.iter().any(|state| around.contains(state))
                || around.starts_with("__import__")
                || around.contains("import_module");
            is_state.then(|| RunnerMention::new(node, runner))
        }
        "call" => {
            let callee = node.field_text("function")?;
            let frames = PYTHON_FRAMES.iter().find(|frames| **frames == callee)?;
            let function = function_around(node);
            let is_for_tests = has_text(function, &["test_", "pytest", "unittest", "_test.py"]);
            is_for_tests.then(|| RunnerMention::new(node, frames))
        }
        _ => None,
    }
}

/// Whether the name is that of an imported module, and not of its content.
fn is_imported(name: NodeRef<'_>) -> bool {
    let Some(parent) = name.parent() else { return false };
    match parent.kind() {
        "import_statement" => true,
        "import_from_statement" => name.field_name() == Some("module_name"),
        "aliased_import" => parent.is_in("import_statement"),
        _ => false,
    }
}

fn rust_mention(node: NodeRef<'_>) -> Option<RunnerMention> {
    match node.kind() {
        "macro_invocation" if node.field_text("macro") == Some("cfg") => {
            let mentions = has_word(node, "test");
            mentions.then(|| RunnerMention::new(node, "cfg!(test)"))
        }
        "attribute_item" if attribute_name(node) == "cfg" => {
            let excludes = !requires_test(node)
                && node.descendants().any(|word| {
                    word.kind() == "identifier" && word.text() == "not" && negates_test(word)
                });
            excludes.then(|| RunnerMention::new(node, "cfg(not(test))"))
        }
        "call_expression" => {
            let callee = node.field_text("function")?;
            let function = function_around(node);
            let by_path = callee.ends_with("current_exe") && has_text(function, &["deps"]);
            let by_name = callee.ends_with("thread::current") && has_text(function, &["test"]);
            (by_path || by_name).then(|| RunnerMention::new(node, callee))
        }
        _ => None,
    }
}

fn has_word(node: NodeRef<'_>, name: &str) -> bool {
    node.descendants().any(|word| word.kind() == "identifier" && word.text() == name)
}

/// Whether the brackets behind `not` contain `test`.
fn negates_test(not: NodeRef<'_>) -> bool {
    let siblings = not.parent().into_iter().flat_map(NodeRef::children);
    let brackets = { siblings }.find(|sibling| sibling.id() > not.id());
    brackets.is_some_and(|brackets| brackets.kind() == "token_tree" && has_word(brackets, "test"))
}

/// Returns statements within functions of the source that only tests have.
fn test_only_statements(parts: &SourceParts<'_>) -> Vec<RunnerMention> {
    let is_attribute = |node: &NodeRef<'_>| {
        node.kind() == "attribute_item" && node.is_in("block") && requires_test(*node)
    };
    let attributes = parts.nodes().filter(is_attribute);
    attributes.map(|attribute| RunnerMention::new(attribute, "cfg(test)")).collect()
}

fn go_mention(node: NodeRef<'_>) -> Option<RunnerMention> {
    match node.kind() {
        "call_expression" => {
            let callee = node.field_text("function")?;
            if matches!(callee, "testing.Testing" | "testing.CoverMode" | "testing.Verbose") {
                return Some(RunnerMention::new(node, callee));
            }
            let is_flag = matches!(callee, "flag.Lookup" | "flag.CommandLine.Lookup");
            if is_flag && has_text(node, &["test."]) {
                return Some(RunnerMention::new(node, "flag.Lookup"));
            }
            let shows_callers = matches!(
                callee,
                "runtime.Caller" | "runtime.Callers" | "debug.Stack" | "runtime.FuncForPC"
            );
            let function = function_around(node);
            let is_for_tests = has_text(function, &["_test.go", "testing.", ".Test"]);
            (shows_callers && is_for_tests).then(|| RunnerMention::new(node, callee))
        }
        "interpreted_string_literal" | "raw_string_literal" => {
            let text = string_content(node)?;
            let is_binary = matches!(text.as_str(), ".test" | "-test." | "-test.v" | ".test.exe");
            let around = function_around(node).text();
            let is_name = around.contains("os.Args") || around.contains("os.Executable");
            (is_binary && is_name).then(|| RunnerMention::new(node, "os.Args"))
        }
        _ => None,
    }
}
