//! Collects the texts, tools and usage of a turn from an agent's notifications.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, Cost, MessageId, RequestPermissionOutcome,
    RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, ToolCall, ToolCallId,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use hookloop_core::excerpt::{self, ExcerptRules, LeftOut};
use hookloop_core::promise::{Promise, Scanner};
use hookloop_core::redact::{RedactStream, Redactor};
use hookloop_core::session::Usage;
use serde_json::Value;

use super::permission::{self, PermissionRequest, PermissionRules};
use crate::{MESSAGE_MAX, REFUSED_MAX, TurnUpdate};

/// The most of a message that is held before its middle is dropped.
const MESSAGE_HELD: usize = 64 * MESSAGE_MAX;
/// The size of the pieces in which text without a newline is shown.
const PIECE_MAX: usize = 16 * 1024;
/// The longest line about a tool.
const LINE_MAX: usize = 200;
/// The most tools that are remembered, and paths of each.
const TOOLS_MAX: usize = 256;
const PATHS_MAX: usize = 64;
const MICROS: f64 = 1_000_000.0;

pub(super) type UpdateSink<'a> = &'a mut dyn FnMut(TurnUpdate<'_>);

/// A turn so far.
pub(super) struct TurnAccount<'a> {
    redactor: &'a Redactor,
    /// The conversation, once the prompt is sent. Earlier notifications belong to other turns.
    live: Option<SessionId>,
    speech: PartialMessage<'a>,
    tools: VecDeque<(ToolCallId, ToolInUse)>,
    /// The tool that was not shown yet: more details may follow before it runs.
    unshown: Option<ToolCallId>,
    usage: Usage,
    /// The agent reported the cost of the turn.
    has_cost: bool,
    /// The cost of the conversation before this turn.
    cost_before: u64,
    refused: Vec<String>,
    is_broken: bool,
}

/// The result of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AcpTurnResult {
    pub(super) message: String,
    pub(super) promises: Vec<Promise>,
    pub(super) usage: Usage,
    pub(super) refused: Vec<String>,
    /// The agent reported the cost of the turn.
    pub(super) has_cost: bool,
    /// The agent could not continue, and its message says so.
    pub(super) is_broken: bool,
}

#[derive(Debug)]
struct ToolInUse {
    kind: ToolKind,
    title: String,
    paths: Vec<PathBuf>,
}

