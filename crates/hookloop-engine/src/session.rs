//! Sessions: the loop, performed.
//!
//! The machine is [`hookloop_core::session`]; here its steps are done and what came of them is stored.
//!
//! - [`open`]: starting a session, resuming one, and what is left of those whose program died
//! - [`checkout`]: the directory that a session changes: one session at a time, or a worktree of its own
//! - `journal`: a session's events, stored before anything outside is done
//! - [`drive`]: one step after the other
//! - [`now`]: the step that a session is at, for other processes
//! - `point`: the hooks of a point, and what of their output is for the agent
//! - `judge`: whether an iteration was the last one: ways to stop, gates, receipts
//! - `submit`: from work that the gates have passed to a submission
//! - `validate`: rules that need no process
//! - `purse`: what a turn may use of the project's purse
//! - [`perform`]: all of it, to its end
//! - [`prompt`]: what the agent is told
//! - [`said`]: what the agent says, for who looks on from another process
//! - [`world`]: what there is outside: hooks, the agent, files, time; [`real`]: as it is

pub mod checkout;
pub mod drive;
pub(crate) mod journal;
mod judge;
pub mod now;
pub mod open;
mod place;
pub(crate) mod point;
pub mod prompt;
mod purse;
pub mod real;
pub mod said;
mod submit;
pub mod world;

pub use drive::Driver;
pub use open::{Opened, StartError, Wish};
pub use purse::Allowance;
pub use world::{Notice, World};
