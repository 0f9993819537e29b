//! The deadline of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use hookloop_process::Cancel;

use super::session_clock::SessionClock;

/// Triggers a cancel switch when the time is over, unless it is disarmed before.
pub(super) struct SessionDeadline {
    armed: Arc<AtomicBool>,
    thread: Option<Thread>,
}

impl SessionDeadline {
    pub(super) fn new(left: Duration, cancel: Cancel, clock: SessionClock) -> SessionDeadline {
        let armed = Arc::new(AtomicBool::new(true));
        let of_thread = Arc::clone(&armed);
        let until = Instant::now() + left;
        // Without the thread, the turn timeout still limits the time.
        let thread = std::thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            while of_thread.load(Ordering::SeqCst) {
                let until = until + clock.rested();
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    cancel.trigger();
                    return;
                }
                std::thread::park_timeout(left.min(SessionClock::TICK));
                clock.tick();
            }
        });
        let thread =
            thread.inspect_err(|error| tracing::warn!(%error, "a session has no deadline"));
        SessionDeadline { armed, thread: thread.ok().map(|handle| handle.thread().clone()) }
    }

    pub(super) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

impl Drop for SessionDeadline {
    fn drop(&mut self) {
        self.disarm();
    }
}
