//! Checks that commands that only read run no hooks.

use crate::cli::Project;

#[test]
fn a_command_that_reads_runs_no_hook() {
    let project = Project::with_hook("task_created", "0.4", "");
    let task = project.leave_due();
    project.write("pause", "0");
    let checks: [&[&str]; 23] = [
        &["status"],
        &["log"],
        &["why", &task],
        &["task", "list"],
        &["task", "ready"],
        &["task", "show", &task],
        &["task", "graph"],
        &["task", "export"],
        &["sessions", "list"],
        &["hooks", "list"],
        &["hooks", "show", "slow"],
        &["hooks", "explain", "task_created"],
        &["agents", "list"],
        &["usage"],
        &["inbox", "list"],
        &["schedule", "list"],
        &["worktrees", "list"],
        &["doctor"],
        &["verify"],
        &["policy"],
        &["fleet", "status"],
        &["hooks", "trust", "--show"],
        &["schema"],
    ];
    for args in checks {
        project.run(args);
        assert_eq!(project.runs(), [format!("start {task}")], "{args:?} ran the hook");
    }
    assert_eq!(project.json(&["status"])["reactions_due"], 1);
    project.ok(&["task", "add", "another", "--id", "another"]);
    let runs = ["start left", "start left", "end left", "start another", "end another"];
    assert_eq!(project.runs(), runs);
    assert_eq!(project.json(&["status"])["reactions_due"], 0);
}
