//! A session's work, state and stop conditions in words.

use hookloop_core::session::{SessionPlan, SessionState, SessionWork, StopWhen};
use hookloop_engine::project::Project;
use hookloop_engine::session::lookup;
use hookloop_engine::store::SessionRow;

use crate::sanitize::plain;

/// Returns the stop conditions of a session in words.
pub(crate) fn stop_when(plan: &SessionPlan, has_gates: bool) -> String {
    let (gates, note) = if has_gates {
        (" and the gates pass", "")
    } else {
        ("", " (no gates: the result will not be proven)")
    };
    let way = |way: &StopWhen| match way {
        StopWhen::Default | StopWhen::Promise => format!("the agent reports completion{gates}"),
        StopWhen::Validation => "the gates pass".to_owned(),
        StopWhen::Turn => format!("a turn ends{gates}"),
        StopWhen::Tasks => format!("no task is open{gates}"),
        StopWhen::Hook(name) => format!("hook {} reports completion{gates}", plain(name)),
    };
    let ways = plan.stop_when.iter().map(way).collect::<Vec<_>>().join(", ");
    format!("{ways}{note}")
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

/// Returns the state of a session for people: a complete session may not be proven.
pub(crate) fn state_text(row: &SessionRow, is_running: bool, machine: &str) -> String {
    let state = state(row, is_running, machine);
    // A review proves nothing, and without an iteration there was nothing to prove.
    let is_work = !lookup::is_review(row) && row.iteration > 0;
    match state == SessionState::Complete && !row.proven && is_work {
        true => format!("{state}, not proven"),
        false => state.to_string(),
    }
}

/// Whether a session has not ended and its program died.
pub(crate) fn is_interrupted(project: &Project, row: &SessionRow) -> bool {
    row.state == SessionState::Running && !lookup::is_performed(project, row)
}
