//! The functions of a source, and those that a change touched.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::error::EvidenceError;
use crate::language::SourceLanguage;
use crate::source_test::lines_between;
use crate::suspicion::SourceParts;
use crate::syntax::{NodeRef, SyntaxTree};

/// Maximum functions of a source.
const FUNCTIONS_MAX: usize = 20_000;

/// A function of a source, outside of its tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFunction {
    /// The classes and modules around it, outermost first.
    pub scope: Vec<String>,
    pub name: String,
    /// Its lines with decorators, counted from 1.
    pub first_line: usize,
    pub last_line: usize,
    /// The line on which the function itself begins, behind its decorators.
    pub own_line: usize,
    /// Its lines, without common indentation: the same if it only moved.
    pub text: String,
}

/// Returns the functions of the work that hold a changed line, in source order.
///
/// A function within a function belongs to the outer one. A deleted line touches the function around its place.
pub fn changed_functions(
    language: SourceLanguage,
    base: Option<&str>,
    work: &str,
) -> Result<Vec<SourceFunction>, EvidenceError> {
    let functions = functions_in(language, work)?;
    let changed = changed_lines(base.unwrap_or_default(), work);
    let touches = |function: &SourceFunction| {
        changed.iter().any(|(first, last)| {
            let is_gap = first > last;
            let (first, last) = if is_gap { (last, first) } else { (first, last) };
            match is_gap {
                true => function.first_line <= *first && *last <= function.last_line,
                false => *first <= function.last_line && function.first_line <= *last,
            }
        })
    };
    Ok(functions.into_iter().filter(touches).collect())
}

/// Returns the ranges of changed lines of the work. For deleted lines, the first line of the range is the one after
/// their place, and the last line the one before.
fn changed_lines(base: &str, work: &str) -> Vec<(usize, usize)> {
    let (base, work): (Vec<&str>, Vec<&str>) = (base.lines().collect(), work.lines().collect());
    let ops = capture_diff_slices(Algorithm::Myers, &base, &work).into_iter();
    let changed = ops.filter_map(|op| match op {
        DiffOp::Equal { .. } => None,
        DiffOp::Delete { new_index, .. } => Some((new_index + 1, new_index)),
        DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
            Some((new_index + 1, new_index + new_len))
        }
    });
    changed.collect()
}

/// Returns the outermost functions of a source, without those of its tests.
pub fn functions_in(
    language: SourceLanguage,
    source: &str,
) -> Result<Vec<SourceFunction>, EvidenceError> {
    let tree = SyntaxTree::parse(language, source)?;
    let parts = SourceParts::of(tree.root());
    let is_inside = |node: NodeRef<'_>| node.parent().is_some_and(is_function);
    let mut found = Vec::new();
    for node in tree.root().descendants_without(|node| parts.is_test(node) || is_inside(node)) {
        if !is_function(node) {
            continue;
        }
        if found.len() == FUNCTIONS_MAX {
            let (part, things) = ("the source", "functions");
            return Err(EvidenceError::TooMany { part, things, limit: FUNCTIONS_MAX });
        }
        let start = outer_start(node);
        found.push(SourceFunction {
            scope: scope_of(node),
            name: name_of(node).unwrap_or_default().to_owned(),
            first_line: start.line(),
            last_line: node.line() + node.text().matches('\n').count(),
            own_line: node.line(),
            text: lines_between(start, node),
        });
    }
    Ok(found)
}

fn is_function(node: NodeRef<'_>) -> bool {
    match node.language() {
        SourceLanguage::Python => node.kind() == "function_definition",
        SourceLanguage::Rust => node.kind() == "function_item",
        SourceLanguage::Go => matches!(node.kind(), "function_declaration" | "method_declaration"),
        SourceLanguage::JavaScript | SourceLanguage::TypeScript | SourceLanguage::Tsx => matches!(
            node.kind(),
            "function_declaration"
                | "generator_function_declaration"
                | "method_definition"
                | "arrow_function"
                | "function_expression"
                | "generator_function"
        ),
    }
}

/// Returns the node with the decorators or the variable of a function.
fn outer_start(node: NodeRef<'_>) -> NodeRef<'_> {
    match node.parent() {
        Some(parent) if matches!(parent.kind(), "decorated_definition" | "variable_declarator") => {
            parent
        }
        _ => node,
    }
}

/// Returns the name of a function: its own, or that of the variable, the key or the field with it.
fn name_of<'t>(node: NodeRef<'t>) -> Option<&'t str> {
    node.field_text("name").or_else(|| {
        let parent = node.parent()?;
        ["name", "key", "left", "property"].into_iter().find_map(|field| parent.field_text(field))
    })
}

/// Returns the names of the classes and modules around a function, and of the type of a method.
fn scope_of(node: NodeRef<'_>) -> Vec<String> {
    let names = node.ancestors().filter_map(|around| match around.kind() {
        "class_definition" | "class_declaration" | "class" | "mod_item" | "trait_item" => {
            around.field_text("name")
        }
        "impl_item" => around.field_text("type"),
        _ => None,
    });
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.reverse();
    names
}
