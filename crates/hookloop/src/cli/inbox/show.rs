use hookloop_core::inbox::Problem;
use hookloop_engine::inbox::decision_record::DecisionRecord;
use hookloop_engine::inbox::{self, ItemEvidence};
use hookloop_engine::project::Project;
use serde::Serialize;

use super::ProblemJson;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::{BOLD, CommandOutput, DIM, terminal_width};
use crate::present;
use crate::present::test_changes::{left_out, test_changes};
use crate::sanitize::{plain, plain_lines};

/// Items that are shown without a key.
const SHOWN_MAX: usize = 20;

/// Show an item and the commands that decide it
///
/// The item is shown as it was when it was raised. Without a key, the command shows all items, oldest first.
#[derive(clap::Args)]
pub(crate) struct InboxShowArgs {
    /// Key, start of the key, or start of the id of the task or session [default: all items]
    key: Option<String>,
}

#[derive(Serialize)]
struct ShownJson {
    #[serde(flatten)]
    problem: ProblemJson,
    details: Vec<String>,
    /// The commands for the problem.
    next: Vec<String>,
    /// The effect of each command in `next`.
    effects: Vec<&'static str>,
    record: DecisionRecord,
}

impl ShownJson {
    fn new(project: &Project, problem: &Problem) -> CliResult<ShownJson> {
        let ItemEvidence { details, session, next, effects, record, .. } =
            inbox::evidence(project, problem)?;
        let mut line = ProblemJson::new(project, problem)?;
        line.session = session.map(|id| id.to_string());
        Ok(ShownJson { problem: line, details, next, effects, record })
    }
}

impl InboxShowArgs {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        if let Some(key) = &self.key {
            let problem = inbox::find(&project, key)?;
            let shown = ShownJson::new(&project, &problem)?;
            let out = &mut context.out;
            return if out.json {
                out.json(&shown)
            } else {
                show(out, &shown, &ago(&project, &problem))
            };
        }
        let problems = inbox::list(&project, SHOWN_MAX)?;
        let shown: CliResult<Vec<ShownJson>> =
            problems.iter().map(|problem| ShownJson::new(&project, problem)).collect();
        let shown = shown?;
        let out = &mut context.out;
        if out.json {
            return out.json(&shown);
        }
        if shown.is_empty() {
            return out.line("The inbox is empty.");
        }
        for (place, (item, problem)) in shown.iter().zip(&problems).enumerate() {
            if place > 0 {
                out.line("")?;
            }
            show(out, item, &ago(&project, problem))?;
        }
        Ok(())
    }
}

fn ago(project: &Project, problem: &Problem) -> String {
    present::ago(project.now().millis_since(problem.since))
}

fn show(out: &mut CommandOutput, shown: &ShownJson, ago: &str) -> CliResult {
    let line = &shown.problem;
    out.line(format_args!("{BOLD}{}{BOLD:#}  {}", line.key, plain(&line.title)))?;
    let origin = shown.record.origin().unwrap_or_else(|| format!("by {}", line.by));
    out.line(format_args!("{DIM}{ago}, {}{DIM:#}", plain(&origin)))?;
    out.line(format_args!("  {}", plain_lines(&line.reason, 2)))?;
    show_test_changes(out, &shown.record)?;
    for detail in &shown.details {
        out.line(format_args!("  {}", plain_lines(detail, 4)))?;
    }
    let why = line.task.as_ref().map(|task| format!("hookloop why {task}"));
    let session = line.session.as_ref().map(|id| format!("hookloop sessions show {id}"));
    for see in why.into_iter().chain(session) {
        out.line(format_args!("  {DIM}see:{DIM:#} {see}"))?;
    }
    for (next, effect) in shown.next.iter().zip(&shown.effects) {
        out.line(format_args!("  {DIM}run:{DIM:#} {}", plain(next)))?;
        out.line(format_args!("       {DIM}{effect}{DIM:#}"))?;
    }
    Ok(())
}

/// Prints the tests of the base beside those of the work.
fn show_test_changes(out: &mut CommandOutput, record: &DecisionRecord) -> CliResult {
    const INDENT: usize = 4;
    let width = terminal_width().saturating_sub(INDENT);
    for group in test_changes(&record.test_changes) {
        out.line(format_args!("  {BOLD}{}{BOLD:#}", group.heading))?;
        for change in &group.changes {
            out.line(format_args!("  {}", change.name))?;
            for row in &change.rows {
                let text = row.text(width);
                match row.is_changed {
                    true => out.line(format_args!("    {text}"))?,
                    false => out.line(format_args!("    {DIM}{text}{DIM:#}"))?,
                }
            }
        }
    }
    match left_out(&record.test_changes, record.more_test_changes) {
        0 => Ok(()),
        more => out.line(format_args!("  {DIM}and {more} more changes of tests{DIM:#}")),
    }
}
