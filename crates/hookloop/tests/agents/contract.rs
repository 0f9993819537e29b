//! The contract that every agent has to fulfil, regardless of its vendor.

use std::fs;
use std::process::Child;

use hookloop_testbed::model::{INPUT_TOKENS, OUTPUT_TOKENS, Turn};
use hookloop_testkit::SessionOutput;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::agents::stage::{AgentProject, UNPROVEN, Who};

/// A tool that does not end and ignores signals.
const STUBBORN: &str = "trap '' TERM INT HUP; touch begun; tail -f /dev/null";

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn failure(ran: &SessionOutput) -> &str {
    assert_eq!(text(ran.turn(), "result"), "failed", "{ran:#?}");
    text(ran.turn(), "error")
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn script(who: Who, turns: impl Fn(&AgentProject) -> Vec<Turn>) -> AgentProject {
    // The turns name files of a project, so the project is created first.
    let stage = AgentProject::new(who, []);
    stage.model.extend(turns(&stage));
    stage
}

/// The agent writes a file with its own tool, and its usage is recorded.
fn writes_a_file(who: Who) {
    let stage = script(who, |stage| {
        vec![
            stage.writes("a.txt", "hello\n"),
            Turn::say("It is written.\n<promise>COMPLETE</promise>"),
        ]
    });
    let ran = stage.run(&["Write a.txt"]);
    let turn = ran.turn();
    assert_eq!((ran.code, text(turn, "result")), (UNPROVEN, "finished"), "{ran:#?}");
    assert_eq!(fs::read_to_string(stage.path("a.txt")).unwrap().trim(), "hello");
    assert!(text(turn, "message").starts_with("It is written."), "{turn}");
    assert_eq!(turn["promises"], serde_json::json!(["COMPLETE"]), "{turn}");
    assert_eq!(turn["changed"], serde_json::json!(["a.txt"]));
    assert!(turn["conversation"].is_string(), "{turn}");
    assert_usage(who, turn, 2);
    stage.assert_nobody_left();
}

/// Checks the usage of this many requests, if the agent reports it.
fn assert_usage(who: Who, turn: &Value, requests: u64) {
    if tells_usage(who) {
        let usage = &turn["usage"];
        assert_eq!(usage["input_tokens"], requests * INPUT_TOKENS, "{turn}");
        assert_eq!(usage["output_tokens"], requests * OUTPUT_TOKENS, "{turn}");
    }
}

fn tells_usage(who: Who) -> bool {
    matches!(who, Who::Claude | Who::Codex)
}

/// The second iteration continues the conversation of the first, whose process has ended. Its usage
/// is counted once.
fn continues_its_conversation_in_a_new_process(who: Who) {
    let stage = script(who, |_| {
        vec![
            Turn::say("The word is xylophone."),
            Turn::say("I remember.\n<promise>COMPLETE</promise>"),
        ]
    });
    let args = ["Remember", "--conversation", "continue", "--stop-when", "promise"];
    let ran = stage.run(&args);
    let turns = ran.turns();
    assert_eq!((ran.code, turns.len()), (UNPROVEN, 2), "{ran:#?}");
    assert_eq!(turns[0]["conversation"], turns[1]["conversation"]);
    let requests = stage.model.requests();
    assert!(!requests[0].text().contains("xylophone"));
    let second = requests[1].text();
    assert!(second.contains("Ending your turn (iteration 1 "), "{second}");
    // Qwen Code forgets its own last message, and no other.
    assert!(second.contains("xylophone") || who == Who::Qwen, "{second}");
    assert_usage(who, turns[0], 1);
    assert_usage(who, turns[1], 1);
}

/// A fresh conversation contains nothing of the last one.
fn starts_a_fresh_conversation(who: Who) {
    let stage = script(who, |_| {
        vec![
            Turn::say("The word is xylophone."),
            Turn::say("What word?\n<promise>COMPLETE</promise>"),
        ]
    });
    let ran = stage.run(&["Remember", "--stop-when", "promise"]);
    let turns = ran.turns();
    assert_eq!((ran.code, turns.len()), (UNPROVEN, 2), "{ran:#?}");
    assert_ne!(turns[0]["conversation"], turns[1]["conversation"]);
    assert!(!stage.model.requests()[1].text().contains("xylophone"));
}

/// A prompt of 240 kB arrives whole.
fn receives_a_long_prompt_whole(who: Who) {
    let stage = script(who, |_| vec![Turn::say("I have read it.")]);
    let long = format!("begin-of-spec\n{}end-of-spec\n", "0123456789abcde\n".repeat(15_000));
    assert!(long.len() > 240_000);
    fs::write(stage.path("spec.md"), &long).unwrap();
    let ran = stage.run(&["--spec", "spec.md"]);
    assert_eq!(ran.code, UNPROVEN, "{ran:#?}");
    let asked = stage.model.requests()[0].text();
    let whole = serde_json::to_string(long.trim()).unwrap();
    assert!(asked.contains(whole.trim_matches('"')), "{} bytes were sent", asked.len());
}

/// Returns turns that use a tool which does not end. Some agents send another request meanwhile.
fn waiting(stage: &AgentProject) -> Vec<Turn> {
    vec![Turn::call("I wait.", stage.who.run(STUBBORN)), Turn::Silence]
}

/// A session is cancelled while a tool runs that does not end.
fn is_cancelled_with_all_its_processes(who: Who) {
    let stage = script(who, waiting);
    let child = stage.start(&["Wait", "--permissions", "full"]);
    stage.eventually("the tool begins", || stage.path("begun").exists());
    signal(&child, Signal::INT);
    let ran = stage.end(child);
    assert_eq!((ran.code, text(ran.turn(), "result")), (130, "cancelled"), "{ran:#?}");
    stage.assert_nobody_left();
}

/// A turn reaches its time limit while such a tool runs.
fn is_stopped_at_the_turn_timeout_during_a_tool_call(who: Who) {
    let stage = script(who, waiting);
    let limit = who.turn_limit();
    let ran = stage.run(&["Wait", "--permissions", "full", "--turn-timeout", limit]);
    assert!(stage.path("begun").exists(), "{ran:#?}");
    assert!(failure(&ran).contains("did not end within"), "{ran:#?}");
    stage.assert_nobody_left();
}

/// The model never answers.
fn is_stopped_at_the_turn_timeout_without_a_model_answer(who: Who) {
    let stage = script(who, |_| vec![Turn::Silence]);
    let limit = who.turn_limit();
    let child = stage.start(&["Wait", "--turn-timeout", limit]);
    stage.eventually("the model is asked", || !stage.model.requests().is_empty());
    let ran = stage.end(child);
    assert!(failure(&ran).contains("did not end within"), "{ran:#?}");
    stage.assert_nobody_left();
}

/// The agent is terminated in the middle of its turn. Some agents exit with 0 then, which is no
/// proof.
fn a_terminated_agent_fails_its_turn(who: Who) {
    let stage = script(who, |_| vec![Turn::Silence]);
    let child = stage.start(&["Wait", "--turn-timeout", "60s"]);
    stage.eventually("the model is asked", || !stage.model.requests().is_empty());
    let own = child.id().to_string();
    for process in stage.processes() {
        let pid = process.split([' ', '/']).find(|word| word.parse::<i32>().is_ok()).unwrap();
        if pid != own && !process.contains("__keeper") {
            let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::INT);
            let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::TERM);
        }
    }
    let ran = stage.end(child);
    assert!(!failure(&ran).contains("did not end within"), "{ran:#?}");
    stage.assert_nobody_left();
}

