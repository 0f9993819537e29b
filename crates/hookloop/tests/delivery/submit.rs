//! From a task to a submission.

use std::fs;

use crate::delivery_project::{DeliveryProject, GREEN};

fn plain() -> DeliveryProject {
    DeliveryProject::new("delivery: {}\n", &[("a.txt", "a\n"), ("b.txt", "b\n")])
}

/// With delivery and no other configuration, work is pushed, and nothing else happens.
#[test]
fn default_hooks_push_the_work_and_leave_the_checkout_unchanged() {
    let project = plain();
    fs::write(project.root().join("a.txt"), "not saved\n").unwrap();
    fs::write(project.root().join("new.txt"), "not known\n").unwrap();
    project.git(&["add", "new.txt"]);
    let before = project.users();
    project.add("t1", &[]);
    project.does("t1", 1, "echo work >> b.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(ran.hooks_at("before_submit"), ["rebase_on_main", "create_pr"]);
    assert_eq!(project.state("t1"), "submitted");
    assert_eq!(project.at_remote(&["show", "hookloop/t1:b.txt"]), "b\nwork");
    assert_eq!(
        project.at_remote(&["show", "hookloop/t1:a.txt"]),
        "a",
        "the user's own is not in it"
    );
    assert_eq!(project.users(), before);
    let submission = ran.all("submission_evaluated")[0]["submission"].clone();
    assert_eq!(submission["head"], project.at_remote(&["rev-parse", "hookloop/t1"]));
    assert_eq!(
        (submission["base"].as_str(), submission["branch"].as_str()),
        (Some("main"), Some("hookloop/t1"))
    );
}

#[test]
fn work_is_rebased_on_a_moved_base_and_gated_again() {
    let config = format!(
        "delivery: {{}}\nhooks:\n  stop:\n    - {{name: green, command: \"{GREEN}\"}}\n  before_submit: [rebase_on_main, create_pr]\n"
    );
    let project = DeliveryProject::new(&config, &[("a.txt", "a\n")]);
    project.push_to_main("theirs.txt", "theirs\n");
    project.add("t1", &[]);
    project.does("t1", 1, "echo mine > mine.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.submitted(), ["pass"], "the worktree began with the newest base");
    project.add("t2", &[]);
    project.does("t2", 1, "echo two > two.txt");
    let remote = project.remote();
    // The base moves while the agent works.
    let moves = format!(
        "d=$(mktemp -d); git clone -q {} $d; cd $d; echo x > later.txt; git add .; \
         git -c user.name=s -c user.email=s@example.invalid commit -qm later; git push -q origin HEAD:main",
        remote.display()
    );
    project.does("t2", 1, &format!("echo two > two.txt; ({moves})"));
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.submitted(), ["regate", "pass"]);
    assert_eq!(ran.all("gates_evaluated").len(), 2, "rebased work is proven again");
    let main = project.at_remote(&["rev-parse", "main"]);
    let base = project.at_remote(&["merge-base", "main", "hookloop/t2"]);
    assert_eq!(base, main);
}

/// With many merges, the base has moved whenever the gates end.
#[test]
fn a_base_that_keeps_moving_is_rebased_on_three_times_at_most() {
    let config = "delivery: {}
hooks:
  stop:
    - name: moves
      room: here
      command: |
        d=$(mktemp -d); git clone -q \"$(git remote get-url origin)\" $d; cd $d; date +%s%N > moved.txt; git add .
        git -c user.name=s -c user.email=s@example.invalid commit -qm moved; git push -q origin HEAD:main
  before_submit: [rebase_on_main, create_pr]
";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo mine > mine.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.submitted(), ["regate", "regate", "regate", "pass"]);
    assert_eq!(project.state("t1"), "submitted");
    let behind = project.at_remote(&["rev-list", "--count", "hookloop/t1..main"]);
    assert_eq!(behind, "1", "the last gates moved the base again");
}

#[test]
fn a_rebase_conflict_is_resolved_by_the_agent() {
    let config = "delivery: {}\nhooks:\n  before_submit: [rebase_on_main, create_pr]\n";
    let project = DeliveryProject::new(config, &[("a.txt", "one\ntwo\nthree\n")]);
    project.add("t1", &[]);
    let remote = project.remote();
    let moves = format!(
        "d=$(mktemp -d); git clone -q {} $d; cd $d; printf 'one\\ntheirs\\nthree\\n' > a.txt; echo other > other.txt; git add .; \
         git -c user.name=s -c user.email=s@example.invalid commit -qm later; git push -q origin HEAD:main",
        remote.display()
    );
    project.does("t1", 1, &format!("printf 'one\\nmine\\nthree\\n' > a.txt; ({moves})"));
    project.does(
        "t1",
        2,
        "grep -q '<<<<<<<' a.txt; printf 'one\\nmine and theirs\\nthree\\n' > a.txt",
    );
    let ran = project.run_tasks();
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(ran.submitted()[0], "block");
    assert_eq!(ran.submitted().last(), Some(&"pass"));
    let prompt = project.prompt("t1", 2);
    for part in ["a.txt", "mine", "theirs", "<<<<<<< your branch", ">>>>>>> main"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let show = |file: &str| project.at_remote(&["show", &format!("hookloop/t1:{file}")]);
    assert_eq!(show("a.txt"), "one\nmine and theirs\nthree");
    assert_eq!(show("other.txt"), "other", "other changes of the base are present");
    let is_on_top = project.at_remote(&["merge-base", "main", "hookloop/t1"]);
    assert_eq!(is_on_top, project.at_remote(&["rev-parse", "main"]));
}

/// A conflict that the agent does not resolve goes to a person. The message names the files and the
/// base.
#[test]
fn an_unresolved_conflict_is_reported_with_its_files_and_base() {
    let config = "delivery: {}\nlimits: {max_remediations: 1}\nhooks:\n  before_submit: [rebase_on_main, create_pr]\n";
    let project = DeliveryProject::new(config, &[("a.txt", "one\ntwo\nthree\n")]);
    project.add("t1", &[]);
    let remote = project.remote();
    let moves = format!(
        "d=$(mktemp -d); git clone -q {} $d; cd $d; printf 'one\\ntheirs\\nthree\\n' > a.txt; git add .; \
         git -c user.name=s -c user.email=s@example.invalid commit -qm later; git push -q origin HEAD:main",
        remote.display()
    );
    project.does("t1", 1, &format!("printf 'one\\nmine\\nthree\\n' > a.txt; ({moves})"));
    project.does("t1", 2, "echo note > note.txt");
    let ran = project.run_session(&["--task", "t1", "--max-no-progress", "50"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let judged = ran.all("submission_evaluated");
    let expected =
        "The conflict with `main` is not resolved: a.txt still has conflict markers in it";
    assert_eq!(judged.last().unwrap()["obstacle"], expected, "{judged:#?}");
    let reason = project.task("t1")["blocked"]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, format!("the work is not submitted after 1 remediation turn: {expected}"));
}

/// A task whose hook never passes goes to a person, and its work is kept.
#[test]
fn a_submit_hook_that_never_passes_needs_a_person_and_work_is_kept() {
    let config = "delivery: {}\nhooks:\n  before_submit:\n    \
                  - {name: never, command: 'echo nope; exit 2'}\n    - create_pr\n";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_session(&["--task", "t1", "--max-no-progress", "50"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(ran.submitted(), ["block", "escalate"]);
    let left: Vec<_> = ran
        .all("session_task_released")
        .iter()
        .map(|left| left["result"].as_str().unwrap())
        .collect();
    assert_eq!(left, ["blocked"]);
    assert_eq!(project.state("t1"), "blocked");
    assert!(project.prompt("t1", 2).contains("nope"));
    assert_eq!(project.git(&["show", "hookloop/t1:work.txt"]), "work");
    let is_pushed = project.at_remote(&["for-each-ref", "refs/heads/hookloop"]);
    assert_eq!(is_pushed, "");
}

/// Row 18: a push is compared by commit; an existing branch is not enough.
#[test]
fn a_second_submission_pushes_its_new_commit() {
    let config = "delivery: {}\nhooks:\n  before_merge:\n    - {name: green, command: 'test ! -f first.txt || test -f wanted.txt || exit 2'}\n";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo first > first.txt");
    project.does("t1", 2, "echo wanted > wanted.txt");
    assert_eq!(project.run_tasks().code, 6);
    let first = project.at_remote(&["rev-parse", "hookloop/t1"]);
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "returned", "{fates:?}");
    assert_eq!(project.state("t1"), "ready");
    assert_eq!(project.run_tasks().code, 6);
    assert!(project.prompt("t1", 2).contains("was worked on before, and the work was returned"));
    let second = project.at_remote(&["rev-parse", "hookloop/t1"]);
    assert_ne!(first, second);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(
        (project.on_main("first.txt"), project.on_main("wanted.txt")),
        ("first\n".into(), "wanted\n".into())
    );
    assert_eq!(project.state("t1"), "completed");
}

#[test]
fn no_changes_ok_completes_an_unchanged_task_without_a_submission() {
    let project = plain();
    project.add("t1", &[]);
    let ran = project.run_session(&["--tasks", "--no-changes-ok"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(project.state("t1"), "completed");
    assert_eq!(project.at_remote(&["for-each-ref", "refs/heads/hookloop"]), "");
}

#[test]
fn an_unchanged_task_gets_another_turn_and_then_needs_a_person() {
    let project = DeliveryProject::new(
        "delivery: {}\nhooks:\n  stop:\n    - {name: tests, command: 'true'}\n",
        &[],
    );
    project.add("t1", &[]);
    project.add("t2", &["--depends-on", "t1"]);
    let ran = project.run_tasks();
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let asked: Vec<bool> = ran
        .all("empty_difference_found")
        .iter()
        .map(|found| found["was_asked"].as_bool().unwrap())
        .collect();
    assert_eq!(asked, [false, true]);
    assert!(project.prompt("t1", 2).contains("no change that its base branch does not have"));
    assert_eq!(project.state("t1"), "blocked");
    assert_ne!(project.state("t2"), "completed");
}

#[test]
fn conditions_of_delivery_hooks_can_use_branches() {
    let points = ["before_submit", "after_submit", "before_merge", "after_merge"];
    let names = ["branch", "base_branch", "project", "point", "task.id"];
    let mut config = "delivery: {}\nhooks:\n".to_owned();
    for point in points {
        config += &format!("  {point}:\n");
        for (number, name) in names.iter().enumerate() {
            config += &format!(
                "    - {{name: {point}-{number}, command: 'true', when: \"{name} != ''\"}}\n"
            );
        }
    }
    let project = DeliveryProject::new(&config, &[]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo fine > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.merge()["t1"].0, "merged");
    let events = project.events_from(1);
    for point in points {
        for number in 0..names.len() {
            let name = format!("{point}-{number}");
            let of_hook = |event: &&serde_json::Value| {
                event["type"] == "hook_ran" && event["data"]["hook_name"] == *name
            };
            let runs: Vec<_> = events.iter().filter(of_hook).collect();
            assert!(!runs.is_empty(), "{name} did not run");
            assert!(runs.iter().all(|run| run["data"]["status"] == "passed"), "{name}: {runs:?}");
        }
    }
}

#[test]
fn an_unproven_submission_is_not_merged_without_a_person() {
    let project = DeliveryProject::new("delivery: {}\nhooks:\n  before_submit: []\n", &[]);
    let own = project.root().join("../home/.config/hookloop/config.yaml");
    std::fs::write(own, "version: 1\n").unwrap();
    project.add("t1", &[]);
    project.does("t1", 1, "echo fine > work.txt");
    let ran = project.run_tasks();
    assert_eq!((ran.code, project.state("t1").as_str()), (6, "submitted"), "{}", ran.stderr);
    let (fate, why) = project.merge().remove("t1").unwrap();
    assert_eq!(fate, "blocked");
    assert!(why.contains("without proof"), "{why}");
    assert_eq!(project.on_main("work.txt"), "");
}
