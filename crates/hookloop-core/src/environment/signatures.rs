//! Messages of tools whose environment is not prepared, by ecosystem, with the command that prepares it.

use super::{EnvironmentFacts, EnvironmentGap, WhyRefused};

/// A line of a tool that can only mean that its environment is not prepared.
struct Signature {
    /// Parts that the line has, in this order.
    parts: &'static [&'static str],
    cause: &'static str,
    setup: Option<&'static str>,
}

const fn signature(
    parts: &'static [&'static str],
    cause: &'static str,
    setup: Option<&'static str>,
) -> Signature {
    Signature { parts, cause, setup }
}

/// Lines that need no knowledge of the project.
const SIGNATURES: &[Signature] = &[
    // Rust
    signature(
        &["rustup could not choose a version of"],
        "rustup has no default toolchain",
        Some("rustup default stable"),
    ),
    signature(
        &["no override and no default toolchain set"],
        "rustup has no default toolchain",
        Some("rustup default stable"),
    ),
    signature(
        &["error: toolchain '", "' is not installed"],
        "the Rust toolchain of this project is not installed",
        Some("rustup toolchain install"),
    ),
    signature(
        &["'cargo-clippy", "' is not installed for the toolchain"],
        "clippy is not installed",
        Some("rustup component add clippy"),
    ),
    signature(
        &["'cargo-fmt", "' is not installed for the toolchain"],
        "rustfmt is not installed",
        Some("rustup component add rustfmt"),
    ),
    signature(
        &["error: no such command: `nextest`"],
        "cargo-nextest is not installed",
        Some("cargo install cargo-nextest --locked"),
    ),
    signature(
        &["error: linker `", "` not found"],
        "Rust's linker is not installed: install a C compiler",
        None,
    ),
    signature(
        &["cannot be built because it requires rustc"],
        "the Rust toolchain is too old for this project",
        Some("rustup update"),
    ),
    signature(
        &["error: failed to download from `"],
        "crates could not be downloaded",
        Some("cargo fetch"),
    ),
    signature(
        &["Could not resolve host", "crates.io"],
        "crates could not be downloaded",
        Some("cargo fetch"),
    ),
    signature(
        &["you may want to run without the --offline flag"],
        "crates are not downloaded",
        Some("cargo fetch"),
    ),
    // Go
    signature(
        &["dial tcp", "lookup proxy.golang.org"],
        "Go modules could not be downloaded",
        Some("go mod download"),
    ),
    signature(
        &["module lookup disabled by GOPROXY=off"],
        "Go modules are not downloaded",
        Some("go mod download"),
    ),
    signature(
        &["go.mod requires go >= ", "(running go "],
        "the installed Go is too old for this project: install a newer one",
        None,
    ),
    signature(
        &["cgo: C compiler \"", "\" not found"],
        "Go needs a C compiler, and none is installed",
        None,
    ),
    // Python
    signature(
        &["could not find python interpreter matching"],
        "a Python version of tox's env_list is not installed: install it, or name another one",
        None,
    ),
    signature(
        &["failed: Python interpreter ", " not found"],
        "a Python version of the noxfile is not installed: install it, or name another one",
        None,
    ),
    // Node
    signature(
        &["node_modules missing, did you mean to install"],
        "the packages of package.json are not installed",
        Some("pnpm install"),
    ),
    signature(
        &["doesn't seem to have been installed - running an install there might help"],
        "the packages of package.json are not installed",
        Some("yarn install"),
    ),
    // Ruby
    signature(
        &["Could not find gem '"],
        "the gems of the Gemfile are not installed",
        Some("bundle install"),
    ),
    signature(
        &["Install missing gems with `bundle install`"],
        "the gems of the Gemfile are not installed",
        Some("bundle install"),
    ),
    signature(
        &["Run `bundle install` to install missing gems"],
        "the gems of the Gemfile are not installed",
        Some("bundle install"),
    ),
    signature(
        &["bundler: command not found: "],
        "a gem that the gate runs is not installed",
        Some("bundle install"),
    ),
    // Java
    signature(&["JAVA_HOME is not set"], "no JDK was found: install one and set JAVA_HOME", None),
    signature(
        &["JAVA_HOME", "is not defined correctly"],
        "no JDK was found: install one and set JAVA_HOME",
        None,
    ),
    signature(
        &["No compiler is provided in this environment"],
        "Java is installed without its compiler: install a JDK",
        None,
    ),
    signature(
        &["org.gradle.wrapper.GradleWrapperMain"],
        "the jar of the Gradle wrapper is missing",
        Some("gradle wrapper"),
    ),
    signature(
        &["Could not transfer artifact "],
        "the dependencies of pom.xml could not be downloaded",
        Some("mvn dependency:go-offline"),
    ),
    // PHP
    signature(
        &["vendor/autoload.php", "No such file or directory"],
        "the packages of composer.json are not installed",
        Some("composer install"),
    ),
    signature(
        &["You need to set up the project dependencies using Composer"],
        "the packages of composer.json are not installed",
        Some("composer install"),
    ),
    // .NET
    signature(&["No .NET SDKs were found"], "no .NET SDK is installed", None),
    signature(
        &["A compatible .NET SDK was not found"],
        "the .NET SDK that global.json names is not installed",
        None,
    ),
    signature(
        &["You must install or update .NET to run this application"],
        "the .NET runtime of this project is not installed",
        None,
    ),
    signature(&["error NU1301"], "NuGet packages could not be downloaded", Some("dotnet restore")),
    signature(
        &["project.assets.json' not found"],
        "NuGet packages are not restored",
        Some("dotnet restore"),
    ),
    // Elixir
    signature(
        &["the dependency is not available, run \"mix deps.get\""],
        "the dependencies of mix.exs are not installed",
        Some("mix deps.get"),
    ),
    signature(&["Could not find Hex"], "Hex is not installed", Some("mix local.hex --force")),
    // CMake
    signature(
        &["No test configuration file found!"],
        "the CMake project is not configured",
        Some("cmake -S . -B build"),
    ),
    signature(
        &["No CMAKE_", "_COMPILER could be found"],
        "the compiler of the CMake project is not installed",
        None,
    ),
    signature(
        &["Error: could not load cache"],
        "the CMake project is not configured",
        Some("cmake -S . -B build"),
    ),
];

