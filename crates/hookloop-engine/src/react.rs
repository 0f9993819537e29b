//! The hooks of an event, and the actions that they request.

use hookloop_core::action::{Action, CoreLog, ExecuteWorkflow, LogEntry};
use hookloop_core::builtin::{self, Builtin};
use hookloop_core::cascade::EventCause;
use hookloop_core::claim::Fence;
use hookloop_core::decide::DEPENDENCIES_MAX;
use hookloop_core::event::{
    ActionError, CascadeLimitReached, Event, EventBody, HOOK_NAMESPACE, HookError, HookRan,
    OtherEvent, ReactionFailed, SYSTEM_NODE, TaskStarted, WorkflowRequested,
};
use hookloop_core::excerpt::first_chars;
use hookloop_core::hook::{DeclaredAction, Hook, HookFailure, HookHandler};
use hookloop_core::hook_protocol::HookStatus;
use hookloop_core::id::{EventId, RunId, SessionId, Subject, TaskId};
use hookloop_core::session::{PipedOutput, PromptChannel};
use hookloop_core::task::Task;
use hookloop_hooks::hook_run::piped;
use serde_json::{Value, json};

use crate::batch::{Batch, EventOrigin};
use crate::error::EngineError;

/// Maximum dependents that are released in the batch of the completion itself.
pub(crate) const INLINE_DEPENDENTS: usize = 200;
/// Events that a batch keeps free for mandatory records: errors, cascade limits, the cursor.
const RESERVE: usize = 128;
/// Maximum lengths of a stored error text and of the data of a `log` action.
const ERROR_MAX: usize = 2_000;
const LOG_DATA_MAX: usize = 64 * 1024;
const LOG_TYPE_MAX: usize = 64;
/// Events that a batch keeps free of reports to sessions. Reports only repeat other events.
const REPORT_ROOM: usize = RESERVE / 2;
/// First index of reports, above the indices of all actions of one hook.
const ACTION_REPORTS: usize = 1 << 40;

/// The result of one hook for an event.
pub(crate) struct HookReaction {
    pub(crate) hook: String,
    /// Whether its actions count against the cascade limits.
    pub(crate) counted: bool,
    /// The offset of its actions among all actions of the hook. It keeps their ids unique if the
    /// hook runs in parts.
    pub(crate) offset: usize,
    pub(crate) outcome: Result<Vec<Action>, HookFailure>,
    /// The record of its process, if it had one.
    pub(crate) record: Option<HookRan>,
    /// The output of its process for the agent of the session that caused the event.
    pub(crate) piped: Option<PipedOutput>,
}

/// Whether a hook runs outside of this process.
pub(crate) fn starts_process(handler: &HookHandler) -> bool {
    matches!(handler, HookHandler::Command(_) | HookHandler::Http { .. })
}

