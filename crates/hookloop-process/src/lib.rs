//! Runs a hook's process so that nothing it starts outlives it.
//!
//! Between this program and a hook stands a **keeper**, a small process of its own: the same executable,
//! started as `hookloop __keeper`. Whatever a hook leaves behind becomes the keeper's child, also what
//! forked twice into a session of its own, and a keeper has one hook at a time. So everything that it
//! finds among its descendants belongs to that hook, and ends with it: at the hook's end, at its timeout,
//! or when this program dies, however it dies.
//!
//! - `ancestry`: the processes above this one, and whether a keeper is among them
//! - `at_work`: whether a git process is at work in a repository
//! - `keeper`: this program's side: [`Keeper`], which runs one [`Job`] after the other
//! - `pool`: [`KeeperPool`], several jobs at the same time
//! - `course`: a job from its start to its end: input, output, the keeper's word
//! - `keep`: the keeper's side
//! - `step`: what starts a hook that is confined; `confine`, `enforce` and `syscalls`: what confines it
//! - `watch`: what a hook uses of the machine, and what is too much
//! - `descendants`: who a process started, and who is in a session; `os`: what each system knows of that
//! - `care`: what this side does for a keeper that was stopped, or has no turn
//! - `orphans`: what a keeper that was killed left behind
//! - `cgroup`: a cgroup for each keeper, where the system lets us have one
//! - `wire`: what the two sides say to each other
//! - `program`: the file that a command names, and why it did not start
//! - `capture`: what is kept of output; `excerpt`: how it is shown
//! - `cancel`: ending a job from elsewhere
//!
//! What this can't end: a process that runs as another user (`sudo`), unless there is a cgroup, and one that the
//! kernel does not let go of. Both are told as survivors. If a keeper is killed or stopped, this side ends what
//! it kept; only when program and keeper are killed (not asked to end) in one moment does a hook live on: where
//! there is a cgroup, until the next keeper is started. Keepers need `/proc` on Linux; without it they end at once, and
//! no hook is run.
//!
//! Elsewhere than on Linux, nobody adopts orphans but the first process. There, a hook's processes are marked by a
//! variable and found by that (`os`): one without environment and parents is not, nor surely one that is another
//! process every moment.

mod ancestry;
mod at_work;
mod cancel;
mod capture;
#[cfg(target_os = "linux")]
mod cgroup;
#[path = "sandbox/support.rs"]
mod confine;
mod confined_exec;
mod descendants;
#[cfg(target_os = "linux")]
#[path = "sandbox/landlock.rs"]
mod enforce;
pub mod excerpt;
mod keeper;
mod keeper_main;
#[cfg(not(target_os = "linux"))]
mod no_cgroup;
mod orphans;
mod os;
mod pool;
mod program;
mod running_job;
#[cfg(target_os = "linux")]
#[path = "sandbox/syscalls.rs"]
mod syscalls;
mod usage_watch;
mod watchdog;
mod wire;

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hookloop_core::limits::{Limit, Limits};

pub use ancestry::{
    Ancestry, HiddenAncestry, KeeperOwner, ProcessIdentity, agent_above, ancestry, is_kept,
};
pub use at_work::{GitLocks, is_git_at_work};
pub use cancel::{Cancel, Linked};
pub use capture::{Filter, HEAD, OUTPUT_MAX, Output, Stored, TAIL};
pub use cgroup::home as cgroup_home;
pub use confine::{Confinement, Support, Unconfined};
pub use confined_exec::{STEP_ARGUMENT, confine};
pub use keeper::{KEEPER_ARGUMENT, Keeper, Turns};
pub use keeper_main::{LEFTOVER_GRACE, keep};
#[cfg(not(target_os = "linux"))]
use no_cgroup as cgroup;
pub use orphans::while_nothing_starts;
pub use pool::{KeeperPool, PARALLEL_MAX};

