//! Finding a session: by name, by state, and by whether a process runs it.

use std::path::PathBuf;

use hookloop_config::clock::now;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::plan::is_external_agent;
use hookloop_core::session::{Session, SessionState};
use hookloop_hooks::runner::HookRunner;
use hookloop_store::view::{REVIEW, SessionRow};

use super::journal::SessionJournal;
use super::session_directory::{LOCK, directory, is_held, is_running, was_here};
use super::start_error::StartError;
use crate::error::EngineError;
use crate::project::Project;

/// Maximum sessions that a search examines.
pub(super) const OPEN_MAX: usize = 1_000;
/// An external session without an event for this long has ended.
const EXTERNAL_SILENT_MAX_MS: i64 = 24 * 60 * 60 * 1_000;

/// Maximum sessions that an error names.
const NAMED_MAX: usize = 5;

/// Returns whether the session is an external session: hookloop did not start its agent.
pub fn is_external(row: &SessionRow) -> bool {
    is_external_agent(&row.agent)
}

/// Returns whether the session is a review of another session's work.
pub fn is_review(row: &SessionRow) -> bool {
    row.work == REVIEW
}

/// Returns the session that started last, except reviews.
pub fn latest(project: &Project) -> Result<Option<SessionRow>, StartError> {
    let rows = project.read(|view| view.sessions(OPEN_MAX))?;
    Ok(rows.into_iter().find(|row| !is_review(row)))
}

/// Returns whether an external session may still continue: its user can be away for hours.
pub(super) fn may_come_back(project: &Project, row: &SessionRow) -> Result<bool, StartError> {
    if !is_external(row) {
        return Ok(false);
    }
    let subject = Subject::Session(row.id.clone());
    let last = project.log().history(&subject, 1).map_err(EngineError::from)?;
    let silent_ms = last.last().map_or(0, |last| now().millis_since(last.event.at));
    Ok(silent_ms < EXTERNAL_SILENT_MAX_MS)
}

/// Returns external sessions that have been silent for too long, at most `max`.
pub(crate) fn silent_external_sessions(
    project: &Project,
    max: usize,
) -> Result<Vec<SessionId>, StartError> {
    let mut gone = Vec::new();
    for row in project.read(|view| view.open_sessions(OPEN_MAX))? {
        if gone.len() < max && is_external(&row) && !may_come_back(project, &row)? {
            gone.push(row.id);
        }
    }
    Ok(gone)
}

/// Returns the session that `wanted` names: by its id, the beginning of its id, or its name.
pub fn find(project: &Project, wanted: &str) -> Result<SessionRow, StartError> {
    let rows = project.read(|view| view.sessions(OPEN_MAX))?;
    let is_exact = |row: &&SessionRow| row.id.as_str() == wanted || row.name == wanted;
    if let Some(row) = rows.iter().find(is_exact) {
        return Ok(row.clone());
    }
    let starting = rows.into_iter().filter(|row| row.id.as_str().starts_with(wanted));
    let mut starting: Vec<SessionRow> = starting.take(NAMED_MAX).collect();
    match starting.len() {
        0 => Err(StartError::NoSuchSession(wanted.to_owned())),
        1 => Ok(starting.remove(0)),
        _ => {
            let ids = starting.into_iter().map(|row| row.id).collect();
            Err(StartError::SeveralBegin(wanted.to_owned(), ids))
        }
    }
}

/// Returns the open session that `wanted` names.
///
/// Without a name: a running session, else the last open one.
pub(super) fn find_open(project: &Project, wanted: Option<&str>) -> Result<SessionRow, StartError> {
    let row = match wanted {
        Some(wanted) => find(project, wanted)?,
        None => {
            let open = project.read(|view| view.open_sessions(OPEN_MAX))?;
            let mut open: Vec<SessionRow> =
                open.into_iter().filter(|row| !is_review(row)).collect();
            // A running session comes before an interrupted one.
            let running = open.iter().position(|row| is_performed(project, row));
            if open.is_empty() {
                return Err(StartError::NothingToResume);
            }
            open.swap_remove(running.unwrap_or(0))
        }
    };
    match row.is_over() {
        true => Err(StartError::Over(row.id, row.state.to_string())),
        // A review is short and takes no requests.
        false if is_review(&row) => Err(StartError::Review(row.id)),
        false => Ok(row),
    }
}

/// Returns the state of a session, computed from its events.
pub fn session(project: &Project, id: &SessionId) -> Result<Session, StartError> {
    Ok(journal(project, id)?.session)
}

pub(super) fn journal<'p>(
    project: &'p Project,
    id: &SessionId,
) -> Result<SessionJournal<'p>, StartError> {
    SessionJournal::open(project, id)?.ok_or_else(|| StartError::NoSuchSession(id.to_string()))
}

/// Returns whether a process runs the session.
///
/// If the last start was on another machine or in another checkout, the session's state alone
/// decides.
pub fn is_performed(project: &Project, row: &SessionRow) -> bool {
    if row.is_over() || is_external(row) {
        return !row.is_over();
    }
    let runner = project.runner();
    match row.state {
        SessionState::Running => {
            runner.is_none_or(|runner| !is_abandoned(project, runner, &row.id))
        }
        _ => runner.is_some_and(|runner| is_running(runner, &row.id)),
    }
}

/// Describes the state of a session that no process runs.
pub(super) fn stopped_state(row: &SessionRow) -> String {
    match row.state {
        SessionState::Running => "its program died".to_owned(),
        state => state.to_string(),
    }
}

/// Returns whether a process on this machine ran the session last and died.
pub(crate) fn is_abandoned(project: &Project, runner: &HookRunner, id: &SessionId) -> bool {
    let directory = directory(runner, id);
    if !directory.join(LOCK).exists() || is_held(&directory) {
        return false;
    }
    let was_here = SessionJournal::open(project, id).is_ok_and(|journal| {
        journal.is_some_and(|journal| was_here(&directory, journal.session.run))
    });
    // Another process may have resumed it since.
    was_here && !is_held(&directory)
}

/// Returns the hook runner of a project. Fails if the project has no directory.
pub fn runner(project: &Project) -> Result<&HookRunner, StartError> {
    let nowhere = || std::io::Error::other("there is no directory to work in");
    let failed = || StartError::Io { path: PathBuf::new(), source: nowhere() };
    project.runner().ok_or_else(failed)
}
