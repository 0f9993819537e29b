//! Beads: issues as lines of JSON, with their dependencies.

use hookloop_core::task::{TaskObstacle, TaskState};
use serde_json::{Value, json};

use super::ImportTool;
use super::source::SourceFile;
use super::tasks::TaskDraft;
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::ImportReport;

pub(super) const TOOL: ImportTool = ImportTool {
    name: "beads",
    files: &[".beads/issues.jsonl", ".beads/beads.jsonl", "issues.jsonl"],
    read,
};

/// Fields of an issue that have no equivalent.
const NOWHERE: [(&str, &str); 36] = [
    ("source_repo", "of Beads itself"),
    ("source_repo_path", "of Beads itself"),
    ("_type", ""),
    ("comment_count", ""),
    ("dependency_count", ""),
    ("dependent_count", ""),
    ("content_hash", ""),
    ("updated_at", ""),
    ("started_at", ""),
    ("created_by", "the log records who added the task"),
    ("assignee", "a claim records who works on a task"),
    ("owner", "a claim records who works on a task"),
    ("estimated_minutes", "tasks have no estimates"),
    ("closed_by_session", "the log records who completed the task"),
    ("due_at", "tasks have no due time; `--priority` and priority aging set the order"),
    ("comments", "hookloop task note adds them one by one"),
    ("external_ref", "there is no place for it; write it into the description"),
    ("source_system", "there is no place for it"),
    ("spec_id", "there is no place for it"),
    ("metadata", "there is no place for it"),
    ("sender", "messages are not tasks"),
    ("wisp_type", "of Beads itself"),
    ("mol_type", "of Beads itself"),
    ("work_type", "of Beads itself"),
    ("bonded_from", "of Beads itself"),
    ("source_formula", "of Beads itself"),
    ("source_location", "of Beads itself"),
    ("compaction_level", "of Beads itself"),
    ("compacted_at", "of Beads itself"),
    ("compacted_at_commit", "of Beads itself"),
    ("original_size", "of Beads itself"),
    ("await_type", "write a gate"),
    ("await_id", "write a gate"),
    ("timeout", "write a gate"),
    ("waiters", "`notify` in your own configuration: docs/inbox.md"),
    ("no_history", "everything is in the log"),
];
/// Issues that are none.
const NO_WORK: [&str; 4] = ["ephemeral", "is_template", "pinned", "event_kind"];

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    for line in source.json_lines() {
        let (number, value) = line?;
        let at = |error: String| format!("line {number}: {error}");
        issue(SourceFields::of("issues", value).map_err(at)?, report).map_err(at)?;
    }
    Ok(())
}

fn issue(mut issue: SourceFields, report: &mut ImportReport) -> Result<(), String> {
    if let Some(kind) = issue.text("_type").filter(|kind| kind != "issue") {
        report.lose(format!("lines of type {kind}"), "they are not tasks");
        return Ok(());
    }
    let Some(id) = issue.text("id") else { return Err("an issue without an id".to_owned()) };
    let is_none = NO_WORK.iter().find(|key| match issue.take(key) {
        Some(Value::Bool(is_so)) => is_so,
        other => other.is_some(),
    });
    let status = issue.text("status").unwrap_or_else(|| "open".to_owned());
    if let Some(key) = is_none {
        report.lose(format!("issues that are `{key}`"), "they are not work to be done");
        return Ok(());
    }
    if ["tombstone", "pinned"].contains(&status.as_str()) {
        report.lose(format!("issues that are {status}"), "they are not work to be done");
        return Ok(());
    }
    let (state, reason) = state(&status, &mut issue, report);
    let mut draft = TaskDraft {
        goal: issue.text("title").unwrap_or_default(),
        description: vec![
            ("", issue.text("description").unwrap_or_default()),
            ("Design", issue.text("design").unwrap_or_default()),
            ("Acceptance", issue.text("acceptance_criteria").unwrap_or_default()),
            ("Notes", issue.text("notes").unwrap_or_default()),
        ],
        labels: issue.texts("labels"),
        priority: issue.number("priority"),
        kind: issue.text("issue_type"),
        not_before: issue.text("defer_until"),
        state,
        result: issue.text("close_reason"),
        created_at: issue.text("created_at"),
        completed_at: issue.text("closed_at"),
        id,
        ..TaskDraft::default()
    };
    for dependency in issue.list("dependencies") {
        let dependency = match dependency {
            // The issue waits for an id that stands alone.
            Value::String(id) => json!({ "depends_on_id": id }),
            dependency => dependency,
        };
        depend(&mut draft, SourceFields::of("dependencies", dependency)?, report);
    }
    for (key, why) in NOWHERE {
        match why {
            // It follows from the rest.
            "" => drop(issue.take(key)),
            why => issue.lose(report, &[(key, why)]),
        }
    }
    issue.finish(report);
    report.kept("issues");
    let before = report.tasks.len();
    draft.take(report);
    if let (Some(reason), Some(task)) = (reason, report.tasks.get_mut(before)) {
        task.blocked = Some(TaskObstacle { reason, required_knowledge: None });
    }
    Ok(())
}

/// Returns the state of an issue's task, and the obstacle of a blocked one.
fn state(
    status: &str,
    issue: &mut SourceFields,
    report: &mut ImportReport,
) -> (Option<TaskState>, Option<String>) {
    match status {
        "open" => (None, None),
        "closed" => (Some(TaskState::Completed), None),
        "blocked" => (Some(TaskState::Blocked), Some("blocked in Beads".to_owned())),
        "deferred" => {
            let until = issue.text("defer_until");
            match until {
                Some(until) => {
                    issue.put("defer_until", Value::from(until));
                    (None, None)
                }
                None => {
                    report.changed("status deferred", "blocked here, until a person unblocks it");
                    (Some(TaskState::Blocked), Some("deferred in Beads".to_owned()))
                }
            }
        }
        other => {
            report.changed(format!("status {other}"), "ready here: not claimed yet");
            (None, None)
        }
    }
}

fn depend(draft: &mut TaskDraft, mut dependency: SourceFields, report: &mut ImportReport) {
    let kind = dependency.text("type").unwrap_or_else(|| "blocks".to_owned());
    let Some(on) = dependency.text("depends_on_id") else {
        return report.lose("a dependency", "it has no `depends_on_id`");
    };
    let what = format!("dependencies of type {kind}");
    match kind.as_str() {
        "blocks" => {
            report.kept(what);
            draft.depends_on.push(on);
        }
        "waits-for" => {
            report.changed(what, "it waits for that task, and not for tasks that it adds");
            draft.depends_on.push(on);
        }
        "parent-child" => {
            report.kept(what);
            draft.parent = Some(on);
        }
        "conditional-blocks" => {
            report.lose(what, "nothing here is done only if something else fails")
        }
        _ => report.lose(
            what,
            "tasks depend on each other, or spawn each other; no other relation is kept",
        ),
    }
    for key in ["issue_id", "created_at", "created_by", "metadata", "thread_id"] {
        dependency.take(key);
    }
    dependency.finish(report);
}
