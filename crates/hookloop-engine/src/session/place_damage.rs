//! Checks of the directory that a session works in.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use hookloop_core::point::Point;
use hookloop_core::session::NextStep;
use hookloop_git::repo::Worktree;

use crate::delivery_context::DeliveryTools;

/// The reason why nothing may run in the working directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceDamage {
    /// The directory is not the worktree of the claimed task.
    #[error("{why}")]
    Worktree { why: String },
    /// The project's directory is not the one that the session began in.
    #[error("{why}")]
    Root { why: String },
}

/// The identity of a directory, which differs from another one at the same path.
///
/// The directory is kept open, so that the system does not reuse its inode number.
#[derive(Debug)]
pub(super) struct DirectoryIdentity {
    handle: fs::File,
}

impl DirectoryIdentity {
    pub(super) fn of(path: &Path) -> io::Result<DirectoryIdentity> {
        Ok(DirectoryIdentity { handle: fs::File::open(path)? })
    }

    /// Checks that `path` still is this directory.
    pub(super) fn check(&self, path: &Path) -> Result<(), PlaceDamage> {
        let damage = |why: String| PlaceDamage::Root { why: format!("{}: {why}", path.display()) };
        let known = self.handle.metadata().map_err(|error| damage(error.to_string()))?;
        let found = fs::metadata(path).map_err(|error| damage(error.to_string()))?;
        let is_same = (found.dev(), found.ino()) == (known.dev(), known.ino());
        if found.is_dir() && is_same { Ok(()) } else { Err(damage("it was replaced".to_owned())) }
    }
}

/// Whether a step runs an agent, a hook or git in the working directory of the session.
pub(super) fn needs_place(step: &NextStep) -> bool {
    match step {
        NextStep::Begin(_)
        | NextStep::StartTurn(_)
        | NextStep::Decide
        | NextStep::Gate
        | NextStep::CheckUnclaimed
        | NextStep::Submit { .. } => true,
        // After the submission no claim is left, and a session may end because its directory is
        // missing.
        NextStep::Hooks(point) => !matches!(point, Point::AfterSubmit | Point::SessionEnd),
        NextStep::TakeTask
        | NextStep::Settle
        | NextStep::Turn(_)
        | NextStep::AnswerRetryLimit
        | NextStep::LeaveTask { .. }
        | NextStep::End(_)
        | NextStep::Pause
        | NextStep::Rest => false,
    }
}

/// The directories that a session works in.
pub(super) struct CurrentPlace<'a> {
    pub(super) root: &'a Path,
    pub(super) identity: Option<&'a DirectoryIdentity>,
    pub(super) worktree: Option<&'a Worktree>,
    pub(super) delivery_tools: Option<&'a DeliveryTools<'a>>,
}

impl CurrentPlace<'_> {
    pub(super) fn check(&self, is_held: bool) -> Result<(), PlaceDamage> {
        self.check_root()?;
        if is_held { self.check_worktree() } else { Ok(()) }
    }

    pub(super) fn check_root(&self) -> Result<(), PlaceDamage> {
        let root = self.root;
        match self.identity {
            Some(identity) => identity.check(root),
            None => Err(PlaceDamage::Root { why: format!("{} was not there", root.display()) }),
        }
    }

    pub(super) fn check_worktree(&self) -> Result<(), PlaceDamage> {
        let (Some(worktree), Some(delivery_tools)) = (self.worktree, self.delivery_tools) else {
            return Ok(());
        };
        let checked = delivery_tools.repo.check_worktree(worktree);
        checked.map_err(|why| PlaceDamage::Worktree { why })
    }
}
