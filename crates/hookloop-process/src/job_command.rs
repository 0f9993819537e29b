//! The command of an order, for the keeper and for the process that confines itself.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;

use crate::descendants::MARK;
use crate::wire::{JobOrder, KeeperReply};

/// The first file descriptor after stdin, stdout and stderr.
pub(crate) const FIRST_FD: i32 = 3;

/// Builds the command of an order.
pub(crate) fn job_command(order: &JobOrder, stdio: [OwnedFd; 3]) -> Command {
    let [stdin, stdout, stderr] = stdio;
    let mut command = Command::new(&order.program);
    if let Some((name, arguments)) = order.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    command.env_clear().envs(order.env.iter().map(|(name, value)| (name, value)));
    // Last, so that the job's environment cannot replace the mark.
    pass_on_mark(&mut command);
    command.current_dir(&order.cwd);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    command
}

/// Gives the mark of this process, if it has one, to a command.
pub(crate) fn pass_on_mark(command: &mut Command) {
    command.envs(std::env::var_os(MARK).map(|mark| (MARK, mark)));
}

pub(crate) fn not_started(error: &io::Error) -> KeeperReply {
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    KeeperReply::NotStarted { errno }
}

/// Keeps files that this process inherited from the commands that it starts.
pub(crate) fn close_inherited_files_on_exec() {
    close_fds::set_fds_cloexec(FIRST_FD, &[]);
}
