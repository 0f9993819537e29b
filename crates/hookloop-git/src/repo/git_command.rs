//! The commands of git, with their environment. This module alone decides which configuration is in effect.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookloop_process::Cancel;

use super::RepoDirectories;
use super::commit_id::{CommitId, NotACommit};
use super::error::RepoError;
use super::lock_wait::LockWait;
use crate::git::{GitCall, GitOutput, GitVariable, HARMLESS, OutputSize, variables};

/// The time limit of commands that only read, or move refs.
const QUICK: Duration = Duration::from_secs(120);
/// The time limit of commands that read or write all files.
const THOROUGH: Duration = Duration::from_secs(900);
/// The time limit of commands that use a remote.
const NETWORK: Duration = Duration::from_secs(600);
/// The longest list of files or text of a commit.
const LONG_MAX: u64 = 64 * 1024 * 1024;
/// Variables of git that the user may set, for example to reach a remote. All others could name a repository.
const USERS_OWN: [&str; 11] = [
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];
/// Settings that the user's own configuration must not change.
const STEADY: [(&str, &str); 17] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.sparseCheckout", "false"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("fetch.prune", "false"),
    ("push.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("merge.conflictStyle", "merge"),
    ("color.ui", "false"),
    ("advice.detachedHead", "false"),
];

/// The parameters of every command.
#[derive(Debug)]
pub(super) struct GitCommands<'r> {
    pub(super) grounds: RepoDirectories<'r>,
    pub(super) cancel: Cancel,
    /// The directory that the user's repository and its worktrees share.
    pub(super) common: PathBuf,
    /// The private repository.
    pub(super) private_repo: PathBuf,
    /// The prefix of task branches.
    pub(super) prefix: String,
    pub(super) ssh: SshAccess,
}

/// How ssh reaches a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SshAccess {
    /// As the user configured it.
    Users,
    /// By default, without questions.
    Unasked,
}

/// The repository of a command, its configuration, and its files.
#[derive(Clone, Copy, Debug)]
pub(super) enum CommandScope<'a> {
    /// The user's repository, its refs and worktrees. Its configuration is read, but runs nothing.
    Users,
    /// One worktree of the user's repository, by git's own directory of it.
    UsersWorktree(&'a Path),
    /// The private repository. Only the user's own configuration is in effect.
    Depot,
    /// The private repository with a remote.
    Network,
    /// The private repository with files and an index of them.
    Files { work_tree: &'a Path, index: &'a Path },
}

/// The repository that new objects are written to. Objects are read from both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectStore {
    Depot,
    Users,
}

/// A command that is being built.
#[derive(Debug)]
pub(super) struct GitCommand<'a, 'r> {
    asker: &'a GitCommands<'r>,
    scope: CommandScope<'a>,
    objects: ObjectStore,
    args: Vec<OsString>,
    stdin: Vec<u8>,
    extra: Vec<GitVariable>,
    timeout: Duration,
    long: Option<u64>,
}

impl<'r> GitCommands<'r> {
    pub(super) fn ask<'a>(&'a self, scope: CommandScope<'a>, args: &[&str]) -> GitCommand<'a, 'r> {
        let timeout = match scope {
            CommandScope::Users | CommandScope::UsersWorktree(_) | CommandScope::Depot => QUICK,
            CommandScope::Files { .. } => THOROUGH,
            CommandScope::Network => NETWORK,
        };
        GitCommand {
            asker: self,
            scope,
            objects: ObjectStore::Depot,
            args: args.iter().map(OsString::from).collect(),
            stdin: Vec::new(),
            extra: Vec::new(),
            timeout,
            long: None,
        }
    }

    pub(super) fn private_repo(&self, args: &[&str]) -> GitCommand<'_, 'r> {
        self.ask(CommandScope::Depot, args)
    }

    pub(super) fn users(&self, args: &[&str]) -> GitCommand<'_, 'r> {
        self.ask(CommandScope::Users, args)
    }

    pub(super) fn users_objects(&self) -> PathBuf {
        self.common.join("objects")
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.grounds.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    /// Returns the user's environment without variables that would lead git to another repository.
    fn users_environment(&self) -> Vec<GitVariable> {
        let is_ours = |name: &OsStr| {
            let name = name.to_string_lossy();
            let is_other = name.starts_with("GIT_") && !USERS_OWN.contains(&name.as_ref());
            !is_other && !["SSH_ASKPASS", "LC_ALL", "LANGUAGE"].contains(&name.as_ref())
        };
        let own = self.grounds.environment.iter().filter(|(name, _)| is_ours(name));
        own.cloned().collect()
    }
}

