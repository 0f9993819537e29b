//! Random bytes for the real process: it answers after each burst, and its memory does not grow.
//!
//! The full size:
//! `HOOKLOOP_MCP_FUZZ_SECONDS=60 cargo nextest run -p hookloop --test front_end mcp::fuzz`
//! To repeat one run: `HOOKLOOP_MCP_FUZZ_SEED=<seed from the failure>`

use std::time::{Duration, Instant};

use hookloop_testkit::SeededRandom;
use serde_json::{Value, json};

use crate::mcp::PLAIN;
use crate::mcp::client::{Client, PATIENCE};
use crate::mcp::frames::resident;
use crate::mcp::tools::fitting;
use crate::support::{number_from_env, project_with};

const SECONDS: u64 = 5;
const BURST_MAX: u64 = 40;
const GROWTH_MAX: u64 = 32 * 1024 * 1024;
/// Bursts before memory is first measured: by then every part has been used.
const WARM_UP: u64 = 20;

#[test]
fn the_server_answers_after_random_input_without_memory_growth() {
    let seconds = number_from_env("HOOKLOOP_MCP_FUZZ_SECONDS", SECONDS);
    let seed = number_from_env("HOOKLOOP_MCP_FUZZ_SEED", u64::from(std::process::id()));
    let _told = Told(seed);
    let mut random = SeededRandom::new(seed);
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let seeds = frames(&mut client);
    let (start, mut before, mut bursts) = (Instant::now(), None, 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..=random.below(BURST_MAX) {
            client.raw(&mutated(&mut random, &seeds));
        }
        // The line feed ends the last line of the burst, so that the next line stands alone.
        client.raw(b"\n");
        answers(&mut client, bursts);
        bursts += 1;
        if bursts == WARM_UP {
            before = Some(resident(client.pid()));
        }
    }
    let before = before.unwrap_or_else(|| panic!("{bursts} bursts are too few to tell"));
    let grown = resident(client.pid()).saturating_sub(before);
    assert!(grown <= GROWTH_MAX, "{grown} bytes more after {bursts} bursts");
    client.end_input();
    assert!(client.ended(PATIENCE).success());
}

struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "a failure tells its seed")]
            {
                eprintln!("HOOKLOOP_MCP_FUZZ_SEED={}", self.0);
            }
        }
    }
}

/// Checks that a ping is answered, after any other answers.
fn answers(client: &mut Client, burst: u64) {
    let id = format!("burst {burst}");
    client.line(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    let start = Instant::now();
    while client.receive()["id"] != *id {
        assert!(start.elapsed() < PATIENCE, "no answer after burst {burst}");
    }
}

/// Returns valid messages.
fn frames(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let call = |tool: &Value| {
        let params = json!({ "name": tool["name"], "arguments": fitting(tool) });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let client = json!({ "name": "fuzz", "version": "0" });
    let greeting =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let others = [
        json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": greeting }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": { "uri": "hookloop://spec" } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 1 } }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "server/discover", "params": { "_meta": {} } }),
        json!({ "jsonrpc": "2.0", "id": 5, "result": {} }),
        json!([{ "jsonrpc": "2.0", "id": 6, "method": "ping" }]),
    ];
    let calls: Vec<Value> = list.as_array().unwrap().iter().map(call).collect();
    calls.iter().chain(&others).map(|message| format!("{message}\n")).collect()
}

fn mutated(random: &mut SeededRandom, seeds: &[String]) -> Vec<u8> {
    let mut frame = seeds[random.below(seeds.len() as u64) as usize].clone().into_bytes();
    let at =
        |random: &mut SeededRandom, frame: &[u8]| random.below(frame.len() as u64 + 1) as usize;
    for _ in 0..random.below(4) {
        let place = at(random, &frame);
        match random.below(9) {
            0 => frame.truncate(place),
            1 => frame.insert(place, random.below(256) as u8),
            2 if place < frame.len() => frame[place] = random.below(256) as u8,
            3 if place < frame.len() => drop(frame.remove(place)),
            4 => drop(frame.splice(place..place, b"\n".iter().copied())),
            5 => {
                let other = seeds[random.below(seeds.len() as u64) as usize].as_bytes();
                let part = at(random, other);
                frame.truncate(place);
                frame.extend_from_slice(&other[part..]);
            }
            6 => {
                let deep = "[".repeat(random.below(2_000) as usize);
                drop(frame.splice(place..place, deep.into_bytes()));
            }
            7 if random.below(20) == 0 => {
                let long = vec![b'x'; random.below(3 * 1024 * 1024) as usize];
                drop(frame.splice(place..place, long));
            }
            _ => {
                let digits = random.below(u64::MAX).to_string();
                drop(frame.splice(place..place, digits.into_bytes()));
            }
        }
    }
    frame
}
