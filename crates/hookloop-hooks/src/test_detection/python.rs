//! The tests of a Python project, for Django, pytest, tox or nox.

use std::ffi::OsStr;

use super::members::{MemberPatterns, normal, texts, toml, value};
use super::reading::TestedProject;
use super::{NoTests, is_there};

/// Files with a pytest section, and the beginning of its header.
const SECTIONS: [(&str, &str); 3] =
    [("pyproject.toml", "[tool.pytest"), ("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")];
/// Configuration files of pytest alone.
const OWN: [&str; 2] = ["pytest.ini", ".pytest.ini"];
/// Files with a tox section, and the beginning of its header.
///
/// A `tox.ini` may contain only settings of other tools.
const TOX_SECTIONS: [(&str, &str); 5] = [
    ("tox.ini", "[tox]"),
    ("tox.ini", "[testenv"),
    ("pyproject.toml", "[tool.tox"),
    ("setup.cfg", "[tox:tox]"),
    ("setup.cfg", "[testenv"),
];
const TOX_OWN: &str = "tox.toml";
const NOX_OWN: &str = "noxfile.py";
const MANAGE: &str = "manage.py";
/// A string that every `manage.py` of Django contains.
const DJANGO: &str = "DJANGO_SETTINGS_MODULE";
const DIRECTORIES: [&str; 2] = ["tests", "test"];
const PYPROJECT: &str = "pyproject.toml";
/// Interpreters of a project's own environment.
const INTERPRETERS: [&str; 2] = [".venv/bin/python", "venv/bin/python"];
/// pytest programs of a project's own environment.
const PYTESTS: [&str; 2] = [".venv/bin/pytest", "venv/bin/pytest"];
/// Files that make a directory a Python project.
const PROJECT_FILES: [&str; 8] =
    [PYPROJECT, "setup.py", "setup.cfg", "tox.ini", TOX_OWN, NOX_OWN, MANAGE, "pytest.ini"];

/// The pytest file for fixtures.
const CONFTEST: &str = "conftest.py";
/// Files with dependencies or tool settings of a Python project, besides requirement lists.
const DECLARING: [&str; 8] = [
    PYPROJECT,
    "setup.py",
    "setup.cfg",
    "tox.ini",
    NOX_OWN,
    "Pipfile",
    "environment.yml",
    "environment.yaml",
];
/// Largest number of files that are read to decide whether tests need pytest. Beyond it, they do.
const TEST_FILES_MAX: usize = 500;
/// Beginnings of unindented lines that define tests for pytest.
const PYTEST_STARTS: [&str; 2] = ["def test", "async def test"];
/// Beginnings of statements that import pytest.
const PYTEST_IMPORTS: [&str; 2] = ["import pytest", "from pytest"];
/// Strings in files with unittest tests.
const UNITTEST_MARKS: [&str; 2] = ["TestCase", "import unittest"];
/// The exit code for no tests, of pytest and, since Python 3.12, of unittest.
pub const NO_TESTS: i32 = 5;

/// The command prefix that runs a program in a project's environment.
pub type PythonLauncher = &'static [&'static str];

const UV: (&str, PythonLauncher) = ("uv.lock", &["uv", "run"]);
/// Lock files of package managers, each with its launcher.
const LAUNCHERS: [(&str, PythonLauncher); 4] = [
    UV,
    ("poetry.lock", &["poetry", "run"]),
    ("pdm.lock", &["pdm", "run"]),
    ("Pipfile.lock", &["pipenv", "run"]),
];

/// Returns the launcher of the project. It is empty if programs are found in `PATH`.
pub fn launcher(project: &TestedProject) -> Result<PythonLauncher, NoTests> {
    for (file, launcher) in LAUNCHERS {
        if project.has(file)? {
            return Ok(launcher);
        }
    }
    Ok(&[])
}

/// Returns the runner of the project's tests and its command, if there are tests.
///
/// There is one runner: tox and nox run the same tests in an environment of their own.
pub(crate) fn tests(
    project: &TestedProject,
    path: &OsStr,
    inherited: PythonLauncher,
) -> Result<Option<(&'static str, Vec<String>)>, NoTests> {
    let own = launcher(project)?;
    let launcher = if own.is_empty() { inherited } else { own };
    let is_installed = |program: &str| is_there(program, project.root(), path);
    let command = |runner: &'static str, argv: &[&str]| {
        Some((runner, argv.iter().map(|word| (*word).to_owned()).collect()))
    };
    let has_settings = has_pytest_settings(project)?;
    if !has_settings && is_django(project)? {
        let interpreter = INTERPRETERS.into_iter().find(|program| is_installed(program));
        let interpreter = match interpreter {
            _ if !launcher.is_empty() => "python",
            Some(own) => own,
            None => "python3",
        };
        // Runs as a module: a gate runs a script from a copy, which has no project beside it.
        return Ok(command("django", &[launcher, &[interpreter, "-m", "manage", "test"]].concat()));
    }
    let has_pytest = has_settings || has_test_files(project)?;
    let environments = match () {
        () if has_tox(project)? => Some("tox"),
        () if project.has(NOX_OWN)? => Some("nox"),
        () => None,
    };
    let can_run_pytest =
        !launcher.is_empty() || is_installed("pytest") || PYTESTS.into_iter().any(is_installed);
    if let Some(runner) = environments {
        let is_preferred = !has_settings && (launcher.is_empty() || !has_pytest);
        let is_only = !can_run_pytest && is_installed(runner);
        let is_usable = is_installed(runner) || !can_run_pytest || !has_pytest;
        if is_only || (is_preferred && is_usable) || !has_pytest {
            return Ok(command(runner, &[runner]));
        }
    }
    Ok(if has_pytest { command("pytest", &[launcher, &["pytest"]].concat()) } else { None })
}

