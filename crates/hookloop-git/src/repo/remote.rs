//! Branches of a remote: read, pushed with a lease, deleted.
//!
//! The state of the remote afterwards decides the result of a push, not the output of git.

use std::fmt::Write;
use std::path::PathBuf;

use super::error::RepoError;
use super::git_command::{CommandScope, GitCommand, GitCommands};
use super::{CommitId, PushResult, RemoteName, Repo, names, state_file};

/// The most commits that are remembered of those pushed to a branch.
const INTENTS_MAX: usize = 100;
/// Parts of messages of git or ssh after which a further try does not help. Exit codes do not show it. An unknown
/// message only costs retries.
const FOR_PEOPLE: [&str; 10] = [
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "Permission denied",
    "Host key verification failed",
    "does not appear to be a git repository",
    "Repository not found",
    "The requested URL returned error: 401",
    "The requested URL returned error: 403",
    "The requested URL returned error: 404",
];

impl GitCommands<'_> {
    /// Returns the output of a command that a remote had to answer.
    pub(super) fn told_by_remote(
        &self,
        question: GitCommand<'_, '_>,
    ) -> Result<Vec<u8>, RepoError> {
        let said = question.said()?;
        match said.code {
            0 => Ok(said.stdout),
            _ => Err(classified(said.stderr.trim())),
        }
    }

    fn told_head(&self, remote: &RemoteName, branch: &str) -> Result<Option<CommitId>, RepoError> {
        let full = format!("refs/heads/{branch}");
        let args = ["ls-remote", "--quiet", "--", &remote.push_url, &full];
        let said = self.told_by_remote(self.ask(CommandScope::Network, &args))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        // A name matches at its end: others may be listed, too.
        let mut listed = said.lines().filter_map(|line| line.split_once('\t'));
        let Some((commit, _)) = listed.find(|(_, name)| *name == full) else {
            return Ok(None);
        };
        // A branch whose commit can't be read is not a branch that is missing.
        let unread = |_| RepoError::permanent(format!("git ls-remote: `{commit}` is no commit"));
        commit.parse().map(Some).map_err(unread)
    }
}

fn classified(why: &str) -> RepoError {
    let why = why.to_owned();
    match FOR_PEOPLE.iter().any(|words| why.contains(words)) {
        true => RepoError::NeedsHuman {
            why: format!("the remote did not let us in: {why}"),
            hint: "try it by hand: git ls-remote".to_owned(),
        },
        false => RepoError::Retry { why: format!("the remote: {why}") },
    }
}

/// A change of a branch at a remote.
struct RemoteChange<'a> {
    branch: &'a str,
    /// The present commit; `None` if there is no such branch.
    found: Option<&'a CommitId>,
    /// The new commit; `None` to delete the branch.
    wanted: Option<&'a CommitId>,
}

/// The result of a push as git reports it.
#[derive(Debug)]
pub(super) enum PushOutcome {
    Accepted,
    /// The remote received the push and refused it, by a hook or a rule.
    Refused {
        why: String,
    },
    /// Another failure.
    Failed(RepoError),
}

