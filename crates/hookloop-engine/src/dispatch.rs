//! Runs deferred reactions and workflows.
//!
//! Any process may run them, one process and one batch at a time. Each batch holds the actions and
//! the cursor's move past their event. So each action takes effect once, even if processes crash.

use hookloop_config::clock::now;
use hookloop_core::builtin::Builtin;
use hookloop_core::cascade::EventCause;
use hookloop_core::event::{
    CursorMoved, CursorPart, Event, EventBody, NoData, WorkflowFailed, WorkflowStep,
};
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::hook_protocol::HookStatus;
use hookloop_core::id::{EventId, Subject};
use hookloop_core::point::Point;
use hookloop_core::task::Task;
use hookloop_core::workflow::WorkflowRun;
use hookloop_hooks::hook_context::{HookContext, ReactionRun};
use hookloop_hooks::hook_run::HookRun;
use hookloop_store::log::{Seq, StoredEvent};

use crate::batch::{Batch, EventHookRuns, EventOrigin};
use crate::command_outcome::{CommandOutcome, ReactionsLeft};
use crate::delivery::step_outcome::DeliveryHooks;
use crate::delivery_context::StepsInContext;
use crate::error::EngineError;
use crate::log_location::LogLocation;
use crate::project::Project;
use crate::react::{satisfactions, starts_process, weight};
use crate::reactions::{DispatchRole, EventClaim, ReactionHold};

/// Dependents that one batch of the dispatcher processes.
const CHUNK: usize = 400;
/// Due events that one batch of the dispatcher processes at most.
const DUE_AT_ONCE: usize = 128;
/// How often a process looks for further events after it released the right to run hooks.
const ROUNDS_MAX: usize = 1_000;
/// Events that a batch of the dispatcher keeps free for its own records.
const RESERVE: usize = 64;

/// Whether a step of the dispatcher found work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DispatchProgress {
    Nothing,
    Some,
}

impl Project {
    /// Whether reactions or workflows are waiting.
    pub fn has_pending(&self) -> Result<bool, EngineError> {
        Ok(self.store.glance(|view| view.has_pending())?)
    }

    /// Runs reactions that are due, unless another process runs them.
    ///
    /// That includes reactions of crashed processes. Cascade limits bound the work.
    pub fn dispatch(&self) -> Result<(), EngineError> {
        self.dispatch_as(DispatchRole::Command, &mut CommandOutcome::default()).map(drop)
    }

    /// Runs due reactions and workflows as the leader of dispatching.
    pub fn lead_reactions(&self) -> Result<(), EngineError> {
        self.dispatch_as(DispatchRole::Leader, &mut CommandOutcome::default())?;
        self.run_workflows_as(DispatchRole::Leader)
    }

    /// Runs [`Project::dispatch`] in the given role, and returns why reactions are left, if some
    /// are.
    ///
    /// It adds the new tasks and the failures of hooks to `done`.
    pub(crate) fn dispatch_as(
        &self,
        role: DispatchRole,
        done: &mut CommandOutcome,
    ) -> Result<Option<ReactionsLeft>, EngineError> {
        for _ in 0..ROUNDS_MAX {
            if self.read(|view| view.next_due())?.is_none() {
                return Ok(None);
            }
            if let Some(left) = self.reactions_left() {
                return Ok(Some(left));
            }
            let Some(mut hold) = self.hold_reactions(role)? else { break };
            if self.dispatch_held(&mut hold, done)? == DispatchProgress::Nothing {
                break;
            }
            // A process that found the lock taken left its events to this one. Look again after the
            // release.
            drop(hold);
        }
        Ok(Some(ReactionsLeft::Running))
    }

    /// Runs the due events while it holds the right to run hooks.
    ///
    /// Returns `Nothing` if another machine runs hooks of the next event.
    fn dispatch_held(
        &self,
        hold: &mut ReactionHold,
        done: &mut CommandOutcome,
    ) -> Result<DispatchProgress, EngineError> {
        while let Some(seq) = self.read(|view| view.next_due())? {
            let ran = match self.run_processes(seq, hold)? {
                EventProcesses::Others => return Ok(DispatchProgress::Nothing),
                EventProcesses::LookAgain => continue,
                EventProcesses::None => None,
                EventProcesses::Ran(ran) => Some(ran),
            };
            let (progress, noted) = self.dispatch_some(ran)?;
            done.added.extend(noted.added);
            done.failures.extend(noted.failures);
            if progress == DispatchProgress::Nothing {
                break;
            }
        }
        Ok(DispatchProgress::Some)
    }

    /// Runs requested workflows step by step, with the reactions that they cause.
    pub fn run_workflows(&self) -> Result<(), EngineError> {
        self.run_workflows_as(DispatchRole::Command)
    }

