//! `log` and its filters.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use hookloop_testkit::json_lines;
use serde_json::Value;

use crate::cli::{DEADLINE, Project, types};

fn with_history() -> Project {
    let project = Project::new();
    project.add("A", &["--id", "a"]);
    project.add("B", &["--id", "b", "--depends-on", "a"]);
    project.ok(&["task", "start", "a"]);
    project.ok(&["task", "complete", "a"]);
    project
}

#[test]
fn filters_can_be_combined() {
    let project = with_history();
    let check = |filter: &[&str], expected: &[&str]| {
        let printed = project.ok(&[&["log", "--json"], filter].concat());
        let events = json_lines(&printed);
        assert_eq!(types(&events), expected, "{filter:?}");
    };
    let b = ["task_created", "dependency_added", "dependency_satisfied"];
    check(&["--task", "b"], &b);
    check(&["--task", "b", "--limit", "1"], &b[2..]);
    check(&["--task", "b", "--from", "3"], &b[1..]);
    check(&["--type", "task_created"], &["task_created", "task_created"]);
    let two = ["--type", "task_started", "--type", "task_completed"];
    check(&two, &["task_started", "task_completed"]);
    check(&["--type", "task_created", "--limit", "1"], &["task_created"]);
    check(&["--from", "5"], &["task_completed", "dependency_satisfied"]);
    check(&["--from", "2", "--limit", "1"], &["dependency_satisfied"]);
    check(&["--from", "99"], &[]);
    check(&["--limit", "2"], &["task_completed", "dependency_satisfied"]);
    check(&["--task", "b", "--limit", "0"], &b);
    check(&["--type", "task_created", "--limit", "0"], &["task_created", "task_created"]);
}

#[test]
fn an_unknown_event_type_is_a_usage_error() {
    let project = with_history();
    let error = project.fails(2, &["log", "--type", "task_created", "--type", "task_complete"]);
    let expected = "unknown event type `task_complete`; did you mean `task_completed`?";
    assert!(error.contains(expected), "{error}");
    project.fails(2, &["log", "--fleet", "--type", "teleported"]);
    for known in ["gates_evaluated", "hook.deploy.done"] {
        assert_eq!(project.ok(&["log", "--type", known]), "");
    }
}

#[test]
fn bookkeeping_is_shown_when_asked_for() {
    let project = with_history();
    project.add("C", &["--id", "c"]);
    project.ok(&["task", "dep", "add", "c", "--on", "b"]);
    assert!(!project.ok(&["log"]).contains("graph_advanced"));
    assert!(project.ok(&["log", "--all"]).contains("graph_advanced"));
}

#[test]
fn the_history_of_a_deleted_task_can_be_read() {
    let project = with_history();
    project.ok(&["task", "delete", "b"]);
    let events = json_lines(&project.ok(&["log", "--json", "--task", "b"]));
    assert_eq!(types(&events).last(), Some(&"task_deleted"));
}

#[test]
fn the_events_of_one_session_can_be_read() {
    let project = with_history();
    project.write("turns.json", r#"[{"say": "<promise>COMPLETE</promise>"}]"#);
    for name in ["first", "second"] {
        let agent = ["--agent", "scripted:turns.json", "--no-changes-ok"];
        let run = project.run(&[&["run", "Work", "--name", name], &agent[..]].concat());
        assert_eq!(run.code, 6, "complete, and no gate proved it: {run:?}");
    }
    let all = project.json_lines(&["log", "--type", "session_started"]);
    let id = all[0]["session"].as_str().unwrap();
    for wanted in [id, &id[..8], "first"] {
        let events = project.json_lines(&["log", "--session", wanted]);
        assert!(events.iter().all(|event| event["session"] == id), "{wanted}: {events:?}");
        let types = types(&events);
        assert_eq!(types[0], "session_started");
        assert!(types.contains(&"session_ended"), "{types:?}");
    }
    let filtered = ["log", "--session", "first", "--type", "turn_ended", "--limit", "1"];
    assert_eq!(types(&project.json_lines(&filtered)), ["turn_ended"]);
    let error = project.fails(1, &["log", "--session", "none"]);
    assert!(error.contains("hookloop sessions list"), "{error}");
    for other in [&["--task", "a"][..], &["--fleet"]] {
        let error = project.fails(2, &[&["log", "--session", "first"], other].concat());
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

#[test]
fn a_log_line_has_sequence_number_time_type_task_and_actor() {
    let project = with_history();
    let printed = project.ok(&["log", "--type", "task_started"]);
    let words: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!((words[0], words[2], words[3], words[4]), ("4", "task_started", "a", "tester"));
    assert!(words[1].ends_with('Z') && words[1].contains('T'), "{printed}");
}

#[test]
fn a_closed_pipe_on_the_output_is_not_an_error() {
    let project = Project::new();
    let tasks: String = (0..3_000).map(|n| format!("{{\"goal\": \"Goal {n}\"}}\n")).collect();
    project.write("tasks.jsonl", &tasks);
    project.ok(&["task", "import", "tasks.jsonl"]);
    for command in ["log", "log --json", "task export", "task list --limit 0", "task graph -n 3000"]
    {
        let run = project.shell(&format!("set -o pipefail; hookloop {command} | head -1"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
        assert_eq!(run.stdout.lines().count(), 1, "{command}");
    }
}

/// A running `log --follow`, killed on drop.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(project: &Project, args: &[&str]) -> Follower {
        let mut command = project.hookloop(&[&["log", "--follow", "--json"], args].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Follower { child, lines }
    }

    fn next(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(DEADLINE).unwrap()).unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn follow_prints_existing_and_new_events() {
    let project = Project::new();
    project.add("Before", &["--id", "before"]);
    let follower = Follower::start(&project, &[]);
    assert_eq!(follower.next()["node_id"], "before");
    project.add("After", &["--id", "after"]);
    assert_eq!(follower.next()["node_id"], "after");
    project.ok(&["task", "complete", "after"]);
    assert_eq!(follower.next()["type"], "task_completed");
}

#[test]
fn following_keeps_to_the_filters() {
    let project = Project::new();
    project.add("A", &["--id", "a"]);
    let follower = Follower::start(&project, &["--task", "a", "--type", "task_started"]);
    project.add("B", &["--id", "b"]);
    project.ok(&["task", "start", "b"]);
    project.ok(&["task", "start", "a"]);
    let event = follower.next();
    assert_eq!(
        (event["node_id"].as_str(), event["type"].as_str()),
        (Some("a"), Some("task_started"))
    );
}
