//! Codex, as `codex exec --json`.
//!
//! Codex reads a repository's settings, hooks and servers only where its user trusts the directory in Codex itself.
//! So hookloop need not exclude them.

use std::ffi::OsString;

use hookloop_config::agents::{AgentPermissions, AgentSettings};
use hookloop_core::session::Usage;
use hookloop_hooks::exec_context::ExecContext;
use serde_json::Value;

use super::jsonl_agent::{self, JsonlCommand, JsonlReader, JsonlReports, ReportedEnd, text};
use super::tools::{McpServerCommand, SERVER};
use super::{Agent, TurnReport, TurnRequest, TurnUpdate, environment};

#[derive(Debug)]
pub(crate) struct CodexAgent {
    settings: AgentSettings,
}

impl CodexAgent {
    pub(crate) fn new(settings: AgentSettings) -> CodexAgent {
        CodexAgent { settings }
    }

    fn argv(&self, conversation: Option<&str>, tools: Option<&McpServerCommand>) -> Vec<OsString> {
        let mut ours: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| ours.extend(words.iter().map(OsString::from));
        add(&["exec", "--json", "--skip-git-repo-check"]);
        add(match self.settings.permissions {
            AgentPermissions::Read => &["-c", "sandbox_mode=\"read-only\""],
            AgentPermissions::Edit => &["-c", "sandbox_mode=\"workspace-write\""],
            AgentPermissions::Full => &["--dangerously-bypass-approvals-and-sandbox"],
        });
        if self.settings.permissions != AgentPermissions::Full {
            // No person is there to answer.
            add(&["-c", "approval_policy=\"never\""]);
        }
        // An automatic update would replace the tested version during a night.
        add(&["-c", "check_for_update_on_startup=false"]);
        if let Some(model) = &self.settings.model {
            add(&["-m", model]);
        }
        for setting in tools.map(settings).unwrap_or_default() {
            add(&["-c", &setting]);
        }
        // The prompt is on standard input.
        match conversation {
            Some(id) => self.settings.argv(ours, &["resume", id, "-"]),
            None => self.settings.argv(ours, &["-"]),
        }
    }
}

impl Agent for CodexAgent {
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport {
        let talk = order.conversation;
        let argv = self.argv(talk.map(|talk| talk.id.as_str()), order.tools);
        let env = environment(runner, order, &self.settings.env, &self.settings.named);
        // Codex counts from the beginning of the conversation.
        let before = talk.map_or_else(Usage::default, |talk| talk.usage);
        let start = JsonlCommand { base: self.settings.base, argv, env };
        jsonl_agent::turn(start, runner, order, updates, &mut CodexReader { before })
    }
}

/// Returns the server in the form of Codex's settings. Strings and lists of JSON are valid in TOML.
fn settings(tools: &McpServerCommand) -> Vec<String> {
    let text = |value: &str| Value::from(value).to_string();
    let env: Vec<String> =
        tools.env.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    let server = format!("mcp_servers.{SERVER}");
    vec![
        format!("{server}.command={}", text(&tools.program.to_string_lossy())),
        format!("{server}.args={}", Value::from(tools.args.clone())),
        format!("{server}.env={{{}}}", env.join(",")),
        // No person is there to answer.
        format!("{server}.default_tools_approval_mode=\"approve\""),
    ]
}

struct CodexReader {
    /// The usage of the conversation before this turn.
    before: Usage,
}

impl JsonlReader for CodexReader {
    fn event(
        &mut self,
        event: &Value,
        told: &mut JsonlReports,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) {
        match text(event, "type") {
            "thread.started" => told.conversation = Some(text(event, "thread_id").to_owned()),
            "item.started" => {
                if let Some(what) = tool(&event["item"]) {
                    updates(TurnUpdate::Tool(&what));
                }
            }
            "item.completed" => completed(&event["item"], told, updates),
            "turn.completed" => {
                told.usage = tokens(&event["usage"]).since(self.before);
                told.end = Some(ReportedEnd::Finished);
                updates(TurnUpdate::Usage(told.usage));
            }
            "turn.failed" => told.fail(text(&event["error"], "message").to_owned()),
            // A warning, or the cause of the failure that follows.
            _ => {}
        }
    }

    /// Reads a refused request. Codex reports refusals to the model, and otherwise only on standard error.
    fn aside(&mut self, line: &str, told: &mut JsonlReports) {
        if let Some((_, why)) = line.split_once("tools::router: error=")
            && why.contains("reject")
        {
            told.refuse(why);
        }
    }
}

fn completed(item: &Value, told: &mut JsonlReports, updates: &mut dyn FnMut(TurnUpdate<'_>)) {
    if text(item, "type") == "agent_message" {
        text(item, "text").clone_into(&mut told.message);
        updates(TurnUpdate::Text(text(item, "text")));
        return;
    }
    let Some(what) = tool(item) else { return };
    if text(item, "status") == "declined" {
        told.refuse(&what);
    }
    // Codex reports a tool when it begins, except for a change of files, which is done at once.
    if text(item, "type") == "file_change" {
        updates(TurnUpdate::Tool(&what));
    }
}

/// Returns a tool in one line: its name and its object.
fn tool(item: &Value) -> Option<String> {
    let line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match text(item, "type") {
        "command_execution" => Some(format!("$ {}", line(text(item, "command")))),
        "file_change" => {
            let changes = item["changes"].as_array().into_iter().flatten();
            let paths: Vec<&str> = changes.map(|change| text(change, "path")).collect();
            Some(format!("edit {}", paths.join(", ")))
        }
        "mcp_tool_call" => Some(format!("{} {}", text(item, "server"), text(item, "tool"))),
        "web_search" => Some(format!("search {}", line(text(item, "query")))),
        _ => None,
    }
}

fn tokens(usage: &Value) -> Usage {
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    Usage {
        input_tokens: count("input_tokens"),
        cached_tokens: count("cached_input_tokens"),
        output_tokens: count("output_tokens"),
        cost_micros: 0,
    }
}
