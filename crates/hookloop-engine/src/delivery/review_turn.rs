//! The session of one turn in which a gatekeeper reviews.

use std::fmt;

use hookloop_agents::agent_chain::AgentChain;
use hookloop_config::agents::AgentPermissions;
use hookloop_config::effective::GatekeeperRules;
use hookloop_core::excerpt::demote_headings;
use hookloop_core::hook::HookRegistry;
use hookloop_core::review;
use hookloop_core::session::{
    ConversationPolicy, SessionLimits, SessionWork, StopWhen, TurnEnded, TurnResult,
};
use hookloop_core::shared_budget::Amount;
use hookloop_core::task::Task;
use hookloop_git::step_error::StepError;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::Cancel;

use super::step_outcome::DeliveryHooks;
use crate::delivery_context::title;
use crate::machine::machine;
use crate::project::Project;
use crate::session::checkout::CheckoutUse;
use crate::session::hook_drift::HookDrift;
use crate::session::live_world::{LiveWorld, WorldParts};
use crate::session::observer::NoObserver;
use crate::session::open::{self, SessionRequest};
use crate::session::stop_switch::{RestSwitch, StopSwitch};
use crate::session::{SessionDriver, StartError, prompt};

/// How often a gatekeeper that gives no verdict is asked.
pub(super) const ASKED_MAX: u32 = 2;
const REVIEW_MS: u64 = 30 * 60 * 1_000;

/// One turn of a gatekeeper.
#[derive(Clone, Debug)]
pub(super) struct ReviewTurn<'r> {
    pub(super) project: &'r Project,
    /// The runner at the directory in which the gatekeeper reads.
    pub(super) place: &'r HookRunner,
    /// The name of the session.
    pub(super) name: String,
    pub(super) gatekeeper: &'r GatekeeperRules,
    /// The agent that acts as the gatekeeper.
    pub(super) agent: &'r str,
    /// The rest of the budget of the session that asks.
    pub(super) left: Option<Amount>,
    pub(super) cancel: Option<&'r Cancel>,
}

impl ReviewTurn<'_> {
    /// Returns the limits of a review: those of the project, and the rest of the session's cost and tokens.
    fn limits(&self) -> SessionLimits {
        let of_project = self.project.rules().limits.session;
        let mut limits = SessionLimits {
            max_iterations: 1,
            max_errors: 2,
            max_duration_ms: REVIEW_MS,
            ..of_project
        };
        if let Some(left) = self.left {
            limits.max_cost_micros = limits.max_cost_micros.min(left.cost_micros);
            limits.max_tokens = limits.max_tokens.min(left.tokens);
        }
        limits.within(of_project)
    }

    /// Runs a review as a session of one turn, and returns the agent's final message.
    pub(super) fn hold(&self, words: String) -> Result<String, StepError> {
        let project = self.project;
        let by = &self.gatekeeper.name;
        let why = |error: &dyn fmt::Display| format!("the review by {by}: {error}");
        let human = |error: &dyn fmt::Display| StepError::NeedsHuman { why: why(error) };
        let again = |error: &dyn fmt::Display| StepError::Retry { why: why(error) };
        let limits = self.limits();
        if limits.max_cost_micros == 0 || limits.max_tokens == 0 {
            return Err(human(&"the session's limits of cost and tokens leave nothing for it"));
        }
        let request = SessionRequest {
            name: Some(self.name.clone()),
            work: SessionWork::Review(words),
            agent: self.agent.to_owned(),
            fallback: None,
            conversation: ConversationPolicy::Fresh,
            promises: Vec::new(),
            model: self.gatekeeper.model.clone(),
            permissions: Some(AgentPermissions::Read.name().to_owned()),
            stop_when: Some(vec![StopWhen::Turn]),
            at_retry_limit: None,
            limits,
            machine: machine(),
            no_changes_ok: false,
            may_change: Vec::new(),
            worker: None,
            checkout: CheckoutUse::default(),
        };
        let opened = open::start(project, self.place, request).map_err(|error| match error {
            StartError::Engine(_) | StartError::Io { .. } => again(&error),
            error => human(&error),
        })?;
        let stop = StopSwitch::new().map_err(|error| again(&error))?;
        let following = self.cancel.map(|cancel| stop.follows(cancel)).transpose();
        let _following = following.map_err(|error| again(&error))?;
        let around = WorldParts {
            project,
            steps: &DeliveryHooks,
            runner: self.place,
            directory: opened.directory.clone(),
            template: prompt::REVIEW.to_owned(),
            observer: NoObserver,
            stop,
            drift: HookDrift::default(),
            active_ms: 0,
            duration_ms: opened.plan.limits.max_duration_ms,
            rest: RestSwitch::default(),
        };
        let agents = AgentChain::new(project.rules(), &opened.plan);
        let world = LiveWorld::new(around, agents).map_err(|error| again(&error))?;
        let driver = SessionDriver::of(project, &opened, world, HookRegistry::default());
        let mut driver = driver
            .map_err(|error| again(&error))?
            .ok_or_else(|| human(&"its session is not there"))?;
        driver.run().map_err(|error| again(&error))?;
        opened.tidy();
        match &driver.session().last {
            Some(TurnEnded { result: TurnResult::Finished, message, .. }) => Ok(message.clone()),
            Some(ended @ TurnEnded { fault: Some(fault), .. }) => {
                let why = ended.failure_line().unwrap_or_default();
                Err(human(&format_args!("it failed: {why}. {}", fault.remedy)))
            }
            Some(TurnEnded { result: TurnResult::Failed { error }, .. }) => {
                Err(again(&format_args!("it failed: {error}")))
            }
            _ => Err(again(&"it did not end")),
        }
    }
}

/// Writes the gatekeeper's instructions into a review's prompt.
pub(super) fn write_focus(f: &mut fmt::Formatter<'_>, gatekeeper: &GatekeeperRules) -> fmt::Result {
    match gatekeeper.prompt.trim() {
        "" => Ok(()),
        focus => write!(f, "\n# Your focus\n\n{focus}\n"),
    }
}

/// Writes the goal and the description of a task into a review's prompt.
pub(super) fn write_task(f: &mut fmt::Formatter<'_>, task: &Task) -> fmt::Result {
    write!(f, "\n# Task {}: {}\n\n", task.id, title(task))?;
    match task.spec.description.trim() {
        "" => Ok(()),
        description => writeln!(f, "{}\n", demote_headings(description)),
    }
}

/// Writes the end of a review's prompt: the form of the answer, and the reason why the previous one was no verdict.
pub(super) fn write_answer_rules(
    f: &mut fmt::Formatter<'_>,
    id: &str,
    why_not: &str,
) -> fmt::Result {
    write!(
        f,
        "\n# Your answer\n\n\
         Answer with one JSON object and nothing else, as this schema describes. Any other answer is no verdict:\n\
         {}\n",
        review::schema(id)
    )?;
    if !why_not.is_empty() {
        writeln!(f, "\nYour last answer was no verdict: {why_not}")?;
    }
    Ok(())
}
