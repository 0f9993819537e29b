//! `test` as a target of a `Makefile`, or a recipe of a `justfile`.

use super::NoTests;
use super::reading::Project;

/// In the order in which `make` looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
const TEST: &str = "test";

pub(super) fn has_make(project: &Project) -> Result<bool, NoTests> {
    for file in MAKEFILES {
        if let Some(text) = project.read(file)? {
            return Ok(text.lines().any(is_target));
        }
    }
    Ok(false)
}

pub(super) fn has_just(project: &Project) -> Result<bool, NoTests> {
    // It takes any case of either name.
    let is_meant = |name: &String| {
        let name = name.to_ascii_lowercase();
        name == "justfile" || name == ".justfile"
    };
    match project.names()?.iter().find(|name| is_meant(name)) {
        Some(file) => Ok(project.read(file)?.unwrap_or_default().lines().any(is_recipe)),
        None => Ok(false),
    }
}

/// `test: build`, `check test:`, `test::`; not `test := x`, nor a line of a recipe.
fn is_target(line: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':') else { return false };
    let is_assignment = rest.trim_start_matches(':').starts_with('=') || targets.contains('=');
    let is_rule = !line.starts_with(['\t', '#']) && !is_assignment;
    is_rule && targets.split_whitespace().any(|target| target == TEST)
}

/// `test:`, `@test arg='x': build`, `alias test := t`; not `test := 'x'`.
fn is_recipe(line: &str) -> bool {
    if let Some(alias) = line.strip_prefix("alias ") {
        return alias.split_once(":=").is_some_and(|(name, _)| name.trim() == TEST);
    }
    let Some(rest) = line.strip_prefix('@').unwrap_or(line).strip_prefix(TEST) else {
        return false;
    };
    let is_whole_name = rest.starts_with([' ', ':']);
    let is_assignment = rest.trim_start().starts_with(":=");
    is_whole_name && rest.contains(':') && !is_assignment
}
