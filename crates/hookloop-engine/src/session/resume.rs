//! Resuming a session, and reopening one that ended.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use hookloop_core::authority::ControlledAction;
use hookloop_core::event::EventBody;
use hookloop_core::gate_ledger::GateChangeKind;
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::session::facts::{AllowedFindings, SessionReopened, SessionResumed};
use hookloop_core::session::plan::{SessionPlan, UNPRICED_TURNS};
use hookloop_core::session::state::MESSAGE;
use hookloop_core::session::{
    PipedOutput, PromptChannel, Session, SessionLimit, SessionLimits, SessionOutcome, SessionState,
    SessionWork, stop as stop_words,
};
use hookloop_core::task::TaskState;
use hookloop_hooks::frozen_hooks::{FrozenHooks, FrozenSession};
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust;
use hookloop_store::log::Seq;
use hookloop_store::view::SessionRow;

use super::checkout::{self, CheckoutUse};
use super::control::message;
use super::journal::SessionJournal;
use super::lookup::{OPEN_MAX, find, is_external, is_review, journal, session};
use super::open::{SessionHandle, mark};
use super::prompt_template::read_template;
use super::session_directory::{be_elsewhere, be_here, is_running, lock_patiently};
use super::start_checks::{check_agreement, check_known};
use super::start_error::{MESSAGE_BYTES_MAX, StartError};
use crate::error::EngineError;
use crate::gate_agreement;
use crate::project::Project;

/// A change of a limit: by an amount, or to an amount.
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

/// Changes of a session's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitChanges {
    pub max_iterations: Option<LimitChange>,
    pub max_duration_ms: Option<LimitChange>,
    pub max_tokens: Option<LimitChange>,
    pub max_cost_micros: Option<LimitChange>,
}

impl LimitChanges {
    pub fn is_none(&self) -> bool {
        *self == LimitChanges::default()
    }

    /// Returns the limits after the changes. A change of the cost limit also allows more turns of unknown cost.
    fn over(&self, limits: SessionLimits) -> SessionLimits {
        let iterations = LimitChange::of(self.max_iterations, limits.max_iterations.into());
        let max_unpriced_turns = match (self.max_cost_micros, limits.max_unpriced_turns) {
            (None, turns) | (Some(_), turns @ u32::MAX) => turns,
            (Some(_), turns) => turns.saturating_add(UNPRICED_TURNS),
        };
        SessionLimits {
            max_iterations: u32::try_from(iterations).unwrap_or(u32::MAX),
            max_duration_ms: LimitChange::of(self.max_duration_ms, limits.max_duration_ms),
            max_tokens: LimitChange::of(self.max_tokens, limits.max_tokens),
            max_cost_micros: LimitChange::of(self.max_cost_micros, limits.max_cost_micros),
            max_unpriced_turns,
            ..limits
        }
    }
}

/// A person's changes of a session before it continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeChanges {
    pub limits: LimitChanges,
    /// Patterns of tests that the work may change.
    pub may_change: Vec<String>,
    /// The digests of findings of the base's tests that the person allows.
    pub allowed_findings: Vec<String>,
}

impl ResumeChanges {
    /// Whether the person allows changes of tests. Then the gates judge the claim again, before any turn.
    fn allows_tests(&self) -> bool {
        !self.may_change.is_empty() || !self.allowed_findings.is_empty()
    }

    pub fn is_none(&self) -> bool {
        *self == ResumeChanges::default()
    }
}

/// A person's answer to a session that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReopenAnswer<'a> {
    /// The question that the person answers.
    pub question: Option<&'a str>,
    pub text: &'a str,
}

/// Conditions under which a user resumes a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResumeTerms {
    /// Whether the hooks may differ from those that the session began with.
    pub with_changed_hooks: bool,
    /// Whether to resume a session that another machine may still run.
    pub take_over: bool,
    /// Whether another session may run in the same checkout.
    pub share_checkout: bool,
}

