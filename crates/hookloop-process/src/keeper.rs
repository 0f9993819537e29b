//! The program's side of a keeper: starts the keeper, sends it one job after another, and replaces a lost one.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;
use tracing::warn;

use crate::cancel::Cancel;
use crate::cgroup::KeeperCgroup;
use crate::descendants::{self, MARK};
use crate::error::ProcessError;
use crate::job::{ExitReason, Job, JobResult, JobSource};
use crate::orphans::{self, KeeperRegistration};
use crate::output::JobOutputs;
use crate::running_job::{JobEnd, READ_SIZE, RunningJob};
use crate::sandbox::{ConfinementError, MOUNTS_MAX};
use crate::timing::{KILL_GRACE, KILL_LIMIT, KILL_LIMIT_OF_STORM, LEFTOVER_GRACE, TIMEOUT_MAX};
use crate::wire::{self, EndReport, JobOrder, ORDER_MAX};
use crate::{os, program};

/// The first argument of a keeper. A program that gets it calls [`keeper_main`](crate::keeper_main()).
pub const KEEPER_ARGUMENT: &str = "__keeper";
/// `argv[0]` of a keeper.
const KEEPER_NAME: &str = "hookloop";
/// The longest time to send an order. A keeper that takes longer counts as lost.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// Delay of a report after which a keeper counts as lost.
const LATE_MAX: Duration = Duration::from_secs(5);
/// Time for a keeper to end by itself before it is killed.
const END_LIMIT: Duration = Duration::from_secs(3);
/// Number of keepers that are tried for one job: the present one, and a new one if that has ended.
const KEEPERS_TRIED: usize = 2;

/// Runs one job after another. No process that a job starts outlives the job.
#[derive(Debug)]
pub struct Keeper {
    settings: KeeperSettings,
    process: Option<KeeperProcess>,
    buffer: Vec<u8>,
    /// The number of the last order.
    number: u64,
}

/// Settings with which keepers are started.
#[derive(Clone, Debug)]
pub(crate) struct KeeperSettings {
    /// `None` for this program.
    pub(crate) executable: Option<PathBuf>,
    /// Whether the processes of jobs are marked, so that orphans are found.
    marks: bool,
    /// The environment of the keeper itself.
    environment: Vec<(OsString, OsString)>,
}

impl KeeperSettings {
    pub(crate) fn new(executable: Option<PathBuf>) -> KeeperSettings {
        KeeperSettings { executable, marks: !os::ADOPTS, environment: Vec::new() }
    }

    pub(crate) fn marking(self) -> KeeperSettings {
        KeeperSettings { marks: true, ..self }
    }

    pub(crate) fn with_environment(self, environment: Vec<(OsString, OsString)>) -> Self {
        KeeperSettings { environment, ..self }
    }
}

/// A job that was sent to the keeper, or its result without that.
enum BegunJob<'a> {
    Sent {
        order: JobOrder,
        running: Box<RunningJob<'a>>,
        /// The number of the keeper that has it.
        keeper: u64,
    },
    /// The keeper has ended without accepting the job.
    NotAccepted {
        order: JobOrder,
        job: Box<Job<'a>>,
    },
    Over(Result<JobResult, ProcessError>),
}

impl Keeper {
    /// Creates a keeper that runs this program.
    ///
    /// The program must call [`keeper_main`](crate::keeper_main()) when its first argument is
    /// [`KEEPER_ARGUMENT`], and [`confined_exec`](crate::confined_exec()) when it is
    /// [`CONFINED_ARGUMENT`](crate::CONFINED_ARGUMENT).
    pub fn of_this_program() -> Keeper {
        Keeper::with(KeeperSettings::new(None))
    }

    /// Creates a keeper that runs the program at `executable`.
    pub fn new(executable: PathBuf) -> Keeper {
        Keeper::with(KeeperSettings::new(Some(executable)))
    }

    pub(crate) fn with(settings: KeeperSettings) -> Keeper {
        Keeper { settings, process: None, buffer: Vec::new(), number: 0 }
    }

