//! Kills the process that runs hooks repeatedly while they run.

use std::time::Duration;

use super::is_full;
use crate::cli::Project;

/// Requests an action that takes effect once, no matter how often the hook runs.
const ACTION: &str = r#"echo '{"hookloop":{"actions":[{"type":"log","payload":{"type":"done"}}]}}'
"#;
/// Processes that try to take over concurrently.
const SUCCESSORS: usize = 3;

#[test]
fn a_reaction_of_a_killed_process_is_taken_over_without_overlapping_runs() {
    let kills = if is_full() { 1_000 } else { 20 };
    let project = Project::with_hook("task_completed", "0.05", ACTION);
    let (mut interrupted, mut runs_before) = (0, 0);
    for round in 0..kills {
        let task = format!("t{round}");
        project.ok(&["task", "add", "work", "--id", &task]);
        let mut holder = project.start(&["task", "complete", &task]);
        project.wait_for_start(&task, 1);
        // The kill is at another moment of the hook in each round.
        std::thread::sleep(Duration::from_millis(round % 40));
        holder.kill().unwrap();
        // The successors start before the killed process and its hook have ended.
        let successors = [(); SUCCESSORS].map(|()| project.start(&["dispatch"]));
        interrupted += u64::from(holder.wait().unwrap().code().is_none());
        for mut successor in successors {
            assert!(successor.wait().unwrap().success());
        }
        let end = format!("end {task}");
        let runs = project.runs();
        assert!(runs[runs_before..].contains(&end), "{task} was not run to its end");
        runs_before = runs.len();
        project.assert_no_overlap();
    }
    assert!(interrupted > kills / 2, "{interrupted} of {kills} kills hit a hook");
    let done = project.events_of("hook.slow.done");
    let mut causes: Vec<String> = done.iter().map(|event| event["node_id"].to_string()).collect();
    causes.sort_unstable();
    causes.dedup();
    assert_eq!(
        (done.len() as u64, causes.len() as u64),
        (kills, kills),
        "actions took effect once"
    );
    assert_eq!(project.json(&["status"])["reactions_due"], 0);
}
