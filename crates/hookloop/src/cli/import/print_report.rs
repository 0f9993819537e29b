//! Prints the result of an import: files, tasks, and a row for everything that was found.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use hookloop_engine::gate_agreement::HookConsent;
use serde_json::json;

use super::tasks::AddedTasks;
use crate::cli::context::CommandContext;
use crate::cli::import::config_file::ConfigOutcome;
use crate::cli::import::import_report::{ImportReport, Mapping, ReportRow};
use crate::error::CliResult;
use crate::output::{DIM, TableCell};
use crate::sanitize::plain;

pub(super) struct ImportResult {
    pub(super) files: Vec<PathBuf>,
    pub(super) configured: ConfigOutcome,
    pub(super) added: Option<AddedTasks>,
}

pub(super) fn print(
    context: &mut CommandContext,
    report: &ImportReport,
    done: &ImportResult,
) -> CliResult {
    if context.out.json {
        return print_json(context, report, done);
    }
    match &done.configured {
        ConfigOutcome::Nothing => {}
        ConfigOutcome::Written { path, .. } => {
            context.out.line(format_args!("Wrote {}", path.display()))?;
        }
        ConfigOutcome::Merged { path, is_changed: true, .. } => {
            context.out.line(format_args!("Wrote {}", path.display()))?;
        }
        ConfigOutcome::Merged { path, is_changed: false, .. } => {
            let path = path.display();
            context.out.line(format_args!("Nothing to write: {path} contains all of it"))?;
        }
        // The whole output can be saved as a file.
        ConfigOutcome::Shown { path, text } => {
            let note = format!("# {} exists: paste this into it, or add --write.", path.display());
            context.out.line(format_args!("{note}\n{}", text.trim_end()))?;
            for row in &report.rows {
                let row = format!("# {}: {}", row.fate.name(), in_words(row));
                context.out.line(plain(&row))?;
            }
            return told_tasks(context, done);
        }
    }
    told_tasks(context, done)?;
    let rows: Vec<Vec<TableCell>> = report
        .rows
        .iter()
        .map(|row| {
            let style = match row.fate {
                Mapping::Kept => AnsiColor::Green.on_default(),
                Mapping::Changed => AnsiColor::Yellow.on_default(),
                Mapping::Lost => AnsiColor::Red.on_default(),
            };
            let times =
                if row.count > 1 { format!(" ({} times)", row.count) } else { String::new() };
            let cell = |text: &str| TableCell::new(text).style(Style::new());
            let why = TableCell::new(&row.why).style(DIM);
            vec![
                TableCell::new(row.fate.name()).style(style),
                cell(&format!("{}{times}", row.what)),
                why,
            ]
        })
        .collect();
    context.out.table(&["", "entry", "reason"], &rows)?;
    if report.more > 0 {
        context.out.line(format_args!("and {} more", report.more))?;
    }
    let has_changed = matches!(
        done.configured,
        ConfigOutcome::Written { .. } | ConfigOutcome::Merged { is_changed: true, .. }
    );
    if !has_changed {
        return Ok(());
    }
    let needs_gate = matches!(done.configured, ConfigOutcome::Written { .. }) && !has_gate(report);
    // If the files can't be read now, `hooks trust` reports why.
    let needs_trust = needs_trust(context).unwrap_or(true);
    if needs_gate {
        let why = "without a gate, work waits for a person";
        context.out.line(format_args!("Next: add a `stop` hook, such as your tests: {why}"))?;
    }
    match (needs_gate, needs_trust) {
        (true, true) => context.out.line("      hookloop hooks trust"),
        (false, true) => context.out.line("Next: hookloop hooks trust"),
        (true, false) => Ok(()),
        (false, false) => context.out.line("Next: hookloop hooks list"),
    }
}

/// Whether the project has hooks or gates that a person has to trust. Built-in hooks need no trust.
fn needs_trust(context: &mut CommandContext) -> CliResult<bool> {
    let place = context.place()?;
    let user = context.user()?;
    let settings = hookloop_config::project_file::settings(&place.config(), &user)?;
    Ok(HookConsent::look(&place.root, &place.state, &settings.rules)?.is_news())
}

/// Whether the configuration has a hook that proves work.
fn has_gate(report: &ImportReport) -> bool {
    let hooks = report.config.get("hooks");
    ["stop", "validation"].iter().any(|point| hooks.is_some_and(|hooks| hooks.get(point).is_some()))
}

fn told_tasks(context: &mut CommandContext, done: &ImportResult) -> CliResult {
    let Some(AddedTasks { added, present, .. }) = done.added else { return Ok(()) };
    let sign = if matches!(done.configured, ConfigOutcome::Shown { .. }) { "# " } else { "" };
    let added = match added {
        1 => "one task".to_owned(),
        n => format!("{n} tasks"),
    };
    let present = match present {
        0 => String::new(),
        1 => ", one already exists".to_owned(),
        n => format!(", {n} already exist"),
    };
    context.out.line(format_args!("{sign}Added {added}{present}"))
}

fn in_words(row: &ReportRow) -> String {
    if row.why.is_empty() { row.what.clone() } else { format!("{} ({})", row.what, row.why) }
}

fn print_json(
    context: &mut CommandContext,
    report: &ImportReport,
    done: &ImportResult,
) -> CliResult {
    let (written, config) = match &done.configured {
        ConfigOutcome::Nothing => (None, None),
        ConfigOutcome::Written { path, text } => (Some(path), Some(text)),
        ConfigOutcome::Merged { path, text, is_changed } => {
            (Some(path).filter(|_| *is_changed), Some(text))
        }
        ConfigOutcome::Shown { text, .. } => (None, Some(text)),
    };
    let rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| {
            let result = row.fate.name().replace(' ', "_");
            json!({ "what": row.what, "result": result, "why": row.why, "count": row.count })
        })
        .collect();
    let added = done.added.as_ref();
    let tasks = added.map(|added| json!({ "added": added.added, "present": added.present }));
    context.out.json(&json!({
        "source": report.tool,
        "files": done.files,
        "written": written,
        "config": config,
        "tasks": tasks,
        "report": rows,
        "truncated": report.more > 0,
        "omitted": report.more,
    }))
}
