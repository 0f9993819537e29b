//! A project with every kind of data, with the texts of a test in it.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::support::project_with;
use crate::web::browser::PATIENCE;

/// Hooks at several points; one of them blocks until the answer is right.
const CONFIG: &str = "version: 1
project: atlas
limits: {budget: {cost: 25, period: day}, gate_retries: 2}
hooks:
  session_start:
    - {name: context, command: 'cat notes.txt', pipe_output: true}
  post_iteration:
    - {name: format, command: 'REST'}
  stop:
    - {name: tests, command: 'REST; REST; sh test.sh'}
    - {name: lint, command: 'REST'}
  session_end:
    - {name: summary, command: 'echo summary written'}
";

/// Texts of a project, by their purpose.
pub(crate) trait Words {
    /// Returns a text for a field; `plain` is its text in an ordinary project.
    fn word(&self, plain: &str) -> String;

    /// Returns whether turns and hooks are slow enough to be watched.
    fn is_slow(&self) -> bool {
        false
    }
}

/// The texts of an ordinary project.
pub(crate) struct Ordinary;

impl Words for Ordinary {
    fn word(&self, plain: &str) -> String {
        plain.to_owned()
    }
}

pub(crate) struct DashboardProject {
    pub(crate) project: TestProject,
    running: Vec<Child>,
}

impl DashboardProject {
    pub(crate) fn new(words: &dyn Words) -> DashboardProject {
        let rest = if words.is_slow() { "sleep 0.15" } else { ":" };
        let project = project_with(&CONFIG.replace("REST", rest));
        let mut stage = DashboardProject { project, running: Vec::new() };
        stage.make_repository(words);
        stage.project.trust();
        stage.add_tasks(words);
        stage.run_sessions(words);
        stage
    }

    fn make_repository(&self, words: &dyn Words) {
        let failing = words.word("FAILED tests/test_answer.py::test_answer - assert 41 == 42");
        let notes = words.word("The parser is in src/parse.rs; keep its errors as they are.");
        let test = "grep -q 42 answer && exit 0\ncat failing.txt\ncat failing.txt >&2\nexit 2\n";
        self.project.write("notes.txt", &notes);
        self.project.write("failing.txt", &failing);
        self.project.write("test.sh", test);
        self.project.write("answer", "0\n");
        self.project.create_repository();
    }

    fn add_tasks(&self, words: &dyn Words) {
        let task = |id: &str, goal: &str, labels: &[&str], needs: &[&str]| {
            json!({
                "id": id, "goal": words.word(goal), "description": words.word("Keep the change small. The tests must pass."),
                "labels": labels.iter().map(|label| words.word(label)).collect::<Vec<_>>(),
                "deliverables": [words.word("src/parse.rs")], "type": words.word("feature"), "depends_on": needs,
            })
        };
        self.project.import_tasks(&[
            task("grammar", "Write the grammar", &["parser"], &[]),
            task("lexer", "Split text into tokens", &["parser"], &["grammar"]),
            task("parser", "Build the syntax tree", &["parser"], &["lexer"]),
            task("errors", "Report errors with line and column", &["parser", "errors"], &["lexer"]),
            task("printer", "Print a tree as text", &["output"], &["parser"]),
            task(
                "roundtrip",
                "Printed files parse to the same result",
                &["tests"],
                &["printer", "parser"],
            ),
            task("fuzz", "Fuzz the parser with random input", &["tests"], &["parser", "errors"]),
            task("docs", "Document the file format", &["docs"], &["errors", "printer"]),
            task("release", "The first release", &["release"], &["roundtrip", "fuzz", "docs"]),
            task("bench", "Benchmark large files", &["tests"], &["parser"]),
            task("unicode", "Accept Unicode identifiers", &["parser"], &["lexer"]),
            task("limits", "Limit nesting depth and file size", &["parser"], &["parser"]),
        ]);
        let project = &self.project;
        project.json(&[
            "task",
            "note",
            "grammar",
            &words.word("See the second draft in the wiki."),
        ]);
        project.json(&[
            "task",
            "complete",
            "grammar",
            "--result",
            &words.word("Nineteen rules, none of them left-recursive."),
        ]);
        project.json(&["task", "complete", "lexer", "--result", &words.word("Done.")]);
        project.json(&["task", "start", "parser"]);
        project.json(&[
            "task",
            "block",
            "unicode",
            "--reason",
            &words.word("Which version of Unicode?"),
        ]);
        project.json(&[
            "task",
            "block",
            "errors",
            "--reason",
            &words.word("May an error list two positions?"),
        ]);
    }

