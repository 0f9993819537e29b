//! One task, from its claim to its end.

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
use hookloop_engine::claim::Claimed;
use hookloop_engine::error::EngineError;
use hookloop_engine::launch;
use hookloop_engine::launch::{Attendance, PerformError};
use hookloop_engine::lifeline::Beats;
use hookloop_engine::project::Project;
use hookloop_engine::session::checkout::CheckoutUse;
use hookloop_engine::session::open::{self, Opened, Resume, Wish, runner};
use hookloop_engine::session::real::{Onlooker, Rest, Stop};
use hookloop_engine::session::{Notice, StartError};
use hookloop_hooks::exec_context::LockError;
use tracing::warn;

use super::{AFTER_ERROR, Desk, END_GRACE, Post, Shift, Told};
use crate::fleet::Fleet;

/// Who is told to wait and not for how long is left alone for so long.
const SLOW_MS: i64 = 60_000;
/// A forge that could not be reached is left alone for so long.
const FORGE_MS: i64 = 30_000;

/// Held by who works where the project is.
const CHECKOUT: &str = "checkout.lock";

/// Open sessions that are looked at.
pub(super) const OPEN_MAX: usize = 1_000;
/// After a session that could not go on, and not because of its task.
const AFTER_INTERRUPTION: Duration = Duration::from_secs(10);
/// After one for which there was not enough in a purse.
const AFTER_SHORTAGE: Duration = Duration::from_secs(30);

/// A session that is under way.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) post: usize,
    pub(super) task: TaskId,
    pub(super) session: SessionId,
    pub(super) since: Timestamp,
    pub(super) rest: Rest,
    stop: Stop,
    /// Since when it is to end.
    ending: Option<Instant>,
    /// Held for as long as this is.
    _seat: Seat,
}

/// Where the work is done: in a worktree of the task's own, or where the project is, which one at a time has.
#[derive(Debug)]
pub(super) enum Seat {
    Own,
    Project(#[expect(dead_code, reason = "its lock is what counts")] File),
}

/// A place for one more task; none if somebody is at work there.
pub(super) fn seat(project: &Project) -> Option<Seat> {
    match project.rules().delivery {
        Some(_) => Some(Seat::Own),
        None => {
            let locked = project.runner()?.alone_now(CHECKOUT);
            let unlocked =
                |error: &LockError| tracing::warn!(%error, "the checkout can't be locked");
            locked.inspect_err(unlocked).ok()?.map(Seat::Project)
        }
    }
}

impl Hand {
    /// Whether somebody else has its task: this one was taken for dead.
    pub(super) fn is_lost(&self, post: &Post) -> bool {
        let row = post.project().read(|view| view.task(&self.task));
        // The epoch of its claim refuses a holder that has lost the task, whether this look succeeds or not.
        let row =
            row.inspect_err(|error| warn!(task = %self.task, %error, "a claim can't be read"));
        let claim = row.ok().flatten().and_then(|row| row.task.claim);
        claim.is_some_and(|claim| claim.agent != self.session.actor())
    }

    /// Ends what runs, and after a moment what runs at its end.
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

/// What a session came to.
#[derive(Debug)]
pub enum End {
    Outcome(SessionOutcome),
    /// Another program has taken it on: this one was taken for dead.
    Taken,
    Trouble(String),
}

impl End {
    /// For how long nothing more is taken of a project after this: what went wrong for one task may for the next.
    pub(super) fn rest(&self) -> Option<Duration> {
        match self {
            End::Trouble(_) => Some(AFTER_ERROR),
            End::Outcome(SessionOutcome::Interrupted) => Some(AFTER_INTERRUPTION),
            End::Outcome(SessionOutcome::Limit { limit: SessionLimit::Purse }) => {
                Some(AFTER_SHORTAGE)
            }
            End::Outcome(_) | End::Taken => None,
        }
    }
}

impl From<Result<Session, PerformError>> for End {
    fn from(performed: Result<Session, PerformError>) -> End {
        match performed {
            Ok(Session { outcome: Some(outcome), .. }) => End::Outcome(outcome),
            Ok(_) => End::Trouble("it rests".to_owned()),
            Err(PerformError::Engine(EngineError::SessionTaken(_))) => End::Taken,
            Err(error) => End::Trouble(error.to_string()),
        }
    }
}

/// What a session begins with.
enum Beginning {
    /// With what its holder names to change it.
    Claimed {
        epoch: u64,
    },
    Resumed,
}

/// Shows life for a task from now on: a session takes its time to begin, and longer where others are slow.
fn beats(project: &Project, task: &Task) -> Option<Beats> {
    let claim = task.claim.as_ref()?;
    let lease = Duration::from_millis(claim.lease_ms);
    Some(Beats::start(project, &task.id, (claim.epoch, lease), None))
}

impl<'w> Shift<'w> {
    /// Has a task done that was just taken.
    pub(super) fn begin<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        desk: &mut Desk,
        of: (usize, Arc<Project>, Seat),
        claimed: Claimed,
        session: SessionId,
    ) {
        let (task, beats) = (claimed.task.id.clone(), beats(&of.1, &claimed.task));
        self.hand_out(
            scope,
            desk,
            of,
            (task, session, beats),
            Beginning::Claimed { epoch: claimed.epoch },
        );
    }