/// Returns the directory in which unittest finds all tests of the project. `.` is the root.
///
/// Returns `None` if the tests may need pytest, which also runs unittest tests.
pub fn unittest_directory(project: &TestedProject) -> Result<Option<&'static str>, NoTests> {
    if has_pytest_settings(project)? || mentions_pytest(project)? {
        return Ok(None);
    }
    let is_python = |name: &str| is_test(name) || name == CONFTEST;
    let names = project.names()?;
    let mut places = vec![(".", names.into_iter().filter(|name| is_python(name)).collect())];
    for directory in DIRECTORIES {
        let Some(files) = project.all_below(directory, is_python)? else { return Ok(None) };
        places.push((directory, files));
    }
    places.retain(|(_, files): &(&str, Vec<String>)| !files.is_empty());
    let [(directory, files)] = places.as_slice() else { return Ok(None) };
    if files.len() > TEST_FILES_MAX {
        return Ok(None);
    }
    let mut has_unittest = false;
    for file in files {
        let text = project.read(file)?.unwrap_or_default();
        if needs_pytest(&text) || !is_discovered(project, directory, file)? {
            return Ok(None);
        }
        has_unittest |= UNITTEST_MARKS.iter().any(|mark| text.contains(mark));
    }
    Ok(has_unittest.then_some(*directory))
}

/// Returns the command line for unittest tests.
///
/// Before Python 3.12, `python3 -m unittest` passes without any test.
pub fn unittest_line(directory: &str) -> String {
    let start = if directory == "." { String::new() } else { format!(", \"-s\", \"{directory}\"") };
    format!(
        "python3 -c 'import sys, unittest; \
         r = unittest.main(None, argv=[\"unittest\", \"discover\"{start}], exit=False).result; \
         sys.exit(not r.wasSuccessful() or (0 if r.testsRun or r.skipped else {NO_TESTS}))'"
    )
}

