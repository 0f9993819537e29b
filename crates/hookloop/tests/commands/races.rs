//! Concurrent processes that compete for the same task or event.

use std::process::{Child, Stdio};

use serde_json::Value;

use crate::cli::{ProgramOutput, Project};

const PROCESSES: usize = 4;

/// Runs the commands concurrently.
pub(crate) fn at_once(project: &Project, commands: &[Vec<&str>]) -> Vec<ProgramOutput> {
    let spawn = |args: &Vec<&str>| -> Child {
        let mut command = project.hookloop(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = commands.iter().map(spawn).collect();
    children.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect()
}

#[test]
fn only_one_of_concurrent_completions_of_a_task_succeeds() {
    let project = Project::new();
    for round in 0..5 {
        let id = format!("t{round}");
        project.add("Goal", &["--id", &id, "--label", "agent"]);
        let runs = at_once(&project, &vec![vec!["task", "complete", &id]; PROCESSES]);
        assert_eq!(runs.iter().filter(|run| run.code == 0).count(), 1, "{runs:?}");
        for lost in runs.iter().filter(|run| run.code != 0) {
            assert_eq!(lost.code, 1, "{lost:?}");
            assert!(lost.stderr.contains(&format!("task `{id}` is already completed")), "{lost:?}");
        }
    }
    assert_eq!(project.events_of("task_completed").len(), 5);
    assert_eq!(project.goals().len(), 10, "one review per task");
}

#[test]
fn tasks_that_are_added_at_once_are_all_there() {
    let project = Project::new();
    let goals: Vec<String> = (0..12).map(|n| format!("Goal {n:02}")).collect();
    let commands: Vec<Vec<&str>> = goals.iter().map(|goal| vec!["task", "add", goal]).collect();
    let runs = at_once(&project, &commands);
    assert!(runs.iter().all(|run| run.code == 0), "{runs:?}");
    let mut found = project.goals();
    found.sort();
    assert_eq!(found, goals);
    project.ok(&["verify"]);
}

#[test]
fn two_edges_do_not_close_a_cycle_together() {
    for _ in 0..5 {
        let project = Project::new();
        for id in ["a", "b"] {
            project.add("Goal", &["--id", id]);
        }
        let there = vec!["task", "dep", "add", "a", "--on", "b"];
        let back = vec!["task", "dep", "add", "b", "--on", "a"];
        let mut codes: Vec<i32> =
            at_once(&project, &[there, back]).into_iter().map(|run| run.code).collect();
        codes.sort_unstable();
        assert_eq!(codes, [0, 1]);
        assert_eq!(project.events_of("dependency_added").len(), 1);
    }
}

#[test]
fn only_one_of_concurrent_first_commands_adds_the_task() {
    let project = Project::with_config("");
    let runs = at_once(&project, &vec![vec!["task", "add", "Goal", "--id", "x"]; PROCESSES]);
    assert_eq!(runs.iter().filter(|run| run.code == 0).count(), 1, "{runs:?}");
    assert_eq!(project.events_of("task_created").len(), 1);
    assert_eq!(project.events_of("hook_error"), [] as [Value; 0]);
}
