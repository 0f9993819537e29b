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
mod outward_links;
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

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookloop_core::digest::sha256_hex;
use hookloop_process::{Cancel, KeeperPool};

use self::file_times::{CLOCK_LAG, now_ns};
use self::path_set::PathSet;
use self::room_lock::RoomLock;
use self::room_state::RoomState;
use self::setup_manifest::{NewSetup, SetupManifest, SetupOrigin};
pub use self::slots::{RemovedRooms, RoomInfo, RoomRetention};
use self::trash::RoomTrash;
use crate::git::GitVariable;
use crate::repo::{CommitId, RepoError};
use crate::snapshot::{NestedSnapshot, SnapshotCommands, Snapshots, store_of, unhex};

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
    /// The files of gates that were there when the setup was discarded; none if it runs without them.
    left: Option<PathSet>,
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
    /// The number of files that were there, and that are neither in the tree nor ignored.
    pub removed_files: usize,
    /// The number of large files of which only the pointers are there.
    pub missing_large_files: usize,
}

/// The state of a setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupState {
    /// A setup with the digest was recorded, and all of its files are unchanged.
    Ready,
    /// A setup with the digest was recorded in another session and on another tree, or a file that it copied changed.
    Old,
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

    /// Returns the files of the tree, from the top of the room's files.
    pub fn tree_files(&self) -> Result<Vec<PathBuf>, RepoError> {
        self.check_entered()?;
        let files = self.tracked()?.files.into_iter();
        Ok(files.map(|path| PathBuf::from(OsString::from_vec(path))).collect())
    }

    /// Returns the repositories in the room that the tree does not name, with their trees.
    pub fn unnamed_trees(&self) -> Vec<(PathBuf, String)> {
        let nested = self.state.checkouts.iter().filter(|it| !it.path.is_empty());
        let unnamed = nested.filter(|it| it.commit.is_none());
        unnamed.filter_map(|it| Some((path_of(&it.path)?, it.tree.clone()))).collect()
    }

    /// Returns the repositories of which the room has the committed files only, although the user's have others.
    pub fn uncommitted(&self) -> Vec<PathBuf> {
        let behind = self.state.checkouts.iter().filter(|it| it.is_behind);
        behind.filter_map(|it| path_of(&it.path)).collect()
    }

    /// Returns the links of the tree that lead out of the room's files, at most `max`.
    ///
    /// `top` is the working directory on which the files are mounted.
    pub fn links_outside(&self, top: &Path, max: usize) -> Result<Vec<PathBuf>, RepoError> {
        self.check_entered()?;
        outward_links::find(self, top, max)
    }

    /// Removes the files of the setup, and leaves those of gates.
    ///
    /// The result of the setup that runs next holds for this session, until the room is cold: it ran among these files.
    pub fn discard_setup_files(&mut self) -> Result<(), RepoError> {
        self.check_entered()?;
        let mut known = self.tracked()?;
        if let Some(setup) = SetupManifest::read(&self.directory)? {
            setup.discard(&self.directory, &known, &self.trash)?;
        }
        SetupManifest::remove(&self.directory)?;
        self.trash.empty();
        self.copy_paths()?.iter().for_each(|copy| known.add_file(copy));
        self.left = Some(known.others(&self.files)?);
        Ok(())
    }

    /// Returns the digest of the tags, the branches and the commit of HEAD that gates see; `None` without a repository.
    pub fn refs_digest(&self) -> Option<&str> {
        self.state.refs.as_deref()
    }

    /// Returns whether files of an earlier run of this session may be there.
    pub fn is_warm(&self) -> bool {
        self.state.is_warm && self.state.session == self.session
    }

    /// Records that the last command in the room ended. Its verdict is recorded by [`Room::note_run`].
    pub fn note_pause(&mut self) {
        self.state.has_run_ended = true;
        self.state.latest_ns = self.state.latest_ns.max(now_ns());
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
        self.left = None;
        let tracked = self.tracked()?;
        let copies = self.unchanged_copies()?;
        self.clear(tracked, &copies)?;
        self.trash.empty();
        self.state.save(&self.directory)
    }

    /// Removes the result of an earlier setup, with all files that earlier runs left.
    ///
    /// A later setup must not build upon it, and gates without a setup must not see it.
    pub fn discard_setup(&mut self) -> Result<(), RepoError> {
        self.check_entered()?;
        if SetupManifest::digest(&self.directory)?.is_none() {
            return Ok(());
        }
        SetupManifest::remove(&self.directory)?;
        self.make_cold()
    }

    /// Returns the state of the setup with this digest.
    pub fn setup_state(&self, digest: &str) -> Result<SetupState, RepoError> {
        if SetupManifest::digest(&self.directory)?.as_deref() != Some(digest) {
            return Ok(SetupState::NotDone);
        }
        let Some(manifest) = SetupManifest::read(&self.directory)? else {
            return Ok(SetupState::NotDone);
        };
        if let Some(path) = manifest.find_damage(&self.directory) {
            return Ok(SetupState::Damaged { path });
        }
        let is_current =
            SetupManifest::holds_for(&self.directory, &self.setup_origin(), &self.tracked()?)?;
        Ok(if is_current { SetupState::Ready } else { SetupState::Old })
    }

    /// Returns a file of the recorded setup that was changed or removed.
    pub fn setup_damage(&self) -> Result<Option<PathBuf>, RepoError> {
        let manifest = SetupManifest::read(&self.directory)?;
        Ok(manifest.and_then(|manifest| manifest.find_damage(&self.directory)))
    }

    /// Returns whether the result of the setup was made on the trees that are in the room. True without a setup.
    pub fn has_setup_of_its_trees(&self) -> Result<bool, RepoError> {
        let origin = SetupManifest::origin(&self.directory)?;
        Ok(origin.is_none_or(|origin| origin.trees == self.setup_origin().trees))
    }

    fn setup_origin(&self) -> SetupOrigin {
        let lines = self.state.checkouts.iter();
        let lines: Vec<String> = lines.map(|it| format!("{} {}\n", it.path, it.tree)).collect();
        SetupOrigin {
            trees: sha256_hex(lines.concat()),
            refs: self.state.refs.clone(),
            session: self.session.clone(),
        }
    }

    /// Records all files that no tree has as the result of the setup with this digest.
    ///
    /// A room has one setup. The files of gates must not be taken for its result, so a warm room is refused: call
    /// [`Room::make_cold`] before the setup runs. Call [`Room::enter`] after it, which restores files of the tree that the
    /// setup changed.
    pub fn note_setup(&mut self, digest: &str) -> Result<(), RepoError> {
        self.check_entered()?;
        if self.is_warm() && self.left.is_none() {
            let why = "the setup ran among files that gates left: it is not recorded";
            return Err(RepoError::permanent(why));
        }
        let (tracked, copies) = (self.tracked()?, self.copy_paths()?);
        let mut origin = self.setup_origin();
        if self.left.is_some() {
            origin.trees.clear();
        }
        let left = self.left.as_ref();
        let setup = NewSetup { digest, origin, tracked: &tracked, copies: &copies, left };
        SetupManifest::record(&self.directory, &setup)?;
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

/// Returns the path with these hexadecimal digits.
fn path_of(digits: &str) -> Option<PathBuf> {
    unhex(digits).ok().map(|path| PathBuf::from(OsString::from_vec(path)))
}

/// Waits until the clock of files shows another time.
fn wait_for_clock(time: Duration) {
    std::thread::sleep(time);
}
