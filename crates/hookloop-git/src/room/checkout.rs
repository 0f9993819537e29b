//! One checkout in a room, with hookloop's own git directory for it.
//!
//! A gate can write everything among the files, a `.git` directory too. So git never reads one there: its directory and
//! its index are outside, and attributes come from the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hookloop_core::digest::sha256_hex;

use super::index_entries::{IndexEntries, IndexEntry};
use super::survey::{CheckoutSurvey, SurveyTarget, UntrackedEntry};
use super::trash::RoomTrash;
use crate::git::{GitLocks, GitOutput, is_git_at_work};
use crate::lfs::checkout_filter;
use crate::repo::{RepoError, quoted, state_file};
use crate::snapshot::{
    CheckoutSettings, CommandFiles, NO_HEAD, ReadableObjects, SafeDirectory, SnapshotCommands,
};

/// Patterns in this file are part of `info/exclude`.
const NO_EXCLUDES: &str = "\texcludesFile = /dev/null\n";

/// One checkout: the files of a tree.
#[derive(Debug)]
pub(super) struct RoomCheckout<'r> {
    pub(super) commands: &'r SnapshotCommands,
    pub(super) trash: &'r RoomTrash,
    /// Git's own directory.
    pub(super) git_dir: PathBuf,
    pub(super) files: PathBuf,
    pub(super) tree: &'r str,
    pub(super) settings: &'r CheckoutSettings,
    pub(super) directory_mode: u32,
    /// Directories of other checkouts that the tree does not name.
    pub(super) nested: BTreeSet<Vec<u8>>,
}

/// The state of a checkout after the last move.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownCheckout<'k> {
    pub(super) tree: &'k str,
    /// The digest of the settings.
    pub(super) settings: &'k str,
    /// Pointers to large files without content.
    pub(super) missing: &'k [String],
}

/// A checkout that has the files of its tree.
#[derive(Debug)]
pub(super) struct MovedCheckout {
    pub(super) entries: IndexEntries,
    /// The entries before the move; none for a new checkout.
    pub(super) before: Option<IndexEntries>,
    pub(super) untracked: Vec<UntrackedEntry>,
    /// Whether files were written or removed.
    pub(super) is_changed: bool,
}

impl MovedCheckout {
    /// Returns the files that the move wrote.
    pub(super) fn written(&self) -> Vec<&IndexEntry> {
        match self.is_changed {
            true => self.entries.written_since(self.before.as_ref()),
            false => Vec::new(),
        }
    }
}

