//! This program's side of a keeper: starts it when it is needed, gives it one job after the other, and
//! replaces it when it is gone.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::course::{Course, Finish, READ_SIZE, Theirs};
use super::orphans::{self, Registered};
use super::wire::{self, ORDER_MAX, Order};
use super::{
    Cancel, How, Job, KILL_GRACE, KILL_LIMIT, LEFTOVER_GRACE, Outputs, ProcessError, Ran,
    TIMEOUT_MAX, program,
};

/// The argument that makes the program a keeper.
pub const KEEPER_ARGUMENT: &str = "__keeper";
/// This program, also when its file was replaced since it was started.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// A keeper takes a large order as fast as it comes; one that does not is not there.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// A keeper that is this late is lost.
const LATE_MAX: Duration = Duration::from_secs(5);
/// A keeper that is not needed any more ends by itself within this, or is killed.
const END_LIMIT: Duration = Duration::from_secs(3);

/// Runs one job after the other; nothing that a job starts outlives it.
#[derive(Debug)]
pub struct Keeper {
    executable: PathBuf,
    process: Option<Process>,
    buffer: Vec<u8>,
}

impl Keeper {
    /// A keeper that is this program, which has to call [`super::keep()`] when it is started with
    /// [`KEEPER_ARGUMENT`].
    pub fn of_this_program() -> Keeper {
        Keeper::new(THIS_PROGRAM.into())
    }

    /// A keeper that is the program at `executable`.
    pub fn new(executable: PathBuf) -> Keeper {
        Keeper { executable, process: None, buffer: Vec::new() }
    }

    /// The process, if there is one at the moment.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// Runs a job to its end. One that was cancelled before is not started.
    pub fn run(&mut self, job: Job<'_>) -> Result<Ran, ProcessError> {
        if job.cancel.is_some_and(Cancel::is_triggered) {
            return Ok(not_run());
        }
        let cwd = std::path::absolute(&job.cwd)
            .map_err(|source| ProcessError::Io { doing: "can't tell where a hook runs", source })?;
        let program = program::find(&job, &cwd)?;
        let order = order(&job, program, cwd);
        let encoded = order.encode();
        if encoded.len() > ORDER_MAX {
            return Err(program::explain(order.program, &order.cwd, Errno::TOOBIG.raw_os_error()));
        }
        let finish = match self.attempt(&job, &order, &encoded)? {
            // A keeper that died since its last job did not get this one, so another does.
            Finish::NotTaken => self.attempt(&job, &order, &encoded)?,
            finish => finish,
        };
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
            Finish::KeeperLost(output) => {
                Err(ProcessError::KeeperLost { output: Box::new(output) })
            }
            Finish::NotTaken => Err(ProcessError::KeeperLost { output: Box::default() }),
        }
    }

    fn attempt(
        &mut self,
        job: &Job<'_>,
        order: &Order,
        encoded: &[u8],
    ) -> Result<Finish, ProcessError> {
        let (course, theirs) = Course::new(job)?;
        // Until it is put back, the keeper ends with this call, whatever happens in it.
        let process = self.give(encoded, theirs)?;
        let deadline = Instant::now() + order.timeout + order.grace + LEFTOVER_GRACE;
        let deadline = deadline + 2 * KILL_LIMIT + LATE_MAX;
        self.buffer.resize(READ_SIZE, 0);
        let line = (process.socket.as_fd(), Pid::from_child(&process.child));
        let finish = course.run(line, deadline, &mut self.buffer)?;
        match &finish {
            Finish::NotStarted { .. } | Finish::NotConfined(_) => self.process = Some(process),
            // Survivors would be taken for the next job's.
            Finish::Ended(ended, _) => self.process = ended.survivors.is_empty().then_some(process),
            Finish::KeeperLost(_) | Finish::NotTaken => process.lose(),
        }
        Ok(finish)
    }

    /// Gives an order to the keeper, or to a new one if that does not take it whole.
    fn give(&mut self, order: &[u8], theirs: Theirs) -> Result<Process, ProcessError> {
        let stdio = [theirs.stdin.as_fd(), theirs.stdout.as_fd(), theirs.stderr.as_fd()];
        if let Some(process) = self.process.take()
            && wire::send_order(process.socket.as_fd(), order, stdio).is_ok()
        {
            return Ok(process);
        }
        let process = Process::start(&self.executable).map_err(|source| ProcessError::Io {
            doing: "can't start the keeper of a hook's processes",
            source,
        })?;
        wire::send_order(process.socket.as_fd(), order, stdio)
            .map_err(ProcessError::io("the keeper of a hook's processes takes no order"))?;
        Ok(process)
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

fn order(job: &Job<'_>, program: PathBuf, cwd: PathBuf) -> Order {
    Order {
        program,
        cwd,
        argv: job.argv.clone(),
        env: job.env.clone(),
        timeout: job.timeout.min(TIMEOUT_MAX),
        grace: job.grace.min(KILL_GRACE),
        confinement: job.confinement.clone(),
        limits: job.limits,
    }
}

/// A keeper that was started.
#[derive(Debug)]
struct Process {
    child: Child,
    socket: OwnedFd,
    _registered: Registered,
}

impl Process {
    fn start(executable: &Path) -> std::io::Result<Process> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(SEND_LIMIT))?;
        let mut command = Command::new(executable);
        // Hooks can read the environment of the process above them: it has none.
        command.arg0("hookloop").arg(KEEPER_ARGUMENT).env_clear();
        command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
        let (child, registered) = orphans::register(|| command.spawn(), Pid::from_child)?;
        Ok(Process { child, socket, _registered: registered })
    }
}

impl Process {
    /// Ends what a keeper kept that can't.
    fn lose(mut self) {
        let _ = self.child.kill();
        // Before its end is known, its children are not this program's.
        self.wait_for_end();
        orphans::end(Pid::from_child(&self.child));
    }

    fn wait_for_end(&self) {
        if let Ok(watch) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) {
            let mut fds = [PollFd::new(&watch, PollFlags::IN)];
            let limit = Timespec::try_from(END_LIMIT).unwrap_or_default();
            let _ = retry_on_intr(|| poll(&mut fds, Some(&limit)));
        }
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
