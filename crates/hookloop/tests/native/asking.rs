//! `hookloop hook`, with recorded inputs of real agents.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::{ProgramOutput, Project, fields};

/// Inputs recorded from Codex 0.166.0, Claude Code 2.1.325 and Gemini 0.61.0, unchanged except for
/// ids and paths.
const PAYLOADS: &str = include_str!("payloads.jsonl");

fn payloads(project: &Project) -> Vec<Value> {
    let root = project.root().display().to_string();
    let lines = PAYLOADS.lines().map(|line| line.replace("$W", &root));
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

pub(crate) fn of(project: &Project, agent: &str, event: &str) -> Value {
    let is_it = |payload: &&Value| {
        payload["hook_event_name"] == event
            && payload["transcript_path"].as_str().unwrap().contains(agent)
    };
    payloads(project).iter().find(is_it).unwrap().clone()
}

pub(crate) fn hook(project: &Project, event: &str, payload: &Value) -> ProgramOutput {
    project.run_by_agent(&["hook", event], &payload.to_string())
}

#[test]
fn every_recorded_hook_input_is_accepted() {
    let project = Project::new();
    let payloads = payloads(&project);
    assert!(payloads.len() >= 14, "{}", payloads.len());
    for payload in payloads {
        let event = payload["hook_event_name"].as_str().unwrap();
        let run = hook(&project, event, &payload);
        assert!(run.code == 0 && run.stderr.is_empty(), "{payload}: {run:?}");
        assert!(run.stdout.is_empty() || run.stdout.starts_with('{'), "{payload}: {run:?}");
    }
}

#[test]
fn the_hook_command_prints_nothing_outside_of_a_project() {
    let project = Project::bare();
    for payload in payloads(&project) {
        let run = hook(&project, payload["hook_event_name"].as_str().unwrap(), &payload);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""), "{payload}");
    }
    assert!(!project.home().join(".local").exists());
}

/// `hookloop run` runs the gates itself, so the hook does not even read the configuration.
#[test]
fn the_hook_command_prints_nothing_in_a_session_of_hookloop() {
    let project = Project::with_config("not: [yaml");
    for payload in payloads(&project) {
        let event = payload["hook_event_name"].as_str().unwrap();
        let mut command = project.hookloop(&["hook", event]);
        command.env("HOOKLOOP_SESSION", "s").stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.to_string().as_bytes())
            .unwrap();
        let run: ProgramOutput = child.wait_with_output().unwrap().into();
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""), "{payload}");
    }
    assert!(!project.home().join(".local").exists());
}

/// The project is that of the agent's directory, wherever the hook is started.
#[test]
fn the_project_is_found_from_the_agents_directory() {
    let (here, there) = (Project::bare(), Project::with_config("hooks: 1\n"));
    let run = hook(&here, "Stop", &of(&there, "claude", "Stop"));
    assert!(run.stdout.contains("did NOT run"), "{run:?}");
}

/// If hookloop fails, the agent may stop, and the error is reported to the user.
#[test]
fn a_hookloop_error_is_reported_to_the_user_and_lets_the_agent_stop() {
    let project = Project::with_config("hooks: 1\n");
    for (agent, event) in [("claude", "Stop"), ("codex", "Stop"), ("gemini", "AfterAgent")] {
        let run = hook(&project, event, &of(&project, agent, event));
        assert!(run.code == 0 && run.stderr.is_empty(), "{run:?}");
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
        let said = answer["systemMessage"].as_str().unwrap();
        assert!(said.starts_with("hookloop: the stop gates did NOT run: "), "{said}");
        assert!(said.contains("hookloop.yaml") && said.contains("(edit "), "{said}");
    }
    let run = hook(&project, "SessionStart", &of(&project, "claude", "SessionStart"));
    assert!(run.code == 0 && run.stdout.contains("did not get its pending context"), "{run:?}");
    let run = hook(&project, "SessionEnd", &of(&project, "codex", "SessionEnd"));
    assert!(run.code == 1 && run.stdout.is_empty() && !run.stderr.is_empty(), "{run:?}");
}

