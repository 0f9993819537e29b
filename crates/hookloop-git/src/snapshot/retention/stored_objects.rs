//! The objects of the store: files with one object each, and packs with many.
//!
//! Objects are deleted here, and not by git: the store lacks the objects of unchanged files on purpose, and `git gc`
//! fails where objects are missing. A pack is rewritten with the objects that are needed. The new one is complete and on
//! the disk before anything is deleted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::object_name::{ObjectName, SHA1_BYTES, SHA256_BYTES, lines};
use super::{entries, is_younger};
use crate::repo::{RepoError, state_file};
use crate::snapshot::Snapshots;

/// The start of the second version of a pack's index.
const INDEX_START: &[u8] = b"\xfftOc\0\0\0\x02";
/// The length of the table after it: 256 numbers, of which the last is the number of objects.
const INDEX_TABLE: usize = 256 * 4;
/// Marks the offset of an object far behind in its pack: the rest is a position in another table.
const FAR: u32 = 1 << 31;
/// The files of a pack. Without its index, git does not read a pack.
const PACK_FILES: [&str; 5] = ["idx", "pack", "rev", "bitmap", "mtimes"];
/// The most bytes that one run writes: snapshots of all sessions wait for it.
const REPACKED_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The most objects and small packs that stay as they are. More of them are put into one pack.
const SCATTERED_MAX: usize = 1_000;
const SMALL_PACK_BYTES: u64 = 8 * 1024 * 1024;
/// A pack is rewritten if one part in this many is not needed.
const WASTE_PARTS: u64 = 4;

/// The objects of the store.
#[derive(Debug)]
pub(super) struct StoredObjects {
    directory: PathBuf,
    name_bytes: usize,
    /// Objects with a file of their own.
    loose: BTreeMap<ObjectName, LooseObject>,
    packs: Vec<StoredPack>,
    packed: HashSet<ObjectName>,
}

#[derive(Debug)]
struct LooseObject {
    bytes: u64,
    modified: SystemTime,
}

