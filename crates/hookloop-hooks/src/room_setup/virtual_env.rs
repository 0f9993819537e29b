//! The packages of a Python project: those of a lock file, or those in a virtual environment of the project.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use hookloop_process::find_program;

use super::{RoomSetup, SetupGround, SetupPlace};
use crate::environment::{
    ExtraKind, PYTHON_SETUPS, PythonExtra, REQUIREMENTS, is_installable, is_plain, python_extras,
    requirement,
};
use crate::test_detection::members;

/// Maximum entries that are read of a directory.
const ENTRIES_MAX: usize = 10_000;
/// Maximum requirement files that are read.
const REQUIREMENT_FILES_MAX: usize = 30;
/// The file of a virtual environment, and the most bytes of it that are read.
const CONFIG: &str = "pyvenv.cfg";
const CONFIG_MAX: u64 = 64 * 1024;
/// The directory in which some projects keep their requirement files.
const REQUIREMENTS_DIRECTORY: &str = "requirements";
/// Files that decide what `pip install -e .` installs.
const PROJECT_FILES: [&str; 3] = ["pyproject.toml", "setup.py", "setup.cfg"];
/// The lock file whose command takes extras and groups.
const UV_LOCK: &str = "uv.lock";
/// The group that `uv sync` installs by default.
const UV_DEFAULT: &str = "dev";
/// The first pip that installs groups is newer than that of many Python versions.
const NEW_PIP: &str = "-U 'pip>=25.1'";

/// Returns the setup of a directory with a lock file or with a virtual environment.
pub(super) fn setup(place: &SetupPlace<'_>, ground: SetupGround<'_>) -> Option<RoomSetup> {
    let environment = FoundEnvironment::find(place);
    let Some(known) = PYTHON_SETUPS.iter().find(|known| place.has(known.lock)) else {
        return environment?.setup(place, ground);
    };
    let mut command = known.in_room.to_owned();
    if known.lock == UV_LOCK {
        let extras = environment.map(|environment| environment.extras(place)).unwrap_or_default();
        for extra in extras {
            match extra.kind {
                ExtraKind::Extra => command.push_str(&format!(" --extra {}", extra.name)),
                ExtraKind::Group if extra.name == UV_DEFAULT => {}
                ExtraKind::Group => command.push_str(&format!(" --group {}", extra.name)),
            }
        }
    }
    let manifest = if known.lock == "Pipfile.lock" { "Pipfile" } else { "pyproject.toml" };
    Some(place.setup(command, [manifest, known.lock]))
}

/// A virtual environment in a directory of the project.
struct FoundEnvironment {
    /// The name of its directory.
    name: String,
    /// Its configuration.
    config: String,
    /// Normalised names of the distributions in it.
    installed: BTreeSet<String>,
}

impl FoundEnvironment {
    fn find(place: &SetupPlace<'_>) -> Option<FoundEnvironment> {
        let root = place.project.root();
        let mut names = place.project.names().ok()?;
        names.sort_unstable();
        let name = names
            .into_iter()
            .take(ENTRIES_MAX)
            .find(|name| is_plain(name) && root.join(name).join(CONFIG).is_file())?;
        let path = root.join(&name);
        let config = path.join(CONFIG);
        let is_small = fs::metadata(&config).is_ok_and(|data| data.len() <= CONFIG_MAX);
        let config = fs::read_to_string(config).ok().filter(|_| is_small)?;
        let installed = installed_in(&path);
        Some(FoundEnvironment { name, config, installed })
    }

    /// Returns the command that creates the environment and installs the same declared packages.
    fn setup(&self, place: &SetupPlace<'_>, ground: SetupGround<'_>) -> Option<RoomSetup> {
        let mut extras = self.extras(place);
        let files = self.requirement_files(place);
        let mut arguments: Vec<String> = Vec::new();
        let is_project = is_installable(&place.project) && self.has_project(place);
        // An extra is installed together with the project.
        extras.retain(|extra| is_project || extra.kind == ExtraKind::Group);
        if is_project {
            let names = extras.iter().filter(|extra| extra.kind == ExtraKind::Extra);
            let names: Vec<&str> = names.map(|extra| extra.name.as_str()).collect();
            arguments.push(match names.is_empty() {
                true => "-e .".to_owned(),
                false => format!("-e '.[{}]'", names.join(",")),
            });
        }
        let groups = || extras.iter().filter(|extra| extra.kind == ExtraKind::Group);
        arguments.extend(groups().map(|group| format!("--group {}", group.name)));
        arguments.extend(files.iter().map(|(file, _)| format!("-r {file}")));
        let declared = extras.iter().flat_map(|extra| &extra.requirements);
        let declared = declared.chain(files.iter().flat_map(|(_, lines)| lines));
        let declared: BTreeSet<String> =
            declared.filter_map(|line| requirement(line)).map(|name| normal(&name)).collect();
        let tool = tool_of(ground.command).filter(|tool| {
            self.installed.contains(&normal(tool)) && !declared.contains(&normal(tool))
        });
        arguments.extend(tool.map(str::to_owned));
        if arguments.is_empty() {
            return None;
        }
        let command = self.command(&arguments.join(" "), groups().next().is_some(), ground);
        let inputs = PROJECT_FILES.into_iter().chain(files.iter().map(|(file, _)| file.as_str()));
        Some(place.setup(command, inputs))
    }

