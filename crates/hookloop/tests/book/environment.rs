//! Compares the page of environment variables with the variables that hooks and agents get and that
//! hookloop reads.

use std::collections::BTreeSet;
use std::fs;

use hookloop_testkit::eventually;

use crate::book::structure::pages_under;
use crate::cli::{DEADLINE, Project};
use crate::documents::{names, root, table};

const PAGE: &str = "docs/reference/environment.md";

/// The pages of the hook points list the variables that a hook got.
#[test]
fn what_a_hook_has() {
    let mut seen = BTreeSet::new();
    for page in pages_under("points").iter().filter(|page| !page.ends_with("README.md")) {
        let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
        let line = text.lines().find(|line| line.starts_with("| environment")).unwrap();
        // The names after the link to the base set.
        seen.extend(names(line.rsplit_once(") |").unwrap().1));
    }
    assert_eq!(table(PAGE, "Variables of a hook", 0), seen);
}

#[test]
fn what_an_agent_has() {
    let project = Project::new();
    let turn = r#"[{"run": "env > seen", "say": "Seen.\n<promise>COMPLETE</promise>"}]"#;
    project.write("turns.json", turn);
    assert_eq!(project.run(&["run", "Look", "--agent", "scripted:turns.json"]).code, 6);
    let seen = fs::read_to_string(project.root().join("seen")).unwrap();
    let seen =
        seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned());
    let ours: BTreeSet<String> = seen.filter(|name| name.starts_with("HOOKLOOP_")).collect();
    assert_eq!(table(PAGE, "Variables of an agent", 0), ours);
}

/// Sets each variable to a value with a visible effect. Variables of other programs (`PATH`, tokens
/// of a forge, settings of agents) are tested by the features that use them.
#[test]
fn what_hookloop_reads_is_heeded() {
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().to_str().unwrap();
    let status = |name: &str, value: &str| {
        let project = Project::new();
        let mut command = project.hookloop(&["status", "--json"]);
        let output = command.env(name, value).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let plain = status("HOOKLOOP_NOTHING", "1");
    for (name, value) in [
        ("XDG_STATE_HOME", place),
        ("HOOKLOOP_STORE", "no-such-store"),
        ("HOOKLOOP_POLICY", "/no/such/policy.yaml"),
    ] {
        let said = status(name, value);
        assert!(said.contains(value) && !plain.contains(value), "{name}: {said}");
    }
    let listed = table(PAGE, "Variables that hookloop reads", 0);
    for name in [
        "XDG_STATE_HOME",
        "HOOKLOOP_STORE",
        "HOOKLOOP_POLICY",
        "HOOKLOOP_AGENT",
        "HOOKLOOP_CLAIMANT",
        "HOOKLOOP_TASK_ID",
        "HOOKLOOP_EPOCH",
        "HOOKLOOP_SESSION",
    ] {
        assert!(listed.contains(name), "{name}");
    }
}

/// A process with a session's variable counts as an agent and may not run commands reserved for a
/// person.
#[test]
fn who_a_command_is_from() {
    let project = Project::new();
    project.add("A", &["--id", "a"]);
    let mut command = project.hookloop(&["task", "claim", "a", "--json"]);
    let output = command.env("HOOKLOOP_CLAIMANT", "ada").output().unwrap();
    let claimed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(claimed["claim"]["agent"], "ada");
    let epoch = claimed["epoch"].to_string();
    let mut command = project.hookloop(&["task", "complete", "a"]);
    let fenced = [("HOOKLOOP_TASK_ID", "a"), ("HOOKLOOP_EPOCH", epoch.as_str())];
    assert!(command.envs(fenced).output().unwrap().status.success());
    let mut command = project.hookloop(&["fleet", "pause"]);
    let refused = command.env("HOOKLOOP_SESSION", "0q2v8k1m5x7c").output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    eventually("the task", DEADLINE, || (project.state_of("a") == "completed").then_some(()));
}
