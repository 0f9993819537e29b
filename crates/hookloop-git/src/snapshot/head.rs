//! The commit that is checked out in the user's repository.

use tracing::warn;

use super::commands::SnapshotCommands;
use crate::repo::{CommitId, FoundRepository, RepoError, names, state_file};

/// Where the user's repository keeps the commit whose objects a snapshot needs.
pub(super) const BASE_REFS: &str = "refs/hookloop/snapshots";

/// Returns the commit that is checked out; `None` in a repository without commits.
pub(super) fn head(
    commands: &SnapshotCommands,
    found: &FoundRepository,
) -> Result<Option<CommitId>, RepoError> {
    if let Some(head) = head_in_files(found) {
        return Ok(Some(head));
    }
    let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"];
    let said = commands.users(&found.git_dir, &args)?;
    if said.code == 1 {
        return Ok(None);
    }
    let said = said.well("rev-parse")?;
    let name = String::from_utf8_lossy(&said).trim().to_owned();
    let head = name.parse();
    head.map(Some).map_err(|_| RepoError::permanent(format!("git names `{name}` as HEAD")))
}

/// Returns the commit of HEAD if two small files name it. A process would take longer than reading them.
fn head_in_files(found: &FoundRepository) -> Option<CommitId> {
    let head = state_file::read_line(&found.git_dir.join("HEAD")).ok()??;
    let Some(name) = head.strip_prefix("ref: ") else { return head.parse().ok() };
    let is_branch = name.starts_with("refs/heads/") && names::is_branch(name);
    let line = state_file::read_line(&found.common.join(name)).ok().filter(|_| is_branch)??;
    line.parse().ok()
}

/// Keeps the objects of a commit in the user's repository, even if its history is rewritten.
pub(super) fn keep_base(commands: &SnapshotCommands, found: &FoundRepository, head: &CommitId) {
    let name = format!("{BASE_REFS}/{head}");
    let args = ["update-ref", "--no-deref", "--", &name, head.as_str()];
    let kept = commands.users(&found.git_dir, &args).and_then(|said| Ok(said.well("update-ref")?));
    if let Err(error) = kept {
        // A repository that can't be written is not rewritten either.
        warn!(repository = %found.git_dir.display(), %error, "the base of snapshots is not kept");
    }
}
