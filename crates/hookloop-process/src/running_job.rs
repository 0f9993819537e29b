//! The program's side of a running job: writes its input, reads its output and the keeper's replies.
//!
//! Only a reply of the keeper ends the job. The end of a pipe does not: another process may hold the pipe open.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::process::Pid;

use crate::capture::{BothStreams, StreamCapture};
use crate::error::ProcessError;
use crate::job::Job;
use crate::os;
use crate::output::{JobOutputs, OutputStream};
use crate::sandbox::ConfinementError;
use crate::watchdog::Watchdog;
use crate::wire::{self, EndReport, KeeperReply};

/// Bytes of output that are read at once.
pub(crate) const READ_SIZE: usize = 256 * 1024;
/// Number of waiting bytes from which a pipe is enlarged.
const PIPE_FULL: usize = 64 * 1024;
/// The largest pipe that an unprivileged user may have by default.
const PIPE_LARGE: usize = 1024 * 1024;

/// The job's ends of its pipes.
pub(crate) struct JobEnds {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// A job that runs, or waits for the one before to end.
pub(crate) struct RunningJob<'a> {
    job: Job<'a>,
    /// The number of the job's order.
    number: u64,
    stdin: InputFeed,
    stdout: OutputPipe<'a>,
    stderr: OutputPipe<'a>,
    both: BothStreams,
    /// Whether the cancellation was sent to the keeper.
    cancelled: bool,
    /// Whether the keeper has accepted the order.
    accepted: bool,
}

/// The end of a running job.
pub(crate) enum JobEnd<'a> {
    NotStarted {
        errno: i32,
    },
    NotConfined(ConfinementError),
    Ended(EndReport, JobOutputs),
    /// The keeper has ended or does not reply.
    KeeperLost(JobOutputs),
    /// The keeper has ended without accepting the order.
    NotAccepted(Job<'a>),
}

/// The ends that can be used without waiting.
struct ReadyEnds {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    keeper: bool,
    cancel: bool,
}

impl<'a> RunningJob<'a> {
    pub(crate) fn new(
        job: Job<'a>,
        number: u64,
    ) -> Result<(RunningJob<'a>, JobEnds), ProcessError> {
        let failed = |errno: Errno| no_pipe(errno.into());
        let (their_stdin, stdin) = input_of(&job)?;
        let (stdout, their_stdout) = pipe()?;
        let (stderr, their_stderr) = pipe()?;
        for ours in stdin.iter().chain([&stdout, &stderr]) {
            // Each end of a pipe has its own flags: the job's ends stay blocking, as programs expect.
            fcntl_setfl(ours, OFlags::NONBLOCK).map_err(failed)?;
        }
        let running = RunningJob {
            number,
            stdin: InputFeed { pipe: stdin, written: 0 },
            stdout: OutputPipe::new(stdout, OutputStream::Stdout, &job),
            stderr: OutputPipe::new(stderr, OutputStream::Stderr, &job),
            both: BothStreams::new(job.observer.clone()),
            cancelled: false,
            accepted: false,
            job,
        };
        let ends = JobEnds { stdin: their_stdin, stdout: their_stdout, stderr: their_stderr };
        Ok((running, ends))
    }

