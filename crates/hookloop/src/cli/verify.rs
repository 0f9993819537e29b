use hookloop_engine::log_location::{AfterLoss, LogLocation};
use hookloop_engine::project::Project;
use hookloop_engine::store::LogDefect;
use hookloop_fleet::fleet::Fleet;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::{CliError, CliResult};
use crate::progress;
use crate::sanitize::plain;

/// Foreign messages that are named in an error; JSON has more.
const NAMED_MAX: usize = 5;

/// Check the log for changes and the view for differences
///
/// Every event carries a hash over itself and the one before it. On a shared store, the check compares the log with
/// the head that this machine has acknowledged. Then it derives the view again and compares every row.
#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    /// Accept the foreign messages of a shared log; later checks report new ones only
    #[arg(long)]
    accept_foreign: bool,

    /// Check the log of the fleet
    #[arg(long)]
    fleet: bool,
}

impl VerifyArgs {
    pub(crate) fn accepts(&self) -> bool {
        self.accept_foreign
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let checked = self.check(context);
        match checked {
            Err(error) if error.is_log_damage() => {
                let error = context.with_log_path(error).into_refused();
                if context.out.json {
                    context.out.json(&json!({"intact": false, "error": error.message()}))?;
                }
                Err(error)
            }
            checked => checked,
        }
    }

    fn check(self, context: &mut CommandContext) -> CliResult {
        let CheckedLog { project, words } =
            CheckedLog::open(context, self.fleet, AfterLoss::Check)?;
        let accepted = if self.accept_foreign { project.accept_foreign()? } else { 0 };
        let all = project.read(|view| Ok(view.totals()?.head)).unwrap_or(0);
        let checked = project.store().verify(&mut progress::over_events("verifying", all))?;
        let events = match checked {
            Ok(events) => events,
            Err(broken) => {
                if context.out.json {
                    context.out.json(&json!({"intact": false, "error": broken.to_string()}))?;
                }
                return Err(words.error_of(&broken, context));
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
        let fleet = words.fleet;
        Err(CliError::refused(message).advice(format!(
            "find the program that writes them, then accept them: `hookloop verify --accept-foreign{fleet}`"
        )))
    }
}

/// The log of the project, or of its fleet, also after events of it were lost.
pub(super) struct CheckedLog {
    pub(super) project: Project,
    pub(super) words: LogWords,
}

/// The words about a log that depend on where it is.
#[derive(Clone, Copy)]
pub(super) struct LogWords {
    /// The option that names the fleet's log.
    fleet: &'static str,
    /// The data that a backup is of.
    data: &'static str,
    /// Events that are missing in the middle can be accepted, because no event has the hash of the one before it.
    is_shared: bool,
}

impl CheckedLog {
    pub(super) fn open(
        context: &mut CommandContext,
        of_fleet: bool,
        after_loss: AfterLoss,
    ) -> CliResult<CheckedLog> {
        let project = context.log_alone(after_loss)?;
        let is_shared = matches!(project.kept(), LogLocation::Nats { .. });
        let data = if is_shared { "the data of the servers" } else { "the state directory" };
        if !of_fleet {
            return Ok(CheckedLog { project, words: LogWords { fleet: "", data, is_shared } });
        }
        let fleet =
            Fleet::to_check(&project, &state_home()?, &context.surroundings()?, after_loss)?;
        let words = LogWords { fleet: " --fleet", data, is_shared };
        Ok(CheckedLog { project: fleet.log().clone(), words })
    }
}

impl LogWords {
    /// The error that a broken log or view is, with the way out.
    pub(super) fn error_of(self, broken: &LogDefect, context: &CommandContext) -> CliError {
        let error = self.error_without_path(broken);
        if !self.is_shared && self.fleet.is_empty() && matches!(broken, LogDefect::File(_)) {
            return context.with_log_path(error.about_damage());
        }
        error
    }

    fn error_without_path(self, broken: &LogDefect) -> CliError {
        let LogWords { fleet, data, is_shared } = self;
        if let LogDefect::View { .. } = broken {
            return CliError::refused(format!("the view is wrong: {broken}")).advice(format!(
                "`hookloop rebuild{fleet}` rebuilds it from the log, which is intact"
            ));
        }
        let error = CliError::refused(format!("the log is broken: {broken}"));
        let is_gap = is_shared && matches!(broken, LogDefect::Missing { .. });
        if broken.can_be_accepted() || is_gap {
            error.advice(format!(
                "restore {data} from a backup, or accept the loss: `hookloop rebuild{fleet} --accept-loss`"
            ))
        } else {
            error.advice(format!("restore {data} from a backup; the events before are intact"))
        }
    }
}
