//! `verify` and `rebuild`.

use crate::cli::Project;

fn with_events() -> Project {
    let project = Project::new();
    for id in ["a", "b", "c"] {
        project.add("Goal", &["--id", id]);
    }
    project
}

/// Damages the database behind the program's back; `verify` has to say `part`.
fn check(sql: &str, part: &str) {
    let project = with_events();
    let changed = project.database().execute(sql, []).unwrap();
    assert_eq!(changed, 1, "{sql}");
    let error = project.fails(1, &["verify"]);
    assert!(error.contains(part), "{sql}: {error}");
    let run = project.run(&["verify", "--json"]);
    assert_eq!(run.code, 1);
    let printed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(printed["intact"], false);
}

#[test]
fn an_intact_log_is_said_to_be() {
    let project = with_events();
    assert_eq!(project.ok(&["verify"]), "The log is intact: 3 events\n");
    assert_eq!(Project::new().json(&["verify"])["events"], 0);
}

#[test]
fn one_changed_byte_is_found_and_its_event_named() {
    check("UPDATE event SET data = replace(data, 'Goal', 'Goam') WHERE seq = 2", "event 2 ");
    check("UPDATE event SET at = at + 1 WHERE seq = 1", "event 1 ");
    check("UPDATE event SET actor = 'Tester' WHERE seq = 3", "event 3 ");
    check("UPDATE event SET hash = zeroblob(32) WHERE seq = 2", "event 2 ");
    check("UPDATE event SET data = '{' WHERE seq = 2", "event 2 ");
}

#[test]
fn missing_events_are_found() {
    check("DELETE FROM event WHERE seq = 3", "ends at event 2, but 3 were acknowledged");
    check("DELETE FROM event WHERE seq = 1", "event 1 is missing");
    check("DELETE FROM event WHERE seq = 2", "event 2 is missing");
}

#[test]
fn a_view_that_was_changed_is_made_right_by_rebuild() {
    let project = with_events();
    let before = project.ok(&["task", "export"]);
    let changed = project.database().execute("UPDATE task SET state = 3 WHERE id = 'a'", []);
    assert_eq!(changed.unwrap(), 1);
    assert_ne!(project.ok(&["task", "export"]), before);
    assert_eq!(project.json(&["rebuild"])["equal"], false);
    assert_eq!(project.ok(&["task", "export"]), before);
    assert_eq!(project.json(&["rebuild"])["equal"], true);
}

#[test]
fn a_file_that_is_no_database_is_said_to_be() {
    let project = with_events();
    let state = project.state();
    for name in ["hookloop.db-wal", "hookloop.db-shm"] {
        let _ = std::fs::remove_file(state.join(name));
    }
    std::fs::write(state.join("hookloop.db"), "not a database, whatever its name says").unwrap();
    let error = project.fails(70, &["task", "list"]);
    assert!(error.contains("database"), "{error}");
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let project = with_events();
    project.database().pragma_update(None, "user_version", 99).unwrap();
    let error = project.fails(70, &["task", "list"]);
    assert!(error.contains("version 99") && error.contains("try: update hookloop"), "{error}");
}
