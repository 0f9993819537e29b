//! A project for each test of the command line, with hookloop in its `PATH`.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use hookloop_testkit::ProgramOutput;
use hookloop_testkit::{TestProject, TestProjectBuilder};
use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_hookloop");
/// Time limit for an effect of another process.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// The JSON fields of a hook.
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

/// A [`TestProject`] with the `PATH` of a user.
pub(crate) struct Project(TestProject);

impl Deref for Project {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.0
    }
}

impl Project {
    /// Returns a project after `init`.
    pub(crate) fn new() -> Project {
        Project(builder().initialized().build())
    }

    /// Returns a project with this configuration after `version: 1`.
    pub(crate) fn with_config(yaml: &str) -> Project {
        Project(builder().config(format!("version: 1\n{yaml}")).build())
    }

    /// Returns a directory that is not a project yet.
    pub(crate) fn bare() -> Project {
        Project(builder().build())
    }

    pub(crate) fn configure(&self, yaml: &str) {
        self.write("hookloop.yaml", &format!("version: 1\n{yaml}"));
    }

    /// Writes the user's configuration after `version: 1`.
    pub(crate) fn write_own(&self, yaml: &str) {
        self.write_user_config(&format!("version: 1\n{yaml}"));
    }

    /// Returns the state directory of the project.
    pub(crate) fn state(&self) -> PathBuf {
        PathBuf::from(self.json(&["status"])["state"].as_str().unwrap())
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state().join("hookloop.db")).unwrap()
    }

    /// Runs a command with `--json` that must print a result and exit with `code`; returns the
    /// result.
    pub(crate) fn json_with(&self, code: i32, args: &[&str]) -> Value {
        let run = self.run(&[args, &["--json"]].concat());
        assert!(run.code == code && run.stderr.starts_with("{\"error\":"), "{args:?}: {run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Runs `hooks run` with `--json`; returns the result. The exit code must match it.
    pub(crate) fn try_hook(&self, args: &[&str]) -> Value {
        let run = self.run(&[&["hooks", "run"], args, &["--json"]].concat());
        assert!(run.stderr.is_empty(), "{args:?}: {run:?}");
        let result: Value = serde_json::from_str(&run.stdout).unwrap();
        let has_passed = ["passed", "skipped"].contains(&result["status"].as_str().unwrap())
            && result["verdict"] == "pass";
        assert_eq!(run.code, i32::from(!has_passed), "{args:?}: {run:?}");
        result
    }

    /// Adds a task with these options; returns its id.
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

    /// Returns every event of the log, oldest first.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.json_lines(&["log"])
    }

    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        self.json_lines(&["log", "--type", kind])
    }

    /// Returns the only event of this type.
    pub(crate) fn event(&self, kind: &str) -> Value {
        let mut events = self.events_of(kind);
        assert_eq!(events.len(), 1, "{kind}: {events:?}");
        events.remove(0)
    }

    /// Returns the goals of all tasks, oldest first.
    pub(crate) fn goals(&self) -> Vec<String> {
        let tasks = self.json(&["task", "list", "--limit", "0"]);
        let mut goals = strings(&tasks, "goal");
        goals.reverse();
        goals
    }
}

/// Returns a builder whose `PATH` has only Debian's programs and hookloop.
fn builder() -> TestProjectBuilder {
    let bin = Path::new(BINARY).parent().unwrap().display();
    TestProject::builder(BINARY)
        .variable("TZ", "UTC")
        .variable("TERM", "xterm-256color")
        .variable("PATH", format!("{bin}:/usr/bin:/bin"))
}

/// Returns one field of each item.
pub(crate) fn strings(items: &Value, field: &str) -> Vec<String> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

/// Returns the types of events, in order.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// Returns the names of an object's fields.
pub(crate) fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}
