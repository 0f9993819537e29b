//! Many processes read a project while a slow hook runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::is_full;
use crate::cli::Project;

const OBSERVERS: usize = 16;
/// The number of observers that add tasks.
const ADDERS: usize = 2;
const READERS: [&[&str]; 5] = [
    &["status"],
    &["log", "--json"],
    &["task", "list"],
    &["task", "ready"],
    &["hooks", "list", "--json"],
];

#[test]
fn each_hook_runs_once_beside_sixteen_observers() {
    let (pause, events) = if is_full() { ("2", 100) } else { ("0.3", 10) };
    let project = Project::with_hook("task_created", pause, "");
    let tasks: String =
        (0..events).map(|n| format!("{{\"id\":\"t{n}\",\"goal\":\"g\"}}\n")).collect();
    project.write("tasks.jsonl", &tasks);
    let is_over = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let (project, is_over) = (&project, &is_over);
        let observers: Vec<_> = (0..OBSERVERS)
            .map(|observer| scope.spawn(move || observe(project, observer, is_over)))
            .collect();
        project.ok(&["task", "import", "tasks.jsonl"]);
        is_over.store(true, Ordering::SeqCst);
        observers.into_iter().map(|observer| observer.join().unwrap()).sum::<usize>()
    });
    assert!(looks >= OBSERVERS * 2, "{looks} looks");
    let status = project.json(&["status"]);
    assert_eq!(status["reactions_due"], 0, "{status}");
    let created = project.goals().len();
    assert!(created > events, "the adders added nothing");
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for line in project.runs() {
        *runs.entry(line).or_default() += 1;
    }
    assert_eq!(runs.len(), 2 * created, "each task has a start and an end");
    assert!(runs.values().all(|count| *count == 1), "{runs:?}");
    project.assert_no_overlap();
    assert_eq!(project.events_of("hook_ran").len(), created);
}

/// Runs commands until `is_over` is set; returns their number.
fn observe(project: &Project, observer: usize, is_over: &AtomicBool) -> usize {
    for look in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return look;
        }
        if observer < ADDERS {
            project.ok(&["task", "add", "more"]);
        } else {
            project.ok(READERS[(observer + look) % READERS.len()]);
        }
    }
    unreachable!("the loop returns")
}

#[test]
fn a_command_waits_for_the_hooks_of_its_own_event() {
    let more = r#"[ "$HOOKLOOP_TASK_ID" = second ] || exit 0
echo '{"hookloop":{"actions":[{"type":"create_task","payload":{"goal":"Follow up"}}]}}'
"#;
    let project = Project::with_hook("task_completed", "1", more);
    for task in ["first", "second"] {
        project.ok(&["task", "add", task, "--id", task]);
    }
    let mut holder = project.start(&["task", "complete", "first"]);
    project.wait_for_start("first", 1);
    let done = project.json(&["task", "complete", "second"]);
    assert_eq!(done["added"].as_array().unwrap().len(), 1, "{done}");
    assert!(project.runs().contains(&"end second".to_owned()));
    assert!(holder.wait().unwrap().success());
    assert_eq!(project.runs().len(), 4);
    project.assert_no_overlap();
}
