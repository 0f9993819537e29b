//! An agent that runs a shell script for each turn on a task.
#![expect(clippy::unwrap_used, reason = "for tests only: a failure ends the test")]

use std::fs;
use std::path::PathBuf;

/// The directory with the scripts of an agent and the prompts that it read.
#[derive(Clone, Debug)]
pub struct TaskScripts {
    directory: PathBuf,
}

impl TaskScripts {
    /// Creates the directory.
    pub fn create(directory: PathBuf) -> TaskScripts {
        fs::create_dir(&directory).unwrap();
        TaskScripts { directory }
    }

    /// Sets the lines for `sh` that turn number `turn` on a task runs, in the directory of the agent.
    pub fn write(&self, task: &str, turn: u32, script: &str) {
        fs::write(self.directory.join(format!("{task}.{turn}")), script).unwrap();
    }

    /// The prompt of a turn; empty if there was no such turn.
    pub fn prompt(&self, task: &str, turn: u32) -> String {
        let path = self.directory.join(format!("{task}.{turn}.prompt"));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// The value of `--agent`: each turn runs its script, if there is one, and claims to be complete.
    pub fn agent(&self) -> String {
        let directory = self.directory.display();
        format!(
            "command:t=$HOOKLOOP_TASK_ID; n=$(cat {directory}/$t.count 2>/dev/null || echo 0); n=$((n + 1)); \
             echo $n > {directory}/$t.count; cat > {directory}/$t.$n.prompt; \
             if [ -f {directory}/$t.$n ]; then sh -e {directory}/$t.$n >&2 || exit 1; fi; \
             echo '<promise>COMPLETE</promise>'"
        )
    }
}