    fn run_workflows_as(&self, role: DispatchRole) -> Result<(), EngineError> {
        while self.read(|view| view.next_run())?.is_some() {
            if self.run_step()? == DispatchProgress::Nothing {
                break;
            }
            match role {
                DispatchRole::Leader => {
                    self.dispatch_as(role, &mut CommandOutcome::default())?;
                }
                DispatchRole::Command => self.settle_reactions(&mut CommandOutcome::default())?,
            }
        }
        Ok(())
    }

    /// Runs one batch: the reactions to as many due events as fit, and the cursor's move past them.
    ///
    /// An event whose hooks start processes needs their results first. It comes first in a batch,
    /// with `ran`.
    fn dispatch_some(
        &self,
        ran: Option<EventHookRuns>,
    ) -> Result<(DispatchProgress, CommandOutcome), EngineError> {
        let nothing = || Ok((DispatchProgress::Nothing, CommandOutcome::default()));
        self.store.transact(|unit| {
            let Some(mut seq) = unit.view()?.next_due()? else { return nothing() };
            let cursor = unit.totals().cursor.clone();
            let mut part = cursor.part.filter(|_| cursor.seq == seq);
            let mut work = Batch::new(unit, &self.rules, now())?;
            work.ran = ran.clone();
            for left in (0..DUE_AT_ONCE).rev() {
                let Some(stored) = work.unit.due_event(seq)? else { return nothing() };
                if work.lacks_process(&stored.event)? {
                    // Another dispatcher already handled the previous event.
                    return Ok((DispatchProgress::Some, CommandOutcome::default()));
                }
                let next = work.dispatch(&stored, part.take())?;
                work.react()?;
                match work.due_after(seq, &next)? {
                    Some(further) if left > 0 => seq = further,
                    _ => {
                        work.move_cursor(&stored.event, seq, next)?;
                        return Ok((DispatchProgress::Some, work.noted(None)));
                    }
                }
            }
            nothing()
        })
    }

    fn run_step(&self) -> Result<DispatchProgress, EngineError> {
        self.store.transact(|unit| {
            let Some(run) = unit.view()?.next_run()? else { return Ok(DispatchProgress::Nothing) };
            let mut work = Batch::new(unit, &self.rules, now())?;
            work.run_step(&run)?;
            work.react()?;
            Ok(DispatchProgress::Some)
        })
    }
}

