//! Removes old snapshots, and all files that only they need.
//!
//! Everything is chosen first, by commands of git that change nothing. If one of them fails, nothing is removed. Then
//! the names of snapshots are deleted, and after them the objects that no other snapshot needs. So a kill at any moment
//! leaves all kept snapshots whole, and the next removal continues.
//!
//! No snapshot is taken meanwhile: see [`StoreLock`]. A snapshot that was taken and has no name yet is the last one of
//! its working directory, or its objects are young. Both stay.
//!
//! - `snapshot_refs`: the names of snapshots, and the choice by age and number
//! - `places`: the objects that the next snapshot of each working directory needs
//! - `stored_objects`: the objects of the store; `object_name`: their names
//! - `large_files`: the content of large files
//! - `bases`: refs in the user's repositories
//! - `leftovers`: files of killed processes

mod bases;
mod large_files;
mod leftovers;
mod object_name;
mod places;
mod snapshot_refs;
mod stored_objects;

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use self::large_files::{LargeFiles, NeededFiles, own_bytes};
use self::object_name::{ObjectName, lines};
use self::places::StoredPlace;
use self::snapshot_refs::{RefChoice, SnapshotRef};
use self::stored_objects::{ObjectPlan, StoredObjects};
use super::store_lock::StoreLock;
use super::{Snapshots, store_of};
use crate::repo::{CommitId, RepoError, state_file};

/// The most files of a store, and of each directory in it.
const ENTRIES_MAX: usize = 5_000_000;
/// A younger object stays, with all objects that it needs.
const YOUNG: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const GIB: u64 = 1024 * 1024 * 1024;
/// Lists objects with all that they need, as far as the store has them.
const REACHED: [&str; 5] =
    ["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--stdin"];

/// How long snapshots are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    pub max_age: Duration,
    pub max_count: usize,
    /// The most disk space of all snapshots of a project.
    pub max_bytes: u64,
}

impl Default for RetentionLimits {
    fn default() -> RetentionLimits {
        RetentionLimits { max_age: DAY * 30, max_count: 10_000, max_bytes: 5 * GIB }
    }
}

/// The disk use of all snapshots of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotUsage {
    pub snapshots: usize,
    pub groups: usize,
    pub bytes: u64,
}

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// The number of snapshots.
    pub removed: usize,
    pub kept: usize,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// Returns the disk use of a project's snapshots, given the directory of its state.
pub fn snapshot_usage(state: &Path) -> Result<SnapshotUsage, RepoError> {
    usage(&store_of(state))
}

impl Snapshots {
    pub fn usage(&self) -> Result<SnapshotUsage, RepoError> {
        usage(&self.commands.store)
    }

    /// Returns the groups that have snapshots.
    pub fn groups(&self) -> Result<BTreeSet<String>, RepoError> {
        let refs = snapshot_refs::list(&self.commands.store)?;
        Ok(refs.into_iter().map(|found| found.group).collect())
    }

    /// Returns the last kept snapshots, the newest first.
    pub(super) fn newest(&self, max: usize) -> Result<Vec<CommitId>, RepoError> {
        let mut refs = snapshot_refs::list(&self.commands.store)?;
        refs.sort_unstable();
        let ids = refs.iter().rev().filter_map(|found| found.id?.to_string().parse().ok());
        Ok(ids.take(max).collect())
    }

    /// Removes snapshots beyond the limits, the oldest first, and everything that only they need.
    ///
    /// A group that `is_kept` keeps all of its snapshots. With `is_dry`, nothing is removed, and the bytes of the report
    /// are an estimate.
    pub fn collect(
        &self,
        limits: &RetentionLimits,
        now: SystemTime,
        is_kept: &dyn Fn(&str) -> bool,
        is_dry: bool,
    ) -> Result<GcReport, RepoError> {
        let store = &self.commands.store;
        if !store.join("HEAD").exists() {
            return Ok(GcReport::default());
        }
        let commands = &self.commands;
        let _lock = if is_dry { StoreLock::shared(commands)? } else { StoreLock::alone(commands)? };
        let content = StoreContent::read(self)?;
        let mut choice = RefChoice::new(snapshot_refs::list(store)?, limits, now, is_kept);
        let mut needed = content.needed(&choice.kept)?;
        if content.bytes_with(&needed) > limits.max_bytes {
            content.reduce(&mut choice, limits.max_bytes, is_kept)?;
            needed = content.needed(&choice.kept)?;
        }
        let mut report = GcReport {
            removed: choice.removed.len(),
            kept: choice.kept.len(),
            bytes_before: content.bytes,
            bytes_after: content.bytes_with(&needed),
        };
        if !is_dry {
            let is_tight = content.bytes > limits.max_bytes;
            content.delete(&choice, needed, now, is_tight)?;
            report.bytes_after = self.usage()?.bytes;
        }
        Ok(report)
    }

