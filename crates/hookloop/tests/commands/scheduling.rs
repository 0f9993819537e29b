//! Delayed and recurring tasks, and work-in-progress limits.

use crate::cli::{Project, strings, types};

#[test]
fn a_task_for_later_is_not_ready() {
    let project = Project::new();
    let time = "2090-12-01T08:00:00.000Z";
    let added =
        project.json(&["task", "add", "A", "--id", "a", "--not-before", "2090-12-01T09:00+01:00"]);
    assert_eq!((&added["state"], &added["not_before"]), (&"created".into(), &time.into()));
    let said = project.ok(&["task", "add", "B", "--id", "b", "--after", "3d"]);
    assert!(said.contains("  from 20"), "{said}");
    assert_eq!(project.ok(&["task", "ready"]), "");
    let listed = project.ok(&["task", "list"]);
    assert!(listed.contains("created") && listed.contains("from 2090-12-01T08:00Z"), "{listed}");
    let claim = project.fails(1, &["task", "claim"]);
    assert!(claim.contains("no task is ready; the next one is at 20"), "{claim}");
    for command in ["claim", "start"] {
        let refused = project.fails(1, &["task", command, "a"]);
        assert!(refused.contains("can't be started before 2090-12-01T08:00Z"), "{refused}");
    }
    let status = project.json(&["status"]);
    assert_eq!((&status["tasks"]["created"], &status["tasks"]["ready"]), (&2.into(), &0.into()));
    assert_eq!(status["waiting_for_time"]["tasks"], 2);
    assert!(project.ok(&["status"]).contains("2  waiting for their start time, the next for 20"));
    let shown = project.ok(&["task", "show", "a"]);
    assert!(shown.contains(&format!("not before  {time}")), "{shown}");
    assert!(project.ok(&["why", "a"]).contains("waits for its start time: 2090-12-01T08:00Z"));
    assert_eq!(strings(&project.json(&["task", "list", "--state", "created"]), "id"), ["b", "a"]);
    assert_eq!(project.json(&["task", "list", "--state", "ready"]), serde_json::json!([]));
    project.ok(&["task", "complete", "a"]);
    project.ok(&["verify"]);
}

#[test]
fn the_start_time_of_a_task_is_exported_and_imported() {
    let (from, to) = (Project::new(), Project::new());
    from.add("A", &["--id", "a", "--not-before", "2090-12-01T08:00Z"]);
    let exported = from.ok(&["task", "export"]);
    let imported = to.run_with_input(&["task", "import", "-"], &exported);
    assert_eq!(imported.code, 0, "{imported:?}");
    assert_eq!(to.ok(&["task", "export"]), exported);
    assert_eq!(to.state_of("a"), "created");
}

