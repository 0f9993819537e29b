//! The results of programs that tests run.
#![expect(clippy::unwrap_used, reason = "for tests only: a failure ends the test")]

use std::process::Output;
use std::time::Duration;

use serde_json::Value;

/// The exit code and the output of a program; the code is -1 after a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> ProgramOutput {
        ProgramOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The exit code, the error and the duration of a command that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCommand {
    pub code: i32,
    pub error: String,
    pub took: Duration,
}

/// The exit code, the events and the messages of a command with `--json` that runs sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOutput {
    pub code: i32,
    pub events: Vec<Value>,
    pub stderr: String,
}

impl From<Output> for SessionOutput {
    fn from(output: Output) -> SessionOutput {
        let stdout = String::from_utf8(output.stdout).unwrap();
        SessionOutput {
            code: output.status.code().unwrap_or(-1),
            events: json_lines(&stdout),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl SessionOutput {
    /// The data of all events of a type.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        let of_kind = self.events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| &event["data"]).collect()
    }

    pub fn count(&self, kind: &str) -> usize {
        self.all(kind).len()
    }

    /// The verdicts of the gates on each claim.
    pub fn verdicts(&self) -> Vec<&str> {
        self.verdicts_of("gates_evaluated")
    }

    /// The verdicts on a submission, in their order.
    pub fn submitted(&self) -> Vec<&str> {
        self.verdicts_of("submission_evaluated")
    }

    fn verdicts_of(&self, kind: &str) -> Vec<&str> {
        let judged = self.all(kind).into_iter();
        judged.map(|judged| judged["verdict"].as_str().unwrap()).collect()
    }

    /// The names of the hooks that ran at a point.
    pub fn hooks_at(&self, point: &str) -> Vec<&str> {
        let ran = self.all("hook_ran").into_iter().filter(|ran| ran["point"] == point);
        ran.map(|ran| ran["hook_name"].as_str().unwrap()).collect()
    }

    /// The outcome of the only session.
    #[track_caller]
    pub fn outcome(&self) -> &str {
        let ended = self.all("session_ended");
        assert_eq!(ended.len(), 1, "{}", self.stderr);
        ended[0]["outcome"].as_str().unwrap()
    }

    /// The turns that ended.
    pub fn turns(&self) -> Vec<&Value> {
        self.all("turn_ended")
    }

    /// The only turn that ended.
    #[track_caller]
    pub fn turn(&self) -> &Value {
        let turns = self.turns();
        assert_eq!(turns.len(), 1, "{self:#?}");
        turns[0]
    }
}

/// A JSON value for each line.
#[track_caller]
pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
