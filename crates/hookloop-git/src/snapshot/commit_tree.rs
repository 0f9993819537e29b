//! The tree that the user's commit of all files would have, where it differs from the exact one.

use std::collections::BTreeSet;

use super::commands::{CommandFiles, ReadableObjects};
use super::nested::GITLINK;
use super::place::SnapshotPlace;
use super::status::{paths, push};
use crate::git::paths::{TAKE_IN, TAKE_OUT};
use crate::repo::{CommitId, RepoError, state_file};

impl SnapshotPlace<'_> {
    /// Returns the tree that a commit of all files would have.
    pub(super) fn tree_of_commit(
        &mut self,
        exact: &str,
        head: Option<&CommitId>,
    ) -> Result<String, RepoError> {
        if !self.state.is_converted && !self.state.has_ignored {
            return Ok(exact.to_owned());
        }
        let from = match head {
            Some(head) => head.to_string(),
            None => self.empty_tree()?,
        };
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--raw", &from, exact];
        let changed = self.exact(ReadableObjects::All, &args, Vec::new())?;
        let mut difference = TreeDifference::read(&changed);
        let ignored = self.ignored(&difference.added)?;
        self.state.has_ignored = !ignored.is_empty();
        if ignored.is_empty() && !self.state.is_converted {
            return Ok(exact.to_owned());
        }
        let ignored: BTreeSet<&[u8]> = paths(&ignored).collect();
        let mut present = Vec::new();
        for path in paths(&difference.present).filter(|path| !ignored.contains(path)) {
            push(&mut present, path);
        }
        difference.present = present;
        let (git_dir, index) = (self.converted_dir(), self.converted_index());
        let files = self.files(&git_dir, &index);
        let run = |args: &[&str], stdin: Vec<u8>| {
            self.commands.own(files, ReadableObjects::All, args, stdin)
        };
        state_file::remove(&self.converted_index())?;
        run(&["read-tree", &from], Vec::new())?;
        let steps: [(&[&str], Vec<u8>); 3] = [
            (&TAKE_OUT, difference.absent),
            (&["update-index", "-z", "--index-info"], difference.gitlinks),
            (&TAKE_IN, difference.present),
        ];
        for (args, list) in steps {
            if !list.is_empty() {
                run(args, list)?;
            }
        }
        let tree = run(&["write-tree", "--missing-ok"], Vec::new())?;
        let tree = String::from_utf8_lossy(&tree).trim().to_owned();
        // With the user's objects at hand, git wrote only those that the user's repository does not have.
        let wanted = match &self.state.base {
            Some(base) => format!("{tree}\n--not\n{base}\n"),
            None => format!("{tree}\n"),
        };
        let pack = self.commands.objects().join("pack/pack");
        let pack = pack.to_string_lossy();
        let args =
            ["pack-objects", "--revs", "--quiet", "--non-empty", "--missing=allow-any", &pack];
        run(&args, wanted.into_bytes())?;
        Ok(tree)
    }

    /// Returns those of the paths that are ignored, apart from files that the user added.
    fn ignored(&self, added: &[u8]) -> Result<Vec<u8>, RepoError> {
        if added.is_empty() {
            return Ok(Vec::new());
        }
        let (git_dir, index) = (self.exact_dir(), self.index());
        let ignored = self.check_ignore(self.files(&git_dir, &index), added.to_vec())?;
        if ignored.is_empty() {
            return Ok(ignored);
        }
        let path = self.directory.join("staged");
        let staged = std::fs::read(&path).map_err(RepoError::io(&path))?;
        let staged: BTreeSet<&[u8]> = paths(&staged).collect();
        let mut list = Vec::new();
        for path in paths(&ignored).filter(|path| !staged.contains(path)) {
            push(&mut list, path);
        }
        Ok(list)
    }

    /// Returns those of the paths that are ignored by the rules among the files of a tree.
    pub(super) fn ignored_with_rules_of(
        &self,
        tree: &str,
        list: Vec<u8>,
    ) -> Result<Vec<u8>, RepoError> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", tree];
        let all = self.exact(ReadableObjects::All, &args, Vec::new())?;
        let is_rules =
            |record: &&[u8]| record.ends_with(b"/.gitignore") || record.ends_with(b"\t.gitignore");
        let mut entries = Vec::new();
        for record in paths(&all).filter(is_rules) {
            push(&mut entries, record);
        }
        let directory = self.directory.join("rules");
        state_file::remove_all(&directory)?;
        state_file::make_directory(&directory)?;
        let index = self.directory.join("rules-index");
        state_file::remove(&index)?;
        let git_dir = self.exact_dir();
        let files = CommandFiles { work_tree: &directory, ..self.files(&git_dir, &index) };
        let run = |args: &[&str], stdin| {
            self.commands.own(files, ReadableObjects::All, args, stdin).map(drop)
        };
        run(&["update-index", "-z", "--index-info"], entries)?;
        run(&["checkout-index", "--all", "--force"], Vec::new())?;
        let ignored = self.check_ignore(files, list);
        state_file::remove_all(&directory)?;
        ignored
    }

    /// Returns those of the paths that are ignored by the rules in a working directory.
    fn check_ignore(&self, files: CommandFiles<'_>, list: Vec<u8>) -> Result<Vec<u8>, RepoError> {
        let args = ["check-ignore", "-z", "--no-index", "--stdin"];
        let said = self.commands.own_output(files, ReadableObjects::Own, &args, list)?;
        match said.code {
            // None is ignored.
            1 => Ok(Vec::new()),
            _ => Ok(said.well("check-ignore")?),
        }
    }

    fn empty_tree(&self) -> Result<String, RepoError> {
        let args = ["hash-object", "-t", "tree", "-w", "--stdin"];
        self.exact_text(ReadableObjects::Own, &args)
    }
}

/// The differences between two trees. Each list has a zero byte after each path.
#[derive(Debug, Default)]
struct TreeDifference {
    /// Files that are new or changed.
    present: Vec<u8>,
    /// Those of them that are new.
    added: Vec<u8>,
    absent: Vec<u8>,
    /// Nested repositories, as entries of an index.
    gitlinks: Vec<u8>,
}

impl TreeDifference {
    fn read(output: &[u8]) -> TreeDifference {
        let mut difference = TreeDifference::default();
        let mut parts = paths(output);
        while let (Some(entry), Some(path)) = (parts.next(), parts.next()) {
            let entry = String::from_utf8_lossy(entry);
            let mut fields = entry.trim_start_matches(':').split(' ');
            let (_, mode, _, object) = (fields.next(), fields.next(), fields.next(), fields.next());
            match (fields.next().unwrap_or_default(), mode, object) {
                ("D", _, _) => push(&mut difference.absent, path),
                (_, Some(GITLINK), Some(object)) => {
                    let line = format!("{GITLINK} {object}\t");
                    difference.gitlinks.extend_from_slice(line.as_bytes());
                    push(&mut difference.gitlinks, path);
                }
                (status, ..) => {
                    push(&mut difference.present, path);
                    if status == "A" {
                        push(&mut difference.added, path);
                    }
                }
            }
        }
        difference
    }
}
