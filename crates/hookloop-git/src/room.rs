//! Rooms: checkouts of one git tree each, made by hookloop, in which gates run.
//!
//! Gates run code that an agent wrote. It can write to the files, the caches and the temporary directory of its room, and
//! to nothing else of it. So hookloop takes nothing among the files for granted: git's own directory is outside, no link
//! is followed, and the names of all objects are computed again from the files that a move wrote.
//!
//! A room is in `STATE/rooms/SLOT`:
//!
//! - `lock`: held while the room is in use
//! - `room.json`: the state of the room
//! - `files`: the checkout, with a `.git` directory for gates that is written before each run
//! - `caches`, `tmp`: directories for the caches and the temporary files of gates
//! - `objects`: the directory on which the user's objects are mounted
//! - `setup.json`, `setup.list`: the files that the setup left
//! - `git`: hookloop's own git directory, with one for each nested repository
//! - `trash`: files that are about to be deleted
//!
//! The modules:
//!
//! - `slots`: the choice of a room, the list of rooms and their removal
//! - `room_lock`: the lock; `room_state`: the state between two runs
//! - `entering`: the move of a room from tree to tree
//! - `planned_checkouts`: the checkouts of a room; `checkout`: one of them
//! - `index_entries`: the files of an index; `survey`: the comparison with the files of a checkout
//! - `proof`: the names of trees and files, computed again
//! - `untracked`, `kept_paths`, `path_set`: files that no tree has; `trash`: their removal
//! - `file_times`: modification times
//! - `large_pointers`: large files without content
//! - `visible_repository`, `users_refs`: the repository that gates see
//! - `setup_manifest`: the files of a setup; `copied_files`: files that are copied into a room

mod checkout;
mod copied_files;
mod entering;
mod file_times;
mod index_entries;
mod kept_paths;
mod large_pointers;
mod path_set;
mod planned_checkouts;
mod proof;
mod room_lock;
mod room_state;
mod setup_manifest;
mod slots;
mod survey;
mod trash;
mod untracked;
mod users_refs;
mod visible_repository;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookloop_process::{Cancel, KeeperPool};

use self::file_times::{CLOCK_LAG, now_ns};
use self::room_lock::RoomLock;
use self::room_state::RoomState;
use self::setup_manifest::SetupManifest;
pub use self::slots::{RemovedRooms, RoomInfo, RoomRetention};
use self::trash::RoomTrash;
use crate::git::GitVariable;
use crate::repo::{CommitId, RepoError};
use crate::snapshot::{NestedSnapshot, SnapshotCommands, Snapshots, store_of};

const FILES: &str = "files";
const CACHES: &str = "caches";
const TEMPORARY: &str = "tmp";
const OBJECTS: &str = "objects";

/// The rooms of one project.
#[derive(Debug)]
pub struct Rooms {
    commands: SnapshotCommands,
    /// The directory of all rooms.
    directory: PathBuf,
}

/// The parameters of [`Rooms`].
#[derive(Debug)]
pub struct RoomOptions<'o> {
    /// The directory of the project's state.
    pub state: &'o Path,
    /// The user's environment.
    pub environment: &'o [GitVariable],
    pub keepers: &'o Arc<KeeperPool>,
    pub cancel: Cancel,
}

impl Rooms {
    pub fn new(options: RoomOptions<'_>) -> Rooms {
        let RoomOptions { state, environment, keepers, cancel } = options;
        let commands = SnapshotCommands {
            keepers: Arc::clone(keepers),
            environment: environment.to_vec(),
            cancel,
            store: store_of(state),
        };
        Rooms { commands, directory: state.join("rooms") }
    }
}

/// A room that no other process uses until this is dropped.
#[derive(Debug)]
pub struct Room {
    slot: u32,
    session: String,
    directory: PathBuf,
    files: PathBuf,
    caches: PathBuf,
    temporary: PathBuf,
    objects: PathBuf,
    users_objects: Option<PathBuf>,
    commands: SnapshotCommands,
    trash: RoomTrash,
    state: RoomState,
    _lock: RoomLock,
}

/// The tree that a room is to have.
#[derive(Clone, Copy, Debug)]
pub struct RoomTarget<'t> {
    /// The tree of the user's commit, as in `Snapshot::tree`.
    pub tree: &'t str,
    /// The commit that is checked out in the repository that gates see.
    pub base: Option<&'t CommitId>,
    /// The user's working directory.
    pub top: &'t Path,
    /// The repositories within the working directory.
    pub nested: &'t [NestedSnapshot],
    pub snapshots: &'t Snapshots,
}

