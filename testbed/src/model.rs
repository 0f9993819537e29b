//! A model with scripted responses: real agents use it in place of their provider's.
//!
//! It implements the four protocols that agents use, on loopback, and records the requests. Each
//! request takes the next turn of the script, except the agents' own background requests (naming a
//! conversation, suggesting the next prompt), which get a fixed response.

mod wire;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::http;

pub use wire::Api;

/// Token usage that every response reports.
pub const INPUT_TOKENS: u64 = 100;
pub const OUTPUT_TOKENS: u64 = 10;
/// Response when the script is exhausted.
pub const SPENT: &str = "The script is at its end.";
/// How long a silent model keeps the connection open.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// Reaction of the model to one request.
#[derive(Clone, Debug)]
pub enum Turn {
    /// A text, and optionally a tool call.
    Answer { text: String, call: Option<Call> },
    /// An error of the provider.
    Refuse { status: u16, message: String },
    /// No response, until the agent gives up.
    Silence,
}

impl Turn {
    pub fn say(text: &str) -> Turn {
        Turn::Answer { text: text.to_owned(), call: None }
    }

    pub fn call(text: &str, call: Call) -> Turn {
        Turn::Answer { text: text.to_owned(), call: Some(call) }
    }

    pub fn refuse(status: u16, message: &str) -> Turn {
        Turn::Refuse { status, message: message.to_owned() }
    }
}

/// A tool of the agent, and its input.
#[derive(Clone, Debug)]
pub struct Call {
    /// A tool in a namespace, as in Codex, is `space/tool`.
    pub tool: String,
    pub input: Input,
}

#[derive(Clone, Debug)]
pub enum Input {
    Json(Value),
    /// Some tools take plain text.
    Text(String),
}

/// Placeholder in the input of a call for the iteration id that a tool returned last.
pub const ITERATION_ID: &str = "<iterationId>";

impl Call {
    /// Replaces the placeholders with values from the conversation.
    fn filled(&self, conversation: &str) -> Call {
        let input = match &self.input {
            Input::Json(value) => {
                let id = told(conversation, "iterationId").unwrap_or_default();
                let text = value.to_string().replace(ITERATION_ID, id);
                Input::Json(serde_json::from_str(&text).unwrap())
            }
            text => text.clone(),
        };
        Call { tool: self.tool.clone(), input }
    }
}

/// Returns the last value of a field in the conversation, at any depth of quoting.
fn told<'c>(conversation: &'c str, field: &str) -> Option<&'c str> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let value = |at: usize| {
        let rest =
            conversation[at + field.len()..].trim_start_matches(|c: char| "\\\": ".contains(c));
        Some(rest.split(|c| !is_word(c)).next()?).filter(|word| !word.is_empty())
    };
    conversation.rmatch_indices(field).find_map(|(at, _)| value(at))
}

/// A request to the model.
#[derive(Clone, Debug)]
pub struct Request {
    pub api: Api,
    pub is_chore: bool,
    pub body: Value,
}

impl Request {
    /// Returns the whole conversation so far.
    pub fn text(&self) -> String {
        self.body.to_string()
    }
}

/// A running model, stopped when dropped.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<VecDeque<Turn>>,
    requests: Mutex<Vec<Request>>,
    is_over: Mutex<bool>,
}

impl Model {
    pub fn start(script: impl IntoIterator<Item = Turn>) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into_iter().collect()),
            requests: Mutex::default(),
            is_over: Mutex::new(false),
        });
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if *of_thread.is_over.lock().unwrap() {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Model { address, shared }
    }

    /// Appends turns to the script.
    pub fn extend(&self, turns: impl IntoIterator<Item = Turn>) {
        self.shared.script.lock().unwrap().extend(turns);
    }

    /// Clears the script.
    pub fn skip(&self) {
        self.shared.script.lock().unwrap().clear();
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests, without the agents' background requests.
    pub fn requests(&self) -> Vec<Request> {
        let all = self.shared.requests.lock().unwrap();
        all.iter().filter(|request| !request.is_chore).cloned().collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        *self.shared.is_over.lock().unwrap() = true;
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    /// Serves one request: agents work with a connection for each.
    fn serve(&self, mut stream: TcpStream) {
        let Ok(asked) = http::read(&mut stream) else { return };
        let Some(route) = wire::route(&asked.path) else {
            // Model lists and health checks.
            return http::answer_json(&mut stream, 200, &wire::nothing());
        };
        if asked.method != "POST" || wire::is_count(&asked.path) {
            return http::answer_json(&mut stream, 200, &wire::count());
        }
        let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let is_chore = wire::is_chore(route.api, &body);
        let turn = match is_chore {
            true => Turn::say("a chore"),
            false => {
                let next = self.script.lock().unwrap().pop_front();
                next.unwrap_or_else(|| Turn::say(SPENT))
            }
        };
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(Request { api: route.api, is_chore, body: body.clone() });
            requests.len()
        };
        match turn {
            Turn::Silence => http::wait_for_end(&mut stream, SILENCE_MAX),
            Turn::Refuse { status, message } => {
                http::answer_json(&mut stream, status, &wire::refusal(status, &message));
            }
            Turn::Answer { text, call } => {
                let call = call.map(|call| call.filled(&body.to_string()));
                let said = wire::Said { text: &text, call: call.as_ref(), number };
                match route.streams || body["stream"] == true {
                    true => http::answer_events(&mut stream, &route.api.events(&said)),
                    false => http::answer_json(&mut stream, 200, &route.api.whole(&said)),
                }
            }
        }
    }
}