    /// Goes on with what this worker had in hands when its program died; what it has lost is ended.
    pub(super) fn pick_up<'s, 'e>(&'e self, scope: &'s Scope<'s, 'e>, desk: &mut Desk) {
        for (post, served) in self.worker.posts.iter().enumerate() {
            let project = served.project();
            let found = match project.runner() {
                Some(runner) => open::resumable(&project, runner),
                None => continue,
            };
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    self.trouble(post, &error);
                    continue;
                }
            };
            // What was about to end when it died ends now.
            let open = project.read(|view| view.open_sessions(OPEN_MAX)).unwrap_or_default();
            for row in open.iter().filter(|row| row.machine == self.worker.plan.name.as_str()) {
                if !found.contains(&row.id) {
                    self.bury_aside(scope, post, row.id.clone());
                }
            }
            for session in found {
                let held = project.read(|view| view.held_by(&session.actor()));
                let Ok(Some(row)) = held else { continue };
                // Who is at work there now will end it, or its lease does.
                let Some(seat) = seat(&project) else { continue };
                if !served.enter() {
                    continue;
                }
                let of = (post, Arc::clone(&project), seat);
                let beats = beats(&project, &row.task);
                self.hand_out(scope, desk, of, (row.task.id, session, beats), Beginning::Resumed);
            }
        }
    }

    fn hand_out<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        desk: &mut Desk,
        (post, project, seat): (usize, Arc<Project>, Seat),
        (task, session, beats): (TaskId, SessionId, Option<Beats>),
        beginning: Beginning,
    ) {
        let is_resumed = matches!(beginning, Beginning::Resumed);
        let name = self.worker.posts[post].name();
        let stop = match Stop::new() {
            Ok(stop) => stop,
            Err(error) => {
                self.trouble(post, &error);
                self.worker.posts[post].exit();
                return give_back(&project, &task, beginning);
            }
        };
        let rest = Rest::default();
        let hand = Hand {
            post,
            task: task.clone(),
            session: session.clone(),
            since: now(),
            rest: rest.clone(),
            stop: stop.clone(),
            ending: None,
            _seat: seat,
        };
        self.tell(&Told::Took { project: name, task: &task, session: &session, is_resumed });
        let (of_thread, done) = ((task.clone(), session.clone()), self.done.clone());
        let thread = std::thread::Builder::new().name(format!("session {session}"));
        let started = thread.spawn_scoped(scope, move || {
            let (task, session) = of_thread;
            let worked = catch_unwind(AssertUnwindSafe(|| {
                self.perform(post, &project, (&task, &session), beginning, (stop, rest))
            }));
            drop(beats);
            let end = worked.unwrap_or_else(|_| End::Trouble("it panicked".to_owned()));
            self.worker.posts[post].exit();
            // The last step of the thread. Without a receiver the worker has ended.
            let _ = done.send((session, task, post, end));
        });
        match started {
            Ok(_) => {
                desk.shown = None;
                desk.hands.push(hand);
            }
            Err(error) => {
                // Its claim ends when its lease does.
                self.worker.posts[post].exit();
                self.trouble(post, &error);
            }
        }
    }

    fn perform(
        &self,
        post: usize,
        project: &Project,
        (task, session): (&TaskId, &SessionId),
        beginning: Beginning,
        (stop, rest): (Stop, Rest),
    ) -> End {
        let opened = match &beginning {
            Beginning::Claimed { .. } => self.start(project, task, session),
            Beginning::Resumed => self.resume(project, session),
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                give_back(project, task, beginning);
                return End::Trouble(error.to_string());
            }
        };
        let served = &self.worker.posts[post];
        let onlooker = Witness {
            fleet: &self.worker.fleet,
            project: served.name(),
            agent: &self.worker.plan.agent,
        };
        let config = served.place().config();
        let around = Attendance { onlooker, stop, rest, config: &config };
        launch::perform(project, &opened, around).into()
    }

    fn start(
        &self,
        project: &Project,
        task: &TaskId,
        session: &SessionId,
    ) -> Result<Opened, StartError> {
        let (plan, rules) = (&self.worker.plan, project.rules());
        let wish = Wish {
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
            worker: Some(plan.name.to_string()),
            checkout: CheckoutUse::default(),
        };
        let runner = runner(project)?;
        let opened = open::start_as(project, runner, wish, session.clone())?;
        self.follow_first(project, session);
        Ok(opened)
    }

    fn resume(&self, project: &Project, session: &SessionId) -> Result<Opened, StartError> {
        let how = Resume { with_changed_hooks: false, take_over: true, share_checkout: false };
        let name = self.worker.plan.name.as_str();
        let opened = open::resume(project, runner(project)?, Some(session.as_str()), how, name)?;
        self.follow_first(project, session);
        Ok(opened)
    }

    /// Tells the fleet's books about a session that begins. Its first turn does so again.
    fn follow_first(&self, project: &Project, session: &SessionId) {
        if let Err(error) = self.follow(project, session) {
            warn!(%session, %error, "the fleet's books do not have a session yet");
        }
    }

    /// Brings the fleet's books up to date with a session.
    pub(super) fn follow(&self, project: &Project, session: &SessionId) -> Result<(), EngineError> {
        match project.fleet_budget() {
            Some(books) => books.follow(project, session),
            None => Ok(()),
        }
    }
}

/// Gives back a task that could not be begun. If that does not work out either, its lease ends.
fn give_back(project: &Project, task: &TaskId, beginning: Beginning) {
    let Beginning::Claimed { epoch } = beginning else { return };
    let (fence, reason) = (Fence::Epoch(epoch), ReleaseReason::Released);
    let id = task.clone();
    let released = project.carry_out(&Command::ReleaseTask { id, fence, reason, note: None });
    if let Err(error) = released {
        warn!(%task, %error, "a task that could not be begun is not given back");
    }
}

/// Sees who wants to be left alone.
struct Witness<'w> {
    fleet: &'w Fleet,
    project: &'w str,
    agent: &'w str,
}

impl Onlooker for Witness<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        let Notice::Stored(stored) = notice else { return };
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
                EventBody::SubmitJudged(judged) => match &judged.verdict {
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