/// Between the request to end and the kill.
pub const KILL_GRACE: Duration = Duration::from_secs(1);
/// Killed processes are gone by then, or are told as survivors.
pub const KILL_LIMIT: Duration = Duration::from_secs(2);
/// Between two looks at whether killed processes are gone.
const KILL_PAUSE: Duration = Duration::from_millis(1);
/// The longest timeout; longer ones are taken as this.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// One process to run.
pub struct Job<'a> {
    /// The program and its arguments. A name without a slash is looked for in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// What the process can read; then its input ends.
    pub stdin: Vec<u8>,
    /// What it reads instead: a pipe that somebody writes to while it runs.
    pub stdin_from: Option<OwnedFd>,
    pub timeout: Duration,
    /// What it has after the timeout, or after being cancelled, to end by itself: [`KILL_GRACE`] at most.
    pub grace: Duration,
    pub cancel: Option<&'a Cancel>,
    /// A directory for the files `stdout` and `stderr`, each made when there is something to write.
    pub artifacts: Option<PathBuf>,
    /// Makes the filter that a stream passes before any of it is kept.
    pub filter: Option<&'a dyn Fn(Stream) -> Filter<'a>>,
    /// What its processes are kept from.
    pub confinement: Option<Confinement>,
    pub limits: Limits,
    /// A locked file that the keeper has open until everything that the job started is gone: the lock outlives this
    /// program for as long as the job does. The job's processes do not have it.
    pub hold: Option<BorrowedFd<'a>>,
    /// Is told how the job goes on. It is dropped when the job is over.
    pub observer: Option<Arc<dyn JobObserver>>,
}

/// Is told how a job goes on, by the thread that runs it. It must not wait for anything.
pub trait JobObserver: Send + Sync {
    /// The job has its turn now.
    fn began(&self);
    /// The job printed this on one of its streams, as its filter lets it through.
    fn printed(&self, text: &[u8]);
}

impl Job<'_> {
    /// A job with no environment, no input, and the usual grace.
    pub fn new(argv: Vec<OsString>, cwd: PathBuf, timeout: Duration) -> Self {
        Job {
            argv,
            env: Vec::new(),
            cwd,
            stdin: Vec::new(),
            stdin_from: None,
            timeout,
            grace: KILL_GRACE,
            cancel: None,
            artifacts: None,
            filter: None,
            confinement: None,
            limits: Limits::default(),
            hold: None,
            observer: None,
        }
    }
}

impl std::fmt::Debug for Job<'_> {
    /// Names the program only: arguments, environment and input may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("program", &self.argv.first()).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A job that ran, whatever came of it.
#[derive(Debug)]
pub struct Ran {
    pub how: How,
    /// From the start to the end of the job's first process.
    pub duration: Duration,
    /// None if the first process could not be made to end, or was cancelled before it was started.
    pub usage: Option<Usage>,
    /// Processes that outlived the first one and were killed.
    pub leftovers_killed: u64,
    /// Processes that nothing could end, by their ids.
    pub survivors: Vec<u32>,
    pub output: Outputs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Cancelled,
    /// It was ended for what it used.
    OverLimit(Limit),
}

/// What the first process used, with those it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    pub max_rss_bytes: u64,
}

#[derive(Debug, Default)]
pub struct Outputs {
    pub stdout: Output,
    pub stderr: Output,
    /// Both streams in the order in which they were read. Nothing of it is stored.
    pub both: Output,
    /// How long the job had printed nothing when it ended.
    pub quiet_for: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("`{}` could not be started: {why}", program.display())]
    NotStarted { program: PathBuf, errno: i32, why: WhyNotStarted },
    #[error("it was not run, because its sandbox could not be set up: {why}")]
    NotConfined { why: Unconfined },
    /// Whether the hook did its work is not known.
    #[error("the keeper of a hook's processes ended before the hook did")]
    KeeperLost { output: Box<Outputs> },
    #[error("{doing}")]
    Io { doing: &'static str, source: std::io::Error },
}

/// Why a program did not start, so that one can do something about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhyNotStarted {
    #[error("no program is named")]
    Unnamed,
    #[error("there is no such file")]
    NotFound,
    #[error("there is no program of that name in PATH ({path})")]
    NotInPath { path: String },
    #[error("the file is not executable (chmod +x makes it so)")]
    NotExecutable,
    #[error("its first line asks for `{interpreter}`, which can't be run")]
    BadInterpreter { interpreter: String },
    #[error("the file is neither a program nor a script that begins with #!")]
    NotAProgram,
    #[error("its directory `{}` does not exist or can't be entered", .0.display())]
    BadDirectory(PathBuf),
    #[error("an argument or a variable holds a zero byte, which no process can be given")]
    ZeroByte,
    #[error("arguments and environment are larger than the system takes")]
    TooLarge,
    #[error("{0}")]
    Other(String),
}

impl ProcessError {
    fn io(doing: &'static str) -> impl Fn(rustix::io::Errno) -> ProcessError {
        move |errno| ProcessError::Io { doing, source: errno.into() }
    }
}
