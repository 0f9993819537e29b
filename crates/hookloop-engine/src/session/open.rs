//! Starting a session, resuming one, and what is left of those whose program died.
//!
//! A program that has a session holds a lock beside the session's own files, so that another on this machine
//! can tell whether it is alive. What makes two of them safe is not the lock but the log: each start is
//! counted there, and who is not the last can store nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_config::paths::SESSIONS as DIRECTORY;
use hookloop_core::authority::ControlledAction;
use hookloop_core::digest::hex;
use hookloop_core::event::{EventBody, NoData};
use hookloop_core::gate_ledger::{GateChange, GateChangeKind};
use hookloop_core::hook::{Hook, HookRegistry};
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::point::Point;
use hookloop_core::promise::Promise;
use hookloop_core::session::facts::{SessionReopened, SessionResumed};
use hookloop_core::session::plan::{GUEST, UNPRICED_TURNS};
use hookloop_core::session::state::MESSAGE;
use hookloop_core::session::{
    AgentFallback, AtRetryLimit, ConversationPolicy, PipedOutput, PromptChannel, Session,
    SessionLimit, SessionLimits, SessionOutcome, SessionPhase, SessionPlan, SessionState,
    SessionWork, StopWhen, stop as stop_words,
};
use hookloop_core::task::TaskState;
use hookloop_core::trace::{SpanNames, TraceId};
use hookloop_hooks::exec_context::{ExecContext, LockError};
use hookloop_hooks::frozen_hooks::{FreezeError, FrozenHooks, FrozenSession};
use hookloop_hooks::runner::Runner;
use hookloop_hooks::trust::{self, Standing};
use hookloop_process::try_lock_file;
use hookloop_store::view::{REVIEW, SessionRow};
use rustix::fs::{FlockOperation, flock};

use super::checkout::{self, CheckoutHolder, CheckoutUse};
use super::journal::Journal;
use super::said;
use crate::error::EngineError;
use crate::gate_agreement;
use crate::project::Project;
use crate::work::{Origin, Work as Batch};

const LOCK: &str = "lock";
/// Which start of it was here last.
const RUN: &str = "run";
/// Where our index and objects of git are.
pub(crate) const GIT: &str = "git";
const CLOCK: &str = "active_ms";
/// A person wants the session to stop: [`StopWatch`] looks for it.
const STOP: &str = "stop";
/// How often it is looked for.
const STOP_POLL: Duration = Duration::from_millis(250);
/// Says that the session is over.
const OVER: &str = "over";
/// How often a lock is tried that somebody may only have looked at.
const LOCK_TRIES: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Sessions that are looked at when one is looked for.
const OPEN_MAX: usize = 1_000;
/// Sessions whose transcripts are kept.
const KEPT_MAX: usize = 500;
/// A guest that was not heard of for so long does not come back.
const GUEST_SILENT_MAX_MS: i64 = 24 * 60 * 60 * 1_000;
/// The longest message to an agent.
/// Sessions that an error names.
const NAMED_MAX: usize = 5;
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// What a user wants to be done.
#[derive(Clone, Debug)]
pub struct Wish {
    pub name: Option<String>,
    pub work: SessionWork,
    pub agent: String,
    pub fallback: Option<AgentFallback>,
    pub conversation: ConversationPolicy,
    /// The promises that end it; all of them if none is named.
    pub promises: Vec<Promise>,
    pub model: Option<String>,
    pub permissions: Option<String>,
    /// Instead of what the project says.
    pub stop_when: Option<Vec<StopWhen>>,
    pub at_retry_limit: Option<AtRetryLimit>,
    pub limits: SessionLimits,
    pub machine: String,
    /// Completing without any change is fine.
    pub no_changes_ok: bool,
    /// The worker whose session it is.
    pub worker: Option<String>,
    /// The directory that it changes.
    pub checkout: CheckoutUse,
}

impl From<FreezeError> for StartError {
    fn from(error: FreezeError) -> StartError {
        match error {
            FreezeError::Untrusted(hooks) => StartError::Untrusted(hooks),
            FreezeError::OtherScripts { session, paths } => {
                StartError::OtherScripts { session, paths }
            }
            FreezeError::Io { path, source } => StartError::Io { path, source },
        }
    }
}

impl From<LockError> for StartError {
    fn from(LockError { path, source }: LockError) -> StartError {
        StartError::Io { path, source }
    }
}

/// Why a session can't be started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("these hooks are not trusted: {}", .0.join(", "))]
    Untrusted(Vec<String>),
    #[error("{}", weakened_words(.0))]
    WeakenedGates(Vec<GateChange>),
    #[error("there is no session `{0}`")]
    NoSuchSession(String),
    #[error("there is no unfinished session")]
    NothingToResume,
    #[error("session {0} is over: {1}")]
    Over(SessionId, String),
    #[error("session {0} ended because it needs a person: it continues if you answer or name it")]
    NeedsAnswer(SessionId),
    #[error("session {0} has not ended: its limits can be changed when it has")]
    NotOver(SessionId),
    #[error("session {0} belongs to worker {1}: a worker continues with its task")]
    OfWorker(SessionId, String),
    #[error("session {session} can't continue: {why}")]
    NothingLeft { session: SessionId, why: String, task: Option<TaskId> },
    #[error("`{0}` is the start of several sessions: {ids}", ids = ids(.1))]
    SeveralBegin(String, Vec<SessionId>),
    #[error("session {session} can't continue: {reached}")]
    AtLimit { session: SessionId, limit: SessionLimit, reached: String },
    #[error("session {0} is not running: {1}")]
    NotRunning(SessionId, String),
    #[error("no session runs in this directory")]
    NothingRuns,
    #[error("several sessions run in this directory: {}", ids(.0))]
    SeveralRun(Vec<SessionId>),
    #[error("session {0} is running")]
    Running(SessionId),
    #[error("session {0} is performed on {1}, as far as is known here")]
    Elsewhere(SessionId, String),
    #[error("the hooks are not those that session {0} began with")]
    OtherHooks(SessionId),
    #[error(
        "the scripts are not those that session {session} began with, and this machine has no copy of those: {}",
        paths.join(", ")
    )]
    OtherScripts { session: SessionId, paths: Vec<String> },
    #[error("session {0} is a review: what is reviewed asks for another")]
    Review(SessionId),
    #[error("session {0} is its agent's own: it goes on where that is")]
    Guest(SessionId),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    CheckoutBusy(Box<CheckoutHolder>),
    #[error(
        "this command writes its output to {}, a file of the project: the file would count as the agent's work, \
         and gates would see it change while they run",
        _0.display()
    )]
    OutputInCheckout(PathBuf),
    #[error("a message has at most {MESSAGE_BYTES_MAX} bytes, not {0}")]
    LongMessage(usize),
}

