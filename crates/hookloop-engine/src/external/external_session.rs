//! An external session. Between two calls it exists only in the log.

use hookloop_agents::agent_chain::AgentChain;
use hookloop_agents::{MESSAGE_MAX, TurnReport, clipped};
use hookloop_config::clock::now;
use hookloop_core::event::EventBody;
use hookloop_core::id::SessionId;
use hookloop_core::promise::Promise;
use hookloop_core::session::facts::TaskExit;
use hookloop_core::session::{
    NextStep, Session, SessionLimits, SessionOutcome, SessionPhase, SessionWork, StopWhen,
    TurnKind, TurnResult,
};
use hookloop_git::files::WatchedFiles;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust;
use hookloop_store::log::Seq;

use super::baseline::{self, TurnBaseline};
use crate::delivery::step_outcome::DeliveryHooks;
use crate::error::EngineError;
use crate::machine::machine;
use crate::project::Project;
use crate::session::checkout::CheckoutUse;
use crate::session::hook_drift::HookDrift;
use crate::session::journal::SessionJournal;
use crate::session::live_world::{LiveWorld, WorldParts};
use crate::session::lookup::runner;
use crate::session::observer::NoObserver;
use crate::session::open::{self, SessionHandle, SessionRequest};
use crate::session::prompt::told;
use crate::session::stop_switch::{RestSwitch, StopSwitch};
use crate::session::world::SessionWorld;
use crate::session::{SessionDriver, StartError};

pub(super) type PerformedStep<'p> = SessionDriver<'p, LiveWorld<'p, NoObserver>>;

/// An external session that this process has open.
#[derive(Debug)]
pub(super) struct ExternalSession {
    opened: SessionHandle,
    /// The session and its position in the log after the last call.
    known: Option<(Session, Seq)>,
    files: WatchedFiles,
    /// The number of ended turns when the files of the current turn were read.
    baseline_turns: Option<u32>,
}

/// The parameters of a new external session.
pub(super) struct SessionPurpose {
    pub(super) name: String,
    /// The agent of the session, as `external:…`.
    pub(super) agent: String,
    pub(super) work: SessionWork,
    pub(super) stop_when: Vec<StopWhen>,
    pub(super) promises: Vec<Promise>,
    pub(super) limits: SessionLimits,
}

impl ExternalSession {
    pub(super) fn start(
        project: &Project,
        runner: &HookRunner,
        purpose: SessionPurpose,
    ) -> Result<ExternalSession, StartError> {
        let SessionPurpose { name, agent, work, stop_when, promises, limits } = purpose;
        let request = SessionRequest {
            name: Some(name),
            work,
            agent,
            fallback: None,
            conversation: hookloop_core::session::ConversationPolicy::Continue,
            promises,
            model: None,
            permissions: None,
            stop_when: Some(stop_when),
            at_retry_limit: None,
            limits,
            machine: machine(),
            no_changes_ok: false,
            may_change: Vec::new(),
            worker: None,
            checkout: CheckoutUse::default(),
        };
        let opened = open::start(project, runner, request)?;
        Ok(ExternalSession {
            opened,
            known: None,
            files: WatchedFiles::default(),
            baseline_turns: None,
        })
    }

    /// Opens an existing session. Returns [`StartError::Running`] if another process has it.
    pub(super) fn find(
        project: &Project,
        runner: &HookRunner,
        id: &SessionId,
    ) -> Result<ExternalSession, StartError> {
        let opened = SessionHandle::visit(project, runner, id)?;
        let baseline = TurnBaseline::read(&opened.directory);
        let baseline_turns = baseline.as_ref().map(|baseline| baseline.turns);
        let files = WatchedFiles::after(baseline.map(|baseline| baseline.files));
        Ok(ExternalSession { opened, known: None, files, baseline_turns })
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.opened.id
    }

