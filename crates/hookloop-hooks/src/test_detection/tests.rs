use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

/// File names and contents.
type Files<'a> = &'a [(&'a str, &'a str)];

/// A project with these files, and stub programs in its `PATH`.
struct Ground {
    home: TempDir,
}

impl Ground {
    fn new(files: Files<'_>, programs: &[&str]) -> Ground {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join("project").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(home.path().join("project")).unwrap();
        fs::create_dir(home.path().join("bin")).unwrap();
        for program in programs {
            let path = home.path().join("bin").join(program);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Ground { home }
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("project")
    }

    fn detect(&self) -> Result<Vec<TestCommand>, NoTests> {
        detect(&self.root(), self.home.path().join("bin").as_os_str())
    }

    fn runnable(&self) -> Result<Vec<TestCommand>, NoTests> {
        runnable(&self.root(), self.home.path().join("bin").as_os_str())
    }
}

fn lines(files: Files<'_>) -> Vec<String> {
    match Ground::new(files, &[]).detect() {
        Ok(found) => found.iter().map(|command| command.argv.join(" ")).collect(),
        Err(NoTests::NoneFound { .. }) => Vec::new(),
        Err(error) => panic!("{files:?}: {error}"),
    }
}

const MANAGE: &str =
    "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site.settings')\n";
const SCRIPT: &str = r#"{"scripts": {"test": "vitest run"}}"#;

#[test]
fn each_test_runner_is_detected_by_its_files() {
    let rows: &[(Files<'_>, &[&str])] = &[
        (&[("Cargo.toml", "")], &["cargo test --workspace"]),
        (&[("go.mod", "module m")], &["go test ./..."]),
        (&[("package.json", SCRIPT)], &["npm test"]),
        (&[("package.json", SCRIPT), ("package-lock.json", "")], &["npm test"]),
        (&[("package.json", SCRIPT), ("pnpm-lock.yaml", "")], &["pnpm test"]),
        (&[("package.json", SCRIPT), ("yarn.lock", "")], &["yarn test"]),
        (&[("package.json", SCRIPT), ("bun.lock", "")], &["bun run test"]),
        (&[("package.json", SCRIPT), ("bun.lockb", "")], &["bun run test"]),
        (&[("package.json", SCRIPT), ("package-lock.json", ""), ("yarn.lock", "")], &["yarn test"]),
        (
            &[
                ("package.json", r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}"#),
                ("package-lock.json", ""),
            ],
            &["pnpm test"],
        ),
        (&[("package.json", "\u{feff}{\"scripts\": {\"test\": \"x\"}}")], &["npm test"]),
        (&[("pytest.ini", "")], &["pytest"]),
        (&[("pyproject.toml", "[tool.pytest.ini_options]\n")], &["pytest"]),
        (&[("tox.ini", "[tox]\n[pytest]\n")], &["pytest"]),
        (&[("setup.cfg", "[tool:pytest]\n")], &["pytest"]),
        (&[("tests/unit/test_a.py", "")], &["pytest"]),
        (&[("test/a_test.py", "")], &["pytest"]),
        (&[("test_a.py", "")], &["pytest"]),
        (&[("pytest.ini", ""), ("uv.lock", "")], &["uv run pytest"]),
        (&[("pytest.ini", ""), ("poetry.lock", "")], &["poetry run pytest"]),
        (&[("tox.ini", "[tox]\nenv_list = py3\n")], &["tox"]),
        (&[("tox.ini", "[testenv]\n"), ("tests/test_a.py", "")], &["tox"]),
        (&[("tox.toml", "env_list = []\n")], &["tox"]),
        (&[("pyproject.toml", "[tool.tox]\n")], &["tox"]),
        (&[("setup.cfg", "[tox:tox]\n")], &["tox"]),
        (&[("noxfile.py", ""), ("tests/test_a.py", "")], &["nox"]),
        (&[("noxfile.py", ""), ("tests/test_a.py", ""), ("uv.lock", "")], &["uv run pytest"]),
        (&[("manage.py", MANAGE)], &["python3 -m manage test"]),
        (&[("manage.py", MANAGE), ("uv.lock", "")], &["uv run python -m manage test"]),
        (&[("manage.py", MANAGE), (".venv/bin/python", "")], &[".venv/bin/python -m manage test"]),
        (&[("manage.py", MANAGE), ("pytest.ini", "")], &["pytest"]),
        (
            &[("CMakeLists.txt", "project(p)\nenable_testing ()\n")],
            &[
                "sh -c cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure \
               --no-tests=error",
            ],
        ),
        (
            &[
                ("package.json", r#"{"workspaces": ["packages/*"]}"#),
                ("packages/a/package.json", SCRIPT),
            ],
            &["npm test --workspaces --if-present"],
        ),
        (&[("mix.exs", "")], &["mix test"]),
        (&[("Package.swift", "")], &["swift test"]),
        (&[("deno.json", ""), ("deno.jsonc", "")], &["deno test"]),
        (&[("pom.xml", "")], &["mvn --batch-mode test"]),
        (&[("pom.xml", ""), ("mvnw", "")], &["./mvnw --batch-mode test"]),
        (&[("build.gradle.kts", ""), ("settings.gradle.kts", "")], &["gradle test"]),
        (&[("settings.gradle", ""), ("gradlew", "")], &["./gradlew test"]),
        (&[("All.sln", "")], &["dotnet test"]),
        (&[("a.csproj", ""), ("b.csproj", "")], &["dotnet test"]),
        (&[(".rspec", ""), ("Gemfile", "")], &["bundle exec rspec"]),
        (&[("phpunit.xml", "")], &["vendor/bin/phpunit"]),
        (&[("Makefile", "all:\n\ttrue\ntest: all\n\ttrue\n")], &["make test"]),
        (&[("Makefile", "check test:\n")], &["make test"]),
        (&[("makefile", "test::\n")], &["make test"]),
        (&[("GNUmakefile", "all:\n"), ("Makefile", "test:\n")], &[]),
        (&[("justfile", "test:\n  true\n")], &["just test"]),
        (&[("Justfile", "@test name='x': build\n")], &["just test"]),
        (&[(".justfile", "alias test := t\nt:\n")], &["just test"]),
        (&[("Makefile", "test:\n"), ("justfile", "test:\n")], &["make test"]),
    ];
    for (files, expected) in rows {
        assert_eq!(lines(files), *expected, "{files:?}");
    }
}

#[test]
fn projects_without_tests_are_not_detected() {
    let rows: &[Files<'_>] = &[
        &[],
        &[("package.json", "{}")],
        &[("package.json", r#"{"scripts": {}}"#)],
        &[(
            "package.json",
            r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
        )],
        &[("package.json", r#"{"scripts": {"test": "  "}}"#)],
        &[("package.json", r#"{"scripts": {"test": "exit 0"}}"#)],
        &[("package.json", r#"{"scripts": {"test": 1, "tests": "x"}}"#)],
        &[("pyproject.toml", "[project]\n")],
        &[("tests/helper.py", ""), ("tests/test_a.txt", "")],
        &[("tox.ini", "[flake8]\n")],
        &[("manage.py", "print('not Django')\n")],
        &[("CMakeLists.txt", "project(p)\n# enable_testing()\n")],
        &[("package.json", r#"{"workspaces": ["packages/*"]}"#), ("packages/a/package.json", "{}")],
        &[("Makefile", "test := 1\n")],
        &[("Makefile", "test ::= 1\n")],
        &[("Makefile", "x = a test: b\n")],
        &[("Makefile", ".PHONY: test\n")],
        &[("Makefile", "all:\n\ttest: x\n")],
        &[("Makefile", "# test: x\ntests:\ntest-all:\n")],
        &[("justfile", "test := 'x'\n")],
        &[("justfile", "tests:\n  test: x\n# test:\n")],
        &[("sub/Cargo.toml", "")],
        // Directories are not files.
        &[("Cargo.toml/x", ""), ("go.mod/x", "")],
    ];
    for files in rows {
        let ground = Ground::new(files, &["make", "npm", "just", "pytest"]);
        let found = ground.detect();
        assert!(matches!(found, Err(NoTests::NoneFound { .. })), "{files:?}: {found:?}");
        assert!(found.unwrap_err().to_string().contains("`command: …`"));
    }
}

#[test]
fn all_languages_are_detected_and_recipes_only_without_a_language() {
    let files = [
        ("Cargo.toml", ""),
        ("package.json", SCRIPT),
        ("tests/test_a.py", ""),
        ("go.mod", ""),
        ("Makefile", "test:\n"),
        ("justfile", "test:\n"),
    ];
    let expected = ["cargo test --workspace", "npm test", "pytest", "go test ./..."];
    assert_eq!(lines(&files), expected);
}

#[test]
fn a_program_that_is_missing_is_named() {
    let files = [("Cargo.toml", ""), ("go.mod", "")];
    let ground = Ground::new(&files, &["cargo"]);
    let found: Vec<bool> = ground.detect().unwrap().iter().map(|c| c.program_found).collect();
    assert_eq!(found, [true, false]);
    let missing = NoTests::NoProgram { runner: "go", program: "go".into() };
    assert_eq!(ground.runnable(), Err(missing));
    assert_eq!(Ground::new(&files, &["cargo", "go"]).runnable().unwrap().len(), 2);
    // A program in the project counts as installed, regardless of `PATH`.
    let brought = Ground::new(&[("build.gradle", ""), ("gradlew", "")], &[]);
    assert!(brought.detect().unwrap()[0].program_found);
}

#[test]
fn tox_and_nox_are_taken_unless_pytest_alone_can_be_started() {
    let line = |files: Files<'_>, programs: &[&str]| {
        Ground::new(files, programs).detect().unwrap()[0].argv.join(" ")
    };
    let by_name: Files<'_> = &[("tox.ini", "[tox]\n"), ("tests/test_a.py", "")];
    assert_eq!(line(by_name, &["tox", "pytest"]), "tox");
    assert_eq!(line(by_name, &["pytest"]), "pytest");
    let with_settings: Files<'_> = &[("noxfile.py", ""), ("pytest.ini", "")];
    assert_eq!(line(with_settings, &["nox", "pytest"]), "pytest");
    assert_eq!(line(with_settings, &["nox"]), "nox");
}

#[test]
fn workspace_scripts_run_by_one_command_if_the_package_manager_has_one() {
    let lines = |root: &str, more: Files<'_>| {
        let files = [("package.json", root), ("packages/a/package.json", SCRIPT)];
        let files: Vec<_> = files.iter().chain(more).copied().collect();
        lines(&files)
    };
    let members = r#""workspaces": ["packages/*"]"#;
    let alone = format!("{{{members}}}");
    let pnpm: Files<'_> = &[("pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n")];
    assert_eq!(lines("{}", pnpm), ["pnpm -r test"]);
    assert_eq!(lines(&alone, &[("package-lock.json", "")]), ["npm test --workspaces --if-present"]);
    assert_eq!(lines(&alone, &[("yarn.lock", "")]), [""; 0], "Yarn 1 has no such command");
    let berry = format!(r#"{{"packageManager": "yarn@4.5.0", {members}}}"#);
    assert_eq!(lines(&berry, &[]), ["yarn workspaces foreach --all run test"]);
    let own = |script: &str| format!(r#"{{"scripts": {{"test": "{script}"}}, {members}}}"#);
    assert_eq!(
        lines(&own("node root.js"), &[]),
        ["npm test --workspaces --if-present --include-workspace-root"]
    );
    assert_eq!(lines(&own("turbo run test"), &[]), ["npm test"]);
    assert_eq!(lines(SCRIPT, pnpm), ["pnpm -r --include-workspace-root test"]);
    let nested = r#"{"workspaces": {"packages": ["packages/*"], "nohoist": []}}"#;
    assert_eq!(lines(nested, &[]), ["npm test --workspaces --if-present"]);
}

#[test]
fn an_unreadable_project_file_is_an_error() {
    let long = " ".repeat(5 * 1024 * 1024);
    for files in [
        [("package.json", "{")],
        [("package.json", "[]")],
        [("package.json", r#"{"packageManager": "evil@1", "scripts": {"test": "x"}}"#)],
        [("package.json", long.as_str())],
    ] {
        let found = Ground::new(&files, &[]).detect();
        assert!(matches!(found, Err(NoTests::Unreadable { .. })), "{found:?}");
    }
}

#[test]
fn links_are_followed_inside_of_the_project_only() {
    let ground = Ground::new(&[("build/Cargo.toml", "")], &[]);
    symlink("build/Cargo.toml", ground.root().join("Cargo.toml")).unwrap();
    assert_eq!(ground.detect().unwrap()[0].runner, "cargo");

    let ground = Ground::new(&[("go.mod", "")], &[]);
    fs::write(ground.home.path().join("package.json"), SCRIPT).unwrap();
    symlink("../package.json", ground.root().join("package.json")).unwrap();
    assert!(matches!(ground.detect(), Err(NoTests::Unreadable { .. })));

    let ground = Ground::new(&[("go.mod", "")], &[]);
    symlink("nowhere", ground.root().join("Cargo.toml")).unwrap();
    assert!(matches!(ground.detect(), Err(NoTests::Unreadable { .. })));

    let ground = Ground::new(&[], &[]);
    fs::create_dir(ground.home.path().join("outside")).unwrap();
    fs::write(ground.home.path().join("outside/test_a.py"), "").unwrap();
    symlink("../outside", ground.root().join("tests")).unwrap();
    assert!(matches!(ground.detect(), Err(NoTests::NoneFound { .. })));
}
