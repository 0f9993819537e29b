//! A job: the command to run, and its result.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cancel::Cancel;
use crate::error::ProcessError;
use crate::limits::{ExceededLimit, ResourceLimits};
use crate::output::{JobObserver, JobOutputs, OutputFilter, OutputStream};
use crate::sandbox::Confinement;
use crate::timing::KILL_GRACE;

/// A command to run.
pub struct Job<'a> {
    /// The program and its arguments. A name without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// The whole environment: the job inherits no variable.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// The input of the job, after which its stdin ends.
    pub stdin: Vec<u8>,
    /// A pipe that replaces `stdin`, for input that is written while the job runs.
    pub stdin_from: Option<OwnedFd>,
    pub timeout: Duration,
    /// Time to end by itself after the timeout or a cancellation, at most [`KILL_GRACE`].
    pub grace: Duration,
    pub cancel: Option<&'a Cancel>,
    /// A directory for the files `stdout` and `stderr`. Each is created when its stream has output.
    pub artifacts: Option<PathBuf>,
    /// Creates the filter that a stream passes before any of it is stored.
    pub filter: Option<&'a dyn Fn(OutputStream) -> OutputFilter<'a>>,
    /// The sandbox of the job's processes.
    pub confinement: Option<Confinement>,
    pub limits: ResourceLimits,
    /// A locked file that the keeper holds open until every process of the job has ended.
    ///
    /// The lock outlives this program for as long as the job does. The job's processes do not
    /// inherit it.
    pub hold: Option<BorrowedFd<'a>>,
    /// Gets the progress of the job. It is dropped when the job ends.
    pub observer: Option<Arc<dyn JobObserver>>,
}

impl Job<'_> {
    /// Creates a job with no environment, no input, no limits of its own, and the default grace.
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
            limits: ResourceLimits::default(),
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

/// Supplies jobs that run one after another.
pub trait JobSource<'a> {
    /// Returns the next job, while the one before runs.
    ///
    /// Returns `None` if there is no other job, or if the next one depends on the result of one that runs.
    fn next(&mut self) -> Option<Job<'a>>;
    /// Takes the result of the earliest job that has none yet.
    fn done(&mut self, result: Result<JobResult, ProcessError>);
}

/// The result of a job that ran.
#[derive(Debug)]
pub struct JobResult {
    pub exit: ExitReason,
    /// Time from the start to the end of the job's first process.
    pub duration: Duration,
    /// `None` if the first process survived the kill, or was cancelled before its start.
    pub usage: Option<ResourceUsage>,
    /// Number of processes that outlived the first one and were killed.
    pub leftovers_killed: u64,
    /// Ids of processes that could not be killed.
    pub survivors: Vec<u32>,
    pub output: JobOutputs,
}

/// The reason why a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Cancelled,
    /// The job exceeded a limit and was killed.
    OverLimit(ExceededLimit),
}

/// Resources that the first process used, with the descendants that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    pub user: Duration,
    pub system: Duration,
    pub max_rss_bytes: u64,
}
