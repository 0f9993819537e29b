//! The requests that an agent can make by tools.
//!
//! An agent can claim, report and ask. It cannot register commands, change trust, loosen a gate, raise a limit, or
//! complete work that is not proven.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use hookloop_config::clock::now;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::point::Point;
use hookloop_core::promise::{Promise, promises};
use hookloop_core::refusal::Refusal;
use hookloop_core::remark::{StopHook, TaskCheckpointed, TaskNoted, TaskRemark};
use hookloop_core::session::plan::EXTERNAL;
use hookloop_core::session::{
    PipedOutput, Receipt, SessionLimits, SessionOutcome, SessionPhase, SessionTaskClaimed,
    SessionWork, StopWhen, TurnKind,
};
use hookloop_core::task::{Task, TaskObstacle, TaskOutcome, TaskSpec, TaskState};
use hookloop_store::view::{SessionRow, TaskAnnotation, TaskFilter};
use serde_json::{Map, Value, json};

use super::agent_messages::refused;
pub use super::agent_messages::*;
use super::external_session::{ExternalSession, PerformedStep, SessionPurpose, joined, said};
use super::iterate::{
    EndObstacle, block, complete, due, evaluated, is_for_agent, is_over, is_proven, iteration,
    named, unregistered, validate,
};
use crate::error::EngineError;
use crate::heartbeat::Heartbeater;
use crate::machine::random_word;
use crate::project::Project;
use crate::session::lookup::{self, runner};
use crate::session::prompt::told;
use crate::session::session_directory;
use crate::session::stop_switch::StopSwitch;
use crate::session::task_steps::LEASE;

/// The agent name of an external session by MCP tools, after [`EXTERNAL`].
const MCP: &str = "mcp";
/// Time without a request after which an agent counts as lost.
const SILENT_MAX: Duration = Duration::from_secs(2 * 60 * 60);
/// Sessions that are searched for the current task.
const SESSIONS_MAX: usize = 100;

/// The agent API: answers the tool calls of one agent, or of several that share it.
#[derive(Clone, Debug)]
pub struct AgentTools {
    project: Project,
    bound: Option<BoundSession>,
    open: Arc<Mutex<BTreeMap<SessionId, OpenExternalSession>>>,
    /// The heartbeats of the tasks that these sessions have claimed.
    beats: Arc<Mutex<BTreeMap<SessionId, Heartbeater>>>,
    /// How long a silent external session keeps its claims. None if it ends with this process.
    patience: Option<Duration>,
    /// Whether the project has had gates while this process knew it.
    had_gates: Arc<AtomicBool>,
    stop: StopSwitch,
}

/// A session that this process has open, and the time of its last call.
#[derive(Debug)]
struct OpenExternalSession {
    visited: Arc<Mutex<ExternalSession>>,
    used: Instant,
}

impl AgentTools {
    pub fn new(project: Project, bound: Option<BoundSession>) -> std::io::Result<AgentTools> {
        let (open, beats) = (Arc::default(), Arc::default());
        let had_gates = Arc::new(AtomicBool::new(has_gates(&project)));
        Ok(AgentTools {
            project,
            bound,
            open,
            beats,
            patience: None,
            had_gates,
            stop: StopSwitch::new()?,
        })
    }

    /// Returns an agent API whose agents may disappear without notice.
    #[must_use]
    pub fn shared(self) -> AgentTools {
        AgentTools { patience: Some(SILENT_MAX), ..self }
    }

    /// Returns this agent API with its open sessions, on a reopened project.
    #[must_use]
    pub fn reopened(&self, project: Project) -> AgentTools {
        self.had_gates.fetch_or(has_gates(&project), Ordering::Relaxed);
        AgentTools { project, ..self.clone() }
    }

