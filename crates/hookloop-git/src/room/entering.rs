//! The move of a room from tree to tree.
//!
//! The state says so before the first file changes. If the process is killed, the next move writes all files again.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use hookloop_core::digest::{hex, short_sha256_hex};
use tracing::warn;

use super::checkout::{KnownCheckout, RoomCheckout};
use super::file_times::{CLOCK_LAG, later_time, now_ns};
use super::index_entries::IndexEntries;
use super::kept_paths::KeptPaths;
use super::path_set::PathSet;
use super::planned_checkouts::PlannedCheckout;
use super::room_state::{CheckoutState, boot};
use super::setup_manifest::SetupManifest;
use super::survey::path;
use super::visible_repository::VisibleRepository;
use super::{Room, RoomChange, RoomTarget, wait_for_clock};
use crate::repo::{FoundRepository, RepoError, state_file};
use crate::snapshot::{StoreLock, unhex};

const GIT: &str = "git";
const PERMISSIONS: u32 = 0o777;

/// A checkout that has files in the room.
#[derive(Debug)]
struct FilledCheckout<'p> {
    plan: Cow<'p, PlannedCheckout>,
    /// The commit that the repository around this one names.
    commit: Option<String>,
    /// Whether the user's directory has changes that the commit does not have.
    is_behind: bool,
}

/// A move that has begun and not ended.
#[derive(Debug, Default)]
struct RoomMove {
    checkouts: Vec<CheckoutState>,
    /// The digest of the refs that gates see.
    refs: Option<String>,
    change: RoomChange,
    /// The modification time of written files, if the clock gives no later one.
    later_ns: Option<u64>,
    /// The time after the last file was written.
    written: Option<Instant>,
    /// The paths that stay, once they are read.
    kept: OnceCell<HashSet<Vec<u8>>>,
}

impl Room {
    /// Moves the checkout to the target's tree. The cost is the difference, not the repository.
    ///
    /// If a move fails because of files that a gate left, all files are written once more. An object that is missing is
    /// an error.
    pub fn enter(&mut self, target: &RoomTarget<'_>) -> Result<RoomChange, RepoError> {
        // No object of the tree is deleted meanwhile.
        let _shared = StoreLock::shared(&self.commands)?;
        let plan = PlannedCheckout::of_target(target)?;
        self.users_objects = plan.objects().cloned();
        let mut entered = self.move_to(target, &plan);
        if let Err(error @ (RepoError::Permanent { .. } | RepoError::Io { .. })) = &entered {
            self.check_objects(&plan)?;
            warn!(room = %self.directory.display(), %error, "the files of a room are made again");
            self.discard_files()?;
            entered = self.move_to(target, &plan);
        }
        self.trash.empty();
        entered
    }

    fn move_to(
        &mut self,
        target: &RoomTarget<'_>,
        plan: &PlannedCheckout,
    ) -> Result<RoomChange, RepoError> {
        self.make_directories()?;
        let now = now_ns();
        let latest = match self.state.has_run_ended {
            true => self.state.latest_ns,
            // Files may have been written until now.
            false => self.state.latest_ns.max(now),
        };
        let mut movement = RoomMove { later_ns: later_time(latest, now), ..RoomMove::default() };
        self.begin_move(target)?;
        movement.change.is_new = self.state.checkouts.is_empty();
        let top = FilledCheckout { plan: Cow::Borrowed(plan), commit: None, is_behind: false };
        self.move_checkout(&top, &mut movement)?;
        let is_left =
            |old: &&CheckoutState| !movement.checkouts.iter().any(|new| new.path == old.path);
        for old in self.state.checkouts.iter().filter(is_left) {
            RoomCheckout::forget(&self.git_dir(&unhex(&old.path)?))?;
        }
        movement.refs = self.write_repository(target, plan)?;
        self.trash.discard_content(&self.temporary)?;
        self.end_move(target, movement)
    }

    /// Writes the repository that gates see, and returns the digest of its refs; `None` without a repository.
    fn write_repository(
        &self,
        target: &RoomTarget<'_>,
        plan: &PlannedCheckout,
    ) -> Result<Option<String>, RepoError> {
        if plan.objects().is_none() {
            self.trash.discard(&self.files.join(".git"))?;
            return Ok(None);
        }
        let found = FoundRepository::look(target.top)?;
        let (checkout, base) = (&self.checkout(plan), target.base);
        let (objects, top) = (self.objects.as_path(), target.top);
        let visible = VisibleRepository { checkout, found: &found, base, objects, top };
        visible.write(&self.directory).map(Some)
    }

    /// Records the new tree.
    fn end_move(
        &mut self,
        target: &RoomTarget<'_>,
        movement: RoomMove,
    ) -> Result<RoomChange, RepoError> {
        if let Some(written) = movement.written {
            // A file that a gate changes has another time than the one in the index.
            wait_for_clock(CLOCK_LAG.saturating_sub(written.elapsed()));
        }
        let now = now_ns();
        self.state.checkouts = movement.checkouts;
        self.state.refs = movement.refs;
        self.state.tree = Some(target.tree.to_owned());
        self.state.latest_ns = now.max(movement.later_ns.unwrap_or(0));
        self.state.last_used_ns = now;
        self.state.has_run_ended = false;
        self.state.is_moving = false;
        self.state.save(&self.directory)?;
        Ok(movement.change)
    }

