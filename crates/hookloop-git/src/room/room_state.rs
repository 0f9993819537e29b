//! The state of a room between two runs.

use std::fs;
use std::path::Path;

use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::repo::{RepoError, state_file};

const FILE: &str = "room.json";
const VERSION: u32 = 1;
/// Names the time since the machine was started.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The state of a room.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RoomState {
    version: u32,
    /// Whether files are being changed, or a process was killed meanwhile.
    pub(super) is_moving: bool,
    /// The start of the machine. After a crash, the last files that were written may be incomplete.
    pub(super) boot: String,
    /// The session whose gates ran last.
    pub(super) session: String,
    /// The working directory on which the files are mounted, in hexadecimal digits.
    pub(super) top: String,
    pub(super) tree: Option<String>,
    pub(super) checkouts: Vec<CheckoutState>,
    /// The digest of the tags and branches that gates see.
    #[serde(default)]
    pub(super) refs: Option<String>,
    pub(super) copies: Vec<RoomCopy>,
    /// The permissions of directories.
    pub(super) directory_mode: u32,
    /// The latest time that a file of the room can have.
    pub(super) latest_ns: u64,
    /// Whether the run after the last move ended, so that the latest time is known.
    pub(super) has_run_ended: bool,
    pub(super) is_warm: bool,
    pub(super) is_touched_by_refused: bool,
    pub(super) last_used_ns: u64,
}

/// The state of one checkout.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CheckoutState {
    /// The path from the top of the files, in hexadecimal digits.
    pub(super) path: String,
    pub(super) tree: String,
    /// The commit that the repository around this one names.
    #[serde(default)]
    pub(super) commit: Option<String>,
    /// Whether the user's directory has changes that the commit does not have.
    #[serde(default)]
    pub(super) is_behind: bool,
    /// The digest of the settings.
    pub(super) settings: String,
    /// Pointers to large files without content, in hexadecimal digits.
    pub(super) missing: Vec<String>,
}

/// A file that was copied into the room.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RoomCopy {
    /// The path from the top of the files, in hexadecimal digits.
    pub(super) path: String,
    pub(super) sha256: String,
}

impl RoomState {
    /// Returns the state of a room. For one that can't be read, nothing in the room counts.
    pub(super) fn read(room: &Path) -> Result<RoomState, RepoError> {
        if let Some(state) = RoomState::look(room)? {
            return Ok(state);
        }
        let has_files = room.join(super::FILES).symlink_metadata().is_ok();
        Ok(RoomState {
            version: VERSION,
            is_moving: has_files,
            has_run_ended: !has_files,
            ..RoomState::default()
        })
    }

    /// Returns the state of a room; `None` if there is none, or none that can be read.
    pub(super) fn look(room: &Path) -> Result<Option<RoomState>, RepoError> {
        let path = room.join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if state_file::absent(&error) => return Ok(None),
            Err(error) => return Err(RepoError::io(&path)(error)),
        };
        match serde_json::from_slice::<RoomState>(&bytes) {
            Ok(state) if state.version == VERSION => Ok(Some(state)),
            _ => {
                warn!(path = %path.display(), "the state of a room can't be read");
                Ok(None)
            }
        }
    }

    /// Writes the state. It need not survive a crash of the machine, which is noticed by [`RoomState::boot`].
    pub(super) fn save(&self, room: &Path) -> Result<(), RepoError> {
        let path = room.join(FILE);
        let bytes = serde_json::to_vec(self)
            .map_err(|error| RepoError::permanent(format!("a room is not recorded: {error}")))?;
        write_whole(&path, &bytes, WriteOptions::CACHE).map_err(RepoError::io(&path))
    }

    pub(super) fn remove(room: &Path) -> Result<(), RepoError> {
        state_file::remove(&room.join(FILE))
    }

    pub(super) fn checkout(&self, path: &str) -> Option<&CheckoutState> {
        self.checkouts.iter().find(|checkout| checkout.path == path)
    }
}

/// Returns a name of the time since the machine was started; empty where the system has none.
pub(super) fn boot() -> String {
    fs::read_to_string(BOOT).unwrap_or_default().trim().to_owned()
}