/// A limit that a person changes: by an amount, or to an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitChange {
    By(u64),
    To(u64),
}

impl LimitChange {
    fn of(change: Option<LimitChange>, known: u64) -> u64 {
        match change {
            None => known,
            Some(LimitChange::By(more)) => known.saturating_add(more),
            Some(LimitChange::To(amount)) => amount,
        }
    }
}

/// The limits of a session that a person changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitChanges {
    pub iterations: Option<LimitChange>,
    pub duration_ms: Option<LimitChange>,
    pub tokens: Option<LimitChange>,
    pub cost_micros: Option<LimitChange>,
}

impl LimitChanges {
    pub fn is_none(&self) -> bool {
        *self == LimitChanges::default()
    }

    /// The limits after the changes. Turns of unknown cost get as many again where the cost limit is raised.
    fn over(&self, limits: SessionLimits) -> SessionLimits {
        let iterations = LimitChange::of(self.iterations, limits.iterations.into());
        let unpriced_turns = match (self.cost_micros, limits.unpriced_turns) {
            (None, turns) | (Some(_), turns @ u32::MAX) => turns,
            (Some(_), turns) => turns.saturating_add(UNPRICED_TURNS),
        };
        SessionLimits {
            iterations: u32::try_from(iterations).unwrap_or(u32::MAX),
            duration_ms: LimitChange::of(self.duration_ms, limits.duration_ms),
            tokens: LimitChange::of(self.tokens, limits.tokens),
            cost_micros: LimitChange::of(self.cost_micros, limits.cost_micros),
            unpriced_turns,
            ..limits
        }
    }
}

/// A person's answer to a session that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReopenAnswer<'a> {
    /// The question that it answers.
    pub question: Option<&'a str>,
    pub text: &'a str,
}

/// What a user agrees to who goes on with a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resume {
    /// Hooks that are not those that it began with.
    pub with_changed_hooks: bool,
    /// That another machine has it, and may be at it.
    pub take_over: bool,
    /// That another session is live in the same checkout.
    pub share_checkout: bool,
}

/// A session that this program has.
#[derive(Debug)]
pub struct Opened {
    pub id: SessionId,
    /// Which start of it this is.
    pub run: u32,
    pub plan: SessionPlan,
    pub active_ms: u64,
    /// All that is left is its end.
    pub is_ending: bool,
    /// Where it keeps what is its own.
    pub directory: PathBuf,
    /// The hooks that it has; none where an older version started it.
    pub(crate) frozen: Option<Arc<FrozenHooks>>,
    /// Held for as long as this is.
    _lock: File,
    /// The lock of the checkout, held for as long; none for a session that changes another directory.
    _checkout: Option<File>,
}

impl Opened {
    /// A guest's session, for as long as it is performed here.
    pub(crate) fn visit(
        project: &Project,
        runner: &Runner,
        id: &SessionId,
    ) -> Result<Opened, StartError> {
        let (directory, lock) =
            lock_patiently(runner, id)?.ok_or_else(|| StartError::Running(id.clone()))?;
        let session = journal(project, id)?.session;
        Opened::locked((project, runner), id.clone(), session, (directory, lock), false)
    }

    /// A session that was begun before, whose directory is locked here.
    fn locked(
        (project, runner): (&Project, &Runner),
        id: SessionId,
        session: Session,
        (directory, lock): (PathBuf, File),
        is_ending: bool,
    ) -> Result<Opened, StartError> {
        let Session { run, plan, active_ms, .. } = session;
        let active_ms = active_ms.max(Clock::read(&directory));
        let frozen = recalled(project, runner, (&id, &plan), &directory)?;
        Ok(Opened {
            id,
            run,
            plan,
            active_ms,
            is_ending,
            directory,
            frozen,
            _lock: lock,
            _checkout: None,
        })
    }

    /// The trace that it is shown in, if it is shown to anybody.
    pub fn trace(&self, project: &Project) -> Option<TraceId> {
        project.traces.as_ref()?;
        Some(SpanNames::new(self.id.clone(), self.plan.trace_parent).trace())
    }

    /// What a session that is over does not need any more.
    pub fn tidy(&self) {
        remove_git(&self.directory);
        said::forget(&self.directory);
        let _ = fs::write(self.directory.join(OVER), "");
    }
}

