//! A sandbox as a caller describes it.

use std::io;
use std::path::PathBuf;

/// The largest number of mounts of a confinement.
pub const MOUNTS_MAX: usize = 64;
/// The largest number of entries beside the paths to hidden directories, each of which needs a rule.
pub const SIBLINGS_MAX: usize = 20_000;

/// Restrictions on the processes of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    pub no_network: bool,
    /// The only places where they may write, as absolute paths. `None` allows all.
    ///
    /// The paths are opened after the mounts were made.
    pub write: Option<Vec<PathBuf>>,
    /// The mounts of a mount namespace of its own, made in this order, at most [`MOUNTS_MAX`].
    ///
    /// The working directory of the job is opened after the mounts. Its program is looked up in `PATH` before them.
    ///
    /// Without root, the job also gets a user namespace. There, files of other users seem to belong to user 65534.
    pub mounts: Vec<PrivateMount>,
    /// Whether the job may use sockets of its own machine (`AF_UNIX`).
    ///
    /// Abstract sockets of processes outside are refused nevertheless (Linux 6.12).
    pub local_sockets: bool,
    /// Directories whose files they can't list, read, write or execute, as absolute paths. Needs no mounts.
    ///
    /// Landlock can only allow, and a rule for a directory holds for everything below it. So each directory above a
    /// hidden one can't be listed either, and no entries can be made, renamed or removed in it. Its other entries stay
    /// usable if they exist when the job starts, at most [`SIBLINGS_MAX`] of them.
    ///
    /// The resolved path decides: a link, or `/proc/PID/cwd`, does not lead into a hidden directory. Two ways are open:
    /// another hard link of a file, and a bind mount of a hidden directory at another path. The names, sizes and times
    /// of files at known paths stay visible (`stat`).
    pub hide: Vec<PathBuf>,
    /// Places below hidden directories that they can read and execute nevertheless. Those in `write` need no entry.
    ///
    /// A place in either list that contains a hidden directory does not uncover it.
    pub read: Vec<PathBuf>,
}

/// A mount that only the processes of one job see. All paths are absolute.
///
/// A job cannot undo its mounts. A process outside can: if it renames or removes a covered directory, the job sees the
/// path as it is outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateMount {
    /// The directory `source` is visible at `target`, instead of the files there.
    ///
    /// Sources are opened before the first mount, so a source below a covered directory works. Mounts below `source`
    /// are not visible at `target`. Without root, a source with mounts below it is refused.
    Bind { source: PathBuf, target: PathBuf, read_only: bool },
    /// Writes to `target` go to `changes`. The files of `target` stay unchanged (overlayfs).
    ///
    /// `work` is an empty directory on the same file system as `changes`. The kernel creates a directory without
    /// permissions in it, which stays. Neither of `changes` and `work` may contain the other. No two jobs may use the
    /// same `changes` at the same time. Without root, a target with mounts below it is refused.
    Overlay { target: PathBuf, changes: PathBuf, work: PathBuf },
    /// An empty, read-only directory covers `target`, or `/dev/null` if `target` is a file.
    ///
    /// A target that does not exist, or that the user cannot reach, is skipped.
    Hide { target: PathBuf },
}

/// The reason why a confinement cannot be enforced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfinementError {
    #[error("Landlock does not take its rules")]
    Landlock,
    #[error("a place that it may use can't be opened")]
    Place,
    #[error("capabilities could not be dropped")]
    Capabilities,
    #[error("the filter of system calls was not taken")]
    Filter,
    #[error("the process that sets it up does not answer")]
    Silent,
    #[error("it has more than {MOUNTS_MAX} mounts")]
    TooManyMounts,
    #[error("no mount namespace: {}", io::Error::from_raw_os_error(*errno))]
    Namespace { errno: i32 },
    /// The path is the source or the target of the mount that failed.
    #[error("`{}` can't be mounted: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    Mount { path: PathBuf, errno: i32 },
    #[error("`{}` can't be hidden: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    Hidden { path: PathBuf, errno: i32 },
    #[error(
        "`{}` has more than {SIBLINGS_MAX} entries, so no directory below it can be hidden: remove some, or move the \
         project",
        path.display()
    )]
    TooManySiblings { path: PathBuf },
}
