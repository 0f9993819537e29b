//! The rooms of gates: their confinement here, their number and their disk use.

use std::path::Path;
use std::sync::Arc;

use hookloop_git::repo::RepoError;
use hookloop_git::room::{RoomInfo, RoomOptions, Rooms};
use hookloop_process::{Cancel, KeeperPool, MountSupport, SandboxSupport};

use super::snapshots::disk_size;
use super::{Finding, FindingGroup, Remedy};

const ABOUT: &str = "rooms";

/// Reports the confinement of gates in rooms that this system supports.
pub fn examine_room_support() -> Finding {
    let gap = SandboxSupport::of_this_system().gap();
    support_in_words(gap, SandboxSupport::mounts_of_this_system())
}

fn support_in_words(gap: Option<String>, support: MountSupport) -> Finding {
    if let Some(gap) = gap {
        let message = format!("gates can write outside of their room, with your rights: {gap}");
        let remedy = Remedy::Do("use Linux 6.2 or newer for gates that are confined".to_owned());
        return FindingGroup::Machine.warning(ABOUT, message).with_remedy(remedy);
    }
    let place = match (support.mounts, support.overlays) {
        (true, true) => "rooms are mounted at the path of the project",
        (true, false) => {
            "rooms are mounted at the path of the project; caches are moved by variables (no overlays)"
        }
        (false, _) => {
            "rooms have paths of their own, because this user can't create mount namespaces; gates can't read the \
             working directory"
        }
    };
    FindingGroup::Machine.ok(ABOUT, format!("gates can write only to their room; {place}"))
}

/// Reports the disk use of a project's rooms, given the directory of its state. None if there are none.
pub fn examine_rooms(state: &Path) -> Option<Finding> {
    match list(state) {
        Ok(rooms) if rooms.is_empty() => None,
        Ok(rooms) => Some(FindingGroup::State.ok(ABOUT, in_words(&rooms))),
        Err(error) => {
            let message = format!("their disk use is unknown: {error}");
            Some(FindingGroup::State.warning(ABOUT, message).typed("hookloop rooms list"))
        }
    }
}

fn list(state: &Path) -> Result<Vec<RoomInfo>, RepoError> {
    let failed = |source| RepoError::Io { path: state.to_owned(), source };
    let cancel = Cancel::new().map_err(failed)?;
    let keepers = Arc::new(KeeperPool::of_this_program());
    Rooms::new(RoomOptions { state, environment: &[], keepers: &keepers, cancel }).list()
}

fn in_words(rooms: &[RoomInfo]) -> String {
    let used = rooms.iter().filter(|room| room.is_in_use).count();
    let bytes = rooms.iter().map(|room| room.bytes).sum();
    format!("{}, {used} in use, {} (hookloop rooms list)", rooms.len(), disk_size(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingStatus;

    #[test]
    fn rooms_without_a_box_are_reported_as_a_warning() {
        let check = |gap: Option<&str>, mounts, overlays, status, shown: &str| {
            let support = MountSupport { mounts, overlays };
            let found = support_in_words(gap.map(str::to_owned), support);
            assert_eq!(found.status, status, "{found:?}");
            assert!(found.message.contains(shown), "{found:?}");
        };
        check(None, true, true, FindingStatus::Ok, "mounted at the path of the project");
        check(None, true, false, FindingStatus::Ok, "no overlays");
        check(None, false, false, FindingStatus::Ok, "paths of their own");
        check(Some("no Landlock"), true, true, FindingStatus::Warning, "with your rights");
    }

    #[test]
    fn the_number_and_disk_use_of_rooms_is_one_line() {
        let room = |slot, is_in_use| RoomInfo {
            slot,
            tree: None,
            session: None,
            is_in_use,
            bytes: 3 * 1024 * 1024,
            files: 1,
            last_used: None,
        };
        let words = in_words(&[room(1, true), room(2, false)]);
        assert_eq!(words, "2, 1 in use, 6 MiB (hookloop rooms list)");
    }

    #[test]
    fn a_project_without_rooms_has_no_line() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(examine_rooms(state.path()), None);
    }
}
