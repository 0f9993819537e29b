//! Crashes `hookloop run` at every durable step of a session with real hooks, then crashes the
//! resumed session at every step. After any number of crashes, the session ends as without them.
//!
//! `HOOKLOOP_CRASHES=all cargo nextest run -p hookloop --test crash_recovery crash_sessions::`
//! crashes twice at every pair of steps. Without the variable, the second crash is tried only after
//! some first steps.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use hookloop_testkit::TestProject;
use serde_json::Value;

use crate::support::{deaths, project_with};

const SIGABRT: i32 = 6;
/// The second crash is tried once per this many first steps, unless `HOOKLOOP_CRASHES=all` is set.
const FIRST_STEPS: usize = 15;
/// Concurrent sessions. They mostly wait, because a pause follows a failed turn.
const AT_ONCE: usize = 8;

const CONFIG: &str = "version: 1
hooks:
  session_start:
    - {name: hello, command: 'echo hello-once', pipe_output: true}
  pre_iteration:
    - {name: before, command: 'true'}
  post_iteration:
    - {name: after, command: 'echo after-{{iteration}}', pipe_output: true}
  on_error:
    - {name: broken, command: 'echo broken-{{iteration}}', pipe_output: true}
  validation:
    - {name: there, file: answer}
  stop:
    - {name: tests, command: 'grep -q 42 answer'}
  session_end:
    - {name: last, command: 'echo ended >> ../ends'}
";
/// The agent fails, claims completion too early, and then does the work. Each turn can run again.
const TURNS: &str = r#"[
    {"run": "cat >> ../prompts", "write": {"answer": "1\n"}, "say": "working"},
    {"run": "cat >> ../prompts", "fail": "no network"},
    {"run": "cat >> ../prompts", "say": "recovered"},
    {"run": "cat >> ../prompts", "say": "done\n<promise>COMPLETE</promise>"},
    {"run": "cat >> ../prompts", "write": {"answer": "42\n"}, "say": "now\n<promise>COMPLETE</promise>"},
    {"run": "cat >> ../prompts", "say": "all heard"}
]"#;

fn new_project() -> TestProject {
    let project = project_with(CONFIG);
    project.write_turns(TURNS);
    project.git(&["init", "-q"]);
    project.trust();
    project
}

const RUN: [&str; 4] = ["run", "work", "--agent", "scripted:turns.json"];

/// Starts or resumes the session; returns whether it crashed at step `at`, and its output.
fn go_on(project: &TestProject, at: Option<usize>) -> (bool, Output) {
    let sessions = project.json_command(&["sessions", "list"]).output().unwrap();
    let sessions: Value = serde_json::from_slice(&sessions.stdout).unwrap();
    let mut process = match sessions.as_array().unwrap().is_empty() {
        true => project.json_command(&RUN),
        false => project.json_command(&["resume"]),
    };
    if let Some(at) = at {
        process.env("HOOKLOOP_CRASH_AT", at.to_string());
    }
    let output = process.output().unwrap();
    let died = output.status.signal() == Some(SIGABRT);
    (died, output)
}

/// The expected state after a session that ended normally.
#[derive(Debug, PartialEq, Eq)]
struct End {
    state: String,
    iterations: u64,
    answer: String,
    /// Texts that were piped to prompts.
    piped: Vec<String>,
    verdicts: Vec<String>,
}

fn end(project: &TestProject, how: &str) -> End {
    let list = project.json_command(&["sessions", "list"]).output().unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 1, "{how}: one session");
    let events = project.events_from(1);
    let of_kind = |kind: &str| {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .map(|event| &event["data"])
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(of_kind("session_ended").len(), 1, "{how}");
    let ends = fs::read_to_string(project.root().join("../ends")).unwrap();
    assert!((1..=3).contains(&ends.lines().count()), "{how}: {ends:?}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let prompts = fs::read_to_string(project.root().join("../prompts")).unwrap();
    for piped in of_kind("output_piped") {
        let line = text(&piped["text"]).lines().next().unwrap_or_default().to_owned();
        assert!(prompts.contains(&line), "{how}: no prompt has {line}");
    }
    project.rebuild();
    End {
        state: text(&list[0]["state"]),
        iterations: list[0]["iteration"].as_u64().unwrap(),
        answer: fs::read_to_string(project.root().join("answer")).unwrap(),
        piped: of_kind("output_piped").iter().map(|piped| text(&piped["text"])).collect(),
        verdicts: of_kind("gates_evaluated")
            .iter()
            .map(|judged| text(&judged["verdict"]))
            .collect(),
    }
}

/// Resumes the session until it ends.
fn finish(project: &TestProject, how: &str) -> End {
    let (died, output) = go_on(project, None);
    assert!(!died);
    // The session has just ended, or no session was left to resume.
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{how}: {told}");
    end(project, how)
}

#[test]
fn a_session_has_the_same_result_after_repeated_crashes() {
    let project = new_project();
    let (_, output) = go_on(&project, None);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = end(&project, "undisturbed");
    assert_eq!((expected.state.as_str(), expected.iterations), ("complete", 4));
    assert_eq!(expected.verdicts, ["block", "block", "pass"]);
    let (steps, pairs) = deaths::everywhere(
        AT_ONCE,
        |first| first % FIRST_STEPS == 1,
        |first, twice| die_at(first, twice, &expected),
    );
    assert!(steps > 20 && pairs > 20, "{steps} steps, {pairs} pairs");
}

/// Crashes a session at step `first` and, if `twice`, one more session for each step of the second
/// crash.
///
/// Returns the number of second crashes, or none if the session does not reach `first`.
fn die_at(first: usize, twice: bool, expected: &End) -> Option<usize> {
    let project = new_project();
    if !go_on(&project, Some(first)).0 {
        return None;
    }
    let how = format!("death at {first}");
    assert_eq!(finish(&project, &how), *expected, "{how}");
    if !twice {
        return Some(0);
    }
    for second in 1.. {
        let project = new_project();
        assert!(go_on(&project, Some(first)).0);
        if !go_on(&project, Some(second)).0 {
            return Some(second - 1);
        }
        let how = format!("death at {first}, then at {second}");
        assert_eq!(finish(&project, &how), *expected, "{how}");
    }
    None
}
