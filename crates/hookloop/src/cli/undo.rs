//! `hookloop undo` and `hookloop restore`

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_config::paths::{FILE_NAME, PlaceError, ProjectPaths};
use hookloop_engine::session::undo::{self, EditedFile, PlannedRestore, UndoError, UndoRequest};
use hookloop_git::snapshot::{RestoreReport, SnapshotOptions, Snapshots, store_of};
use hookloop_process::{Cancel, KeeperPool, WriteOptions, write_whole};
use serde_json::{Value, json};

use super::hooks::trust::ask;
use super::session::runner;
use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, CommandOutput, DIM};
use crate::present::counted_items;
use crate::sanitize::plain;

/// Files that an error or a preview names.
const NAMED_MAX: usize = 200;

/// Undo the changes of an agent's turns to files
///
/// Restores all files that the turns changed, also by shell commands, to their state before. Files that a person
/// changed since are not overwritten. Commits stay. An undo can be undone: `hookloop undo --back`.
#[derive(clap::Args)]
pub(crate) struct UndoArgs {
    /// First turn to undo, with all later ones [default: all turns of the session]
    turn: Option<u32>,

    /// Id, start of the id, or name of the session [default: the last session]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Take back the last undo or restore
    #[arg(long, conflicts_with = "turn")]
    back: bool,

    /// Give up an undo that was interrupted, and leave the files as they are
    #[arg(long, conflicts_with_all = ["turn", "back"])]
    abandon: bool,

    #[command(flatten)]
    options: RestoreOptions,
}

/// Restore files to their state after a turn
///
/// Files that a person changed since are not overwritten. A restore can be undone: `hookloop undo --back`.
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// Turn whose files are restored; 0 for the state before the first turn
    turn: u32,

    /// Files and directories
    #[arg(last = true, required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Id, start of the id, or name of the session [default: the last session]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    options: RestoreOptions,
}

#[derive(clap::Args, Clone, Copy)]
struct RestoreOptions {
    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Show the files that would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Leave files that a person changed since, and restore the others
    #[arg(long)]
    skip_edited: bool,

    /// Overwrite files that a person changed since
    #[arg(long, conflicts_with = "skip_edited")]
    overwrite: bool,
}

impl UndoArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        if self.abandon {
            let project = context.project()?;
            let label = undo::abandon(&project, runner(&project)?)?;
            let out = &mut context.out;
            return match (out.json, label) {
                (true, label) => out.json(&json!({ "abandoned": label })),
                (false, Some(label)) => out.line(format_args!("The {label} was given up.")),
                (false, None) => out.line("No undo was interrupted."),
            };
        }
        let request = match self.back {
            true => UndoRequest::Back,
            false => UndoRequest::Before(self.turn),
        };
        run(context, self.session.as_deref(), &request, self.options)
    }
}

impl RestoreArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let directory = context.directory()?;
        let paths = self.paths.iter().map(|path| absolute(&directory, path)).collect();
        let request = UndoRequest::Files { turn: self.turn, paths };
        run(context, self.session.as_deref(), &request, self.options)
    }
}

