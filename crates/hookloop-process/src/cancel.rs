//! A switch that ends jobs from another thread, or from a signal handler.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, retry_on_intr};

/// A switch that stays on. Turning it on asks every job with this switch to end.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<SwitchPipe>);

/// A pipe that is never read. The switch is on once the pipe is not empty.
#[derive(Debug)]
struct SwitchPipe {
    read: PipeReader,
    write: PipeWriter,
}

impl Cancel {
    pub fn new() -> std::io::Result<Cancel> {
        let (read, write) = std::io::pipe()?;
        fcntl_setfl(&write, OFlags::NONBLOCK)?;
        Ok(Cancel(Arc::new(SwitchPipe { read, write })))
    }

    /// Turns the switch on, by one `write`: safe in a signal handler.
    pub fn trigger(&self) {
        // A write fails only if the pipe is full. Then the switch is on.
        let _ = rustix::io::write(&self.0.write, &[1]);
    }

    pub fn is_triggered(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits until the switch is on, at most for `timeout`. Returns whether it is on.
    pub fn wait(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut fds = [PollFd::new(&self.0.read, PollFlags::IN)];
            match poll(&mut fds, Some(&left)) {
                Err(Errno::INTR) => {}
                polled => return polled.is_ok_and(|ready| ready > 0),
            }
        }
    }

    /// Waits until this switch or `over` is on. Returns whether this one is.
    pub fn wait_unless(&self, over: &Cancel) -> bool {
        let mut fds = [self, over].map(|fd| PollFd::new(fd, PollFlags::IN));
        // A wait that fails is over early. The switch itself is asked below.
        let _ = retry_on_intr(|| poll(&mut fds, None));
        self.is_triggered()
    }
}

/// A switch that another one turns on as well.
#[derive(Debug)]
pub struct LinkedCancel {
    pub own: Cancel,
    over: Cancel,
}

impl LinkedCancel {
    pub fn new(other: &Cancel) -> std::io::Result<LinkedCancel> {
        let linked = LinkedCancel { own: Cancel::new()?, over: Cancel::new()? };
        let own = linked.own.clone();
        let over = linked.over.clone();
        let other = other.clone();
        std::thread::Builder::new().name("cancel".to_owned()).spawn(move || {
            if other.wait_unless(&over) {
                own.trigger();
            }
        })?;
        Ok(linked)
    }
}

impl Drop for LinkedCancel {
    fn drop(&mut self) {
        self.over.trigger();
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.read.as_fd()
    }
}
