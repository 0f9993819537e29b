//! Merges of submitted tasks.

use std::fs;

use crate::delivery_project::{DeliveryProject, GREEN};

fn config() -> String {
    format!(
        "delivery: {{}}\nhooks:\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n"
    )
}

/// Submits a task that writes a file.
fn submit(project: &DeliveryProject, id: &str, file: &str, text: &str) {
    project.add(id, &[]);
    project.does(id, 1, &format!("printf '{text}' > {file}"));
    let ran = project.run_session(&["--task", id]);
    assert_eq!(ran.all("session_ended")[0]["outcome"], "complete", "{id}: {}", ran.stderr);
    assert_eq!(project.state(id), "submitted");
}

#[test]
fn passing_tasks_are_merged_and_failing_or_conflicting_tasks_returned() {
    let project = DeliveryProject::new(&config(), &[("a.txt", "one\ntwo\n"), ("c.txt", "c\n")]);
    submit(&project, "good", "good.txt", "good\\n");
    submit(&project, "evil", "evil.txt", "bad\\n");
    submit(&project, "left", "a.txt", "left\\ntwo\\n");
    submit(&project, "right", "a.txt", "right\\ntwo\\n");
    submit(&project, "last", "last.txt", "last\\n");
    fs::write(project.root().join("c.txt"), "not saved\n").unwrap();
    let before = project.users();
    let fates = project.merge();
    let fate = |id: &str| (fates[id].0.as_str(), fates[id].1.as_str());
    assert_eq!(fate("good").0, "merged", "{fates:?}");
    assert_eq!(fate("left").0, "merged", "{fates:?}");
    assert_eq!(fate("last").0, "merged", "{fates:?}");
    assert_eq!(fate("evil").0, "returned");
    assert!(fate("evil").1.contains("green"), "{fates:?}");
    assert_eq!(fate("right").0, "returned");
    assert!(fate("right").1.contains("a.txt"), "{fates:?}");
    assert_eq!(project.users(), before);
    assert_eq!(
        (project.state("good"), project.state("evil")),
        ("completed".into(), "ready".into())
    );
    assert_eq!(
        (project.on_main("good.txt"), project.on_main("evil.txt")),
        ("good\n".into(), String::new())
    );
    assert_eq!(project.on_main("a.txt"), "left\ntwo\n");
    let branches =
        project.at_remote(&["for-each-ref", "--format=%(refname)", "refs/heads/hookloop"]);
    assert_eq!(branches, "refs/heads/hookloop/evil\nrefs/heads/hookloop/right");
    assert!(project.merge().is_empty(), "nothing waits");
}

/// A base that already fails does not count against the first submission.
#[test]
fn a_failing_base_does_not_return_tasks() {
    let project = DeliveryProject::new(&config(), &[("a.txt", "a\n")]);
    submit(&project, "t1", "t1.txt", "good\\n");
    project.push_to_main("broken.txt", "bad\n");
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("by itself"), "{fates:?}");
    assert_eq!(project.state("t1"), "submitted");
    project.push_to_main("broken.txt", "fixed\n");
    assert_eq!(project.merge()["t1"].0, "merged");
}

#[test]
fn a_merge_after_submit_unblocks_dependent_tasks() {
    let config = format!(
        "delivery: {{}}\nhooks:\n  after_submit: [merge]\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n  \
         after_merge:\n    - {{name: told, command: 'echo {{{{task_id}}}} >> $HOME/merged'}}\n"
    );
    let project = DeliveryProject::new(&config, &[("a.txt", "a\n")]);
    project.add("first", &[]);
    project.add("second", &["--depends-on", "first"]);
    project.does("first", 1, "echo bad > first.txt");
    project.does("first", 2, "echo fine > first.txt");
    project.does("second", 1, "test -f first.txt; echo second > second.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(
        (project.state("first"), project.state("second")),
        ("completed".into(), "completed".into())
    );
    assert!(project.prompt("first", 2).contains("green"), "{}", project.prompt("first", 2));
    assert_eq!(
        (project.on_main("first.txt"), project.on_main("second.txt")),
        ("fine\n".into(), "second\n".into())
    );
    let home = project.root().parent().unwrap().join("home");
    assert_eq!(fs::read_to_string(home.join("merged")).unwrap(), "first\nsecond\n");
}

/// Without a remote the base is a branch of the user, which is not moved while it is checked out.
#[test]
fn a_checked_out_base_branch_is_not_moved() {
    let project = DeliveryProject::without_remote(&config(), &[("a.txt", "a\n")]);
    submit(&project, "t1", "t1.txt", "good\\n");
    let before = project.users();
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("checked out"), "{fates:?}");
    assert_eq!(project.users(), before);
    project.git(&["switch", "-q", "-c", "elsewhere"]);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(project.git(&["show", "main:t1.txt"]), "good");
}

/// The worktree for a merge has the ignored files and the results of session_start, like any
/// worktree.
#[test]
fn merge_worktrees_have_copied_files_and_session_start_results() {
    let config = "delivery: {copy: [.env]}\nroom: here\nhooks:\n  session_start:\n    - {name: install, command: 'echo there > deps.local'}\n  \
                  stop:\n    - {name: tests, command: 'cat .env deps.local'}\n";
    let project =
        DeliveryProject::new(config, &[(".gitignore", ".env\n*.local\n"), ("a.txt", "a\n")]);
    fs::write(project.root().join(".env"), "secret\n").unwrap();
    submit(&project, "t1", "t1.txt", "good\\n");
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "merged", "{fates:?}");
    assert!(
        !project.root().join("deps.local").exists(),
        "nothing is installed in the user's checkout"
    );
    assert_eq!(
        project.at_remote(&["ls-tree", "--name-only", "main"]),
        ".gitignore\na.txt\nhookloop.yaml\nt1.txt"
    );
}

#[test]
fn diff_rules_and_any_of_groups_apply_in_the_merge_train() {
    let config = "delivery: {}\nhooks:\n  stop:\n    - {name: small, diff: {max_files: 3}}\n    \
                  - {name: never, command: 'false', any_of: one}\n    - {name: always, command: 'true', any_of: one}\n";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    submit(&project, "t1", "t1.txt", "good\\n");
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "merged", "{fates:?}");
}

/// An untrusted gate is no fault of the work, and no agent can fix it.
#[test]
fn an_untrusted_gate_does_not_return_tasks() {
    let project = DeliveryProject::new(&config(), &[("a.txt", "a\n")]);
    submit(&project, "t1", "t1.txt", "good\\n");
    let edited = format!("version: 1\n{}", config().replace("green", "greener"));
    fs::write(project.root().join("hookloop.yaml"), edited).unwrap();
    let output = project.json_command(&["merge"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("hooks trust"), "{output:?}");
    assert_eq!(project.state("t1"), "submitted");
}

/// A sandbox that lets a gate write to the worktree works in worktrees of a merge, too.
#[test]
fn a_sandboxed_gate_runs_in_merge_worktrees() {
    let config = "delivery: {}\nhooks:\n  stop:\n    \
                  - {name: writes, command: 'echo x > made.local', sandbox: {write: [worktree]}}\n";
    let project = DeliveryProject::new(config, &[(".gitignore", "*.local\n"), ("a.txt", "a\n")]);
    submit(&project, "t1", "t1.txt", "good\\n");
    assert_eq!(project.merge()["t1"].0, "merged");
}
