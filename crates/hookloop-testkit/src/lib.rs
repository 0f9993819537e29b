//! Shared parts of the tests. Only tests, benchmarks and fault campaigns depend on this crate.
//!
//! - [`project`]: a temporary project with its own home, and programs that run in it
//! - [`log`]: the log, the tasks and the stored state of a test project
//! - [`output`]: the results of programs that tests run
//! - [`task_scripts`]: an agent that runs a shell script for each turn on a task
//! - [`git`]: git, run by a test as a person runs it
//! - [`waiting`]: polls until something holds, within a limit
//! - [`random`]: random numbers that a seed repeats
//!
//! Real servers for tests are in `testbed/`, below this crate: it knows nothing of hookloop.

pub mod git;
pub mod log;
pub mod output;
pub mod project;
pub mod random;
pub mod task_scripts;
pub mod waiting;

pub use git::{git_output, run_git};
pub use log::SavedState;
pub use output::{ProgramOutput, RefusedCommand, SessionOutput, json_lines};
pub use project::{SCRIPTED_AGENT, TestProject, TestProjectBuilder};
pub use random::SeededRandom;
pub use task_scripts::TaskScripts;
pub use waiting::eventually;