    /// Returns the objects of the store that these need, with themselves.
    fn reached(&self, roots: &HashSet<ObjectName>) -> Result<HashSet<ObjectName>, RepoError> {
        if roots.is_empty() {
            return Ok(HashSet::new());
        }
        let said = self.store_output(&[], &REACHED, lines(roots))?;
        let complaint = said.stderr.trim().to_owned();
        let listed = said.well("rev-list")?;
        // For git, an empty file is an object that is missing on purpose.
        if !complaint.is_empty() {
            return Err(RepoError::NeedsHuman {
                why: format!("an object can't be read, so no snapshots were removed: {complaint}"),
                hint: "delete the file that git names: its snapshots are damaged anyway".to_owned(),
            });
        }
        let read = |line: &str| {
            let unread = || RepoError::permanent(format!("git rev-list answers `{line}`"));
            ObjectName::read(line).ok_or_else(unread)
        };
        String::from_utf8_lossy(&listed).lines().map(read).collect()
    }

    /// Runs a command on the objects of the store and these of the user.
    fn retention_git(
        &self,
        users_objects: &[PathBuf],
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<Vec<u8>, RepoError> {
        let command = args.first().copied().unwrap_or_default();
        Ok(self.store_output(users_objects, args, stdin)?.well(command)?)
    }
}

/// The content of a store, at a time at which no snapshot is taken.
#[derive(Debug)]
struct StoreContent<'s> {
    snapshots: &'s Snapshots,
    places: Vec<StoredPlace>,
    /// The objects of a restore that did not finish.
    restored: Vec<ObjectName>,
    objects: StoredObjects,
    large: LargeFiles,
    /// The disk use of the store.
    bytes: u64,
}

/// The content that is not deleted.
#[derive(Debug)]
struct NeededContent {
    objects: HashSet<ObjectName>,
    files: NeededFiles,
}

impl<'s> StoreContent<'s> {
    fn read(snapshots: &'s Snapshots) -> Result<StoreContent<'s>, RepoError> {
        let store = &snapshots.commands.store;
        let mut restored = Vec::new();
        if let Some(plan) = snapshots.pending_restore()? {
            restored.extend(ObjectName::read(plan.before.as_str()));
            let states = plan.items.iter().flat_map(|item| [&item.expected, &item.target]);
            restored.extend(states.flatten().filter_map(|state| ObjectName::read(&state.object)));
        }
        Ok(StoreContent {
            snapshots,
            places: StoredPlace::list(snapshots)?,
            restored,
            objects: StoredObjects::list(store)?,
            large: LargeFiles::list(&snapshots.commands.lfs())?,
            bytes: snapshots.usage()?.bytes,
        })
    }

    /// Returns the objects from which all needed ones are reached.
    fn roots<'r>(&self, kept: impl IntoIterator<Item = &'r SnapshotRef>) -> HashSet<ObjectName> {
        let kept = kept.into_iter().filter_map(|found| found.id);
        let of_places = self.places.iter().flat_map(|place| place.roots.iter().copied());
        let all = kept.chain(of_places).chain(self.restored.iter().copied());
        // Others are in the user's repository.
        all.filter(|name| self.objects.has(name)).collect()
    }

