//! A project of its own for a test, and the real program on it.
//!
//! - [`account`]: what a project holds, comparable between runs
//! - [`deaths`]: programs that die at every step
//! - [`journal`]: random commands, and what has to be remembered of them
//! - [`reactions`]: what has to follow from events
//! - [`serving`]: the program while it serves

pub(crate) mod account;
pub(crate) mod deaths;
pub(crate) mod journal;
pub(crate) mod reactions;
pub(crate) mod serving;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hookloop");

/// A project and a home that nobody else has.
pub(crate) struct Sandbox {
    root: tempfile::TempDir,
    state: PathBuf,
}

/// The files of a project's state at one moment.
pub(crate) struct Snapshot(BTreeMap<OsString, Vec<u8>>);

impl Sandbox {
    /// A project with `config` as its hookloop.yaml.
    pub(crate) fn new(config: &str) -> Sandbox {
        let mut sandbox = Sandbox::empty();
        fs::write(sandbox.project().join("hookloop.yaml"), config).unwrap();
        sandbox.init();
        sandbox
    }

    /// A directory that is not a project yet.
    pub(crate) fn empty() -> Sandbox {
        let root = tempfile::tempdir().unwrap();
        // Most projects of tests have no gates, and say so as a user would.
        let own = root.path().join("home/.config/hookloop");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("config.yaml"), "version: 1\ngates: none\n").unwrap();
        fs::create_dir(root.path().join("project")).unwrap();
        Sandbox { root, state: PathBuf::new() }
    }

    /// Makes the directory a project, whatever was done to that end before.
    pub(crate) fn init(&mut self) {
        let made = self.json(&["init", "--yes"]);
        self.state = PathBuf::from(made["state"].as_str().unwrap());
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("hookloop.db")
    }

    /// The program with `args`, ready to start, with its output caught and asked for as JSON.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .arg("--json")
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.root.path().join("home"))
            .env("USER", "tester")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What a command that has to succeed prints.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.printed(args)).unwrap()
    }

    fn printed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {}\n{told}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Every event from place `from` on, each with an id of its own.
    pub(crate) fn events_from(&self, from: u64) -> Vec<Value> {
        let printed = self.printed(&["log", "--all", "--from", &from.to_string()]);
        let events: Vec<Value> =
            printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ids: HashSet<&str> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), events.len(), "events share an id");
        events
    }

    pub(crate) fn tasks(&self) -> Vec<Value> {
        let Value::Array(tasks) = self.json(&["task", "list", "--limit", "0"]) else {
            panic!("`task list` prints a list");
        };
        tasks
    }

    /// Adds tasks by their JSON lines.
    pub(crate) fn import(&self, lines: &[Value]) {
        let path = self.write_lines("import.jsonl", lines);
        self.json(&["task", "import", path.to_str().unwrap()]);
    }

    /// Writes JSON lines to a file in the project.
    pub(crate) fn write_lines(&self, name: &str, lines: &[Value]) -> PathBuf {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let path = self.project().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// How many events there are. Does nothing that is due.
    pub(crate) fn count_events(&self) -> u64 {
        let verified = self.json(&["verify"]);
        assert_eq!(verified["intact"], true);
        verified["events"].as_u64().unwrap()
    }

    /// Makes the view again, which has to come out as it was.
    pub(crate) fn rebuild(&self) {
        let rebuilt = self.json(&["rebuild"]);
        assert_eq!(rebuilt["equal"], true, "{rebuilt}");
    }

    /// Lets a process do what others left, and checks that nothing is left then.
    pub(crate) fn settle(&self) {
        self.run(&["dispatch"]);
        let status = self.json(&["status"]);
        assert_eq!(status["reactions_due"], 0, "{status}");
        assert_eq!(status["workflows"]["running"], 0, "{status}");
        assert_eq!(status["workflows"]["failed"], 0, "{status}");
    }

    /// The chain holds, and the view is what the log makes of it.
    pub(crate) fn assert_intact(&self) {
        self.count_events();
        self.rebuild();
    }

    /// What SQLite says about its own file.
    pub(crate) fn integrity(&self) -> String {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let read = |path: &Path| (path.file_name().unwrap().to_owned(), fs::read(path).unwrap());
        Snapshot(self.files().iter().map(|path| read(path)).collect())
    }

    /// Puts the state back. No process may be at work on it.
    pub(crate) fn restore(&self, snapshot: &Snapshot) {
        self.files().iter().for_each(|path| fs::remove_file(path).unwrap());
        for (name, bytes) in &snapshot.0 {
            fs::write(self.state.join(name), bytes).unwrap();
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.state).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// A number from the environment, else `default`.
pub(crate) fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}
