//! Facts in a project's files that explain why a command cannot run here.
//!
//! This module only reads files.

use std::path::Path;

use hookloop_core::environment::EnvironmentFacts;
use serde_json::Value;

use crate::test_detection::javascript::{self, PackageManager};
use crate::test_detection::reading::TestedProject;
use crate::test_detection::{directories, members};

/// Largest number of names in one list.
const NAMES_MAX: usize = 1_000;
/// Number of directories above a member that are searched for the root of its workspace.
const PARENTS_MAX: usize = 8;
/// Files with the requirements of a Python project, one on each line.
pub(crate) const REQUIREMENTS: [&str; 5] = [
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "test-requirements.txt",
];
/// Lock files of Python's package managers.
pub(crate) const PYTHON_SETUPS: [PythonSetup; 4] = [
    PythonSetup { lock: "uv.lock", typed: "uv sync", in_room: "uv sync" },
    PythonSetup { lock: "poetry.lock", typed: "poetry install", in_room: "poetry install" },
    PythonSetup { lock: "pdm.lock", typed: "pdm install", in_room: "pdm sync" },
    PythonSetup {
        lock: "Pipfile.lock",
        typed: "pipenv install --dev",
        in_room: "pipenv sync --dev",
    },
];
/// Directories with Python files that are not a package of the project.
const NO_PACKAGES: [&str; 4] = ["tests", "test", "docs", "build"];

/// The commands that install the packages of a lock file.
pub(crate) struct PythonSetup {
    pub(crate) lock: &'static str,
    /// The command for people.
    pub(crate) typed: &'static str,
    /// The command that installs exactly the locked packages, for a clean room.
    pub(crate) in_room: &'static str,
}

/// Returns the facts about the environment in a directory's files. Skips unreadable files.
pub fn facts(directory: &Path) -> EnvironmentFacts {
    let Ok(project) = TestedProject::new(directory) else { return EnvironmentFacts::default() };
    let read = |file: &str| project.read(file).ok().flatten();
    let has = |file: &str| matches!(project.has(file), Ok(true));
    let mut python_packages = packages(&project, directory);
    if let Ok(source) = TestedProject::new(&directory.join("src")) {
        python_packages.extend(packages(&source, &directory.join("src")));
    }
    let mut python_dependencies = Vec::new();
    let mut python_setups = setups_of_extras(&project);
    for (file, text) in REQUIREMENTS.iter().filter_map(|file| Some((file, read(file)?))) {
        let names = text.lines().filter_map(requirement);
        let setup = format!("pip install -r {file}");
        let listed: Vec<_> = names.map(|name| (name, setup.clone())).collect();
        python_dependencies.extend(listed.iter().map(|(name, _)| name.clone()));
        python_setups.extend(listed);
    }
    if let Some(text) = read("pyproject.toml") {
        python_dependencies.extend(declared_in_pyproject(&text));
    }
    let by_lock = PYTHON_SETUPS.iter().find(|setup| has(setup.lock)).map(|setup| setup.typed);
    let by_files = || match () {
        () if is_installable(&project) => Some("pip install -e ."),
        () if has("requirements.txt") => Some("pip install -r requirements.txt"),
        () => None,
    };
    let python_setup = by_lock.or_else(by_files).map(str::to_owned);
    if by_lock.is_some() {
        python_setups.clear();
    }
    python_setups.truncate(NAMES_MAX);
    let mut facts = EnvironmentFacts {
        python_packages,
        python_dependencies,
        python_setup,
        python_setups,
        node_dependencies: node_dependencies(&project),
        node_setup: node_setup(workspace_of(directory).as_ref().unwrap_or(&project))
            .filter(|_| has("package.json")),
    };
    for names in
        [&mut facts.python_packages, &mut facts.python_dependencies, &mut facts.node_dependencies]
    {
        names.truncate(NAMES_MAX);
    }
    facts
}

/// Whether pip can install the Python project.
pub(crate) fn is_installable(project: &TestedProject) -> bool {
    let has = |file: &str| matches!(project.has(file), Ok(true));
    let pyproject = project.read("pyproject.toml").ok().flatten().unwrap_or_default();
    let has_project = |line: &str| matches!(line.trim(), "[project]" | "[build-system]");
    pyproject.lines().any(has_project) || has("setup.py") || has("setup.cfg")
}

