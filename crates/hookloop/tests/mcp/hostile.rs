//! Neither server runs anything of an untrusted repository, for any request.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::mcp::client::Client;
use crate::mcp::http::Server;
use crate::mcp::tools::fitting;
use crate::support::{PROGRAM, project_with};

const EVERYWHERE: &str = "version: 1\nhooks:
  stop: [{command: touch CANARY}]
  validation: [{command: touch CANARY}]
  task_created: [{command: touch CANARY}]
  task_completed: [{command: touch CANARY}]
  task_blocked: [{command: touch CANARY}]
  session_start: [{command: touch CANARY}]
  pre_iteration: [{command: touch CANARY}]
  stop_when: [{command: touch CANARY}]
";

/// Returns `command` with a trace of all programs that it starts.
fn traced(command: &Command, trace: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=execve,execveat", "-o"]).arg(trace);
    strace.arg("--").arg(PROGRAM).args(command.get_args());
    strace.current_dir(command.get_current_dir().unwrap()).env_clear();
    strace.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    strace.env("PATH", std::env::var_os("PATH").unwrap());
    strace.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    // A signal for the process group reaches the traced process.
    strace.process_group(0);
    strace
}

fn started(trace: &Path) -> usize {
    let trace = std::fs::read_to_string(trace).unwrap();
    trace.lines().filter(|line| line.contains("exec") && line.contains("= 0")).count()
}

#[test]
fn tool_calls_start_no_program_of_an_untrusted_repository() {
    let directory = tempfile::tempdir().unwrap();
    let (canary, trace) = (directory.path().join("canary"), directory.path().join("trace"));
    let config = EVERYWHERE.replace("CANARY", &canary.display().to_string());
    let project = project_with(&config);
    let mut client = Client::spawn(traced(&project.json_command(&["mcp"]), &trace));
    client.initialize("2025-11-25");
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    for _ in 0..2 {
        for tool in list.as_array().unwrap() {
            client.call(tool["name"].as_str().unwrap(), fitting(tool));
        }
    }
    client.end_input();
    assert!(client.ended(crate::mcp::client::PATIENCE).success());
    assert_eq!(started(&trace), 1);
    let server = Server::spawn(traced(&project.json_command(&["serve", "--port", "0"]), &trace));
    for tool in list.as_array().unwrap() {
        server.call(tool["name"].as_str().unwrap(), fitting(tool));
    }
    let group = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::TERM).unwrap();
    let mut server = server;
    server.ended(crate::mcp::client::PATIENCE);
    assert_eq!(started(&trace), 1);
    assert!(!canary.exists());
}
