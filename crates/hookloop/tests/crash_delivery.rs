//! Crashes hookloop at every durable step of a delivery and around every external effect, then
//! crashes the resumed process at every step. No pull request is opened twice, no commit is lost,
//! and no merge is missing.
//!
//! `HOOKLOOP_CRASHES=all cargo nextest run -p hookloop --test crash_recovery crash_delivery::`
//! crashes twice at every pair of steps. Without the variable, the second crash is tried only after
//! some first steps.

use std::os::unix::process::ExitStatusExt;

use hookloop_testbed::github::{GitHub, Route, State};

use crate::delivery_project::{DeliveryProject, GREEN};
use crate::support::deaths;

const SIGABRT: i32 = 6;
/// The second crash is tried once per this many first steps, unless `HOOKLOOP_CRASHES=all` is set.
const FIRST_STEPS: usize = 25;
const AT_ONCE: usize = 4;
/// The maximum number of processes until the task is completed.
const PROGRAMS_MAX: usize = 10;

/// The way in which work is delivered.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// With pull requests.
    Forge,
    /// With branches only.
    Branches,
}

fn project(way: Way) -> (DeliveryProject, Option<GitHub>) {
    let config = format!(
        "delivery: {{}}\nhooks:\n  stop:\n    - {{name: proof, command: 'test -f work.txt'}}\n  \
         before_submit: [rebase_on_main, create_pr]\n  after_submit: [merge]\n  \
         before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n  \
         after_merge:\n    - {{name: told, command: 'echo merged >> $HOME/merged'}}\n"
    );
    let files = [("a.txt", "one\n")];
    let (project, forge) = match way {
        Way::Forge => {
            let (project, forge) = DeliveryProject::on_forge(&config, &files);
            (project, Some(forge))
        }
        Way::Branches => (DeliveryProject::new(&config, &files), None),
    };
    project.add("t1", &[]);
    // The script can run again after a crash.
    project.does("t1", 1, "echo mine > work.txt");
    project.push_to_main("theirs.txt", "theirs\n");
    (project, forge)
}

/// Starts the session, resumes it, or merges; returns whether the process crashed at step `at`.
fn go_on(project: &DeliveryProject, at: Option<usize>) -> bool {
    let sessions = project.json_values(&["sessions", "list"]).remove(0);
    let is_open = |session: &serde_json::Value| session["ended_at"].is_null();
    let agent = project.agent();
    let mut process = match sessions.as_array().unwrap().as_slice() {
        [] => project.json_command(&["run", "--task", "t1", "--agent", &agent]),
        all if all.iter().any(is_open) => project.json_command(&["resume"]),
        _ => project.json_command(&["merge"]),
    };
    if let Some(at) = at {
        process.env("HOOKLOOP_CRASH_AT", at.to_string());
    }
    let output = process.output().unwrap();
    let has_died = output.status.signal() == Some(SIGABRT);
    let told = String::from_utf8_lossy(&output.stderr);
    let last = String::from_utf8_lossy(&output.stdout);
    let last = last.lines().rev().take(3).collect::<Vec<_>>().join("\n");
    assert!(has_died || output.status.success(), "{:?} {told}\n{last}", output.status);
    has_died
}

/// Runs processes until the task is completed, then checks the result.
fn finish(project: &DeliveryProject, forge: Option<&GitHub>, how: &str) {
    for _ in 0..PROGRAMS_MAX {
        if project.state("t1") == "completed" {
            break;
        }
        assert!(!go_on(project, None), "{how}");
    }
    assert_eq!(project.state("t1"), "completed", "{how}");
    assert_eq!(project.on_main("work.txt"), "mine\n", "{how}");
    assert_eq!(project.on_main("theirs.txt"), "theirs\n", "{how}");
    // The first commit, the commit of another user, and the task's commit.
    assert_eq!(project.at_remote(&["rev-list", "--count", "main"]), "3", "{how}");
    if let Some(forge) = forge {
        let pulls = forge.pulls();
        assert_eq!(pulls.len(), 1, "{how}: {pulls:?}");
        assert!(matches!(pulls[0].state, State::Merged(_)), "{how}: {pulls:?}");
        assert!(forge.count(Route::Open) >= 1);
    }
    let events = project.json_values(&["log", "--task", "t1", "--all"]);
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("task_merged"), count("task_completed")), (1, 1), "{how}");
    project.rebuild();
}

/// Crashes the process at step `first` and, if `twice`, the next process at each of its steps.
///
/// Returns the number of second crashes, or none if the process does not reach `first`.
fn die_at(way: Way, first: usize, twice: bool) -> Option<usize> {
    let (there, forge) = project(way);
    if !go_on(&there, Some(first)) {
        return None;
    }
    finish(&there, forge.as_ref(), &format!("{way:?}: death at {first}"));
    if !twice {
        return Some(0);
    }
    for second in 1.. {
        let (there, forge) = project(way);
        assert!(go_on(&there, Some(first)));
        if !go_on(&there, Some(second)) {
            return Some(second - 1);
        }
        finish(&there, forge.as_ref(), &format!("{way:?}: death at {first}, then at {second}"));
    }
    None
}

fn check(way: Way) {
    let (there, forge) = project(way);
    finish(&there, forge.as_ref(), "undisturbed");
    let (steps, pairs) = deaths::everywhere(
        AT_ONCE,
        |first| first % FIRST_STEPS == FIRST_STEPS - 1,
        |first, twice| die_at(way, first, twice),
    );
    assert!(steps > 30 && pairs > 10, "{steps} steps, {pairs} pairs");
}

#[test]
fn repeated_crashes_open_one_pull_request_with_one_merge() {
    check(Way::Forge);
}

#[test]
fn repeated_crashes_merge_the_branch_once() {
    check(Way::Branches);
}
