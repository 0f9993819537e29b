//! Work that changes the gates' own files is merged only after a person has approved it.

use crate::delivery_project::{DeliveryProject, GREEN};

const UNTRUSTED: i32 = 3;

/// Returns a project whose only gate blocks if a file contains `bad`.
fn project() -> DeliveryProject {
    let config = format!(
        "delivery: {{}}\nlimits: {{gate_retries: 0}}\nhooks:\n  stop:\n    - {{name: green, command: \"{GREEN}\"}}\n"
    );
    DeliveryProject::new(&config, &[("a.txt", "a\n")])
}

fn problem(project: &DeliveryProject) -> serde_json::Value {
    let list = project.json_values(&["inbox", "list"]).remove(0);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    project.json_values(&["inbox", "show", list[0]["key"].as_str().unwrap()]).remove(0)
}

/// BROKEN.md A1: the first task removes the gates, the second one breaks the code.
#[test]
fn work_that_removes_the_gates_waits_for_a_person_and_later_work_is_gated() {
    let project = project();
    let gates = project.on_main("hookloop.yaml");
    project.add("t1", &[]);
    project.does("t1", 1, "printf 'version: 1\\ndelivery: {}\\n' > hookloop.yaml");
    assert_eq!(project.run_tasks().code, 0);
    // The inbox asks a person as soon as the work is submitted.
    let asked = problem(&project);
    assert_eq!(asked["type"], "merge_blocked", "{asked}");
    assert!(asked["reason"].as_str().unwrap().contains("hookloop.yaml"), "{asked}");
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "waits", "{fates:?}");
    assert!(fates["t1"].1.contains("hookloop.yaml"), "{fates:?}");
    assert_eq!(
        problem(&project)["key"],
        asked["key"],
        "it is one problem, however often it is found"
    );
    assert_eq!(project.on_main("hookloop.yaml"), gates);
    // The second task has to pass the previous gates.
    project.git(&["pull", "-q", "origin", "main"]);
    project.add("t2", &[]);
    project.does("t2", 1, "echo bad > work.txt");
    assert_ne!(project.run_tasks().code, 0);
    project.merge();
    assert_eq!(project.on_main("work.txt"), "");
    assert_eq!(project.on_main("hookloop.yaml"), gates);
    project.rebuild();
}

#[test]
fn approved_gate_changes_are_merged_and_need_trust_before_the_next_session() {
    let project = project();
    project.add("t1", &[]);
    project.does("t1", 1, "printf 'version: 1\\ndelivery: {}\\n' > hookloop.yaml");
    assert_eq!(project.run_tasks().code, 0);
    let key = problem(&project)["key"].as_str().unwrap().to_owned();
    project.json_values(&["inbox", "approve", &key]);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert!(!project.on_main("hookloop.yaml").contains("green"));
    assert_eq!(project.json_values(&["inbox", "list"]).remove(0), serde_json::json!([]));
    // Merging the file is one decision; trusting it for sessions is another.
    project.git(&["pull", "-q", "origin", "main"]);
    project.add("t2", &[]);
    let ran = project.run_tasks();
    assert_eq!(ran.code, UNTRUSTED, "{}", ran.stderr);
    assert!(ran.stderr.contains("`green` is gone"), "{}", ran.stderr);
    let merge = project.json_command(&["merge"]).output().unwrap();
    assert_eq!(merge.status.code(), Some(UNTRUSTED), "{merge:?}");
    project.trust();
    project.does("t2", 1, "echo fine > work.txt");
    project.run_tasks();
    assert_eq!(project.merge()["t2"].0, "merged");
}

#[test]
fn work_that_changes_a_script_of_a_gate_waits_for_a_person() {
    let config = "delivery: {}\nhooks:\n  stop:\n    - {name: tests, command: sh ci/test.sh}\n";
    let project =
        DeliveryProject::new(config, &[("ci/test.sh", "true\n"), ("ci/other.sh", "true\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo exit 0 > ci/test.sh");
    project.add("t2", &[]);
    project.does("t2", 1, "echo more > ci/other.sh");
    assert_eq!(project.run_tasks().code, 0);
    let asked = problem(&project);
    assert!(asked["reason"].as_str().unwrap().contains("ci/test.sh"), "{asked}");
    let fates = project.merge();
    assert_eq!((fates["t1"].0.as_str(), fates["t2"].0.as_str()), ("waits", "merged"), "{fates:?}");
    assert_eq!(project.on_main("ci/test.sh"), "true\n");
    assert_eq!(project.on_main("ci/other.sh"), "more\n");
}

/// A commit of the base that is merged into the work does not count as a change of the work.
#[test]
fn a_gate_change_on_the_base_does_not_block_work_on_an_older_base() {
    let project = project();
    project.add("t1", &[]);
    project.does("t1", 1, "echo fine > work.txt");
    assert_eq!(project.run_tasks().code, 0);
    let more = format!("{}# more\n", project.on_main("hookloop.yaml"));
    project.push_to_main("hookloop.yaml", &more);
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(project.on_main("hookloop.yaml"), more);
}