impl<'a> TurnAccount<'a> {
    pub(super) fn new(redactor: &'a Redactor, before: Option<Usage>) -> TurnAccount<'a> {
        TurnAccount {
            redactor,
            live: None,
            speech: PartialMessage::new(redactor),
            tools: VecDeque::new(),
            unshown: None,
            usage: Usage::default(),
            has_cost: false,
            cost_before: before.unwrap_or_default().cost_micros,
            refused: Vec::new(),
            is_broken: false,
        }
    }

    /// Begins the turn: the prompt is sent next.
    pub(super) fn begin(&mut self, session: SessionId) {
        self.live = Some(session);
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        self.live.as_ref()
    }

    /// Takes a notification of the agent.
    pub(super) fn take(&mut self, told: SessionNotification, updates: UpdateSink<'_>) {
        match &self.live {
            Some(session) if *session == told.session_id => {}
            // A conversation inside this one, which the agent started itself.
            Some(_) => return,
            None => {
                if let SessionUpdate::UsageUpdate(usage) = told.update {
                    self.cost_before = cost_micros(usage.cost.as_ref()).unwrap_or(self.cost_before);
                }
                return;
            }
        }
        match told.update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.show_tool(updates);
                self.speech.take(&chunk, updates);
            }
            SessionUpdate::ToolCall(call) => self.begin_tool(call, updates),
            SessionUpdate::ToolCallUpdate(update) => self.update_tool(update, updates),
            SessionUpdate::UsageUpdate(usage) => {
                let total = cost_micros(usage.cost.as_ref());
                let cost = total.map(|total| cost_of_turn(total, self.cost_before));
                // An agent that knows no price reports 0.
                self.has_cost |= total.is_some_and(|total| total > 0);
                if let Some(cost) = cost.filter(|cost| *cost != self.usage.cost_micros) {
                    self.usage.cost_micros = cost;
                    updates(TurnUpdate::Usage(self.usage));
                }
            }
            SessionUpdate::SessionInfoUpdate(info) => {
                // Codex answers a failed prompt like any other, and reports the failure here.
                let status = info.meta.as_ref().and_then(|meta| meta.get("codex"));
                let status = status.and_then(|codex| codex.pointer("/threadStatus/type"));
                if let Some(status) = status {
                    self.is_broken = status == "systemError";
                }
            }
            _ => {}
        }
    }

    /// Answers a request for permission.
    pub(super) fn decide(
        &mut self,
        asked: RequestPermissionRequest,
        guard: &PermissionRules<'_>,
        updates: UpdateSink<'_>,
    ) -> RequestPermissionOutcome {
        let id = asked.tool_call.tool_call_id.clone();
        // Some agents report a tool only after it has run.
        self.update_tool(asked.tool_call, updates);
        self.show_tool(updates);
        let Some(tool) = self.tool(&id) else { return RequestPermissionOutcome::Cancelled };
        let permission_request =
            PermissionRequest { kind: tool.kind, title: &tool.title, paths: &tool.paths };
        let (outcome, is_yes) = guard.answer(&permission_request, &asked.options);
        if !is_yes && self.refused.len() < REFUSED_MAX {
            self.refused.push(self.line(tool));
        }
        outcome
    }

    /// Takes the agent's answer to the prompt.
    pub(super) fn answered(&mut self, answer: &Value, updates: UpdateSink<'_>) {
        self.speech.show_rest(updates);
        if let Some(tokens) = tokens(answer) {
            self.usage = Usage { cost_micros: self.usage.cost_micros, ..tokens };
            updates(TurnUpdate::Usage(self.usage));
        }
    }

    pub(super) fn finish(mut self, updates: UpdateSink<'_>) -> AcpTurnResult {
        self.show_tool(updates);
        self.speech.show_rest(updates);
        AcpTurnResult {
            message: self.speech.message(),
            promises: self.speech.scanner.finish(),
            usage: self.usage,
            has_cost: self.has_cost,
            refused: self.refused,
            is_broken: self.is_broken,
        }
    }

    fn begin_tool(&mut self, call: ToolCall, updates: UpdateSink<'_>) {
        self.show_tool(updates);
        // The final message begins after the last tool.
        self.speech.show_rest(updates);
        self.speech = PartialMessage::new(self.redactor);
        let is_vague = call.status == ToolCallStatus::Pending && call.locations.is_empty();
        let id = call.tool_call_id;
        let tool = ToolInUse { kind: call.kind, title: call.title, paths: paths(call.locations) };
        if self.tools.len() == TOOLS_MAX {
            self.tools.pop_front();
        }
        self.tools.push_back((id.clone(), tool));
        self.unshown = Some(id);
        if !is_vague {
            self.show_tool(updates);
        }
    }

    /// Takes new details of a tool, or a new tool.
    fn update_tool(&mut self, update: ToolCallUpdate, updates: UpdateSink<'_>) {
        let ToolCallUpdate { tool_call_id: id, fields, .. } = update;
        let known = self.tools.iter_mut().rfind(|(known, _)| *known == id);
        let Some((_, tool)) = known else {
            let call = ToolCall::new(id, fields.title.unwrap_or_default())
                .kind(fields.kind.unwrap_or_default())
                .status(fields.status.unwrap_or_default())
                .locations(fields.locations.unwrap_or_default());
            return self.begin_tool(call, updates);
        };
        tool.kind = fields.kind.unwrap_or(tool.kind);
        if let Some(title) = fields.title {
            tool.title = title;
        }
        if let Some(locations) = fields.locations {
            tool.paths = paths(locations);
        }
        if self.unshown.as_ref() == Some(&id) {
            self.show_tool(updates);
        }
    }

    fn tool(&self, id: &ToolCallId) -> Option<&ToolInUse> {
        self.tools.iter().rfind(|(known, _)| known == id).map(|(_, tool)| tool)
    }

    fn show_tool(&mut self, updates: UpdateSink<'_>) {
        let id = self.unshown.take();
        if let Some(tool) = id.and_then(|id| self.tool(&id)) {
            updates(TurnUpdate::Tool(&self.line(tool)));
        }
    }

    /// Returns a tool in one line: its kind, its title and its file.
    fn line(&self, tool: &ToolInUse) -> String {
        let (kind, title) = (permission::name(tool.kind), self.redactor.text(&tool.title));
        let path = tool.paths.first().map(|path| self.redactor.text(&path.to_string_lossy()));
        let is_named = |path: &String| {
            let name = Path::new(path).file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| title.contains(&*name))
        };
        let line = match path.filter(|path| !is_named(path)) {
            Some(path) => format!("{kind}: {title} {path}"),
            None => format!("{kind}: {title}"),
        };
        one_line(&line)
    }
}

