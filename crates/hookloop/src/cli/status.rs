use hookloop_core::delivery::QueuePlace;
use hookloop_core::time::Timestamp;
use hookloop_engine::gate_agreement;
use hookloop_engine::kept::Kept;
use hookloop_engine::project::Project;
use hookloop_engine::session::now::NowRecord;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::error::Result;
use crate::output::{DIM, state_style};
use crate::present;
use crate::present::now;
use crate::sanitize::plain;

/// Tasks on their way into the base that are shown.
const MERGING_MAX: usize = 20;

/// Sessions whose step is shown.
const RUNNING_MAX: usize = 20;

/// Say how the project stands
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let place = context.place()?;
        let project = context.project_to_read()?;
        let (totals, claimed, stuck, due, running, problems) = project.read(|view| {
            let stuck = view.count_stuck()?;
            let due = view.count_due()?;
            let totals = view.totals()?;
            let claimed = view.count_claimed()?;
            Ok((totals, claimed, stuck, due, view.count_runs()?, view.count_problems()?))
        })?;
        let (counts, early) = project.read(|view| Ok((view.counts()?, view.early()?)))?;
        let merging = merging(&project)?;
        let sessions = sessions(&project)?;
        let interrupted = interrupted(&project)?;
        let kept = project.kept();
        let weakened = gate_agreement::weakened_lines(&project);
        let foreign = project.foreign_messages()?.len();
        let replaced =
            project.store().replaced().map_err(hookloop_engine::project::EngineError::from)?;
        let out = &mut context.out;
        if out.json {
            let tasks: serde_json::Map<String, serde_json::Value> =
                counts.iter().map(|(state, n)| (state.name().to_owned(), json!(n))).collect();
            return out.json(&json!({
                "root": place.root,
                "state": place.state,
                "store": store_json(kept),
                "events": totals.head,
                "tasks": tasks,
                "claimed": claimed,
                "problems": problems,
                "weakened_gates": weakened,
                "foreign_messages": foreign,
                "replaced_log": replaced,
                "sessions": sessions,
                "interrupted_sessions": interrupted,
                "merging": merging,
                "waiting_on_blocked": stuck,
                "waiting_for_time": { "tasks": early.count, "next": early.next },
                "reactions_due": due,
                "workflows": {
                    "running": running,
                    "completed": totals.runs.completed,
                    "failed": totals.runs.failed,
                },
            }));
        }
        out.line(format_args!("{DIM}project{DIM:#}  {}", place.root.display()))?;
        match kept {
            Kept::Here => {
                out.line(format_args!("{DIM}kept in{DIM:#}  {}", place.state.display()))?
            }
            Kept::Nats { urls, project, standing } => {
                let copies = match standing.copies {
                    1 => "1 copy".to_owned(),
                    n => format!("{n} copies"),
                };
                out.line(format_args!("{DIM}kept in{DIM:#}  {urls} as {project}, {copies}"))?;
                for doubt in &standing.accepted {
                    let red = anstyle::AnsiColor::Red.on_default().bold();
                    out.line(format_args!("{red} UNSAFE{red:#}  {}", plain(doubt)))?;
                }
            }
        }
        if !weakened.is_empty() {
            let red = anstyle::AnsiColor::Red.on_default().bold();
            let text = "fewer or weaker than you agreed to: hookloop hooks trust";
            out.line(format_args!("{red}  gates{red:#}  {text}"))?;
            for line in &weakened {
                out.line(format_args!("         {}", plain(line)))?;
            }
        }
        let red = anstyle::AnsiColor::Red.on_default().bold();
        if foreign > 0 {
            let text = "foreign messages are in the log, and are skipped: hookloop verify";
            out.line(format_args!("{red}    log{red:#}  {foreign} {text}"))?;
        }
        if let Some(last) = replaced {
            let text =
                "the stream was made anew, and acknowledged events are gone: hookloop verify";
            out.line(format_args!("{red}    log{red:#}  {text} (the last was {last})"))?;
        }
        out.line(format_args!("{DIM} events{DIM:#}  {}", totals.head))?;
        out.line(format_args!("{DIM}  tasks{DIM:#}  {}", totals.tasks()))?;
        for (state, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let style = state_style(state);
            out.line(format_args!("{count:>9}  {style}{state}{style:#}"))?;
        }
        if let Some(next) = early.next {
            let text = format!("waiting for their time, the next for {}", next.brief());
            out.line(format_args!("{:>9}  {text}", early.count))?;
        }
        for session in &sessions {
            let task = session.task.as_ref().map_or(String::new(), |task| format!(" task {task},"));
            let text = format!("{}{task} {}", session.id, now::line(&session.now, project.now()));
            let text = out.fitting(&plain(&text), "running  ".len());
            out.line(format_args!("{DIM}running{DIM:#}  {text}"))?;
        }
        for session in &interrupted {
            let task =
                session.task.as_ref().map_or(String::new(), |task| format!(" (task {task})"));
            let text = format!("{}{task} was interrupted: {}", session.id, session.next);
            out.line(format_args!("{DIM}session{DIM:#}  {}", plain(&text)))?;
        }
        for waiting in &merging {
            let text = format!("{}: {}", waiting.task, waiting.text());
            out.line(format_args!("{DIM}merging{DIM:#}  {}", plain(&text)))?;
        }
        let notes = [
            (problems, "waiting for you: hookloop inbox list"),
            (claimed, "claimed: hookloop task list --state active"),
            (stuck, "waiting for a blocked task: hookloop task list --state blocked"),
            (due, "reactions left to do: any command does them"),
            (totals.runs.failed, "workflows failed: hookloop log --type workflow_failed"),
        ];
        for (count, text) in notes.into_iter().filter(|(count, _)| *count > 0) {
            out.line(format_args!("{count:>9}  {text}"))?;
        }
        Ok(())
    }
}

