//! The right of one process to run the hooks of due events.
//!
//! The hooks of an event run once while the process that runs them lives. That process holds
//! `reactions.lock` in the project's state directory, and so does the keeper of each hook. The
//! kernel frees the lock when the process and every process of its hooks have ended. If several
//! machines share the log, the process also holds the dispatcher's leader lease.
//!
//! A process that cannot get either one leaves the work to the holder. A process below a hook or an
//! agent of the project never runs hooks: the process above does, after it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_config::paths::PlaceError;
use hookloop_core::cascade::{CascadeLimit, EventCause};
use hookloop_core::event::{CascadeLimitReached, EventBody};
use hookloop_core::id::Subject;
use hookloop_hooks::exec_context::LockError;
use hookloop_store::log::{EventLog, Seq};
use rustix::fs::{FlockOperation, flock};

use crate::batch::{Batch, EventOrigin};
use crate::callers_above::left_to_above;
use crate::command_outcome::{CommandOutcome, ReactionsLeft};
use crate::error::EngineError;
use crate::leader_lease::LeaseHold;
use crate::log_location::LogLocation;
use crate::project::Project;

/// Maximum time that a command waits for another process to run the hooks of its events.
pub(crate) const REACTIONS_WAIT: Duration = Duration::from_secs(60);
/// Interval of the checks whether that process is done.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum events that are read to report the results of hooks that another process ran.
const NOTED_MAX: usize = 4_000;
/// Events before the end of the log among which these results may begin.
const NOTED_BEFORE: Seq = 1_000;
/// The lock file of the process that runs hooks, in the project's state directory.
const LOCK: &str = "reactions.lock";
/// The role in which a process runs hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DispatchRole {
    /// The process has the dispatcher's leader lease.
    Leader,
    /// The process takes the leader lease while it runs hooks.
    Command,
}

/// The exclusive right to run the hooks of due events.
#[derive(Debug)]
pub(crate) struct ReactionHold {
    lock: Option<File>,
    pub(crate) role: DispatchRole,
    /// The leader lease, taken before the first process runs.
    lease: Option<LeaseHold>,
    /// The due event for which the view was brought up to date.
    fresh: Option<Seq>,
}

impl ReactionHold {
    /// Returns the lock that a keeper holds while it runs a hook.
    pub(crate) fn lock(&self) -> Option<BorrowedFd<'_>> {
        self.lock.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for ReactionHold {
    fn drop(&mut self) {
        // A process that is being started may have a copy of the file for a moment: closing ours would free it later.
        if let Some(lock) = &self.lock
            && let Err(error) = flock(lock, FlockOperation::Unlock)
        {
            tracing::debug!(%error, "the lock of the reactions is free when its file is closed");
        }
    }
}

impl Project {
    /// Returns why this process must not run hooks of due events, or none if it may.
    pub fn reactions_left(&self) -> Option<ReactionsLeft> {
        let runner = self.runner.as_ref()?;
        left_to_above(runner.home(), runner.state())
    }

    /// Takes the right to run hooks. Returns none if another process or thread has it.
    pub(crate) fn hold_reactions(
        &self,
        role: DispatchRole,
    ) -> Result<Option<ReactionHold>, EngineError> {
        let lock = match &self.runner {
            Some(runner) => match runner.try_lock_exclusive(LOCK).map_err(lock_error)? {
                Some(lock) => Some(lock),
                None => return Ok(None),
            },
            // Without a directory, no process is run.
            None => None,
        };
        Ok(Some(ReactionHold { lock, role, lease: None, fresh: None }))
    }

    /// Ensures that no other machine runs the hooks of the due event at `seq`.
    pub(crate) fn claim_event(
        &self,
        hold: &mut ReactionHold,
        seq: Seq,
    ) -> Result<EventClaim, EngineError> {
        if matches!(self.kept, LogLocation::Here)
            || self.runner.is_none()
            || hold.fresh == Some(seq)
        {
            return Ok(EventClaim::Had);
        }
        if hold.role == DispatchRole::Command && hold.lease.is_none() {
            hold.lease = self.take_seat()?;
            if hold.lease.is_none() {
                return Ok(EventClaim::Others);
            }
        }
        // Another machine may have run the hooks just before.
        self.store.hold_still()?;
        self.store.keep_up();
        hold.fresh = Some(seq);
        Ok(EventClaim::LookAgain)
    }

