//! The names in the callee of a call, and the functions that define tests and groups.

use std::collections::HashMap;

use crate::literals::string_content;
use crate::syntax::NodeRef;

/// Maximum names of a callee.
const CHAIN_NAMES_MAX: usize = 64;

/// Functions that define a test.
const TEST_FUNCTIONS: [&str; 9] =
    ["it", "test", "specify", "xit", "xtest", "xspecify", "fit", "ftest", "bench_test"];
/// Functions that define a group of tests.
const GROUP_FUNCTIONS: [&str; 8] =
    ["describe", "context", "suite", "xdescribe", "xcontext", "fdescribe", "fcontext", "xsuite"];
/// Properties that keep a test function a test function.
const MODIFIERS: [&str; 20] = [
    "concurrent",
    "each",
    "extend",
    "failing",
    "fails",
    "fixme",
    "for",
    "forEach",
    "only",
    "parallel",
    "runIf",
    "sequential",
    "serial",
    "serially",
    "shuffle",
    "skip",
    "skipIf",
    "slow",
    "todo",
    "cb",
];
/// Modifiers that skip a test or expect it to fail, perhaps under a condition.
const SKIP_MODIFIERS: [&str; 7] = ["failing", "fails", "fixme", "runIf", "skip", "skipIf", "todo"];
/// Packages whose default value defines tests.
const RUNNER_PACKAGES: [&str; 14] = [
    "ava",
    "brittle",
    "node:test",
    "tap",
    "tape",
    "tape-catch",
    "tape-promise",
    "tape-promise/tape",
    "test",
    "vitest",
    "@jest/globals",
    "@playwright/test",
    "bun:test",
    "@fast-check/vitest",
];

/// A callee such as `test.concurrent.each(table)`, from its first name on.
pub(super) struct CallChain<'t> {
    pub(super) root: &'t str,
    pub(super) properties: Vec<&'t str>,
    /// The arguments of `each` or `for`: an array, or a template.
    pub(super) table: Option<NodeRef<'t>>,
}

