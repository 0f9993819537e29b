//! `hookloop stop`

use std::time::{Duration, Instant};

use hookloop_core::id::SessionId;
use hookloop_engine::project::Project;
use hookloop_engine::session::control::{self, StopRequest};
use hookloop_engine::session::{lookup, session_directory};
use hookloop_hooks::runner::HookRunner;
use serde_json::json;

use super::session::runner;
use crate::cli::context::CommandContext;
use crate::environment::machine;
use crate::error::CliResult;
use crate::output::DIM;

/// How long the command waits until the session has stopped, and how often it checks.
const WAIT_MAX: Duration = Duration::from_secs(15);
const WAIT_POLL: Duration = Duration::from_millis(50);

/// Stop a running session now
///
/// Ends the agent and its hooks, in another terminal, too. `session_end` hooks run. The session can continue later:
/// `hookloop resume`.
#[derive(clap::Args)]
pub(crate) struct StopArgs {
    /// Id, start of the id, or name [default: the session that runs in this directory]
    session: Option<String>,
}

impl StopArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let runner = runner(&project)?;
        let request = control::stop(&project, runner, self.session.as_deref(), &machine())?;
        let has_stopped = wait(&project, runner, &request);
        let StopRequest { id, machine, is_here } = request;
        let next = has_stopped.then(|| next(&project, &id)).flatten();
        let out = &mut context.out;
        if out.json {
            return out.json(&json!({ "session": id, "stopped": has_stopped, "next": next }));
        }
        match (has_stopped, is_here) {
            (true, _) => out.line(format_args!("Session {id} has stopped"))?,
            (false, true) => out.line(format_args!("Session {id} is stopping"))?,
            (false, false) => {
                let text = format!("Session {id} runs on {machine}: it stops after its next step");
                out.line(text)?;
            }
        }
        match next {
            Some(next) => out.line(format_args!("  {DIM}run:{DIM:#} {next}")),
            None => Ok(()),
        }
    }
}

/// Waits until no program of this machine has the session any more.
fn wait(project: &Project, runner: &HookRunner, request: &StopRequest) -> bool {
    let began = Instant::now();
    while request.is_here && began.elapsed() < WAIT_MAX {
        let is_over =
            || lookup::session(project, &request.id).is_ok_and(|session| session.is_over());
        if !session_directory::is_running(runner, &request.id) && is_over() {
            return true;
        }
        std::thread::sleep(WAIT_POLL);
    }
    false
}

/// The command that continues the work: a worker's task was blocked, and waits in the inbox.
fn next(project: &Project, id: &SessionId) -> Option<String> {
    // The stop is stored; only the suggested command is left out.
    let session = lookup::session(project, id).ok()?;
    Some(match session.plan.worker {
        Some(_) => "hookloop inbox".to_owned(),
        None => format!("hookloop resume {id}"),
    })
}
