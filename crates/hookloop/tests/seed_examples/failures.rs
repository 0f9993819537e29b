//! Checks that failed hooks and actions are recorded and stop nothing else.

use serde_json::{Value, json};

use crate::cli::{Project, fields, types};

#[test]
fn a_failing_hook_stops_no_other() {
    let project = Project::with_config(
        "hooks:
  task_completed:
    - name: failing-hook
      priority: 5
      actions:
        - log: {type: before}
        - log: {type: note, data: {text: 'came to {{result}}'}}
    - name: success-hook
      priority: 20
      actions:
        - log: {type: note, data: {}}
",
    );
    project.add("Goal", &["--id", "x", "--label", "agent"]);
    project.ok(&["task", "complete", "x"]);

    let error = project.event("hook_error");
    assert_eq!(error["node_id"], "x");
    assert_eq!(fields(&error["data"]), ["error", "hook_name", "original_event"].into());
    assert_eq!(error["data"]["hook_name"], "failing-hook");
    assert!(error["data"]["error"].as_str().unwrap().contains("{{result}}"), "{error}");
    let completed = project.event("task_completed");
    for field in ["timestamp", "type", "node_id", "data"] {
        assert_eq!(error["data"]["original_event"][field], completed[field], "{field}");
    }
    // All actions of the other hooks took effect, and none of the failed hook.
    assert_eq!(project.event("hook.success-hook.note")["node_id"], "x");
    assert_eq!(project.event("agent_metrics")["node_id"], "x");
    assert_eq!(project.goals(), ["Goal", "Review: Goal"]);
    assert_eq!(project.events_of("hook.failing-hook.before"), [] as [Value; 0]);
}

#[test]
fn a_failing_action_stops_no_other() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - name: eager
      actions:
        - update_task: {taskId: no-such, action: start}
        - create_task: {goal: ' '}
        - log: {type: after}
",
    );
    project.ok(&["task", "add", "Goal", "--id", "x"]);
    let errors = project.events_of("action_error");
    let check = |error: &Value, action: &str, why: &str, payload: (&str, &str)| {
        assert_eq!(error["node_id"], "system");
        assert_eq!(fields(&error["data"]), ["action_type", "error", "payload"].into());
        assert_eq!(error["data"]["action_type"], action);
        assert!(error["data"]["error"].as_str().unwrap().contains(why), "{error}");
        assert_eq!(error["data"]["payload"][payload.0], payload.1);
        assert_eq!(error["metadata"]["hook"], "eager");
    };
    assert_eq!(errors.len(), 2, "{errors:?}");
    check(&errors[0], "update_task", "no task `no-such`", ("task_id", "no-such"));
    check(&errors[1], "create_task", "needs a goal", ("goal", " "));
    assert_eq!(project.event("hook.eager.after")["node_id"], "x");
    assert_eq!(project.goals(), ["Goal"]);
}

#[test]
fn the_depth_of_a_cascade_is_limited_and_recorded() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - name: more
      actions:
        - create_task: {goal: '{{goal}}+'}
limits: {cascade: {depth: 3}}
",
    );
    let done = project.json(&["task", "add", "G"]);
    assert_eq!(project.goals(), ["G", "G+", "G++", "G+++"]);
    assert_eq!(done["added"].as_array().unwrap().len(), 3);
    let cut = project.event("cascade_limit_reached");
    assert_eq!(cut["node_id"], "system");
    assert_eq!(cut["data"], json!({"hook_name": "more", "limit": "depth", "dropped": 1}));
    assert_eq!(cut["metadata"]["depth"], 4);
}

#[test]
fn a_cascade_without_configured_limits_ends_too() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - name: twice
      actions: [{create_task: {goal: '{{goal}}a'}}, {create_task: {goal: '{{goal}}b'}}]
",
    );
    project.ok(&["task", "add", "G"]);
    // A depth of eight and a width of two make 510 tasks, which is below the limit on the total.
    assert_eq!(project.goals().len(), 511);
    let cuts = project.events_of("cascade_limit_reached");
    assert_eq!(cuts.len(), 256);
    assert!(cuts.iter().all(|cut| cut["data"]["limit"] == "depth"));
    project.ok(&["verify"]);
}

#[test]
fn the_width_and_the_total_of_a_cascade_are_limited() {
    let check = |limits: &str, limit: &str, dropped: u32, notes: usize| {
        let project = Project::with_config(&format!(
            "hooks:
  task_created:
    - name: wide
      actions: [{{log: {{type: n}}}}, {{log: {{type: n}}}}, {{log: {{type: n}}}}]
limits: {{cascade: {limits}}}
"
        ));
        project.ok(&["task", "add", "G"]);
        assert_eq!(project.events_of("hook.wide.n").len(), notes, "{limits}");
        let cut = project.event("cascade_limit_reached");
        let data = json!({"hook_name": "wide", "limit": limit, "dropped": dropped});
        assert_eq!(cut["data"], data, "{limits}");
    };
    check("{fan_out: 2}", "fan_out", 1, 2);
    check("{total: 1}", "total", 2, 1);
}

#[test]
fn effects_of_a_command_are_logged_directly_after_its_event() {
    let project = Project::new();
    project.add("A", &["--id", "a", "--label", "agent"]);
    project.add("B", &["--id", "b", "--depends-on", "a"]);
    project.ok(&["task", "complete", "a"]);
    let expected = ["task_completed", "task_created", "dependency_satisfied", "agent_metrics"];
    let events = project.events();
    assert_eq!(types(&events)[3..], expected);
}
