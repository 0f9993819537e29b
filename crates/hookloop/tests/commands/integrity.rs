//! `verify` and `rebuild`.

use crate::cli::Project;

fn with_events() -> Project {
    let project = Project::new();
    for id in ["a", "b", "c"] {
        project.add("Goal", &["--id", id]);
    }
    project
}

/// Damages the database outside of hookloop; `verify` must report `part`.
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
fn verify_reports_an_intact_log() {
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
fn rebuild_restores_a_changed_view() {
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
fn a_file_that_is_not_a_database_is_reported() {
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
    assert!(error.contains("version 99") && error.contains("hint: update hookloop"), "{error}");
}

/// Returns a project whose log lost the last four of seven events.
fn with_lost_events() -> Project {
    let project = Project::new();
    for n in 0..7 {
        project.add("Goal", &["--id", &format!("t{n}")]);
    }
    assert_eq!(project.database().execute("DELETE FROM event WHERE seq > 3", []).unwrap(), 4);
    project
}

#[test]
fn rebuild_refuses_a_log_that_lost_acknowledged_events() {
    let project = with_lost_events();
    for _ in 0..2 {
        let error = project.fails(1, &["rebuild"]);
        assert!(error.contains("ends at event 3, but 7 were acknowledged"), "{error}");
        assert!(error.contains("hookloop rebuild --accept-loss"), "{error}");
    }
    let error = project.fails(1, &["verify"]);
    assert!(error.contains("7 were acknowledged"), "{error}");
    assert_eq!(project.json(&["status"])["events"], 7);
}

#[test]
fn an_accepted_loss_is_recorded_in_the_log() {
    let project = with_lost_events();
    let rebuilt = project.json(&["rebuild", "--accept-loss"]);
    let loss = rebuilt["accepted_loss"].as_str().unwrap();
    assert!(loss.contains("7 were acknowledged"), "{rebuilt}");
    assert_eq!(project.ok(&["verify"]), "The log is intact: 4 events\n");
    let logged = project.ok(&["log", "--json", "--type", "log_loss_accepted"]);
    let logged: serde_json::Value = serde_json::from_str(logged.trim()).unwrap();
    let text = logged.to_string();
    assert!(text.contains("\"acknowledged\":7") && text.contains("\"found\":3"), "{text}");
    project.add("Goal", &["--id", "later"]);
    assert_eq!(project.ok(&["verify"]), "The log is intact: 5 events\n");
    let again = project.json(&["rebuild", "--accept-loss"]);
    assert_eq!(
        (&again["accepted_loss"], &again["equal"]),
        (&serde_json::Value::Null, &true.into())
    );
    assert_eq!(project.ok(&["verify"]), "The log is intact: 5 events\n");
}

#[test]
fn a_log_with_a_hole_is_not_rebuilt_even_if_the_loss_is_accepted() {
    let project = with_events();
    assert_eq!(project.database().execute("DELETE FROM event WHERE seq = 2", []).unwrap(), 1);
    for command in [&["rebuild"][..], &["rebuild", "--accept-loss"]] {
        let error = project.fails(1, command);
        assert!(error.contains("event 2 is missing") && error.contains("backup"), "{error}");
    }
    assert_eq!(project.json(&["status"])["events"], 3);
}

#[test]
fn edited_view_tables_are_found_and_named() {
    for (sql, table) in [
        ("UPDATE task SET state = 3 WHERE id = 'b'", "row 2 (`b`) of table `task`"),
        ("UPDATE task SET version = 1 WHERE id = 'c'", "row 3 (`c`) of table `task`"),
        ("DELETE FROM task WHERE id = 'a'", "row 1 (`a`) of table `task`"),
        ("UPDATE totals SET completed = 2", "table `totals`"),
        ("INSERT INTO due VALUES (2)", "row 2 of table `due`"),
        ("INSERT INTO hook_switch VALUES ('tests', 0)", "row `tests` of table `hook_switch`"),
        ("INSERT INTO spent VALUES (1, 0, 0, 0, 0, 0, 0)", "row 1 of table `spent`"),
    ] {
        let project = with_events();
        assert_eq!(project.database().execute(sql, []).unwrap(), 1, "{sql}");
        let error = project.fails(1, &["verify"]);
        assert!(error.contains("the view is wrong") && error.contains(table), "{sql}: {error}");
        assert!(error.contains("hookloop rebuild"), "{sql}: {error}");
        project.ok(&["rebuild"]);
        assert_eq!(project.ok(&["verify"]), "The log is intact: 3 events\n", "{sql}");
    }
    let project = with_events();
    project.database().execute_batch("DROP TABLE remark").unwrap();
    let error = project.fails(1, &["verify"]);
    assert!(error.contains("table `remark`"), "{error}");
}

/// Checks that a schema update keeps the acknowledged head of the log.
#[test]
fn a_file_of_an_older_version_keeps_its_acknowledged_head() {
    let project = with_lost_events();
    project.database().pragma_update(None, "user_version", 11).unwrap();
    let error = project.fails(1, &["verify"]);
    assert!(error.contains("ends at event 3, but 7 were acknowledged"), "{error}");
}

/// Removes the WAL files of SQLite, so that the database file alone holds the log.
fn fold_wal(project: &Project) {
    project.database().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    for name in ["hookloop.db-wal", "hookloop.db-shm"] {
        let _ = std::fs::remove_file(project.state().join(name));
    }
}

/// `verify`, `rebuild` and `doctor` report the loss. Other commands fail. No new log is created.
fn check_lost(project: &Project, part: &str) {
    for command in [&["verify"][..], &["rebuild"]] {
        let error = project.fails(1, command);
        assert!(error.contains(part), "{command:?}: {error}");
        assert!(error.contains("hookloop rebuild --accept-loss"), "{command:?}: {error}");
        assert!(error.contains("backup"), "{command:?}: {error}");
    }
    let verified = project.run(&["verify", "--json"]);
    let verified: serde_json::Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(verified["intact"], false);
    let doctor = project.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{}", doctor.stdout);
    assert!(doctor.stdout.contains(part), "{}", doctor.stdout);
}

#[test]
fn a_deleted_or_emptied_log_file_is_reported_as_lost() {
    for damage in ["delete", "truncate", "replace"] {
        let project = with_events();
        fold_wal(&project);
        let file = project.state().join("hookloop.db");
        match damage {
            "delete" => std::fs::remove_file(&file).unwrap(),
            "truncate" => std::fs::write(&file, "").unwrap(),
            _ => {
                std::fs::remove_file(&file).unwrap();
                let other = rusqlite::Connection::open(&file).unwrap();
                other.execute_batch("CREATE TABLE t(a); DROP TABLE t").unwrap();
            }
        }
        check_lost(&project, "3 ");
        let error = project.fails(70, &["task", "list"]);
        assert!(error.contains("3 events were acknowledged"), "{damage}: {error}");
        assert!(error.contains(file.to_str().unwrap()), "{damage}: {error}");
        let error = project.fails(70, &["task", "add", "Goal"]);
        assert!(error.contains("rebuild --accept-loss"), "{damage}: {error}");

        let rebuilt = project.json(&["rebuild", "--accept-loss"]);
        assert!(rebuilt["accepted_loss"].as_str().unwrap().contains('3'), "{damage}: {rebuilt}");
        assert_eq!(project.ok(&["verify"]), "The log is intact: 1 events\n", "{damage}");
        let logged = project.ok(&["log", "--json", "--type", "log_loss_accepted"]);
        assert!(logged.contains("\"acknowledged\":3"), "{damage}: {logged}");
        project.add("Goal", &["--id", "later"]);
        assert_eq!(project.ok(&["verify"]), "The log is intact: 2 events\n", "{damage}");
    }
}

#[test]
fn a_log_whose_events_and_head_were_deleted_is_reported_as_lost() {
    let project = with_events();
    let empty = "DELETE FROM event; DELETE FROM task; DELETE FROM subject;
        UPDATE totals SET head = 0, hash = zeroblob(32), created = 0, ready = 0";
    project.database().execute_batch(empty).unwrap();
    check_lost(&project, "3 ");
    let error = project.fails(70, &["task", "add", "Goal"]);
    assert!(error.contains("ends at event 0, but 3 events were acknowledged"), "{error}");
}

#[test]
fn a_log_that_an_older_copy_replaced_is_reported_as_short() {
    let project = with_events();
    fold_wal(&project);
    let file = project.state().join("hookloop.db");
    let copy = std::fs::read(&file).unwrap();
    project.add("Goal", &["--id", "d"]);
    fold_wal(&project);
    std::fs::write(&file, copy).unwrap();
    check_lost(&project, "4 ");
    project.ok(&["rebuild", "--accept-loss"]);
    assert_eq!(project.ok(&["verify"]), "The log is intact: 4 events\n");
}

#[test]
fn a_log_that_another_log_replaced_is_reported_as_rewritten() {
    let project = with_events();
    let other = with_events();
    other.add("Goal", &[]);
    for project in [&project, &other] {
        fold_wal(project);
    }
    std::fs::copy(other.state().join("hookloop.db"), project.state().join("hookloop.db")).unwrap();
    let error = project.fails(1, &["verify"]);
    assert!(error.contains("up to 3 are not those that were acknowledged"), "{error}");
}

#[test]
fn sessions_without_a_log_are_reported_as_a_loss() {
    let project = with_events();
    fold_wal(&project);
    let state = project.state();
    for name in ["hookloop.db", "hookloop.head"] {
        std::fs::remove_file(state.join(name)).unwrap();
    }
    std::fs::create_dir_all(state.join("sessions/0")).unwrap();
    check_lost(&project, "sessions of this project are recorded beside it");
    assert!(!state.join("hookloop.db").exists());
    let rebuilt = project.json(&["rebuild", "--accept-loss"]);
    assert!(rebuilt["accepted_loss"].as_str().unwrap().contains("lost"), "{rebuilt}");
    assert_eq!(project.ok(&["verify"]), "The log is intact: 1 events\n");
}

#[test]
fn rebuild_makes_dropped_tables_again() {
    let tables = ["totals", "task", "session", "due", "pulse"];
    let drop = tables.map(|table| format!("DROP TABLE {table}"));
    for sql in drop.iter().map(String::as_str).chain(["DELETE FROM totals"]) {
        let project = with_events();
        let before = project.ok(&["task", "export"]);
        project.database().execute_batch(sql).unwrap();
        if !sql.contains("pulse") {
            let error = project.fails(1, &["verify"]);
            assert!(
                error.contains("hookloop rebuild") && !error.contains("backup"),
                "{sql}: {error}"
            );
        }
        let rebuilt = project.run(&["rebuild"]);
        assert_eq!(rebuilt.code, 0, "{sql}: {}", rebuilt.stderr);
        assert_eq!(project.ok(&["verify"]), "The log is intact: 3 events\n", "{sql}");
        assert_eq!(project.ok(&["task", "export"]), before, "{sql}");
    }
}

#[test]
fn a_command_that_meets_a_dropped_table_names_the_file_and_rebuild() {
    let project = with_events();
    project.database().execute_batch("DROP TABLE task").unwrap();
    let error = project.fails(70, &["task", "list"]);
    assert!(error.contains("hookloop.db") && error.contains("run `hookloop rebuild"), "{error}");
}

#[test]
fn dropped_totals_without_a_recorded_head_need_accept_loss() {
    let project = with_events();
    std::fs::remove_file(project.state().join("hookloop.head")).unwrap();
    project.database().execute_batch("DROP TABLE totals").unwrap();
    for command in [&["verify"][..], &["rebuild"]] {
        let error = project.fails(1, command);
        assert!(error.contains("recorded neither") && error.contains("--accept-loss"), "{error}");
    }
    project.ok(&["rebuild", "--accept-loss"]);
    assert_eq!(project.ok(&["verify"]), "The log is intact: 4 events\n");
}

#[test]
fn a_dropped_event_table_is_a_lost_log() {
    let project = with_events();
    project.database().execute_batch("DROP TABLE event").unwrap();
    let error = project.fails(1, &["verify"]);
    assert!(error.contains("ends at event 0, but 3 were acknowledged"), "{error}");
    project.ok(&["rebuild", "--accept-loss"]);
    assert_eq!(project.ok(&["verify"]), "The log is intact: 1 events\n");
}

#[test]
fn a_damaged_file_is_named_with_the_next_step() {
    for keep in [100, 4096, 9000] {
        let project = with_events();
        fold_wal(&project);
        let file = project.state().join("hookloop.db");
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.truncate(keep);
        if keep == 100 {
            bytes = b"not a database, whatever its name says".to_vec();
        }
        std::fs::write(&file, bytes).unwrap();
        for (command, code) in [("verify", 1), ("rebuild", 1), ("status", 70)] {
            let error = project.fails(code, &[command]);
            assert!(error.contains(file.to_str().unwrap()), "{keep} {command}: {error}");
            assert!(error.contains("backup"), "{keep} {command}: {error}");
        }
        let doctor = project.run(&["doctor"]);
        assert_eq!(doctor.code, 1, "{}", doctor.stdout);
        assert!(doctor.stdout.contains(file.to_str().unwrap()), "{}", doctor.stdout);
    }
}

#[test]
fn a_difference_in_a_hash_is_shown_in_hexadecimal() {
    let project = with_events();
    let changed = project.database().execute("UPDATE totals SET completed = 2", []).unwrap();
    assert_eq!(changed, 1);
    let error = project.fails(1, &["verify"]);
    let row = error.split("(`").nth(1).and_then(|rest| rest.split("`)").next()).unwrap();
    assert_eq!(row.len(), 64, "{error}");
    assert!(row.bytes().all(|byte| byte.is_ascii_hexdigit()), "{error}");
}
