//! Lists of actions that commands print, in the form of the specification.

use serde_json::{Value, json};

use crate::cli::{Project, types};

/// Returns a project whose hooks of completed tasks print these texts, in this order.
fn answering(answers: &[&str]) -> Project {
    let mut yaml = "hooks:\n  task_completed:\n".to_owned();
    for number in 0..answers.len() {
        yaml.push_str(&format!("    - {{name: h{number}, command: cat h{number}.json}}\n"));
    }
    yaml.push_str("workflows:\n  heavy-computation:\n    - log: {type: computed}\n");
    let project = Project::with_config(&yaml);
    for (number, answer) in answers.iter().enumerate() {
        project.write(&format!("h{number}.json"), answer);
    }
    project.trust();
    project
}

#[test]
fn a_printed_list_of_actions_takes_effect() {
    let project = answering(&[r#"[
      {"type": "create_task", "payload": {
        "goal": "Review: Research graph patterns",
        "deliverables": ["Review completed", "Feedback provided"],
        "labels": ["review", "agent", "research"], "priority": 1, "parentTaskId": "task_42"}},
      {"type": "update_task", "payload": {"taskId": "task_20", "action": "transition_to_ready"}},
      {"type": "log", "payload": {
        "timestamp": "2026-01-17T12:30:00Z", "type": "dependency_satisfied", "nodeId": "task_20",
        "data": {"completedTaskId": "task_42"}}},
      {"type": "log", "payload": {
        "timestamp": "2026-01-17T12:30:00Z", "type": "agent_metrics", "nodeId": "task_42",
        "data": {"goal": "Research graph patterns", "durationMs": 9000000},
        "metadata": {"triggeredBy": "ada"}}},
      {"type": "log", "payload": {"type": "note", "nodeId": "system"}},
      {"type": "execute_workflow", "payload": {
        "workflowId": "heavy-computation", "context": {"type": "task_completed", "nodeId": "task_42"}}},
      {"type": "log", "payload": {}}
    ]"#]);
    project.add("Research graph patterns", &["--id", "task_42"]);
    project.add("Later", &["--id", "task_20"]);
    project.ok(&["task", "complete", "task_42"]);

    assert_eq!(project.events_of("action_error"), [] as [Value; 0]);
    let created = project.json(&["task", "list"]);
    let created = created["tasks"].as_array().or(created.as_array()).unwrap().clone();
    let review = created.iter().find(|task| task["goal"] == "Review: Research graph patterns");
    assert_eq!(review.unwrap()["parent"], "task_42");
    let satisfied = project.event("hook.h0.dependency_satisfied");
    assert_eq!(satisfied["node_id"], "task_20");
    assert_ne!(satisfied["timestamp"], "2026-01-17T12:30:00Z");
    let metrics = project.event("hook.h0.agent_metrics");
    assert_eq!(metrics["node_id"], "task_42");
    assert_eq!(metrics["data"]["metadata"], json!({"triggeredBy": "ada"}));
    assert_eq!(project.event("hook.h0.note")["node_id"], "system");
    assert_eq!(project.event("hook.h0.log")["node_id"], "task_42");
    assert_eq!(project.event("workflow_requested")["data"]["workflow"], "heavy-computation");
}

#[test]
fn an_invalid_action_does_not_prevent_other_actions() {
    let actions = r#"[{"type": "log", "payload": {"type": "before"}},
        {"type": "sudo", "payload": {"argv": ["reboot"]}},
        {"type": "create_task", "payload": {"gaol": "misspelt"}},
        {"type": "log", "payload": {"type": "lost", "nodeId": "no-such"}},
        7,
        {"type": "log", "payload": {"type": "after"}}]"#;
    let in_object = format!("{{\"hookloop\": {{\"actions\": {actions}}}}}");
    let project = answering(&[actions, &in_object]);
    project.add("Goal", &["--id", "x"]);
    let done = project.json(&["task", "complete", "x"]);

    for hook in ["h0", "h1"] {
        for kind in ["before", "after"] {
            assert_eq!(project.events_of(&format!("hook.{hook}.{kind}")).len(), 1, "{hook} {kind}");
        }
    }
    let errors = project.events_of("action_error");
    let types: Vec<&str> =
        errors.iter().map(|error| error["data"]["action_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["sudo", "create_task", "log", "unknown"].repeat(2));
    assert_eq!(errors[0]["data"]["payload"], json!({"argv": ["reboot"]}));
    let failures = done["hook_failures"].as_array().unwrap();
    assert_eq!(failures.len(), 8, "{failures:?}");
    let why = project.ok(&["why", "x"]);
    assert!(why.contains("hook `h1` could not sudo: there is no action `sudo`"), "{why}");
}

#[test]
fn actions_apply_after_all_hooks_of_the_event() {
    let project = Project::with_config(
        "hooks:
  task_completed:
    - {name: first, priority: 1, command: cat first.json}
    - {name: second, priority: 2, command: hookloop task list --json > seen.json}
    - name: third
      priority: 3
      actions: [{log: {type: third}}]
",
    );
    project
        .write("first.json", r#"[{"type": "create_task", "payload": {"goal": "Made by first"}}]"#);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_hookloop"));
    let text = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    project.write(
        "hookloop.yaml",
        &text.replace("hookloop task", &format!("{} task", program.display())),
    );
    project.trust();
    project.add("Goal", &["--id", "x"]);
    project.ok(&["task", "complete", "x"]);

    let seen = std::fs::read_to_string(project.root().join("seen.json")).unwrap();
    assert!(seen.contains("Goal") && !seen.contains("Made by first"), "{seen}");
    let events = project.events();
    let types = types(&events);
    let made = types.iter().rposition(|kind| *kind == "task_created");
    let third = types.iter().position(|kind| *kind == "hook.third.third");
    assert!(made.is_some() && made < third, "{types:?}");
}
