//! Real agents and hookloop's tools: loops that an agent leads, and tools that an agent calls
//! within a session.

use std::fs;
use std::process::Output;

use hookloop_testbed::model::{Call, ITERATION_ID, Input, Turn};
use serde_json::{Value, json};

use crate::agents::stage::{AgentProject, GATED, Who};

impl Who {
    /// Returns a call of one of hookloop's tools, with the name that the agent uses.
    fn tool(self, name: &str, input: Value) -> Turn {
        let tool = match self {
            Who::Codex | Who::CodexAcp => format!("mcp__hookloop/{name}"),
            Who::Gemini | Who::Qwen => format!("mcp_hookloop_{name}"),
            Who::Opencode => format!("hookloop_{name}"),
            Who::Claude | Who::ClaudeAcp => format!("mcp__hookloop__{name}"),
        };
        Turn::call("I say so by a tool.", Call { tool, input: Input::Json(input) })
    }
}

impl AgentProject {
    fn with_task(who: Who) -> AgentProject {
        let stage = AgentProject::with(GATED, who, []);
        stage.configure("version: 1\nagents:\n  claude: {allowed_tools: [Bash]}\n");
        let added = stage.hookloop(&["task", "add", "Make the answer 42", "--id", "t1"]);
        assert_eq!(added.code, 0, "{added:#?}");
        stage
    }

    fn task(&self) -> Value {
        self.hookloop(&["task", "show", "t1"]).events.remove(0)
    }

    /// Runs the agent as a user would who has added the MCP server.
    fn led_by_itself(&self) -> Output {
        let hookloop = env!("CARGO_BIN_EXE_hookloop");
        let server =
            json!({ "mcpServers": { "hookloop": { "command": hookloop, "args": ["mcp"] } } });
        let server = server.to_string();
        let state = self.directory().join("STATE");
        let settings = [
            format!("mcp_servers.hookloop.command={}", json!(hookloop)),
            "mcp_servers.hookloop.args=[\"mcp\"]".to_owned(),
            format!("mcp_servers.hookloop.env={{XDG_STATE_HOME={}}}", json!(state)),
        ];
        let prompt = "Work on task t1";
        let mut args: Vec<&str> = match self.who {
            Who::Claude => vec![
                "-p",
                prompt,
                "--output-format",
                "stream-json",
                "--verbose",
                "--mcp-config",
                &server,
                "--permission-mode",
                "bypassPermissions",
            ],
            Who::Codex => vec!["exec", "--dangerously-bypass-approvals-and-sandbox"],
            other => panic!("{other:?} is not led by itself here"),
        };
        if self.who == Who::Codex {
            settings.iter().for_each(|setting| args.extend(["-c", setting]));
            args.push(prompt);
        }
        self.by_hand(&args)
    }
}

