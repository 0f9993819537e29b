//! `hookloop doctor`

use hookloop_engine::doctor::{Finding, FindingStatus, examine, examine_agents};
use serde_json::json;

use super::Context;
use crate::error::CliError;
use crate::output::{BOLD, DIM, Result, plain};

/// Look for what is likely to go wrong, and say what mends it
///
/// Runs no hook; asks installed agents for their versions. Ends with 1 if something will not work as it is.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let findings = match context.check_policy() {
            Ok(()) => {
                let project = context.project()?;
                let Some(runner) = project.runner() else { return Ok(()) };
                let mut findings = examine(&project.hooks()?, project.rules(), runner);
                findings.extend(examine_agents(project.rules(), runner));
                findings
            }
            // Nothing runs then, whatever else is the matter.
            Err(error) => vec![Finding {
                about: "policy".to_owned(),
                status: FindingStatus::Error,
                message: error.message().to_owned(),
                hint: error.tip().map(str::to_owned),
            }],
        };
        let out = &mut context.out;
        if out.json {
            let findings: Vec<_> = findings
                .iter()
                .map(|finding| {
                    json!({ "about": finding.about, "status": finding.status.name(),
                        "message": finding.message, "hint": finding.hint })
                })
                .collect();
            return out.json(&findings);
        }
        for finding in &findings {
            let status = finding.status.name();
            let (about, message) = (plain(&finding.about), plain(&finding.message));
            out.line(format_args!("{status:>8} {BOLD}{about}{BOLD:#}: {message}"))?;
            if let Some(hint) = &finding.hint {
                out.line(format_args!("         {DIM}{}{DIM:#}", plain(hint)))?;
            }
        }
        let errors = findings.iter().filter(|f| f.status == FindingStatus::Error).count();
        match errors {
            0 => Ok(()),
            1 => Err(CliError::refused("one thing will not work as it is")),
            n => Err(CliError::refused(format!("{n} things will not work as they are"))),
        }
    }
}
