//! A running server process: its first output, and its end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) struct Serving {
    child: Child,
    /// The first line of output: the address and the credentials.
    pub(crate) said: Value,
}

impl Serving {
    pub(crate) fn spawn(mut command: Command) -> Serving {
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Serving { child, said: serde_json::from_str(&line).unwrap() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn terminate(&self) {
        let id = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(id, Signal::TERM).unwrap();
    }

    pub(crate) fn ended(&mut self, patience: Duration) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < patience, "still running after {patience:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
