//! What differs between two commits, as text and as a list.

use super::error::RepoError;
use super::{Changed, Commit, Diff, Repo};

/// Files that are listed; others are counted.
const FILES_MAX: usize = 1_000;
/// No driver of anybody's says what a difference is.
const PLAIN: [&str; 5] = ["diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-color"];

impl Repo<'_> {
    /// What `head` has changed since `base`, with at most `max_bytes` of text.
    pub fn diff(&self, base: &Commit, head: &Commit, max_bytes: usize) -> Result<Diff, RepoError> {
        let ask = |more: &[&str]| {
            let args =
                [&PLAIN[..], more, &["--no-renames", base.as_str(), head.as_str(), "--"]].concat();
            self.asker.depot(&args).attributes_of(head).thorough()
        };
        let said = ask(&["-p"]).cut_at(max_bytes).said()?;
        let left_out_bytes = said.left_out_bytes;
        let text = String::from_utf8_lossy(&said.well("diff-tree")?).into_owned();
        let listed = ask(&["--numstat", "-z"]).long().bytes()?;
        let mut files: Vec<Changed> = listed.split(|byte| *byte == 0).filter_map(changed).collect();
        let left_out_files = files.len().saturating_sub(FILES_MAX) as u64;
        files.truncate(FILES_MAX);
        Ok(Diff { text, left_out_bytes, files, left_out_files })
    }
}

fn changed(record: &[u8]) -> Option<Changed> {
    let record = String::from_utf8_lossy(record);
    let mut fields = record.splitn(3, '\t');
    // What is no text has dashes.
    let mut lines = || fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
    let (added, deleted) = (lines(), lines());
    Some(Changed { path: fields.next()?.to_owned(), added, deleted })
}
