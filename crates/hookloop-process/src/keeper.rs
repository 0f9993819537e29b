//! This program's side of a keeper: starts it when it is needed, gives it one job after the other, and
//! replaces it when it is gone.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;

use super::ancestry::KeeperOwner;
use super::cgroup::Cgroup;
use super::descendants::MARK;
use super::orphans::{self, Registered};
use super::running_job::{Course, Finish, READ_SIZE};
use super::wire::{self, Ended, ORDER_MAX, Order};
use super::{
    Cancel, How, Job, KILL_GRACE, KILL_LIMIT, LEFTOVER_GRACE, Outputs, ProcessError, Ran,
    TIMEOUT_MAX, descendants, os, program,
};

/// The argument that makes the program a keeper.
pub const KEEPER_ARGUMENT: &str = "__keeper";
/// A keeper takes a large order as fast as it comes; one that does not is not there.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// A keeper that is this late is lost.
const LATE_MAX: Duration = Duration::from_secs(5);
/// A keeper that is not needed any more ends by itself within this, or is killed.
const END_LIMIT: Duration = Duration::from_secs(3);
/// The one that ran the job before may be gone; if so, a new one.
const KEEPERS_TRIED: usize = 2;

/// Runs one job after the other; nothing that a job starts outlives it.
#[derive(Debug)]
pub struct Keeper {
    kind: Kind,
    process: Option<Process>,
    buffer: Vec<u8>,
    /// Of the last order that was given.
    number: u64,
}

/// How keepers are started.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// None for this program, wherever it is.
    executable: Option<PathBuf>,
    /// Whether its hooks are marked, so that who leaves it is found again.
    marks: bool,
    /// The project that it works for.
    owner: Option<KeeperOwner>,
}

impl Kind {
    pub(super) fn new(executable: Option<PathBuf>) -> Kind {
        Kind { executable, marks: !os::ADOPTS, owner: None }
    }

    pub(super) fn marking(self) -> Kind {
        Kind { marks: true, ..self }
    }

    pub(super) fn working_for(self, owner: KeeperOwner) -> Kind {
        Kind { owner: Some(owner), ..self }
    }
}

/// Jobs that run one after the other.
pub trait Turns<'a> {
    /// The next job. It is asked for while the one before runs; none if there is no other, or if what
    /// comes next depends on that one.
    fn next(&mut self) -> Option<Job<'a>>;
    /// What came of the first job that has not been heard of.
    fn done(&mut self, result: Result<Ran, ProcessError>);
}

/// A job that was given to the keeper, or what came of it without that.
enum Begun<'a> {
    Given {
        order: Order,
        course: Box<Course<'a>>,
        /// Which keeper's it is.
        keeper: u64,
    },
    /// The keeper is gone, and did not take it.
    NotTaken {
        order: Order,
        job: Job<'a>,
    },
    Over(Result<Ran, ProcessError>),
}

impl Keeper {
    /// A keeper that is this program, which has to call [`super::keep()`] when it is started with
    /// [`KEEPER_ARGUMENT`].
    pub fn of_this_program() -> Keeper {
        Keeper::of(Kind::new(None))
    }

    /// A keeper that is the program at `executable`.
    pub fn new(executable: PathBuf) -> Keeper {
        Keeper::of(Kind::new(Some(executable)))
    }

    pub(super) fn of(kind: Kind) -> Keeper {
        Keeper { kind, process: None, buffer: Vec::new(), number: 0 }
    }

    /// A keeper as it is where orphans can't be adopted, also where they can.
    pub fn marking(self) -> Keeper {
        Keeper { kind: self.kind.clone().marking(), ..self }
    }

    /// The process, if there is one at the moment.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// Starts the process ahead of the first job. That it can't be started is told then.
    pub fn get_ready(&mut self) {
        if self.process.is_none() {
            self.process = self.start(self.number + 1).ok();
        }
    }

    fn start(&self, number: u64) -> std::io::Result<Process> {
        let mark = self.kind.marks.then(|| uuid::Uuid::new_v4().simple().to_string().into());
        match &self.kind.executable {
            Some(executable) => Process::start(executable, mark, self.kind.owner.as_ref(), number),
            None => Process::start(&os::this_program()?, mark, self.kind.owner.as_ref(), number),
        }
    }

