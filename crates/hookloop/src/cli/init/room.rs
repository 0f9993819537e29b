//! Tries gates in a clean room, and adds to the plan what they need there.

use std::ffi::OsStr;

use hookloop_config::paths::ProjectPaths;
use hookloop_engine::log_location::LaunchContext;
use hookloop_engine::session::now::NowBoard;
use hookloop_engine::session::room_trial::TrialRooms;
use hookloop_fleet::survey::room_search::{RoomFinding, RoomNeeds, RoomQuestion, find_room};
use hookloop_fleet::survey::trial::{GateTrial, GateTrials, RoomResult};
use hookloop_hooks::room_setup::{RoomSetup, SetupGround, known_setups};
use hookloop_process::Cancel;
use tempfile::TempDir;

use super::report::RunningGate;
use super::skip::GateSkipper;
use super::{InitPlan, SetupEntry, TriedGate, file};
use crate::error::CliResult;

/// The name of the first setup.
const PACKAGES: &str = "packages";

/// The surroundings in which gates are tried.
pub(super) struct TrialGround<'g> {
    pub(super) place: &'g ProjectPaths,
    pub(super) around: &'g LaunchContext,
    pub(super) skipper: &'g GateSkipper,
    /// The gates, as they run in the working directory.
    pub(super) here: &'g GateTrials,
}

/// Trials of gates in a clean room.
pub(super) struct RoomTrials<'g> {
    ground: TrialGround<'g>,
    rooms: TrialRooms,
    /// Dropped after the rooms, which have their copied files from here.
    _scratch: TempDir,
}

impl<'g> RoomTrials<'g> {
    pub(super) fn new(ground: TrialGround<'g>) -> CliResult<RoomTrials<'g>> {
        let scratch = tempfile::tempdir()?;
        let rooms = ground.here.rooms(scratch.path());
        Ok(RoomTrials { ground, rooms, _scratch: scratch })
    }

    /// Finds the room of a gate that ran in the working directory.
    pub(super) fn settle(&mut self, plan: &mut InitPlan, index: usize) -> CliResult {
        let TriedGate { gate, trial: here, .. } = &plan.gates[index];
        let has_run = matches!(here, GateTrial::Passed { .. } | GateTrial::Failed { .. });
        if !has_run || !plan.gates[index].is_written() {
            return Ok(());
        }
        let TrialGround { place, around, .. } = self.ground;
        let path = around.environment.iter().find(|(name, _)| name == "PATH");
        let mut known = known_setups(SetupGround {
            root: &place.root,
            directory: gate.cwd.as_deref().unwrap_or_default(),
            command: &gate.command,
            path: path.map_or(OsStr::new(""), |(_, path)| path),
        });
        known.retain(|known| plan.setups.iter().all(|entry| entry.setup != *known));
        let cancel = Cancel::new()?;
        let trials = self.ground.here;
        let ignored = || trials.ignored_files(&cancel);
        let question = RoomQuestion { here, known };
        let found = find_room(question, &ignored, &mut |needs| {
            self.attempt(plan, &plan.gates[index], needs)
        })?;
        if let RoomFinding::Clean { needs, .. } = &found {
            plan.setups = with_setups(plan, needs, &gate.env);
        }
        plan.gates[index].room = found;
        Ok(())
    }

    fn attempt(
        &mut self,
        plan: &InitPlan,
        tried: &TriedGate,
        needs: &RoomNeeds,
    ) -> CliResult<RoomResult> {
        let TrialGround { place, around, skipper, .. } = self.ground;
        let setups = with_setups(plan, needs, &tried.gate.env);
        let text = file::for_trial(plan, &setups, Some((&tried.gate.name, &needs.copy)));
        let trials = GateTrials::new(place, &text, around)?;
        let board = NowBoard::default();
        let cancel = skipper.begin()?;
        let running = RunningGate::new(&tried.gate, &board, &in_room(needs));
        let result = trials.run_in_room(&tried.gate.name, &mut self.rooms, &board, &cancel);
        drop(running);
        skipper.end();
        Ok(result)
    }
}

/// Describes a trial in a room.
fn in_room(needs: &RoomNeeds) -> String {
    let with = needs.described().map_or(String::new(), |needs| format!(" with {needs}"));
    format!(" in the clean room{with}")
}

/// Returns the setups of the plan and those that a gate needs in addition.
fn with_setups(plan: &InitPlan, needs: &RoomNeeds, env: &[String]) -> Vec<SetupEntry> {
    let mut setups = plan.setups.clone();
    for setup in &needs.setups {
        let name = free_name(plan, &setups, setup);
        setups.push(SetupEntry { name, setup: setup.clone(), env: env.to_vec() });
    }
    setups
}

/// Returns an unused name: `packages`, `packages-npm`, `packages-npm-2`.
fn free_name(plan: &InitPlan, setups: &[SetupEntry], setup: &RoomSetup) -> String {
    let is_free = |name: &String| {
        let mut gates = plan.gates.iter().map(|tried| &tried.gate.name);
        gates.all(|used| used != name) && setups.iter().all(|entry| entry.name != *name)
    };
    let tool = setup.command.split(|c: char| !c.is_ascii_alphanumeric()).next();
    let with_tool = format!("{PACKAGES}-{}", tool.unwrap_or_default());
    let numbered = (2..).map(|number| format!("{with_tool}-{number}"));
    let mut names = [PACKAGES.to_owned(), with_tool.clone()].into_iter().chain(numbered);
    names.find(is_free).unwrap_or_default()
}
