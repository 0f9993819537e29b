//! A repository that a worker clones: a mirror for each address, and a checkout for each project that borrows the
//! mirror's objects.
//!
//! Only hookloop writes their configurations. The checkout takes the place of a user's checkout: the worktrees of
//! tasks belong to it, and no work happens in it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use hookloop_config::repository::RepositorySource;
use hookloop_core::digest::short_sha256_hex;
use hookloop_process::Cancel;

use super::error::RepoError;
use super::git_command::{CommandScope, GitCommands, SshAccess};
use super::private_repo::quoted;
use super::{CommitId, HeldLock, RepoDirectories, names, state_file};

const LOCK: &str = "mirror.lock";

/// The result of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedOut {
    pub branch: String,
    pub commit: CommitId,
    /// The files have changed.
    pub is_new: bool,
}

/// Moves the checkout at `grounds.root` to the last commit of the source's branch. `grounds.state` has the mirrors.
/// No other process may use the checkout.
pub fn check_out(
    grounds: RepoDirectories<'_>,
    source: &RepositorySource,
    cancel: &Cancel,
) -> Result<CheckedOut, RepoError> {
    names::check_url(&source.url)?;
    state_file::make_directory(grounds.root)?;
    state_file::make_directory(grounds.state)?;
    let mirror = grounds.state.join(format!("{}.git", key(&source.url)));
    let git_dir = grounds.root.join(".git");
    let mut asker = GitCommands {
        grounds,
        cancel: cancel.clone(),
        common: git_dir.clone(),
        private_repo: mirror.clone(),
        prefix: String::new(),
        ssh: SshAccess::Unasked,
    };
    let _alone = HeldLock::wait(&mirror.with_extension(LOCK), cancel)?;
    asker.clear_depot()?;
    prepare(&mirror, &source.url)?;
    asker.find_ssh()?;
    let branch = match &source.branch {
        Some(branch) => branch.clone(),
        None => asker.default_branch(&source.url)?,
    };
    names::check_branch(&branch)?;
    let commit = asker.fetch(source, &branch)?;
    let known = state_file::read_line(&git_dir.join("hookloop-head"))?;
    let is_new = known.as_deref() != Some(commit.as_str());
    if is_new {
        asker.lay_out(&git_dir, source, &branch, &commit)?;
    }
    Ok(CheckedOut { branch, commit, is_new })
}

/// Returns a name for the mirror of an address.
fn key(url: &str) -> String {
    short_sha256_hex(url, 12)
}

fn prepare(mirror: &Path, url: &str) -> Result<(), RepoError> {
    for directory in ["objects/info", "objects/pack", "refs/heads", "info"] {
        state_file::make_directory(&mirror.join(directory))?;
    }
    let config = format!(
        "# Written by hookloop.\n[core]\n\tbare = true\n\trepositoryFormatVersion = 0\n[remote \"origin\"]\n\turl = {}\n",
        quoted(url)
    );
    state_file::write(&mirror.join("config"), config.as_bytes())?;
    state_file::write(&mirror.join("HEAD"), b"ref: refs/heads/none\n")
}

impl GitCommands<'_> {
    fn default_branch(&self, url: &str) -> Result<String, RepoError> {
        let args = ["ls-remote", "--quiet", "--symref", "--", url, "HEAD"];
        let said = self.told_by_remote(self.ask(CommandScope::Network, &args))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let found = said.lines().find_map(|line| {
            let name = line.strip_prefix("ref: refs/heads/")?;
            Some(name.strip_suffix("\tHEAD")?.to_owned())
        });
        found.ok_or_else(|| RepoError::NeedsHuman {
            why: format!("{} has no default branch", names::without_user(url)),
            hint: "name one: `branch:` of the project in your configuration".to_owned(),
        })
    }

    fn fetch(&self, source: &RepositorySource, branch: &str) -> Result<CommitId, RepoError> {
        let spec = format!("+refs/heads/{branch}:refs/heads/{branch}");
        let depth = source.depth.map(|depth| format!("--depth={depth}"));
        let mut args = vec!["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        args.extend(depth.as_deref());
        args.extend(["--", &source.url, &spec]);
        self.told_by_remote(self.ask(CommandScope::Network, &args))?;
        let full = format!("refs/heads/{branch}");
        let gone = || RepoError::permanent(format!("there is no branch `{branch}`"));
        self.private_ref(&full)?.ok_or_else(gone)
    }

    /// Writes the files of a commit to the checkout.
    fn lay_out(
        &self,
        git_dir: &Path,
        source: &RepositorySource,
        branch: &str,
        commit: &CommitId,
    ) -> Result<(), RepoError> {
        for directory in ["objects/info", "objects/pack", "refs/heads", "info"] {
            state_file::make_directory(&git_dir.join(directory))?;
        }
        state_file::write(&git_dir.join("config"), config_of(source, branch).as_bytes())?;
        let mut objects = self.private_repo.join("objects").into_os_string().into_encoded_bytes();
        objects.push(b'\n');
        state_file::write(&git_dir.join("objects/info/alternates"), &objects)?;
        match state_file::read(&self.private_repo.join("shallow"))? {
            Some(bytes) => state_file::write(&git_dir.join("shallow"), &bytes)?,
            None => state_file::remove(&git_dir.join("shallow"))?,
        }
        state_file::write(&git_dir.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())?;
        // The same commands, on the checkout's own repository.
        let own = GitCommands {
            grounds: self.grounds,
            cancel: self.cancel.clone(),
            common: git_dir.to_owned(),
            private_repo: git_dir.to_owned(),
            prefix: String::new(),
            ssh: self.ssh,
        };
        own.clear_checkout(branch)?;
        for name in [format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")] {
            own.private_repo(&["update-ref", "--no-deref", "--", &name, commit.as_str()]).done()?;
        }
        let index: PathBuf = git_dir.join("index");
        let scope = CommandScope::Files { work_tree: self.grounds.root, index: &index };
        own.ask(scope, &["reset", "--hard", "--quiet", commit.as_str()]).done()?;
        // Written last, so that an interrupted checkout is done again.
        state_file::write(&git_dir.join("hookloop-head"), format!("{commit}\n").as_bytes())
    }
}

fn config_of(source: &RepositorySource, branch: &str) -> String {
    let mut text = String::from(
        "# Written by hookloop.\n[core]\n\tbare = false\n\trepositoryFormatVersion = 0\n",
    );
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "[remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch {}]\n\tremote = origin\n\tmerge = refs/heads/{branch}\n",
        quoted(&source.url),
        quoted(branch)
    );
    text
}
