//! Snapshots: the state of all files of a working directory, tracked or not, without those that git ignores.
//!
//! A snapshot has two trees. One has the exact bytes of each file, so that the files can be restored. The other is the
//! tree that the user's commit of these files would have: line ends are converted, for example. In most
//! repositories both are the same.
//!
//! Everything is in hookloop's own object store. The user's index is not changed, and only the names of files that
//! the user added are read from it. The user's repository gets one ref, which keeps the commit that the session began
//! with.

mod checkout_settings;
mod commands;
mod commit_settings;
mod commit_tree;
mod edited_tree;
mod file_changes;
mod head;
mod ignored_files;
mod nested;
mod place;
mod quick;
mod quick_state;
mod record;
mod restore;
mod retention;
mod safe_directory;
mod status;
mod store_lock;
mod undo;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_process::{Cancel, KeeperPool};

pub(crate) use self::checkout_settings::CheckoutSettings;
pub(crate) use self::commands::{CommandFiles, ReadableObjects, SnapshotCommands};
pub use self::edited_tree::TreeEdit;
pub use self::file_changes::{ChangedPath, FileChange, FileState};
use self::place::{PlaceState, SnapshotPlace};
pub(crate) use self::record::unhex;
pub use self::record::{NestedSnapshot, Snapshot};
pub use self::restore::{
    NotRestored, RestoreItem, RestoreLock, RestorePlan, RestoreReport, top_of, unfinished_restore,
};
pub use self::retention::{GcReport, RetentionLimits, SnapshotUsage, snapshot_usage};
pub(crate) use self::safe_directory::SafeDirectory;
pub(crate) use self::status::{paths, push};
pub(crate) use self::store_lock::StoreLock;
pub use self::undo::{RestoredFile, RestoredFiles, RestoredStates, TurnFiles};
use crate::git::{GitOutput, GitVariable};
use crate::repo::{CommitId, FoundRepository, RepoError, state_file};

/// The content of `HEAD` in a repository without commits.
pub(crate) const NO_HEAD: &[u8] = b"ref: refs/heads/none\n";
/// The configuration of the store.
const STORE_CONFIG: &str = "# Written by hookloop.\n[core]\n\tbare = true\n";
/// The refs that keep snapshots.
const REFS: &str = "refs/snapshots";

/// The most working directories of a project.
const PLACES_MAX: usize = 10_000;

/// The most snapshots that are searched for a file.
const NEWEST_MAX: usize = 1_000;
/// The most names in a group.
const NAMES_MAX: usize = 100_000;

/// Takes snapshots of one working directory.
#[derive(Debug)]
pub struct Snapshots {
    commands: SnapshotCommands,
    /// The project's directory, which may be below the top of its repository.
    root: PathBuf,
    period: String,
}

/// The parameters of [`Snapshots`].
#[derive(Debug)]
pub struct SnapshotOptions<'o> {
    /// The project's directory.
    pub root: &'o Path,
    /// The directory of the project's state.
    pub state: &'o Path,
    /// The time in which the user's settings stay as they were read: usually the name of a session.
    pub period: String,
    /// The user's environment.
    pub environment: &'o [GitVariable],
    pub keepers: &'o Arc<KeeperPool>,
    pub cancel: Cancel,
}

impl Snapshots {
    pub fn new(options: SnapshotOptions<'_>) -> Snapshots {
        let SnapshotOptions { root, state, period, environment, keepers, cancel } = options;
        let commands = SnapshotCommands {
            keepers: Arc::clone(keepers),
            environment: environment.to_vec(),
            cancel,
            store: store_of(state),
        };
        Snapshots { commands, root: root.to_owned(), period }
    }

    /// Takes a snapshot of all files of the repository, or of the project without one.
    pub fn take(&self) -> Result<Snapshot, RepoError> {
        self.prepare()?;
        // No object is deleted that the snapshot finds in the store.
        let _shared = StoreLock::shared(&self.commands)?;
        let found = FoundRepository::find(&self.root)?;
        let top = match &found {
            Some(found) => found.top.clone(),
            None => self.root.canonicalize().map_err(RepoError::io(&self.root))?,
        };
        SnapshotPlace::open(&self.commands, &top, found, &self.period, 0)?.take()
    }

    /// Keeps a snapshot under a name, until [`Snapshots::collect`] removes it.
    pub fn keep(&self, group: &str, name: &str, snapshot: &Snapshot) -> Result<(), RepoError> {
        let path = self.ref_path(group, name)?;
        // The directory of the group is not deleted meanwhile.
        let _shared = StoreLock::shared(&self.commands)?;
        state_file::write(&path, format!("{}\n", snapshot.id).as_bytes())
    }

