//! The usage of sessions, their shared budget, and the remaining budget after their processes are
//! killed.

mod ledger;
mod machines;
mod shared_budget;

use std::collections::HashMap;

use hookloop_testkit::SeededRandom;
use serde_json::{Value, json};

/// Returns a turn of a scripted agent.
pub(crate) fn turn(cost_micros: u64, steps: u64, sleep_ms: u64) -> Value {
    let usage = json!({ "input_tokens": 1_000, "cached_tokens": 400, "output_tokens": 50, "cost_micros": cost_micros });
    json!({ "say": "working", "usage": usage, "usage_steps": steps, "sleep_ms": sleep_ms })
}

/// Returns turns that use their reservation, less, or several times as much, which they report step
/// by step.
pub(crate) fn turns(random: &mut SeededRandom, count: usize, reserved: u64) -> Value {
    let mut turns: Vec<Value> = Vec::new();
    for _ in 0..count {
        let sleep_ms = 50 + random.below(400);
        turns.push(match random.below(5) {
            0 => turn(reserved + random.below(2 * reserved), 40, sleep_ms),
            1 => turn(reserved, 0, sleep_ms),
            _ => turn(random.below(reserved), 0, sleep_ms),
        });
    }
    let mut last = turn(random.below(reserved), 0, 10);
    last["say"] = json!("done\n<promise>COMPLETE</promise>");
    turns.push(last);
    Value::Array(turns)
}

/// The amounts of a budget, summed from the events of a log.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) used: u64,
    pub(crate) lost: u64,
    pub(crate) turns: u64,
    /// The maximum of spent, written-off and reserved amounts at one time.
    pub(crate) most: u64,
    pub(crate) refusals: u64,
}

pub(crate) fn account(events: &[Value]) -> Account {
    let mut account = Account::default();
    let mut open: HashMap<String, u64> = HashMap::new();
    for event in events {
        let session = event["session"].as_str().unwrap_or_default().to_owned();
        let data = &event["data"];
        match event["type"].as_str().unwrap() {
            "budget_reserved" => {
                let session = data["session"].as_str().unwrap().to_owned();
                *open.entry(session).or_default() += data["cost_micros"].as_u64().unwrap();
            }
            "turn_ended" => {
                open.remove(&session);
                account.turns += 1;
                account.used += data["usage"]["cost_micros"].as_u64().unwrap_or(0);
            }
            "session_resumed" => account.lost += open.remove(&session).unwrap_or(0),
            "session_ending" => drop(open.remove(&session)),
            "budget_exhausted" => account.refusals += 1,
            _ => {}
        }
        let now = account.used + account.lost + open.values().sum::<u64>();
        account.most = account.most.max(now);
    }
    assert!(open.is_empty(), "still reserved: {open:?}");
    account
}