    /// Returns the job, to send it to another keeper.
    pub(crate) fn into_job(self) -> Job<'a> {
        self.job
    }

    /// Writes as much of the input as the pipe has room for.
    pub(crate) fn feed(&mut self) {
        self.stdin.feed(&self.job.stdin);
    }

    /// Runs until the keeper reports the end of the job, ends, or exceeds `deadline`.
    pub(crate) fn run(
        mut self,
        (keeper, pid): (BorrowedFd<'_>, Pid),
        deadline: Instant,
        buffer: &mut [u8],
    ) -> Result<JobEnd<'a>, ProcessError> {
        let mut watchdog = Watchdog::new(pid);
        self.both.begin();
        loop {
            let now = Instant::now();
            if now >= deadline || now >= watchdog.next() && watchdog.check(now) {
                return Ok(JobEnd::KeeperLost(self.finish(buffer)));
            }
            let ready = self.wait(keeper, watchdog.next().min(deadline) - now)?;
            if ready.stdin {
                self.feed();
            }
            if ready.stdout {
                self.stdout.take(buffer, &mut self.both);
            }
            if ready.stderr {
                self.stderr.take(buffer, &mut self.both);
            }
            if ready.cancel {
                self.cancelled = true;
                // The loss of a keeper shows as the end of its socket.
                let _ = wire::send_cancel(keeper, self.number);
            }
            if ready.keeper {
                match wire::receive_reply(keeper) {
                    Some(KeeperReply::Accepted) => {
                        self.accepted = true;
                        // Only the job reads from it now, so that a writer gets EPIPE when the job ends.
                        self.job.stdin_from = None;
                    }
                    Some(KeeperReply::NotStarted { errno }) => {
                        return Ok(JobEnd::NotStarted { errno });
                    }
                    Some(KeeperReply::NotConfined(why)) => return Ok(JobEnd::NotConfined(why)),
                    Some(KeeperReply::Ended(ended)) => {
                        return Ok(JobEnd::Ended(ended, self.finish(buffer)));
                    }
                    None if self.accepted => return Ok(JobEnd::KeeperLost(self.finish(buffer))),
                    None => return Ok(JobEnd::NotAccepted(self.job)),
                }
            }
        }
    }

    fn wait(&self, keeper: BorrowedFd<'_>, timeout: Duration) -> Result<ReadyEnds, ProcessError> {
        let wanted = [
            (self.stdin.pipe.as_ref().map(AsFd::as_fd), PollFlags::OUT),
            (self.stdout.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.stderr.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (Some(keeper), PollFlags::IN),
            (self.job.cancel.filter(|_| !self.cancelled).map(AsFd::as_fd), PollFlags::IN),
        ];
        // The keeper's socket stands in for an absent one, with no events of interest.
        let mut fds = wanted.map(|(fd, events)| match fd {
            Some(fd) => PollFd::from_borrowed_fd(fd, events),
            None => PollFd::from_borrowed_fd(keeper, PollFlags::empty()),
        });
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(ProcessError::io("can't wait for a hook")(errno)),
        }
        let mut ready = fds
            .iter()
            .zip(wanted)
            .map(|(fd, (wanted, _))| wanted.is_some() && !fd.revents().is_empty());
        let mut next = || ready.next().unwrap_or(false);
        Ok(ReadyEnds {
            stdin: next(),
            stdout: next(),
            stderr: next(),
            keeper: next(),
            cancel: next(),
        })
    }

    /// Reads the rest of the pipes and returns the outputs.
    fn finish(mut self, buffer: &mut [u8]) -> JobOutputs {
        let mut both = self.both;
        self.stdout.drain(buffer, &mut both);
        self.stderr.drain(buffer, &mut both);
        let stdout = self.stdout.capture.finish(&mut both);
        let stderr = self.stderr.capture.finish(&mut both);
        let (both, quiet_for) = both.finish();
        JobOutputs { stdout, stderr, both, quiet_for }
    }
}

/// Returns the job's stdin, and the end that this side writes to.
fn input_of(job: &Job<'_>) -> Result<(OwnedFd, Option<OwnedFd>), ProcessError> {
    match &job.stdin_from {
        // The job keeps its own copy: it may have to be sent to another keeper.
        Some(theirs) => theirs.try_clone().map(|theirs| (theirs, None)).map_err(no_pipe),
        None => pipe().map(|(theirs, ours)| (theirs, Some(ours))),
    }
}

/// Returns the end to read from and the end to write to.
fn pipe() -> Result<(OwnedFd, OwnedFd), ProcessError> {
    let (read, write) = std::io::pipe().map_err(no_pipe)?;
    Ok((read.into(), write.into()))
}

fn no_pipe(source: std::io::Error) -> ProcessError {
    ProcessError::Io { doing: "can't make pipes for a hook", source }
}

/// The input of a job, written as fast as the job reads.
struct InputFeed {
    /// `None` once everything is written, or no process reads.
    pipe: Option<OwnedFd>,
    written: usize,
}

impl InputFeed {
    fn feed(&mut self, input: &[u8]) {
        while let Some(pipe) = &self.pipe {
            let rest = &input[self.written..];
            if rest.is_empty() {
                self.pipe = None;
                return;
            }
            match retry_on_intr(|| write(pipe, rest)) {
                Ok(written) => self.written += written,
                Err(Errno::AGAIN) => return,
                // A job may leave its input unread.
                Err(_) => self.pipe = None,
            }
        }
    }
}

/// An output stream of a job.
struct OutputPipe<'a> {
    /// `None` once no process can write to it.
    pipe: Option<OwnedFd>,
    capture: StreamCapture<'a>,
    is_large: bool,
}

impl<'a> OutputPipe<'a> {
    fn new(pipe: OwnedFd, stream: OutputStream, job: &Job<'a>) -> OutputPipe<'a> {
        let filter = job.filter.map(|filter| filter(stream));
        let capture = StreamCapture::new(stream, job.artifacts.as_deref(), filter);
        OutputPipe { pipe: Some(pipe), capture, is_large: false }
    }

    /// Reads available output, at most one buffer, and returns the number of bytes.
    fn take(&mut self, buffer: &mut [u8], both: &mut BothStreams) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        match retry_on_intr(|| read(pipe, &mut *buffer)) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                if length >= PIPE_FULL && !self.is_large {
                    self.is_large = true;
                    os::widen(pipe, PIPE_LARGE);
                }
                self.capture.take(&buffer[..length], both);
                return length;
            }
            Err(Errno::AGAIN) => {}
            Err(_) => self.pipe = None,
        }
        0
    }

    /// Reads the rest of the pipe, at most its size: a survivor could write without end.
    fn drain(&mut self, buffer: &mut [u8], both: &mut BothStreams) {
        let size = self.pipe.as_ref().and_then(os::pipe_size);
        let mut room = size.unwrap_or(PIPE_LARGE);
        while room > 0 {
            let taken = self.take(buffer, both);
            if taken == 0 {
                return;
            }
            room = room.saturating_sub(taken);
        }
    }
}
