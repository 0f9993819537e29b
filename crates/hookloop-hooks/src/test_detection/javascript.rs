//! `package.json`: the tests of a package, and those of all members of a workspace.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::members::{MemberPatterns, yaml};
use super::reading::{TestedProject, unreadable};
use super::{NoTests, directories};

const FILE: &str = "package.json";
const TEST: &str = "test";
/// Part of the script that `npm init` writes for a package without tests.
const PLACEHOLDER: &str = "no test specified";
/// Scripts that succeed without doing anything.
const NOTHING: [&str; 4] = ["", ":", "true", "exit 0"];
const PNPM_WORKSPACE: &str = "pnpm-workspace.yaml";
/// Parts of a root script that run the same script in all members.
const RUNS_MEMBERS: [&str; 14] = [
    "turbo",
    "nx run-many",
    "nx affected",
    "lerna run",
    "moon ",
    "wsrun",
    "ultra ",
    "pnpm -r",
    "--recursive",
    "--workspaces",
    " -ws",
    "workspaces foreach",
    "workspaces run",
    "--filter",
];
/// The first Yarn version that runs a script in all members without a plugin.
const YARN_FOREACH: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

/// Lock files and their managers. npm's is last, as projects often keep it after a migration.
pub(crate) const LOCK_FILES: [(&str, PackageManager); 7] = [
    ("pnpm-lock.yaml", PackageManager::Pnpm),
    (PNPM_WORKSPACE, PackageManager::Pnpm),
    ("yarn.lock", PackageManager::Yarn),
    ("bun.lock", PackageManager::Bun),
    ("bun.lockb", PackageManager::Bun),
    ("package-lock.json", PackageManager::Npm),
    ("npm-shrinkwrap.json", PackageManager::Npm),
];

impl PackageManager {
    const ALL: [PackageManager; 4] =
        [PackageManager::Npm, PackageManager::Pnpm, PackageManager::Yarn, PackageManager::Bun];

    pub fn name(self) -> &'static str {
        match self {
            PackageManager::Npm => "npm",
            PackageManager::Pnpm => "pnpm",
            PackageManager::Yarn => "yarn",
            PackageManager::Bun => "bun",
        }
    }

    pub fn argv(self) -> Vec<&'static str> {
        match self {
            // `bun test` is a separate runner that ignores the script.
            PackageManager::Bun => vec!["bun", "run", "test"],
            manager => vec![manager.name(), "test"],
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageJson {
    #[serde(default)]
    scripts: Value,
    package_manager: Option<String>,
    #[serde(default)]
    workspaces: Value,
}

impl PackageJson {
    /// Returns a script, unless it does nothing.
    fn script(&self, name: &str) -> Option<&str> {
        let script = self.scripts[name].as_str()?.trim();
        let is_nothing = NOTHING.contains(&script) || script.contains(PLACEHOLDER);
        (!is_nothing).then_some(script)
    }
}

/// The command for a script of a package, or of all members of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptCommand {
    pub manager: PackageManager,
    pub argv: Vec<String>,
    /// Whether the command runs the script of every member that has it.
    pub runs_members: bool,
}

/// Returns the command of a script that the project or a member of its workspace has.
///
/// A member has no lock file of its own, so its manager is `inherited` from the workspace.
pub fn command(
    project: &TestedProject,
    script: &str,
    inherited: Option<PackageManager>,
) -> Result<Option<ScriptCommand>, NoTests> {
    let Some(package) = package(project)? else { return Ok(None) };
    let own = package.script(script);
    let members = members(project, &package)?;
    // Without a script, an unreadable manager does not matter.
    if own.is_none() && members.is_none() {
        return Ok(None);
    }
    let has_script = match &members {
        Some(members) => some_member_has(project, members, script)?,
        None => false,
    };
    let manager = manager_for(project, &package, inherited)?;
    let is_root_enough = own.is_some_and(|own| RUNS_MEMBERS.iter().any(|part| own.contains(part)));
    if has_script && !is_root_enough {
        let with_root = own.is_some();
        if let Some(argv) = for_members(project, &package, (manager, script), with_root)? {
            return Ok(Some(ScriptCommand { manager, argv, runs_members: true }));
        }
    }
    let argv = if script == TEST { manager.argv() } else { vec![manager.name(), "run", script] };
    let argv = argv.into_iter().map(str::to_owned).collect();
    let runs_members = has_script && is_root_enough;
    Ok(own.map(|_| ScriptCommand { manager, argv, runs_members }))
}

/// Returns the members of the project's workspace, if the project is its root.
pub fn workspace(project: &TestedProject) -> Result<Option<MemberPatterns>, NoTests> {
    match package(project)? {
        Some(package) => members(project, &package),
        None => Ok(None),
    }
}

/// Whether the project has a script with this name that does something.
pub(crate) fn has_script(project: &TestedProject, script: &str) -> Result<bool, NoTests> {
    Ok(package(project)?.is_some_and(|package| package.script(script).is_some()))
}

