//! `hookloop gc`

use std::time::Duration;

use hookloop_core::limits::Size;
use hookloop_engine::session::rooms::{self, RoomLimits};
use hookloop_engine::session::turn_files::{CollectError, collect};
use hookloop_fleet::doctor::disk_size;
use hookloop_git::room::RemovedRooms;
use hookloop_git::snapshot::{GcReport, RetentionLimits};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_process::Cancel;
use serde::Serialize;

use super::session::{handle_signals, runner};
use super::worktrees::age;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::present::counted_items;

/// Remove old snapshots of files, and old rooms
///
/// A session keeps a snapshot of the files before and after each turn. The command removes snapshots beyond an age, a
/// number and a disk use, the oldest first. A session that runs or can be resumed keeps its snapshots. The command also
/// removes rooms of gates that are not in use, by their age and disk use. Sessions do the same with the default limits,
/// once a day.
#[derive(clap::Args)]
pub(crate) struct GcArgs {
    /// Print the effect, and remove nothing
    #[arg(long)]
    dry_run: bool,

    /// Age from which snapshots are removed, such as 7d or 12h [default: 30d]
    #[arg(long, value_name = "TIME", value_parser = age)]
    older_than: Option<Duration>,

    /// Maximum number of snapshots [default: 10000]
    #[arg(long, value_name = "N")]
    keep: Option<usize>,

    /// Maximum disk use of all snapshots, such as 512MB or 2GB [default: 5GB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,

    /// Time since the last use from which rooms are removed, such as 7d or 12h [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = age)]
    rooms_unused_for: Option<Duration>,

    /// Maximum disk use of all rooms, such as 512MB or 2GB [default: 20GB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    rooms_max_size: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct GcJson {
    dry_run: bool,
    /// Numbers of snapshots.
    removed: usize,
    kept: usize,
    bytes_before: u64,
    /// An estimate in a dry run.
    bytes_after: u64,
    rooms_removed: usize,
    /// The disk use of the removed rooms.
    room_bytes: u64,
}

impl GcArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let stop = handle_signals()?;
        let default = RetentionLimits::default();
        let limits = RetentionLimits {
            max_age: self.older_than.unwrap_or(default.max_age),
            max_count: self.keep.unwrap_or(default.max_count),
            max_bytes: self.max_size.unwrap_or(default.max_bytes),
        };
        let report = collect(&project, runner(&project)?, stop.cancel(), &limits, self.dry_run)
            .map_err(failed)?;
        let GcReport { removed, kept, bytes_before, bytes_after } = report;
        let rooms = self.remove_rooms(runner(&project)?, stop.cancel())?;
        let out = &mut context.out;
        if out.json {
            return out.json(&GcJson {
                dry_run: self.dry_run,
                removed,
                kept,
                bytes_before,
                bytes_after,
                rooms_removed: rooms.slots.len(),
                room_bytes: rooms.bytes,
            });
        }
        let removed = counted_items(removed, "snapshot", "snapshots");
        if self.dry_run {
            out.line(format_args!("Would remove {removed} and keep {kept}."))?;
        } else {
            out.line(format_args!("Removed {removed}, kept {kept}."))?;
        }
        let before = disk_size(bytes_before);
        out.line(format_args!("Disk use: {before} before, {} after.", disk_size(bytes_after)))?;
        if rooms.slots.is_empty() {
            return Ok(());
        }
        let verb = if self.dry_run { "Would remove" } else { "Removed" };
        let count = counted_items(rooms.slots.len(), "room", "rooms");
        out.line(format_args!("{verb} {count} ({}).", disk_size(rooms.bytes)))
    }

    fn remove_rooms(&self, exec: &ExecContext, cancel: &Cancel) -> CliResult<RemovedRooms> {
        let default = RoomLimits::default();
        let limits = RoomLimits {
            max_age: self.rooms_unused_for.unwrap_or(default.max_age),
            max_bytes: self.rooms_max_size.unwrap_or(default.max_bytes),
        };
        let removed = rooms::collect(exec, cancel, &limits, self.dry_run);
        removed.map_err(|error| {
            CliError::of_repository(format!("old rooms are not removed: {error}"), error)
        })
    }
}

fn failed(error: CollectError) -> CliError {
    let message = format!("old snapshots are not removed: {error}");
    match error {
        CollectError::Engine(error) => error.into(),
        CollectError::Repo(error) => CliError::of_repository(message, error),
    }
}

/// Parses a number of bytes such as `512MB`.
fn size(text: &str) -> std::result::Result<u64, String> {
    let size: std::result::Result<Size, _> = text.parse();
    size.map(|size| size.bytes).map_err(|error| error.to_string())
}
