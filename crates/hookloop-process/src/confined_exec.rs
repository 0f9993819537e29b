//! The process between the keeper and a confined job: it confines itself, then executes the job.
//!
//! A confinement cannot be lifted, so the keeper cannot put it on itself, and between `fork` and `exec` almost no
//! code is safe. This process gets the keeper's order and replies only if the job was not started. Success closes its
//! end of the socket, by `exec`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::job_command::{
    FIRST_FD, close_inherited_files_on_exec, job_command, not_started, pass_on_mark,
};
use crate::sandbox::{self, ConfinementError};
use crate::wire::{self, JobOrder, KeeperReply, KeeperRequest};
use crate::{orphans, os};

/// The first argument of a process that confines itself. A program that gets it calls [`confined_exec`].
pub const CONFINED_ARGUMENT: &str = "__confined";
/// The second argument of a process that only tries private mounts, in the directory of its third argument.
pub(crate) const PROBE_ARGUMENT: &str = "__probe";
/// `argv[0]` of a process that confines itself.
const CONFINED_NAME: &str = "hookloop";
/// Time within which the process becomes the job, or is killed.
const EXEC_LIMIT: Duration = Duration::from_secs(5);

/// Starts a confined job. The keeper's own copies of the files are closed on return.
pub(crate) fn start(order: &JobOrder, stdio: [OwnedFd; 3]) -> Result<Child, KeeperReply> {
    hand_over(spawn(|command| command.process_group(0)), order, stdio)
}

/// Starts a job, confined or not, in the process group of this program, which may have the terminal.
pub(crate) fn start_in_same_group(
    order: &JobOrder,
    stdio: [OwnedFd; 3],
) -> Result<Child, KeeperReply> {
    hand_over(orphans::while_no_process_starts(|| spawn(|command| command)), order, stdio)
}

/// Sends the order to a process that confines itself, and waits until it has become the job.
fn hand_over(
    spawned: io::Result<(OwnedFd, Child)>,
    order: &JobOrder,
    stdio: [OwnedFd; 3],
) -> Result<Child, KeeperReply> {
    let (socket, mut child) = spawned.map_err(|error| not_started(&error))?;
    let files = [stdio[0].as_fd(), stdio[1].as_fd(), stdio[2].as_fd()];
    let sent = wire::send_order(socket.as_fd(), &order.encode(), files, None);
    let reply = match sent {
        Ok(()) => failure(&socket),
        Err(_) => Some(KeeperReply::NotConfined(ConfinementError::Silent)),
    };
    match reply {
        None => Ok(child),
        Some(reply) => {
            // The reply names the failed step. A child that has ended already needs no signal.
            let _ = child.kill();
            let _ = child.wait();
            Err(reply)
        }
    }
}

fn spawn(adjust: impl FnOnce(&mut Command) -> &mut Command) -> io::Result<(OwnedFd, Child)> {
    let (socket, theirs) = UnixStream::pair()?;
    socket.set_write_timeout(Some(EXEC_LIMIT))?;
    let mut command = Command::new(os::this_program()?);
    adjust(command.arg0(CONFINED_NAME).arg(CONFINED_ARGUMENT).env_clear());
    pass_on_mark(&mut command);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((socket.into(), command.spawn()?))
}

/// Returns the reason why the job was not started, or `None` if it was.
fn failure(socket: &OwnedFd) -> Option<KeeperReply> {
    let end = Instant::now() + EXEC_LIMIT;
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    while fds[0].revents().is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Some(KeeperReply::NotConfined(ConfinementError::Silent)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Some(KeeperReply::NotStarted { errno: errno.raw_os_error() }),
        }
    }
    wire::receive_reply(socket.as_fd())
}

/// Confines this process by the order on stdin, and executes the job. Returns only on failure.
///
/// Call it first in `main` when the first argument is [`CONFINED_ARGUMENT`]. The process must have one thread.
pub fn confined_exec() -> ExitCode {
    let mut arguments = std::env::args_os().skip(2);
    if arguments.next().is_some_and(|argument| argument == PROBE_ARGUMENT) {
        let directory = PathBuf::from(arguments.next().unwrap_or_default());
        return ExitCode::from(sandbox::try_mounts(&directory).exit_code());
    }
    // Stdin becomes the job's. The keeper sees the success by the end of this copy, which `exec` closes.
    let Ok(socket) = fcntl_dupfd_cloexec(io::stdin(), FIRST_FD) else {
        return ExitCode::FAILURE;
    };
    close_inherited_files_on_exec();
    let Ok(Some(KeeperRequest::Run { order, stdio, .. })) = wire::receive_request(socket.as_fd())
    else {
        return ExitCode::FAILURE;
    };
    // If this reply fails, the keeper has ended, and there is no other receiver.
    let _ = wire::send_reply(&socket, &become_job(&order, stdio));
    ExitCode::FAILURE
}

/// Returns only if it failed.
fn become_job(order: &JobOrder, stdio: [OwnedFd; 3]) -> KeeperReply {
    match order.confinement.as_ref().map(sandbox::enforce) {
        Some(Err(error)) => KeeperReply::NotConfined(error),
        Some(Ok(())) | None => not_started(&job_command(order, stdio).exec()),
    }
}
