//! A session's work, state and stop conditions in words.

use hookloop_core::session::{SessionPlan, SessionState, SessionWork, StopWhen};
use hookloop_engine::project::Project;
use hookloop_engine::session::lookup;
use hookloop_engine::store::SessionRow;

use crate::sanitize::plain;

/// Returns the stop conditions of a session in words.
pub(crate) fn stop_when(plan: &SessionPlan) -> String {
    let way = |way: &StopWhen| match way {
        StopWhen::Default | StopWhen::Promise => {
            "the agent reports completion and the gates pass".to_owned()
        }
        StopWhen::Validation => "the gates pass".to_owned(),
        StopWhen::Turn => "a turn ends and the gates pass".to_owned(),
        StopWhen::Tasks => "no task is open and the gates pass".to_owned(),
        StopWhen::Hook(name) => {
            format!("hook {} reports completion and the gates pass", plain(name))
        }
    };
    plan.stop_when.iter().map(way).collect::<Vec<_>>().join(", ")
}

/// Returns the work of a session.
pub(crate) fn work(work: &SessionWork) -> String {
    match work {
        SessionWork::Prompt(prompt) => {
            plain(prompt.lines().next().unwrap_or_default()).into_owned()
        }
        SessionWork::Spec(path) => format!("spec {}", plain(path)),
        SessionWork::Tasks => "tasks".to_owned(),
        SessionWork::Task(id) => format!("task {id}"),
        SessionWork::Own => "work that its user requests".to_owned(),
        SessionWork::Review(_) => "a review".to_owned(),
    }
}

/// Returns the state of a session; a session of this machine that no process runs is interrupted.
pub(crate) fn state(row: &SessionRow, is_running: bool, machine: &str) -> SessionState {
    let is_there = is_running || row.machine != machine || lookup::is_external(row);
    match (row.state, is_there) {
        (SessionState::Running, false) => SessionState::Interrupted,
        (state, _) => state,
    }
}

/// Whether a session has not ended and its program died.
pub(crate) fn is_interrupted(project: &Project, row: &SessionRow) -> bool {
    row.state == SessionState::Running && !lookup::is_performed(project, row)
}
