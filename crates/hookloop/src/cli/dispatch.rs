use hookloop_core::authority::ActorKind;
use hookloop_engine::caller::{Caller, CallerIdentity};
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::dispatcher::{DispatchRound, Dispatcher};
use hookloop_fleet::notify::Notifier;
use serde_json::json;

use super::inbox;
use crate::cli::context::CommandContext;
use crate::environment::{machine, user_name};
use crate::error::{CliError, CliResult};

/// Run pending reactions, workflows and schedules
///
/// Every command that changes something runs the reactions that it leads to, unless a dispatcher runs. On a store
/// that many machines share, run `hookloop dispatch --daemon` on one or more of them. One dispatcher at a time holds
/// the leader lease; another one takes over within seconds of the leader's last heartbeat. The leader also makes
/// tasks ready again whose claimants missed their heartbeats, and sends notifications (see `hookloop inbox`).
#[derive(clap::Args)]
pub(crate) struct DispatchArgs {
    /// Run until stopped, and dispatch new work as it arrives
    #[arg(long)]
    daemon: bool,
}

impl DispatchArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let dispatcher = CallerIdentity::service(ActorKind::Dispatcher);
        let project = context.project()?.for_caller(Caller::known(&user_name(), dispatcher));
        if let Some(left) = project.reactions_left() {
            return Err(CliError::refused(format!("reactions can't run here: {left}"))
                .hint("hookloop dispatch, in a terminal of your own"));
        }
        if !self.daemon {
            let mut done = CommandOutcome::default();
            project.fire_schedules(project.now())?;
            project.settle_reactions(&mut done)?;
            project.run_workflows()?;
            return match done.left {
                Some(left) if !context.out.json => context.out.line(left),
                _ => Ok(()),
            };
        }
        let mut dispatcher = Dispatcher::new(&project, &machine())?;
        let notifier = Notifier::start(&project, context.user()?.channels)?;
        let mut before = None;
        loop {
            let round = dispatcher.round()?;
            for report in notifier.iter().flat_map(Notifier::reports) {
                inbox::tell(context, &report?)?;
                context.out.flush()?;
            }
            if before.replace(round) != Some(round) {
                say(context, round)?;
            }
        }
    }
}

fn say(context: &mut CommandContext, round: DispatchRound) -> CliResult {
    let out = &mut context.out;
    let (word, text) = match round {
        DispatchRound::Leading => ("leading", "Dispatching"),
        DispatchRound::Standby => {
            ("standby", "Another dispatcher holds the leader lease; waiting for it to expire")
        }
    };
    if out.json {
        out.json(&json!({ "dispatcher": word }))?
    } else {
        out.line(text)?
    }
    out.flush()
}
