//! The choice of a room, the list of rooms, and their removal.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::room_lock::{LOCK, RoomLock};
use super::room_state::RoomState;
use super::trash::{RoomTrash, list};
use super::{CACHES, FILES, OBJECTS, Room, Rooms, TEMPORARY};
use crate::repo::{RepoError, state_file};

/// The most rooms of a project.
const ROOMS_MAX: u32 = 64;
/// How often the room of the session is tried. A list of rooms holds each lock for a moment.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(20);
/// The most files of a room that are counted.
const COUNTED_MAX: u64 = 50_000_000;
/// The size of a block in the answer of the system.
const BLOCK: u64 = 512;

/// A room in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomInfo {
    pub slot: u32,
    /// The tree of the last move.
    pub tree: Option<String>,
    /// The session that used the room last.
    pub session: Option<String>,
    pub is_in_use: bool,
    /// The disk space of all files, as far as they can be read.
    pub bytes: u64,
    pub files: u64,
    pub last_used: Option<SystemTime>,
}

/// The rooms that are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomRetention {
    All,
    /// Those with these numbers.
    Slots(Vec<u32>),
    /// Those that were not used for so long.
    UnusedFor(Duration),
    /// Those that were not used for the longest time, until all others have so many bytes.
    UntilBytes(u64),
}

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedRooms {
    pub slots: Vec<u32>,
    pub bytes: u64,
    pub files: u64,
}

impl Rooms {
    /// Locks a free room: the one that this session used last, or the first one.
    pub fn acquire(&self, session: &str) -> Result<Room, RepoError> {
        let mut own: Vec<(u64, u32)> = Vec::new();
        for slot in 1..=ROOMS_MAX {
            let state = RoomState::look(&self.room(slot))?;
            if let Some(state) = state.filter(|state| state.session == session) {
                own.push((state.last_used_ns, slot));
            }
        }
        own.sort_unstable();
        for (_, slot) in own.into_iter().rev() {
            for _ in 0..TRIES {
                if let Some(room) = self.lock(slot, session)? {
                    return Ok(room);
                }
                if self.commands.cancel.wait(PAUSE) {
                    return Err(RepoError::Cancelled);
                }
            }
        }
        for slot in 1..=ROOMS_MAX {
            if let Some(room) = self.lock(slot, session)? {
                return Ok(room);
            }
        }
        Err(RepoError::Retry { why: format!("all {ROOMS_MAX} rooms of the project are in use") })
    }

    fn lock(&self, slot: u32, session: &str) -> Result<Option<Room>, RepoError> {
        let directory = self.room(slot);
        let Some(lock) = RoomLock::take(&directory)? else { return Ok(None) };
        Ok(Some(Room {
            slot,
            session: session.to_owned(),
            files: directory.join(FILES),
            caches: directory.join(CACHES),
            temporary: directory.join(TEMPORARY),
            objects: directory.join(OBJECTS),
            users_objects: None,
            commands: self.commands.clone(),
            trash: RoomTrash::new(&directory),
            state: RoomState::read(&directory)?,
            left: None,
            directory,
            _lock: lock,
        }))
    }

    /// Returns all rooms, in the order of their slots.
    pub fn list(&self) -> Result<Vec<RoomInfo>, RepoError> {
        let mut rooms = Vec::new();
        for slot in 1..=ROOMS_MAX {
            let directory = self.room(slot);
            if !has_content(&directory)? {
                continue;
            }
            let state = RoomState::look(&directory)?.unwrap_or_default();
            let (bytes, files) = disk_use(&directory);
            let is_used = state.last_used_ns > 0;
            rooms.push(RoomInfo {
                slot,
                tree: state.tree,
                session: Some(state.session).filter(|session| !session.is_empty()),
                is_in_use: RoomLock::is_held(&directory)?,
                bytes,
                files,
                last_used: is_used.then(|| UNIX_EPOCH + Duration::from_nanos(state.last_used_ns)),
            });
        }
        Ok(rooms)
    }

