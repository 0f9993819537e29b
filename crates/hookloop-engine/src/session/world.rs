//! The world outside of a session: hooks, an agent, files, time and people.
//!
//! The loop touches nothing else, so tests can run it in a simulated world.

use hookloop_agents::TurnReport;
use hookloop_core::checks::CheckCounts;
use hookloop_core::hook::Hook;
use hookloop_core::id::SessionId;
use hookloop_core::options::BaseTestRules;
use hookloop_core::point::Point;
use hookloop_core::session::facts::{BuildState, ExpectationVerdict, TestFinding};
use hookloop_core::session::stop::ClaimJudge;
use hookloop_core::session::{LimitDecision, Session, TurnKind};
use hookloop_core::task::Task;
use hookloop_git::files::FilesLook;
pub use hookloop_git::repo::WorktreeLoss;
pub use hookloop_git::repo::worktree::PlaceEntry;
use hookloop_git::snapshot::{ChangedPath, TreeEdit};
use hookloop_git::step_error::{CommittedWork, StepError};
use hookloop_hooks::hook_context::SessionCall;
use hookloop_hooks::hook_run::HookRun;
use hookloop_store::log::StoredEvent;

use super::allowance::TurnAllowance;
use super::base_plan::BaseRunPlan;
pub use super::place_damage::PlaceDamage;
pub use super::prompt::PromptGate;
pub use super::proven::{ProofKey, ProvenGate};
pub use super::room_entry::{EnteredRoom, RoomEntry};
pub use super::strength_plan::StrengthWorld;
pub use super::turn_files::TurnMoment;
use crate::delivery_context::ChangedExpectations;

/// A turn that is due.
#[derive(Clone, Copy, Debug)]
pub struct DueTurn<'a> {
    pub id: &'a SessionId,
    pub session: &'a Session,
    pub kind: TurnKind,
    pub task: Option<&'a Task>,
    /// The gates that judge the work, for the prompt.
    pub gates: &'a [PromptGate],
    /// The judge of the agent's promises.
    pub judge: ClaimJudge,
    pub timeout_ms: u64,
    /// The turn's reservation of the budget, if there is a budget.
    pub allowance: Option<&'a TurnAllowance<'a>>,
}

