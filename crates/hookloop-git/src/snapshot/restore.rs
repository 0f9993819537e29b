//! Gives files the content that they have in a snapshot.
//!
//! The plan is stored before the first file changes, so that a restore which is killed can be continued. Each file
//! is replaced whole. A file that changed since the plan was made is left alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_core::digest::hex;
use hookloop_core::session::facts::RestoreKind;
use serde::{Deserialize, Serialize};

use super::Snapshots;
use super::commands::{CommandFiles, ReadableObjects};
use super::file_changes::FileState;
use super::record::{Snapshot, unhex};
use super::safe_directory::SafeDirectory;
use super::store_lock::StoreLock;
use super::undo::RestoredStates;
use crate::lfs::{LfsPointer, POINTER_MAX, content_path};
use crate::repo::state_file::HeldLock;
use crate::repo::{CommitId, RepoError, state_file};

const EXECUTABLE: &str = "100755";
/// Directories that git expects in a repository, even if they are empty.
const EXPECTED_OF_GIT: [&str; 3] = ["objects", "refs/heads", "refs/tags"];
/// The clock of file times may be behind by so much.
const CLOCK_LAG: Duration = Duration::from_millis(20);
/// The most directories that are searched for empty ones.
const DIRECTORIES_MAX: usize = 100_000;
const PLAN: &str = "restore.json";
const STAGING: &str = "restore";

/// The files to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePlan {
    /// Names the restore in messages, such as `undo of turn 3`.
    pub label: String,
    /// The kind of the restore, and the turn whose state is restored: for the record.
    pub kind: RestoreKind,
    pub turn: Option<u32>,
    /// The name under which the files before and after the restore are kept.
    pub name: String,
    /// The session whose files are restored.
    pub session: String,
    /// The working directory, in hexadecimal digits.
    pub top: String,
    /// The files before the restore.
    pub before: CommitId,
    pub items: Vec<RestoreItem>,
}

