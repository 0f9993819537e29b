//! Claude Code, as `claude -p` with events on its output.
//!
//! `claude -p` does not ask whether a directory may be trusted: a repository's hooks, servers and permissions apply
//! at once. Unless the user trusted them, hookloop tells it to read only the user's settings. That also excludes
//! `CLAUDE.md`, which is only text, so hookloop passes that file on.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use hookloop_config::agents::{AgentPermissions, AgentSettings};
use hookloop_config::clock::now;
use hookloop_core::session::Usage;
use hookloop_hooks::exec_context::ExecContext;
use serde_json::Value;

use super::jsonl_agent::{self, JsonlCommand, JsonlReader, JsonlReports, ReportedEnd, text};
use super::limits::is_believed;
use super::tools::SERVER;
use super::{Agent, TurnReport, TurnRequest, TurnUpdate, environment};

/// The project's instructions for agents, beside its settings.
const MEMORY: &str = "CLAUDE.md";
/// The longest file that is passed on.
const MEMORY_MAX: u64 = 256 * 1024;

/// The reason of a turn that ended at its budget.
const BUDGET_EXHAUSTED: &str = "budget_exhausted";

#[derive(Debug)]
pub(crate) struct ClaudeAgent {
    settings: AgentSettings,
}

impl ClaudeAgent {
    pub(crate) fn new(settings: AgentSettings) -> ClaudeAgent {
        ClaudeAgent { settings }
    }

    fn argv(
        &self,
        root: &Path,
        conversation: &ClaudeConversation<'_>,
        order: &TurnRequest<'_>,
    ) -> Vec<OsString> {
        let mut ours: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| ours.extend(words.iter().map(OsString::from));
        add(&["-p", "--output-format", "stream-json", "--verbose"]);
        match conversation {
            ClaudeConversation::New(id) => add(&["--session-id", id]),
            ClaudeConversation::Old(id) => add(&["--resume", id]),
        }
        add(match self.settings.permissions {
            AgentPermissions::Read => {
                &["--permission-mode", "manual", "--permission-prompts", "none"]
            }
            AgentPermissions::Edit => {
                &["--permission-mode", "acceptEdits", "--permission-prompts", "none"]
            }
            AgentPermissions::Full => &["--permission-mode", "bypassPermissions"],
        });
        add(&["--max-budget-usd", &format!("{:.6}", order.budget_micros as f64 / 1_000_000.0)]);
        if !self.settings.takes_repository {
            add(&["--setting-sources", "user"]);
        }
        if let Some(model) = &self.settings.model {
            add(&["--model", model]);
        }
        let mut allowed = self.settings.allowed_tools.clone();
        if let Some(tools) = order.tools {
            add(&["--mcp-config", &tools.json().to_string()]);
            allowed.push(format!("mcp__{SERVER}"));
        }
        if !allowed.is_empty() {
            add(&["--allowed-tools", &allowed.join(",")]);
        }
        let memory = root.join(MEMORY);
        let is_text = |file: std::fs::Metadata| file.is_file() && file.len() <= MEMORY_MAX;
        if !self.settings.takes_repository && std::fs::symlink_metadata(&memory).is_ok_and(is_text)
        {
            ours.push("--append-system-prompt-file".into());
            ours.push(memory.into());
        }
        self.settings.argv(ours, &[])
    }
}

enum ClaudeConversation<'a> {
    /// With an id that hookloop makes, so that it is known even if the turn does not end.
    New(String),
    Old(&'a str),
}

impl Agent for ClaudeAgent {
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport {
        let conversation = match order.conversation {
            Some(talk) => ClaudeConversation::Old(&talk.id),
            None => ClaudeConversation::New(uuid::Uuid::new_v4().to_string()),
        };
        let argv = self.argv(runner.root(), &conversation, order);
        let mut env = environment(runner, order, &self.settings.env, &self.settings.named);
        // An automatic update would replace the tested version during a night.
        env.push(("DISABLE_AUTOUPDATER".into(), "1".into()));
        let before = order.conversation.map_or_else(Usage::default, |talk| talk.usage);
        let mut hearing = ClaudeReader { before, ..ClaudeReader::default() };
        let start = JsonlCommand { base: self.settings.base, argv, env };
        jsonl_agent::turn(start, runner, order, updates, &mut hearing)
    }
}

#[derive(Default)]
struct ClaudeReader {
    /// Messages that were counted. Each comes in several events, between those of other messages.
    counted: HashSet<String>,
    /// The usage of the conversation before this turn.
    before: Usage,
    so_far: Usage,
    /// The time before which requests are rejected, in milliseconds since 1970.
    rejected_until_ms: Option<u64>,
}

impl JsonlReader for ClaudeReader {
    fn event(
        &mut self,
        event: &Value,
        told: &mut JsonlReports,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) {
        match (text(event, "type"), text(event, "subtype")) {
            ("system", "init") => told.conversation = Some(text(event, "session_id").to_owned()),
            ("system", "permission_denied") => {
                told.refuse(&tool(text(event, "tool_name"), &event["tool_input"]));
            }
            ("assistant", _) => self.assistant(event, told, updates),
            ("rate_limit_event", _) => {
                let info = &event["rate_limit_info"];
                if text(info, "status") == "rejected" {
                    let seconds = info["resetsAt"].as_u64();
                    self.rejected_until_ms = seconds.map(|seconds| seconds.saturating_mul(1_000));
                }
            }
            ("result", _) => self.result(event, told),
            _ => {}
        }
    }
}

