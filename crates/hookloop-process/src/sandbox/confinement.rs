//! A sandbox as a caller describes it.

use std::path::PathBuf;

/// Restrictions on the processes of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    pub no_network: bool,
    /// The only places where they may write, as absolute paths. `None` allows all.
    pub write: Option<Vec<PathBuf>>,
}

/// The reason why a confinement cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfinementError {
    #[error("Landlock does not take its rules")]
    Landlock,
    #[error("a place that it may write to can't be opened")]
    Place,
    #[error("capabilities could not be dropped")]
    Capabilities,
    #[error("the filter of system calls was not taken")]
    Filter,
    #[error("the process that sets it up does not answer")]
    Silent,
}
