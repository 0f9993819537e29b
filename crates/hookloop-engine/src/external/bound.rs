//! Requests of an agent that a session started.
//!
//! The loop does not wait for them. A completion claim by tools counts like a promise in the final
//! message, at the end of the turn.

use hookloop_config::clock::now;
use hookloop_core::event::EventBody;
use hookloop_core::id::TaskId;
use hookloop_core::point::Point;
use hookloop_core::promise::{self, Promise};
use hookloop_core::session::stop::{self, ClaimJudge};
use hookloop_core::session::{
    CompletionClaimed, Session, SessionPhase, SessionWork, StopDecision, TurnKind,
};
use serde_json::Map;

use super::agent_messages::{
    AgentToolError, BoundSession, LoopCompletion, LoopSignal, LoopStart, LoopState, StopEvaluation,
    ValidationReport, refused,
};
use super::agent_tools::{AgentTools, task_id};
use crate::session::journal::SessionJournal;
use crate::session::{lookup, session_directory, spec_file};

impl AgentTools {
    /// Returns the session that started this agent, or an error if `iteration` names another one.
    pub(super) fn bound_to(&self, iteration: &str) -> Result<Option<BoundSession>, AgentToolError> {
        let Some(bound) = self.bound() else { return Ok(None) };
        match bound.session.as_str() == iteration {
            true => Ok(Some(bound.clone())),
            false => Err(refused(
                "not_allowed",
                format!("you work in session {}", bound.session),
                format!("use iterationId {}", bound.session),
            )),
        }
    }

    /// Returns the session that started this agent, or an error if `task` is not its task.
    pub(super) fn bound_for(&self, task: &TaskId) -> Result<Option<BoundSession>, AgentToolError> {
        let Some(bound) = self.bound() else { return Ok(None) };
        match self.bound_task()?.as_ref() == Some(task) {
            true => Ok(Some(bound.clone())),
            false => Err(refused(
                "not_allowed",
                format!("task `{task}` is not the task of your session"),
                "leave the task to other agents; you can add a note",
            )),
        }
    }

    pub(super) fn bound_task(&self) -> Result<Option<TaskId>, AgentToolError> {
        let Some(bound) = self.bound() else { return Ok(None) };
        Ok(self.turn_of(bound)?.session.task.map(|taken| taken.task))
    }

    /// Returns the epoch of the session's claim on the task.
    pub(super) fn bound_epoch(&self, task: &TaskId) -> Result<Option<u64>, AgentToolError> {
        let Some(bound) = self.bound() else { return Ok(None) };
        let taken = self.turn_of(bound)?.session.task;
        Ok(taken.filter(|taken| taken.task == *task).map(|taken| taken.epoch))
    }