    /// Removes rooms that are not in use. With `is_dry`, nothing is removed.
    pub fn remove(&self, which: &RoomRetention, is_dry: bool) -> Result<RemovedRooms, RepoError> {
        let mut removed = RemovedRooms::default();
        for info in chosen(self.list()?, which, SystemTime::now()) {
            if !is_dry && !self.delete(info.slot)? {
                continue;
            }
            removed.slots.push(info.slot);
            removed.bytes += info.bytes;
            removed.files += info.files;
        }
        removed.slots.sort_unstable();
        Ok(removed)
    }

    /// Deletes a room. Returns false if it is in use.
    fn delete(&self, slot: u32) -> Result<bool, RepoError> {
        let directory = self.room(slot);
        let Some(_lock) = RoomLock::take(&directory)? else { return Ok(false) };
        let trash = RoomTrash::new(&directory);
        // Without a state, the rest is no room any more.
        RoomState::remove(&directory)?;
        for entry in list(&directory)? {
            // Another process may wait for the lock.
            if entry.file_name() != LOCK && entry.path() != trash.path() {
                trash.discard(&entry.path())?;
            }
        }
        trash.empty();
        Ok(true)
    }

    fn room(&self, slot: u32) -> PathBuf {
        self.directory.join(slot.to_string())
    }
}

/// Returns the rooms that are not in use and are to be removed, the one that was not used for the longest time first.
fn chosen(rooms: Vec<RoomInfo>, which: &RoomRetention, now: SystemTime) -> Vec<RoomInfo> {
    let mut total: u64 = rooms.iter().map(|room| room.bytes).sum();
    let mut free: Vec<RoomInfo> = rooms.into_iter().filter(|room| !room.is_in_use).collect();
    free.sort_by_key(|room| room.last_used);
    free.retain(|room| match which {
        RoomRetention::All => true,
        RoomRetention::Slots(slots) => slots.contains(&room.slot),
        RoomRetention::UnusedFor(age) => room.last_used.is_none_or(|used| {
            // A time that is still to come is no age.
            now.duration_since(used).is_ok_and(|unused| unused >= *age)
        }),
        RoomRetention::UntilBytes(max) => {
            let is_removed = total > *max;
            if is_removed {
                total -= room.bytes;
            }
            is_removed
        }
    });
    free
}

/// Returns whether a room has more than its lock.
fn has_content(directory: &Path) -> Result<bool, RepoError> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.any(|entry| entry.is_ok_and(|e| e.file_name() != LOCK))),
        Err(error) if state_file::absent(&error) => Ok(false),
        Err(error) => Err(RepoError::io(directory)(error)),
    }
}

/// Returns the disk space and the number of files, without directories that can't be read.
fn disk_use(directory: &Path) -> (u64, u64) {
    let (mut bytes, mut files) = (0, 0);
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * BLOCK;
            if found.is_dir() {
                left.push(entry.path());
            } else {
                files += 1;
            }
        }
        if files > COUNTED_MAX {
            break;
        }
    }
    (bytes, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(slot: u32, bytes: u64, used_s: u64, is_in_use: bool) -> RoomInfo {
        let last_used = Some(UNIX_EPOCH + Duration::from_secs(used_s));
        RoomInfo { slot, tree: None, session: None, is_in_use, bytes, files: 1, last_used }
    }

    #[test]
    fn rooms_are_removed_by_age_or_size_unless_they_are_in_use() {
        let rooms = || vec![info(1, 10, 50, false), info(2, 10, 10, true), info(3, 10, 20, false)];
        let now = UNIX_EPOCH + Duration::from_secs(100);
        let check = |which: RoomRetention, expected: &[u32]| {
            let slots: Vec<u32> =
                chosen(rooms(), &which, now).iter().map(|room| room.slot).collect();
            assert_eq!(slots, expected, "{which:?}");
        };
        check(RoomRetention::All, &[3, 1]);
        check(RoomRetention::Slots(vec![1, 2]), &[1]);
        check(RoomRetention::UnusedFor(Duration::from_secs(80)), &[3]);
        check(RoomRetention::UnusedFor(Duration::from_secs(81)), &[]);
        check(RoomRetention::UntilBytes(30), &[]);
        check(RoomRetention::UntilBytes(29), &[3]);
        check(RoomRetention::UntilBytes(0), &[3, 1]);
    }
}
