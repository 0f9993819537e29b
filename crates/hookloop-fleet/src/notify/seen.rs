//! The time for which this machine has observed a message in its present state.
//!
//! Losing this record only delays a message.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use hookloop_engine::project::Project;
use hookloop_process::{WriteOptions, write_whole};
use hookloop_store::view::NotificationRow;
use serde::{Deserialize, Serialize};

const FILE: &str = "notices.json";
/// Largest number of messages that are tracked.
const WATCHED_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct SeenItems {
    path: Option<PathBuf>,
    known: BTreeMap<String, ItemLook>,
    /// The messages of this round.
    looked: BTreeMap<String, ItemLook>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ItemLook {
    version: u64,
    /// The time of the first observation, by the machine's monotonic clock.
    at_ms: u64,
}

impl SeenItems {
    pub(super) fn load(project: &Project) -> SeenItems {
        let path = project.runner().map(|runner| runner.state().join(FILE));
        let known = path.as_ref().and_then(|path| fs::read(path).ok());
        let known = known.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        SeenItems { path, known, looked: BTreeMap::new() }
    }

    /// Returns how long this machine has observed the message in its present state.
    pub(super) fn silence(&mut self, notice: &NotificationRow, now_ms: u64) -> Duration {
        let version = notice.version;
        let known = self.known.get(notice.id.as_str()).copied();
        // After a reboot the clock begins at zero, and so does the count.
        let known = known.filter(|look| look.version == version && look.at_ms <= now_ms);
        let look = known.unwrap_or(ItemLook { version, at_ms: now_ms });
        if self.looked.len() < WATCHED_MAX {
            self.looked.insert(notice.id.to_string(), look);
        }
        Duration::from_millis(now_ms - look.at_ms)
    }

    /// Saves the record. Keeps messages of other rounds, which other processes may track.
    pub(super) fn save(self) {
        let SeenItems { path, known, mut looked } = self;
        for (id, look) in &known {
            if looked.len() < WATCHED_MAX {
                looked.entry(id.clone()).or_insert(*look);
            }
        }
        let Some(path) = path.filter(|_| looked != known) else { return };
        let bytes = serde_json::to_vec(&looked).unwrap_or_default();
        // A lost record only begins the count again.
        if let Err(error) = write_whole(&path, &bytes, WriteOptions::CACHE) {
            let path = path.display();
            tracing::warn!(%path, %error, "the record of seen notifications is not written");
        }
    }
}
