//! Conditions of hooks: any text is parsed and evaluated in bounded time and depth.
//!
//! Input: a byte that chooses the point, then the expression.

#![no_main]

use hookloop_config::condition::Condition;
use hookloop_core::point::Point;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Maximum number of labels of a task.
const LABELS_MAX: usize = 64;

#[path = "../time.rs"]
mod time;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let names = Point::names();
    let Ok(point) = names[usize::from(*choice) % names.len()].parse::<Point>() else { return };
    let compiled = time::limited("reading it", || Condition::compile(text, &point));
    let condition = match compiled {
        Ok(condition) => condition,
        Err(error) => {
            let message = error.to_string();
            assert!(!message.trim().is_empty() && !message.contains('\n'), "{message:?}");
            return;
        }
    };
    for values in [values(&point, 1, "sample"), values(&point, LABELS_MAX, "a'\"\\\n\u{202e}{{x}}")]
    {
        let once = time::limited("evaluating it", || condition.holds(&values));
        assert_eq!(once, condition.holds(&values), "two evaluations differ");
    }
    if let Some(always) = condition.always(&point) {
        let values = values(&point, 3, "other");
        assert_eq!(condition.holds(&values).unwrap_or(false), always, "it depends on the values");
    }
});

/// Returns the values of a task with the maximum number of labels and arbitrary texts.
fn values(point: &Point, labels: usize, text: &str) -> Value {
    json!({
        "point": point.name(), "event": point.name(), "project": text, "session": text,
        "iteration": labels, "error": text, "branch": text, "base_branch": text,
        "task": {
            "id": "t-1", "type": text, "goal": text, "description": text,
            "labels": vec![text; labels], "priority": 0, "state": "ready", "result": text,
        },
    })
}
