//! A conflict that an agent resolves in the files of its worktree, because it may have neither a shell nor git.
//!
//! The files afterwards are the resolution, unless they still have conflict markers or lost a change of the target.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::error::RepoError;
use super::git_command::ObjectStore;
use super::merge::{BETWEEN, OURS, THEIRS, TreeMerge};
use super::worktree_path::WorktreePath;
use super::{
    CommitId, ConflictedFile, Repo, SettledRequest, Worktree, WrittenConflict, state_file,
};

/// The most wrong files that are named.
const NAMED_MAX: usize = 50;

/// A conflict in the files of a worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ConflictLayout {
    /// The worktree's own commit.
    head: CommitId,
    onto: CommitId,
    /// The tree that was written, with conflict markers.
    tree: String,
    files: Vec<ShownFile>,
    phase: ResolutionPhase,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ShownFile {
    /// As bytes, because a name need not be valid text.
    path: Vec<u8>,
    excerpt: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ResolutionPhase {
    /// Some of the files may be written. The agent has not seen them.
    Writing,
    Written,
}

impl ConflictLayout {
    fn conflict(&self) -> WrittenConflict {
        let shown = |file: &ShownFile| ConflictedFile {
            path: String::from_utf8_lossy(&file.path).into_owned(),
            excerpt: file.excerpt.clone(),
        };
        WrittenConflict { onto: self.onto.clone(), files: self.files.iter().map(shown).collect() }
    }
}

/// The mistake in a resolution.
enum ResolutionMistake {
    Marked,
    /// The change of the target is missing.
    Lost,
    Deleted,
}

impl Repo<'_> {
    /// Writes the merge of a worktree's head and `onto` into its files, with markers at conflicts. Index and HEAD
    /// stay. A conflict that is already there stays, even if it is for another `onto`.
    pub fn lay_out_conflict(
        &self,
        w: &Worktree,
        onto: &CommitId,
    ) -> Result<WrittenConflict, RepoError> {
        self.finish_moving(w)?;
        let slot = self.slot_of(w);
        let layout = match self.layout(&slot)? {
            Some(layout) if layout.phase == ResolutionPhase::Written => {
                return Ok(layout.conflict());
            }
            Some(layout) => layout,
            None => self.new_layout(w, onto)?,
        };
        note(&slot, &layout)?;
        let index = slot.index();
        let args = ["read-tree", "--reset", "-u", &layout.tree];
        let question = self.asker.ask(slot.files(&index), &args);
        question.objects(ObjectStore::Users).done()?;
        let layout = ConflictLayout { phase: ResolutionPhase::Written, ..layout };
        note(&slot, &layout)?;
        Ok(layout.conflict())
    }

    fn new_layout(&self, w: &Worktree, onto: &CommitId) -> Result<ConflictLayout, RepoError> {
        self.check_clean(w)?;
        let head = self.head(w)?;
        self.hand_over_base(onto)?;
        let (tree, clashes) = match self.asker.merge(&head, onto, ObjectStore::Users)? {
            TreeMerge::Clean { tree } => (tree, Vec::new()),
            TreeMerge::Conflict { tree, clashes } => (tree, clashes),
        };
        self.check_free(&w.path, head.as_str(), &tree)?;
        self.asker.keep(&w.task, &head)?;
        let shown = self.asker.shown(&tree, &clashes)?;
        let files = clashes.into_iter().zip(shown);
        let files =
            files.map(|(clash, shown)| ShownFile { path: clash.path, excerpt: shown.excerpt });
        let files = files.collect();
        Ok(ConflictLayout {
            head,
            onto: onto.clone(),
            tree,
            files,
            phase: ResolutionPhase::Writing,
        })
    }

    /// Takes the files of a worktree as the resolution of its conflict.
    pub fn settle_conflict(&self, w: &Worktree) -> Result<SettledRequest, RepoError> {
        self.finish_moving(w)?;
        let slot = self.slot_of(w);
        let Some(layout) = self.layout(&slot)? else { return Ok(SettledRequest::Nothing) };
        if layout.phase == ResolutionPhase::Writing {
            // The agent has not seen it.
            self.lay_out_conflict(w, &layout.onto)?;
        }
        match self.check_finished(w) {
            Err(RepoError::Unfinished { what, .. }) => {
                let why = format!("the worktree is {what}");
                return Ok(SettledRequest::Unresolved { files: Vec::new(), why });
            }
            checked => checked?,
        }
        let head = self.head(w)?;
        let tree = self.tree_of_files(w, &head)?;
        if let Some(unresolved) = self.wrong(&layout, &tree)? {
            return Ok(unresolved);
        }
        let is_committed = tree == self.tree_of(&head)? && self.is_ancestor(&layout.onto, &head)?;
        let commit = match is_committed {
            true => head,
            false => {
                let message = format!("Merge {} into {}", self.target.branch, w.branch);
                let parents = match self.is_ancestor(&layout.onto, &head)? {
                    true => vec![head.clone()],
                    false => vec![head.clone(), layout.onto.clone()],
                };
                let commit = self.commit_tree(tree, parents, &message)?;
                self.asker.move_branch(&slot.full_branch(), Some(&head), &commit)?;
                commit
            }
        };
        self.show_index(w)?;
        state_file::remove(&slot.conflict())?;
        Ok(SettledRequest::Done { commit })
    }

    /// Returns the mistakes in a resolution, if there are any.
    fn wrong(
        &self,
        layout: &ConflictLayout,
        tree: &str,
    ) -> Result<Option<SettledRequest>, RepoError> {
        let mut wrong: BTreeMap<Vec<u8>, ResolutionMistake> = self.lost_paths(layout, tree)?;
        for ShownFile { path, .. } in &layout.files {
            if self.is_marked(layout, tree, path)? {
                wrong.insert(path.clone(), ResolutionMistake::Marked);
            }
        }
        if wrong.is_empty() {
            return Ok(None);
        }
        let (mut files, mut why) = (Vec::new(), Vec::new());
        for (path, wrong) in wrong.iter().take(NAMED_MAX) {
            let path = String::from_utf8_lossy(path).into_owned();
            why.push(match wrong {
                ResolutionMistake::Marked => format!("{path} still has conflict markers in it"),
                ResolutionMistake::Lost => format!(
                    "{path} is what it was before: what `{}` changed in it is lost",
                    self.target.branch
                ),
                ResolutionMistake::Deleted => {
                    format!(
                        "{path} is gone, and with it what `{}` changed in it",
                        self.target.branch
                    )
                }
            });
            files.push(path);
        }
        Ok(Some(SettledRequest::Unresolved { files, why: why.join("\n") }))
    }

    /// Returns the paths that the target changed and whose change is missing in the resolution.
    fn lost_paths(
        &self,
        layout: &ConflictLayout,
        tree: &str,
    ) -> Result<BTreeMap<Vec<u8>, ResolutionMistake>, RepoError> {
        let (head, onto) = (layout.head.as_str(), layout.onto.as_str());
        let args = ["merge-base", "--", head, onto];
        let bases = self.asker.private_repo(&args).text()?;
        let base = bases.lines().next().unwrap_or_default();
        let changed = self.differing(base, onto)?;
        // A path whose clean merge equals the old content loses nothing.
        let merged = self.differing(head, &layout.tree)?;
        let clashes: BTreeSet<&Vec<u8>> = layout.files.iter().map(|file| &file.path).collect();
        let resolved = self.differing(head, tree)?;
        let gone = self.gone(onto, tree)?;
        let mut lost = BTreeMap::new();
        for path in changed {
            let is_same = !resolved.contains(&path);
            let is_due = merged.contains(&path) || clashes.contains(&path);
            match (is_same && is_due, gone.contains(&path)) {
                (true, _) => lost.insert(path, ResolutionMistake::Lost),
                (false, true) if is_due => lost.insert(path, ResolutionMistake::Deleted),
                _ => None,
            };
        }
        Ok(lost)
    }

    /// Returns the paths at which two trees differ.
    fn differing(&self, from: &str, to: &str) -> Result<BTreeSet<Vec<u8>>, RepoError> {
        self.names_between(from, to, "--diff-filter=ACDMT")
    }

    fn gone(&self, from: &str, to: &str) -> Result<BTreeSet<Vec<u8>>, RepoError> {
        self.names_between(from, to, "--diff-filter=D")
    }

    fn names_between(
        &self,
        from: &str,
        to: &str,
        filter: &str,
    ) -> Result<BTreeSet<Vec<u8>>, RepoError> {
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", filter, from, to, "--"];
        let said = self.asker.private_repo(&args).long().bytes()?;
        let names = said.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// Returns whether a file has markers that neither side had.
    fn is_marked(
        &self,
        layout: &ConflictLayout,
        tree: &str,
        path: &[u8],
    ) -> Result<bool, RepoError> {
        let Some(now) = self.asker.blob(tree, path)? else { return Ok(false) };
        let blob = |commit: &CommitId| self.asker.blob(commit.as_str(), path);
        let sides =
            [blob(&layout.head)?.unwrap_or_default(), blob(&layout.onto)?.unwrap_or_default()];
        Ok(has_markers(&now, &sides))
    }

    fn layout(&self, slot: &WorktreePath) -> Result<Option<ConflictLayout>, RepoError> {
        let Some(bytes) = state_file::read(&slot.conflict())? else { return Ok(None) };
        let unread =
            |_| RepoError::permanent(format!("{} can't be read", slot.conflict().display()));
        serde_json::from_slice(&bytes).map(Some).map_err(unread)
    }
}

fn note(slot: &WorktreePath, layout: &ConflictLayout) -> Result<(), RepoError> {
    let bytes =
        serde_json::to_vec(layout).map_err(|error| RepoError::permanent(error.to_string()))?;
    state_file::write(&slot.conflict(), &bytes)
}

/// Returns whether there are lines like markers that neither side has. The middle marker may be the underline of a
/// heading, so it is counted.
fn has_markers(now: &[u8], sides: &[Vec<u8>; 2]) -> bool {
    let lines =
        |text: &[u8]| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let own: BTreeSet<Vec<u8>> = sides.iter().flat_map(|side| lines(side)).collect();
    let between =
        |text: &[u8]| lines(text).iter().filter(|line| line.trim_ascii_end() == BETWEEN).count();
    let is_marker = |line: &Vec<u8>| {
        (line.starts_with(OURS) || line.starts_with(THEIRS)) && !own.contains(line)
    };
    lines(now).iter().any(is_marker) || between(now) > between(&sides[0]) + between(&sides[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_markers_that_neither_side_had_are_conflict_markers() {
        let check = |now: &str, ours: &str, theirs: &str, expected: bool| {
            let sides = [ours.as_bytes().to_vec(), theirs.as_bytes().to_vec()];
            assert_eq!(has_markers(now.as_bytes(), &sides), expected, "{now}");
        };
        check("a\nb\n", "a\n", "b\n", false);
        check("<<<<<<< x\na\n", "a\n", "b\n", true);
        check("a\n>>>>>>> y\n", "a\n", "b\n", true);
        check("a\n=======\nb\n", "a\n", "b\n", true);
        check("Title\n=======\n", "Title\n=======\n", "Title\n=======\n", false);
        check("Title\n=======\n=======\n=======\n", "Title\n=======\n", "Title\n=======\n", true);
        check("<<<<<<< shown\n", "<<<<<<< shown\n", "", false);
        check("a\r\n=======\r\nb", "a\r\n", "b\r\n", true);
    }
}
