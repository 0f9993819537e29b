//! Lines that are not messages, and messages that are not requests: they are answered without
//! effect.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::PLAIN;
use crate::mcp::client::{Client, PATIENCE};
use crate::mcp::http::Server;
use crate::support::project_with;

const MIB: usize = 1024 * 1024;
/// The time after which a count that has not changed is final.
const STILL: Duration = Duration::from_millis(500);

/// Checks the error code of the answer to a line, without an id; the server still works after it.
#[track_caller]
fn check(client: &mut Client, line: &[u8], code: i64) {
    client.raw(line);
    client.raw(b"\n");
    let answer = client.receive();
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert_eq!(answer.get("id"), Some(&Value::Null), "{answer}");
    client.is_alive();
}

#[test]
fn the_server_answers_invalid_lines_with_errors_and_stays_usable() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    for broken in [
        "{",
        "}",
        "{\"jsonrpc\":\"2.0\",",
        "nul",
        "\u{0}",
        "{'a':1}",
        "[1,2",
        "\"",
        "{\"a\":1}{\"b\":2}",
        &deep("[", "]"),
        &deep("{\"a\":", "}"),
        "{\"id\":1e999}",
    ] {
        check(&mut client, broken.as_bytes(), -32700);
    }
    check(&mut client, b"\xff\xfe{}", -32700);
    for invalid in [
        "[]",
        "1",
        "\"x\"",
        "null",
        "true",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"method\":3,\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":null}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1.5}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":[1]}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":18446744073709551615}",
        "[{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}]",
    ] {
        check(&mut client, invalid.as_bytes(), -32600);
    }
    for empty in ["\n", "\r\n", "   \n"] {
        client.raw(empty.as_bytes());
        client.is_alive();
    }
}

#[test]
fn an_invalid_http_body_is_answered_with_a_json_rpc_error() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let deep = "[".repeat(50_000);
    for (body, code) in [
        ("{", -32700),
        ("nul", -32700),
        (deep.as_str(), -32700),
        ("[]", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}]", -32600),
        ("{}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":null}", -32600),
    ] {
        let response = server.send("POST", "/mcp", &server.head(), body.as_bytes());
        assert_eq!(response.status, 400, "{}", response.body);
        let answer: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null));
    }
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_request_of_another_version_of_json_rpc_is_refused_by_its_id() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    for message in [
        json!({ "id": 500, "method": "ping" }),
        json!({ "jsonrpc": "1.0", "id": 500, "method": "ping" }),
    ] {
        client.line(&message);
        let answer = client.receive();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(500)));
    }
    client.is_alive();
}

#[test]
fn the_length_of_a_line_is_limited() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    check(&mut client, "x".repeat(MIB + 1).as_bytes(), -32600);
    check(&mut client, &vec![b' '; 40 * MIB], -32600);
    // A call just below the limit is accepted.
    let frame = |text: &str| {
        let params = json!({ "name": "task_get", "arguments": { "id": text } });
        json!({ "jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params })
            .to_string()
    };
    let room = MIB - frame("").len();
    client.raw(frame(&"y".repeat(room)).as_bytes());
    client.raw(b"\n");
    assert_eq!(client.receive()["id"], "long");
    check(&mut client, frame(&"y".repeat(room + 1)).as_bytes(), -32600);
}

#[test]
fn memory_does_not_grow_with_refused_lines() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    client.is_alive();
    let before = resident(client.pid());
    check(&mut client, &vec![b'['; 64 * MIB], -32600);
    let grown = resident(client.pid()).saturating_sub(before);
    assert!(grown < 16 * MIB as u64, "{grown} bytes more");
}

#[test]
fn end_of_input_within_a_message_ends_the_server_cleanly() {
    let project = project_with(PLAIN);
    for half in ["{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", "{", " "] {
        for is_greeted in [false, true] {
            let mut client = Client::start(&project);
            if is_greeted {
                client.initialize("2025-06-18");
            }
            client.raw(half.as_bytes());
            client.end_input();
            assert!(client.ended(PATIENCE).success());
        }
    }
}

#[test]
fn a_request_sent_byte_by_byte_is_answered() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    for byte in json!({ "jsonrpc": "2.0", "id": "slow", "method": "ping" }).to_string().bytes() {
        client.raw(&[byte]);
        assert!(client.receive_within(Duration::from_millis(1)).is_none());
    }
    client.raw(b"\n");
    assert_eq!(client.receive()["id"], "slow");
}

/// A second request with an id that is in use is refused without an id; the id is free after its
/// answer.
#[test]
fn an_id_is_used_by_one_request_at_a_time() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let params = json!({ "name": "task_list" });
    let call = json!({ "jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": params });
    for _ in 0..50 {
        // Either answer can come first: to the first request or to the second.
        client.raw(format!("{call}\n{call}\n").as_bytes());
        let answers = [client.receive(), client.receive()];
        let (answered, refused): (Vec<&Value>, Vec<&Value>) =
            answers.iter().partition(|answer| answer["id"] == "same");
        assert!(answered.iter().all(|answer| answer["result"].is_object()), "{answers:?}");
        assert!(!answered.is_empty(), "{answers:?}");
        for answer in refused {
            assert_eq!(answer["error"]["code"], -32600, "{answer}");
            assert_eq!(answer["error"]["data"]["id"], "same");
        }
        client.line(&call);
        let again = client.receive();
        assert_eq!((&again["id"], again["result"].is_object()), (&json!("same"), true));
    }
}

#[test]
fn more_calls_than_there_is_room_for_are_refused_or_answered_each_once() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let ids: Vec<i64> =
        (0..400).map(|_| client.ask("tools/call", json!({ "name": "task_list" }))).collect();
    let mut answered: Vec<i64> =
        ids.iter().map(|_| client.receive()["id"].as_i64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    client.is_alive();
}

/// The server stops reading when the client does not read answers, instead of buffering them.
#[test]
fn answers_are_not_buffered_for_a_client_that_does_not_read() {
    const ALL: usize = 16 * MIB;
    let project = project_with(PLAIN);
    let mut command = project.json_command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let writer = thread::spawn(move || {
        let lines = "[]\n".repeat(1024);
        while count.load(Ordering::SeqCst) < ALL && stdin.write_all(lines.as_bytes()).is_ok() {
            count.fetch_add(lines.len(), Ordering::SeqCst);
        }
    });
    let mut before = usize::MAX;
    while before != sent.load(Ordering::SeqCst) {
        before = sent.load(Ordering::SeqCst);
        thread::sleep(STILL);
    }
    let (taken, memory) = (sent.load(Ordering::SeqCst), resident(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
    assert!(taken < MIB, "{taken} bytes were read");
    assert!(memory < 64 * MIB as u64, "{memory} bytes");
}

#[test]
fn a_closed_output_ends_the_server() {
    let project = project_with(PLAIN);
    let mut command = project.json_command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let _ = stdin.write_all(b"{}\n");
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE, "the server still runs");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
