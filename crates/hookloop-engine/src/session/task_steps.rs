//! The steps of a session that claim and release tasks.

use std::collections::BTreeMap;

use hookloop_agents::clipped;
use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;
use hookloop_core::delivery::{DeliveryFact, MergeBlocked, Submission};
use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::refusal::Refusal;
use hookloop_core::session::facts::{AllowedFindings, TaskExit};
use hookloop_core::session::plan::counted;
use hookloop_core::session::step::lost;
use hookloop_core::session::{
    PipedOutput, PromptChannel, SessionOutcome, SessionPhase, SessionTaskClaimed,
    SessionTaskReleased, SessionWork,
};
use hookloop_core::task::{Task, TaskObstacle, TaskOutcome, TaskState};
use hookloop_git::repo::worktree::PlaceEntry;
use hookloop_hooks::hook_run::PIPED_MAX;
use hookloop_store::log::StoredEvent;

use super::drive::SessionDriver;
use super::journal::SessionJournal;
use super::world::SessionWorld;
use crate::claim::{ClaimRequest, WantedTask, WhyNone};
use crate::error::EngineError;

/// Maximum notes on a task in its first prompt, and their name there.
const NOTES_TOLD: usize = 10;
const NOTE: &str = "note";
/// Maximum events of a task that are searched for its previous session, the latest ones.
const TASK_EVENTS_MAX: usize = 1_000;
/// Maximum blocked tasks that a reason names.
const BLOCKED_NAMED: usize = 4;
/// The lease of a session's claim.
pub(crate) const LEASE: std::time::Duration = std::time::Duration::from_secs(90);

