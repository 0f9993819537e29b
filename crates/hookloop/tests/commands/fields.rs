//! The fields of `--json` output: fields may be added, but never renamed.

use std::collections::BTreeSet;

use hookloop_testkit::json_lines;
use serde_json::Value;

use crate::cli::{Project, fields};

const TASK: &[&str] = &[
    "artifacts",
    "blocked",
    "claim",
    "completed_at",
    "created_at",
    "deliverables",
    "description",
    "epoch",
    "goal",
    "id",
    "labels",
    "may_change",
    "not_before",
    "open_dependencies",
    "parent",
    "priority",
    "proven",
    "result",
    "started_at",
    "state",
    "type",
];
const FOLLOWED: &[&str] = &["added", "blocked_dependents", "hook_failures", "unblocked"];

fn check(printed: &Value, expected: &[&[&str]]) {
    let expected: BTreeSet<&str> = expected.concat().into_iter().collect();
    assert_eq!(fields(printed), expected, "{printed}");
}

#[test]
fn task_commands_print_the_task_and_the_effects() {
    let project = Project::new();
    let each: [&[&str]; 8] = [
        &["task", "add", "A", "--id", "a"],
        &["task", "add", "B", "--id", "b"],
        &["task", "dep", "add", "b", "--on", "a"],
        &["task", "dep", "remove", "b", "--on", "a"],
        &["task", "block", "a", "--reason", "Why"],
        &["task", "unblock", "a"],
        &["task", "start", "a"],
        &["task", "complete", "a"],
    ];
    for args in each {
        check(&project.json(args), &[TASK, FOLLOWED]);
    }
    let gone = project.json(&["task", "delete", "b"]);
    assert!(fields(&gone).is_superset(&FOLLOWED.iter().copied().collect()), "{gone}");
}

#[test]
fn tasks_have_the_same_fields_in_all_commands() {
    let project = Project::new();
    project.add("A", &["--id", "a", "--type", "chore", "--description", "More"]);
    project.add("B", &["--id", "b", "--depends-on", "a", "--parent", "a"]);
    let shown = project.task("a");
    check(&shown, &[TASK, &["depends_on", "dependents", "spawned", "notes", "delivery"]]);
    check(&shown["dependents"][0], &[&["goal", "id", "state"]]);
    check(&project.json(&["task", "list"])[0], &[TASK]);
    check(&project.json(&["task", "ready"])[0], &[TASK]);
    let graph = project.json(&["task", "graph"]);
    check(&graph, &[&["edges", "tasks", "truncated"]]);
    check(&graph["edges"][0], &[&["needs", "task"]]);
    let exported = &json_lines(&project.ok(&["task", "export"]))[0];
    let expected = ["created_at", "description", "goal", "id", "priority", "state", "type"];
    check(exported, &[&expected]);
    project.ok(&["task", "block", "a", "--reason", "Why", "--needs", "What"]);
    check(&project.task("a")["blocked"], &[&["reason", "required_knowledge"]]);
}

#[test]
fn fields_of_init_status_policy_verify_rebuild_and_hooks() {
    let project = Project::bare();
    let check = |args: &[&str], expected: &[&str]| check(&project.json(args), &[expected]);
    let made = [
        "agents",
        "allowed_commands",
        "ci",
        "config",
        "created",
        "directories",
        "gates",
        "next",
        "root",
        "state",
        "tools",
        "trusted",
        "warnings",
    ];
    check(&["init", "--yes"], &made);
    check(&["init"], &made);
    let status = [
        "claimed",
        "events",
        "foreign_messages",
        "interrupted_sessions",
        "merging",
        "problems",
        "reactions_due",
        "replaced_log",
        "root",
        "sessions",
        "state",
        "store",
        "tasks",
        "waiting_for_time",
        "waiting_on_blocked",
        "weakened_gates",
        "workflows",
    ];
    check(&["status"], &status);
    check(&["policy"], &["files", "own_secrets", "rules"]);
    check(&["verify"], &["events", "foreign_messages", "intact"]);
    check(&["rebuild"], &["accepted_loss", "after", "before", "equal", "events"]);
    let hook = crate::cli::HOOK_FIELDS;
    check(&["hooks", "show", "auto-create-review-task"], &hook);
    check(&["hooks", "disable", "auto-create-review-task"], &hook);
    project.write("tasks.jsonl", "{\"goal\": \"A\"}\n");
    check(&["task", "import", "tasks.jsonl"], &["added", "present"]);
    let states = project.json(&["status"])["tasks"].clone();
    let expected = ["active", "blocked", "completed", "created", "ready", "submitted"];
    assert_eq!(fields(&states), expected.into());
}