/// The agent uses all tools for their purpose, from the first call to the last.
fn leads_its_own_loop(who: Who) {
    let stage = AgentProject::with_task(who);
    let claim = "Done.\n<promise>COMPLETE</promise>";
    let on = |more: Value| {
        let mut input = json!({ "iterationId": ITERATION_ID });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    stage.model.extend([
        who.tool("task_get", json!({ "taskId": "t1" })),
        who.tool("hook_register", json!({ "taskId": "t1", "hookType": "default" })),
        who.tool(
            "iteration_start",
            json!({ "taskId": "t1", "maxIterations": 10, "completionPromises": ["COMPLETE", "BLOCKED"] }),
        ),
        Turn::call("I try.", who.run("echo 41 > answer.txt")),
        who.tool("iteration_validate", on(json!({ "agentOutput": claim }))),
        who.tool("iteration_next", on(json!({}))),
        Turn::call("I try again.", who.run("echo 42 > answer.txt")),
        who.tool("iteration_validate", on(json!({ "agentOutput": claim }))),
        who.tool("iteration_complete", on(json!({ "completionPromise": "COMPLETE" }))),
        who.tool("hook_clear", json!({ "taskId": "t1" })),
        Turn::say("Task t1 is complete."),
    ]);
    let output = stage.led_by_itself();
    let asked = stage.model.requests();
    assert_eq!(asked.len(), 11, "{}", String::from_utf8_lossy(&output.stdout));
    let says = |at: usize, text: &str| {
        assert!(asked[at].text().contains(text), "{at}: {text}: {}", asked[at].text());
    };
    says(1, "Make the answer 42");
    says(2, "hookId");
    says(3, "iterationNumber");
    says(5, "the answer is wrong");
    says(5, "CONTINUE");
    says(8, "COMPLETE");
    says(9, "completedAt");
    says(10, "hooksCleared");
    let task = stage.task();
    assert_eq!(task["state"], "completed", "{task}");
    let sessions = stage.hookloop(&["sessions", "list"]).events.remove(0);
    assert_eq!((&sessions[0]["state"], &sessions[0]["iteration"]), (&json!("complete"), &json!(2)));
    stage.assert_nobody_left();
}

/// A completion that the agent reports by a tool counts like a promise, and the gates check it.
fn claims_by_a_tool(who: Who) {
    let stage = AgentProject::with_task(who);
    let claim = || who.tool("task_update", json!({ "taskId": "t1", "status": "completed" }));
    stage.model.extend([
        claim(),
        Turn::say("I said so."),
        Turn::call("I fix it.", who.run("echo 42 > answer.txt")),
        claim(),
        Turn::say("I said so again."),
    ]);
    let ran = stage.run(&["--tasks", "--stop-when", "promise", "--permissions", "full"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.all("completion_claimed").len(), 2, "{ran:#?}");
    let verdicts: Vec<_> =
        ran.all("gates_evaluated").iter().map(|one| one["verdict"].clone()).collect();
    assert_eq!(verdicts, ["block", "pass"], "{ran:#?}");
    assert_eq!(stage.task()["state"], "completed");
    assert_eq!(fs::read_to_string(stage.path("answer.txt")).unwrap(), "42\n");
    stage.assert_nobody_left();
}

fn is_blocked_by_a_tool(who: Who) {
    let stage = AgentProject::with_task(who);
    let why =
        json!({ "taskId": "t1", "status": "blocked", "blockedReason": "there is no question" });
    stage.model.extend([who.tool("task_update", why), Turn::say("I can't go on.")]);
    let ran = stage.run(&["--tasks", "--stop-when", "promise"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let task = stage.task();
    assert_eq!(task["state"], "blocked", "{task}");
    assert!(
        task["blocked"]["reason"].as_str().unwrap().contains("there is no question"),
        "{ran:#?}"
    );
    stage.assert_nobody_left();
}

#[test]
fn claude_runs_its_own_loop_with_the_mcp_tools() {
    leads_its_own_loop(Who::Claude);
}

#[test]
fn codex_runs_its_own_loop_with_the_mcp_tools() {
    leads_its_own_loop(Who::Codex);
}

#[test]
fn claude_claims_completion_with_a_tool() {
    claims_by_a_tool(Who::Claude);
}

#[test]
fn codex_claims_completion_with_a_tool() {
    claims_by_a_tool(Who::Codex);
}

#[test]
fn codex_acp_claims_completion_with_a_tool() {
    claims_by_a_tool(Who::CodexAcp);
}

#[test]
fn claude_acp_claims_completion_with_a_tool() {
    claims_by_a_tool(Who::ClaudeAcp);
}

#[test]
fn opencode_claims_completion_with_a_tool() {
    claims_by_a_tool(Who::Opencode);
}

#[test]
fn gemini_claims_completion_with_a_tool() {
    claims_by_a_tool(Who::Gemini);
}

#[test]
fn claude_blocks_its_task_with_a_tool() {
    is_blocked_by_a_tool(Who::Claude);
}

#[test]
fn codex_blocks_its_task_with_a_tool() {
    is_blocked_by_a_tool(Who::Codex);
}

#[test]
fn codex_acp_blocks_its_task_with_a_tool() {
    is_blocked_by_a_tool(Who::CodexAcp);
}

#[test]
fn claude_acp_blocks_its_task_with_a_tool() {
    is_blocked_by_a_tool(Who::ClaudeAcp);
}

#[test]
fn opencode_blocks_its_task_with_a_tool() {
    is_blocked_by_a_tool(Who::Opencode);
}

#[test]
fn gemini_blocks_its_task_with_a_tool() {
    is_blocked_by_a_tool(Who::Gemini);
}
