//! A minimal HTTP client, so that a test can send requests that no client would send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::mcp::client::{Called, PATIENCE};
use crate::support::serving::Serving;

pub(crate) struct Server {
    serving: Serving,
    pub(crate) port: u16,
    pub(crate) token: String,
    pub(crate) token_file: String,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn start(project: &TestProject) -> Server {
        Server::spawn(project.json_command(&["serve", "--port", "0"]))
    }

    pub(crate) fn spawn(command: Command) -> Server {
        let serving = Serving::spawn(command);
        let said = &serving.said;
        let url = said["url"].as_str().unwrap();
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/mcp"));
        let token_file = said["token_file"].as_str().unwrap().to_owned();
        let token = std::fs::read_to_string(&token_file).unwrap().trim().to_owned();
        Server { port: port.unwrap().parse().unwrap(), token, token_file, serving }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.serving.pid()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Returns the head that a client with the token sends, without its first line.
    pub(crate) fn head(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n{KINDS}", self.port, self.token)
    }

    pub(crate) fn post(&self, message: &Value) -> Response {
        self.send("POST", "/mcp", &self.head(), message.to_string().as_bytes())
    }

    pub(crate) fn send(&self, method: &str, path: &str, head: &str, body: &[u8]) -> Response {
        let length = format!("Content-Length: {}\r\n", body.len());
        let start = format!("{method} {path} HTTP/1.1\r\n{head}{length}Connection: close\r\n\r\n");
        self.raw(&[start.as_bytes(), body].concat())
    }

    /// Returns the answer to raw bytes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Response {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may answer, and close, before it has read all of it.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
        Response { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self.post(&message);
        assert_eq!(response.status, 200, "{} {}", response.head, response.body);
        serde_json::from_str(&response.body).unwrap()
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Called {
        Called::of(&self.request("tools/call", json!({ "name": tool, "arguments": arguments })))
    }

    pub(crate) fn terminate(&self) {
        self.serving.terminate();
    }

    pub(crate) fn ended(&mut self, patience: Duration) -> Option<i32> {
        self.serving.ended(patience)
    }
}

pub(crate) const KINDS: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
