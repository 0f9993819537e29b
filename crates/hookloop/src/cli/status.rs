use anstyle::AnsiColor;
use hookloop_config::paths::ProjectPaths;
use hookloop_core::delivery::QueuePlace;
use hookloop_core::task::TaskState;
use hookloop_core::time::Timestamp;
use hookloop_engine::error::EngineError;
use hookloop_engine::gate_agreement;
use hookloop_engine::log_location::LogLocation;
use hookloop_engine::project::Project;
use hookloop_engine::session::now::NowRecord;
use hookloop_engine::store::{DelayedTasks, Seq};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::{CommandOutput, DIM, state_style};
use crate::present;
use crate::present::now;
use crate::sanitize::plain;

/// Maximum number of tasks in the merge train that are shown.
const MERGING_MAX: usize = 20;

/// Sessions whose step is shown.
const RUNNING_MAX: usize = 20;

/// Show the state of the project
#[derive(clap::Args)]
pub(crate) struct StatusArgs {}

impl StatusArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let place = context.place()?;
        let project = context.project_to_read()?;
        let status = ProjectStatus::read(&project)?;
        let out = &mut context.out;
        if out.json {
            return out.json(&status.json(&place, project.kept()));
        }
        print_store(out, &place, project.kept())?;
        status.print_warnings(out)?;
        status.print_tasks(out)?;
        status.print_sessions(out, project.now())?;
        status.print_notes(out)
    }
}

/// The values that `hookloop status` shows.
struct ProjectStatus {
    events: Seq,
    tasks: u64,
    counts: [(TaskState, u64); 6],
    early: DelayedTasks,
    claimed: u64,
    stuck: u64,
    due: u64,
    running_workflows: u64,
    completed_workflows: u64,
    failed_workflows: u64,
    problems: u64,
    merging: Vec<WaitingMerge>,
    sessions: Vec<RunningSession>,
    interrupted: Vec<InterruptedSession>,
    weakened: Vec<String>,
    foreign: usize,
    replaced: Option<Seq>,
}

impl ProjectStatus {
    fn read(project: &Project) -> CliResult<ProjectStatus> {
        let merging = merging(project)?;
        let sessions = sessions(project)?;
        let interrupted = interrupted(project)?;
        let weakened = gate_agreement::weakened_lines(project);
        let foreign = project.foreign_messages()?.len();
        let replaced = project.store().replaced().map_err(EngineError::from)?;
        let status = project.read(|view| {
            let totals = view.totals()?;
            Ok(ProjectStatus {
                events: totals.head,
                tasks: totals.tasks(),
                counts: view.counts()?,
                early: view.early()?,
                claimed: view.count_claimed()?,
                stuck: view.count_stuck()?,
                due: view.count_due()?,
                running_workflows: view.count_runs()?,
                completed_workflows: totals.runs.completed,
                failed_workflows: totals.runs.failed,
                problems: view.count_problems()?,
                merging,
                sessions,
                interrupted,
                weakened,
                foreign,
                replaced,
            })
        })?;
        Ok(status)
    }

    fn json(&self, place: &ProjectPaths, kept: &LogLocation) -> Value {
        let tasks: serde_json::Map<String, Value> =
            self.counts.iter().map(|(state, n)| (state.name().to_owned(), json!(n))).collect();
        json!({
            "root": place.root,
            "state": place.state,
            "store": store_json(kept),
            "events": self.events,
            "tasks": tasks,
            "claimed": self.claimed,
            "problems": self.problems,
            "weakened_gates": self.weakened,
            "foreign_messages": self.foreign,
            "replaced_log": self.replaced,
            "sessions": self.sessions,
            "interrupted_sessions": self.interrupted,
            "merging": self.merging,
            "waiting_on_blocked": self.stuck,
            "waiting_for_time": { "tasks": self.early.count, "next": self.early.next },
            "reactions_due": self.due,
            "workflows": {
                "running": self.running_workflows,
                "completed": self.completed_workflows,
                "failed": self.failed_workflows,
            },
        })
    }

    fn print_warnings(&self, out: &mut CommandOutput) -> CliResult {
        let red = AnsiColor::Red.on_default().bold();
        if !self.weakened.is_empty() {
            let text = "changed since you trusted them: hookloop hooks trust";
            out.line(format_args!("{red}  gates{red:#}  {text}"))?;
        }
        for line in &self.weakened {
            out.line(format_args!("         {}", plain(line)))?;
        }
        if self.foreign > 0 {
            let text = "foreign messages are in the log, and are skipped: hookloop verify";
            out.line(format_args!("{red}    log{red:#}  {} {text}", self.foreign))?;
        }
        if let Some(last) = self.replaced {
            let text =
                "the stream was replaced, and acknowledged events are missing: hookloop verify";
            out.line(format_args!("{red}    log{red:#}  {text} (the last was {last})"))?;
        }
        Ok(())
    }