    /// Runs due reactions, or waits for the process that runs them, and adds the results to `done`.
    ///
    /// It waits at most [`REACTIONS_WAIT`], and not at all below a hook or an agent.
    pub fn settle_reactions(&self, done: &mut CommandOutcome) -> Result<(), EngineError> {
        let until = self.store.glance(|view| Ok(view.totals()?.head))?;
        let deadline = Instant::now() + REACTIONS_WAIT;
        let mut has_waited = false;
        loop {
            let left = self.dispatch_as(DispatchRole::Command, done)?;
            match left {
                None => break,
                Some(ReactionsLeft::Running) => {}
                left => {
                    done.left = left;
                    return Ok(());
                }
            }
            if !has_waited {
                // Follow the log, to see the progress of another machine.
                self.store.keep_up();
                has_waited = true;
            }
            if self.read(|view| view.next_due())?.is_none_or(|seq| seq > until) {
                break;
            }
            if Instant::now() >= deadline {
                done.left = left;
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        if has_waited { self.note_reactions(done, until) } else { Ok(()) }
    }

    /// Adds the results of hooks that another process ran to `done`.
    fn note_reactions(&self, done: &mut CommandOutcome, until: Seq) -> Result<(), EngineError> {
        let from = until.saturating_sub(NOTED_BEFORE).max(1);
        for stored in EventLog::read(&self.store, from, NOTED_MAX)? {
            let event = &stored.event;
            if !event.cause.as_ref().is_some_and(|cause| done.roots.contains(&cause.root)) {
                continue;
            }
            done.note_failure(event);
            if let (EventBody::TaskCreated(_), Subject::Task(task)) = (&event.body, &event.subject)
                && !done.added.contains(task)
            {
                done.added.push(task.clone());
            }
        }
        Ok(())
    }

    /// Returns the origin of a command's events.
    ///
    /// Below a hook, the hook is their cause, and cascade limits apply.
    pub(crate) fn origin(&self) -> Result<EventOrigin, EngineError> {
        let origin = EventOrigin::command(fresh_id(), self.actor());
        let Some(cause) = &self.cause else { return Ok(origin) };
        let count = self.store.glance(|view| view.cascade_count(cause.root))?;
        let (_, limit) = self.rules.limits.cascade.allow(cause.depth, count, 1);
        let Some(limit) = limit else {
            let cause = EventCause { count: count + 1, ..cause.clone() };
            return Ok(EventOrigin { cause: Some(cause), ..origin });
        };
        self.record_cut(cause, limit)?;
        Err(EngineError::CascadeLimit { hook: cause.hook.clone(), limit })
    }

    /// Records that a hook's command was refused. It triggers no hooks, which could repeat the
    /// command.
    fn record_cut(&self, cause: &EventCause, limit: CascadeLimit) -> Result<(), EngineError> {
        let id = fresh_id();
        self.store.transact(|unit| {
            let mut work = Batch::new(unit, &self.rules, now())?;
            let cut = CascadeLimitReached { hook_name: cause.hook.clone(), limit, dropped: 1 };
            let origin = EventOrigin::hook(id, cause.clone());
            work.stage_quietly(origin, Subject::Project, EventBody::CascadeLimitReached(cut))?;
            Ok(())
        })
    }
}

/// Whether this process may run the hooks of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventClaim {
    Had,
    /// The view was brought up to date, and the event may be done.
    LookAgain,
    /// Another machine runs hooks.
    Others,
}

fn lock_error(LockError { path, source }: LockError) -> EngineError {
    PlaceError::Io { path, source }.into()
}