#[derive(Debug)]
struct StoredPack {
    /// The name of its files.
    name: String,
    /// Whether a person or program asked to keep it.
    is_held: bool,
    objects: Vec<PackedObject>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedObject {
    name: ObjectName,
    bytes: u64,
}

impl StoredPack {
    /// Returns the number of bytes of objects that are needed, and of all others.
    fn bytes(&self, needed: &HashSet<ObjectName>) -> (u64, u64) {
        let mut bytes = (0, 0);
        for object in &self.objects {
            if needed.contains(&object.name) {
                bytes.0 += object.bytes;
            } else {
                bytes.1 += object.bytes;
            }
        }
        bytes
    }
}

impl StoredObjects {
    pub(super) fn list(store: &Path) -> Result<StoredObjects, RepoError> {
        let config = store.join("config");
        let config = fs::read_to_string(&config).map_err(RepoError::io(&config))?;
        let mut found = StoredObjects {
            directory: store.join("objects"),
            name_bytes: if config.contains("sha256") { SHA256_BYTES } else { SHA1_BYTES },
            loose: BTreeMap::new(),
            packs: Vec::new(),
            packed: HashSet::new(),
        };
        found.list_loose()?;
        for entry in entries(&found.packs_directory())? {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "idx") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let pack = found.read_pack(name)?;
                found.packed.extend(pack.objects.iter().map(|object| object.name));
                found.packs.push(pack);
            }
        }
        Ok(found)
    }

    fn list_loose(&mut self) -> Result<(), RepoError> {
        for directory in entries(&self.directory)? {
            let start = directory.file_name().to_string_lossy().into_owned();
            if start.len() != 2 {
                continue;
            }
            for entry in entries(&directory.path())? {
                let rest = entry.file_name().to_string_lossy().into_owned();
                let Some(name) = ObjectName::read(&format!("{start}{rest}")) else { continue };
                let path = entry.path();
                let found = entry.metadata().map_err(RepoError::io(&path))?;
                let modified = found.modified().map_err(RepoError::io(&path))?;
                self.loose.insert(name, LooseObject { bytes: found.len(), modified });
            }
        }
        Ok(())
    }

    fn packs_directory(&self) -> PathBuf {
        self.directory.join("pack")
    }

    fn pack_file(&self, name: &str, end: &str) -> PathBuf {
        self.packs_directory().join(format!("{name}.{end}"))
    }

    fn loose_file(&self, name: &ObjectName) -> PathBuf {
        let name = name.to_string();
        let (start, rest) = name.split_at(2);
        self.directory.join(start).join(rest)
    }

    fn read_pack(&self, name: String) -> Result<StoredPack, RepoError> {
        let index = self.pack_file(&name, "idx");
        let bytes = fs::read(&index).map_err(RepoError::io(&index))?;
        let pack = self.pack_file(&name, "pack");
        let pack_bytes = fs::metadata(&pack).map_err(RepoError::io(&pack))?.len();
        let objects = read_index(&bytes, self.name_bytes, pack_bytes).ok_or_else(|| {
            RepoError::permanent(format!("{} is no index of a pack", index.display()))
        })?;
        let is_held = self.pack_file(&name, "keep").exists();
        Ok(StoredPack { name, is_held, objects })
    }

    pub(super) fn has(&self, name: &ObjectName) -> bool {
        self.packed.contains(name) || self.loose.contains_key(name)
    }

    /// Returns objects that were written within this time before `now`. Git renews the time of a file if it would write
    /// the same object again.
    pub(super) fn young(
        &self,
        now: SystemTime,
        age: Duration,
    ) -> impl Iterator<Item = &ObjectName> {
        let loose = self.loose.iter();
        loose.filter(move |(_, object)| is_younger(object.modified, now, age)).map(|(name, _)| name)
    }

    /// Returns the number of bytes of those objects that are not needed.
    pub(super) fn waste(&self, needed: &HashSet<ObjectName>) -> u64 {
        let loose = self.loose.iter().filter(|(name, _)| !needed.contains(*name));
        let loose: u64 = loose.map(|(_, object)| object.bytes).sum();
        loose + self.packs.iter().map(|pack| pack.bytes(needed).1).sum::<u64>()
    }

    /// Deletes the files of a plan. `new` are the packs that were written for it.
    pub(super) fn delete(&self, plan: &ObjectPlan, new: &NewPacks) -> Result<(), RepoError> {
        // A pack that was written again with the same objects has the same name.
        for name in plan.packs.iter().filter(|name| !new.names.contains(*name)) {
            for end in PACK_FILES {
                state_file::remove(&self.pack_file(name, end))?;
            }
        }
        let mut directories = BTreeSet::new();
        for name in &plan.loose {
            let file = self.loose_file(name);
            state_file::remove(&file)?;
            directories.extend(file.parent().map(Path::to_owned));
        }
        for directory in directories {
            // A directory with other objects is not empty, and stays.
            let _ = fs::remove_dir(directory);
        }
        Ok(())
    }
}

/// The files of objects that are deleted, and the objects that are put into a new pack before that.
#[derive(Debug, Default)]
pub(super) struct ObjectPlan {
    repacked: BTreeSet<ObjectName>,
    /// The names of packs.
    packs: Vec<String>,
    loose: Vec<ObjectName>,
}

/// The names of packs that were written.
#[derive(Debug, Default)]
pub(super) struct NewPacks {
    names: BTreeSet<String>,
}

