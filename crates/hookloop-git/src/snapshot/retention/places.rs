//! The working directories of which there are snapshots, with the objects that the next snapshot of each needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entries;
use super::object_name::ObjectName;
use crate::repo::{RepoError, state_file};
use crate::snapshot::Snapshots;
use crate::snapshot::commands::{CommandFiles, ReadableObjects};
use crate::snapshot::status::paths;

const STATE: &str = "state.json";

/// The files about one working directory.
#[derive(Debug)]
pub(super) struct StoredPlace {
    directory: PathBuf,
    /// Whether the working directory does not exist any more.
    is_gone: bool,
    /// The objects of the user's repository.
    pub(super) objects: Option<PathBuf>,
    /// The commit at the start of the last session there.
    pub(super) base: Option<String>,
    /// Commits and trees that the next snapshot needs, as far as the store has them.
    pub(super) roots: Vec<ObjectName>,
    /// The content of files in the index.
    pub(super) blobs: Vec<ObjectName>,
}

impl StoredPlace {
    pub(super) fn list(snapshots: &Snapshots) -> Result<Vec<StoredPlace>, RepoError> {
        let mut directories: Vec<PathBuf> = entries(&snapshots.commands.store.join("places"))?
            .into_iter()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        directories.sort();
        directories.into_iter().map(|directory| StoredPlace::read(snapshots, directory)).collect()
    }

    fn read(snapshots: &Snapshots, directory: PathBuf) -> Result<StoredPlace, RepoError> {
        let state = state_file::read(&directory.join(STATE))?.unwrap_or_default();
        // A snapshot does not use a file that is no state, either.
        let state: Value = serde_json::from_slice(&state).unwrap_or_default();
        let text = |name: &str| state.get(name).and_then(Value::as_str);
        let is_absent = |path: &str| {
            let found = Path::new(path).symlink_metadata();
            !path.is_empty() && found.is_err_and(|error| state_file::absent(&error))
        };
        let mut place = StoredPlace {
            is_gone: text("top").is_some_and(is_absent),
            objects: text("objects").map(PathBuf::from),
            base: text("base").map(str::to_owned),
            roots: Vec::new(),
            blobs: Vec::new(),
            directory,
        };
        if place.is_gone {
            place.base = None;
            return Ok(place);
        }
        // Other versions of the program may store other fields here. The names of objects look the same.
        add_names(&state, &mut place.roots);
        let head = state_file::read_line(&place.directory.join("exact/HEAD"))?;
        place.roots.extend(head.as_deref().and_then(ObjectName::read));
        place.blobs = place.list_index(snapshots)?;
        Ok(place)
    }

    fn list_index(&self, snapshots: &Snapshots) -> Result<Vec<ObjectName>, RepoError> {
        let index = self.directory.join("index");
        if !index.exists() {
            return Ok(Vec::new());
        }
        let store = &snapshots.commands.store;
        let files = CommandFiles {
            git_dir: store,
            work_tree: store,
            index: &index,
            users_objects: &[],
            attributes: None,
        };
        let args = ["ls-files", "-s", "-z"];
        let said = snapshots.commands.own(files, ReadableObjects::Own, &args, Vec::new());
        let list = said.map_err(|error| match error {
            RepoError::Permanent { why } => RepoError::NeedsHuman {
                why: format!("{} can't be read, so nothing was removed: {why}", index.display()),
                hint: format!("rm {}: the next snapshot makes a new one", index.display()),
            },
            other => other,
        })?;
        let name = |record: &[u8]| {
            let record = String::from_utf8_lossy(record);
            let name = record.split(' ').nth(1).and_then(ObjectName::read);
            name.ok_or_else(|| RepoError::permanent(format!("git ls-files answers `{record}`")))
        };
        paths(&list).map(name).collect()
    }

    /// Whether the objects of its repository can't be read now, although the working directory is there.
    pub(super) fn lacks_objects(&self) -> bool {
        !self.is_gone && self.objects.as_deref().is_some_and(|objects| !objects.is_dir())
    }
}

/// Adds all strings that look like the name of an object.
fn add_names(value: &Value, found: &mut Vec<ObjectName>) {
    match value {
        Value::String(text) => found.extend(ObjectName::read(text)),
        Value::Array(items) => items.iter().for_each(|item| add_names(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| add_names(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes the files about directories that do not exist any more.
///
/// Old snapshots of such a directory may be kept, and git reads the rest of their objects in the user's repository. So a
/// state stays that alone names the repository.
pub(super) fn remove_gone(places: &[StoredPlace]) -> Result<(), RepoError> {
    let (gone, present): (Vec<_>, Vec<_>) = places.iter().partition(|place| place.is_gone);
    let mut named: BTreeSet<&Path> =
        present.iter().filter_map(|place| place.objects.as_deref()).collect();
    for place in gone {
        let names = |objects: &Path| objects.is_dir() && !named.contains(objects);
        let Some(objects) = place.objects.as_deref().filter(|objects| names(objects)) else {
            state_file::remove_all(&place.directory)?;
            continue;
        };
        named.insert(objects);
        for entry in entries(&place.directory)? {
            if entry.file_name() == STATE {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                state_file::remove_all(&entry.path())?;
            } else {
                state_file::remove(&entry.path())?;
            }
        }
    }
    Ok(())
}

/// Returns whether one of these working directories is of the repository with these objects.
pub(super) fn is_any_of(places: &Path, objects: &Path) -> Result<bool, RepoError> {
    for entry in entries(places)? {
        let state = state_file::read(&entry.path().join(STATE))?.unwrap_or_default();
        let state: Value = serde_json::from_slice(&state).unwrap_or_default();
        if state.get("objects").and_then(Value::as_str).is_some_and(|own| Path::new(own) == objects)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
