//! Moves the target, if it still has the expected commit.

use super::error::RepoError;
use super::remote::PushOutcome;
use super::{CommitId, LandedCommit, Repo};

impl Repo<'_> {
    /// Moves the target from `expected` to `commit`, which must be a descendant.
    pub fn land(&self, commit: &CommitId, expected: &CommitId) -> Result<LandedCommit, RepoError> {
        if !self.is_ancestor(expected, commit)? {
            let why =
                format!("{commit} is not above {expected}, so `{}` stays", self.target.branch);
            return Err(RepoError::permanent(why));
        }
        match self.target.remote {
            Some(_) => self.land_at_remote(commit, expected),
            None => self.land_here(commit, expected),
        }
    }

    fn land_at_remote(
        &self,
        commit: &CommitId,
        expected: &CommitId,
    ) -> Result<LandedCommit, RepoError> {
        let branch = &self.target.branch;
        match self.remote_head(branch)? {
            Some(found) if found == *commit => return Ok(LandedCommit::AlreadyThere),
            Some(found) if found != *expected => return self.lost(commit, found),
            Some(_) => {}
            None => {
                let why = format!("branch `{branch}` is gone from the remote");
                let hint = format!("git push {} {branch}", self.remote_name());
                return Err(RepoError::NeedsHuman { why, hint });
            }
        }
        let (now, outcome) = self.push_over(branch, expected, commit)?;
        match (now, outcome) {
            (Some(now), _) if now == *commit => {
                self.set_known_target(commit)?;
                Ok(LandedCommit::Done)
            }
            (Some(now), _) if now != *expected => self.lost(commit, now),
            (_, PushOutcome::Refused { why }) => Err(RepoError::NeedsHuman {
                why: format!("the remote refused a push to `{branch}`: {why}"),
                hint: "let the forge merge it, or allow the push in the branch's rules".to_owned(),
            }),
            (_, PushOutcome::Failed(error)) => Err(error),
            (_, PushOutcome::Accepted) => {
                let why = format!("`{branch}` was pushed, and is not at the remote");
                Err(RepoError::Retry { why })
            }
        }
    }

    /// Decides whether another push was first. A process that was killed after its own push may find further commits
    /// on top of it.
    fn lost(&self, commit: &CommitId, now: CommitId) -> Result<LandedCommit, RepoError> {
        let newest = self.newest_base()?;
        match self.is_ancestor(commit, &newest)? {
            true => Ok(LandedCommit::AlreadyThere),
            false => Ok(LandedCommit::Lost { now }),
        }
    }

    fn land_here(&self, commit: &CommitId, expected: &CommitId) -> Result<LandedCommit, RepoError> {
        let branch = &self.target.branch;
        let full = format!("refs/heads/{branch}");
        let found = self.newest_base()?;
        if self.is_ancestor(commit, &found)? {
            return Ok(LandedCommit::AlreadyThere);
        }
        if found != *expected {
            return Ok(LandedCommit::Lost { now: found });
        }
        if let Some(path) = self.asker.checkout_of(&full)? {
            return Err(RepoError::CheckedOut { branch: branch.clone(), path });
        }
        self.hand_over_base(commit)?;
        let moved = self.asker.move_branch(&full, Some(expected), commit);
        match (moved, self.newest_base()?) {
            (_, now) if now == *commit => Ok(LandedCommit::Done),
            (_, now) if now != *expected => Ok(LandedCommit::Lost { now }),
            (Err(error), _) => Err(error),
            (Ok(()), _) => Err(RepoError::permanent(format!("`{branch}` did not move"))),
        }
    }

    fn remote_name(&self) -> &str {
        self.target.remote.as_ref().map_or("", |remote| &remote.name)
    }
}
