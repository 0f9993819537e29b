//! The git commands of snapshots, with their environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookloop_process::{Cancel, KeeperPool};

use crate::git::{GitCall, GitOutput, GitVariable, HARMLESS, OutputSize, variables};
use crate::repo::RepoError;

/// The time limit of one command.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The most bytes of names of files in one answer.
const LISTED_MAX: u64 = 256 * 1024 * 1024;
/// Variables that tell git where the user's own configuration is.
const USERS_OWN: [&str; 5] =
    ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
/// Settings of every command on hookloop's own files.
const OWN: [(&str, &str); 8] = [
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("index.sparse", "false"),
    ("index.skipHash", "false"),
    ("core.splitIndex", "false"),
    ("core.looseCompression", "1"),
    ("core.fsync", "loose-object"),
    ("core.fsyncMethod", "batch"),
];

/// The objects that a command can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadableObjects {
    /// Those of the store. So everything that the command writes is in the store, even if the user's repository has
    /// it, too.
    Own,
    /// Those of the store and of the user's repository.
    All,
}

/// The files of one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandFiles<'a> {
    /// The directory that git takes for its own.
    pub git_dir: &'a Path,
    pub work_tree: &'a Path,
    pub index: &'a Path,
    /// The objects of the user's repositories.
    pub users_objects: &'a [PathBuf],
    /// A tree or commit with the attributes of files. Without one, the files themselves have them.
    pub attributes: Option<&'a str>,
}

#[derive(Clone, Debug)]
pub(crate) struct SnapshotCommands {
    pub(crate) keepers: Arc<KeeperPool>,
    /// The user's environment.
    pub(crate) environment: Vec<GitVariable>,
    pub(crate) cancel: Cancel,
    /// The directory of all snapshots of a project.
    pub(crate) store: PathBuf,
}

impl SnapshotCommands {
    pub(crate) fn objects(&self) -> PathBuf {
        self.store.join("objects")
    }

    /// Returns the directory with the content of large files.
    pub(crate) fn lfs(&self) -> PathBuf {
        self.store.join("lfs")
    }

    /// Runs a command on hookloop's own files.
    pub(crate) fn own(
        &self,
        files: CommandFiles<'_>,
        readable: ReadableObjects,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<Vec<u8>, RepoError> {
        let command = args.first().copied().unwrap_or_default();
        let output = self.own_output(files, readable, args, stdin)?;
        output.well(command).map_err(RepoError::from)
    }

    pub(crate) fn own_output(
        &self,
        files: CommandFiles<'_>,
        readable: ReadableObjects,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<GitOutput, RepoError> {
        let mut env = self.base_environment(OWN.into_iter());
        env.extend([
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
            ("GIT_ATTR_NOSYSTEM".into(), "1".into()),
            ("GIT_DIR".into(), files.git_dir.into()),
            ("GIT_WORK_TREE".into(), files.work_tree.into()),
            ("GIT_INDEX_FILE".into(), files.index.into()),
            ("GIT_OBJECT_DIRECTORY".into(), self.objects().into()),
        ]);
        if readable == ReadableObjects::All && !files.users_objects.is_empty() {
            let objects: Vec<OsString> =
                files.users_objects.iter().map(|objects| quoted(objects)).collect();
            let list = objects.join(OsStr::new(":"));
            env.push(("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), list));
        }
        env.extend(files.attributes.map(|source| ("GIT_ATTR_SOURCE".into(), source.into())));
        self.run(args, env, files.work_tree, stdin)
    }

    /// Runs a command in the user's repository, which reads its configuration and runs nothing of it.
    pub(crate) fn users(&self, git_dir: &Path, args: &[&str]) -> Result<GitOutput, RepoError> {
        let mut env = self.base_environment(std::iter::empty());
        let is_own = |(name, _): &&GitVariable| USERS_OWN.iter().any(|own| name == own);
        env.extend(self.environment.iter().filter(is_own).cloned());
        env.extend([("GIT_OPTIONAL_LOCKS".into(), "0".into()), ("GIT_DIR".into(), git_dir.into())]);
        self.run(args, env, Path::new("/"), Vec::new())
    }

    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    fn base_environment<'a>(
        &self,
        settings: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<GitVariable> {
        let mut env = variables(HARMLESS.into_iter().chain(settings));
        env.extend([
            ("GIT_TERMINAL_PROMPT".into(), "0".into()),
            ("GIT_NO_LAZY_FETCH".into(), "1".into()),
            ("GIT_NO_REPLACE_OBJECTS".into(), "1".into()),
            ("GIT_ALLOW_PROTOCOL".into(), "none".into()),
            ("LC_ALL".into(), "C".into()),
        ]);
        env.extend(self.variable("PATH").map(|path| ("PATH".into(), path.to_owned())));
        env
    }

    fn run(
        &self,
        args: &[&str],
        env: Vec<GitVariable>,
        cwd: &Path,
        stdin: Vec<u8>,
    ) -> Result<GitOutput, RepoError> {
        let directory = self.store.join(format!("answer-{}", uuid::Uuid::new_v4().simple()));
        let call = GitCall {
            args: args.iter().map(OsString::from).collect(),
            env,
            cwd: cwd.to_owned(),
            stdin,
            timeout: TIMEOUT,
            answer: OutputSize::Long { directory, max_bytes: LISTED_MAX },
        };
        let output = call.run(&self.keepers, &self.cancel)?;
        match output.left_out_bytes {
            0 => Ok(output),
            _ => {
                let command = args.first().copied().unwrap_or_default();
                let why = format!("git {command}: the answer is longer than {LISTED_MAX} bytes");
                Err(RepoError::permanent(why))
            }
        }
    }
}

/// Returns a path in the form that git expects in a list of paths.
fn quoted(path: &Path) -> OsString {
    let text = path.as_os_str().as_encoded_bytes();
    // A list is separated by colons, and a path in double quotes is read like a string of C.
    match text.iter().any(|byte| matches!(byte, b':' | b'"' | b'\\')) {
        false => path.into(),
        true => {
            let escaped = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{escaped}\"").into()
        }
    }
}
