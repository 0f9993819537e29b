//! A project's tasks and history without what differs from run to run: ids, times, places.

use std::collections::{BTreeMap, HashMap};

use hookloop_testkit::TestProject;
use serde_json::{Map, Value, json};

/// Differences that a failure tells.
const SHOWN: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    tasks: Counted,
    events: Counted,
}

/// What there is, and how often.
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

/// What to call everything that has an id of its own in each run.
fn names(events: &[Value]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for event in events {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if event["type"] == "task_created" {
            names.insert(text(&event["nodeId"]), text(&event["data"]["goal"]));
        }
        let node = text(&event["nodeId"]);
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

/// What an event says that every run has to say.
fn lasting(event: &Value) -> Value {
    let data = match event["type"].as_str() {
        Some("cursor_moved") => json!({"part": event["data"]["part"].is_object()}),
        Some("agent_metrics") => without(&event["data"], &["durationMs"]),
        _ => event["data"].clone(),
    };
    json!({
        "type": event["type"], "node": event["nodeId"], "data": data, "metadata": event["metadata"],
    })
}

fn without(object: &Value, fields: &[&str]) -> Value {
    let kept = object.as_object().into_iter().flatten();
    let kept = kept.filter(|(name, _)| !fields.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// `value` with names in the place of ids.
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