    fn run_sessions(&mut self, words: &dyn Words) {
        let say = words.word("The parser accepts the examples, and the test passes.");
        let usage = |input: u64, cost: u64| json!({ "input_tokens": input, "output_tokens": input / 9, "cached_tokens": input / 2, "cost_micros": cost });
        let turn = |answer: &str, ms: u64, cost: u64| {
            json!({
                "say": format!("{say}\n<promise>COMPLETE</promise>"), "write": { "answer": answer },
                "sleep_ms": if words.is_slow() { ms } else { 0 }, "usage": usage(cost / 20, cost),
            })
        };
        let turns = json!([
            turn("41\n", 900, 410_000),
            turn("43\n", 600, 220_000),
            turn("42\n", 700, 260_000)
        ]);
        self.run(
            "fixes.json",
            &turns,
            &["--name", &words.word("fix-the-parser")],
            &words.word("Make the tests pass"),
        );
        let stuck = json!([turn("40\n", 200, 90_000), { "fail": words.word("the model is overloaded") }, turn("40\n", 100, 80_000)]);
        fs::write(self.project.root().join("answer"), "0\n").unwrap();
        self.run("stuck.json", &stuck, &[], &words.word("Find out why the build is slow"));
    }

    /// Runs a session until it ends, with any result.
    fn run(&self, name: &str, turns: &Value, more: &[&str], prompt: &str) {
        fs::write(self.project.root().join(name), turns.to_string()).unwrap();
        let agent = format!("scripted:{name}");
        let args = [
            &["run", prompt, "--share-checkout", "--agent", &agent, "--max-iterations", "6"],
            more,
        ]
        .concat();
        let ran = self.project.json_command(&args).output().unwrap();
        assert!(!ran.stdout.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Starts a session whose turn lasts as long as the test.
    pub(crate) fn start_session(&mut self, prompt: &str) -> String {
        let turns =
            json!([{ "say": "I am starting with the first dependency.", "sleep_ms": 600_000 }]);
        self.start(
            "long.json",
            &turns,
            &[
                "run",
                prompt,
                "--share-checkout",
                "--agent",
                "scripted:long.json",
                "--name",
                "nightly",
            ],
        )
    }

    /// Starts a session of that name with these turns.
    pub(crate) fn start_turns(&mut self, name: &str, turns: &Value) -> String {
        let (file, agent) = (format!("{name}.json"), format!("scripted:{name}.json"));
        self.start(
            &file,
            turns,
            &[
                "run",
                "Update the dependencies",
                "--share-checkout",
                "--agent",
                &agent,
                "--name",
                name,
            ],
        )
    }

    /// Starts a session and returns its id after its first turn began; its name is the last of
    /// `args`.
    fn start(&mut self, file: &str, turns: &Value, args: &[&str]) -> String {
        fs::write(self.project.root().join(file), turns.to_string()).unwrap();
        self.running.push(self.project.json_command(args).spawn().unwrap());
        let name = args.last().unwrap();
        self.await_json(&["sessions", "list"], |list| {
            let running = list
                .as_array()?
                .iter()
                .find(|row| row["name"] == **name && row["iteration"] == 1)?;
            Some(running["id"].as_str()?.to_owned())
        })
    }

    /// Starts a worker that finds no task.
    pub(crate) fn start_worker(&mut self, name: &str) {
        let args = [
            "worker",
            "--agent",
            "scripted:long.json",
            "--jobs",
            "4",
            "--name",
            name,
            "--label",
            "gpu",
        ];
        self.running.push(self.project.json_command(&args).spawn().unwrap());
        self.await_json(&["fleet", "status"], |status| {
            status["workers"].as_array()?.iter().any(|worker| worker["name"] == name).then_some(())
        });
    }

    /// Runs a command until `find` returns a value for its answer; returns that value.
    pub(crate) fn await_json<T>(&self, args: &[&str], find: impl Fn(&Value) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = find(&self.project.json(args)) {
                return found;
            }
            assert!(Instant::now() < end, "{args:?}: the value did not appear");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for DashboardProject {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
