//! Only one session at a time changes a checkout; another one gets its own worktree.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use hookloop_testkit::{SessionOutput, TestProject, eventually};

use super::{SOON, trusted_project};
use crate::support::project_with;

const SLOW: &str = "#!/bin/sh\ncat >/dev/null\necho begun >> begun\nsleep 98.765\n";
const QUICK: &str =
    "#!/bin/sh\ncat >/dev/null\necho work > made\necho '<promise>COMPLETE</promise>'\n";

fn start(project: &TestProject) -> Child {
    let args = ["run", "x", "--name", "first", "--agent", "command:./slow.sh"];
    let child = project.json_command(&args).stdin(Stdio::null()).spawn().unwrap();
    eventually("the agent begins", SOON, || !project.read("begun").is_empty());
    child
}

fn stage() -> TestProject {
    trusted_project("version: 1\n", &[("slow.sh", SLOW), ("quick.sh", QUICK)])
}

#[test]
fn a_second_session_in_a_checkout_is_refused_until_the_first_is_over() {
    let project = stage();
    let mut first = start(&project);
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    for work in [&["run", "y"][..], &["run", "--tasks"]] {
        let args = [work, &["--agent", "command:./quick.sh"]].concat();
        let second = SessionOutput::from(project.json_command(&args).output().unwrap());
        assert_eq!(second.code, 1, "{}", second.stderr);
        for part in [&id, &first.id().to_string(), "hookloop stop", "--worktree"] {
            assert!(second.stderr.contains(part), "{part}: {}", second.stderr);
        }
    }
    assert_eq!(project.json(&["sessions", "list"]).as_array().unwrap().len(), 1);
    // A crashed process does not block the next session.
    first.kill().unwrap();
    first.wait().unwrap();
    let args = ["run", "y", "--agent", "command:./quick.sh"];
    let next = SessionOutput::from(project.json_command(&args).output().unwrap());
    assert_eq!(next.code, 6, "{}", next.stderr);
}

#[test]
fn a_session_may_share_a_checkout_if_its_user_says_so() {
    let project = stage();
    let mut first = start(&project);
    let args = ["run", "y", "--agent", "command:./quick.sh", "--share-checkout"];
    let second = SessionOutput::from(project.json_command(&args).output().unwrap());
    assert_eq!(second.code, 6, "{}", second.stderr);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_session_with_a_worktree_works_beside_another() {
    let project = stage();
    let mut first = start(&project);
    let args = ["run", "y", "--agent", "command:./quick.sh", "--worktree"];
    let second = SessionOutput::from(project.json_command(&args).output().unwrap());
    assert_eq!(second.code, 6, "{}", second.stderr);
    assert!(!project.root().join("made").exists(), "the work is in the checkout");
    let told = second.stderr.lines().find(|line| line.contains("\"worktree\"")).unwrap();
    let told: serde_json::Value = serde_json::from_str(told).unwrap();
    let worktree = &told["worktree"];
    let path = std::path::Path::new(worktree["path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(path.join("made")).unwrap(), "work\n");
    let name = worktree["name"].as_str().unwrap();
    let listed = project.json(&["worktrees", "list"]);
    assert_eq!(listed[0]["branch"], worktree["branch"], "{listed}");
    assert_eq!(listed[0]["state"], "complete", "{listed}");
    assert_eq!(format!("session-{}", listed[0]["session"].as_str().unwrap()), name);
    // A worktree with unique work stays until its user forces the removal.
    let kept = project.json(&["worktrees", "clean", name]);
    assert_eq!(kept[0]["removed"], false, "{kept}");
    let gone = project.json(&["worktrees", "clean", name, "--force"]);
    assert_eq!(gone[0]["removed"], true, "{gone}");
    assert!(!path.exists());
    first.kill().unwrap();
    first.wait().unwrap();
}

/// The output would count as the agent's work, and would change while gates run.
#[test]
fn a_session_does_not_write_its_output_into_its_checkout() {
    let project = stage();
    let run_into = |args: &[&str], file: &Path| {
        let out = std::fs::File::create(file).unwrap();
        let (err, args) = (out.try_clone().unwrap(), [&["run", "y"], args].concat());
        let args = [&args[..], &["--agent", "command:./quick.sh"]].concat();
        project.json_command(&args).stdout(out).stderr(err).status().unwrap().code()
    };
    let inside = project.root().join("run.out");
    assert_eq!(run_into(&[], &inside), Some(2));
    let told = project.read("run.out");
    assert!(told.contains("run.out") && told.contains(".gitignore"), "{told}");
    assert!(!project.root().join("made").exists(), "the agent was started");
    assert_eq!(run_into(&["--worktree"], &inside), Some(6), "{}", project.read("run.out"));
    std::fs::write(project.root().join(".gitignore"), "run.out\n").unwrap();
    assert_eq!(run_into(&[], &inside), Some(6), "{}", project.read("run.out"));
    std::fs::remove_file(project.root().join("made")).unwrap();
    let outside = project.root().with_file_name("run.out");
    assert_eq!(run_into(&[], &outside), Some(6));
}

#[test]
fn a_worktree_in_a_repository_without_a_commit_is_refused_with_the_command_to_type() {
    let project = project_with("version: 1\n");
    project.write("quick.sh", QUICK);
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(project.root()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet", "-b", "main"]);
    let args = ["run", "y", "--agent", "command:./quick.sh", "--worktree"];
    let refused = SessionOutput::from(project.json_command(&args).output().unwrap());
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let error: serde_json::Value = serde_json::from_str(refused.stderr.trim()).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("the repository has no commit yet"), "{error}");
    let typed = error["error"]["hint"].as_str().unwrap();
    git(&["config", "user.name", "t"]);
    git(&["config", "user.email", "t@example.invalid"]);
    let mut shell = Command::new("sh");
    let done = shell.args(["-c", typed]).current_dir(project.root()).output().unwrap();
    assert!(done.status.success(), "{typed}: {done:?}");
    let ran = SessionOutput::from(project.json_command(&args).output().unwrap());
    assert_eq!(ran.code, 6, "{}", ran.stderr);
}
