//! An MCP client that sends exactly the bytes of a test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_testkit::TestProject;
use serde_json::{Value, json};

/// No step takes longer, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const VERSIONS: [&str; 2] = ["2025-06-18", "2025-11-25"];

pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: i64,
}

/// Wraps the command in another process, so that hookloop takes that process for the agent, and not
/// the test.
fn by_an_agent(command: &Command) -> Command {
    let mut agent = Command::new("timeout");
    agent.args(["--foreground", "600"]).arg(command.get_program()).args(command.get_args());
    agent.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    agent.current_dir(command.get_current_dir().unwrap()).stdout(Stdio::piped());
    agent
}

impl Client {
    /// Starts the program on a project, and sends nothing.
    pub(crate) fn start(project: &TestProject) -> Client {
        Client::start_with(project, &[])
    }

    pub(crate) fn start_with(project: &TestProject, args: &[&str]) -> Client {
        let words: Vec<&str> = ["mcp"].iter().chain(args).copied().collect();
        Client::spawn(by_an_agent(&project.json_command(&words)))
    }

    pub(crate) fn spawn(mut command: Command) -> Client {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (said, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines();
            lines.map_while(Result::ok).take_while(|line| said.send(line.clone()).is_ok()).count()
        });
        Client { child, stdin, lines, last_id: 0 }
    }

    /// Starts the program and initializes the session.
    pub(crate) fn ready(project: &TestProject) -> Client {
        let mut client = Client::start(project);
        client.initialize(VERSIONS[1]);
        client
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "0" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let answer = self.request("initialize", params);
        self.notify("notifications/initialized", json!({}));
        answer["result"].clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        // If the server no longer reads, the next answer is missing.
        let _ = self.stdin.as_mut().unwrap().write_all(bytes);
    }

    pub(crate) fn line(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Returns the next message, which has to be JSON-RPC: the output may contain nothing else.
    pub(crate) fn receive(&mut self) -> Value {
        self.receive_within(PATIENCE).unwrap_or_else(|| panic!("no answer"))
    }

    pub(crate) fn receive_within(&mut self, patience: Duration) -> Option<Value> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                let message: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                Some(message)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Sends a request with a new id; returns the id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Returns the result of a tool; its text and its structured content are equal.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Called {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        Called::of(&answer)
    }

    /// Returns the result of a tool that has to succeed.
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let called = self.call(tool, arguments);
        assert!(!called.is_error, "{tool}: {}", called.value);
        called.value
    }

    /// Returns the error of a tool that has to fail.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let called = self.call(tool, arguments);
        assert!(called.is_error, "{tool}: {}", called.value);
        called.value["error"].clone()
    }

    pub(crate) fn is_alive(&mut self) {
        assert_eq!(self.request("ping", json!({}))["result"], json!({}));
    }

    pub(crate) fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Returns the exit status, within `patience`.
    pub(crate) fn ended(&mut self, patience: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < patience, "the server still runs after {patience:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) is_error: bool,
    pub(crate) value: Value,
}

impl Called {
    pub(crate) fn of(answer: &Value) -> Called {
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value, result["structuredContent"]);
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        let is_error = result["isError"] == true;
        if is_error {
            let error = &value["error"];
            for field in ["code", "message", "next"] {
                assert!(error[field].is_string(), "{value}");
            }
        }
        Called { is_error, value }
    }
}
