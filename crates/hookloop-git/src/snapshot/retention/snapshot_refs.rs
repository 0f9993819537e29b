//! The names of snapshots, and the choice of those that are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::object_name::ObjectName;
use super::{RetentionLimits, entries};
use crate::repo::{RepoError, state_file};
use crate::snapshot::REFS;

/// The name of a snapshot. The order is that of their times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SnapshotRef {
    pub(super) modified: SystemTime,
    pub(super) group: String,
    path: PathBuf,
    /// None if the file names no object.
    pub(super) id: Option<ObjectName>,
}

/// Returns the names of all snapshots.
pub(super) fn list(store: &Path) -> Result<Vec<SnapshotRef>, RepoError> {
    let mut found = Vec::new();
    for group in entries(&store.join(REFS))? {
        for entry in entries(&group.path())? {
            let path = entry.path();
            // A name that is being written is no name yet.
            if path.extension().is_some() {
                continue;
            }
            let modified = match entry.metadata().and_then(|found| found.modified()) {
                Ok(modified) => modified,
                Err(error) if state_file::absent(&error) => continue,
                Err(error) => return Err(RepoError::io(&path)(error)),
            };
            let Some(line) = state_file::read_line(&path)? else { continue };
            let group = group.file_name().to_string_lossy().into_owned();
            found.push(SnapshotRef { modified, group, path, id: ObjectName::read(&line) });
        }
    }
    Ok(found)
}

/// The snapshots that stay and those that are removed.
#[derive(Debug)]
pub(super) struct RefChoice {
    /// The oldest is the first.
    pub(super) kept: Vec<SnapshotRef>,
    pub(super) removed: Vec<SnapshotRef>,
}

impl RefChoice {
    /// Chooses by age and number. Snapshots of a group that `is_kept` stay.
    pub(super) fn new(
        mut refs: Vec<SnapshotRef>,
        limits: &RetentionLimits,
        now: SystemTime,
        is_kept: &dyn Fn(&str) -> bool,
    ) -> RefChoice {
        refs.sort();
        let is_old = |found: &SnapshotRef| {
            now.duration_since(found.modified).is_ok_and(|age| age > limits.max_age)
        };
        let (mut removed, rest): (Vec<_>, Vec<_>) =
            refs.into_iter().partition(|found| is_old(found) && !is_kept(&found.group));
        let mut excess = rest.len().saturating_sub(limits.max_count);
        let mut kept = Vec::new();
        for found in rest {
            if excess > 0 && !is_kept(&found.group) {
                excess -= 1;
                removed.push(found);
            } else {
                kept.push(found);
            }
        }
        RefChoice { kept, removed }
    }

    /// Returns the groups that may be removed. The first is the one without a new snapshot for the longest time.
    pub(super) fn groups(&self, is_kept: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut last: BTreeMap<&str, SystemTime> = BTreeMap::new();
        for found in &self.kept {
            last.insert(&found.group, found.modified);
        }
        let mut groups: Vec<(SystemTime, &str)> =
            last.into_iter().map(|(group, modified)| (modified, group)).collect();
        groups.sort_unstable();
        let groups = groups.into_iter().map(|(_, group)| group);
        groups.filter(|group| !is_kept(group)).map(str::to_owned).collect()
    }

    /// Returns the snapshots that would stay without these groups.
    pub(super) fn without(&self, groups: &[String]) -> impl Iterator<Item = &SnapshotRef> {
        let groups: BTreeSet<String> = groups.iter().cloned().collect();
        self.kept.iter().filter(move |found| !groups.contains(&found.group))
    }

    /// Removes these groups, too.
    pub(super) fn remove(&mut self, groups: &[String]) {
        let kept = std::mem::take(&mut self.kept);
        let (removed, kept): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|found| groups.contains(&found.group));
        self.kept = kept;
        self.removed.extend(removed);
    }

    /// Deletes the names of removed snapshots.
    pub(super) fn delete(&self) -> Result<(), RepoError> {
        let mut groups = BTreeSet::new();
        for found in &self.removed {
            state_file::remove(&found.path)?;
            groups.extend(found.path.parent());
        }
        for group in groups {
            // A group with other names is not empty, and stays.
            let _ = fs::remove_dir(group);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns snapshots with these groups and ages in days.
    fn refs(now: SystemTime, ages: &[(&str, u32)]) -> Vec<SnapshotRef> {
        let one = |(group, days): &(&str, u32)| SnapshotRef {
            modified: now - DAY * *days,
            group: (*group).to_owned(),
            path: PathBuf::from(format!("{group}/{days}")),
            id: None,
        };
        ages.iter().map(one).collect()
    }

    fn names(refs: &[SnapshotRef]) -> Vec<String> {
        refs.iter().map(|found| found.path.display().to_string()).collect()
    }

    #[test]
    fn snapshots_are_chosen_by_age_then_by_number_and_protected_ones_stay() {
        let now = SystemTime::now();
        let all = refs(now, &[("a", 1), ("open", 50), ("a", 40), ("b", 3), ("b", 2), ("c", 31)]);
        let limits = RetentionLimits { max_count: 3, ..RetentionLimits::default() };
        let is_open = |group: &str| group == "open";
        let mut choice = RefChoice::new(all, &limits, now, &is_open);
        assert_eq!(names(&choice.removed), ["a/40", "c/31", "b/3"]);
        assert_eq!(names(&choice.kept), ["open/50", "b/2", "a/1"]);
        assert_eq!(choice.groups(&is_open), ["b", "a"]);
        choice.remove(&["b".to_owned()]);
        assert_eq!(names(&choice.kept), ["open/50", "a/1"]);
        assert_eq!(choice.removed.len(), 4);
    }

    #[test]
    fn a_snapshot_from_the_future_is_not_old() {
        let now = SystemTime::now();
        let later = refs(now + DAY * 100, &[("a", 0)]);
        let limits = RetentionLimits { max_age: Duration::ZERO, ..RetentionLimits::default() };
        let choice = RefChoice::new(later, &limits, now, &|_| false);
        assert_eq!(choice.kept.len(), 1);
    }
}