impl ClaudeReader {
    fn assistant(
        &mut self,
        event: &Value,
        told: &mut JsonlReports,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) {
        let message = &event["message"];
        if self.counted.insert(text(message, "id").to_owned()) {
            self.so_far.add(tokens(&message["usage"]));
            updates(TurnUpdate::Usage(self.so_far));
        }
        // Texts of subagents are for the agent, not for the user.
        if !event["parent_tool_use_id"].is_null() {
            return;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match text(block, "type") {
                "text" => {
                    text(block, "text").clone_into(&mut told.message);
                    updates(TurnUpdate::Text(text(block, "text")));
                }
                "tool_use" => {
                    updates(TurnUpdate::Tool(&tool(text(block, "name"), &block["input"])))
                }
                _ => {}
            }
        }
    }

    /// Reads the usage of a result. `model_usage_since_last_result` covers the time since the result before; all
    /// other counts begin with the conversation.
    fn count(&self, event: &Value, told: &mut JsonlReports) {
        told.has_cost = event["total_cost_usd"].is_number();
        if event["model_usage_since_last_result"].is_object() {
            told.usage.add(of_models(&event["model_usage_since_last_result"]));
        } else if event["modelUsage"].is_object() {
            told.usage = of_models(&event["modelUsage"]).since(self.before);
        } else {
            let cost_micros = micros(&event["total_cost_usd"]);
            told.usage = Usage { cost_micros, ..tokens(&event["usage"]) }.since(self.before);
        }
    }

    fn result(&mut self, event: &Value, told: &mut JsonlReports) {
        self.count(event, told);
        if told.refused.is_empty() {
            for denied in event["permission_denials"].as_array().into_iter().flatten() {
                told.refuse(&tool(text(denied, "tool_name"), &denied["tool_input"]));
            }
        }
        // The subtype is "success" even if the model did not answer.
        let is_good = event["is_error"] == false
            && matches!(event["terminal_reason"].as_str(), Some("completed") | None);
        if is_good {
            text(event, "result").clone_into(&mut told.message);
            told.end = Some(ReportedEnd::Finished);
            return;
        }
        let why = event["terminal_reason"].as_str().unwrap_or(text(event, "subtype"));
        // The agent kept to its budget. The session decides whether there is more.
        if why == BUDGET_EXHAUSTED {
            told.message = format!("{}\n\n[{why}]", told.message).trim().to_owned();
            told.end = Some(ReportedEnd::Spent);
            return;
        }
        let status = event["api_error_status"].as_u64();
        let status = status.map_or_else(String::new, |status| format!(" {status}"));
        let errors = event["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let said: Vec<&str> = std::iter::once(text(event, "result")).chain(errors).collect();
        let error = format!("{why}{status}: {}", said.join(" ").trim());
        match self.rejected_until_ms {
            Some(until_ms) => {
                let now_ms = now().0.cast_unsigned();
                let until_ms = Some(until_ms).filter(|until| is_believed(*until, now_ms));
                told.end = Some(ReportedEnd::RateLimited { error, until_ms });
            }
            None => told.fail(error),
        }
    }
}

/// Returns the usage of all models, including those of subagents.
fn of_models(models: &Value) -> Usage {
    let mut sum = Usage::default();
    for model in models.as_object().into_iter().flat_map(|models| models.values()) {
        let count = |name: &str| model[name].as_u64().unwrap_or(0);
        let cached = count("cacheReadInputTokens");
        sum.add(Usage {
            input_tokens: sum_of(&[
                count("inputTokens"),
                cached,
                count("cacheCreationInputTokens"),
            ]),
            cached_tokens: cached,
            output_tokens: count("outputTokens"),
            cost_micros: micros(&model["costUSD"]),
        });
    }
    sum
}

/// Returns the sum, at most the largest number.
fn sum_of(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

fn micros(dollars: &Value) -> u64 {
    (dollars.as_f64().unwrap_or(0.0) * 1_000_000.0).round() as u64
}

fn tokens(usage: &Value) -> Usage {
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let cached = count("cache_read_input_tokens");
    Usage {
        input_tokens: sum_of(&[
            count("input_tokens"),
            cached,
            count("cache_creation_input_tokens"),
        ]),
        cached_tokens: cached,
        output_tokens: count("output_tokens"),
        cost_micros: 0,
    }
}

/// Returns a tool in one line: its name and its object.
fn tool(name: &str, input: &Value) -> String {
    let what = ["file_path", "command", "path", "pattern", "url", "description"];
    match what.iter().find_map(|key| input[key].as_str()) {
        Some(what) => format!("{name} {}", what.lines().next().unwrap_or_default()),
        None => name.to_owned(),
    }
}
