//! Limits, and the detection of progress.

use std::time::{Duration, Instant};

use super::{BROKEN_OFF, run, scripted, trusted_project};

#[test]
fn repeated_turn_errors_back_off_and_end_the_session() {
    let config = "version: 1
hooks:
  on_error:
    - {name: told, command: 'echo {{error}} >> errors', pipe_output: true}
";
    let project = trusted_project(
        config,
        &[(
            "agent.sh",
            "#!/bin/sh\ncat >/dev/null\ndate +%s%N >> turns\necho no network >&2\nexit 1\n",
        )],
    );
    let began = Instant::now();
    let ran = run(&project, &["x", "--agent", "command:./agent.sh", "--max-errors", "3"]);
    assert_eq!((ran.code, ran.outcome()), (4, "limit"), "{}", ran.stderr);
    assert_eq!(ran.all("session_ended")[0]["limit"], "errors");
    assert!(project.read("errors").contains("no network"));
    let turns = project.read("turns").lines().count();
    assert_eq!(turns, 3);
    assert!(began.elapsed() >= Duration::from_secs(1), "no pause before the retry");
    assert_eq!(ran.count("iteration_started"), 3);
}

#[test]
fn a_session_ends_within_its_time() {
    let project = trusted_project(
        "version: 1\nhooks:\n  session_end:\n    - {name: last, command: 'echo ended >> ends'}\n",
        &[("agent.sh", "#!/bin/sh\ncat >/dev/null\ntrap '' TERM\nsleep 60\n")],
    );
    let began = Instant::now();
    let ran = run(&project, &["x", "--agent", "command:./agent.sh", "--max-duration", "2s"]);
    let took = began.elapsed();
    assert_eq!((ran.code, ran.outcome()), (4, "limit"), "{}", ran.stderr);
    assert_eq!(ran.all("session_ended")[0]["limit"], "duration");
    assert!(took < BROKEN_OFF, "{took:?}");
    assert_eq!(project.read("ends"), "ended\n");
}

/// The limit also applies while a hook runs.
#[test]
fn a_running_gate_ends_at_the_sessions_time_limit() {
    let project = trusted_project(
        "version: 1\nhooks:\n  stop:\n    - {name: slow, command: 'sleep 60'}\n",
        &[],
    );
    let began = Instant::now();
    let turns = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, turns, &["--max-duration", "1s"]);
    assert_eq!(ran.all("session_ended")[0]["limit"], "duration", "{}", ran.stderr);
    assert!(began.elapsed() < BROKEN_OFF, "{:?}", began.elapsed());
}

#[test]
fn a_turn_that_never_ends_fails() {
    let project = trusted_project("version: 1\n", &[("agent.sh", "#!/bin/sh\nsleep 60\n")]);
    let ran = run(
        &project,
        &["x", "--agent", "command:./agent.sh", "--turn-timeout", "300ms", "--max-errors", "1"],
    );
    assert_eq!(ran.all("session_ended")[0]["limit"], "errors", "{}", ran.stderr);
    assert!(ran.all("turn_ended")[0]["error"].as_str().unwrap().contains("did not end within"));
}

#[test]
fn cost_and_token_limits_end_a_session() {
    let check = |args: &[&str], limit: &str| {
        let project = trusted_project("version: 1\n", &[]);
        let turns = r#"[{"write": {"a": "1"}, "usage": {"input_tokens": 900, "output_tokens": 100, "cost_micros": 1000000}},
                        {"write": {"a": "2"}, "usage": {"input_tokens": 900, "output_tokens": 100, "cost_micros": 1000000}}]"#;
        let ran = scripted(&project, turns, args);
        assert_eq!(ran.all("session_ended")[0]["limit"], limit, "{}", ran.stderr);
        assert_eq!(ran.count("turn_ended"), 2);
        let row = &project.json(&["sessions", "list"])[0];
        assert_eq!((&row["tokens"], &row["cost_micros"]), (&2000.into(), &2_000_000.into()));
    };
    check(&["--max-cost", "1.5"], "cost");
    check(&["--max-tokens", "1500"], "tokens");
}

#[test]
fn a_session_without_progress_ends_and_needs_a_human() {
    let agent = "#!/bin/sh\ncat > /dev/null\necho $RANDOM different words each time $(date +%N)\n";
    let project = trusted_project("version: 1\n", &[("agent.sh", agent)]);
    let ran = run(&project, &["x", "--agent", "command:./agent.sh", "--max-no-progress", "4"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("iteration_started"), 4);
    assert!(ran.all("session_ended")[0]["reason"].as_str().unwrap().contains("made no progress"));
}

#[test]
fn session_limits_are_printed_at_the_start_and_recorded() {
    let project =
        trusted_project("version: 1\nlimits: {max_iterations: 7, max_duration: 2h}\n", &[]);
    project.write("turns.json", r#"[{"say": "<promise>COMPLETE</promise>"}]"#);
    let args = ["run", "x", "--agent", "scripted:turns.json"];
    let text = project.run(&args).stdout;
    assert!(text.contains("7 iterations, 2h, "), "{text}");
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let events = project.json_lines(&["log", "--session", &id]);
    assert_eq!(events[0]["data"]["limits"]["max_iterations"], 7);
}
