//! What there is outside of a session: hooks, an agent, files, time, and people. The loop itself touches
//! nothing else, so it can be run in a world that is made up.

use hookloop_agents::Report;
use hookloop_core::hook::Hook;
use hookloop_core::id::SessionId;
use hookloop_core::point::Point;
use hookloop_core::session::stop::ClaimJudge;
use hookloop_core::session::{LimitDecision, Session, TurnKind};
use hookloop_core::task::Task;
use hookloop_git::files::Look;
pub use hookloop_git::repo::WorktreeLoss;
pub use hookloop_git::repo::worktree::PlaceEntry;
use hookloop_git::step_error::{Trouble, Wrapped};
use hookloop_hooks::hook_context::Call;
use hookloop_hooks::hook_run::HookRun;
use hookloop_store::log::StoredEvent;

use super::allowance::Allowance;
pub use super::place_damage::PlaceDamage;
pub use super::prompt::PromptGate;

/// A turn that is due.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    pub id: &'a SessionId,
    pub session: &'a Session,
    pub kind: TurnKind,
    pub task: Option<&'a Task>,
    /// The gates that judge the work, for the prompt.
    pub gates: &'a [PromptGate],
    /// The judge of the agent's promises.
    pub judge: ClaimJudge,
    pub timeout_ms: u64,
    /// What it may use of the purse, if there is one.
    pub allowance: Option<&'a Allowance<'a>>,
}

/// What an onlooker is told beside the events that are stored.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// These are in the log now.
    Stored(&'a [StoredEvent]),
    /// Hooks of a point are about to run.
    Hooks { point: &'a Point, count: usize },
    /// The gates run again, because these files changed while they ran.
    GatesRepeat { files: &'a str },
    /// What came of them.
    Ran(&'a [HookRun]),
    /// A turn is about to begin.
    Turn { kind: TurnKind, iteration: u32 },
    /// The agent said this.
    Said(&'a [u8]),
    /// The agent uses a tool: which, and on what.
    Did(&'a str),
    /// Nothing happens for a while.
    Pause { ms: u64, reason: PauseReason },
    /// Nothing happens until others need less of the purse than they might.
    Purse,
}

/// The reason for which a session waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// The agent's provider returned a rate limit.
    RateLimit,
    FailedTurn,
    /// A delivery did not work out, and is tried again.
    Delivery,
}

/// Receives each hook's run when it ends, and returns the events that were stored because of it.
pub type HookSink<'a> = &'a mut dyn FnMut(&HookRun) -> Vec<StoredEvent>;

pub trait World {
    /// Goes to the task's worktree, which is made if it is not there, and made anew if it is damaged. Returns what
    /// was lost in that case; until [`World::loss_recorded`] each further call returns the same.
    fn enter(&mut self, task: &Task, entry: PlaceEntry) -> Result<Option<WorktreeLoss>, Trouble>;
    /// The loss of a task's worktree is in the log.
    fn loss_recorded(&mut self, _: &Task) {}
    /// Checks that the working directory is the worktree of this task; without a task, that the project's directory
    /// is the one that the session began in. Changes nothing.
    fn check_place(&self, task: Option<&Task>) -> Result<(), PlaceDamage>;
    /// Puts what is not committed into a commit on the task's branch.
    fn wrap_up(&mut self, task: &Task) -> Result<Wrapped, Trouble>;
    /// Returns why a person has to agree before a commit of the task's is merged, if one has to.
    fn why_consent(&mut self, _head: &str) -> Option<String> {
        None
    }
    /// Runs hooks in their order, and returns their runs. `ended` gets each run as soon as it ends; of hooks
    /// that run side by side, the first to end comes first.
    fn run_hooks(&mut self, hooks: &[Hook], call: &Call<'_>, ended: HookSink<'_>) -> Vec<HookRun>;
    /// Has the agent take a turn.
    fn take_turn(&mut self, turn: &Turn<'_>) -> Report;
    /// What the files are; none if that can't be told.
    fn look_at_files(&mut self) -> Option<Look>;
    /// The git tree of what is there, committed or not.
    fn tree(&mut self) -> Option<String>;
    /// The commit that is checked out; none outside of git.
    fn head(&mut self) -> Option<String> {
        None
    }
    /// Hooks that are not what they were when the session began; each once.
    fn drifted(&mut self) -> Vec<String>;
    /// Time that this program has had the session, in milliseconds.
    fn elapsed_ms(&self) -> u64;
    /// What time it is: milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// Waits for as long as nothing new is to begin. That time does not count.
    fn rest(&mut self) {}
    /// Waits; less if the session is to stop.
    fn pause(&mut self, ms: u64);
    /// Whether the user wants it to stop.
    fn is_cancelled(&self) -> bool;
    /// From now on things are done that are also done when the user wants it to stop.
    fn begin_end(&mut self);
    /// Whether there is somebody to ask what is done about gates that said no too often.
    fn can_ask(&self) -> bool {
        false
    }
    /// Asks that: none if nobody says, or if it was said elsewhere, which `is_answered` tells.
    fn ask(
        &mut self,
        _: &Session,
        _is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        None
    }
    /// The session holds a task from now on, or none.
    fn hold(&mut self, task: Option<(&Task, u64)>);
    fn notice(&mut self, notice: Notice<'_>);
}
