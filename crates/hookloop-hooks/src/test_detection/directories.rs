//! The directories of a repository that have a project of their own.
//!
//! The search skips hidden and ignored directories, those of [`NOT_SEARCHED`], other repositories,
//! and other hookloop projects. It has limits and reports when it reaches one.

use std::collections::BTreeSet;
use std::path::Path;

use hookloop_config::paths::FILE_NAME;
use ignore::WalkBuilder;

/// Largest depth of the search below the root.
const DEPTH_MAX: usize = 6;
/// Largest number of directories that are searched.
const DIRECTORIES_MAX: usize = 5_000;
/// Largest number of directory entries that are read.
const ENTRIES_MAX: usize = 200_000;

/// Directories of packages, build results and test data, which are no projects of the repository.
const NOT_SEARCHED: [&str; 20] = [
    "node_modules",
    "bower_components",
    "vendor",
    "third_party",
    "target",
    "venv",
    "virtualenv",
    "site-packages",
    "__pycache__",
    "dist",
    "build",
    "out",
    "coverage",
    "fixtures",
    "fixture",
    "__fixtures__",
    "__snapshots__",
    "testdata",
    "test-data",
    "test_data",
];
/// Path suffixes below which Java and Kotlin have sources, often many levels deep.
const SOURCES: [&str; 2] = ["src/main", "src/test"];
/// Files that identify a project, in lower case.
const FILES: [&str; 31] = [
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "cargo.toml",
    "cmakelists.txt",
    "deno.json",
    "deno.jsonc",
    "gemfile",
    "gnumakefile",
    "go.mod",
    "justfile",
    "makefile",
    "manage.py",
    "mix.exs",
    "noxfile.py",
    "package.json",
    "package.swift",
    "phpunit.xml",
    "pom.xml",
    "pyproject.toml",
    "pytest.ini",
    "requirements.txt",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.cfg",
    "setup.py",
    "stack.yaml",
    "tox.ini",
    "tox.toml",
    "pipfile",
    "go.work",
];
/// Name suffixes that identify a .NET project.
const ENDS: [&str; 5] = [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"];

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectDirectories {
    /// Paths relative to the root, parents before their children, without the root itself.
    pub paths: BTreeSet<String>,
    /// Sentences about reached limits and unusable names.
    pub notices: Vec<String>,
}

/// Searches below `root` without following links.
pub fn search(root: &Path) -> ProjectDirectories {
    search_within(root, DIRECTORIES_MAX)
}

fn search_within(root: &Path, directories_max: usize) -> ProjectDirectories {
    let mut found = ProjectDirectories::default();
    let (mut directories, mut has_deeper) = (0, false);
    for (number, entry) in walk(root).enumerate() {
        // Skips a directory that cannot be read.
        let Ok(entry) = entry else { continue };
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_directory {
            directories += 1;
            has_deeper |= entry.depth() > DEPTH_MAX;
        }
        if directories > directories_max || number >= ENTRIES_MAX {
            let place = entry.path().strip_prefix(root).unwrap_or(entry.path()).display();
            found.notices.push(format!(
                "the search for projects stopped at `{place}`, after {directories} directories: run `hookloop -C DIR \
                 init` for a part of the repository, or add gates by hand"
            ));
            break;
        }
        let is_below = !is_directory && entry.depth() > 1;
        if !is_below || !entry.file_name().to_str().is_some_and(is_project_file) {
            continue;
        }
        let Some(parent) = entry.path().parent().and_then(|path| path.strip_prefix(root).ok())
        else {
            continue;
        };
        match parent.to_str().filter(|path| is_plain(path)) {
            Some(path) => {
                found.paths.insert(path.to_owned());
            }
            None => {
                let notice = format!(
                    "the directory `{}` has a name that no gate can be written with",
                    parent.display().to_string().escape_debug()
                );
                if !found.notices.contains(&notice) {
                    found.notices.push(notice);
                }
            }
        }
    }
    if has_deeper {
        found.notices.push(format!(
            "directories more than {DEPTH_MAX} levels deep were not searched for projects"
        ));
    }
    found
}

fn walk(root: &Path) -> ignore::Walk {
    let top = root.to_owned();
    let mut builder = WalkBuilder::new(root);
    builder.require_git(false).git_global(false).ignore(false).follow_links(false);
    // The files of the deepest directories are one level below them.
    builder.max_depth(Some(DEPTH_MAX + 1));
    builder.sort_by_file_name(|one, other| one.cmp(other));
    builder.filter_entry(move |entry| {
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !is_directory || entry.depth() == 0 {
            return true;
        }
        let path = entry.path();
        let is_named = entry.file_name().to_str().is_some_and(|name| NOT_SEARCHED.contains(&name));
        let is_other = path.join(".git").exists() || path.join(FILE_NAME).exists();
        let below = path.strip_prefix(&top).unwrap_or(path);
        !is_named && !is_other && !SOURCES.iter().any(|end| below.ends_with(end))
    });
    builder.build()
}

fn is_project_file(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    FILES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a path can be written to a file and typed in a shell between quotes.
pub fn is_plain(path: &str) -> bool {
    !path.contains(|c: char| c.is_control() || matches!(c, '\'' | '"' | '\\' | '`' | '$'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for file in files {
            let path = home.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        home
    }

    #[test]
    fn nested_projects_are_found_outside_dependencies_builds_and_fixtures() {
        let home = tree(&[
            "package.json",
            "backend/manage.py",
            "packages/a/package.json",
            "packages/a/node_modules/b/package.json",
            "packages/a/dist/package.json",
            "vendor/x/go.mod",
            "target/package/y/Cargo.toml",
            ".venv/lib/z/setup.py",
            "tests/fixtures/one/package.json",
            "App/App.csproj",
            "other/.git/HEAD",
            "other/Cargo.toml",
            "governed/hookloop.yaml",
            "governed/Cargo.toml",
            "made/Cargo.toml",
            "docs/index.md",
        ]);
        fs::write(home.path().join(".gitignore"), "made/\n").unwrap();
        let found = search(home.path());
        let paths: Vec<&str> = found.paths.iter().map(String::as_str).collect();
        assert_eq!(paths, ["App", "backend", "packages/a"]);
        assert_eq!(found.notices, [""; 0]);
    }

    #[test]
    fn reached_search_limits_are_reported() {
        let found = search(tree(&["a/b/c/d/e/f/go.mod", "a/b/c/d/e/f/g/go.mod"]).path());
        let paths: Vec<&str> = found.paths.iter().map(String::as_str).collect();
        assert_eq!(paths, ["a/b/c/d/e/f"]);
        assert_eq!(found.notices.len(), 1, "{found:?}");
        assert!(found.notices[0].contains("6 levels"), "{found:?}");

        let home = tree(&["a/go.mod", "b/go.mod", "c/go.mod"]);
        let found = search_within(home.path(), 3);
        let paths: Vec<&str> = found.paths.iter().map(String::as_str).collect();
        assert_eq!(paths, ["a", "b"], "the root is one of the three");
        assert!(found.notices[0].contains("stopped at `c`"), "{:?}", found.notices);
        assert_eq!(search_within(home.path(), 4).notices, [""; 0]);
    }

    #[test]
    fn a_directory_name_unusable_in_a_gate_is_reported() {
        let found = search(tree(&["it's/go.mod", "a b/go.mod"]).path());
        assert_eq!(found.paths.iter().map(String::as_str).collect::<Vec<_>>(), ["a b"]);
        assert_eq!(found.notices.len(), 1, "{found:?}");
    }
}
