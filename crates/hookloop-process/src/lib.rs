//! Runs a command so that no process it starts outlives it.
//!
//! A **keeper** stands between your program and each command (a [`Job`]). The keeper is a small process: your own
//! executable, started again with [`KEEPER_ARGUMENT`]. Orphaned descendants of the job become children of the keeper,
//! even after a double fork into a session of their own. A keeper runs one job at a time, so every process below it
//! belongs to that job. The keeper ends them all when the job ends, when its timeout passes, and when your program
//! dies.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use std::time::Duration;
//!
//! use hookloop_process::{Job, KEEPER_ARGUMENT, Keeper, keeper_main};
//!
//! fn main() -> ExitCode {
//!     // First of all: the keeper is this executable, started with this argument.
//!     if std::env::args_os().nth(1).is_some_and(|argument| argument == KEEPER_ARGUMENT) {
//!         return keeper_main();
//!     }
//!     let argv = ["sh", "-c", "sleep 600 & exit 0"].map(Into::into).to_vec();
//!     let mut job = Job::new(argv, "/".into(), Duration::from_secs(10));
//!     job.env.push(("PATH".into(), "/usr/bin:/bin".into()));
//!     match Keeper::of_this_program().run(job) {
//!         // The `sleep` in the background is gone by now: `leftovers_killed` is 1.
//!         Ok(result) if result.leftovers_killed == 1 => ExitCode::SUCCESS,
//!         _ => ExitCode::FAILURE,
//!     }
//! }
//! ```
//!
//! Running jobs:
//!
//! - [`Job`], [`JobResult`]: the command to run, and its result
//! - [`Keeper`]: runs one job after another; [`KeeperPool`]: runs jobs at the same time
//! - [`JobSource`]: a sequence of jobs without a gap between them
//! - [`Cancel`]: ends jobs from another thread or from a signal handler
//! - [`ResourceLimits`]: limits on processes, memory and disk writes of a job
//! - [`Confinement`]: a sandbox for a job; [`SandboxSupport`]: the parts of it that this system enforces
//! - [`PrivateMount`]: a mount that only one job sees; [`MountSupport`]: the mounts that this system supports
//! - [`run_attached`]: a job on this program's own terminal, without a keeper
//! - [`ancestry()`]: the processes above this one, and the keepers among them
//! - [`inspect`]: environment, arguments and working directory of other processes
//!
//! Files and programs, for programs that run others:
//!
//! - [`find_program`]: looks a program up in a `PATH`
//! - [`lock_file`]: opens a file and locks it
//! - [`write_whole`]: writes a file whole or not at all
//!
//! # Limits
//!
//! A keeper cannot end these processes. It reports them as [`JobResult::survivors`]:
//!
//! - a process of another user (`sudo`), unless the keeper has a cgroup
//! - a process that the kernel does not let go of
//!
//! If a keeper is killed or stopped, this side ends the keeper's job. A job lives on only if your program and the
//! keeper are both killed with SIGKILL at the same moment. Where there is a cgroup, it then lives until the next
//! keeper starts.
//!
//! Keepers need `/proc` on Linux. Without `/proc` they exit at once and run no job.
//!
//! On other systems a process cannot adopt orphans. There, keepers mark the processes of a job with an environment
//! variable and search all processes for it. They miss a process that has neither the variable nor a parent in the
//! job, and can miss one that forks and exits without pause.

mod ancestry;
mod attached_job;
mod cancel;
mod capture;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(not(target_os = "linux"))]
#[path = "no_cgroup.rs"]
mod cgroup;
mod confined_exec;
mod descendants;
mod error;
pub mod inspect;
mod job;
mod job_command;
mod keeper;
mod keeper_main;
mod limits;
mod lock_file;
mod mount_support;
mod orphans;
mod os;
mod output;
mod pool;
mod program;
mod running_job;
mod sandbox;
mod supervised_job;
mod timing;
mod usage_watch;
mod watchdog;
mod wire;
mod write_whole;

pub use ancestry::{Ancestry, HiddenAncestry, KeeperAncestor, ProcessIdentity, ancestry};
pub use attached_job::run_attached;
pub use cancel::{Cancel, LinkedCancel};
pub use cgroup::home as cgroup_home;
pub use confined_exec::{CONFINED_ARGUMENT, confined_exec};
pub use error::{ProcessError, WhyNotStarted};
pub use job::{ExitReason, Job, JobResult, JobSource, ResourceUsage};
pub use keeper::{KEEPER_ARGUMENT, Keeper};
pub use keeper_main::keeper_main;
pub use limits::{ExceededLimit, ResourceLimits};
pub use lock_file::{lock_file, try_lock_file};
pub use orphans::while_no_process_starts;
pub use output::{
    HEAD_MAX, JobObserver, JobOutputs, OUTPUT_MAX, OutputFilter, OutputStream, StoredOutput,
    StreamOutput, TAIL_MAX,
};
pub use pool::{KeeperPool, PARALLEL_MAX};
pub use program::{find_program, is_program};
pub use sandbox::{
    Confinement, ConfinementError, MOUNTS_MAX, MountSupport, PrivateMount, SIBLINGS_MAX,
    SandboxSupport,
};
pub use timing::KILL_GRACE;
pub use write_whole::{WriteOptions, write_whole};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
