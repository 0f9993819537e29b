//! Runs hooks: decides whether a hook may run, prepares its process, and reads its result.
//!
//! This crate knows neither sessions nor deliveries, and never prints. The modules, from bottom to
//! top:
//!
//! - [`ancestry`]: the projects of the keepers above this process
//! - [`scripts`], [`trust`], [`frozen_hooks`]: the files that a command runs, trusted hooks, and
//!   the hooks of a session
//! - [`secrets`], [`artifacts`], [`sandbox`], [`resource_limits`], [`webhook`]: parts of a run
//! - [`gate_room`], [`gate_report`]: the directory in which gates run, and the reports that they write
//! - [`rule_check`]: validation rules that need no process
//! - [`test_detection`], [`environment`]: the tests of a project, and why a command cannot run here
//! - [`room_setup`]: the commands that install packages in a clean room
//! - [`exec_context`]: directories, environment, keepers and secrets of a project's processes
//! - [`hook_context`], [`hook_run`], [`hook_outcome`]: the input of a hook, its result, and its record
//! - [`runner`], [`hook_sequence`]: runs one hook, and all hooks of a hook point
//! - [`explain`]: the values of conditions

pub mod ancestry;
pub mod artifacts;
pub mod environment;
pub mod exec_context;
pub mod explain;
pub mod frozen_hooks;
pub mod gate_report;
pub mod gate_room;
pub mod hook_context;
pub mod hook_outcome;
pub mod hook_run;
pub mod hook_sequence;
mod hook_values;
mod report_request;
pub mod resource_limits;
pub mod room_setup;
pub mod rule_check;
pub mod runner;
pub mod sandbox;
pub mod scripts;
pub mod secrets;
pub mod test_detection;
pub mod trust;
pub mod webhook;