    /// Makes the keeper mark its jobs, as on systems where a process cannot adopt orphans.
    #[must_use]
    pub fn marking(self) -> Keeper {
        Keeper { settings: self.settings.clone().marking(), ..self }
    }

    /// Sets the environment of the keeper itself, which is empty otherwise.
    ///
    /// Processes of a job can read it ([`KeeperAncestor::variable`](crate::KeeperAncestor::variable)) and cannot
    /// change it.
    #[must_use]
    pub fn with_environment(self, variables: Vec<(OsString, OsString)>) -> Keeper {
        Keeper { settings: self.settings.clone().with_environment(variables), ..self }
    }

    /// Returns the id of the keeper's process, if it is running.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// Starts the process ahead of the first job, which reports an error of the start.
    pub fn get_ready(&mut self) {
        if self.process.is_none() {
            let started = self.start(self.number + 1);
            let started =
                started.inspect_err(|error| warn!(%error, "a keeper does not start ahead"));
            self.process = started.ok();
        }
    }

    fn start(&self, number: u64) -> std::io::Result<KeeperProcess> {
        let executable = match &self.settings.executable {
            Some(executable) => executable.clone(),
            None => os::this_program()?,
        };
        KeeperProcess::start(&executable, &self.settings, number)
    }

    /// Runs a job to its end. A job that was cancelled before is not started.
    pub fn run(&mut self, job: Job<'_>) -> Result<JobResult, ProcessError> {
        let begun = self.begin(job);
        self.end(begun)
    }