/// An update for observers.
#[derive(Clone, Copy, Debug)]
pub enum SessionUpdate<'a> {
    /// These events are in the log now.
    Stored(&'a [StoredEvent]),
    /// Hooks of a point are about to run.
    Hooks { point: &'a Point, count: usize },
    /// The gates run again, because these files changed while they ran.
    GatesRepeat { files: &'a str },
    /// Gates wrote new files into the working directory.
    GatesWrote { files: &'a str },
    /// A gate changed the result of the setup, so the setup runs again.
    SetupRepeats { reason: &'a str },
    /// Concurrent gates changed files of their room, so they run again one by one.
    ParallelRepeats { gates: &'a str, count: usize },
    /// Gates do not see the changes in these submodules, because they are not committed.
    UncommittedSubmodules { paths: &'a str },
    /// The hooks of a point have run.
    Ran(&'a [HookRun]),
    /// A turn is about to begin.
    Turn { kind: TurnKind, iteration: u32 },
    /// The agent printed this.
    Said(&'a [u8]),
    /// The agent uses a tool: its name and its input.
    Did(&'a str),
    /// The session pauses.
    Pause { ms: u64, reason: PauseReason },
    /// The tests of the base run beside a gate.
    BaseTests { gate: &'a str },
    /// A mutation engine measures the tests of a gate.
    Strength { gate: &'a str, engine: &'a str },
    /// A gatekeeper reviews changes of tests.
    TestReview { by: &'a str },
    /// The session waits for reservations of other sessions.
    Budget,
}

/// The reason why a session waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// The agent's provider returned a rate limit.
    RateLimit,
    FailedTurn,
    /// A delivery failed, and is tried again.
    Delivery,
}

/// Facts about a gate for its receipt.
#[derive(Clone, Debug, Default)]
pub struct GateFacts {
    /// The digest of the gate's definition and scripts.
    pub digest: Option<String>,
    /// The digest of the tools that the gate uses.
    pub tools: Option<String>,
}

/// Receives each hook's run when it ends, and returns the events that were stored because of it.
pub type HookSink<'a> = &'a mut dyn FnMut(&HookRun) -> Vec<StoredEvent>;

pub trait SessionWorld: StrengthWorld {
    /// Enters the task's worktree, which is created if it is missing, and again if it is damaged.
    ///
    /// Returns the loss in that case. Until [`SessionWorld::loss_recorded`] each further call returns the
    /// same.
    fn enter(&mut self, task: &Task, entry: PlaceEntry) -> Result<Option<WorktreeLoss>, StepError>;
    /// Confirms that the log has the loss of a task's worktree.
    fn loss_recorded(&mut self, _: &Task) {}
    /// Checks that the working directory is the worktree of this task.
    ///
    /// Without a task, checks that the project's directory is the one that the session began in.
    /// Changes nothing.
    fn check_place(&self, task: Option<&Task>) -> Result<(), PlaceDamage>;
    /// Commits everything that is not committed to the task's branch.
    fn wrap_up(&mut self, task: &Task) -> Result<CommittedWork, StepError>;
    /// Returns why a person has to approve a commit before its merge, if one has to.
    fn why_consent(&mut self, _head: &str) -> Option<String> {
        None
    }
    /// Runs hooks in their order, and returns their runs.
    ///
    /// `ended` gets each run as soon as it ends. Of concurrent hooks, the first to end comes first.
    fn run_hooks(
        &mut self,
        hooks: &[Hook],
        call: &SessionCall<'_>,
        ended: HookSink<'_>,
    ) -> Vec<HookRun>;
    /// Prepares the room in which these gates run, with the current files.
    fn enter_room(&mut self, _gates: &[Hook]) -> RoomEntry {
        RoomEntry::Here
    }
    /// Ends the use of the room. `was_refused` tells whether a gate refused the work.
    fn leave_room(&mut self, _was_refused: bool) {}
    /// Returns why the last hooks did not start, if a gate before them changed the result of the setup.
    fn take_setup_damage(&mut self) -> Option<String> {
        None
    }
    /// Removes files that earlier runs left in the room.
    fn make_cold(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Removes the result of a setup that a gate changed. Files that gates left stay.
    fn discard_setup_files(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Removes the result of an earlier setup from the room.
    fn discard_setup(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Returns whether files of a run on refused work may be in the room, or the result of a setup on another tree. None
    /// without a room.
    fn note_build(&mut self) -> Result<Option<BuildState>, String> {
        Ok(None)
    }
    /// Returns the digest of a setup, and whether its result is in the room.
    fn setup_state(&mut self, _setup: &[Hook]) -> Result<(String, bool), String> {
        Ok((String::new(), true))
    }
    /// Records that the setup has run in the room.
    fn note_setup(&mut self, _digest: &str) -> Result<(), String> {
        Ok(())
    }
    /// Returns the earlier proof of a gate on the tree in the room.
    fn proof_of(&self, _gate: &Hook, _must_be_cold: bool) -> Option<ProvenGate> {
        None
    }
    /// Keeps gates that passed on the tree in the room.
    fn keep_proofs(&mut self, _passed: &[(Hook, Option<CheckCounts>)]) {}
    /// Returns why a failed gate needs a person, if it used the working directory although it ran in the room.
    fn leak_of(&self, _gate: &Hook, _run: &HookRun) -> Option<String> {
        None
    }
    /// Returns the facts about a gate for its receipt.
    fn gate_facts(&self, _gate: &Hook) -> GateFacts {
        GateFacts::default()
    }
    /// Returns the paths that differ between two trees. None if they are unknown.
    fn changes_between(&mut self, _from: &str, _to: &str) -> Option<Vec<ChangedPath>> {
        None
    }
    /// Plans the run of the base's tests against a tree of the work. None if there are no trees here. The error is for
    /// a person.
    #[expect(private_interfaces, reason = "only the world of real sessions plans such a run")]
    fn plan_base_run(
        &mut self,
        _: &BaseTestRules,
        _tree: &str,
    ) -> Result<Option<BaseRunPlan>, String> {
        Ok(None)
    }
    /// Returns the tree of the files before the work of the first session here that no gate has proven. The error is for a
    /// person.
    fn baseline_tree(&mut self) -> Result<String, String> {
        Err("they are not recorded here".to_owned())
    }
    /// Returns the files outside of the project that gates use and that changed since the session began. The error is for
    /// a person.
    fn changed_surroundings(&mut self) -> Result<Vec<TestFinding>, String> {
        Ok(Vec::new())
    }
    /// Asks a gatekeeper whether the work asks for changes of tests. The error is for a person.
    fn review_expectations(
        &mut self,
        _: &Session,
        _: &ChangedExpectations<'_>,
    ) -> Result<ExpectationVerdict, String> {
        Err("there is no gatekeeper here".to_owned())
    }
    /// Returns the tree that another tree becomes by these edits. The error is for a person.
    fn edited_tree(&mut self, _tree: &str, _: &[(Vec<u8>, TreeEdit)]) -> Result<String, String> {
        Err("there are no trees here".to_owned())
    }
    /// Prepares a second room with another tree. Until [`SessionWorld::leave_base_room`], it is the room.
    fn enter_base_room(&mut self, _gates: &[Hook], _tree: &str) -> RoomEntry {
        RoomEntry::Here
    }
    /// Ends the use of the second room.
    fn leave_base_room(&mut self, _was_refused: bool) {}
    /// Records that gates passed together with the tests of the base.
    fn note_proven_tests(&mut self) {}
    /// Runs a turn of the agent.
    fn take_turn(&mut self, turn: &DueTurn<'_>) -> TurnReport;
    /// Reads the files. Returns none if they cannot be read.
    fn look_at_files(&mut self) -> Option<FilesLook>;
    /// Returns the git tree of the current files, committed or not.
    fn tree(&mut self) -> Option<String>;
    /// Returns the git tree of a commit of the current work.
    fn tree_of_commit(&mut self, _head: &str) -> Option<String> {
        self.tree()
    }
    /// Keeps a snapshot of the files before or after a turn, and returns its tree.
    fn keep_files(&mut self, _: &SessionId, _turn: u32, _: TurnMoment) -> Option<String> {
        None
    }
    /// Returns the commit that is checked out. None outside of git.
    fn head(&mut self) -> Option<String> {
        None
    }
    /// Returns the hooks that changed since the session began, each once.
    fn drifted(&mut self) -> Vec<String>;
    /// Returns the milliseconds since this process started or resumed the session.
    fn elapsed_ms(&self) -> u64;
    /// Returns the current time in milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// Waits while new steps are prevented. That time does not count as run time.
    fn rest(&mut self) {}
    /// Waits, and returns early if the session has to stop.
    fn pause(&mut self, ms: u64);
    /// Whether the user stops the session.
    fn is_cancelled(&self) -> bool;
    /// Starts the end of the session, which also runs if the user stops the session.
    fn begin_end(&mut self);
    /// Whether a person can be asked to decide at the retry limit.
    fn can_ask(&self) -> bool {
        false
    }
    /// Asks a person to decide at the retry limit.
    ///
    /// Returns none without an answer, or if `is_answered` reports a decision from elsewhere.
    fn ask(
        &mut self,
        _: &Session,
        _is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        None
    }
    /// Records the task that the session has claimed, or none.
    fn hold(&mut self, task: Option<(&Task, u64)>);
    fn notice(&mut self, notice: SessionUpdate<'_>);
}
