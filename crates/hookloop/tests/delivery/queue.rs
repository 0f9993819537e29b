//! Repositories with a merge queue, required checks and auto-merge on GitHub.

use hookloop_testbed::github::{Check, GitHub, Kind, Route, Says, State};
use hookloop_testkit::run_git;
use serde_json::Value;

use crate::delivery_project::{DeliveryProject, GREEN};

fn config(rest: &str) -> String {
    format!(
        "delivery: {{{rest}}}\nhooks:\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n"
    )
}

/// Returns a project on a forge with the requests of these tasks, which are submitted.
fn submitted(rest: &str, tasks: &[&str]) -> (DeliveryProject, GitHub) {
    let (project, forge) = DeliveryProject::on_forge(&config(rest), &[("a.txt", "a\n")]);
    for task in tasks {
        project.add(task, &[]);
        project.does(task, 1, &format!("echo work > {task}.txt"));
    }
    assert_eq!(project.run_tasks().code, 6);
    (project, forge)
}

/// Runs `hookloop merge`; returns the exit code, and each line.
fn merge(project: &DeliveryProject, args: &[&str]) -> (i32, Vec<Value>) {
    let output = project.json_command(&[&["merge"], args].concat()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), lines)
}

fn text(project: &DeliveryProject, args: &[&str]) -> String {
    // The commands of the project print JSON; here it is a list of texts.
    project.json_values(args).iter().map(ToString::to_string).collect()
}

#[test]
fn a_tested_head_is_enqueued_and_its_position_is_shown_until_its_merge() {
    let (project, forge) = submitted("", &["t1"]);
    forge.use_merge_queue();
    forge.enqueue_other();
    let head = forge.pulls()[0].head.clone();
    let (code, lines) = merge(&project, &[]);
    assert_eq!((code, lines.len()), (0, 1), "{lines:?}");
    assert_eq!(lines[0]["result"], "queued", "{lines:?}");
    assert_eq!(lines[0]["queue"]["position"], 2, "{lines:?}");
    assert_eq!(forge.queued()[1], (1, head));
    assert_eq!(forge.count(Route::Merge), 0, "nothing is merged past the queue");
    assert_eq!(project.state("t1"), "submitted");

    let status = text(&project, &["status"]);
    assert!(status.contains("in the merge queue of `main`"), "{status}");
    let why = text(&project, &["why", "t1"]);
    assert!(why.contains("position 2, queued, about 10 min"), "{why}");
    assert_eq!(project.task("t1")["delivery"]["queue"]["position"], 2);

    forge.merge_first();
    let (code, lines) = merge(&project, &[]);
    assert_eq!((code, &lines[0]["queue"]["position"]), (0, &1.into()), "{lines:?}");
    assert_eq!(lines[0]["queue"]["state"], "awaiting_checks", "{lines:?}");
    let before = forge.requests().len();
    merge(&project, &[]);
    let asked = forge.requests().split_off(before);
    let is_mutation = |query: &str| query.contains("enqueuePullRequest");
    let enqueued =
        asked.iter().filter(|request| request.body["query"].as_str().is_some_and(is_mutation));
    assert_eq!(enqueued.count(), 0, "a request that is in the queue is not enqueued again");

    forge.merge_first();
    let (code, lines) = merge(&project, &[]);
    assert_eq!((code, &lines[0]["result"]), (0, &"merged".into()), "{lines:?}");
    assert_eq!(project.state("t1"), "completed");
    assert_eq!(project.on_main("t1.txt"), "work\n");
}

#[test]
fn only_tasks_that_pass_their_gates_are_enqueued() {
    let (project, forge) = DeliveryProject::on_forge(&config(""), &[("a.txt", "a\n")]);
    for (task, word) in [("t1", "fine"), ("t2", "bad"), ("t3", "fine")] {
        project.add(task, &[]);
        project.does(task, 1, &format!("echo {word} > {task}.txt"));
    }
    assert_eq!(project.run_tasks().code, 6);
    forge.use_merge_queue();
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "queued", "{fates:?}");
    assert_eq!(fates["t2"].0, "returned", "{fates:?}");
    assert_eq!(fates["t3"].0, "queued", "{fates:?}");
    assert_eq!(forge.queued().len(), 2);
}

#[test]
fn a_pull_request_that_fails_in_the_queue_is_returned_with_the_reason() {
    let (project, forge) = submitted("", &["t1"]);
    forge.use_merge_queue();
    assert_eq!(project.merge()["t1"].0, "queued");
    forge.dequeue(1, "CI_FAILURE", "github-merge-queue");
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "returned", "{fates:?}");
    assert!(fates["t1"].1.contains("merge queue of `main`"), "{fates:?}");
    assert!(fates["t1"].1.contains("CI_FAILURE"), "{fates:?}");
    assert_eq!(project.state("t1"), "ready");
    // The next version of the work is enqueued with its own head.
    project.does("t1", 2, "echo better > t1.txt");
    assert_eq!(project.run_tasks().code, 6);
    assert!(project.prompt("t1", 2).contains("CI_FAILURE"), "{}", project.prompt("t1", 2));
    assert_eq!(project.merge()["t1"].0, "queued");
    assert_eq!(forge.queued(), [(1, forge.pulls()[0].head.clone())]);
}

