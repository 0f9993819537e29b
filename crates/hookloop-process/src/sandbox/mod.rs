//! The sandbox of a job: Landlock for files, signals and other processes, a system call filter for the rest.
//!
//! Landlock lists allowed directories and cannot exclude a part of one. Modes, owners and times of files are beyond
//! it, so a job can change those wherever its user can. Reading files and running programs is not limited.

mod confinement;
#[cfg(target_os = "linux")]
mod landlock;
mod support;
#[cfg(target_os = "linux")]
mod syscalls;

pub use confinement::{Confinement, ConfinementError};
#[cfg(target_os = "linux")]
pub(crate) use landlock::enforce;
pub use support::SandboxSupport;

/// Returns an error: this system has no sandbox.
#[cfg(not(target_os = "linux"))]
pub(crate) fn enforce(_: &Confinement) -> Result<(), ConfinementError> {
    Err(ConfinementError::Landlock)
}
