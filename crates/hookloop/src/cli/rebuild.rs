use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::AfterLoss;
use hookloop_engine::store::{LogDefect, LogError, RebuiltView, StoreError, UNREADABLE_VIEW};
use serde_json::json;

use super::verify::CheckedLog;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::progress;

/// Rebuild the view from the log
///
/// The view contains nothing that is not in the log. Equal state hashes before and after mean that the view was
/// correct. The command checks the log first and stops if acknowledged events are missing.
#[derive(clap::Args)]
pub(crate) struct RebuildArgs {
    /// Accept missing acknowledged events, and record the loss in the log
    #[arg(long)]
    accept_loss: bool,

    /// Rebuild the view of the fleet's log
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
