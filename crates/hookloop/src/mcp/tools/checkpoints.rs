//! Checkpoints: data that an agent stores for itself or for another agent.

use hookloop_engine::external::agent_tools::{AgentTools, Checkpoint, KeptCheckpoint};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{AgentTool, ArgumentKind, Arguments, TASK, ToolAnswer, optional, read};

/// Bytes of a draft that are given back.
const DRAFT_SHOWN: usize = 64 * 1024;
const TRIGGER: &str = "manual";

pub(super) const CREATE: AgentTool = AgentTool {
    name: "checkpoint_create",
    about: "Store your progress on a task. Call it before a long step, so that you can continue after a restart.",
    fields: &[
        TASK,
        optional("trigger", ArgumentKind::Text).about("reason for the checkpoint"),
        optional("executionPhase", ArgumentKind::Text)
            .about("phase of your work, such as implementation"),
        optional("executionStep", ArgumentKind::Count).about("number of the step in the phase"),
        optional("agentContext", ArgumentKind::Object).about("your own data"),
        optional("draftContent", ArgumentKind::Text).about("text of unfinished work"),
        optional("draftType", ArgumentKind::Text).about("kind of the draft, such as code"),
    ],
    never: None,
    writes: true,
    run: create,
};

pub(super) const RESUME: AgentTool = AgentTool {
    name: "checkpoint_resume",
    about: "Get a checkpoint of a task. Call it when you continue a task.",
    fields: &[
        TASK,
        optional("checkpointId", ArgumentKind::Text)
            .about("id of the checkpoint [default: the last one]"),
    ],
    never: None,
    writes: false,
    run: resume,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateArguments {
    task_id: String,
    trigger: Option<String>,
    execution_phase: Option<String>,
    execution_step: Option<u32>,
    agent_context: Option<Map<String, Value>>,
    draft_content: Option<String>,
    draft_type: Option<String>,
}

fn create(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: CreateArguments = read(arguments)?;
    let checkpoint = Checkpoint {
        trigger: wanted.trigger,
        phase: wanted.execution_phase,
        step: wanted.execution_step,
        context: wanted.agent_context,
        draft_content: wanted.draft_content,
        draft_type: wanted.draft_type,
    };
    let kept = tools.checkpoint(&wanted.task_id, checkpoint)?;
    Ok(json!({
        "id": kept.id,
        "taskId": kept.task,
        "sequence": kept.sequence,
        "trigger": kept.checkpoint.trigger.as_deref().unwrap_or(TRIGGER),
        "createdAt": kept.at,
        "expiresAt": null,
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResumeArguments {
    task_id: String,
    checkpoint_id: Option<String>,
}

fn resume(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: ResumeArguments = read(arguments)?;
    let KeptCheckpoint { id, task, at, checkpoint, .. } =
        tools.recall(&wanted.task_id, wanted.checkpoint_id.as_deref())?;
    let task = tools.task(task.as_str())?.task;
    let draft = checkpoint.draft_content.as_deref();
    Ok(json!({
        "taskId": task.id,
        "taskTitle": task.spec.goal,
        "checkpointId": id,
        "checkpointCreatedAt": at,
        "restoredStatus": task.state.name(),
        "restoredPhase": checkpoint.phase,
        "restoredStep": checkpoint.step,
        "agentContext": checkpoint.context,
        "hasDraft": draft.is_some(),
        "draftType": checkpoint.draft_type,
        "draftPreview": draft.map(shown),
        "resumeInstructions": instructions(&task.spec.goal, &checkpoint),
    }))
}

fn shown(draft: &str) -> &str {
    &draft[..draft.floor_char_boundary(DRAFT_SHOWN)]
}

fn instructions(title: &str, checkpoint: &Checkpoint) -> String {
    let phase = checkpoint.phase.as_ref().map(|phase| format!(", phase {phase}"));
    let step = checkpoint.step.map(|step| format!(", step {step}"));
    let draft = checkpoint.draft_content.as_ref().map(|_| " from the draft in draftPreview");
    format!(
        "Continue with \"{title}\"{}{}{}. Files may have changed since: look at them first.",
        phase.unwrap_or_default(),
        step.unwrap_or_default(),
        draft.unwrap_or_default()
    )
}
