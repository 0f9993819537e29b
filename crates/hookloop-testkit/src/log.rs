//! The log, the tasks and the stored state of a test project.
#![expect(clippy::unwrap_used, reason = "for tests only: a failure ends the test")]

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::project::TestProject;

/// The files of a project's state at one moment.
#[derive(Clone, Debug)]
pub struct SavedState(BTreeMap<OsString, Vec<u8>>);

impl TestProject {
    /// The events from number `from` on, each with its own id.
    #[track_caller]
    pub fn events_from(&self, from: u64) -> Vec<Value> {
        let events = self.json_lines(&["log", "--all", "--from", &from.to_string()]);
        let ids: HashSet<&str> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), events.len(), "events share an id");
        events
    }

    #[track_caller]
    pub fn tasks(&self) -> Vec<Value> {
        let Value::Array(tasks) = self.json(&["task", "list", "--limit", "0"]) else {
            panic!("`task list` prints a list");
        };
        tasks
    }

    /// Adds tasks, given as JSON lines.
    #[track_caller]
    pub fn import_tasks(&self, lines: &[Value]) {
        let path = self.write_lines("import.jsonl", lines);
        self.json(&["task", "import", path.to_str().unwrap()]);
    }

    /// Writes JSON lines to a file of the project; returns its path.
    pub fn write_lines(&self, name: &str, lines: &[Value]) -> PathBuf {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.write(name, &text)
    }

    /// Verifies the log and returns the number of its events. No reaction runs.
    #[track_caller]
    pub fn count_events(&self) -> u64 {
        let verified = self.json(&["verify"]);
        assert_eq!(verified["intact"], true);
        verified["events"].as_u64().unwrap()
    }

    /// Rebuilds the view, which has to stay equal.
    #[track_caller]
    pub fn rebuild(&self) {
        let rebuilt = self.json(&["rebuild"]);
        assert_eq!(rebuilt["equal"], true, "{rebuilt}");
    }

    /// Runs the reactions that are due, and checks that none is left.
    #[track_caller]
    pub fn settle(&self) {
        self.json_command(&["dispatch"]).output().unwrap();
        let status = self.json(&["status"]);
        assert_eq!(status["reactions_due"], 0, "{status}");
        assert_eq!(status["workflows"]["running"], 0, "{status}");
        assert_eq!(status["workflows"]["failed"], 0, "{status}");
    }

    /// Verifies the log, and that its view is equal to one built from it.
    #[track_caller]
    pub fn assert_intact(&self) {
        self.count_events();
        self.rebuild();
    }

    /// The path of the database with the log.
    pub fn database_path(&self) -> PathBuf {
        self.state_directory().join("hookloop.db")
    }

    pub fn save_state(&self) -> SavedState {
        let files = self.state_files().into_iter();
        let named = files.map(|path| (path.file_name().unwrap().to_owned(), path));
        SavedState(named.map(|(name, path)| (name, fs::read(path).unwrap())).collect())
    }

    /// Restores the state. No process may use it meanwhile.
    pub fn restore_state(&self, saved: &SavedState) {
        self.state_files().iter().for_each(|path| fs::remove_file(path).unwrap());
        for (name, bytes) in &saved.0 {
            fs::write(self.state_directory().join(name), bytes).unwrap();
        }
    }

    fn state_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state_directory()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}
