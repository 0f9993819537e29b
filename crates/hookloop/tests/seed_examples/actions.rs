//! The actions that declared hooks can request, and those that they cannot.

use serde_json::{Value, json};

use crate::cli::{Project, types};

#[test]
fn events_logged_by_a_hook_carry_the_name_of_the_hook() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - name: forger
      actions:
        - log: {type: task_completed, data: {result: forged}}
        - log: {type: task_deleted}
",
    );
    project.add("Goal", &["--id", "x", "--label", "agent"]);
    assert_eq!(project.state_of("x"), "ready");
    let events = project.events();
    let expected = ["task_created", "hook.forger.task_completed", "hook.forger.task_deleted"];
    assert_eq!(types(&events), expected);
    assert_eq!(events[1]["node_id"], "x");
    assert_eq!(events[1]["data"], json!({"result": "forged"}));
    assert_eq!(events[1]["metadata"]["triggered_by"], "hook:forger");
    project.ok(&["rebuild"]);
    assert_eq!(project.state_of("x"), "ready");
}

#[test]
fn template_values_are_substituted_once_and_never_executed() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - name: note
      actions:
        - log: {type: n, data: {goal: '{{goal}}', all: '{{event}} {{task_id}} {{priority}} {{labels}}'}}
",
    );
    let goal = "{{task_id}} \"; touch pwned # $(touch pwned) `touch pwned`\n{{error}}";
    project.add(goal, &["--id", "x", "--label", "{{goal}}", "--label", "b"]);
    let data = json!({"goal": goal, "all": "task_created x 2 {{goal}},b"});
    assert_eq!(project.event("hook.note.n")["data"], data);
    assert!(!project.root().join("pwned").exists());
}

#[test]
fn a_hook_reacts_to_an_event_logged_by_another_hook() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - name: first
      actions: [{log: {type: ping}}]
  hook.first.ping:
    - name: second
      actions: [{log: {type: pong}}]
",
    );
    project.ok(&["task", "add", "Goal"]);
    assert_eq!(types(&project.events()), ["task_created", "hook.first.ping", "hook.second.pong"]);
    assert_eq!(project.event("hook.second.pong")["metadata"]["depth"], 2);
}

#[test]
fn hook_actions_complete_and_create_tasks() {
    let project = Project::with_config(
        "hooks:
  task_started:
    - name: quick
      actions:
        - update_task: {taskId: '{{task_id}}', action: complete, payload: {result: Quick, artifacts: [a]}}
  task_blocked:
    - name: helper
      actions:
        - create_task:
            goal: 'Find out: {{reason}}'
            priority: 0
            parentTaskId: '{{task_id}}'
            dependsOn: ['other']
",
    );
    project.trust();
    project.add("Other", &["--id", "other"]);
    project.add("Goal", &["--id", "x"]);
    project.ok(&["task", "start", "x"]);
    let done = project.task("x");
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("Quick")));

    project.add("Stuck", &["--id", "y"]);
    let blocked = project.json(&["task", "block", "y", "--reason", "Which colour?"]);
    let helper = project.task(blocked["added"][0].as_str().unwrap());
    assert_eq!(helper["goal"], "Find out: Which colour?");
    assert_eq!((&helper["priority"], &helper["parent"]), (&json!(0), &json!("y")));
    assert_eq!(helper["depends_on"][0]["id"], "other");
    assert_eq!(project.events_of("action_error"), [] as [Value; 0]);
}
