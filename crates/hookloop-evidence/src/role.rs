//! The part that a file has in the tests of a project, by its path.
//!
//! Test paths come first: a manifest or a runner's configuration below `tests/` belongs to the tests.

use globset::GlobSet;

use crate::language::SourceLanguage;

/// The part that a file has in the tests of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceRole {
    /// A file with tests, or one that only tests use.
    Test,
    /// A file that configures a test runner.
    Configuration,
    /// A file with test settings among others.
    Manifest(ManifestKind),
    /// Source code. Rust sources and scripts may contain tests.
    Source(SourceLanguage),
    Other,
}

/// A file with test settings among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestKind {
    /// `Cargo.toml`
    Cargo,
    /// `.cargo/config.toml`, which names runners, flags and the environment of tests.
    CargoConfig,
    /// `package.json`
    Package,
    /// `pyproject.toml`
    PyProject,
    /// `setup.cfg`
    SetupCfg,
}

/// Directories that contain tests, or files for tests, at any depth.
const TEST_DIRECTORIES: [&str; 11] = [
    "tests",
    "test",
    "__tests__",
    "spec",
    "specs",
    "testdata",
    "test-data",
    "__snapshots__",
    "__mocks__",
    "fixtures",
    "__fixtures__",
];

/// Files that configure test runners, or that say how they are started.
const CONFIGURATION_FILES: [&str; 41] = [
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "tox.toml",
    "noxfile.py",
    ".coveragerc",
    "sitecustomize.py",
    "usercustomize.py",
    ".taprc",
    ".nycrc",
    "nextest.toml",
    "mocha.opts",
    "unittest.cfg",
    "nose2.cfg",
    ".noserc",
    // Targets that run tests, and the settings of the programs that run them.
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
    ".babelrc",
    ".swcrc",
    ".pnpmfile.cjs",
    ".pnp.cjs",
    "pnpm-workspace.yaml",
    "turbo.json",
    "nx.json",
    "gulpfile.js",
    "Gruntfile.js",
    "go.work",
    "rust-toolchain",
    "rust-toolchain.toml",
];

/// Modules and packages at the top of a repository that Python loads in place of its runners.
const RUNNER_MODULES: [&str; 7] =
    ["pytest", "_pytest", "unittest", "pluggy", "pytest_cov", "coverage", "doctest"];
/// Directories with installed packages, and with byte code that Python prefers to sources.
const PACKAGE_DIRECTORIES: [&str; 3] = ["node_modules", "site-packages", "__pycache__"];

/// The first part of the names of files that configure only test runners.
const CONFIGURATION_PREFIXES: [&str; 18] = [
    "jest.config.",
    "jest.setup.",
    "jest.preset.",
    "jest-setup.",
    "vite.config.",
    "vitest.config.",
    "vitest.workspace.",
    "vitest.setup.",
    "vitest.shims.",
    ".mocharc",
    ".nycrc.",
    ".c8rc",
    "ava.config.",
    "karma.conf.",
    "playwright.config.",
    "cypress.config.",
    "wdio.conf.",
    "babel.config.",
];

/// Returns the role of a file. Its path is relative to the top of the repository, with `/`.
///
/// A file that matches `protected` is a test.
pub fn role_of(path: &str, protected: &GlobSet) -> EvidenceRole {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_below_tests = directory.split('/').any(|part| TEST_DIRECTORIES.contains(&part));
    if protected.is_match(path) || is_below_tests || is_test_name(name) {
        EvidenceRole::Test
    } else if is_configuration_name(name) || replaces_runner(path, directory) {
        EvidenceRole::Configuration
    } else if let Some(kind) = manifest_kind(directory, name) {
        EvidenceRole::Manifest(kind)
    } else if let Some(language) = SourceLanguage::of_path(path) {
        EvidenceRole::Source(language)
    } else {
        EvidenceRole::Other
    }
}

/// Whether a file takes the place of a runner or of a source, or belongs to an installed package.
fn replaces_runner(path: &str, directory: &str) -> bool {
    let top = path.split('/').next().unwrap_or(path);
    let module = top.strip_suffix(".py").unwrap_or(top);
    RUNNER_MODULES.contains(&module) && (path.contains('/') || module != top)
        || [".pyc", ".pyo", ".mk"].iter().any(|end| path.ends_with(end))
        || directory.split('/').any(|part| PACKAGE_DIRECTORIES.contains(&part))
}

fn is_configuration_name(name: &str) -> bool {
    CONFIGURATION_FILES.contains(&name)
        || CONFIGURATION_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn manifest_kind(directory: &str, name: &str) -> Option<ManifestKind> {
    let is_in_cargo = directory.rsplit('/').next() == Some(".cargo");
    match name {
        "Cargo.toml" => Some(ManifestKind::Cargo),
        "config.toml" | "config" if is_in_cargo => Some(ManifestKind::CargoConfig),
        "package.json" => Some(ManifestKind::Package),
        "pyproject.toml" => Some(ManifestKind::PyProject),
        "setup.cfg" => Some(ManifestKind::SetupCfg),
        _ => None,
    }
}

fn is_test_name(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    match extension {
        "py" | "pyi" => is_python_test(stem),
        "go" => stem.ends_with("_test"),
        "rs" => {
            matches!(stem, "tests" | "test") || stem.ends_with("_test") || stem.ends_with("_tests")
        }
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => is_script_test(stem),
        "sh" | "bash" | "zsh" => is_test_script(stem),
        // Snapshots beside tests, such as `a.test.ts.snap` and `a.txt.snap`.
        "snap" => true,
        "" => is_test_script(stem),
        _ => stem.ends_with(".test") || stem.ends_with(".spec"),
    }
}

fn is_python_test(stem: &str) -> bool {
    matches!(stem, "conftest" | "tests" | "test" | "runtests" | "run_tests")
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
}

/// Whether a shell script, or a program without extension, runs tests by its name.
fn is_test_script(stem: &str) -> bool {
    let mut words = stem.split(['-', '_', '.']);
    words.any(|word| matches!(word, "test" | "tests" | "check" | "checks"))
}

/// Ends of the names of scripts with tests, or that run tests.
const SCRIPT_TEST_ENDS: [&str; 8] =
    ["-test", "_test", "_spec", "-spec", "-tests", "_tests", "runTests", "runtests"];

/// Covers the patterns of Jest, Vitest, AVA, Mocha and `node --test`.
fn is_script_test(stem: &str) -> bool {
    let parts: Vec<&str> = stem.split('.').collect();
    let is_marked = |part: &&str| matches!(*part, "test" | "tests" | "spec" | "test-d" | "cy");
    matches!(stem, "test" | "tests" | "spec")
        || parts.iter().skip(1).any(is_marked)
        || stem.starts_with("test-")
        || SCRIPT_TEST_ENDS.iter().any(|end| stem.ends_with(end))
}
