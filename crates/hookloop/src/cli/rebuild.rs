use serde_json::json;

use super::Context;
use crate::output::Result;
use crate::progress::Progress;

/// Make the view again from the log
///
/// The view holds nothing that the log does not. The state hash before and after tells whether it
/// was right.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Events between two updates of the bar.
const STEP: u64 = 4_096;

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.log_alone()?;
        let all = project.read(|view| Ok(view.totals()?.head))?;
        let progress = Progress::new("rebuilding");
        let rebuilt = project.store().rebuild(&mut |seq| {
            if seq % STEP == 0 {
                progress.at(seq, all);
            }
        });
        drop(progress);
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
