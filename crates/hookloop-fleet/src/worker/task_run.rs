//! One task, from its claim to its end.
//!
//! The task is claimed before its session begins, by the session's name. A worker that dies in between leaves a
//! claim that expires, never a session without a task. A worker that was declared lost finds its session resumed
//! elsewhere, or its epoch gone, and stops.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Scope;
use std::time::{Duration, Instant};

use hookloop_config::clock::now;
use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;
use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::session::facts::SubmitVerdict;
use hookloop_core::session::{Session, SessionLimit, SessionOutcome, SessionWork, TurnResult};
use hookloop_core::task::Task;
use hookloop_core::time::Timestamp;
use hookloop_engine::claim::ClaimedTask;
use hookloop_engine::error::EngineError;
use hookloop_engine::heartbeat::Heartbeater;
use hookloop_engine::launch::{self, PerformError, SessionAttendance};
use hookloop_engine::project::Project;
use hookloop_engine::session::checkout::CheckoutUse;
use hookloop_engine::session::lookup::runner;
use hookloop_engine::session::observer::SessionObserver;
use hookloop_engine::session::open::{self, SessionHandle, SessionRequest};
use hookloop_engine::session::resume::{self, ResumeTerms};
use hookloop_engine::session::stop_switch::{RestSwitch, StopSwitch};
use hookloop_engine::session::{SessionUpdate, StartError, abandoned};
use hookloop_hooks::exec_context::LockError;
use tracing::warn;

use super::{AFTER_ERROR, DecisionQueue, END_GRACE, WorkerLoop, WorkerProject, WorkerUpdate};
use crate::fleet::Fleet;

/// Time without requests to a provider that returned a rate limit without an end.
const SLOW_MS: i64 = 60_000;
/// Time without requests to a forge that could not be reached.
const FORGE_MS: i64 = 30_000;

/// Lock file of the session that works in the project's own checkout.
const CHECKOUT: &str = "checkout.lock";

/// Largest number of open sessions that one search reads.
pub(super) const OPEN_MAX: usize = 1_000;
/// Pause after a session that could not continue for a reason other than its task.
const AFTER_INTERRUPTION: Duration = Duration::from_secs(10);
/// Pause after a session that ended for lack of budget.
const AFTER_SHORTAGE: Duration = Duration::from_secs(30);

/// A running session.
#[derive(Debug)]
pub(super) struct TaskRun {
    pub(super) place: usize,
    pub(super) task: TaskId,
    pub(super) session: SessionId,
    pub(super) since: Timestamp,
    pub(super) rest: RestSwitch,
    stop: StopSwitch,
    /// The time at which the session was asked to end.
    ending: Option<Instant>,
    /// Keeps the lock of the checkout until the session is over.
    _seat: WorkPlace,
}

/// The directory of a session: a worktree of the task, or the project's checkout.
///
/// One session at a time works in the project's checkout.
#[derive(Debug)]
pub(super) enum WorkPlace {
    Own,
    Project(#[expect(dead_code, reason = "its lock is what counts")] File),
}

/// Returns a directory for one more session, or `None` if the checkout is in use.
pub(super) fn work_place(project: &Project) -> Option<WorkPlace> {
    match project.rules().delivery {
        Some(_) => Some(WorkPlace::Own),
        None => {
            let locked = project.runner()?.try_lock_exclusive(CHECKOUT);
            let unlocked =
                |error: &LockError| tracing::warn!(%error, "the checkout can't be locked");
            locked.inspect_err(unlocked).ok()?.map(WorkPlace::Project)
        }
    }
}

impl TaskRun {
    /// Whether another session has claimed the task because this one was declared lost.
    pub(super) fn is_lost(&self, place: &WorkerProject) -> bool {
        let row = place.project().read(|view| view.task(&self.task));
        // The epoch of its claim refuses a holder that has lost the task, whether this look succeeds or not.
        let row =
            row.inspect_err(|error| warn!(task = %self.task, %error, "a claim can't be read"));
        let claim = row.ok().flatten().and_then(|row| row.task.claim);
        claim.is_some_and(|claim| claim.agent != self.session.actor())
    }

