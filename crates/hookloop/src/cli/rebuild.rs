use serde_json::json;

use super::Context;
use crate::output::Result;
use crate::progress;

/// Make the view again from the log
///
/// The view holds nothing that the log does not. The state hash before and after tells whether it
/// was right.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.log_alone()?;
        let all = project.read(|view| Ok(view.totals()?.head))?;
        let rebuilt = project.store().rebuild(&mut progress::over_events("rebuilding", all));
        let (before, after) = rebuilt?;
        let equal = before == after;
        let out = &mut context.out;
        if out.json {
            let hashes = json!({"before": before, "after": after, "equal": equal, "events": all});
            return out.json(&hashes);
        }
        out.line(format_args!("Rebuilt from {all} events"))?;
        match equal {
            true => out.line(format_args!("state hash {after}, as before")),
            false => {
                out.line(format_args!("state hash {after}; it was {before}: the view was wrong"))
            }
        }
    }
}
