use hookloop_engine::fleet::Fleet;
use hookloop_engine::project::Project;
use hookloop_engine::store::Broken;
use serde_json::json;

use super::{Context, state_home};
use crate::error::CliError;
use crate::output::{Result, plain};
use crate::progress;

/// Foreign messages that are named in an error; JSON has more.
const NAMED_MAX: usize = 5;

/// Check that the log is exactly what was written, and that the view agrees with it
///
/// Every event carries a hash over itself and the one before it. On a shared store, the check compares the log with
/// the head that this machine has acknowledged. Then it derives the view again and compares every row.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Accept the foreign messages in a shared log, so that later checks report new ones only
    #[arg(long)]
    accept_foreign: bool,

    /// Check the log of the fleet
    #[arg(long)]
    fleet: bool,
}

impl Args {
    pub(crate) fn accepts(&self) -> bool {
        self.accept_foreign
    }

    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = open(context, self.fleet)?;
        let accepted = if self.accept_foreign { project.accept_foreign()? } else { 0 };
        let all = project.read(|view| Ok(view.totals()?.head)).unwrap_or(0);
        let checked = project.store().verify(&mut progress::over_events("verifying", all))?;
        let events = match checked {
            Ok(events) => events,
            Err(broken) => {
                if context.out.json {
                    context.out.json(&json!({"intact": false, "error": broken.to_string()}))?;
                }
                return Err(error_of(&broken, self.fleet));
            }
        };
        let foreign = project.foreign_messages()?;
        let out = &mut context.out;
        if out.json {
            let row = |row: &hookloop_engine::store::QuarantineRow| json!({"seq": row.seq, "subject": row.subject, "reason": row.reason});
            let foreign: Vec<_> = foreign.iter().map(row).collect();
            out.json(&json!({"intact": true, "events": events, "foreign_messages": foreign}))?;
        } else {
            out.line(format_args!("The log is intact: {events} events"))?;
            if accepted > 0 {
                out.line(format_args!("{accepted} foreign messages are accepted"))?;
            }
        }
        if foreign.is_empty() {
            return Ok(());
        }
        let name = |row: &hookloop_engine::store::QuarantineRow| {
            format!("\n  message {} on {}: {}", row.seq, plain(&row.subject), plain(&row.reason))
        };
        let named: String = foreign.iter().take(NAMED_MAX).map(name).collect();
        let message =
            format!("{} foreign messages are in the log, and are skipped:{named}", foreign.len());
        let fleet = if self.fleet { " --fleet" } else { "" };
        Err(CliError::refused(message).hint(format!(
            "find out who writes them, then accept them: `hookloop verify --accept-foreign{fleet}`"
        )))
    }
}

/// The log of the project, or of its fleet, also after events of it were lost.
pub(super) fn open(context: &mut Context, of_fleet: bool) -> Result<Project> {
    let project = context.log_alone()?;
    if !of_fleet {
        return Ok(project);
    }
    let fleet = Fleet::to_check(&project, &state_home()?, &context.surroundings()?)?;
    Ok(fleet.log().clone())
}

/// The error that a broken log or view is, with the way out.
pub(super) fn error_of(broken: &Broken, of_fleet: bool) -> CliError {
    let fleet = if of_fleet { " --fleet" } else { "" };
    match broken {
        Broken::View { .. } => CliError::refused(format!("the view is wrong: {broken}"))
            .hint(format!("`hookloop rebuild{fleet}` makes it again from the log, which is intact")),
        Broken::Removed { .. } | Broken::Replaced { .. } => {
            CliError::refused(format!("the log is broken: {broken}")).hint(format!(
                "restore the servers' data, or accept the loss: `hookloop rebuild{fleet} --accept-loss`"
            ))
        }
        broken if broken.can_be_accepted() => {
            CliError::refused(format!("the log is broken: {broken}")).hint(format!(
                "restore the state directory from a backup, or accept the loss: `hookloop rebuild{fleet} --accept-loss`"
            ))
        }
        broken => CliError::refused(format!("the log is broken: {broken}"))
            .hint("restore the state directory from a backup; the events before are intact"),
    }
}
