//! `hookloop rooms`

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

use hookloop_config::clock::now;
use hookloop_config::paths::ROOMS;
use hookloop_core::time::Timestamp;
use hookloop_engine::session::rooms::{self, RoomError, RoomScope, RoomShell, ShellRequest};
use hookloop_fleet::doctor::disk_size;
use hookloop_git::room::{RemovedRooms, RoomInfo};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_process::{Cancel, ExitReason};
use serde::Serialize;
use signal_hook::consts::SIGINT;

use super::hooks::trust::ask;
use super::session::{handle_signals, runner};
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, CommandOutput, DIM, TableCell};
use crate::present::{self, counted_items, short_hash};
use crate::sanitize::plain;

/// The shell of a user whose environment names none.
const SHELL: &str = "sh";
/// Added to a signal's number, as shells do.
const BY_SIGNAL: i32 = 128;
/// The exit code if that of the shell is no number between 0 and 255.
const OTHER_END: u8 = 1;

#[derive(clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum RoomsCommand {
    List(RoomListArgs),
    Clean(RoomCleanArgs),
    Shell(RoomShellArgs),
}

impl RoomsCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            RoomsCommand::List(args) => args.run(context),
            RoomsCommand::Clean(args) => args.run(context),
            RoomsCommand::Shell(args) => args.run(context),
        }
    }
}

/// List the rooms of the project, with their disk use
#[derive(clap::Args)]
pub(crate) struct RoomListArgs {}

#[derive(Serialize)]
pub(crate) struct RoomJson {
    slot: u32,
    /// The session that used the room last.
    session: Option<String>,
    tree: Option<String>,
    in_use: bool,
    bytes: u64,
    files: u64,
    last_used: Option<Timestamp>,
    path: PathBuf,
}

impl RoomJson {
    fn new(exec: &ExecContext, room: RoomInfo) -> RoomJson {
        let last_used = room.last_used.and_then(|used| used.duration_since(UNIX_EPOCH).ok());
        let last_used = last_used.and_then(|used| i64::try_from(used.as_millis()).ok());
        RoomJson {
            slot: room.slot,
            session: room.session,
            tree: room.tree,
            in_use: room.is_in_use,
            bytes: room.bytes,
            files: room.files,
            last_used: last_used.map(Timestamp),
            path: directory(exec).join(room.slot.to_string()),
        }
    }

    fn cells(&self) -> Vec<TableCell> {
        let last_used = self
            .last_used
            .map_or_else(|| "never".to_owned(), |at| present::ago(now().millis_since(at)));
        vec![
            TableCell::new(self.slot),
            TableCell::new(self.session.as_deref().unwrap_or("none")),
            TableCell::new(self.tree.as_deref().map_or("none", short_hash)),
            TableCell::new(disk_size(self.bytes)),
            TableCell::new(last_used),
            TableCell::new(if self.in_use { "yes" } else { "no" }),
        ]
    }
}

/// Returns the directory of all rooms.
fn directory(exec: &ExecContext) -> PathBuf {
    exec.state().join(ROOMS)
}

impl RoomListArgs {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let stop = handle_signals()?;
        let exec: &ExecContext = runner(&project)?;
        let found = rooms::list(exec, stop.cancel()).map_err(RoomError::from)?;
        let found: Vec<RoomJson> =
            found.into_iter().map(|room| RoomJson::new(exec, room)).collect();
        let out = &mut context.out;
        if out.json {
            return out.json(&found);
        }
        if found.is_empty() {
            return out.line(format_args!("{DIM}No rooms.{DIM:#}"));
        }
        let rows: Vec<Vec<TableCell>> = found.iter().map(RoomJson::cells).collect();
        out.table(&["slot", "session", "tree", "size", "last used", "in use"], &rows)?;
        if out.terminal {
            let place = directory(exec).display().to_string();
            out.line(format_args!("{DIM}Rooms are in {}{DIM:#}", plain(&place)))?;
        }
        Ok(())
    }
}

/// Remove rooms that no session uses
///
/// A session that can be resumed keeps its room, unless --all is given. A room that is in use stays. The next gate of a
/// session without a room gets a new one.
#[derive(clap::Args)]
pub(crate) struct RoomCleanArgs {
    /// Remove rooms of sessions that can be resumed, too
    #[arg(long)]
    all: bool,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Print the effect, and remove nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

#[derive(Serialize)]
pub(crate) struct CleanedRoomsJson {
    dry_run: bool,
    /// The numbers of the rooms.
    removed: Vec<u32>,
    bytes: u64,
    files: u64,
}

impl RoomCleanArgs {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let stop = handle_signals()?;
        let exec: &ExecContext = runner(&project)?;
        let scope = if self.all { RoomScope::All } else { RoomScope::Ended };
        let planned = rooms::clean(&project, exec, stop.cancel(), scope, true)?;
        let out = &mut context.out;
        if self.dry_run || planned.slots.is_empty() {
            return report(out, planned, self.dry_run);
        }
        if !self.yes {
            if !std::io::stdin().is_terminal() {
                let message = "there is no terminal to ask whether rooms may be removed";
                return Err(CliError::usage(message).hint("hookloop rooms clean --yes"));
            }
            let question = format!("Remove {}?", in_words(&planned));
            if !ask(out, "rooms", &question, |error| error)? {
                return Err(CliError::refused("nothing was removed"));
            }
        }
        let removed = rooms::clean(&project, exec, stop.cancel(), scope, false)?;
        report(out, removed, false)
    }
}

