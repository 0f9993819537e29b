//! A project and a home of its own for each test, and the real program run in them.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_hookloop");
/// How long a test waits for something that another process does.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// What is told of a hook.
pub(crate) const HOOK_FIELDS: [&str; 18] = [
    "author",
    "blocks",
    "description",
    "enabled",
    "events",
    "failures",
    "handler",
    "name",
    "p50_ms",
    "p95_ms",
    "point",
    "priority",
    "runs",
    "source",
    "task_type",
    "trust",
    "trusted",
    "version",
];

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) struct Project {
    directory: TempDir,
}

impl Project {
    /// A directory that `init` made a project.
    pub(crate) fn new() -> Project {
        let project = Project::bare();
        project.ok(&["init", "--yes"]);
        project
    }

    /// A project with this configuration under `version: 1`.
    pub(crate) fn with_config(yaml: &str) -> Project {
        let project = Project::bare();
        project.configure(yaml);
        project
    }

    /// A directory that is no project yet.
    pub(crate) fn bare() -> Project {
        let directory = tempfile::tempdir().unwrap();
        // Most projects of tests have no gates, and say so as a user would.
        let own = directory.path().join("home/.config/hookloop");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("config.yaml"), "version: 1\ngates: none\n").unwrap();
        std::fs::create_dir(directory.path().join("project")).unwrap();
        Project { directory }
    }

    pub(crate) fn configure(&self, yaml: &str) {
        self.write("hookloop.yaml", &format!("version: 1\n{yaml}"));
    }

    /// Writes the user's own configuration under `version: 1`.
    pub(crate) fn write_own(&self, yaml: &str) {
        let directory = self.home().join(".config/hookloop");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("config.yaml"), format!("version: 1\n{yaml}")).unwrap();
    }

    /// Writes a file of the project; answers where it is.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// The directory of the project's state.
    pub(crate) fn state(&self) -> PathBuf {
        PathBuf::from(self.json(&["status"])["state"].as_str().unwrap())
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state().join("hookloop.db")).unwrap()
    }

    /// `program` in the project, with nothing of the environment of the tests.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let bin = Path::new(BINARY).parent().unwrap().display();
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home())
            .env("USER", "tester")
            .env("TZ", "UTC")
            .env("TERM", "xterm-256color")
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn hookloop(&self, args: &[&str]) -> Command {
        let mut command = self.command(BINARY);
        command.args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.hookloop(args).output().unwrap().into()
    }

    /// Runs a line in a shell, as a user would type it.
    pub(crate) fn shell(&self, line: &str) -> Run {
        self.command("bash").args(["-c", line]).output().unwrap().into()
    }

    /// Runs a command with something on its standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Run {
        self.with_input(self.hookloop(args), input)
    }

    /// The same by an agent, which is a process of its own: the test stays a person.
    pub(crate) fn run_by_agent(&self, args: &[&str], input: &str) -> Run {
        let mut agent = self.command("timeout");
        agent.args(["--foreground", "600", BINARY]).args(args);
        self.with_input(agent, input)
    }

    fn with_input(&self, mut command: Command, input: &str) -> Run {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// Runs a command that has to work and to complain about nothing; answers what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert!(run.code == 0 && run.stderr.is_empty(), "{args:?}: {run:?}");
        run.stdout
    }

    /// Runs a command that has to fail with `code` and to print nothing but why.
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> String {
        let run = self.run(args);
        assert!(run.code == code && run.stdout.is_empty(), "{args:?}: {run:?}");
        assert!(run.stderr.starts_with("error: "), "{args:?}: {run:?}");
        run.stderr
    }

    /// Runs a command with `--json`; answers what it printed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let printed = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&printed).unwrap()
    }

    /// Runs a command with `--json` that has to fail with `code` after it printed its result; returns the result.
    pub(crate) fn json_with(&self, code: i32, args: &[&str]) -> Value {
        let run = self.run(&[args, &["--json"]].concat());
        assert!(run.code == code && run.stderr.starts_with("{\"error\":"), "{args:?}: {run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Runs `hooks run` with `--json`; returns the result. The exit code has to fit it.
    pub(crate) fn try_hook(&self, args: &[&str]) -> Value {
        let run = self.run(&[&["hooks", "run"], args, &["--json"]].concat());
        assert!(run.stderr.is_empty(), "{args:?}: {run:?}");
        let result: Value = serde_json::from_str(&run.stdout).unwrap();
        let has_passed = ["passed", "skipped"].contains(&result["status"].as_str().unwrap())
            && result["verdict"] == "pass";
        assert_eq!(run.code, i32::from(!has_passed), "{args:?}: {run:?}");
        result
    }

    /// Adds a task, with options after its goal; answers its id.
    pub(crate) fn add(&self, goal: &str, options: &[&str]) -> String {
        let task = self.json(&[&["task", "add", goal], options].concat());
        task["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.json(&["task", "show", id])
    }

    pub(crate) fn state_of(&self, id: &str) -> String {
        self.task(id)["state"].as_str().unwrap().to_owned()
    }

    /// Every event in the log, oldest first.
    pub(crate) fn events(&self) -> Vec<Value> {
        lines(&self.ok(&["log", "--json"]))
    }

    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        lines(&self.ok(&["log", "--json", "--type", kind]))
    }

    /// The one event of this type.
    pub(crate) fn event(&self, kind: &str) -> Value {
        let mut events = self.events_of(kind);
        assert_eq!(events.len(), 1, "{kind}: {events:?}");
        events.remove(0)
    }

    /// The goals of all tasks, oldest first.
    pub(crate) fn goals(&self) -> Vec<String> {
        let tasks = self.json(&["task", "list", "--limit", "0"]);
        let mut goals = strings(&tasks, "goal");
        goals.reverse();
        goals
    }
}

/// JSON lines.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// One field of each item.
pub(crate) fn strings(items: &Value, field: &str) -> Vec<String> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

/// The types of events, in order.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The names of an object's fields.
pub(crate) fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}
