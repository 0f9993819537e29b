//! T5, and rows 5, 12, 19 and 20 of the bugs to beat: hooks that change hooks, and how often they
//! run.

use std::fs;

use crate::cli::Project;

/// T5: if a hook, or an agent behind it, changes the hooks of a project, the changed hooks do not
/// run.
#[test]
fn hooks_changed_by_another_hook_do_not_run() {
    let second = "#!/bin/sh\\ntouch evil\\n";
    for change in [
        format!("printf '{second}' > second.sh"),
        format!("printf '{second}' > new && chmod +x new && mv new second.sh"),
        format!("printf '{second}' > other && chmod +x other && ln -sf other second.sh"),
        "printf 'version: 1\\nhooks: {on_task_complete: [{command: touch evil}]}' > hookloop.yaml".to_owned(),
        "mkdir -p .hookloop && cp hookloop.yaml .hookloop/ && rm hookloop.yaml && printf 'version: 1\\nhooks: {on_task_complete: [{command: touch evil}], task_created: [{command: touch evil}]}' > hookloop.yaml".to_owned(),
        "printf 'version: 1\\nhooks: {on_task_complete: [{name: second, command: touch evil}]}' > x && ln -sf x hookloop.yaml".to_owned(),
    ] {
        let project = Project::with_config(
            "hooks:\n  on_task_complete:\n    - {command: ./first.sh, priority: 1}\n    - {command: ./second.sh}\n",
        );
        project.script("first.sh", &format!("{change}; touch changed"));
        project.script("second.sh", "touch agreed");
        project.trust();
        project.complete("Goal");
        let there = |name: &str| project.root().join(name).exists();
        assert!(there("changed"), "{change}");
        // The next commands find the changed files.
        project.run(&["task", "add", "Again", "--id", "again"]);
        project.run(&["task", "complete", "again"]);
        assert!(!there("evil"), "{change}");
    }
}

/// T5: the log has the change by the time the hook would have run next.
#[test]
fn a_changed_hook_script_is_recorded_as_a_hook_error() {
    let project = Project::with_check("true");
    project.complete("First");
    assert_eq!(project.logged("hook_error").len(), 0);
    project.script("check.sh", "touch evil");
    project.complete("Second");
    let errors = project.logged("hook_error");
    assert_eq!(errors.len(), 1);
    let error = errors[0]["data"]["error"].as_str().unwrap();
    assert!(error.contains("changed since it was trusted"), "{error}");
}

/// Row 5: a hook runs once for each event, even if events are equal; a duplicate entry does not
/// run.
#[test]
fn a_hook_runs_for_every_event_and_a_duplicate_does_not() {
    let entry = "{command: 'echo >> ran', timeout: 20s}";
    let project = Project::with_config(&format!(
        "hooks:\n  task_created: [{entry}, {entry}]\n  task_completed: [{entry}, {entry}]\n"
    ));
    project.trust();
    for _ in 0..3 {
        project.complete("The same");
    }
    let ran = fs::read_to_string(project.root().join("ran")).unwrap();
    assert_eq!(ran.lines().count(), 6, "{:?}", project.json(&["hooks", "list"]));
}

/// Row 12: a cascade of commands ends, and the log records the end.
#[test]
fn a_cascade_of_hook_commands_ends_at_the_limit() {
    let project = Project::with_config(
        "hooks:\n  task_created:\n    - {name: check, command: ./check.sh, timeout: 20s}\n",
    );
    let more = r#"{"hookloop":{"actions":[{"type":"create_task","payload":{"goal":"More","priority":0}}]}}"#;
    project.script("check.sh", &format!("echo '{more}'"));
    project.trust();
    project.add("Root", &[]);
    let status = project.json(&["status"]);
    assert_eq!(status["reactions_due"], 0, "{status}");
    let tasks = project.json(&["task", "list", "--limit", "0"]);
    let tasks = tasks.as_array().unwrap();
    assert!((3..=20).contains(&tasks.len()), "{}", tasks.len());
    let more = tasks.iter().filter(|task| task["goal"] == "More");
    assert!(more.clone().all(|task| task["priority"] == 0), "0 is 0: {tasks:?}");
    assert_eq!(project.events_of("cascade_limit_reached").len(), 1);
}

/// Row 17: a file that can't be parsed runs no command and skips no gate.
#[test]
fn no_hook_runs_with_an_invalid_configuration() {
    let project = Project::with_check("touch ran");
    let id = project.add("Goal", &[]);
    project.configure(
        "hooks:\n  on_task_complete:\n    - {command: ./check.sh, timeout: 5 minutes}\n",
    );
    for args in [["task", "complete", &id], ["hooks", "run", "check"]] {
        let told = project.fails(2, &args);
        assert!(told.contains("hookloop.yaml:4:"), "{told}");
    }
    assert!(!project.root().join("ran").exists());
}
