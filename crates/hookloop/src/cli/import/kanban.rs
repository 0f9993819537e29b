//! vibe-kanban: `issues.csv` of its export, or its tasks as its own interface lists them.

use hookloop_core::task::TaskState;
use serde_json::{Map, Value};

use super::ImportTool;
use super::source::SourceFile;
use super::tasks::TaskDraft;
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::ImportReport;

pub(super) const TOOL: ImportTool =
    ImportTool { name: "vibe-kanban", files: &["issues.csv", "tasks.json"], read };

/// The columns of the export, and the fields of a task, that are one thing here.
const NAMES: [(&str, &str); 10] = [
    ("Issue ID", "id"),
    ("Title", "title"),
    ("Description", "description"),
    ("Status", "status"),
    ("Priority", "priority"),
    ("Project", "project"),
    ("Created", "created_at"),
    ("Completed", "completed_at"),
    ("Parent Issue", "parent"),
    ("Start Date", "start_date"),
];
const NOWHERE: [(&str, &str); 9] = [
    ("Assignee(s)", "a claim records who works on a task"),
    ("Creator", "the log records who added the task"),
    ("Due Date", "tasks have no due time; `--priority` and priority aging set the order"),
    ("parent_workspace_id", "workspaces are not taken over"),
    ("has_in_progress_attempt", "attempts are not taken over"),
    ("last_attempt_failed", "attempts are not taken over"),
    ("executor", "attempts are not taken over"),
    ("image_ids", "pictures are not taken over"),
    ("shared_task_id", "a shared store is `store: nats://…`"),
];

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let tasks =
        if source.ends_with(&[".json"]) { listed(source.json()?)? } else { rows(&source.text)? };
    for task in tasks {
        one(SourceFields::of("issues", Value::Object(task))?, report);
    }
    Ok(())
}

/// A list, or an answer that has one.
fn listed(value: Value) -> Result<Vec<Map<String, Value>>, String> {
    let list = match value {
        Value::Object(mut answer) => answer
            .shift_remove("data")
            .or_else(|| answer.shift_remove("tasks"))
            .unwrap_or(Value::Null),
        list => list,
    };
    let Value::Array(list) = list else { return Err("this is not a list of tasks".to_owned()) };
    let object = |task| match task {
        Value::Object(task) => Ok(task),
        _ => Err("a task is not an object with fields".to_owned()),
    };
    list.into_iter().map(object).collect()
}

/// The rows of the export under its headings.
fn rows(text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headings = reader.headers().map_err(|error| error.to_string())?.clone();
    if !headings.iter().any(|heading| heading == "Title") {
        return Err("its first line has no `Title`; issues.csv of the export has".to_owned());
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let cells = headings.iter().zip(record.iter()).filter(|(_, cell)| !cell.is_empty());
        rows.push(cells.map(|(name, cell)| (name.to_owned(), Value::from(cell))).collect());
    }
    Ok(rows)
}

fn one(mut task: SourceFields, report: &mut ImportReport) {
    for (theirs, ours) in NAMES {
        if let Some(value) = task.take(theirs) {
            task.put(ours, value);
        }
    }
    task.lose(report, &NOWHERE);
    for key in ["Updated", "updated_at", "project_id"] {
        task.take(key);
    }
    let status = task.text("status").unwrap_or_default();
    let plain: String =
        status.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let state = match plain.as_str() {
        "todo" | "backlog" | "" => None,
        "done" | "completed" => Some(TaskState::Completed),
        "cancelled" | "canceled" => {
            return report
                .lose(format!("issues that are {status}"), "they are not work to be done");
        }
        _ => {
            report.changed(format!("status {status}"), "ready here: not claimed yet");
            None
        }
    };
    let urgency = task.text("priority");
    let priority = urgency.as_deref().and_then(level);
    if let Some(urgency) = urgency.filter(|_| priority.is_none()) {
        report.lose(format!("priority {urgency}"), "left out: it is not a priority that is known");
    }
    let project = task.text("project");
    TaskDraft {
        id: task.text("id").unwrap_or_default(),
        goal: task.text("title").unwrap_or_default(),
        description: vec![("", task.text("description").unwrap_or_default())],
        labels: project.into_iter().collect(),
        priority,
        parent: task.text("parent"),
        not_before: task.text("start_date"),
        state,
        created_at: task.text("created_at"),
        completed_at: task.text("completed_at"),
        ..TaskDraft::default()
    }
    .take(report);
    report.kept("issues");
    task.finish(report);
}

/// Its words for how urgent something is.
fn level(text: &str) -> Option<u64> {
    match text.to_ascii_lowercase().as_str() {
        "urgent" => Some(0),
        "high" => Some(1),
        "medium" => Some(2),
        "low" => Some(3),
        _ => None,
    }
}
