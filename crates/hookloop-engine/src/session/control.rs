//! Requests to a running session: stop, pause, and messages to the agent.

use std::fs;

use hookloop_core::authority::ControlledAction;
use hookloop_core::event::{EventBody, NoData};
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::state::MESSAGE;
use hookloop_core::session::{PipedOutput, PromptChannel, SessionState};
use hookloop_hooks::runner::HookRunner;
use hookloop_store::view::SessionRow;

use super::lookup::{
    OPEN_MAX, find, find_open, is_external, is_performed, is_review, stopped_state,
};
use super::session_directory::{STOP, directory, is_running};
use super::start_error::{MESSAGE_BYTES_MAX, StartError};
use crate::project::Project;

/// A request to stop a session, and where the session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    pub id: SessionId,
    /// Whether the session runs on this machine.
    pub is_here: bool,
    pub machine: String,
}

/// Asks a running session to stop now: the named one, else the only one in this directory.
pub fn stop(
    project: &Project,
    runner: &HookRunner,
    wanted: Option<&str>,
    machine: &str,
) -> Result<StopRequest, StartError> {
    project.authorize(ControlledAction::StopSession)?;
    let row = match wanted {
        Some(wanted) => find(project, wanted)?,
        None => {
            let open = project.read(|view| view.open_sessions(OPEN_MAX))?;
            let is_here = |row: &SessionRow| !is_review(row) && is_running(runner, &row.id);
            let mut here: Vec<SessionRow> = open.into_iter().filter(is_here).collect();
            match here.len() {
                0 => return Err(StartError::NothingRuns),
                1 => here.remove(0),
                _ => {
                    return Err(StartError::SeveralRun(
                        here.into_iter().map(|row| row.id).collect(),
                    ));
                }
            }
        }
    };
    if is_external(&row) {
        return Err(StartError::External(row.id));
    }
    if is_review(&row) {
        return Err(StartError::Review(row.id));
    }
    let is_here = is_running(runner, &row.id);
    let is_elsewhere = !is_here && row.machine != machine && row.state == SessionState::Running;
    if row.is_over() || !is_here && !is_elsewhere {
        let state = stopped_state(&row);
        return Err(StartError::NotRunning(row.id, state));
    }
    project.append(&Subject::Session(row.id.clone()), EventBody::StopRequested(NoData {}))?;
    if is_here {
        let path = directory(runner, &row.id).join(STOP);
        fs::write(&path, "").map_err(|source| StartError::Io { path, source })?;
    }
    Ok(StopRequest { id: row.id, is_here, machine: row.machine })
}

/// Asks a running session to pause before its next iteration.
pub fn pause(project: &Project, wanted: Option<&str>) -> Result<SessionId, StartError> {
    project.authorize(ControlledAction::PauseSession)?;
    let row = find_open(project, wanted)?;
    if is_external(&row) {
        return Err(StartError::External(row.id));
    }
    if !is_performed(project, &row) {
        let state = stopped_state(&row);
        return Err(StartError::NotRunning(row.id, state));
    }
    project.append(&Subject::Session(row.id.clone()), EventBody::PauseRequested(NoData {}))?;
    Ok(row.id)
}

/// Stores a message for the agent of a session. The next prompt contains it.
pub fn message(
    project: &Project,
    wanted: Option<&str>,
    text: &str,
) -> Result<SessionId, StartError> {
    project.authorize(ControlledAction::MessageAgent)?;
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(StartError::LongMessage(text.len()));
    }
    let row = find_open(project, wanted)?;
    project.append(&Subject::Session(row.id.clone()), said(project, text))?;
    Ok(row.id)
}

/// Returns a message for the next prompt from the current actor.
pub(crate) fn said(project: &Project, text: &str) -> EventBody {
    let (from, point) = (project.actor().to_owned(), MESSAGE.to_owned());
    let (text, channel) = (text.to_owned(), Some(PromptChannel::User));
    EventBody::OutputPiped(PipedOutput { from, point, text, channel, ..PipedOutput::default() })
}
