//! A command and its reactions as one batch.
//!
//! 1. `Batch::perform` loads the facts that the command touches, decides it, and stages the events.
//!    The view shows a staged event at once.
//! 2. `Batch::react` runs the hooks of each staged event in order and performs their actions in the
//!    same way, until no event is left. Cascade limits bound it.
//! 3. The store writes the whole batch. So no crash can separate an event from the actions that it
//!    caused.
//!
//! Events that do not fit the batch, and hooks that start a process, are marked due and left to the
//! dispatcher.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use hookloop_config::effective::EffectiveConfig;
use hookloop_core::cascade::EventCause;
use hookloop_core::command::Command;
use hookloop_core::decide::decide;
use hookloop_core::event::{Event, EventBody};
use hookloop_core::hook::HookRegistry;
use hookloop_core::id::{EventId, Subject, TaskId};
use hookloop_core::refusal::Refusal;
use hookloop_core::slots::WipPermit;
use hookloop_core::task::{Task, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_hooks::hook_run::HookRun;
use hookloop_store::log::LogError;
use hookloop_store::store::{StoreError, WorkUnit};
use hookloop_store::view::View;

use crate::command_outcome::CommandOutcome;
use crate::error::EngineError;

/// Dependents of a deleted task that one batch processes.
const DELETION_BATCH: usize = 500;

/// Maximum dependents of a completed task that are checked for the report of ready tasks.
const READIED_SHOWN: usize = 100;

/// The origin of events: the id from which theirs are derived, the actor, and the causing hook.
#[derive(Clone, Debug)]
pub struct EventOrigin {
    pub(crate) id: EventId,
    pub(crate) actor: String,
    pub(crate) cause: Option<EventCause>,
    /// The time of the event, if it is not the time of the batch.
    pub(crate) at: Option<Timestamp>,
}

impl EventOrigin {
    pub fn command(id: EventId, actor: &str) -> EventOrigin {
        EventOrigin { id, actor: actor.to_owned(), cause: None, at: None }
    }

    pub(crate) fn hook(id: EventId, cause: EventCause) -> EventOrigin {
        EventOrigin { id, actor: format!("hook:{}", cause.hook), cause: Some(cause), at: None }
    }

    /// Returns the origin for a further batch of the same command.
    pub(crate) fn part(&self, part: usize) -> EventOrigin {
        match part {
            0 => self.clone(),
            n => EventOrigin { id: self.id.derive("part", n), ..self.clone() },
        }
    }
}

impl std::fmt::Debug for Batch<'_, '_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").field("at", &self.at).finish_non_exhaustive()
    }
}

/// A batch that is being built.
pub struct Batch<'u, 'a, 'r> {
    pub unit: &'u mut WorkUnit<'a>,
    pub(crate) rules: &'r EffectiveConfig,
    pub(crate) hooks: Cow<'r, HookRegistry>,
    at: Timestamp,
    /// Staged events whose hooks have not run.
    queue: VecDeque<usize>,
    /// Actions per root so far.
    counts: HashMap<EventId, u32>,
    /// The results of the processes that ran for an event before this batch.
    pub(crate) ran: Option<EventHookRuns>,
}