/// Reopens an ended session, with other limits and an answer for its next prompt.
///
/// The session is paused then.
pub(crate) fn reopen(
    project: &Project,
    id: &SessionId,
    changes: &ResumeChanges,
    answer: Option<&ReopenAnswer<'_>>,
) -> Result<(), StartError> {
    let mut journal = to_reopen(project, id, changes, answer.map(|answer| answer.text))?;
    let known = journal.session.plan.limits;
    let limits = Some(changes.limits.over(known)).filter(|limits| *limits != known);
    let allowed = (!changes.allowed_findings.is_empty()).then(|| AllowedFindings {
        by: project.actor().to_owned(),
        digests: changes.allowed_findings.clone(),
    });
    let may_change = changes.may_change.clone();
    journal.note(EventBody::SessionReopened(SessionReopened { limits, may_change, allowed }));
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

/// Returns the events of an ended session, or the reason why the session can't be reopened.
fn to_reopen<'p>(
    project: &'p Project,
    id: &SessionId,
    changes: &ResumeChanges,
    answer: Option<&str>,
) -> Result<SessionJournal<'p>, StartError> {
    project.authorize(ControlledAction::ResumeSession)?;
    if !changes.limits.is_none() {
        project.authorize(ControlledAction::RaiseLimits)?;
    }
    if changes.allows_tests() {
        project.authorize(ControlledAction::ApproveWork)?;
    }
    if let Some(answer) = answer {
        project.authorize(ControlledAction::AnswerQuestion)?;
        if answer.len() > MESSAGE_BYTES_MAX {
            return Err(StartError::LongMessage(answer.len()));
        }
    }
    let journal = journal(project, id)?;
    let session = &journal.session;
    if session.plan.is_external() {
        return Err(StartError::External(id.clone()));
    }
    if matches!(session.plan.work, SessionWork::Review(_)) {
        return Err(StartError::Review(id.clone()));
    }
    if let Some(worker) = &session.plan.worker {
        return Err(StartError::OfWorker(id.clone(), worker.clone()));
    }
    let limits = changes.limits.over(session.plan.limits);
    let needs_turn = !changes.allows_tests();
    check_reopening(project, id, session, (limits, needs_turn))?;
    Ok(journal)
}

/// Fails if a session lost its task and no other work is left.
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

/// Fails unless a session ended without being complete, and these limits allow the turn that it needs.
fn check_reopening(
    project: &Project,
    id: &SessionId,
    session: &Session,
    (limits, needs_turn): (SessionLimits, bool),
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
        (SessionLimit::Iterations, session.next_iteration() > limits.max_iterations),
        (SessionLimit::Duration, session.active_ms >= limits.max_duration_ms),
        (SessionLimit::Tokens, session.usage.tokens() >= limits.max_tokens),
        (SessionLimit::Cost, session.usage.cost_micros >= limits.max_cost_micros),
        (SessionLimit::Cost, session.unpriced_turns >= limits.max_unpriced_turns),
    ];
    match used.into_iter().find(|(_, is_reached)| needs_turn && *is_reached) {
        None => Ok(()),
        Some((limit, _)) => Err(StartError::AtLimit {
            session: id.clone(),
            limit,
            reached: with_limits.limit_reached(limit),
        }),
    }
}

/// Returns the session that `resume` without a name continues.
///
/// That is the one with the last event: an open session, or the session that ended last if it can
/// be reopened. A session that needs a person is reopened only with an answer or other limits.
fn find_to_resume(
    project: &Project,
    runner: &HookRunner,
    machine: &str,
    has_decision: bool,
) -> Result<SessionRow, StartError> {
    let is_own = |row: &SessionRow| !is_external(row) && !is_review(row);
    // A running session cannot be resumed.
    let is_free = |row: &SessionRow| {
        let is_ours = row.machine == machine || row.state == SessionState::Paused;
        is_own(row) && is_ours && !is_running(runner, &row.id)
    };
    let open = project.read(|view| view.open_sessions(OPEN_MAX))?;
    let all = project.read(|view| view.sessions(OPEN_MAX))?;
    let can_reopen = |row: &SessionRow| {
        row.is_over() && row.machine == machine && row.state != SessionState::Complete
    };
    let ended = all.into_iter().filter(|row| is_own(row) && can_reopen(row));
    let last = with_last_event(project, open.into_iter().filter(is_free).chain(ended))?;
    let row = last.ok_or(StartError::NothingToResume)?;
    match row.state == SessionState::NeedsHuman && !has_decision {
        true => Err(StartError::NeedsAnswer(row.id)),
        false => Ok(row),
    }
}

/// Returns the session whose last event is the latest.
fn with_last_event(
    project: &Project,
    rows: impl Iterator<Item = SessionRow>,
) -> Result<Option<SessionRow>, EngineError> {
    let rows: Vec<SessionRow> = rows.collect();
    project.read(|view| {
        let mut last: Option<(Seq, SessionRow)> = None;
        for row in rows {
            let version = view.version(&Subject::Session(row.id.clone()))?;
            if last.as_ref().is_none_or(|(latest, _)| version > *latest) {
                last = Some((version, row));
            }
        }
        Ok(last.map(|(_, row)| row))
    })
}

