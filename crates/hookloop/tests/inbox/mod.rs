//! The inbox: problems, decisions of people, and notifications to real receivers on loopback.

mod deciding;
mod hostile;
mod machines;
mod overnight;
mod problems;
mod receivers;
mod telling;

use crate::cli;
use crate::cli::Project;

/// Writes the user's own file, with these channels.
pub(crate) fn channels(project: &Project, yaml: &str) {
    let directory = project.home().join(".config/hookloop");
    std::fs::create_dir_all(&directory).unwrap();
    let text = format!("version: 1\nnotify:\n{yaml}");
    std::fs::write(directory.join("config.yaml"), text).unwrap();
}

/// Adds a blocked task.
pub(crate) fn blocked(project: &Project, id: &str, goal: &str, reason: &str) {
    project.add(goal, &["--id", id]);
    project.ok(&["task", "block", id, "--reason", reason]);
}

/// Returns the keys of the problems, the newest last.
pub(crate) fn keys(project: &Project) -> Vec<String> {
    cli::strings(&project.json(&["inbox", "list"]), "key")
}

/// Returns the key of the only problem.
pub(crate) fn key(project: &Project) -> String {
    let mut keys = keys(project);
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.remove(0)
}
