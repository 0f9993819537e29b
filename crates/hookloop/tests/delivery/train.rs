//! Submitted tasks, merged.

use std::fs;

use crate::yard::{GREEN, Yard};

fn config() -> String {
    format!(
        "delivery: {{}}\nhooks:\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n"
    )
}

/// Submits a task that writes a file.
fn submit(yard: &Yard, id: &str, file: &str, text: &str) {
    yard.add(id, &[]);
    yard.does(id, 1, &format!("printf '{text}' > {file}"));
    let ran = yard.run(&["--task", id]);
    assert_eq!(ran.all("session_ended")[0]["outcome"], "complete", "{id}: {}", ran.stderr);
    assert_eq!(yard.state(id), "submitted");
}

#[test]
fn what_works_is_merged_and_what_does_not_goes_back() {
    let yard = Yard::new(&config(), &[("a.txt", "one\ntwo\n"), ("c.txt", "c\n")]);
    submit(&yard, "good", "good.txt", "good\\n");
    submit(&yard, "evil", "evil.txt", "bad\\n");
    submit(&yard, "left", "a.txt", "left\\ntwo\\n");
    submit(&yard, "right", "a.txt", "right\\ntwo\\n");
    submit(&yard, "last", "last.txt", "last\\n");
    fs::write(yard.project().join("c.txt"), "not saved\n").unwrap();
    let before = yard.users();
    let fates = yard.merge();
    let fate = |id: &str| (fates[id].0.as_str(), fates[id].1.as_str());
    assert_eq!(fate("good").0, "merged", "{fates:?}");
    assert_eq!(fate("left").0, "merged", "{fates:?}");
    assert_eq!(fate("last").0, "merged", "{fates:?}");
    assert_eq!(fate("evil").0, "returned");
    assert!(fate("evil").1.contains("green"), "{fates:?}");
    assert_eq!(fate("right").0, "returned");
    assert!(fate("right").1.contains("a.txt"), "{fates:?}");
    assert_eq!(yard.users(), before);
    assert_eq!((yard.state("good"), yard.state("evil")), ("completed".into(), "ready".into()));
    assert_eq!(
        (yard.on_main("good.txt"), yard.on_main("evil.txt")),
        ("good\n".into(), String::new())
    );
    assert_eq!(yard.on_main("a.txt"), "left\ntwo\n");
    let branches = yard.at_remote(&["for-each-ref", "--format=%(refname)", "refs/heads/hookloop"]);
    assert_eq!(branches, "refs/heads/hookloop/evil\nrefs/heads/hookloop/right");
    assert!(yard.merge().is_empty(), "nothing waits");
}

/// A base that is red without us is not blamed on who comes first.
#[test]
fn a_base_that_fails_by_itself_sends_nobody_back() {
    let yard = Yard::new(&config(), &[("a.txt", "a\n")]);
    submit(&yard, "t1", "t1.txt", "good\\n");
    yard.push_to_main("broken.txt", "bad\n");
    let fates = yard.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("by itself"), "{fates:?}");
    assert_eq!(yard.state("t1"), "submitted");
    yard.push_to_main("broken.txt", "mended\n");
    assert_eq!(yard.merge()["t1"].0, "merged");
}

#[test]
fn asked_for_after_submitting_it_is_merged_at_once_and_what_waits_for_it_goes_on() {
    let config = format!(
        "delivery: {{}}\nhooks:\n  after_submit: [merge]\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n  \
         after_merge:\n    - {{name: told, command: 'echo {{{{task_id}}}} >> $HOME/merged'}}\n"
    );
    let yard = Yard::new(&config, &[("a.txt", "a\n")]);
    yard.add("first", &[]);
    yard.add("second", &["--depends-on", "first"]);
    yard.does("first", 1, "echo bad > first.txt");
    yard.does("first", 2, "echo fine > first.txt");
    yard.does("second", 1, "test -f first.txt; echo second > second.txt");
    let ran = yard.tasks();
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(
        (yard.state("first"), yard.state("second")),
        ("completed".into(), "completed".into())
    );
    assert!(yard.prompt("first", 2).contains("green"), "{}", yard.prompt("first", 2));
    assert_eq!(
        (yard.on_main("first.txt"), yard.on_main("second.txt")),
        ("fine\n".into(), "second\n".into())
    );
    let home = yard.project().parent().unwrap().join("home");
    assert_eq!(fs::read_to_string(home.join("merged")).unwrap(), "first\nsecond\n");
}

