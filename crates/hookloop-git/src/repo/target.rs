//! The branch that work is for, and its remote.

use hookloop_core::id::TaskId;

use super::discover::FoundRepository;
use super::error::RepoError;
use super::git_command::{CommandScope, GitCommands};
use super::{CommitId, RemoteName, Repo, RepoOptions, names, private_repo, state_file};

/// The default remote.
const REMOTE: &str = "origin";
/// The default branches, if neither the configuration nor a remote names one.
const USUAL: [&str; 2] = ["main", "master"];
/// The command that gives a repository its first commit.
const FIRST_COMMIT: &str = "git add --all && git commit -m \"First commit\"";

impl GitCommands<'_> {
    /// Returns the configured remote, else the default one.
    pub(super) fn remote(
        &self,
        options: &RepoOptions,
        found: &FoundRepository,
    ) -> Result<Option<RemoteName>, RepoError> {
        let name = options.remote.as_deref().unwrap_or(REMOTE);
        names::check_remote(name)?;
        let url = self.setting(&format!("remote.{name}.url"))?;
        let (url, push_url) = match (url, &options.remote) {
            (Some(url), _) => (url, self.setting(&format!("remote.{name}.pushurl"))?),
            (None, None) => return Ok(None),
            (None, Some(_)) => {
                return Err(RepoError::NeedsHuman {
                    why: format!("there is no remote `{name}`"),
                    hint: format!("git remote add {name} <address>"),
                });
            }
        };
        let push_url = push_url.unwrap_or_else(|| url.clone());
        names::check_url(&url)?;
        names::check_url(&push_url)?;
        let whole = |url: &str| private_repo::absolute(url, &found.top);
        let remote =
            RemoteName { name: name.to_owned(), url: whole(&url), push_url: whole(&push_url) };
        self.check_known(&remote)?;
        Ok(Some(remote))
    }

    /// Checks the address of a remote against the first one that hookloop saw: an agent can write to the
    /// repository's configuration.
    fn check_known(&self, remote: &RemoteName) -> Result<(), RepoError> {
        let note = self.grounds.state.join("remotes").join(remote.name.replace('/', "%2F"));
        // A changed token does not lead to another server.
        let [url, push_url] = [&remote.url, &remote.push_url].map(|url| names::without_user(url));
        let now = format!("{url}\n{push_url}\n");
        match state_file::read(&note)? {
            None => state_file::write(&note, now.as_bytes()),
            Some(known) if known == now.as_bytes() => Ok(()),
            Some(known) => Err(RepoError::NeedsHuman {
                why: format!(
                    "the address of remote `{}` has changed: from {} to {}",
                    remote.name,
                    String::from_utf8_lossy(&known).trim_end().replace('\n', " "),
                    now.trim_end().replace('\n', " ")
                ),
                hint: format!("if that was you: rm {}", note.display()),
            }),
        }
    }

    /// Returns the configured branch, else the default branch of the remote.
    pub(super) fn base(
        &self,
        options: &RepoOptions,
        remote: Option<&RemoteName>,
    ) -> Result<String, RepoError> {
        if let Some(base) = &options.base {
            names::check_branch(base)?;
            if remote.is_none() && self.users_ref(&format!("refs/heads/{base}"))?.is_none() {
                self.check_commit()?;
            }
            return Ok(base.clone());
        }
        let found = match remote {
            None => self.usual_branch()?,
            Some(remote) => match self.known_head_of(remote)? {
                Some(branch) => Some(branch),
                None => self.told_head_of(remote)?,
            },
        };
        match found.filter(|branch| names::is_branch(branch)) {
            Some(branch) => Ok(branch),
            None => {
                self.check_commit()?;
                Err(RepoError::NeedsHuman {
                    why: "which branch work is for is not clear".to_owned(),
                    hint: "name it in hookloop.yaml: delivery: {base: <branch>}".to_owned(),
                })
            }
        }
    }

    /// Refuses a repository without a commit: a worktree needs one.
    fn check_commit(&self) -> Result<(), RepoError> {
        match self.users_ref("HEAD")? {
            Some(_) => Ok(()),
            None => Err(RepoError::NeedsHuman {
                why: "the repository has no commit yet".to_owned(),
                hint: FIRST_COMMIT.to_owned(),
            }),
        }
    }

    fn usual_branch(&self) -> Result<Option<String>, RepoError> {
        for name in USUAL {
            if self.users_ref(&format!("refs/heads/{name}"))?.is_some() {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }

    fn known_head_of(&self, remote: &RemoteName) -> Result<Option<String>, RepoError> {
        let prefix = format!("refs/remotes/{}/", remote.name);
        let head = format!("{prefix}HEAD");
        let said = self.users(&["symbolic-ref", "--quiet", "--", &head]).said()?;
        match said.code {
            1 => Ok(None),
            _ => {
                let full = String::from_utf8_lossy(&said.well("symbolic-ref")?).into_owned();
                Ok(full.trim_end().strip_prefix(&prefix).map(str::to_owned))
            }
        }
    }

    fn told_head_of(&self, remote: &RemoteName) -> Result<Option<String>, RepoError> {
        let args = [
            "ls-remote",
            "--symref",
            "--",
            &remote.url,
            "HEAD",
            "refs/heads/main",
            "refs/heads/master",
        ];
        let said = self.told_by_remote(self.ask(CommandScope::Network, &args))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let head = said.lines().find_map(|line| {
            line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD").map(str::to_owned)
        });
        let usual = || {
            let is_there = |name: &&str| said.contains(&format!("\trefs/heads/{name}\n"));
            USUAL.into_iter().find(is_there).map(str::to_owned)
        };
        Ok(head.or_else(usual))
    }
}

impl Repo<'_> {
    /// Fetches the target, and returns its newest commit.
    pub fn newest_base(&self) -> Result<CommitId, RepoError> {
        let branch = &self.target.branch;
        let Some(remote) = &self.target.remote else {
            let found = self.asker.users_ref(&format!("refs/heads/{branch}"))?;
            return found.ok_or_else(|| no_branch(branch, "git branch"));
        };
        let _alone = self.alone()?;
        self.asker.sync_shallow()?;
        self.forget_what_is_gone()?;
        self.fetch(remote, branch, &self.known_target_name())?;
        let found = self.asker.private_ref(&self.known_target_name())?;
        found.ok_or_else(|| no_branch(branch, "git push"))
    }

    /// Forgets a commit that is gone from the borrowed objects: a fetch would fail over it.
    fn forget_what_is_gone(&self) -> Result<(), RepoError> {
        let full = self.known_target_name();
        let Some(known) = self.asker.private_ref(&full)? else { return Ok(()) };
        match self.asker.private_repo(&["cat-file", "-e", known.as_str()]).said()?.code {
            0 => Ok(()),
            _ => self.asker.private_repo(&["update-ref", "-d", "--no-deref", "--", &full]).done(),
        }
    }

    fn fetch(&self, remote: &RemoteName, branch: &str, into: &str) -> Result<(), RepoError> {
        let args = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--upload-pack=git-upload-pack",
            "--",
            &remote.url,
        ];
        let refs = format!("+refs/heads/{branch}:{into}");
        let question = self.asker.ask(CommandScope::Network, &args).arg(refs);
        self.asker.told_by_remote(question).map(|_| ())
    }

    /// Fetches a commit of a branch that another machine may have pushed. Returns whether the commit is here.
    pub fn bring(&self, branch: &str, commit: &CommitId) -> Result<bool, RepoError> {
        let is_here = || -> Result<bool, RepoError> {
            let name = format!("{commit}^{{commit}}");
            Ok(self.asker.private_repo(&["cat-file", "-e", &name]).said()?.code == 0)
        };
        let Some(remote) = &self.target.remote else { return is_here() };
        if is_here()? {
            return Ok(true);
        }
        names::check_branch(branch)?;
        if self.remote_head(branch)?.as_ref() != Some(commit) {
            return Ok(false);
        }
        let _alone = self.alone()?;
        self.asker.sync_shallow()?;
        self.fetch(remote, branch, &format!("refs/hookloop/branches/{branch}"))?;
        is_here()
    }

    /// Returns the ref of the private repository with the last fetched target.
    fn known_target_name(&self) -> String {
        format!("refs/hookloop/target/{}", self.target.branch)
    }

    /// Returns the last known commit of the target, without a fetch.
    pub(super) fn known_target(&self) -> Result<Option<CommitId>, RepoError> {
        match &self.target.remote {
            None => self.asker.users_ref(&format!("refs/heads/{}", self.target.branch)),
            Some(_) => self.asker.private_ref(&self.known_target_name()),
        }
    }

    /// Records the commit of the target.
    pub(super) fn set_known_target(&self, commit: &CommitId) -> Result<(), RepoError> {
        let full = self.known_target_name();
        let _alone = self.alone()?;
        self.asker.private_repo(&["update-ref", "--", &full, commit.as_str()]).done()
    }

    /// Copies a pushed commit of a task to the user's repository.
    pub(super) fn hand_over_work(&self, commit: &CommitId, task: &TaskId) -> Result<(), RepoError> {
        let _alone = self.alone()?;
        self.asker.hand_over(commit, &format!("pushed/{task}"))
    }

    pub(super) fn hand_over_base(&self, commit: &CommitId) -> Result<(), RepoError> {
        let _alone = self.alone()?;
        self.asker.hand_over(commit, &format!("base/{}", self.target.branch))
    }
}

fn no_branch(branch: &str, command: &str) -> RepoError {
    RepoError::NeedsHuman {
        why: format!("there is no branch `{branch}`, which work is to go to"),
        hint: format!(
            "make it ({command}), or name another in hookloop.yaml: delivery: {{base: <branch>}}"
        ),
    }
}