    fn print_tasks(&self, out: &mut CommandOutput) -> CliResult {
        out.line(format_args!("{DIM} events{DIM:#}  {}", self.events))?;
        out.line(format_args!("{DIM}  tasks{DIM:#}  {}", self.tasks))?;
        for (state, count) in self.counts.iter().filter(|(_, count)| *count > 0) {
            let style = state_style(*state);
            out.line(format_args!("{count:>9}  {style}{state}{style:#}"))?;
        }
        if let Some(next) = self.early.next {
            let text = format!("waiting for their start time, the next for {}", next.brief());
            out.line(format_args!("{:>9}  {text}", self.early.count))?;
        }
        Ok(())
    }

    fn print_sessions(&self, out: &mut CommandOutput, at: Timestamp) -> CliResult {
        for session in &self.sessions {
            let task = session.task.as_ref().map_or(String::new(), |task| format!(" task {task},"));
            let text = format!("{}{task} {}", session.id, now::line(&session.now, at));
            let text = out.fitting(&plain(&text), "running  ".len());
            out.line(format_args!("{DIM}running{DIM:#}  {text}"))?;
        }
        for session in &self.interrupted {
            let task =
                session.task.as_ref().map_or(String::new(), |task| format!(" (task {task})"));
            let text = format!("{}{task} was interrupted: {}", session.id, session.next);
            out.line(format_args!("{DIM}session{DIM:#}  {}", plain(&text)))?;
        }
        for waiting in &self.merging {
            let text = format!("{}: {}", waiting.task, waiting.text());
            out.line(format_args!("{DIM}merging{DIM:#}  {}", plain(&text)))?;
        }
        Ok(())
    }

    fn print_notes(&self, out: &mut CommandOutput) -> CliResult {
        let notes = [
            (self.problems, "waiting for you: hookloop inbox list"),
            (self.claimed, "claimed: hookloop task list --state active"),
            (self.stuck, "waiting for a blocked task: hookloop task list --state blocked"),
            (self.due, "pending reactions: hookloop dispatch"),
            (self.failed_workflows, "workflows failed: hookloop log --type workflow_failed"),
        ];
        for (count, text) in notes.into_iter().filter(|(count, _)| *count > 0) {
            out.line(format_args!("{count:>9}  {text}"))?;
        }
        Ok(())
    }
}

fn print_store(out: &mut CommandOutput, place: &ProjectPaths, kept: &LogLocation) -> CliResult {
    out.line(format_args!("{DIM}project{DIM:#}  {}", place.root.display()))?;
    match kept {
        LogLocation::Here => {
            out.line(format_args!("{DIM}  store{DIM:#}  {}", place.state.display()))
        }
        LogLocation::Nats { urls, project, standing } => {
            let copies = match standing.copies {
                1 => "1 copy".to_owned(),
                n => format!("{n} copies"),
            };
            out.line(format_args!("{DIM}  store{DIM:#}  {urls} as {project}, {copies}"))?;
            for doubt in &standing.accepted {
                let red = AnsiColor::Red.on_default().bold();
                out.line(format_args!("{red} UNSAFE{red:#}  {}", plain(doubt)))?;
            }
            Ok(())
        }
    }
}

/// A session that a process of this machine runs.
#[derive(Serialize)]
struct RunningSession {
    id: String,
    work: String,
    task: Option<String>,
    since: Timestamp,
    now: NowRecord,
}

fn sessions(project: &Project) -> CliResult<Vec<RunningSession>> {
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

fn interrupted(project: &Project) -> CliResult<Vec<InterruptedSession>> {
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

/// Returns submitted tasks with the condition that the forge waits for.
fn merging(project: &Project) -> CliResult<Vec<WaitingMerge>> {
    let waiting = project.read(|view| view.waiting(MERGING_MAX))?;
    let awaited = waiting.into_iter().filter_map(|waiting| {
        let awaited = waiting.delivery.awaited?;
        let task = waiting.row.task.id.to_string();
        let waits_for = awaited.reason?;
        Some(WaitingMerge { task, waits_for, queue: awaited.queue })
    });
    Ok(awaited.collect())
}

fn store_json(kept: &LogLocation) -> Value {
    match kept {
        LogLocation::Here => json!({ "engine": "sqlite" }),
        LogLocation::Nats { urls, project, standing } => json!({
            "engine": "jetstream",
            "urls": urls,
            "project": project.as_str(),
            "copies": standing.copies,
            "server_version": standing.version,
            "unsafe": standing.accepted,
        }),
    }
}
