//! Whether a project has tests that pytest finds.

use super::NoTests;
use super::reading::Project;

/// Files with a section of pytest's, and how that begins.
const SECTIONS: [(&str, &str); 3] =
    [("pyproject.toml", "[tool.pytest"), ("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")];
/// Files that are there for pytest alone.
const OWN: [&str; 2] = ["pytest.ini", ".pytest.ini"];
const DIRECTORIES: [&str; 2] = ["tests", "test"];

pub(super) fn has_pytest(project: &Project) -> Result<bool, NoTests> {
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
