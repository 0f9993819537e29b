//! Differences between two commits, as text and as a list.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::error::RepoError;
use super::git_command::ObjectStore;
use super::merge::TreeMerge;
use super::{ChangedFile, CommitId, FileDiff, Repo};

/// The most files that are listed. Further ones are counted.
const FILES_MAX: usize = 1_000;
/// Arguments of a diff without external drivers.
const PLAIN: [&str; 5] = ["diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-color"];

impl Repo<'_> {
    /// Returns the difference between two commits, with at most `max_bytes` of text.
    pub fn diff(
        &self,
        base: &CommitId,
        head: &CommitId,
        max_bytes: usize,
    ) -> Result<FileDiff, RepoError> {
        self.diff_of((base.as_str(), head.as_str()), head, max_bytes)
    }

    /// Returns the change that a merge of `head` makes in `base`, with at most `max_bytes` of text. Commits of
    /// `base` that `head` does not have are not part of it. If the two conflict, returns the change since their
    /// common commit.
    pub fn change(
        &self,
        base: &CommitId,
        head: &CommitId,
        max_bytes: usize,
    ) -> Result<FileDiff, RepoError> {
        match self.asker.merge(base, head, ObjectStore::Depot)? {
            TreeMerge::Clean { tree } => self.diff_of((base.as_str(), &tree), head, max_bytes),
            TreeMerge::Conflict { .. } => {
                let since = self.common_commit(base, head)?;
                self.diff_of((&since, head.as_str()), head, max_bytes)
            }
        }
    }

    /// Returns the common commit; `base` itself if there is none.
    fn common_commit(&self, base: &CommitId, head: &CommitId) -> Result<String, RepoError> {
        let args = ["merge-base", "--end-of-options", base.as_str(), head.as_str()];
        let said = self.asker.private_repo(&args).said()?;
        match said.code {
            1 => Ok(base.to_string()),
            _ => Ok(String::from_utf8_lossy(&said.well("merge-base")?).trim().to_owned()),
        }
    }

    fn diff_of(
        &self,
        (from, to): (&str, &str),
        head: &CommitId,
        max_bytes: usize,
    ) -> Result<FileDiff, RepoError> {
        let ask = |more: &[&str]| {
            let args = [&PLAIN[..], more, &["--no-renames", from, to, "--"]].concat();
            self.asker.private_repo(&args).attributes_of(head).thorough()
        };
        let said = ask(&["-p"]).cut_at(max_bytes).said()?;
        let (mut left_out_bytes, left_out_lines) = (said.left_out_bytes, said.left_out_lines);
        let mut text = said.well("diff-tree")?;
        if let (1.., Some(end)) = (left_out_bytes, text.iter().rposition(|byte| *byte == b'\n')) {
            // An incomplete line is dropped.
            left_out_bytes += (text.len() - end - 1) as u64;
            text.truncate(end + 1);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let listed = ask(&["--numstat", "-z"]).long().bytes()?;
        let mut files: Vec<ChangedFile> =
            listed.split(|byte| *byte == 0).filter_map(changed).collect();
        let left_out_files = files.len().saturating_sub(FILES_MAX) as u64;
        files.truncate(FILES_MAX);
        Ok(FileDiff { text, left_out_bytes, left_out_lines, files, left_out_files })
    }
}

impl Repo<'_> {
    /// Returns the paths of the project that `head` changed since it left `base`, and those that a merge changes in
    /// `base`. A history can be made such that one of the two lists is empty.
    pub fn paths_changed_by(
        &self,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<BTreeSet<String>, RepoError> {
        // Without a common commit, every difference is a change.
        let since = self.common_commit(base, head)?;
        let (TreeMerge::Clean { tree } | TreeMerge::Conflict { tree, .. }) =
            self.asker.merge(base, head, ObjectStore::Depot)?;
        let mut paths = self.names_changed(&since, head.as_str())?;
        paths.extend(self.names_changed(base.as_str(), &tree)?);
        let in_project = |path: Vec<u8>| {
            let path = PathBuf::from(OsString::from_vec(path));
            let path = path.strip_prefix(&self.found.prefix).ok()?;
            Some(path.to_string_lossy().into_owned())
        };
        Ok(paths.into_iter().filter_map(in_project).collect())
    }

    fn names_changed(&self, from: &str, to: &str) -> Result<BTreeSet<Vec<u8>>, RepoError> {
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to, "--"];
        let said = self.asker.private_repo(&args).long().bytes()?;
        let names = said.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(<[u8]>::to_vec).collect())
    }
}

fn changed(record: &[u8]) -> Option<ChangedFile> {
    let record = String::from_utf8_lossy(record);
    let mut fields = record.splitn(3, '\t');
    // Binary files have dashes.
    let mut lines = || fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
    let (added, deleted) = (lines(), lines());
    Some(ChangedFile { path: fields.next()?.to_owned(), added, deleted })
}
