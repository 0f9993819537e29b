//! `hookloop sessions`

use hookloop_core::event::EventBody;
use hookloop_core::id::Subject;
use hookloop_core::session::Session;
use hookloop_engine::session::{lookup, session_directory};
use hookloop_engine::store::{SessionRow, StoredEvent};
use hookloop_hooks::runner::HookRunner;

use super::session::runner;
use super::traces;
use crate::cli::context::CommandContext;
use crate::environment::machine;
use crate::error::CliResult;
use crate::json_output::{SessionDetailJson, SessionJson};
use crate::output::{BOLD, CommandOutput, DIM, TableCell};
use crate::present;
use crate::sanitize::plain;

#[derive(clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum SessionsCommand {
    List(SessionList),
    Show(SessionShow),
    Trace(traces::SessionTraceArgs),
}

impl SessionsCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            SessionsCommand::List(args) => args.run(context),
            SessionsCommand::Show(args) => args.run(context),
            SessionsCommand::Trace(args) => args.run(context),
        }
    }
}

/// List the latest sessions, newest first
#[derive(clap::Args)]
pub(crate) struct SessionList {
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

impl SessionList {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let runner = runner(&project)?;
        let rows = project.read(|view| view.sessions(self.limit))?;
        let is_running = |row: &SessionRow| is_running(runner, row);
        let out = &mut context.out;
        if out.json {
            let state =
                |row: &SessionRow| present::state(row, is_running(row), &machine()).to_string();
            let list: Vec<SessionJson<'_>> =
                rows.iter().map(|row| SessionJson::new(row, state(row))).collect();
            return out.json(&list);
        }
        if rows.is_empty() {
            return out.line("No sessions yet. Start one: hookloop run \"…\" --agent claude");
        }
        let now = project.now();
        let is_read = out.terminal;
        let started = |row: &SessionRow| {
            if is_read {
                present::ago(now.millis_since(row.started_at))
            } else {
                row.started_at.to_string()
            }
        };
        let cells: Vec<Vec<TableCell>> = rows
            .iter()
            .map(|row| {
                vec![
                    TableCell::new(&row.id),
                    TableCell::new(present::state_text(row, is_running(row), &machine())),
                    TableCell::new(row.iteration),
                    TableCell::new(started(row)),
                    TableCell::new(plain(&row.work)),
                ]
            })
            .collect();
        out.table(&["id", "state", "iterations", "started", "work"], &cells)
    }
}

/// Show a session with its turns, hooks and gates
///
/// With --json, the command prints the session, its turns and its receipts. `hookloop log --session` prints its events.
#[derive(clap::Args)]
pub(crate) struct SessionShow {
    /// Id, start of the id, or name of the session
    session: String,
}

impl SessionShow {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let row = lookup::find(&project, &self.session)?;
        let events = project.log().history(&Subject::Session(row.id.clone()), usize::MAX)?;
        let out = &mut context.out;
        if out.json {
            let is_running = is_running(runner(&project)?, &row);
            let state = present::state(&row, is_running, &machine()).to_string();
            return out.json(&SessionDetailJson::new(SessionJson::new(&row, state), &events));
        }
        let session = lookup::session(&project, &row.id)?;
        print_heading(&row, &session, out)?;
        print_steps(&events, &session, out)?;
        print_end(&row, &session, out)
    }
}

fn print_heading(row: &SessionRow, session: &Session, out: &mut CommandOutput) -> CliResult {
    let agent = plain(&row.agent);
    let work = present::work(&session.plan.work);
    out.line(format_args!("{BOLD}session {}{BOLD:#}  {work}", row.id))?;
    out.line(format_args!(
        "{DIM}agent {agent}, on {}, since {}{DIM:#}",
        plain(&row.machine),
        row.started_at
    ))?;
    out.line(format_args!("{DIM}limits: {}{DIM:#}", session.plan.limits))
}

/// Prints the events of a session, and the tree of the files after each turn.
fn print_steps(events: &[StoredEvent], session: &Session, out: &mut CommandOutput) -> CliResult {
    let mut turns = 0;
    for stored in events {
        let body = &stored.event.body;
        let Some((weight, text)) = present::line(body, &session.plan.limits) else { continue };
        let at = stored.event.at;
        match weight {
            present::StepSeverity::Heading => {
                out.line(format_args!("{DIM}{at}{DIM:#} {BOLD}{text}{BOLD:#}"))?
            }
            _ => out.line(format_args!("{DIM}{at}{DIM:#}   {text}"))?,
        }
        for line in present::details(body) {
            out.line(format_args!("{DIM}{at}{DIM:#}   {line}"))?;
        }
        if let EventBody::TurnEnded(ended) = body {
            turns += 1;
            if let Some(line) = present::files_after(turns, ended.tree.as_deref()) {
                out.line(format_args!("{DIM}{at}{DIM:#}   {}", plain(&line)))?;
            }
        }
    }
    Ok(())
}

/// Prints the result of a session and the next command, or its state if it has not ended.
fn print_end(row: &SessionRow, session: &Session, out: &mut CommandOutput) -> CliResult {
    let (_, text, next) = present::conclusion(row.id.as_str(), session);
    let text = if session.is_over() {
        text
    } else {
        let count = present::counted(session.iteration, "iteration", "iterations");
        format!("{} after {count}", row.state)
    };
    out.line(format_args!("{BOLD}{text}{BOLD:#}"))?;
    if let Some(advice) = present::no_changes_advice(session) {
        out.line(format_args!("  {DIM}{advice}{DIM:#}"))?;
    }
    match next.filter(|_| session.is_over()) {
        Some(next) => out.line(format_args!("  {}", next.line())),
        None => Ok(()),
    }
}

fn is_running(runner: &HookRunner, row: &SessionRow) -> bool {
    !row.is_over() && session_directory::is_running(runner, &row.id)
}
