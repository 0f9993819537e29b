//! A person approves a submission that reviewers refused. No reviewer runs again, and a merge that
//! would make the base red is refused.

use std::fs;

use crate::delivery_project::{DeliveryProject, GREEN};

/// Returns a project whose reviewer refuses everything, and counts its runs.
fn project() -> DeliveryProject {
    let config = format!(
        "delivery: {{}}\nlimits: {{max_continuations: 0}}\nagents:\n  strict:\n    type: command\n    command: >-\n      \
         cat > $HOME/prompt; echo asked >> $HOME/asked;\n      \
         id=$(sed -n 's/.*\"const\": *\"\\([0-9a-f]*\\)\".*/\\1/p' $HOME/prompt | head -1);\n      \
         sed \"s/ID/$id/\" $HOME/answer\n\
         gatekeepers:\n  qa: {{agent: strict}}\nhooks:\n  before_merge:\n    - gatekeeper: qa\n    \
         - {{name: green, command: \"{GREEN}\"}}\n"
    );
    let project = DeliveryProject::new(&config, &[("a.txt", "a\n")]);
    project.json_values(&["agents", "trust", "--yes"]);
    let home = project.root().parent().unwrap().join("home");
    let refusal = r#"{"review": "ID", "verdict": "reject", "summary": "no", "findings": [
        {"file": "work.txt", "line": 1, "message": "not like this", "severity": "blocker"}]}"#;
    fs::write(home.join("answer"), refusal).unwrap();
    project
}

fn asked(project: &DeliveryProject) -> usize {
    let home = project.root().parent().unwrap().join("home");
    fs::read_to_string(home.join("asked")).unwrap_or_default().lines().count()
}

fn problem(project: &DeliveryProject) -> String {
    let list = project.json_values(&["inbox", "list"]).remove(0);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    list[0]["key"].as_str().unwrap().to_owned()
}

#[test]
fn an_approved_submission_is_merged_without_another_review() {
    let project = project();
    project.add("t1", &[]);
    project.does("t1", 1, "echo fine > work.txt");
    assert_eq!(project.run_tasks().code, 6);
    assert_eq!(project.merge()["t1"].0, "blocked");
    let key = problem(&project);
    let shown = project.json_values(&["inbox", "show", &key]).remove(0);
    assert!(shown["details"].to_string().contains("not like this"), "{shown}");
    assert!(shown["next"].to_string().contains("inbox approve"), "{shown}");
    let approved = project.json_values(&["inbox", "approve", &key]).remove(0);
    assert_eq!(
        (&approved["state"], &approved["next"]),
        (&"submitted".into(), &"hookloop merge".into())
    );
    let before = asked(&project);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!((asked(&project), project.on_main("work.txt").as_str()), (before, "fine\n"));
    assert_eq!(project.json_values(&["inbox", "list"]).remove(0), serde_json::json!([]));
    project.rebuild();
}

#[test]
fn an_approval_skips_no_failing_gate_and_covers_one_commit() {
    let project = project();
    project.add("t1", &[]);
    project.does("t1", 1, "echo bad > work.txt");
    assert_eq!(project.run_tasks().code, 6);
    assert_eq!(project.merge()["t1"].0, "blocked");
    let refused = problem(&project);
    project.json_values(&["inbox", "approve", &refused]);
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "blocked", "{fates:?}");
    assert!(fates["t1"].1.contains("green"), "{fates:?}");
    assert_eq!(project.on_main("work.txt"), "");
    // Changed work has to be reviewed again.
    let red = problem(&project);
    assert_ne!(red, refused);
    project.does("t1", 2, "echo better > work.txt");
    project.json_values(&["inbox", "answer", &red, "It must not say that."]);
    assert_eq!(project.run_tasks().code, 6);
    assert!(
        project.prompt("t1", 2).contains("It must not say that."),
        "{}",
        project.prompt("t1", 2)
    );
    let before = asked(&project);
    assert_eq!(project.merge()["t1"].0, "blocked");
    assert!(asked(&project) > before);
}

/// A merge that needs a person is one problem, even if it is attempted several times.
#[test]
fn repeated_attempts_of_a_blocked_merge_are_one_inbox_problem() {
    use std::os::unix::fs::PermissionsExt;
    let project = DeliveryProject::new("delivery: {}\n", &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo fine > work.txt");
    assert_eq!(project.run_tasks().code, 6);
    let guard = project.remote().join("hooks/pre-receive");
    fs::create_dir_all(guard.parent().unwrap()).unwrap();
    fs::write(&guard, "#!/bin/sh\n! grep -q refs/heads/main\n").unwrap();
    fs::set_permissions(&guard, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(project.merge()["t1"].0, "waits");
    let key = problem(&project);
    assert_eq!(project.json_values(&["inbox", "show", &key])[0]["type"], "merge_blocked");
    assert_eq!(project.merge()["t1"].0, "waits");
    assert_eq!(problem(&project), key);
    project.rebuild();
    // The answer goes to the author, so that the work can be changed.
    project.json_values(&["inbox", "answer", &key, "Use the other branch."]);
    assert_eq!(project.state("t1"), "ready");
    assert_eq!(project.run_tasks().code, 6);
    assert!(
        project.prompt("t1", 2).contains("Use the other branch."),
        "{}",
        project.prompt("t1", 2)
    );
    assert_eq!(project.merge()["t1"].0, "waits");
    assert_ne!(problem(&project), key);
    fs::remove_file(&guard).unwrap();
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(project.json_values(&["inbox", "list"]).remove(0), serde_json::json!([]));
}