/// Returns the session for `resume`: the named one, else the last one that can continue.
///
/// `has_decision`: the request contains an answer or other limits.
pub fn find_resumable(
    project: &Project,
    runner: &HookRunner,
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

/// Fails if [`prepare_resume`] would refuse these limits or this answer. Stores nothing.
pub fn check_preparation(
    project: &Project,
    id: &SessionId,
    changes: &ResumeChanges,
    text: Option<&str>,
) -> Result<(), StartError> {
    if session(project, id)?.is_over() {
        return to_reopen(project, id, changes, text).map(drop);
    }
    if changes.is_none() { Ok(()) } else { Err(StartError::NotOver(id.clone())) }
}

/// Reopens an ended session, with other limits and an answer. An open session gets the answer as a
/// message.
pub fn prepare_resume(
    project: &Project,
    id: &SessionId,
    changes: &ResumeChanges,
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

/// A session that passed the checks of `resume`. This process holds the session's locks.
#[derive(Debug)]
pub struct ResumableSession {
    id: SessionId,
    /// The plan at the time of the checks.
    pub plan: SessionPlan,
    /// The digest of the hooks, if they are not those of the plan.
    other_hooks: Option<String>,
    frozen: FrozenHooks,
    directory: PathBuf,
    lock: File,
    checkout: Option<File>,
}

/// Returns a session that can be resumed, or the reason why it can't. Stores nothing.
///
/// The session may be over: then it has to be reopened before it is resumed.
pub fn check_resume(
    project: &Project,
    runner: &HookRunner,
    wanted: &str,
    how: ResumeTerms,
    machine: &str,
) -> Result<ResumableSession, StartError> {
    project.authorize(ControlledAction::ResumeSession)?;
    let row = find(project, wanted)?;
    if is_external(&row) {
        return Err(StartError::External(row.id));
    }
    if is_review(&row) {
        return Err(StartError::Review(row.id));
    }
    let may_run_elsewhere =
        row.machine != machine && !row.is_over() && row.state != SessionState::Paused;
    if may_run_elsewhere && !how.take_over {
        return Err(StartError::Elsewhere(row.id, row.machine));
    }
    let hooks = project.hooks()?;
    check_known(runner, &hooks)?;
    // The session has its own copies of the scripts, so only missing or weaker gates matter.
    let mut weakened = gate_agreement::weakened(project, runner)?;
    weakened.retain(|change| !matches!(change.kind, GateChangeKind::Changed(_)));
    check_agreement(weakened)?;
    read_template(project, runner)?;
    let id = row.id.clone();
    let (directory, lock) =
        lock_patiently(runner, &id)?.ok_or_else(|| StartError::Running(id.clone()))?;
    if row.machine != machine {
        be_elsewhere(&directory);
    }
    let session = session(project, &id)?;
    let use_of = match (checkout::has_worktree(&directory), how.share_checkout) {
        (true, _) => CheckoutUse::Worktree(PathBuf::new()),
        (false, true) => CheckoutUse::Shared,
        (false, false) => CheckoutUse::Alone,
    };
    let is_over = session.is_over();
    let plan = session.plan;
    let checkout = checkout::hold(runner, &id, &plan, &use_of)?;
    // A session that is over may get other limits before it is resumed.
    if !is_over {
        project.rules().policy.check_limits(plan.limits).map_err(EngineError::from)?;
    }
    let now = trust::policy_digest(runner.root(), &hooks);
    let other_hooks = Some(now).filter(|now| *now != plan.hooks);
    if other_hooks.is_some() && !how.with_changed_hooks {
        return Err(StartError::OtherHooks(id));
    }
    let frozen = match &plan.scripts {
        Some(scripts) if !how.with_changed_hooks => {
            let known = FrozenSession { id: &id, scripts, directory: &directory };
            FrozenHooks::recall(runner.trust_scope(), &hooks, &known)?
        }
        _ => FrozenHooks::freeze(runner.trust_scope(), &hooks)?,
    };
    Ok(ResumableSession { id, plan, other_hooks, frozen, directory, lock, checkout })
}

impl ResumableSession {
    /// Resumes the session on this machine. Fails if the session is over.
    pub fn resume(self, project: &Project, machine: &str) -> Result<SessionHandle, StartError> {
        let ResumableSession { id, other_hooks, frozen, directory, lock, checkout, .. } = self;
        let mut journal = journal(project, &id)?;
        // Another process may have ended it while this one waited for the lock.
        if journal.session.is_over() {
            let state = journal.session.outcome.as_ref().map_or("over", SessionOutcome::name);
            return Err(StartError::Over(id, state.to_owned()));
        }
        let scripts = Some(frozen.scripts())
            .filter(|scripts| journal.session.plan.scripts.as_ref() != Some(scripts));
        let (run, machine, hooks) = (journal.session.run + 1, machine.to_owned(), other_hooks);
        be_here(&directory, run);
        journal.note(EventBody::SessionResumed(SessionResumed { run, machine, hooks, scripts }));
        mark(&id, &journal.session.plan, &directory)?;
        journal.commit()?;
        let frozen = Some(Arc::new(frozen));
        let opened = SessionHandle::of(id, journal.session, (directory, lock), frozen);
        Ok(opened.holding(checkout))
    }
}

/// Resumes an open session.
pub fn resume(
    project: &Project,
    runner: &HookRunner,
    wanted: &str,
    how: ResumeTerms,
    machine: &str,
) -> Result<SessionHandle, StartError> {
    let row = find(project, wanted)?;
    if row.is_over() {
        return Err(StartError::Over(row.id, row.state.to_string()));
    }
    check_resume(project, runner, row.id.as_str(), how, machine)?.resume(project, machine)
}
