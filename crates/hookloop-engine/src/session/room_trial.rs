//! Runs a gate in a clean room once, before the project has a session or a log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::HookStatus;
use hookloop_core::point::Point;
use hookloop_git::repo::RepoError;
use hookloop_git::room::{Room, RoomRetention};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::HookContext;
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::hook_sequence;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::{Cancel, find_program};

use super::rooms::{self, RoomUse};
use super::turn_files::snapshots_of;

/// The beginning of the session names of trials.
const TRIAL_SESSION: &str = "trial";

/// One run of a gate in a room.
#[derive(Clone, Copy, Debug)]
pub struct RoomTrial<'t> {
    /// The hooks that install packages before the gate runs.
    pub setup: &'t [Hook],
    pub gate: &'t Hook,
    /// The context of the gate's run. The setup gets its board.
    pub context: &'t HookContext<'t>,
    pub cancel: &'t Cancel,
}

/// The result of a trial in a room.
#[derive(Debug)]
pub enum RoomTrialResult {
    Ran(Box<HookRun>),
    /// The setup failed, with the reason for a person.
    SetupFailed(String),
    /// There is no room, with the reason for a person.
    NoRoom(String),
    /// git is not installed, so sessions have no rooms either.
    NoGit,
}

/// The rooms of trials. They are removed from disk when this is dropped.
#[derive(Debug)]
pub struct TrialRooms {
    exec: ExecContext,
    /// A directory for files that are copied into rooms.
    scratch: PathBuf,
    /// Numbers of rooms that trials used.
    slots: BTreeSet<u32>,
    /// The setup of the last trial.
    setup: Vec<Hook>,
    trials: u32,
}

impl TrialRooms {
    /// Prepares trials. `scratch` is an empty directory that exists as long as the trials.
    pub fn new(exec: &ExecContext, scratch: &Path) -> TrialRooms {
        let scratch = scratch.to_owned();
        let (slots, setup) = (BTreeSet::new(), Vec::new());
        TrialRooms { exec: exec.clone(), scratch, slots, setup, trials: 0 }
    }

    /// Runs the gate in a room with the current files and no others, after the setup.
    ///
    /// A setup whose result an earlier trial left in the room does not run again.
    pub fn run(&mut self, runner: &HookRunner, trial: &RoomTrial<'_>) -> RoomTrialResult {
        if find_program("git", runner.path()).is_none() {
            return RoomTrialResult::NoGit;
        }
        let RoomTrial { setup, gate, context, cancel } = *trial;
        // A room keeps the result of its setup, which is not that of another one.
        if self.setup != setup {
            if let Err(why) = self.remove() {
                return RoomTrialResult::NoRoom(why);
            }
            self.setup = setup.to_vec();
        }
        // Files of another session are removed from a room, so each trial has a session of its own.
        self.trials += 1;
        let session = format!("{TRIAL_SESSION}-{}-{}", std::process::id(), self.trials);
        let use_of = RoomUse { session: &session, scratch: &self.scratch, cancel };
        let (mut room, place) = match rooms::enter(runner, &use_of, gate) {
            Ok(entered) => entered,
            Err(error) => return RoomTrialResult::NoRoom(error.to_string()),
        };
        self.slots.extend(room.room.as_ref().map(Room::slot));
        let runner = runner.in_room(Some(Arc::clone(&place)));
        let point = Point::Setup;
        let of_setup =
            HookContext { cancel: Some(cancel), board: context.board, ..HookContext::at(&point) };
        if let Err(reason) = rooms::set_up(&mut room, &runner, setup, &of_setup) {
            room.leave(true);
            return RoomTrialResult::SetupFailed(reason);
        }
        let run = hook_sequence::run_all(&runner, std::slice::from_ref(gate), context, &mut |_| {})
            .into_iter()
            .next();
        let has_passed = run.as_ref().is_some_and(|run| run.outcome.status == HookStatus::Passed);
        room.leave(!has_passed);
        match run {
            Some(run) => RoomTrialResult::Ran(Box::new(run)),
            None => RoomTrialResult::NoRoom(format!("the gate `{}` did not run", gate.name)),
        }
    }

    /// Removes the rooms of earlier trials from disk.
    fn remove(&mut self) -> Result<(), String> {
        if self.slots.is_empty() {
            return Ok(());
        }
        let cancel = Cancel::new().map_err(|error| error.to_string())?;
        let used = RoomRetention::Slots(self.slots.iter().copied().collect());
        let removed = rooms::rooms_of(&self.exec, &cancel).remove(&used, false);
        removed.map_err(|error| error.to_string())?;
        self.slots.clear();
        Ok(())
    }
}

impl Drop for TrialRooms {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            // A session removes the files of others from a room, and `gc` removes old rooms.
            tracing::warn!(%error, "the room of a trial is not removed");
        }
    }
}

/// Returns the files of the project that git ignores, relative to the project, at most `max`.
///
/// Ignored directories and files in them are left out.
pub fn ignored_files(
    exec: &ExecContext,
    cancel: &Cancel,
    max: usize,
) -> Result<Vec<PathBuf>, RepoError> {
    let period = format!("{TRIAL_SESSION}-{}", std::process::id());
    snapshots_of(exec, &period, cancel).ignored_files(max)
}
