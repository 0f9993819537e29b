//! Checks that settings of hooks in a file take effect.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cli::{Project, fields, strings, types};

const REVIEW: &str = "auto-create-review-task";

/// Returns the file of the specification, with these values for the first hook.
fn automation_file(review: Value) -> String {
    let mut first = json!({
        "name": REVIEW, "enabled": true, "priority": 10, "eventTypes": ["task_completed"]
    });
    for (name, value) in review.as_object().unwrap() {
        first[name] = value.clone();
    }
    json!({
        "version": "1.0",
        "hooks": [
            first,
            {"name": "check-dependency-satisfaction", "enabled": true, "priority": 20,
             "eventTypes": ["task_completed"]},
            {"name": "track-agent-task-lifecycle", "enabled": true, "priority": 50,
             "eventTypes": ["task_created", "task_started", "task_completed"]},
        ],
    })
    .to_string()
}

fn hook(project: &Project, name: &str) -> Value {
    project.json(&["hooks", "show", name])
}

/// Returns the events that a hook follows, without an order.
fn events_of(hook: &Value) -> BTreeSet<&str> {
    hook["events"].as_array().unwrap().iter().map(|event| event.as_str().unwrap()).collect()
}

/// Returns the number of tasks that the completion of an agent's task creates.
fn reviews(project: &Project) -> usize {
    let id = project.add("Goal", &["--label", "agent"]);
    project.json(&["task", "complete", &id])["added"].as_array().unwrap().len()
}

#[test]
fn the_built_in_hooks_are_on_in_the_documented_order() {
    let project = Project::new();
    let hooks = project.json(&["hooks", "list"]);
    let check = |i: usize, name: &str, priority: i32, events: Value| {
        assert_eq!(hooks[i]["name"], name);
        assert_eq!(hooks[i]["priority"], priority, "{name}");
        assert_eq!(hooks[i]["events"], events, "{name}");
        assert_eq!(hooks[i]["enabled"], true, "{name}");
    };
    check(0, REVIEW, 10, json!(["task_completed"]));
    check(1, "check-dependency-satisfaction", 20, json!(["task_completed"]));
    let events = json!(["task_created", "task_started", "task_completed"]);
    check(2, "track-agent-task-lifecycle", 50, events);
    assert_eq!(hooks.as_array().unwrap().len(), 3);
    let expected = crate::cli::HOOK_FIELDS;
    assert_eq!(fields(&hooks[0]), expected.into());
}

#[test]
fn the_automation_hooks_file_of_the_specification_is_imported() {
    let project = Project::bare();
    let file = project.write("automation-hooks.json", &automation_file(json!({})));
    let file = file.to_str().unwrap();
    let printed = project.ok(&["import", "automation-hooks", file]);
    assert!(printed.contains("hookloop.yaml"), "{printed}");
    let fresh = Project::new().json(&["hooks", "list"]);
    let taken = project.json(&["hooks", "list"]);
    assert_eq!(strings(&taken, "name"), strings(&fresh, "name"));
    for (taken, fresh) in taken.as_array().unwrap().iter().zip(fresh.as_array().unwrap()) {
        assert_eq!(events_of(taken), events_of(fresh));
        assert_eq!(
            (&taken["priority"], &taken["enabled"]),
            (&fresh["priority"], &fresh["enabled"])
        );
    }
}

#[test]
fn imported_enabled_priority_and_event_settings_apply() {
    let check = |settings: Value, expected: (bool, i32, Value), at_end: usize| {
        let project = Project::bare();
        project.write("hooks.json", &automation_file(settings.clone()));
        project.ok(&["import", "automation-hooks", "hooks.json"]);
        let hook = hook(&project, REVIEW);
        let (enabled, priority, events) = expected;
        assert_eq!(hook["enabled"], enabled, "{settings}");
        assert_eq!(hook["priority"], priority, "{settings}");
        assert_eq!(hook["events"], events, "{settings}");
        assert_eq!(reviews(&project), at_end, "{settings}");
    };
    check(json!({"enabled": false}), (false, 10, json!(["task_completed"])), 0);
    check(json!({"priority": 0}), (true, 0, json!(["task_completed"])), 1);
    check(json!({"priority": 70}), (true, 70, json!(["task_completed"])), 1);
    check(json!({"eventTypes": ["task_started"]}), (true, 10, json!(["task_started"])), 0);
}

#[test]
fn an_import_into_an_existing_project_prints_the_section_to_add() {
    let project = Project::new();
    project.write("hooks.json", &automation_file(json!({"priority": 7})));
    let before = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    let yaml = project.ok(&["import", "automation-hooks", "hooks.json"]);
    let after = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    assert_eq!(before, after);
    std::fs::create_dir(project.root().join("data")).unwrap();
    let mut below = project.hookloop(&["import", "automation-hooks", "../hooks.json"]);
    let below = below.current_dir(project.root().join("data")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&below.stdout), yaml, "the outer project counts");
    project.write("hookloop.yaml", &yaml);
    assert_eq!(hook(&project, REVIEW)["priority"], 7);
}

