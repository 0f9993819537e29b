//! The refs in the user's repositories that keep the commits on which snapshots are based.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use tracing::warn;

use super::entries;
use super::object_name::{ObjectName, lines};
use super::places::{self, StoredPlace};
use crate::repo::{FoundRepository, RepoError};
use crate::snapshot::head::BASE_REFS;
use crate::snapshot::record::SnapshotMessage;
use crate::snapshot::{Snapshots, store_of};

/// Prints the messages of snapshots, each in a line of its own.
const MESSAGES: [&str; 4] = ["rev-list", "--missing=allow-any", "--format=%B", "--stdin"];
/// The most refs that are removed at once: each takes a process.
const REMOVED_MAX: usize = 500;

impl Snapshots {
    /// Returns the commits that these snapshots and the working directories are based on; `None` if a snapshot does not
    /// tell.
    pub(super) fn bases(
        &self,
        roots: &HashSet<ObjectName>,
        places: &[StoredPlace],
    ) -> Result<Option<BTreeSet<String>>, RepoError> {
        let mut bases: BTreeSet<String> =
            places.iter().filter_map(|place| place.base.clone()).collect();
        if roots.is_empty() {
            return Ok(Some(bases));
        }
        let said = self.retention_git(&[], &MESSAGES, lines(roots))?;
        let said = String::from_utf8_lossy(&said);
        for line in said.lines().filter(|line| line.starts_with('{')) {
            // A snapshot of another version.
            let Ok(message) = serde_json::from_str::<SnapshotMessage>(line) else {
                return Ok(None);
            };
            bases.extend(message.base.map(String::from));
        }
        Ok(Some(bases))
    }

    /// Removes the refs of all other commits.
    ///
    /// They take no disk space of the store. So a repository that can't be written now keeps them until later.
    pub(super) fn remove_other_bases(&self, bases: &BTreeSet<String>, places: &[StoredPlace]) {
        let mut repositories: BTreeSet<PathBuf> =
            places.iter().filter_map(|place| place.objects.clone()).collect();
        let own = FoundRepository::find(&self.root).ok().flatten();
        repositories.extend(own.map(|found| found.common.join("objects")));
        for objects in repositories.iter().filter(|objects| objects.is_dir()) {
            if let Err(error) = self.remove_bases_of(objects, bases) {
                let objects = objects.display();
                warn!(%objects, %error, "refs of removed snapshots are not removed");
            }
        }
    }

    fn remove_bases_of(&self, objects: &Path, bases: &BTreeSet<String>) -> Result<(), RepoError> {
        let Some(common) = objects.parent() else { return Ok(()) };
        let args = ["for-each-ref", "--format=%(refname)", BASE_REFS];
        let listed = self.commands.users(common, &args)?.well("for-each-ref")?;
        let listed = String::from_utf8_lossy(&listed);
        let is_other = |name: &&str| {
            let commit = name.rsplit('/').next().unwrap_or_default();
            !bases.contains(commit)
        };
        let others: Vec<&str> = listed.lines().filter(is_other).take(REMOVED_MAX).collect();
        // The names do not tell which project needs them.
        if others.is_empty() || self.is_of_another_project(objects)? {
            return Ok(());
        }
        for name in others {
            let args = ["update-ref", "--no-deref", "-d", name];
            self.commands.users(common, &args)?.well("update-ref")?;
        }
        Ok(())
    }

    /// Returns whether another project of this user has snapshots of the repository.
    fn is_of_another_project(&self, objects: &Path) -> Result<bool, RepoError> {
        let store = &self.commands.store;
        let Some(states) = store.parent().and_then(Path::parent) else { return Ok(false) };
        for state in entries(states)? {
            let other = store_of(&state.path());
            if other != *store && places::is_any_of(&other.join("places"), objects)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
