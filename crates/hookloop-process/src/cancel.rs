//! Ends jobs from another thread, or from a signal handler.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, retry_on_intr};

/// A switch that stays on: every job that watches it is told to end.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Switch>);

/// A pipe that nothing is read from: it is on once something is in it.
#[derive(Debug)]
struct Switch {
    read: PipeReader,
    write: PipeWriter,
}

impl Cancel {
    pub fn new() -> std::io::Result<Cancel> {
        let (read, write) = std::io::pipe()?;
        fcntl_setfl(&write, OFlags::NONBLOCK)?;
        Ok(Cancel(Arc::new(Switch { read, write })))
    }

    /// One write, which is allowed in a signal handler.
    pub fn trigger(&self) {
        // It fails only when the pipe is full, and then the switch is on.
        let _ = rustix::io::write(&self.0.write, &[1]);
    }

    pub fn is_triggered(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits for so long, unless it is on; answers whether it is.
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
}

impl Cancel {
    /// Waits until it is on, or `over` is; answers whether it is.
    pub fn wait_unless(&self, over: &Cancel) -> bool {
        let mut fds = [self, over].map(|fd| PollFd::new(fd, PollFlags::IN));
        let _ = retry_on_intr(|| poll(&mut fds, None));
        self.is_triggered()
    }
}

/// A switch of its own that is on, too, when another one is.
#[derive(Debug)]
pub struct Linked {
    pub own: Cancel,
    over: Cancel,
}

impl Linked {
    pub fn new(other: &Cancel) -> std::io::Result<Linked> {
        let linked = Linked { own: Cancel::new()?, over: Cancel::new()? };
        let (own, over, other) = (linked.own.clone(), linked.over.clone(), other.clone());
        std::thread::Builder::new().name("cancel".to_owned()).spawn(move || {
            if other.wait_unless(&over) {
                own.trigger();
            }
        })?;
        Ok(linked)
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        self.over.trigger();
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.read.as_fd()
    }
}