impl Batch<'_, '_, '_> {
    /// Runs the hooks of `event`, each independent of the others.
    ///
    /// Returns `None` if the batch has no room for their actions, or if a process has to run first.
    pub(crate) fn plan(&self, event: &Event) -> Result<Option<Vec<HookReaction>>, EngineError> {
        let task = self.task_of(event)?;
        let mut plan = Vec::new();
        let mut size = 0;
        let task_type = task.as_ref().and_then(|task| task.spec.kind.as_deref());
        for hook in self.hooks.resolve(event.body.kind(), task_type) {
            let reaction = match hook.handler {
                HookHandler::Builtin(Builtin::CheckDependencySatisfaction) => {
                    let Some(id) = event.subject.task() else { continue };
                    // A dependent may wait for other tasks too. If other processes can change those
                    // meanwhile, the dispatcher checks them, one batch after the other.
                    if !self.unit.is_alone() {
                        return Ok(None);
                    }
                    let dependents = self.unit.view()?.dependents(id, 0, INLINE_DEPENDENTS + 1)?;
                    if dependents.len() > INLINE_DEPENDENTS {
                        return Ok(None);
                    }
                    satisfactions(hook, id, dependents.iter().map(|row| &row.task))
                }
                _ if starts_process(&hook.handler) => match self.process_reaction(hook, event) {
                    Some(reaction) => reaction,
                    // No batch waits for a process. The dispatcher runs the process first, and then
                    // this batch.
                    None => return Ok(None),
                },
                _ => self.run_without_process(hook, event, task.as_ref()),
            };
            size += reaction.outcome.as_ref().map_or(1, |actions| actions.iter().map(weight).sum());
            plan.push(reaction);
        }
        Ok((size + RESERVE <= self.unit.room()).then_some(plan))
    }

    /// Returns the actions of a hook without a process, or a failure if they need trust that it
    /// lacks.
    pub(crate) fn run_without_process(
        &self,
        hook: &Hook,
        event: &Event,
        task: Option<&Task>,
    ) -> HookReaction {
        if self.rules.untrusted_actions.contains(&hook.name) {
            let why = "it is not trusted, and its actions complete or unblock tasks".to_owned();
            let (hook, outcome) = (hook.name.clone(), Err(HookFailure(why)));
            return HookReaction {
                hook,
                counted: true,
                offset: 0,
                outcome,
                record: None,
                piped: None,
            };
        }
        run(hook, event, task)
    }

    /// Returns the actions of a hook whose process ran before this batch.
    pub(crate) fn process_reaction(&self, hook: &Hook, event: &Event) -> Option<HookReaction> {
        let ran = self.ran.as_ref().filter(|ran| ran.event == event.id)?;
        let run = ran.runs.iter().find(|run| run.hook == hook.name)?;
        let outcome = match (&run.outcome.status, &run.outcome.reason) {
            (HookStatus::Passed | HookStatus::Skipped, _) => Ok(run.outcome.actions.clone()),
            (status, reason) => {
                let reason = reason.clone().unwrap_or_else(|| status.name().to_owned());
                Err(HookFailure(reason))
            }
        };
        let piped = piped(hook, run).map(|text| PipedOutput {
            from: hook.name.clone(),
            point: event.body.kind().to_owned(),
            status: Some(run.outcome.status.into()),
            text,
            channel: Some(PromptChannel::HookOutput),
            ..PipedOutput::default()
        });
        let (hook, record) = (hook.name.clone(), run.ran.clone());
        Some(HookReaction { hook, counted: true, offset: 0, outcome, record, piped })
    }

    pub(crate) fn task_of(&self, event: &Event) -> Result<Option<Task>, EngineError> {
        let Some(id) = event.subject.task() else { return Ok(None) };
        Ok(self.view()?.task(id)?.map(|row| row.task))
    }

    /// Performs the actions of the hooks. A failed hook or action is recorded, and the others
    /// continue.
    pub(crate) fn carry_out(
        &mut self,
        event: &Event,
        plan: Vec<HookReaction>,
    ) -> Result<(), EngineError> {
        for reaction in plan {
            self.carry_out_one(event, reaction, 0)?;
        }
        Ok(())
    }

    /// Performs the actions of one hook, starting at `first`.
    pub(crate) fn carry_out_one(
        &mut self,
        event: &Event,
        reaction: HookReaction,
        first: usize,
    ) -> Result<(), EngineError> {
        let hook = &reaction.hook;
        let cause = self.cause(event, hook)?;
        let output_tail = reaction.record.as_ref().map(|record| record.output_tail.clone());
        let output_tail = output_tail.unwrap_or_default();
        if let Some(record) = reaction.record.filter(|_| first == 0) {
            let origin = EventOrigin::hook(event.id.derive(hook, usize::MAX - 1), cause.clone());
            self.stage(origin, Subject::Project, EventBody::HookRan(record))?;
        }
        if let Some(piped) = reaction.piped.filter(|_| first == 0) {
            self.pipe(event, &cause, piped)?;
        }
        let actions = match reaction.outcome {
            Ok(actions) => actions,
            Err(failure) => {
                let origin =
                    EventOrigin::hook(event.id.derive(hook, usize::MAX - 3), cause.clone());
                let failed = ReactionFailed {
                    hook_name: hook.clone(),
                    point: point_of(event),
                    action_type: None,
                    error: first_chars(&failure.0, ERROR_MAX),
                    output_tail,
                };
                self.report_to_session(event, origin, failed)?;
                return self.record_hook_error(event, cause, &failure);
            }
        };
        let (allowed, cut) = match reaction.counted {
            true => self.rules.limits.cascade.allow(cause.depth, cause.count, actions.len()),
            false => (actions.len(), None),
        };
        let (dropped, root) = (actions.len() - allowed, cause.root);
        for (i, action) in actions.into_iter().enumerate().take(allowed).skip(first) {
            let count = self.count(cause.root)?;
            *count += u32::from(reaction.counted);
            let cause = EventCause { count: *count, ..cause.clone() };
            let origin =
                EventOrigin::hook(event.id.derive(hook, reaction.offset + i), cause.clone());
            let staged = self.unit.len();
            if let Err(error) = self.act(action.clone(), &origin, event)? {
                let report = EventOrigin::hook(
                    event.id.derive(hook, ACTION_REPORTS + reaction.offset + i),
                    cause.clone(),
                );
                let failed = ReactionFailed {
                    hook_name: hook.clone(),
                    point: point_of(event),
                    action_type: Some(action.name().to_owned()),
                    error: first_chars(&error, ERROR_MAX),
                    output_tail: Vec::new(),
                };
                self.record_action_error(&origin, &action, error)?;
                self.report_to_session(event, report, failed)?;
            }
            // An action without an effect left no event that could carry its count to another
            // batch.
            if self.unit.len() == staged {
                *self.count(root)? -= u32::from(reaction.counted);
            }
        }
        if let Some(limit) = cut {
            let origin = EventOrigin::hook(event.id.derive(hook, usize::MAX), cause);
            let cut =
                CascadeLimitReached { hook_name: hook.clone(), limit, dropped: dropped as u32 };
            self.stage(origin, Subject::Project, EventBody::CascadeLimitReached(cut))?;
        }
        Ok(())
    }

    /// Adds a hook's output for the agent to the next prompt of its session.
    fn pipe(
        &mut self,
        event: &Event,
        cause: &EventCause,
        piped: PipedOutput,
    ) -> Result<(), EngineError> {
        let Some(id) = SessionId::of_actor(&event.actor) else { return Ok(()) };
        let row = self.unit.view()?.session(&id)?;
        if row.is_some_and(|row| !row.is_over()) {
            let origin =
                EventOrigin::hook(event.id.derive(&cause.hook, usize::MAX - 2), cause.clone());
            self.stage_quietly(origin, Subject::Session(id), EventBody::OutputPiped(piped))?;
        }
        Ok(())
    }

    /// Reports a failure to the session that caused the event, so that the session shows it.
    fn report_to_session(
        &mut self,
        event: &Event,
        origin: EventOrigin,
        failed: ReactionFailed,
    ) -> Result<(), EngineError> {
        let id = match &event.subject {
            Subject::Session(id) => Some(id.clone()),
            _ => SessionId::of_actor(&event.actor),
        };
        let Some(id) = id else { return Ok(()) };
        let row = self.unit.view()?.session(&id)?;
        if row.is_some_and(|row| !row.is_over()) && self.unit.room() > REPORT_ROOM {
            self.stage_quietly(origin, Subject::Session(id), EventBody::ReactionFailed(failed))?;
        }
        Ok(())
    }

    fn cause(&mut self, event: &Event, hook: &str) -> Result<EventCause, EngineError> {
        let (root, depth) = match &event.cause {
            Some(cause) => (cause.root, cause.depth + 1),
            None => (event.id, 1),
        };
        let count = *self.count(root)?;
        Ok(EventCause { event: event.id, hook: hook.to_owned(), root, depth, count })
    }

    /// Performs one action. The inner error is the reason why it failed.
    pub(crate) fn act(
        &mut self,
        action: Action,
        origin: &EventOrigin,
        event: &Event,
    ) -> Result<Result<(), String>, EngineError> {
        let refused = |refusal: hookloop_core::refusal::Refusal| refusal.to_string();
        match action {
            Action::CreateTask(create) => {
                let command = create.into_command(TaskId::generate(origin.id));
                Ok(self.perform(&command, origin)?.map_err(refused))
            }
            Action::UpdateTask(update) => {
                let fence = fence(event, &update.task_id);
                Ok(self.perform(&update.into_command(fence), origin)?.map_err(refused))
            }
            Action::ExecuteWorkflow(execute) => self.request_workflow(execute, origin, event),
            Action::Log(LogEntry::Core(body)) => {
                let subject = match &*body {
                    CoreLog::DependencySatisfied(satisfied) => {
                        Subject::Task(satisfied.dependent_task_id.clone())
                    }
                    CoreLog::AgentMetrics(_) => event.subject.clone(),
                };
                self.stage(origin.clone(), subject, (*body).into())?;
                Ok(Ok(()))
            }
            Action::Log(LogEntry::Custom(entry)) => {
                let hook = origin.cause.as_ref().map_or("", |cause| cause.hook.as_str());
                let kind = format!("{HOOK_NAMESPACE}{hook}.{}", entry.kind);
                let data = entry.stored_data();
                if let Err(why) = check_log(&entry.kind, &data) {
                    return Ok(Err(why));
                }
                let subject = match self.log_subject(entry.node_id.as_deref(), event)? {
                    Ok(subject) => subject,
                    Err(why) => return Ok(Err(why)),
                };
                self.stage(origin.clone(), subject, EventBody::Other(OtherEvent { kind, data }))?;
                Ok(Ok(()))
            }
            Action::Unreadable(unreadable) => Ok(Err(unreadable.error)),
        }
    }

    /// Returns the subject of a hook's log event: by `node_id`, else that of the hook's own event.
    fn log_subject(
        &self,
        node: Option<&str>,
        event: &Event,
    ) -> Result<Result<Subject, String>, EngineError> {
        let Some(node) = node.filter(|node| *node != event.node_id()) else {
            return Ok(Ok(event.subject.clone()));
        };
        if node == SYSTEM_NODE {
            return Ok(Ok(Subject::Project));
        }
        let task = match node.parse::<TaskId>() {
            Ok(id) => self.view()?.task(&id)?.map(|row| row.task.id),
            Err(_) => None,
        };
        let missing = || format!("there is no task `{node}` to write the event for");
        Ok(task.map(Subject::Task).ok_or_else(missing))
    }

    /// Requests a run of a workflow, with its steps fixed as they are now.
    fn request_workflow(
        &mut self,
        execute: ExecuteWorkflow,
        origin: &EventOrigin,
        event: &Event,
    ) -> Result<Result<(), String>, EngineError> {
        let Some(declared) = self.rules.workflows.get(&execute.workflow_id) else {
            return Ok(Err(format!("there is no workflow `{}`", execute.workflow_id)));
        };
        let task = self.task_of(event)?;
        let steps = match render(declared, event, task.as_ref()) {
            Ok(steps) => steps,
            Err(failure) => return Ok(Err(failure.to_string())),
        };
        let run = RunId::generate(origin.id);
        let requested = WorkflowRequested {
            run: run.clone(),
            workflow: execute.workflow_id,
            steps,
            context: execute.context,
        };
        self.stage(
            origin.clone(),
            Subject::Workflow(run),
            EventBody::WorkflowRequested(requested),
        )?;
        Ok(Ok(()))
    }

    fn record_hook_error(
        &mut self,
        event: &Event,
        cause: EventCause,
        failure: &HookFailure,
    ) -> Result<(), EngineError> {
        let error = HookError {
            hook_name: cause.hook.clone(),
            error: first_chars(&failure.0, ERROR_MAX),
            original_event: original(event),
        };
        let id: EventId = event.id.derive(&cause.hook, usize::MAX);
        let subject = event.subject.clone();
        self.stage(EventOrigin::hook(id, cause), subject, EventBody::HookError(error))?;
        Ok(())
    }

    fn record_action_error(
        &mut self,
        origin: &EventOrigin,
        action: &Action,
        error: String,
    ) -> Result<(), EngineError> {
        let error = ActionError {
            action_type: action.name().to_owned(),
            error: first_chars(&error, ERROR_MAX),
            payload: action.payload(),
        };
        self.stage(origin.clone(), Subject::Project, EventBody::ActionError(error))?;
        Ok(())
    }
}

