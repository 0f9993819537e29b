//! Tasks of the graph, as small as an agent needs them.

use hookloop_core::task::{Priority, Task, TaskSpec, TaskState};
use hookloop_engine::external::agent_tools::{
    AgentTools, NoteRequest, RequestedChange, TaskDetail,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AgentTool, ArgumentKind, Arguments, TASK, ToolAnswer, needed, optional, present, read,
};
use crate::mcp::refusal::ToolRefusal;

/// Tasks in a list unless more are asked for, and at most.
const LISTED: u32 = 20;
const LISTED_MAX: u32 = 100;

pub(super) const GET: AgentTool = AgentTool {
    name: "task_get",
    about: "Get a task with its dependencies and notes. Call it before you start on a task.",
    fields: &[TASK],
    never: None,
    writes: false,
    run: get,
};

pub(super) const LIST: AgentTool = AgentTool {
    name: "task_list",
    about: "List tasks, newest first.",
    fields: &[
        optional(
            "status",
            ArgumentKind::Word(&[
                "created",
                "ready",
                "active",
                "submitted",
                "completed",
                "blocked",
            ]),
        )
        .about("only tasks in this state"),
        optional("label", ArgumentKind::Text).about("only tasks with this label"),
        optional("limit", ArgumentKind::Count).about("number of tasks [default: 20, maximum: 100]"),
    ],
    never: None,
    writes: false,
    run: list,
};

pub(super) const ADD: AgentTool = AgentTool {
    name: "task_add",
    about: "Add a task. Call it for work that you find and that is not part of your task.",
    fields: &[
        needed("title", ArgumentKind::Text).about("goal of the task, in one line"),
        optional("description", ArgumentKind::Text).about("details for the agent that does it"),
        optional("labels", ArgumentKind::Texts).about("labels for filters"),
        optional("priority", ArgumentKind::Count).about("0 (most urgent) to 9 [default: 2]"),
        optional("type", ArgumentKind::Text)
            .about("type that selects agents and hooks, such as fix"),
        optional("dependsOn", ArgumentKind::Texts)
            .about("ids of tasks that must be completed first"),
    ],
    never: None,
    writes: true,
    run: add,
};

pub(super) const UPDATE: AgentTool = AgentTool {
    name: "task_update",
    about: "Report on a task: a state, a note or both. `completed` is a claim: the task is complete when the project's gates pass.",
    fields: &[
        TASK,
        optional("status", ArgumentKind::Word(&["completed", "blocked"])).about("new state"),
        optional("notes", ArgumentKind::Text).about("text that later readers of the task see"),
        optional("blockedReason", ArgumentKind::Text)
            .about("with `blocked`: what must happen first"),
    ],
    never: None,
    writes: true,
    run: update,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetArguments {
    task_id: String,
}

fn get(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let GetArguments { task_id: id } = read(arguments)?;
    let TaskDetail { task, depends_on, notes } = tools.task(&id)?;
    let mut answer = small(&task);
    if !depends_on.is_empty() {
        answer["dependsOn"] = depends_on.iter().map(|task| json!(task.id)).collect();
    }
    if !notes.is_empty() {
        answer["notes"] = notes.iter().map(note).collect();
    }
    Ok(answer)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    status: Option<String>,
    label: Option<String>,
    limit: Option<u32>,
}

fn list(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: ListArguments = read(arguments)?;
    let status = wanted.status.as_deref().map(state).transpose()?;
    let limit = wanted.limit.unwrap_or(LISTED).clamp(1, LISTED_MAX) as usize;
    let tasks = tools.tasks(status, wanted.label.as_deref(), limit)?;
    let tasks: Vec<Value> = tasks.iter().map(small).collect();
    Ok(json!({ "tasks": tasks }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AddArguments {
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    labels: Vec<String>,
    priority: Option<u32>,
    r#type: Option<String>,
    #[serde(default)]
    depends_on: Vec<String>,
}

fn add(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: AddArguments = read(arguments)?;
    let spec = TaskSpec {
        goal: wanted.title,
        description: wanted.description,
        deliverables: Vec::new(),
        labels: wanted.labels,
        priority: wanted.priority.map(priority).transpose()?.unwrap_or_default(),
        kind: wanted.r#type,
        parent_task_id: None,
        not_before: None,
        may_change: Vec::new(),
    };
    Ok(small(&tools.add(spec, &wanted.depends_on)?))
}

fn priority(number: u32) -> Result<Priority, ToolRefusal> {
    let number = u8::try_from(number).unwrap_or(u8::MAX);
    Priority::try_from(number).map_err(ToolRefusal::argument)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateArguments {
    task_id: String,
    status: Option<String>,
    notes: Option<String>,
    blocked_reason: Option<String>,
}

fn update(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: UpdateArguments = read(arguments)?;
    let change = RequestedChange {
        state: wanted.status.as_deref().map(state).transpose()?,
        notes: wanted.notes,
        blocked_reason: wanted.blocked_reason,
    };
    Ok(small(&tools.update(&wanted.task_id, &change)?))
}

/// Our word for a state, or that of the tools that agents know.
fn state(text: &str) -> Result<TaskState, ToolRefusal> {
    let known = match text {
        "pending" => "ready",
        "in_progress" => "active",
        text => text,
    };
    TaskState::ALL.into_iter().find(|state| state.name() == known).ok_or_else(|| {
        let names = TaskState::ALL.map(TaskState::name).join(", ");
        ToolRefusal::argument(format!("`status` should be one of {names}"))
    })
}

fn small(task: &Task) -> Value {
    let spec = &task.spec;
    let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
    let labels = if spec.labels.is_empty() { Value::Null } else { json!(spec.labels) };
    present([
        ("id", json!(task.id)),
        ("title", json!(spec.goal)),
        ("status", json!(task.state.name())),
        ("priority", json!(spec.priority.get())),
        ("labels", labels),
        ("type", json!(spec.kind)),
        ("description", text(&spec.description)),
        ("blockedReason", json!(task.obstacle.as_ref().map(|obstacle| &obstacle.reason))),
        ("claimedBy", json!(task.claim.as_ref().map(|claim| &claim.agent))),
    ])
}

fn note(note: &NoteRequest) -> Value {
    json!({ "at": note.at, "by": note.by, "text": note.text })
}
