//! Proves that a checkout has the files of its tree, from the files alone.
//!
//! An agent can write to the objects of the user's repository, and git does not compare an object that it reads with its
//! name. So the names are computed again: those of files from their content, that of the tree from the index.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::checkout::RoomCheckout;
use super::index_entries::{IndexEntries, IndexEntry};
use super::survey::path;
use crate::repo::{RepoError, state_file};
use crate::snapshot::{CommandFiles, ReadableObjects};

/// The most files whose content git converts in a way that can't be reversed.
const UNUSUAL_MAX: usize = 1_000;

impl RoomCheckout<'_> {
    /// Proves that the index has the entries of the tree.
    pub(super) fn prove_index(&self) -> Result<(), RepoError> {
        let plain = self.git_dir.join("proof-index");
        IndexEntries::copy_plain(&self.index(), &plain, self.is_sha256())?;
        let args = ["write-tree", "--missing-ok"];
        let said = self.git_output(&plain, &args, Vec::new())?.well("write-tree")?;
        state_file::remove(&plain)?;
        let found = String::from_utf8_lossy(&said).trim().to_owned();
        if found == self.tree {
            Ok(())
        } else {
            Err(damaged(format!("the entries of the tree {} are those of {found}", self.tree)))
        }
    }

    /// Proves that these files have the content that the index names.
    pub(super) fn prove_files(
        &self,
        entries: &IndexEntries,
        written: &[&IndexEntry],
    ) -> Result<(), RepoError> {
        let (links, files): (Vec<&IndexEntry>, Vec<&IndexEntry>) =
            written.iter().partition(|entry| entry.is_link());
        self.prove_links(entries, &links)?;
        let mut left = files;
        for args in [&["hash-object", "--stdin-paths"][..], &NO_FILTERS] {
            if left.is_empty() {
                return Ok(());
            }
            let mut list = Vec::new();
            for entry in &left {
                push_quoted(&mut list, &entry.path);
            }
            let names = self.hashed(args, list, left.len())?;
            let is_other = |(entry, name): &(&IndexEntry, String)| entries.object(entry) != *name;
            left = left.into_iter().zip(names).filter(is_other).map(|(entry, _)| entry).collect();
        }
        if left.len() > UNUSUAL_MAX {
            let path = path(&left[0].path).display();
            let why =
                format!("{path} and more than {UNUSUAL_MAX} other files differ from the tree");
            return Err(damaged(why));
        }
        left.into_iter().try_for_each(|entry| self.prove_unusual(entries, entry))
    }

    /// Proves a file whose content git can't convert back.
    fn prove_unusual(&self, entries: &IndexEntries, entry: &IndexEntry) -> Result<(), RepoError> {
        let object = entries.object(entry);
        let full = self.files.join(path(&entry.path));
        let differs = || damaged(format!("{} has not the content of {object}", full.display()));
        let stored = self.git(&["cat-file", "blob", &object], Vec::new())?;
        let name = self.git(&["hash-object", "--stdin"], stored)?;
        let place = format!("--path={}", path(&entry.path).display());
        let expected = self.git(&["cat-file", "--filters", &place, &object], Vec::new())?;
        let content = fs::read(&full).map_err(RepoError::io(&full))?;
        let is_named = String::from_utf8_lossy(&name).trim() == object;
        if is_named && expected == content { Ok(()) } else { Err(differs()) }
    }

    /// Git hashes the file that a link leads to. So the text of each link is hashed as a file of hookloop.
    fn prove_links(&self, entries: &IndexEntries, links: &[&IndexEntry]) -> Result<(), RepoError> {
        if links.is_empty() {
            return Ok(());
        }
        let directory = self.git_dir.join("proof-links");
        state_file::remove_all(&directory)?;
        state_file::make_directory(&directory)?;
        // Many links lead to the same place.
        let mut texts: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut numbers = Vec::new();
        let mut list = Vec::new();
        for entry in links {
            let full = self.files.join(path(&entry.path));
            let text = link_text(&full).map_err(RepoError::io(&full))?;
            let next = texts.len();
            let number = *texts.entry(text.clone()).or_insert(next);
            if number == next {
                let copy = directory.join(number.to_string());
                fs::write(&copy, text).map_err(RepoError::io(&copy))?;
                push_quoted(&mut list, copy.as_os_str().as_bytes());
            }
            numbers.push(number);
        }
        let names = self.hashed(&NO_FILTERS, list, texts.len())?;
        state_file::remove_all(&directory)?;
        for (entry, number) in links.iter().zip(numbers) {
            if names[number] != entries.object(entry) {
                let path = path(&entry.path).display();
                return Err(damaged(format!("the link {path} leads elsewhere")));
            }
        }
        Ok(())
    }

    fn hashed(&self, args: &[&str], list: Vec<u8>, count: usize) -> Result<Vec<String>, RepoError> {
        let said = self.git(args, list)?;
        let names: Vec<String> =
            String::from_utf8_lossy(&said).lines().map(str::to_owned).collect();
        if names.len() == count {
            Ok(names)
        } else {
            let why = format!("git hash-object names {} of {count} files", names.len());
            Err(RepoError::permanent(why))
        }
    }

    /// Returns an error that names the first object of the tree that can't be found.
    pub(super) fn check_objects(&self) -> Result<(), RepoError> {
        let args = ["rev-list", "--objects", "--no-object-names", "--missing=print", self.tree];
        let absent = |object: &str| {
            RepoError::permanent(format!(
                "the tree {} can't be checked out: the object {object} is neither among the snapshots nor in the \
                 repository",
                self.tree
            ))
        };
        // The git directory of the room may be the reason why a move failed.
        let store = &self.commands.store;
        let files = CommandFiles {
            git_dir: store,
            work_tree: store,
            index: &store.join("no-index"),
            users_objects: self.settings.objects.as_slice(),
            attributes: None,
        };
        let said = self.commands.own_output(files, ReadableObjects::All, &args, Vec::new())?;
        if said.code != 0 {
            return Err(absent(self.tree));
        }
        let listed = String::from_utf8_lossy(&said.stdout);
        match listed.lines().find_map(|line| line.strip_prefix('?')) {
            Some(object) => Err(absent(object)),
            None => Ok(()),
        }
    }
}

const NO_FILTERS: [&str; 3] = ["hash-object", "--no-filters", "--stdin-paths"];

/// Returns the text of a link, which is a file if `core.symlinks` is off.
fn link_text(path: &Path) -> io::Result<Vec<u8>> {
    if path.symlink_metadata()?.is_symlink() {
        Ok(fs::read_link(path)?.into_os_string().into_encoded_bytes())
    } else {
        fs::read(path)
    }
}

/// A person has to find out which program wrote to the repository.
fn damaged(what: String) -> RepoError {
    RepoError::NeedsHuman {
        why: format!("a damaged object is in the repository: {what}"),
        hint: "run `git fsck` in the repository".to_owned(),
    }
}

/// Adds a path in the form of a string of C, which git reads for all bytes.
fn push_quoted(list: &mut Vec<u8>, path: &[u8]) {
    list.push(b'"');
    for byte in path {
        match byte {
            b'"' | b'\\' => list.extend_from_slice(&[b'\\', *byte]),
            0..=31 | 127.. => list.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            byte => list.push(*byte),
        }
    }
    list.extend_from_slice(b"\"\n");
}