/// The provider rejects the key, or reports an internal error.
fn provider_errors_fail_the_session(who: Who) {
    for (status, words, code) in [(401, "Incorrect API key provided", 3), (500, "a bad day", 4)] {
        let refusals = (0..50).map(|_| Turn::refuse(status, words));
        let stage = AgentProject::new(who, refusals);
        let ran = stage.run(&["Write a.txt", "--turn-timeout", "40s"]);
        assert_eq!(ran.code, code, "{ran:#?}");
        // Some agents retry until their time limit.
        let tries_again = matches!(who, Who::Opencode | Who::Qwen);
        assert!(tries_again || !failure(&ran).contains("did not end within"), "{ran:#?}");
        stage.assert_nobody_left();
    }
}

/// After a rate limit the session waits, and the wait does not count towards a limit.
fn a_rate_limit_delays_the_next_turn(who: Who) {
    let stage = AgentProject::new(
        who,
        [
            Turn::refuse(429, "Rate limit reached. Please try again in 2s."),
            Turn::say("Now.\n<promise>COMPLETE</promise>"),
        ],
    );
    let ran = stage.run(&["Say it", "--stop-when", "promise", "--max-iterations", "1"]);
    let results: Vec<&str> = ran.turns().iter().map(|turn| text(turn, "result")).collect();
    // Some agents wait by themselves.
    let expected = match who {
        Who::Opencode | Who::Qwen => vec!["finished"],
        _ => vec!["rate_limited", "finished"],
    };
    assert_eq!((ran.code, results), (UNPROVEN, expected), "{ran:#?}");
}