    /// Stops the session. After [`END_GRACE`], also stops the processes that run at its end.
    pub(super) fn end(&mut self) {
        match self.ending {
            None => {
                self.ending = Some(Instant::now());
                self.stop.by_user();
            }
            Some(since) if since.elapsed() >= END_GRACE => self.stop.at_once(),
            Some(_) => {}
        }
    }
}

/// The result of a session.
#[derive(Debug)]
pub enum TaskRunEnd {
    Outcome(SessionOutcome),
    /// Another process has resumed the session because this one was declared lost.
    TakenOver,
    Error(String),
}

impl TaskRunEnd {
    /// Returns the pause before the next claim from the project, as the next task may fail, too.
    pub(super) fn rest(&self) -> Option<Duration> {
        match self {
            TaskRunEnd::Error(_) => Some(AFTER_ERROR),
            TaskRunEnd::Outcome(SessionOutcome::Interrupted) => Some(AFTER_INTERRUPTION),
            TaskRunEnd::Outcome(SessionOutcome::Limit { limit: SessionLimit::Budget }) => {
                Some(AFTER_SHORTAGE)
            }
            TaskRunEnd::Outcome(_) | TaskRunEnd::TakenOver => None,
        }
    }
}

impl From<Result<Session, PerformError>> for TaskRunEnd {
    fn from(performed: Result<Session, PerformError>) -> TaskRunEnd {
        match performed {
            Ok(Session { outcome: Some(outcome), .. }) => TaskRunEnd::Outcome(outcome),
            Ok(_) => TaskRunEnd::Error("it rests".to_owned()),
            Err(PerformError::Engine(EngineError::SessionTaken(_))) => TaskRunEnd::TakenOver,
            Err(error) => TaskRunEnd::Error(error.to_string()),
        }
    }
}

/// The way in which a session begins.
enum TaskRunStart {
    /// With a new claim. Changes to the task name its epoch.
    Claimed {
        epoch: u64,
    },
    Resumed,
}

/// Starts the heartbeats of a claim now, because a session can take long to begin.
fn beats(project: &Project, task: &Task) -> Option<Heartbeater> {
    let claim = task.claim.as_ref()?;
    let lease = Duration::from_millis(claim.lease_ms);
    Some(Heartbeater::start(project, &task.id, (claim.epoch, lease), None))
}

impl<'w> WorkerLoop<'w> {
    /// Starts the session of a task that was just claimed.
    pub(super) fn begin<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        queue: &mut DecisionQueue,
        of: (usize, Arc<Project>, WorkPlace),
        claimed: ClaimedTask,
        session: SessionId,
    ) {
        let (task, beats) = (claimed.task.id.clone(), beats(&of.1, &claimed.task));
        self.hand_out(
            scope,
            queue,
            of,
            (task, session, beats),
            TaskRunStart::Claimed { epoch: claimed.epoch },
        );
    }

    /// Resumes the sessions that this worker ran when its process died. Ends the others.
    pub(super) fn pick_up<'s, 'e>(&'e self, scope: &'s Scope<'s, 'e>, queue: &mut DecisionQueue) {
        for (place, served) in self.worker.served_projects.iter().enumerate() {
            let project = served.project();
            let found = match project.runner() {
                Some(runner) => abandoned::resumable(&project, runner),
                None => continue,
            };
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    self.trouble(place, &error);
                    continue;
                }
            };
            // Ends the sessions that cannot be resumed, such as those that were about to end.
            let open = project.read(|view| view.open_sessions(OPEN_MAX)).unwrap_or_default();
            for row in open.iter().filter(|row| row.machine == self.worker.plan.name.as_str()) {
                if !found.contains(&row.id) {
                    self.end_abandoned_aside(scope, place, row.id.clone());
                }
            }
            for session in found {
                let held = project.read(|view| view.held_by(&session.actor()));
                let Ok(Some(row)) = held else { continue };
                // The checkout is in use. The session that uses it ends this one, or its lease
                // expires.
                let Some(work_place) = work_place(&project) else { continue };
                if !served.enter() {
                    continue;
                }
                let of = (place, Arc::clone(&project), work_place);
                let beats = beats(&project, &row.task);
                self.hand_out(
                    scope,
                    queue,
                    of,
                    (row.task.id, session, beats),
                    TaskRunStart::Resumed,
                );
            }
        }
    }

    fn hand_out<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        queue: &mut DecisionQueue,
        (place, project, work_place): (usize, Arc<Project>, WorkPlace),
        (task, session, beats): (TaskId, SessionId, Option<Heartbeater>),
        beginning: TaskRunStart,
    ) {
        let is_resumed = matches!(beginning, TaskRunStart::Resumed);
        let name = self.worker.served_projects[place].name();
        let stop = match StopSwitch::new() {
            Ok(stop) => stop,
            Err(error) => {
                self.trouble(place, &error);
                self.worker.served_projects[place].exit();
                return give_back(&project, &task, beginning);
            }
        };
        let rest = RestSwitch::default();
        let run = TaskRun {
            place,
            task: task.clone(),
            session: session.clone(),
            since: now(),
            rest: rest.clone(),
            stop: stop.clone(),
            ending: None,
            _seat: work_place,
        };
        self.tell(&WorkerUpdate::Claimed {
            project: name,
            task: &task,
            session: &session,
            is_resumed,
        });
        let (of_thread, done) = ((task.clone(), session.clone()), self.done.clone());
        let thread = std::thread::Builder::new().name(format!("session {session}"));
        let started = thread.spawn_scoped(scope, move || {
            let (task, session) = of_thread;
            let worked = catch_unwind(AssertUnwindSafe(|| {
                self.perform(place, &project, (&task, &session), beginning, (stop, rest))
            }));
            drop(beats);
            let end = worked.unwrap_or_else(|_| TaskRunEnd::Error("it panicked".to_owned()));
            self.worker.served_projects[place].exit();
            // The last step of the thread. Without a receiver the worker has ended.
            let _ = done.send((session, task, place, end));
        });
        match started {
            Ok(_) => {
                queue.shown = None;
                queue.task_runs.push(run);
            }
            Err(error) => {
                // The claim ends when its lease expires.
                self.worker.served_projects[place].exit();
                self.trouble(place, &error);
            }
        }
    }

    fn perform(
        &self,
        place: usize,
        project: &Project,
        (task, session): (&TaskId, &SessionId),
        beginning: TaskRunStart,
        (stop, rest): (StopSwitch, RestSwitch),
    ) -> TaskRunEnd {
        let opened = match &beginning {
            TaskRunStart::Claimed { .. } => self.start(project, task, session),
            TaskRunStart::Resumed => self.resume(project, session),
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                give_back(project, task, beginning);
                return TaskRunEnd::Error(error.to_string());
            }
        };
        let served = &self.worker.served_projects[place];
        let observer = RateLimitObserver {
            fleet: &self.worker.fleet,
            project: served.name(),
            agent: &self.worker.plan.agent,
        };
        let config = served.place().config();
        let around = SessionAttendance { observer, stop, rest, config: &config };
        launch::perform(project, &opened, around).into()
    }

    fn start(
        &self,
        project: &Project,
        task: &TaskId,
        session: &SessionId,
    ) -> Result<SessionHandle, StartError> {
        let (plan, rules) = (&self.worker.plan, project.rules());
        let request = SessionRequest {
            name: None,
            work: SessionWork::Task(task.clone()),
            agent: plan.agent.clone(),
            fallback: rules.session.fallback.clone(),
            conversation: rules.session.conversation,
            promises: Vec::new(),
            model: plan.model.clone(),
            permissions: plan.permissions.clone(),
            stop_when: None,
            at_retry_limit: None,
            limits: rules.limits.session,
            machine: plan.name.to_string(),
            no_changes_ok: false,
            may_change: Vec::new(),
            worker: Some(plan.name.to_string()),
            checkout: CheckoutUse::default(),
        };
        let runner = runner(project)?;
        let opened = open::start_as(project, runner, request, session.clone())?;
        self.follow_first(project, session);
        Ok(opened)
    }

    fn resume(&self, project: &Project, session: &SessionId) -> Result<SessionHandle, StartError> {
        let how = ResumeTerms { with_changed_hooks: false, take_over: true, share_checkout: false };
        let name = self.worker.plan.name.as_str();
        let opened = resume::resume(project, runner(project)?, session.as_str(), how, name)?;
        self.follow_first(project, session);
        Ok(opened)
    }

    /// Tells the fleet's books about a session that begins. Its first turn does so again.
    fn follow_first(&self, project: &Project, session: &SessionId) {
        if let Err(error) = self.follow(project, session) {
            warn!(%session, %error, "the fleet's books do not have a session yet");
        }
    }

    /// Copies the missing events of a session to the fleet ledger.
    pub(super) fn follow(&self, project: &Project, session: &SessionId) -> Result<(), EngineError> {
        match project.fleet_budget() {
            Some(books) => books.follow(project, session),
            None => Ok(()),
        }
    }
}