/// A session that a process of this machine performs.
#[derive(Serialize)]
struct RunningSession {
    id: String,
    work: String,
    task: Option<String>,
    since: Timestamp,
    now: NowRecord,
}

fn sessions(project: &Project) -> Result<Vec<RunningSession>> {
    let rows = project.read(|view| view.open_sessions(RUNNING_MAX))?;
    let running = rows.into_iter().filter_map(|row| {
        let now = now::of(project, &row.id)?;
        let id = row.id.to_string();
        let work = row.work;
        let since = row.started_at;
        Some(RunningSession { id, work, task: now.task.clone().or(row.task), since, now })
    });
    Ok(running.collect())
}

/// A session of this machine that has not ended and whose program died.
#[derive(Serialize)]
struct InterruptedSession {
    id: String,
    work: String,
    task: Option<String>,
    since: Timestamp,
    /// The command that continues it.
    next: String,
}

fn interrupted(project: &Project) -> Result<Vec<InterruptedSession>> {
    let rows = project.read(|view| view.open_sessions(RUNNING_MAX))?;
    let interrupted = rows.into_iter().filter(|row| present::is_interrupted(project, row));
    let described = interrupted.map(|row| {
        let id = row.id.to_string();
        let next = format!("hookloop resume {}", row.id);
        InterruptedSession { id, work: row.work, task: row.task, since: row.started_at, next }
    });
    Ok(described.collect())
}

/// A submitted task that the forge merges later.
#[derive(Serialize)]
struct WaitingMerge {
    task: String,
    waits_for: String,
    queue: Option<QueuePlace>,
}

impl WaitingMerge {
    fn text(&self) -> String {
        match &self.queue {
            Some(place) => format!("{}, {place}", self.waits_for),
            None => self.waits_for.clone(),
        }
    }
}

/// Submitted tasks for which it is known what the forge waits for.
fn merging(project: &Project) -> Result<Vec<WaitingMerge>> {
    let waiting = project.read(|view| view.waiting(MERGING_MAX))?;
    let awaited = waiting.into_iter().filter_map(|waiting| {
        let awaited = waiting.delivery.awaited?;
        let task = waiting.row.task.id.to_string();
        let waits_for = awaited.reason?;
        Some(WaitingMerge { task, waits_for, queue: awaited.queue })
    });
    Ok(awaited.collect())
}

fn store_json(kept: &Kept) -> Value {
    match kept {
        Kept::Here => json!({ "engine": "sqlite" }),
        Kept::Nats { urls, project, standing } => json!({
            "engine": "jetstream",
            "urls": urls,
            "project": project.as_str(),
            "copies": standing.copies,
            "server_version": standing.version,
            "unsafe": standing.accepted,
        }),
    }
}
