//! State changes of tasks, and their effect on dependent tasks.

use serde_json::{Value, json};

use crate::cli::{Project, strings};

/// Returns a project with the task `a`, and `b` that depends on it.
fn chain() -> Project {
    let project = Project::new();
    project.add("A", &["--id", "a"]);
    project.add("B", &["--id", "b", "--depends-on", "a"]);
    project
}

/// Checks that a command is refused with `part` in the message and changes nothing.
fn check_refused(project: &Project, args: &[&str], part: &str) {
    let before = project.events();
    let error = project.fails(1, args);
    assert!(error.contains(part), "{args:?}: {error}");
    assert_eq!(project.events(), before, "{args:?}");
}

#[test]
fn invalid_state_changes_of_a_task_are_refused() {
    let project = chain();
    check_refused(&project, &["task", "start", "b"], "waits for 1 of its dependencies");
    check_refused(&project, &["task", "complete", "b"], "waits for 1 of its dependencies");
    check_refused(&project, &["task", "unblock", "a"], "is ready");
    project.ok(&["task", "start", "a"]);
    check_refused(&project, &["task", "start", "a"], "already active");
    check_refused(&project, &["task", "delete", "a"], "run `hookloop task delete a --force");
    check_refused(&project, &["task", "dep", "add", "a", "--on", "a"], "itself");
    project.ok(&["task", "complete", "a"]);
    check_refused(&project, &["task", "complete", "a"], "already completed");
    check_refused(&project, &["task", "start", "a"], "is completed");
    check_refused(&project, &["task", "block", "a", "--reason", "r"], "is completed");
    check_refused(&project, &["task", "dep", "add", "b", "--on", "a"], "depends on `a` already");
    check_refused(&project, &["task", "dep", "remove", "a", "--on", "b"], "does not depend");
}

#[test]
fn a_block_reason_is_shown_for_the_task_and_its_waiting_dependents() {
    let project = chain();
    let printed =
        project.ok(&["task", "block", "a", "--reason", "No access", "--needs", "A password"]);
    assert!(printed.contains("dependents that wait: 1 task"), "{printed}");
    let listed = project.ok(&["task", "list"]);
    assert!(listed.contains("waits for 1, blocked"), "{listed}");
    let blocked = json!({"reason": "No access", "required_knowledge": "A password"});
    assert_eq!(project.task("a")["blocked"], blocked);
    assert_eq!(project.json(&["status"])["waiting_on_blocked"], 1);
    assert!(project.ok(&["status"]).contains("waiting for a blocked task"));
    let shown = project.ok(&["task", "show", "a"]);
    assert!(shown.contains("No access") && shown.contains("A password"), "{shown}");
    assert!(project.ok(&["task", "show", "b"]).contains("blocked, so this task waits"));
    check_refused(&project, &["task", "start", "a"], "run `hookloop task unblock a");

    let unblocked = project.json(&["task", "unblock", "a"]);
    assert_eq!((&unblocked["state"], &unblocked["blocked"]), (&json!("ready"), &Value::Null));
    assert_eq!(project.json(&["status"])["waiting_on_blocked"], 0);
    project.ok(&["task", "complete", "a"]);
    assert_eq!(project.state_of("b"), "ready");
}

#[test]
fn a_blocked_task_whose_dependencies_complete_is_ready_when_unblocked() {
    let project = chain();
    project.ok(&["task", "block", "b", "--reason", "r"]);
    project.ok(&["task", "complete", "a"]);
    assert_eq!(project.state_of("b"), "blocked");
    project.ok(&["task", "unblock", "b"]);
    assert_eq!(project.state_of("b"), "ready");
}

#[test]
fn deleting_a_task_blocks_those_that_wait_for_it() {
    let project = chain();
    let gone = project.json(&["task", "delete", "a"]);
    assert_eq!(gone["blocked_dependents"], json!(["b"]));
    let b = project.task("b");
    assert_eq!(b["state"], "blocked");
    assert_eq!(b["blocked"]["reason"], "depends on `a`, which was deleted");
    assert_eq!(b["depends_on"], json!([]));
    assert_eq!(project.event("task_deleted")["data"]["edges_removed"], 1);
    check_refused(&project, &["task", "show", "a"], "there is no task `a`");
    project.ok(&["task", "unblock", "b"]);
    assert_eq!(project.state_of("b"), "ready");
}

