//! Runners that one file identifies.

use super::NoTests;
use super::reading::TestedProject;

type DetectedCommand = (&'static str, Vec<&'static str>);

/// Files in a project's directory, each with its runner and command.
const BY_FILE: [(&str, &str, &[&str]); 8] = [
    ("mix.exs", "mix", &["mix", "test"]),
    ("Package.swift", "swift", &["swift", "test"]),
    ("build.sbt", "sbt", &["sbt", "test"]),
    ("deno.json", "deno", &["deno", "test"]),
    ("deno.jsonc", "deno", &["deno", "test"]),
    ("stack.yaml", "stack", &["stack", "test"]),
    (".rspec", "rspec", &["bundle", "exec", "rspec"]),
    ("phpunit.xml", "phpunit", &["vendor/bin/phpunit"]),
];
/// Suffixes of .NET files that can be tested.
const DOTNET: [&str; 5] = [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"];
const GRADLE: [&str; 4] =
    ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];

/// CMake commands that declare tests. CTest needs one of them in the top directory.
const CMAKE_TESTS: [&str; 2] = ["enable_testing", "include(ctest)"];
/// Configures, builds and tests.
///
/// Configuring again is quick and keeps the settings of a build directory. Without the build, CTest
/// would test programs of an earlier state of the files.
const CMAKE: &str = "cmake -S . -B build && cmake --build build && \
    ctest --test-dir build --output-on-failure --no-tests=error";

/// Returns the CMake command line, if the project declares tests.
fn cmake(project: &TestedProject) -> Result<Option<&'static str>, NoTests> {
    let text = project.read("CMakeLists.txt")?.unwrap_or_default();
    let is_declared = text.lines().any(|line| {
        let line: String = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let line = line.to_ascii_lowercase();
        CMAKE_TESTS.iter().any(|command| line.contains(command))
    });
    Ok(is_declared.then_some(CMAKE))
}

pub(super) fn tests(project: &TestedProject) -> Result<Vec<DetectedCommand>, NoTests> {
    let mut found: Vec<DetectedCommand> = Vec::new();
    for (file, runner, argv) in BY_FILE {
        if project.has(file)? && found.iter().all(|(known, _)| *known != runner) {
            found.push((runner, argv.to_vec()));
        }
    }
    // A project's wrapper selects the version that the project needs.
    if project.has("pom.xml")? {
        let program = if project.has("mvnw")? { "./mvnw" } else { "mvn" };
        found.push(("maven", vec![program, "--batch-mode", "test"]));
    }
    for file in GRADLE {
        if project.has(file)? {
            let program = if project.has("gradlew")? { "./gradlew" } else { "gradle" };
            found.push(("gradle", vec![program, "test"]));
            break;
        }
    }
    if let Some(line) = cmake(project)? {
        found.push(("cmake", vec!["sh", "-c", line]));
    }
    let is_dotnet = |name: &String| DOTNET.iter().any(|end| name.ends_with(end));
    if project.names()?.iter().any(is_dotnet) {
        found.push(("dotnet", vec!["dotnet", "test"]));
    }
    Ok(found)
}
