//! The operations of the workers, as each worker recorded them: one line before and one after every
//! operation.
//!
//! An operation without a response may or may not have happened, and its second line records that.
//! An operation without a second line belongs to a process that was killed.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_engine::error::EngineError;
use serde::{Deserialize, Serialize};

/// One operation. Each has a unique key that the log contains if the operation happened: the name
/// of the task or of the agent, the result, or the id of the event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Op {
    Add {
        task: String,
    },
    Claim {
        agent: String,
        types: Vec<String>,
    },
    TakeOver {
        agent: String,
        task: String,
        silent_epoch: u64,
    },
    Beat {
        task: String,
        epoch: u64,
    },
    Complete {
        task: String,
        epoch: u64,
        token: String,
    },
    /// A completion by a worker that knows that its claim has ended.
    CompleteStale {
        task: String,
        epoch: u64,
        token: String,
    },
    Release {
        task: String,
        epoch: u64,
        token: String,
    },
    /// One event on a subject that no other worker writes to; retried unchanged until it is
    /// acknowledged.
    Append {
        event: String,
    },
    /// Ends the claims of holders that missed their heartbeats.
    Sweep,
    Dispatch,
    /// Deletes the view and opens a new one.
    Reopen,
}

impl Op {
    /// Returns whether a successful outcome implies an event in the log.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self, Op::Beat { .. } | Op::Sweep | Op::Dispatch | Op::Reopen)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Done,
    Claimed {
        task: String,
        epoch: u64,
    },
    Swept {
        ended: Vec<(String, u64)>,
    },
    /// There was nothing to do.
    Nothing,
    Refused {
        why: String,
    },
    /// The product's own timeout expired.
    Unknown {
        why: String,
    },
}

impl Outcome {
    pub(crate) fn is_acknowledged(&self) -> bool {
        matches!(self, Outcome::Done | Outcome::Claimed { .. } | Outcome::Swept { .. })
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    n: u64,
    at_ms: u64,
    step: Step,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Invoked(Op),
    Ended(Outcome),
}

/// The history that a worker writes. Its threads share it.
pub(crate) struct History {
    file: Mutex<File>,
    count: AtomicU64,
}

impl History {
    pub(crate) fn create(path: &Path) -> History {
        let file = File::options().create(true).append(true).open(path).unwrap();
        History { file: Mutex::new(file), count: AtomicU64::new(0) }
    }

    /// Runs an operation, and writes a line before and after it.
    pub(crate) fn record(
        &self,
        op: Op,
        act: impl FnOnce() -> Result<Outcome, EngineError>,
    ) -> Outcome {
        let n = self.count.fetch_add(1, Ordering::Relaxed);
        self.write(n, Step::Invoked(op));
        let outcome = act().unwrap_or_else(|error| match error {
            EngineError::Refused(refusal) => Outcome::Refused { why: refusal.to_string() },
            other => Outcome::Unknown { why: other.to_string() },
        });
        self.write(n, Step::Ended(outcome.clone()));
        outcome
    }

    fn write(&self, n: u64, step: Step) {
        let mut line = serde_json::to_string(&Line { n, at_ms: now_ms(), step }).unwrap();
        line.push('\n');
        self.file.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// An operation that was read from a history.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    pub(crate) worker: String,
    pub(crate) op: Op,
    pub(crate) outcome: Outcome,
    /// Time of the response; `None` if the process was killed before it.
    pub(crate) ended_ms: Option<u64>,
}

impl Operation {
    pub(crate) fn is_acknowledged_write(&self) -> bool {
        self.op.is_write() && self.outcome.is_acknowledged()
    }
}

/// Returns the operations of a worker in the order in which they began. An incomplete last line is
/// ignored.
pub(crate) fn read(path: &Path, worker: &str) -> Vec<Operation> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut operations: Vec<Operation> = Vec::new();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        let Line { n, at_ms, step } = serde_json::from_str(line).unwrap();
        match step {
            Step::Invoked(op) => {
                // Threads take their number before they write, so a higher number may be in the
                // file first.
                let blank = || Operation {
                    worker: worker.to_owned(),
                    op: Op::Sweep,
                    outcome: Outcome::Unknown { why: "its process was ended".to_owned() },
                    ended_ms: None,
                };
                let len = operations.len().max(n as usize + 1);
                operations.resize_with(len, blank);
                operations[n as usize].op = op;
            }
            Step::Ended(outcome) => {
                let operation = &mut operations[n as usize];
                (operation.outcome, operation.ended_ms) = (outcome, Some(at_ms));
            }
        }
    }
    operations
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}