#[test]
fn errors_in_an_automation_hooks_file_are_reported() {
    let check = |text: &str, part: &str| {
        let project = Project::bare();
        project.write("hooks.json", text);
        let error = project.fails(2, &["import", "automation-hooks", "hooks.json"]);
        assert!(error.contains(part), "{error}");
        assert!(!project.root().join("hookloop.yaml").exists(), "{part}: a file exists");
    };
    check("{", "hooks.json: EOF");
    check(r#"{"version": "2.0", "hooks": []}"#, "version 2.0");
    check(r#"{"version": "1.0", "hooks": [{"name": "mine"}]}"#, "`mine`");
    check(r#"{"version": "1.0", "hooks": [], "extra": 1}"#, "extra");
    check(&automation_file(json!({"eventTypes": []})), "event");
    // An error in one hook does not keep the other hooks from being imported.
    let project = Project::bare();
    project.write("hooks.json", &automation_file(json!({"eventTypes": ["task_done"]})));
    let said = project.ok(&["import", "automation-hooks", "hooks.json"]);
    assert!(said.contains("no equivalent\ttask_done"), "{said}");
}

#[test]
fn a_hook_runs_at_the_event_given_in_the_configuration() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - auto-create-review-task
",
    );
    assert_eq!(hook(&project, REVIEW)["events"], json!(["task_created"]));
    project.ok(&["task", "add", "Goal", "--id", "x", "--label", "agent"]);
    assert_eq!(project.goals(), ["Goal", "Review: Goal"]);
    project.ok(&["task", "complete", "x"]);
    assert_eq!(project.goals(), ["Goal", "Review: Goal"]);
}

#[test]
fn low_priorities_run_first_and_0_is_a_priority() {
    let entry = |name: &str, priority: &str| {
        format!("    - {{name: {name}, {priority} actions: [{{log: {{type: n}}}}]}}\n")
    };
    let entries = [
        entry("last", ""),
        entry("second", "priority: 0,"),
        entry("third", "priority: 60,"),
        entry("first", "priority: -1,"),
        entry("off", "enabled: false,"),
    ];
    let project = Project::with_config(&format!("hooks:\n  task_created:\n{}", entries.concat()));
    project.ok(&["task", "add", "Goal"]);
    let expected = ["task_created", "hook.first.n", "hook.second.n", "hook.third.n", "hook.last.n"];
    assert_eq!(types(&project.events()), expected);
    let listed = strings(&project.json(&["hooks", "list"]), "name");
    assert_eq!(listed[..2], ["first", "second"]);
    assert_eq!(hook(&project, "last")["priority"], 100);
}

#[test]
fn enabling_or_disabling_a_hook_overrides_the_configuration() {
    let project = Project::new();
    assert_eq!(reviews(&project), 1);
    assert_eq!(project.json(&["hooks", "disable", REVIEW])["enabled"], false);
    assert_eq!(hook(&project, REVIEW)["enabled"], false);
    assert_eq!(reviews(&project), 0);
    project.ok(&["hooks", "enable", REVIEW]);
    assert_eq!(reviews(&project), 1);
    assert_eq!(project.events_of("hook_disabled")[0]["data"], json!({"name": REVIEW}));
    assert_eq!(project.events_of("hook_enabled")[0]["data"], json!({"name": REVIEW}));

    project.configure(&format!(
        "hooks:\n  task_completed:\n    - {{use: {REVIEW}, enabled: false}}\n"
    ));
    assert_eq!(reviews(&project), 1, "the switch is newer than the file");
}

#[test]
fn an_unknown_hook_cannot_be_enabled_disabled_or_shown() {
    let project = Project::new();
    for verb in ["enable", "disable", "show"] {
        let error = project.fails(1, &["hooks", verb, "no-such"]);
        assert!(error.contains("there is no hook `no-such`"), "{error}");
        assert!(error.contains("run `hookloop hooks list"), "{error}");
    }
    assert_eq!(project.events(), [] as [Value; 0]);
}

#[test]
fn the_description_author_and_version_of_a_hook_are_shown() {
    let project = Project::with_config(
        "hooks:
  task_created:
    - name: mine
      description: Notes
      author: Zoë
      version: '1.2'
      actions: [{log: {type: n}}]
",
    );
    let shown = hook(&project, "mine");
    assert_eq!((&shown["author"], &shown["version"]), (&json!("Zoë"), &json!("1.2")));
    let text = project.ok(&["hooks", "show", "mine"]);
    for part in ["mine", "Notes", "Zoë", "1.2", "task_created", "log", "100"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