    /// Returns the session, or an error if it is not in the turn of this agent.
    fn turn_of(&self, bound: &BoundSession) -> Result<SessionJournal<'_>, AgentToolError> {
        let over = |why: &str| {
            let message = format!("session {} {why}", bound.session);
            refused("stale_claim", message, "stop: your session is over")
        };
        let journal = SessionJournal::open(self.project(), &bound.session)?;
        let journal = journal.ok_or_else(|| over("is not known here"))?;
        match journal.session.phase {
            _ if journal.session.run != bound.run => Err(over("was resumed by another process")),
            SessionPhase::Turn(_) => Ok(journal),
            _ => Err(over("is not in the turn that you were started for")),
        }
    }

    /// Records that the agent claims completion. The gates run at the end of its turn.
    pub(super) fn claim(
        &self,
        bound: &BoundSession,
        promise: Promise,
        reason: Option<String>,
    ) -> Result<LoopCompletion, AgentToolError> {
        let mut journal = self.turn_of(bound)?;
        let known =
            |claimed: &CompletionClaimed| claimed.claim == promise && claimed.reason == reason;
        if !journal.session.claims.iter().any(known) {
            if journal.session.phase != SessionPhase::Turn(TurnKind::Work) {
                let message = "there is nothing to claim in this turn";
                return Err(refused("not_allowed", message, "answer, and end your turn"));
            }
            let claimed = CompletionClaimed { claim: promise, reason: reason.clone() };
            journal.note(EventBody::CompletionClaimed(claimed));
            journal.commit()?;
        }
        let Session { task, iteration, .. } = journal.session;
        Ok(LoopCompletion {
            id: bound.session.clone(),
            task: task.map(|taken| taken.task),
            at: now(),
            iterations: iteration,
            promise,
            is_claim: true,
            prompt: None,
        })
    }

    pub(super) fn join(
        &self,
        bound: &BoundSession,
        request: &LoopStart,
    ) -> Result<LoopState, AgentToolError> {
        let session = self.turn_of(bound)?.session;
        let task = session.task.map(|taken| taken.task);
        if task.as_ref().is_some_and(|task| task.as_str() != request.task) {
            let wanted = task_id(&request.task)?;
            self.bound_for(&wanted)?;
        }
        let limits = session.plan.limits;
        Ok(LoopState {
            id: bound.session.clone(),
            task,
            number: session.iteration,
            max_iterations: limits.max_iterations,
            promises: vec![Promise::Complete, Promise::Blocked, Promise::Escalate],
            circuit_breaker: limits.max_no_progress,
            started_at: now(),
            prompt: None,
        })
    }

    /// Returns the promises in an output that count in the session that started this agent.
    pub(super) fn bound_promises(
        &self,
        bound: &BoundSession,
        output: &str,
    ) -> Result<Vec<Promise>, AgentToolError> {
        let found = promise::read(output);
        if found.inline.is_none() {
            return Ok(found.alone);
        }
        let judge = self.judge_of(&self.turn_of(bound)?.session)?;
        Ok(found.counted(judge == ClaimJudge::Gates))
    }

    /// Returns the judge of the work of the session that started this agent.
    fn judge_of(&self, session: &Session) -> Result<ClaimJudge, AgentToolError> {
        let task = match &session.task {
            Some(taken) => self.project().read(|view| view.task(&taken.task))?,
            None => None,
        };
        let kind = task.as_ref().and_then(|row| row.task.spec.kind.as_deref());
        let hooks = self.project().hooks()?;
        let is_gated = |point: &Point| {
            !hooks.resolve_for(point.name(), kind, Some(session.agent())).is_empty()
        };
        Ok(match [Point::Stop, Point::Validation].iter().any(is_gated) {
            true => ClaimJudge::Gates,
            false => ClaimJudge::Nobody,
        })
    }

    pub(super) fn evaluate_bound(
        &self,
        bound: &BoundSession,
        promises: &[Promise],
    ) -> Result<StopEvaluation, AgentToolError> {
        let session = self.turn_of(bound)?.session;
        let nothing = || {
            stop::StopVote::new(
                StopDecision::Continue,
                "you reported none of COMPLETE, BLOCKED and ESCALATE",
            )
        };
        let judge = self.judge_of(&session)?;
        let said = stop::by_promise(promises, judge).unwrap_or_else(nothing);
        let reason = match said.decision {
            StopDecision::Continue => said.reason,
            _ => format!("{}; gates are held against it when your turn ends", said.reason),
        };
        Ok(StopEvaluation {
            hook: "default".to_owned(),
            task: session.task.map(|taken| taken.task),
            iteration: session.iteration,
            action: said.decision,
            reason,
            next_prompt: None,
            checkpoint_created: false,
            metadata: Map::new(),
        })
    }

    /// Records the promises in the output as claims. The loop decides at the end of the turn.
    pub(super) fn validate_bound(
        &self,
        bound: &BoundSession,
        output: &str,
    ) -> Result<ValidationReport, AgentToolError> {
        let promises = self.bound_promises(bound, output)?;
        for promise in &promises {
            self.claim(bound, *promise, None)?;
        }
        let evaluated = self.evaluate_bound(bound, &promises)?;
        let signal = match evaluated.action {
            StopDecision::Continue => LoopSignal::Continue,
            StopDecision::Complete => LoopSignal::Complete,
            StopDecision::Escalate if promises.contains(&Promise::Blocked) => LoopSignal::Blocked,
            StopDecision::Escalate => LoopSignal::Escalate,
        };
        Ok(ValidationReport {
            id: bound.session.clone(),
            number: evaluated.iteration,
            passed: false,
            signal,
            promises,
            feedback: vec![
                "end your turn: the gates run then, and you hear what they say".to_owned(),
            ],
            results: Vec::new(),
            hook: Some(evaluated),
        })
    }

    /// Returns the specification of the session, as text.
    pub(super) fn spec(&self) -> Result<Option<String>, AgentToolError> {
        let Some(bound) = self.bound() else { return Ok(None) };
        match self.turn_of(bound)?.session.plan.work {
            SessionWork::Prompt(prompt) => Ok(Some(prompt)),
            SessionWork::Spec(path) => {
                let runner = lookup::runner(self.project())?;
                let directory = session_directory::directory(runner, &bound.session);
                spec_file::read(&runner.root().join(&path), &directory).map(Some).map_err(|why| {
                    refused("no_spec", format!("{path}: {why}"), "go by your prompt")
                })
            }
            SessionWork::Tasks
            | SessionWork::Task(_)
            | SessionWork::Own
            | SessionWork::Review(_) => Ok(None),
        }
    }
}
