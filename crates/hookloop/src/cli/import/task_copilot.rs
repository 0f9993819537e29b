//! task-copilot: its MCP server, which hookloop's takes the place of, and its tasks as `task_list` answers them.

use hookloop_core::task::{TaskObstacle, TaskState};
use serde_json::{Value, json};

use super::ImportTool;
use super::source::SourceFile;
use super::tasks::TaskDraft;
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::ImportReport;

pub(super) const TOOL: ImportTool = ImportTool {
    name: "task-copilot",
    files: &[".mcp.json", ".claude/settings.json", "task-copilot.json"],
    read,
};

/// How its server is called where it is configured.
const SERVER: &str = "task-copilot";

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let value = source.json()?;
    if value.is_array() || value.get("tasks").is_some() {
        return tasks(value, report);
    }
    let mut file = SourceFields::of("", value)?;
    for (name, server) in file.object("mcpServers")?.each() {
        if !is_task_copilot(&name, &server) {
            // Other servers stay with the agent.
            continue;
        }
        report.changed(
            format!("mcpServers.{name}"),
            "hookloop's server has its tools: `claude mcp add --scope project hookloop -- hookloop mcp`, then remove this \
             entry",
        );
        // Its recommended hook: promises first, then validation.
        report.set("loop", "stop_when", json!("default"));
    }
    Ok(())
}

fn is_task_copilot(name: &str, server: &Value) -> bool {
    let words = server.get("args").and_then(Value::as_array).into_iter().flatten();
    let is_of_it = |word: &Value| word.as_str().is_some_and(|word| word.contains(SERVER));
    name == SERVER || words.into_iter().any(is_of_it)
}

fn tasks(value: Value, report: &mut ImportReport) -> Result<(), String> {
    let list = match value {
        Value::Object(mut answer) => answer.shift_remove("tasks").unwrap_or(Value::Null),
        list => list,
    };
    let Value::Array(list) = list else { return Err("this is not a list of tasks".to_owned()) };
    for task in list {
        let mut task = SourceFields::of("tasks", task)?;
        let status = task.text("status").unwrap_or_default();
        let (state, blocked) = match status.as_str() {
            "completed" => (Some(TaskState::Completed), None),
            "blocked" => {
                let reason = task.text("blockedReason");
                let reason = reason.unwrap_or_else(|| "blocked in task-copilot".to_owned());
                (Some(TaskState::Blocked), Some(reason))
            }
            "cancelled" => {
                report.lose("tasks that are cancelled", "they are not work to be done");
                continue;
            }
            "pending" | "" => (None, None),
            other => {
                report.changed(format!("status {other}"), "ready here: not claimed yet");
                (None, None)
            }
        };
        let mut metadata = task.object("metadata")?;
        let draft = TaskDraft {
            id: task.text("id").unwrap_or_default(),
            goal: task.text("title").unwrap_or_default(),
            description: vec![
                ("", task.text("description").unwrap_or_default()),
                ("Notes", task.text("notes").unwrap_or_default()),
            ],
            parent: task.text("parentId"),
            depends_on: metadata.texts("dependencies"),
            state,
            created_at: task.text("createdAt"),
            ..TaskDraft::default()
        };
        task.take("updatedAt");
        task.lose(
            report,
            &[
                ("prdId", "there is no place for it; write it into the description"),
                ("assignedAgent", "a claim records who works on a task"),
                ("subtaskCount", "it follows from the tasks"),
                ("hasWorkProducts", "work products are not taken over"),
            ],
        );
        metadata.finish(report);
        task.finish(report);
        report.kept("tasks");
        let before = report.tasks.len();
        draft.take(report);
        if let (Some(reason), Some(task)) = (blocked, report.tasks.get_mut(before)) {
            task.blocked = Some(TaskObstacle { reason, required_knowledge: None });
        }
    }
    Ok(())
}
