//! The data of events: one type for each type of event, without behaviour beyond reading and printing them.
//!
//! [`crate::event::EventBody`] lists the types. Modules that fold events into a state use the list.
//!
//! - [`task`]: tasks and the edges between them
//! - [`delivery`]: submissions, reviews and merges
//! - [`hook_run`]: hooks, their failures, and trust in them
//! - [`plan`]: the parameters of a session
//! - [`session_limits`]: the limits of a session
//! - [`turn`]: turns of an agent
//! - [`piped`]: texts that wait for a prompt
//! - [`base_tests`]: tests of the base that ran against the work
//! - [`evidence`]: rooms and checks of gates
//! - [`strength`]: the strength of the tests of a gate
//! - [`verdict`]: receipts, and the verdicts of stop conditions and gates
//! - [`session`]: the course of a session
//! - [`inbox`]: dismissed problems, and messages to people
//! - [`log`]: events about the log itself

pub mod base_tests;
pub mod delivery;
pub mod evidence;
pub mod hook_run;
pub mod inbox;
pub mod log;
pub mod piped;
pub mod plan;
pub mod session;
pub mod session_limits;
pub mod strength;
pub mod task;
pub mod turn;
pub mod verdict;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The data of an event that needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoData {}
