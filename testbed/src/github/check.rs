//! Checks that say what a test wants, one thing after the other.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// What a check says when it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Pending,
    Passed,
    Failed,
    Skipped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Run,
    Status,
}

/// A check of every commit.
#[derive(Clone, Debug)]
pub struct Check {
    name: String,
    kind: Kind,
    script: VecDeque<Says>,
}

impl Check {
    /// Each look takes the next; the last stays.
    pub fn new(kind: Kind, name: &str, script: impl IntoIterator<Item = Says>) -> Check {
        let script: VecDeque<Says> = script.into_iter().collect();
        assert!(!script.is_empty(), "a check that says nothing is none");
        Check { name: name.to_owned(), kind, script }
    }

    /// What it says now, if it is of this kind.
    pub(super) fn look(&mut self, kind: Kind) -> Option<Value> {
        if self.kind != kind {
            return None;
        }
        let says = match self.script.len() {
            1 => self.script[0],
            _ => self.script.pop_front().unwrap(),
        };
        let page = format!("https://checks.example/{}", self.name);
        Some(match kind {
            Kind::Run => {
                let (status, conclusion) = match says {
                    Says::Pending => ("in_progress", None),
                    Says::Passed => ("completed", Some("success")),
                    Says::Failed => ("completed", Some("failure")),
                    Says::Skipped => ("completed", Some("skipped")),
                };
                json!({ "name": self.name, "status": status, "conclusion": conclusion, "html_url": page })
            }
            Kind::Status => {
                let state = match says {
                    Says::Pending | Says::Skipped => "pending",
                    Says::Passed => "success",
                    Says::Failed => "failure",
                };
                json!({ "context": self.name, "state": state, "target_url": page })
            }
        })
    }
}
