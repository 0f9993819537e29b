//! Wire formats of the providers' protocols.

use serde_json::{Value, json};

use super::{Call, INPUT_TOKENS, Input, OUTPUT_TOKENS};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/responses`, used by Codex.
    Responses,
    /// `/chat/completions`, used by opencode.
    Chat,
    /// `/messages`, used by Claude Code.
    Messages,
    /// `:generateContent`, used by Gemini CLI.
    Generate,
}

pub(super) struct Route {
    pub(super) api: Api,
    /// Responses are always streamed, independently of the body.
    pub(super) streams: bool,
}

pub(super) fn route(path: &str) -> Option<Route> {
    let path = path.split('?').next().unwrap_or_default();
    let found = |api, streams| Some(Route { api, streams });
    match path {
        _ if path.ends_with("/responses") => found(Api::Responses, true),
        _ if path.ends_with("/chat/completions") => found(Api::Chat, false),
        _ if path.ends_with("/messages") || is_count(path) => found(Api::Messages, false),
        _ if path.ends_with(":streamGenerateContent") => found(Api::Generate, true),
        _ if path.ends_with(":generateContent") => found(Api::Generate, false),
        _ => None,
    }
}

pub(super) fn is_count(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.ends_with("/count_tokens") || path.ends_with(":countTokens")
}

pub(super) fn count() -> Value {
    json!({ "input_tokens": INPUT_TOKENS, "totalTokens": INPUT_TOKENS })
}

pub(super) fn nothing() -> Value {
    json!({ "object": "list", "data": [], "models": [] })
}

pub(super) fn refusal(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "code": status, "message": message } })
}

/// Returns whether this is a background request of the agent: without tools, or with a text that no
/// user sends.
pub(super) fn is_chore(api: Api, body: &Value) -> bool {
    const OPENINGS: [&str; 2] = ["[SUGGESTION MODE:", "The following is the Codex agent history"];
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let said = match api {
        Api::Responses => &body["input"],
        Api::Chat | Api::Messages => &body["messages"],
        Api::Generate => &body["contents"],
    };
    let last = said.as_array().and_then(|all| all.last()).map(Value::to_string).unwrap_or_default();
    !has_tools || OPENINGS.iter().any(|opening| last.contains(opening))
}

/// Response of the model to one request.
pub(super) struct Said<'a> {
    pub(super) text: &'a str,
    pub(super) call: Option<&'a Call>,
    /// Number of the request, for ids.
    pub(super) number: usize,
}

impl Said<'_> {
    fn id(&self, kind: &str) -> String {
        // Differs from the ids of every other model in the same conversation.
        let nonce = std::process::id();
        format!("{kind}_{nonce}_{}_{:p}", self.number, self.text.as_ptr())
    }
}

type Events = Vec<(Option<&'static str>, String)>;

impl Api {
    /// Returns a response in one piece.
    pub(super) fn whole(self, said: &Said<'_>) -> Value {
        match self {
            Api::Responses => response(said),
            Api::Chat => chat(said, "message"),
            Api::Messages => message(said),
            Api::Generate => generated(said),
        }
    }

    /// Returns a response as a stream of events.
    pub(super) fn events(self, said: &Said<'_>) -> Events {
        match self {
            Api::Responses => response_events(said),
            Api::Chat => {
                let mut chunk = chat(said, "delta");
                chunk["object"] = "chat.completion.chunk".into();
                vec![(None, chunk.to_string()), (None, "[DONE]".to_owned())]
            }
            Api::Messages => message_events(said),
            Api::Generate => vec![(None, generated(said).to_string())],
        }
    }
}

fn arguments(call: &Call) -> String {
    match &call.input {
        Input::Json(value) => value.to_string(),
        Input::Text(text) => text.clone(),
    }
}

fn object(call: &Call) -> Value {
    match &call.input {
        Input::Json(value) => value.clone(),
        Input::Text(text) => json!({ "input": text }),
    }
}

fn items(said: &Said<'_>) -> Vec<Value> {
    let content = json!([{ "type": "output_text", "text": said.text, "annotations": [] }]);
    let mut items = vec![
        json!({ "type": "message", "id": said.id("msg"), "role": "assistant", "content": content }),
    ];
    if let Some(call) = said.call {
        let (id, call_id) = (said.id("item"), said.id("call"));
        let (space, name) = match call.tool.rsplit_once('/') {
            Some((space, name)) => (Some(space), name),
            None => (None, call.tool.as_str()),
        };
        items.push(match &call.input {
            Input::Json(_) => {
                let mut item = json!({ "type": "function_call", "id": id, "call_id": call_id,
                    "name": name, "arguments": arguments(call) });
                if let Some(space) = space {
                    item["namespace"] = space.into();
                }
                item
            }
            Input::Text(text) => json!({ "type": "custom_tool_call", "id": id,
                "call_id": call_id, "name": name, "input": text }),
        });
    }
    items
}

fn response(said: &Said<'_>) -> Value {
    let usage = json!({ "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens_details": { "reasoning_tokens": 0 } });
    json!({ "id": said.id("resp"), "object": "response", "status": "completed",
        "output": items(said), "usage": usage })
}

fn response_events(said: &Said<'_>) -> Events {
    let done = response(said);
    let begun = json!({ "id": done["id"], "object": "response", "status": "in_progress",
        "output": [] });
    let named = |name: &'static str, mut data: Value| {
        data["type"] = name.into();
        (Some(name), data.to_string())
    };
    let mut events = vec![named("response.created", json!({ "response": begun }))];
    for (place, item) in items(said).iter().enumerate() {
        let at = json!({ "output_index": place, "item": item });
        events.push(named("response.output_item.added", at.clone()));
        if place == 0 {
            let delta = json!({ "output_index": 0, "content_index": 0, "item_id": item["id"],
                "delta": said.text });
            events.push(named("response.output_text.delta", delta));
        }
        events.push(named("response.output_item.done", at));
    }
    events.push(named("response.completed", json!({ "response": done })));
    events
}

fn chat(said: &Said<'_>, key: &str) -> Value {
    let mut spoken = json!({ "role": "assistant", "content": said.text });
    if let Some(call) = said.call {
        let function = json!({ "name": call.tool, "arguments": object(call).to_string() });
        spoken["tool_calls"] = json!([{ "index": 0, "id": said.id("call"), "type": "function", "function": function }]);
    }
    let finish = if said.call.is_some() { "tool_calls" } else { "stop" };
    json!({ "id": said.id("chat"), "object": "chat.completion", "created": 1_700_000_000,
        "model": "scripted",
        "usage": { "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS },
        "choices": [{ "index": 0, "finish_reason": finish, key: spoken }] })
}

fn message(said: &Said<'_>) -> Value {
    let mut content = vec![json!({ "type": "text", "text": said.text })];
    if let Some(call) = said.call {
        content.push(json!({ "type": "tool_use", "id": said.id("toolu"), "name": call.tool,
            "input": object(call) }));
    }
    let stop = if said.call.is_some() { "tool_use" } else { "end_turn" };
    json!({ "id": said.id("msg"), "type": "message", "role": "assistant", "model": "scripted",
        "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": { "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 } })
}

fn message_events(said: &Said<'_>) -> Events {
    let whole = message(said);
    let named = |name: &'static str, mut data: Value| {
        data["type"] = name.into();
        (Some(name), data.to_string())
    };
    let mut begun = whole.clone();
    (begun["content"], begun["stop_reason"]) = (json!([]), Value::Null);
    let mut events = vec![named("message_start", json!({ "message": begun }))];
    for (place, block) in whole["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let delta = match said.call.filter(|_| place == 1) {
            None => {
                empty["text"] = "".into();
                json!({ "type": "text_delta", "text": said.text })
            }
            Some(call) => {
                empty["input"] = json!({});
                json!({ "type": "input_json_delta", "partial_json": object(call).to_string() })
            }
        };
        events
            .push(named("content_block_start", json!({ "index": place, "content_block": empty })));
        events.push(named("content_block_delta", json!({ "index": place, "delta": delta })));
        events.push(named("content_block_stop", json!({ "index": place })));
    }
    let delta = json!({ "stop_reason": whole["stop_reason"], "stop_sequence": null });
    events.push(named("message_delta", json!({ "delta": delta, "usage": whole["usage"] })));
    events.push(named("message_stop", json!({})));
    events
}

fn generated(said: &Said<'_>) -> Value {
    let mut parts = vec![json!({ "text": said.text })];
    if let Some(call) = said.call {
        let function = json!({ "id": said.id("call"), "name": call.tool, "args": object(call) });
        parts.push(json!({ "functionCall": function }));
    }
    json!({ "responseId": said.id("resp"), "modelVersion": "scripted",
        "candidates": [{ "index": 0, "finishReason": "STOP",
            "content": { "role": "model", "parts": parts } }],
        "usageMetadata": { "promptTokenCount": INPUT_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS } })
}
