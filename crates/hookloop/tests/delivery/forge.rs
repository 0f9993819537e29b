//! Delivery by pull requests, on a forge on loopback with real commits.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hookloop_testbed::github::{Check, Fault, Kind, Route, Says, State};

use crate::delivery_project::{DeliveryProject, GREEN, TOKEN};

fn config(rest: &str) -> String {
    format!(
        "delivery: {{labels: [agent], reviewers: [ada], draft: false}}\nhooks:\n  before_merge:\n    \
         - {{name: green, command: \"{GREEN}\"}}\n{rest}"
    )
}

#[test]
fn a_task_opens_a_pull_request_that_is_merged() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    let before = project.users();
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1);
    assert_eq!(pulls[0].title, "Goal of it");
    let submission = &ran.all("submission_evaluated")[0]["submission"];
    assert_eq!(submission["number"], 1, "{submission}");
    assert_eq!(project.merge()["t1"].0, "merged");
    assert!(matches!(forge.pulls()[0].state, State::Merged(_)), "{:?}", forge.pulls());
    assert_eq!(project.on_main("work.txt"), "work\n");
    assert_eq!(project.state("t1"), "completed");
    assert_eq!(project.users(), before);
    let kept = project.kept();
    assert!(!kept.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes()), "the token is stored");
}

/// A reviewer sees which tests the work changed.
#[test]
fn a_request_names_the_tests_that_the_work_changed() {
    let gate = "{name: tests, command: node --test, base_tests: {expectations: allow}}";
    let test = |expected: &str| {
        format!(
            "const {{ test }} = require('node:test');\nconst assert = require('node:assert');\n\
             test('adds', () => assert.strictEqual(require('./add.js')(2, 3), {expected}));\n"
        )
    };
    let source = "module.exports = (a, b) => a - b;\n";
    let files = [
        ("add.js", source),
        ("add.test.js", &test("5")),
        ("package.json", "{}\n"),
        ("weaker", &test("-1")),
    ];
    let config = config(&format!("  stop:\n    - {gate}\n"));
    let (project, forge) = DeliveryProject::on_forge(&config, &files);
    project.add("t1", &[]);
    project.does("t1", 1, "cp weaker add.test.js");
    let ran = project.run_tasks();
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1, "{}", ran.stderr);
    let body = &pulls[0].body;
    assert!(body.contains("Changes of tests at gate `tests`:\n\n- `adds` "), "{body}");
    assert!(body.contains("allowed by `expectations: allow`"), "{body}");
    assert!(body.ends_with("Task: t1"), "{body}");
}

#[test]
fn a_missing_forge_token_is_named_with_the_command_to_type() {
    let url = "https://github.com/acme/app.git";
    let project = DeliveryProject::at_address(url, &config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    let ran = project.run_tasks();
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let reason = ran.all("session_ended")[0]["reason"].as_str().unwrap();
    let expected = "can't work on the task: there is no token for github.com; run `gh auth login \
                    --hostname github.com`, or set HOOKLOOP_GITHUB_TOKEN";
    assert_eq!(reason, expected);
}

/// Row 18: returned work that is submitted again is in the same request, with the new commit.
#[test]
fn a_second_submission_updates_the_same_pull_request() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo bad > work.txt");
    project.does("t1", 2, "echo fixed > work.txt");
    assert_eq!(project.run_tasks().code, 6);
    let first = forge.pulls()[0].head.clone();
    assert_eq!(project.merge()["t1"].0, "returned");
    assert_eq!(project.run_tasks().code, 6);
    assert_eq!(forge.count(Route::Open), 1, "one request was opened");
    let pulls = forge.pulls();
    assert_ne!(pulls[0].head, first);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(project.on_main("work.txt"), "fixed\n");
}

/// A session may be stopped in the middle of its push, until another session has finished the task.
#[test]
fn a_session_that_loses_its_claim_during_the_push_opens_no_pull_request() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    // The remote waits in the middle of the push until a person has requeued the task.
    let hook = project.remote().join("hooks/pre-receive");
    let place = project.remote();
    let script = format!(
        "#!/bin/sh\ncd '{}' && touch pushing && while [ ! -f requeued ]; do sleep 0.05; done\n",
        place.display(),
    );
    fs::create_dir_all(project.remote().join("hooks")).unwrap();
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = std::thread::scope(|scope| {
        let ran = scope.spawn(|| project.run_session(&["--task", "t1"]));
        let began = std::time::Instant::now();
        while !place.join("pushing").exists() {
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "nothing is pushed");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let requeued =
            project.json_command(&["task", "requeue", "t1", "--force"]).output().unwrap();
        assert!(requeued.status.success(), "{requeued:?}");
        fs::write(place.join("requeued"), "").unwrap();
        ran.join().unwrap()
    });
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work", "it was pushed");
    assert_eq!(forge.count(Route::Open), 0, "no request was opened");
}

#[test]
fn a_merge_waits_for_pending_checks() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    assert_eq!(project.run_tasks().code, 6);
    forge.check(Check::new(Kind::Run, "ci", [Says::Pending, Says::Pending, Says::Passed]));
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("ci"), "{fates:?}");
    assert_eq!(project.state("t1"), "submitted");
    let mut fate = String::new();
    for _ in 0..4 {
        fate = project.merge().get("t1").map(|fate| fate.0.clone()).unwrap_or_default();
        if fate == "merged" {
            break;
        }
    }
    assert_eq!(fate, "merged");
}

#[test]
fn a_failed_check_returns_the_task() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    assert_eq!(project.run_tasks().code, 6);
    forge.check(Check::new(Kind::Run, "ci", [Says::Failed]));
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "returned", "{fates:?}");
    assert!(fates["t1"].1.contains("ci"), "{fates:?}");
    assert_eq!(project.state("t1"), "ready");
}

/// If a person merges the request, the task is completed.
#[test]
fn a_merge_by_a_person_completes_the_task() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    assert_eq!(project.run_tasks().code, 6);
    project.at_remote(&["update-ref", "refs/heads/main", "refs/heads/hookloop/t1"]);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(project.state("t1"), "completed");
    assert_eq!(forge.count(Route::Merge), 0);
}

/// Lost answers of the forge do not lead to a second request.
#[test]
fn forge_failures_lead_to_one_pull_request_and_one_merge() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    forge.fail_at(Route::Open, 1, Fault::HangUpAfter);
    forge.fail_at(Route::List, 1, Fault::status(502));
    let ran = project.run_tasks();
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(forge.pulls().len(), 1);
    forge.fail_at(Route::Merge, 1, Fault::HangUpAfter);
    let fates = project.merge();
    assert!(["merged", "waits"].contains(&fates["t1"].0.as_str()), "{fates:?}");
    if fates["t1"].0 == "waits" {
        assert_eq!(project.merge()["t1"].0, "merged");
    }
    assert_eq!(project.at_remote(&["rev-list", "--count", "main"]), "2", "it is in the base once");
}

/// If the forge is unreachable for a while, this costs no turn.
#[test]
fn a_submission_to_an_unavailable_forge_is_retried_without_a_turn() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    // The forge fails for as many attempts as are made at once.
    forge.fail_at(Route::List, 4, Fault::status(502));
    let ran = project.run_tasks();
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(ran.submitted(), ["retry", "pass"]);
    assert_eq!(ran.all("turn_ended").len(), 1);
    assert_eq!((project.state("t1"), forge.pulls().len()), ("submitted".into(), 1));
}