fn report(out: &mut CommandOutput, removed: RemovedRooms, is_dry: bool) -> CliResult {
    if out.json {
        let RemovedRooms { slots: removed, bytes, files } = removed;
        return out.json(&CleanedRoomsJson { dry_run: is_dry, removed, bytes, files });
    }
    let rooms = in_words(&removed);
    match (removed.slots.is_empty(), is_dry) {
        (true, _) => out.line(format_args!("{DIM}No room to remove.{DIM:#}")),
        (false, true) => out.line(format_args!("Would remove {rooms}.")),
        (false, false) => out.line(format_args!("Removed {rooms}.")),
    }
}

fn in_words(removed: &RemovedRooms) -> String {
    let rooms = counted_items(removed.slots.len(), "room", "rooms");
    format!("{rooms} ({})", disk_size(removed.bytes))
}

/// Start your shell in a room, as a gate sees it
///
/// The room gets the current files, and the setup runs if its result is not there. The shell has the environment and
/// the confinement of the gate. The exit code is that of the shell.
#[derive(clap::Args)]
pub(crate) struct RoomShellArgs {
    /// Gate whose view of the room is shown [default: the first gate]
    gate: Option<String>,

    /// Id, start of the id, or name of the session whose room is used [default: that of the newest room]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl RoomShellArgs {
    fn run(self, context: &mut CommandContext) -> CliResult {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() || context.out.json {
            let advice = "run `hookloop rooms shell` on a terminal, without `--json`";
            return Err(CliError::usage("a shell in a room needs a terminal").advice(advice));
        }
        let project = context.project_to_read()?;
        let runner = runner(&project)?;
        let scratch = tempfile::tempdir()?;
        let request = ShellRequest {
            gate: self.gate.as_deref(),
            session: self.session.as_deref(),
            shell: std::env::var_os("SHELL")
                .filter(|shell| !shell.is_empty())
                .unwrap_or_else(|| OsString::from(SHELL)),
            scratch: scratch.path(),
            cancel: &Cancel::new()?,
        };
        let shell = RoomShell::prepare(&project, runner, &request)?;
        introduce(&mut context.out, &shell)?;
        // Ctrl-C is for the commands of the shell.
        signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
        context.exit = match shell.run()? {
            ExitReason::Exited(code) => u8::try_from(code).unwrap_or(OTHER_END),
            ExitReason::Signalled(signal) => u8::try_from(BY_SIGNAL + signal).unwrap_or(OTHER_END),
            ExitReason::TimedOut | ExitReason::Cancelled | ExitReason::OverLimit(_) => OTHER_END,
        };
        Ok(())
    }
}

/// Prints the differences between the room and the working directory.
fn introduce(out: &mut CommandOutput, shell: &RoomShell) -> CliResult {
    let place = shell.directory().display().to_string();
    let gate = plain(shell.gate());
    out.line(format_args!(
        "Room {} has the current files, at {}, as the gate `{gate}` sees them.",
        shell.slot(),
        plain(&place)
    ))?;
    let files = shell.files().display().to_string();
    out.line(format_args!("{DIM}Other programs find them in {}{DIM:#}", plain(&files)))?;
    if let Some(problem) = shell.setup_problem() {
        out.line(format_args!("{BOLD}The setup is missing:{BOLD:#} {}", plain(problem)))?;
    }
    if shell.is_boxed() {
        out.line("Commands of this shell can write only to the room. Leave it with `exit`.")?;
    } else {
        out.line(format_args!(
            "{BOLD}This shell is not confined:{BOLD:#} its commands can write all files that you can. Leave it with \
             `exit`."
        ))?;
    }
    // The shell writes to the same terminal.
    out.flush()
}

impl From<RoomError> for CliError {
    fn from(error: RoomError) -> CliError {
        let message = error.to_string();
        match error {
            RoomError::Start(error) => error.into(),
            RoomError::Repo(error) => CliError::of_repository(message, error),
            RoomError::NoGit => CliError::refused(message).advice("install git"),
            RoomError::NoGates => CliError::refused(message)
                .advice("add a gate under `hooks: {stop: […]}` in hookloop.yaml"),
            RoomError::NoSuchGate(_) => CliError::refused(message).hint("hookloop hooks list"),
            RoomError::NotInRoom(name) => {
                CliError::refused(message).hint(format!("hookloop hooks show {name}"))
            }
            RoomError::Refused { hint, .. } => CliError::untrusted(message).maybe_hint(hint),
            RoomError::NotReady(_) => CliError::refused(message),
            RoomError::Process(_) => CliError::system(message),
        }
    }
}
