//! `hookloop init` in repositories with several projects, and with their own test runners.

use serde_json::{Value, json};

use crate::cli::Project;
use crate::setup::init::run;

/// A backend in Python whose test fails until `answer` is 42, and a frontend in JavaScript whose
/// test passes.
const TWO: [(&str, &str); 6] = [
    ("backend/requirements.txt", "\n"),
    (
        "backend/tests/test_answer.py",
        "import unittest\n\nclass Answer(unittest.TestCase):\n    def test_answer(self):\n        self.assertEqual(open('answer').read().strip(), '42')\n",
    ),
    ("backend/answer", "41\n"),
    ("frontend/package.json", r#"{"name": "frontend", "scripts": {"test": "node test.js"}}"#),
    ("frontend/test.js", "require('fs').readFileSync('data.txt');\n"),
    ("frontend/data.txt", "data\n"),
];
const TURNS: &str =
    r#"[{"write": {"backend/answer": "42\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;

fn repository(files: &[(&str, &str)]) -> Project {
    let project = Project::bare();
    project.files(files);
    project.git_init();
    project
}

fn made(project: &Project, args: &[&str]) -> Value {
    let made = run(project, &[&["init", "--yes", "--json"], args].concat());
    assert_eq!(made.code, 0, "{made:?}");
    serde_json::from_str(&made.stdout).unwrap()
}

/// Returns the name, the directory and the trial of each gate.
fn gates(made: &Value) -> Vec<(&str, Option<&str>, &str)> {
    let gates = made["gates"].as_array().unwrap().iter();
    gates
        .map(|gate| {
            (gate["name"].as_str().unwrap(), gate["cwd"].as_str(), gate["trial"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn gates_of_two_applications_run_in_their_directories_of_a_worktree() {
    let project = repository(&TWO);
    let made = made(&project, &[]);
    assert_eq!(
        gates(&made),
        [
            ("tests-backend", Some("backend"), "failed"),
            ("tests-frontend", Some("frontend"), "passed"),
        ],
        "{made:#}"
    );
    assert_eq!(
        made["directories"],
        json!([
            {"path": "backend", "gates": ["tests-backend"], "chosen": true},
            {"path": "frontend", "gates": ["tests-frontend"], "chosen": true},
        ])
    );
    assert!(project.config().contains("      cwd: \"backend\"\n"), "{}", project.config());

    project.files(&[("turns.json", TURNS)]);
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let done = project.command("git").args(identity).args(args).status().unwrap();
        assert!(done.success(), "{args:?}");
    };
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "all"]);
    let turns = project.root().join("turns.json");
    let agent = format!("scripted:{}", turns.display());
    let done = run(&project, &["run", "Make the tests pass", "--worktree", "--agent", &agent]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(project.event("gates_evaluated")["data"]["verdict"], "pass");
    let answer = std::fs::read_to_string(project.root().join("backend/answer")).unwrap();
    assert_eq!(answer, "41\n", "the session changed the checkout");
}

#[test]
fn a_person_chooses_directories_by_number_and_enter_is_all() {
    for (answers, chosen) in
        [("9\n2\nn\n\nn\n", &["frontend"][..]), ("\nn\n\nn\n", &["backend", "frontend"])]
    {
        let project = repository(&TWO);
        let seen = project.on_terminal("hookloop init", answers);
        assert_eq!(seen.code, 0, "{seen:?}");
        assert!(seen.stdout.contains("   1  backend   tests-backend"), "{}", seen.stdout);
        assert!(seen.stdout.contains("   2  frontend  tests-frontend"), "{}", seen.stdout);
        let has_asked_again = seen.stdout.contains("`9` is not a number from 1 to 2");
        assert_eq!(has_asked_again, answers.starts_with('9'), "{}", seen.stdout);
        for directory in ["backend", "frontend"] {
            let is_written = project.config().contains(&format!("cwd: \"{directory}\""));
            assert_eq!(is_written, chosen.contains(&directory), "{}", project.config());
        }
    }
    // No answer, or an invalid one.
    for answers in ["", "x\nx\nx\n"] {
        let project = repository(&TWO);
        let seen = project.on_terminal("hookloop init", answers);
        assert_eq!(seen.code, 1, "{seen:?}");
        assert!(!project.root().join("hookloop.yaml").exists());
    }
}

#[test]
fn init_without_a_terminal_uses_all_directories_and_names_the_only_flag() {
    let project = repository(&TWO);
    let all = run(&project, &["init", "--yes", "--no-run"]);
    assert!(all.stdout.contains("Directories with gates: backend, frontend"), "{all:?}");
    assert!(all.stdout.contains("`--only DIR`"), "{all:?}");

    let project = repository(&TWO);
    let wrong = run(&project, &["init", "--yes", "--only", "fronted"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("backend, frontend"), "{wrong:?}");
    assert!(!project.root().join("hookloop.yaml").exists());
    let one = made(&project, &["--only", "./frontend/", "--no-run"]);
    assert_eq!(gates(&one), [("tests-frontend", Some("frontend"), "not_tried")], "{one:#}");
    assert_eq!(one["directories"][0]["chosen"], false, "{one:#}");
    // The file already exists and is not changed.
    assert_eq!(run(&project, &["init", "--yes", "--only", "backend"]).code, 2);
}

#[test]
fn the_setup_step_of_a_directory_is_typed_in_the_root() {
    let package =
        r#"{"scripts": {"test": "some-runner"}, "devDependencies": {"some-runner": "1"}}"#;
    let project = repository(&[("web app/package.json", package), ("api/package.json", package)]);
    let made = made(&project, &[]);
    let next: Vec<&str> =
        made["next"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    assert!(next[0].starts_with("(cd api && npm install)  # "), "{next:?}");
    assert!(next[1].starts_with("(cd 'web app' && npm install)  # "), "{next:?}");
    assert!(next.iter().all(|step| !step.contains("hookloop run")), "{next:?}");
    assert!(project.config().contains("type `(cd api && npm install)`"), "{}", project.config());
}

/// Members of an npm workspace, with the real npm: one command in the root tests all of them.
#[test]
fn members_of_an_npm_workspace_are_run_by_one_gate() {
    let member = |script: &str| {
        format!(r#"{{"name": "NAME", "version": "1.0.0", "scripts": {{"test": "{script}"}}}}"#)
    };
    let project = repository(&[
        ("package.json", r#"{"name": "all", "workspaces": ["packages/*"]}"#),
        ("packages/a/package.json", &member("touch ran").replace("NAME", "a")),
        ("packages/b/package.json", &member("touch ran").replace("NAME", "b")),
        ("packages/none/package.json", r#"{"name": "none", "version": "1.0.0"}"#),
    ]);
    let made = made(&project, &[]);
    assert_eq!(gates(&made), [("tests", None, "passed")], "{made:#}");
    assert!(project.root().join("packages/a/ran").exists());
    assert!(project.root().join("packages/b/ran").exists());
}

/// With the real Cargo, a workspace is one gate, and an excluded package is another.
#[test]
fn members_of_a_cargo_workspace_are_run_by_one_gate() {
    let package = |name: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
    };
    let test = "#[test]\nfn passes() {}\n";
    let project = repository(&[
        (
            "Cargo.toml",
            "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*\"]\nexclude = [\"extra\"]\n",
        ),
        ("crates/one/Cargo.toml", &package("one")),
        ("crates/one/src/lib.rs", test),
        ("extra/Cargo.toml", &package("extra")),
        ("extra/src/lib.rs", test),
        (".gitignore", "target\n"),
    ]);
    let made = made(&project, &[]);
    let tests: Vec<_> =
        gates(&made).into_iter().filter(|(name, ..)| name.starts_with("tests")).collect();
    assert_eq!(tests, [("tests", None, "passed"), ("tests-extra", Some("extra"), "passed")]);
}

/// Stubs replace the real programs, without a network. Each gate runs in its directory.
#[test]
fn tox_nox_django_and_cmake_are_run_in_their_directories() {
    let project = repository(&[
        ("cpp/CMakeLists.txt", "enable_testing()\n"),
        (
            "site/manage.py",
            "import helper  # DJANGO_SETTINGS_MODULE\nprint('Ran 1 test in 0.1s')\n",
        ),
        ("site/helper.py", "\n"),
        ("with_nox/noxfile.py", ""),
        ("with_tox/tox.ini", "[tox]\n"),
    ]);
    project.program("tox", "[ -f tox.ini ]");
    project.program("nox", "[ -f noxfile.py ]");
    project.program("cmake", "[ -f CMakeLists.txt ] && mkdir -p build");
    project.program("ctest", "[ \"$1 $2\" = '--test-dir build' ] && [ -d build ]");
    let made = made(&project, &[]);
    assert_eq!(
        gates(&made),
        [
            ("tests-cpp", Some("cpp"), "passed"),
            ("tests-site", Some("site"), "passed"),
            ("tests-with_nox", Some("with_nox"), "passed"),
            ("tests-with_tox", Some("with_tox"), "passed"),
        ],
        "{made:#}"
    );
}

#[test]
fn init_inside_of_another_project_asks_first() {
    let project = Project::bare();
    project.files(&[("hookloop.yaml", "version: 1\n"), ("inner/Makefile", "test:\n\ttrue\n")]);
    let refused = project.on_terminal("cd inner && hookloop init", "n\n");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stdout.contains("is inside the project"), "{}", refused.stdout);
    assert!(!project.root().join("inner/hookloop.yaml").exists());
    let wanted = project.on_terminal("cd inner && hookloop init", "\nn\n\nn\n");
    assert_eq!(wanted.code, 0, "{wanted:?}");
    assert!(project.root().join("inner/hookloop.yaml").exists());
}