/// An agent that may only read can't write, and the record reports the refusal.
fn read_permission_refuses_writes(who: Who) {
    let stage =
        script(who, |stage| vec![stage.writes("a.txt", "hello\n"), Turn::say("I may not.")]);
    let ran = stage.run(&["Write a.txt", "--permissions", "read"]);
    assert!(!stage.path("a.txt").exists());
    let turn = ran.turn();
    assert!(!turn["refused"].as_array().is_none_or(Vec::is_empty), "{ran:#?}");
    stage.assert_nobody_left();
}

/// Exit code 0 without a final message is not success: the real agent, with its output truncated.
fn exit_code_0_without_a_final_message_is_a_failure(who: Who) {
    let stage = script(who, |_| vec![Turn::say("All is well.\n<promise>COMPLETE</promise>")]);
    let (kind, program) = match who {
        Who::Opencode => ("opencode", "opencode acp"),
        Who::Gemini => ("gemini", "gemini --acp"),
        Who::Qwen => ("acp", "qwen --acp"),
        _ => (who.name(), who.name()),
    };
    let config = format!(
        "version: 1\nagents:\n  hasty: {{type: {kind}, command: ['/bin/sh', '-c', '{program} \"$@\" | head -n 1', sh]}}\n"
    );
    stage.configure(&config);
    let args = ["run", "Say it", "--agent", "hasty", "--stop-when", "turn", "--max-errors", "1"];
    // Some agents do not notice that their output is closed, and end at this limit.
    let ran = stage.hookloop(&[&args[..], &["--turn-timeout", "30s"]].concat());
    assert_eq!(ran.code, 4, "{ran:#?}");
    assert!(!failure(&ran).is_empty());
    stage.assert_nobody_left();
}

macro_rules! case {
    ($who:expr, $case:ident) => {
        #[test]
        fn $case() {
            super::$case($who);
        }
    };
}

macro_rules! contract {
    ($module:ident, $who:expr) => {
        mod $module {
            use super::Who;
            case! { $who, writes_a_file }
            case! { $who, continues_its_conversation_in_a_new_process }
            case! { $who, starts_a_fresh_conversation }
            case! { $who, receives_a_long_prompt_whole }
            case! { $who, is_cancelled_with_all_its_processes }
            case! { $who, is_stopped_at_the_turn_timeout_during_a_tool_call }
            case! { $who, is_stopped_at_the_turn_timeout_without_a_model_answer }
            case! { $who, a_terminated_agent_fails_its_turn }
            case! { $who, provider_errors_fail_the_session }
            case! { $who, a_rate_limit_delays_the_next_turn }
            case! { $who, read_permission_refuses_writes }
            case! { $who, exit_code_0_without_a_final_message_is_a_failure }
        }
    };
}

contract! { claude, Who::Claude }
contract! { codex, Who::Codex }
contract! { codex_acp, Who::CodexAcp }
contract! { opencode, Who::Opencode }
contract! { gemini, Who::Gemini }
contract! { claude_acp, Who::ClaudeAcp }
contract! { qwen, Who::Qwen }
