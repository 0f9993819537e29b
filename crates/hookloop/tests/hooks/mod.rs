//! Hooks that run commands, from the view of users and repositories.

mod cgroup;
mod configuration;
mod consent;
mod deceit;
mod drift;
mod import;
mod layers;
mod leaks;
mod ledger;
mod paths;
mod protocol;
mod running;
mod sandbox;
mod together;
mod trust;
mod unasked;
mod webhook;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::cli::Project;

impl Project {
    /// Writes an executable script.
    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, &format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Returns a project that runs `check`, a trusted script, when a task is completed.
    fn with_check(text: &str) -> Project {
        let project = Project::with_config(CHECK);
        project.script("check.sh", text);
        project.trust();
        project
    }

    /// Completes a new task; returns its id.
    fn complete(&self, goal: &str) -> String {
        let id = self.add(goal, &[]);
        self.run(&["task", "complete", &id]);
        id
    }

    /// Returns the events of a type from the log.
    fn logged(&self, kind: &str) -> Vec<serde_json::Value> {
        let lines = self.ok(&["log", "--json"]);
        let events = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        events.filter(|event: &serde_json::Value| event["type"] == kind).collect()
    }
}

/// A script at a hook point that every test can reach.
const CHECK: &str = "hooks:\n  on_task_complete:\n    - command: ./check.sh {{task_id}}\n";
