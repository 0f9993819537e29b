//! Commands of hooks and agents use the log of their project, or fail.

use hookloop_testbed::Server;

use super::lines_of;
use crate::cli::{BINARY, Project};
use crate::nats::machine_on;

const ADDS: &str = "hooks:
  task_completed:
    - command: hookloop task add from-the-hook
";

#[test]
fn a_hooks_command_reaches_the_log_in_the_users_state_home() {
    let project = Project::with_config(ADDS);
    let elsewhere = project.home().join("elsewhere");
    let run = |args: &[&str]| {
        let output = project.hookloop(args).env("XDG_STATE_HOME", &elsewhere).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["hooks", "trust", "--yes"]);
    run(&["task", "add", "work", "--id", "work"]);
    run(&["task", "complete", "work"]);
    assert!(run(&["task", "list"]).contains("from-the-hook"));
    assert!(!project.home().join(".local/state").exists(), "another log was opened");
}

#[test]
fn a_hooks_command_reaches_the_log_on_the_users_store() {
    let server = Server::single();
    let machine = machine_on(&server, "shared");
    // The store comes from the user's configuration, not from the project's.
    machine.write("hookloop.yaml", &format!("version: 1\nproject: shared\n{ADDS}"));
    let run = |args: &[&str]| {
        let bin = std::path::Path::new(BINARY).parent().unwrap().display();
        let mut command = machine.hookloop(args);
        command.env("PATH", format!("{bin}:/usr/bin:/bin")).env("HOOKLOOP_STORE", server.url());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["hooks", "trust", "--yes"]);
    run(&["task", "add", "work", "--id", "work"]);
    run(&["task", "complete", "work"]);
    assert!(run(&["task", "list"]).contains("from-the-hook"));
    let states = std::fs::read_dir(machine.home().join(".local/state/hookloop")).unwrap();
    for state in states {
        assert!(!state.unwrap().path().join("hookloop.db").exists(), "a local log was made");
    }
}

/// Returns the errors and the exit code of `line`, run as a hook.
fn hook_says(project: &Project, line: &str) -> Vec<String> {
    project.write("hook.sh", &format!("({line}) 2> said; echo $? >> said\n"));
    project.configure("hooks:\n  task_created:\n    - command: sh hook.sh\n");
    project.trust();
    project.ok(&["task", "add", "work"]);
    lines_of(&project.root(), "said")
}

#[test]
fn a_hooks_command_that_would_open_another_log_of_the_project_is_refused() {
    let project = Project::bare();
    let other = project.home().join("other");
    let lines = [
        ("XDG_STATE_HOME=$HOME/other hookloop task add x", "the state directory"),
        ("HOME=$HOME/other hookloop status", "the state directory"),
        ("HOOKLOOP_STORE=nats://127.0.0.1:1 hookloop task add x", "the store"),
    ];
    for (line, what) in lines {
        let said = hook_says(&project, line);
        assert!(said[0].contains(what), "{line}: {said:?}");
        assert_eq!(said.last().unwrap(), "1", "{line}: {said:?}");
        assert!(!other.exists(), "{line} made something");
    }
}

#[test]
fn a_hooks_command_opens_another_project_with_a_state_of_its_own() {
    let project = Project::bare();
    let said = hook_says(
        &project,
        "mkdir -p ../other; cd ../other; export XDG_STATE_HOME=$HOME/other
         hookloop init --yes && hookloop task add x",
    );
    assert_eq!(said, ["0"]);
    assert!(project.home().join("other/hookloop").is_dir());
}
