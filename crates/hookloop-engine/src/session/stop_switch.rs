//! The switch that ends a session from outside.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hookloop_process::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use super::session_directory::STOP;

/// Time between two checks for a stop request.
const STOP_POLL: Duration = Duration::from_millis(250);

/// Ends a session when another process requests a stop. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct StopWatch {
    _over: std::sync::mpsc::Sender<()>,
}

impl StopWatch {
    /// Watches for the stop request in the session's directory.
    pub(crate) fn new(directory: &Path, stop: StopSwitch) -> std::io::Result<StopWatch> {
        let (over, is_over) = std::sync::mpsc::channel();
        let path = directory.join(STOP);
        std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
            use std::sync::mpsc::RecvTimeoutError::Timeout;
            while is_over.recv_timeout(STOP_POLL) == Err(Timeout) {
                if path.exists() {
                    stop.by_user();
                    return;
                }
            }
        })?;
        Ok(StopWatch { _over: over })
    }
}

/// The result of a wait for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputWait {
    Input,
    /// The session has to end.
    Stop,
    Nothing,
}

/// A switch that ends a session from outside. Clones share it.
#[derive(Clone, Debug)]
pub struct StopSwitch {
    pub(super) cancel: Cancel,
    pub(super) by_user: Arc<AtomicBool>,
    /// Also ends the hooks that run at the end of the session.
    pub(super) end: Cancel,
}

impl StopSwitch {
    pub fn new() -> std::io::Result<StopSwitch> {
        Ok(StopSwitch { cancel: Cancel::new()?, by_user: Arc::default(), end: Cancel::new()? })
    }

    /// Waits until there is input, the session has to end, or `patience` has passed.
    pub fn wait_for(&self, input: impl AsFd, patience: Duration) -> InputWait {
        let mut fds = [
            PollFd::new(&self.cancel, PollFlags::IN),
            PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN),
        ];
        let patience = Timespec::try_from(patience).ok();
        match retry_on_intr(|| poll(&mut fds, patience.as_ref())) {
            Ok(0) => InputWait::Nothing,
            Ok(_) if fds[0].revents().is_empty() => InputWait::Input,
            _ => InputWait::Stop,
        }
    }

    /// Returns the switch that is triggered when the session has to end.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Ends the session at the user's request.
    pub fn by_user(&self) {
        self.by_user.store(true, Ordering::SeqCst);
        self.cancel.trigger();
    }

    /// Ends the session without running the hooks at its end.
    pub fn at_once(&self) {
        self.by_user();
        self.end.trigger();
    }
}

/// A switch that keeps a session from starting new steps. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct RestSwitch(Arc<AtomicBool>);

impl RestSwitch {
    /// Time between two checks whether the rest is over.
    pub(super) const LOOK: Duration = Duration::from_millis(100);

    pub fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::SeqCst);
    }

    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Ends a session when another switch is triggered. Dropping it ends the link.
#[derive(Debug)]
pub struct StopLink {
    over: Cancel,
}

impl StopSwitch {
    /// Ends the session when `other` is triggered.
    pub(crate) fn follows(&self, other: &Cancel) -> std::io::Result<StopLink> {
        self.then(other, StopSwitch::by_user)
    }

    /// Ends the session when `other` is triggered, without running the hooks at its end.
    pub fn follows_to_the_end(&self, other: &Cancel) -> std::io::Result<StopLink> {
        self.then(other, StopSwitch::at_once)
    }

    fn then(&self, other: &Cancel, act: fn(&StopSwitch)) -> std::io::Result<StopLink> {
        let following = StopLink { over: Cancel::new()? };
        let (stop, other, over) = (self.clone(), other.clone(), following.over.clone());
        std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
            if other.wait_unless(&over) {
                act(&stop);
            }
        })?;
        Ok(following)
    }
}

impl Drop for StopLink {
    fn drop(&mut self) {
        self.over.trigger();
    }
}
