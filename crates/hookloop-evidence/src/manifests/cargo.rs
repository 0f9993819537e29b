//! Test settings of `Cargo.toml`: test targets, development dependencies, and the profile of tests.

use toml_edit::{ArrayOfTables, Item, Table};

use crate::error::EvidenceError;
use crate::manifests::toml_document::TomlPair;

/// Keys of a target that decide whether and how it is tested.
const TARGET_KEYS: [&str; 4] = ["test", "doctest", "harness", "doc-scrape-examples"];
/// The spellings of the table of development dependencies.
const DEV_DEPENDENCIES: [&str; 2] = ["dev-dependencies", "dev_dependencies"];

pub(super) fn graft(base: &str, work: &str) -> Result<Option<String>, EvidenceError> {
    let mut pair = TomlPair::parse(base, work)?;
    pair.set_to_base(&["test"])?;
    pair.set_to_base(&["profile", "test"])?;
    // A workspace without a package has no such key, and must not get a package.
    if pair.base_item(&["package"]).is_some() && pair.work_item(&["package"]).is_some() {
        pair.set_to_base(&["package", "autotests"])?;
    }
    restore_library(&mut pair)?;
    for targets in ["bin", "example"] {
        restore_targets(&mut pair, targets)?;
    }
    for table in DEV_DEPENDENCIES {
        pair.restore_entries(&[table])?;
        for target in pair.base_keys(&["target"]) {
            pair.restore_entries(&["target", &target, table])?;
        }
    }
    // Development dependencies may refer to these.
    pair.restore_missing_entries(&["workspace", "dependencies"])?;
    Ok(pair.finish())
}

fn restore_library(pair: &mut TomlPair) -> Result<(), EvidenceError> {
    for key in TARGET_KEYS {
        let is_in_base = pair.base_item(&["lib", key]).is_some();
        if is_in_base || pair.work_item(&["lib", key]).is_some() {
            pair.set_to_base(&["lib", key])?;
        }
    }
    Ok(())
}

/// Restores the keys of binaries or examples that the base or the work names.
fn restore_targets(pair: &mut TomlPair, targets: &str) -> Result<(), EvidenceError> {
    let base = tables(pair.base_item(&[targets]));
    let work = tables(pair.work_item(&[targets]));
    let mut restored = work.clone();
    for table in &mut restored {
        let of_base = base.iter().find(|other| name_of(other) == name_of(table));
        for key in TARGET_KEYS {
            match of_base.and_then(|other| other.get(key)) {
                Some(item) => table.insert(key, item.clone()),
                None => table.remove(key),
            };
        }
    }
    let has_settings = |table: &Table| TARGET_KEYS.iter().any(|key| table.contains_key(key));
    let is_missing = |table: &&Table| !work.iter().any(|other| name_of(other) == name_of(table));
    // A target that the work only finds by its path is tested in the way of the base.
    restored.extend(base.iter().filter(|table| has_settings(table)).filter(is_missing).cloned());
    if restored.is_empty() && work.is_empty() {
        return Ok(());
    }
    let mut array = ArrayOfTables::new();
    for mut table in restored {
        table.set_position(None);
        array.push(table);
    }
    pair.set(&[targets], Some(Item::ArrayOfTables(array)))
}

fn name_of(table: &Table) -> Option<&str> {
    table.get("name").and_then(Item::as_str)
}

/// Returns the tables of an array, also of one that is written as a value.
fn tables(item: Option<&Item>) -> Vec<Table> {
    match item {
        Some(Item::ArrayOfTables(tables)) => tables.iter().cloned().collect(),
        Some(item) => {
            let array = item.as_array().into_iter().flatten();
            let inline = array.filter_map(|value| value.as_inline_table());
            inline.cloned().map(|table| table.into_table()).collect()
        }
        None => Vec::new(),
    }
}
