//! The git repository of a project.
//!
//! - [`git`]: git commands with limits; [`repo`]: worktrees, commits, merges, the private repository
//! - [`forge`]: services that merge requests; [`step_error`]: why a step of a delivery failed
//! - [`files`]: the files of the project; [`excerpt`]: output as text

pub mod excerpt;
pub mod files;
pub mod forge;
pub mod git;
pub mod repo;
pub mod step_error;
