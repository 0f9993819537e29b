//! Octopoid: its tasks, as files of Markdown and as JSON.

use hookloop_core::task::TaskState;
use serde_json::Value;

use super::fields::SourceFields;
use super::import_report::ImportReport;
use super::source::SourceFile;
use super::tasks::TaskDraft;

/// A task as it is written to a file: a title, lines of `KEY: value`, and text.
pub(super) fn task(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let mut lines = source.text.lines();
    let title = lines.next().unwrap_or_default().trim_start_matches('#').trim();
    let Some((id, title)) = title.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return Err("its first line is not `# [TASK-…] title`".to_owned());
    };
    let mut draft =
        TaskDraft { id: id.to_owned(), goal: title.trim().to_owned(), ..TaskDraft::default() };
    let mut rest: Vec<&str> = Vec::new();
    for line in lines {
        let key = line.split_once(": ").filter(|(key, _)| {
            rest.is_empty()
                && !key.is_empty()
                && key.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        });
        match key {
            Some(("ROLE", role)) => draft.labels.push(role.trim().to_owned()),
            Some(("PRIORITY", priority)) => draft.priority = level(priority, report),
            Some(("TYPE", kind)) => draft.kind = Some(kind.trim().to_owned()),
            Some(("BLOCKED_BY", on)) => draft.depends_on = ids(on),
            Some(("CREATED", at)) => {
                draft.created_at = Some(format!("{}Z", at.trim().trim_end_matches('Z')))
            }
            Some((key, _)) => report.lose(key, "not known here"),
            None if line.trim().is_empty() && rest.is_empty() => {}
            None => rest.push(line),
        }
    }
    let criteria = rest.iter().filter_map(|line| line.trim().strip_prefix("- [ ] "));
    draft.deliverables = criteria.map(str::to_owned).collect();
    draft.description.push(("", rest.join("\n")));
    report.kept("tasks");
    draft.take(report);
    Ok(())
}

/// Tasks as its server lists them.
pub(super) fn tasks(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let list = match source.json()? {
        Value::Object(mut answer) => answer.shift_remove("tasks").unwrap_or(Value::Null),
        list => list,
    };
    let Value::Array(list) = list else { return Err("this is not a list of tasks".to_owned()) };
    for task in list {
        let mut task = SourceFields::of("tasks", task)?;
        let Some(id) = task.text("id") else {
            report.lose("a task", "it has no id");
            continue;
        };
        let queue = task.text("queue").unwrap_or_default();
        let is_done = queue == "done";
        if !["incoming", "done"].contains(&queue.as_str()) {
            report.changed(format!("queue {queue}"), "ready here: not claimed yet");
        }
        let title =
            task.text("title").or_else(|| task.text("file_path")).unwrap_or_else(|| id.clone());
        let blocked_by = task.text("blocked_by").unwrap_or_default();
        TaskDraft {
            goal: title,
            labels: task.text("role").into_iter().collect(),
            priority: task.text("priority").and_then(|text| level(&text, report)),
            kind: task.text("type"),
            depends_on: ids(&blocked_by),
            state: is_done.then_some(TaskState::Completed),
            description: vec![("", task.text("execution_notes").unwrap_or_default())],
            created_at: task.text("created_at"),
            completed_at: task.text("completed_at"),
            id,
            ..TaskDraft::default()
        }
        .take(report);
        report.kept("tasks");
        task.finish(report);
    }
    Ok(())
}

/// `P0` is 0.
fn level(text: &str, report: &mut ImportReport) -> Option<u64> {
    let level = text.trim().trim_start_matches('P').parse().ok();
    if level.is_none() {
        report.lose(format!("priority {text}"), "left out: it is not a priority that is known");
    }
    level
}

/// Ids with commas between them.
fn ids(text: &str) -> Vec<String> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    ids.map(str::to_owned).collect()
}
