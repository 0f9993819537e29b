//! The repository that gates see: `.git` among the files of a room.
//!
//! hookloop writes it before each run, and never reads it. It has no filters, hooks or remotes.

use std::fs;
use std::path::{Path, PathBuf};

use hookloop_core::digest::sha256_hex;

use super::checkout::RoomCheckout;
use super::users_refs::users_refs;
use crate::git::copy_index;
use crate::repo::{CommitId, FoundRepository, RepoError, quoted, state_file};
use crate::snapshot::NO_HEAD;

/// The most object directories that the user's repository borrows from.
const BORROWED_MAX: usize = 64;
/// Gates start no programs in the background by way of git.
const NO_BACKGROUND: &str = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
const DRAFT: &str = "visible-repository";

/// The repository that gates see.
#[derive(Debug)]
pub(super) struct VisibleRepository<'v> {
    pub(super) checkout: &'v RoomCheckout<'v>,
    pub(super) found: &'v FoundRepository,
    pub(super) base: Option<&'v CommitId>,
    /// The directory on which the user's objects are mounted.
    pub(super) objects: &'v Path,
    /// The directory on which the files are mounted.
    pub(super) top: &'v Path,
}

impl VisibleRepository<'_> {
    /// Replaces the repository, and returns the digest of its refs and of HEAD. `room` is the directory of the room.
    pub(super) fn write(&self, room: &Path) -> Result<String, RepoError> {
        let draft = room.join(DRAFT);
        state_file::remove_all(&draft)?;
        for name in ["info", "objects/info", "objects/pack", "refs/heads", "refs/tags"] {
            let path = draft.join(name);
            fs::create_dir_all(&path).map_err(RepoError::io(&path))?;
        }
        let settings = self.checkout.settings;
        let head = self.base.map_or(NO_HEAD.to_vec(), |base| format!("{base}\n").into_bytes());
        let refs = users_refs(self.checkout.commands, self.found, &self.checkout.git_dir)?;
        // The history of the user's repository may end early.
        let shallow = fs::read(self.found.common.join("shallow")).unwrap_or_default();
        for (name, bytes) in [
            ("HEAD", head.as_slice()),
            ("config", self.config().as_bytes()),
            ("packed-refs", refs.as_bytes()),
            ("shallow", &shallow),
            ("attributes", &settings.global_attributes),
            ("info/attributes", &settings.attributes),
            ("info/exclude", &settings.excludes),
            ("objects/info/alternates", &self.alternates()?),
        ] {
            if !bytes.is_empty() {
                let path = draft.join(name);
                fs::write(&path, bytes).map_err(RepoError::io(&path))?;
            }
        }
        let index = draft.join("index");
        copy_index(&self.checkout.index(), &index).map_err(RepoError::io(&index))?;
        let visible = self.checkout.files.join(".git");
        self.checkout.trash.discard(&visible)?;
        fs::rename(&draft, &visible).map_err(RepoError::io(&visible))?;
        Ok(sha256_hex([head, refs.into_bytes()].concat()))
    }

    fn config(&self) -> String {
        let mut config = String::from_utf8_lossy(&self.checkout.settings.config).into_owned();
        if !self.checkout.settings.global_attributes.is_empty() {
            let path = self.top.join(".git/attributes");
            let path = quoted(&path.to_string_lossy());
            config.push_str(&format!("[core]\n\tattributesFile = {path}\n"));
        }
        config.push_str(NO_BACKGROUND);
        config
    }

    /// Returns the list of directories that have the objects.
    fn alternates(&self) -> Result<Vec<u8>, RepoError> {
        let mut directories = vec![self.checkout.commands.objects(), self.objects.to_owned()];
        if let Some(objects) = &self.checkout.settings.objects {
            directories.extend(borrowed(objects)?);
        }
        let mut list = Vec::new();
        for directory in directories {
            list.extend_from_slice(directory.as_os_str().as_encoded_bytes());
            list.push(b'\n');
        }
        Ok(list)
    }
}

/// Returns the directories that the user's repository borrows from by a relative path, which the mount changes.
fn borrowed(objects: &Path) -> Result<Vec<PathBuf>, RepoError> {
    let text = state_file::read_line(&objects.join("info/alternates"))?.unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '"', '/']));
    Ok(lines.take(BORROWED_MAX).map(|line| objects.join(line)).collect())
}