    /// Removes the files of other sessions and of a move that did not finish.
    fn begin_move(&mut self, target: &RoomTarget<'_>) -> Result<(), RepoError> {
        let top = hex(target.top.as_os_str().as_bytes());
        let boot = boot();
        let is_unfinished = self.state.is_moving || self.state.boot != boot;
        let is_moved = self.state.top != top;
        let is_others = self.state.session != self.session || is_moved;
        self.state.is_moving = true;
        self.state.save(&self.directory)?;
        if is_moved {
            // Files of a setup name their directory: the interpreter of a script, for example.
            SetupManifest::remove(&self.directory)?;
        }
        if is_unfinished || is_others {
            let tracked = if is_unfinished { PathSet::default() } else { self.tracked()? };
            self.state.copies.clear();
            self.clear(tracked, &[])?;
        }
        if is_unfinished {
            self.state.checkouts.clear();
        } else if !self.state.has_run_ended && self.has_files_of_gates()? {
            // A run may have been killed. Its result is not known.
            self.state.is_warm = true;
            self.state.is_touched_by_refused = true;
        }
        self.state.boot = boot;
        self.state.top = top;
        self.state.session.clone_from(&self.session);
        self.state.save(&self.directory)
    }

    fn move_checkout(
        &self,
        place: &FilledCheckout<'_>,
        movement: &mut RoomMove,
    ) -> Result<(), RepoError> {
        let planned: &PlannedCheckout = &place.plan;
        let checkout = self.checkout(planned);
        let settings = checkout.prepare()?;
        let name = hex(&planned.path);
        let known = self.state.checkout(&name);
        let missing = known.map_or(&[][..], |known| &known.missing);
        let known = known.map(|known| KnownCheckout {
            tree: &known.tree,
            settings: &known.settings,
            missing,
        });
        let mut moved = checkout.move_files(known, &settings)?;
        if moved.is_changed {
            movement.written = Some(Instant::now());
        }
        let untracked = std::mem::take(&mut moved.untracked);
        let nested = self.filled(planned, &moved.entries)?;
        let filled: BTreeSet<&[u8]> =
            nested.iter().map(|filled| filled.plan.relative.as_slice()).collect();
        checkout.empty_gitlinks(&moved.entries, &filled)?;
        let written = moved.written();
        if moved.is_changed {
            checkout.prove_index()?;
            checkout.prove_files(&moved.entries, &written)?;
        }
        let kept = KeptPaths {
            room: &self.directory,
            copies: self.copy_paths()?,
            prefix: &planned.path,
            loaded: &movement.kept,
        };
        movement.change.removed_files += checkout.remove_untracked(untracked, &kept)?;
        if let Some(ns) = movement.later_ns.filter(|_| !written.is_empty()) {
            checkout.set_times(&written, ns)?;
            movement.written = Some(Instant::now());
        }
        let missing = checkout.missing_pointers(&moved.entries, &written, missing);
        movement.change.written_files += written.len();
        movement.change.missing_large_files += missing.len();
        movement.checkouts.push(CheckoutState {
            path: name,
            tree: planned.tree.clone(),
            commit: place.commit.clone(),
            is_behind: place.is_behind,
            settings,
            missing,
        });
        nested.iter().try_for_each(|nested| self.move_checkout(nested, movement))
    }

