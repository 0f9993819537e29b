//! Stop hooks of a task: presets, never commands.

use hookloop_core::session::StopDecision;
use hookloop_engine::external::agent_tools::{
    AgentTools, IterationReport, RegisteredStopHook, StopEvaluation, StopPreset,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{AgentTool, ArgumentKind, Arguments, ITERATION, TASK, ToolAnswer, optional, read};

pub(super) const REGISTER: AgentTool = AgentTool {
    name: "hook_register",
    about: "Register a stop hook for a task whose loop you run yourself. Call it before iteration_start. After each iteration the hook decides: complete, continue or escalate.",
    fields: &[
        TASK,
        optional("hookType", ArgumentKind::OneOf(&["default", "validation", "promise"])).about(
            "default: your promise decides, without one the validation rules; validation: the rules; promise: your promise",
        ),
        optional("metadata", ArgumentKind::Object).about("your own data, stored with the hook"),
    ],
    never: None,
    writes: true,
    run: register,
};

pub(super) const EVALUATE: AgentTool = AgentTool {
    name: "hook_evaluate",
    about: "Get the decision of a task's stop hooks on an iteration. The answer of iteration_validate includes it.",
    fields: &[
        ITERATION,
        optional("agentOutput", ArgumentKind::Text)
            .about("your message, with a promise if there is one"),
        optional("filesModified", ArgumentKind::Texts).about("paths that you changed"),
        optional("draftContent", ArgumentKind::Text).about("text of unfinished work"),
        optional("draftType", ArgumentKind::Text).about("kind of the draft, such as code"),
    ],
    never: None,
    writes: true,
    run: evaluate,
};

pub(super) const LIST: AgentTool = AgentTool {
    name: "hook_list",
    about: "List the stop hooks of a task.",
    fields: &[TASK],
    never: None,
    writes: false,
    run: list,
};

pub(super) const CLEAR: AgentTool = AgentTool {
    name: "hook_clear",
    about: "Remove the stop hooks of a task. Call it when its loop is over. The project's gates stay.",
    fields: &[TASK],
    never: None,
    writes: true,
    run: clear,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RegisterArguments {
    task_id: String,
    hook_type: Option<StopPreset>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

fn register(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: RegisterArguments = read(arguments)?;
    let hook = tools.register(
        &wanted.task_id,
        wanted.hook_type.unwrap_or(StopPreset::Default),
        wanted.metadata,
    )?;
    Ok(json!({
        "hookId": hook.id,
        "taskId": hook.task,
        "hookType": hook.preset.name(),
        "enabled": hook.enabled,
        "metadata": hook.metadata,
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EvaluateArguments {
    iteration_id: String,
    #[serde(default)]
    agent_output: String,
    #[serde(default)]
    files_modified: Vec<String>,
    draft_content: Option<String>,
    draft_type: Option<String>,
}

fn evaluate(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let EvaluateArguments { iteration_id, agent_output, files_modified, draft_content, draft_type } =
        read(arguments)?;
    let said = IterationReport { output: agent_output, files_modified, draft_content, draft_type };
    let StopEvaluation {
        hook,
        task,
        iteration,
        action,
        reason,
        next_prompt,
        checkpoint_created,
        metadata,
    } = tools.evaluate(&iteration_id, &said)?;
    Ok(json!({
        "hookId": hook,
        "taskId": task,
        "iteration": iteration,
        "action": action_name(action),
        "reason": reason,
        "nextPrompt": next_prompt,
        "checkpointCreated": checkpoint_created,
        "metadata": metadata,
    }))
}

pub(super) fn action_name(action: StopDecision) -> &'static str {
    match action {
        StopDecision::Complete => "complete",
        StopDecision::Continue => "continue",
        StopDecision::Escalate => "escalate",
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OfTask {
    task_id: String,
}

fn list(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let OfTask { task_id } = read(arguments)?;
    let hooks: Vec<Value> = tools.hooks(&task_id)?.into_iter().map(listed).collect();
    Ok(json!({ "taskId": task_id, "hookCount": hooks.len(), "hooks": hooks }))
}

fn listed(hook: RegisteredStopHook) -> Value {
    let mut metadata = hook.metadata;
    // The hook's own type, not the type in its metadata.
    metadata.insert("type".to_owned(), json!(hook.preset.name()));
    json!({ "id": hook.id, "enabled": hook.enabled, "metadata": metadata })
}

fn clear(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let OfTask { task_id } = read(arguments)?;
    let cleared = tools.clear(&task_id)?;
    Ok(json!({ "taskId": task_id, "hooksCleared": cleared }))
}