impl<W: SessionWorld> SessionDriver<'_, W> {
    pub(crate) fn pick_up_task(&mut self) -> Result<(), EngineError> {
        let held = self.journal.session.task.clone();
        if let Some(taken) = held {
            let row = self.journal.project.read(|view| view.task(&taken.task))?;
            let task = row.map(|row| row.task);
            let is_held =
                |task: &Task| task.claim.as_ref().is_some_and(|claim| claim.epoch == taken.epoch);
            if let Some(task) = task.filter(is_held) {
                // A task that is still to be settled is entered then.
                let is_there = !self.journal.session.plan.delivers
                    || matches!(self.journal.session.phase, SessionPhase::Settling);
                let entered =
                    if is_there { Ok(None) } else { self.world.enter(&task, PlaceEntry::Again) };
                self.hold(Some(task.clone()), taken.epoch);
                match entered {
                    Ok(None) => {}
                    Ok(Some(loss)) => {
                        self.note_loss(&task, loss)?;
                        self.prepare_again()?;
                    }
                    Err(_) if self.is_stopping() => {}
                    Err(trouble) => self.leave_without_place(&trouble)?,
                }
            } else {
                let reason = Some("its claim ended meanwhile".to_owned());
                let left = SessionTaskReleased { task: taken.task, result: TaskExit::Lost, reason };
                self.journal.note(EventBody::SessionTaskReleased(left));
            }
        }
        Ok(())
    }

    /// Claims the most urgent ready task. Without one the session ends.
    pub(super) fn take_task(&mut self) -> Result<(), EngineError> {
        self.commit()?;
        let project = self.journal.project;
        let agent = self.journal.id.actor();
        // A process that crashed may have claimed a task without a record in the session.
        let held = project.read(|view| view.held_by(&agent))?;
        let taken = match held {
            Some(row) => row.task.claim.clone().map(|claim| (row.task, claim.epoch)),
            None => {
                let wanted = match &self.journal.session.plan.work {
                    SessionWork::Task(id) => WantedTask::Task(id.clone()),
                    _ => WantedTask::Any,
                };
                // A schedule that became due may create the next task.
                project.fire_schedules(project.now())?;
                let worker = self.journal.session.agent().to_owned();
                let request =
                    ClaimRequest { agent, worker, lease: LEASE, wanted, labels: Vec::new() };
                match project.claim(&request) {
                    Ok(claimed) => claimed.map(|claimed| (claimed.task, claimed.epoch)),
                    // The wanted task cannot be claimed.
                    Err(EngineError::Refused(refusal)) => {
                        let outcome = self.without_the_task(&refusal)?;
                        self.journal.note(EventBody::SessionEnding(outcome));
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let Some((task, epoch)) = taken else {
            self.journal.note(EventBody::SessionEnding(self.without_tasks()?));
            return Ok(());
        };
        let id = task.id.clone();
        let remediations = project.read(|view| view.delivery(&id))?.remediations;
        let events = project.log().history(&Subject::Task(id.clone()), TASK_EVENTS_MAX)?;
        self.journal.note(EventBody::SessionTaskClaimed(SessionTaskClaimed {
            allowed_findings: allowed_findings(&events),
            task: id,
            epoch,
            remediations,
        }));
        self.tell_withheld(&task.id, &events)?;
        self.tell_notes(&task.id)?;
        self.hold(Some(task), epoch);
        Ok(())
    }

    /// Passes on the check results that stopped the previous session's work on the task.
    ///
    /// `events` are those of the task. Results of this session itself are in its own state.
    fn tell_withheld(&mut self, task: &TaskId, events: &[StoredEvent]) -> Result<(), EngineError> {
        let project = self.journal.project;
        let own = self.journal.id.actor();
        let is_own_claim = |body: &EventBody| match body {
            EventBody::TaskStarted(started) => {
                started.claim.as_ref().is_some_and(|claim| claim.agent == own)
            }
            _ => false,
        };
        let last = events.iter().rev().skip_while(|stored| !is_own_claim(&stored.event.body));
        let last = last.skip(1).find(|stored| {
            let body = &stored.event.body;
            matches!(body, EventBody::TaskBlocked(_) | EventBody::TaskStarted(_))
        });
        let blocked = last.filter(|last| matches!(last.event.body, EventBody::TaskBlocked(_)));
        let other = blocked.and_then(|blocked| SessionId::of_actor(&blocked.event.actor));
        let Some(other) = other.filter(|other| *other != self.journal.id) else { return Ok(()) };
        let Some(other) = SessionJournal::open(project, &other)? else { return Ok(()) };
        for piped in other.session.withheld_for(task) {
            self.journal.note(EventBody::OutputPiped(piped.clone()));
        }
        Ok(())
    }

    /// Adds the latest notes on a task to its first prompt.
    fn tell_notes(&mut self, task: &TaskId) -> Result<(), EngineError> {
        let notes = self.journal.project.read(|view| view.notes(task))?;
        let skipped = notes.len().saturating_sub(NOTES_TOLD);
        for note in notes.into_iter().skip(skipped) {
            let text = clipped(&note.what.text, PIPED_MAX);
            // Any actor can write a note, so it is data. An answer is written by a person.
            let channel = match note.what.question {
                Some(_) => PromptChannel::User,
                None => PromptChannel::HookOutput,
            };
            let piped = PipedOutput {
                from: note.by,
                point: NOTE.to_owned(),
                text,
                channel: Some(channel),
                question: note.what.question,
                ..PipedOutput::default()
            };
            self.journal.note(EventBody::OutputPiped(piped));
        }
        Ok(())
    }

    /// Returns the outcome of a session that cannot claim its task. It may have submitted the task
    /// itself.
    fn without_the_task(&self, refusal: &Refusal) -> Result<SessionOutcome, EngineError> {
        let reason = refusal.to_string();
        let session = &self.journal.session;
        let other = match session.plan.worker {
            // The claim was lost before any work, and another worker has the task.
            Some(_) => SessionOutcome::Interrupted,
            None => SessionOutcome::NeedsHuman { reason },
        };
        let SessionWork::Task(id) = &session.plan.work else { return Ok(other) };
        let row = self.journal.project.read(|view| view.task(id))?;
        let is_done = row.is_some_and(|row| {
            matches!(row.task.state, TaskState::Submitted | TaskState::Completed)
        });
        Ok(match is_done && session.tasks_submitted.contains(id) {
            true => SessionOutcome::Complete { unproven: session.has_accepted },
            false => other,
        })
    }

    /// Returns the outcome of a session that finds no task.
    fn without_tasks(&self) -> Result<SessionOutcome, EngineError> {
        let session = &self.journal.session;
        if !session.tasks_lost.is_empty() {
            return Ok(lost(session));
        }
        let blocked = session.tasks_blocked.len();
        let open = self.journal.project.read(|view| view.open_tasks())?;
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let are_open = counted(number(open), "task is open", "tasks are open");
        let reason = match (blocked, open) {
            (0, 0) => {
                let unproven = self.journal.session.has_accepted;
                return Ok(SessionOutcome::Complete { unproven });
            }
            (0, _) => match self.journal.project.why_none(&WantedTask::Any)? {
                WhyNone::Full(full) => format!("{are_open}, but {full}"),
                WhyNone::NothingReady { next: Some(next) } => {
                    format!("{are_open} and none is ready before {}", next.brief())
                }
                WhyNone::NotForAgent => {
                    let agent = session.agent();
                    let closed = self.journal.project.closed_in_words(agent)?;
                    let none = format!("{are_open} and none is ready for `{agent}`");
                    [vec![none], closed].concat().join("; ")
                }
                WhyNone::NothingReady { next: None } => {
                    format!("{are_open} and none is ready")
                }
            },
            (blocked, _) => {
                let count = u32::try_from(blocked).unwrap_or(u32::MAX);
                let names = session.tasks_blocked.iter().take(BLOCKED_NAMED);
                let names = names.map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let needs = counted(count, "task needs a human", "tasks need a human");
                format!("{needs}: {names}")
            }
        };
        Ok(SessionOutcome::NeedsHuman { reason })
    }

    pub(crate) fn leave_task(
        &mut self,
        how: TaskExit,
        reason: Option<String>,
    ) -> Result<(), EngineError> {
        let Some(SessionTaskClaimed { task, epoch, .. }) = self.journal.session.task.clone() else {
            return Ok(());
        };
        self.commit()?;
        let (how, reason) = match how {
            TaskExit::Returned => self.may_return(&task, reason)?,
            how => (how, reason),
        };
        let fence = Fence::Epoch(epoch);
        let id = task.clone();
        let why = reason.clone().unwrap_or_default();
        let command = match how {
            TaskExit::Completed => {
                let proven = self.journal.session.has_proven_task();
                let result = reason.clone();
                let outcome = TaskOutcome { result, proven, ..TaskOutcome::default() };
                Command::CompleteTask { id, outcome, fence }
            }
            TaskExit::Blocked => {
                let obstacle = TaskObstacle { reason: why, required_knowledge: None };
                Command::BlockTask { id, obstacle, fence }
            }
            TaskExit::Submitted => {
                let proven = self.journal.session.has_proven_task();
                let submission = self.journal.session.submission.clone();
                let submission = submission.map(|found| Submission { proven, ..found });
                Command::SubmitTask { id, fence, submission }
            }
            TaskExit::Returned => Command::ReleaseTask {
                id,
                fence,
                reason: ReleaseReason::NeedsContinuation,
                note: reason.clone(),
            },
            TaskExit::Released | TaskExit::Lost => Command::ReleaseTask {
                id,
                fence,
                reason: ReleaseReason::Released,
                note: reason.clone(),
            },
        };
        let left = |result, reason| {
            EventBody::SessionTaskReleased(SessionTaskReleased {
                task: task.clone(),
                result,
                reason,
            })
        };
        match self.journal.change(command, left(how, reason))? {
            Ok(stored) => {
                self.tell_stored(&stored)?;
                if how == TaskExit::Submitted {
                    self.ask_for_consent(&task)?;
                }
            }
            Err(refusal) => {
                let why = Some(refusal.to_string());
                self.journal.note(left(TaskExit::Lost, why));
            }
        }
        self.task = None;
        self.world.hold(None);
        // Run the reactions to the end of the task.
        self.settle_reactions()?;
        Ok(())
    }

    /// Blocks the merge of submitted work that changes protected files, until a person approves it.
    fn ask_for_consent(&mut self, task: &TaskId) -> Result<(), EngineError> {
        let Some(submission) = self.journal.session.submission.clone() else { return Ok(()) };
        let Some(reason) = self.world.why_consent(&submission.head) else { return Ok(()) };
        let fact = DeliveryFact::Held(MergeBlocked { head: submission.head, reason: Some(reason) });
        let command = Command::RecordDelivery { id: task.clone(), fact };
        match self.journal.project.execute(&command) {
            // The task changed meanwhile, and the merge train checks it again.
            Err(EngineError::Refused(_)) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Blocks a task for a person instead of returning it too often.
    fn may_return(
        &self,
        task: &TaskId,
        reason: Option<String>,
    ) -> Result<(TaskExit, Option<String>), EngineError> {
        let returns = self.journal.project.read(|view| view.delivery(task))?.returns;
        if returns < self.journal.session.plan.limits.max_continuations {
            return Ok((TaskExit::Returned, reason));
        }
        let why = reason.unwrap_or_default();
        Ok((TaskExit::Blocked, Some(format!("it went back {returns} times; the last time: {why}"))))
    }

    fn hold(&mut self, task: Option<Task>, epoch: u64) {
        self.world.hold(task.as_ref().map(|task| (task, epoch)));
        self.task = task;
    }
}

/// Returns the changes of tests that persons allowed in the events of a task, each with the person.
fn allowed_findings(events: &[StoredEvent]) -> BTreeMap<String, String> {
    let allowed = events.iter().filter_map(|stored| match &stored.event.body {
        EventBody::TestChangesAllowed(allowed) => Some(allowed),
        _ => None,
    });
    allowed
        .flat_map(|AllowedFindings { by, digests }| {
            digests.iter().map(|digest| (digest.clone(), by.clone()))
        })
        .collect()
}
