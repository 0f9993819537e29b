//! Protocol versions, and messages of real agents that the specification does not require.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::PLAIN;
use crate::mcp::client::{Client, PATIENCE, VERSIONS};
use crate::mcp::http::Server;
use crate::support::project_with;

#[test]
fn initialize_returns_version_server_info_and_instructions() {
    let project = project_with(PLAIN);
    for version in VERSIONS {
        let mut client = Client::start(&project);
        let greeting = client.initialize(version);
        assert_eq!(greeting["protocolVersion"], version);
        assert_eq!(greeting["serverInfo"]["name"], "hookloop");
        assert_eq!(greeting["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert!(greeting["capabilities"]["tools"].is_object(), "{greeting}");
        let instructions = greeting["instructions"].as_str().unwrap();
        assert!(instructions.contains("<promise>COMPLETE</promise>"), "{instructions}");
        client.is_alive();
    }
}

#[test]
fn an_unknown_protocol_version_is_answered_with_a_supported_version() {
    let project = project_with(PLAIN);
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let greeting = Client::start(&project).initialize(asked);
        assert_eq!(greeting["protocolVersion"], answered, "for {asked}");
    }
}

#[test]
fn requests_before_initialize_are_answered_without_effect() {
    let project = project_with(PLAIN);
    let mut client = Client::start(&project);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    for params in [json!({}), json!({ "_meta": meta })] {
        assert_eq!(client.request("server/discover", params)["error"]["code"], -32601);
    }
    client.notify("notifications/initialized", json!({}));
    client.notify("notifications/cancelled", json!({ "requestId": 1 }));
    client.line(&json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    client.is_alive();
    assert_eq!(client.request("tools/list", json!({}))["error"]["code"], -32600);
    // An initialize request that can't be parsed does not count.
    assert_eq!(client.request("initialize", json!({}))["error"]["code"], -32602);
    assert_eq!(client.initialize(VERSIONS[1])["serverInfo"]["name"], "hookloop");
    assert_eq!(client.request("server/discover", json!({}))["error"]["code"], -32601);
    assert!(client.request("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn unknown_notifications_are_ignored_and_unknown_methods_refused() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let id = client.ask("ping", json!({}));
    assert_eq!(client.receive()["id"], id);
    // Cancellations: too late, of an unknown request, without an id, and without parameters.
    for params in [json!({ "requestId": id }), json!({ "requestId": "x" }), json!({}), json!(null)]
    {
        client.notify("notifications/cancelled", params);
    }
    client.notify("notifications/whatever", json!({ "a": [1] }));
    client.notify("notifications/roots/list_changed", json!({}));
    client.line(&json!({ "jsonrpc": "2.0", "id": 99, "error": { "code": 1, "message": "x" } }));
    client.is_alive();
    for method in ["prompts/get", "logging/setLevel", "completions/x", "tasks/get", "x", ""] {
        let answer = client.request(method, json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    client.is_alive();
}

#[test]
fn at_end_of_input_pending_requests_are_answered_and_the_server_ends() {
    let project = project_with(PLAIN);
    // The input ends before any request, and after all requests are answered.
    let mut client = Client::start(&project);
    client.end_input();
    assert!(client.ended(PATIENCE).success());
    let mut client = Client::ready(&project);
    let ids: Vec<i64> =
        (0..20).map(|_| client.ask("tools/call", json!({ "name": "task_list" }))).collect();
    client.end_input();
    let mut answered: Vec<i64> =
        ids.iter().map(|_| client.receive()["id"].as_i64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    assert!(client.ended(Duration::from_secs(1)).success());
}

/// The first call finds reactions of a killed process, and runs them after its answer.
#[test]
fn end_of_input_ends_the_server_while_a_reaction_runs() {
    let hook = "echo begun >> begun; exec sleep 61";
    let project =
        project_with(&format!("version: 1\nhooks:\n  task_created: [{{command: '{hook}'}}]\n"));
    project.trust();
    let begun = project.root().join("begun");
    let wait = || {
        let start = Instant::now();
        while !begun.exists() {
            assert!(start.elapsed() < PATIENCE, "the hook does not begin");
            thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_file(&begun).unwrap();
    };
    let mut killed = project.json_command(&["task", "add", "Parser"]).spawn().unwrap();
    wait();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut client = Client::ready(&project);
    client.call("task_list", json!({}));
    wait();
    // Meanwhile the server answers, even requests that need the project.
    client.is_alive();
    client.call("task_list", json!({}));
    client.end_input();
    assert!(client.ended(Duration::from_secs(1)).success());
}

#[test]
fn sigterm_ends_the_server() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let id = rustix::process::Pid::from_raw(client.pid() as i32).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(client.ended(Duration::from_secs(1)).success());
}

#[test]
fn http_requests_need_no_session() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    for version in VERSIONS {
        let client = json!({ "name": "test", "version": "0" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let greeting = server.request("initialize", params);
        assert_eq!(greeting["result"]["protocolVersion"], version);
        let head = format!("{}MCP-Protocol-Version: {version}\r\n", server.head());
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
        assert_eq!(server.send("POST", "/mcp", &head, ping.as_bytes()).status, 200);
    }
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.post(&notification).status, 202);
    let late = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(server.post(&late).status, 202);
    for method in ["GET", "DELETE", "PUT"] {
        assert_eq!(server.send(method, "/mcp", &server.head(), b"").status, 405);
    }
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} });
    let answer: Value = serde_json::from_str(&server.post(&discover).body).unwrap();
    assert_eq!(answer["error"]["code"], -32601);
    assert!(server.request("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn a_server_ends_on_sigterm_and_its_port_can_be_reused() {
    let project = project_with(PLAIN);
    let mut first = Server::start(&project);
    let second = Server::start(&project);
    // Two servers of one project have the same token.
    assert_eq!(first.token, second.token);
    for server in [&first, &second] {
        assert!(server.request("tools/list", json!({}))["result"]["tools"].is_array());
    }
    let port = first.port.to_string();
    let taken = project.json_command(&["serve", "--port", &port]).output().unwrap();
    assert_eq!(taken.status.code(), Some(70));
    first.terminate();
    assert_eq!(first.ended(Duration::from_secs(8)), Some(0));
    let again = Server::spawn(project.json_command(&["serve", "--port", &port]));
    assert!(again.request("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn only_loopback_is_served() {
    let project = project_with(PLAIN);
    for address in ["0.0.0.0", "::", "192.168.1.1", "1.2.3.4", "127.0.0.2"] {
        let output =
            project.json_command(&["serve", "--port", "0", "--bind", address]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("the token would cross the network"), "{said}");
    }
}
