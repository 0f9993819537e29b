//! `hookloop doctor`

mod look;

use anstyle::{AnsiColor, Style};
use hookloop_fleet::doctor::{Finding, FindingGroup, FindingStatus, Remedy};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, CommandOutput, DIM};
use crate::sanitize::plain;

/// Look for what is likely to go wrong, and say what mends it
///
/// The machine, the network, git, the state directory, the project's file, its store, hooks, agents, channels and the fleet; outside of a
/// project, and with a file that is broken, as far as that goes. Runs nothing of the repository; asks git and
/// installed agents for their versions. Ends with 1 if something will not work as it is.
#[derive(clap::Args)]
pub(crate) struct DoctorArgs {}

impl DoctorArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let findings = look::all(context);
        let errors = findings.iter().filter(|f| f.status == FindingStatus::Error).count();
        let out = &mut context.out;
        if out.json {
            let findings: Vec<_> = findings.iter().map(value).collect();
            context.exit = u8::from(errors > 0);
            return context.out.json(&findings);
        }
        screen(out, &findings)?;
        match errors {
            0 => Ok(()),
            1 => Err(CliError::refused("one thing will not work as it is")),
            n => Err(CliError::refused(format!("{n} things will not work as they are"))),
        }
    }
}

fn value(finding: &Finding) -> serde_json::Value {
    let mend = finding.mend.as_ref();
    json!({
        "group": finding.group.name(),
        "about": finding.about,
        "status": finding.status.name(),
        "message": finding.message,
        "hint": mend.map(Remedy::text),
        "command": mend.and_then(Remedy::command),
    })
}

/// Findings that stop everything come first, then each group in its order.
fn screen(out: &mut CommandOutput, findings: &[Finding]) -> CliResult {
    let mut group: Option<FindingGroup> = None;
    for finding in findings {
        if group != Some(finding.group) {
            group = Some(finding.group);
            out.line(format_args!("{DIM}{}{DIM:#}", finding.group.name()))?;
        }
        let style = match finding.status {
            FindingStatus::Ok => AnsiColor::Green.on_default(),
            FindingStatus::Warning => AnsiColor::Yellow.on_default(),
            FindingStatus::Error => AnsiColor::Red.on_default().bold(),
        };
        let status = finding.status.name();
        let about = plain(&finding.about);
        let message = plain(&finding.message);
        out.line(format_args!("{style}{status:>8}{style:#} {BOLD}{about}{BOLD:#}: {message}"))?;
        if let Some(mend) = &finding.mend {
            let (sign, style) = match mend {
                Remedy::Type(_) => ("$ ", AnsiColor::Cyan.on_default()),
                Remedy::Do(_) => ("", Style::new().dimmed()),
            };
            out.line(format_args!("         {style}{sign}{}{style:#}", plain(mend.text())))?;
        }
    }
    Ok(())
}
