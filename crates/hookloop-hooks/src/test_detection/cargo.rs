//! `Cargo.toml`: the members of a workspace, and path dependencies of packages.

use toml_edit::TableLike;

use super::NoTests;
use super::members::{MemberPatterns, normal, texts, toml, value};
use super::reading::TestedProject;

pub const FILE: &str = "Cargo.toml";
/// Depth of the tables that are searched for dependencies: `target.'cfg(…)'.dependencies.name`.
const TABLES_MAX: usize = 6;

/// The parts of a manifest that decide which packages are tested together.
#[derive(Clone, Debug)]
pub struct CargoManifest {
    pub workspace: Option<CargoWorkspace>,
    /// Directories of path dependencies, relative to this package.
    pub path_dependencies: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct CargoWorkspace {
    members: MemberPatterns,
    /// Members that are named without a pattern. `exclude` does not remove them.
    named: Vec<String>,
    excluded: Vec<String>,
}

impl CargoWorkspace {
    pub fn excludes(&self, path: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|place| is_at_or_below(path, place));
        is_in(&self.excluded) && !is_in(&self.named)
    }

    pub fn names(&self, path: &str) -> bool {
        self.members.contains(path) && !self.excludes(path)
    }
}

pub fn manifest(project: &TestedProject) -> Result<Option<CargoManifest>, NoTests> {
    let Some(document) = toml(project, FILE)? else { return Ok(None) };
    let mut path_dependencies = Vec::new();
    paths(document.as_table(), false, TABLES_MAX, &mut path_dependencies);
    let workspace = match value(&document, &["workspace"]) {
        Some(_) => {
            let members = texts(value(&document, &["workspace", "members"]));
            let excluded = texts(value(&document, &["workspace", "exclude"]));
            let is_named = |member: &&str| !member.contains(['*', '?', '[']);
            let owned = |path: &str| normal(path).to_owned();
            Some(CargoWorkspace {
                named: members.iter().copied().filter(is_named).map(owned).collect(),
                excluded: excluded.into_iter().map(owned).collect(),
                members: MemberPatterns::new(FILE, members)?,
            })
        }
        None => None,
    };
    Ok(Some(CargoManifest { workspace, path_dependencies }))
}

/// Collects every `path` of a dependency.
fn paths(table: &dyn TableLike, is_dependencies: bool, levels: usize, found: &mut Vec<String>) {
    if levels == 0 {
        return;
    }
    for (key, item) in table.iter() {
        let Some(below) = item.as_table_like() else { continue };
        if is_dependencies {
            let path = below.get("path").and_then(|path| path.as_str());
            found.extend(path.map(str::to_owned));
        }
        paths(below, key.ends_with("dependencies"), levels - 1, found);
    }
}

fn is_at_or_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