/// Our indexes and objects: one set for each place that the session was at.
fn remove_git(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(GIT) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The id of a session that is about to start.
pub fn fresh_session() -> SessionId {
    SessionId::generate(fresh_id())
}

/// Starts a session: from now on it is in the log.
pub fn start(project: &Project, runner: &Runner, wish: Wish) -> Result<Opened, StartError> {
    start_as(project, runner, wish, fresh_session())
}

/// The same under an id that was made before: something may be held in its name already.
pub fn start_as(
    project: &Project,
    runner: &Runner,
    wish: Wish,
    id: SessionId,
) -> Result<Opened, StartError> {
    // An external session is its agent's own to begin.
    if !wish.agent.starts_with(GUEST) {
        project.authorize(ControlledAction::StartSession)?;
    }
    let rules = project.rules();
    let hooks = project.hooks()?;
    let frozen = match wish.work {
        // Nothing of the project's runs for a review.
        SessionWork::Review(_) => {
            check_trust(runner, &hooks)?;
            None
        }
        _ => {
            check_agreement(gate_agreement::weakened(project, runner)?)?;
            let frozen = FrozenHooks::freeze(runner.trust_scope(), &hooks)?;
            // A session that starts makes its gates part of the agreement; one that is refused does not.
            check_agreement(gate_agreement::check(project, runner)?)?;
            Some(frozen)
        }
    };
    tidy(runner);
    // A guest works where its user is.
    let delivers =
        rules.delivery.is_some() && wish.work.is_of_tasks() && !wish.agent.starts_with(GUEST);
    let plan = SessionPlan {
        name: wish.name.unwrap_or_else(|| id.to_string()),
        work: wish.work,
        agent: wish.agent,
        fallback: wish.fallback,
        conversation: wish.conversation.of_iterations(),
        keeps_feedback: wish.conversation == ConversationPolicy::Feedback,
        promises: wish.promises,
        model: wish.model,
        permissions: wish.permissions,
        stop_when: wish.stop_when.unwrap_or_else(|| rules.session.stop_when.clone()),
        at_retry_limit: match rules.policy.no_accepting() {
            Some(_) => AtRetryLimit::NeedsHuman,
            None => wish.at_retry_limit.unwrap_or(rules.session.at_retry_limit),
        },
        // Who starts it may want more than their own configuration says, and no more than the policy.
        limits: wish.limits.within(rules.policy.limits().session),
        hooks: trust::policy_digest(runner.root(), &hooks),
        scripts: frozen.as_ref().map(FrozenHooks::scripts),
        fence: random_word(),
        machine: wish.machine,
        delivers,
        no_changes_ok: wish.no_changes_ok,
        wants_no_gates: rules.wants_no_gates,
        worker: wish.worker,
        trace_parent: project.traces.as_ref().and_then(|traces| traces.parent),
    };
    let checkout = checkout::hold(runner, &id, &plan, &wish.checkout)?;
    let (directory, lock) = lock(runner, &id)?.ok_or_else(|| StartError::Running(id.clone()))?;
    checkout::note_worktree(&directory, &wish.checkout)?;
    be_here(&directory, 1);
    mark(&id, &plan, &directory)?;
    project.append(&Subject::Session(id.clone()), EventBody::SessionStarted(plan.clone()))?;
    let (run, active_ms, is_ending, frozen) = (1, 0, false, frozen.map(Arc::new));
    let (_lock, _checkout) = (lock, checkout);
    Ok(Opened { id, run, plan, active_ms, is_ending, directory, frozen, _lock, _checkout })
}

/// Lets a session that ended continue, with other limits and an answer for its next prompt. It is paused then.
pub(crate) fn reopen(
    project: &Project,
    id: &SessionId,
    changes: &LimitChanges,
    answer: Option<&ReopenAnswer<'_>>,
) -> Result<(), StartError> {
    project.authorize(ControlledAction::ResumeSession)?;
    if !changes.is_none() {
        project.authorize(ControlledAction::RaiseLimits)?;
    }
    if let Some(answer) = answer {
        project.authorize(ControlledAction::AnswerQuestion)?;
        if answer.text.len() > MESSAGE_BYTES_MAX {
            return Err(StartError::LongMessage(answer.text.len()));
        }
    }
    let mut journal = journal(project, id)?;
    let session = &journal.session;
    if session.plan.has_guest() {
        return Err(StartError::Guest(id.clone()));
    }
    if matches!(session.plan.work, SessionWork::Review(_)) {
        return Err(StartError::Review(id.clone()));
    }
    if let Some(worker) = &session.plan.worker {
        return Err(StartError::OfWorker(id.clone(), worker.clone()));
    }
    let limits = changes.over(session.plan.limits);
    check_reopening(project, id, session, limits)?;
    let limits = (limits != session.plan.limits).then_some(limits);
    journal.note(EventBody::SessionReopened(SessionReopened { limits }));
    if let Some(answer) = answer {
        let question = answer.question.filter(|question| !question.trim().is_empty());
        journal.note(EventBody::OutputPiped(PipedOutput {
            from: project.actor().to_owned(),
            point: MESSAGE.to_owned(),
            text: answer.text.to_owned(),
            channel: Some(PromptChannel::User),
            question: question.map(str::to_owned),
            ..PipedOutput::default()
        }));
    }
    journal.commit()?;
    Ok(())
}

/// Fails if a session lost its task and there is nothing left that it could do.
fn check_work_left(project: &Project, id: &SessionId, session: &Session) -> Result<(), StartError> {
    if session.tasks_lost.is_empty() {
        return Ok(());
    }
    let nothing = |why: String, task: Option<&TaskId>| {
        Err(StartError::NothingLeft { session: id.clone(), why, task: task.cloned() })
    };
    let SessionWork::Task(task) = &session.plan.work else {
        return match project.read(|view| view.open_tasks())? {
            0 => nothing("no task is open".to_owned(), None),
            _ => Ok(()),
        };
    };
    match project.read(|view| view.task(task))?.map(|row| row.task.state) {
        None => nothing(format!("task `{task}` is deleted"), None),
        Some(TaskState::Completed) => {
            nothing(format!("somebody else completed task `{task}`"), Some(task))
        }
        Some(TaskState::Submitted) => {
            nothing(format!("somebody else submitted task `{task}`"), Some(task))
        }
        Some(_) => Ok(()),
    }
}

/// Fails unless a session ended without being complete, and these limits allow another turn.
fn check_reopening(
    project: &Project,
    id: &SessionId,
    session: &Session,
    limits: SessionLimits,
) -> Result<(), StartError> {
    let over = |state: &str| Err(StartError::Over(id.clone(), state.to_owned()));
    match (&session.outcome, session.is_over()) {
        (_, false) => return Err(StartError::NotOver(id.clone())),
        (Some(outcome @ SessionOutcome::Complete { .. }), _) => return over(outcome.name()),
        _ => {}
    }
    check_work_left(project, id, session)?;
    project.rules().policy.check_limits(limits).map_err(EngineError::from)?;
    let mut with_limits = session.clone();
    with_limits.plan.limits = limits;
    let used = [
        (SessionLimit::Iterations, session.next_iteration() > limits.iterations),
        (SessionLimit::Duration, session.active_ms >= limits.duration_ms),
        (SessionLimit::Tokens, session.usage.tokens() >= limits.tokens),
        (SessionLimit::Cost, session.usage.cost_micros >= limits.cost_micros),
        (SessionLimit::Cost, session.unpriced_turns >= limits.unpriced_turns),
    ];
    match used.into_iter().find(|(_, is_reached)| *is_reached) {
        None => Ok(()),
        Some((limit, _)) => Err(StartError::AtLimit {
            session: id.clone(),
            limit,
            reached: with_limits.limit_reached(limit),
        }),
    }
}

/// The session that `resume` without a name continues: one that has not ended, else the last one if it can be reopened.
/// One that needs a person is reopened only with an answer or other limits.
fn find_to_resume(
    project: &Project,
    runner: &Runner,
    machine: &str,
    has_decision: bool,
) -> Result<SessionRow, StartError> {
    let is_own = |row: &SessionRow| !is_of_guest(row) && row.work != REVIEW;
    let open = project.read(|view| view.open_sessions(OPEN_MAX))?;
    // One that runs is not the one that somebody wants to go on with.
    let is_ours = |row: &SessionRow| {
        (row.machine == machine || row.state == SessionState::Paused) && is_own(row)
    };
    let mut free = open.into_iter().filter(|row| is_ours(row) && !is_running(runner, &row.id));
    if let Some(row) = free.next() {
        return Ok(row);
    }
    let last = project.read(|view| view.sessions(OPEN_MAX))?.into_iter().find(is_own);
    let can_reopen = |row: &SessionRow| {
        row.is_over() && row.machine == machine && row.state != SessionState::Complete
    };
    let row = last.filter(can_reopen).ok_or(StartError::NothingToResume)?;
    match row.state == SessionState::NeedsHuman && !has_decision {
        true => Err(StartError::NeedsAnswer(row.id)),
        false => Ok(row),
    }
}

/// The session that a person means by `resume`: the one that is named, else the last one that can continue.
/// `has_decision`: it comes with an answer or other limits.
pub fn find_resumable(
    project: &Project,
    runner: &Runner,
    wanted: Option<&str>,
    machine: &str,
    has_decision: bool,
) -> Result<SessionId, StartError> {
    project.authorize(ControlledAction::ResumeSession)?;
    match wanted {
        Some(wanted) => Ok(find(project, wanted)?.id),
        None => Ok(find_to_resume(project, runner, machine, has_decision)?.id),
    }
}

/// Reopens a session that ended, with other limits and an answer. One that has not ended gets the answer as a message.
pub fn prepare_resume(
    project: &Project,
    id: &SessionId,
    changes: &LimitChanges,
    text: Option<&str>,
) -> Result<(), StartError> {
    let session = session(project, id)?;
    if !session.is_over() {
        if !changes.is_none() {
            return Err(StartError::NotOver(id.clone()));
        }
        return match text {
            Some(text) => message(project, Some(id.as_str()), text).map(drop),
            None => Ok(()),
        };
    }
    let question = match &session.outcome {
        Some(SessionOutcome::NeedsHuman { reason }) => Some(stop_words::question_in(reason)),
        _ => None,
    };
    let answer = text.map(|text| ReopenAnswer { question, text });
    reopen(project, id, changes, answer.as_ref())
}

/// A request to stop a session, and where the session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    pub id: SessionId,
    /// Whether the session runs on this machine.
    pub is_here: bool,
    pub machine: String,
}