    /// Returns this agent API for one call, which `stop` can cancel. The call can be repeated.
    #[must_use]
    pub fn for_call(&self, stop: StopSwitch) -> AgentTools {
        AgentTools { stop, ..self.clone() }
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    pub fn bound(&self) -> Option<&BoundSession> {
        self.bound.as_ref()
    }

    pub fn register(
        &self,
        task: &str,
        preset: StopPreset,
        metadata: Map<String, Value>,
    ) -> Result<RegisteredStopHook, AgentToolError> {
        let task = self.existing(task)?.id;
        let hook = StopHook { id: fresh_name("HOOK"), hook_type: preset, metadata };
        self.remark(&task, TaskRemark::RegisterStop(hook.clone()))?;
        Ok(self.registered(&task, hook))
    }

    pub fn hooks(&self, task: &str) -> Result<Vec<RegisteredStopHook>, AgentToolError> {
        let task = self.existing(task)?.id;
        let hooks = self.project.read(|view| view.stop_hooks(&task))?;
        Ok(hooks.into_iter().map(|hook| self.registered(&task, hook.what)).collect())
    }

    /// Removes the stop hooks of a task, and returns their number.
    pub fn clear(&self, task: &str) -> Result<u64, AgentToolError> {
        let task = self.existing(task)?.id;
        let before = self.project.read(|view| view.stop_hooks(&task))?.len();
        self.remark(&task, TaskRemark::ClearStops)?;
        Ok(before as u64)
    }

    /// Returns the decision of the stop hooks, without any effect.
    pub fn evaluate(
        &self,
        iteration: &str,
        said: &IterationReport,
    ) -> Result<StopEvaluation, AgentToolError> {
        if let Some(bound) = self.bound_to(iteration)? {
            return self.evaluate_bound(&bound, &self.bound_promises(&bound, &said.output)?);
        }
        let answer = self.perform(iteration, |session| {
            if is_over(session) {
                return Ok(None);
            }
            if !session.has_stop_hooks()? {
                return Ok(Some(unregistered(session)));
            }
            let promises = session.counted_promises(promises(&said.output), &said.output).0;
            evaluated(session, &promises).map(Some)
        })?;
        answer.ok_or_else(over)
    }

    /// Starts a loop on a task, or continues the one that this agent started.
    pub fn start(&self, start: &LoopStart) -> Result<LoopState, AgentToolError> {
        if let Some(bound) = &self.bound {
            return self.join(bound, start);
        }
        let task = self.existing(&start.task)?;
        let rules = self.project.rules();
        let own = rules.limits.session;
        if let Some(id) = self.iterated_by(&task)? {
            return self.begin(id.as_str());
        }
        if task.state != TaskState::Ready {
            return Err(not_ready(&task));
        }
        let purpose = SessionPurpose {
            name: format!("mcp:{}", task.id),
            agent: format!("{EXTERNAL}{MCP}"),
            work: SessionWork::Task(task.id.clone()),
            stop_when: stop_conditions(&rules.session.stop_when),
            promises: start.promises.clone(),
            limits: SessionLimits {
                max_iterations: start
                    .max_iterations
                    .unwrap_or(own.max_iterations)
                    .min(own.max_iterations),
                max_no_progress: start
                    .circuit_breaker
                    .unwrap_or(own.max_no_progress)
                    .min(own.max_no_progress),
                ..own
            },
        };
        let visited = ExternalSession::start(&self.project, runner(&self.project)?, purpose)?;
        let id = visited.id().clone();
        let visited = Arc::new(Mutex::new(visited));
        lock(&self.open).insert(id.clone(), OpenExternalSession { visited, used: Instant::now() });
        self.begin(id.as_str())
    }

    fn begin(&self, id: &str) -> Result<LoopState, AgentToolError> {
        // Claim the task first: from then on heartbeats are sent, however long hooks take.
        let first = self.perform(id, |session| Ok(session.go_on(is_for_agent)?.1))?;
        let begun = self.perform(id, |session| {
            let told = session.go_on(is_proven)?.1;
            Ok(iteration(session, joined(first.into_iter().chain(told))))
        })?;
        begun.map_err(|outcome| ended(&outcome))
    }

    /// Ends the turn of the external session, and runs its hooks, stop conditions and gates.
    pub fn validate(
        &self,
        iteration: &str,
        output: &str,
    ) -> Result<ValidationReport, AgentToolError> {
        if let Some(bound) = self.bound_to(iteration)? {
            return self.validate_bound(&bound, output);
        }
        self.perform(iteration, |session| validate(session, said(output)))
    }

    pub fn next(&self, iteration_id: &str) -> Result<LoopState, AgentToolError> {
        if self.bound_to(iteration_id)?.is_some() {
            return Err(refused(
                "not_allowed",
                "the loop that started you takes the next iteration",
                "end your turn; the next one begins with what the gates say",
            ));
        }
        let next = self.perform(iteration_id, |session| {
            let mut told = None;
            if session.session().phase == SessionPhase::Turn(TurnKind::Work) {
                told = joined(validate(session, said(""))?.feedback);
            }
            if is_over(session) || is_proven(&due(session)) {
                return Ok(None);
            }
            // The prompt of the turn that begins contains the pending output.
            let more = session.go_on(is_proven)?.1;
            let told = if session.bound().is_some() { None } else { told };
            let told = joined(told.into_iter().chain(more));
            Ok(Some(iteration(session, told)))
        })?;
        match next {
            Some(Ok(iteration)) => Ok(iteration),
            Some(Err(outcome)) => Err(ended(&outcome)),
            None => Err(over()),
        }
    }

    /// Ends the loop: COMPLETE needs proof, and the other promises block the task for a person.
    pub fn complete(
        &self,
        iteration: &str,
        promise: Promise,
    ) -> Result<LoopCompletion, AgentToolError> {
        if let Some(bound) = self.bound_to(iteration)? {
            return self.claim(&bound, promise, None);
        }
        let done = self.perform(iteration, |session| complete(session, promise))?;
        done.map_err(|obstacle| match obstacle {
            EndObstacle::Over(outcome) => ended(&outcome),
            EndObstacle::Unexpected(expected) => {
                let expected = named(&expected);
                let message = format!(
                    "this loop does not end with {}: its completionPromises are {expected}",
                    named(&[promise])
                );
                let next = "end it with one of those, or call task_update with status blocked";
                refused("not_allowed", message, next)
            }
            EndObstacle::Unproven(said) => {
                let message = match said.is_empty() {
                    true => "nothing has proven this iteration yet".to_owned(),
                    false => format!("gates do not pass:\n\n{}", said.join("\n\n")),
                };
                let next = "fix it, then call iteration_validate with an output that ends in the line <promise>COMPLETE</promise>";
                refused("not_proven", message, next)
            }
        })
    }

    pub fn checkpoint(
        &self,
        task: &str,
        checkpoint: Checkpoint,
    ) -> Result<KeptCheckpoint, AgentToolError> {
        let task = self.existing(task)?.id;
        let id = fresh_name("CP");
        let made = TaskCheckpointed { id: id.clone(), checkpoint };
        self.remark(&task, TaskRemark::Checkpoint(made))?;
        self.recall(task.as_str(), Some(&id))
    }

    /// Returns the checkpoint with that id, or the last one.
    pub fn recall(&self, task: &str, id: Option<&str>) -> Result<KeptCheckpoint, AgentToolError> {
        let task = self.existing(task)?.id;
        let all = self.project.read(|view| view.checkpoints(&task))?;
        let mut wanted =
            all.into_iter().rev().filter(|made| id.is_none_or(|id| made.what.id == id));
        let found = wanted.next().ok_or_else(|| {
            let message = format!("task `{task}` has no such checkpoint");
            refused("no_checkpoint", message, "call checkpoint_create first")
        })?;
        let TaskCheckpointed { id, checkpoint } = found.what;
        Ok(KeptCheckpoint { id, task, sequence: found.number, at: found.at, checkpoint })
    }

    pub fn task(&self, id: &str) -> Result<TaskDetail, AgentToolError> {
        let task = self.existing(id)?;
        let (depends_on, notes) =
            self.project.read(|view| Ok((view.dependencies(&task.id)?, view.notes(&task.id)?)))?;
        let depends_on = depends_on.into_iter().map(|row| row.task).collect();
        let note = |noted: TaskAnnotation<TaskNoted>| NoteRequest {
            at: noted.at,
            by: noted.by,
            text: noted.what.text,
        };
        Ok(TaskDetail { task, depends_on, notes: notes.into_iter().map(note).collect() })
    }

    /// Lists tasks, the newest first.
    pub fn tasks(
        &self,
        state: Option<TaskState>,
        label: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Task>, AgentToolError> {
        let filter = TaskFilter {
            state,
            label: label.map(str::to_owned),
            limit: Some(limit),
            ..TaskFilter::default()
        };
        let rows = self.project.read(|view| view.list(&filter))?;
        Ok(rows.into_iter().map(|row| row.task).collect())
    }

    pub fn add(&self, spec: TaskSpec, depends_on: &[String]) -> Result<Task, AgentToolError> {
        let id = self.project.new_task_id();
        let depends_on = depends_on.iter().map(|id| task_id(id)).collect::<Result<Vec<_>, _>>()?;
        let parent_task_id = match &spec.parent_task_id {
            None => self.bound_task()?,
            parent => parent.clone(),
        };
        let spec = TaskSpec { parent_task_id, ..spec };
        self.execute(&Command::AddTask { id: id.clone(), spec, depends_on })?;
        self.existing(id.as_str())
    }

    pub fn update(&self, id: &str, change: &RequestedChange) -> Result<Task, AgentToolError> {
        let task = self.existing(id)?;
        match change.state {
            None => {}
            Some(TaskState::Completed) => self.complete_task(&task)?,
            Some(TaskState::Blocked) => self.block_task(&task, change)?,
            Some(state) if state == task.state => {}
            Some(TaskState::Active) => {
                let message = "a task becomes active when somebody iterates on it";
                return Err(refused("not_allowed", message, "call iteration_start with its id"));
            }
            Some(_) => {
                let message = "only a person puts a task back";
                return Err(refused("not_allowed", message, "say in a note why it should be"));
            }
        }
        if let Some(notes) = &change.notes {
            self.remark(&task.id, TaskRemark::Note(notes.clone()))?;
        }
        self.existing(id)
    }

    /// Returns a document, or none if it does not exist now.
    pub fn read(&self, document: ResourceKind) -> Result<Option<String>, AgentToolError> {
        match document {
            ResourceKind::CurrentTask => self.current_task(),
            ResourceKind::Spec => self.spec(),
            ResourceKind::LastGates => self.last_gates(),
        }
    }

    fn complete_task(&self, task: &Task) -> Result<(), AgentToolError> {
        if task.state == TaskState::Completed {
            return Ok(());
        }
        if let Some(bound) = self.bound_for(&task.id)? {
            return self.claim(&bound, Promise::Complete, None).map(drop);
        }
        if let Some(id) = self.iterated_by(task)? {
            return self.complete(id.as_str(), Promise::Complete).map(drop);
        }
        self.check_undelivered(task)?;
        let hooks = self.project.hooks()?;
        let kind = task.spec.kind.as_deref();
        let is_gated = [Point::Stop, Point::Validation]
            .iter()
            .any(|point| !hooks.resolve(point.name(), kind).is_empty());
        // Removed gates need an explanation by a person.
        if is_gated || self.had_gates.load(Ordering::Relaxed) {
            let message = format!("task `{}` has gates, and nothing has proven it", task.id);
            let next = "call iteration_start with its id, do the work, then iteration_validate";
            return Err(refused("not_proven", message, next));
        }
        if !self.project.rules().wants_no_gates {
            let message = format!("task `{}` has no gate that could prove it", task.id);
            let next = "tell your user: only a person completes it, or adds a `stop` gate";
            return Err(refused("not_proven", message, next));
        }
        let (id, outcome) = (task.id.clone(), TaskOutcome::default());
        // The user's own configuration waives gates.
        self.project.carry_out(&Command::CompleteTask { id, outcome, fence: Fence::None })?;
        Ok(())
    }

    /// Returns an error if the task is complete only after its work is merged.
    fn check_undelivered(&self, task: &Task) -> Result<(), AgentToolError> {
        let is_delivered = self.project.rules().delivery.is_some();
        if !is_delivered && task.state != TaskState::Submitted {
            return Ok(());
        }
        let message = match task.state {
            TaskState::Submitted => {
                format!("task `{}` is submitted, and waits to be merged", task.id)
            }
            _ => format!("task `{}` is done when its work is merged", task.id),
        };
        Err(refused("not_proven", message, "leave it to: hookloop run --task, hookloop merge"))
    }

    fn block_task(&self, task: &Task, change: &RequestedChange) -> Result<(), AgentToolError> {
        if task.state == TaskState::Blocked {
            return Ok(());
        }
        let reason = change.blocked_reason.clone().or_else(|| change.notes.clone());
        if let Some(bound) = self.bound_for(&task.id)? {
            return self.claim(&bound, Promise::Blocked, reason).map(drop);
        }
        if let Some(id) = self.iterated_by(task)? {
            let blocked =
                |session: &mut PerformedStep<'_>| block(session, Promise::Blocked, reason);
            return self.perform(id.as_str(), blocked);
        }
        if task.state == TaskState::Submitted {
            self.check_undelivered(task)?;
        }
        let reason = reason.unwrap_or_else(|| "an agent says that it can't go on".to_owned());
        let obstacle = TaskObstacle { reason, required_knowledge: None };
        self.execute(&Command::BlockTask { id: task.id.clone(), obstacle, fence: Fence::None })
    }

    pub(super) fn existing(&self, id: &str) -> Result<Task, AgentToolError> {
        let id = task_id(id)?;
        let row = self.project.read(|view| view.task(&id))?;
        row.map(|row| row.task).ok_or_else(|| Refusal::NoSuchTask(id).into())
    }

    fn execute(&self, command: &Command) -> Result<(), AgentToolError> {
        self.project.execute(command)?;
        Ok(())
    }

    fn remark(&self, task: &TaskId, remark: TaskRemark) -> Result<(), AgentToolError> {
        let fence = self.fence(task)?;
        self.project.execute(&Command::RemarkTask { id: task.clone(), remark, fence })?;
        Ok(())
    }

    /// Returns the fence of this agent's remarks about a task.
    fn fence(&self, task: &TaskId) -> Result<Fence, AgentToolError> {
        if let Some(epoch) = self.bound_epoch(task)? {
            return Ok(Fence::Epoch(epoch));
        }
        let task = self.existing(task.as_str())?;
        let is_ours = match &self.bound {
            None => self.iterated_by(&task)?.is_some(),
            Some(_) => false,
        };
        let epoch = task.claim.filter(|_| is_ours).map(|claim| claim.epoch);
        Ok(epoch.map_or(Fence::None, Fence::Epoch))
    }

    fn registered(&self, task: &TaskId, hook: StopHook) -> RegisteredStopHook {
        // The project's own stop commands take precedence.
        let enabled = !self.project.rules().session.stop_when.iter().any(StopWhen::is_hook);
        let StopHook { id, hook_type: preset, metadata } = hook;
        RegisteredStopHook { id, task: task.clone(), preset, enabled, metadata }
    }

    /// Returns the MCP session that has claimed the task, unless another process runs it.
    fn iterated_by(&self, task: &Task) -> Result<Option<SessionId>, AgentToolError> {
        let Some(claim) = &task.claim else { return Ok(None) };
        let Some(id) = SessionId::of_actor(&claim.agent) else { return Ok(None) };
        let row = self.project.read(|view| view.session(&id))?;
        let is_own = row.is_some_and(|row| !row.is_over() && is_led(&row));
        let is_here = || lock(&self.open).contains_key(&id);
        let is_free = || {
            runner(&self.project).is_ok_and(|runner| !session_directory::is_running(runner, &id))
        };
        Ok((is_own && (is_here() || is_free())).then_some(id))
    }

    fn visited(&self, id: &SessionId) -> Result<Arc<Mutex<ExternalSession>>, AgentToolError> {
        let mut open = lock(&self.open);
        // Sessions without a recent call are closed, so that other processes can continue them.
        let is_wanted = |open: &OpenExternalSession| {
            self.patience.is_none_or(|patience| open.used.elapsed() < patience)
                || Arc::strong_count(&open.visited) > 1
        };
        open.retain(|known, open| known == id || is_wanted(open));
        if let Some(known) = open.get_mut(id) {
            known.used = Instant::now();
            return Ok(Arc::clone(&known.visited));
        }
        let visited = ExternalSession::find(&self.project, runner(&self.project)?, id)?;
        let visited = Arc::new(Mutex::new(visited));
        open.insert(
            id.clone(),
            OpenExternalSession { visited: Arc::clone(&visited), used: Instant::now() },
        );
        Ok(visited)
    }

    /// Runs `what` in the session of an iteration.
    fn perform<T>(
        &self,
        iteration: &str,
        what: impl FnOnce(&mut PerformedStep<'_>) -> Result<T, EngineError>,
    ) -> Result<T, AgentToolError> {
        let id = self.iteration_id(iteration)?;
        let visited = self.visited(&id)?;
        let mut visited = match visited.try_lock() {
            Ok(visited) => visited,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let message = "another call is at work on this iteration";
                return Err(refused("busy", message, "wait for its answer, then call again"));
            }
        };
        let runner = runner(&self.project)?;
        let (done, held, is_over) = visited.perform(&self.project, &self.stop, |session| {
            self.show_life(&id, session.session().task.clone());
            session.hold_to_hooks(runner)?;
            // A session with an outcome finishes first.
            if is_over(session) {
                session.go_on(|_| false)?;
            }
            let done = what(session)?;
            let state = session.session();
            Ok((done, state.task.clone(), state.is_over()))
        })?;
        self.show_life(&id, held);
        if is_over {
            lock(&self.open).remove(&id);
        }
        Ok(done)
    }

    fn iteration_id(&self, iteration: &str) -> Result<SessionId, AgentToolError> {
        let unknown = || {
            let message = format!("there is no iteration `{iteration}`");
            refused("no_such_iteration", message, "call iteration_start")
        };
        let id: SessionId = iteration.parse().map_err(|_| unknown())?;
        let row = self.project.read(|view| view.session(&id))?.ok_or_else(unknown)?;
        match is_led(&row) {
            true => Ok(id),
            false => Err(unknown()),
        }
    }

    /// Sends heartbeats for the task that a session has claimed, and stops those of a released
    /// task.
    fn show_life(&self, id: &SessionId, held: Option<SessionTaskClaimed>) {
        let mut beats = lock(&self.beats);
        match held {
            None => drop(beats.remove(id)),
            Some(SessionTaskClaimed { task, epoch, .. }) => {
                let beat =
                    || Heartbeater::start(&self.project, &task, (epoch, LEASE), self.patience);
                match self.patience {
                    None => drop(beats.entry(id.clone()).or_insert_with(beat)),
                    // Each call extends the heartbeats by the full patience.
                    Some(_) => drop(beats.insert(id.clone(), beat())),
                }
            }
        }
    }

    fn current_task(&self) -> Result<Option<String>, AgentToolError> {
        let held = match &self.bound {
            Some(_) => self.bound_task()?,
            None => {
                let open = self.project.read(|view| view.open_sessions(SESSIONS_MAX))?;
                let held = open.into_iter().filter(is_led).find_map(|row| row.task);
                held.and_then(|task| task.parse::<TaskId>().ok())
            }
        };
        let Some(id) = held else { return Ok(None) };
        let task = self.existing(id.as_str())?;
        let TaskSpec { goal, description, deliverables, labels, .. } = &task.spec;
        let json = json!({
            "id": task.id, "title": goal, "description": description, "deliverables": deliverables,
            "labels": labels, "status": task.state,
        });
        Ok(Some(json.to_string()))
    }

    fn last_gates(&self) -> Result<Option<String>, AgentToolError> {
        let id = match &self.bound {
            Some(bound) => Some(bound.session.clone()),
            None => {
                let last = self.project.read(|view| view.sessions(1))?;
                last.into_iter().next().map(|row| row.id)
            }
        };
        let Some(id) = id else { return Ok(None) };
        let session = lookup::session(&self.project, &id)?;
        let line = |receipt: &Receipt| {
            let exit = receipt.exit_code.map_or_else(String::new, |code| format!(", exit {code}"));
            format!("{} at {}: {}{exit}", receipt.gate, receipt.point, receipt.status)
        };
        let is_of_gate = |piped: &&PipedOutput| piped.point == Point::Stop.name();
        let words = session.pending.iter().chain(&session.bound).filter(is_of_gate);
        let lines: Vec<String> = session
            .receipts
            .iter()
            .map(line)
            .chain(words.map(|piped| told(piped, &session.plan.fence)))
            .collect();
        Ok((!lines.is_empty()).then(|| lines.join("\n")))
    }
}

/// Whether the session belongs to an agent that uses these tools.
fn is_led(row: &SessionRow) -> bool {
    row.agent.strip_prefix(EXTERNAL) == Some(MCP)
}

/// Whether the project has hooks at `stop` or `validation`.
fn has_gates(project: &Project) -> bool {
    project.rules().hooks.list().iter().any(|hook| hook.points.iter().any(Point::judges_work))
}

/// Returns the stop conditions of a loop on one task without registered stop hooks.
fn stop_conditions(of_project: &[StopWhen]) -> Vec<StopWhen> {
    // The current task stays open until the loop ends, so `tasks` alone would never end it.
    let ways = of_project.iter().filter(|way| **way != StopWhen::Tasks).cloned();
    let ways: Vec<StopWhen> = ways.collect();
    if ways.is_empty() { vec![StopWhen::Default] } else { ways }
}

fn over() -> AgentToolError {
    let message = "this loop has no next iteration";
    refused("over", message, "call iteration_validate to see what it came to")
}

fn ended(outcome: &SessionOutcome) -> AgentToolError {
    let what = match outcome {
        SessionOutcome::NeedsHuman { reason } => format!("a human is needed: {reason}"),
        SessionOutcome::Limit { limit } => format!("a limit was reached: {}", limit.name()),
        outcome => outcome.name().to_owned(),
    };
    let next = "stop working on it and state the reason; a person decides how to continue";
    refused("over", format!("this loop is over: {what}"), next)
}

fn not_ready(task: &Task) -> AgentToolError {
    let next = match task.state {
        TaskState::Created if task.waits_until().is_some() => {
            "choose another: task_list with status ready; the time of this one has not come"
        }
        TaskState::Created => "work on the tasks first that it waits for (task_get names them)",
        TaskState::Active | TaskState::Submitted => "choose another: task_list with status ready",
        _ => "choose another: task_list with status ready; a person decides about this one",
    };
    let by = match &task.claim {
        Some(claim) => format!(", held by {}", claim.agent),
        None => String::new(),
    };
    refused("not_ready", format!("task `{}` is {}{by}", task.id, task.state), next)
}

pub(super) fn task_id(id: &str) -> Result<TaskId, AgentToolError> {
    id.parse().map_err(|error: hookloop_core::id::BadTaskId| {
        refused("no_such_task", error.to_string(), "call task_list")
    })
}

fn fresh_name(kind: &str) -> String {
    format!("{kind}-{}-{}", now().0 / 1_000, random_word())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
