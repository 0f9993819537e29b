//! The three built-in hooks, with the tasks of the specification's examples.

use serde_json::{Value, json};

use crate::cli::{Project, fields, strings, types};

/// Returns a project in which `task_42` of the specification is completed.
fn with_task_42_completed(priority: &str) -> Project {
    let project = Project::new();
    let labels = ["--label", "agent", "--label", "research"];
    let options = [&["--id", "task_42", "--priority", priority], &labels[..]].concat();
    project.add("Research graph patterns", &options);
    project.ok(&["task", "complete", "task_42", "--result", "Research complete"]);
    project
}

/// Returns the only task that the completion of `task_42` created.
fn review_of_task_42(project: &Project) -> Value {
    let spawned = strings(&project.task("task_42")["spawned"], "id");
    assert_eq!(spawned.len(), 1, "{spawned:?}");
    project.task(&spawned[0])
}

#[test]
fn an_agents_completed_task_gets_a_review() {
    let project = with_task_42_completed("1");
    let review = review_of_task_42(&project);
    assert_eq!(review["goal"], "Review: Research graph patterns");
    assert_eq!(review["deliverables"], json!(["Review completed", "Feedback provided"]));
    assert_eq!(review["labels"], json!(["review", "agent", "research"]));
    assert_eq!(review["priority"], 1);
    assert_eq!(review["parent"], "task_42");
    assert_eq!(review["state"], "ready");
    let id = review["id"].as_str().unwrap();
    assert!(project.ok(&["task", "show", id]).contains("spawned by  task_42"));
    let created = project.events_of("task_created").pop().unwrap();
    assert_eq!(created["node_id"], id);
    assert_eq!(created["metadata"]["triggered_by"], "hook:auto-create-review-task");
    assert_eq!(created["metadata"]["hook"], "auto-create-review-task");
    assert_eq!(created["metadata"]["caused_by"], project.event("task_completed")["id"]);
}

#[test]
fn priority_0_stays_0_in_the_review() {
    let project = with_task_42_completed("0");
    assert_eq!(review_of_task_42(&project)["priority"], 0);
}

#[test]
fn reviews_are_not_reviewed() {
    let project = with_task_42_completed("1");
    let review = review_of_task_42(&project);
    let done = project.json(&["task", "complete", review["id"].as_str().unwrap()]);
    assert_eq!(done["added"], json!([]));
    assert_eq!(project.goals().len(), 2);
}

#[test]
fn other_tasks_get_no_review_and_no_metrics() {
    let project = Project::new();
    for labels in [&[][..], &["--label", "research"], &["--label", "agents"]] {
        let id = project.add("By hand", labels);
        let done = project.json(&["task", "complete", &id]);
        assert_eq!(done["added"], json!([]), "{labels:?}");
    }
    assert_eq!(project.events_of("agent_metrics"), [] as [Value; 0]);
}

#[test]
fn a_task_is_ready_when_its_last_dependency_completes() {
    let project = Project::new();
    project.add("Ten", &["--id", "task_10"]);
    project.add("Fifteen", &["--id", "task_15"]);
    project
        .add("Twenty", &["--id", "task_20", "--depends-on", "task_10", "--depends-on", "task_15"]);
    project.ok(&["task", "start", "task_15"]);

    let done = project.json(&["task", "complete", "task_10"]);
    assert_eq!(done["unblocked"], json!([]));
    assert_eq!(project.state_of("task_20"), "created");
    assert_eq!(project.events_of("dependency_satisfied"), [] as [Value; 0]);

    let done = project.json(&["task", "complete", "task_15"]);
    assert_eq!(done["unblocked"], json!(["task_20"]));
    assert_eq!(project.state_of("task_20"), "ready");
    let satisfied = project.event("dependency_satisfied");
    assert_eq!(satisfied["node_id"], "task_20");
    let data = json!({"dependent_task_id": "task_20", "completed_task_id": "task_15"});
    assert_eq!(satisfied["data"], data);
    assert_eq!(satisfied["metadata"]["hook"], "check-dependency-satisfaction");
}

/// Adds `task_agent_5` of the specification, runs each step at its time, and returns the metrics.
fn metrics_after(steps: &[(&str, &str)]) -> Value {
    let project = Project::new();
    let deliverables = ["--deliverable", "Research doc", "--deliverable", "Pattern catalog"];
    let labels = ["--label", "agent", "--label", "research", "--priority", "1"];
    let options = [&["--id", "task_agent_5"], &labels[..], &deliverables].concat();
    project.add("Research graph patterns", &options);
    for (time, verb) in steps {
        let mut command = project.command("faketime");
        // `-f` with an absolute time stops the clock.
        command.args(["-f", time, crate::cli::BINARY, "task", verb, "task_agent_5"]);
        let missing = "`faketime` is not installed; run `apt-get install faketime";
        let output = command.output().unwrap_or_else(|error| panic!("{missing} ({error})"));
        assert!(output.status.success(), "task {verb} at {time}: {output:?}");
    }
    let metrics = project.event("agent_metrics");
    assert_eq!(metrics["node_id"], "task_agent_5");
    assert_eq!(types(&project.events()).last(), Some(&"agent_metrics"));
    metrics["data"].clone()
}

#[test]
fn metrics_of_an_agents_task_have_its_duration() {
    let steps = [("2026-01-17 10:00:00", "start"), ("2026-01-17 12:30:00", "complete")];
    let expected = json!({
        "goal": "Research graph patterns",
        "labels": ["agent", "research"],
        "priority": 1,
        "duration_ms": 9_000_000,
        "deliverables": ["Research doc", "Pattern catalog"],
    });
    assert_eq!(metrics_after(&steps), expected);
}

#[test]
fn a_task_that_was_never_started_has_no_duration() {
    let metrics = metrics_after(&[("2026-01-17 12:30:00", "complete")]);
    assert!(fields(&metrics).contains("duration_ms"));
    assert_eq!(metrics["duration_ms"], Value::Null);
}
