//! How finished work gets into the branch that it is for.
//!
//! - `steps`: the built-in hooks of delivery: each looks, does, and looks again
//! - `review`: gatekeepers, asked
//! - [`worktrees`]: which there are, and which may go
//! - [`train`]: submitted tasks, merged one after the other

pub(crate) mod review;
pub mod steps;
pub mod train;
pub mod worktrees;