    /// Runs jobs one after another.
    ///
    /// The keeper gets the next job before the last one ends, so it does not wait for this program between them.
    pub fn run_sequence<'a>(&mut self, jobs: &mut impl JobSource<'a>) {
        let mut waiting = None;
        loop {
            let begun = match waiting.take() {
                Some(begun) => self.renew(begun),
                None => match jobs.next() {
                    Some(job) => self.begin(job),
                    None => return,
                },
            };
            // Without a running job there is nothing to be ahead of.
            if matches!(begun, BegunJob::Sent { .. }) {
                waiting = jobs.next().map(|job| self.begin(job));
            }
            jobs.done(self.end(begun));
        }
    }

    /// Sends a job to the keeper, which runs it when the one before has ended.
    fn begin<'a>(&mut self, job: Job<'a>) -> BegunJob<'a> {
        if job.cancel.is_some_and(Cancel::is_triggered) {
            return BegunJob::Over(Ok(not_run()));
        }
        match self.prepare(&job).and_then(|order| self.send(order, job)) {
            Ok(begun) => begun,
            Err(error) => BegunJob::Over(Err(error)),
        }
    }

    /// Sends a job again if its keeper has ended.
    fn renew<'a>(&mut self, begun: BegunJob<'a>) -> BegunJob<'a> {
        match begun {
            BegunJob::Sent { order, running, keeper }
                if self.process.as_ref().map(|p| p.number) != Some(keeper) =>
            {
                self.send(order, running.into_job())
                    .unwrap_or_else(|error| BegunJob::Over(Err(error)))
            }
            begun => begun,
        }
    }

    fn prepare(&mut self, job: &Job<'_>) -> Result<JobOrder, ProcessError> {
        let order = order_of(job, self.number + 1)?;
        self.number = order.number;
        Ok(order)
    }

    /// Sends an order to the keeper, or to a new one if there is none.
    fn send<'a>(&mut self, order: JobOrder, job: Job<'a>) -> Result<BegunJob<'a>, ProcessError> {
        let encoded = order.encode();
        if encoded.len() > ORDER_MAX {
            return Err(program::explain(order.program, &order.cwd, Errno::TOOBIG.raw_os_error()));
        }
        let hold = job.hold;
        let (mut running, ends) = RunningJob::new(job, order.number)?;
        let stdio = [ends.stdin.as_fd(), ends.stdout.as_fd(), ends.stderr.as_fd()];
        let process = match &self.process {
            Some(process) => process,
            None => {
                let start = self.start(order.number);
                let doing = "can't start the keeper of a hook's processes";
                self.process.insert(start.map_err(|source| ProcessError::Io { doing, source })?)
            }
        };
        match wire::send_order(process.socket.as_fd(), &encoded, stdio, hold) {
            Ok(()) => {
                running.feed();
                Ok(BegunJob::Sent { order, running: Box::new(running), keeper: process.number })
            }
            Err(_) => Ok(BegunJob::NotAccepted { order, job: Box::new(running.into_job()) }),
        }
    }

    /// Waits for the end of a job. The jobs before it have ended.
    fn end(&mut self, begun: BegunJob<'_>) -> Result<JobResult, ProcessError> {
        let mut begun = begun;
        for tried in 1.. {
            let (order, job) = match begun {
                BegunJob::Over(result) => return result,
                BegunJob::NotAccepted { order, job } => (order, *job),
                BegunJob::Sent { order, running, .. } => match self.wait(&order, *running)? {
                    JobEnd::NotAccepted(job) => (order, job),
                    end => return result(order, end),
                },
            };
            // The lost keeper did not start the job, so another one may.
            self.process = None;
            if tried == KEEPERS_TRIED {
                break;
            }
            begun = self.send(order, job)?;
        }
        Err(ProcessError::KeeperLost { output: Box::default() })
    }

    fn wait<'a>(
        &mut self,
        order: &JobOrder,
        running: RunningJob<'a>,
    ) -> Result<JobEnd<'a>, ProcessError> {
        // Unless it is put back, the keeper is dropped with this call, even by a panic.
        let Some(process) = self.process.take() else {
            return Ok(JobEnd::NotAccepted(running.into_job()));
        };
        let deadline = Instant::now() + order.timeout + order.grace + LEFTOVER_GRACE;
        let deadline = deadline + KILL_LIMIT + KILL_LIMIT_OF_STORM + LATE_MAX;
        self.buffer.resize(READ_SIZE, 0);
        let keeper = (process.socket.as_fd(), Pid::from_child(&process.child));
        let mut end = running.run(keeper, deadline, &mut self.buffer)?;
        match &mut end {
            JobEnd::NotStarted { .. } | JobEnd::NotConfined(_) => self.process = Some(process),
            // A keeper with survivors would count them as the next job's.
            JobEnd::Ended(ended, _) if !ended.survivors.is_empty() => process.end_survivors(ended),
            JobEnd::Ended(..) => self.process = Some(process),
            JobEnd::KeeperLost(_) | JobEnd::NotAccepted(_) => process.lose(),
        }
        Ok(end)
    }
}

/// Returns the order of a job, or the reason why the job cannot start.
pub(crate) fn order_of(job: &Job<'_>, number: u64) -> Result<JobOrder, ProcessError> {
    let cwd = std::path::absolute(&job.cwd)
        .map_err(|source| ProcessError::Io { doing: "can't tell where a hook runs", source })?;
    if job.confinement.as_ref().is_some_and(|confined| confined.mounts.len() > MOUNTS_MAX) {
        return Err(ProcessError::NotConfined { why: ConfinementError::TooManyMounts });
    }
    let program = program::find(job, &cwd)?;
    Ok(JobOrder {
        number,
        program,
        cwd,
        argv: job.argv.clone(),
        env: job.env.clone(),
        timeout: job.timeout.min(TIMEOUT_MAX),
        grace: job.grace.min(KILL_GRACE),
        confinement: job.confinement.clone(),
        limits: job.limits,
    })
}

/// Explains why an order was not started.
pub(crate) fn explain_start(order: JobOrder, errno: i32) -> ProcessError {
    if order.has_mounts() {
        program::explain_in_mounts(order.program, errno)
    } else if errno == Errno::ACCESS.raw_os_error() && order.hides_program() {
        program::explain_hidden(order.program, errno)
    } else {
        program::explain(order.program, &order.cwd, errno)
    }
}