/// Programs and the command that installs each, where one command is usual.
const PROGRAMS: [(&str, &str); 22] = [
    ("pytest", "pip install pytest"),
    ("ruff", "pip install ruff"),
    ("mypy", "pip install mypy"),
    ("tox", "pip install tox"),
    ("nox", "pip install nox"),
    ("pre-commit", "pip install pre-commit"),
    ("uv", "pip install uv"),
    ("poetry", "pip install poetry"),
    ("pdm", "pip install pdm"),
    ("pipenv", "pip install pipenv"),
    ("pnpm", "npm install -g pnpm"),
    ("yarn", "npm install -g yarn"),
    ("bun", "npm install -g bun"),
    ("rspec", "bundle install"),
    ("rubocop", "bundle install"),
    ("bundle", "gem install bundler"),
    ("phpunit", "composer install"),
    ("cargo-nextest", "cargo install cargo-nextest --locked"),
    ("cargo-clippy", "rustup component add clippy"),
    ("just", "cargo install just"),
    ("cmake", "pip install cmake"),
    ("ctest", "pip install cmake"),
];
/// Python modules that are run by name and installed by the same name.
const PYTHON_TOOLS: [&str; 7] = ["pytest", "tox", "nox", "ruff", "mypy", "coverage", "django"];
/// Import names that differ from the name of their distribution.
const IMPORT_NAMES: [(&str, &str); 6] = [
    ("yaml", "pyyaml"),
    ("PIL", "pillow"),
    ("bs4", "beautifulsoup4"),
    ("dateutil", "python-dateutil"),
    ("sklearn", "scikit-learn"),
    ("attr", "attrs"),
];

/// Returns the command that installs a program, in a project of these facts.
pub(super) fn setup_of(program: &str, facts: &EnvironmentFacts) -> Option<String> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let known = PROGRAMS.iter().find(|(known, _)| *known == name);
    // Programs of packages that the project declares come with them.
    let is_declared = facts.node_dependencies.iter().any(|package| package == name);
    let in_modules = program.contains("node_modules/");
    if is_declared || in_modules {
        return facts.node_setup.clone();
    }
    let is_required =
        facts.python_dependencies.iter().any(|package| is_same_package(package, name));
    let required = is_required.then(|| python_setup(name, facts)).flatten();
    required.or_else(|| known.map(|(_, setup)| (*setup).to_owned()))
}

/// Returns the command that installs a Python distribution that the project declares.
fn python_setup(distribution: &str, facts: &EnvironmentFacts) -> Option<String> {
    let own = facts.python_setups.iter().find(|(known, _)| is_same_package(known, distribution));
    own.map(|(_, setup)| setup.clone()).or_else(|| facts.python_setup.clone())
}

