use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

/// Surveys a repository with these files and installed programs.
fn look(files: &[(&str, &str)], programs: &[&str], variables: &[&str]) -> (TempDir, ProjectSurvey) {
    let home = tempfile::tempdir().unwrap();
    let (root, bin) = (home.path().join("project"), home.path().join("bin"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(&bin).unwrap();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for program in programs {
        let path = bin.join(program);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let variables = variables.iter().map(|name| (*name).to_owned()).collect();
    let found = survey(SurveyGround { root: &root, path: bin.as_os_str(), variables: &variables });
    (home, found)
}

fn gates(files: &[(&str, &str)], programs: &[&str]) -> Vec<(String, String)> {
    let (_home, found) = look(files, programs, &[]);
    assert_eq!(found.troubles, [""; 0], "{files:?}");
    found.gates.into_iter().map(|gate| (gate.name, gate.command)).collect()
}

#[test]
fn each_language_has_its_gates() {
    let check = |files: &[(&str, &str)], expected: &[(&str, &str)]| {
        let expected: Vec<_> =
            expected.iter().map(|(name, line)| ((*name).to_owned(), (*line).to_owned())).collect();
        assert_eq!(gates(files, &["pytest"]), expected, "{files:?}");
    };
    check(&[], &[]);
    check(
        &[("Cargo.toml", "")],
        &[
            ("tests", "cargo test --workspace"),
            ("format", "cargo fmt --all --check"),
            ("lint", "cargo clippy --workspace --all-targets -- -D warnings"),
        ],
    );
    check(
        &[
            (
                "package.json",
                r#"{"scripts": {"test": "vitest", "lint": "eslint .", "typecheck": "tsc"}}"#,
            ),
            ("pnpm-lock.yaml", ""),
        ],
        &[("tests", "pnpm test"), ("lint", "pnpm run lint"), ("types", "pnpm run typecheck")],
    );
    check(
        &[("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n")],
        &[("tests", "pytest"), ("lint", "ruff check ."), ("types", "mypy .")],
    );
    check(&[("go.mod", "")], &[("tests", "go test ./..."), ("lint", "go vet ./...")]);
    check(&[("Makefile", "test:\nlint:\n")], &[("tests", "make test"), ("lint", "make lint")]);
    check(&[(".pre-commit-config.yaml", "")], &[("pre-commit", "pre-commit run --all-files")]);
}

#[test]
fn gates_of_two_languages_have_distinct_names() {
    let files = [("Cargo.toml", ""), ("go.mod", "")];
    let names: Vec<String> = gates(&files, &[]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["tests-cargo", "tests-go", "format", "lint", "lint-go"]);
}

const UNITTEST: &str =
    "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self): pass\n";
const FUNCTION: &str = "def test_a():\n    assert True\n";

#[test]
fn a_missing_program_is_replaced_by_an_equivalent_or_reported() {
    let tests = [("tests/test_a.py", UNITTEST)];
    let missing = |programs: &[&str]| {
        let (_home, found) = look(&tests, programs, &[]);
        (found.gates[0].command.clone(), found.gates[0].missing.clone().map(|missing| missing.name))
    };
    assert_eq!(missing(&["pytest"]), ("pytest".to_owned(), None));
    let (library, program) = missing(&["python3"]);
    assert!(library.contains("unittest") && library.contains("\"-s\", \"tests\""), "{library}");
    assert_eq!(program, None);
    assert_eq!(missing(&[]), ("pytest".to_owned(), Some("pytest".to_owned())));
    let (_home, found) = look(&[tests[0], (".venv/bin/pytest", "")], &[], &[]);
    assert_eq!(found.gates[0].command, ".venv/bin/pytest");
}

#[test]
fn unittest_replaces_pytest_only_where_it_finds_all_tests() {
    let check = |files: &[(&str, &str)], is_unittest: bool| {
        let (_home, found) = look(files, &["python3"], &[]);
        let gate = &found.gates[0];
        assert_eq!(gate.command.contains("unittest"), is_unittest, "{files:?}: {}", gate.command);
        assert_eq!(gate.missing.is_none(), is_unittest, "{files:?}");
        let trial = trial::GateTrial::of_missing(gate);
        assert_eq!(trial.is_some(), !is_unittest, "{files:?}: {trial:?}");
    };
    let test = ("tests/test_a.py", UNITTEST);
    check(&[test], true);
    check(&[("test_a.py", UNITTEST)], true);
    check(&[test, ("tests/deep/__init__.py", ""), ("tests/deep/test_b.py", UNITTEST)], true);
    // unittest enters only packages, and it starts in one directory.
    check(&[test, ("tests/deep/test_b.py", UNITTEST)], false);
    check(&[test, ("test_b.py", UNITTEST)], false);
    check(&[("tests/a_test.py", UNITTEST)], false);
    check(&[("tests/test_a.py", "")], false);
    let plain_class = "import unittest.mock\nclass TestA:\n    def test_a(self): pass\n";
    for text in [FUNCTION, "async def test_a(): pass\n", "import pytest\n", plain_class] {
        check(&[("tests/test_a.py", text)], false);
        check(&[test, ("tests/test_b.py", text)], false);
        check(&[("test_a.py", text)], false);
    }
    for (file, text) in [
        ("conftest.py", ""),
        ("tests/conftest.py", ""),
        ("pytest.ini", "[pytest]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
        ("setup.py", "setup(tests_require=['pytest'])\n"),
        ("pyproject.toml", PYTEST),
        ("pyproject.toml", "[dependency-groups]\ndev = [\"pytest>=8\"]\n"),
        ("pyproject.toml", "[tool.poetry.group.dev.dependencies]\npytest = \"*\"\n"),
        ("requirements-dev.txt", "pytest\n"),
        ("requirements/test.txt", "pytest-cov\n"),
    ] {
        check(&[test, (file, text)], false);
    }
}

#[test]
fn gates_receive_only_known_variables_that_the_user_has_set() {
    let (_home, found) = look(&[("Cargo.toml", "")], &["cargo"], &["CARGO_HOME", "API_TOKEN"]);
    assert!(found.gates.iter().all(|gate| gate.env == ["CARGO_HOME"]), "{found:?}");
}

#[test]
fn settings_of_other_tools_and_ci_commands_are_found() {
    let files = [
        (".claude/settings.json", r#"{"hooks": {}}"#),
        (".beads/issues.jsonl", ""),
        (".husky/pre-commit", "npm test"),
        (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: make check\n"),
    ];
    let (_home, found) = look(&files, &[], &[]);
    let commands: Vec<_> = found.tools.iter().map(|tool| tool.command.as_deref()).collect();
    let claude = "hookloop import claude .claude/settings.json --write";
    assert_eq!(commands, [Some(claude), Some("hookloop import beads .beads/issues.jsonl"), None]);
    assert_eq!(found.ci[0].command, "make check");
    let (_home, found) = look(&[(".claude/settings.json", r#"{"model": "x"}"#)], &[], &[]);
    assert_eq!(found.tools, []);
}

#[test]
fn an_unreadable_project_file_is_reported_and_other_gates_are_found() {
    let (_home, found) = look(&[("package.json", "{"), ("go.mod", "")], &["go"], &[]);
    assert_eq!(found.troubles.len(), 1, "{found:?}");
    assert!(found.troubles[0].contains("package.json"), "{found:?}");
    assert!(found.gates.iter().any(|gate| gate.command == "go vet ./..."), "{found:?}");
}

/// Returns the name, command and directory of each gate of kind `tests`.
fn tests_of(files: &[(&str, &str)]) -> (Vec<(String, String, String)>, Vec<String>) {
    let (_home, found) = look(files, &["pytest", "python3", "uv", "poetry"], &[]);
    let tests = found.gates.iter().filter(|gate| gate.kind == GateKind::Tests);
    let tests =
        tests.map(|gate| (gate.name.clone(), gate.command.clone(), gate.directory().to_owned()));
    (tests.collect(), found.troubles)
}

#[track_caller]
fn check_tests(files: &[(&str, &str)], expected: &[(&str, &str, &str)]) {
    let (found, troubles) = tests_of(files);
    let found: Vec<_> =
        found.iter().map(|(name, line, at)| (name.as_str(), line.as_str(), at.as_str())).collect();
    assert_eq!(found, expected, "{files:?}");
    assert_eq!(troubles, [""; 0], "{files:?}");
}

const SCRIPT: &str = r#"{"scripts": {"test": "node test.js", "lint": "node lint.js"}}"#;
const PYTEST: &str = "[tool.pytest.ini_options]\n";
const MANAGE: &str = "'DJANGO_SETTINGS_MODULE'";

#[test]
fn members_of_a_cargo_workspace_are_tested_by_its_root() {
    let root = "[workspace]\nmembers = [\"crates/*\"]\nexclude = [\"fuzz\"]\n";
    check_tests(
        &[
            ("Cargo.toml", root),
            (
                "crates/a/Cargo.toml",
                "[package]\nname = \"a\"\n[dependencies]\nb = { path = \"../../more/b\" }\n",
            ),
            ("more/b/Cargo.toml", "[package]\nname = \"b\"\n"),
            ("fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n"),
            ("tool/Cargo.toml", "[package]\nname = \"tool\"\n[workspace]\n"),
        ],
        &[
            ("tests", "cargo test --workspace", "."),
            ("tests-fuzz", "cargo test --workspace", "fuzz"),
            ("tests-tool", "cargo test --workspace", "tool"),
        ],
    );
    // A package without a workspace tests only itself.
    check_tests(
        &[("Cargo.toml", "[package]\n"), ("sub/Cargo.toml", "[package]\n")],
        &[("tests", "cargo test --workspace", "."), ("tests-sub", "cargo test --workspace", "sub")],
    );
    let (found, troubles) = tests_of(&[("Cargo.toml", root), ("lost/Cargo.toml", "[package]\n")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(troubles[0].contains("`lost/Cargo.toml` is neither a member"), "{troubles:?}");
}

#[test]
fn members_of_a_node_workspace_are_tested_by_its_root_and_others_by_themselves() {
    check_tests(
        &[
            ("package.json", "{}"),
            ("pnpm-workspace.yaml", "packages: ['packages/*', '!packages/old']\n"),
            ("packages/a/package.json", SCRIPT),
            ("packages/b/package.json", SCRIPT),
            ("packages/old/package.json", SCRIPT),
            ("site/package.json", SCRIPT),
            ("site/package-lock.json", ""),
        ],
        &[
            ("tests", "pnpm -r test", "."),
            ("tests-packages-old", "npm test", "packages/old"),
            ("tests-site", "npm test", "site"),
        ],
    );
    // Yarn 1 does not run the scripts of members, so each member has a gate, with the root's
    // manager.
    check_tests(
        &[
            ("package.json", r#"{"workspaces": ["packages/*"], "scripts": {"test": "jest"}}"#),
            ("yarn.lock", ""),
            ("packages/a/package.json", SCRIPT),
        ],
        &[("tests", "yarn test", "."), ("tests-packages-a", "yarn test", "packages/a")],
    );
    let files = [
        ("package.json", r#"{"workspaces": ["packages/*"], "scripts": {"test": "turbo test"}}"#),
        ("packages/a/package.json", SCRIPT),
    ];
    check_tests(&files, &[("tests", "npm test", ".")]);
    let (_home, found) = look(&files, &["npm"], &[]);
    let checks: Vec<_> = found.gates.iter().map(|gate| gate.command.as_str()).collect();
    assert_eq!(checks, ["npm test", "npm run lint --workspaces --if-present"]);
}

#[test]
fn each_module_of_go_has_a_gate() {
    check_tests(
        &[
            ("go.work", "go 1.22\nuse (\n\t./api\n\t./lib\n)\n"),
            ("api/go.mod", "module api"),
            ("lib/go.mod", "module lib"),
        ],
        &[("tests-api", "go test ./...", "api"), ("tests-lib", "go test ./...", "lib")],
    );
    check_tests(
        &[("go.mod", "module all"), ("tools/go.mod", "module tools")],
        &[("tests", "go test ./...", "."), ("tests-tools", "go test ./...", "tools")],
    );
    let (found, troubles) = tests_of(&[("go.work", "use ./api\n"), ("other/go.mod", "module o")]);
    assert_eq!(found, []);
    assert!(troubles[0].contains("`other/go.mod` is not listed in `go.work`"), "{troubles:?}");
}

#[test]
fn python_projects_have_a_gate_each_unless_the_root_collects_their_tests() {
    let member = [("packages/a/pyproject.toml", "[project]\n"), ("packages/a/tests/test_a.py", "")];
    let uv = "[tool.uv.workspace]\nmembers = [\"packages/*\"]\n";
    check_tests(
        &[("pyproject.toml", uv), ("uv.lock", ""), member[0], member[1]],
        &[("tests-packages-a", "uv run pytest", "packages/a")],
    );
    let collecting = format!("{uv}{PYTEST}");
    check_tests(
        &[("pyproject.toml", &collecting), ("uv.lock", ""), member[0], member[1]],
        &[("tests", "uv run pytest", ".")],
    );
    let elsewhere = format!("{uv}{PYTEST}testpaths = [\"tests\"]\n");
    check_tests(
        &[("pyproject.toml", &elsewhere), ("uv.lock", ""), member[0], member[1]],
        &[("tests", "uv run pytest", "."), ("tests-packages-a", "uv run pytest", "packages/a")],
    );
    let listed = format!("{PYTEST}testpaths = [\"packages/*/tests\"]\n");
    check_tests(&[("pyproject.toml", &listed), member[0], member[1]], &[("tests", "pytest", ".")]);
    let hatch =
        format!("[tool.hatch.envs.default]\nworkspace.members = [\"packages/*\"]\n{PYTEST}");
    check_tests(&[("pyproject.toml", &hatch), member[0], member[1]], &[("tests", "pytest", ".")]);
    let poetry =
        [("a/pyproject.toml", PYTEST), ("a/poetry.lock", ""), ("b/pyproject.toml", PYTEST)];
    check_tests(&poetry, &[("tests-a", "poetry run pytest", "a"), ("tests-b", "pytest", "b")]);
    // The requirements file of the tests is no project.
    check_tests(
        &[("pyproject.toml", PYTEST), ("tests/requirements.txt", ""), ("tests/test_a.py", "")],
        &[("tests", "pytest", ".")],
    );
}

#[test]
fn modules_of_maven_and_gradle_are_tested_by_their_root() {
    let pom = "<project><modules><module>a</module></modules></project>";
    let nested = "<project><modules><module>deep</module></modules></project>";
    check_tests(
        &[("pom.xml", pom), ("a/pom.xml", nested), ("a/deep/pom.xml", ""), ("b/pom.xml", "")],
        &[("tests", "mvn --batch-mode test", "."), ("tests-b", "mvn --batch-mode test", "b")],
    );
    check_tests(
        &[
            ("settings.gradle", "include 'app'"),
            ("gradlew", ""),
            ("app/build.gradle", ""),
            ("plugin/settings.gradle.kts", ""),
        ],
        &[("tests", "./gradlew test", "."), ("tests-plugin", "gradle test", "plugin")],
    );
}

#[test]
fn two_applications_have_gates_in_their_directories() {
    let files = [
        ("backend/manage.py", MANAGE),
        ("backend/requirements.txt", "django\n"),
        ("frontend/package.json", SCRIPT),
        ("engine/CMakeLists.txt", "enable_testing()\n"),
        ("engine/core/CMakeLists.txt", "enable_testing()\n"),
    ];
    let cmake = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure \
        --no-tests=error";
    check_tests(
        &files,
        &[
            ("tests-backend", "python3 -m manage test", "backend"),
            ("tests-engine", cmake, "engine"),
            ("tests-frontend", "npm test", "frontend"),
        ],
    );
    let (_home, mut found) = look(&files, &["python3", "npm"], &[]);
    assert_eq!(found.directories(), ["backend", "engine", "frontend"]);
    let cmake = found.gates.iter().find(|gate| gate.directory() == "engine").unwrap();
    assert_eq!(cmake.missing.as_ref().unwrap().name, "cmake");
    found.choose(&["frontend".to_owned()]);
    let names: Vec<_> = found.gates.iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(names, ["tests-frontend", "lint-frontend"]);
}

#[test]
fn more_gates_than_the_limit_are_left_out_and_named() {
    let names: Vec<String> = (0..GATES_MAX).map(|number| format!("p{number:02}/go.mod")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let (_home, mut found) = look(&files, &["go"], &[]);
    let all = found.directories();
    found.choose(&all);
    assert_eq!(found.gates.len(), GATES_MAX);
    assert!(found.gates.iter().all(|gate| gate.kind == GateKind::Tests), "checks go first");
    assert!(found.troubles[0].contains("lint-p00"), "{:?}", found.troubles);
    assert!(found.troubles[0].contains("`--only DIR`"), "{:?}", found.troubles);
}

#[test]
fn tests_of_ci_become_gates_in_directories_where_no_runner_is_known() {
    let workflow = "jobs:
  a:
    strategy: {matrix: {os: [one, two]}}
    defaults: {run: {working-directory: scripts}}
    steps:
      - run: ./run-tests --all
      - run: ./lint
      - {run: npm test, working-directory: frontend}
      - {run: npm run test:browser, working-directory: frontend}
";
    let files = [
        (".github/workflows/ci.yml", workflow),
        ("scripts/run-tests", "#!/bin/sh"),
        ("frontend/package.json", SCRIPT),
    ];
    check_tests(
        &files,
        &[
            ("tests-frontend", "npm test", "frontend"),
            ("tests-scripts", "./run-tests --all", "scripts"),
        ],
    );
    let (_home, found) = look(&files, &[], &[]);
    let gate = found.gates.iter().find(|gate| gate.directory() == "scripts").unwrap();
    assert_eq!((gate.from.as_str(), &gate.missing), (".github/workflows/ci.yml", &None));
    let left: Vec<_> =
        found.ci.iter().map(|step| (step.command.as_str(), step.cwd.as_deref())).collect();
    assert_eq!(left, [("./lint", Some("scripts")), ("npm run test:browser", Some("frontend"))]);
}
