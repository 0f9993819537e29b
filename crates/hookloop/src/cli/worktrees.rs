//! `hookloop worktrees`

use std::time::{Duration, SystemTime};

use hookloop_core::id::TaskId;
use hookloop_engine::delivery::worktrees::{CleanupReport, TaskWorktree, clean, list};
use hookloop_engine::machine;
use hookloop_engine::project::Project;
use hookloop_engine::session::checkout::{is_of_session, session_of_worktree};
use hookloop_engine::session::{lookup, session_directory};
use serde::Serialize;

use super::session::{handle_signals, runner};
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;
use crate::output::{DIM, TableCell};
use crate::present::{self, counted};
use crate::sanitize::plain;

#[derive(clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum WorktreesCommand {
    List(WorktreeList),
    Clean(WorktreeClean),
}

impl WorktreesCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            WorktreesCommand::List(args) => args.run(context),
            WorktreesCommand::Clean(args) => args.run(context),
        }
    }
}

/// List the worktrees of tasks and their changes
#[derive(clap::Args)]
pub(crate) struct WorktreeList {}

#[derive(Serialize)]
pub(crate) struct WorktreeJson<'a> {
    task: &'a str,
    /// The session whose worktree it is; none for a task.
    session: Option<&'a str>,
    /// The state of the task or the session; none if it does not exist.
    state: Option<String>,
    path: &'a std::path::Path,
    branch: &'a str,
    head: &'a str,
    dirty: bool,
    ahead: u32,
}

impl<'a> WorktreeJson<'a> {
    fn new(project: &Project, kept: &'a TaskWorktree) -> WorktreeJson<'a> {
        WorktreeJson {
            task: kept.info.task.as_str(),
            session: session_of_worktree(&kept.info.task),
            state: state_of(project, kept),
            path: &kept.info.path,
            branch: &kept.info.branch,
            head: kept.info.head.as_str(),
            dirty: kept.info.is_dirty,
            ahead: kept.info.ahead,
        }
    }
}

/// The state of the task or the session that a worktree is for; none if there is none.
fn state_of(project: &Project, kept: &TaskWorktree) -> Option<String> {
    let Some(session) = session_of_worktree(&kept.info.task) else {
        return kept.state.map(|state| state.name().to_owned());
    };
    // A session that the log does not have is shown without a state.
    let row = lookup::find(project, session).ok()?;
    let is_running =
        project.runner().is_some_and(|runner| session_directory::is_running(runner, &row.id));
    Some(present::state(&row, is_running, &machine::machine()).to_string())
}

impl WorktreeList {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let stop = handle_signals()?;
        let found = list(&project, runner(&project)?, stop.cancel())?;
        let out = &mut context.out;
        if out.json {
            let list: Vec<WorktreeJson<'_>> =
                found.iter().map(|kept| WorktreeJson::new(&project, kept)).collect();
            return out.json(&list);
        }
        if found.is_empty() {
            return out.line(format_args!("{DIM}No worktrees.{DIM:#}"));
        }
        let rows: Vec<Vec<TableCell>> = found
            .iter()
            .map(|kept| {
                let work = match (kept.info.ahead, kept.info.is_dirty) {
                    (0, false) => "nothing".to_owned(),
                    (ahead, false) => counted(ahead, "commit", "commits"),
                    (0, true) => "changes".to_owned(),
                    (ahead, true) => format!("{} and changes", counted(ahead, "commit", "commits")),
                };
                vec![
                    TableCell::new(&kept.info.task),
                    TableCell::new(state_of(&project, kept).as_deref().unwrap_or("deleted")),
                    TableCell::new(plain(&kept.info.branch)),
                    TableCell::new(work),
                    TableCell::new(plain(&kept.info.path.display().to_string())),
                ]
            })
            .collect();
        out.table(&["task", "state", "branch", "changes", "path"], &rows)
    }
}

/// Remove worktrees of completed and deleted tasks
///
/// Keeps a worktree with work that is nowhere else, unless --force is given.
#[derive(clap::Args)]
pub(crate) struct WorktreeClean {
    /// Task in any state, or session (`session-ID`), whose worktree is removed [default: all]
    task: Option<String>,

    /// Minimum time since the last use, such as 7d or 12h
    #[arg(long, value_name = "TIME", value_parser = age)]
    older_than: Option<Duration>,

    /// Remove unmerged work too; refs under refs/hookloop/kept keep its commits
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
pub(crate) struct CleanedJson<'a> {
    task: &'a str,
    removed: bool,
    reason: Option<&'a str>,
}

impl<'a> From<&'a CleanupReport> for CleanedJson<'a> {
    fn from(cleaned: &'a CleanupReport) -> CleanedJson<'a> {
        CleanedJson {
            task: cleaned.task.as_str(),
            removed: cleaned.stayed.is_none(),
            reason: cleaned.stayed.as_deref(),
        }
    }
}

/// The task of a worktree, or the name of a session's worktree.
fn find_worktree(project: &Project, name: &str) -> CliResult<TaskId> {
    match name.parse::<TaskId>() {
        Ok(name) if is_of_session(&name) => Ok(name),
        _ => ids::resolve(project, name),
    }
}

impl WorktreeClean {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let stop = handle_signals()?;
        let task = self.task.as_deref().map(|name| find_worktree(&project, name)).transpose()?;
        let before = self.older_than.and_then(|age| SystemTime::now().checked_sub(age));
        let wanted =
            hookloop_engine::delivery::worktrees::CleanupScope { task, before, force: self.force };
        let cleaned = clean(&project, runner(&project)?, stop.cancel(), &wanted)?;
        let out = &mut context.out;
        if out.json {
            let list: Vec<CleanedJson<'_>> = cleaned.iter().map(CleanedJson::from).collect();
            return out.json(&list);
        }
        if cleaned.is_empty() {
            return out.line(format_args!("{DIM}Nothing to clean.{DIM:#}"));
        }
        for CleanupReport { task, stayed } in &cleaned {
            match stayed {
                None => out.line(format_args!("Removed the worktree of {task}."))?,
                Some(why) => {
                    out.line(format_args!("Kept the worktree of {task}: {}", plain(why)))?;
                }
            }
        }
        Ok(())
    }
}

/// Parses an age in days or smaller units.
pub(super) fn age(text: &str) -> std::result::Result<Duration, String> {
    const DAY: u64 = 24 * 60 * 60;
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok()) {
        return Ok(Duration::from_secs(days.saturating_mul(DAY)));
    }
    let length: std::result::Result<hookloop_core::options::Length, _> = text.parse();
    length.map(|length| Duration::from_millis(length.ms)).map_err(|error| error.to_string())
}