/// Runs a hook that needs only the event and its task.
fn run(hook: &Hook, event: &Event, task: Option<&Task>) -> HookReaction {
    let outcome = match &hook.handler {
        HookHandler::Builtin(Builtin::AutoCreateReviewTask) => {
            Ok(task.and_then(builtin::review).into_iter().collect())
        }
        HookHandler::Builtin(Builtin::TrackAgentTaskLifecycle) => {
            let metrics = task.and_then(|task| builtin::metrics(&event.body, task));
            Ok(metrics.into_iter().collect())
        }
        HookHandler::Builtin(_) => Ok(vec![]),
        HookHandler::Declared(actions) => render(actions, event, task),
        HookHandler::Command(_)
        | HookHandler::Http { .. }
        | HookHandler::Gatekeepers { .. }
        | HookHandler::Rule(_) => Err(HookFailure("it was not run".to_owned())),
    };
    let hook = hook.name.clone();
    HookReaction { hook, counted: true, offset: 0, outcome, record: None, piped: None }
}

/// Returns the actions for the dependents of a completed task.
pub(crate) fn satisfactions<'t>(
    hook: &Hook,
    completed: &TaskId,
    dependents: impl Iterator<Item = &'t Task>,
) -> HookReaction {
    let actions = dependents.flat_map(|task| builtin::satisfaction(completed, task));
    let outcome = Ok(actions.collect());
    let hook = hook.name.clone();
    HookReaction { hook, counted: false, offset: 0, outcome, record: None, piped: None }
}