    /// Returns the snapshot of a name.
    pub fn find(&self, group: &str, name: &str) -> Result<Option<Snapshot>, RepoError> {
        match state_file::read_line(&self.ref_path(group, name)?)? {
            None => Ok(None),
            Some(line) => {
                let id = line.parse().map_err(|_| {
                    RepoError::permanent(format!("`{line}` is not the name of a snapshot"))
                })?;
                self.read(id).map(Some)
            }
        }
    }

    /// Returns the names in a group.
    pub fn names(&self, group: &str) -> Result<Vec<String>, RepoError> {
        let path = self.ref_path(group, "any")?;
        let directory = path.parent().unwrap_or(&path);
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if state_file::absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(RepoError::io(directory)(error)),
        };
        let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
        let mut names: Vec<String> = entries.flatten().take(NAMES_MAX).filter_map(name).collect();
        // A name that is being written is no name yet.
        names.retain(|name| self.ref_path(group, name).is_ok());
        names.sort();
        Ok(names)
    }

    /// Returns the content of a file of the project in the newest kept snapshot that has it.
    pub fn newest_content(&self, name: &str) -> Result<Option<Vec<u8>>, RepoError> {
        for id in self.newest(NEWEST_MAX)? {
            let snapshot = self.read(id)?;
            let top = top_of(&snapshot)?;
            let Ok(prefix) = self.root.strip_prefix(&top) else { continue };
            let object = format!("{}:{}", snapshot.exact, prefix.join(name).display());
            // A snapshot without the file is not the one.
            if let Ok(content) = self.store(&["cat-file", "blob", &object]) {
                return Ok(Some(content));
            }
        }
        Ok(None)
    }

    /// Returns the same snapshots for another working directory of the project.
    pub fn at(&self, root: &Path) -> Snapshots {
        let (commands, period) = (self.commands.clone(), self.period.clone());
        Snapshots { commands, root: root.to_owned(), period }
    }

    /// Returns the snapshot with this id.
    pub fn read(&self, id: CommitId) -> Result<Snapshot, RepoError> {
        let text = self.store(&["cat-file", "commit", id.as_str()])?;
        record::read_commit(id, &text)
    }

    /// Returns the files that differ between two trees, each with the number of added and deleted lines. Paths are
    /// relative to the project.
    pub fn changes(&self, from: &str, to: &str) -> Result<Vec<(String, u64)>, RepoError> {
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--numstat",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            from,
            to,
        ];
        let said = self.store(&args)?;
        let said = String::from_utf8_lossy(&said);
        let prefix =
            FoundRepository::find(&self.root)?.map(|found| found.prefix).unwrap_or_default();
        let read = |record: &str| {
            let mut fields = record.splitn(3, '\t');
            let mut lines = || fields.next().unwrap_or_default().parse::<u64>().unwrap_or(0);
            let changed = lines() + lines();
            fields.next().map(|path| (from_project(&prefix, path), changed))
        };
        Ok(said.split('\0').filter_map(read).collect())
    }

    /// Returns the difference between two trees as text. The error names a difference of more than `max` bytes.
    pub fn difference(&self, from: &str, to: &str, max: usize) -> Result<String, RepoError> {
        let args = [
            "diff-tree",
            "-r",
            "-p",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            from,
            to,
        ];
        let said = self.store(&args)?;
        match said.len() > max {
            true => Err(RepoError::Permanent {
                why: format!("the difference has {} bytes, and at most {max} are read", said.len()),
            }),
            false => Ok(String::from_utf8_lossy(&said).into_owned()),
        }
    }

    /// Returns the commit that is checked out; `None` without a repository, or in one without commits.
    pub fn head(&self) -> Result<Option<CommitId>, RepoError> {
        match FoundRepository::find(&self.root)? {
            Some(found) => head::head(&self.commands, &found),
            None => Ok(None),
        }
    }

    /// Returns those of the paths that are large files by the attributes of the working directory.
    fn large_files(&self, top: &Path, paths: &[&[u8]]) -> Result<BTreeSet<Vec<u8>>, RepoError> {
        let found = FoundRepository::find(top)?;
        let place = SnapshotPlace::open(&self.commands, top, found, &self.period, 0)?;
        let mut list = Vec::new();
        for path in paths {
            status::push(&mut list, path);
        }
        let args = ["check-attr", "-z", "--stdin", "filter"];
        let said = place.exact(ReadableObjects::All, &args, list)?;
        let fields: Vec<&[u8]> = status::paths(&said).collect();
        let is_large = |fields: &[&[u8]]| fields.get(2) == Some(&b"lfs".as_slice());
        Ok(fields
            .chunks(3)
            .filter(|fields| is_large(fields))
            .map(|fields| fields[0].to_vec())
            .collect())
    }

    /// Returns those of the paths that git ignored by the rules among the files of a snapshot.
    fn ignored_in(&self, snapshot: &Snapshot, list: Vec<u8>) -> Result<Vec<u8>, RepoError> {
        let top = top_of(snapshot)?;
        let found = FoundRepository::find(&top)?;
        let place = SnapshotPlace::open(&self.commands, &top, found, &self.period, 0)?;
        place.ignored_with_rules_of(&snapshot.exact, list)
    }

    /// Creates the store.
    fn prepare(&self) -> Result<(), RepoError> {
        let store = &self.commands.store;
        if store.join("HEAD").exists() {
            return Ok(());
        }
        for directory in ["objects/info", "objects/pack", REFS, "places"] {
            state_file::make_directory(&store.join(directory))?;
        }
        let is_sha256 = match FoundRepository::find(&self.root)? {
            Some(found) => commit_settings::is_sha256(&self.commands, &found)?,
            None => false,
        };
        let format = commit_settings::format_settings(is_sha256);
        state_file::write(&store.join("config"), format!("{STORE_CONFIG}{format}").as_bytes())?;
        // Written last: without it this is no repository.
        state_file::write(&store.join("HEAD"), NO_HEAD)
    }

    fn ref_path(&self, group: &str, name: &str) -> Result<PathBuf, RepoError> {
        let is_word = |text: &str| {
            let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !text.is_empty() && text.bytes().all(is_good)
        };
        match is_word(group) && is_word(name) {
            true => Ok(self.commands.store.join(REFS).join(group).join(name)),
            false => Err(RepoError::permanent(format!("`{group}/{name}` can't name a snapshot"))),
        }
    }

    /// Runs a command that reads the store and the user's objects.
    fn store(&self, args: &[&str]) -> Result<Vec<u8>, RepoError> {
        let command = args.first().copied().unwrap_or_default();
        Ok(self.store_output(&self.all_objects()?, args, Vec::new())?.well(command)?)
    }

    /// Runs a command that reads the store and these objects of the user.
    fn store_output(
        &self,
        users_objects: &[PathBuf],
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<GitOutput, RepoError> {
        let store = &self.commands.store;
        let index = store.join("no-index");
        let files = CommandFiles {
            git_dir: store,
            work_tree: store,
            index: &index,
            users_objects,
            attributes: None,
        };
        self.commands.own_output(files, ReadableObjects::All, args, stdin)
    }

    fn store_text(&self, args: &[&str]) -> Result<String, RepoError> {
        Ok(String::from_utf8_lossy(&self.store(args)?).trim().to_owned())
    }

    /// Returns the objects of all repositories of which there are snapshots.
    fn all_objects(&self) -> Result<Vec<PathBuf>, RepoError> {
        let places = self.commands.store.join("places");
        let mut found = BTreeSet::new();
        let entries = match fs::read_dir(&places) {
            Ok(entries) => entries,
            Err(error) if state_file::absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(RepoError::io(&places)(error)),
        };
        for entry in entries.flatten().take(PLACES_MAX) {
            let state = state_file::read(&entry.path().join("state.json"))?.unwrap_or_default();
            // A state of another version names no objects.
            let state: PlaceState = serde_json::from_slice(&state).unwrap_or_default();
            found.extend(state.objects.filter(|objects| objects.is_dir()));
        }
        Ok(found.into_iter().collect())
    }
}

/// Returns the directory of all snapshots of a project.
pub fn store_of(state: &Path) -> PathBuf {
    state.join("snapshots")
}

/// Returns a path of the repository as seen from the project's directory.
fn from_project(prefix: &Path, path: &str) -> String {
    let path = Path::new(path);
    if let Ok(below) = path.strip_prefix(prefix) {
        return below.display().to_string();
    }
    let shared = prefix.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let mut relative: PathBuf = prefix.components().skip(shared).map(|_| "..").collect();
    relative.extend(path.components().skip(shared));
    relative.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_repository_are_named_from_the_project() {
        for (prefix, path, expected) in [
            ("", "a/b", "a/b"),
            ("svc", "svc/a", "a"),
            ("svc", "lib/a", "../lib/a"),
            ("a/svc", "a/lib/x", "../lib/x"),
            ("a/svc", "b", "../../b"),
        ] {
            assert_eq!(from_project(Path::new(prefix), path), expected);
        }
    }
}
