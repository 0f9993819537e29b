//! A log of format 1, with names of events and fields that format 2 replaced.
//!
//! `old_log` contains a log written by a build of format 1, and the tasks and sessions that the
//! same build listed.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::cli::Project;

const LOG: &str = include_str!("../old_log/format_1.sql");
const TASKS: &str = include_str!("../old_log/tasks.json");
const SESSIONS: &str = include_str!("../old_log/sessions.json");
const EVENTS: i64 = 128;

/// Returns a project whose log is the one of format 1.
fn with_old_log() -> Project {
    let project = Project::with_config("limits: {budget: {turns: 6, period: total}}\n");
    let state = project.state();
    for entry in fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("hookloop.") {
            fs::remove_file(path).unwrap();
        }
    }
    let database = rusqlite::Connection::open(state.join("hookloop.db")).unwrap();
    database.execute_batch(LOG).unwrap();
    project
}

#[test]
fn an_old_log_gives_the_same_tasks_and_sessions() {
    let project = with_old_log();
    let mut tasks: Value = serde_json::from_str(TASKS).unwrap();
    for task in tasks.as_array_mut().unwrap() {
        // A field that the build did not have.
        task["may_change"] = Value::Array(Vec::new());
    }
    assert_eq!(project.json(&["task", "list"]), tasks);

    let mut sessions: Value = serde_json::from_str(SESSIONS).unwrap();
    for session in sessions.as_array_mut().unwrap() {
        if session["reason"] == "purse" {
            session["reason"] = "budget".into();
        }
    }
    assert_eq!(project.json(&["sessions", "list"]), sessions);

    let total = &project.json(&["usage"])["total"];
    assert_eq!((&total["turns"], &total["cost_micros"]), (&6.into(), &21.into()), "{total}");
    let schedule = &project.json(&["schedule", "show", "nightly"]);
    assert_eq!(schedule["last"]["by_hand"], true, "{schedule}");
}

#[test]
fn an_old_log_stays_as_it_is_and_is_intact() {
    let project = with_old_log();
    project.ok(&["verify"]);
    assert_eq!(project.json(&["rebuild"])["equal"], true);
    project.ok(&["task", "start", "c"]);
    project.ok(&["verify"]);
    let old = "SELECT count(*) FROM event WHERE format = 1";
    let count: i64 = project.database().query_row(old, [], |row| row.get(0)).unwrap();
    assert_eq!(count, EVENTS);
}

#[test]
fn events_of_an_old_log_are_read_with_current_names() {
    let project = with_old_log();
    let events = project.events_from(1);
    let types: BTreeSet<&str> =
        events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for renamed in ["purse_exhausted", "gates_judged", "task_taken", "hook_switched"] {
        assert!(!types.contains(renamed), "{renamed}");
    }
    for current in ["budget_exhausted", "gates_evaluated", "session_task_claimed", "hook_disabled"]
    {
        assert!(types.contains(current), "{current}");
    }
    let turn = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
    assert_eq!(turn["data"]["usage"]["input_tokens"], 10, "{turn}");
    let keys = |event: &Value| event["data"].as_object().unwrap().keys().cloned().collect();
    let in_camel_case = |key: &String| key.chars().any(char::is_uppercase);
    let found: Vec<String> =
        events.iter().flat_map(|event| -> Vec<String> { keys(event) }).collect();
    assert_eq!(found.iter().find(|key| in_camel_case(key)), None);
    assert_eq!(project.events_of("gates_evaluated").len(), 6);
}