#[test]
fn deleting_a_task_with_release_makes_its_dependents_ready() {
    let project = chain();
    let gone = project.json(&["task", "delete", "a", "--release"]);
    assert_eq!(gone["blocked_dependents"], json!([]));
    let b = project.task("b");
    assert_eq!((&b["state"], &b["blocked"]), (&json!("ready"), &Value::Null));
    assert_eq!(project.event("dependency_removed")["node_id"], "b");
}

#[test]
fn an_active_task_can_be_deleted_with_force() {
    let project = chain();
    project.ok(&["task", "start", "a"]);
    project.ok(&["task", "delete", "a", "--force"]);
    assert_eq!(project.goals(), ["B"]);
}

#[test]
fn dependencies_are_added_and_removed() {
    let project = Project::new();
    for id in ["a", "b"] {
        project.add("Goal", &["--id", id]);
    }
    assert_eq!(project.json(&["task", "dep", "add", "b", "--on", "a"])["state"], "created");
    let shown = project.task("b");
    assert_eq!(shown["open_dependencies"], 1);
    assert_eq!(strings(&shown["depends_on"], "id"), ["a"]);
    assert_eq!(strings(&project.task("a")["dependents"], "id"), ["b"]);
    assert_eq!(project.json(&["task", "dep", "remove", "b", "--on", "a"])["state"], "ready");
    assert_eq!(project.task("b")["depends_on"], json!([]));
}

#[test]
fn a_cycle_is_refused_with_its_path() {
    let project = Project::new();
    project.add("A", &["--id", "a"]);
    project.add("B", &["--id", "b", "--depends-on", "a"]);
    project.add("C", &["--id", "c", "--depends-on", "b"]);
    check_refused(&project, &["task", "dep", "add", "a", "--on", "c"], "cycle: a → c → b → a");
    check_refused(
        &project,
        &["task", "dep", "add", "a", "--on", "c"],
        "run `hookloop task graph a",
    );
    check_refused(&project, &["task", "dep", "add", "a", "--on", "b"], "cycle: a → b → a");
}

#[test]
fn the_path_of_a_long_dependency_cycle_is_abbreviated() {
    let project = Project::new();
    let mut input = String::from("{\"id\": \"t0\", \"goal\": \"G\"}\n");
    for n in 1..500 {
        let line =
            json!({"id": format!("t{n}"), "goal": "G", "depends_on": [format!("t{}", n - 1)]});
        input += &format!("{line}\n");
    }
    project.run_with_input(&["task", "import", "-"], &input);
    let error = project.fails(1, &["task", "dep", "add", "t0", "--on", "t499"]);
    assert!(error.contains("t0 → t499 → t498") && error.contains("t1 → t0"), "{error}");
    assert!(error.contains('…') && error.len() < 300, "{error}");
}

#[test]
fn ready_tasks_come_most_urgent_first() {
    let project = Project::new();
    for (id, priority) in [("low", "9"), ("mid", "2"), ("top", "0"), ("also-mid", "2")] {
        project.add("Goal", &["--id", id, "--priority", priority]);
    }
    let ready = strings(&project.json(&["task", "ready"]), "id");
    assert_eq!(ready, ["top", "mid", "also-mid", "low"]);
    assert_eq!(project.json(&["task", "ready", "--limit", "2"]).as_array().unwrap().len(), 2);
}

#[test]
fn task_lists_are_filtered_by_state_label_and_type() {
    let project = chain();
    project.add("C", &["--id", "c", "--label", "x", "--type", "chore"]);
    let check = |filter: &[&str], expected: &[&str]| {
        let listed = project.json(&[&["task", "list"], filter].concat());
        assert_eq!(strings(&listed, "id"), expected, "{filter:?}");
    };
    check(&[], &["c", "b", "a"]);
    check(&["--state", "created"], &["b"]);
    check(&["--state", "blocked"], &[]);
    check(&["--label", "x"], &["c"]);
    check(&["--type", "chore", "--state", "ready"], &["c"]);
    check(&["--limit", "1"], &["c"]);
    let error = project.fails(2, &["task", "list", "--state", "done"]);
    assert!(error.contains("created, ready, active"), "{error}");
}