impl GitCommand<'_, '_> {
    pub(super) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(super) fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Uses the attributes of this commit for files. A git that cannot do so uses none.
    pub(super) fn attributes_of(mut self, commit: &CommitId) -> Self {
        self.extra.push(("GIT_ATTR_SOURCE".into(), commit.as_str().into()));
        self
    }

    pub(super) fn objects(mut self, objects: ObjectStore) -> Self {
        self.objects = objects;
        self
    }

    pub(super) fn thorough(mut self) -> Self {
        self.timeout = THOROUGH;
        self
    }

    /// Allows output that does not fit in memory.
    pub(super) fn long(mut self) -> Self {
        self.long = Some(LONG_MAX);
        self
    }

    pub(super) fn cut_at(mut self, max_bytes: usize) -> Self {
        self.long = Some(max_bytes as u64);
        self
    }

    /// Runs the command and returns its output, also after a failure. Waits for a lock that blocks it, and removes a
    /// leftover lock.
    pub(super) fn said(self) -> Result<GitOutput, RepoError> {
        let mut wait = LockWait::new();
        loop {
            let said = self.said_once()?;
            let lock = self.asker.lock_in_the_way(&said);
            // The message of a remote is about the remote's files, not about those here.
            match lock.filter(|_| !matches!(self.scope, CommandScope::Network)) {
                None => return Ok(said),
                Some(lock) => self.asker.await_lock(&mut wait, &lock)?,
            }
        }
    }

