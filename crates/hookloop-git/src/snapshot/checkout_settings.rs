//! The settings of a checkout: those of the user's repository when the session began.

use std::fs;
use std::path::{Path, PathBuf};

use super::Snapshots;
use super::place::{CHECKOUT, PlaceState, SnapshotPlace, place_directory};
use crate::repo::state_file::HeldLock;
use crate::repo::{FoundRepository, RepoError, state_file};

/// The settings that decide which bytes the files of a checkout have, and which files git ignores.
#[derive(Clone, Debug)]
pub(crate) struct CheckoutSettings {
    /// The text of a configuration of git. It names no program.
    pub(crate) config: Vec<u8>,
    /// The attributes of all of the user's repositories.
    pub(crate) global_attributes: Vec<u8>,
    /// The attributes of this repository that are not part of its files.
    pub(crate) attributes: Vec<u8>,
    /// Patterns of ignored files that are not part of the files.
    pub(crate) excludes: Vec<u8>,
    /// The objects of the user's repository; none without a repository.
    pub(crate) objects: Option<PathBuf>,
    /// Whether pointers to large files are replaced by their content.
    pub(crate) has_large_files: bool,
}

impl Snapshots {
    /// Returns the settings of a working directory for this session.
    pub(crate) fn checkout_settings(&self, top: &Path) -> Result<CheckoutSettings, RepoError> {
        let found = FoundRepository::find(top)?;
        let place = SnapshotPlace::open(&self.commands, top, found, &self.period, 0)?;
        CheckoutSettings::read(&place.directory, &place.state)
    }

    /// Returns the settings of a nested repository when its last snapshot was taken. It may not exist any more.
    pub(crate) fn nested_checkout_settings(
        &self,
        top: &Path,
    ) -> Result<CheckoutSettings, RepoError> {
        let directory = place_directory(&self.commands.store, top);
        let _alone = HeldLock::wait(&directory.join("lock"), &self.commands.cancel)?;
        let path = directory.join("state.json");
        let unknown = |why: String| {
            RepoError::permanent(format!("the settings of {} are not known: {why}", top.display()))
        };
        let bytes = state_file::read(&path)?
            .ok_or_else(|| unknown(format!("there is no {}", path.display())))?;
        let state: PlaceState =
            serde_json::from_slice(&bytes).map_err(|error| unknown(error.to_string()))?;
        CheckoutSettings::read(&directory, &state)
    }
}

impl CheckoutSettings {
    fn read(place: &Path, state: &PlaceState) -> Result<CheckoutSettings, RepoError> {
        let read = |name: &str| {
            let path = place.join(CHECKOUT).join(name);
            fs::read(&path).map_err(RepoError::io(&path))
        };
        Ok(CheckoutSettings {
            config: read("config")?,
            global_attributes: read("attributes")?,
            attributes: read("info/attributes")?,
            excludes: read("info/exclude")?,
            objects: state.objects.clone(),
            has_large_files: state.has_filter,
        })
    }
}