impl ObjectPlan {
    /// Plans the removal of all objects that are not needed. `is_tight`: no pack may keep any of them.
    pub(super) fn new(
        stored: &StoredObjects,
        needed: &HashSet<ObjectName>,
        is_tight: bool,
    ) -> ObjectPlan {
        let mut plan = ObjectPlan::default();
        let mut room = REPACKED_BYTES_MAX;
        let is_small = |(used, waste): (u64, u64)| used + waste < SMALL_PACK_BYTES;
        let small = stored.packs.iter().filter(|pack| is_small(pack.bytes(needed))).count();
        let loose = stored.loose.keys().filter(|name| needed.contains(*name)).count();
        let gathers = small + loose > SCATTERED_MAX;
        let mut staying: HashSet<&ObjectName> = HashSet::new();
        for pack in &stored.packs {
            let (used, waste) = pack.bytes(needed);
            let allowed = if is_tight { 0 } else { (used + waste) / WASTE_PARTS };
            let is_rewritten = waste > allowed || gathers && is_small((used, waste));
            // The first one may be larger than all others together.
            let fits = used <= room || room == REPACKED_BYTES_MAX;
            if pack.is_held || !is_rewritten || !fits {
                staying.extend(pack.objects.iter().map(|object| &object.name));
                continue;
            }
            let names = pack.objects.iter().map(|object| object.name);
            plan.repacked.extend(names.filter(|name| needed.contains(name)));
            plan.packs.push(pack.name.clone());
            room = room.saturating_sub(used);
        }
        for (name, object) in &stored.loose {
            let is_packed = staying.contains(name) || plan.repacked.contains(name);
            if !needed.contains(name) || is_packed {
                plan.loose.push(*name);
            } else if gathers && object.bytes <= room {
                room -= object.bytes;
                plan.repacked.insert(*name);
                plan.loose.push(*name);
            }
        }
        plan
    }
}

impl Snapshots {
    /// Writes the new pack of a plan, and checks that it has all objects. Nothing is deleted yet.
    pub(super) fn repack(
        &self,
        stored: &StoredObjects,
        plan: &ObjectPlan,
    ) -> Result<NewPacks, RepoError> {
        if plan.repacked.is_empty() {
            return Ok(NewPacks::default());
        }
        let directory = stored.packs_directory();
        let start = directory.join("pack");
        let start = start.to_string_lossy();
        let args =
            ["pack-objects", "--quiet", "--window=0", "--compression=1", "--non-empty", &start];
        let said = self.retention_git(&[], &args, lines(&plan.repacked))?;
        let said = String::from_utf8_lossy(&said);
        let names: BTreeSet<String> = said.lines().map(|name| format!("pack-{name}")).collect();
        let mut written = HashSet::new();
        for name in &names {
            let pack = stored.read_pack(name.clone())?;
            written.extend(pack.objects.iter().map(|object| object.name));
        }
        if let Some(missing) = plan.repacked.iter().find(|name| !written.contains(*name)) {
            let why = format!("git pack-objects left out {missing}, so nothing was removed");
            return Err(RepoError::permanent(why));
        }
        sync(&directory)?;
        Ok(NewPacks { names })
    }
}

/// Makes new names in a directory survive a crash of the machine.
fn sync(directory: &Path) -> Result<(), RepoError> {
    let opened = File::open(directory).map_err(RepoError::io(directory))?;
    match rustix::fs::fsync(opened) {
        // Some file systems have no sync of directories.
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        Err(errno) => Err(RepoError::io(directory)(errno.into())),
    }
}

