//! `watch` beside sessions that run in other processes.

use std::process::Stdio;

use hookloop_testkit::eventually;

use crate::cli::{DEADLINE, Project};
use crate::screens::tmux::Tmux;
use crate::screens::{HOOKS, RUN, project, session};

/// Starts a session in a separate process, without a terminal.
fn run(project: &Project) -> std::process::Child {
    let args = ["run", "Make it work", "--agent", "command:./agent.sh", "--gate-retries", "1"];
    let mut command = project.hookloop(&args);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("a turn", DEADLINE, || project.root().join("prompt-1").exists().then_some(()));
    child
}

#[test]
fn watch_shows_a_session_of_another_process_live() {
    let project = project(HOOKS);
    let mut running = run(&project);
    let tmux = Tmux::new(&project, 120, 40);
    tmux.line("hookloop watch");
    // The inbox is empty, so the sessions are shown first.
    tmux.see("▶ 1 running");
    tmux.keys(&["Enter"]);
    let seen = tmux.see("at work on iteration 1");
    assert!(seen.contains("pre_iteration context passed"), "{seen}");
    project.write("go-1", "");
    tmux.see("at work on iteration 2");
    tmux.keys(&["Left"]);
    let seen = tmux.see("receipt tests");
    assert!(seen.contains("sent back: ") && seen.contains("stop tests "), "{seen}");
    // The session has no terminal to ask on, so it ends and becomes a problem in the inbox.
    project.write("go-2", "");
    assert_eq!(running.wait().unwrap().code(), Some(3));
    tmux.text("1");
    let seen = tmux.see("hookloop resume");
    assert!(seen.contains("! 1 problem") && seen.contains("did not finish"), "{seen}");
    tmux.text("d");
    tmux.see("Dismiss ");
    tmux.text("y");
    tmux.see("The inbox is empty.");
    assert_eq!(project.events_of("problem_dismissed").len(), 1);
}

#[test]
fn answering_a_blocked_task_makes_the_task_ready_in_the_shown_graph() {
    let project = project("");
    project.add("Read old files", &["--id", "parser"]);
    project.add("Write it up", &["--id", "write", "--depends-on", "parser"]);
    project.ok(&["task", "block", "parser", "--reason", "Which encoding?"]);
    let tmux = Tmux::new(&project, 80, 24);
    tmux.line("hookloop watch");
    let seen = tmux.see("hookloop inbox answer");
    assert!(
        seen.contains("Which encoding?") && seen.contains("1 task waits for blocked tasks"),
        "{seen}"
    );
    tmux.text("3");
    let seen = tmux.see("✗ parser blocked Read old files");
    assert!(seen.contains("◌ write created Write it up"), "{seen}");
    tmux.text("1m");
    tmux.see("Answer to task:parser");
    tmux.text("latin-1");
    tmux.keys(&["Enter"]);
    tmux.see("The inbox is empty.");
    tmux.text("3");
    tmux.see("○ parser ready Read old files");
    assert_eq!(project.event("task_noted")["data"]["text"], "latin-1");
    // Changes by other processes are shown, too.
    project.ok(&["task", "complete", "parser"]);
    tmux.see("○ write ready Write it up");
}

#[test]
fn an_agent_cannot_dismiss_a_problem_in_watch() {
    let project = project("");
    project.add("Read old files", &["--id", "parser"]);
    project.ok(&["task", "block", "parser", "--reason", "Which encoding?"]);
    let tmux = Tmux::new(&project, 120, 24);
    tmux.line("HOOKLOOP_SESSION=x hookloop watch");
    tmux.see("Which encoding?");
    tmux.text("dy");
    tmux.see("only a person can dismiss");
    assert_eq!(project.events_of("problem_dismissed").len(), 0);
}

#[test]
fn a_session_of_another_process_is_stopped_by_a_key() {
    let project = project(HOOKS);
    let mut running = run(&project);
    let tmux = Tmux::new(&project, 120, 40);
    tmux.line("hookloop watch");
    tmux.see("▶ 1 running");
    tmux.text("2x");
    let id = session(&project);
    tmux.see(&format!("Stop session {id} now?"));
    tmux.text("n");
    tmux.see_that("no question", |seen| !seen.contains("Stop session"));
    assert_eq!(project.events_of("stop_requested").len(), 0);
    tmux.text("x");
    tmux.see(&format!("Stop session {id} now?"));
    tmux.text("y");
    assert_eq!(running.wait().unwrap().code(), Some(130));
    tmux.see("▶ 0 running");
    assert_eq!(project.event("session_ended")["data"]["outcome"], "cancelled");
    assert_eq!(project.event("stop_requested")["metadata"]["triggered_by"], "tester");
    tmux.text("x");
    tmux.see(&format!("session {id} is not running: cancelled"));
}

#[test]
fn a_session_with_a_killed_process_is_shown_as_a_problem() {
    let project = project(HOOKS);
    let mut running = run(&project);
    let tmux = Tmux::new(&project, 120, 24);
    tmux.line("hookloop watch");
    tmux.see("▶ 1 running");
    running.kill().unwrap();
    running.wait().unwrap();
    tmux.text("1");
    let seen = tmux.see("was interrupted");
    assert!(seen.contains("▶ 0 running") && seen.contains("its program died"), "{seen}");
    tmux.see(&format!("hookloop resume {}", session(&project)));
}

#[test]
fn a_decision_requested_in_another_terminal_is_answered_in_watch() {
    let project = project(HOOKS);
    for file in ["go-1", "go-2"] {
        project.write(file, "");
    }
    let asking = Tmux::named(&project, "asking", (80, 24));
    asking.line(RUN);
    asking.see("Decision needed");
    let tmux = Tmux::new(&project, 80, 24);
    tmux.line("hookloop watch");
    let seen = tmux.see("hookloop inbox abort");
    for part in ["needs a decision: Make it work", "gates still fail after 1 retry: tests"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    tmux.keys(&["Enter"]);
    tmux.see("decision needed");
    tmux.text("!");
    tmux.see("Decision needed");
    project.write("fixed", "");
    tmux.text("c");
    let seen = asking.see("at work on iteration 3");
    assert!(!seen.contains("Decision needed"), "{seen}");
    tmux.see_that("no question", |seen| {
        seen.contains("at work on iteration 3") && !seen.contains("decision needed")
    });
    let answered = project.event("decision_made");
    assert_eq!(
        (&answered["data"]["answer"], &answered["data"]["by"]),
        (&"continue".into(), &"tester".into())
    );
    project.write("go-3", "");
    asking.see("complete after 3 iterations");
    assert_eq!(project.json(&["inbox", "list"]), serde_json::json!([]));
}
