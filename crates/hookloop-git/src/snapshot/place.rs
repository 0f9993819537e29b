//! One working directory with hookloop's own index of it.
//!
//! The index begins with the files of the checked-out commit and has no flags of the user's index. After a snapshot
//! it has the exact content of all files, so the next snapshot reads only files that were written since.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tracing::warn;

use super::commands::{CommandFiles, ReadableObjects, SnapshotCommands};
use super::commit_settings::{CommitSettings, Conversion};
use super::head;
use super::quick_state::{QuickState, QuickTree};
use super::record::{self, NestedSnapshot, Snapshot, SnapshotMessage};
use super::status::{STATUS, StatusChanges, paths, push};
use crate::git::paths::{TAKE_IN, TAKE_OUT};
use crate::git::{GitError, GitLocks, is_git_at_work};
use crate::repo::state_file::{self, HeldLock};
use crate::repo::{CommitId, FoundRepository, RepoError};

/// The greatest depth of repositories within repositories.
const DEPTH_MAX: usize = 8;
const ATTRIBUTES: &str = ":(glob)**/.gitattributes";
/// The directory with the settings of checkouts.
pub(super) const CHECKOUT: &str = "checkout";

/// The knowledge of the last process about a working directory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PlaceState {
    /// The working directory.
    pub(super) top: PathBuf,
    /// Names the period in which settings stay as they were read: usually a session.
    pub(super) period: String,
    pub(super) git_dir: Option<PathBuf>,
    /// The objects of the user's repository.
    pub(super) objects: Option<PathBuf>,
    /// The commit at the start of the period.
    pub(super) base: Option<CommitId>,
    pub(super) conversion: Conversion,
    pub(super) is_sparse: bool,
    /// Whether git does more than read a file to store it.
    pub(super) has_filter: bool,
    /// The changed files of the last quick snapshot; none if the last one was not stored.
    pub(super) quick: Option<QuickState>,
    /// Whether the tree of a commit differs from the exact one.
    pub(super) is_converted: bool,
    /// Whether files of the index may be ignored now.
    pub(super) has_ignored: bool,
    /// The tree with the attributes of files.
    pub(super) attributes: Option<String>,
    /// Nested repositories that the index has, with their commits. Keys are hexadecimal digits.
    pub(super) gitlinks: BTreeMap<String, String>,
    pub(super) last: Option<Snapshot>,
}

/// One working directory.
#[derive(Debug)]
pub(super) struct SnapshotPlace<'c> {
    pub(super) commands: &'c SnapshotCommands,
    pub(super) top: PathBuf,
    /// None for files that are in no repository.
    pub(super) found: Option<FoundRepository>,
    pub(super) directory: PathBuf,
    pub(super) depth: usize,
    pub(super) state: PlaceState,
    _alone: HeldLock,
}