    /// Returns the content that these snapshots and all working directories need.
    fn needed<'r>(
        &self,
        kept: impl IntoIterator<Item = &'r SnapshotRef>,
    ) -> Result<NeededContent, RepoError> {
        let roots = self.roots(kept);
        let blobs: HashSet<ObjectName> =
            self.places.iter().flat_map(|place| place.blobs.iter().copied()).collect();
        let files = self.needed_files(&roots, &blobs)?;
        let mut objects = self.snapshots.reached(&roots)?;
        objects.extend(blobs);
        Ok(NeededContent { objects, files })
    }

    fn needed_files(
        &self,
        roots: &HashSet<ObjectName>,
        blobs: &HashSet<ObjectName>,
    ) -> Result<NeededFiles, RepoError> {
        // A repository that can't be read now may have the pointers.
        if self.large.is_empty() || self.places.iter().any(StoredPlace::lacks_objects) {
            return Ok(NeededFiles::All);
        }
        self.snapshots.needed_files(roots, blobs)
    }

    /// Returns the disk use of the store with only this content.
    fn bytes_with(&self, needed: &NeededContent) -> u64 {
        let waste = self.objects.waste(&needed.objects) + self.large.waste(&needed.files);
        self.bytes.saturating_sub(waste)
    }

    /// Removes as few of the oldest groups as possible, so that the rest fits.
    fn reduce(
        &self,
        choice: &mut RefChoice,
        max_bytes: u64,
        is_kept: &dyn Fn(&str) -> bool,
    ) -> Result<(), RepoError> {
        let groups = choice.groups(is_kept);
        // The rest does not fit without the first `few` groups. It fits without the first `many`, or not at all.
        let mut few = 0;
        let mut many = groups.len();
        // Each step halves the difference.
        while many - few > 1 {
            let middle = usize::midpoint(few, many);
            let needed = self.needed(choice.without(&groups[..middle]))?;
            if self.bytes_with(&needed) > max_bytes {
                few = middle;
            } else {
                many = middle;
            }
        }
        choice.remove(&groups[..many]);
        Ok(())
    }

    /// Deletes everything else than the kept snapshots and the needed content.
    fn delete(
        &self,
        choice: &RefChoice,
        mut needed: NeededContent,
        now: SystemTime,
        is_tight: bool,
    ) -> Result<(), RepoError> {
        let snapshots = self.snapshots;
        self.keep_young(&mut needed, now)?;
        let bases = snapshots.bases(&self.roots(&choice.kept), &self.places)?;
        let plan = ObjectPlan::new(&self.objects, &needed.objects, is_tight);
        let new = snapshots.repack(&self.objects, &plan)?;
        // All commands of git on the store have succeeded. From here on files are deleted that no kept snapshot needs.
        choice.delete()?;
        self.objects.delete(&plan, &new)?;
        self.large.delete(&needed.files, now, YOUNG)?;
        places::remove_gone(&self.places)?;
        leftovers::remove(&snapshots.commands.store, now, YOUNG)?;
        if let Some(bases) = bases {
            snapshots.remove_other_bases(&bases, &self.places);
        }
        Ok(())
    }

    /// Adds young objects, with all that they need: git takes a tree in the store for whole.
    fn keep_young(&self, needed: &mut NeededContent, now: SystemTime) -> Result<(), RepoError> {
        let young = self.objects.young(now, YOUNG).copied();
        let young: HashSet<ObjectName> =
            young.filter(|name| !needed.objects.contains(name)).collect();
        if young.is_empty() {
            return Ok(());
        }
        needed.files.extend(self.needed_files(&young, &HashSet::new())?);
        needed.objects.extend(self.snapshots.reached(&young)?);
        Ok(())
    }
}

fn usage(store: &Path) -> Result<SnapshotUsage, RepoError> {
    let refs = snapshot_refs::list(store)?;
    let groups: BTreeSet<&str> = refs.iter().map(|found| found.group.as_str()).collect();
    let mut left = ["objects", "lfs", "places"].map(|name| store.join(name)).to_vec();
    let mut bytes = 0;
    let mut count = 0;
    while let Some(directory) = left.pop() {
        let found = entries(&directory)?;
        count += found.len();
        if count > ENTRIES_MAX {
            return Err(too_many(store));
        }
        for entry in found {
            let found = match entry.metadata() {
                Ok(found) => found,
                // Git deleted a temporary file meanwhile.
                Err(error) if state_file::absent(&error) => continue,
                Err(error) => return Err(RepoError::io(&entry.path())(error)),
            };
            if found.is_dir() {
                left.push(entry.path());
            } else {
                bytes += own_bytes(&found);
            }
        }
    }
    Ok(SnapshotUsage { snapshots: refs.len(), groups: groups.len(), bytes })
}

/// Returns the entries of a directory; none if there is no directory.
fn entries(directory: &Path) -> Result<Vec<DirEntry>, RepoError> {
    let read = match fs::read_dir(directory) {
        Ok(read) => read,
        Err(error) if state_file::absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(RepoError::io(directory)(error)),
    };
    let found: Vec<DirEntry> = read
        .take(ENTRIES_MAX + 1)
        .collect::<std::io::Result<_>>()
        .map_err(RepoError::io(directory))?;
    if found.len() > ENTRIES_MAX {
        return Err(too_many(directory));
    }
    Ok(found)
}

fn too_many(directory: &Path) -> RepoError {
    RepoError::NeedsHuman {
        why: format!("{} has more than {ENTRIES_MAX} files", directory.display()),
        hint: format!("rm -r {} removes them, and with them snapshots", directory.display()),
    }
}

/// Returns whether a file was written within this time before `now`, or later.
fn is_younger(modified: SystemTime, now: SystemTime, age: Duration) -> bool {
    !now.duration_since(modified).is_ok_and(|passed| passed >= age)
}
