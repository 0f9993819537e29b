//! `hookloop doctor`

mod look;

use anstyle::{AnsiColor, Style};
use hookloop_fleet::doctor::{Finding, FindingGroup, FindingStatus, Remedy};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, CommandOutput, DIM};
use crate::sanitize::plain;

/// Check for problems and print their fixes
///
/// Checks the machine, the network, git, the state directory, the project's file, its store, hooks, agents, channels
/// and the fleet. Outside of a project, or with an invalid file, the command checks what it can. It runs nothing of the
/// repository, and asks git and installed agents for their versions. Exit code: 1 if a check finds an error.
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
            1 => Err(CliError::refused("1 check found an error")),
            n => Err(CliError::refused(format!("{n} checks found errors"))),
        }
    }
}

fn value(finding: &Finding) -> serde_json::Value {
    let remedy = finding.remedy.as_ref();
    json!({
        "group": finding.group.name(),
        "about": finding.about,
        "status": finding.status.name(),
        "message": finding.message,
        "hint": remedy.map(Remedy::text),
        "command": remedy.and_then(Remedy::command),
    })
}

/// Groups with findings that stop everything come first, then each group in its order.
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
        if let Some(remedy) = &finding.remedy {
            let (sign, style) = match remedy {
                Remedy::Type(_) => ("$ ", AnsiColor::Cyan.on_default()),
                Remedy::Do(_) => ("", Style::new().dimmed()),
            };
            out.line(format_args!("         {style}{sign}{}{style:#}", plain(remedy.text())))?;
        }
    }
    Ok(())
}
