//! Git commands: one wrapper, so that git never runs a program that a repository or an agent wrote into a
//! configuration.

mod at_work;
mod call;
pub mod paths;
mod settings;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(crate) use at_work::{GitLocks, is_git_at_work};
pub(crate) use call::{GitCall, GitOutput, OutputSize};
pub use settings::{GitVariable, HARMLESS, variables};

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git ran and failed.
    #[error("git {command}: {why}")]
    Failed { command: String, why: String },
    /// Git did not run, or not to its end.
    #[error("git {command}: {why}")]
    NotRun { command: String, why: String },
    #[error("git was cancelled")]
    Cancelled,
}

/// Replaces one index by a copy of another. The copy has the modification time of the original: git reads a file
/// again if it is not older than the index, and takes every other file of the same size and time for unchanged.
pub(crate) fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    let new = to.with_extension(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let mut source = File::open(from)?;
    // `create_new`: a file or link that another process put there is not followed.
    let mut target = File::options().write(true).create_new(true).mode(0o644).open(&new)?;
    io::copy(&mut source, &mut target)?;
    target.set_modified(source.metadata()?.modified()?)?;
    fs::rename(&new, to)
}
