//! The directory that a session works in: checked before each step that runs something there.
//!
//! A claimed task has one worktree, and a session without delivery has the project's directory.
//! Neither is ever exchanged for the other. A missing or damaged worktree is created again. If that
//! fails, a person decides.

use hookloop_agents::TurnReport;
use hookloop_core::event::EventBody;
use hookloop_core::point::Point;
use hookloop_core::session::facts::{TaskExit, WorktreeRecreated};
use hookloop_core::session::{NextStep, SessionOutcome, TurnKind};
use hookloop_core::task::Task;
use hookloop_git::repo::WorktreeLoss;
use hookloop_git::repo::worktree::PlaceEntry;

use super::drive::SessionDriver;
use super::place_damage::PlaceDamage;
use super::prompt_items::US;
use super::world::SessionWorld;
use crate::error::EngineError;

/// How often the worktree of a task is created again in one session, before a person decides.
const RECREATIONS_MAX: u32 = 3;
/// How often a worktree is restored between two turns, before a person decides.
///
/// Between two turns hooks damage it, not the agent.
const RESTORATIONS_MAX: u32 = 5;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Checks that the working directory is that of the claimed task, or the project's.
    pub(super) fn check_place(&self) -> Result<(), PlaceDamage> {
        self.world.check_place(self.task_with_worktree())
    }

    fn task_with_worktree(&self) -> Option<&Task> {
        self.task.as_ref().filter(|_| self.journal.session.plan.delivers)
    }

    /// Ensures that the working directory is the right one, and returns whether the step may be
    /// performed.
    ///
    /// If not, the session's next step is another one.
    pub(super) fn keep_place(&mut self, step: &NextStep) -> Result<bool, EngineError> {
        match self.check_place() {
            Ok(()) => Ok(true),
            Err(PlaceDamage::Root { why }) => {
                self.end_without_root(step, why);
                Ok(false)
            }
            Err(PlaceDamage::Worktree { why }) => self.restore_place(&why),
        }
    }

    fn end_without_root(&mut self, step: &NextStep, why: String) {
        let is_in_need =
            matches!(self.journal.session.outcome, Some(SessionOutcome::NeedsHuman { .. }));
        if is_in_need && matches!(step, NextStep::StartTurn(TurnKind::Delivery)) {
            // No turn delivers the remaining output to the agent.
            let ended = self.turn_ended(TurnKind::Delivery, TurnReport::cancelled(), 0);
            self.journal.note(ended);
            return;
        }
        let reason =
            format!("the project's directory is not the one that the session began in: {why}");
        self.journal.note(EventBody::SessionEnding(SessionOutcome::NeedsHuman { reason }));
    }

    /// Enters the task's worktree again, which repairs or recreates it.
    fn restore_place(&mut self, why: &str) -> Result<bool, EngineError> {
        self.commit()?;
        let Some(task) = self.task.clone() else { return Ok(false) };
        self.restorations += 1;
        if self.restorations > RESTORATIONS_MAX {
            let reason = format!(
                "no usable worktree: {why}; it was restored {RESTORATIONS_MAX} times since the last turn"
            );
            self.leave_task(TaskExit::Blocked, Some(reason))?;
            return Ok(false);
        }
        let entered = self.world.enter(&task, PlaceEntry::Again);
        if self.is_stopping() {
            return Ok(false);
        }
        let loss = match entered {
            Ok(loss) => loss,
            Err(trouble) => {
                self.leave_without_place(&trouble)?;
                return Ok(false);
            }
        };
        if let Err(damage) = self.check_place() {
            let reason = format!("no usable worktree: {why}; after it was created again: {damage}");
            self.leave_task(TaskExit::Blocked, Some(reason))?;
            return Ok(false);
        }
        match loss {
            // No work was lost, so the step continues.
            None => {
                let text = format!(
                    "The worktree of this task was damaged ({why}), and was repaired. Work only in this directory, \
                     and leave its `.git` file as it is."
                );
                self.instruct(US, &Point::SessionStart, text);
                Ok(true)
            }
            Some(loss) => {
                self.note_loss(&task, loss)?;
                self.prepare_again()?;
                Ok(false)
            }
        }
    }

    /// Records that a worktree was created again, and reports the loss to the agent.
    pub(super) fn note_loss(&mut self, task: &Task, loss: WorktreeLoss) -> Result<(), EngineError> {
        let WorktreeLoss { commit, reason, saved } = loss;
        let kept = match &saved {
            Some(name) => format!("the files that were left are in `{name}`"),
            None => "work since that commit is lost".to_owned(),
        };
        let text = format!(
            "The worktree of this task was gone or damaged ({reason}). It was created again from the last commit of \
             its branch, {commit}; {kept}. Work only in this directory, and do not delete or move it."
        );
        let commit = commit.to_string();
        let recreated = WorktreeRecreated { task: task.id.clone(), commit, reason, saved };
        self.journal.note(EventBody::WorktreeRecreated(recreated));
        self.instruct(US, &Point::SessionStart, text);
        self.commit()?;
        self.world.loss_recorded(task);
        Ok(())
    }

    /// Runs the `session_start` hooks in a new worktree, unless it was created too often.
    pub(super) fn prepare_again(&mut self) -> Result<(), EngineError> {
        let times = self.journal.session.recreations;
        if times > RECREATIONS_MAX {
            let reason = format!("its worktree was gone or damaged {times} times in one session");
            return self.leave_task(TaskExit::Blocked, Some(reason));
        }
        self.see_files();
        self.run_point(&Point::SessionStart).map(drop)
    }
}