/// Exit code 2 makes an agent continue, and Gemini treats every code above 1 the same way. So an
/// error never exits with these codes.
#[test]
fn an_error_never_exits_with_the_code_of_a_refusal() {
    let project = Project::new();
    for input in ["", "{", "[]", "null", "\u{0}", "{\"cwd\": }"] {
        let run = project.run_with_input(&["hook", "Stop"], input);
        assert!(run.code == 1 && run.stdout.is_empty(), "{input}: {run:?}");
        assert!(run.stderr.contains("the input of this hook"), "{run:?}");
    }
    for args in [&["hook"][..], &["hook", "Stop", "--agents"], &["hook", "Stop", "--agent"]] {
        let run = project.run(args);
        assert!(run.code == 1 && run.stdout.is_empty(), "{args:?}: {run:?}");
    }
    let run = project.run_with_input(&["hook", "Stop", "--agent", "clod"], "{}");
    assert!(run.code == 0 && run.stdout.contains("`clod` is not an agent"), "{run:?}");
    let long = json!({ "last_assistant_message": "x".repeat(9 * 1024 * 1024) }).to_string();
    let mut child = project
        .hookloop(&["hook", "Stop"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // hookloop does not read the input to its end.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), long.as_bytes());
    let run: ProgramOutput = child.wait_with_output().unwrap().into();
    assert!(run.code == 1 && run.stderr.contains("more than 8388608 bytes"), "{run:?}");
}

#[test]
fn the_hook_command_on_a_terminal_explains_its_purpose() {
    let project = Project::new();
    let run = project.shell("script -qec 'hookloop hook Stop' /dev/null");
    assert!(run.code == 2 && run.stdout.contains("an agent's native hook runs this"), "{run:?}");
}

const GATED: &str = "hooks:
  session_start: [{name: hello, command: echo the-pending-words, pipe_output: true}]
  stop: [{name: done, command: 'test -e done || { echo it is not done >&2; exit 2; }'}]
";

/// Checks the stop gate in the dialect of each agent: blocked, then passed.
#[test]
fn a_stop_gate_answers_in_the_dialect_of_each_agent() {
    for (agent, event, decision) in
        [("claude", "Stop", "block"), ("codex", "Stop", "block"), ("gemini", "AfterAgent", "deny")]
    {
        let project = Project::with_config(GATED);
        project.trust();
        let answer = |event: &str| -> Value {
            let run = hook(&project, event, &of(&project, agent, event));
            assert!(run.code == 0 && run.stderr.is_empty(), "{agent}: {run:?}");
            serde_json::from_str(&run.stdout).unwrap()
        };
        let told = answer("SessionStart");
        assert_eq!(told["hookSpecificOutput"]["hookEventName"], "SessionStart", "{told}");
        let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(context.contains("the-pending-words"), "{told}");
        project.write("work.txt", agent);
        let blocked = answer(event);
        assert_eq!(fields(&blocked), ["decision", "reason"].into());
        assert_eq!(blocked["decision"], decision);
        let reason = blocked["reason"].as_str().unwrap();
        assert!(reason.starts_with("hookloop: not done yet.\n"), "{reason}");
        assert!(reason.contains("it is not done"), "{reason}");
        project.write("done", "");
        let passed = answer(event);
        assert_eq!(passed, json!({ "systemMessage": "hookloop: proven by done" }));
    }
}

/// Checks that untrusted gates do not run, and that this is reported.
#[test]
fn untrusted_gates_do_not_run_and_are_reported() {
    let project = Project::with_config(GATED);
    let run = hook(&project, "Stop", &of(&project, "codex", "Stop"));
    assert_eq!(run.code, 0, "{run:?}");
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(fields(&answer), ["systemMessage"].into());
    assert!(answer["systemMessage"].as_str().unwrap().contains("hookloop hooks trust"), "{answer}");
}

/// Checks that the agent may stop, and that a message to the user reports the missing gates.
#[test]
fn weakened_gates_are_reported_to_the_user_of_an_external_session() {
    let project = Project::with_config(GATED);
    project.trust();
    let rest = "hooks: {session_end: [{name: bye, use: run_tests}]}\n";
    for weaker in ["", rest] {
        project.configure(weaker);
        if weaker.is_empty() {
            // No hook of the project runs in a session any more.
            assert!(!project.ok(&["hooks", "list"]).contains("stop"));
        }
        for (agent, event) in [("claude", "Stop"), ("codex", "Stop"), ("gemini", "AfterAgent")] {
            let run = hook(&project, event, &of(&project, agent, event));
            assert_eq!(run.code, 0, "{agent}: {run:?}");
            let answer: Value = serde_json::from_str(&run.stdout).unwrap();
            assert_eq!(fields(&answer), ["systemMessage"].into(), "{agent}: {answer}");
            let told = answer["systemMessage"].as_str().unwrap();
            assert!(told.contains("nothing was checked"), "{agent}: {told}");
            assert!(!told.contains("proven by"), "{agent}: {told}");
        }
    }
    assert!(project.events_of("session_started").is_empty());
}

/// Each hook call is a separate process, so the file snapshot from the start of the turn is stored.
#[test]
fn the_files_that_an_external_agent_changed_are_named() {
    let project = Project::with_config(GATED);
    project.trust();
    project.write("before", "1");
    let visit = |event: &str| {
        let run = hook(&project, event, &of(&project, "claude", event));
        assert!(run.code == 0 && run.stderr.is_empty(), "{run:?}");
    };
    let changed = || -> Vec<Value> {
        let turns = project.events_of("turn_ended");
        turns.iter().map(|turn| turn["data"]["changed"].clone()).collect()
    };
    visit("SessionStart");
    project.write("work", "1");
    project.write("before", "2");
    // The conversation continues in the middle of its turn.
    visit("SessionStart");
    project.write("more", "1");
    visit("Stop");
    assert_eq!(changed(), [json!(["before", "more", "work"])]);
    project.write("done", "");
    visit("Stop");
    assert_eq!(changed()[1], json!(["done"]));
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let shown = project.ok(&["sessions", "show", &id]);
    assert!(shown.contains("changed 3 files: before, more, work"), "{shown}");
}

/// The agent may have worked before the first snapshot.
#[test]
fn an_external_session_starting_with_a_stop_does_not_claim_no_changes() {
    let project = Project::with_config(GATED);
    project.trust();
    project.write("done", "");
    let run = hook(&project, "Stop", &of(&project, "claude", "Stop"));
    assert_eq!(run.code, 0, "{run:?}");
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let shown = project.ok(&["sessions", "show", &id]);
    assert!(shown.contains("agent took") && !shown.contains("changed no file"), "{shown}");
}