    fn said_once(&self) -> Result<GitOutput, RepoError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let env = self.environment();
        let (asker, grounds) = (self.asker, self.asker.grounds);
        let directory = || {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            grounds.state.join("git-answers").join(name)
        };
        let answer = match self.long {
            None => OutputSize::Short,
            Some(max_bytes) => OutputSize::Long { directory: directory(), max_bytes },
        };
        let cwd = match self.scope {
            CommandScope::Files { work_tree, .. } => work_tree,
            _ => grounds.state,
        };
        let call = GitCall {
            args: self.args.clone(),
            env,
            cwd: cwd.to_owned(),
            stdin: self.stdin.clone(),
            timeout: self.timeout,
            answer,
        };
        Ok(call.run(grounds.keepers, &asker.cancel)?)
    }

    /// Returns the output of a successful command, unless a part is missing.
    pub(super) fn bytes(self) -> Result<Vec<u8>, RepoError> {
        let command = self.command();
        let said = self.said()?;
        match said.left_out_bytes {
            0 => Ok(said.well(&command)?),
            _ => Err(RepoError::permanent(format!("git {command}: it said too much"))),
        }
    }

    pub(super) fn text(self) -> Result<String, RepoError> {
        let bytes = self.bytes()?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Returns the name of a commit or of another object.
    pub(super) fn commit(self) -> Result<CommitId, RepoError> {
        let text = self.text()?;
        text.parse().map_err(|error: NotACommit| RepoError::permanent(error.to_string()))
    }

    /// Returns true for exit code 0 and false for 1.
    pub(super) fn yes(self) -> Result<bool, RepoError> {
        let command = self.command();
        let said = self.said()?;
        match said.code {
            1 => Ok(false),
            _ => said.well(&command).map(|_| true).map_err(RepoError::from),
        }
    }

    pub(super) fn done(self) -> Result<(), RepoError> {
        self.bytes().map(|_| ())
    }

    fn command(&self) -> String {
        self.args.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn environment(&self) -> Vec<GitVariable> {
        let asker = self.asker;
        let mut env: Vec<GitVariable> = match self.scope {
            CommandScope::Users | CommandScope::UsersWorktree(_) => self.environment_for_users(),
            CommandScope::Depot | CommandScope::Network | CommandScope::Files { .. } => {
                self.environment_for_depot()
            }
        };
        let mut set = |name: &str, value: &OsStr| env.push((name.into(), value.to_owned()));
        match self.scope {
            CommandScope::Users => set("GIT_DIR", asker.common.as_os_str()),
            CommandScope::UsersWorktree(git_dir) => {
                set("GIT_DIR", git_dir.as_os_str());
                // The file in that directory that names the repository is not used.
                set("GIT_COMMON_DIR", asker.common.as_os_str());
            }
            CommandScope::Depot | CommandScope::Network => {
                set("GIT_DIR", asker.private_repo.as_os_str())
            }
            CommandScope::Files { work_tree, index } => {
                set("GIT_DIR", asker.private_repo.as_os_str());
                set("GIT_WORK_TREE", work_tree.as_os_str());
                set("GIT_INDEX_FILE", index.as_os_str());
            }
        }
        if self.objects == ObjectStore::Users {
            set("GIT_OBJECT_DIRECTORY", asker.users_objects().as_os_str());
            let private_repo = asker.private_repo.join("objects");
            set("GIT_ALTERNATE_OBJECT_DIRECTORIES", private_repo.as_os_str());
        }
        for (name, value) in [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_ADVICE", "0"),
            ("LC_ALL", "C"),
        ] {
            set(name, OsStr::new(value));
        }
        env.extend(self.extra.iter().cloned());
        env
    }

    /// Returns an environment in which only the repository's configuration is read, and nothing of it runs. No
    /// protocol is allowed.
    fn environment_for_users(&self) -> Vec<GitVariable> {
        let mut env = variables(HARMLESS.into_iter().chain([
            ("worktree.useRelativePaths", "false"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
        ]));
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_COMMITTER_NAME", "hookloop"),
            ("GIT_COMMITTER_EMAIL", "hookloop@localhost"),
        ] {
            env.push((name.into(), value.into()));
        }
        env.extend(self.asker.variable("PATH").map(|path| ("PATH".into(), path.to_owned())));
        env
    }

    fn environment_for_depot(&self) -> Vec<GitVariable> {
        let mut env = self.asker.users_environment();
        env.extend(variables(STEADY));
        let protocols = match self.scope {
            CommandScope::Network => "file:https:http:ssh:git",
            _ => "none",
        };
        env.push(("GIT_ALLOW_PROTOCOL".into(), protocols.into()));
        // An empty value is an answer too: git then asks no other program.
        env.push(("GIT_ASKPASS".into(), "".into()));
        env.push(("SSH_ASKPASS_REQUIRE".into(), "never".into()));
        if self.asker.ssh == SshAccess::Unasked {
            env.push(("GIT_SSH_COMMAND".into(), "ssh -o BatchMode=yes".into()));
        }
        env
    }
}

impl GitCommands<'_> {
    /// Detects whether the user configured how ssh is run.
    pub(super) fn find_ssh(&mut self) -> Result<(), RepoError> {
        let is_named =
            ["GIT_SSH", "GIT_SSH_COMMAND"].iter().any(|name| self.variable(name).is_some());
        let is_set =
            is_named || self.private_repo(&["config", "--get", "core.sshCommand"]).yes()?;
        self.ssh = if is_set { SshAccess::Users } else { SshAccess::Unasked };
        Ok(())
    }
}
