//! A job from its start to its end: feeds its input, takes its output and the keeper's word, all as they
//! come.
//!
//! The keeper's word ends the job, never the end of a pipe: somebody else may hold that open.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::process::Pid;

use super::capture::{BothStreams, Capture};
use super::watchdog::Care;
use super::wire::{self, Ended, Reply};
use super::{Job, Outputs, ProcessError, Stream, Unconfined, os};

/// Output is read in pieces of this size.
pub(super) const READ_SIZE: usize = 256 * 1024;
/// A pipe that is found this full is made larger.
const PIPE_FULL: usize = 64 * 1024;
/// What a user may make of a pipe.
const PIPE_LARGE: usize = 1024 * 1024;

/// The hook's ends of its pipes.
pub(super) struct Theirs {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// This side's part of a job that runs, or waits for its turn.
pub(super) struct Course<'a> {
    job: Job<'a>,
    /// What the keeper knows it by.
    number: u64,
    stdin: Feed,
    stdout: Tap<'a>,
    stderr: Tap<'a>,
    both: BothStreams,
    /// Whether the keeper was told to cancel.
    cancelled: bool,
    /// Whether the keeper took the order.
    taken: bool,
}

/// How a course ended.
pub(super) enum Finish<'a> {
    NotStarted {
        errno: i32,
    },
    NotConfined(Unconfined),
    Ended(Ended, Outputs),
    /// The keeper is gone, or does not answer.
    KeeperLost(Outputs),
    /// The keeper is gone, and did not take the order.
    NotTaken(Job<'a>),
}

/// What can be done without waiting.
struct Ready {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    keeper: bool,
    cancel: bool,
}

impl<'a> Course<'a> {
    pub(super) fn new(job: Job<'a>, number: u64) -> Result<(Course<'a>, Theirs), ProcessError> {
        let failed = |errno: Errno| no_pipe(errno.into());
        let (their_stdin, stdin) = input_of(&job)?;
        let (stdout, their_stdout) = pipe()?;
        let (stderr, their_stderr) = pipe()?;
        for ours in stdin.iter().chain([&stdout, &stderr]) {
            // The ends of a pipe are apart in this: the hook's own stay as programs expect them.
            fcntl_setfl(ours, OFlags::NONBLOCK).map_err(failed)?;
        }
        let course = Course {
            number,
            stdin: Feed { pipe: stdin, written: 0 },
            stdout: Tap::new(stdout, Stream::Stdout, &job),
            stderr: Tap::new(stderr, Stream::Stderr, &job),
            both: BothStreams::new(job.observer.clone()),
            cancelled: false,
            taken: false,
            job,
        };
        let theirs = Theirs { stdin: their_stdin, stdout: their_stdout, stderr: their_stderr };
        Ok((course, theirs))
    }

