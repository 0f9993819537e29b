//! The TUI on a real terminal, which tmux provides and reads.

mod leaving;
mod many;
mod running;
mod tmux;
mod undoing;
mod watching;
mod working;

use std::os::unix::fs::PermissionsExt;

use crate::cli::Project;

/// An agent that prints a line, and ends its turn when the test allows it.
const AGENT: &str = r#"#!/bin/sh
cat > "prompt-$HOOKLOOP_ITERATION"
echo "at work on iteration $HOOKLOOP_ITERATION"
while [ ! -e "go-$HOOKLOOP_ITERATION" ]; do sleep 0.05; done
echo '<promise>COMPLETE</promise>'
"#;

const HOOKS: &str = "hooks:
  pre_iteration:
    - {name: context, command: 'echo some context', pipe_output: true}
  stop:
    - {name: tests, command: 'test -e fixed || { echo two tests fail; exit 2; }'}
";

/// The command that a test types.
const RUN: &str =
    "hookloop run 'Make it work' --agent command:./agent.sh --gate-retries 1; echo \"exit $?\"";

/// Returns a trusted project with [`AGENT`].
fn project(hooks: &str) -> Project {
    let project = Project::with_config(hooks);
    project.ok(&["init", "--yes"]);
    let agent = project.write("agent.sh", AGENT);
    std::fs::set_permissions(agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.trust();
    project
}

/// Returns the id of the only session.
fn session(project: &Project) -> String {
    let list = project.json(&["sessions", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    list[0]["id"].as_str().unwrap().to_owned()
}
