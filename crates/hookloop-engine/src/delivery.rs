//! How finished work gets into the branch that it is for.
//!
//! - [`repo`]: the repository: a worktree for each task, merges, and what goes to a remote
//! - `workshop`: the repository and the forge of a project, ready to be worked with
//! - `steps`: the built-in hooks of delivery: each looks, does, and looks again
//! - `protected`: files that only a person lets work change
//! - `review`: gatekeepers, asked
//! - [`worktrees`]: which there are, and which may go
//! - [`train`]: submitted tasks, merged one after the other

pub(crate) mod protected;
pub mod repo;
pub(crate) mod review;
pub(crate) mod steps;
pub mod tests_of;
pub mod train;
pub(crate) mod workshop;
pub mod worktrees;
