//! Git commands: one wrapper, so that git never runs a program that a repository or an agent wrote into a
//! configuration.
//!
//! Uncommitted files are read through an index and an object directory of hookloop's own. The user's index,
//! branches and objects are not changed.

mod at_work;
mod call;
pub mod paths;
mod settings;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use at_work::{GitLocks, is_git_at_work};
pub(crate) use call::{GitCall, GitOutput, OutputSize};
use hookloop_process::{Cancel, KeeperPool};
pub use settings::{GitVariable, HARMLESS, variables};
use tracing::{debug, warn};

const TIMEOUT: Duration = Duration::from_secs(120);
/// The most bytes of names of changed files, together.
const LISTED_MAX: u64 = 64 * 1024 * 1024;
/// The most values of `safe.directory` that are passed on.
const SAFE_MAX: usize = 1_000;
/// The most filters of a repository, which are turned off one by one. With more, no tree is computed.
const FILTERS_MAX: usize = 64;

/// A repository, as seen from a project's directory.
#[derive(Debug)]
pub struct GitRepository {
    root: PathBuf,
    keepers: Arc<KeeperPool>,
    /// The directory of hookloop's own index and objects.
    state: PathBuf,
    path: Option<OsString>,
    objects: Option<PathBuf>,
    settings: Vec<(String, String)>,
    /// The number of settings that are not about the repository's filters.
    fixed: usize,
    cancel: Cancel,
}

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

