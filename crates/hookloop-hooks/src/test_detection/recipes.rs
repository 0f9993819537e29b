//! Targets of a `Makefile`, and recipes of a `justfile`.

use super::NoTests;
use super::reading::TestedProject;

/// In the order in which `make` searches for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

pub fn has_make(project: &TestedProject, name: &str) -> Result<bool, NoTests> {
    for file in MAKEFILES {
        if let Some(text) = project.read(file)? {
            return Ok(text.lines().any(|line| is_target(line, name)));
        }
    }
    Ok(false)
}

pub fn has_just(project: &TestedProject, name: &str) -> Result<bool, NoTests> {
    // just accepts either name in any case.
    let is_meant = |file: &String| {
        let file = file.to_ascii_lowercase();
        file == "justfile" || file == ".justfile"
    };
    match project.names()?.iter().find(|file| is_meant(file)) {
        Some(file) => {
            let text = project.read(file)?.unwrap_or_default();
            Ok(text.lines().any(|line| is_recipe(line, name)))
        }
        None => Ok(false),
    }
}

/// Matches `test: build`, `check test:`, `test::`, but not `test := x` or a line of a recipe.
fn is_target(line: &str, name: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':') else { return false };
    let is_assignment = rest.trim_start_matches(':').starts_with('=') || targets.contains('=');
    let is_rule = !line.starts_with(['\t', '#']) && !is_assignment;
    is_rule && targets.split_whitespace().any(|target| target == name)
}

/// Matches `test:`, `@test arg='x': build`, `alias test := t`, but not `test := 'x'`.
fn is_recipe(line: &str, wanted: &str) -> bool {
    if let Some(alias) = line.strip_prefix("alias ") {
        return alias.split_once(":=").is_some_and(|(name, _)| name.trim() == wanted);
    }
    let Some(rest) = line.strip_prefix('@').unwrap_or(line).strip_prefix(wanted) else {
        return false;
    };
    let is_whole_name = rest.starts_with([' ', ':']);
    let is_assignment = rest.trim_start().starts_with(":=");
    is_whole_name && rest.contains(':') && !is_assignment
}
