//! The tasks and events of a project without values that differ between runs: ids, times, paths.

use std::collections::{BTreeMap, HashMap};

use hookloop_testkit::TestProject;
use serde_json::{Map, Value, json};

/// The number of differences that a failure prints.
const SHOWN: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    tasks: Counted,
    events: Counted,
}

/// Texts with their number of occurrences.
type Counted = BTreeMap<String, usize>;

impl Account {
    pub(crate) fn of(project: &TestProject) -> Account {
        let events = project.events_from(1);
        let names = names(&events);
        let task =
            |task: &Value| without(task, &["id", "created_at", "started_at", "completed_at"]);
        let tasks = project.tasks().iter().map(|row| named(task(row), &names)).collect::<Vec<_>>();
        let events = events.iter().map(|event| named(lasting(event), &names)).collect::<Vec<_>>();
        Account { tasks: counted(&tasks), events: counted(&events) }
    }

    pub(crate) fn assert_same(&self, expected: &Account, how: &str) {
        assert_eq!(differences(&self.tasks, &expected.tasks), [""; 0], "tasks after {how}");
        assert_eq!(differences(&self.events, &expected.events), [""; 0], "events after {how}");
    }
}

/// Returns a fixed name for each id that differs between runs.
fn names(events: &[Value]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for event in events {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if event["type"] == "task_created" {
            names.insert(text(&event["node_id"]), text(&event["data"]["goal"]));
        }
        let node = text(&event["node_id"]);
        let node = names.get(&node).unwrap_or(&node);
        let name = format!("{} of {node}", text(&event["type"]));
        names.insert(text(&event["id"]), name);
        if event["type"] == "workflow_requested" {
            let run = format!("run of {}", text(&event["data"]["workflow"]));
            names.insert(text(&event["data"]["run"]), run);
        }
    }
    names
}

/// Returns the parts of an event that are the same in every run.
fn lasting(event: &Value) -> Value {
    let data = match event["type"].as_str() {
        Some("cursor_moved") => json!({"part": event["data"]["part"].is_object()}),
        Some("agent_metrics") => without(&event["data"], &["duration_ms"]),
        _ => event["data"].clone(),
    };
    json!({
        "type": event["type"], "node": event["node_id"], "data": data, "metadata": event["metadata"],
    })
}

fn without(object: &Value, fields: &[&str]) -> Value {
    let kept = object.as_object().into_iter().flatten();
    let kept = kept.filter(|(name, _)| !fields.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Returns `value` with names instead of ids.
fn named(value: Value, names: &HashMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(names.get(&text).cloned().unwrap_or(text)),
        Value::Array(items) => items.into_iter().map(|item| named(item, names)).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(field, item)| (field, named(item, names))).collect()
        }
        other => other,
    }
}

fn counted(values: &[Value]) -> Counted {
    let mut counted = Counted::new();
    for value in values {
        *counted.entry(value.to_string()).or_default() += 1;
    }
    counted
}

fn differences(found: &Counted, expected: &Counted) -> Vec<String> {
    let times = |counted: &Counted, what: &String| counted.get(what).copied().unwrap_or(0);
    let all = found.keys().chain(expected.keys().filter(|what| !found.contains_key(*what)));
    all.filter(|what| times(found, what) != times(expected, what))
        .take(SHOWN)
        .map(|what| format!("{} times, not {}: {what}", times(found, what), times(expected, what)))
        .collect()
}