impl RestorePlan {
    /// Returns the working directory.
    pub fn directory(&self) -> Result<PathBuf, RepoError> {
        Ok(PathBuf::from(OsStr::from_bytes(&unhex(&self.top)?)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreItem {
    /// The path from the top of the working directory, in hexadecimal digits.
    pub path: String,
    /// The state before the restore.
    pub expected: Option<FileState>,
    pub target: Option<FileState>,
}

impl RestoreItem {
    pub fn new(path: &[u8], expected: Option<FileState>, target: Option<FileState>) -> RestoreItem {
        RestoreItem { path: hex(path), expected, target }
    }

    /// Returns the path as text, for people.
    pub fn shown(&self) -> String {
        let bytes = unhex(&self.path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn relative(&self) -> Result<PathBuf, RepoError> {
        let path = PathBuf::from(OsStr::from_bytes(&unhex(&self.path)?));
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        match is_inside && !path.as_os_str().is_empty() {
            true => Ok(path),
            false => {
                Err(RepoError::permanent(format!("`{}` leaves its directory", path.display())))
            }
        }
    }
}

/// A file that was not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRestored {
    pub path: String,
    pub reason: String,
}

/// The result of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    pub restored: usize,
    pub left: Vec<NotRestored>,
}

impl Snapshots {
    /// Returns the plan of a restore that did not finish.
    pub fn pending_restore(&self) -> Result<Option<RestorePlan>, RepoError> {
        let path = self.commands.store.join(PLAN);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if state_file::absent(&error) => return Ok(None),
            Err(error) => return Err(RepoError::io(&path)(error)),
        };
        let plan = serde_json::from_slice(&bytes).map_err(|error| RepoError::NeedsHuman {
            why: format!("{} can't be read: {error}", path.display()),
            hint: format!("rm {}", path.display()),
        })?;
        Ok(Some(plan))
    }

    /// Waits until no other process restores files of the project.
    pub fn lock_restore(&self) -> Result<RestoreLock, RepoError> {
        let path = self.commands.store.join("restore.lock");
        Ok(RestoreLock { _held: HeldLock::wait(&path, &self.commands.cancel)? })
    }

    /// Restores the files of a plan. `planned` is the time before the plan's files were read.
    ///
    /// The plan stays until [`Snapshots::end_restore`].
    pub fn restore(
        &self,
        plan: &RestorePlan,
        planned: SystemTime,
        _lock: &RestoreLock,
    ) -> Result<RestoreReport, RepoError> {
        let bytes = serde_json::to_vec(plan)
            .map_err(|error| RepoError::permanent(format!("a plan is not written: {error}")))?;
        let _shared = StoreLock::shared(&self.commands)?;
        // A plan that can't be carried out is not begun.
        let staging = self.stage(plan)?;
        state_file::write(&self.commands.store.join(PLAN), &bytes)?;
        self.perform(plan, planned, &staging)
    }

    /// Forgets the plan of a restore, which is complete or given up.
    pub fn end_restore(&self) -> Result<(), RepoError> {
        state_file::remove_all(&self.commands.store.join(STAGING))?;
        state_file::remove(&self.commands.store.join(PLAN))
    }

    /// Records the files that a restore changed. In that state they have no work of a person.
    pub fn record_restored(
        &self,
        plan: &RestorePlan,
        report: &RestoreReport,
    ) -> Result<(), RepoError> {
        let is_written = |item: &&RestoreItem| {
            let shown = item.shown();
            !report.left.iter().any(|left| left.path == shown)
        };
        let written: Vec<&RestoreItem> = plan.items.iter().filter(is_written).collect();
        let bytes = serde_json::to_vec(&written)
            .map_err(|error| RepoError::permanent(format!("a restore is not recorded: {error}")))?;
        let directory = self.commands.store.join("restored");
        state_file::make_directory(&directory)?;
        state_file::write(&directory.join(format!("{}.json", plan.name)), &bytes)
    }

    /// Returns the files that a restore changed, each with its new state.
    pub fn recorded(&self, name: &str) -> Result<RestoredStates, RepoError> {
        let path = self.commands.store.join("restored").join(format!("{name}.json"));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if state_file::absent(&error) => return Ok(RestoredStates::new()),
            Err(error) => return Err(RepoError::io(&path)(error)),
        };
        // Without a readable record, a file in that state counts as a person's.
        let items: Vec<RestoreItem> = serde_json::from_slice(&bytes).unwrap_or_default();
        items.into_iter().map(|item| Ok((unhex(&item.path)?, item.target))).collect()
    }

    /// Continues a restore that did not finish.
    pub fn continue_restore(
        &self,
        plan: &RestorePlan,
        _lock: &RestoreLock,
    ) -> Result<RestoreReport, RepoError> {
        let top = self.top_of(plan)?;
        for item in &plan.items {
            // A draft that was not renamed would be taken for a file of the user.
            state_file::remove(&draft(&top.join(item.relative()?), plan))?;
        }
        let planned = SystemTime::now();
        let now = self.take()?;
        let before = self.read(plan.before.clone())?;
        let changed: BTreeMap<String, Option<FileState>> = self
            .file_changes(&before, &now)?
            .into_iter()
            .map(|change| (hex(&change.path), change.to))
            .collect();
        let mut rest = RestorePlan { items: Vec::new(), ..plan.clone() };
        let mut left = Vec::new();
        let mut done = 0;
        for item in &plan.items {
            match changed.get(&item.path) {
                None => rest.items.push(item.clone()),
                Some(now) if *now == item.target => done += 1,
                Some(_) => left.push(NotRestored {
                    path: item.shown(),
                    reason: "it changed after the restore began".to_owned(),
                }),
            }
        }
        let _shared = StoreLock::shared(&self.commands)?;
        let staging = self.stage(&rest)?;
        let mut report = self.perform(&rest, planned, &staging)?;
        report.restored += done;
        report.left.extend(left);
        Ok(report)
    }

    fn perform(
        &self,
        plan: &RestorePlan,
        planned: SystemTime,
        staging: &Path,
    ) -> Result<RestoreReport, RepoError> {
        let top = self.top_of(plan)?;
        let mut report = RestoreReport::default();
        // Files are deleted first: a directory may take the place of one.
        let order = |is_deleted: bool| {
            let items = plan.items.iter().enumerate();
            items.filter(move |(_, item)| item.target.is_none() == is_deleted)
        };
        for (number, item) in order(true).chain(order(false)) {
            let path = top.join(item.relative()?);
            let staged = staging.join(number.to_string());
            let done = match is_there_already(&path, item, &staged) {
                true => Ok(()),
                false => unchanged(&path, item, planned)
                    .and_then(|()| replace(&top, &path, item, &staged, plan)),
            };
            match done {
                Ok(()) => report.restored += 1,
                Err(reason) => report.left.push(NotRestored { path: item.shown(), reason }),
            }
        }
        tidy_nested(plan, &top)?;
        // One sync for all files: each was replaced whole.
        let directory = File::open(&top).map_err(RepoError::io(&top))?;
        rustix::fs::syncfs(&directory).map_err(|errno| RepoError::io(&top)(errno.into()))?;
        Ok(report)
    }

    fn top_of(&self, plan: &RestorePlan) -> Result<PathBuf, RepoError> {
        let top = plan.directory()?;
        match top.is_dir() {
            true => Ok(top),
            false => Err(RepoError::NeedsHuman {
                why: format!("{} does not exist any more", top.display()),
                hint: format!("mkdir -p {}", top.display()),
            }),
        }
    }

    /// Writes the new content of all files to a directory of hookloop, with numbers as names.
    fn stage(&self, plan: &RestorePlan) -> Result<PathBuf, RepoError> {
        let store = &self.commands.store;
        let staging = store.join(STAGING);
        state_file::remove_all(&staging)?;
        state_file::make_directory(&staging)?;
        let mut entries = Vec::new();
        let mut names = Vec::new();
        for (number, item) in plan.items.iter().enumerate() {
            if let Some(FileState { mode, object }) = &item.target {
                entries.extend_from_slice(format!("{mode} {object}\t{number}\0").as_bytes());
                names.extend_from_slice(format!("{number}\0").as_bytes());
            }
        }
        if names.is_empty() {
            return Ok(staging);
        }
        let index = store.join("restore-index");
        state_file::remove(&index)?;
        // A lock that a killed git left: only one process restores at a time.
        state_file::remove(&store.join("restore-index.lock"))?;
        let objects = self.all_objects()?;
        let files = CommandFiles {
            git_dir: store,
            work_tree: &staging,
            index: &index,
            users_objects: &objects,
            attributes: None,
        };
        let run = |args: &[&str], stdin| {
            self.commands.own(files, ReadableObjects::All, args, stdin).map(drop)
        };
        run(&["update-index", "-z", "--add", "--index-info"], entries)?;
        run(&["checkout-index", "-z", "--stdin"], names)?;
        self.fill_pointers(plan, &staging)?;
        state_file::remove(&index)?;
        Ok(staging)
    }

    /// Replaces the pointers to large files by their content, as far as the store has it.
    fn fill_pointers(&self, plan: &RestorePlan, staging: &Path) -> Result<(), RepoError> {
        let mut pointers = Vec::new();
        for (number, item) in plan.items.iter().enumerate() {
            let staged = staging.join(number.to_string());
            let Ok(found) = staged.symlink_metadata() else { continue };
            if !found.is_file() || found.len() > POINTER_MAX {
                continue;
            }
            let text = fs::read(&staged).map_err(RepoError::io(&staged))?;
            if let Some(pointer) = LfsPointer::read(&text) {
                pointers.push((staged, found.permissions(), pointer, unhex(&item.path)?));
            }
        }
        if pointers.is_empty() {
            return Ok(());
        }
        let paths: Vec<&[u8]> = pointers.iter().map(|(.., path)| path.as_slice()).collect();
        // Other files may have the text of a pointer as their content.
        let large = self.large_files(&plan.directory()?, &paths)?;
        for (staged, permissions, pointer, path) in pointers {
            let content = content_path(&self.commands.lfs(), &pointer.oid);
            if !large.contains(&path) || !content.exists() {
                continue;
            }
            fs::copy(&content, &staged).map_err(RepoError::io(&content))?;
            fs::set_permissions(&staged, permissions).map_err(RepoError::io(&staged))?;
        }
        Ok(())
    }
}

/// Held by the process that restores files.
#[derive(Debug)]
pub struct RestoreLock {
    _held: HeldLock,
}

/// Removes the empty directories of repositories that are gone, and adds those that git expects.
fn tidy_nested(plan: &RestorePlan, top: &Path) -> Result<(), RepoError> {
    for item in &plan.items {
        let relative = item.relative()?;
        let head = top.join(&relative);
        if !relative.ends_with(".git/HEAD")
            || head.symlink_metadata().is_ok() != item.target.is_some()
        {
            continue;
        }
        let Some(git) = relative.parent() else { continue };
        if item.target.is_some() {
            for name in EXPECTED_OF_GIT {
                // The directory is opened step by step, so no link leads elsewhere.
                let made = SafeDirectory::make(top, &git.join(name).join("any"));
                made.map_err(RepoError::permanent)?;
            }
        } else if SafeDirectory::open(top, &relative).is_ok() {
            remove_empty(&top.join(git));
            prune(top, &top.join(git));
        }
    }
    Ok(())
}

/// Returns whether a file that git ignores has the content that is to be restored.
fn is_there_already(path: &Path, item: &RestoreItem, staged: &Path) -> bool {
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file());
    item.expected.is_none()
        && is_file(path)
        && is_file(staged)
        && fs::read(path).is_ok_and(|old| fs::read(staged).is_ok_and(|new| old == new))
}

/// Checks that a file is as old as the plan says.
fn unchanged(path: &Path, item: &RestoreItem, planned: SystemTime) -> Result<(), String> {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if state_file::absent(&error) => {
            return match item.expected {
                None => Ok(()),
                Some(_) => Err("it was deleted meanwhile".to_owned()),
            };
        }
        Err(error) => return Err(error.to_string()),
    };
    if item.expected.is_none() {
        if found.is_dir() {
            remove_empty(path);
            return match path.symlink_metadata() {
                Err(_) => Ok(()),
                Ok(_) => Err("a directory with other files is there: move it away".to_owned()),
            };
        }
        return match found.is_file() || found.is_symlink() {
            true => Err("a file that git ignores is there: move it away".to_owned()),
            // A pipe or a socket has no content.
            false => fs::remove_file(path).map_err(|error| error.to_string()),
        };
    }
    let seconds = u64::try_from(found.ctime()).unwrap_or(0);
    let nanos = u64::try_from(found.ctime_nsec()).unwrap_or(0);
    let changed = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos);
    match changed + CLOCK_LAG > planned {
        true => Err("it changed meanwhile".to_owned()),
        false => Ok(()),
    }
}