#[test]
fn invalid_start_times_and_schedules_are_refused() {
    let project = Project::new();
    let check = |args: &[&str], code: i32, part: &str| {
        let said = project.fails(code, args);
        assert!(said.contains(part), "{args:?}: {said}");
    };
    let add = ["task", "add", "A"];
    let with = |more: &[&'static str]| [&add, more].concat();
    check(&with(&["--not-before", "tomorrow"]), 2, "not a time with a zone");
    check(&with(&["--not-before", "2090-12-01T08:00"]), 2, "not a time with a zone");
    check(&with(&["--after", "soon"]), 2, "not a length of time");
    check(&with(&["--after", "1h", "--not-before", "2090-12-01T08:00Z"]), 2, "cannot be used with");
    let schedule =
        |more: &[&'static str]| [&["schedule", "add", "s", "--goal", "G", "--cron"], more].concat();
    check(&schedule(&["0 3 * *"]), 2, "error: `0 3 * *` is not a cron expression: it has 4 ");
    check(&schedule(&["0 3 * * *", "--tz", "Mars/Olympus"]), 2, "no time zone `Mars/Olympus`");
    check(&schedule(&["0 3 * * *", "--tz", "Mars/Olympus"]), 2, "hint: write a name such as ");
    check(&schedule(&["0 0 30 2 *"]), 2, "is never due");
    check(&schedule(&["61 3 * * *"]), 2, "such as `0 3 * * 1-5`");
    check(
        &["schedule", "add", "a b", "--goal", "G", "--cron", "* * * * *"],
        2,
        "not a schedule's name",
    );
    check(&["schedule", "pause", "s"], 1, "there is no schedule `s`");
    check(&["schedule", "show", "s"], 1, "hookloop schedule list");
    project.configure("scheduling: {priority_aging: soon}\n");
    check(&["task", "ready"], 2, "hookloop.yaml:2:30");
}

#[test]
fn a_refused_claim_names_the_wip_limit() {
    let project = Project::with_config("scheduling: {wip: 2, wip_by_type: {bug: 1}}\n");
    for (id, kind) in [("b1", "bug"), ("b2", "bug"), ("c1", "chore"), ("c2", "chore")] {
        project.add("G", &["--id", id, "--type", kind]);
    }
    assert_eq!(project.json(&["task", "claim"])["id"], "b1");
    let bugs = project.fails(1, &["task", "claim", "--type", "bug"]);
    assert!(bugs.contains("1 task of type `bug` is in progress"), "{bugs}");
    assert_eq!(project.json(&["task", "claim"])["id"], "c1");
    for args in [&["task", "claim"][..], &["task", "claim", "c2"], &["task", "start", "c2"]] {
        let full = project.fails(1, args);
        assert!(full.contains("2 tasks are in progress, the limit of `scheduling.wip`"), "{full}");
    }
    assert_eq!(project.events_of("wip_permit_acquired").len(), 0, "bookkeeping");
    project.ok(&["task", "release", "c1", "--epoch", "1"]);
    project.ok(&["task", "start", "c2"]);
    project.ok(&["rebuild"]);
}

#[test]
fn a_schedule_is_set_shown_and_removed() {
    let project = Project::new();
    let added = project.ok(&[
        "schedule",
        "add",
        "nightly",
        "--cron",
        "30 3 * * 1-5",
        "--tz",
        "Asia/Kolkata",
        "--goal",
        "Tidy up",
        "--type",
        "chore",
        "--label",
        "l",
        "--priority",
        "4",
        "--deliverable",
        "d",
    ]);
    assert!(added.starts_with("Added nightly  30 3 * * 1-5 Asia/Kolkata  next 20"), "{added}");
    let shown = project.json(&["schedule", "show", "nightly"]);
    assert!(shown["next"].as_str().unwrap().ends_with("T22:00:00.000Z"), "{shown}");
    assert_eq!((&shown["priority"], &shown["type"]), (&4.into(), &"chore".into()));
    let exists =
        project.fails(1, &["schedule", "add", "nightly", "--cron", "* * * * *", "--goal", "G"]);
    assert!(exists.contains("exists already"), "{exists}");
    let printed = project.ok(&["schedule", "show", "nightly"]);
    assert_eq!(printed.matches("T22:00Z").count(), 3, "the next occurrences: {printed}");
    assert_eq!(project.json(&["schedule", "pause", "nightly"])["next"], serde_json::Value::Null);
    assert!(project.ok(&["schedule", "list"]).contains("paused"));
    let made = project.json(&["schedule", "run", "nightly"]);
    assert_eq!((&made["goal"], &made["state"]), (&"Tidy up".into(), &"ready".into()));
    assert_eq!(project.json(&["schedule", "resume", "nightly"])["paused"], false);
    assert_eq!(project.ok(&["schedule", "remove", "nightly"]), "Removed nightly\n");
    let expected = [
        "schedule_set",
        "schedule_paused",
        "task_created",
        "schedule_fired",
        "schedule_resumed",
        "schedule_removed",
    ];
    assert_eq!(types(&project.events()), expected);
    project.ok(&["verify"]);
    project.ok(&["rebuild"]);
}

/// A command that changes the project first creates the due tasks. A command that reads creates
/// none.
#[test]
fn a_missed_schedule_occurrence_is_created_by_the_next_changing_command() {
    let project = Project::new();
    project.ok(&["schedule", "add", "hourly", "--cron", "0 * * * *", "--goal", "Look around"]);
    // Moves the next occurrence into the past, as if hookloop had not run since then.
    let pass = || {
        project.database().execute("UPDATE schedule SET next = 1767225600000", []).unwrap();
    };
    pass();
    assert_eq!(project.goals(), [""; 0]);
    project.fails(1, &["task", "claim", "--type", "none"]);
    let tasks = project.json(&["task", "list"]);
    assert_eq!(strings(&tasks, "goal"), ["Look around"]);
    let id = tasks[0]["id"].as_str().unwrap();
    assert!(id.starts_with("hourly-2") && id.ends_with("00"), "{id}");
    let fired = project.event("schedule_fired");
    assert_eq!((&fired["data"]["task_id"], &fired["node_id"]), (&id.into(), &"system".into()));
    assert_eq!(fired["data"]["missed_from"], "2026-01-01T00:00:00.000Z");
    assert_eq!(fired["metadata"]["triggered_by"], "schedule:hourly");
    pass();
    project.ok(&["dispatch"]);
    let events = project.events_of("schedule_fired");
    assert_eq!((events.len(), &events[1]["data"]["skipped_for"]), (2, &id.into()));
    assert_eq!(project.goals().len(), 1);
    project.ok(&["verify"]);
}
