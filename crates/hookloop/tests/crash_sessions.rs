//! Ends `hookloop run` at every durable step of a session with real hooks, and its resumption at every step
//! again: however often it dies, the session ends as it would have.
//!
//! `HOOKLOOP_CRASHES=all cargo nextest run -p hookloop --test crash_recovery crash_sessions::` dies twice
//! at every pair of steps; without it, after every few first steps.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use hookloop_testkit::TestProject;
use serde_json::Value;

use crate::support::{deaths, project_with};

const SIGABRT: i32 = 6;
/// After every so many first steps the second death is tried at each step, unless all are asked for.
const FIRST_STEPS: usize = 15;
/// Sessions at the same time. Mostly they wait: a failed turn is followed by a pause.
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
/// It fails, lies, and is right in the end. Each turn can be taken again.
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

/// Starts the session, or goes on with it; answers whether it died at step `at`.
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

/// What a session leaves behind that ended as it should.
#[derive(Debug, PartialEq, Eq)]
struct End {
    state: String,
    iterations: u64,
    answer: String,
    /// Texts that waited for prompts.
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
        assert!(prompts.contains(&line), "{how}: nobody heard {line}");
    }
    project.rebuild();
    End {
        state: text(&list[0]["state"]),
        iterations: list[0]["iteration"].as_u64().unwrap(),
        answer: fs::read_to_string(project.root().join("answer")).unwrap(),
        piped: of_kind("output_piped").iter().map(|piped| text(&piped["text"])).collect(),
        verdicts: of_kind("gates_judged").iter().map(|judged| text(&judged["verdict"])).collect(),
    }
}

/// Goes on until the session is over.
fn finish(project: &TestProject, how: &str) -> End {
    let (died, output) = go_on(project, None);
    assert!(!died);
    // It has just ended, or nothing was left to resume.
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{how}: {told}");
    end(project, how)
}

#[test]
fn however_often_it_dies_a_session_ends_as_it_would_have() {
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

/// A session whose program dies at its step `first`, and if `twice`, one for each step at which the next dies
/// too. Answers how many of those there were; none if it does not come as far as `first`.
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
