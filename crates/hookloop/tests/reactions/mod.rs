//! Checks that hooks of events run once, by one process at a time.
//!
//! The full sizes:
//! `HOOKLOOP_CAMPAIGN=full cargo nextest run -p hookloop --test session_loop reactions::`

mod below;
mod kills;
mod logs;
mod machines;
mod observers;
mod reading;

use std::path::Path;
use std::process::{Child, Stdio};

use hookloop_testkit::eventually;

use crate::cli::{DEADLINE, Project};

/// A hook that records its start and end for each task, and any overlapping run.
const HOOK: &str = r#"#!/bin/sh
exec 9>>only.lock
flock -n 9 || echo "$HOOKLOOP_TASK_ID" >> overlaps
echo "start $HOOKLOOP_TASK_ID" >> runs
sleep "$(cat pause)"
echo "end $HOOKLOOP_TASK_ID" >> runs
"#;

/// Returns whether the tests run at full size.
fn is_full() -> bool {
    std::env::var("HOOKLOOP_CAMPAIGN").is_ok_and(|size| size == "full")
}

/// Returns the lines of a file that hooks write, or none if it does not exist.
fn lines_of(root: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

impl Project {
    /// Returns a project that runs [`HOOK`] at `point`, followed by the lines of `more`.
    fn with_hook(point: &str, pause: &str, more: &str) -> Project {
        let project = Project::with_config(&format!(
            "hooks:\n  {point}:\n    - name: slow\n      command: sh hook.sh\n"
        ));
        project.write("hook.sh", &format!("{HOOK}{more}"));
        project.write("pause", pause);
        project.trust();
        project
    }

    /// Starts a command and discards its output.
    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.hookloop(args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn runs(&self) -> Vec<String> {
        lines_of(&self.root(), "runs")
    }

    /// Waits until the hook for `task` has started `times` times.
    fn wait_for_start(&self, task: &str, times: usize) {
        let start = format!("start {task}");
        let is_start = |line: &&String| **line == start;
        eventually("the start of a hook", DEADLINE, || {
            (self.runs().iter().filter(is_start).count() >= times).then_some(())
        });
    }

    /// Leaves the hooks of one event due with no process running; returns the task.
    fn leave_due(&self) -> String {
        let mut holder = self.start(&["task", "add", "left", "--id", "left"]);
        self.wait_for_start("left", 1);
        holder.kill().unwrap();
        holder.wait().unwrap();
        "left".to_owned()
    }

    fn assert_no_overlap(&self) {
        assert_eq!(lines_of(&self.root(), "overlaps"), [""; 0], "two runs at a time");
    }
}
