//! Separates messages for the server from other text, and answers the latter.
//!
//! rmcp ignores broken JSON and long lines, ends at a notification that comes too early, and mixes up answers when an
//! id is used again; over HTTP it takes broken JSON for another type of content.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
};
use serde_json::{Map, Value, json};

use super::handler::unknown_method;
use crate::mcp::open_requests::OpenRequests;

#[derive(Debug)]
pub(super) enum GateDecision {
    Pass(Box<ClientJsonRpcMessage>),
    /// As it goes out.
    Answer(Value),
    Ignore,
}

impl GateDecision {
    pub(super) fn too_long(max: usize) -> GateDecision {
        let message = format!("a line has at most {max} bytes");
        answer(None, ErrorData::new(ErrorCode::INVALID_REQUEST, message, None))
    }
}

/// Returns the answer to a body that is no message, for a transport without a session.
pub(crate) fn refuse(body: &[u8]) -> Option<Value> {
    let open = OpenRequests::default();
    match (MessageGate { open: &open, is_begun: true }).judge(body) {
        GateDecision::Answer(answer) => Some(answer),
        GateDecision::Pass(_) | GateDecision::Ignore => None,
    }
}

pub(super) struct MessageGate<'a> {
    open: &'a OpenRequests,
    is_begun: bool,
}

impl MessageGate<'_> {
    pub(super) fn new(open: &OpenRequests) -> MessageGate<'_> {
        MessageGate { open, is_begun: false }
    }

    pub(super) fn judge(&mut self, line: &[u8]) -> GateDecision {
        if line.trim_ascii().is_empty() {
            return GateDecision::Ignore;
        }
        let message = match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => message,
            Ok(Value::Array(_)) => {
                return invalid(None, "one message a line: there are no batches");
            }
            Ok(_) => return invalid(None, "a message is an object"),
            Err(error) => {
                let error = ErrorData::parse_error(format!("not JSON: {error}"), None);
                return answer(None, error);
            }
        };
        match (message.get("method"), message.get("id")) {
            (Some(Value::String(_)), Some(id)) => match request_id(id) {
                Some(id) => self.request(id, message),
                None => invalid(None, "an id is a text or a whole number"),
            },
            (Some(Value::String(_)), None) => self.notification(message),
            (Some(_), _) => invalid(None, "a method is a text"),
            // An answer: nothing was asked.
            (None, Some(_)) => GateDecision::Ignore,
            (None, None) => invalid(None, "a message has a method"),
        }
    }

    fn request(&mut self, id: RequestId, message: Map<String, Value>) -> GateDecision {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        if method == "server/discover" {
            return answer(Some(id), unknown_method("server/discover"));
        }
        if !self.is_begun && !matches!(method, "initialize" | "ping") {
            return invalid(Some(id), "send initialize first");
        }
        let Ok(message) = serde_json::from_value::<ClientJsonRpcMessage>(Value::Object(message))
        else {
            return invalid(Some(id), "this is no JSON-RPC 2.0 request");
        };
        let is_greeting = is_greeting(&message);
        if !self.is_begun && !is_greeting && is_unread(&message) {
            let error = ErrorData::invalid_params("params do not fit initialize", None);
            return answer(Some(id), error);
        }
        if !self.open.begin(&id) {
            // Without that id: the client would take it for the answer to the running request.
            let data = Some(json!({ "id": id }));
            let error = ErrorData::new(ErrorCode::INVALID_REQUEST, "the id is in use", data);
            return answer(None, error);
        }
        self.is_begun |= is_greeting;
        GateDecision::Pass(Box::new(message))
    }

    /// The server has use for two of them.
    fn notification(&mut self, message: Map<String, Value>) -> GateDecision {
        let is_wanted = match message.get("method").and_then(Value::as_str) {
            Some("notifications/initialized") => true,
            Some("notifications/cancelled") => {
                let id =
                    message.get("params").and_then(|params| request_id(params.get("requestId")?));
                // Often it comes when the answer is out already.
                id.is_some_and(|id| self.open.cancel(&id))
            }
            _ => false,
        };
        match serde_json::from_value(Value::Object(message)) {
            Ok(message) if is_wanted && self.is_begun => GateDecision::Pass(Box::new(message)),
            _ => GateDecision::Ignore,
        }
    }
}

fn is_greeting(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_)))
}

/// Whether rmcp could not read the parameters: it treats such a request as a custom one.
fn is_unread(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::CustomRequest(_)))
}

fn request_id(id: &Value) -> Option<RequestId> {
    match id {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

fn invalid(id: Option<RequestId>, message: &'static str) -> GateDecision {
    answer(id, ErrorData::new(ErrorCode::INVALID_REQUEST, message, None))
}

/// Not as a message of rmcp's, which has no id where there is none to name; JSON-RPC wants it to be null.
fn answer(id: Option<RequestId>, error: ErrorData) -> GateDecision {
    GateDecision::Answer(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the results of lines, one after the other: passed, ignored, or the code of an error and its id.
    #[track_caller]
    fn check(lines: &[(&str, &str)]) {
        let open = OpenRequests::default();
        let mut gate = MessageGate::new(&open);
        for (line, expected) in lines {
            let found = match gate.judge(line.as_bytes()) {
                GateDecision::Pass(_) => "pass".to_owned(),
                GateDecision::Ignore => "ignore".to_owned(),
                GateDecision::Answer(answer) => {
                    format!("{} {}", answer["error"]["code"], answer["id"])
                }
            };
            assert_eq!(found, *expected, "{line}");
        }
    }

    const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"0"}}}"#;
    const GREETED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    const CANCEL: &str =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

    #[test]
    fn requests_other_than_ping_are_refused_before_initialize() {
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        check(&[(GREETED, "ignore"), (list, "-32600 2"), (GREETING, "pass"), (GREETED, "pass")]);
        check(&[(r#"{"jsonrpc":"2.0","id":3,"method":"initialize"}"#, "-32602 3")]);
    }

    #[test]
    fn a_refused_initialize_request_starts_no_session() {
        check(&[(PING, "pass"), (GREETING, "-32600 null"), (GREETED, "ignore")]);
    }

    /// Its answer may still come.
    #[test]
    fn a_cancelled_request_id_cannot_be_reused() {
        let other = GREETING.replace("\"id\":1", "\"id\":0");
        check(&[(&other, "pass"), (CANCEL, "ignore"), (PING, "pass"), (PING, "-32600 null")]);
        check(&[
            (&other, "pass"),
            (PING, "pass"),
            (CANCEL, "pass"),
            (PING, "-32600 null"),
            (CANCEL, "ignore"),
        ]);
    }
}