    /// Runs a job to its end. One that was cancelled before is not started.
    pub fn run(&mut self, job: Job<'_>) -> Result<Ran, ProcessError> {
        let begun = self.begin(job);
        self.end(begun)
    }

    /// Runs jobs one after the other. The next one is with the keeper before the last one ends, so that
    /// between them nobody waits for this side.
    pub fn run_in_turn<'a>(&mut self, turns: &mut impl Turns<'a>) {
        let mut waiting = None;
        loop {
            let begun = match waiting.take() {
                Some(begun) => self.renewed(begun),
                None => match turns.next() {
                    Some(job) => self.begin(job),
                    None => return,
                },
            };
            // Without a keeper there is none to be ahead of.
            if matches!(begun, Begun::Given { .. }) {
                waiting = turns.next().map(|job| self.begin(job));
            }
            turns.done(self.end(begun));
        }
    }

    /// Gives a job to the keeper, which runs it when the one before has ended.
    fn begin<'a>(&mut self, job: Job<'a>) -> Begun<'a> {
        if job.cancel.is_some_and(Cancel::is_triggered) {
            return Begun::Over(Ok(not_run()));
        }
        match self.prepared(&job).and_then(|order| self.give(order, job)) {
            Ok(begun) => begun,
            Err(error) => Begun::Over(Err(error)),
        }
    }

    /// What was given to a keeper that is gone is given to another.
    fn renewed<'a>(&mut self, begun: Begun<'a>) -> Begun<'a> {
        match begun {
            Begun::Given { order, course, keeper }
                if self.process.as_ref().map(|p| p.number) != Some(keeper) =>
            {
                self.give(order, course.into_job()).unwrap_or_else(|error| Begun::Over(Err(error)))
            }
            begun => begun,
        }
    }

    fn prepared(&mut self, job: &Job<'_>) -> Result<Order, ProcessError> {
        let cwd = std::path::absolute(&job.cwd)
            .map_err(|source| ProcessError::Io { doing: "can't tell where a hook runs", source })?;
        let program = program::find(job, &cwd)?;
        self.number += 1;
        Ok(Order {
            number: self.number,
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

    /// Gives an order to the keeper, or to a new one if there is none.
    fn give<'a>(&mut self, order: Order, job: Job<'a>) -> Result<Begun<'a>, ProcessError> {
        let encoded = order.encode();
        if encoded.len() > ORDER_MAX {
            return Err(program::explain(order.program, &order.cwd, Errno::TOOBIG.raw_os_error()));
        }
        let hold = job.hold;
        let (mut course, theirs) = Course::new(job, order.number)?;
        let stdio = [theirs.stdin.as_fd(), theirs.stdout.as_fd(), theirs.stderr.as_fd()];
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
                course.feed();
                let (course, keeper) = (Box::new(course), process.number);
                Ok(Begun::Given { order, course, keeper })
            }
            Err(_) => Ok(Begun::NotTaken { order, job: course.into_job() }),
        }
    }

    /// Waits for the end of a job; those before it have ended.
    fn end(&mut self, begun: Begun<'_>) -> Result<Ran, ProcessError> {
        let mut begun = begun;
        for tried in 1.. {
            let (order, job) = match begun {
                Begun::Over(result) => return result,
                Begun::NotTaken { order, job } => (order, job),
                Begun::Given { order, course, .. } => match self.wait(&order, *course)? {
                    Finish::NotTaken(job) => (order, job),
                    finish => return result(order, finish),
                },
            };
            // A keeper that is gone did not start it, so another does.
            self.process = None;
            if tried == KEEPERS_TRIED {
                break;
            }
            begun = self.give(order, job)?;
        }
        Err(ProcessError::KeeperLost { output: Box::default() })
    }

    fn wait<'a>(&mut self, order: &Order, course: Course<'a>) -> Result<Finish<'a>, ProcessError> {
        // Until it is put back, the keeper ends with this call, whatever happens in it.
        let Some(process) = self.process.take() else {
            return Ok(Finish::NotTaken(course.into_job()));
        };
        let deadline = Instant::now() + order.timeout + order.grace + LEFTOVER_GRACE;
        let deadline = deadline + 2 * KILL_LIMIT + LATE_MAX;
        self.buffer.resize(READ_SIZE, 0);
        let line = (process.socket.as_fd(), Pid::from_child(&process.child));
        let mut finish = course.run(line, deadline, &mut self.buffer)?;
        match &mut finish {
            Finish::NotStarted { .. } | Finish::NotConfined(_) => self.process = Some(process),
            // Survivors would be taken for the next job's.
            Finish::Ended(ended, _) if !ended.survivors.is_empty() => process.end_survivors(ended),
            Finish::Ended(..) => self.process = Some(process),
            Finish::KeeperLost(_) | Finish::NotTaken(_) => process.lose(),
        }
        Ok(finish)
    }
}

