//! The events of a worker as text, JSON and log lines.

use hookloop_core::session::SessionOutcome;
use hookloop_core::trace::SpanNames;
use hookloop_fleet::fleet::WorkerState;
use hookloop_fleet::worker::{TaskRunEnd, WorkerUpdate};
use serde::Serialize;

use crate::cli::merge::ArrivalJson;
use crate::logs::{LogLevel, LogLine};
use crate::output::DIM;
use crate::sanitize::plain;

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "worker", rename_all = "snake_case")]
pub(super) enum ToldJson<'a> {
    Claimed {
        project: &'a str,
        task: &'a str,
        session: &'a str,
        resumed: bool,
    },
    Ended {
        project: &'a str,
        task: &'a str,
        session: &'a str,
        outcome: &'a str,
        reason: Option<String>,
    },
    MergeResult {
        project: &'a str,
        #[serde(flatten)]
        arrival: ArrivalJson<'a>,
    },
    Expired {
        project: &'a str,
        task: &'a str,
        agent: &'a str,
    },
    Metrics {
        url: &'a str,
        token_file: &'a str,
    },
    State {
        state: &'static str,
    },
    Ineligible {
        project: &'a str,
        reason: Option<&'a str>,
    },
    Error {
        project: Option<&'a str>,
        reason: &'a str,
    },
}

fn end_words(end: &TaskRunEnd) -> (&str, Option<String>) {
    match end {
        TaskRunEnd::Outcome(outcome) => {
            let reason = match outcome {
                SessionOutcome::NeedsHuman { reason } => Some(reason.clone()),
                SessionOutcome::Limit { limit } => Some(limit.name().to_owned()),
                _ => None,
            };
            (outcome.name(), reason)
        }
        TaskRunEnd::TakenOver => ("taken_over", None),
        TaskRunEnd::Error(why) => ("error", Some(why.clone())),
    }
}

pub(super) fn json_of<'a>(told: &'a WorkerUpdate<'a>) -> ToldJson<'a> {
    match told {
        WorkerUpdate::Claimed { project, task, session, is_resumed } => ToldJson::Claimed {
            project,
            task: task.as_str(),
            session: session.as_str(),
            resumed: *is_resumed,
        },
        WorkerUpdate::Ended { project, task, session, end } => {
            let (outcome, reason) = end_words(end);
            let task = task.as_str();
            let session = session.as_str();
            ToldJson::Ended { project, task, session, outcome, reason }
        }
        WorkerUpdate::MergeResult { project, arrival } => {
            ToldJson::MergeResult { project, arrival: ArrivalJson::from(*arrival) }
        }
        WorkerUpdate::Expired { project, task, agent } => {
            ToldJson::Expired { project, task: task.as_str(), agent }
        }
        WorkerUpdate::State(state) => ToldJson::State { state: state.name() },
        WorkerUpdate::Ineligible { project, why } => ToldJson::Ineligible { project, reason: *why },
        WorkerUpdate::Error { project, why } => ToldJson::Error { project: *project, reason: why },
    }
}

/// Returns the update as a log line.
pub(super) fn log_line(told: &WorkerUpdate<'_>, is_traced: bool) -> LogLine {
    let level = match told {
        WorkerUpdate::Claimed { .. }
        | WorkerUpdate::MergeResult { .. }
        | WorkerUpdate::State(_)
        | WorkerUpdate::Ineligible { why: None, .. } => LogLevel::Info,
        WorkerUpdate::Ended {
            end: TaskRunEnd::Outcome(SessionOutcome::Complete { .. } | SessionOutcome::Cancelled),
            ..
        } => LogLevel::Info,
        WorkerUpdate::Ended { .. }
        | WorkerUpdate::Expired { .. }
        | WorkerUpdate::Ineligible { .. }
        | WorkerUpdate::Error { .. } => LogLevel::Warn,
    };
    let mut line = LogLine::new(level, "worker", words_of(told));
    // The fields are those of `--json`.
    if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(json_of(told)) {
        for (name, value) in fields {
            let name = if name == "worker" { "event".to_owned() } else { name };
            line = line.with(&name, value);
        }
    }
    match told {
        WorkerUpdate::Claimed { session, .. } | WorkerUpdate::Ended { session, .. }
            if is_traced =>
        {
            line.with("trace_id", SpanNames::new((*session).clone(), None).trace().to_string())
        }
        _ => line,
    }
}

pub(super) fn line_of(told: &WorkerUpdate<'_>) -> String {
    let line = plain(&words_of(told)).to_string();
    match told {
        WorkerUpdate::Error { .. } => format!("{DIM}{line}{DIM:#}"),
        _ => line,
    }
}

fn words_of(told: &WorkerUpdate<'_>) -> String {
    match told {
        WorkerUpdate::Claimed { project, task, session, is_resumed } => {
            let verb = if *is_resumed { "resumes" } else { "claimed" };
            format!("{project}: {verb} {task} (session {session})")
        }
        WorkerUpdate::Ended { project, task, session, end } => {
            let (outcome, reason) = end_words(end);
            let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
            format!("{project}: {task} {outcome}{reason} (session {session})")
        }
        WorkerUpdate::MergeResult { project, arrival } => format!("{project}: {arrival}"),
        WorkerUpdate::Expired { project, task, agent } => {
            format!("{project}: {task} is ready again: the lease of {agent} expired")
        }
        WorkerUpdate::State(WorkerState::Working) => "working".to_owned(),
        WorkerUpdate::State(state) => format!("{}: starts nothing new", state.name()),
        WorkerUpdate::Ineligible { project, why: Some(why) } => {
            format!("{project}: ineligible: {why}")
        }
        WorkerUpdate::Ineligible { project, why: None } => format!("{project}: eligible again"),
        WorkerUpdate::Error { project: Some(project), why } => format!("{project}: {why}"),
        WorkerUpdate::Error { project: None, why } => why.clone(),
    }
}