/// Reads the index of a pack; `None` if it is none. The format is that of `git help format-pack`.
fn read_index(bytes: &[u8], name_bytes: usize, pack_bytes: u64) -> Option<Vec<PackedObject>> {
    let bytes = bytes.strip_prefix(INDEX_START)?;
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let count = number(INDEX_TABLE - 4)? as usize;
    // The names are followed by a checksum of each object, and then by the offsets.
    let names = bytes.get(INDEX_TABLE..INDEX_TABLE + count * name_bytes)?;
    let offsets = INDEX_TABLE + count * (name_bytes + 4);
    let far_offsets = offsets + 4 * count;
    let mut found = Vec::with_capacity(count);
    for (place, name) in names.chunks_exact(name_bytes).enumerate() {
        let offset = number(offsets + 4 * place)?;
        let offset = if offset & FAR == 0 {
            u64::from(offset)
        } else {
            let at = far_offsets + 8 * (offset & !FAR) as usize;
            u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?)
        };
        found.push((offset, ObjectName::of_bytes(name)?));
    }
    found.sort_unstable();
    // Each object ends where the next one begins, and the last one before the checksum of the pack.
    let end = pack_bytes.checked_sub(name_bytes as u64)?;
    let ends = found.iter().skip(1).map(|(offset, _)| *offset).chain([end]);
    let read = |((offset, name), end): (&(u64, ObjectName), u64)| {
        Some(PackedObject { name: *name, bytes: end.checked_sub(*offset)? })
    };
    found.iter().zip(ends).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u8) -> ObjectName {
        ObjectName::of_bytes(&[number; SHA1_BYTES]).unwrap()
    }

    fn stored(loose: &[u8], packs: &[&[(u8, u64)]]) -> StoredObjects {
        let one = |number: &u8| {
            (name(*number), LooseObject { bytes: 10, modified: SystemTime::UNIX_EPOCH })
        };
        let pack = |(at, objects): (usize, &&[(u8, u64)])| StoredPack {
            name: format!("pack-{at}"),
            is_held: false,
            objects: objects
                .iter()
                .map(|(number, bytes)| PackedObject { name: name(*number), bytes: *bytes })
                .collect(),
        };
        let packs: Vec<StoredPack> = packs.iter().enumerate().map(pack).collect();
        let packed = packs.iter().flat_map(|pack| &pack.objects).map(|object| object.name);
        StoredObjects {
            directory: PathBuf::new(),
            name_bytes: SHA1_BYTES,
            loose: loose.iter().map(one).collect(),
            packed: packed.collect(),
            packs,
        }
    }

    #[test]
    fn a_pack_is_rewritten_if_much_of_it_is_not_needed() {
        let needed = HashSet::from([1, 2, 3, 4].map(name));
        let packs: [&[(u8, u64)]; 4] =
            [&[(1, 100), (9, 20)], &[(2, 100), (8, 200)], &[(7, 5)], &[(3, 50)]];
        let stored = stored(&[1, 2, 4, 6], &packs);
        let plan = ObjectPlan::new(&stored, &needed, false);
        assert_eq!(plan.packs, ["pack-1", "pack-2"]);
        assert_eq!(plan.repacked, BTreeSet::from([name(2)]));
        assert_eq!(plan.loose, [name(1), name(2), name(6)], "those in packs and the unneeded one");
        let tight = ObjectPlan::new(&stored, &needed, true);
        assert_eq!(tight.packs, ["pack-0", "pack-1", "pack-2"]);
        assert_eq!(stored.waste(&needed), 10 + 20 + 200 + 5);
    }

    #[test]
    fn many_objects_are_put_into_one_pack() {
        let numbers: Vec<u64> = (0..2_000).collect();
        let name = |number: &u64| {
            let mut bytes = [0; SHA1_BYTES];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            ObjectName::of_bytes(&bytes).unwrap()
        };
        let needed: HashSet<ObjectName> = numbers.iter().map(name).collect();
        let mut stored = stored(&[], &[]);
        let bytes = REPACKED_BYTES_MAX / 1_500;
        let loose =
            |number: &u64| (name(number), LooseObject { bytes, modified: SystemTime::UNIX_EPOCH });
        stored.loose = numbers.iter().map(loose).collect();
        let plan = ObjectPlan::new(&stored, &needed, false);
        assert_eq!(plan.repacked.len(), 1_500, "as many as fit at once");
        assert_eq!(plan.loose.len(), 1_500);
    }

    #[test]
    fn the_index_of_a_pack_is_read() {
        let mut index = INDEX_START.to_vec();
        index.extend([0_u8; INDEX_TABLE - 4]);
        index.extend(3_u32.to_be_bytes());
        for number in [1_u8, 2, 3] {
            index.extend([number; SHA1_BYTES]);
        }
        index.extend([0_u8; 3 * 4]);
        for offset in [500, FAR, 12_u32] {
            index.extend(offset.to_be_bytes());
        }
        index.extend(5_000_000_000_u64.to_be_bytes());
        index.extend([0_u8; 2 * SHA1_BYTES]);
        let objects = read_index(&index, SHA1_BYTES, 5_000_000_120).unwrap();
        let expected = [(3, 488), (1, 4_999_999_500), (2, 100)];
        let expected = expected.map(|(number, bytes)| PackedObject { name: name(number), bytes });
        assert_eq!(objects, expected);
        assert_eq!(read_index(&index[..1_100], SHA1_BYTES, 5_000_000_120), None);
        assert_eq!(read_index(b"no index", SHA1_BYTES, 100), None);
    }
}