/// Asks a running session to stop now: the one that is named, else the one that runs in this directory.
pub fn stop(
    project: &Project,
    runner: &Runner,
    wanted: Option<&str>,
    machine: &str,
) -> Result<StopRequest, StartError> {
    project.authorize(ControlledAction::StopSession)?;
    let row = match wanted {
        Some(wanted) => find(project, wanted)?,
        None => {
            let open = project.read(|view| view.open_sessions(OPEN_MAX))?;
            let is_here = |row: &SessionRow| row.work != REVIEW && is_running(runner, &row.id);
            let mut here: Vec<SessionRow> = open.into_iter().filter(is_here).collect();
            match here.len() {
                0 => return Err(StartError::NothingRuns),
                1 => here.remove(0),
                _ => {
                    return Err(StartError::SeveralRun(
                        here.into_iter().map(|row| row.id).collect(),
                    ));
                }
            }
        }
    };
    if is_of_guest(&row) {
        return Err(StartError::Guest(row.id));
    }
    if row.work == REVIEW {
        return Err(StartError::Review(row.id));
    }
    let is_here = is_running(runner, &row.id);
    let is_elsewhere = !is_here && row.machine != machine && row.state == SessionState::Running;
    if row.is_over() || !is_here && !is_elsewhere {
        let state = stopped_state(&row);
        return Err(StartError::NotRunning(row.id, state));
    }
    project.append(&Subject::Session(row.id.clone()), EventBody::StopRequested(NoData {}))?;
    if is_here {
        let path = directory(runner, &row.id).join(STOP);
        fs::write(&path, "").map_err(|source| StartError::Io { path, source })?;
    }
    Ok(StopRequest { id: row.id, is_here, machine: row.machine })
}

/// Ends a session when a person asks for that from another program, for as long as this is there.
#[derive(Debug)]
pub(crate) struct StopWatch {
    _over: std::sync::mpsc::Sender<()>,
}

impl StopWatch {
    /// Looks for the file that [`stop`] leaves beside the session's lock.
    pub(crate) fn new(directory: &Path, stop: super::real::Stop) -> std::io::Result<StopWatch> {
        let (over, is_over) = std::sync::mpsc::channel();
        let path = directory.join(STOP);
        std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
            use std::sync::mpsc::RecvTimeoutError::Timeout;
            while is_over.recv_timeout(STOP_POLL) == Err(Timeout) {
                if path.exists() {
                    stop.by_user();
                    return;
                }
            }
        })?;
        Ok(StopWatch { _over: over })
    }
}

fn ids(sessions: &[SessionId]) -> String {
    sessions.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
}

