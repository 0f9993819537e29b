//! Clients of other projects list and call every tool, over both transports.
//!
//! `.ci/mcp-clients` installs them to $HOOKLOOP_MCP_CLIENTS, or else to ~/.cache/hookloop-mcp.

use std::path::{Path, PathBuf};
use std::process::Command;

use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::mcp::PLAIN;
use crate::mcp::client::{Client, VERSIONS};
use crate::mcp::http::Server;
use crate::mcp::tools::{TOOLS, fitting};
use crate::support::{PROGRAM, project_with};

fn installed() -> PathBuf {
    let usual = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/hookloop-mcp");
    std::env::var_os("HOOKLOOP_MCP_CLIENTS").map_or_else(usual, PathBuf::from)
}

/// Returns where a client is installed. A test without its client fails.
fn found(path: &str) -> PathBuf {
    let path = installed().join(path);
    assert!(path.exists(), "{} does not exist: `.ci/mcp-clients` installs it", path.display());
    path
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/clients").join(name)
}

/// Returns arguments for each tool, by its name.
fn arguments(project: &TestProject) -> Value {
    let list = Client::ready(project).request("tools/list", json!({}))["result"]["tools"].clone();
    let named = |tool: &Value| (tool["name"].as_str().unwrap().to_owned(), fitting(tool));
    Value::Object(list.as_array().unwrap().iter().map(named).collect())
}

/// Returns the output of a client that exits with 0 or `code`.
#[track_caller]
fn run(mut command: Command, project: &TestProject, code: i32) -> String {
    command.current_dir(project.root()).env("USER", "tester");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let ended = output.status.code();
    assert!(ended == Some(0) || ended == Some(code), "{command:?}: {ended:?}\n{told}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_python_sdk_lists_and_calls_every_tool() {
    let python = found("python/bin/python");
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let home = project.root().parent().unwrap().join("home");
    let ways =
        [json!({ "command": PROGRAM }), json!({ "url": server.url(), "token": server.token })];
    for way in ways {
        // None: the client probes first, and uses the version of the answer.
        for version in [Some(VERSIONS[0]), Some(VERSIONS[1]), None] {
            let mut command = Command::new(&python);
            let task = json!({ "way": way, "version": version, "calls": arguments(&project) });
            command.arg(script("sdk.py")).arg(task.to_string()).env("HOME", &home);
            let said: Value = serde_json::from_str(&run(command, &project, 0)).unwrap();
            assert_eq!(said["version"], version.unwrap_or(VERSIONS[1]), "{said}");
            assert_eq!(said["tools"], json!(TOOLS), "{said}");
            for tool in TOOLS {
                assert!(said["results"][tool].is_object(), "{tool} of {said}");
            }
        }
    }
}

/// The exit code of the inspector when a tool's result is an error.
const TOOL_FAILED: i32 = 5;

#[test]
fn the_mcp_inspector_lists_and_calls_every_tool() {
    let inspector = found("node_modules/.bin/mcp-inspector");
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let home = project.root().parent().unwrap().join("home");
    let stdio: Vec<String> = vec![PROGRAM.to_owned(), "mcp".to_owned()];
    let header = format!("Authorization: Bearer {}", server.token);
    let http = [&server.url(), "--transport", "http", "--header", &header].map(str::to_owned);
    for way in [stdio, http.into()] {
        let inspect = |args: &[&str]| {
            let mut command = Command::new(&inspector);
            command.arg("--cli").args(&way).args(args).env("HOME", &home);
            let said = run(command, &project, TOOL_FAILED);
            serde_json::from_str::<Value>(&said).unwrap()
        };
        let list = inspect(&["--method", "tools/list"]);
        let names: Vec<&Value> =
            list["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, TOOLS);
        for tool in list["tools"].as_array().unwrap() {
            let mut args =
                vec!["--method", "tools/call", "--tool-name", tool["name"].as_str().unwrap()];
            let arguments: Vec<String> = fitting(tool)
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| match value.as_str() {
                    Some(text) => format!("{name}={text}"),
                    None => format!("{name}={value}"),
                })
                .collect();
            for argument in &arguments {
                args.extend(["--tool-arg", argument]);
            }
            let result = inspect(&args);
            assert!(result["structuredContent"].is_object(), "{result}");
            let code = &result["structuredContent"]["error"]["code"];
            assert_ne!(code, "invalid_argument", "{result}");
        }
    }
}
