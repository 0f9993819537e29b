//! Hooks of events run once, by one process at a time.
//!
//! The full sizes: `HOOKLOOP_CAMPAIGN=full cargo nextest run -p hookloop --test session_loop reactions::`

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

/// A hook that records its start and end for each task, and any run that overlaps with it.
const HOOK: &str = r#"#!/bin/sh
exec 9>>only.lock
flock -n 9 || echo "$HOOKLOOP_TASK_ID" >> overlaps
echo "start $HOOKLOOP_TASK_ID" >> runs
sleep "$(cat pause)"
echo "end $HOOKLOOP_TASK_ID" >> runs
"#;

/// Whether a campaign has its full size.
fn is_full() -> bool {
    std::env::var("HOOKLOOP_CAMPAIGN").is_ok_and(|size| size == "full")
}

/// The lines of a file that hooks write; none if it is not there.
fn lines_of(root: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

impl Project {
    /// A project that runs [`HOOK`] at `point`, with `more` after what it does.
    fn with_hook(point: &str, pause: &str, more: &str) -> Project {
        let project = Project::with_config(&format!(
            "hooks:\n  {point}:\n    - name: slow\n      command: sh hook.sh\n"
        ));
        project.write("hook.sh", &format!("{HOOK}{more}"));
        project.write("pause", pause);
        project.trust();
        project
    }

    /// Starts a command whose output nobody reads.
    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.hookloop(args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn runs(&self) -> Vec<String> {
        lines_of(&self.root(), "runs")
    }

    /// Waits until a hook's run for `task` has begun `times` times.
    fn wait_for_start(&self, task: &str, times: usize) {
        let start = format!("start {task}");
        let is_start = |line: &&String| **line == start;
        eventually("the start of a hook", DEADLINE, || {
            (self.runs().iter().filter(is_start).count() >= times).then_some(())
        });
    }

    /// A project in which the hooks of one event are due and nothing runs; answers the task.
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
