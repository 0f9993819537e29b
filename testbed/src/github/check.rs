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

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Whether it has passed, without being looked at.
    pub(super) fn passes(&self) -> bool {
        self.script[0] == Says::Passed
    }

    /// As GraphQL has it, without being looked at.
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
