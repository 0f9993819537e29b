use hookloop_engine::inbox;

use super::ProblemJson;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::TableCell;
use crate::present;
use crate::sanitize::plain;

/// List the items that need a person, oldest first
#[derive(clap::Args)]
pub(crate) struct InboxListArgs {
    /// Maximum number of items, the oldest ones
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

impl InboxListArgs {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let problems = inbox::list(&project, self.limit)?;
        let lines = problems.iter().map(|problem| ProblemJson::new(&project, problem));
        let lines = lines.collect::<std::result::Result<Vec<_>, _>>()?;
        let out = &mut context.out;
        if out.json {
            return out.json(&lines);
        }
        if lines.is_empty() && out.terminal {
            return out.line("The inbox is empty.");
        }
        let now = project.now();
        let is_read = out.terminal;
        let cells: Vec<Vec<TableCell>> = lines
            .iter()
            .zip(&problems)
            .map(|(line, problem)| {
                let since = if is_read {
                    present::ago(now.millis_since(problem.since))
                } else {
                    line.since.clone()
                };
                let reason = line.reason.lines().next().unwrap_or_default();
                vec![
                    TableCell::new(&line.key),
                    TableCell::new(since),
                    TableCell::new(plain(&format!("{}: {reason}", line.title))),
                ]
            })
            .collect();
        out.table(&["key", "since", "item"], &cells)
    }
}
