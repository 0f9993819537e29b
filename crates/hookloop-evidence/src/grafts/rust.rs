//! Puts the test items of the base into a Rust source of the work.

use std::collections::HashMap;

use crate::error::EvidenceError;
use crate::grafts::item_outline::{ItemContainer, OutlineItem, containers, is_test_file};
use crate::grafts::text_edits::TextEdits;
use crate::language::SourceLanguage;
use crate::syntax::SyntaxTree;

pub(super) fn graft(base: &str, work: &str) -> Result<Option<String>, EvidenceError> {
    let base_tree = SyntaxTree::parse(SourceLanguage::Rust, base)?;
    let work_tree = SyntaxTree::parse(SourceLanguage::Rust, work)?;
    if is_test_file(base_tree.root()) {
        return Ok((base != work).then(|| base.to_owned()));
    }
    let of_base = containers(base_tree.root())?;
    let of_work = containers(work_tree.root())?;
    if test_tokens(&of_base) == test_tokens(&of_work) {
        return Ok(None);
    }
    let base_paths = by_path(&of_base);
    let of_work_by_path = by_path(&of_work);
    let mut graft = RustGraft { base, of_work: of_work_by_path, edits: TextEdits::default() };
    for container in &of_work {
        graft.replace_items(container, base_paths.get(&*container.path).copied());
    }
    for container in &of_base {
        let is_gone = !graft.of_work.contains_key(&*container.path);
        if is_gone && container.test_items().next().is_some() {
            graft.insert_container(container)?;
        }
    }
    Ok(Some(graft.edits.apply(work)))
}

/// Returns the tokens of all test items with their containers, in a fixed order.
fn test_tokens(containers: &[ItemContainer]) -> Vec<(&[String], &str)> {
    let mut tokens = Vec::new();
    for container in containers {
        let items = container.test_items();
        tokens.extend(items.map(|item| (&*container.path, &*item.tokens)));
    }
    tokens.sort_unstable();
    tokens
}

fn by_path(containers: &[ItemContainer]) -> HashMap<&[String], &ItemContainer> {
    containers.iter().map(|container| (&*container.path, container)).collect()
}

struct RustGraft<'a> {
    base: &'a str,
    of_work: HashMap<&'a [String], &'a ItemContainer>,
    edits: TextEdits,
}

impl<'a> RustGraft<'a> {
    /// Replaces, removes and adds the test items of a container.
    fn replace_items(&mut self, work: &ItemContainer, base: Option<&ItemContainer>) {
        for item in work.test_items() {
            let of_base = base.and_then(|base| base.item(&item.key));
            match of_base.filter(|of_base| of_base.is_test_only) {
                Some(of_base) if of_base.tokens == item.tokens => {}
                Some(of_base) => {
                    let text = self.text_of(of_base);
                    self.edits.replace(item.range.clone(), text);
                }
                None => self.edits.replace(item.range.clone(), ""),
            }
        }
        for item in base.into_iter().flat_map(ItemContainer::test_items) {
            let text = self.text_of(item);
            match work.item(&item.key) {
                Some(of_work) if of_work.is_test_only => {}
                // The work made a test, or a module of tests, into something else.
                Some(of_work) if item.is_test => {
                    self.edits.replace(of_work.range.clone(), text);
                }
                // The work has made a helper of tests part of its sources.
                Some(_) if !is_repeatable(item) => {}
                _ => {
                    let place = if item.is_ordered { work.inside.start } else { work.inside.end };
                    self.edits.insert(place, text);
                }
            }
        }
    }

    /// Adds a module or a block that the work does not have any more, with its tests alone.
    fn insert_container(&mut self, container: &ItemContainer) -> Result<(), EvidenceError> {
        let gone = || EvidenceError::not_insertable("a module around tests of the base is gone");
        let (name, around) = container.path.split_last().ok_or_else(gone)?;
        let parent = *self.of_work.get(around).ok_or_else(gone)?;
        let is_module = container.kind == "mod_item";
        let is_elsewhere = parent.items.iter().any(|item| {
            item.key.kind == "mod_item" && name.split(' ').next_back() == Some(&item.key.name)
        });
        if container.kind == "trait_item" || is_module && is_elsewhere {
            return Err(gone());
        }
        let items: Vec<&str> = container.test_items().map(|item| self.text_of(item)).collect();
        let header = &container.header;
        let import = if is_module { "use super::*;\n" } else { "" };
        let text = format!("#[cfg(test)]\n{header}{{\n{import}{}\n}}", items.join("\n"));
        self.edits.insert(parent.inside.end, &text);
        Ok(())
    }

    fn text_of(&self, item: &OutlineItem) -> &'a str {
        self.base.get(item.range.clone()).unwrap_or_default()
    }
}

/// Whether a module may have several such items.
fn is_repeatable(item: &OutlineItem) -> bool {
    matches!(
        item.key.kind.as_str(),
        "impl_item" | "macro_invocation" | "expression_statement" | "macro_definition"
    )
}
