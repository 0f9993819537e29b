//! Delivery: from a finished task to a commit on the target branch.
//!
//! - [`step_outcome`]: results of the built-in hooks
//! - [`review`]: reviews by gatekeepers
//! - `review_turn`: the session of one turn in which a gatekeeper reviews
//! - `expectation_review`: reviews of changed tests
//! - [`train`]: the merge train, which merges submitted tasks one after the other
//! - [`steps`]: the built-in hooks; each checks whether its work is done before and after it acts
//! - [`worktrees`]: the worktrees of a project, and those that can be removed

pub(crate) mod expectation_review;
mod request_body;
pub(crate) mod review;
mod review_turn;
pub mod step_outcome;
pub mod steps;
pub mod train;
pub mod worktrees;
