//! The private repository: a bare repository beside the project's state, with a configuration that only hookloop
//! writes.
//!
//! It borrows the user's objects, so it has every commit of the user without a copy. Fetched and merged commits
//! stay here until a worktree or the user's branch needs them. Then they are copied as a pack.

use std::fmt::Write;
use std::path::Path;

use super::error::RepoError;
use super::git_command::{GitCommands, ObjectStore};
use super::{CommitId, RemoteName, state_file};

/// Settings about the content of files that are copied from the user's repository, with their valid values.
const TAKEN_OVER: [(&str, &[&str]); 6] = [
    ("core.autocrlf", &["true", "false", "input"]),
    ("core.eol", &["lf", "crlf", "native"]),
    ("core.symlinks", &["true", "false"]),
    ("core.filemode", &["true", "false"]),
    ("core.ignorecase", &["true", "false"]),
    ("core.precomposeunicode", &["true", "false"]),
];
/// Files of the repository with ignore patterns and attributes.
const INFO: [&str; 2] = ["info/exclude", "info/attributes"];

/// The format of object names in the user's repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectFormat {
    Sha1,
    Sha256,
}

impl GitCommands<'_> {
    /// Refuses a partial clone: git would fetch missing objects as the repository's configuration says.
    pub(super) fn check_whole(&self) -> Result<(), RepoError> {
        match self.setting("extensions.partialclone")? {
            None => Ok(()),
            Some(remote) => Err(RepoError::NeedsHuman {
                why:
                    "the repository is a partial clone, and has no more than a part of its objects"
                        .to_owned(),
                hint: format!(
                    "git fetch --refetch --no-filter {remote} && git config --unset extensions.partialClone"
                ),
            }),
        }
    }

    /// Creates the private repository, or updates it from the user's repository.
    pub(super) fn prepare_private_repo(
        &self,
        remote: Option<&RemoteName>,
    ) -> Result<(), RepoError> {
        let private_repo = &self.private_repo;
        for directory in ["objects/info", "objects/pack", "refs/heads", "info"] {
            state_file::make_directory(&private_repo.join(directory))?;
        }
        // Written each time, which removes any change by others.
        state_file::write(&private_repo.join("config"), self.private_config(remote)?.as_bytes())?;
        let mut objects = self.users_objects().into_os_string().into_encoded_bytes();
        objects.push(b'\n');
        state_file::write(&private_repo.join("objects/info/alternates"), &objects)?;
        for name in INFO {
            self.take_over(name)?;
        }
        self.take_over("shallow")?;
        // Written last: without it this is no repository.
        state_file::write(&private_repo.join("HEAD"), b"ref: refs/heads/none\n")
    }

    /// Ends the history at the same commits as in the user's repository.
    pub(super) fn sync_shallow(&self) -> Result<(), RepoError> {
        self.take_over("shallow")
    }

    fn take_over(&self, name: &str) -> Result<(), RepoError> {
        let ours = self.private_repo.join(name);
        match state_file::read(&self.common.join(name))? {
            Some(bytes) => state_file::write(&ours, &bytes),
            None => state_file::remove(&ours),
        }
    }

    fn private_config(&self, remote: Option<&RemoteName>) -> Result<String, RepoError> {
        let mut text = String::from("# Written by hookloop.\n[core]\n\tbare = true\n");
        for (name, values) in TAKEN_OVER {
            let value = self.setting(name)?;
            if let (Some(value), Some((_, key))) = (value, name.split_once('.'))
                && values.contains(&value.as_str())
            {
                push(&mut text, format_args!("\t{key} = {value}\n"));
            }
        }
        let (version, format) = match self.format()? {
            ObjectFormat::Sha1 => (0, ""),
            ObjectFormat::Sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        };
        push(&mut text, format_args!("\trepositoryFormatVersion = {version}\n{format}"));
        // Large files are stored beside the user's objects, and come from the same remote.
        let storage = quoted(&self.common.join("lfs").to_string_lossy());
        push(&mut text, format_args!("[lfs]\n\tstorage = {storage}\n"));
        if let Some(RemoteName { name, url, .. }) = remote {
            let (name, url) = (quoted(name), quoted(url));
            push(&mut text, format_args!("[remote {name}]\n\turl = {url}\n"));
        }
        Ok(text)
    }

    fn format(&self) -> Result<ObjectFormat, RepoError> {
        let said = self.users(&["rev-parse", "--show-object-format"]).text()?;
        match said.as_str() {
            "sha1" => Ok(ObjectFormat::Sha1),
            "sha256" => Ok(ObjectFormat::Sha256),
            other => Err(RepoError::permanent(format!("hookloop does not know `{other}` objects"))),
        }
    }

    /// Returns a setting of the repository's configuration; the first of several values.
    pub(super) fn setting(&self, name: &str) -> Result<Option<String>, RepoError> {
        let args = ["config", "--local", "--includes", "--null", "--get-all", name];
        let said = self.users(&args).said()?;
        match said.code {
            // There is no such setting.
            1 => Ok(None),
            _ => {
                let values = said.well("config")?;
                let first = values.split(|byte| *byte == 0).next().unwrap_or_default();
                Ok(Some(String::from_utf8_lossy(first).into_owned()))
            }
        }
    }

    /// Copies `commit` and its ancestors to the user's repository, under `name` of `refs/hookloop/`.
    pub(super) fn hand_over(&self, commit: &CommitId, name: &str) -> Result<(), RepoError> {
        let full = format!("refs/hookloop/{name}");
        if self.users_ref(&full)?.as_ref() == Some(commit) {
            return Ok(());
        }
        let mut wanted = format!("{commit}\n--not\n");
        for known in self.users_tips(&full)? {
            push(&mut wanted, format_args!("{known}\n"));
        }
        let pack = self.users_objects().join("pack/pack");
        // Written to the user's directory directly: a file can be moved only within one file system.
        let args = ["pack-objects", "--revs", "--quiet", "--non-empty", "--delta-base-offset"];
        let question = self.private_repo(&args).arg(pack).stdin(wanted);
        question.objects(ObjectStore::Users).thorough().done()?;
        let args = ["update-ref", "-m", "hookloop", "--no-deref", "--", &full, commit.as_str()];
        self.users(&args).done()
    }

    /// Returns commits that the user's repository has with all of their ancestors.
    fn users_tips(&self, full: &str) -> Result<Vec<CommitId>, RepoError> {
        let args =
            ["for-each-ref", "--format=%(objectname)", "--", "refs/heads", "refs/remotes", full];
        let said = self.users(&args).long().text()?;
        Ok(said.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Returns the commit of a ref in the user's repository.
    pub(super) fn users_ref(&self, full: &str) -> Result<Option<CommitId>, RepoError> {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", full];
        optional(self.users(&args).said()?)
    }

    pub(super) fn private_ref(&self, full: &str) -> Result<Option<CommitId>, RepoError> {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", full];
        optional(self.private_repo(&args).said()?)
    }
}

fn optional(said: crate::git::GitOutput) -> Result<Option<CommitId>, RepoError> {
    match said.code {
        0 => {
            let text = String::from_utf8_lossy(&said.stdout);
            // A ref whose commit can't be read is not a ref that is missing.
            let read = |line: &str| {
                let unread =
                    |_| RepoError::permanent(format!("git rev-parse: `{line}` is no commit"));
                line.parse().map_err(unread)
            };
            text.lines().last().map(read).transpose()
        }
        1 => Ok(None),
        _ => said.well("rev-parse").map(|_| None).map_err(RepoError::from),
    }
}

/// Returns a value in the form of a configuration file.
pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = text.write_fmt(more);
}

/// Returns the address of a remote, with an absolute path if it is a path.
pub(super) fn absolute(url: &str, top: &Path) -> String {
    match super::names::is_path(url) {
        true => top.join(url).to_string_lossy().into_owned(),
        false => url.to_owned(),
    }
}
