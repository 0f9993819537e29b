use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::AfterLoss;
use hookloop_engine::store::{LogDefect, LogError, RebuiltView, StoreError, UNREADABLE_VIEW};
use serde_json::json;

use super::verify::CheckedLog;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::progress;

/// Make the view again from the log
///
/// The view holds nothing that the log does not. The state hash before and after tells whether it
/// was right. The log is checked first: if acknowledged events are missing, the command stops.
#[derive(clap::Args)]
pub(crate) struct RebuildArgs {
    /// Go on although acknowledged events are missing, and record that in the log
    #[arg(long)]
    accept_loss: bool,

    /// Make the view of the fleet's log again
    #[arg(long)]
    fleet: bool,
}

impl RebuildArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let after_loss = if self.accept_loss { AfterLoss::Accept } else { AfterLoss::Check };
        let CheckedLog { project, words } = CheckedLog::open(context, self.fleet, after_loss)
            .map_err(|error| if error.is_log_damage() { error.into_refused() } else { error })?;
        let all = project.read(|view| Ok(view.totals()?.head)).unwrap_or(0);
        let mut progress = progress::over_events("rebuilding", all);
        let rebuilt = if self.accept_loss {
            project.rebuild_after_loss(&mut progress)
        } else {
            let rebuilt = project.store().rebuild(&mut progress).map_err(EngineError::from);
            rebuilt.map(|hashes| RebuiltView { hashes, accepted: None })
        };
        let rebuilt = rebuilt.map_err(|error| match error {
            EngineError::Store(StoreError::Broken(broken)) => words.error_of(&broken, context),
            EngineError::Store(StoreError::Log(LogError::Damaged { seq, reason })) => {
                words.error_of(&LogDefect::Unreadable { seq, reason }, context)
            }
            error => CliError::from(error),
        });
        drop(progress);
        let RebuiltView { hashes: (before, after), accepted } = rebuilt?;
        let all = project.read(|view| Ok(view.totals()?.head))?;
        let equal = before == after;
        let accepted = accepted.map(|broken| broken.to_string());
        let out = &mut context.out;
        if out.json {
            let hashes = json!({"before": before, "after": after, "equal": equal, "events": all, "accepted_loss": accepted});
            return out.json(&hashes);
        }
        out.line(format_args!("Rebuilt from {all} events"))?;
        if let Some(accepted) = accepted {
            out.line(format_args!("Accepted and recorded in the log: {accepted}"))?;
        }
        if before == UNREADABLE_VIEW {
            out.line(format_args!("state hash {after}; the tables before could not be read"))
        } else if equal {
            out.line(format_args!("state hash {after}, as before"))
        } else {
            out.line(format_args!("state hash {after}; it was {before}: the view was wrong"))
        }
    }
}
