//! The loop with real agents: a gate that fails, what the agent is told of it, and the end.

use std::fs;

use hookloop_testbed::model::Turn;
use hookloop_testkit::SessionOutput;
use rustix::process::{Pid, Signal, kill_process};

use crate::agents::stage::{AgentProject, GATED, UNPROVEN, Who};

/// What is left when a session has ended.
const LAST: &str = "  session_end:
    - {name: last, command: 'touch ended', timeout: 10s}
";

/// The agent is wrong at first, and then right.
fn turns(stage: &AgentProject) -> Vec<Turn> {
    let done = "Done.\n<promise>COMPLETE</promise>";
    let (wrong, right) = ("echo 41 > answer.txt", "echo 42 > answer.txt");
    vec![
        Turn::call("I try.", stage.who.run(wrong)),
        Turn::say(done),
        Turn::call("I try again.", stage.who.run(right)),
        Turn::say(done),
    ]
}

fn stage(who: Who, config: &str) -> AgentProject {
    let stage = AgentProject::with(config, who, []);
    // Claude runs no command that nobody allowed.
    stage.configure("version: 1\nagents:\n  claude: {allow: [Bash]}\n");
    stage
}

fn assert_proven(stage: &AgentProject, ran: &SessionOutput) {
    assert_eq!(ran.code, 0, "{ran:#?}");
    let verdicts: Vec<_> =
        ran.all("gates_judged").iter().map(|one| one["verdict"].clone()).collect();
    assert_eq!(verdicts, ["block", "pass"], "{ran:#?}");
    let receipts = ran.all("receipt_made");
    let last = receipts.last().unwrap();
    assert_eq!((&last["gate"], &last["status"]), (&"answer".into(), &"passed".into()));
    assert!(last["tree"].is_string());
    let asked = stage.model.requests();
    // The command of the gate, which is in every prompt, has the same words.
    let result = "1 of 1 gate failed: answer";
    assert!(!asked[0].text().contains(result));
    assert!(asked[2].text().contains(result), "{}", asked[2].text());
    assert!(asked[2].text().contains("the answer is wrong"), "{}", asked[2].text());
    assert_eq!(fs::read_to_string(stage.path("answer.txt")).unwrap(), "42\n");
    assert!(stage.path("ended").exists());
    assert_eq!(ran.all("session_ended").len(), 1);
    stage.assert_nobody_left();
}

fn fixes_what_the_gate_says(who: Who) {
    let stage = stage(who, &format!("{GATED}{LAST}"));
    stage.model.extend(turns(&stage));
    let ran = stage.run(&["Make the answer 42", "--stop-when", "promise"]);
    assert_proven(&stage, &ran);
    // The feedback is in the conversation that it is about.
    let turns = ran.turns();
    assert_eq!(turns[0]["conversation"], turns[1]["conversation"], "{ran:#?}");
    assert!(stage.model.requests()[2].text().contains("I try."), "the history is missing");
}

/// A user who wants a new conversation for each iteration gets one for a gate's feedback, too.
#[test]
fn gate_feedback_begins_a_new_conversation_if_the_user_wants_it() {
    let stage = stage(Who::Claude, &format!("{GATED}{LAST}"));
    stage.model.extend(turns(&stage));
    let args = ["Make the answer 42", "--stop-when", "promise", "--conversation", "fresh"];
    let ran = stage.run(&args);
    assert_proven(&stage, &ran);
    let turns = ran.turns();
    assert_ne!(turns[0]["conversation"], turns[1]["conversation"], "{ran:#?}");
    assert!(!stage.model.requests()[2].text().contains("I try."));
}

