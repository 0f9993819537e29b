//! `hookloop why`

use hookloop_core::id::TaskId;
use hookloop_engine::project::Project;
use hookloop_engine::session::{lookup, session_directory};
use hookloop_engine::store::SessionRow;
use serde_json::json;

use super::context::CommandContext;
use super::session::runner;
use crate::environment::machine;
use crate::error::{CliError, CliResult};
use crate::ids;
use crate::output::{BOLD, DIM};
use crate::present::why::{
    StateReasons, failed_reactions, of_session, of_task, session_of_task, trust_changes,
};
use crate::present::{self, now};
use crate::sanitize::plain;

/// Explain the state of a session or task, and the next step
#[derive(clap::Args)]
pub(crate) struct WhyArgs {
    /// Id of a session or task, or its start [default: the latest session]
    what: Option<String>,
}

enum WhyTarget {
    Session(Box<SessionRow>),
    Task(TaskId),
}

/// Finds the session or task of an id. A whole id comes before the start of another one.
fn named(project: &Project, text: &str) -> CliResult<WhyTarget> {
    let task = ids::resolve(project, text);
    match (lookup::find(project, text), task) {
        (Ok(row), _) if row.id.as_str() == text || row.name == text => {
            Ok(WhyTarget::Session(Box::new(row)))
        }
        (_, Ok(id)) if id.as_str() == text => Ok(WhyTarget::Task(id)),
        (Ok(row), Ok(id)) => {
            let message = format!("`{text}` could be the session {} or the task {id}", row.id);
            Err(CliError::refused(message).hint(format!("hookloop why {id}")))
        }
        (Ok(row), Err(_)) => Ok(WhyTarget::Session(Box::new(row))),
        (Err(_), Ok(id)) => Ok(WhyTarget::Task(id)),
        (Err(_), Err(_)) => {
            let message = format!("there is no session and no task `{text}`");
            Err(CliError::refused(message).hint("hookloop sessions list"))
        }
    }
}

/// Finds the session that started last.
fn latest(project: &Project) -> CliResult<WhyTarget> {
    let none =
        || CliError::refused("there are no sessions yet").hint("hookloop run \"…\" --agent claude");
    Ok(WhyTarget::Session(Box::new(lookup::latest(project)?.ok_or_else(none)?)))
}

impl WhyArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let target = match &self.what {
            Some(what) => named(&project, what)?,
            None => latest(&project)?,
        };
        let (id, state, reason, record) = match target {
            WhyTarget::Session(row) => {
                let session = lookup::session(&project, &row.id)?;
                let is_running = session_directory::is_running(runner(&project)?, &row.id);
                let mut reason = of_session(&row, &session, is_running);
                reason.reasons.extend(failed_reactions(&project, &row.id)?);
                reason.reasons.extend(trust_changes(&project)?);
                let record = now::of(&project, &row.id);
                if let Some(record) = record.as_ref().filter(|_| session.outcome.is_none()) {
                    reason.replace_step(&session, now::lines(record, project.now()));
                }
                let state = present::state_text(&row, is_running, &machine());
                (row.id.to_string(), state, reason, record)
            }
            WhyTarget::Task(id) => {
                let record = session_of_task(&project, &id)?.and_then(|id| now::of(&project, &id));
                let reason = of_task(&project, &id)?;
                (id.to_string(), reason.state.clone(), reason, record)
            }
        };
        let out = &mut context.out;
        if out.json {
            // Scripts compare the state, so JSON has its name alone.
            let StateReasons { state, reasons, next } = reason;
            return out.json(&json!({
                "id": id, "state": state, "reasons": reasons, "next": next, "now": record,
            }));
        }
        out.line(format_args!("{BOLD}{id}{BOLD:#} {state}"))?;
        for reason in &reason.reasons {
            out.line(format_args!("  {}", plain(reason)))?;
        }
        match reason.next {
            Some(next) => out.line(format_args!("  {DIM}run:{DIM:#} {next}")),
            None => Ok(()),
        }
    }
}
