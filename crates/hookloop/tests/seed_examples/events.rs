//! The data of each of the eight event types.

use serde_json::{Value, json};

use crate::cli::{Project, fields};

/// Returns a project whose log has each of the eight events.
fn with_every_event() -> Project {
    let project = Project::new();
    every_event(&project);
    project
}

/// Triggers each of the eight events.
fn every_event(project: &Project) {
    for id in ["a", "b", "c"] {
        project.add("Goal", &["--id", id, "--label", "l", "--deliverable", "d"]);
    }
    project.ok(&["task", "dep", "add", "b", "--on", "a"]);
    project.ok(&["task", "start", "a", "--context", "From scratch"]);
    project.ok(&["task", "complete", "a", "--result", "Done", "--artifact", "doc.md"]);
    project.ok(&["task", "block", "c", "--reason", "Why", "--needs", "A password"]);
    project.ok(&["task", "dep", "remove", "b", "--on", "a"]);
    project.ok(&["task", "dep", "add", "b", "--on", "c"]);
    project.ok(&["task", "delete", "c"]);
}

#[test]
fn the_eight_events_carry_the_documented_payloads() {
    let project = with_every_event();
    let check = |kind: &str, node: &str, data: Value| {
        let event = project.events_of(kind).into_iter().find(|event| event["node_id"] == node);
        assert_eq!(event.unwrap_or_else(|| panic!("no {kind}"))["data"], data, "{kind}");
    };
    let task = json!({"goal": "Goal", "deliverables": ["d"], "labels": ["l"], "priority": 2});
    check("task_created", "a", task);
    check("task_started", "a", json!({"context": "From scratch"}));
    check("task_completed", "a", json!({"result": "Done", "artifacts": ["doc.md"]}));
    check("task_blocked", "c", json!({"reason": "Why", "required_knowledge": "A password"}));
    check("task_deleted", "c", json!({"edges_removed": 1}));
    let edge = json!({"from_id": "b", "to_id": "a", "edge_type": "depends_on"});
    check("dependency_added", "b", edge);
    let edge = json!({"edge_id": "depends_on:b:a", "from_id": "b", "to_id": "a"});
    check("dependency_removed", "b", edge);
    let satisfied = json!({"dependent_task_id": "b", "completed_task_id": "a"});
    check("dependency_satisfied", "b", satisfied);
}

#[test]
fn hooks_receive_event_data_under_the_names_of_the_specification() {
    const KINDS: [&str; 5] = [
        "task_blocked",
        "task_deleted",
        "dependency_added",
        "dependency_removed",
        "dependency_satisfied",
    ];
    let keep = |kind: &str| {
        format!("  {kind}: [{{name: keep-{kind}, command: 'test -e {kind} || cat > {kind}'}}]\n")
    };
    let project = Project::with_config(&format!("hooks:\n{}", KINDS.map(keep).concat()));
    project.trust();
    every_event(&project);
    let received = |kind: &str| {
        let text = std::fs::read_to_string(project.root().join(kind)).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["hookloop"]["event"].clone()
    };
    let check = |kind: &str, node: &str, data: Value| {
        let event = received(kind);
        assert_eq!(event["nodeId"], node, "{kind}");
        for (name, value) in data.as_object().unwrap() {
            assert_eq!(&event["data"][name], value, "{kind} {name}");
        }
    };
    check("task_blocked", "c", json!({"reason": "Why", "requiredKnowledge": "A password"}));
    check("task_deleted", "c", json!({"edgesRemoved": 1, "edges_removed": 1}));
    let edge = json!({"fromId": "b", "toId": "a", "edgeType": "depends_on"});
    check("dependency_added", "b", edge);
    let edge = json!({"edgeId": "depends_on:b:a", "fromId": "b", "toId": "a"});
    check("dependency_removed", "b", edge);
    let satisfied = json!({"dependentTaskId": "b", "completedTaskId": "a"});
    check("dependency_satisfied", "b", satisfied);
}

#[test]
fn every_event_has_a_timestamp_a_task_and_an_actor() {
    let project = with_every_event();
    let events = project.events();
    for (i, event) in events.iter().enumerate() {
        let expected = ["data", "id", "metadata", "node_id", "seq", "timestamp", "type"];
        assert_eq!(fields(event), expected.into(), "{event}");
        let who = if event["type"] == "dependency_satisfied" {
            "hook:check-dependency-satisfaction"
        } else {
            "tester"
        };
        assert_eq!(event["metadata"]["triggered_by"], who, "{event}");
        assert!(i == 0 || events[i - 1]["seq"].as_u64() < event["seq"].as_u64());
    }
}
