//! The step between the keeper and a confined hook: a process that confines itself, then becomes the hook.
//!
//! What confines a process can't be taken off again, so the keeper can't put it on; and between `fork` and
//! `exec` little is allowed and nothing is safe. The step gets the keeper's order as the keeper got it, and
//! says why the hook was not started. If it was, its end of the socket is closed: that is what says so.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::keeper_main::{FIRST_FD, hook_command, not_started, pass_on_mark};
use super::wire::{self, Order, Reply, Request};
use super::{Unconfined, os};

/// The argument that makes the program a step.
pub const STEP_ARGUMENT: &str = "__confined";
/// A step that has not become the hook by then never does.
const STEP_LIMIT: Duration = Duration::from_secs(5);

/// Starts a hook through a step. The keeper's own copies of the files are closed on return.
pub(super) fn start(order: &Order, stdio: [OwnedFd; 3]) -> Result<Child, Reply> {
    let (socket, mut child) = begin().map_err(|error| not_started(&error))?;
    let files = [stdio[0].as_fd(), stdio[1].as_fd(), stdio[2].as_fd()];
    let sent = wire::send_order(socket.as_fd(), &order.encode(), files, None);
    let reply = match sent {
        Ok(()) => answer(&socket),
        Err(_) => Some(Reply::NotConfined(Unconfined::Silent)),
    };
    match reply {
        None => Ok(child),
        Some(reply) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(reply)
        }
    }
}

fn begin() -> io::Result<(OwnedFd, Child)> {
    let (socket, theirs) = UnixStream::pair()?;
    socket.set_write_timeout(Some(STEP_LIMIT))?;
    let mut command = Command::new(os::this_program()?);
    command.arg0("hookloop").arg(STEP_ARGUMENT).env_clear().process_group(0);
    pass_on_mark(&mut command);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((socket.into(), command.spawn()?))
}

/// What a step says about a hook that was not started; none if it became the hook.
fn answer(socket: &OwnedFd) -> Option<Reply> {
    let end = Instant::now() + STEP_LIMIT;
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    while fds[0].revents().is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Some(Reply::NotConfined(Unconfined::Silent)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Some(Reply::NotStarted { errno: errno.raw_os_error() }),
        }
    }
    wire::receive_reply(socket.as_fd())
}

/// Confines this process as it is told on stdin, and becomes the hook.
pub fn confine() -> ExitCode {
    // Stdin becomes the hook's, and what is closed with it is how the keeper knows.
    let Ok(socket) = fcntl_dupfd_cloexec(io::stdin(), FIRST_FD) else {
        return ExitCode::FAILURE;
    };
    close_fds::set_fds_cloexec(FIRST_FD, &[]);
    let Ok(Some(Request::Run { order, stdio, .. })) = wire::receive_request(socket.as_fd()) else {
        return ExitCode::FAILURE;
    };
    // There is nobody else to tell.
    let _ = wire::send_reply(&socket, &become_hook(&order, stdio));
    ExitCode::FAILURE
}

/// Returns only if it failed.
fn become_hook(order: &Order, stdio: [OwnedFd; 3]) -> Reply {
    match order.confinement.as_ref().map(super::Confinement::enforce) {
        Some(Err(unconfined)) => Reply::NotConfined(unconfined),
        Some(Ok(())) | None => not_started(&hook_command(order, stdio).exec()),
    }
}
