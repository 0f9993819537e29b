//! Test settings of `pyproject.toml`: tools, groups of dependencies, and plugins of pytest.

use toml_edit::{Array, Item, Value};

use crate::error::EvidenceError;
use crate::manifests::requirement_lists::{is_test_group, merged};
use crate::manifests::toml_document::TomlPair;

/// Parts that the base decides alone.
const BASE_PARTS: [&[&str]; 6] = [
    &["tool", "pytest"],
    &["tool", "tox"],
    &["tool", "coverage"],
    &["tool", "nox"],
    &["project", "entry-points", "pytest11"],
    &["tool", "poetry", "plugins", "pytest11"],
];

pub(super) fn graft(base: &str, work: &str) -> Result<Option<String>, EvidenceError> {
    let mut pair = TomlPair::parse(base, work)?;
    for path in BASE_PARTS {
        pair.set_to_base(path)?;
    }
    let environments = ["tool", "hatch", "envs"];
    for environment in pair.keys(&environments) {
        let path = ["tool", "hatch", "envs", &environment, "scripts"];
        pair.set_to_base(&path)?;
        let path = ["tool", "hatch", "envs", &environment, "dependencies"];
        restore_list(&mut pair, &path)?;
    }
    for table in [&["dependency-groups"][..], &["tool", "pdm", "dev-dependencies"]] {
        for group in pair.base_keys(table) {
            restore_list(&mut pair, &path_of(table, &group))?;
        }
    }
    let extras = ["project", "optional-dependencies"];
    for group in pair.base_keys(&extras).iter().filter(|group| is_test_group(group)) {
        restore_list(&mut pair, &path_of(&extras, group))?;
    }
    restore_list(&mut pair, &["tool", "uv", "dev-dependencies"])?;
    pair.restore_entries(&["tool", "poetry", "dev-dependencies"])?;
    let groups = ["tool", "poetry", "group"];
    for group in pair.base_keys(&groups).iter().filter(|group| is_test_group(group)) {
        pair.restore_entries(&["tool", "poetry", "group", group, "dependencies"])?;
    }
    Ok(pair.finish())
}

fn path_of<'a>(table: &[&'a str], key: &'a str) -> Vec<&'a str> {
    table.iter().copied().chain([key]).collect()
}

/// Restores the requirements that the base has in a list.
fn restore_list(pair: &mut TomlPair, path: &[&str]) -> Result<(), EvidenceError> {
    let values = |item: Option<&Item>| -> Vec<Value> {
        let array = item.and_then(Item::as_array);
        array.map_or_else(Vec::new, |array| array.iter().cloned().collect())
    };
    let base = values(pair.base_item(path));
    if base.is_empty() {
        return Ok(());
    }
    let text_of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let list = merged(base, values(pair.work_item(path)), text_of);
    pair.set(path, Some(Item::Value(Value::Array(list.into_iter().collect::<Array>()))))
}