/// Takes a session on that has not ended: the one that is named, else the last.
pub fn resume(
    project: &Project,
    runner: &Runner,
    wanted: Option<&str>,
    how: Resume,
    machine: &str,
) -> Result<Opened, StartError> {
    project.authorize(ControlledAction::ResumeSession)?;
    let row = match wanted {
        Some(wanted) => find(project, wanted)?,
        None => find_to_resume(project, runner, machine, false)?,
    };
    if row.is_over() {
        return Err(StartError::Over(row.id, row.state.to_string()));
    }
    if is_of_guest(&row) {
        return Err(StartError::Guest(row.id));
    }
    if row.work == REVIEW {
        return Err(StartError::Review(row.id));
    }
    if row.machine != machine && row.state != SessionState::Paused && !how.take_over {
        return Err(StartError::Elsewhere(row.id, row.machine));
    }
    let hooks = project.hooks()?;
    check_known(runner, &hooks)?;
    // The session has its own copies of the scripts: only gates that are gone or weaker matter.
    let mut weakened = gate_agreement::weakened(project, runner)?;
    weakened.retain(|change| !matches!(change.kind, GateChangeKind::Changed(_)));
    check_agreement(weakened)?;
    let (directory, lock) =
        lock_patiently(runner, &row.id)?.ok_or_else(|| StartError::Running(row.id.clone()))?;
    let mut journal = journal(project, &row.id)?;
    // Another program may have ended it while this one waited for the lock.
    if journal.session.is_over() {
        let state = journal.session.outcome.as_ref().map_or("over", SessionOutcome::name);
        return Err(StartError::Over(row.id, state.to_owned()));
    }
    let use_of = match (checkout::has_worktree(&directory), how.share_checkout) {
        (true, _) => CheckoutUse::Worktree(PathBuf::new()),
        (false, true) => CheckoutUse::Shared,
        (false, false) => CheckoutUse::Alone,
    };
    let checkout = checkout::hold(runner, &row.id, &journal.session.plan, &use_of)?;
    let now = trust::policy_digest(runner.root(), &hooks);
    project.rules().policy.check_limits(journal.session.plan.limits).map_err(EngineError::from)?;
    let is_other = now != journal.session.plan.hooks;
    if is_other && !how.with_changed_hooks {
        return Err(StartError::OtherHooks(row.id));
    }
    let id = row.id;
    let plan = &journal.session.plan;
    let frozen = match &plan.scripts {
        Some(scripts) if !how.with_changed_hooks => {
            let directory = &directory;
            FrozenHooks::recall(
                runner.trust_scope(),
                &hooks,
                &FrozenSession { id: &id, scripts, directory },
            )?
        }
        _ => FrozenHooks::freeze(runner.trust_scope(), &hooks)?,
    };
    let scripts = Some(frozen.scripts()).filter(|scripts| plan.scripts.as_ref() != Some(scripts));
    let (run, machine) = (journal.session.run + 1, machine.to_owned());
    be_here(&directory, run);
    let hooks = is_other.then_some(now);
    journal.note(EventBody::SessionResumed(SessionResumed { run, machine, hooks, scripts }));
    mark(&id, &journal.session.plan, &directory)?;
    journal.commit()?;
    let Session { run, plan, active_ms, .. } = journal.session;
    let active_ms = active_ms.max(Clock::read(&directory));
    let (is_ending, frozen) = (false, Some(Arc::new(frozen)));
    let (_lock, _checkout) = (lock, checkout);
    Ok(Opened { id, run, plan, active_ms, is_ending, directory, frozen, _lock, _checkout })
}

/// The hooks that a session froze. Where they are not to be had, the session goes on and each hook that it
/// comes to says so.
fn recalled(
    project: &Project,
    runner: &Runner,
    (id, plan): (&SessionId, &SessionPlan),
    directory: &Path,
) -> Result<Option<Arc<FrozenHooks>>, StartError> {
    let Some(scripts) = &plan.scripts else { return Ok(None) };
    let session = FrozenSession { id, scripts, directory };
    let found = FrozenHooks::recall(runner.trust_scope(), &project.hooks()?, &session);
    let frozen = found.unwrap_or_else(|error| FrozenHooks::unavailable(&error));
    Ok(Some(Arc::new(frozen)))
}

/// Remembers that this machine trusts the scripts of a session.
fn mark(id: &SessionId, plan: &SessionPlan, directory: &Path) -> Result<(), StartError> {
    match &plan.scripts {
        Some(scripts) => Ok(FrozenSession { id, scripts, directory }.mark()?),
        None => Ok(()),
    }
}

/// Sessions of this machine whose program died. They are over, but for their session_end.
pub fn interrupted(project: &Project, runner: &Runner) -> Result<Vec<Opened>, StartError> {
    let mut found = Vec::new();
    for row in project.read(|view| view.open_sessions(OPEN_MAX))? {
        let is_ours = directory(runner, &row.id).join(LOCK).exists();
        if !is_ours || row.state == SessionState::Paused || may_come_back(project, &row)? {
            continue;
        }
        let Some((directory, lock)) = lock_of_dead(runner, &row.id)? else { continue };
        let mut journal = journal(project, &row.id)?;
        let session = &journal.session;
        if session.phase == SessionPhase::Ended || !was_here(&directory, session.run) {
            continue;
        }
        let (run, machine) = (session.run + 1, row.machine);
        be_here(&directory, run);
        journal.note(EventBody::SessionResumed(SessionResumed {
            run,
            machine,
            hooks: None,
            scripts: None,
        }));
        // One that was about to end ends as it would have, if that takes nothing but session_end.
        let session = &journal.session;
        let is_settled = session.outcome.is_some()
            && session.pending.is_empty()
            && !matches!(session.phase, SessionPhase::Turn(_))
            && !session.is_unproven();
        if !is_settled {
            journal.note(EventBody::SessionEnding(SessionOutcome::Interrupted));
        }
        journal.commit()?;
        let place = (directory, lock);
        found.push(Opened::locked((project, runner), row.id, journal.session, place, true)?);
    }
    Ok(found)
}

/// Sessions of workers on this machine whose program died, and which still have their tasks: they can go on.
pub fn resumable(project: &Project, runner: &Runner) -> Result<Vec<SessionId>, StartError> {
    let mut found = Vec::new();
    for row in project.read(|view| view.open_sessions(OPEN_MAX))? {
        let is_here = directory(runner, &row.id).join(LOCK).exists();
        if !is_here || row.state == SessionState::Paused || is_of_guest(&row) || row.work == REVIEW
        {
            continue;
        }
        let Some((directory, _lock)) = lock_of_dead(runner, &row.id)? else { continue };
        let session = journal(project, &row.id)?.session;
        let is_worker = session.plan.worker.is_some() && session.outcome.is_none();
        if is_worker && was_here(&directory, session.run) && has_task(project, &row.id)? {
            found.push(row.id);
        }
    }
    Ok(found)
}

