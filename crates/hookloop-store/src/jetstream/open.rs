//! A project's log with its view on this machine.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_core::id::ProjectName;
use serde::{Deserialize, Serialize};

use super::{Access, JetStream, Safety, Standing};
use crate::log::Seq;
use crate::store::{Identity, Store, StoreError, ViewFile};

/// How long a server that was found safe is not asked again.
const CHECK_AGE: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    pub standing: Standing,
    /// This machine has seen an event that the log does not have any more: its place, and the last
    /// that there is.
    pub lost: Option<(Seq, Seq)>,
}

#[derive(Serialize, Deserialize)]
struct Checked {
    at: u64,
    unsafe_accepted: bool,
    standing: Standing,
}

/// Connects to the log of `project`, checks its servers, and opens the view at `path`.
pub fn open(access: &Access, project: &ProjectName, path: &Path) -> Result<Opened, StoreError> {
    // Servers take their time: the file is opened meanwhile.
    let (log, file) = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            JetStream::connect(access, project).inspect(|log| {
                if access.brief {
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
        let known: Option<Checked> = noted.and_then(|noted| serde_json::from_str(&noted).ok());
        let known = known.filter(|known| known.holds(&log, access));
        is_fresh = known.is_none();
        let known = match known {
            Some(known) => known,
            None => Checked::now(&log, access)?,
        };
        let note = serde_json::to_string(&known).unwrap_or_default();
        let log = known.standing.created.clone();
        checked = Some(known);
        Ok(Identity { log, note })
    })?;
    let standing = match checked {
        Some(checked) => checked.standing,
        None => log.prepare()?,
    };
    store.note_removed(standing.removed)?;
    let lost = match is_fresh {
        true => missing(&store, &log, &standing)?,
        false => None,
    };
    if lost.is_some() {
        // Until it is mended, every command is to find out.
        store.forget_note()?;
    }
    Ok(Opened { store, standing, lost })
}

/// What this machine has seen and the log does not have. Others write meanwhile, and another process
/// may bring the view up to that: only the stream's word after the view's counts.
fn missing(
    store: &Store,
    log: &JetStream,
    standing: &Standing,
) -> Result<Option<(Seq, Seq)>, StoreError> {
    let seen = store.seen()?;
    if seen <= standing.last {
        return Ok(None);
    }
    let last = log.prepare()?.last;
    Ok((seen > last).then_some((seen, last)))
}

impl Checked {
    fn now(log: &JetStream, access: &Access) -> Result<Checked, StoreError> {
        let unsafe_accepted = access.accepts_unsafe();
        Ok(Checked { at: seconds(), unsafe_accepted, standing: log.prepare()? })
    }

    fn holds(&self, log: &JetStream, access: &Access) -> bool {
        log.is_of_this_server(&self.standing)
            && seconds().abs_diff(self.at) < CHECK_AGE.as_secs()
            && self.unsafe_accepted == access.accepts_unsafe()
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