    /// Returns the nested checkouts that have files.
    ///
    /// A repository names the commits of those in it, so they have the files of these commits: changes that are not
    /// committed are no part of its tree. Without a repository around them, they have the current files.
    fn filled<'p>(
        &self,
        planned: &'p PlannedCheckout,
        entries: &IndexEntries,
    ) -> Result<Vec<FilledCheckout<'p>>, RepoError> {
        let mut filled = Vec::new();
        for nested in &planned.nested {
            if planned.objects().is_none() {
                let (plan, commit) = (Cow::Borrowed(nested), None);
                filled.push(FilledCheckout { plan, commit, is_behind: false });
            } else if let Some(commit) = entries.gitlink(&nested.relative) {
                let tree = self.tree_of_commit(nested, &commit)?;
                let is_behind = tree != nested.tree;
                let plan = Cow::Owned(PlannedCheckout { tree, ..nested.clone() });
                filled.push(FilledCheckout { plan, commit: Some(commit), is_behind });
            }
        }
        Ok(filled)
    }

    fn tree_of_commit(&self, nested: &PlannedCheckout, commit: &str) -> Result<String, RepoError> {
        let known = self.state.checkout(&hex(&nested.path));
        let known = known.filter(|known| known.commit.as_deref() == Some(commit));
        if let Some(known) = known {
            return Ok(known.tree.clone());
        }
        let checkout = self.checkout(nested);
        checkout.prepare()?;
        let tree = format!("{commit}^{{tree}}");
        let said = checkout.git(&["rev-parse", "--verify", "--quiet", &tree], Vec::new());
        let said = said.map_err(|_| {
            RepoError::permanent(format!(
                "{} has not the commit {commit}, which the repository around it names: fetch it there",
                path(&nested.path).display()
            ))
        })?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Returns a checkout of this room.
    fn checkout<'r>(&'r self, planned: &'r PlannedCheckout) -> RoomCheckout<'r> {
        let others = planned.nested.iter().map(|nested| nested.relative.clone());
        RoomCheckout {
            commands: &self.commands,
            trash: &self.trash,
            git_dir: self.git_dir(&planned.path),
            files: self.files.join(path(&planned.path)),
            tree: &planned.tree,
            settings: &planned.settings,
            directory_mode: self.state.directory_mode,
            // A tree of a repository names the repositories in it.
            nested: others.filter(|_| planned.objects().is_none()).collect(),
        }
    }

    /// Returns hookloop's own git directory of a checkout.
    pub(super) fn git_dir(&self, relative: &[u8]) -> PathBuf {
        let own = self.directory.join(GIT);
        match relative {
            b"" => own,
            relative => own.join("nested").join(short_sha256_hex(relative, 16)),
        }
    }

    /// Returns an error if an object of the plan is missing.
    fn check_objects(&self, planned: &PlannedCheckout) -> Result<(), RepoError> {
        self.checkout(planned).check_objects()?;
        planned.nested.iter().try_for_each(|nested| self.check_objects(nested))
    }

    /// Returns the files of all checkouts.
    pub(super) fn tracked(&self) -> Result<PathSet, RepoError> {
        let mut tracked = PathSet::default();
        for checkout in &self.state.checkouts {
            let prefix = unhex(&checkout.path)?;
            let index = self.git_dir(&prefix).join("index");
            let is_sha256 = checkout.tree.len() == 64;
            if let Some(entries) = IndexEntries::read(&index, is_sha256)? {
                tracked.add_entries(&prefix, &entries);
            }
        }
        Ok(tracked)
    }

    /// Returns whether there are files of gates: neither tracked nor copied, nor those of the setup.
    fn has_files_of_gates(&self) -> Result<bool, RepoError> {
        let mut known = self.tracked()?;
        let mut caches = PathSet::default();
        if let Some(setup) = SetupManifest::read(&self.directory)? {
            setup.add_files(&mut known);
            caches = setup.unchanged_caches(&self.directory);
        }
        self.copy_paths()?.iter().for_each(|copy| known.add_file(copy));
        Ok(known.has_others(&self.files)? || caches.has_others(&self.caches)?)
    }

    /// Removes all files except these, an undamaged setup and these copied files.
    pub(super) fn clear(&mut self, tracked: PathSet, copies: &[Vec<u8>]) -> Result<(), RepoError> {
        let mut stays = tracked;
        let room = &self.directory;
        let setup = SetupManifest::read(room)?;
        let setup = setup.filter(|setup| setup.find_damage(room).is_none());
        let mut caches = PathSet::default();
        match &setup {
            Some(setup) => {
                setup.add_files(&mut stays);
                caches = setup.unchanged_caches(room);
            }
            None => SetupManifest::remove(room)?,
        }
        copies.iter().for_each(|copy| stays.add_file(copy));
        stays.remove_others(&self.files, &self.trash)?;
        caches.remove_others(&self.caches, &self.trash)?;
        self.trash.discard_content(&self.temporary)?;
        self.state.is_warm = false;
        self.state.is_touched_by_refused = false;
        Ok(())
    }

    /// Takes all files away, with everything that is known about them.
    fn discard_files(&mut self) -> Result<(), RepoError> {
        self.trash.discard(&self.files)?;
        self.trash.discard(&self.directory.join(GIT))?;
        SetupManifest::remove(&self.directory)?;
        self.state.checkouts.clear();
        self.state.copies.clear();
        self.state.is_warm = false;
        self.state.is_touched_by_refused = false;
        self.state.save(&self.directory)
    }

    /// Creates the directories of the room. Anything else in their place is removed.
    fn make_directories(&mut self) -> Result<(), RepoError> {
        for directory in [&self.files, &self.caches, &self.temporary, &self.objects] {
            match directory.symlink_metadata() {
                Ok(found) if found.is_dir() => continue,
                Ok(_) => self.trash.discard(directory)?,
                Err(error) if state_file::absent(&error) => {}
                Err(error) => return Err(RepoError::io(directory)(error)),
            }
            fs::create_dir(directory).map_err(RepoError::io(directory))?;
        }
        if self.state.directory_mode == 0 {
            // The permissions of a new directory are those that the user wants.
            let found = self.objects.metadata().map_err(RepoError::io(&self.objects))?;
            self.state.directory_mode = found.permissions().mode() & PERMISSIONS;
        }
        let permissions = fs::Permissions::from_mode(self.state.directory_mode);
        for directory in [&self.files, &self.caches, &self.temporary] {
            let found = directory.metadata().map_err(RepoError::io(directory))?;
            if found.permissions().mode() & PERMISSIONS != self.state.directory_mode {
                let set = fs::set_permissions(directory, permissions.clone());
                set.map_err(RepoError::io(directory))?;
            }
        }
        Ok(())
    }
}