/// Whether a file with dependencies or settings contains the word `pytest`.
fn mentions_pytest(project: &TestedProject) -> Result<bool, NoTests> {
    let is_requirements = |name: &str| name.contains("requirements") && name.ends_with(".txt");
    let mut files: Vec<String> = DECLARING.iter().map(|name| (*name).to_owned()).collect();
    files.extend(project.names()?.into_iter().filter(|name| is_requirements(name)));
    let listed = project.all_below("requirements", |name| name.ends_with(".txt"))?;
    let Some(listed) = listed else { return Ok(true) };
    files.extend(listed);
    for file in files.iter().take(TEST_FILES_MAX) {
        if project.read(file)?.is_some_and(|text| text.contains("pytest")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file has tests that only pytest collects, or imports pytest.
fn needs_pytest(text: &str) -> bool {
    text.lines().any(|line| {
        let is_plain_class = line
            .strip_prefix("class Test")
            .is_some_and(|rest| rest.split_once(':').is_some_and(|(name, _)| !name.contains('(')));
        let statement = line.trim_start();
        PYTEST_STARTS.iter().any(|start| line.starts_with(start))
            || PYTEST_IMPORTS.iter().any(|start| statement.starts_with(start))
            || is_plain_class
    })
}

/// Whether unittest, started in a directory, finds a file. It matches names and enters only
/// packages.
fn is_discovered(project: &TestedProject, directory: &str, file: &str) -> Result<bool, NoTests> {
    let below = file.strip_prefix(directory).map_or(file, |rest| rest.trim_start_matches('/'));
    let mut parts: Vec<&str> = below.split('/').collect();
    let is_named = parts.pop().is_some_and(|name| name.starts_with("test"));
    let mut package = directory.to_owned();
    for part in parts {
        package = format!("{package}/{part}");
        if !project.has(&format!("{package}/__init__.py"))? {
            return Ok(false);
        }
    }
    Ok(is_named)
}

/// Returns the members of the project's uv or Hatch workspace, if the project is its root.
pub fn workspace(project: &TestedProject) -> Result<Option<MemberPatterns>, NoTests> {
    let Some(document) = toml(project, PYPROJECT)? else { return Ok(None) };
    let uv = ["tool", "uv", "workspace"];
    let mut patterns: Vec<String> = Vec::new();
    if value(&document, &uv).is_some() {
        let below = |key| texts(value(&document, &[uv[0], uv[1], uv[2], key]));
        patterns.extend(below("members").into_iter().map(str::to_owned));
        patterns.extend(below("exclude").into_iter().map(|path| format!("!{path}")));
    }
    let environments = value(&document, &["tool", "hatch", "envs"]);
    for (_, environment) in
        environments.and_then(|item| item.as_table_like()).into_iter().flat_map(|envs| envs.iter())
    {
        let members = environment
            .as_table_like()
            .and_then(|environment| environment.get("workspace")?.as_table_like()?.get("members"));
        patterns.extend(texts(members).into_iter().map(str::to_owned));
    }
    if patterns.is_empty() {
        return Ok(None);
    }
    MemberPatterns::new(PYPROJECT, patterns.iter().map(String::as_str)).map(Some)
}

/// Returns the launcher of workspace members, which have no lock file of their own.
pub fn launcher_of_members(project: &TestedProject) -> Result<PythonLauncher, NoTests> {
    let document = toml(project, PYPROJECT)?;
    let is_uv =
        document.is_some_and(|document| value(&document, &["tool", "uv", "workspace"]).is_some());
    Ok(if is_uv { UV.1 } else { &[] })
}

/// Whether pytest in the project collects the tests below `path`, by its settings.
pub fn collects(project: &TestedProject, path: &str) -> Result<bool, NoTests> {
    if !has_pytest_settings(project)? {
        return Ok(false);
    }
    let document = toml(project, PYPROJECT)?;
    let in_pyproject = document.as_ref().and_then(|document| {
        value(document, &["tool", "pytest", "ini_options", "testpaths"])
            .or_else(|| value(document, &["tool", "pytest", "testpaths"]))
    });
    let mut listed: Vec<String> = texts(in_pyproject)
        .into_iter()
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for file in OWN.into_iter().chain(["tox.ini", "setup.cfg"]) {
        listed.extend(testpaths(&project.read(file)?.unwrap_or_default()));
    }
    let is_member = || -> Result<bool, NoTests> {
        Ok(workspace(project)?.is_some_and(|members| members.contains(path)))
    };
    if listed.is_empty() {
        return is_member();
    }
    let is_meant = |listed: &String| {
        let listed = normal(listed);
        // `packages/*/tests` matches `packages/a`.
        let parts = path.split('/').count();
        let start: Vec<&str> = listed.split('/').take(parts).collect();
        hookloop_config::patterns::glob(&start.join("/")).is_ok_and(|glob| glob.is_match(path))
            || path.starts_with(&format!("{listed}/"))
    };
    Ok(listed.iter().any(is_meant))
}

/// Whether the directory is a Python project, not only one of tests or requirements.
pub fn is_project(project: &TestedProject) -> Result<bool, NoTests> {
    for file in PROJECT_FILES {
        if project.has(file)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the values of `testpaths` in an INI file, including continuation lines.
fn testpaths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_in_value = false;
    for line in text.lines() {
        let is_continued = is_in_value && line.starts_with([' ', '\t']);
        let value = match line.split_once('=') {
            Some((key, value)) if key.trim() == "testpaths" => Some(value),
            _ if is_continued => Some(line),
            _ => None,
        };
        is_in_value = value.is_some();
        found.extend(value.unwrap_or_default().split_whitespace().map(str::to_owned));
    }
    found
}

fn is_django(project: &TestedProject) -> Result<bool, NoTests> {
    Ok(project.read(MANAGE)?.is_some_and(|text| text.contains(DJANGO)))
}

fn has_tox(project: &TestedProject) -> Result<bool, NoTests> {
    Ok(project.has(TOX_OWN)? || has_section(project, &TOX_SECTIONS)?)
}

fn has_section(project: &TestedProject, sections: &[(&str, &str)]) -> Result<bool, NoTests> {
    for (file, section) in sections {
        let text = project.read(file)?.unwrap_or_default();
        if text.lines().any(|line| line.trim_start().starts_with(section)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_pytest_settings(project: &TestedProject) -> Result<bool, NoTests> {
    for file in OWN {
        if project.has(file)? {
            return Ok(true);
        }
    }
    has_section(project, &SECTIONS)
}

fn has_test_files(project: &TestedProject) -> Result<bool, NoTests> {
    if project.names()?.iter().any(|name| is_test(name)) {
        return Ok(true);
    }
    for directory in DIRECTORIES {
        if project.any_below(directory, is_test)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file name matches pytest's naming rules.
fn is_test(name: &str) -> bool {
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}