/// Without a remote the base is a branch of the user's, which is not moved while it is checked out.
#[test]
fn a_branch_that_is_checked_out_is_not_moved() {
    let yard = Yard::without_remote(&config(), &[("a.txt", "a\n")]);
    submit(&yard, "t1", "t1.txt", "good\\n");
    let before = yard.users();
    let fates = yard.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("checked out"), "{fates:?}");
    assert_eq!(yard.users(), before);
    yard.git(&["switch", "-q", "-c", "elsewhere"]);
    assert_eq!(yard.merge()["t1"].0, "merged");
    assert_eq!(yard.git(&["show", "main:t1.txt"]), "good");
}

/// What is needed in a place where work is done is needed where it is tested: ignored files, and what session_start does.
#[test]
fn tests_of_the_train_have_what_worktrees_have() {
    let config = "delivery: {copy: [.env]}\nhooks:\n  session_start:\n    - {name: install, command: 'echo there > deps.local'}\n  \
                  stop:\n    - {name: tests, command: 'cat .env deps.local'}\n";
    let yard = Yard::new(config, &[(".gitignore", ".env\n*.local\n"), ("a.txt", "a\n")]);
    fs::write(yard.project().join(".env"), "secret\n").unwrap();
    submit(&yard, "t1", "t1.txt", "good\\n");
    let fates = yard.merge();
    assert_eq!(fates["t1"].0, "merged", "{fates:?}");
    assert!(
        !yard.project().join("deps.local").exists(),
        "nothing is installed in the user's checkout"
    );
    assert_eq!(
        yard.at_remote(&["ls-tree", "--name-only", "main"]),
        ".gitignore\na.txt\nhookloop.yaml\nt1.txt"
    );
}

#[test]
fn rules_and_groups_hold_in_the_train_as_in_a_session() {
    let config = "delivery: {}\nhooks:\n  stop:\n    - {name: small, diff: {max_files: 3}}\n    \
                  - {name: never, command: 'false', any_of: one}\n    - {name: always, command: 'true', any_of: one}\n";
    let yard = Yard::new(config, &[("a.txt", "a\n")]);
    submit(&yard, "t1", "t1.txt", "good\\n");
    let fates = yard.merge();
    assert_eq!(fates["t1"].0, "merged", "{fates:?}");
}

/// Nobody's fault, and no agent's to mend.
#[test]
fn a_gate_that_is_not_trusted_sends_nobody_back() {
    let yard = Yard::new(&config(), &[("a.txt", "a\n")]);
    submit(&yard, "t1", "t1.txt", "good\\n");
    let edited = format!("version: 1\n{}", config().replace("green", "greener"));
    fs::write(yard.project().join("hookloop.yaml"), edited).unwrap();
    let output = yard.command(&["merge"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("hooks trust"), "{output:?}");
    assert_eq!(yard.state("t1"), "submitted");
}

/// A sandbox that lets a gate write where the work is holds in a worktree, too.
#[test]
fn a_gate_in_a_sandbox_runs_in_worktrees() {
    let config = "delivery: {}\nhooks:\n  stop:\n    \
                  - {name: writes, command: 'echo x > made.local', sandbox: {write: [worktree]}}\n";
    let yard = Yard::new(config, &[(".gitignore", "*.local\n"), ("a.txt", "a\n")]);
    submit(&yard, "t1", "t1.txt", "good\\n");
    assert_eq!(yard.merge()["t1"].0, "merged");
}