/// A message in progress.
struct PartialMessage<'a> {
    redact: Option<RedactStream<'a>>,
    /// Text that was not shown yet.
    rest: Vec<u8>,
    /// The beginning of the message.
    text: String,
    /// The end of the message, once the beginning is long.
    end: String,
    /// The dropped part between the two.
    left_out: LeftOut,
    scanner: Scanner,
    message: Option<MessageId>,
}

impl<'a> PartialMessage<'a> {
    fn new(redactor: &'a Redactor) -> PartialMessage<'a> {
        PartialMessage {
            redact: Some(redactor.stream()),
            rest: Vec::new(),
            text: String::new(),
            end: String::new(),
            left_out: LeftOut::default(),
            scanner: Scanner::default(),
            message: None,
        }
    }

    fn take(&mut self, chunk: &ContentChunk, updates: UpdateSink<'_>) {
        let ContentBlock::Text(text) = &chunk.content else { return };
        // Two messages in a row need a line break.
        if self.message.is_some() && chunk.message_id.is_some() && self.message != chunk.message_id
        {
            self.push(b"\n\n");
        }
        self.message = chunk.message_id.clone().or_else(|| self.message.take());
        self.push(text.text.as_bytes());
        let lines = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = match lines {
            0 if self.rest.len() > PIECE_MAX => match std::str::from_utf8(&self.rest) {
                Ok(rest) => rest.len(),
                Err(error) => error.valid_up_to(),
            },
            lines => lines,
        };
        self.show(whole, updates);
    }

    fn push(&mut self, text: &[u8]) {
        if let Some(redact) = &mut self.redact {
            redact.push(text, &mut self.rest);
        }
    }

    fn keep(&mut self, shown: &str) {
        if self.end.is_empty() && self.text.len() < MESSAGE_HELD / 2 {
            self.text.push_str(shown);
            return;
        }
        self.end.push_str(shown);
        if self.end.len() > MESSAGE_HELD {
            let kept = excerpt::whole_lines_of_tail(&self.end, MESSAGE_HELD / 2);
            let cut = self.end.len() - kept.len();
            self.left_out = self.left_out.plus(LeftOut::of(&self.end[..cut]));
            self.end.drain(..cut);
        }
    }

    /// Returns the message, shortened to [`MESSAGE_MAX`].
    fn message(&self) -> String {
        let is_cut = self.left_out != LeftOut::default();
        let text = if is_cut {
            excerpt::around(&self.text, self.left_out, &self.end)
        } else {
            format!("{}{}", self.text, self.end)
        };
        let earlier = if is_cut { &[self.left_out][..] } else { &[] };
        let rules = ExcerptRules { max: MESSAGE_MAX, head_parts: 2, earlier };
        excerpt::head_and_tail(text.trim(), rules)
    }

    /// Ends the message.
    fn show_rest(&mut self, updates: UpdateSink<'_>) {
        if let Some(redact) = self.redact.take() {
            redact.finish(&mut self.rest);
        }
        self.show(self.rest.len(), updates);
    }

    fn show(&mut self, length: usize, updates: UpdateSink<'_>) {
        if length == 0 {
            return;
        }
        let rest = self.rest.split_off(length);
        let shown = std::mem::replace(&mut self.rest, rest);
        let shown = String::from_utf8_lossy(&shown);
        self.scanner.push(shown.as_bytes());
        self.keep(&shown);
        updates(TurnUpdate::Output(shown.as_bytes()));
    }
}

fn paths(locations: Vec<ToolCallLocation>) -> Vec<PathBuf> {
    locations.into_iter().take(PATHS_MAX).map(|location| location.path).collect()
}

/// Returns a text as one line that is safe for a terminal.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut line = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > LINE_MAX {
            let end = (0..LINE_MAX).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// Returns the tokens of a turn. Agents count reads and writes of a cache apart from other input.
fn tokens(answer: &Value) -> Option<Usage> {
    let count = |at: &str| answer.pointer(at).and_then(Value::as_u64);
    if let (Some(input), Some(output)) = (count("/usage/inputTokens"), count("/usage/outputTokens"))
    {
        let cached = count("/usage/cachedReadTokens").unwrap_or(0);
        let written = count("/usage/cachedWriteTokens").unwrap_or(0);
        let input = input.saturating_add(cached).saturating_add(written);
        // Some agents count reasoning apart from other output. The total includes it.
        let total = count("/usage/totalTokens").unwrap_or(0);
        let output = output.max(total.saturating_sub(input));
        return Some(Usage {
            input_tokens: input,
            cached_tokens: cached,
            output_tokens: output,
            cost_micros: 0,
        });
    }
    // Gemini reports tokens in a field of its own.
    let of_quota = |name: &str| count(&format!("/_meta/quota/token_count/{name}"));
    Some(Usage {
        input_tokens: of_quota("input_tokens")?,
        output_tokens: of_quota("output_tokens")?,
        ..Usage::default()
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates as it should"
)]
fn cost_micros(cost: Option<&Cost>) -> Option<u64> {
    let cost = cost.filter(|cost| cost.currency.eq_ignore_ascii_case("USD"))?;
    Some((cost.amount * MICROS).round() as u64)
}

/// Returns the cost of a turn from the total of its conversation. Some agents start again at 0 in each process; then
/// the total is less than before.
fn cost_of_turn(total: u64, before: u64) -> u64 {
    total.checked_sub(before).unwrap_or(total)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agent_client_protocol::v1::schema::{
        RequestPermissionOutcome, RequestPermissionRequest, SessionId, SessionNotification,
    };
    use hookloop_core::promise::Promise;
    use hookloop_core::redact::Redactor;
    use hookloop_core::session::Usage;
    use serde_json::{Value, json};

    use super::{AcpTurnResult, MESSAGE_HELD, REFUSED_MAX, TurnAccount, one_line, tokens};
    use crate::acp::permission::PermissionRules;
    use crate::{MESSAGE_MAX, TurnUpdate};
    use hookloop_config::agents::AgentPermissions;

    /// A turn of the conversation `s`, whose updates are those, the ones before the prompt first.
    fn turn(history: &[Value], told: &[Value], before: Usage) -> (AcpTurnResult, Vec<String>) {
        let redactor = Redactor::new([("MY_TOKEN", "hush-hush")]).unwrap();
        let mut account = TurnAccount::new(&redactor, Some(before));
        let mut seen = Vec::new();
        let mut updates = |update: TurnUpdate<'_>| {
            seen.push(match update {
                TurnUpdate::Output(text) => format!("said {}", String::from_utf8_lossy(text)),
                TurnUpdate::Tool(line) => format!("did {line}"),
                update => format!("{update:?}"),
            });
        };
        let of = |update: &Value| -> SessionNotification {
            let session = update.get("of").cloned().unwrap_or(json!("s"));
            serde_json::from_value(json!({ "sessionId": session, "update": update })).unwrap()
        };
        history.iter().for_each(|update| account.take(of(update), &mut updates));
        account.begin(SessionId::new("s"));
        told.iter().for_each(|update| account.take(of(update), &mut updates));
        (account.finish(&mut updates), seen)
    }

    fn says(text: &str) -> Value {
        let content = json!({ "type": "text", "text": text });
        json!({ "sessionUpdate": "agent_message_chunk", "content": content })
    }

    fn tool(id: &str, more: Value) -> Value {
        let mut call = json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "Write" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    }

    #[test]
    fn messages_before_the_prompt_belong_to_earlier_turns() {
        let history = [says("Old.\n<promise>COMPLETE</promise>\n"), tool("1", json!({}))];
        let (said, seen) = turn(&history, &[says("New.")], Usage::default());
        assert_eq!((said.message.as_str(), &said.promises[..]), ("New.", &[][..]));
        assert_eq!(seen, ["said New."]);
    }

    #[test]
    fn messages_of_another_conversation_are_ignored() {
        let mut other = says("Within.");
        other["of"] = json!("t");
        let (said, seen) = turn(&[], &[other, says("Here.")], Usage::default());
        assert_eq!(said.message, "Here.");
        assert_eq!(seen, ["said Here."]);
    }

    #[test]
    fn the_final_message_is_the_text_after_the_last_tool_call() {
        let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed" });
        let place = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "1", "kind": "edit",
            "locations": [{ "path": "/project/a.txt" }],
        });
        let told = [
            says("I wri"),
            says("te.\n<promise>BLOCKED</promise>\nSo"),
            tool("1", json!({})),
            place,
            says("All do"),
            done,
            says("ne.\n\n<promise>COMP"),
            says("LETE</promise>"),
        ];
        let (said, seen) = turn(&[], &told, Usage::default());
        assert_eq!(said.message, "All done.\n\n<promise>COMPLETE</promise>");
        assert_eq!(said.promises, [Promise::Complete]);
        assert_eq!(
            seen,
            [
                "said I write.\n<promise>BLOCKED</promise>\n",
                "said So",
                "did edit: Write /project/a.txt",
                "said All done.\n\n",
                "said <promise>COMPLETE</promise>",
            ]
        );
    }

    #[test]
    fn consecutive_messages_are_separated_by_line_ends() {
        let (mut first, mut second) = (says("One."), says("<promise>COMPLETE</promise>"));
        (first["messageId"], second["messageId"]) = (json!("1"), json!("2"));
        let (said, _) = turn(&[], &[first, second], Usage::default());
        assert_eq!(said.promises, [Promise::Complete]);
    }

    #[test]
    fn secrets_split_across_messages_are_redacted() {
        let told = [
            says("It is hush"),
            says("-hush.\n"),
            tool(
                "1",
                json!({ "title": "echo hush-hush", "kind": "execute", "status": "in_progress" }),
            ),
            says("hush-hu"),
            says("sh"),
        ];
        let (said, seen) = turn(&[], &told, Usage::default());
        assert!(!format!("{said:?} {seen:?}").contains("hush"), "{said:?} {seen:?}");
        assert_eq!(seen.len(), 3, "{seen:?}");
    }

    #[test]
    fn a_truncated_message_keeps_its_promise() {
        let many = vec![says(&"x".repeat(MESSAGE_HELD / 4)); 9];
        let mut told = vec![says("Head.\n")];
        told.extend(many);
        told.push(says("\n<promise>ESCALATE</promise>\nTail."));
        let (said, _) = turn(&[], &told, Usage::default());
        assert_eq!(said.promises, [Promise::Escalate]);
        assert!(said.message.len() < MESSAGE_MAX + 100);
        assert!(said.message.starts_with("Head.") && said.message.ends_with("Tail."));
    }

    #[test]
    fn refused_tool_calls_are_recorded_up_to_a_limit() {
        let redactor = Redactor::new([("MY_TOKEN", "hush-hush")]).unwrap();
        let mut account = TurnAccount::new(&redactor, None);
        account.begin(SessionId::new("s"));
        let root = Path::new("/project");
        let guard =
            PermissionRules { permissions: AgentPermissions::Edit, allowed_tools: &[], root };
        let mut seen = 0;
        for index in 0..REFUSED_MAX + 5 {
            let asked: RequestPermissionRequest = serde_json::from_value(json!({
                "sessionId": "s",
                "toolCall": { "toolCallId": index.to_string(), "title": "rm\n  -r x", "kind": "execute" },
                "options": [{ "optionId": "no", "name": "No", "kind": "reject_once" }],
            }))
            .unwrap();
            let outcome = account.decide(asked, &guard, &mut |_| seen += 1);
            assert!(matches!(outcome, RequestPermissionOutcome::Selected(_)), "{outcome:?}");
        }
        let said = account.finish(&mut |_| {});
        assert_eq!(said.refused, vec!["execute: rm -r x"; REFUSED_MAX]);
        assert_eq!(seen, REFUSED_MAX + 5, "each tool is shown");
    }

    #[test]
    fn a_system_error_status_of_codex_fails_the_turn() {
        let status = |kind: &str| {
            let codex = json!({ "threadStatus": { "type": kind } });
            json!({ "sessionUpdate": "session_info_update", "_meta": { "codex": codex } })
        };
        let title = json!({ "sessionUpdate": "session_info_update", "title": "x" });
        let check = |history: &[Value], told: &[Value], expected: bool| {
            assert_eq!(turn(history, told, Usage::default()).0.is_broken, expected, "{told:?}");
        };
        check(&[], &[status("active"), status("systemError"), title.clone()], true);
        check(&[], &[status("systemError"), status("active"), title], false);
        check(&[status("systemError")], &[], false);
    }

    #[test]
    fn the_cost_of_earlier_turns_is_subtracted() {
        let cost = |amount: f64| {
            let cost = json!({ "amount": amount, "currency": "USD" });
            json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost })
        };
        let before = Usage { cost_micros: 500_000, ..Usage::default() };
        let check = |history: &[Value], told: &[Value], expected: u64| {
            assert_eq!(turn(history, told, before).0.usage.cost_micros, expected);
        };
        check(&[], &[cost(0.6), cost(0.75)], 250_000);
        check(&[cost(0.7)], &[cost(0.75)], 50_000);
        check(&[], &[cost(0.25)], 250_000);
        check(&[], &[], 0);
    }

    #[test]
    fn tokens_are_counted_once() {
        let check = |answer: Value, expected: Option<(u64, u64, u64)>| {
            let found = tokens(&answer);
            let found = found.map(|it| (it.input_tokens, it.cached_tokens, it.output_tokens));
            assert_eq!(found, expected, "{answer}");
        };
        check(json!({ "stopReason": "end_turn" }), None);
        let usage = json!({ "inputTokens": 3, "outputTokens": 5, "totalTokens": 8 });
        check(json!({ "usage": usage }), Some((3, 0, 5)));
        let usage = json!({
            "inputTokens": 3, "cachedReadTokens": 10, "cachedWriteTokens": 20, "outputTokens": 5,
            "thoughtTokens": 4, "totalTokens": 38,
        });
        check(json!({ "usage": usage }), Some((33, 10, 5)));
        let usage = json!({
            "inputTokens": 3, "outputTokens": 5, "thoughtTokens": 4, "totalTokens": 12,
        });
        check(json!({ "usage": usage }), Some((3, 0, 9)));
        let quota = json!({ "token_count": { "input_tokens": 7, "output_tokens": 1 } });
        check(json!({ "_meta": { "quota": quota } }), Some((7, 0, 1)));
    }

    #[test]
    fn texts_are_shortened_to_one_line() {
        assert_eq!(one_line(" a\n\tb\u{1b}[31m c "), "a b [31m c");
        let line = one_line(&"ä".repeat(500));
        assert!(line.len() < 210 && line.ends_with('…'), "{line}");
    }
}
