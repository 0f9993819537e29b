//! The checkouts of a room: that of the repository, and one for each repository within it.

use std::path::PathBuf;

use super::RoomTarget;
use super::survey::joined;
use crate::repo::RepoError;
use crate::snapshot::{CheckoutSettings, NestedSnapshot, Snapshots, top_of, unhex};

/// The greatest depth of repositories within repositories.
const DEPTH_MAX: usize = 8;
/// The most repositories in one other.
const NESTED_MAX: usize = 256;

/// A checkout that a room may have.
#[derive(Clone, Debug)]
pub(super) struct PlannedCheckout {
    /// The path from the checkout that it is in; empty for the room's own.
    pub(super) relative: Vec<u8>,
    /// The path from the top of the room's files.
    pub(super) path: Vec<u8>,
    /// The tree of the current files. A room has that of the commit, if the repository around it names one.
    pub(super) tree: String,
    pub(super) settings: CheckoutSettings,
    pub(super) nested: Vec<PlannedCheckout>,
}

impl PlannedCheckout {
    pub(super) fn of_target(target: &RoomTarget<'_>) -> Result<PlannedCheckout, RepoError> {
        Ok(PlannedCheckout {
            relative: Vec::new(),
            path: Vec::new(),
            tree: target.tree.to_owned(),
            settings: target.snapshots.checkout_settings(target.top)?,
            nested: nested(target.snapshots, &[], target.nested, 1)?,
        })
    }

    /// Returns the objects of the user's repository.
    pub(super) fn objects(&self) -> Option<&PathBuf> {
        self.settings.objects.as_ref()
    }
}

fn nested(
    snapshots: &Snapshots,
    prefix: &[u8],
    nested_snapshots: &[NestedSnapshot],
    depth: usize,
) -> Result<Vec<PlannedCheckout>, RepoError> {
    if depth > DEPTH_MAX || nested_snapshots.len() > NESTED_MAX {
        let why = format!(
            "a room has at most {NESTED_MAX} repositories in one other, and {DEPTH_MAX} levels of them"
        );
        return Err(RepoError::permanent(why));
    }
    let mut planned = Vec::new();
    for found in nested_snapshots {
        let relative = unhex(&found.path)?;
        // The repository's own directory. A room has the files alone.
        if relative.ends_with(b"/.git") || relative == b".git" {
            continue;
        }
        let snapshot = snapshots.read(found.id.clone())?;
        let path = joined(prefix, &relative);
        planned.push(PlannedCheckout {
            nested: nested(snapshots, &path, &snapshot.nested, depth + 1)?,
            settings: snapshots.nested_checkout_settings(&top_of(&snapshot)?)?,
            tree: snapshot.tree,
            relative,
            path,
        });
    }
    Ok(planned)
}
