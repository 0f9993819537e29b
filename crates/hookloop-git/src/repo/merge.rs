//! Merges two commits to one tree, without files and without an index. A conflict leaves nothing behind.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;

use hookloop_core::excerpt::whole_lines_of_head;

use super::commit::CommitParts;
use super::error::RepoError;
use super::git_command::{GitCommands, ObjectStore};
use super::{CommitId, ConflictedFile};

/// The most files whose conflicts are shown. Further ones are only named.
const SHOWN_MAX: usize = 20;
/// The most bytes that are shown of one file.
const EXCERPT_MAX: usize = 4_000;
/// The number of lines around a conflict.
const AROUND: usize = 3;

pub(super) const OURS: &[u8] = b"<<<<<<< ";
pub(super) const BETWEEN: &[u8] = b"=======";
pub(super) const THEIRS: &[u8] = b">>>>>>> ";

#[derive(Debug)]
pub(super) enum TreeMerge {
    Clean { tree: String },
    Conflict { tree: String, clashes: Vec<PathConflict> },
}

/// A path on which the two sides conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathConflict {
    pub(super) path: Vec<u8>,
    sides: ConflictSides,
}

/// The sides that have a file at the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ConflictSides {
    ours: bool,
    theirs: bool,
}

impl GitCommands<'_> {
    pub(super) fn merge(
        &self,
        ours: &CommitId,
        theirs: &CommitId,
        objects: ObjectStore,
    ) -> Result<TreeMerge, RepoError> {
        let args =
            ["merge-tree", "--write-tree", "-z", "--no-messages", ours.as_str(), theirs.as_str()];
        let question = self.private_repo(&args).objects(objects).attributes_of(ours);
        let said = question.thorough().long().said()?;
        let code = said.code;
        let bytes = match code {
            1 => said.stdout,
            _ => said.well("merge-tree")?,
        };
        let mut fields = bytes.split(|byte| *byte == 0);
        let tree = fields.next().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        match code {
            0 => Ok(TreeMerge::Clean { tree }),
            _ => Ok(TreeMerge::Conflict { tree, clashes: clashes(fields) }),
        }
    }

    /// Applies the change of `commit` to `tip`.
    pub(super) fn pick(
        &self,
        tip: &CommitId,
        commit: &CommitId,
        parts: &CommitParts,
        objects: ObjectStore,
    ) -> Result<TreeMerge, RepoError> {
        let Some(parent) = parts.parents.first() else {
            return Err(RepoError::permanent(format!("commit {commit} is a beginning of its own")));
        };
        // A commit with the tip's files on the same parent makes that parent the merge base, independent of the
        // history between.
        let beside = CommitParts {
            tree: self.tree_name(tip)?,
            parents: vec![parent.clone()],
            author: b"hookloop <hookloop@localhost> 0 +0000".to_vec(),
            committer: b"hookloop <hookloop@localhost> 0 +0000".to_vec(),
            encoding: None,
            message: b"beside\n".to_vec(),
        };
        let beside = self.make_commit(&beside, objects)?;
        self.merge(&beside, commit, objects)
    }

    pub(super) fn tree_name(&self, commit: &CommitId) -> Result<String, RepoError> {
        let tree = format!("{commit}^{{tree}}");
        let args = ["rev-parse", "--verify", "--end-of-options", &tree];
        let said = self.private_repo(&args).text()?;
        Ok(said.lines().last().unwrap_or_default().to_owned())
    }

    /// Returns the content at a path of a tree; `None` if there is no file.
    pub(super) fn blob(&self, tree: &str, path: &[u8]) -> Result<Option<Vec<u8>>, RepoError> {
        let mut name = format!("{tree}:").into_bytes();
        name.extend_from_slice(path);
        let question = self.private_repo(&["cat-file", "blob"]).arg(OsString::from_vec(name));
        let said = question.long().said()?;
        Ok((said.code == 0 && said.left_out_bytes == 0).then_some(said.stdout))
    }

    /// Returns conflicts in the form for agents and people.
    pub(super) fn shown(
        &self,
        tree: &str,
        clashes: &[PathConflict],
    ) -> Result<Vec<ConflictedFile>, RepoError> {
        let mut shown = Vec::new();
        for (number, clash) in clashes.iter().enumerate() {
            let path = String::from_utf8_lossy(&clash.path).into_owned();
            let excerpt = match (clash.sides, number < SHOWN_MAX) {
                (_, false) => String::new(),
                (ConflictSides { ours: true, theirs: true }, true) => {
                    let merged = self.blob(tree, &clash.path)?.unwrap_or_default();
                    places(&merged)
                }
                (ConflictSides { ours: true, theirs: false }, true) => {
                    "changed on this side, and deleted or moved away on the other\n".to_owned()
                }
                (ConflictSides { ours: false, theirs: true }, true) => {
                    "deleted or moved away on this side, and changed on the other\n".to_owned()
                }
                (ConflictSides { ours: false, theirs: false }, true) => {
                    "moved to different places on the two sides\n".to_owned()
                }
            };
            shown.push(ConflictedFile { path, excerpt });
        }
        Ok(shown)
    }
}

