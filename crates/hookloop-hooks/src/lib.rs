//! Hooks: which of them may run, what they run with, and what their output means.
//!
//! - [`exec_context`]: directories, environment, keepers and secrets of a project's processes
//! - [`trust`], [`frozen_hooks`], [`scripts`]: the hooks that a person agreed to
//! - [`hook_context`]: what a hook runs for; [`runner`], [`turns`]: running one hook, and all of a point
//! - [`hook_run`], [`record`]: the result of a hook; [`rule_check`]: rules that need no process
//! - [`sandbox`], [`secrets`], [`artifacts`], [`webhook`], [`resource_limits`]: parts of a run
//! - [`test_detection`], [`environment`]: the tests of a project, and why a command cannot run here
//! - [`ancestry`]: the projects of the keepers above this process; [`explain`]: values of conditions

pub mod ancestry;
pub mod artifacts;
pub mod environment;
pub mod exec_context;
pub mod explain;
pub mod frozen_hooks;
pub mod hook_context;
pub mod hook_run;
pub mod record;
pub mod resource_limits;
pub mod rule_check;
pub mod runner;
pub mod sandbox;
pub mod scripts;
pub mod secrets;
pub mod test_detection;
pub mod trust;
pub mod turns;
pub mod webhook;
