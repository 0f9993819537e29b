//! The private mounts of a job, in a mount namespace of its own.
//!
//! Every path is opened once, and the mounts are made with the open files. A path that another process changes
//! meanwhile cannot lead two steps to two places.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, StatVfsMountFlags, fstat, fstatvfs, open};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
    mount_change, mount_remount, move_mount, open_tree,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use super::confinement::{ConfinementError, PrivateMount};

/// The file that covers a hidden file.
const EMPTY_FILE: &str = "/dev/null";

/// A mount whose sources are open.
enum OpenedMount<'a> {
    Bind { tree: OwnedFd, target: &'a Path, read_only: bool },
    Overlay { target: &'a Path, changes: OwnedFd, work: OwnedFd },
    Hide { target: &'a Path },
}

/// Moves this process, which has one thread, to a mount namespace with these mounts.
///
/// Without mounts, it stays in its namespace.
pub(super) fn enter(mounts: &[PrivateMount]) -> Result<(), ConfinementError> {
    if mounts.is_empty() {
        return Ok(());
    }
    new_namespace().map_err(|errno| ConfinementError::Namespace { errno: errno.raw_os_error() })?;
    let opened: Vec<_> = mounts.iter().map(OpenedMount::open).collect::<Result<_, _>>()?;
    opened.into_iter().try_for_each(OpenedMount::attach)
}

fn new_namespace() -> rustix::io::Result<()> {
    if capabilities(None)?.effective.contains(CapabilitySet::SYS_ADMIN) {
        unshare(UnshareFlags::NEWNS)?;
    } else {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        // The kernel takes the map of the group only from a process that cannot change its groups.
        write_own("setgroups", "deny")?;
        write_own("uid_map", &format!("{user} {user} 1"))?;
        write_own("gid_map", &format!("{group} {group} 1"))?;
    }
    // Mounts of this namespace stay in it. An unmount outside also unmounts here, so no disk stays busy.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

#[expect(
    deprecated,
    reason = "only the flag CLONE_FILES makes it unsound, and its successor is unsafe"
)]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Writes to a file of this process in `/proc`.
fn write_own(file: &str, text: &str) -> rustix::io::Result<()> {
    let written = fs::write(Path::new("/proc/self").join(file), text);
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

impl OpenedMount<'_> {
    fn open(mount: &PrivateMount) -> Result<OpenedMount<'_>, ConfinementError> {
        Ok(match mount {
            PrivateMount::Bind { source, target, read_only } => OpenedMount::Bind {
                tree: clone_of(source).map_err(failed(source))?,
                target,
                read_only: *read_only,
            },
            PrivateMount::Overlay { target, changes, work } => OpenedMount::Overlay {
                target,
                changes: open_place(changes).map_err(failed(changes))?,
                work: open_place(work).map_err(failed(work))?,
            },
            PrivateMount::Hide { target } => OpenedMount::Hide { target },
        })
    }

    fn attach(self) -> Result<(), ConfinementError> {
        let (OpenedMount::Bind { target, .. }
        | OpenedMount::Overlay { target, .. }
        | OpenedMount::Hide { target }) = self;
        self.attach_to(target).map_err(failed(target))
    }

    fn attach_to(self, target: &Path) -> rustix::io::Result<()> {
        match self {
            OpenedMount::Bind { tree, read_only, .. } => {
                put(&tree, &open_place(target)?)?;
                if read_only { make_read_only(&tree) } else { Ok(()) }
            }
            OpenedMount::Overlay { changes, work, .. } => {
                let place = open_place(target)?;
                put(&overlay(&place, &changes, &work)?, &place)
            }
            OpenedMount::Hide { .. } => match open_place(target) {
                // The job has no more permissions than this process, so it cannot reach the target either.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(()),
                place => hide(&place?),
            },
        }
    }
}

fn failed(path: &Path) -> impl Fn(Errno) -> ConfinementError {
    let path = path.to_owned();
    move |errno| ConfinementError::Mount { path: path.clone(), errno: errno.raw_os_error() }
}

fn open_place(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(absolute(path)?, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Returns a mount of a directory or a file, which is not attached yet.
fn clone_of(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, absolute(path)?, flags)
}

fn absolute(path: &Path) -> rustix::io::Result<&Path> {
    if path.is_absolute() { Ok(path) } else { Err(Errno::INVAL) }
}

/// Attaches a mount to a place.
fn put(mount: &OwnedFd, place: &OwnedFd) -> rustix::io::Result<()> {
    let by_files =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", place, "", by_files)
}

/// Makes an attached mount read-only.
fn make_read_only(mount: &OwnedFd) -> rustix::io::Result<()> {
    let found = fstatvfs(mount)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    // The call replaces all flags, and the kernel does not let a user namespace remove these.
    for (had, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ] {
        flags.set(flag, found.contains(had));
    }
    mount_remount(path_of(mount), flags, "")
}

/// Covers a directory with an empty one, and a file with `/dev/null`.
fn hide(place: &OwnedFd) -> rustix::io::Result<()> {
    if FileType::from_raw_mode(fstat(place)?.st_mode) == FileType::Directory {
        return put(&empty_directory()?, place);
    }
    let file = clone_of(Path::new(EMPTY_FILE))?;
    put(&file, place)?;
    make_read_only(&file)
}

/// Returns a mount of a new file system that has no files and takes none.
fn empty_directory() -> rustix::io::Result<OwnedFd> {
    let system = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&system, "mode", "0555")?;
    fsconfig_set_flag(&system, "ro")?;
    fsconfig_create(&system)?;
    let flags = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Returns a mount that shows `lower` and writes to `changes`.
fn overlay(lower: &OwnedFd, changes: &OwnedFd, work: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let system = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Paths of open files are short and need no escapes.
    for (option, directory) in [("lowerdir", lower), ("upperdir", changes), ("workdir", work)] {
        fsconfig_set_string(&system, option, path_of(directory))?;
    }
    // A user namespace requires it. Root uses it too, so that `changes` look the same for both.
    fsconfig_set_flag(&system, "userxattr")?;
    fsconfig_create(&system)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Returns a path that leads to an open file.
fn path_of(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
