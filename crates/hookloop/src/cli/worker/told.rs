//! The events of a worker as text, JSON and log lines.

use hookloop_core::session::SessionOutcome;
use hookloop_core::trace::SpanNames;
use hookloop_fleet::fleet::WorkerState;
use hookloop_fleet::worker::{End, Told};
use serde::Serialize;

use crate::cli::merge::ArrivalJson;
use crate::logs::{LogLevel, LogLine};
use crate::output::DIM;
use crate::sanitize::plain;

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "worker", rename_all = "snake_case")]
pub(super) enum ToldJson<'a> {
    Took {
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
    Arrived {
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
    Unfit {
        project: &'a str,
        reason: Option<&'a str>,
    },
    Trouble {
        project: Option<&'a str>,
        reason: &'a str,
    },
}

fn end_words(end: &End) -> (&str, Option<String>) {
    match end {
        End::Outcome(outcome) => {
            let reason = match outcome {
                SessionOutcome::NeedsHuman { reason } => Some(reason.clone()),
                SessionOutcome::Limit { limit } => Some(limit.name().to_owned()),
                _ => None,
            };
            (outcome.name(), reason)
        }
        End::Taken => ("taken", None),
        End::Trouble(why) => ("trouble", Some(why.clone())),
    }
}

pub(super) fn json_of<'a>(told: &'a Told<'a>) -> ToldJson<'a> {
    match told {
        Told::Took { project, task, session, is_resumed } => ToldJson::Took {
            project,
            task: task.as_str(),
            session: session.as_str(),
            resumed: *is_resumed,
        },
        Told::Ended { project, task, session, end } => {
            let (outcome, reason) = end_words(end);
            let task = task.as_str();
            let session = session.as_str();
            ToldJson::Ended { project, task, session, outcome, reason }
        }
        Told::Arrived { project, arrival } => {
            ToldJson::Arrived { project, arrival: ArrivalJson::from(*arrival) }
        }
        Told::Expired { project, task, agent } => {
            ToldJson::Expired { project, task: task.as_str(), agent }
        }
        Told::State(state) => ToldJson::State { state: state.name() },
        Told::Unfit { project, why } => ToldJson::Unfit { project, reason: *why },
        Told::Trouble { project, why } => ToldJson::Trouble { project: *project, reason: why },
    }
}

/// The same as a line of a log.
pub(super) fn log_line(told: &Told<'_>, is_traced: bool) -> LogLine {
    let level = match told {
        Told::Took { .. }
        | Told::Arrived { .. }
        | Told::State(_)
        | Told::Unfit { why: None, .. } => LogLevel::Info,
        Told::Ended {
            end: End::Outcome(SessionOutcome::Complete { .. } | SessionOutcome::Cancelled),
            ..
        } => LogLevel::Info,
        Told::Ended { .. } | Told::Expired { .. } | Told::Unfit { .. } | Told::Trouble { .. } => {
            LogLevel::Warn
        }
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
        Told::Took { session, .. } | Told::Ended { session, .. } if is_traced => {
            line.with("trace_id", SpanNames::new((*session).clone(), None).trace().to_string())
        }
        _ => line,
    }
}

pub(super) fn line_of(told: &Told<'_>) -> String {
    let line = plain(&words_of(told)).to_string();
    match told {
        Told::Trouble { .. } => format!("{DIM}{line}{DIM:#}"),
        _ => line,
    }
}

fn words_of(told: &Told<'_>) -> String {
    match told {
        Told::Took { project, task, session, is_resumed } => {
            let verb = if *is_resumed { "goes on with" } else { "took" };
            format!("{project}: {verb} {task} (session {session})")
        }
        Told::Ended { project, task, session, end } => {
            let (outcome, reason) = end_words(end);
            let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
            format!("{project}: {task} {outcome}{reason} (session {session})")
        }
        Told::Arrived { project, arrival } => format!("{project}: {arrival}"),
        Told::Expired { project, task, agent } => {
            format!("{project}: {task} is ready again: {agent} was silent for its lease")
        }
        Told::State(WorkerState::Working) => "working".to_owned(),
        Told::State(state) => format!("{}: nothing new is begun", state.name()),
        Told::Unfit { project, why: Some(why) } => format!("{project}: takes nothing: {why}"),
        Told::Unfit { project, why: None } => format!("{project}: takes tasks again"),
        Told::Trouble { project: Some(project), why } => format!("{project}: {why}"),
        Told::Trouble { project: None, why } => why.clone(),
    }
}
