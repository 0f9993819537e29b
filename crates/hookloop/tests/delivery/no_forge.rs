//! Remotes on no forge that hookloop supports.

use std::fs;

use hookloop_testkit::SessionOutput;

use crate::delivery_project::DeliveryProject;

/// GitLab, Forgejo, and GitHub Enterprise without `forge: github`.
const ADDRESSES: [&str; 3] = [
    "https://gitlab.example/acme/app.git",
    "git@forgejo.example:acme/app.git",
    "https://github.acme.example/acme/app.git",
];
const FILES: &[(&str, &str)] = &[("a.txt", "a\n")];

/// Returns the configuration of a project that delivers, with a gate that proves its work.
fn gated(delivery: &str) -> String {
    format!("delivery: {delivery}\nhooks:\n  stop:\n    - {{name: work, file: work.txt}}\n")
}

/// Returns the status of each run of `create_pr`, and the number of its receipts.
fn create_pr(ran: &SessionOutput) -> (Vec<&str>, usize) {
    let runs = ran.all("hook_ran").into_iter().filter(|ran| ran["hook_name"] == "create_pr");
    let receipts = ran.all("receipt_recorded").into_iter();
    (
        runs.map(|run| run["status"].as_str().unwrap()).collect(),
        receipts
            .filter(|receipt| receipt["gate"] == "create_pr" && receipt["status"] != "failed")
            .count(),
    )
}

#[test]
fn a_submission_to_an_unsupported_forge_needs_a_person() {
    for url in ADDRESSES {
        let hooks = "hooks:\n  after_submit: [merge]\n";
        let project = DeliveryProject::at_address(url, &format!("delivery: {{}}\n{hooks}"), FILES);
        let main = project.at_remote(&["rev-parse", "main"]);
        project.add("t1", &[]);
        project.does("t1", 1, "echo work > work.txt");
        let ran = project.run_tasks();
        assert_eq!(ran.code, 3, "{url}: {}", ran.stderr);
        assert_eq!(create_pr(&ran), (vec!["failed"], 0), "{url}");
        assert_eq!(ran.submitted(), ["escalate"], "{url}");
        let reason = project.task("t1")["blocked"]["reason"].to_string();
        for part in ["delivery: {forge: github}", "delivery: {forge: none}"] {
            assert!(reason.contains(part), "{url}: {reason}");
        }
        assert_eq!(project.at_remote(&["branch", "--list", "hookloop/*"]), "", "{url}");
        assert_eq!(project.at_remote(&["rev-parse", "main"]), main, "{url}");
    }
}

#[test]
fn forge_none_merges_branches_without_pull_requests() {
    let project = DeliveryProject::at_address(ADDRESSES[0], &gated("{forge: none}"), FILES);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(create_pr(&ran), (vec!["skipped"], 0));
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
    assert_eq!(project.merge()["t1"].0, "merged");
    assert_eq!(project.on_main("work.txt"), "work\n");
}

#[test]
fn a_merge_into_a_remote_base_without_a_forge_waits_for_a_person() {
    let project = DeliveryProject::at_address(ADDRESSES[1], &gated("{forge: none}"), FILES);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    assert_eq!(project.run_tasks().code, 0);
    let main = project.at_remote(&["rev-parse", "main"]);
    fs::write(project.root().join("hookloop.yaml"), format!("version: 1\n{}", gated("{}")))
        .unwrap();
    let (fate, why) = project.merge().remove("t1").unwrap();
    assert_eq!(fate, "waits");
    assert!(why.contains("delivery: {forge: none}"), "{why}");
    assert_eq!(project.at_remote(&["rev-parse", "main"]), main);
    assert_eq!(project.state("t1"), "submitted");
}

#[test]
fn a_local_remote_gets_a_branch_and_create_pr_is_skipped() {
    let project = DeliveryProject::new(&gated("{}"), FILES);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(create_pr(&ran), (vec!["skipped"], 0));
    assert_eq!(project.merge()["t1"].0, "merged");
}