/// A list of requirements in `pyproject.toml` that is installed on request.
pub(crate) struct PythonExtra {
    pub(crate) kind: ExtraKind,
    pub(crate) name: String,
    /// As they are written, such as `pytest>=8; python_version > "3.9"`.
    pub(crate) requirements: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraKind {
    /// `project.optional-dependencies`
    Extra,
    /// `dependency-groups`
    Group,
}

/// Whether a name can be part of a command.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Returns the extras and groups in `pyproject.toml` whose names can be part of a command.
pub(crate) fn python_extras(project: &TestedProject) -> Vec<PythonExtra> {
    let Ok(Some(document)) = members::toml(project, "pyproject.toml") else { return Vec::new() };
    let tables = [
        (ExtraKind::Extra, &["project", "optional-dependencies"][..]),
        (ExtraKind::Group, &["dependency-groups"]),
    ];
    let mut found = Vec::new();
    for (kind, keys) in tables {
        let table = members::value(&document, keys).and_then(|item| item.as_table_like());
        let items = table.into_iter().flat_map(|table| table.iter());
        found.extend(items.filter(|(name, _)| is_plain(name)).map(|(name, item)| PythonExtra {
            kind,
            name: name.to_owned(),
            requirements: members::texts(Some(item)).into_iter().map(str::to_owned).collect(),
        }));
    }
    found
}

/// Returns the distributions of extras and groups in `pyproject.toml`, with install commands.
fn setups_of_extras(project: &TestedProject) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for PythonExtra { kind, name, requirements } in python_extras(project) {
        let setup = match kind {
            ExtraKind::Extra => format!("pip install -e '.[{name}]'"),
            ExtraKind::Group => format!("pip install --group {name}"),
        };
        let names = requirements.iter().filter_map(|line| requirement(line));
        found.extend(names.map(|name| (name, setup.clone())));
    }
    let Ok(Some(document)) = members::toml(project, "pyproject.toml") else { return found };
    let table = |keys: &[&str]| {
        let item = members::value(&document, keys).and_then(|item| item.as_table_like());
        item.into_iter().flat_map(|table| table.iter()).filter(|(name, _)| is_plain(name))
    };
    // pip does not support Poetry groups.
    for (_, group) in table(&["tool", "poetry", "group"]) {
        let dependencies = group.as_table_like().and_then(|group| group.get("dependencies"));
        let names = dependencies.and_then(|item| item.as_table_like());
        for (name, _) in names.into_iter().flat_map(|names| names.iter()) {
            if is_plain(name) {
                found.push((name.to_owned(), format!("pip install {name}")));
            }
        }
    }
    found
}

/// Returns the names under which the Python files of a directory are imported.
fn packages(project: &TestedProject, directory: &Path) -> Vec<String> {
    let names = project.names().unwrap_or_default();
    let import = |name: String| match name.strip_suffix(".py") {
        Some("setup" | "conftest" | "noxfile" | "manage") => None,
        Some(stem) if stem.starts_with("test_") || stem.ends_with("_test") => None,
        Some(stem) => Some(stem.to_owned()),
        None => {
            let is_package = !NO_PACKAGES.contains(&name.as_str())
                && directory.join(&name).join("__init__.py").is_file();
            is_package.then_some(name)
        }
    };
    names.into_iter().filter_map(import).collect()
}

/// Returns the distribution that a requirement names: `PyYAML>=6; python_version > "3"`.
pub(crate) fn requirement(line: &str) -> Option<String> {
    let line = line.trim();
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    let name = &line[..end.unwrap_or(line.len())];
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name.then(|| name.to_owned())
}

/// Returns every quoted text in the dependency lists of `pyproject.toml`.
fn declared_in_pyproject(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut is_in_list, mut is_in_table) = (false, false);
    for line in text.lines() {
        let line = line.trim();
        if !is_in_list && line.starts_with('[') {
            let table = line.trim_matches(['[', ']']);
            is_in_table = table.contains("dependencies") || table == "dependency-groups";
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or(("", line));
        let is_list = value.trim_start().starts_with('[');
        if !is_in_list && is_list && (is_in_table || key.contains("dependencies")) {
            is_in_list = true;
        }
        if is_in_list {
            let quoted = line.split(['"', '\'']).skip(1).step_by(2);
            found.extend(quoted.filter_map(requirement));
            is_in_list = !line.ends_with(']');
        } else if is_in_table && key.trim() != "python" {
            // Poetry's tables have a key for each package.
            found.extend(requirement(key));
        }
    }
    found
}

pub(crate) fn packages_of(package_json: &str) -> Vec<String> {
    let package: Value = serde_json::from_str(package_json).unwrap_or_default();
    let lists = ["dependencies", "devDependencies", "optionalDependencies"];
    let lists = lists.iter().filter_map(|list| package[*list].as_object());
    lists.flat_map(|list| list.keys().cloned()).collect()
}

/// Returns the packages that the project or a member of its workspace declares.
fn node_dependencies(project: &TestedProject) -> Vec<String> {
    let declared = |project: &TestedProject| {
        let text = project.read("package.json").ok().flatten();
        text.map_or_else(Vec::new, |text| packages_of(&text))
    };
    let mut found = declared(project);
    if let Ok(Some(members)) = javascript::workspace(project) {
        let searched = directories::search(project.root());
        for path in searched.paths.iter().filter(|path| members.contains(path)) {
            let member = TestedProject::new(&project.root().join(path));
            found.extend(member.map_or_else(|_| Vec::new(), |member| declared(&member)));
        }
    }
    found
}