    /// Runs `what` in the session. Completed steps stay stored even if a later one fails.
    pub(super) fn perform<T>(
        &mut self,
        project: &Project,
        stop: &StopSwitch,
        what: impl FnOnce(&mut PerformedStep<'_>) -> Result<T, EngineError>,
    ) -> Result<T, StartError> {
        let runner = &runner(project)?.held_to(self.opened.frozen.clone());
        let hooks = project.hooks()?;
        let around = WorldParts {
            project,
            steps: &DeliveryHooks,
            runner,
            directory: self.opened.directory.clone(),
            template: String::new(),
            observer: NoObserver,
            stop: stop.clone(),
            drift: HookDrift::of_scripts(runner, self.opened.frozen.as_deref()),
            active_ms: self.opened.active_ms,
            duration_ms: self.opened.plan.limits.max_duration_ms,
            rest: RestSwitch::default(),
        };
        let agents = AgentChain::nobody(project.rules(), &self.opened.plan);
        let failed = |source| StartError::Io { path: self.opened.directory.clone(), source };
        let mut world = LiveWorld::new(around, agents).map_err(failed)?;
        std::mem::swap(world.files(), &mut self.files);
        world.remember_base_for(&hooks);
        let id = &self.opened.id;
        let journal = match self.known.take() {
            Some(known) => SessionJournal::known(project, id, known)?,
            None => SessionJournal::open(project, id)?
                .ok_or_else(|| StartError::NoSuchSession(id.to_string()))?,
        };
        let mut driver = SessionDriver::with(journal, world, hooks).after(self.opened.active_ms);
        driver.pick_up_task()?;
        let done = what(&mut driver);
        if done.is_ok() {
            driver.commit()?;
        }
        let is_over = driver.session().is_over();
        let turns = driver.session().turns;
        let begins_turn = matches!(driver.session().phase, SessionPhase::Turn(_))
            && self.baseline_turns != Some(turns);
        self.opened.active_ms = driver.active_ms();
        let (journal, mut world) = driver.into_parts();
        let has_looked = begins_turn && world.look_at_files().is_some();
        std::mem::swap(world.files(), &mut self.files);
        drop(world);
        self.known = journal.into_known();
        if has_looked {
            baseline::write(&self.opened.directory, turns, &self.files);
            self.baseline_turns = Some(turns);
        }
        if is_over {
            baseline::forget(&self.opened.directory);
            self.opened.tidy();
        }
        Ok(done?)
    }
}

impl PerformedStep<'_> {
    /// Ends a session whose hooks changed, because the new gates prove something else.
    pub(super) fn hold_to_hooks(&mut self, runner: &HookRunner) -> Result<(), EngineError> {
        let session = &self.journal.session;
        let is_same = trust::policy_digest(runner.root(), &self.hooks) == session.plan.hooks;
        let is_at_stake = match session.outcome {
            None | Some(SessionOutcome::Complete { .. }) => !session.is_over(),
            Some(_) => false,
        };
        if is_same || !is_at_stake {
            return Ok(());
        }
        let reason = "the hooks are not those that the session began with".to_owned();
        // No worker can claim the task before a person has seen it.
        self.leave_task(TaskExit::Blocked, Some(reason.clone()))?;
        self.journal.note(EventBody::SessionEnding(SessionOutcome::NeedsHuman { reason }));
        Ok(())
    }

    /// Ends the external session's turn with this report.
    pub(super) fn hear(&mut self, kind: TurnKind, report: TurnReport) -> Result<(), EngineError> {
        // Usually the last stored event is the start of the turn.
        let last = self.journal.project.log().history(&self.journal.subject(), 1)?;
        let took_ms = last.last().map_or(0, |last| now().millis_since(last.event.at));
        self.end_turn(kind, report, u64::try_from(took_ms).unwrap_or(0))
    }

    /// Performs steps until the external session's turn, and returns the output of skipped turns.
    ///
    /// It skips turns that only deliver output.
    pub(super) fn go_on(
        &mut self,
        halts: impl Fn(&NextStep) -> bool,
    ) -> Result<(NextStep, Option<String>), EngineError> {
        let mut told = Vec::new();
        loop {
            match self.advance(&halts)? {
                NextStep::Turn(kind @ (TurnKind::Delivery | TurnKind::Recovery)) => {
                    told.extend(self.bound());
                    self.end_turn(kind, said(""), 0)?;
                }
                step => return Ok((step, joined(told))),
            }
        }
    }

    /// Returns the output that the current turn has for the agent.
    pub(super) fn bound(&self) -> Option<String> {
        let Session { bound, plan, .. } = &self.journal.session;
        joined(bound.iter().map(|piped| told(piped, &plan.fence)))
    }

    /// Returns the pending output for the agent's next turn.
    pub(super) fn waiting(&self) -> Vec<String> {
        let Session { pending, plan, .. } = &self.journal.session;
        pending.iter().map(|piped| told(piped, &plan.fence)).collect()
    }
}

/// Joins texts with blank lines. Returns none if there are none.
pub(super) fn joined(texts: impl IntoIterator<Item = String>) -> Option<String> {
    let all: Vec<String> = texts.into_iter().collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// Returns the report of a turn that ended with this message.
pub(super) fn said(message: &str) -> TurnReport {
    TurnReport {
        result: TurnResult::Finished,
        promises: hookloop_core::promise::promises(message),
        message: clipped(message, MESSAGE_MAX),
        ..TurnReport::cancelled()
    }
}