fn run(
    context: &mut CommandContext,
    session: Option<&str>,
    request: &UndoRequest,
    options: RestoreOptions,
) -> CliResult {
    bring_configuration_back(context)?;
    let project = context.project()?;
    let runner = runner(&project)?;
    let pending = if options.dry_run { None } else { undo::finish(&project, runner)? };
    if let Some((label, report)) = pending {
        let out = &mut context.out;
        if out.json {
            return out.json(
                &json!({ "finished": label, "restored": report.restored, "left": left(&report) }),
            );
        }
        out.line(format_args!("The {label} was interrupted. It is finished now."))?;
        return conclude(out, &report);
    }
    let session = undo::find(&project, runner, session)?;
    let planned = undo::plan(&project, runner, &session, request, options.overwrite)?;
    let out = &mut context.out;
    if out.json && options.dry_run {
        return out.json(&preview(&planned));
    }
    if !planned.edited.is_empty() && !options.skip_edited && !options.dry_run {
        return Err(refusal(&planned.edited, request));
    }
    if planned.is_empty() && planned.edited.is_empty() {
        return match out.json {
            true => out.json(&result(&planned, &RestoreReport::default())),
            false => out.line("Nothing to do: the files are in that state already."),
        };
    }
    // Files that are named on the command line need no question in a script.
    let can_ask = std::io::stdin().is_terminal();
    let is_asked = !options.yes && (can_ask || !matches!(request, UndoRequest::Files { .. }));
    if is_asked && !can_ask && !options.dry_run {
        let message = "there is no terminal to ask whether files may change";
        return Err(CliError::usage(message).hint(question(request).1));
    }
    if !out.json {
        show(out, &planned)?;
    }
    if options.dry_run || planned.is_empty() {
        return Ok(());
    }
    if is_asked && !ask(out, "these files", question(request).0, |error| error)? {
        return Err(CliError::refused("nothing was changed"));
    }
    let report = undo::perform(&project, &planned)?;
    if out.json {
        return out.json(&result(&planned, &report));
    }
    if let Some(head) = &planned.old_head {
        let short = head.get(..12).unwrap_or(head);
        out.line(format_args!(
            "{DIM}Commits stay. The commit before these turns: git reset --soft {short}{DIM:#}"
        ))?;
    }
    conclude(out, &report)?;
    out.line(format_args!("  {DIM}take it back:{DIM:#} hookloop undo --back"))
}

/// Restores the configuration of a project whose files are gone. Without it there is no project to undo anything in.
fn bring_configuration_back(context: &mut CommandContext) -> CliResult {
    let state_home = state_home()?;
    let directory = context.directory()?;
    if !matches!(ProjectPaths::find(&directory, &state_home), Err(PlaceError::NoProject(_))) {
        return Ok(());
    }
    let Ok(real) = directory.canonicalize() else { return Ok(()) };
    for root in real.ancestors() {
        let state = ProjectPaths::at(root, &state_home).state;
        if !store_of(&state).exists() {
            continue;
        }
        let environment: Vec<_> = std::env::vars_os().collect();
        let snapshots = Snapshots::new(SnapshotOptions {
            root,
            state: &state,
            period: String::new(),
            environment: &environment,
            keepers: &Arc::new(KeeperPool::of_this_program()),
            cancel: Cancel::new()?,
        });
        let found = snapshots.newest_content(FILE_NAME).map_err(UndoError::from)?;
        if let Some(content) = found {
            let path = root.join(FILE_NAME);
            let failed = |error| CliError::system(format!("{}: {error}", path.display()));
            let new = WriteOptions { mode: 0o666, is_durable: true, replaces: false };
            write_whole(&path, &content, new).map_err(failed)?;
            let out = &mut context.out;
            return match out.json {
                true => Ok(()),
                false => out.line(format_args!("{FILE_NAME} was gone, and is restored first.")),
            };
        }
    }
    Ok(())
}

/// Returns the question before a request, and the command that does not ask.
fn question(request: &UndoRequest) -> (&'static str, &'static str) {
    match request {
        UndoRequest::Files { .. } => ("Restore these files?", "hookloop restore --yes"),
        UndoRequest::Back => ("Take the last undo back?", "hookloop undo --back --yes"),
        UndoRequest::Before(_) => ("Undo these changes?", "hookloop undo --yes"),
    }
}