impl GitRepository {
    /// Returns the repository that contains `root`; `None` if there is none, or git is missing.
    pub fn find(
        root: &Path,
        keepers: &Arc<KeeperPool>,
        state: PathBuf,
        environment: &[GitVariable],
        cancel: Cancel,
    ) -> Option<GitRepository> {
        // Most projects without a repository need no process here.
        root.ancestors().find(|directory| directory.join(".git").exists())?;
        let setting = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let settings = HARMLESS.map(setting).to_vec();
        let (root, keepers) = (root.to_owned(), Arc::clone(keepers));
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, path)| path.clone());
        let mut git =
            GitRepository { root, keepers, state, path, objects: None, settings, fixed: 0, cancel };
        let look = ["rev-parse", "--git-path", "objects", "--git-path", "index"];
        let found = match git.ask(&look) {
            // The repository belongs to another user, as in containers. The user may have declared it safe.
            Err(GitError::Failed { why, .. }) if why.contains("dubious ownership") => {
                git.settings.extend(git.safe_directories(environment));
                git.ask(&look)
            }
            found => found,
        };
        let found = found.inspect_err(
            |error| warn!(root = %git.root.display(), %error, "git finds no repository"),
        );
        let found = found.ok()?;
        git.fixed = git.settings.len();
        let mut lines = found.lines().map(|line| git.root.join(line));
        let (objects, index) = (lines.next()?, lines.next()?);
        let own_objects = git.state.join("objects");
        let made = fs::create_dir_all(&own_objects);
        made.inspect_err(
            |error| warn!(path = %own_objects.display(), %error, "no directory for git's objects"),
        )
        .ok()?;
        // A killed git leaves a lock that blocks every later one.
        let lock = git.state.join("index.lock");
        if lock.exists() && !is_git_at_work(&[&git.state], GitLocks::All) {
            // A lock that stays makes the calls that need the index fail, and they say so.
            if let Err(error) = fs::remove_file(&lock) {
                warn!(path = %lock.display(), %error, "a lock that a killed git left is not removed");
            }
        }
        // Ignored files that are tracked are known only from the index.
        if !git.index().exists() && index.exists() {
            let copied = copy_index(&index, &git.index());
            copied
                .inspect_err(
                    |error| warn!(path = %index.display(), %error, "git's index is not copied"),
                )
                .ok()?;
        }
        git.objects = Some(objects);
        Some(git)
    }

    /// Returns the tree that a commit of all files would have.
    pub fn tree(&mut self) -> Result<String, GitError> {
        self.turn_filters_off()?;
        let listed = self.long(&paths::CHANGED, Vec::new())?;
        let listed = paths::without_repositories(&listed);
        let (changed, replaced) = paths::without_replaced(&self.root, &listed);
        for (how, list) in [(&paths::TAKE_OUT[..], replaced), (&paths::TAKE_IN[..], changed)] {
            if !list.is_empty() {
                self.long(how, list)?;
            }
        }
        Ok(self.ask(&["write-tree"])?.trim().to_owned())
    }

    /// Returns the commit that is checked out; `None` in a repository without commits.
    pub fn head(&self) -> Option<String> {
        let head = self.ask(&["rev-parse", "--verify", "--quiet", "HEAD"]);
        let head = head.inspect_err(|error| debug!(%error, "no commit is checked out")).ok()?;
        Some(head.trim().to_owned()).filter(|head| !head.is_empty())
    }

    /// Returns the output of a command whose input and output may be long.
    fn long(&self, args: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, GitError> {
        let directory = self.state.join("answer");
        let said = self.call(args, stdin, OutputSize::Long { directory, max_bytes: LISTED_MAX })?;
        match said.left_out_bytes {
            0 => said.well(args.first().copied().unwrap_or_default()),
            _ => Err(failed(args, "it said too much")),
        }
    }

    /// Returns the files that differ between two trees, each with the number of added and deleted lines.
    pub fn diff(&self, from: &str, to: &str) -> Result<Vec<(String, u64)>, GitError> {
        let told = self.ask(&[
            "diff-tree",
            "-r",
            "-z",
            "--numstat",
            "--no-renames",
            "--relative",
            "--no-ext-diff",
            "--no-textconv",
            from,
            to,
        ])?;
        let read = |record: &str| {
            let mut fields = record.splitn(3, '\t');
            let mut lines = || fields.next().unwrap_or_default().parse::<u64>().unwrap_or(0);
            let changed = lines() + lines();
            fields.next().map(|path| (path.to_owned(), changed))
        };
        Ok(told.split('\0').filter_map(read).collect())
    }

    /// Turns the repository's filters off: they are commands, which git would run to read a file into an index.
    fn turn_filters_off(&mut self) -> Result<(), GitError> {
        let pattern = r"^filter\..*\.(clean|process|smudge|required)$";
        let args = ["config", "--name-only", "--null", "--get-regexp", pattern];
        let names = match self.run(&args)? {
            // There are no filters.
            (Some(1), _) => String::new(),
            (Some(0), names) => names,
            _ => return Err(failed(&args, "it does not say which filters there are")),
        };
        let names: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        if names.len() > FILTERS_MAX {
            let why = format!("the repository has more than {FILTERS_MAX} filters");
            return Err(failed(&args, &why));
        }
        self.settings.truncate(self.fixed);
        for name in names {
            let value = if name.ends_with(".required") { "false" } else { "" };
            self.settings.push((name.to_owned(), value.to_owned()));
        }
        Ok(())
    }

    /// Returns the values of `safe.directory` in the user's and the system's configuration. Git accepts no other
    /// files, and no other setting of theirs applies here.
    fn safe_directories(&self, environment: &[GitVariable]) -> Vec<(String, String)> {
        const OWN: [&str; 5] =
            ["PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];
        let mut found = Vec::new();
        for scope in ["--system", "--global"] {
            let is_own = |(name, _): &&GitVariable| OWN.iter().any(|own| name == own);
            let args = ["config", scope, "--null", "--get-all", "safe.directory"];
            let call = GitCall {
                args: args.iter().map(OsString::from).collect(),
                env: environment.iter().filter(is_own).cloned().collect(),
                cwd: PathBuf::from("/"),
                stdin: Vec::new(),
                timeout: TIMEOUT,
                answer: OutputSize::Short,
            };
            // A missing file has no values.
            let Ok(said) = call.run(&self.keepers, &self.cancel) else { continue };
            let values = String::from_utf8_lossy(&said.stdout).into_owned();
            let values = values.strip_suffix('\0').unwrap_or(&values);
            if said.code == 0 {
                let setting = |value: &str| ("safe.directory".to_owned(), value.to_owned());
                found.extend(values.split('\0').take(SAFE_MAX).map(setting));
            }
        }
        found
    }

    fn index(&self) -> PathBuf {
        self.state.join("index")
    }

    fn ask(&self, args: &[&str]) -> Result<String, GitError> {
        match self.run(args)? {
            (Some(0), said) => Ok(said),
            (_, said) => Err(failed(args, said.trim())),
        }
    }

    /// Returns the exit code with the output, or with the error text if git failed.
    fn run(&self, args: &[&str]) -> Result<(Option<i32>, String), GitError> {
        let said = self.call(args, Vec::new(), OutputSize::Short)?;
        Ok(match said.code {
            0 => (Some(0), String::from_utf8_lossy(&said.stdout).into_owned()),
            code => (Some(code), said.stderr),
        })
    }

    fn call(
        &self,
        args: &[&str],
        stdin: Vec<u8>,
        answer: OutputSize,
    ) -> Result<GitOutput, GitError> {
        let call = GitCall {
            args: args.iter().map(OsString::from).collect(),
            env: self.environment(),
            cwd: self.root.clone(),
            stdin,
            timeout: TIMEOUT,
            answer,
        };
        call.run(&self.keepers, &self.cancel)
    }

    fn environment(&self) -> Vec<GitVariable> {
        let mut env: Vec<GitVariable> = vec![
            ("GIT_TERMINAL_PROMPT".into(), "0".into()),
            ("GIT_OPTIONAL_LOCKS".into(), "0".into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
            ("GIT_NO_LAZY_FETCH".into(), "1".into()),
            ("GIT_ALLOW_PROTOCOL".into(), "none".into()),
            ("LC_ALL".into(), "C".into()),
        ];
        let own = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        env.extend(variables(own));
        env.extend(self.path.clone().map(|path| ("PATH".into(), path)));
        if let Some(objects) = &self.objects {
            env.push(("GIT_INDEX_FILE".into(), self.index().into()));
            env.push(("GIT_OBJECT_DIRECTORY".into(), self.state.join("objects").into()));
            env.push(("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), objects.into()));
        }
        env
    }
}

fn failed(args: &[&str], why: &str) -> GitError {
    GitError::Failed { command: args.join(" "), why: why.to_owned() }
}
