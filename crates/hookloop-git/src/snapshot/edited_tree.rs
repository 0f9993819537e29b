//! Trees that are made of another tree by edits, without a working directory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::file_changes::{FileChange, FileState, state};
use super::quick::push_quoted;
use super::record;
use super::status::paths;
use super::{Snapshots, StoreLock};
use crate::repo::RepoError;

/// The ref that git's import writes. No tree depends on it.
const REF: &str = "refs/edited";
/// The most bytes of one object that is read.
const CONTENT_MAX: usize = 64 * 1024 * 1024;

/// An edit of one path of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeEdit {
    Remove,
    /// The path gets the state that a file has in another tree.
    State(FileState),
    /// The path gets other content.
    Content {
        mode: String,
        content: Vec<u8>,
    },
}

impl Snapshots {
    /// Returns the files that differ between two trees. Nested repositories are left out.
    pub fn tree_changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, RepoError> {
        if from == to {
            return Ok(Vec::new());
        }
        let output = self.store(&["diff-tree", "-r", "-z", "--no-renames", "--raw", from, to])?;
        let mut parts = paths(&output);
        let mut found = Vec::new();
        while let (Some(entry), Some(path)) = (parts.next(), parts.next()) {
            let entry = String::from_utf8_lossy(entry);
            let fields: Vec<&str> = entry.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old_object, new_object, _] = fields[..] else {
                return Err(RepoError::permanent(format!("git diff-tree answers `{entry}`")));
            };
            let (from, to) = (state(old_mode, old_object), state(new_mode, new_object));
            if from != to {
                found.push(FileChange { path: path.to_vec(), from, to });
            }
        }
        Ok(found)
    }

    /// Returns the states of all files of a tree or a commit. Nested repositories are left out.
    pub fn file_states(&self, tree: &str) -> Result<BTreeMap<Vec<u8>, FileState>, RepoError> {
        let output = self.store(&["ls-tree", "-r", "-z", "--full-tree", tree])?;
        let mut states = BTreeMap::new();
        for record in paths(&output) {
            let unread = || {
                let record = String::from_utf8_lossy(record);
                RepoError::permanent(format!("git ls-tree answers `{record}`"))
            };
            let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(unread)?;
            let entry = String::from_utf8_lossy(&record[..tab]);
            let fields: Vec<&str> = entry.split(' ').collect();
            let [mode, _, object] = fields[..] else { return Err(unread()) };
            if let Some(state) = state(mode, object) {
                states.insert(record[tab + 1..].to_vec(), state);
            }
        }
        Ok(states)
    }

    /// Returns the contents of these objects, in their order.
    pub fn contents(&self, objects: &[&str]) -> Result<Vec<Vec<u8>>, RepoError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let mut list = objects.join("\n").into_bytes();
        list.push(b'\n');
        let output = self.store_output(&self.all_objects()?, &["cat-file", "--batch"], list)?;
        let output = output.well("cat-file")?;
        let mut rest = output.as_slice();
        let mut contents = Vec::with_capacity(objects.len());
        for object in objects {
            let (content, after) = batch_entry(rest, object)?;
            contents.push(content.to_vec());
            rest = after;
        }
        Ok(contents)
    }

    /// Returns the tree that another tree becomes by these edits.
    pub fn edited_tree(
        &self,
        tree: &str,
        edits: &[(Vec<u8>, TreeEdit)],
    ) -> Result<String, RepoError> {
        if edits.is_empty() {
            return Ok(tree.to_owned());
        }
        // No object is deleted that the import finds in the store.
        let _shared = StoreLock::shared(&self.commands)?;
        let args = ["fast-import", "--quiet", "--force"];
        let output = self.store_output(&self.all_objects()?, &args, import(tree, edits))?;
        let output = output.well("fast-import")?;
        let said = String::from_utf8_lossy(&output);
        let edited = said.lines().nth(1).and_then(|line| line.split([' ', '\t']).nth(2));
        edited
            .map(str::to_owned)
            .ok_or_else(|| RepoError::permanent(format!("git fast-import answers `{said}`")))
    }
}

/// Returns the commands that make the tree, and that print its name.
fn import(tree: &str, edits: &[(Vec<u8>, TreeEdit)]) -> Vec<u8> {
    let by = record::BY;
    let mut input =
        format!("commit {REF}\nmark :1\ncommitter {by}\ndata 0\nM 040000 {tree} \"\"\n")
            .into_bytes();
    // A path that is removed may be a directory of another path, so removals come first.
    let (removed, written): (Vec<_>, Vec<_>) =
        edits.iter().partition(|(_, edit)| *edit == TreeEdit::Remove);
    for (path, edit) in removed.into_iter().chain(written) {
        match edit {
            TreeEdit::Remove => input.extend_from_slice(b"D "),
            TreeEdit::State(FileState { mode, object }) => {
                input.extend_from_slice(format!("M {mode} {object} ").as_bytes());
            }
            TreeEdit::Content { mode, .. } => {
                input.extend_from_slice(format!("M {mode} inline ").as_bytes());
            }
        }
        push_quoted(&mut input, path);
        input.push(b'\n');
        if let TreeEdit::Content { content, .. } = edit {
            input.extend_from_slice(format!("data {}\n", content.len()).as_bytes());
            input.extend_from_slice(content);
            input.push(b'\n');
        }
    }
    input.extend_from_slice(b"get-mark :1\nls :1 \"\"\n");
    input
}

/// Returns the content of the first object in git's answer, and the rest of the answer.
fn batch_entry<'o>(output: &'o [u8], object: &str) -> Result<(&'o [u8], &'o [u8]), RepoError> {
    let unread = || RepoError::permanent(format!("the object {object} can't be read"));
    let end = output.iter().position(|byte| *byte == b'\n').ok_or_else(unread)?;
    let header = String::from_utf8_lossy(&output[..end]);
    let mut fields = header.split(' ');
    let is_blob = fields.next() == Some(object) && fields.next() == Some("blob");
    let size: usize = fields.next().and_then(|size| size.parse().ok()).ok_or_else(unread)?;
    let rest = &output[end + 1..];
    if !is_blob || size > CONTENT_MAX || rest.len() <= size {
        return Err(unread());
    }
    Ok((&rest[..size], &rest[size + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_git_is_divided_by_size() {
        let (content, rest) = batch_entry(b"ab blob 3\nx\ny\ncd missing\n", "ab").unwrap();
        assert_eq!((content, rest), (b"x\ny".as_slice(), b"cd missing\n".as_slice()));
        for output in
            ["", "ab", "ab missing\n", "cd blob 1\nx\n", "ab blob 9\nx\n", "ab tree 1\nx\n"]
        {
            assert!(batch_entry(output.as_bytes(), "ab").is_err(), "{output}");
        }
    }
}
