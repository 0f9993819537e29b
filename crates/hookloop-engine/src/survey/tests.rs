use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

/// A repository of these files, and programs that are said to be installed.
fn look(files: &[(&str, &str)], programs: &[&str], variables: &[&str]) -> (TempDir, Survey) {
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
    let found = survey(Ground { root: &root, path: bin.as_os_str(), variables: &variables });
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
fn two_languages_have_names_that_tell_them_apart() {
    let files = [("Cargo.toml", ""), ("go.mod", "")];
    let names: Vec<String> = gates(&files, &[]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["tests-cargo", "tests-go", "format", "lint", "lint-go"]);
}

#[test]
fn a_program_that_is_missing_is_named_and_one_that_does_the_same_is_taken() {
    let tests = [("tests/test_a.py", "")];
    let missing = |programs: &[&str]| {
        let (_home, found) = look(&tests, programs, &[]);
        (found.gates[0].command.clone(), found.gates[0].missing.clone().map(|missing| missing.name))
    };
    assert_eq!(missing(&["pytest"]), ("pytest".to_owned(), None));
    let library = "python3 -m unittest discover -s tests".to_owned();
    assert_eq!(missing(&["python3"]), (library, None));
    assert_eq!(missing(&[]), ("pytest".to_owned(), Some("pytest".to_owned())));
    let (_home, found) = look(&[tests[0], (".venv/bin/pytest", "")], &[], &[]);
    assert_eq!(found.gates[0].command, ".venv/bin/pytest");
}

#[test]
fn variables_that_the_user_has_are_let_through_and_no_others() {
    let (_home, found) = look(&[("Cargo.toml", "")], &["cargo"], &["CARGO_HOME", "API_TOKEN"]);
    assert!(found.gates.iter().all(|gate| gate.env == ["CARGO_HOME"]), "{found:?}");
}

#[test]
fn what_other_tools_keep_is_found() {
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
fn what_cannot_be_read_is_told_and_the_rest_is_found() {
    let (_home, found) = look(&[("package.json", "{"), ("go.mod", "")], &["go"], &[]);
    assert_eq!(found.troubles.len(), 1, "{found:?}");
    assert!(found.troubles[0].contains("package.json"), "{found:?}");
    assert!(found.gates.iter().any(|gate| gate.command == "go vet ./..."), "{found:?}");
}