impl<'u, 'a, 'r> Batch<'u, 'a, 'r> {
    pub fn new(
        unit: &'u mut WorkUnit<'a>,
        rules: &'r EffectiveConfig,
        at: Timestamp,
    ) -> Result<Batch<'u, 'a, 'r>, EngineError> {
        let hooks = rules.switched(&unit.view()?.hook_switches()?);
        Ok(Batch {
            unit,
            rules,
            hooks,
            at,
            queue: VecDeque::new(),
            counts: HashMap::new(),
            ran: None,
        })
    }

    /// Decides `command` on the staged state of the batch, and stages its events.
    pub(crate) fn perform(
        &mut self,
        command: &Command,
        origin: &EventOrigin,
    ) -> Result<Result<(), Refusal>, EngineError> {
        let mut facts = self.view()?.facts(command, DELETION_BATCH)?;
        facts.now = self.at;
        if let Command::StartTask { .. } | Command::ClaimTask { .. } = command {
            facts.slot = self.slot(facts.task.as_ref())?;
        }
        let events = match decide(command, &facts) {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(refusal)),
        };
        for (i, (subject, body)) in events.into_iter().enumerate() {
            let id = if i == 0 { origin.id } else { origin.id.derive("event", i) };
            self.stage(EventOrigin { id, ..origin.clone() }, subject, body)?;
        }
        Ok(Ok(()))
    }

    /// Returns the view with all staged events, at the time of this batch.
    pub(crate) fn view(&self) -> Result<View<'_>, LogError> {
        Ok(self.unit.view()?.at(self.at))
    }

    /// Returns the WIP permit that `task` needs to be claimed.
    fn slot(&self, task: Option<&Task>) -> Result<WipPermit, LogError> {
        let slots = &self.rules.scheduling.slots;
        match task {
            Some(task) if !slots.is_none() => {
                Ok(slots.slot(task.spec.kind.as_deref(), &self.unit.view()?.in_hands()?))
            }
            _ => Ok(WipPermit::Unbound),
        }
    }

    /// Stages one event. Its hooks run when the batch reacts.
    pub(crate) fn stage(
        &mut self,
        origin: EventOrigin,
        subject: Subject,
        body: EventBody,
    ) -> Result<(), StoreError> {
        let followed = self.hooks.follows(body.kind());
        let index = self.stage_quietly(origin, subject, body)?;
        if followed {
            self.queue.push_back(index);
        }
        Ok(())
    }

    /// Stages one event without its hooks.
    pub fn stage_quietly(
        &mut self,
        origin: EventOrigin,
        subject: Subject,
        body: EventBody,
    ) -> Result<usize, StoreError> {
        self.unit.stage(Event {
            id: origin.id,
            at: origin.at.unwrap_or(self.at),
            subject,
            actor: origin.actor,
            cause: origin.cause,
            due: false,
            body,
        })
    }

    /// Runs the hooks of every staged event, and of the events that follow, in order.
    ///
    /// Events that do not fit the batch are left to the dispatcher.
    pub(crate) fn react(&mut self) -> Result<(), EngineError> {
        while let Some(index) = self.queue.pop_front() {
            let Some(event) = self.unit.staged(index).cloned() else { continue };
            match self.plan(&event)? {
                Some(plan) => self.carry_out(&event, plan)?,
                None => self.unit.defer(index),
            }
        }
        Ok(())
    }

    /// Returns the number of actions that `root` has caused.
    pub(crate) fn count(&mut self, root: EventId) -> Result<&mut u32, LogError> {
        let known = match self.counts.get(&root) {
            Some(count) => *count,
            None => self.unit.view()?.cascade_count(root)?,
        };
        Ok(self.counts.entry(root).or_insert(known))
    }

    /// Returns the outcome of the batch for its caller, about other tasks than `asked`.
    pub(crate) fn noted(&self, asked: Option<&TaskId>) -> CommandOutcome {
        let mut done = CommandOutcome::default();
        for event in (0..self.unit.len()).filter_map(|i| self.unit.staged(i)) {
            done.note_failure(event);
            if event.due {
                done.roots.push(event.id);
            }
            done.pending |= event.due || matches!(event.body, EventBody::WorkflowRequested(_));
            if let Subject::Task(task) = &event.subject {
                done.note(Some(task) == asked, task, &event.body);
            }
        }
        done
    }

    /// Removes tasks that are not ready yet, because their `not_before` time has not come.
    fn leave_out_early(&self, readied: &mut Vec<TaskId>) -> Result<(), LogError> {
        let view = self.view()?;
        let mut ready = Vec::with_capacity(readied.len());
        for id in readied.drain(..) {
            if !view.is_early(&id)? {
                ready.push(id);
            }
        }
        *readied = ready;
        Ok(())
    }

    /// Returns the outcome of the batch for the command, and whether the command is finished.
    pub(crate) fn summary(&self, command: &Command) -> Result<(CommandOutcome, bool), EngineError> {
        let id = command.task();
        let mut done = self.noted(id);
        self.leave_out_early(&mut done.readied)?;
        let mut finished = true;
        if let Command::DeleteTask { .. } = command {
            let deleted = |event: &Event| matches!(event.body, EventBody::TaskDeleted(_));
            finished = (0..self.unit.len()).any(|i| self.unit.staged(i).is_some_and(deleted));
        }
        if let Some(id) = id {
            // The dispatcher announces the dependents later, but they are ready at once.
            if done.pending
                && let Command::CompleteTask { .. } = command
            {
                let dependents = self.view()?.dependents(id, 0, READIED_SHOWN)?;
                let is_ready = |task: &Task| task.state == TaskState::Ready;
                let ready = dependents.into_iter().map(|row| row.task).filter(is_ready);
                done.readied.extend(ready.map(|task| task.id));
            }
            done.task = self.view()?.task(id)?.map(|row| row.task);
        }
        Ok((done, finished))
    }
}

/// The results of the processes of one event's hooks.
#[derive(Clone, Debug)]
pub(crate) struct EventHookRuns {
    pub(crate) event: EventId,
    pub(crate) runs: Vec<HookRun>,
}
