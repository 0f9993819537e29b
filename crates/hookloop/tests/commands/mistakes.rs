//! Error messages for wrong directories, configurations and command lines.

use std::os::unix::fs::PermissionsExt;

use crate::cli::Project;

#[test]
fn commands_outside_of_a_project_suggest_init() {
    let project = Project::bare();
    let commands: [&[&str]; 5] =
        [&["status"], &["task", "list"], &["task", "add", "Goal"], &["log"], &["verify"]];
    for args in commands {
        let error = project.fails(2, args);
        assert!(error.contains("no hookloop.yaml in "), "{args:?}: {error}");
        assert!(error.ends_with("hint: run `hookloop init`\n"), "{args:?}: {error}");
    }
}

#[test]
fn mistakes_in_the_configuration_are_named_with_their_place() {
    let check = |yaml: &str, place: &str, part: &str| {
        let project = Project::new();
        project.configure(yaml);
        let commands: [&[&str]; 4] =
            [&["status"], &["task", "add", "Goal"], &["hooks", "list"], &["init", "--yes"]];
        for args in commands {
            let error = project.fails(2, args);
            assert!(error.contains(&format!("hookloop.yaml:{place}: ")), "{yaml}: {error}");
            assert!(error.contains(part), "{yaml}: {error}");
        }
    };
    let hooks = |entry: &str| format!("hooks:\n  task_created:\n    - {entry}\n");
    check("hook: {}\n", "2:1", "hook");
    check("limits: {cascade: {deep: 1}}\n", "2:20", "deep");
    check("hooks:\n  task_done:\n    - auto-create-review-task\n", "3:3", "task_done");
    check(&hooks("no-such-hook"), "4:7", "`no-such-hook`");
    check(&hooks("{name: a, actions: [{shell: x}]}"), "4:28", "shell");
    check(&hooks("{name: a, actions: [{log: {typ: x}}]}"), "4:27", "typ");
    check(&hooks("{name: a, actions: [{execute_workflow: w}]}"), "4:27", "`w`");
    check(&hooks("{name: a, actions: [{log: {type: '{{gaol}}'}}]}"), "4:27", "`gaol`");
    check(&hooks("{name: a, priority: high, actions: []}"), "4:27", "whole number");
    check(&hooks("{name: a, enabled: yes, actions: []}"), "4:26", "`true` or `false`");
    check(&hooks("{name: auto-create-review-task, actions: []}"), "4:7", "two hooks");
    check("workflows: {w: []}\n", "2:16", "steps");
    check("loop: {stop_when: []}\n", "2:19", "`stop_when` needs a stop condition");
    check("workflows: {'a b': [{log: {type: x}}]}\n", "2:20", "`a b`");
    check("hooks: [\n", "2:8", "`key: value`");
}

#[test]
fn a_prompt_without_quotes_is_refused_with_the_quoted_prompt() {
    let project = Project::new();
    for args in [
        ["run", "Fix", "the", "tests", "--agent", "claude"],
        ["run", "--agent", "claude", "Fix", "the", "tests"],
    ] {
        let error = project.fails(2, &args);
        let hint = "put the prompt in quotes: `hookloop run \"Fix the tests\"`";
        assert!(error.contains(hint), "{args:?}: {error}");
    }
    let error = project.fails(2, &["task", "show", "a", "b"]);
    assert!(!error.contains("quotes"), "{error}");
}

#[test]
fn an_unknown_configuration_version_is_refused() {
    for text in ["version: 2\n", "hooks: {}\n"] {
        let project = Project::bare();
        project.write("hookloop.yaml", text);
        let error = project.fails(2, &["task", "add", "Goal"]);
        assert!(error.contains("version"), "{text}: {error}");
    }
}

#[test]
fn a_state_directory_that_others_can_write_to_is_refused() {
    let project = Project::new();
    let state = project.state();
    let set = |mode: u32| {
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    assert_eq!(state.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for mode in [0o777, 0o770, 0o702] {
        set(mode);
        let error = project.fails(70, &["task", "add", "Goal"]);
        assert!(error.contains("can be written by other users"), "{error}");
        assert!(error.contains(&format!("run `chmod 700 {}", state.display())), "{error}");
    }
    set(0o700);
    assert_eq!(project.goals(), [] as [&str; 0]);
}

#[test]
fn a_state_directory_that_is_a_link_is_refused() {
    let project = Project::new();
    let state = project.state();
    let elsewhere = state.with_extension("elsewhere");
    std::fs::rename(&state, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &state).unwrap();
    project.fails(70, &["task", "add", "Goal"]);
}

#[test]
fn a_missing_home_variable_is_a_usage_error() {
    let project = Project::new();
    let output = project.hookloop(&["status"]).env_remove("HOME").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("HOME"), "{error}");
}

#[test]
fn wrong_command_lines_are_usage_errors() {
    let project = Project::new();
    let check = |args: &[&str], part: &str| {
        let error = project.fails(2, args);
        assert!(error.contains(part), "{args:?}: {error}");
    };
    check(&["task", "add"], "<GOAL>");
    check(&["task", "add", "Goal", "--priority", "10"], "0 (first) to 9");
    check(&["task", "add", "Goal", "--priority", "high"], "`high` is not a priority");
    check(&["task", "block", "x"], "--reason");
    check(&["task", "dep", "add", "x"], "--on");
    check(&["task", "ad"], "tip: a similar subcommand exists");
    for unlike in ["start", "list"] {
        let error = project.fails(2, &[unlike]);
        assert!(!error.contains("similar"), "{unlike}: {error}");
    }
    check(&["log", "--from", "yesterday"], "--from");
    check(&["run", "x", "--max-duration", "5 minutes"], "write a number of seconds such as `30`");
    for amount in ["-5", "-0.01", "NaN", "inf", "-inf", "five"] {
        let told = format!("`{amount}` is not an amount of dollars");
        check(&["run", "x", &format!("--max-cost={amount}")], &told);
        check(&["resume", &format!("--max-cost={amount}")], &told);
        check(&["fleet", "budget", &format!("--cost={amount}")], &told);
    }
    check(&["run", "x", "--max-cost", "-5"], "`-5` is not an amount of dollars");
    check(&["resume", "--max-cost", "-5"], "`-5` is not an amount of dollars");
    check(&["resume", "--max-cost", "+-5"], "`-5` is not an amount of dollars");
}