/// Releases a task whose session could not begin. If this fails, its lease expires.
fn give_back(project: &Project, task: &TaskId, beginning: TaskRunStart) {
    let TaskRunStart::Claimed { epoch } = beginning else { return };
    let (fence, reason) = (Fence::Epoch(epoch), ReleaseReason::Released);
    let id = task.clone();
    let released = project.carry_out(&Command::ReleaseTask { id, fence, reason, note: None });
    if let Err(error) = released {
        warn!(%task, %error, "a task that could not be begun is not given back");
    }
}

/// Reports rate limits of the agent and the forge to the fleet.
struct RateLimitObserver<'w> {
    fleet: &'w Fleet,
    project: &'w str,
    agent: &'w str,
}

impl SessionObserver for RateLimitObserver<'_> {
    fn notice(&mut self, notice: SessionUpdate<'_>) {
        let SessionUpdate::Stored(stored) = notice else { return };
        for stored in stored {
            let slow = match &stored.event.body {
                EventBody::TurnEnded(ended) => match &ended.result {
                    TurnResult::RateLimited { until_ms, .. } => {
                        let until = until_ms.and_then(|ms| i64::try_from(ms).ok()).map(Timestamp);
                        let agent = match ended.agent.is_empty() {
                            true => self.agent,
                            false => &ended.agent,
                        };
                        let until = until.unwrap_or(Timestamp(now().0.saturating_add(SLOW_MS)));
                        Some((format!("agent:{agent}"), until))
                    }
                    _ => None,
                },
                EventBody::SubmissionEvaluated(judged) => match &judged.verdict {
                    SubmitVerdict::Retry { .. } => {
                        let until = Timestamp(now().0.saturating_add(FORGE_MS));
                        Some((format!("forge:{}", self.project), until))
                    }
                    _ => None,
                },
                _ => None,
            };
            if let Some((what, until)) = slow {
                tracing::info!(what, ?until, "workers back off");
                // Otherwise each worker meets the limit itself.
                if let Err(error) = self.fleet.slow_down(&what, until) {
                    warn!(what, %error, "other workers are not told about a limit");
                }
            }
        }
    }
}
