//! Ends jobs from another thread, or from a signal handler.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A switch that stays on: every job that watches it is told to end.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<OwnedFd>);

impl Cancel {
    pub fn new() -> std::io::Result<Cancel> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Cancel(Arc::new(fd)))
    }

    /// One write, which is allowed in a signal handler.
    pub fn trigger(&self) {
        // It fails only when the counter is full, and then the switch is on.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    pub fn is_triggered(&self) -> bool {
        let mut fds = [PollFd::new(&*self.0, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