fn clashes<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Vec<PathConflict> {
    let mut clashes: Vec<PathConflict> = Vec::new();
    for field in fields.filter(|field| !field.is_empty()) {
        let Some(tab) = field.iter().position(|byte| *byte == b'\t') else { continue };
        let (entry, path) = (&field[..tab], &field[tab + 1..]);
        if clashes.last().is_none_or(|last| last.path != path) {
            clashes.push(PathConflict { path: path.to_vec(), sides: ConflictSides::default() });
        }
        let Some(clash) = clashes.last_mut() else { continue };
        match entry.last() {
            Some(b'2') => clash.sides.ours = true,
            Some(b'3') => clash.sides.theirs = true,
            _ => {}
        }
    }
    clashes
}

/// Returns the conflicts of a file with markers, with some lines around each.
fn places(merged: &[u8]) -> String {
    let lines: Vec<&[u8]> = merged.split(|byte| *byte == b'\n').collect();
    let mut text = String::new();
    let mut shown_to = 0;
    let mut begin = None;
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with(OURS) {
            begin = Some(number);
        }
        if line.starts_with(THEIRS)
            && let Some(from) = begin.take()
        {
            let from = from.saturating_sub(AROUND).max(shown_to);
            shown_to = (number + 1 + AROUND).min(lines.len());
            // Writing to a string does not fail.
            let _ = writeln!(text, "@@ line {}", from + 1);
            for line in &lines[from..shown_to] {
                let _ = writeln!(text, "{}", String::from_utf8_lossy(line));
            }
        }
        if text.len() > EXCERPT_MAX {
            let end = whole_lines_of_head(&text, EXCERPT_MAX).len();
            text.truncate(end);
            text.push_str("… more in the file\n");
            return text;
        }
    }
    match text.is_empty() {
        true => "both sides changed it, and it is not text\n".to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_excerpts_have_both_sides_and_context_lines() {
        let merged = "1\n2\n3\n4\n<<<<<<< a\nA\n=======\nB\n>>>>>>> b\n5\n6\n7\n8\n";
        let expected = "@@ line 2\n2\n3\n4\n<<<<<<< a\nA\n=======\nB\n>>>>>>> b\n5\n6\n7\n";
        assert_eq!(places(merged.as_bytes()), expected);
        let long = format!("<<<<<<< a\n{}=======\n>>>>>>> b\n", "ü\n".repeat(EXCERPT_MAX));
        let text = places(long.as_bytes());
        assert!(text.ends_with("more in the file\n") && text.len() < EXCERPT_MAX + 50, "{text}");
    }

    #[test]
    fn conflicts_are_grouped_by_path_with_their_sides() {
        let said = [
            "100644 a 1\tx",
            "100644 b 2\tx",
            "100644 c 3\tx",
            "100644 d 1\ty",
            "100644 e 3\ty",
            "",
        ];
        let found = clashes(said.iter().map(|field| field.as_bytes()));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].sides, ConflictSides { ours: true, theirs: true });
        assert_eq!(found[1].sides, ConflictSides { ours: false, theirs: true });
    }
}