impl<'c> SnapshotPlace<'c> {
    /// Opens the place of a directory, and reads the user's settings if the period is a new one.
    pub(super) fn open(
        commands: &'c SnapshotCommands,
        top: &Path,
        found: Option<FoundRepository>,
        period: &str,
        depth: usize,
    ) -> Result<SnapshotPlace<'c>, RepoError> {
        if depth > DEPTH_MAX {
            let why = format!("{}: more than {DEPTH_MAX} nested repositories", top.display());
            return Err(RepoError::permanent(why));
        }
        let directory = place_directory(&commands.store, top);
        state_file::make_directory(&directory)?;
        let alone = HeldLock::wait(&directory.join("lock"), &commands.cancel)?;
        let state = match state_file::read(&directory.join("state.json"))? {
            // A state of another version is read again from the files.
            Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            None => PlaceState::default(),
        };
        let mut place = SnapshotPlace {
            commands,
            top: top.to_owned(),
            found,
            directory,
            depth,
            state,
            _alone: alone,
        };
        place.clear_locks()?;
        let git_dir = place.found.as_ref().map(|found| &found.git_dir);
        let is_same = place.state.period == period
            && place.state.top == top
            && place.state.git_dir.as_ref() == git_dir;
        if !is_same || !place.index().exists() || !place.checkout_dir().exists() {
            place.begin(period)?;
        }
        Ok(place)
    }

    /// A killed git leaves a lock that blocks every later one.
    fn clear_locks(&self) -> Result<(), RepoError> {
        for name in ["index.lock", "converted-index.lock"] {
            let lock = self.directory.join(name);
            if lock.exists() && !is_git_at_work(&[&self.directory], GitLocks::All) {
                state_file::remove(&lock)?;
            }
        }
        Ok(())
    }

    /// Reads the user's settings, and sets the index to the checked-out commit.
    fn begin(&mut self, period: &str) -> Result<(), RepoError> {
        let settings = match &self.found {
            Some(found) => CommitSettings::read(self.commands, found)?,
            None => CommitSettings::default(),
        };
        settings.write_exact(&self.exact_dir())?;
        settings.write_converted(&self.converted_dir())?;
        settings.write_checkout(&self.checkout_dir())?;
        self.state = PlaceState {
            top: self.top.clone(),
            period: String::new(),
            git_dir: self.found.as_ref().map(|found| found.git_dir.clone()),
            objects: self.found.as_ref().map(|found| found.common.join("objects")),
            is_sparse: settings.is_sparse(),
            has_filter: settings.has_filter(),
            ..PlaceState::default()
        };
        let head = self.head()?;
        match &head {
            Some(head) => {
                self.read_tree(head)?;
                state_file::write(&self.exact_dir().join("HEAD"), format!("{head}\n").as_bytes())?;
                if let Some(found) = &self.found {
                    head::keep_base(self.commands, found, head);
                }
            }
            None => self.forget_ignored()?,
        }
        self.add_staged()?;
        self.state.conversion = settings.conversion(&self.attribute_files()?);
        self.state.gitlinks = self.list_gitlinks()?;
        self.state.base = head;
        period.clone_into(&mut self.state.period);
        self.save()
    }

    /// Takes a snapshot of all files.
    pub(super) fn take(&mut self) -> Result<Snapshot, RepoError> {
        let head = self.head()?;
        let output = self.exact(ReadableObjects::All, &STATUS, Vec::new())?;
        let looks_for_returns =
            self.state.conversion == Conversion::LineEnds && !self.state.is_converted;
        let mut changes = StatusChanges::read(&output, &self.top, looks_for_returns)?;
        self.leave_out_sparse(&mut changes)?;
        let last = self.state.last.take();
        let is_moved = last.as_ref().is_some_and(|last| last.head != head);
        self.state.is_converted |= match self.state.conversion {
            Conversion::Off => false,
            Conversion::LineEnds => changes.has_carriage_return,
            Conversion::Any => true,
        };
        self.state.has_ignored |= changes.has_ignore_file;
        let may_be_quick = !is_moved
            && !self.state.is_converted
            && !self.state.has_ignored
            && changes.repositories.is_empty()
            && self.state.gitlinks.is_empty();
        let is_quick = |last: &&Snapshot| may_be_quick && last.nested.is_empty();
        if let Some(last) = last.as_ref().filter(is_quick) {
            let (nested, message) = (Vec::new(), self.message(None, head.as_ref(), &[])?);
            match self.quick_tree(&changes, &message)? {
                Some(QuickTree::Same) => {
                    self.state.last = Some(last.clone());
                    return Ok(last.clone());
                }
                Some(QuickTree::New { exact, commit }) => {
                    let (tree, top) = (exact.clone(), last.top.clone());
                    let snapshot = Snapshot { id: commit, tree, exact, top, head, nested };
                    self.state.last = Some(snapshot.clone());
                    self.save()?;
                    return Ok(snapshot);
                }
                None => {}
            }
        }
        self.take_whole(changes, last, head)
    }

    /// Takes a snapshot, after which the index has all files.
    fn take_whole(
        &mut self,
        changes: StatusChanges,
        last: Option<Snapshot>,
        head: Option<CommitId>,
    ) -> Result<Snapshot, RepoError> {
        let is_moved = last.as_ref().is_some_and(|last| last.head != head);
        let mut is_changed = !changes.is_none();
        self.state.quick = None;
        if is_changed || is_moved {
            // From here on the index has other files than the last snapshot, which must not be taken for this one.
            self.save()?;
        }
        if !changes.absent.is_empty() {
            self.exact(ReadableObjects::Own, &TAKE_OUT, changes.absent)?;
        }
        self.add(changes.present)?;
        if is_moved {
            is_changed |= self.follow_head(last.as_ref(), head.as_ref())?;
        }
        let (nested, is_relinked) = self.take_nested(&changes.repositories)?;
        is_changed |= is_relinked;
        if let Some(last) = last
            && !is_changed
            && !is_moved
            && last.nested == nested
        {
            self.state.last = Some(last.clone());
            return Ok(last);
        }
        let exact = self.exact_text(ReadableObjects::Own, &["write-tree", "--missing-ok"])?;
        self.state.attributes.get_or_insert_with(|| exact.clone());
        self.state.quick = Some(QuickState::new(&exact));
        let tree = self.tree_of_commit(&exact, head.as_ref())?;
        let snapshot = self.store(tree, exact, head, nested)?;
        state_file::write(&self.exact_dir().join("HEAD"), format!("{}\n", snapshot.id).as_bytes())?;
        self.state.last = Some(snapshot.clone());
        self.save()?;
        Ok(snapshot)
    }

    fn message(
        &self,
        tree: Option<&str>,
        head: Option<&CommitId>,
        nested: &[NestedSnapshot],
    ) -> Result<String, RepoError> {
        let message = SnapshotMessage {
            tree: tree.map(str::to_owned),
            top: hookloop_core::digest::hex(self.top.as_os_str().as_bytes()),
            head: head.cloned(),
            base: self.state.base.clone(),
            nested: nested.to_vec(),
        };
        serde_json::to_string(&message)
            .map_err(|error| RepoError::permanent(format!("a snapshot is not written: {error}")))
    }

    /// Stores the commit that is the snapshot.
    fn store(
        &self,
        tree: String,
        exact: String,
        head: Option<CommitId>,
        nested: Vec<NestedSnapshot>,
    ) -> Result<Snapshot, RepoError> {
        let converted = match tree == exact {
            true => None,
            false => Some(self.make_commit(&tree, &[], "The tree of a commit.")?),
        };
        let top = hookloop_core::digest::hex(self.top.as_os_str().as_bytes());
        let different = converted.as_ref().map(|_| tree.as_str());
        let message = self.message(different, head.as_ref(), &nested)?;
        let parents: Vec<&CommitId> =
            converted.iter().chain(nested.iter().map(|nested| &nested.id)).collect();
        let id = self.make_commit(&exact, &parents, &message)?;
        Ok(Snapshot { id, tree, exact, top, head, nested })
    }

    fn make_commit(
        &self,
        tree: &str,
        parents: &[&CommitId],
        message: &str,
    ) -> Result<CommitId, RepoError> {
        let args = ["hash-object", "-t", "commit", "-w", "--stdin"];
        let text = record::commit_text(tree, parents, message);
        let said = self.exact(ReadableObjects::Own, &args, text)?;
        let name = String::from_utf8_lossy(&said).trim().to_owned();
        name.parse().map_err(|_| RepoError::permanent(format!("`{name}` is no commit")))
    }

    pub(super) fn head(&self) -> Result<Option<CommitId>, RepoError> {
        self.found.as_ref().map_or(Ok(None), |found| head::head(self.commands, found))
    }

    /// Sets the index to a commit. The knowledge about unchanged files stays.
    fn read_tree(&self, head: &CommitId) -> Result<(), RepoError> {
        let merged = ["read-tree", "-m", "-i", head.as_str()];
        if self.index().exists() && self.exact(ReadableObjects::All, &merged, Vec::new()).is_ok() {
            return Ok(());
        }
        state_file::remove(&self.index())?;
        self.exact(ReadableObjects::All, &["read-tree", head.as_str()], Vec::new()).map(drop)
    }

    /// Removes files from the index that are ignored now, where no commit says which files are tracked.
    fn forget_ignored(&self) -> Result<(), RepoError> {
        state_file::write(&self.exact_dir().join("HEAD"), super::NO_HEAD)?;
        if !self.index().exists() {
            return self
                .exact(ReadableObjects::Own, &["read-tree", "--empty"], Vec::new())
                .map(drop);
        }
        let args = ["ls-files", "-z", "-c", "-i", "--exclude-standard"];
        let ignored = self.exact(ReadableObjects::Own, &args, Vec::new())?;
        if ignored.is_empty() {
            return Ok(());
        }
        self.exact(ReadableObjects::Own, &TAKE_OUT, ignored).map(drop)
    }

    /// Adds files that the user has added to the index of the repository, even if they are ignored.
    fn add_staged(&self) -> Result<(), RepoError> {
        let Some(found) = &self.found else {
            return state_file::write(&self.directory.join("staged"), b"");
        };
        let args = match self.head()? {
            Some(_) => {
                vec!["diff-index", "--cached", "-z", "--name-only", "--diff-filter=A", "HEAD"]
            }
            None => vec!["ls-files", "-z", "--cached"],
        };
        let staged = self.commands.users(&found.git_dir, &args)?.well("diff-index");
        let unread = |error: &GitError| {
            warn!(repository = %found.git_dir.display(), %error, "the user's index can't be read");
        };
        // An index that git can't read has no files that a commit would have.
        let staged = staged.inspect_err(unread).unwrap_or_default();
        state_file::write(&self.directory.join("staged"), &staged)?;
        self.add(self.files_among(&staged))
    }

    /// Returns the paths that are files or links here.
    fn files_among(&self, list: &[u8]) -> Vec<u8> {
        let mut kept = Vec::new();
        for path in paths(list) {
            let found = self.top.join(OsStr::from_bytes(path)).symlink_metadata();
            if found.is_ok_and(|found| found.is_file() || found.is_symlink()) {
                push(&mut kept, path);
            }
        }
        kept
    }

    /// Reads files into the index.
    fn add(&self, list: Vec<u8>) -> Result<(), RepoError> {
        if list.is_empty() {
            return Ok(());
        }
        self.exact(ReadableObjects::Own, &TAKE_IN, list).map(drop)
    }

    /// Files outside of a sparse checkout are missing, but not deleted.
    fn leave_out_sparse(&self, changes: &mut StatusChanges) -> Result<(), RepoError> {
        if !self.state.is_sparse || changes.absent.is_empty() {
            return Ok(());
        }
        let args = ["sparse-checkout", "check-rules", "-z"];
        let inside =
            self.exact(ReadableObjects::Own, &args, changes.absent.clone()).map_err(|error| {
                let why =
                    format!("a snapshot of a sparse checkout needs git 2.41 or newer: {error}");
                RepoError::permanent(why)
            })?;
        let inside: BTreeSet<&[u8]> = paths(&inside).collect();
        let (mut absent, mut outside) = (Vec::new(), Vec::new());
        for path in paths(&changes.absent) {
            let is_absent = self.top.join(OsStr::from_bytes(path)).symlink_metadata().is_err();
            match inside.contains(path) || !is_absent {
                true => push(&mut absent, path),
                false => push(&mut outside, path),
            }
        }
        changes.absent = absent;
        if outside.is_empty() {
            return Ok(());
        }
        let args = ["update-index", "-z", "--skip-worktree", "--stdin"];
        self.exact(ReadableObjects::Own, &args, outside).map(drop)
    }

    /// Adds files that a new commit has, even if they are ignored. Returns whether there are any.
    fn follow_head(
        &mut self,
        last: Option<&Snapshot>,
        head: Option<&CommitId>,
    ) -> Result<bool, RepoError> {
        self.state.has_ignored = true;
        let (Some(old), Some(new)) = (last.and_then(|last| last.head.as_ref()), head) else {
            return Ok(false);
        };
        let (old, new) = (old.as_str(), new.as_str());
        let args =
            ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", old, new];
        // If the old commit is gone, its files are known from the index.
        let added = self.exact(ReadableObjects::All, &args, Vec::new()).unwrap_or_default();
        let added = self.files_among(&added);
        let is_changed = !added.is_empty();
        self.add(added)?;
        self.state.gitlinks = self.list_gitlinks()?;
        Ok(is_changed)
    }

    /// Returns the text of all attribute files of the working directory, and stores them.
    ///
    /// Later commands read attributes from the first snapshot, and some of them without the user's objects.
    fn attribute_files(&self) -> Result<Vec<u8>, RepoError> {
        let args = ["ls-files", "-z", "-c", "-o", "--exclude-standard", "--", ATTRIBUTES];
        let list = self.exact(ReadableObjects::Own, &args, Vec::new())?;
        let mut text = Vec::new();
        for path in paths(&list) {
            let path = self.top.join(OsStr::from_bytes(path));
            // A file that is deleted, or no small file, has no attributes for git either.
            if let Ok(Some(bytes)) = state_file::read(&path) {
                text.extend_from_slice(&bytes);
                text.push(b'\n');
                self.exact(ReadableObjects::Own, &["hash-object", "-w", "--stdin"], bytes)?;
            }
        }
        Ok(text)
    }

    pub(super) fn exact_text(
        &self,
        readable: ReadableObjects,
        args: &[&str],
    ) -> Result<String, RepoError> {
        let said = self.exact(readable, args, Vec::new())?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Runs a command on the exact content of files.
    pub(super) fn exact(
        &self,
        readable: ReadableObjects,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<Vec<u8>, RepoError> {
        let (git_dir, index) = (self.exact_dir(), self.index());
        self.commands.own(self.files(&git_dir, &index), readable, args, stdin)
    }

    pub(super) fn files<'a>(&'a self, git_dir: &'a Path, index: &'a Path) -> CommandFiles<'a> {
        CommandFiles {
            git_dir,
            work_tree: &self.top,
            index,
            users_objects: self.state.objects.as_slice(),
            attributes: self.state.attributes.as_deref(),
        }
    }

    pub(super) fn save(&self) -> Result<(), RepoError> {
        let bytes = serde_json::to_vec(&self.state)
            .map_err(|error| RepoError::permanent(format!("a snapshot is not written: {error}")))?;
        state_file::write(&self.directory.join("state.json"), &bytes)
    }

    pub(super) fn index(&self) -> PathBuf {
        self.directory.join("index")
    }

    pub(super) fn converted_index(&self) -> PathBuf {
        self.directory.join("converted-index")
    }

    pub(super) fn exact_dir(&self) -> PathBuf {
        self.directory.join("exact")
    }

    pub(super) fn converted_dir(&self) -> PathBuf {
        self.directory.join("converted")
    }

    pub(super) fn checkout_dir(&self) -> PathBuf {
        self.directory.join(CHECKOUT)
    }
}

/// Returns the directory with the files about a working directory.
pub(super) fn place_directory(store: &Path, top: &Path) -> PathBuf {
    let key = hookloop_core::digest::short_sha256_hex(top.as_os_str().as_bytes(), 12);
    store.join("places").join(key)
}
