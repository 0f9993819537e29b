//! Runs a job on this program's own terminal.
//!
//! A person works in the job, so it has no keeper. The job stays in the process group of this program. A shell takes
//! the terminal from there by itself, and gives it back when it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::confined_exec;
use crate::error::ProcessError;
use crate::job::{ExitReason, Job};
use crate::keeper::{explain_start, order_of};
use crate::wire::{JobOrder, KeeperReply};

/// Runs a job with the input and output of this program, in the job's confinement, until its first process ends.
///
/// Only the command, the environment, the directory and the confinement of the job have an effect. Processes that the
/// job leaves behind are not ended.
pub fn run_attached(job: &Job<'_>) -> Result<ExitReason, ProcessError> {
    let failed = |source| ProcessError::Io { doing: "can't run a program on the terminal", source };
    let order = order_of(job, 0)?;
    let stdio = own_files().map_err(failed)?;
    let mut child = match confined_exec::start_in_same_group(&order, stdio) {
        Ok(child) => child,
        Err(reply) => return Err(explain(order, reply)),
    };
    Ok(reason(child.wait().map_err(failed)?))
}

/// Returns copies of this program's input and output.
fn own_files() -> io::Result<[OwnedFd; 3]> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    Ok([
        stdin.as_fd().try_clone_to_owned()?,
        stdout.as_fd().try_clone_to_owned()?,
        stderr.as_fd().try_clone_to_owned()?,
    ])
}

fn explain(order: JobOrder, reply: KeeperReply) -> ProcessError {
    match reply {
        KeeperReply::NotStarted { errno } => explain_start(order, errno),
        KeeperReply::NotConfined(why) => ProcessError::NotConfined { why },
        KeeperReply::Accepted | KeeperReply::Ended(_) => {
            let source = io::ErrorKind::InvalidData.into();
            ProcessError::Io { doing: "can't run a program on the terminal", source }
        }
    }
}

fn reason(status: ExitStatus) -> ExitReason {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Exited(code),
        (None, Some(signal)) => ExitReason::Signalled(signal),
        // Neither is only possible for a process that is stopped, which `wait` does not return.
        (None, None) => ExitReason::Exited(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_attached_job_is_its_code_or_its_signal() {
        assert_eq!(reason(ExitStatus::from_raw(0)), ExitReason::Exited(0));
        assert_eq!(reason(ExitStatus::from_raw(3 << 8)), ExitReason::Exited(3));
        assert_eq!(reason(ExitStatus::from_raw(9)), ExitReason::Signalled(9));
    }
}
