//! Formatters, linters and type checkers that a repository is configured for.

use hookloop_hooks::test_detection::reading::TestedProject;
use hookloop_hooks::test_detection::{
    InheritedTools, NoTests, TestCommand, is_there, javascript, python, recipes,
};

use super::SurveyGround;

/// A check that a repository is configured for.
pub(super) struct FoundCheck {
    pub(super) name: &'static str,
    pub(super) runner: &'static str,
    pub(super) argv: Vec<String>,
    /// The script of `package.json` that it runs.
    pub(super) script: Option<&'static str>,
}

/// Scripts of a package that check something, each with the name of its gate.
const SCRIPTS: [(&str, &str); 5] = [
    ("lint", "lint"),
    ("typecheck", "types"),
    ("type-check", "types"),
    ("check-types", "types"),
    ("format:check", "format"),
];
/// Configuration files of ruff and mypy. `pyproject.toml` can configure them, too.
const RUFF: [&str; 2] = ["ruff.toml", ".ruff.toml"];
const MYPY: [&str; 2] = ["mypy.ini", ".mypy.ini"];
const PYPROJECT: &str = "pyproject.toml";

type CheckLook = fn(&TestedProject, SurveyScene<'_>, &mut Vec<FoundCheck>) -> Result<(), NoTests>;

/// The surveyed directory, and the tools that it inherits from a workspace.
#[derive(Clone, Copy)]
struct SurveyScene<'a> {
    ground: SurveyGround<'a>,
    inherited: InheritedTools,
}

/// Returns all checks of a project. Files that cannot be read are added to `troubles`.
pub(super) fn all(
    project: &TestedProject,
    ground: SurveyGround<'_>,
    inherited: InheritedTools,
    troubles: &mut Vec<String>,
) -> Vec<FoundCheck> {
    let mut found = Vec::new();
    let looks: [CheckLook; 4] = [of_languages, of_javascript, of_python, of_tools];
    for look in looks {
        if let Err(error) = look(project, SurveyScene { ground, inherited }, &mut found) {
            let trouble = error.to_string();
            if !troubles.contains(&trouble) {
                troubles.push(trouble);
            }
        }
    }
    found
}

