//! Tool calls, each beside the same line sent to an echo program, which separates the cost of the
//! client and the pipes from that of the product.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::figures::{Sample, ms, table};

/// Number of timed starts of the server.
const STARTS: usize = 20;

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Server {
    fn start(program: &Path, args: &[&str], directory: &Path) -> Server {
        let mut command = Command::new(program);
        let home = directory.parent().unwrap();
        command.args(args).current_dir(directory).env("HOME", home);
        command.env_remove("XDG_STATE_HOME").stderr(Stdio::null());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Server { child, input, output: BufReader::new(output), number: 0 }
    }

    fn request(&mut self, method: &str, params: &Value, sample: &mut Sample) -> Value {
        self.number += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params });
        let line = format!("{message}\n");
        let mut answer = String::new();
        sample.time(|| {
            self.input.write_all(line.as_bytes()).unwrap();
            self.output.read_line(&mut answer).unwrap();
        });
        serde_json::from_str(&answer).unwrap()
    }

    fn initialize(&mut self) {
        let client = json!({ "name": "bench", "version": "0" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &params, &mut Sample::default());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(self.input, "{ready}").unwrap();
    }

    fn call(&mut self, tool: &str, arguments: &Value, sample: &mut Sample) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", &params, sample);
        assert_ne!(answer["result"]["isError"], true, "{tool}: {answer}");
        answer["result"]["structuredContent"].clone()
    }

    fn end(mut self) {
        drop(self.input);
        let _ = self.child.wait();
    }
}

/// Measures a server of a project with `size` tasks, for each of `sizes`.
pub fn tools(
    hookloop: &Path,
    floor: &Path,
    sizes: &[i64],
    rounds: usize,
    tasks: impl Fn(i64) -> String,
) {
    println!("### Tools\n");
    let mut rows = Vec::new();
    for &size in sizes {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        let work = &home.join("project");
        std::fs::create_dir(work).unwrap();
        std::fs::write(work.join("hookloop.yaml"), "version: 1\n").unwrap();
        // Raises the limits so that none of them ends the session: this measures reads of the log.
        let own = home.join(".config/hookloop");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(
            own.join("config.yaml"),
            "version: 1\nlimits: {max_no_progress: 1000000, max_iterations: 1000000}\n",
        )
        .unwrap();
        std::fs::write(work.join("tasks.jsonl"), tasks(size)).unwrap();
        let imported = Command::new(hookloop)
            .args(["task", "import", "tasks.jsonl"])
            .current_dir(work)
            .env("HOME", home)
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap();
        assert!(imported.status.success(), "{imported:?}");
        std::fs::remove_file(work.join("tasks.jsonl")).unwrap();
        rows.push(start(hookloop, work, size));
        rows.extend(calls(hookloop, floor, work, size, rounds));
    }
    table(&["tasks", "", "p50", "p95", "echo p50", "p50 less echo"], &rows);
}

fn row(size: i64, what: &str, ours: &Sample, echo: Option<&Sample>) -> Vec<String> {
    let less = echo.map_or_else(String::new, |echo| ms((ours.median() - echo.median()).max(0.0)));
    vec![
        size.to_string(),
        what.to_owned(),
        ms(ours.median()),
        ms(ours.percentile(0.95)),
        echo.map_or_else(String::new, |echo| ms(echo.median())),
        less,
    ]
}

/// Measures the time from the start of the process to its first response, and to the result of its
/// first call.
fn start(hookloop: &Path, work: &Path, size: i64) -> Vec<String> {
    let mut sample = Sample::default();
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut server = Server::start(hookloop, &["mcp"], work);
        server.initialize();
        sample.add(began.elapsed());
        server.end();
    }
    row(size, "start to the answer of `initialize`", &sample, None)
}

fn calls(hookloop: &Path, floor: &Path, work: &Path, size: i64, rounds: usize) -> Vec<Vec<String>> {
    let mut server = Server::start(hookloop, &["mcp"], work);
    let mut echo = Server::start(floor, &["echo"], work);
    server.initialize();
    server.call(
        "hook_register",
        &json!({ "taskId": "t1", "hookType": "default" }),
        &mut Sample::default(),
    );
    let begun = server.call("iteration_start", &json!({ "taskId": "t1" }), &mut Sample::default());
    let id = &begun["iterationId"];
    let each: [(&str, &str, Value); 6] = [
        ("task_get", "task_get", json!({ "id": "t1" })),
        ("task_list, 20 ready", "task_list", json!({ "status": "ready" })),
        (
            "hook_evaluate",
            "hook_evaluate",
            json!({ "iterationId": id, "agentOutput": "still at it" }),
        ),
        (
            "iteration_validate again, nothing to store",
            "iteration_validate",
            json!({ "iterationId": id, "agentOutput": "still at it" }),
        ),
        (
            "task_update with a note, stored",
            "task_update",
            json!({ "id": "t1", "notes": "half way" }),
        ),
        (
            "checkpoint_create, stored",
            "checkpoint_create",
            json!({ "taskId": "t1", "executionStep": 1 }),
        ),
    ];
    let mut rows = Vec::new();
    for (what, tool, arguments) in &each {
        let (mut ours, mut theirs) = (Sample::default(), Sample::default());
        for _ in 0..rounds {
            server.call(tool, arguments, &mut ours);
            echo.request(
                "tools/call",
                &json!({ "name": tool, "arguments": arguments }),
                &mut theirs,
            );
        }
        rows.push(row(size, what, &ours, Some(&theirs)));
    }
    let (mut validate, mut next, mut theirs) =
        (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..rounds {
        server.call("iteration_next", &json!({ "iterationId": id }), &mut next);
        let said = json!({ "iterationId": id, "agentOutput": "still at it" });
        server.call("iteration_validate", &said, &mut validate);
        echo.request("tools/call", &said, &mut theirs);
    }
    rows.push(row(size, "iteration_next, stored", &next, Some(&theirs)));
    rows.push(row(size, "iteration_validate, stored", &validate, Some(&theirs)));
    server.end();
    echo.end();
    rows
}
