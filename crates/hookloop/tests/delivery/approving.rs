//! A person takes a submission that reviewers refused. Nobody is asked again, and a base that would be red is not made.

use std::fs;

use crate::yard::{GREEN, Yard};

/// A reviewer that refuses everything, and counts how often it was asked.
fn yard() -> Yard {
    let config = format!(
        "delivery: {{}}\nlimits: {{continuations: 0}}\nagents:\n  strict:\n    kind: command\n    command: >-\n      \
         cat > $HOME/prompt; echo asked >> $HOME/asked;\n      \
         id=$(sed -n 's/.*\"const\": *\"\\([0-9a-f]*\\)\".*/\\1/p' $HOME/prompt | head -1);\n      \
         sed \"s/ID/$id/\" $HOME/answer\n\
         gatekeepers:\n  qa: {{agent: strict}}\nhooks:\n  before_merge:\n    - gatekeeper: qa\n    \
         - {{name: green, command: \"{GREEN}\"}}\n"
    );
    let yard = Yard::new(&config, &[("a.txt", "a\n")]);
    yard.ok(&["agents", "trust", "--yes"]);
    let home = yard.project().parent().unwrap().join("home");
    let refusal = r#"{"review": "ID", "verdict": "reject", "summary": "no", "findings": [
        {"file": "work.txt", "line": 1, "message": "not like this", "severity": "blocker"}]}"#;
    fs::write(home.join("answer"), refusal).unwrap();
    yard
}

fn asked(yard: &Yard) -> usize {
    let home = yard.project().parent().unwrap().join("home");
    fs::read_to_string(home.join("asked")).unwrap_or_default().lines().count()
}

fn problem(yard: &Yard) -> String {
    let list = yard.ok(&["inbox", "list"]).remove(0);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    list[0]["key"].as_str().unwrap().to_owned()
}

#[test]
fn what_a_person_approves_is_merged_without_asking_again() {
    let yard = yard();
    yard.add("t1", &[]);
    yard.does("t1", 1, "echo fine > work.txt");
    assert_eq!(yard.tasks().code, 6);
    assert_eq!(yard.merge()["t1"].0, "blocked");
    let key = problem(&yard);
    let shown = yard.ok(&["inbox", "show", &key]).remove(0);
    assert!(shown["details"].to_string().contains("not like this"), "{shown}");
    assert!(shown["next"].to_string().contains("inbox approve"), "{shown}");
    let approved = yard.ok(&["inbox", "approve", &key]).remove(0);
    assert_eq!(
        (&approved["state"], &approved["next"]),
        (&"submitted".into(), &"hookloop merge".into())
    );
    let before = asked(&yard);
    assert_eq!(yard.merge()["t1"].0, "merged");
    assert_eq!((asked(&yard), yard.on_main("work.txt").as_str()), (before, "fine\n"));
    assert_eq!(yard.ok(&["inbox", "list"]).remove(0), serde_json::json!([]));
    yard.rebuild();
}

#[test]
fn an_approval_makes_no_red_base_and_is_of_one_commit() {
    let yard = yard();
    yard.add("t1", &[]);
    yard.does("t1", 1, "echo bad > work.txt");
    assert_eq!(yard.tasks().code, 6);
    assert_eq!(yard.merge()["t1"].0, "blocked");
    let refused = problem(&yard);
    yard.ok(&["inbox", "approve", &refused]);
    let fates = yard.merge();
    assert_eq!(fates["t1"].0, "blocked", "{fates:?}");
    assert!(fates["t1"].1.contains("green"), "{fates:?}");
    assert_eq!(yard.on_main("work.txt"), "");
    // What is worked on again has to be looked at again.
    let red = problem(&yard);
    assert_ne!(red, refused);
    yard.does("t1", 2, "echo better > work.txt");
    yard.ok(&["inbox", "answer", &red, "It must not say that."]);
    assert_eq!(yard.tasks().code, 6);
    assert!(yard.prompt("t1", 2).contains("It must not say that."), "{}", yard.prompt("t1", 2));
    let before = asked(&yard);
    assert_eq!(yard.merge()["t1"].0, "blocked");
    assert!(asked(&yard) > before);
}

/// What the train says that it takes a human for is one problem, however often it says so.
#[test]
fn a_submission_that_can_not_be_merged_is_one_problem_until_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new("delivery: {}\n", &[("a.txt", "a\n")]);
    yard.add("t1", &[]);
    yard.does("t1", 1, "echo fine > work.txt");
    assert_eq!(yard.tasks().code, 6);
    let guard = yard.remote().join("hooks/pre-receive");
    fs::create_dir_all(guard.parent().unwrap()).unwrap();
    fs::write(&guard, "#!/bin/sh\n! grep -q refs/heads/main\n").unwrap();
    fs::set_permissions(&guard, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(yard.merge()["t1"].0, "waits");
    let key = problem(&yard);
    assert_eq!(yard.ok(&["inbox", "show", &key])[0]["kind"], "merge_held");
    assert_eq!(yard.merge()["t1"].0, "waits");
    assert_eq!(problem(&yard), key);
    yard.rebuild();
    // Its author could do something about it.
    yard.ok(&["inbox", "answer", &key, "Use the other branch."]);
    assert_eq!(yard.state("t1"), "ready");
    assert_eq!(yard.tasks().code, 6);
    assert!(yard.prompt("t1", 2).contains("Use the other branch."), "{}", yard.prompt("t1", 2));
    assert_eq!(yard.merge()["t1"].0, "waits");
    assert_ne!(problem(&yard), key);
    fs::remove_file(&guard).unwrap();
    assert_eq!(yard.merge()["t1"].0, "merged");
    assert_eq!(yard.ok(&["inbox", "list"]).remove(0), serde_json::json!([]));
}
