//! Starting a session, and the handle of a session that this process runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_config::ids::fresh_id;
use hookloop_core::authority::ControlledAction;
use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::promise::Promise;
use hookloop_core::session::plan::{SessionPlan, is_external_agent};
use hookloop_core::session::{
    AgentFallback, AtRetryLimit, ConversationPolicy, Session, SessionLimits, SessionWork, StopWhen,
};
use hookloop_core::trace::{SpanNames, TraceId};
use hookloop_git::repo::RepoError;
use hookloop_hooks::frozen_hooks::{FrozenHooks, FrozenSession};
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust;
use hookloop_process::Cancel;

use super::checkout::{self, CheckoutUse, SessionWorktree, has_worktree, worktree};
use super::live_transcript;
use super::lookup::journal;
use super::prompt_template::read_template;
use super::session_clock::SessionClock;
use super::session_directory::{OVER, be_here, lock, lock_patiently, report_failure, tidy};
use super::start_checks::{check_agreement, check_trust};
use super::start_error::StartError;
use crate::gate_agreement;
use crate::machine::random_word;
use crate::project::Project;

/// A request to start a session.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub name: Option<String>,
    pub work: SessionWork,
    pub agent: String,
    pub fallback: Option<AgentFallback>,
    pub conversation: ConversationPolicy,
    /// The promises that end the session. Empty means all of them.
    pub promises: Vec<Promise>,
    pub model: Option<String>,
    pub permissions: Option<String>,
    /// Replaces the stop conditions of the project.
    pub stop_when: Option<Vec<StopWhen>>,
    pub at_retry_limit: Option<AtRetryLimit>,
    pub limits: SessionLimits,
    pub machine: String,
    /// Whether the agent may complete without changing a file.
    pub no_changes_ok: bool,
    /// Patterns of tests that the work may change.
    pub may_change: Vec<String>,
    /// The worker that starts the session, if one does.
    pub worker: Option<String>,
    /// The directory that the session changes.
    pub checkout: CheckoutUse,
}

/// A session that this process runs. It holds the session's locks.
#[derive(Debug)]
pub struct SessionHandle {
    pub id: SessionId,
    /// The number of this start of the session.
    pub run: u32,
    pub plan: SessionPlan,
    pub active_ms: u64,
    /// Whether only the end of the session is left.
    pub is_ending: bool,
    /// The session's directory in the project's state.
    pub directory: PathBuf,
    /// The session's own copies of its hooks. None if an older version started the session.
    pub(crate) frozen: Option<Arc<FrozenHooks>>,
    _lock: File,
    /// The lock of the checkout. None for a session that changes another directory.
    _checkout: Option<File>,
}

impl SessionHandle {
    /// Opens an external session for one call of its agent.
    pub(crate) fn visit(
        project: &Project,
        runner: &HookRunner,
        id: &SessionId,
    ) -> Result<SessionHandle, StartError> {
        let (directory, lock) =
            lock_patiently(runner, id)?.ok_or_else(|| StartError::Running(id.clone()))?;
        let session = journal(project, id)?.session;
        SessionHandle::locked((project, runner), id.clone(), session, (directory, lock), false)
    }

    /// Creates the handle of an existing session whose directory this process has locked.
    pub(super) fn locked(
        (project, runner): (&Project, &HookRunner),
        id: SessionId,
        session: Session,
        (directory, lock): (PathBuf, File),
        is_ending: bool,
    ) -> Result<SessionHandle, StartError> {
        let frozen = recalled(project, runner, (&id, &session.plan), &directory)?;
        let opened = SessionHandle::of(id, session, (directory, lock), frozen);
        Ok(SessionHandle { is_ending, ..opened })
    }

    /// Creates the handle of a session with these hooks.
    pub(super) fn of(
        id: SessionId,
        session: Session,
        (directory, lock): (PathBuf, File),
        frozen: Option<Arc<FrozenHooks>>,
    ) -> SessionHandle {
        let Session { run, plan, active_ms, .. } = session;
        let active_ms = active_ms.max(SessionClock::read(&directory));
        let (_lock, _checkout) = (lock, None);
        let is_ending = false;
        SessionHandle { id, run, plan, active_ms, is_ending, directory, frozen, _lock, _checkout }
    }

    /// Keeps the lock of the checkout for as long as the handle exists.
    pub(super) fn holding(self, checkout: Option<File>) -> SessionHandle {
        SessionHandle { _checkout: checkout, ..self }
    }

    /// Returns the trace of the session, if traces are exported.
    pub fn trace(&self, project: &Project) -> Option<TraceId> {
        project.traces.as_ref()?;
        Some(SpanNames::new(self.id.clone(), self.plan.trace_parent).trace())
    }

    /// Removes the files that an ended session does not need.
    pub fn tidy(&self) {
        live_transcript::forget(&self.directory);
        let path = self.directory.join(OVER);
        report_failure(fs::write(&path, ""), &path, "a session is not marked as ended");
    }
}

/// Returns the id for a session that is about to start.
pub fn fresh_session() -> SessionId {
    SessionId::generate(fresh_id())
}