/// Whether a task is in the hands of a session.
fn has_task(project: &Project, id: &SessionId) -> Result<bool, StartError> {
    Ok(project.read(|view| view.held_by(&id.actor()))?.is_some())
}

/// Takes on a session of a worker that was silent for the lease of its task: all that is left is its end. None if
/// it is over, or a program on this machine has it, which will find out by itself.
pub fn bury(
    project: &Project,
    runner: &Runner,
    id: &SessionId,
    machine: &str,
) -> Result<Option<Opened>, StartError> {
    let row = project.read(|view| view.session(id))?;
    let Some(row) = row.filter(|row| !row.is_over() && !is_of_guest(row)) else { return Ok(None) };
    // Whoever locks it is taken for one who had it: nobody does that who may not have it.
    let is_ours =
        |session: &Session| session.phase != SessionPhase::Ended && session.plan.worker.is_some();
    if has_task(project, id)? || !is_ours(&self::journal(project, id)?.session) {
        return Ok(None);
    }
    let Some((directory, lock)) = lock_of_dead(runner, &row.id)? else { return Ok(None) };
    let mut journal = self::journal(project, id)?;
    if !is_ours(&journal.session) {
        return Ok(None);
    }
    let run = journal.session.run + 1;
    be_here(&directory, run);
    let machine = machine.to_owned();
    let (hooks, scripts) = (None, None);
    journal.note(EventBody::SessionResumed(SessionResumed { run, machine, hooks, scripts }));
    journal.note(EventBody::SessionEnding(SessionOutcome::Interrupted));
    journal.commit()?;
    let Session { run, plan, active_ms, .. } = journal.session;
    let (id, is_ending) = (row.id, true);
    let frozen = recalled(project, runner, (&id, &plan), &directory)?;
    Ok(Some(Opened {
        id,
        run,
        plan,
        active_ms,
        is_ending,
        directory,
        frozen,
        _lock: lock,
        _checkout: None,
    }))
}

/// Whether the turns of a session are taken by an agent that came by itself.
pub fn is_of_guest(row: &SessionRow) -> bool {
    row.agent.starts_with(GUEST)
}

/// A guest may be away for long: its user sleeps.
fn may_come_back(project: &Project, row: &SessionRow) -> Result<bool, StartError> {
    if !is_of_guest(row) {
        return Ok(false);
    }
    let subject = Subject::Session(row.id.clone());
    let last = project.log().history(&subject, 1).map_err(EngineError::from)?;
    let silent_ms = last.last().map_or(0, |last| now().millis_since(last.event.at));
    Ok(silent_ms < GUEST_SILENT_MAX_MS)
}

/// Sessions of guests that do not come back, at most so many.
pub(crate) fn silent_guests(project: &Project, max: usize) -> Result<Vec<SessionId>, StartError> {
    let mut gone = Vec::new();
    for row in project.read(|view| view.open_sessions(OPEN_MAX))? {
        if gone.len() < max && is_of_guest(&row) && !may_come_back(project, &row)? {
            gone.push(row.id);
        }
    }
    Ok(gone)
}

/// Asks a running session to pause before its next iteration.
pub fn pause(project: &Project, wanted: Option<&str>) -> Result<SessionId, StartError> {
    project.authorize(ControlledAction::PauseSession)?;
    let row = find_open(project, wanted)?;
    if is_of_guest(&row) {
        return Err(StartError::Guest(row.id));
    }
    if !is_performed(project, &row) {
        let state = stopped_state(&row);
        return Err(StartError::NotRunning(row.id, state));
    }
    project.append(&Subject::Session(row.id.clone()), EventBody::PauseRequested(NoData {}))?;
    Ok(row.id)
}

/// Leaves a message for the agent of a session: its next prompt has it.
pub fn message(
    project: &Project,
    wanted: Option<&str>,
    text: &str,
) -> Result<SessionId, StartError> {
    project.authorize(ControlledAction::MessageAgent)?;
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(StartError::LongMessage(text.len()));
    }
    let row = find_open(project, wanted)?;
    project.append(&Subject::Session(row.id.clone()), said(project, text))?;
    Ok(row.id)
}

/// Something for the next prompt, by whoever acts here.
pub(crate) fn said(project: &Project, text: &str) -> EventBody {
    let (from, point) = (project.actor().to_owned(), MESSAGE.to_owned());
    let (text, channel) = (text.to_owned(), Some(PromptChannel::User));
    EventBody::OutputPiped(PipedOutput { from, point, text, channel, ..PipedOutput::default() })
}

/// The session that `wanted` names: its id, the start of it, or its name.
pub fn find(project: &Project, wanted: &str) -> Result<SessionRow, StartError> {
    let rows = project.read(|view| view.sessions(OPEN_MAX))?;
    let is_exact = |row: &&SessionRow| row.id.as_str() == wanted || row.name == wanted;
    if let Some(row) = rows.iter().find(is_exact) {
        return Ok(row.clone());
    }
    let starting = rows.into_iter().filter(|row| row.id.as_str().starts_with(wanted));
    let mut starting: Vec<SessionRow> = starting.take(NAMED_MAX).collect();
    match starting.len() {
        0 => Err(StartError::NoSuchSession(wanted.to_owned())),
        1 => Ok(starting.remove(0)),
        _ => {
            let ids = starting.into_iter().map(|row| row.id).collect();
            Err(StartError::SeveralBegin(wanted.to_owned(), ids))
        }
    }
}

fn find_open(project: &Project, wanted: Option<&str>) -> Result<SessionRow, StartError> {
    let row = match wanted {
        Some(wanted) => find(project, wanted)?,
        None => {
            let open = project.read(|view| view.open_sessions(OPEN_MAX))?;
            let mut open: Vec<SessionRow> =
                open.into_iter().filter(|row| row.work != REVIEW).collect();
            // A session that runs is meant before one that was interrupted.
            let running = open.iter().position(|row| is_performed(project, row));
            if open.is_empty() {
                return Err(StartError::NothingToResume);
            }
            open.swap_remove(running.unwrap_or(0))
        }
    };
    match row.is_over() {
        true => Err(StartError::Over(row.id, row.state.to_string())),
        // It is at work for a moment, and hears nobody.
        false if row.work == REVIEW => Err(StartError::Review(row.id)),
        false => Ok(row),
    }
}