/// Returns the gap that a line of output reports.
pub(super) fn read(line: &str, facts: &EnvironmentFacts) -> Option<EnvironmentGap> {
    let known = SIGNATURES.iter().find(|signature| has_parts(line, signature.parts));
    if let Some(Signature { cause, setup, .. }) = known {
        return Some(EnvironmentGap::new(*cause, *setup));
    }
    python(line, facts).or_else(|| node(line, facts))
}

fn has_parts(line: &str, parts: &[&str]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

fn python(line: &str, facts: &EnvironmentFacts) -> Option<EnvironmentGap> {
    let install = || facts.python_setup.clone();
    if let Some((_, name)) = line.split_once("No package metadata was found for ") {
        let cause = format!("the package `{}` is not installed", name.trim());
        return Some(EnvironmentGap { cause, setup: install() });
    }
    if line.contains("does not provide the extra")
        || line.contains("No virtualenv has been created")
    {
        return Some(EnvironmentGap {
            cause: "the project is not installed".to_owned(),
            setup: install(),
        });
    }
    let (_, name) = line.split_once("No module named ")?;
    let name = name.trim_matches(['\'', '"', ' ', '.']);
    // A missing part of an installed package is a file that does not exist yet.
    let is_whole =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    if !is_whole {
        return None;
    }
    if facts.python_packages.iter().any(|package| package == name) {
        let cause = format!("the project's own package `{name}` can't be imported");
        return Some(EnvironmentGap { cause, setup: install() });
    }
    let distribution = IMPORT_NAMES.iter().find(|(import, _)| *import == name);
    let distribution = distribution.map_or(name, |(_, distribution)| *distribution);
    if facts.python_dependencies.iter().any(|known| is_same_package(known, distribution)) {
        let cause = format!("the dependency `{name}` is not installed");
        return Some(EnvironmentGap { cause, setup: python_setup(distribution, facts) });
    }
    PYTHON_TOOLS.contains(&name).then(|| EnvironmentGap {
        cause: format!("`{name}` is not installed"),
        setup: Some(format!("pip install {name}")),
    })
}

/// Whether two names are of one Python distribution: case, `-`, `_` and `.` make no difference.
fn is_same_package(one: &str, other: &str) -> bool {
    let normalised = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    normalised(one) == normalised(other)
}

fn node(line: &str, facts: &EnvironmentFacts) -> Option<EnvironmentGap> {
    const STARTS: [&str; 4] = [
        "Cannot find module '",
        "Cannot find package '",
        "Failed to resolve import \"",
        "Failed to load url ",
    ];
    let rest = STARTS.iter().find_map(|start| Some(line.split_once(start)?.1));
    let name = rest.and_then(|rest| rest.split(['\'', '"', ' ']).next());
    let package = name.and_then(package_of);
    let is_declared = |package: &&str| facts.node_dependencies.iter().any(|known| known == package);
    if let Some(package) = package.filter(is_declared) {
        let cause = format!("the dependency `{package}` is not installed");
        return Some(EnvironmentGap { cause, setup: facts.node_setup.clone() });
    }
    // Runners of a workspace end with an exit code and lines of their own.
    if let Some((program, WhyRefused::NotFound)) = super::refused_program(line)
        && is_declared(&program)
    {
        let cause = format!("`{program}` was not found");
        return Some(EnvironmentGap { cause, setup: facts.node_setup.clone() });
    }
    let is_spawned = line.contains("spawn ENOENT") && !facts.node_dependencies.is_empty();
    is_spawned.then(|| EnvironmentGap {
        cause: "the packages of package.json are not installed".to_owned(),
        setup: facts.node_setup.clone(),
    })
}

/// Returns the package of an imported name: `@a/b` for `@a/b/c`, and none for a path.
fn package_of(name: &str) -> Option<&str> {
    // Node names the file where it looked: `/p/node_modules/vitest/vitest.mjs`.
    let name = name.rsplit_once("node_modules/").map_or(name, |(_, behind)| behind);
    if name.starts_with(['.', '/']) || name.is_empty() {
        return None;
    }
    let parts = if name.starts_with('@') { 2 } else { 1 };
    let end = name.match_indices('/').nth(parts - 1).map_or(name.len(), |(at, _)| at);
    Some(&name[..end])
}
