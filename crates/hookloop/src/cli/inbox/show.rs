use hookloop_engine::inbox;
use serde::Serialize;

use super::{Context, ProblemJson};
use crate::output::{BOLD, DIM, Result, plain, plain_lines};

/// What is known about a problem, and what you can type
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its key, the start of it, or the start of the id of the task or session
    key: String,
}

#[derive(Serialize)]
struct ShownJson {
    #[serde(flatten)]
    problem: ProblemJson,
    details: Vec<String>,
    /// What can be typed.
    next: Vec<String>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context) -> Result {
        let project = context.project_to_read()?;
        let problem = inbox::find(&project, &self.key)?;
        let evidence = inbox::evidence(&project, &problem)?;
        let mut line = ProblemJson::new(&project, &problem)?;
        line.session = evidence.session.map(|id| id.to_string());
        let out = &mut context.out;
        if out.json {
            let (details, next) = (evidence.details, evidence.next);
            return out.json(&ShownJson { problem: line, details, next });
        }
        out.line(format_args!("{BOLD}{}{BOLD:#}  {}", line.key, plain(&line.title)))?;
        out.line(format_args!("{DIM}since {} by {}{DIM:#}", line.since, plain(&line.by)))?;
        out.line(format_args!("  {}", plain_lines(&line.reason, 2)))?;
        for detail in &evidence.details {
            out.line(format_args!("  {}", plain_lines(detail, 4)))?;
        }
        if let Some(session) = &line.session {
            out.line(format_args!("  {DIM}see:{DIM:#} hookloop sessions show {session}"))?;
        }
        for next in &evidence.next {
            out.line(format_args!("  {DIM}try:{DIM:#} {}", plain(next)))?;
        }
        Ok(())
    }
}
