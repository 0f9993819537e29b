//! `package.json`: whether it has tests, and who runs them.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::NoTests;
use super::reading::{Project, unreadable};

const FILE: &str = "package.json";
/// What `npm init` writes where there are no tests.
const PLACEHOLDER: &str = "no test specified";
/// Scripts that end well and do nothing.
const NOTHING: [&str; 4] = ["", ":", "true", "exit 0"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

/// Whose each file is. npm's own is last: others leave it behind when a project moves to them.
const LOCK_FILES: [(&str, Manager); 6] = [
    ("pnpm-lock.yaml", Manager::Pnpm),
    ("yarn.lock", Manager::Yarn),
    ("bun.lock", Manager::Bun),
    ("bun.lockb", Manager::Bun),
    ("package-lock.json", Manager::Npm),
    ("npm-shrinkwrap.json", Manager::Npm),
];

impl Manager {
    const ALL: [Manager; 4] = [Manager::Npm, Manager::Pnpm, Manager::Yarn, Manager::Bun];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Manager::Npm => "npm",
            Manager::Pnpm => "pnpm",
            Manager::Yarn => "yarn",
            Manager::Bun => "bun",
        }
    }

    pub(crate) fn argv(self) -> Vec<&'static str> {
        match self {
            // `bun test` is a runner of its own and knows nothing of the script.
            Manager::Bun => vec!["bun", "run", "test"],
            manager => vec![manager.name(), "test"],
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    #[serde(default)]
    scripts: Value,
    package_manager: Option<String>,
}

/// Who runs the tests of the package, if it has any.
pub(crate) fn manager(project: &Project) -> Result<Option<Manager>, NoTests> {
    runs(project, "test")
}

/// Who runs a script of the package, if it has it and it does something.
pub(crate) fn runs(project: &Project, script: &str) -> Result<Option<Manager>, NoTests> {
    let Some(package) = package(project)? else { return Ok(None) };
    let script = package.scripts[script].as_str().unwrap_or_default().trim();
    if NOTHING.contains(&script) || script.contains(PLACEHOLDER) {
        return Ok(None);
    }
    chosen(project, package.package_manager)
}

/// The manager of the project's packages; none without a `package.json`.
pub(crate) fn manager_of(project: &Project) -> Result<Option<Manager>, NoTests> {
    match package(project)? {
        Some(package) => chosen(project, package.package_manager),
        None => Ok(None),
    }
}

fn package(project: &Project) -> Result<Option<Package>, NoTests> {
    let Some(text) = project.read(FILE)? else { return Ok(None) };
    let wrong = |error: serde_json::Error| unreadable(Path::new(FILE), &error.to_string());
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

/// The manager that a package names, else the one whose lock file is there, else npm.
fn chosen(project: &Project, named: Option<String>) -> Result<Option<Manager>, NoTests> {
    if let Some(named) = named {
        let name = named.split('@').next().unwrap_or_default();
        let known = Manager::ALL.into_iter().find(|manager| manager.name() == name);
        let why = format!("names `{named}`, which is no known manager of packages");
        return known.map(Some).ok_or_else(|| unreadable(Path::new(FILE), &why));
    }
    for (file, manager) in LOCK_FILES {
        if project.has(file)? {
            return Ok(Some(manager));
        }
    }
    Ok(Some(Manager::Npm))
}