#[test]
fn schedules_have_the_same_fields_in_all_commands() {
    let project = Project::new();
    let expected = [
        "cron",
        "deliverables",
        "description",
        "goal",
        "labels",
        "last",
        "may_change",
        "name",
        "next",
        "overlap",
        "paused",
        "priority",
        "type",
        "tz",
    ];
    let add = ["schedule", "add", "s", "--cron", "0 3 * * *", "--goal", "G"];
    check(&project.json(&add), &[&expected]);
    check(&project.json(&["schedule", "run", "s"]), &[TASK, FOLLOWED]);
    for args in
        [&["schedule", "show", "s"], &["schedule", "pause", "s"], &["schedule", "resume", "s"]]
    {
        check(&project.json(args), &[&expected]);
    }
    let listed = project.json(&["schedule", "list"]);
    check(&listed[0], &[&expected]);
    let last = ["by_hand", "missed_from", "occurrence", "skipped_for", "task"];
    check(&listed[0]["last"], &[&last]);
    check(&project.json(&["schedule", "remove", "s"]), &[&expected]);
    assert_eq!(project.json(&["schedule", "list"]), serde_json::json!([]));
}

#[test]
fn fields_of_the_fleet_commands() {
    let project = Project::new();
    let status = project.json(&["fleet", "status"]);
    let expected = [
        "budget",
        "directives",
        "rate_limited",
        "reserved_micros",
        "spent_micros",
        "spent_today_micros",
        "workers",
    ];
    check(&status, &[&expected]);
    check(&project.json(&["fleet", "pause", "--reason", "Why"]), &[&["directive", "scope"]]);
    let directives = project.json(&["fleet", "status"])["directives"].clone();
    check(&directives[0], &[&["at", "by", "directive", "reason", "scope"]]);
    check(&project.json(&["fleet", "resume"]), &[&["resumed", "scope"]]);
    check(&project.json(&["fleet", "budget", "--turns", "9"]), &[&["budget"]]);
    // The worker ran before, and gets a drain directive before it starts again.
    project.ok(&["worker", "--agent", "command:true", "--name", "w", "--until-idle"]);
    project.json(&["fleet", "drain", "w"]);
    let worker = ["worker", "--agent", "command:true", "--name", "w", "--json"];
    let said = json_lines(&project.ok(&worker));
    check(&said[0], &[&["state", "worker"]]);
}

#[test]
fn errors_are_json_objects() {
    let project = Project::new();
    let check = |args: &[&str], code: i32, kind: &str| {
        let run = project.run(&[args, &["--json"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{args:?}");
        let error: Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(fields(&error["error"]), ["hint", "message", "type"].into());
        assert_eq!(error["error"]["type"], kind);
    };
    check(&["task", "show", "no-such"], 1, "refused");
    check(&["task", "show", "bad id"], 2, "usage");
    check(&["task", "import", "no-such-file"], 2, "usage");
}

#[test]
fn empty_lists_are_empty_json_arrays_and_empty_text() {
    let project = Project::new();
    for args in [["task", "list"], ["task", "ready"]] {
        assert_eq!(project.json(&args), serde_json::json!([]));
        assert_eq!(project.ok(&args), "");
    }
    assert_eq!(project.ok(&["log"]), "");
    assert_eq!(project.ok(&["task", "export"]), "");
}
