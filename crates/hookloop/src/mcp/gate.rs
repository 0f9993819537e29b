//! Which text is a message for the server; what other text is answered.
//!
//! rmcp ignores broken JSON and long lines, ends at a notification that comes too early, and mixes up answers when an id
//! is used again; over HTTP it takes broken JSON for another type of content.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
};
use serde_json::{Map, Value, json};

use super::handler::unknown_method;
use super::open::Open;

#[derive(Debug)]
pub(super) enum Verdict {
    Pass(Box<ClientJsonRpcMessage>),
    /// As it goes out.
    Answer(Value),
    Ignore,
}

impl Verdict {
    pub(super) fn too_long(max: usize) -> Verdict {
        let message = format!("a line has at most {max} bytes");
        answer(None, ErrorData::new(ErrorCode::INVALID_REQUEST, message, None))
    }
}

/// The answer to a body that is no message, for who has no conversation to keep.
pub(crate) fn refuse(body: &[u8]) -> Option<Value> {
    let open = Open::default();
    match (Gate { open: &open, is_begun: true }).judge(body) {
        Verdict::Answer(answer) => Some(answer),
        Verdict::Pass(_) | Verdict::Ignore => None,
    }
}

pub(super) struct Gate<'a> {
    open: &'a Open,
    is_begun: bool,
}

impl Gate<'_> {
    pub(super) fn new(open: &Open) -> Gate<'_> {
        Gate { open, is_begun: false }
    }

    pub(super) fn judge(&mut self, line: &[u8]) -> Verdict {
        if line.trim_ascii().is_empty() {
            return Verdict::Ignore;
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
            (None, Some(_)) => Verdict::Ignore,
            (None, None) => invalid(None, "a message has a method"),
        }
    }

    fn request(&mut self, id: RequestId, message: Map<String, Value>) -> Verdict {
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
        if let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::InitializeRequest(_))
        {
            self.is_begun = true;
        } else if !self.is_begun && method_of(&message) == Some("initialize") {
            return answer(
                Some(id),
                ErrorData::invalid_params("params do not fit initialize", None),
            );
        }
        match self.open.begin(&id) {
            true => Verdict::Pass(Box::new(message)),
            // Not as an answer to that id: who waits would take it for that of the request at work.
            false => {
                let data = Some(json!({ "id": id }));
                answer(None, ErrorData::new(ErrorCode::INVALID_REQUEST, "the id is in use", data))
            }
        }
    }

    /// The server has use for two of them.
    fn notification(&mut self, message: Map<String, Value>) -> Verdict {
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
            Ok(message) if is_wanted && self.is_begun => Verdict::Pass(Box::new(message)),
            _ => Verdict::Ignore,
        }
    }
}

fn method_of(message: &ClientJsonRpcMessage) -> Option<&str> {
    match message {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::CustomRequest(request) => Some(&request.method),
            _ => None,
        },
        _ => None,
    }
}

fn request_id(id: &Value) -> Option<RequestId> {
    match id {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

fn invalid(id: Option<RequestId>, message: &'static str) -> Verdict {
    answer(id, ErrorData::new(ErrorCode::INVALID_REQUEST, message, None))
}

/// Not as a message of rmcp's, which has no id where there is none to name; JSON-RPC wants it to be null.
fn answer(id: Option<RequestId>, error: ErrorData) -> Verdict {
    Verdict::Answer(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}