fn result(order: JobOrder, end: JobEnd<'_>) -> Result<JobResult, ProcessError> {
    match end {
        JobEnd::Ended(ended, output) => Ok(JobResult {
            exit: ended.exit,
            duration: ended.duration,
            usage: ended.usage,
            leftovers_killed: ended.leftovers_killed,
            survivors: ended.survivors,
            output,
        }),
        JobEnd::NotStarted { errno } => Err(explain_start(order, errno)),
        JobEnd::NotConfined(why) => Err(ProcessError::NotConfined { why }),
        JobEnd::KeeperLost(output) => Err(ProcessError::KeeperLost { output: Box::new(output) }),
        JobEnd::NotAccepted(_) => Err(ProcessError::KeeperLost { output: Box::default() }),
    }
}

/// Returns 32 random hexadecimal digits.
fn random_mark() -> std::io::Result<OsString> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

fn not_run() -> JobResult {
    JobResult {
        exit: ExitReason::Cancelled,
        duration: Duration::ZERO,
        usage: None,
        leftovers_killed: 0,
        survivors: Vec::new(),
        output: JobOutputs::default(),
    }
}

/// The running process of a keeper.
#[derive(Debug)]
struct KeeperProcess {
    /// The number of its first order. No two keepers have the same.
    number: u64,
    child: Child,
    socket: OwnedFd,
    /// The mark of its jobs' processes.
    mark: Option<OsString>,
    _registered: KeeperRegistration,
    /// The last field, so that it is dropped last: a cgroup with processes cannot be removed.
    cgroup: Option<KeeperCgroup>,
}

impl KeeperProcess {
    fn start(
        executable: &Path,
        settings: &KeeperSettings,
        number: u64,
    ) -> std::io::Result<KeeperProcess> {
        let mark = if settings.marks { Some(random_mark()?) } else { None };
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_write_timeout(Some(SEND_LIMIT))?;
        let mut command = Command::new(executable);
        // Jobs can read the environment of their keeper, so it inherits no variable.
        command.arg0(KEEPER_NAME).arg(KEEPER_ARGUMENT).env_clear();
        command.envs(settings.environment.iter().map(|(name, value)| (name, value)));
        command.envs(mark.iter().map(|mark| (MARK, mark)));
        let cgroup = KeeperCgroup::create();
        let members = cgroup.as_ref().and_then(KeeperCgroup::members_file);
        let members = members.map_or_else(Stdio::null, Stdio::from);
        command.stdin(OwnedFd::from(theirs)).stdout(members).stderr(Stdio::null());
        let (child, registered) =
            orphans::register(mark.is_some(), || command.spawn(), Pid::from_child)?;
        Ok(KeeperProcess {
            number,
            child,
            socket: socket.into(),
            mark,
            _registered: registered,
            cgroup,
        })
    }

    /// Ends a keeper that cannot end its job, and the job.
    fn lose(mut self) {
        // All processes of the cgroup at once, so that none forks out of reach. Then those elsewhere.
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        warn!(pid = self.child.id(), "a keeper does not end its job and is killed");
        // A keeper that has ended already needs no signal.
        let _ = self.child.kill();
        // The children of the keeper become this program's only when it has ended.
        self.wait_for_end();
        orphans::end(Pid::from_child(&self.child), self.mark.as_ref());
    }

    /// Ends processes that the keeper could not, such as those of another user, and updates the report.
    fn end_survivors(self, ended: &mut EndReport) {
        if self.cgroup.is_none() {
            return;
        }
        self.lose();
        let reported = ended.survivors.len();
        let pid = |survivor: u32| Pid::from_raw(survivor.cast_signed());
        ended.survivors.retain(|survivor| pid(*survivor).is_some_and(descendants::is_alive));
        ended.leftovers_killed += (reported - ended.survivors.len()) as u64;
    }

    fn wait_for_end(&self) {
        os::wait_for_end(Pid::from_child(&self.child), END_LIMIT);
    }
}

impl Drop for KeeperProcess {
    /// Ends the keeper and its job.
    fn drop(&mut self) {
        // A keeper ends when its socket is closed. One that has ended has no socket, and needs no signal.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        self.wait_for_end();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
