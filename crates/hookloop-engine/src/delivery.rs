//! How finished work gets into the branch that it is for.
//!
//! - [`repo`]: the repository: a worktree for each task, merges, and what goes to a remote
//! - [`tests_of`]: which tests a project has

pub mod repo;
pub mod tests_of;