fn of_languages(
    project: &TestedProject,
    _: SurveyScene<'_>,
    found: &mut Vec<FoundCheck>,
) -> Result<(), NoTests> {
    if project.has("Cargo.toml")? {
        found.push(check("format", "cargo", &["cargo", "fmt", "--all", "--check"]));
        let clippy = ["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        found.push(check("lint", "cargo", &clippy));
    }
    if project.has("go.mod")? {
        found.push(check("lint", "go", &["go", "vet", "./..."]));
    }
    if project.has("mix.exs")? {
        found.push(check("format", "mix", &["mix", "format", "--check-formatted"]));
    }
    if project.has(".rubocop.yml")? {
        found.push(check("lint", "rspec", &["bundle", "exec", "rubocop"]));
    }
    Ok(())
}

fn of_javascript(
    project: &TestedProject,
    scene: SurveyScene<'_>,
    found: &mut Vec<FoundCheck>,
) -> Result<(), NoTests> {
    for (script, name) in SCRIPTS {
        let command = javascript::command(project, script, scene.inherited.manager)?;
        if let Some(javascript::ScriptCommand { manager, argv, .. }) = command {
            let (runner, script) = (manager.name(), Some(script));
            found.push(FoundCheck { name, runner, argv, script });
        }
    }
    Ok(())
}

fn of_python(
    project: &TestedProject,
    scene: SurveyScene<'_>,
    found: &mut Vec<FoundCheck>,
) -> Result<(), NoTests> {
    let text = project.read(PYPROJECT)?.unwrap_or_default();
    let has_section = |tool: &str| {
        let section = format!("[tool.{tool}");
        text.lines().any(|line| line.trim_start().starts_with(&section))
    };
    let has_any = |files: &[&str]| -> Result<bool, NoTests> {
        for file in files {
            if project.has(file)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let own = python::launcher(project)?;
    let launcher = if own.is_empty() { scene.inherited.launcher } else { own };
    if has_section("ruff") || has_any(&RUFF)? {
        found.push(check("lint", "pytest", &[launcher, &["ruff", "check", "."]].concat()));
    }
    if has_section("mypy") || has_any(&MYPY)? {
        found.push(check("types", "pytest", &[launcher, &["mypy", "."]].concat()));
    }
    Ok(())
}

fn of_tools(
    project: &TestedProject,
    scene: SurveyScene<'_>,
    found: &mut Vec<FoundCheck>,
) -> Result<(), NoTests> {
    if project.has(".pre-commit-config.yaml")? {
        // prek reads the same configuration and is faster, so it is preferred.
        let names = ["pre-commit", "prek"];
        let is_installed = |name: &&str| is_there(name, scene.ground.root, scene.ground.path);
        let program = names.into_iter().rev().find(is_installed).unwrap_or(names[0]);
        found.push(check("pre-commit", "pre-commit", &[program, "run", "--all-files"]));
    }
    if found.is_empty() && recipes::has_make(project, "lint")? {
        found.push(check("lint", "make", &["make", "lint"]));
    } else if found.is_empty() && recipes::has_just(project, "lint")? {
        found.push(check("lint", "just", &["just", "lint"]));
    }
    Ok(())
}

fn check(name: &'static str, runner: &'static str, argv: &[&str]) -> FoundCheck {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    FoundCheck { name, runner, argv, script: None }
}

/// Returns the program and the command line that run tests.
///
/// If the usual program is missing, an equivalent one is used where there is one.
pub(super) fn instead(
    project: &TestedProject,
    test: &TestCommand,
    ground: SurveyGround<'_>,
) -> (String, String) {
    let words = |words: &[&str]| (words[0].to_owned(), words.join(" "));
    let usual = || (test.program.clone(), test.line());
    if test.runner != "pytest" || test.program_found {
        return usual();
    }
    for own in [".venv/bin/pytest", "venv/bin/pytest"] {
        if is_there(own, ground.root, ground.path) {
            return words(&[own]);
        }
    }
    if !is_there("python3", ground.root, ground.path) {
        return usual();
    }
    // If a file cannot be read, pytest stays the command.
    match python::unittest_directory(project) {
        Ok(Some(directory)) => ("python3".to_owned(), python::unittest_line(directory)),
        Ok(None) | Err(_) => usual(),
    }
}

/// Returns the variables that the tools of a runner read. A hook gets them only if it declares
/// them.
pub(super) fn variables(runner: &str) -> &'static [&'static str] {
    match runner {
        "cargo" => &["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR"],
        "go" => &["GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY"],
        "npm" | "pnpm" | "yarn" | "bun" => &["NODE_OPTIONS", "COREPACK_HOME", "PNPM_HOME"],
        "pytest" | "tox" | "nox" | "pre-commit" => {
            &["VIRTUAL_ENV", "PYENV_ROOT", "PYENV_VERSION", "UV_CACHE_DIR"]
        }
        "django" => &["VIRTUAL_ENV", "PYENV_ROOT", "PYENV_VERSION", "DJANGO_SETTINGS_MODULE"],
        "cmake" => &["CC", "CXX", "CMAKE_GENERATOR", "CMAKE_PREFIX_PATH", "VCPKG_ROOT"],
        "maven" | "gradle" | "sbt" => &["JAVA_HOME", "GRADLE_USER_HOME", "MAVEN_OPTS"],
        "dotnet" => &["DOTNET_ROOT", "DOTNET_CLI_HOME", "NUGET_PACKAGES"],
        "rspec" => &["GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "RBENV_VERSION"],
        "mix" => &["MIX_HOME", "HEX_HOME"],
        _ => &[],
    }
}

/// Returns the file by which people know a runner.
pub(super) fn file_of(runner: &str) -> &'static str {
    match runner {
        "cargo" => "Cargo.toml",
        "go" => "go.mod",
        "npm" | "pnpm" | "yarn" | "bun" => "package.json",
        "pytest" => "Python's tests and settings",
        "django" => "manage.py",
        "tox" => "tox's settings",
        "nox" => "noxfile.py",
        "cmake" => "CMakeLists.txt",
        "pre-commit" => ".pre-commit-config.yaml",
        "maven" => "pom.xml",
        "gradle" => "Gradle's files",
        "sbt" => "build.sbt",
        "dotnet" => ".NET's projects",
        "rspec" => "Ruby's files",
        "mix" => "mix.exs",
        "swift" => "Package.swift",
        "deno" => "deno.json",
        "stack" => "stack.yaml",
        "phpunit" => "phpunit.xml",
        "make" => "Makefile",
        "just" => "justfile",
        _ => "the repository's files",
    }
}
