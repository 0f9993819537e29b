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

/// Do the reactions and workflows that are waiting, and make the tasks of schedules that are due
///
/// Every command that changes something does those that it leads to, unless someone stays to do them: on a
/// store that many machines share, run this with --stay on one or more of them. One at a time has the place; another
/// takes over within seconds of its last sign of life. It also makes tasks ready again whose holders
/// have shown no life for their lease, and tells you what needs a human (see `hookloop inbox`).
#[derive(clap::Args)]
pub(crate) struct DispatchArgs {
    /// Stay, and do those that come
    #[arg(long)]
    stay: bool,
}

impl DispatchArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let dispatcher = CallerIdentity::service(ActorKind::Dispatcher);
        let project = context.project()?.for_caller(Caller::known(&user_name(), dispatcher));
        if let Some(left) = project.reactions_left() {
            return Err(CliError::refused(format!("reactions can't be run here: {left}"))
                .hint("hookloop dispatch, in a terminal of your own"));
        }
        if !self.stay {
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
            ("standby", "Another dispatcher has the place; waiting for it to fall silent")
        }
    };
    if out.json {
        out.json(&json!({ "dispatcher": word }))?
    } else {
        out.line(text)?
    }
    out.flush()
}
