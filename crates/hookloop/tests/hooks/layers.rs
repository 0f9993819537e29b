//! The user's own hooks and limits, which apply to every project.

use serde_json::{Value, json};

use crate::cli::Project;

fn with_own(own: &str, config: &str) -> Project {
    let project = Project::with_config(config);
    project.write_own(own);
    project
}

fn explained(project: &Project, id: &str) -> Vec<(String, String)> {
    let explained = project.json(&["hooks", "explain", "on_task_complete", "--task", id]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let hooks = explained.as_array().unwrap().iter();
    let hooks = hooks.filter(|hook| hook["handler"] == "command");
    hooks.map(|hook| (text(&hook["name"]), text(&hook["list"]))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn user_hooks_run_in_every_project_without_trust_and_cannot_be_removed() {
    let project = with_own(
        "hooks:\n  on_task_complete:\n    - {name: mine, command: echo mine >> ran}\n",
        "hooks:
  on_task_complete:
    - {name: theirs, command: echo theirs >> ran, priority: 1}
task_types:
  fix: {hooks: {on_task_complete: [{name: fixes, command: echo fixes >> ran}]}}
  quiet: {hooks: {on_task_complete: []}}
",
    );
    let ran = || std::fs::read_to_string(project.root().join("ran")).unwrap_or_default();
    project.complete("untrusted");
    assert_eq!(ran(), "mine\n", "the repository's hooks are not trusted yet");
    project.trust();

    let plain = project.add("plain", &[]);
    let fix = project.add("fix", &["--type", "fix"]);
    let quiet = project.add("quiet", &["--type", "quiet"]);
    assert_eq!(explained(&project, &plain), pairs(&[("theirs", "project"), ("mine", "user")]));
    assert_eq!(explained(&project, &fix), pairs(&[("mine", "user"), ("fixes", "type")]));
    assert_eq!(explained(&project, &quiet), pairs(&[("mine", "user")]));
    for id in [&plain, &fix, &quiet] {
        project.ok(&["task", "complete", id]);
    }
    assert_eq!(ran(), "mine\ntheirs\nmine\nmine\nfixes\nmine\n");
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(!shown.contains("mine"), "the user's own hook needs no trust: {shown}");
}

/// A file of the repository needs trust, even if the command of the user's own hook names it.
#[test]
fn a_repository_script_needs_trust_even_in_a_users_hook() {
    let project =
        with_own("hooks: {on_task_complete: [{name: mine, command: ./check.sh}]}\n", "hooks: {}\n");
    project.complete("nothing there");
    project.script("check.sh", "echo ran >> ran");
    project.complete("not trusted");
    assert!(!project.root().join("ran").exists());
    project.trust();
    project.complete("trusted");
    project.script("check.sh", "echo changed >> ran");
    project.complete("changed");
    assert_eq!(std::fs::read_to_string(project.root().join("ran")).unwrap(), "ran\n");
}

#[test]
fn a_project_tightens_limits_and_never_widens_them() {
    let chain = "hooks: {task_created: [{name: chain, actions: [{create_task: {goal: more}}]}]}\n";
    // Checks the depth of a chain of hooks with the user's limit and the project's limit.
    let check = |own: Option<u32>, theirs: Option<u32>, depth: usize, told: bool| {
        let limit = |depth: Option<u32>| {
            depth
                .map_or(String::new(), |depth| format!("limits: {{cascade: {{depth: {depth}}}}}\n"))
        };
        let project = with_own(&limit(own), &format!("{chain}{}", limit(theirs)));
        project.add("first", &[]);
        assert_eq!(project.goals().len(), 1 + depth, "{own:?} {theirs:?}");
        let findings = project.run(&["doctor", "--json"]).stdout;
        let findings: Vec<Value> = serde_json::from_str(&findings).unwrap();
        let is_told = findings.iter().any(|finding| finding["about"] == "limits");
        assert_eq!(is_told, told, "{own:?} {theirs:?}");
    };
    check(None, None, 8, false);
    check(None, Some(3), 3, false);
    check(None, Some(30), 8, true);
    check(Some(2), None, 2, false);
    check(Some(2), Some(3), 2, true);
    check(Some(12), None, 12, false);
    check(Some(12), Some(10), 10, false);
    check(Some(12), Some(1_000_000), 12, true);
}

#[test]
fn mistakes_in_the_users_file_are_named_with_their_place() {
    let check = |own: &str, place: &str, part: &str| {
        let project = with_own(own, "hooks: {}\n");
        let error = project.fails(2, &["task", "list"]);
        assert!(error.contains(place) && error.contains(part), "{own}: {error}");
    };
    check("hook: {}\n", "config.yaml:2:1", "hook");
    check("hooks:\n  stop:\n    - {command: ls, colour: red}\n", "config.yaml:4:", "colour");
    check("hooks:\n  stop: [{use: auto-create-review-task}]\n", "config.yaml:3:", "");
    check("hooks:\n  task_created: [auto-create-review-task]\n", "config.yaml:3:", "hooks disable");
    check("limits: {cascade: {depth: deep}}\n", "config.yaml:2:", "whole number");
}

#[test]
fn a_project_hook_cannot_have_the_name_of_a_users_hook() {
    let project = with_own(
        "hooks: {stop: [{name: check, command: ls}]}\n",
        "hooks: {stop: [{name: check, command: pwd}]}\n",
    );
    let error = project.fails(2, &["hooks", "list"]);
    assert!(error.contains("hookloop.yaml:2:") && error.contains("`check`"), "{error}");
    assert!(error.contains("your own"), "{error}");
}

#[test]
fn default_hooks_of_a_hook_point_stay_beside_the_users_hooks() {
    let project = with_own("hooks: {before_submit: [{name: mine, command: ls}]}\n", "hooks: {}\n");
    let explained = project.json(&["hooks", "explain", "before_submit"]);
    let names: Vec<&Value> = explained.as_array().unwrap().iter().map(|h| &h["name"]).collect();
    let defaults = [json!("rebase_on_main"), json!("create_pr")];
    assert_eq!(names, [&json!("mine"), &defaults[0], &defaults[1]]);
}
