//! What each of the eight event types carries.

use serde_json::{Value, json};

use crate::cli::{Project, fields};

/// A project in which each of the eight events happened.
fn with_every_event() -> Project {
    let project = Project::new();
    for id in ["a", "b", "c"] {
        project.add("Goal", &["--id", id, "--label", "l", "--deliverable", "d"]);
    }
    project.ok(&["task", "depend", "b", "--on", "a"]);
    project.ok(&["task", "start", "a", "--context", "From scratch"]);
    project.ok(&["task", "complete", "a", "--result", "Done", "--artifact", "doc.md"]);
    project.ok(&["task", "block", "c", "--reason", "Why", "--needs", "A password"]);
    project.ok(&["task", "undepend", "b", "--on", "a"]);
    project.ok(&["task", "depend", "b", "--on", "c"]);
    project.ok(&["task", "delete", "c"]);
    project
}

#[test]
fn the_eight_events_carry_the_documented_payloads() {
    let project = with_every_event();
    let check = |kind: &str, node: &str, data: Value| {
        let event = project.events_of(kind).into_iter().find(|event| event["nodeId"] == node);
        assert_eq!(event.unwrap_or_else(|| panic!("no {kind}"))["data"], data, "{kind}");
    };
    let task = json!({"goal": "Goal", "deliverables": ["d"], "labels": ["l"], "priority": 2});
    check("task_created", "a", task);
    check("task_started", "a", json!({"context": "From scratch"}));
    check("task_completed", "a", json!({"result": "Done", "artifacts": ["doc.md"]}));
    check("task_blocked", "c", json!({"reason": "Why", "requiredKnowledge": "A password"}));
    check("task_deleted", "c", json!({"edgesRemoved": 1}));
    let edge = json!({"fromId": "b", "toId": "a", "edgeType": "depends_on"});
    check("dependency_added", "b", edge);
    let edge = json!({"edgeId": "depends_on:b:a", "fromId": "b", "toId": "a"});
    check("dependency_removed", "b", edge);
    let satisfied = json!({"dependentTaskId": "b", "completedTaskId": "a"});
    check("dependency_satisfied", "b", satisfied);
}

#[test]
fn every_event_says_when_about_what_and_who() {
    let project = with_every_event();
    let events = project.events();
    for (i, event) in events.iter().enumerate() {
        let expected = ["data", "id", "metadata", "nodeId", "seq", "timestamp", "type"];
        assert_eq!(fields(event), expected.into(), "{event}");
        let who = if event["type"] == "dependency_satisfied" {
            "hook:check-dependency-satisfaction"
        } else {
            "tester"
        };
        assert_eq!(event["metadata"]["triggeredBy"], who, "{event}");
        assert!(i == 0 || events[i - 1]["seq"].as_u64() < event["seq"].as_u64());
    }
}