fn replace(
    top: &Path,
    path: &Path,
    item: &RestoreItem,
    staged: &Path,
    plan: &RestorePlan,
) -> Result<(), String> {
    let relative = item.relative().map_err(|error| error.to_string())?;
    let name = relative.file_name().unwrap_or_default();
    let Some(target) = &item.target else {
        let directory = SafeDirectory::open(top, &relative)?;
        directory.remove(name)?;
        prune(top, path);
        return Ok(());
    };
    let directory = SafeDirectory::make(top, &relative)?;
    let draft = draft(path, plan);
    let draft = draft.file_name().unwrap_or_default();
    let written = match target.is_link() {
        true => directory.write_link(draft, staged),
        false => directory.write_file(draft, staged, name, target.mode == EXECUTABLE),
    };
    written.and_then(|()| directory.rename(draft, name)).inspect_err(|_| {
        // The draft must not stay among the user's files.
        let _ = directory.remove(draft);
    })
}

/// Returns the name of a file that is not complete yet.
fn draft(path: &Path, plan: &RestorePlan) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let key = [name, plan.before.as_str().as_bytes()].concat();
    let key = hookloop_core::digest::short_sha256_hex(key, 8);
    path.with_file_name(format!(".hookloop-restore-{key}"))
}

/// Removes the directories above a deleted file that are empty now.
fn prune(top: &Path, path: &Path) {
    for directory in path.ancestors().skip(1).take_while(|directory| *directory != top) {
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

/// Removes empty directories below and with this one.
fn remove_empty(directory: &Path) {
    let mut found = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(directory) = found.get(next).cloned() {
        next += 1;
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        found.extend(entries.filter(is_directory).map(|entry| entry.path()));
        if found.len() > DIRECTORIES_MAX {
            return;
        }
    }
    for directory in found.iter().rev() {
        // A directory with files stays.
        let _ = fs::remove_dir(directory);
    }
}

/// Returns the label of a restore that did not finish. A plan that can't be read counts as one.
pub fn unfinished_restore(state: &Path) -> Option<String> {
    let bytes = fs::read(super::store_of(state).join(PLAN)).ok()?;
    let plan = serde_json::from_slice::<RestorePlan>(&bytes);
    Some(plan.map_or_else(|_| "undo".to_owned(), |plan| plan.label))
}

/// Returns the working directory of a snapshot.
pub fn top_of(snapshot: &Snapshot) -> Result<PathBuf, RepoError> {
    Ok(PathBuf::from(OsStr::from_bytes(&unhex(&snapshot.top)?)))
}
