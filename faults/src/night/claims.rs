//! The claims of each task over time, from the log.

use std::collections::HashMap;

use crate::stream::Stored;

/// Prefix of the actor name of a session.
pub(crate) const ACTOR: &str = "session:";

/// One claim of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) task: String,
    /// `session:…`
    pub(crate) agent: String,
    pub(crate) epoch: u64,
    pub(crate) from_ms: u64,
    pub(crate) end: Option<(u64, End)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The holder's lease expired.
    Expired,
    /// The holder released the claim.
    Released,
    /// The work is done, or the task is blocked.
    Done,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    /// The worker that began the session.
    pub(crate) worker: String,
    /// Times at which the session was resumed, and by which worker.
    pub(crate) resumed: Vec<(u64, String)>,
    pub(crate) is_ended: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) claims: Vec<Claim>,
    /// Sessions by id.
    pub(crate) sessions: HashMap<String, Session>,
    pub(crate) completed: usize,
}

impl Told {
    pub(crate) fn of(log: &[Stored]) -> Told {
        let mut told = Told::default();
        let mut open: HashMap<&str, usize> = HashMap::new();
        for stored in log {
            let at_ms = stored.at_ms.unsigned_abs();
            if let Some(id) = stored.subject.strip_prefix("_s-") {
                told.take_in(id, stored, at_ms);
            }
            if stored.subject.starts_with('_') {
                continue;
            }
            let end = match stored.kind.as_str() {
                "task_started" => {
                    if let Some(agent) = stored.data["claim"]["agent"].as_str() {
                        open.insert(&stored.subject, told.claims.len());
                        told.claims.push(Claim {
                            task: stored.subject.clone(),
                            agent: agent.to_owned(),
                            epoch: stored.data["claim"]["epoch"].as_u64().unwrap_or(0),
                            from_ms: at_ms,
                            end: None,
                        });
                    }
                    continue;
                }
                "task_released" if stored.data["reason"] == "expired" => End::Expired,
                "task_released" => End::Released,
                "task_submitted" | "task_completed" | "task_blocked" => End::Done,
                _ => continue,
            };
            told.completed += usize::from(stored.kind == "task_completed");
            if let Some(claim) = open.remove(stored.subject.as_str()) {
                told.claims[claim].end = Some((at_ms, end));
            }
        }
        told
    }

    fn take_in(&mut self, id: &str, stored: &Stored, at_ms: u64) {
        let session = self.sessions.entry(id.to_owned()).or_default();
        let machine = || stored.data["machine"].as_str().unwrap_or_default().to_owned();
        match stored.kind.as_str() {
            "session_started" => session.worker = machine(),
            "session_resumed" => session.resumed.push((at_ms, machine())),
            "session_ended" => session.is_ended = true,
            _ => {}
        }
    }

    pub(crate) fn session(&self, agent: &str) -> Option<&Session> {
        self.sessions.get(agent.strip_prefix(ACTOR)?)
    }

    /// Returns the current claims of a worker.
    pub(crate) fn held_by<'t>(&'t self, worker: &'t str) -> impl Iterator<Item = &'t Claim> {
        let is_its = move |claim: &&Claim| {
            claim.end.is_none()
                && self.session(&claim.agent).is_some_and(|session| session.worker == worker)
        };
        self.claims.iter().filter(is_its)
    }
}
