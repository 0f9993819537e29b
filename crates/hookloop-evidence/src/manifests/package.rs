//! Test settings of `package.json`: test scripts, runners, and development dependencies.

mod ordered_object;

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::error::EvidenceError;
use ordered_object::OrderedObject;

/// Keys of runners, which the base decides alone.
const RUNNER_KEYS: [&str; 9] =
    ["jest", "vitest", "mocha", "ava", "tap", "nyc", "c8", "tape", "karma"];
/// Maximum rounds in which scripts are followed to other scripts.
const SCRIPT_ROUNDS_MAX: usize = 8;
/// Programs that run other scripts by their names.
const SCRIPT_RUNNERS: [&str; 11] = [
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "run",
    "npm-run-all",
    "npm-run-all2",
    "run-s",
    "run-p",
    "concurrently",
    "wireit",
];

pub(super) fn graft(base: &str, work: &str) -> Result<Option<String>, EvidenceError> {
    let base = OrderedObject::parse(base)?;
    let mut work = OrderedObject::parse(work)?;
    let mut is_changed = false;
    for key in RUNNER_KEYS {
        is_changed |= work.set(key, base.get(key).map(ToOwned::to_owned));
    }
    let before = work.object("scripts")?;
    let mut scripts = before.clone().unwrap_or_default();
    let of_base = base.object("scripts")?.unwrap_or_default();
    if restore_scripts(&of_base, &mut scripts) {
        is_changed |= work.set("scripts", Some(scripts.to_raw()?));
    }
    let of_base = base.object("devDependencies")?.unwrap_or_default();
    let mut dependencies = work.object("devDependencies")?.unwrap_or_default();
    let mut is_restored = false;
    for (name, version) in of_base.entries() {
        is_restored |= dependencies.set(name, Some(version.clone()));
    }
    if is_restored {
        is_changed |= work.set("devDependencies", Some(dependencies.to_raw()?));
    }
    if !is_changed {
        return Ok(None);
    }
    Ok(Some(format!("{}\n", work.text())))
}

/// Gives the work the test scripts of the base, with the scripts before, behind and within them.
fn restore_scripts(base: &OrderedObject, work: &mut OrderedObject) -> bool {
    let mut is_changed = false;
    for name in test_scripts(base) {
        for name in [format!("pre{name}"), name.clone(), format!("post{name}")] {
            is_changed |= work.set(&name, base.get(&name).map(ToOwned::to_owned));
        }
    }
    is_changed
}

/// Returns the names of test scripts and those that they run.
fn test_scripts(base: &OrderedObject) -> BTreeSet<String> {
    let is_test = |name: &&str| name.starts_with("test");
    let names = base.entries().map(|(name, _)| name);
    let mut found: BTreeSet<String> = names.filter(is_test).map(str::to_owned).collect();
    for _ in 0..SCRIPT_ROUNDS_MAX {
        let known = found.len();
        for name in found.clone() {
            found.extend(base.get(&name).into_iter().flat_map(|script| run_by(script, base)));
        }
        if found.len() == known {
            break;
        }
    }
    found
}

/// Returns the names of scripts that a script runs.
fn run_by(script: &RawValue, scripts: &OrderedObject) -> Vec<String> {
    let Ok(command) = serde_json::from_str::<String>(script.get()) else { return Vec::new() };
    let is_edge = |char: char| char.is_whitespace() || matches!(char, '"' | '\'' | '&' | ';' | '|');
    let words: Vec<&str> = command.split(is_edge).filter(|word| !word.is_empty()).collect();
    if !words.iter().any(|word| SCRIPT_RUNNERS.contains(word)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for word in words {
        // `npm-run-all lint:*` names several scripts.
        let word = word.strip_prefix("npm:").unwrap_or(word);
        match word.strip_suffix('*') {
            Some(prefix) if !prefix.is_empty() => {
                let names = scripts.entries().map(|(name, _)| name);
                found.extend(names.filter(|name| name.starts_with(prefix)).map(str::to_owned));
            }
            _ if scripts.get(word).is_some() => found.push(word.to_owned()),
            _ => {}
        }
    }
    found
}