fn result(order: Order, finish: Finish<'_>) -> Result<Ran, ProcessError> {
    match finish {
        Finish::Ended(ended, output) => Ok(Ran {
            how: ended.how,
            duration: ended.duration,
            usage: ended.usage,
            leftovers_killed: ended.leftovers_killed,
            survivors: ended.survivors,
            output,
        }),
        Finish::NotStarted { errno } => Err(program::explain(order.program, &order.cwd, errno)),
        Finish::NotConfined(why) => Err(ProcessError::NotConfined { why }),
        Finish::KeeperLost(output) => Err(ProcessError::KeeperLost { output: Box::new(output) }),
        Finish::NotTaken(_) => Err(ProcessError::KeeperLost { output: Box::default() }),
    }
}

fn not_run() -> Ran {
    Ran {
        how: How::Cancelled,
        duration: Duration::ZERO,
        usage: None,
        leftovers_killed: 0,
        survivors: Vec::new(),
        output: Outputs::default(),
    }
}

/// A keeper that was started.
#[derive(Debug)]
struct Process {
    /// That of its first order, which no other keeper was started for.
    number: u64,
    child: Child,
    socket: OwnedFd,
    /// What its hooks' processes are known by.
    mark: Option<OsString>,
    _registered: Registered,
    /// After the others: it can't be removed while the keeper is in it.
    cgroup: Option<Cgroup>,
}

impl Process {
    fn start(
        executable: &Path,
        mark: Option<OsString>,
        owner: Option<&KeeperOwner>,
        number: u64,
    ) -> std::io::Result<Process> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_write_timeout(Some(SEND_LIMIT))?;
        let mut command = Command::new(executable);
        // Hooks can read the environment of the process above them: it holds nothing but the keeper's own names.
        command.arg0("hookloop").arg(KEEPER_ARGUMENT).env_clear();
        command.envs(owner.into_iter().flat_map(KeeperOwner::variables));
        command.envs(mark.iter().map(|mark| (MARK, mark)));
        let cgroup = Cgroup::make();
        let door = cgroup.as_ref().and_then(Cgroup::door).map_or_else(Stdio::null, Stdio::from);
        command.stdin(OwnedFd::from(theirs)).stdout(door).stderr(Stdio::null());
        let (child, registered) =
            orphans::register(mark.is_some(), || command.spawn(), Pid::from_child)?;
        Ok(Process { number, child, socket: socket.into(), mark, _registered: registered, cgroup })
    }
}

impl Process {
    /// Ends what a keeper kept that can't.
    fn lose(mut self) {
        // All at once, so that nobody gets away; then who is elsewhere.
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        let _ = self.child.kill();
        // Before its end is known, its children are not this program's.
        self.wait_for_end();
        orphans::end(Pid::from_child(&self.child), self.mark.as_ref());
    }

    /// Ends those that the keeper could not, such as who runs as another user.
    fn end_survivors(self, ended: &mut Ended) {
        if self.cgroup.is_none() {
            return;
        }
        self.lose();
        let told = ended.survivors.len();
        let pid = |survivor: u32| Pid::from_raw(survivor.cast_signed());
        ended.survivors.retain(|survivor| pid(*survivor).is_some_and(descendants::is_alive));
        ended.leftovers_killed += (told - ended.survivors.len()) as u64;
    }

    fn wait_for_end(&self) {
        os::wait_for_end(Pid::from_child(&self.child), END_LIMIT);
    }
}

impl Drop for Process {
    /// Ends the keeper, and with it what it keeps.
    fn drop(&mut self) {
        // The socket's end is what it ends for.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        self.wait_for_end();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