/// The state of a session, from its events.
pub fn session(project: &Project, id: &SessionId) -> Result<Session, StartError> {
    Ok(journal(project, id)?.session)
}

fn journal<'p>(project: &'p Project, id: &SessionId) -> Result<Journal<'p>, StartError> {
    Journal::open(project, id)?.ok_or_else(|| StartError::NoSuchSession(id.to_string()))
}

/// Whether a program performs the session. If the last program was elsewhere (another machine, or another checkout of
/// this one), the session's state alone decides.
pub fn is_performed(project: &Project, row: &SessionRow) -> bool {
    if row.is_over() || is_of_guest(row) {
        return !row.is_over();
    }
    let runner = project.runner();
    match row.state {
        SessionState::Running => {
            runner.is_none_or(|runner| !is_abandoned(project, runner, &row.id))
        }
        _ => runner.is_some_and(|runner| is_running(runner, &row.id)),
    }
}

/// The state of a session that no program performs, in words.
fn stopped_state(row: &SessionRow) -> String {
    match row.state {
        SessionState::Running => "its program died".to_owned(),
        state => state.to_string(),
    }
}

/// Whether a program on this machine has the session.
pub fn is_running(runner: &Runner, id: &SessionId) -> bool {
    is_held(&directory(runner, id))
}

/// Whether a program has the lock of a session. Who only looks shares it with others who look, and leaves the name of
/// who had it: a dead one is known by that.
fn is_held(directory: &Path) -> bool {
    File::open(directory.join(LOCK)).is_ok_and(|lock| {
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    })
}

/// The process that has the lock of a session.
pub(crate) fn holder(directory: &Path) -> Option<u32> {
    let pid = fs::read_to_string(directory.join(LOCK)).ok()?.trim().parse().ok()?;
    is_held(directory).then_some(pid)
}

/// Whether a program on this machine had the session last, and died.
pub(crate) fn is_abandoned(project: &Project, runner: &Runner, id: &SessionId) -> bool {
    let directory = directory(runner, id);
    if !directory.join(LOCK).exists() || is_held(&directory) {
        return false;
    }
    let was_here = Journal::open(project, id).is_ok_and(|journal| {
        journal.is_some_and(|journal| was_here(&directory, journal.session.run))
    });
    // Somebody may have taken it on since.
    was_here && !is_held(&directory)
}

/// Whether the session's last program was on this machine: it may have gone elsewhere since.
fn was_here(directory: &Path, run: u32) -> bool {
    let known = fs::read_to_string(directory.join(RUN)).ok();
    // One that was about to take it on and died did not come to say so in the log.
    known.is_none_or(|known| known.trim().parse::<u32>().is_ok_and(|known| known >= run))
}

/// Remembers that this machine has the session's last program. One that can't be written would be taken for one of
/// before there was such a file.
fn be_here(directory: &Path, run: u32) {
    // A request to stop was for the program before, and a session that goes on is not over.
    let _ = fs::remove_file(directory.join(STOP));
    let _ = fs::remove_file(directory.join(OVER));
    let _ = fs::write(directory.join(RUN), run.to_string());
}

pub(crate) fn directory(runner: &ExecContext, id: &SessionId) -> PathBuf {
    runner.state().join(DIRECTORY).join(id.as_str())
}

/// The session's own directory and its lock; none if another program has it.
fn lock(runner: &Runner, id: &SessionId) -> Result<Option<(PathBuf, File)>, StartError> {
    let directory = directory(runner, id);
    let failed = |source: std::io::Error| StartError::Io { path: directory.clone(), source };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&directory).map_err(failed)?;
    let locked = try_lock_file(&directory.join(LOCK)).map_err(failed)?;
    let Some(file) = locked else { return Ok(None) };
    // Only a hint: who can't write it is taken for alive.
    let _ = file.set_len(0).and_then(|()| write!(&file, "{}", std::process::id()));
    Ok(Some((directory, file)))
}