impl Batch<'_, '_, '_> {
    /// Returns the next due event that surely fits into this batch after the one at `seq`.
    ///
    /// None if the event at `seq` is unfinished, if room is short, or if the next event needs
    /// processes.
    fn due_after(
        &self,
        seq: Seq,
        unfinished: &Option<CursorPart>,
    ) -> Result<Option<Seq>, EngineError> {
        if unfinished.is_some() || self.unit.room() < 2 * CHUNK + RESERVE {
            return Ok(None);
        }
        let Some(next) = self.unit.view()?.next_due_after(seq)? else { return Ok(None) };
        match self.unit.due_event(next)? {
            Some(stored) if self.lacks_process(&stored.event)? => Ok(None),
            _ => Ok(Some(next)),
        }
    }

    /// Whether a hook of `event` starts a process that has not run.
    fn lacks_process(&self, event: &Event) -> Result<bool, EngineError> {
        if self.ran.as_ref().is_some_and(|ran| ran.event == event.id) {
            return Ok(false);
        }
        Ok(!self.process_hooks(event)?.is_empty())
    }

    /// Returns the hooks of `event` that start a process, in the order they run.
    pub(crate) fn process_hooks(&self, event: &Event) -> Result<Vec<&Hook>, EngineError> {
        let kind = event.body.kind();
        if !self.hooks.list().iter().any(|hook| starts_process(&hook.handler)) {
            return Ok(Vec::new());
        }
        let task_type = self.task_of(event)?.and_then(|task| task.spec.kind);
        let mut hooks = self.hooks.resolve(kind, task_type.as_deref());
        hooks.retain(|hook| starts_process(&hook.handler));
        Ok(hooks)
    }

    /// Runs the remaining hooks of a due event, and returns where the batch ran out of room.
    fn dispatch(
        &mut self,
        stored: &StoredEvent,
        part: Option<CursorPart>,
    ) -> Result<Option<CursorPart>, EngineError> {
        if part.is_none()
            && let Some(plan) = self.plan(&stored.event)?
        {
            self.carry_out(&stored.event, plan)?;
            return Ok(None);
        }
        self.dispatch_by_parts(&stored.event, part.unwrap_or_default())
    }

    /// Runs one hook after the other, each as far as the batch has room.
    fn dispatch_by_parts(
        &mut self,
        event: &Event,
        from: CursorPart,
    ) -> Result<Option<CursorPart>, EngineError> {
        let hooks = self.hooks.clone();
        let mut done = from.hooks_done;
        let task_type = self.task_of(event)?.and_then(|task| task.spec.kind);
        for hook in hooks.resolve(event.body.kind(), task_type.as_deref()) {
            if done.contains(&hook.name) {
                continue;
            }
            let after = if from.hook.as_ref() == Some(&hook.name) { from.after } else { 0 };
            let next = match (&hook.handler, event.subject.task()) {
                (HookHandler::Builtin(Builtin::CheckDependencySatisfaction), Some(id)) => {
                    let rows = self.unit.view()?.dependents(id, after, CHUNK)?;
                    let mut reaction = satisfactions(hook, id, rows.iter().map(|row| &row.task));
                    // Each task up to `after` needs at most two actions.
                    reaction.offset = 2 * after as usize;
                    let last = rows.last().map(|row| row.num);
                    self.carry_out_one(event, reaction, 0)?;
                    last.filter(|_| rows.len() == CHUNK)
                }
                _ => {
                    let task = self.task_of(event)?;
                    let ran = self.process_reaction(hook, event);
                    let mut reaction =
                        ran.unwrap_or_else(|| self.run_without_process(hook, event, task.as_ref()));
                    let stop = self.fitting(&mut reaction.outcome, after as usize);
                    self.carry_out_one(event, reaction, after as usize)?;
                    stop
                }
            };
            if let Some(after) = next {
                let hook = Some(hook.name.clone());
                return Ok(Some(CursorPart { hooks_done: done, hook, after }));
            }
            done.push(hook.name.clone());
            if self.unit.room() < CHUNK + RESERVE {
                return Ok(Some(CursorPart { hooks_done: done, hook: None, after: 0 }));
            }
        }
        Ok(None)
    }

    /// Truncates `outcome` to the room of the batch from action `first` on, and returns the cut.
    fn fitting(
        &self,
        outcome: &mut Result<Vec<hookloop_core::action::Action>, hookloop_core::hook::HookFailure>,
        first: usize,
    ) -> Option<u64> {
        let Ok(actions) = outcome else { return None };
        let mut room = self.unit.room().saturating_sub(RESERVE);
        for (i, action) in actions.iter().enumerate().skip(first) {
            match room.checked_sub(weight(action)) {
                Some(left) => room = left,
                None => {
                    actions.truncate(i);
                    return Some(i as u64);
                }
            }
        }
        None
    }

    fn move_cursor(
        &mut self,
        event: &Event,
        seq: Seq,
        part: Option<CursorPart>,
    ) -> Result<(), EngineError> {
        let step =
            part.as_ref().map_or(usize::MAX, |p| p.hooks_done.len() << 40 | p.after as usize);
        let origin = EventOrigin::command(event.id.derive("_cursor", step), "hookloop");
        let moved = EventBody::CursorMoved(CursorMoved { seq, part });
        self.stage(origin, Subject::Cursor, moved)?;
        Ok(())
    }

    /// Runs the next step of a workflow, and records in the same batch that it is done.
    fn run_step(&mut self, run: &WorkflowRun) -> Result<(), EngineError> {
        let step = run.next_step;
        let label = format!("workflow:{}", run.id);
        let asked = run.cause.clone().unwrap_or(EventCause {
            event: EventId([0; 16]),
            hook: run.workflow.clone(),
            root: EventId([0; 16]),
            depth: 0,
            count: 0,
        });
        let count = *self.count(asked.root)?;
        let (_, cut) = self.rules.limits.cascade.allow(asked.depth + 1, count, 1);
        *self.count(asked.root)? += 1;
        let cause = EventCause { count: count + 1, depth: asked.depth + 1, ..asked.clone() };
        let origin = EventOrigin::hook(asked.event.derive(&label, step * 2), cause);
        let about = Event {
            id: origin.id,
            at: now(),
            subject: Subject::Workflow(run.id.clone()),
            actor: origin.actor.clone(),
            cause: origin.cause.clone(),
            due: false,
            body: EventBody::WorkflowStepCompleted(WorkflowStep { step }),
        };
        let outcome = match run.steps.get(step) {
            Some(action) => match cut {
                Some(limit) => Err(format!("the cascade limit `{limit}` is reached")),
                None => self.act(action.clone(), &origin, &about)?,
            },
            None => Ok(()),
        };
        let record = EventOrigin { id: asked.event.derive(&label, step * 2 + 1), ..origin };
        let subject = about.subject;
        match outcome {
            Err(error) => {
                let failed = EventBody::WorkflowFailed(WorkflowFailed { step, error });
                self.stage(record, subject, failed)?;
            }
            Ok(()) => {
                self.stage(record.clone(), subject.clone(), about.body)?;
                if step + 1 >= run.steps.len() {
                    let last = EventOrigin { id: record.id.derive("completed", 0), ..record };
                    self.stage(last, subject, EventBody::WorkflowCompleted(NoData {}))?;
                }
            }
        }
        Ok(())
    }
}

