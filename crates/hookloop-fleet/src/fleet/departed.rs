//! Names of workers that have ended.
//!
//! A worker that ends replaces its presence by a note with its name, so that the fleet still knows
//! the name. For workers that ran a session, the fleet's log also has the name.

use hookloop_config::clock::now;
use hookloop_core::fleet::WorkerName;
use hookloop_core::time::Timestamp;
use hookloop_engine::error::{EngineError, UnknownWorker};
use hookloop_store::heartbeat::{HeartbeatStore, HeldResource};
use serde::{Deserialize, Serialize};

use super::Fleet;

/// Largest number of notes. The oldest are removed. A server also removes them after two days.
const DEPARTED_MAX: usize = 100;
/// Largest number of worker names in an error.
const NAMED_MAX: usize = 20;

/// The note of a worker that has ended.
///
/// It has no field of `WorkerPresence`, so no list of workers shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DepartedWorker {
    departed: WorkerName,
    at: Timestamp,
}

impl Fleet {
    /// Records that a worker has ended. No list shows it any more, and its name stays known.
    pub fn leave(&self, name: &WorkerName) -> Result<(), EngineError> {
        let note = DepartedWorker { departed: name.clone(), at: now() };
        let told = serde_json::to_string(&note).unwrap_or_default();
        self.log.store().beat(&HeldResource::Worker(name.clone()), &told, 0)?;
        // On a shared store a worker may lack the right to read or remove other notes. They expire
        // there.
        let Ok(mut notes) = self.departed() else { return Ok(()) };
        notes.sort_by_key(|note| std::cmp::Reverse(note.at));
        for old in notes.into_iter().skip(DEPARTED_MAX) {
            let held = HeldResource::Worker(old.departed);
            if let Err(error) = self.log.store().forget(&held) {
                tracing::debug!(%held, %error, "the note of a departed worker is not removed");
            }
        }
        Ok(())
    }

    fn departed(&self) -> Result<Vec<DepartedWorker>, EngineError> {
        let beats = self.log.store().workers()?;
        // Other signs are those of workers that are present.
        Ok(beats.iter().filter_map(|beat| serde_json::from_str(&beat.holder).ok()).collect())
    }

    /// Returns an error for a name that the fleet has never seen.
    pub(super) fn check_known(&self, name: &str) -> Result<(), EngineError> {
        let held = name.parse().ok().map(HeldResource::Worker);
        let has_sign = match held {
            Some(held) => self.log.store().last_beat(&held)?.is_some(),
            None => false,
        };
        if has_sign || self.log.read(|view| view.has_session_on(name))? {
            return Ok(());
        }
        let mut known: Vec<String> = Vec::new();
        let present = self.workers()?.into_iter().map(|worker| worker.name.to_string());
        let departed = self.departed()?.into_iter().map(|note| note.departed.to_string());
        let worked = self.log.read(|view| view.session_machines(NAMED_MAX))?;
        for name in present.chain(departed).chain(worked) {
            if known.len() < NAMED_MAX && !known.contains(&name) {
                known.push(name);
            }
        }
        Err(UnknownWorker { name: name.to_owned(), known }.into())
    }
}
