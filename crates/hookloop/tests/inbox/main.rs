//! What needs a human, and what people decide about it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod deciding;
mod problems;

#[path = "../cli/mod.rs"]
mod cli;

use cli::Project;

/// Adds a task that is blocked.
pub(crate) fn blocked(project: &Project, id: &str, goal: &str, reason: &str) {
    project.add(goal, &["--id", id]);
    project.ok(&["task", "block", id, "--reason", reason]);
}

/// The keys of what needs a human, the newest last.
pub(crate) fn keys(project: &Project) -> Vec<String> {
    cli::strings(&project.json(&["inbox", "list"]), "key")
}

/// The one problem that there is.
pub(crate) fn key(project: &Project) -> String {
    let mut keys = keys(project);
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.remove(0)
}
