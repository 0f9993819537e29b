//! Runs a session to its end or its next pause, with everything around it: agents, hooks, traces and the stop
//! signal.

use std::path::Path;

use hookloop_agents::agent_chain::AgentChain;
use hookloop_core::hook::HookRegistry;
use hookloop_core::session::{Session, SessionWork};

use crate::delivery::step_outcome::DeliveryHooks;
use crate::error::EngineError;
use crate::project::{Project, SessionTraces};
use crate::session::drive::SessionDriver;
use crate::session::hook_drift::HookDrift;
use crate::session::live_world::{LiveWorld, WorldParts};
use crate::session::now::NowWriter;
use crate::session::observer::SessionObserver;
use crate::session::open::SessionHandle;
use crate::session::prompt_template::{PromptTemplateError, read_template};
use crate::session::stop_switch::{RestSwitch, StopSwitch, StopWatch};
use crate::session::{rooms, turn_files};

/// The reason why a session could not be performed to its end.
#[derive(Debug, thiserror::Error)]
pub enum PerformError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Template(#[from] PromptTemplateError),
    #[error("there is no session `{0}`")]
    NoSession(String),
    #[error("there is no directory to work in")]
    Nowhere,
}

/// The observer of a session, and the signals that stop or pause it.
#[derive(Debug)]
pub struct SessionAttendance<'a, O> {
    pub observer: O,
    pub stop: StopSwitch,
    pub rest: RestSwitch,
    /// The project's configuration file, which is watched for changes.
    pub config: &'a Path,
}

/// Performs a session until it ends or pauses.
pub fn perform<O: SessionObserver>(
    project: &Project,
    opened: &SessionHandle,
    around: SessionAttendance<'_, O>,
) -> Result<Session, PerformError> {
    // Messages to the session are seen when they are sent.
    project.store().go_live().map_err(EngineError::from)?;
    let runner = project.runner().ok_or(PerformError::Nowhere)?;
    let runner = &runner.held_to(opened.frozen.clone());
    let rules = project.rules();
    let agents = match opened.is_ending {
        // An ending session runs no agent, so the agent need not be installed.
        true => AgentChain::nobody(rules, &opened.plan),
        false => AgentChain::new(rules, &opened.plan),
    };
    let hooks = match opened.plan.work {
        // Reviews run no hooks of the project, not even when they are resumed after a crash.
        SessionWork::Review(_) => HookRegistry::default(),
        _ => project.hooks()?,
    };
    let SessionAttendance { observer, stop, rest, config } = around;
    let mut drift = HookDrift::new(runner, config, &hooks, opened.frozen.as_deref());
    if let SessionWork::Spec(path) = &opened.plan.work {
        drift.watch(runner.home().join(path));
    }
    let surroundings = WorldParts {
        project,
        steps: &DeliveryHooks,
        runner,
        directory: opened.directory.clone(),
        template: match opened.is_ending {
            // An ending session sends no prompt.
            true => String::new(),
            false => read_template(project, runner)?,
        },
        observer,
        stop,
        drift,
        active_ms: opened.active_ms,
        duration_ms: opened.plan.limits.max_duration_ms,
        rest,
    };
    // The watch exports traces until the session is over here. Then it exports the rest.
    let is_shown =
        |_: &&SessionTraces| opened.plan.trace_parent.is_none_or(|parent| parent.is_sampled);
    let traces = project.traces.as_ref().filter(is_shown);
    let _watch = traces.map(|traces| traces.exporter.watch(project, &opened.id));
    let _stop_watch = StopWatch::new(&opened.directory, surroundings.stop.clone())?;
    let cancel = surroundings.stop.cancel().clone();
    let mut world = LiveWorld::new(surroundings, agents)?;
    let _now = NowWriter::start(&opened.directory, world.board());
    world.remember_base_for(&hooks);
    let driver = SessionDriver::of(project, opened, world, hooks)?;
    let no_session = || PerformError::NoSession(opened.id.to_string());
    let mut driver = driver.ok_or_else(no_session)?.after(opened.active_ms);
    driver.run()?;
    let mut session = driver.session().clone();
    // The log has the time up to the last turn. Gates and the end took some, too.
    session.active_ms = driver.active_ms();
    if session.is_over() {
        opened.tidy();
        if turn_files::collect_old(project, runner, &cancel) {
            rooms::collect_old(runner, &cancel);
        }
    }
    Ok(session)
}