    fn command(&self, arguments: &str, has_groups: bool, ground: SetupGround<'_>) -> String {
        let name = &self.name;
        let outside = path_outside(ground);
        let is_of_uv = self.value("uv").is_some() && find_program("uv", &outside).is_some();
        if is_of_uv {
            let version = self.minor().map_or(String::new(), |minor| format!(" --python {minor}"));
            return format!(
                "uv venv{version} {name} && uv pip install --python {name} {arguments}"
            );
        }
        let python = self.interpreter(&outside);
        // Not `.venv/bin/pip`: a hook that names a file of the working directory depends on its bytes.
        let pip = format!("PATH={name}/bin:$PATH pip install");
        let newer = if has_groups { format!(" && {pip} {NEW_PIP}") } else { String::new() };
        format!("{python} -m venv {name}{newer} && {pip} {arguments}")
    }

    /// Returns the program that created the environment, by a name that other machines have, too.
    fn interpreter(&self, path: &OsString) -> String {
        let usual = "python3".to_owned();
        let Some(numbered) = self.minor().map(|minor| format!("python{minor}")) else {
            return usual;
        };
        // `python3` is usually a link to the program with the number.
        let real = find_program(&usual, path).and_then(|found| found.canonicalize().ok());
        let is_same = real.is_some_and(|real| real.ends_with(&numbered));
        if is_same || find_program(&numbered, path).is_none() { usual } else { numbered }
    }

    /// Returns the extras and groups whose packages are all installed.
    fn extras(&self, place: &SetupPlace<'_>) -> Vec<PythonExtra> {
        let all = python_extras(&place.project).into_iter();
        all.filter(|extra| self.has_all(&extra.requirements)).collect()
    }

    /// Returns the requirement files whose packages are all installed, with their lines.
    fn requirement_files(&self, place: &SetupPlace<'_>) -> Vec<(String, Vec<String>)> {
        let mut names: Vec<String> = REQUIREMENTS.iter().map(|file| (*file).to_owned()).collect();
        let listed = fs::read_dir(place.project.root().join(REQUIREMENTS_DIRECTORY));
        let listed = listed.into_iter().flatten().flatten().take(REQUIREMENT_FILES_MAX);
        let mut listed: Vec<String> = listed
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".txt") && is_plain(name))
            .map(|name| format!("{REQUIREMENTS_DIRECTORY}/{name}"))
            .collect();
        listed.sort_unstable();
        names.extend(listed);
        let read = |name: String| {
            let text = place.project.read(&name).ok().flatten()?;
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            self.has_all(&lines).then_some((name, lines))
        };
        names.into_iter().filter_map(read).collect()
    }

    /// Whether there are requirements and all of them are installed. Those with a condition may be missing.
    fn has_all(&self, requirements: &[String]) -> bool {
        let names = requirements.iter().filter(|line| !line.contains(';'));
        let mut names = names.filter_map(|line| requirement(line)).peekable();
        names.peek().is_some() && names.all(|name| self.installed.contains(&normal(&name)))
    }

    /// Whether the project itself is installed, as far as its name is known.
    fn has_project(&self, place: &SetupPlace<'_>) -> bool {
        let Ok(Some(document)) = members::toml(&place.project, "pyproject.toml") else {
            return true;
        };
        let name = [&["project", "name"][..], &["tool", "poetry", "name"]]
            .into_iter()
            .find_map(|keys| members::value(&document, keys)?.as_str());
        name.is_none_or(|name| self.installed.contains(&normal(name)))
    }

    /// Returns a value of the environment's configuration.
    fn value(&self, key: &str) -> Option<&str> {
        self.config.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then_some(value.trim())
        })
    }

    /// Returns the version of Python as `3.12`.
    fn minor(&self) -> Option<String> {
        let version = self.value("version").or_else(|| self.value("version_info"))?;
        let mut parts = version.split('.');
        let (major, minor) = (parts.next()?, parts.next()?);
        let is_number = |part: &str| part.parse::<u16>().is_ok();
        (is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
    }
}

/// Returns the search path without directories of the project, which a room does not have yet.
fn path_outside(ground: SetupGround<'_>) -> OsString {
    let is_outside = |directory: &PathBuf| !directory.starts_with(ground.root);
    env::join_paths(env::split_paths(ground.path).filter(is_outside)).unwrap_or_default()
}

/// Returns the program of a command line, without its directory.
fn tool_of(command: &str) -> Option<&str> {
    let program = command.split_whitespace().find(|word| !word.contains('='))?;
    let name = program.rsplit('/').next().unwrap_or(program);
    is_plain(name).then_some(name)
}

