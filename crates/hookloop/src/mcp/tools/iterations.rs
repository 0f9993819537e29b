//! Iteration loops that an agent keeps by itself, held against the project's rules.

use hookloop_core::gates::GateResult;
use hookloop_core::promise::Promise;
use hookloop_core::session::stop::ValidationResult;
use hookloop_engine::external::agent_tools::{
    AgentTools, LoopCompletion, LoopSignal, LoopStart, LoopState, StopEvaluation, ValidationReport,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::hooks::action_name;
use super::{
    AgentTool, ArgumentKind, Arguments, ITERATION, PROMISES, RefusedField, TASK, ToolAnswer,
    needed, optional, present, read,
};
use crate::mcp::refusal::ToolRefusal;

pub(super) const START: AgentTool = AgentTool {
    name: "iteration_start",
    about: "Claim a task and start an iteration loop on it, within the project's limits. In a session that hookloop runs, join the running iteration instead.",
    fields: &[
        TASK,
        optional("maxIterations", ArgumentKind::Positive).about("at most the project's limit"),
        optional("completionPromises", ArgumentKind::Words(PROMISES))
            .about("promises that end the loop [default: all]"),
        optional("circuitBreakerThreshold", ArgumentKind::Positive)
            .about("iterations without progress after which the loop stops"),
    ],
    // Rules are shell text, and only people may set shell commands.
    never: Some(RefusedField {
        field: "validationRules",
        message: "rules are the project's: an agent can't bring its own",
        next: "ask a person to put it under `validation:` in hookloop.yaml",
    }),
    writes: true,
    run: start,
};

pub(super) const VALIDATE: AgentTool = AgentTool {
    name: "iteration_validate",
    about: "Run the project's checks on the files as they are. Call it after the work of each iteration. The completionSignal of the answer says how to continue: CONTINUE, COMPLETE, BLOCKED or ESCALATE.",
    fields: &[
        ITERATION,
        optional("agentOutput", ArgumentKind::Text)
            .about("your message, with a promise if there is one"),
    ],
    never: None,
    writes: true,
    run: validate,
};

pub(super) const NEXT: AgentTool = AgentTool {
    name: "iteration_next",
    about: "Start the next iteration. Call it if iteration_validate answered CONTINUE.",
    fields: &[
        ITERATION,
        // Arguments of the original tool; hookloop knows the validation results itself.
        optional("validationResult", ArgumentKind::Anything).about("ignored"),
        optional("agentContext", ArgumentKind::Anything).about("ignored"),
    ],
    never: None,
    writes: true,
    run: next,
};

pub(super) const COMPLETE: AgentTool = AgentTool {
    name: "iteration_complete",
    about: "End the loop with a promise. Call it if iteration_validate did not answer CONTINUE. COMPLETE completes the task only if the project's gates pass.",
    fields: &[
        ITERATION,
        needed("completionPromise", ArgumentKind::Word(PROMISES)).about(
            "COMPLETE: done and checked; BLOCKED: something outside your control must happen; ESCALATE: a person must decide",
        ),
    ],
    never: None,
    writes: true,
    run: complete,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LoopArguments {
    task_id: String,
    max_iterations: Option<u32>,
    #[serde(default)]
    completion_promises: Vec<String>,
    circuit_breaker_threshold: Option<u32>,
}

fn start(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let request: LoopArguments = read(arguments)?;
    let promises: Result<Vec<Promise>, ToolRefusal> =
        request.completion_promises.iter().map(|text| promise(text)).collect();
    let request = LoopStart {
        task: request.task_id,
        max_iterations: request.max_iterations,
        promises: promises?,
        circuit_breaker: request.circuit_breaker_threshold,
    };
    let iteration = tools.start(&request)?;
    Ok(present([
        ("iterationId", json!(iteration.id.as_str())),
        ("taskId", json!(iteration.task)),
        ("iterationNumber", json!(iteration.number)),
        ("maxIterations", json!(iteration.max_iterations)),
        ("config", config(&iteration)),
        ("createdAt", json!(iteration.started_at)),
        ("nextPrompt", json!(iteration.prompt)),
    ]))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ValidateArguments {
    iteration_id: String,
    #[serde(default)]
    agent_output: String,
}

fn validate(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let ValidateArguments { iteration_id, agent_output } = read(arguments)?;
    let ValidationReport { id, number, passed, signal, promises, feedback, results, hook } =
        tools.validate(&iteration_id, &agent_output)?;
    let results: Vec<Value> = results.iter().map(result).collect();
    Ok(present([
        ("iterationId", json!(id.as_str())),
        ("iterationNumber", json!(number)),
        ("validationPassed", json!(passed)),
        ("completionSignal", json!(signal_name(signal))),
        ("detectedPromise", json!(promises.first())),
        ("feedback", json!(feedback)),
        ("results", json!(results)),
        ("completionPromisesDetected", json!(promises)),
        ("hookDecision", hook.map_or(Value::Null, decision)),
    ]))
}

fn result(validated: &ValidationResult) -> Value {
    let word = match validated.result {
        GateResult::Passed => "passed",
        GateResult::Skipped => "skipped",
        GateResult::Failed | GateResult::Blocked => "failed",
    };
    json!({ "ruleName": validated.rule, "passed": validated.has_passed(), "message": word })
}

fn decision(evaluated: StopEvaluation) -> Value {
    present([
        ("hookId", json!(evaluated.hook)),
        ("action", json!(action_name(evaluated.action))),
        ("reason", json!(evaluated.reason)),
        ("nextPrompt", json!(evaluated.next_prompt)),
    ])
}

fn signal_name(signal: LoopSignal) -> &'static str {
    match signal {
        LoopSignal::Continue => "CONTINUE",
        LoopSignal::Complete => "COMPLETE",
        LoopSignal::Blocked => "BLOCKED",
        LoopSignal::Escalate => "ESCALATE",
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NextArguments {
    iteration_id: String,
    #[serde(rename = "validationResult")]
    _validation_result: Option<Value>,
    #[serde(rename = "agentContext")]
    _agent_context: Option<Value>,
}

fn next(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: NextArguments = read(arguments)?;
    let iteration = tools.next(&wanted.iteration_id)?;
    Ok(present([
        ("iterationId", json!(iteration.id.as_str())),
        ("iterationNumber", json!(iteration.number)),
        ("remainingIterations", json!(iteration.max_iterations.saturating_sub(iteration.number))),
        ("config", config(&iteration)),
        ("nextPrompt", json!(iteration.prompt)),
    ]))
}

fn config(iteration: &LoopState) -> Value {
    json!({
        "maxIterations": iteration.max_iterations,
        "completionPromises": iteration.promises,
        "circuitBreakerThreshold": iteration.circuit_breaker,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CompleteArguments {
    iteration_id: String,
    completion_promise: String,
}

fn complete(tools: &AgentTools, arguments: Arguments) -> ToolAnswer {
    let wanted: CompleteArguments = read(arguments)?;
    let promised = promise(&wanted.completion_promise)?;
    let LoopCompletion { id, task, at, iterations, promise, is_claim, prompt } =
        tools.complete(&wanted.iteration_id, promised)?;
    let (status, message) = if is_claim {
        ("claimed", json!("noted as a claim: gates are held against it when the turn ends"))
    } else {
        ("completed", Value::Null)
    };
    Ok(present([
        ("iterationId", json!(id.as_str())),
        ("taskId", json!(task)),
        ("completedAt", json!(at)),
        ("totalIterations", json!(iterations)),
        ("nextPrompt", json!(prompt)),
        ("completionPromise", json!(promise)),
        ("status", json!(status)),
        ("message", message),
    ]))
}

/// A promise by its word, or as it is written in a message.
fn promise(text: &str) -> Result<Promise, ToolRefusal> {
    let inner =
        text.trim().strip_prefix("<promise>").and_then(|text| text.strip_suffix("</promise>"));
    match inner.unwrap_or(text).trim() {
        "COMPLETE" => Ok(Promise::Complete),
        "BLOCKED" => Ok(Promise::Blocked),
        "ESCALATE" => Ok(Promise::Escalate),
        _ => Err(ToolRefusal::argument("a promise is COMPLETE, BLOCKED or ESCALATE".to_owned())),
    }
}
