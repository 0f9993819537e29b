//! `hookloop init`: from a repository without hookloop to a gated run.

use std::process::Command;

use serde_json::{Value, json};

use crate::cli::{ProgramOutput, Project};

/// A repository of some language, with a test that fails until `answer` is 42.
struct Shape {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// The names of gates that `init --yes` writes.
    gates: &'static [&'static str],
    command: &'static str,
}

const RUST: Shape = Shape {
    name: "rust",
    files: &[
        ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        (
            "src/lib.rs",
            "#[test]\nfn answers() {\n    assert_eq!(include_str!(\"../answer\").trim(), \"42\");\n}\n",
        ),
        ("answer", "41\n"),
        (".gitignore", "target\n"),
    ],
    // The code is formatted. The result of clippy depends on the installed version, so it is not
    // listed.
    gates: &["tests", "format"],
    command: "cargo test --workspace",
};
const NPM: Shape = Shape {
    name: "npm",
    files: &[
        (
            "package.json",
            r#"{"name": "small", "scripts": {"test": "node test.js", "lint": "node --check test.js"}}"#,
        ),
        (
            "test.js",
            "if (require('fs').readFileSync('answer', 'utf8').trim() !== '42') { console.error('the answer is wrong'); process.exit(1); }\n",
        ),
        ("answer", "41\n"),
    ],
    gates: &["tests", "lint"],
    command: "npm test",
};
const PYTHON: Shape = Shape {
    name: "python",
    files: &[
        (
            "tests/test_answer.py",
            "import unittest\n\nclass Answer(unittest.TestCase):\n    def test_answer(self):\n        self.assertEqual(open('answer').read().strip(), '42')\n",
        ),
        ("answer", "41\n"),
    ],
    gates: &["tests"],
    command: "unittest",
};
const GO: Shape = Shape {
    name: "go",
    files: &[("go.mod", "module small\n\ngo 1.20\n"), ("answer", "41\n")],
    gates: &["tests", "lint"],
    command: "go test ./...",
};

const TURNS: &str =
    r#"[{"write": {"answer": "42\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;

impl Shape {
    fn repository(&self) -> Project {
        let project = Project::bare();
        project.files(self.files);
        project.files(&[("turns.json", TURNS)]);
        project.git_init();
        if self.name == "go" {
            // Go may not be installed, so a script replaces it.
            project.program("go", "[ \"$1\" = vet ] || [ \"$(cat answer)\" = 42 ] || { echo '--- FAIL: TestAnswer'; exit 1; }");
        }
        project
    }
}