impl Repo<'_> {
    /// Returns the present commit of a branch at the remote.
    pub fn remote_head(&self, branch: &str) -> Result<Option<CommitId>, RepoError> {
        names::check_branch(branch)?;
        self.asker.told_head(self.some_remote()?, branch)
    }

    /// Pushes `commit` to `branch` at the remote, unless another party has pushed there.
    pub fn push(&self, branch: &str, commit: &CommitId) -> Result<PushResult, RepoError> {
        let found = self.remote_head(branch)?;
        if found.as_ref() == Some(commit) {
            return Ok(PushResult::AlreadyThere);
        }
        if let Some(found) = &found {
            let is_ours = self.intents(branch)?.contains(found) || self.is_below(found, commit)?;
            if !is_ours {
                return Err(RepoError::Foreign { branch: branch.to_owned(), found: found.clone() });
            }
        }
        // Written before the push, so that a later process knows that the commit is hookloop's.
        self.note_intent(branch, commit)?;
        let outcome =
            self.send(&RemoteChange { branch, found: found.as_ref(), wanted: Some(commit) })?;
        match (self.remote_head(branch)?, outcome) {
            (Some(now), _) if now == *commit => Ok(PushResult::Done),
            (now, outcome) => Err(self.not_pushed(branch, found.as_ref(), now, outcome)),
        }
    }

    /// Records commits that another machine was about to push, so that they do not count as foreign.
    pub fn recognise(&self, branch: &str, pushes: &[CommitId]) -> Result<(), RepoError> {
        let known = self.intents(branch)?;
        for commit in pushes.iter().filter(|commit| !known.contains(commit)) {
            self.note_intent(branch, commit)?;
        }
        Ok(())
    }

    fn not_pushed(
        &self,
        branch: &str,
        before: Option<&CommitId>,
        now: Option<CommitId>,
        outcome: PushOutcome,
    ) -> RepoError {
        match (now, outcome) {
            (Some(found), _) if Some(&found) != before => {
                RepoError::Foreign { branch: branch.to_owned(), found }
            }
            (_, PushOutcome::Refused { why }) => RepoError::NeedsHuman {
                why: format!("the remote refused a push to `{branch}`: {why}"),
                hint: "the remote's rules say who may push there".to_owned(),
            },
            (_, PushOutcome::Failed(error)) => error,
            (_, PushOutcome::Accepted) => {
                RepoError::Retry { why: format!("`{branch}` was pushed, and is not at the remote") }
            }
        }
    }

    /// Deletes `branch` at the remote, if it still has the expected commit.
    pub fn delete_remote(&self, branch: &str, expected: &CommitId) -> Result<(), RepoError> {
        match self.remote_head(branch)? {
            None => return state_file::remove(&self.intents_file(branch)),
            Some(found) if found != *expected => {
                return Err(RepoError::Foreign { branch: branch.to_owned(), found });
            }
            Some(_) => {}
        }
        let outcome = self.send(&RemoteChange { branch, found: Some(expected), wanted: None })?;
        match self.remote_head(branch)? {
            None => state_file::remove(&self.intents_file(branch)),
            now => Err(self.not_pushed(branch, Some(expected), now, outcome)),
        }
    }

    /// Pushes `commit` over `expected`. Returns the commit that the remote has afterwards.
    pub(super) fn push_over(
        &self,
        branch: &str,
        expected: &CommitId,
        commit: &CommitId,
    ) -> Result<(Option<CommitId>, PushOutcome), RepoError> {
        let change = RemoteChange { branch, found: Some(expected), wanted: Some(commit) };
        let outcome = self.send(&change)?;
        Ok((self.remote_head(branch)?, outcome))
    }

    fn send(&self, change: &RemoteChange<'_>) -> Result<PushOutcome, RepoError> {
        let remote = self.some_remote()?;
        let hex = |commit: Option<&CommitId>| commit.map(CommitId::to_string).unwrap_or_default();
        let full = format!("refs/heads/{}", change.branch);
        let lease = format!("--force-with-lease={full}:{}", hex(change.found));
        let refs = format!("{}:{full}", hex(change.wanted));
        let args = [
            "push",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--receive-pack=git-receive-pack",
            &lease,
            "--",
            &remote.push_url,
            &refs,
        ];
        self.asker.sync_shallow()?;
        let said = self.asker.ask(CommandScope::Network, &args).said()?;
        if said.code == 0 {
            return Ok(PushOutcome::Accepted);
        }
        let told = String::from_utf8_lossy(&said.stdout).into_owned();
        let refused = told.lines().find(|line| line.contains("[remote rejected]"));
        Ok(match refused {
            Some(_) => PushOutcome::Refused { why: said.stderr.trim().to_owned() },
            None => PushOutcome::Failed(classified(said.stderr.trim())),
        })
    }

    /// Returns whether `old` is `new` or an ancestor of it. An unknown commit is not.
    fn is_below(&self, old: &CommitId, new: &CommitId) -> Result<bool, RepoError> {
        let object = format!("{old}^{{commit}}");
        let said = self.asker.private_repo(&["cat-file", "-e", &object]).said()?;
        match said.code {
            0 => self.is_ancestor(old, new),
            _ => Ok(false),
        }
    }

    fn intents_file(&self, branch: &str) -> PathBuf {
        self.asker.grounds.state.join("pushed").join(branch.replace('%', "%25").replace('/', "%2F"))
    }

    /// Returns the commits that were pushed to a branch, or were about to be.
    pub(super) fn intents(&self, branch: &str) -> Result<Vec<CommitId>, RepoError> {
        let text = state_file::read_line(&self.intents_file(branch))?.unwrap_or_default();
        // A line that can't be read is no commit of ours, so a push over it is refused.
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    pub(super) fn note_intent(&self, branch: &str, commit: &CommitId) -> Result<(), RepoError> {
        let _alone = self.alone()?;
        let mut intents = self.intents(branch)?;
        intents.retain(|known| known != commit);
        intents.push(commit.clone());
        let skipped = intents.len().saturating_sub(INTENTS_MAX);
        let mut text = String::new();
        for intent in &intents[skipped..] {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{intent}");
        }
        state_file::write(&self.intents_file(branch), text.as_bytes())
    }

    fn some_remote(&self) -> Result<&RemoteName, RepoError> {
        self.target.remote.as_ref().ok_or_else(|| RepoError::NeedsHuman {
            why: "the repository has no remote".to_owned(),
            hint: "git remote add origin <address>".to_owned(),
        })
    }
}