/// Returns the normalised names of the distributions in an environment.
fn installed_in(environment: &Path) -> BTreeSet<String> {
    let entries = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.take(ENTRIES_MAX).map(|entry| entry.path())
    };
    let packages = entries(&environment.join("lib")).map(|python| python.join("site-packages"));
    let mut found = BTreeSet::new();
    for path in packages.flat_map(|packages| entries(&packages).collect::<Vec<_>>()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem =
            [".dist-info", ".egg-info", ".egg-link"].iter().find_map(|end| name.strip_suffix(end));
        // A version follows the name: `PyYAML-6.0.2.dist-info`.
        found.extend(stem.and_then(|stem| stem.split('-').next()).map(normal));
    }
    found
}

/// Returns the name of a distribution in the form in which names are compared.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::super::tests::setups_of;

    const SITE: &str = ".venv/lib/python3.12/site-packages";

    /// Returns the command for a project with these files and distributions in `.venv`.
    fn command_of(files: &[(&str, &str)], installed: &[&str], command: &str) -> Option<String> {
        let directories: Vec<String> =
            installed.iter().map(|name| format!("{SITE}/{name}-1.0.dist-info/")).collect();
        let mut all: Vec<(&str, &str)> = files.to_vec();
        all.push((".venv/pyvenv.cfg", "home = /nowhere\nversion = 3.12.3\n"));
        all.extend(directories.iter().map(|name| (name.as_str(), "")));
        setups_of(&all, "", command).pop().map(|setup| setup.command)
    }

    const VENV: &str = "python3 -m venv .venv && PATH=.venv/bin:$PATH pip install";

    #[test]
    fn an_environment_is_created_with_the_declared_packages_that_are_installed() {
        let pyproject = "[project]\nname = \"My-Shop\"\n[project.optional-dependencies]\n\
                         test = [\"pytest>=8\", \"tomli; python_version < '3.11'\"]\ndocs = [\"sphinx\"]\n";
        let check = |files: &[(&str, &str)], installed: &[&str], expected: Option<String>| {
            assert_eq!(command_of(files, installed, "pytest -q"), expected, "{installed:?}");
        };
        let project = [("pyproject.toml", pyproject)];
        check(&project, &["my_shop", "pytest"], Some(format!("{VENV} -e '.[test]'")));
        check(&project, &["my_shop"], Some(format!("{VENV} -e .")));
        // The tool is not installed by the extra, because the project is not installed.
        check(&project, &["pytest"], Some(format!("{VENV} pytest")));
        let listed = [("requirements.txt", "requests\n"), ("requirements/dev.txt", "pytest\n")];
        let expected = format!("{VENV} -r requirements.txt -r requirements/dev.txt");
        check(&listed, &["requests", "pytest"], Some(expected));
        check(
            &listed[..1],
            &["requests", "pytest"],
            Some(format!("{VENV} -r requirements.txt pytest")),
        );
        check(&[("setup.py", "")], &["shop"], Some(format!("{VENV} -e .")));
        check(&[("notes.md", "")], &["requests"], None);
    }

    #[test]
    fn groups_need_a_new_pip() {
        let pyproject = "[project]\nname = \"a\"\n[dependency-groups]\ndev = [\"pytest\"]\n";
        let found = command_of(&[("pyproject.toml", pyproject)], &["a", "pytest"], "pytest");
        let pip = "PATH=.venv/bin:$PATH pip install";
        let expected =
            format!("python3 -m venv .venv && {pip} -U 'pip>=25.1' && {pip} -e . --group dev");
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn lock_files_have_their_own_commands() {
        let pyproject = "[project]\nname = \"a\"\n[project.optional-dependencies]\nx = [\"rich\"]\n\
                         [dependency-groups]\ndev = [\"pytest\"]\nlint = [\"ruff\"]\n";
        let files = |lock| [("pyproject.toml", pyproject), (lock, "")];
        let installed = ["a", "rich", "pytest", "ruff"];
        for (lock, expected) in [
            ("uv.lock", "uv sync --extra x --group lint"),
            ("poetry.lock", "poetry install"),
            ("pdm.lock", "pdm sync"),
            ("Pipfile.lock", "pipenv sync --dev"),
        ] {
            let found = command_of(&files(lock), &installed, "pytest");
            assert_eq!(found.as_deref(), Some(expected), "{lock}");
        }
    }

    /// A name with shell syntax must not become part of a command.
    #[test]
    fn hostile_names_are_left_out() {
        let hostile = "[project]\nname = \"a\"\n[project.optional-dependencies]\n\"x'; rm -r b\" = [\"pytest\"]\n";
        let found = command_of(&[("pyproject.toml", hostile)], &["a", "pytest"], "pytest");
        assert_eq!(found, Some(format!("{VENV} -e . pytest")));
        assert_eq!(setups_of(&[("a;b/pyvenv.cfg", ""), ("setup.py", "")], "", "x"), []);
    }
}