impl RoomCheckout<'_> {
    /// Writes git's own directory. Returns the digest of the settings.
    pub(super) fn prepare(&self) -> Result<String, RepoError> {
        let CheckoutSettings { config, global_attributes, attributes, excludes, .. } =
            self.settings;
        state_file::make_directory(&self.git_dir.join("refs"))?;
        let global = self.git_dir.join("attributes");
        let mut config = String::from_utf8_lossy(config).into_owned();
        let path = quoted(&global.to_string_lossy());
        config.push_str(&format!("[core]\n{NO_EXCLUDES}\tattributesFile = {path}\n"));
        if self.settings.has_large_files {
            let program = self.commands.keepers.program();
            let program = program.map_err(RepoError::io(Path::new("/proc/self/exe")))?;
            config.push_str(&checkout_filter(&program, &self.content_directories()));
        }
        let mut all = Vec::new();
        for (name, bytes) in [
            ("config", config.as_bytes()),
            ("attributes", global_attributes),
            ("info/attributes", attributes),
            ("info/exclude", excludes),
            ("HEAD", NO_HEAD),
        ] {
            state_file::write(&self.git_dir.join(name), bytes)?;
            all.extend_from_slice(sha256_hex(bytes).as_bytes());
        }
        self.clear_lock()?;
        Ok(sha256_hex(all))
    }

    /// Returns the directories with the content of large files.
    pub(super) fn content_directories(&self) -> Vec<PathBuf> {
        let users = self.settings.objects.as_deref().and_then(Path::parent);
        let users = users.map(|common| common.join("lfs/objects"));
        [self.commands.lfs()].into_iter().chain(users).collect()
    }

    /// A killed git leaves a lock that blocks every later one.
    fn clear_lock(&self) -> Result<(), RepoError> {
        let lock = self.git_dir.join("index.lock");
        if !lock.exists() {
            return Ok(());
        }
        if is_git_at_work(&[&self.git_dir], GitLocks::All) {
            return Err(RepoError::Retry {
                why: format!("git works in {}", self.git_dir.display()),
            });
        }
        state_file::remove(&lock)
    }

    /// Moves the checkout from the tree that is known to its own.
    pub(super) fn move_files(
        &self,
        known: Option<KnownCheckout<'_>>,
        settings: &str,
    ) -> Result<MovedCheckout, RepoError> {
        let Some(known) = known else { return self.make_new() };
        let Some(before) = self.entries()? else { return self.make_new() };
        let CheckoutSurvey { mut changed, untracked } = self.survey(&before)?;
        changed.extend(self.filled_pointers(known.missing, &before));
        let is_converted_alike = known.settings == settings;
        if is_converted_alike && known.tree == self.tree && changed.is_empty() {
            let entries = before;
            return Ok(MovedCheckout { entries, before: None, untracked, is_changed: false });
        }
        // Git would not notice each of these changes.
        for path in &changed {
            self.trash.discard(path)?;
        }
        self.read_tree()?;
        let entries = self.required_entries()?;
        if !is_converted_alike || entries.attribute_files() != before.attribute_files() {
            // Files with the same content in both trees may have another one here.
            return self.make_new();
        }
        self.finish(entries, Some(before))
    }

    /// Writes all files again.
    fn make_new(&self) -> Result<MovedCheckout, RepoError> {
        state_file::remove(&self.index())?;
        self.read_tree()?;
        self.finish(self.required_entries()?, None)
    }

    fn finish(
        &self,
        entries: IndexEntries,
        before: Option<IndexEntries>,
    ) -> Result<MovedCheckout, RepoError> {
        for nested in &self.nested {
            let below = super::survey::path(nested).join("any");
            SafeDirectory::make(&self.files, &below).map_err(RepoError::permanent)?;
        }
        let survey = self.survey(&entries)?;
        if let Some(path) = survey.changed.first() {
            let why = format!("{} is not the file that git wrote", path.display());
            return Err(RepoError::permanent(why));
        }
        let untracked = survey.untracked;
        Ok(MovedCheckout { entries, before, untracked, is_changed: true })
    }

    fn survey(&self, entries: &IndexEntries) -> Result<CheckoutSurvey, RepoError> {
        let target = SurveyTarget {
            files: &self.files,
            entries,
            nested: &self.nested,
            directory_mode: self.directory_mode,
            trash: self.trash,
        };
        target.compare()
    }

    /// Sets the index to the tree, and writes the files that differ from it.
    fn read_tree(&self) -> Result<(), RepoError> {
        self.git(&["read-tree", "--reset", "-u", self.tree], Vec::new()).map(drop)
    }

    /// Returns the entries of the index; `None` if it is missing or can't be read.
    fn entries(&self) -> Result<Option<IndexEntries>, RepoError> {
        match IndexEntries::read(&self.index(), self.is_sha256()) {
            // A new checkout replaces it.
            Err(RepoError::Permanent { .. }) => Ok(None),
            read => read,
        }
    }

    pub(super) fn required_entries(&self) -> Result<IndexEntries, RepoError> {
        let path = self.index();
        let missing = || RepoError::permanent(format!("git did not write {}", path.display()));
        IndexEntries::read(&path, self.is_sha256())?.ok_or_else(missing)
    }

    pub(super) fn is_sha256(&self) -> bool {
        self.tree.len() == 64
    }

    pub(super) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// Takes all files out of the directories of repositories that have no files here.
    pub(super) fn empty_gitlinks(
        &self,
        entries: &IndexEntries,
        filled: &BTreeSet<&[u8]>,
    ) -> Result<(), RepoError> {
        for entry in entries.entries.iter().filter(|entry| entry.is_gitlink()) {
            if !filled.contains(entry.path.as_slice()) {
                let directory = self.files.join(super::survey::path(&entry.path));
                self.trash.discard_content(&directory)?;
            }
        }
        Ok(())
    }

    pub(super) fn git(&self, args: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, RepoError> {
        let command = args.first().copied().unwrap_or_default();
        Ok(self.git_output(&self.index(), args, stdin)?.well(command)?)
    }

    /// Runs a command with this index.
    pub(super) fn git_output(
        &self,
        index: &Path,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<GitOutput, RepoError> {
        let files = CommandFiles {
            git_dir: &self.git_dir,
            work_tree: &self.files,
            index,
            users_objects: self.settings.objects.as_slice(),
            attributes: Some(self.tree),
        };
        self.commands.own_output(files, ReadableObjects::All, args, stdin)
    }

    /// Deletes git's own directory.
    pub(super) fn forget(git_dir: &Path) -> Result<(), RepoError> {
        match fs::remove_dir_all(git_dir) {
            Err(error) if !state_file::absent(&error) => Err(RepoError::io(git_dir)(error)),
            _ => Ok(()),
        }
    }
}