/// Prints each file with the effect on it.
fn show(out: &mut CommandOutput, planned: &PlannedRestore) -> CliResult {
    out.line(format_args!("{BOLD}Session {}: {}{BOLD:#}", planned.session(), planned.label()))?;
    for (path, effect) in planned.files().take(NAMED_MAX) {
        out.line(format_args!("  {:<8}{}", effect.name(), plain(&path)))?;
    }
    if planned.len() > NAMED_MAX {
        out.line(format_args!("  … and {} more", planned.len() - NAMED_MAX))?;
    }
    if planned.elsewhere > 0 {
        let turns = counted_items(planned.elsewhere, "turn", "turns");
        out.line(format_args!("  {DIM}{turns} worked in another directory, and stay{DIM:#}"))?;
    }
    for EditedFile { path, reason } in planned.edited.iter().take(NAMED_MAX) {
        out.line(format_args!("  {:<8}{}  {DIM}{reason}{DIM:#}", "keep", plain(path)))?;
    }
    Ok(())
}

fn conclude(out: &mut CommandOutput, report: &RestoreReport) -> CliResult {
    let files = counted_items(report.restored, "file was", "files were");
    out.line(format_args!("{files} restored."))?;
    for left in report.left.iter().take(NAMED_MAX) {
        out.line(format_args!(
            "  {:<8}{}  {DIM}{}{DIM:#}",
            "left",
            plain(&left.path),
            left.reason
        ))?;
    }
    match report.left.len() {
        0 => Ok(()),
        count => {
            let files = counted_items(count, "file was", "files were");
            Err(CliError::refused(format!("{files} not restored")))
        }
    }
}

fn refusal(edited: &[EditedFile], request: &UndoRequest) -> CliError {
    let names: Vec<&str> = edited.iter().take(5).map(|file| file.path.as_str()).collect();
    let more = match edited.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let files = counted_items(edited.len(), "file may have", "files may have");
    let command = match request {
        UndoRequest::Files { .. } => "restore",
        _ => "undo",
    };
    CliError::refused(format!("{files} work of a person: {}{more}", names.join(", "))).advice(format!(
        "`hookloop {command} --skip-edited` leaves them, `--overwrite` replaces them, `--dry-run` shows all files"
    ))
}

fn left(report: &RestoreReport) -> Vec<Value> {
    report.left.iter().map(|left| json!({ "path": left.path, "reason": left.reason })).collect()
}

fn preview(planned: &PlannedRestore) -> Value {
    let files: Vec<Value> = planned
        .files()
        .map(|(path, effect)| json!({ "path": path, "effect": effect.name() }))
        .collect();
    let edited: Vec<Value> = planned
        .edited
        .iter()
        .map(|file| json!({ "path": file.path, "reason": file.reason }))
        .collect();
    json!({ "session": planned.session(), "files": files, "edited": edited })
}

fn result(planned: &PlannedRestore, report: &RestoreReport) -> Value {
    let mut value = preview(planned);
    value["restored"] = json!(report.restored);
    value["left"] = json!(left(report));
    value
}

/// Returns an absolute path without `.` and `..`. The file need not exist.
fn absolute(directory: &Path, path: &Path) -> PathBuf {
    use std::path::Component;
    let mut found = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let parent = directory.join(path);
    let real = parent.parent().and_then(|parent| parent.canonicalize().ok());
    if let (Some(real), Some(name)) = (real, path.file_name()) {
        return real.join(name);
    }
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

impl From<UndoError> for CliError {
    fn from(error: UndoError) -> CliError {
        let message = error.to_string();
        match error {
            UndoError::Start(error) => error.into(),
            UndoError::Repo(error) => CliError::of_repository(message, error),
            UndoError::NoSession | UndoError::NoTurns(_) => {
                CliError::refused(message).hint("hookloop sessions list")
            }
            UndoError::NoSuchTurn { session, .. } => {
                CliError::refused(message).hint(format!("hookloop sessions show {session}"))
            }
            UndoError::Running(session) => {
                CliError::refused(message).hint(format!("hookloop stop {session}"))
            }
            UndoError::NoGit => CliError::refused(message).advice("install git"),
            UndoError::NothingToTakeBack | UndoError::Outside(..) => CliError::refused(message),
            UndoError::Unfinished(_) => CliError::refused(message)
                .advice("`hookloop undo` finishes it, `hookloop undo --abandon` gives it up"),
        }
    }
}
