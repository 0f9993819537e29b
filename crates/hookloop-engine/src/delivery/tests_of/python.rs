//! Whether a project has tests that pytest finds.

use super::NoTests;
use super::reading::Project;

/// Files with a section of pytest's, and how that begins.
const SECTIONS: [(&str, &str); 3] =
    [("pyproject.toml", "[tool.pytest"), ("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")];
/// Files that are there for pytest alone.
const OWN: [&str; 2] = ["pytest.ini", ".pytest.ini"];
const DIRECTORIES: [&str; 2] = ["tests", "test"];

/// Lock files of those who keep a project's packages, and how each runs a program among them.
const LAUNCHERS: [(&str, &[&str]); 4] = [
    ("uv.lock", &["uv", "run"]),
    ("poetry.lock", &["poetry", "run"]),
    ("pdm.lock", &["pdm", "run"]),
    ("Pipfile.lock", &["pipenv", "run"]),
];

/// What comes before a program of the project's packages; nothing if it is in PATH.
pub(crate) fn launcher(project: &Project) -> Result<&'static [&'static str], NoTests> {
    for (file, launcher) in LAUNCHERS {
        if project.has(file)? {
            return Ok(launcher);
        }
    }
    Ok(&[])
}

pub(crate) fn has_pytest(project: &Project) -> Result<bool, NoTests> {
    for file in OWN {
        if project.has(file)? {
            return Ok(true);
        }
    }
    for (file, section) in SECTIONS {
        let text = project.read(file)?.unwrap_or_default();
        if text.lines().any(|line| line.trim_start().starts_with(section)) {
            return Ok(true);
        }
    }
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

/// As pytest names them.
fn is_test(name: &str) -> bool {
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}