impl Project {
    /// Types a line on a terminal, with answers to its questions; returns the output and the exit
    /// code.
    pub(crate) fn on_terminal(&self, line: &str, answers: &str) -> ProgramOutput {
        let mut command = self.command("script");
        command.args(["-qec", line, "/dev/null"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, answers.as_bytes()).unwrap();
        drop(stdin);
        let run: ProgramOutput = child.wait_with_output().unwrap().into();
        ProgramOutput { stdout: run.stdout.replace("\r\n", "\n"), ..run }
    }

    /// Makes the project a git repository.
    pub(crate) fn git_init(&self) {
        let done = self.command("git").args(["init", "--quiet"]).status().unwrap();
        assert!(done.success());
    }

    /// Returns a `PATH` with the programs of the test first, then those of the environment.
    pub(crate) fn path(&self) -> String {
        let binary = std::path::Path::new(crate::cli::BINARY).parent().unwrap().to_owned();
        let tests = std::env::var("PATH").unwrap();
        format!("{}:{}:{tests}", self.home().join("bin").display(), binary.display())
    }
}

pub(crate) fn run(project: &Project, args: &[&str]) -> ProgramOutput {
    let mut command = project.hookloop(args);
    command.env("PATH", project.path());
    // The toolchain of these tests is not in the home of the test, so these variables name it.
    for name in ["CARGO_HOME", "RUSTUP_HOME"] {
        let usual = || {
            format!(
                "{}/.{}",
                std::env::var("HOME").unwrap(),
                name.to_lowercase().trim_end_matches("_home")
            )
        };
        command.env(name, std::env::var(name).unwrap_or_else(|_| usual()));
    }
    command.output().unwrap().into()
}

/// Whether pytest is installed on this machine. `init` prefers it to unittest then.
fn has_pytest() -> bool {
    let looked = Command::new("sh").args(["-c", "command -v pytest"]).output();
    looked.unwrap().status.success()
}

/// Checks the first steps of the README for one language: from nothing to a gated run.
fn from_nothing_to_a_gated_run(shape: &Shape) {
    let project = shape.repository();
    let made = run(&project, &["init", "--yes", "--json"]);
    assert!(made.code == 0 && made.stderr.is_empty(), "{made:?}");
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let gates = made["gates"].as_array().unwrap();
    let tests = &gates[0];
    assert_eq!(
        (&tests["name"], &tests["trial"], &tests["written"]),
        (&json!("tests"), &json!("failed"), &json!(true)),
        "{made:#}"
    );
    assert!(tests["command"].as_str().unwrap().contains(shape.command), "{made:#}");
    let written: Vec<&str> = gates
        .iter()
        .filter(|gate| gate["written"] == true)
        .map(|gate| gate["name"].as_str().unwrap())
        .collect();
    for name in shape.gates {
        assert!(written.contains(name), "{name}: {made:#}");
    }
    assert!(made["trusted"].as_str().unwrap().starts_with("sha256:"), "{made:#}");
    assert!(project.config().lines().count() < 50, "{}", project.config());
    assert!(project.config().contains("# Fails now"), "{}", project.config());
    assert!(!project.config().contains("answers"), "a test gate may act");

    let done = run(&project, &["run", "Make the tests pass", "--agent", "scripted:turns.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(project.events_of("gates_evaluated").len(), 1);
    assert_eq!(project.event("gates_evaluated")["data"]["verdict"], "pass");
    assert_eq!(project.event("session_ended")["data"]["outcome"], "complete");
}

#[test]
fn a_rust_repository_gets_gates_and_a_gated_run() {
    from_nothing_to_a_gated_run(&RUST);
}

#[test]
fn an_npm_repository_gets_gates_and_a_gated_run() {
    from_nothing_to_a_gated_run(&NPM);
}

#[test]
fn a_python_repository_gets_gates_and_a_gated_run() {
    let command = if has_pytest() { "pytest" } else { PYTHON.command };
    from_nothing_to_a_gated_run(&Shape { command, ..PYTHON });
}

#[test]
fn a_go_repository_gets_gates_and_a_gated_run() {
    from_nothing_to_a_gated_run(&GO);
}

/// Checks that a failed gate written by `init` sends the agent back.
#[test]
fn a_gate_written_by_init_blocks_an_agent_that_changes_nothing() {
    let project = NPM.repository();
    project.files(&[("turns.json", r#"[{"say": "Done.\n<promise>COMPLETE</promise>"}]"#)]);
    assert_eq!(run(&project, &["init", "--yes"]).code, 0);
    let done =
        run(&project, &["run", "x", "--agent", "scripted:turns.json", "--gate-retries", "0"]);
    assert_eq!(done.code, 3, "{done:?}");
}

#[test]
fn init_runs_no_commands_of_the_repository_without_consent() {
    let files = [("Makefile", "test:\n\ttouch ran\n")];
    // Four cases: no terminal, a user who declines, `--no-run`, and an existing project.
    let project = Project::bare();
    project.files(&files);
    project.fails(1, &["init"]);
    let declined = project.on_terminal("hookloop init", "n\nn\n");
    assert_eq!(declined.code, 1, "{declined:?}");
    assert!(declined.stdout.contains("Nothing was written."), "{declined:?}");
    assert!(
        !declined.stdout.contains("error") && !declined.stdout.contains("hint"),
        "{declined:?}"
    );
    let refused = project.on_terminal("hookloop init", "n\ny\nn\n");
    assert_eq!(refused.code, 0, "{refused:?}");
    assert!(refused.stdout.contains("make test"), "{refused:?}");
    assert!(project.config().contains("      command: make test"), "{}", project.config());
    project.ok(&["init", "--yes"]);
    assert!(!project.root().join("ran").exists());
    let explained = project.json(&["hooks", "show", "tests"]);
    assert_eq!(explained["trusted"], false, "{explained}");

    let project = Project::bare();
    project.files(&files);
    let made = project.json(&["init", "--yes", "--no-run"]);
    assert_eq!(made["gates"][0]["trial"], "not_tried", "{made}");
    assert_eq!(made["trusted"], Value::Null, "{made}");
    assert!(made["next"][0].as_str().unwrap().contains("hookloop hooks trust"), "{made}");
    assert!(!project.root().join("ran").exists());

    // An agent's session may not decide either.
    let project = Project::bare();
    project.files(&files);
    let mut command = project.hookloop(&["init", "--yes"]);
    let agent: ProgramOutput = command.env("HOOKLOOP_SESSION", "s").output().unwrap().into();
    assert_eq!(agent.code, 0, "{agent:?}");
    assert!(!project.root().join("ran").exists());
    assert_eq!(project.json(&["hooks", "show", "tests"])["trusted"], false);
}

#[test]
fn init_on_a_terminal_asks_before_running_writing_and_trusting() {
    let project = Project::bare();
    project.files(&[("Makefile", "test:\n\t@touch ran; echo it fails; exit 1\n")]);
    // Enter means yes.
    let seen = project.on_terminal("hookloop init", "\n\n\n");
    assert_eq!(seen.code, 0, "{seen:?}");
    let asked = ["Run the gates once?", "Write ", "Trust these gates"];
    let places: Vec<usize> = asked
        .iter()
        .map(|part| seen.stdout.find(part).unwrap_or_else(|| panic!("{part}: {}", seen.stdout)))
        .collect();
    assert!(places.is_sorted(), "{}", seen.stdout);
    assert!(seen.stdout.contains("it fails"), "{}", seen.stdout);
    assert!(seen.stdout.contains("Next:"), "{}", seen.stdout);
    assert!(project.root().join("ran").exists());
    assert_eq!(project.json(&["hooks", "show", "tests"])["trusted"], true);
}

#[test]
fn commands_unsuitable_as_gates_are_left_out_with_a_reason() {
    let project = Project::bare();
    let scripts = r#"{"test": "no-such-runner", "lint": "exit 1", "typecheck": "true"}"#;
    project.files(&[("package.json", &format!(r#"{{"scripts": {scripts}}}"#)), ("stack.yaml", "")]);
    let made = run(&project, &["init", "--yes", "--json"]);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let gates = made["gates"].as_array().unwrap();
    let gate = |name: &str| {
        gates.iter().find(|gate| gate["name"] == name).unwrap_or_else(|| panic!("{name}: {made:#}"))
    };
    let fate = |name: &str| (gate(name)["trial"].clone(), gate(name)["written"].clone());
    // Not installed runner; not installed language; failing gate that is not a test; gate without
    // effect.
    assert_eq!(fate("tests-npm"), (json!("not_ready"), json!(true)), "{made:#}");
    assert_eq!(made["trusted"], Value::Null, "{made:#}");
    assert_eq!(gate("tests-stack")["reason"], "`stack` is not installed");
    assert_eq!(fate("lint"), (json!("failed"), json!(false)), "{made:#}");
    assert_eq!(gates.len(), 3, "{made:#}");
    let config = project.config();
    assert!(config.contains("# Left out: `stack` is not installed"), "{config}");
    assert!(config.contains("# Left out: fails now (exit code 1)"), "{config}");
    assert!(config.contains("# environment not ready: `no-such-runner` was not found"), "{config}");
    project.ok(&["status"]);
}

#[test]
fn processes_started_by_a_gate_trial_end_with_the_trial() {
    let project = Project::bare();
    let mark = format!("600.{}", std::process::id());
    project.files(&[("Makefile", &format!("test:\n\t(setsid sleep {mark} &); touch ran\n"))]);
    project.ok(&["init", "--yes"]);
    assert!(project.root().join("ran").exists());
    let left = project.command("pgrep").args(["-f", &format!("^sleep {mark}$")]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn importable_files_ci_commands_and_agents_are_written_and_printed() {
    let project = Project::bare();
    project.files(&[
        (".claude/settings.json", r#"{"hooks": {"Stop": []}}"#),
        (".beads/issues.jsonl", ""),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  t:\n    steps:\n      - run: ./check.sh --all tests\n",
        ),
    ]);
    project.program("claude", "echo 9.9.9");
    let said = run(&project, &["init", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    for part in
        ["hookloop import claude .claude/settings.json", "hookloop import beads", "--agent claude"]
    {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    for part in ["./check.sh --all tests", "hookloop import beads", "agent: claude"] {
        assert!(project.config().contains(part), "{part}: {}", project.config());
    }
}

/// A name with a line break must not become a line of the file.
#[test]
fn a_hostile_file_name_adds_no_lines_to_the_configuration() {
    let project = Project::bare();
    let evil = "x\nhooks: {stop: [{command: touch pwned}]}\n#.yml";
    project.files(&[(
        &format!(".github/workflows/{evil}"),
        "jobs:\n  t:\n    steps:\n      - run: make test\n",
    )]);
    let huge = "x".repeat(5 * 1024 * 1024);
    project.files(&[("Makefile", &huge)]);
    std::os::unix::fs::symlink("/etc/passwd", project.root().join("package.json")).unwrap();
    project.ok(&["init", "--yes"]);
    assert!(!project.config().contains("pwned"), "{}", project.config());
    assert_eq!(project.json(&["hooks", "list"]).as_array().unwrap().len(), 3);
}

fn written(project: &Project) -> String {
    std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap()
}

#[test]
fn init_lets_claude_code_run_the_gates_own_commands_if_the_user_wants_it() {
    let project = NPM.repository();
    project.program("claude", "echo 2.1.300");
    let done = run(&project, &["init", "--yes", "--allow-gate-commands"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let told = "claude may change the project's files and run only: npm test, npm run lint";
    assert!(done.stdout.contains(told), "{}", done.stdout);
    let file = written(&project);
    assert!(file.contains("- \"Bash(npm test)\"\n      - \"Bash(npm run lint)\"\n"), "{file}");
    // The user who typed the command has given consent, so the agent may start.
    let agents = run(&project, &["agents", "list"]);
    assert!(
        agents.stdout.contains("claude") && agents.stdout.contains("ready"),
        "{}",
        agents.stdout
    );
    let again = run(&project, &["init", "--yes", "--allow-gate-commands"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("hookloop agents trust"), "{}", again.stderr);
}

#[test]
fn init_reports_that_the_agent_may_run_no_commands_by_default() {
    let project = NPM.repository();
    project.program("claude", "echo 2.1.300");
    let done = run(&project, &["init", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("run no commands: hookloop runs the gates"), "{}", done.stdout);
    assert!(!written(&project).contains("\nagents:"));
}

#[test]
fn init_asks_on_a_terminal_whether_claude_code_may_run_the_gates_commands() {
    let check = |answers: &str, is_allowed: bool| {
        let project = NPM.repository();
        project.program("claude", "echo 2.1.300");
        let path = project.path();
        let line = format!("PATH={path} hookloop init --no-run");
        let typed = project.on_terminal(&line, answers);
        assert!(typed.stdout.contains("Let Claude Code run these commands"), "{}", typed.stdout);
        assert_eq!(written(&project).contains("Bash(npm test)"), is_allowed);
    };
    check("y\ny\ny\n", true);
    check("n\ny\ny\n", false);
}

/// Runs `init --yes --json`; returns its result.
fn made(project: &Project) -> Value {
    let made = run(project, &["init", "--yes", "--json"]);
    assert_eq!(made.code, 0, "{made:?}");
    serde_json::from_str(&made.stdout).unwrap()
}

/// Checks that the first gate can't run yet: it is in the file, is not trusted, and no run is
/// proposed.
fn is_not_ready(project: &Project, cause: &str, setup: Option<&str>) {
    let made = made(project);
    let tests = &made["gates"][0];
    assert_eq!(
        (&tests["trial"], &tests["written"]),
        (&json!("not_ready"), &json!(true)),
        "{made:#}"
    );
    assert_eq!(tests["setup"].as_str(), setup, "{made:#}");
    assert!(tests["reason"].as_str().unwrap().contains(cause), "{made:#}");
    assert_eq!(made["trusted"], Value::Null, "{made:#}");
    let next: Vec<&str> =
        made["next"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    assert!(next.iter().all(|step| !step.contains("hookloop run")), "{next:?}");
    assert!(setup.is_none_or(|setup| next[0].starts_with(setup)), "{next:?}");
    assert!(next.iter().any(|step| step.starts_with("hookloop hooks trust")), "{next:?}");
    let config = project.config();
    assert!(config.contains("# environment not ready: "), "{config}");
    assert!(!config.contains("work for an agent"), "{config}");
}

const SRC_LAYOUT: [(&str, &str); 3] = [
    ("pyproject.toml", "[project]\nname = \"small\"\nversion = \"1\"\n"),
    ("src/small/__init__.py", "answer = 42\n"),
    (
        "tests/test_small.py",
        "import unittest\nimport small\n\nclass T(unittest.TestCase):\n    def test_answer(self):\n        self.assertEqual(small.answer, 42)\n",
    ),
];

#[test]
fn an_uninstalled_python_package_makes_the_gate_not_ready() {
    let project = Project::bare();
    project.files(&SRC_LAYOUT);
    is_not_ready(&project, "own package `small` can't be imported", Some("pip install -e ."));
    let said = project.config();
    assert!(said.contains("type `pip install -e .`"), "{said}");
}

/// Returns a `PATH` without directories that contain pytest, and with a stub for Python.
fn without_pytest(project: &Project) -> String {
    project.program("python3", "exit 0");
    let path = project.path();
    let has_pytest = |directory: &&str| std::path::Path::new(directory).join("pytest").exists();
    path.split(':').filter(|directory| !has_pytest(directory)).collect::<Vec<_>>().join(":")
}

#[test]
fn a_pytest_project_without_pytest_gets_its_gate_and_the_command_that_installs_pytest() {
    let bare = "def test_a():\n    assert 1 == 3\n";
    let extra = "[project]\nname = \"shop\"\n[project.optional-dependencies]\ndev = [\"pytest\"]\n";
    for (file, text, setup) in [
        ("notes.md", "", "pip install pytest"),
        ("pytest.ini", "[pytest]\n", "pip install pytest"),
        ("requirements-dev.txt", "pytest\n", "pip install -r requirements-dev.txt"),
        ("pyproject.toml", extra, "pip install -e '.[dev]'"),
    ] {
        for flags in [&["init", "--yes", "--json"][..], &["init", "--yes", "--json", "--no-run"]] {
            let project = Project::bare();
            project.files(&[("tests/test_a.py", bare), (file, text)]);
            let path = without_pytest(&project);
            let made: ProgramOutput =
                project.hookloop(flags).env("PATH", path).output().unwrap().into();
            assert_eq!(made.code, 0, "{made:?}");
            let made: Value = serde_json::from_str(&made.stdout).unwrap();
            let gate = &made["gates"][0];
            assert_eq!((&gate["command"], &gate["trial"]), (&json!("pytest"), &json!("not_ready")));
            assert_eq!(
                (&gate["setup"], &gate["written"]),
                (&json!(setup), &json!(true)),
                "{made:#}"
            );
            assert_eq!(made["trusted"], Value::Null, "{made:#}");
            assert!(made["next"][0].as_str().unwrap().starts_with(setup), "{made:#}");
            let config = project.config();
            assert!(config.contains("\n      command: pytest\n"), "{config}");
            assert!(
                config.contains("# environment not ready: `pytest` is not installed"),
                "{config}"
            );
        }
    }
}

/// Before Python 3.12, unittest passes without any tests.
#[test]
fn a_python_gate_does_not_pass_when_the_agent_removes_the_tests() {
    let project = PYTHON.repository();
    let turns = r#"[{"write": {"tests/test_answer.py": "import unittest\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;
    project.files(&[("turns.json", turns)]);
    assert_eq!(run(&project, &["init", "--yes"]).code, 0);
    let done =
        run(&project, &["run", "x", "--agent", "scripted:turns.json", "--gate-retries", "0"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert_ne!(project.event("gates_evaluated")["data"]["verdict"], "pass");
}

#[test]
fn a_python_package_that_is_installed_gets_its_gate() {
    let project = Project::bare();
    project.files(&SRC_LAYOUT);
    // These programs act like an installation in this directory, without a network.
    project.program("python3", &format!("PYTHONPATH={}/src exec /usr/bin/env -S PATH=/usr/local/bin:/usr/bin:/bin python3 \"$@\"", project.root().display()));
    project.program("pytest", "exec python3 -m unittest discover -s tests");
    let made = made(&project);
    assert_eq!(made["gates"][0]["trial"], "passed", "{made:#}");
    assert!(made["trusted"].is_string(), "{made:#}");
}

#[test]
fn uninstalled_node_packages_make_the_gate_not_ready() {
    let package = r#"{"name": "small", "scripts": {"test": "SCRIPT"}, "devDependencies": {"some-runner": "1.0.0"}}"#;
    for (script, cause) in [
        ("some-runner --all", "`some-runner` was not found"),
        ("node test.js", "dependency `some-runner` is not installed"),
    ] {
        let project = Project::bare();
        project.files(&[
            ("package.json", &package.replace("SCRIPT", script)),
            ("package-lock.json", "{}"),
            ("test.js", "require('some-runner');\n"),
        ]);
        is_not_ready(&project, cause, Some("npm ci"));
    }
}

#[test]
fn a_rustup_without_a_toolchain_makes_the_gate_not_ready() {
    let project = RUST.repository();
    project.program(
        "cargo",
        "echo \"error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly, and no default is configured.\" >&2; exit 1",
    );
    is_not_ready(&project, "rustup has no default toolchain", Some("rustup default stable"));
}

#[test]
fn a_missing_module_of_the_project_makes_the_gate_fail() {
    let project = Project::bare();
    project.files(&[("tests/test_a.py", "import unittest\nimport answer_to_write\n")]);
    let made = made(&project);
    assert_eq!(made["gates"][0]["trial"], "failed", "{made:#}");
    assert!(project.config().contains("work for an agent"), "{}", project.config());
}