fn render(
    actions: &[DeclaredAction],
    event: &Event,
    task: Option<&Task>,
) -> Result<Vec<Action>, HookFailure> {
    actions.iter().map(|action| action.render(event, task)).collect()
}

/// Returns the maximum number of events of an action.
pub(crate) fn weight(action: &Action) -> usize {
    match action {
        // A task with more dependencies is refused, which is one event.
        Action::CreateTask(create) => 1 + create.depends_on.len().min(DEPENDENCIES_MAX),
        _ => 1,
    }
}

/// Returns the fence with which a hook of `event` changes `task`.
///
/// A hook that reacts to the task's claim acts for that claim, and for no later one. Other claims
/// it cannot change.
fn fence(event: &Event, task: &TaskId) -> Fence {
    match &event.body {
        EventBody::TaskStarted(TaskStarted { claim: Some(claim), .. })
            if event.subject.task() == Some(task) =>
        {
            Fence::Epoch(claim.epoch)
        }
        _ => Fence::None,
    }
}

fn check_log(kind: &str, data: &Value) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if kind.is_empty() || kind.len() > LOG_TYPE_MAX || !kind.chars().all(fits) {
        return Err(format!(
            "`{kind}` is not a type: 1 to {LOG_TYPE_MAX} letters, digits, `_`, `-` or `.`"
        ));
    }
    match data.to_string().len() {
        len if len > LOG_DATA_MAX => Err(format!("{len} bytes of data; at most {LOG_DATA_MAX}")),
        _ => Ok(()),
    }
}

/// Returns the hook point of a reaction: the event's type, or the point of a hook in a session.
fn point_of(event: &Event) -> String {
    match &event.body {
        EventBody::HookRan(ran) => ran.point.clone(),
        body => body.kind().to_owned(),
    }
}

/// Returns an event in the form that a hook error stores.
fn original(event: &Event) -> Value {
    json!({
        "timestamp": event.at,
        "type": event.body.kind(),
        "node_id": event.node_id(),
        "data": event.body.data(),
    })
}