    /// The job, of which the keeper knows nothing.
    pub(super) fn into_job(self) -> Job<'a> {
        self.job
    }

    /// Gives the job as much of its input as there is room for.
    pub(super) fn feed(&mut self) {
        self.stdin.feed(&self.job.stdin);
    }

    /// Runs until the keeper says how the job ended, or is gone, or is silent at `deadline`.
    pub(super) fn run(
        mut self,
        (keeper, pid): (BorrowedFd<'_>, Pid),
        deadline: Instant,
        buffer: &mut [u8],
    ) -> Result<Finish<'a>, ProcessError> {
        let mut care = Care::new(pid);
        self.both.begin();
        loop {
            let now = Instant::now();
            if now >= deadline || now >= care.next() && care.look(now) {
                return Ok(Finish::KeeperLost(self.finish(buffer)));
            }
            let ready = self.wait(keeper, care.next().min(deadline) - now)?;
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
                // A keeper that is gone is heard of.
                let _ = wire::send_cancel(keeper, self.number);
            }
            if ready.keeper {
                match wire::receive_reply(keeper) {
                    Some(Reply::Taken) => {
                        self.taken = true;
                        // Who writes to it is to see when nobody reads any more.
                        self.job.stdin_from = None;
                    }
                    Some(Reply::NotStarted { errno }) => return Ok(Finish::NotStarted { errno }),
                    Some(Reply::NotConfined(why)) => return Ok(Finish::NotConfined(why)),
                    Some(Reply::Ended(ended)) => {
                        return Ok(Finish::Ended(ended, self.finish(buffer)));
                    }
                    None if self.taken => return Ok(Finish::KeeperLost(self.finish(buffer))),
                    None => return Ok(Finish::NotTaken(self.job)),
                }
            }
        }
    }

    fn wait(&self, keeper: BorrowedFd<'_>, timeout: Duration) -> Result<Ready, ProcessError> {
        let wanted = [
            (self.stdin.pipe.as_ref().map(AsFd::as_fd), PollFlags::OUT),
            (self.stdout.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.stderr.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (Some(keeper), PollFlags::IN),
            (self.job.cancel.filter(|_| !self.cancelled).map(AsFd::as_fd), PollFlags::IN),
        ];
        // What is not there gives its place to the keeper, which is watched anyway.
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
        Ok(Ready { stdin: next(), stdout: next(), stderr: next(), keeper: next(), cancel: next() })
    }

    /// What is still in the pipes is the job's last word.
    fn finish(mut self, buffer: &mut [u8]) -> Outputs {
        let mut both = self.both;
        self.stdout.drain(buffer, &mut both);
        self.stderr.drain(buffer, &mut both);
        let stdout = self.stdout.capture.finish(&mut both);
        let stderr = self.stderr.capture.finish(&mut both);
        let (both, quiet_for) = both.finish();
        Outputs { stdout, stderr, both, quiet_for }
    }
}

/// What a job reads, and the end that is written to here.
fn input_of(job: &Job<'_>) -> Result<(OwnedFd, Option<OwnedFd>), ProcessError> {
    match &job.stdin_from {
        // The job keeps its own: it may have to be given to another keeper.
        Some(theirs) => theirs.try_clone().map(|theirs| (theirs, None)).map_err(no_pipe),
        None => pipe().map(|(theirs, ours)| (theirs, Some(ours))),
    }
}

/// The end to read from, and the one to write to.
fn pipe() -> Result<(OwnedFd, OwnedFd), ProcessError> {
    let (read, write) = std::io::pipe().map_err(no_pipe)?;
    Ok((read.into(), write.into()))
}

fn no_pipe(source: std::io::Error) -> ProcessError {
    ProcessError::Io { doing: "can't make pipes for a hook", source }
}

/// A job's input, written as it is read.
struct Feed {
    /// None once there is nothing left to write, or nobody who reads.
    pipe: Option<OwnedFd>,
    written: usize,
}

impl Feed {
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
                // A hook need not read its input.
                Err(_) => self.pipe = None,
            }
        }
    }
}

/// One of a job's outputs.
struct Tap<'a> {
    /// None once nobody can write to it any more.
    pipe: Option<OwnedFd>,
    capture: Capture<'a>,
    large: bool,
}

impl<'a> Tap<'a> {
    fn new(pipe: OwnedFd, stream: Stream, job: &Job<'a>) -> Tap<'a> {
        let filter = job.filter.map(|filter| filter(stream));
        let capture = Capture::new(stream, job.artifacts.as_deref(), filter);
        Tap { pipe: Some(pipe), capture, large: false }
    }

    /// Takes what is there, at most a buffer of it, and returns how much.
    fn take(&mut self, buffer: &mut [u8], both: &mut BothStreams) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        match retry_on_intr(|| read(pipe, &mut *buffer)) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                if length >= PIPE_FULL && !self.large {
                    self.large = true;
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

    /// Takes what is in the pipe, and no more than fits one: a survivor could write for ever.
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
