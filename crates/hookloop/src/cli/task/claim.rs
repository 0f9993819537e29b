use hookloop_engine::claim::{ClaimRequest, ClaimedTask, WantedTask, WhyNone};
use hookloop_engine::project::Project;

use super::holder::{self, ClaimantArgs};
use super::{follow_up, show_done};
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::ids;
use crate::json_output::ClaimedJson;

/// Claim a ready task: the most urgent one, then the oldest
///
/// Of several claimants, one gets the task. The command prints the epoch of the claim: pass it as --epoch to
/// `task complete`, `block`, `release` and `heartbeat`. They are refused once another claimant has the task. Send a
/// heartbeat well within the lease.
#[derive(clap::Args)]
pub(crate) struct TaskClaimArgs {
    /// Id of the task, or the start of it [default: the first ready task]
    task: Option<String>,

    /// Type of the task (repeatable)
    #[arg(short, long = "type", value_name = "TYPE", conflicts_with = "task")]
    types: Vec<String>,

    #[command(flatten)]
    holder: ClaimantArgs,
}

impl TaskClaimArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let nothing = match self.types.as_slice() {
            [] => "no task is ready".to_owned(),
            types => format!("no task of type {} is ready", types.join(" or ")),
        };
        let has_no_types = self.types.is_empty();
        let wanted = match (&self.task, self.types) {
            (Some(task), _) => WantedTask::Task(ids::resolve(&project, task)?),
            (None, types) if types.is_empty() => WantedTask::Any,
            (None, types) => WantedTask::Types(types),
        };
        let agent = self.holder.agent();
        let lease = self.holder.lease;
        let request =
            ClaimRequest { worker: agent.clone(), agent, lease, wanted, labels: Vec::new() };
        match project.claim(&request)? {
            Some(claimed) => show(context, &project, "Claimed", &self.holder, &claimed),
            None => Err(match project.why_none(&request.wanted)? {
                why @ WhyNone::NotForAgent => {
                    let closed = project.closed_in_words(&request.worker)?;
                    let words = [vec![why.to_string()], closed].concat().join("; ");
                    CliError::refused(words).hint("hookloop task list --state ready")
                }
                why @ WhyNone::Full(_) => {
                    CliError::refused(why).hint("hookloop task list --state active")
                }
                why @ WhyNone::NothingReady { next: Some(_) } if has_no_types => {
                    CliError::refused(why).hint("hookloop task list --state created")
                }
                WhyNone::NothingReady { .. } => CliError::refused(nothing).hint("hookloop status"),
            }),
        }
    }
}

/// Prints the claim, then runs the reactions.
pub(super) fn show(
    context: &mut CommandContext,
    project: &Project,
    verb: &str,
    holder: &ClaimantArgs,
    claimed: &ClaimedTask,
) -> CliResult {
    let mut claimed = claimed.clone();
    if claimed.done.pending {
        project.react_here(&mut claimed.done)?;
    }
    let done = &claimed.done;
    if context.out.json {
        context.out.json(&ClaimedJson::new(&claimed, holder.lease))?;
    } else {
        show_done(context, project, verb, Some(&claimed.task.id), done)?;
        let lease = holder::said(holder.lease);
        context.out.line(format_args!("  epoch {}, lease {lease}", claimed.epoch))?;
    }
    follow_up(context, project, done)
}