/// Returns the root of a directory's workspace. The search stays inside the repository.
fn workspace_of(directory: &Path) -> Option<TestedProject> {
    let directory = directory.canonicalize().ok()?;
    for root in directory.ancestors().take(PARENTS_MAX) {
        let path = directory.strip_prefix(root).ok()?.to_str()?;
        let project = TestedProject::new(root).ok()?;
        if matches!(javascript::workspace(&project), Ok(Some(members)) if members.contains(path)) {
            return Some(project);
        }
        if root.join(".git").exists() {
            break;
        }
    }
    None
}

/// Returns the command that installs the packages of `package.json`.
fn node_setup(project: &TestedProject) -> Option<String> {
    let manager = javascript::manager_of(project).ok()??;
    let has_lock = ["package-lock.json", "npm-shrinkwrap.json"]
        .iter()
        .any(|file| matches!(project.has(file), Ok(true)));
    let setup = match manager {
        PackageManager::Npm if has_lock => "npm ci",
        PackageManager::Npm => "npm install",
        PackageManager::Pnpm => "pnpm install",
        PackageManager::Yarn => "yarn install",
        PackageManager::Bun => "bun install",
    };
    Some(setup.to_owned())
}

#[cfg(test)]
mod tests {
    use hookloop_core::environment::EnvironmentGap;

    use super::*;

    #[test]
    fn names_of_requirements_are_read_from_each_form() {
        assert_eq!(requirement("PyYAML>=6; python_version > '3'").as_deref(), Some("PyYAML"));
        assert_eq!(requirement("-r other.txt"), None);
        assert_eq!(requirement("# comment"), None);
        let text = "[project]\nname = \"x\"\ndependencies = [\"requests>=2\", 'attrs']\n\
                    [project.optional-dependencies]\ntest = [\n  \"pytest>=8\",\n  \"freezegun\",\n]\n\
                    [tool.poetry.dependencies]\npython = \"^3.9\"\nrich = \"^13\"\n[tool.ruff]\nline-length = 3\n";
        let expected = ["requests", "attrs", "pytest", "freezegun", "rich"];
        assert_eq!(declared_in_pyproject(text), expected);
    }

    #[test]
    fn each_way_to_declare_a_tool_has_the_command_that_installs_it() {
        let check = |file: &str, text: &str, expected: &str| {
            let home = tempfile::tempdir().unwrap();
            std::fs::write(home.path().join(file), text).unwrap();
            let gap = EnvironmentGap::of_program("pytest", &facts(home.path()));
            assert_eq!(gap.setup.as_deref(), Some(expected), "{file}: {text}");
        };
        check("pytest.ini", "[pytest]\n", "pip install pytest");
        check("requirements-dev.txt", "pytest>=8\n", "pip install -r requirements-dev.txt");
        check("requirements.txt", "pytest\n", "pip install -r requirements.txt");
        let extra =
            "[project]\nname = \"x\"\n[project.optional-dependencies]\ndev = [\"pytest\"]\n";
        check("pyproject.toml", extra, "pip install -e '.[dev]'");
        let group = "[project]\nname = \"x\"\n[dependency-groups]\ntest = [\"pytest>=8\"]\n";
        check("pyproject.toml", group, "pip install --group test");
        let poetry = "[build-system]\n[tool.poetry.group.dev.dependencies]\npytest = \"*\"\n";
        check("pyproject.toml", poetry, "pip install pytest");
        let own = "[project]\nname = \"x\"\ndependencies = [\"pytest\"]\n";
        check("pyproject.toml", own, "pip install -e .");
        // A name with shell syntax must not become part of a command.
        let hostile =
            "[project]\n[project.optional-dependencies]\n\"a'; rm -r b\" = [\"pytest\"]\n";
        check("pyproject.toml", hostile, "pip install pytest");
    }

    #[test]
    fn a_src_layout_and_a_package_json_are_read() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(facts(home.path()), EnvironmentFacts::default());
        write("pyproject.toml", "[build-system]\n");
        write("src/small/__init__.py", "");
        write("tests/__init__.py", "");
        write("tool.py", "");
        write("package.json", r#"{"devDependencies": {"vitest": "3"}}"#);
        let found = facts(home.path());
        assert_eq!(found.python_packages, ["tool", "small"]);
        assert_eq!(found.python_setup.as_deref(), Some("pip install -e ."));
        assert_eq!(found.node_dependencies, ["vitest"]);
        assert_eq!(found.node_setup.as_deref(), Some("npm install"));
        write("package-lock.json", "{}");
        assert_eq!(facts(home.path()).node_setup.as_deref(), Some("npm ci"));
        write("package.json", r#"{"workspaces": ["packages/*"]}"#);
        write("packages/a/package.json", r#"{"devDependencies": {"jest": "30"}}"#);
        assert_eq!(facts(home.path()).node_dependencies, ["jest"], "a member's");
        let member = facts(&home.path().join("packages/a"));
        assert_eq!(member.node_setup.as_deref(), Some("npm ci"), "by the lock file of the root");
        write("uv.lock", "");
        assert_eq!(facts(home.path()).python_setup.as_deref(), Some("uv sync"));
    }
}
