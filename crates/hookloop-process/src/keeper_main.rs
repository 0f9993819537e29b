//! The main function of a keeper: runs one job at a time and ends every process that belongs to it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use rustix::process::setsid;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};

use crate::descendants::{JobProcesses, MARK};
use crate::job_command::{close_inherited_files_on_exec, job_command, not_started};
use crate::supervised_job::{KeeperState, SupervisedJob};
use crate::wire::{self, JobOrder, KeeperReply, KeeperRequest};
use crate::{cgroup, confined_exec, os, usage_watch};

/// Signals that ask a process to end or to stop. A keeper does neither.
const REQUESTS: [i32; 10] =
    [SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2];
/// The name of a keeper in `ps`, which shows 15 bytes.
const NAME: &str = "hookloop-keeper";

/// Runs jobs for the program at the other end of stdin until that program ends.
///
/// Call it first in `main` when the first argument is [`KEEPER_ARGUMENT`](crate::KEEPER_ARGUMENT).
/// The process must have one thread.
pub fn keeper_main() -> ExitCode {
    let socket = io::stdin();
    match set_up().and_then(|state| serve(socket.as_fd(), &state)) {
        Ok(()) => ExitCode::SUCCESS,
        // An error needs no report: the program sees that the keeper has ended.
        Err(_) => ExitCode::FAILURE,
    }
}

fn set_up() -> io::Result<KeeperState> {
    // Without the process table of its own namespace, a keeper would find no process, so it runs no job.
    if !os::sees_itself() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (child_ended, notifier) = UnixStream::pair()?;
    child_ended.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, notifier)?;
    // Only the end of the socket ends a keeper, after its job. These signals get a handler: jobs would inherit an
    // ignored or blocked signal, but not a handled one.
    for signal in REQUESTS {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let processes = JobProcesses { mark: std::env::var_os(MARK) };
    if processes.mark.is_none() {
        os::adopt_orphans()?;
    }
    usage_watch::disable_core_files();
    // Jobs get neither the terminal nor its signals.
    setsid()?;
    close_inherited_files_on_exec();
    // A keeper must not keep a directory from being unmounted or removed.
    std::env::set_current_dir("/")?;
    os::set_process_name(NAME);
    cgroup::enter();
    Ok(KeeperState { processes, child_ended })
}

fn serve(socket: BorrowedFd<'_>, state: &KeeperState) -> io::Result<()> {
    let mut next = None;
    loop {
        let request = match next.take() {
            Some(request) => request,
            None => match wire::receive_request(socket)? {
                Some(request) => request,
                None => return Ok(()),
            },
        };
        // A cancellation that arrives while no job runs is for a job that has just ended.
        let KeeperRequest::Run { order, stdio: [stdin, output @ ..], hold } = request else {
            continue;
        };
        wire::send_reply(socket, &KeeperReply::Accepted)?;
        let started = Instant::now();
        let reply = match start(&order, stdin, &output) {
            Err(reply) => reply,
            Ok(child) => {
                match SupervisedJob::new(socket, state, &child, &order, started, &mut next).run() {
                    Some(ended) => KeeperReply::Ended(ended),
                    None => return Ok(()),
                }
            }
        };
        // The output is closed no earlier than this, or the end of the pipe would wake the program a moment before the
        // reply.
        drop(output);
        // Every process of the job has ended, so another program may take the lock. If this program
        // has ended, the exit of the keeper closes the file, after the end of the job.
        drop(hold);
        wire::send_reply(socket, &reply)?;
        // Survivors would count as processes of the next job.
        if matches!(reply, KeeperReply::Ended(ended) if !ended.survivors.is_empty()) {
            return Ok(());
        }
    }
}

fn start(order: &JobOrder, stdin: OwnedFd, output: &[OwnedFd; 2]) -> Result<Child, KeeperReply> {
    let [stdout, stderr] = output.each_ref().map(OwnedFd::try_clone);
    let failed = |error: io::Error| not_started(&error);
    let stdio = [stdin, stdout.map_err(failed)?, stderr.map_err(failed)?];
    usage_watch::limit_file_size(order.limits.disk_bytes);
    if order.confinement.is_some() {
        return confined_exec::start(order, stdio);
    }
    job_command(order, stdio).process_group(0).spawn().map_err(failed)
}