/// The same for one who wants it: whoever looks whether somebody has the lock has it for a moment.
fn lock_patiently(runner: &Runner, id: &SessionId) -> Result<Option<(PathBuf, File)>, StartError> {
    for _ in 1..LOCK_TRIES {
        if let Some(locked) = lock(runner, id)? {
            return Ok(Some(locked));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    lock(runner, id)
}

/// The same for one who looks whether a program died: what that was about to start has its lock for a moment longer.
fn lock_of_dead(runner: &Runner, id: &SessionId) -> Result<Option<(PathBuf, File)>, StartError> {
    let holder = fs::read_to_string(directory(runner, id).join(LOCK)).unwrap_or_default();
    match lock(runner, id)? {
        None if is_gone(&holder) => lock_patiently(runner, id),
        locked => Ok(locked),
    }
}

/// Whether there is no process of that id any more.
fn is_gone(holder: &str) -> bool {
    let pid = holder.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// Every hook of a session has to be one that may run: a gate that may not would never pass.
fn check_trust(runner: &Runner, hooks: &HookRegistry) -> Result<(), StartError> {
    check_standing(runner, hooks, Standing::may_run)
}

/// A hook of a session that goes on may have changed since it was trusted: the session has it as it was. One
/// that nobody trusts, or trusts any more, does not run at all.
fn check_known(runner: &Runner, hooks: &HookRegistry) -> Result<(), StartError> {
    check_standing(runner, hooks, |standing| standing != Standing::Untrusted)
}

fn check_standing(
    runner: &Runner,
    hooks: &HookRegistry,
    is_enough: impl Fn(Standing) -> bool,
) -> Result<(), StartError> {
    let is_of_session = |hook: &&Hook| {
        hook.enabled && hook.points.iter().any(|point| !matches!(point, Point::Event(_)))
    };
    let may_not_run = |hook: &&Hook| !is_enough(runner.standing(hook));
    let of_session = hooks.list().iter().filter(is_of_session);
    let untrusted: Vec<String> =
        of_session.filter(may_not_run).map(|hook| hook.name.clone()).collect();
    match untrusted.is_empty() {
        true => Ok(()),
        false => Err(StartError::Untrusted(untrusted)),
    }
}

/// Nothing begins with a hook that may not run, or with fewer or weaker gates than a person agreed to.
pub fn check_gates(
    project: &Project,
    runner: &Runner,
    hooks: &HookRegistry,
) -> Result<(), StartError> {
    check_trust(runner, hooks)?;
    check_agreement(gate_agreement::check(project, runner)?)
}

fn check_agreement(weakened: Vec<GateChange>) -> Result<(), StartError> {
    if weakened.is_empty() { Ok(()) } else { Err(StartError::WeakenedGates(weakened)) }
}

/// What is missing of the gates that a person agreed to, in words.
pub fn weakened_words(changes: &[GateChange]) -> String {
    let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
    format!("the gates are fewer or weaker than you agreed to: {}", words.join("; "))
}

/// Deletes what the oldest sessions have of their own, if they are many and over.
fn tidy(runner: &Runner) {
    let Ok(entries) = fs::read_dir(runner.state().join(DIRECTORY)) else { return };
    let modified = |entry: &fs::DirEntry| entry.metadata().and_then(|data| data.modified()).ok();
    let mut all: Vec<_> =
        entries.flatten().filter_map(|entry| Some((modified(&entry)?, entry.path()))).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    for (_, directory) in all.into_iter().skip(KEPT_MAX) {
        // A program has it, or it can be resumed.
        if directory.join(OVER).exists() && !is_held(&directory) {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// What runs the hooks of a project that has a directory.
pub fn runner(project: &Project) -> Result<&Runner, StartError> {
    let nowhere = || std::io::Error::other("there is no directory to work in");
    let failed = || StartError::Io { path: PathBuf::new(), source: nowhere() };
    project.runner().ok_or_else(failed)
}

/// What this machine is called.
pub fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn random_word() -> String {
    let bytes = uuid::Uuid::new_v4();
    hex(&bytes.as_bytes()[..8])
}

impl Project {
    /// Stores one event that nothing has to be decided for.
    pub fn append(&self, subject: &Subject, body: EventBody) -> Result<(), EngineError> {
        let id = fresh_id();
        self.store.transact(|unit| {
            let mut work = Batch::new(unit, &self.rules, now())?;
            work.stage_quietly(Origin::command(id, self.actor()), subject.clone(), body.clone())?;
            Ok(())
        })
    }
}

/// How long a session has run, in a file of its own: what a program that is killed can't tell the log.
#[derive(Debug)]
pub(crate) struct Clock {
    path: PathBuf,
    before_ms: u64,
    began: Instant,
    rested_ms: Arc<AtomicU64>,
}

impl Clock {
    pub(crate) const TICK: Duration = Duration::from_secs(1);

    pub(crate) fn new(directory: &Path, before_ms: u64, rested_ms: Arc<AtomicU64>) -> Clock {
        Clock { path: directory.join(CLOCK), before_ms, began: Instant::now(), rested_ms }
    }

    /// Time in which nothing was to begin: it does not count.
    pub(crate) fn rested(&self) -> Duration {
        Duration::from_millis(self.rested_ms.load(Ordering::SeqCst))
    }

    /// A clock that can't be written is behind by what this program takes.
    pub(crate) fn tick(&self) {
        let active = self.began.elapsed().saturating_sub(self.rested());
        let ms = u64::try_from(active.as_millis()).unwrap_or(u64::MAX);
        let _ = fs::write(&self.path, self.before_ms.saturating_add(ms).to_string());
    }

    fn read(directory: &Path) -> u64 {
        let text = fs::read_to_string(directory.join(CLOCK)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

/// The files that decide what hooks are, as they were when a session began.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    known: BTreeMap<PathBuf, Option<Stamp>>,
}

/// What tells a file from what it was.
type Stamp = (u64, u64, i64, i64);
/// What no file has.
const OTHER: Stamp = (0, 0, 0, 0);

impl Drift {
    pub(crate) fn new(
        runner: &Runner,
        config: &Path,
        hooks: &HookRegistry,
        frozen: Option<&FrozenHooks>,
    ) -> Drift {
        let scripts = hooks.list().iter().flat_map(|hook| trust::scripts(runner.root(), hook));
        let paths = scripts.chain([config.to_owned()]);
        let mut known: BTreeMap<PathBuf, Option<Stamp>> = paths
            .map(|path| {
                let stamp = stamp(&path);
                (path, stamp)
            })
            .collect();
        known.extend(Drift::of_scripts(runner, frozen).known);
        Drift { known }
    }

    /// The scripts that a session froze. One that is different by now has changed at the first look.
    pub(crate) fn of_scripts(runner: &Runner, frozen: Option<&FrozenHooks>) -> Drift {
        let compared = frozen.map(|frozen| frozen.compare(runner.home())).unwrap_or_default();
        let known = compared.into_iter().map(|(path, is_same)| {
            let stamp = if is_same { stamp(&path) } else { Some(OTHER) };
            (path, stamp)
        });
        Drift { known: known.collect() }
    }

    /// Those that have changed since the last look.
    pub(crate) fn look(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        for (path, known) in &mut self.known {
            let now = stamp(path);
            if *known != now {
                *known = now;
                changed.push(path.display().to_string());
            }
        }
        changed
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use hookloop_hooks::trust::Trust;

    /// A screen that is open looks again and again at who runs.
    #[test]
    fn who_looks_is_not_taken_for_who_has_it() {
        let state = tempfile::tempdir().unwrap();
        let place = || state.path().to_owned();
        let trust = Trust::load(state.path()).unwrap();
        let runner = Runner::new(place(), place(), Vec::new(), trust);
        let id = SessionId::generate(fresh_id());
        drop(lock(&runner, &id).unwrap().unwrap());
        let mut dead = Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        is_running(&runner, &id);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
            }
            for _ in 0..300 {
                let lock = directory(&runner, &id).join(LOCK);
                fs::write(lock, dead.id().to_string()).unwrap();
                std::thread::sleep(Duration::from_millis(1));
                let had = lock_of_dead(&runner, &id).unwrap().is_some();
                if !had {
                    is_over.store(true, Ordering::SeqCst);
                }
                assert!(had);
            }
            is_over.store(true, Ordering::SeqCst);
        });
    }
}
