//! Works with the git repository of a project, and with the forge that hosts it.
//!
//! This crate does not know sessions. It never runs a program that a repository's configuration names. The modules:
//!
//! - [`git`]: git commands with limits on time and output
//! - [`repo`]: worktrees, commits, rebases, merges and the private repository
//! - [`snapshot`]: trees of all files of a working directory, kept for as long as they are needed
//! - [`room`]: checkouts of trees in which gates run
//! - [`lfs`]: pointers to large files
//! - [`forge`]: services that merge requests
//! - [`step_error`]: why a step of a delivery failed
//! - [`files`]: one digest of the project's files, and the files that changed
//! - [`excerpt`]: output as text for people and prompts

pub mod excerpt;
pub mod files;
pub mod forge;
pub mod git;
pub mod lfs;
pub mod repo;
pub mod room;
pub mod snapshot;
pub mod step_error;