#[test]
fn a_pull_request_dequeued_by_a_person_needs_an_approval() {
    let (project, forge) = submitted("", &["t1"]);
    forge.use_merge_queue();
    assert_eq!(project.merge()["t1"].0, "queued");
    forge.dequeue(1, "MANUAL", "ada");
    let (code, lines) = merge(&project, &[]);
    assert_eq!((code, &lines[0]["result"]), (3, &"blocked".into()), "{lines:?}");
    let reason = lines[0]["reason"].as_str().unwrap();
    assert!(reason.contains("ada") && reason.contains("MANUAL"), "{reason}");
    // After an approval it is added to the queue again.
    let key = project.json_values(&["inbox", "list"])[0][0]["key"].as_str().unwrap().to_owned();
    project.json_values(&["inbox", "approve", &key]);
    assert_eq!(project.merge()["t1"].0, "queued");
}

#[test]
fn a_foreign_push_to_a_queued_pull_request_blocks_its_task() {
    let (project, forge) = submitted("", &["t1"]);
    forge.use_merge_queue();
    assert_eq!(project.merge()["t1"].0, "queued");
    let clone = project.beside("other");
    run_git(
        &project.root(),
        &["clone", "-q", &project.remote().display().to_string(), &clone.display().to_string()],
    );
    run_git(&clone, &["checkout", "-q", "hookloop/t1"]);
    let who = ["-c", "user.name=s", "-c", "user.email=s@example.invalid"];
    run_git(&clone, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "more"]].concat());
    run_git(&clone, &["push", "-q", "origin", "hookloop/t1"]);
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "blocked", "{fates:?}");
    assert!(fates["t1"].1.contains("somebody pushed"), "{fates:?}");
    assert_eq!(forge.queued(), []);
}

#[test]
fn lost_answers_of_the_forge_do_not_enqueue_twice() {
    let (project, forge) = submitted("", &["t1"]);
    forge.use_merge_queue();
    // The first request asks whether there is a queue, the third is the mutation.
    for _ in 0..3 {
        forge.fail_at(Route::GraphQl, 1, hookloop_testbed::github::Fault::HangUpAfter);
        project.merge();
    }
    assert_eq!(project.merge()["t1"].0, "queued");
    assert_eq!(forge.queued().len(), 1);
}

#[test]
fn merge_wait_exits_with_4_at_its_limit_and_0_after_a_merge() {
    let (project, forge) = submitted("", &["t1"]);
    forge.use_merge_queue();
    let (code, lines) = merge(&project, &["--wait", "1s"]);
    assert_eq!(code, 4, "{lines:?}");
    assert_eq!(lines.len(), 1, "an unchanged state is not repeated: {lines:?}");
    // A merge by the queue ends the wait.
    let (code, lines) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| merge(&project, &["--wait", "30s"]));
        let asked = forge.requests().len();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while forge.requests().len() == asked {
            assert!(std::time::Instant::now() < deadline, "nothing was asked");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        forge.merge_first();
        waiting.join().unwrap()
    });
    assert_eq!(code, 0, "{lines:?}");
    assert_eq!(lines.last().unwrap()["result"], "merged", "{lines:?}");
}

#[test]
fn missing_required_checks_are_named() {
    let (project, forge) = submitted("wait_for_checks: false", &["t1"]);
    forge.require_checks(&["build", "lint"]);
    forge.check(Check::new(Kind::Run, "build", [Says::Passed]));
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(
        fates["t1"].1.contains("#1 into `main` waits for the required check `lint`"),
        "{fates:?}"
    );
    let why = text(&project, &["why", "t1"]);
    assert!(why.contains("`lint`"), "{why}");
    let asked = forge.count(Route::Merge);
    assert_eq!(project.merge()["t1"].0, "waits");
    assert_eq!(forge.count(Route::Merge), asked, "no merge before the check exists");
    forge.check(Check::new(Kind::Status, "lint", [Says::Passed]));
    assert_eq!(project.merge()["t1"].0, "merged");
}

#[test]
fn a_merge_waits_for_a_required_review_and_names_the_missing_one() {
    let (project, forge) = submitted("", &["t1"]);
    forge.protect(true);
    for _ in 0..2 {
        let fates = project.merge();
        assert_eq!(fates["t1"].0, "waits", "{fates:?}");
        assert!(fates["t1"].1.contains("an approving review"), "{fates:?}");
    }
    assert_eq!(project.state("t1"), "submitted");
    let inbox = text(&project, &["inbox", "list"]);
    assert!(inbox.contains("an approving review"), "{inbox}");
    forge.protect(false);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert!(!text(&project, &["inbox", "list"]).contains("an approving review"));
}

#[test]
fn auto_merge_is_enabled_only_in_repositories_that_allow_auto_merge() {
    let (project, forge) = submitted("auto_merge: true", &["t1"]);
    forge.require_checks(&["build"]);
    forge.check(Check::new(Kind::Run, "build", [Says::Pending]));
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("does not allow auto-merge"), "{fates:?}");
    assert_eq!(forge.auto_merging(), [0; 0]);

    let (project, forge) = submitted("auto_merge: true", &["t1"]);
    forge.allow_auto_merge();
    forge.require_checks(&["build"]);
    forge.check(Check::new(Kind::Run, "build", [Says::Pending]));
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("GitHub merges #1 into `main` by itself"), "{fates:?}");
    assert!(fates["t1"].1.contains("`build`"), "{fates:?}");
    assert_eq!(forge.auto_merging(), [1]);
    let asked = forge.count(Route::Merge);
    project.merge();
    assert_eq!(forge.count(Route::Merge), asked);
    forge.check(Check::new(Kind::Run, "build", [Says::Passed]));
    assert!(matches!(forge.pulls()[0].state, State::Merged(_)), "{:?}", forge.pulls());
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(project.state("t1"), "completed");
}