/// Starts a session. Afterwards it is in the log.
pub fn start(
    project: &Project,
    runner: &HookRunner,
    request: SessionRequest,
) -> Result<SessionHandle, StartError> {
    start_as(project, runner, request, fresh_session())
}

/// Starts a session under a reserved id, because a claim already exists in its name.
pub fn start_as(
    project: &Project,
    runner: &HookRunner,
    request: SessionRequest,
    id: SessionId,
) -> Result<SessionHandle, StartError> {
    // The agent of an external session starts it itself.
    if !is_external_agent(&request.agent) {
        project.authorize(ControlledAction::StartSession)?;
    }
    let rules = project.rules();
    let hooks = project.hooks()?;
    let frozen = match request.work {
        // A review runs none of the project's hooks.
        SessionWork::Review(_) => {
            check_trust(runner, &hooks)?;
            None
        }
        _ => {
            if !is_external_agent(&request.agent) {
                read_template(project, runner)?;
            }
            check_agreement(gate_agreement::weakened(project, runner)?)?;
            let frozen = FrozenHooks::freeze(runner.trust_scope(), &hooks)?;
            // Only a session that starts makes its gates part of the agreement.
            check_agreement(gate_agreement::check(project, runner)?)?;
            Some(frozen)
        }
    };
    tidy(runner);
    // An external session works in its user's directory.
    let delivers = rules.delivery.is_some()
        && request.work.is_of_tasks()
        && !is_external_agent(&request.agent);
    let plan = SessionPlan {
        name: request.name.unwrap_or_else(|| id.to_string()),
        work: request.work,
        agent: request.agent,
        fallback: request.fallback,
        conversation: request.conversation.of_iterations(),
        keeps_feedback: request.conversation == ConversationPolicy::Feedback,
        promises: request.promises,
        model: request.model,
        permissions: request.permissions,
        stop_when: request.stop_when.unwrap_or_else(|| rules.session.stop_when.clone()),
        at_retry_limit: match rules.policy.no_accepting() {
            Some(_) => AtRetryLimit::NeedsHuman,
            None => request.at_retry_limit.unwrap_or(rules.session.at_retry_limit),
        },
        // The request may exceed the user's configuration, but not the policy.
        limits: request.limits.within(rules.policy.limits().session),
        hooks: trust::policy_digest(runner.root(), &hooks),
        scripts: frozen.as_ref().map(FrozenHooks::scripts),
        fence: random_word(),
        machine: request.machine,
        delivers,
        no_changes_ok: request.no_changes_ok,
        may_change: request.may_change,
        wants_no_gates: rules.wants_no_gates,
        worker: request.worker,
        trace_parent: project.traces.as_ref().and_then(|traces| traces.parent),
    };
    let checkout = checkout::hold(runner, &id, &plan, &request.checkout)?;
    let (directory, lock) = lock(runner, &id)?.ok_or_else(|| StartError::Running(id.clone()))?;
    checkout::note_worktree(&directory, &request.checkout)?;
    be_here(&directory, 1);
    mark(&id, &plan, &directory)?;
    project.append(&Subject::Session(id.clone()), EventBody::SessionStarted(plan.clone()))?;
    let (run, active_ms, is_ending, frozen) = (1, 0, false, frozen.map(Arc::new));
    let (_lock, _checkout) = (lock, checkout);
    Ok(SessionHandle { id, run, plan, active_ms, is_ending, directory, frozen, _lock, _checkout })
}

/// Returns the hooks that a session froze.
///
/// If they cannot be read, the session continues and each of its hooks reports that.
pub(super) fn recalled(
    project: &Project,
    runner: &HookRunner,
    (id, plan): (&SessionId, &SessionPlan),
    directory: &Path,
) -> Result<Option<Arc<FrozenHooks>>, StartError> {
    let Some(scripts) = &plan.scripts else { return Ok(None) };
    let session = FrozenSession { id, scripts, directory };
    let found = FrozenHooks::recall(runner.trust_scope(), &project.hooks()?, &session);
    let frozen = found.unwrap_or_else(|error| FrozenHooks::unavailable(&error));
    Ok(Some(Arc::new(frozen)))
}

/// Records that this machine trusts the scripts of a session.
pub(super) fn mark(id: &SessionId, plan: &SessionPlan, directory: &Path) -> Result<(), StartError> {
    match &plan.scripts {
        Some(scripts) => Ok(FrozenSession { id, scripts, directory }.mark()?),
        None => Ok(()),
    }
}

/// Returns the project as seen from the session's own worktree, and that worktree.
///
/// None if the session has no worktree.
pub fn in_worktree(
    project: &Project,
    runner: &HookRunner,
    opened: &SessionHandle,
    cancel: &Cancel,
) -> Result<Option<(Project, SessionWorktree)>, RepoError> {
    if !has_worktree(&opened.directory) {
        return Ok(None);
    }
    let worktree = worktree(project, runner, &opened.id, cancel)?;
    let runner = Some(Arc::new(runner.at(worktree.project.clone())));
    Ok(Some((Project { runner, ..project.clone() }, worktree)))
}
