//! The files that an undo or a restore would change.
//!
//! A change between the snapshots before and after a turn is the agent's. Every other change is a person's.

use std::collections::{BTreeMap, BTreeSet};

use super::file_changes::{FileChange, FileState};
use super::status::{paths, push};
use super::{Snapshot, Snapshots};
use crate::repo::RepoError;

/// The reasons why a file may have the work of a person.
const EDITED: &str = "it was changed outside of the agent's turns";
const HIDDEN: &str = "git ignored it before the turn, so it may be older";
const UNKNOWN: &str = "the turn did not end, so its changes are not known";

/// The files around one turn.
#[derive(Debug)]
pub struct TurnFiles {
    pub number: u32,
    pub before: Snapshot,
    /// None if the turn did not end.
    pub after: Option<Snapshot>,
}

/// Files that earlier restores changed, each with its state after the last of them.
pub type RestoredStates = BTreeMap<Vec<u8>, Option<FileState>>;

/// Files that a restore would change, by their path.
pub type RestoredFiles = BTreeMap<Vec<u8>, RestoredFile>;

/// A file that a restore would change.
#[derive(Debug)]
pub struct RestoredFile {
    pub target: Option<FileState>,
    pub current: Option<FileState>,
    /// The reason why the file may have the work of a person.
    pub edited: Option<&'static str>,
}

impl Snapshots {
    /// Returns the files that the turns changed, each with its state before the first of these turns.
    ///
    /// A file in the state to which an earlier restore brought it has no work of a person.
    pub fn undone_files(
        &self,
        turns: &[&TurnFiles],
        now: &Snapshot,
        kept: &RestoredStates,
    ) -> Result<RestoredFiles, RepoError> {
        let mut files = RestoredFiles::new();
        for (index, turn) in turns.iter().enumerate() {
            let next = turns.get(index + 1).map_or(now, |next| &next.before);
            let Some(after) = &turn.after else {
                for change in self.file_changes(&turn.before, next)? {
                    take_in(&mut files, change, Some(UNKNOWN));
                }
                continue;
            };
            for change in self.file_changes(&turn.before, after)? {
                take_in(&mut files, change, None);
            }
            let is_last = index + 1 == turns.len();
            for change in self.file_changes(after, next)? {
                if files.contains_key(&change.path) {
                    let is_ours = is_last && kept.get(&change.path) == Some(&change.to);
                    take_in(&mut files, change, (!is_ours).then_some(EDITED));
                }
            }
        }
        files.retain(|_, file| file.current != file.target);
        if let Some(first) = turns.first() {
            self.keep_hidden(&first.before, &mut files)?;
        }
        Ok(files)
    }

    /// Marks files that would be deleted although they may be older than the turns: git ignored them then.
    fn keep_hidden(&self, before: &Snapshot, files: &mut RestoredFiles) -> Result<(), RepoError> {
        let mut list = Vec::new();
        for (path, file) in files.iter() {
            if file.target.is_none() {
                push(&mut list, path);
            }
        }
        if list.is_empty() {
            return Ok(());
        }
        let hidden = self.ignored_in(before, list)?;
        for path in paths(&hidden) {
            if let Some(file) = files.get_mut(path) {
                file.edited = file.edited.or(Some(HIDDEN));
            }
        }
        Ok(())
    }

    /// Returns the named files and those below named directories that differ from a state.
    pub fn restored_files(
        &self,
        turns: &[&TurnFiles],
        state: &Snapshot,
        now: &Snapshot,
        kept: &RestoredStates,
        paths: &[Vec<u8>],
    ) -> Result<RestoredFiles, RepoError> {
        let is_wanted = |path: &[u8]| {
            paths.iter().any(|wanted| {
                let rest = path.strip_prefix(wanted.as_slice());
                wanted.is_empty()
                    || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
        };
        // A state that a file got outside of the turns is the work of a person.
        let mut persons: BTreeMap<Vec<u8>, Vec<Option<FileState>>> = BTreeMap::new();
        let mut changed_now = BTreeSet::new();
        for (index, turn) in turns.iter().enumerate() {
            let next = turns.get(index + 1).map(|next| &next.before);
            let after = turn.after.as_ref().unwrap_or(&turn.before);
            for change in self.file_changes(after, next.unwrap_or(now))? {
                if next.is_none() {
                    changed_now.insert(change.path.clone());
                } else {
                    persons.entry(change.path).or_default().push(change.to);
                }
            }
        }
        let mut files = RestoredFiles::new();
        for change in self.file_changes(now, state)? {
            if !is_wanted(&change.path) {
                continue;
            }
            let is_persons =
                persons.get(&change.path).is_some_and(|states| states.contains(&change.from));
            let is_ours = kept.get(&change.path) == Some(&change.from);
            let is_edited = is_persons || changed_now.contains(&change.path) && !is_ours;
            let edited = is_edited.then_some(EDITED);
            let file = RestoredFile { target: change.to, current: change.from, edited };
            files.insert(change.path, file);
        }
        Ok(files)
    }
}

fn take_in(files: &mut RestoredFiles, change: FileChange, edited: Option<&'static str>) {
    let FileChange { path, from, to } = change;
    let new = RestoredFile { target: from, current: None, edited: None };
    let file = files.entry(path).or_insert(new);
    file.current = to;
    file.edited = file.edited.or(edited);
}
