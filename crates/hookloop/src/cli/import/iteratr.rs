//! iteratr: `.iteratr.hooks.yml`, with the hook points of hookloop, and `iteratr.yml`.

use serde_json::json;

use super::ImportTool;
use super::source::SourceFile;
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::{FoundHook, ImportReport};

pub(super) const TOOL: ImportTool =
    ImportTool { name: "iteratr", files: &[".iteratr.hooks.yml", "iteratr.yml"], read };

/// Its points, and their names here.
const POINTS: [(&str, &str); 6] = [
    ("session_start", "session_start"),
    ("pre_iteration", "pre_iteration"),
    ("post_iteration", "post_iteration"),
    ("session_end", "session_end"),
    ("on_task_complete", "task_completed"),
    ("on_error", "on_error"),
];
/// The timeout of a hook that sets none.
const TIMEOUT_SECONDS: u64 = 30;

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let mut file = SourceFields::of("", source.yaml()?)?;
    if source.name().contains("hooks") {
        hooks(&mut file, report)?
    } else {
        settings(&mut file, report)
    }
    file.finish(report);
    Ok(())
}

fn hooks(file: &mut SourceFields, report: &mut ImportReport) -> Result<(), String> {
    if let Some(version) = file.text("version").filter(|version| version != "1") {
        report.lose(format!("version {version}"), "the file is read as version 1");
    }
    let mut points = file.object("hooks")?;
    for (theirs, ours) in POINTS {
        for entry in points.list(theirs) {
            let mut entry = SourceFields::of(format!("hooks.{theirs}"), entry)?;
            let Some(command) = entry.text("command") else {
                report.lose(format!("hooks.{theirs}"), "a hook without a command");
                continue;
            };
            let mut changes = Vec::new();
            if theirs != ours {
                changes.push(format!("the point is called `{ours}`"));
            }
            let timeout = entry.number("timeout").filter(|seconds| *seconds > 0);
            let timeout = timeout.unwrap_or(TIMEOUT_SECONDS);
            let mut found = FoundHook::new(theirs, &command)
                .with("command", command.as_str())
                .with("timeout", format!("{timeout}s"));
            match (entry.is_true("pipe_output"), theirs) {
                (true, "session_end") => {
                    changes.push("`pipe_output` is left out: no agent reads it".to_owned());
                }
                (true, _) => found = found.with("pipe_output", true),
                (false, _) => {}
            }
            entry.finish(report);
            report.hook(ours, found, &changes);
        }
    }
    points.finish(report);
    Ok(())
}

fn settings(file: &mut SourceFields, report: &mut ImportReport) {
    match file.number("iterations") {
        Some(0) => {
            report.lose("iterations", "0 is no end there; a session always has one here (100)")
        }
        Some(iterations) => {
            report.set_or_lose(
                "limits",
                "max_iterations",
                json!(iterations),
                "iterations".to_owned(),
            );
        }
        None => {}
    }
    file.lose(
        report,
        &[
            ("model", "hookloop run --model"),
            ("auto_commit", "`delivery` commits proven work"),
            ("template", "its variables differ; `loop: {prompt_template: FILE}` sets a template"),
            ("spec_dir", "hookloop run --spec FILE"),
            ("data_dir", "state is in your state directory, never in the repository"),
            ("commit_data_dir", "state is in your state directory, never in the repository"),
            ("headless", "a pipe is quiet by itself"),
            ("log_level", "hookloop log"),
            ("log_file", "hookloop log"),
        ],
    );
}
