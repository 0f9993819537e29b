//! The sandbox of a job: Landlock for files, signals and other processes, a system call filter for the rest.
//!
//! Private mounts change the files that a job sees. They are made first, because Landlock and the filter refuse them.
//!
//! Landlock lists allowed directories and cannot exclude a part of one. Modes, owners and times of files are beyond
//! it, so a job can change those wherever its user can. Reading files and running programs is limited only by hidden
//! directories.

mod confinement;
#[cfg(target_os = "linux")]
mod hidden;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod probe;
mod support;
#[cfg(target_os = "linux")]
mod syscalls;

pub use confinement::{Confinement, ConfinementError, MOUNTS_MAX, PrivateMount, SIBLINGS_MAX};
#[cfg(target_os = "linux")]
pub(crate) use landlock::enforce;
#[cfg(target_os = "linux")]
pub(crate) use probe::try_mounts;
pub use support::{MountSupport, SandboxSupport};

/// Returns an error: this system has no sandbox.
#[cfg(not(target_os = "linux"))]
pub(crate) fn enforce(_: &Confinement) -> Result<(), ConfinementError> {
    Err(ConfinementError::Landlock)
}

/// Returns no support: this system has no private mounts.
#[cfg(not(target_os = "linux"))]
pub(crate) fn try_mounts(_: &std::path::Path) -> MountSupport {
    MountSupport::default()
}
