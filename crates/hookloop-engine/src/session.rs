//! Sessions: the loop of turns and gates.
//!
//! [`hookloop_core::session`] decides the next step. This module performs the step and stores its
//! result.
//!
//! The directory and the life of a session:
//!
//! - [`session_directory`]: lock and files of a session
//! - [`session_clock`]: the time that a session has run
//! - [`checkout`]: the directory that a session changes: one session at a time, or a worktree of
//!   its own
//! - [`start_checks`], [`start_error`]: checks of hooks and gates before a start, and the errors of
//!   a start
//! - [`open`]: starting a session
//! - [`resume`]: resuming or reopening a session
//! - [`abandoned`]: sessions whose process died
//! - [`lookup`]: finding a session
//! - [`control`]: stop, pause and messages
//!
//! The steps:
//!
//! - [`journal`]: a session's events, stored before any effect outside
//! - [`drive`]: the loop over the steps
//! - [`turn_steps`], [`task_steps`]: the steps of turns and of tasks
//! - [`point`]: the hooks of a point
//! - [`prompt_items`]: items for the next prompt
//! - [`gates`], [`gate_run`], [`gate_results`], [`check_records`]: stop conditions, gates and receipts, and their results
//! - [`room_entry`], [`session_room`], [`proven`]: the room in which gates run, and gates that need not run again
//! - [`rooms`]: the list and the removal of rooms, and a shell in a room
//! - [`base_plan`], `base_tests`, `base_world`: the tests of the base against the work
//! - `strength`, `strength_plan`, `strength_world`: the strength of tests, measured by mutation engines
//! - `surroundings`: files outside of the project that gates use
//! - `source_signs`: signs in sources that they are written for the tests
//! - `unproven_tests`: changed tests of sessions that proved nothing
//! - [`room_trial`]: one run of a gate in a room, before there is a session
//! - [`submit`]: from work that the gates have passed to a submission
//! - [`turn_budget`], [`allowance`]: the budget of a turn
//! - [`place`], [`place_damage`]: checks and repair of the working directory
//! - [`file_changes`]: changes of files
//!
//! The world outside:
//!
//! - [`world`]: hooks, the agent, files and time as a trait
//! - [`live_world`]: the implementation of the world
//! - [`agent_turn`]: one turn
//! - [`prompt`], [`prompt_template`]: the text of a prompt, and its template
//! - [`spec_file`]: the specification of a session
//! - [`hook_drift`]: hooks that changed since the start
//! - [`stop_switch`], [`deadline`]: ending a session from outside or by time
//! - [`observer`], [`now`], [`live_transcript`]: the session as other processes and people see it

pub mod abandoned;
pub(crate) mod agent_turn;
pub mod allowance;
pub(crate) mod base_plan;
mod base_tests;
mod base_world;
mod check_records;
pub mod checkout;
pub mod checkout_holder;
pub mod control;
mod deadline;
pub mod drive;
mod failing_checks;
mod file_changes;
mod gate_results;
mod gate_run;
mod gates;
pub(crate) mod hook_drift;
pub(crate) mod journal;
mod live_guard;
pub mod live_transcript;
pub mod live_world;
pub mod lookup;
pub mod now;
pub mod observer;
pub mod open;
mod place;
pub mod place_damage;
pub(crate) mod point;
pub mod prompt;
mod prompt_items;
pub mod prompt_template;
mod proven;
pub mod resume;
pub(crate) mod room_entry;
mod room_leak;
pub mod room_trial;
pub mod rooms;
pub(crate) mod session_clock;
pub mod session_directory;
mod session_room;
mod source_signs;
pub(crate) mod spec_file;
pub mod start_checks;
pub mod start_error;
pub mod stop_switch;
mod strength;
mod strength_plan;
mod strength_world;
mod submit;
mod surroundings;
pub(crate) mod task_steps;
mod turn_budget;
pub mod turn_files;
mod turn_steps;
pub mod undo;
mod unproven_tests;
pub mod world;

pub use allowance::TurnAllowance;
pub use drive::SessionDriver;
pub use open::{SessionHandle, SessionRequest};
pub use start_error::StartError;
pub use world::{SessionUpdate, SessionWorld};
