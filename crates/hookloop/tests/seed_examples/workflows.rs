//! Workflows that a hook requests and does not run itself.

use serde_json::{Value, json};

use crate::cli::{Project, types};

/// Returns a project with a hook that runs a workflow of these steps when a task is completed.
fn with_steps(steps: &str) -> Project {
    Project::with_config(&format!(
        "hooks:
  task_completed:
    - name: ship-it
      actions: [{{execute_workflow: ship}}]
workflows:
  ship:
{steps}"
    ))
}

fn complete_one(project: &Project) {
    project.add("Goal", &["--id", "x"]);
    project.ok(&["task", "complete", "x"]);
}

#[test]
fn a_workflow_runs_step_by_step() {
    let project = with_steps(
        "    - create_task: {goal: 'Tag {{goal}}', parentTaskId: '{{task_id}}'}
    - log: {type: shipped, data: {goal: '{{goal}}'}}
",
    );
    complete_one(&project);
    let events = project.events();
    let expected = [
        "task_created",
        "task_completed",
        "workflow_requested",
        "task_created",
        "workflow_step_completed",
        "hook.ship-it.shipped",
        "workflow_step_completed",
        "workflow_completed",
    ];
    assert_eq!(types(&events), expected);
    assert_eq!(events[2]["data"]["workflow"], "ship");
    assert_eq!(events[5]["data"], json!({"goal": "Goal"}));
    assert_eq!((&events[4]["data"]["step"], &events[6]["data"]["step"]), (&json!(0), &json!(1)));
    assert_eq!(project.goals(), ["Goal", "Tag Goal"]);
    let workflows = &project.json(&["status"])["workflows"];
    assert_eq!((&workflows["running"], &workflows["failed"]), (&json!(0), &json!(0)));
}

#[test]
fn a_failed_step_ends_the_workflow_and_not_the_command() {
    let project = with_steps(
        "    - log: {type: first}
    - update_task: {taskId: no-such, action: start}
    - log: {type: third}
",
    );
    complete_one(&project);
    let failed = project.event("workflow_failed");
    assert_eq!(failed["data"]["step"], 1);
    assert!(failed["data"]["error"].as_str().unwrap().contains("no-such"), "{failed}");
    assert_eq!(project.events_of("hook.ship-it.first").len(), 1);
    for never in ["hook.ship-it.third", "workflow_completed"] {
        assert_eq!(project.events_of(never), [] as [Value; 0], "{never}");
    }
    assert_eq!(project.json(&["status"])["workflows"]["failed"], 1);
    assert!(project.ok(&["status"]).contains("hookloop log --type workflow_failed"));
    assert_eq!(project.state_of("x"), "completed");
}

#[test]
fn a_workflow_can_ask_for_another() {
    let project = with_steps(
        "    - execute_workflow: {workflowId: tell, context: {why: because}}
  tell:
    - log: {type: told}
",
    );
    complete_one(&project);
    assert_eq!(project.events_of("workflow_completed").len(), 2);
    let requested = project.events_of("workflow_requested");
    assert_eq!(requested[1]["data"]["context"], json!({"why": "because"}));
    assert_eq!(project.events_of("hook.ship-it.told").len(), 1);
}

#[test]
fn a_workflow_that_asks_for_itself_ends() {
    let project = with_steps("    - execute_workflow: ship\n    - log: {type: again}\n");
    complete_one(&project);
    let runs = project.events_of("workflow_requested").len();
    assert!((2..=8).contains(&runs), "{runs} runs");
    let failed = project.event("workflow_failed");
    assert!(failed["data"]["error"].as_str().unwrap().contains("limit `depth`"), "{failed}");
    let workflows = &project.json(&["status"])["workflows"];
    assert_eq!((&workflows["running"], &workflows["failed"]), (&json!(0), &json!(1)));
}

#[test]
fn a_workflow_that_multiplies_ends_at_the_total() {
    let project = with_steps(&"    - execute_workflow: ship\n".repeat(5));
    complete_one(&project);
    let runs = project.events_of("workflow_requested").len();
    assert!((8..=1_000).contains(&runs), "{runs} runs");
    let limits = project.events_of("workflow_failed");
    let total =
        |failed: &serde_json::Value| failed["data"]["error"].to_string().contains("`total`");
    assert!(limits.iter().any(total), "no run ended at the total");
    assert_eq!(project.json(&["status"])["workflows"]["running"], json!(0));
}
