//! A project's log with its view on this machine.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_core::id::ProjectName;
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::client::JetStreamLog;
use super::options::NatsOptions;
use super::safety::{ServerSafety, ServerStanding};
use crate::log::Seq;
use crate::store::{LogIdentity, Store, StoreError, ViewFile};

/// Time for which the result of a safety check is valid.
const CHECK_AGE: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct OpenedLog {
    pub store: Store,
    pub standing: ServerStanding,
    /// Set if the log has lost an event that this machine has seen: its place, and the end of the
    /// log.
    pub lost: Option<(Seq, Seq)>,
}

#[derive(Serialize, Deserialize)]
struct SafetyRecord {
    at: u64,
    unsafe_accepted: bool,
    standing: ServerStanding,
}

/// Connects to the log of `project`, checks its servers, and opens the view at `path`.
pub fn open(
    options: &NatsOptions,
    project: &ProjectName,
    path: &Path,
) -> Result<OpenedLog, StoreError> {
    // Opens the file while the servers answer.
    let (log, file) = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            JetStreamLog::connect(options, project).inspect(|log| {
                if options.brief {
                    log.look_ahead();
                }
            })
        });
        let file = ViewFile::find(path);
        (connecting.join().unwrap_or_else(|panic| resume_unwind(panic)), file)
    });
    let (log, file) = (log?, file?);
    let mut checked = None;
    let mut is_fresh = false;
    let store = Store::over_at(Arc::new(log.clone()), file, |noted| {
        // A record that can't be read, as one of another version, is made again.
        let known: Option<SafetyRecord> = noted.and_then(|noted| {
            let read = serde_json::from_str(&noted);
            read.inspect_err(|error| debug!(%error, "the record of the servers is made again")).ok()
        });
        let known = known.filter(|known| known.holds(&log, options));
        is_fresh = known.is_none();
        let known = match known {
            Some(known) => known,
            None => SafetyRecord::now(&log, options)?,
        };
        // An empty note makes the next process check again.
        let note = serde_json::to_string(&known).unwrap_or_default();
        let log = known.standing.created.clone();
        checked = Some(known);
        Ok(LogIdentity { log, note })
    })?;
    let standing = match checked {
        Some(checked) => checked.standing,
        None => log.prepare()?,
    };
    store.note_removed(standing.removed)?;
    let lost = if is_fresh { missing(&store, &log, &standing)? } else { None };
    if lost.is_some() {
        // Makes every command check again until the loss is fixed.
        store.forget_note()?;
    }
    Ok(OpenedLog { store, standing, lost })
}

/// Returns the last event that this machine has seen, if the log has lost it.
///
/// Other processes write meanwhile and may update the view, so the stream is read after the view.
fn missing(
    store: &Store,
    log: &JetStreamLog,
    standing: &ServerStanding,
) -> Result<Option<(Seq, Seq)>, StoreError> {
    let seen = store.seen()?;
    if seen <= standing.last {
        return Ok(None);
    }
    let last = log.prepare()?.last;
    Ok((seen > last).then_some((seen, last)))
}

impl SafetyRecord {
    fn now(log: &JetStreamLog, options: &NatsOptions) -> Result<SafetyRecord, StoreError> {
        let unsafe_accepted = options.accepts_unsafe();
        Ok(SafetyRecord { at: seconds(), unsafe_accepted, standing: log.prepare()? })
    }

    fn holds(&self, log: &JetStreamLog, options: &NatsOptions) -> bool {
        log.is_of_this_server(&self.standing)
            && seconds().abs_diff(self.at) < CHECK_AGE.as_secs()
            && self.unsafe_accepted == options.accepts_unsafe()
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