impl<'t> CallChain<'t> {
    /// Returns the chain of a call's callee.
    pub(super) fn of(call: NodeRef<'t>) -> Option<CallChain<'t>> {
        CallChain::of_member(call.field("function")?)
    }

    /// Returns the chain of an expression, or nothing if it does not begin with a name.
    pub(super) fn of_member(expression: NodeRef<'t>) -> Option<CallChain<'t>> {
        let mut node = expression;
        let mut chain = CallChain { root: "", properties: Vec::new(), table: None };
        for _ in 0..CHAIN_NAMES_MAX {
            match node.kind() {
                "identifier" | "this" => {
                    chain.root = node.text();
                    chain.properties.reverse();
                    return Some(chain);
                }
                "member_expression" => {
                    chain.properties.push(node.field("property")?.text());
                    node = node.field("object")?;
                }
                "call_expression" => {
                    let callee = node.field("function")?;
                    let name = callee.field_text("property").unwrap_or_default();
                    if matches!(name, "each" | "for") && chain.properties.is_empty() {
                        chain.table = table_in(node.field("arguments")?);
                    }
                    node = callee;
                }
                "await_expression" | "parenthesized_expression" | "non_null_expression" => {
                    node = node.children().next()?;
                }
                _ => return None,
            }
        }
        None
    }

    pub(super) fn is_skipped(&self) -> bool {
        self.root.starts_with('x') && (is_test_root(self.root) || is_group_root(self.root))
            || self.properties.iter().any(|name| SKIP_MODIFIERS.contains(name))
    }
}

/// Returns the table of `each([…])` or of a tagged template.
fn table_in(arguments: NodeRef<'_>) -> Option<NodeRef<'_>> {
    if arguments.kind() == "template_string" {
        return Some(arguments);
    }
    arguments.children().next().filter(|table| table.kind() == "array")
}

fn is_test_root(name: &str) -> bool {
    TEST_FUNCTIONS.contains(&name)
}

fn is_group_root(name: &str) -> bool {
    GROUP_FUNCTIONS.contains(&name)
}

/// The thing that a call defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPart {
    Test,
    Group,
    /// A method named `test`, which only is a test if it has a function as argument.
    SubTest,
}

/// The names that a source gives to functions that define tests.
pub(super) struct RunnerNames<'t> {
    names: HashMap<&'t str, CallPart>,
}

impl<'t> RunnerNames<'t> {
    pub(super) fn of(root: NodeRef<'t>) -> RunnerNames<'t> {
        let mut names = HashMap::new();
        for node in root.descendants() {
            match node.kind() {
                "import_statement" => add_imports(node, &mut names),
                "variable_declarator" => add_required(node, &mut names),
                _ => {}
            }
        }
        RunnerNames { names }
    }

    pub(super) fn part_of(&self, chain: &CallChain<'_>) -> Option<CallPart> {
        let are_modifiers = |names: &[&str]| names.iter().all(|name| MODIFIERS.contains(name));
        let of_root = if is_test_root(chain.root) {
            Some(CallPart::Test)
        } else if is_group_root(chain.root) {
            Some(CallPart::Group)
        } else {
            self.names.get(chain.root).copied()
        };
        if of_root.is_some() && are_modifiers(&chain.properties) {
            return of_root;
        }
        // `t.test`, `Deno.test`, `test.describe`, `tap.test.skip`
        let is_modifier = |name: &&str| MODIFIERS.contains(name);
        let defining = chain.properties.iter().rev().find(|name| !is_modifier(name))?;
        let last = chain.properties.iter().position(|name| name == defining)?;
        if last > 1 {
            return None;
        }
        match *defining {
            "test" | "it" | "step" if last == 0 => Some(CallPart::SubTest),
            "describe" | "suite" if of_root.is_some() => Some(CallPart::Group),
            _ => None,
        }
    }
}

/// The part of a name that a package of a runner exports.
fn exported_part(name: &str) -> Option<CallPart> {
    if is_test_root(name) || name == "default" {
        return Some(CallPart::Test);
    }
    is_group_root(name).then_some(CallPart::Group)
}

fn is_runner(package: NodeRef<'_>) -> bool {
    string_content(package).is_some_and(|name| RUNNER_PACKAGES.contains(&name.as_str()))
}

/// Adds the names of `import tap from 'tap'` and `import { test as check } from 'vitest'`.
fn add_imports<'t>(import: NodeRef<'t>, names: &mut HashMap<&'t str, CallPart>) {
    if !import.field("source").is_some_and(is_runner) {
        return;
    }
    for node in import.descendants() {
        match node.kind() {
            "identifier" if node.is_in("import_clause") => {
                names.insert(node.text(), CallPart::Test);
            }
            "import_specifier" => {
                let exported = node.field_text("name").unwrap_or_default();
                let local = node.field_text("alias").unwrap_or(exported);
                if let Some(part) = exported_part(exported) {
                    names.insert(local, part);
                }
            }
            _ => {}
        }
    }
}

/// Adds the names of `const tap = require('tap')` and `const { test: check } = require('tap')`.
fn add_required<'t>(declarator: NodeRef<'t>, names: &mut HashMap<&'t str, CallPart>) {
    let (Some(name), Some(mut value)) = (declarator.field("name"), declarator.field("value"))
    else {
        return;
    };
    let mut exported = "default";
    if value.kind() == "member_expression" {
        exported = value.field_text("property").unwrap_or_default();
        let Some(object) = value.field("object") else { return };
        value = object;
    }
    let is_require = value.kind() == "call_expression"
        && value.field_text("function") == Some("require")
        && value
            .field("arguments")
            .and_then(|arguments| arguments.children().next())
            .is_some_and(is_runner);
    if !is_require {
        return;
    }
    match name.kind() {
        "identifier" => {
            names.extend(exported_part(exported).map(|part| (name.text(), part)));
        }
        "object_pattern" => {
            for pair in name.children().filter(|pair| pair.kind() == "pair_pattern") {
                let part = pair.field_text("key").and_then(exported_part);
                let local = pair.field_text("value");
                names.extend(local.zip(part));
            }
        }
        _ => {}
    }
}
