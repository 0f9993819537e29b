use serde_json::json;

use super::Context;
use crate::error::CliError;
use crate::output::Result;
use crate::progress;

/// Check that the log is exactly what was written
///
/// Every event carries a hash over itself and the one before it. Says where the chain breaks.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.log_alone()?;
        let all = project.read(|view| Ok(view.totals()?.head))?;
        let checked = project.store().verify(&mut progress::over_events("verifying", all));
        let out = &mut context.out;
        match checked? {
            Ok(events) if out.json => out.json(&json!({"intact": true, "events": events})),
            Ok(events) => out.line(format_args!("The log is intact: {events} events")),
            Err(broken) => {
                if out.json {
                    out.json(&json!({"intact": false, "error": broken.to_string()}))?;
                }
                Err(CliError::refused(format!("the log is broken: {broken}")).hint(
                    "restore the state directory from a backup; the events before are intact",
                ))
            }
        }
    }
}
