//! `hookloop worker` and `hookloop fleet`, as a user runs them.

mod budget;
mod delivery;
mod fairness;
mod orders;
mod repositories;
mod shift;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Time limit of every wait, long enough for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A running worker.
pub(crate) struct Working {
    pub(crate) child: Child,
    said: BufReader<ChildStdout>,
    pub(crate) heard: Vec<Value>,
}

impl Working {
    pub(crate) fn start(mut command: Command) -> Working {
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Working { child, said, heard: Vec::new() }
    }

    /// Reads lines until `is_it` matches; returns that line.
    pub(crate) fn hear(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).unwrap();
            assert!(read > 0, "the worker has ended: {:?}", self.heard);
            let value: Value = serde_json::from_str(&line).unwrap();
            self.heard.push(value.clone());
            if is_it(&value) {
                return value;
            }
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the worker to exit; returns all lines that it printed.
    pub(crate) fn end(mut self) -> Vec<Value> {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            self.heard.push(serde_json::from_str(&line).unwrap());
            line.clear();
        }
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {:?}", self.heard);
        self.heard
    }
}

pub(crate) fn is(value: &Value, what: &str) -> bool {
    value["worker"] == what
}