fn members(
    project: &TestedProject,
    package: &PackageJson,
) -> Result<Option<MemberPatterns>, NoTests> {
    #[derive(Deserialize)]
    struct PnpmWorkspace {
        #[serde(default)]
        packages: Vec<String>,
    }
    if let Some(text) = project.read(PNPM_WORKSPACE)? {
        let PnpmWorkspace { packages } = yaml(PNPM_WORKSPACE, &text)?;
        // A file without packages contains only settings.
        if !packages.is_empty() {
            let packages = packages.iter().map(String::as_str);
            return MemberPatterns::new(PNPM_WORKSPACE, packages).map(Some);
        }
    }
    // Yarn 1 stores the patterns one level deeper.
    let list = package.workspaces.as_array().or_else(|| package.workspaces["packages"].as_array());
    match list {
        Some(list) => MemberPatterns::new(FILE, list.iter().filter_map(Value::as_str)).map(Some),
        None => Ok(None),
    }
}

fn some_member_has(
    project: &TestedProject,
    members: &MemberPatterns,
    script: &str,
) -> Result<bool, NoTests> {
    let found = directories::search(project.root());
    for path in found.paths.iter().filter(|path| members.contains(path)) {
        if has_script(&TestedProject::new(&project.root().join(path))?, script)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the command of a manager for a script in all members, or `None` if there is none.
fn for_members(
    project: &TestedProject,
    package: &PackageJson,
    (manager, script): (PackageManager, &str),
    with_root: bool,
) -> Result<Option<Vec<String>>, NoTests> {
    let argv: Vec<&str> = match manager {
        PackageManager::Npm => {
            let run = if script == TEST { vec!["npm", TEST] } else { vec!["npm", "run", script] };
            let root: &[&str] = if with_root { &["--include-workspace-root"] } else { &[] };
            [&run, &["--workspaces", "--if-present"][..], root].concat()
        }
        PackageManager::Pnpm => {
            let root: &[&str] = if with_root { &["--include-workspace-root"] } else { &[] };
            let run: &[&str] = if script == TEST { &[TEST] } else { &["run", script] };
            [&["pnpm", "-r"][..], root, run].concat()
        }
        PackageManager::Yarn if yarn_version(project, package)? >= YARN_FOREACH => {
            vec!["yarn", "workspaces", "foreach", "--all", "run", script]
        }
        PackageManager::Yarn | PackageManager::Bun => return Ok(None),
    };
    Ok(Some(argv.into_iter().map(str::to_owned).collect()))
}

/// Returns the major version of Yarn that the project names, or 1.
pub(crate) fn major_of_yarn(project: &TestedProject) -> Result<u32, NoTests> {
    match package(project)? {
        Some(package) => yarn_version(project, &package),
        None => Ok(1),
    }
}

/// Returns the major version of Yarn that the package names, or 1.
fn yarn_version(project: &TestedProject, package: &PackageJson) -> Result<u32, NoTests> {
    let named = package.package_manager.as_deref().and_then(|named| named.split_once('@'));
    if let Some((_, version)) = named {
        return Ok(version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(1));
    }
    // The file of a vendored version: `.yarn/releases/yarn-4.5.0.cjs`.
    let text = project.read(".yarnrc.yml")?.unwrap_or_default();
    let version = text.split_once("releases/yarn-").and_then(|(_, rest)| rest.split('.').next());
    Ok(version.and_then(|major| major.parse().ok()).unwrap_or(1))
}

/// Returns the manager of a package. A workspace member inherits the one of its root.
fn manager_for(
    project: &TestedProject,
    package: &PackageJson,
    inherited: Option<PackageManager>,
) -> Result<PackageManager, NoTests> {
    let own = named_or_locked(project, package.package_manager.as_deref())?;
    Ok(own.or(inherited).unwrap_or(PackageManager::Npm))
}

/// Returns the manager of the project's packages, or `None` without a `package.json`.
pub fn manager_of(project: &TestedProject) -> Result<Option<PackageManager>, NoTests> {
    match package(project)? {
        Some(package) => manager_for(project, &package, None).map(Some),
        None => Ok(None),
    }
}

fn package(project: &TestedProject) -> Result<Option<PackageJson>, NoTests> {
    let Some(text) = project.read(FILE)? else { return Ok(None) };
    let wrong = |error: serde_json::Error| unreadable(Path::new(FILE), &error.to_string());
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

/// Returns the manager that a package names, else the one of its lock file.
fn named_or_locked(
    project: &TestedProject,
    named: Option<&str>,
) -> Result<Option<PackageManager>, NoTests> {
    if let Some(named) = named {
        let name = named.split('@').next().unwrap_or_default();
        let known = PackageManager::ALL.into_iter().find(|manager| manager.name() == name);
        let why = format!("names `{named}`, which is no known manager of packages");
        return known.map(Some).ok_or_else(|| unreadable(Path::new(FILE), &why));
    }
    for (file, manager) in LOCK_FILES {
        if project.has(file)? {
            return Ok(Some(manager));
        }
    }
    Ok(None)
}