/// The program is killed in the middle of a turn: nothing lives on, and whoever takes the session on comes
/// to the same end.
fn is_killed_and_taken_on(who: Who) {
    let stage = stage(who, &format!("{GATED}{LAST}"));
    stage
        .model
        .extend([Turn::call("I wait.", who.run("echo > begun; tail -f /dev/null")), Turn::Silence]);
    let mut child = stage.start(&["Make the answer 42", "--stop-when", "promise"]);
    stage.eventually("the tool begins", || stage.path("begun").exists());
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    stage.eventually("nobody is left", || stage.processes().is_empty());
    let before = stage.model.requests().len();
    stage.model.skip();
    stage.model.extend(turns(&stage));
    let ran = stage.hookloop(&["resume"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let started = ran.all("iteration_started");
    assert_eq!((&started[0]["number"], &started[0]["attempt"]), (&1.into(), &2.into()));
    assert_eq!(stage.model.requests().len(), before + 4);
    assert_eq!(fs::read_to_string(stage.path("answer.txt")).unwrap(), "42\n");
    assert_eq!(ran.all("session_ended").len(), 1);
    assert!(stage.path("ended").exists());
    stage.assert_nobody_left();
}

#[test]
fn claude_fixes_what_the_gate_says() {
    fixes_what_the_gate_says(Who::Claude);
}

#[test]
fn codex_fixes_what_the_gate_says() {
    fixes_what_the_gate_says(Who::Codex);
}

#[test]
fn claude_is_killed_and_taken_on() {
    is_killed_and_taken_on(Who::Claude);
}

#[test]
fn codex_is_killed_and_taken_on() {
    is_killed_and_taken_on(Who::Codex);
}

/// An agent that only fails is given up for the next one, which is told what there is to do.
#[test]
fn another_agent_takes_over() {
    let config = "version: 1\nloop: {agent: claude, fallback: codex, fallback_after: 2}\n";
    let stage = stage(Who::Claude, config);
    let refusals = (0..2).map(|_| Turn::refuse(500, "a bad day"));
    stage.model.extend(refusals.chain([Turn::say("Here I am.\n<promise>COMPLETE</promise>")]));
    let ran =
        stage.hookloop(&["run", "Say something", "--stop-when", "promise", "--no-changes-ok"]);
    let turns: Vec<_> = ran
        .turns()
        .iter()
        .map(|turn| (turn["agent"].as_str().unwrap(), turn["result"].as_str().unwrap()))
        .collect();
    let expected = [("claude", "failed"), ("claude", "failed"), ("codex", "finished")];
    assert_eq!((ran.code, turns.as_slice()), (UNPROVEN, &expected[..]), "{ran:#?}");
}

/// What a turn cost that was cancelled, nobody knows: all that was set aside for it counts.
#[test]
fn what_a_cancelled_turn_may_have_cost_is_not_spent_again() {
    let config = "version: 1\nlimits: {purse: {cost: 5, per: ever}, turn_cost: 0.5}\n";
    let stage = stage(Who::Claude, config);
    stage.model.extend([
        Turn::call("I wait.", Who::Claude.run("echo > begun; tail -f /dev/null")),
        Turn::Silence,
    ]);
    let child = stage.start(&["Wait"]);
    stage.eventually("the tool begins", || stage.path("begun").exists());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(stage.end(child).code, 130);
    let usage = stage.hookloop(&["usage"]).events[0].clone();
    let purse = &usage["purse"]["limits"][0];
    assert_eq!(purse["lost"]["cost_micros"], 500_000, "{usage}");
    assert_eq!(usage["purse"]["reserved"]["cost_micros"], 0, "{usage}");
}

/// A turn that cost what was set aside for it is no error: the next one has its own.
#[test]
fn a_turn_that_used_what_it_had_is_gone_on_with() {
    let config = "version: 1\nlimits: {purse: {cost: 5, per: ever}, turn_cost: 0.002}\n";
    let stage = stage(Who::Claude, config);
    let again = || Turn::call("Once more.", Who::Claude.run("echo more >> more"));
    stage.model.extend((0..4).map(|_| again()));
    stage.model.extend([Turn::say("Done.\n<promise>COMPLETE</promise>")]);
    let ran = stage.run(&["Go on", "--stop-when", "promise"]);
    assert_eq!(ran.code, UNPROVEN, "{ran:#?}");
    assert!(ran.turns().len() > 1, "{ran:#?}");
    let results: Vec<_> = ran.turns().iter().map(|turn| turn["result"].clone()).collect();
    let (last, before) = results.split_last().unwrap();
    assert!(last == "finished" && before.iter().all(|one| one == "cancelled"), "{ran:#?}");
}

/// An agent that goes on and on in one turn is stopped by what the session may cost, not only after it.
#[test]
fn a_turn_costs_no_more_than_the_session_has() {
    let stage = stage(Who::Claude, "version: 1\n");
    let again = || Turn::call("Once more.", Who::Claude.run("echo more"));
    stage.model.extend((0..50).map(|_| again()));
    // A request costs 600 millionths.
    let ran = stage.run(&["Go on", "--max-cost", "0.002"]);
    assert_eq!(ran.code, 4, "{ran:#?}");
    assert_eq!(ran.all("session_ended")[0]["limit"], "cost", "{ran:#?}");
    let asked = stage.model.requests().len();
    assert!((2..=5).contains(&asked), "{asked} requests");
    assert_eq!(ran.turn()["result"], "cancelled", "{ran:#?}");
}
