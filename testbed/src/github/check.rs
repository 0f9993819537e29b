//! Checks that return scripted results, one after the other.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// Result of a check when it is read.
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
    /// Creates a check; each read returns the next result of the script, and the last one is
    /// repeated.
    pub fn new(kind: Kind, name: &str, script: impl IntoIterator<Item = Says>) -> Check {
        let script: VecDeque<Says> = script.into_iter().collect();
        assert!(!script.is_empty(), "the script of a check is empty");
        Check { name: name.to_owned(), kind, script }
    }

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Returns whether the check has passed, without counting as a read.
    pub(super) fn passes(&self) -> bool {
        self.script[0] == Says::Passed
    }

    /// Returns the check in GraphQL form, without counting as a read.
    pub(super) fn context(&self, required: &[String]) -> Value {
        let is_required = required.contains(&self.name);
        let (conclusion, state) = match self.script[0] {
            Says::Pending => (None, "PENDING"),
            Says::Passed => (Some("SUCCESS"), "SUCCESS"),
            Says::Failed => (Some("FAILURE"), "FAILURE"),
            Says::Skipped => (Some("SKIPPED"), "PENDING"),
        };
        match self.kind {
            Kind::Run => json!({
                "__typename": "CheckRun", "name": self.name, "conclusion": conclusion, "isRequired": is_required,
            }),
            Kind::Status => json!({
                "__typename": "StatusContext", "context": self.name, "state": state, "isRequired": is_required,
            }),
        }
    }

    /// Returns the next result, if the check is of this kind.
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