/// The result of an attempt to run the processes of one event's hooks.
#[derive(Debug)]
pub(crate) enum EventProcesses {
    /// The event has no hooks that start processes.
    None,
    Ran(EventHookRuns),
    /// The view changed, so another event may be next.
    LookAgain,
    /// Another machine runs hooks.
    Others,
}

impl Project {
    /// Starts a keeper in advance if the batch has hooks that run here, while the disk writes the
    /// batch.
    pub(crate) fn expect_processes(&self, work: &Batch<'_, '_, '_>) -> Result<(), EngineError> {
        let (Some(runner), LogLocation::Here) = (&self.runner, &self.kept) else { return Ok(()) };
        let may_run = |hook: &&Hook| {
            matches!(hook.handler, HookHandler::Command(_)) && runner.standing(hook).may_run()
        };
        let staged = (0..work.unit.len()).filter_map(|index| work.unit.staged(index));
        for event in staged.filter(|event| event.due) {
            if work.process_hooks(event)?.iter().any(may_run) {
                runner.keepers().get_ready();
                break;
            }
        }
        Ok(())
    }

    /// Runs the hooks of the due event at `seq` that start a process.
    pub(crate) fn run_processes(
        &self,
        seq: Seq,
        hold: &mut ReactionHold,
    ) -> Result<EventProcesses, EngineError> {
        let found = self.store.transact(|unit| -> Result<_, EngineError> {
            let Some(stored) = unit.due_event(seq)? else { return Ok(None) };
            let done = unit.totals().cursor.clone();
            let done = done.part.filter(|_| done.seq == seq).map(|part| part.hooks_done);
            let work = Batch::new(unit, &self.rules, now())?;
            let mut hooks: Vec<Hook> =
                work.process_hooks(&stored.event)?.into_iter().cloned().collect();
            hooks.retain(|hook| done.as_ref().is_none_or(|done| !done.contains(&hook.name)));
            let task = work.task_of(&stored.event)?;
            Ok(Some((stored.event, hooks, task)))
        })?;
        let Some((event, hooks, task)) = found.filter(|(_, hooks, _)| !hooks.is_empty()) else {
            return Ok(EventProcesses::None);
        };
        match self.claim_event(hold, seq)? {
            EventClaim::Had => {}
            EventClaim::LookAgain => return Ok(EventProcesses::LookAgain),
            EventClaim::Others => return Ok(EventProcesses::Others),
        }
        let (root, depth) = match &event.cause {
            Some(cause) => (cause.root, cause.depth + 1),
            None => (event.id, 1),
        };
        let reaction = ReactionRun { lock: hold.lock(), event: event.id, root, depth };
        let point = Point::Event(event.body.kind().to_owned());
        let hook_context = HookContext {
            event: Some(&event),
            task: task.as_ref(),
            reaction: Some(reaction),
            ..HookContext::at(&point)
        };
        let runs = self.run_hooks(&hooks, &hook_context);
        Ok(EventProcesses::Ran(EventHookRuns { event: event.id, runs }))
    }

    /// Runs the hooks of a point, and returns the result of each.
    pub(crate) fn run_hooks(&self, hooks: &[Hook], hook_context: &HookContext<'_>) -> Vec<HookRun> {
        let homeless = |hook: &Hook| {
            let reason = "there is no project directory to run it in".to_owned();
            HookRun::unable(hook, hook_context.point, HookStatus::NotStarted, reason)
        };
        match &self.runner {
            Some(runner) => {
                let builtins =
                    StepsInContext { steps: &DeliveryHooks, runner, delivery_context: None };
                let hook_context = HookContext { builtins: Some(&builtins), ..*hook_context };
                hookloop_hooks::hook_sequence::run_all(runner, hooks, &hook_context, &mut |_| {})
            }
            None => hooks.iter().map(homeless).collect(),
        }
    }

    /// Runs one hook as if `event` had happened, and records nothing.
    pub fn try_hook(
        &self,
        hook: &Hook,
        point: &Point,
        event: Option<&Event>,
        task: Option<&Task>,
    ) -> HookRun {
        let hook_context = HookContext { event, task, ..HookContext::at(point) };
        let runs = self.run_hooks(std::slice::from_ref(hook), &hook_context);
        let nothing = || HookRun::skipped(hook, "it was not run".to_owned());
        runs.into_iter().next().unwrap_or_else(nothing)
    }
}
