//! Sessions whose process died: ending them, and finding those that a worker can resume.

use hookloop_core::event::EventBody;
use hookloop_core::id::SessionId;
use hookloop_core::session::facts::SessionResumed;
use hookloop_core::session::{Session, SessionOutcome, SessionPhase, SessionState};
use hookloop_hooks::runner::HookRunner;

use super::lookup::{OPEN_MAX, is_external, is_review, journal, may_come_back};
use super::open::SessionHandle;
use super::session_directory::{LOCK, be_here, directory, lock_of_dead, was_here};
use super::start_error::StartError;
use crate::project::Project;

/// Takes over sessions of this machine whose process died, to run their `session_end` hooks.
pub fn interrupted(
    project: &Project,
    runner: &HookRunner,
) -> Result<Vec<SessionHandle>, StartError> {
    let mut found = Vec::new();
    for row in project.read(|view| view.open_sessions(OPEN_MAX))? {
        let is_ours = directory(runner, &row.id).join(LOCK).exists();
        if !is_ours || row.state == SessionState::Paused || may_come_back(project, &row)? {
            continue;
        }
        let Some((directory, lock)) = lock_of_dead(runner, &row.id)? else { continue };
        let mut journal = journal(project, &row.id)?;
        let session = &journal.session;
        if session.phase == SessionPhase::Ended || !was_here(&directory, session.run) {
            continue;
        }
        let (run, machine) = (session.run + 1, row.machine);
        be_here(&directory, run);
        journal.note(EventBody::SessionResumed(SessionResumed {
            run,
            machine,
            hooks: None,
            scripts: None,
        }));
        // A session whose outcome was already decided keeps it if only `session_end` is left.
        let session = &journal.session;
        let is_settled = session.outcome.is_some()
            && session.pending.is_empty()
            && !matches!(session.phase, SessionPhase::Turn(_))
            && !session.is_unproven();
        if !is_settled {
            journal.note(EventBody::SessionEnding(SessionOutcome::Interrupted));
        }
        journal.commit()?;
        let place = (directory, lock);
        found.push(SessionHandle::locked((project, runner), row.id, journal.session, place, true)?);
    }
    Ok(found)
}

/// Returns workers' sessions on this machine whose process died and which still hold their claims.
pub fn resumable(project: &Project, runner: &HookRunner) -> Result<Vec<SessionId>, StartError> {
    let mut found = Vec::new();
    for row in project.read(|view| view.open_sessions(OPEN_MAX))? {
        let is_here = directory(runner, &row.id).join(LOCK).exists();
        if !is_here || row.state == SessionState::Paused || is_external(&row) || is_review(&row) {
            continue;
        }
        let Some((directory, _lock)) = lock_of_dead(runner, &row.id)? else { continue };
        let session = journal(project, &row.id)?.session;
        let is_worker = session.plan.worker.is_some() && session.outcome.is_none();
        if is_worker && was_here(&directory, session.run) && has_task(project, &row.id)? {
            found.push(row.id);
        }
    }
    Ok(found)
}

/// Returns whether a session has claimed a task.
fn has_task(project: &Project, id: &SessionId) -> Result<bool, StartError> {
    Ok(project.read(|view| view.held_by(&id.actor()))?.is_some())
}

/// Takes over a worker's session whose lease expired, to end it.
///
/// Returns none if the session is over, external, not a worker's, or has a task again. It also
/// returns none if a process on this machine runs the session: that process finds out by itself.
pub fn end_abandoned(
    project: &Project,
    runner: &HookRunner,
    id: &SessionId,
    machine: &str,
) -> Result<Option<SessionHandle>, StartError> {
    let row = project.read(|view| view.session(id))?;
    let Some(row) = row.filter(|row| !row.is_over() && !is_external(row)) else { return Ok(None) };
    // Taking the lock marks this process as the holder, so the checks come first.
    let is_ours =
        |session: &Session| session.phase != SessionPhase::Ended && session.plan.worker.is_some();
    if has_task(project, id)? || !is_ours(&self::journal(project, id)?.session) {
        return Ok(None);
    }
    let Some((directory, lock)) = lock_of_dead(runner, &row.id)? else { return Ok(None) };
    let mut journal = self::journal(project, id)?;
    if !is_ours(&journal.session) {
        return Ok(None);
    }
    let run = journal.session.run + 1;
    be_here(&directory, run);
    let machine = machine.to_owned();
    let (hooks, scripts) = (None, None);
    journal.note(EventBody::SessionResumed(SessionResumed { run, machine, hooks, scripts }));
    journal.note(EventBody::SessionEnding(SessionOutcome::Interrupted));
    journal.commit()?;
    let place = (directory, lock);
    SessionHandle::locked((project, runner), row.id, journal.session, place, true).map(Some)
}