/// The result of a move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomChange {
    /// Whether all files were written, because there was no earlier checkout.
    pub is_new: bool,
    /// The number of files that were written.
    pub written_files: usize,
    /// The number of large files of which only the pointers are there.
    pub missing_large_files: usize,
}

/// The state of a setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupState {
    /// A setup with the digest was recorded, and all of its files are unchanged.
    Ready,
    NotDone,
    /// A file of the setup was changed or removed.
    Damaged {
        /// From the top of the room's files.
        path: PathBuf,
    },
}

impl Room {
    /// Returns the number of the room, from 1.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns the checkout of the repository's top directory.
    pub fn files(&self) -> &Path {
        &self.files
    }

    pub fn caches(&self) -> &Path {
        &self.caches
    }

    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Returns the empty directory on which the user's objects are mounted.
    pub fn objects_mount(&self) -> &Path {
        &self.objects
    }

    /// Returns the objects of the user's repository; `None` without a repository, and before the first move.
    pub fn users_objects(&self) -> Option<&Path> {
        self.users_objects.as_deref()
    }

    /// Returns whether files of an earlier run of this session may be there.
    pub fn is_warm(&self) -> bool {
        self.state.is_warm && self.state.session == self.session
    }

    /// Returns whether a run wrote to the room whose gates were refused.
    pub fn is_touched_by_refused(&self) -> bool {
        self.state.is_touched_by_refused && self.state.session == self.session
    }

    /// Records that a run ended.
    pub fn note_run(&mut self, was_refused: bool) -> Result<(), RepoError> {
        let now = now_ns();
        self.state.has_run_ended = true;
        self.state.latest_ns = self.state.latest_ns.max(now);
        self.state.last_used_ns = now;
        self.state.is_warm = true;
        self.state.is_touched_by_refused |= was_refused;
        self.state.save(&self.directory)
    }

    /// Removes everything that is not in the tree, except the setup's result and unchanged copied files.
    ///
    /// Of the caches, only those stay that the setup left. A setup that is damaged is removed. Files of the tree that a
    /// gate changed are restored by [`Room::enter`].
    pub fn make_cold(&mut self) -> Result<(), RepoError> {
        self.check_entered()?;
        let tracked = self.tracked()?;
        let copies = self.unchanged_copies()?;
        self.clear(tracked, &copies)?;
        self.trash.empty();
        self.state.save(&self.directory)
    }

    /// Returns the state of the setup with this digest.
    pub fn setup_state(&self, digest: &str) -> Result<SetupState, RepoError> {
        if SetupManifest::digest(&self.directory)?.as_deref() != Some(digest) {
            return Ok(SetupState::NotDone);
        }
        let Some(manifest) = SetupManifest::read(&self.directory)? else {
            return Ok(SetupState::NotDone);
        };
        Ok(match manifest.find_damage(&self.directory) {
            None => SetupState::Ready,
            Some(path) => SetupState::Damaged { path },
        })
    }

    /// Records all files that no tree has as the result of the setup with this digest.
    ///
    /// A room has one setup. The files of gates must not be taken for its result, so a warm room is refused: call
    /// [`Room::make_cold`] before the setup runs. Call [`Room::enter`] after it, which restores files of the tree that the
    /// setup changed.
    pub fn note_setup(&mut self, digest: &str) -> Result<(), RepoError> {
        self.check_entered()?;
        if self.is_warm() {
            let why = "the setup ran among files that gates left: it is not recorded";
            return Err(RepoError::permanent(why));
        }
        let tracked = self.tracked()?;
        let copies = self.copy_paths()?;
        let is_copy = |path: &[u8]| copies.iter().any(|copy| copy == path);
        SetupManifest::record(&self.directory, digest, &tracked, &is_copy)?;
        let now = now_ns();
        self.state.latest_ns = self.state.latest_ns.max(now);
        self.state.last_used_ns = now;
        // A later change has another time.
        wait_for_clock(CLOCK_LAG);
        self.state.save(&self.directory)
    }

    fn check_entered(&self) -> Result<(), RepoError> {
        if self.state.is_moving || self.state.checkouts.is_empty() {
            let why = format!("room {} has no tree: enter it first", self.slot);
            return Err(RepoError::permanent(why));
        }
        Ok(())
    }
}

/// Waits until the clock of files shows another time.
fn wait_for_clock(time: Duration) {
    std::thread::sleep(time);
}
