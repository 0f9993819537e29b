//! The loop with real agents: a gate that fails, its feedback to the agent, and the end of the
//! session.

use std::fs;

use hookloop_testbed::model::Turn;
use hookloop_testkit::SessionOutput;
use rustix::process::{Pid, Signal, kill_process};

use crate::agents::stage::{AgentProject, GATED, UNPROVEN, Who};

/// A hook that leaves a file when the session has ended.
const LAST: &str = "  session_end:
    - {name: last, command: 'touch ended', timeout: 10s}
";

/// Returns turns in which the agent is wrong at first, and then right.
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
    // Claude runs no command that is not allowed.
    stage.configure("version: 1\nagents:\n  claude: {allowed_tools: [Bash]}\n");
    stage
}

fn assert_proven(stage: &AgentProject, ran: &SessionOutput) {
    assert_eq!(ran.code, 0, "{ran:#?}");
    let verdicts: Vec<_> =
        ran.all("gates_evaluated").iter().map(|one| one["verdict"].clone()).collect();
    assert_eq!(verdicts, ["block", "pass"], "{ran:#?}");
    let receipts = ran.all("receipt_recorded");
    let last = receipts.last().unwrap();
    assert_eq!((&last["gate"], &last["status"]), (&"answer".into(), &"passed".into()));
    assert!(last["tree"].is_string());
    let asked = stage.model.requests();
    // Every prompt contains the command of the gate, which has the same words.
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
    // The feedback is in the conversation of the failed turn.
    let turns = ran.turns();
    assert_eq!(turns[0]["conversation"], turns[1]["conversation"], "{ran:#?}");
    assert!(stage.model.requests()[2].text().contains("I try."), "the history is missing");
}

/// A user who wants a new conversation for each iteration gets one for a gate's feedback, too.
#[test]
fn conversation_fresh_applies_to_gate_feedback() {
    let stage = stage(Who::Claude, &format!("{GATED}{LAST}"));
    stage.model.extend(turns(&stage));
    let args = ["Make the answer 42", "--stop-when", "promise", "--conversation", "fresh"];
    let ran = stage.run(&args);
    assert_proven(&stage, &ran);
    let turns = ran.turns();
    assert_ne!(turns[0]["conversation"], turns[1]["conversation"], "{ran:#?}");
    assert!(!stage.model.requests()[2].text().contains("I try."));
}

/// hookloop is killed in the middle of a turn: no process survives, and the resumed session has the
/// same result.
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

/// Returns a text as it stands inside a JSON string.
fn escaped(text: &str) -> String {
    serde_json::Value::from(text).to_string().trim_matches('"').to_owned()
}

/// Checks that the agent's requests have the user's answer and the gate in their sections.
fn prompt_has_answer_and_gate_in_their_sections(who: Who) {
    let stage = stage(who, GATED);
    stage.hookloop(&["task", "add", "Write the answer", "--id", "t1"]);
    stage.hookloop(&["task", "block", "t1", "--reason", "Which encoding?"]);
    let answered = stage.hookloop(&["inbox", "answer", "t1", "They are latin-1."]);
    assert_eq!(answered.code, 0, "{answered:#?}");
    let done = "Done.\n<promise>COMPLETE</promise>";
    let right = who.write(&stage.path("answer.txt"), "42\n");
    stage.model.extend([Turn::say(done), Turn::call("I fix it.", right), Turn::say(done)]);
    let ran = stage.run(&["--tasks"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let requests = stage.model.requests();
    let first = requests[0].text();
    let gate = "- answer: `grep -qx 42 answer.txt";
    let section = |text: &str, heading: &str| {
        let heading = escaped(&format!("# {heading}"));
        let (_, rest) = text.split_once(&heading).unwrap_or_else(|| panic!("{heading}: {text}"));
        rest.split(&escaped("\n\n# ")).next().unwrap_or_default().to_owned()
    };
    let checks = section(&first, "How completion is checked");
    assert!(checks.contains(&escaped(gate)), "{checks}");
    let user = section(&first, "From the user (");
    let answer = "Question: \"Which encoding?\"\nAnswer: They are latin-1.";
    assert!(user.contains(&escaped(answer)), "{user}");
    let second = requests[1].text();
    let attempt = section(&second, "Your previous attempt (iteration 1)");
    assert!(attempt.contains("You reported COMPLETE. 1 of 1 gate failed: answer."), "{attempt}");
    let (instruction, data) = attempt.split_once("<check_output ").unwrap();
    assert!(!instruction.contains("the answer is wrong"), "{instruction}");
    let command = escaped("gate=\"answer\" command=\"grep -qx 42 answer.txt");
    assert!(data.contains(&command) && data.contains("the answer is wrong"), "{data}");
    stage.assert_nobody_left();
}

#[test]
fn claude_prompt_has_inbox_answer_and_gate_in_their_sections() {
    prompt_has_answer_and_gate_in_their_sections(Who::Claude);
}

#[test]
fn codex_prompt_has_inbox_answer_and_gate_in_their_sections() {
    prompt_has_answer_and_gate_in_their_sections(Who::Codex);
}

#[test]
fn gemini_prompt_has_inbox_answer_and_gate_in_their_sections() {
    prompt_has_answer_and_gate_in_their_sections(Who::Gemini);
}

#[test]
fn claude_fixes_a_failed_gate() {
    fixes_what_the_gate_says(Who::Claude);
}

#[test]
fn codex_fixes_a_failed_gate() {
    fixes_what_the_gate_says(Who::Codex);
}

#[test]
fn a_killed_claude_session_is_resumed() {
    is_killed_and_taken_on(Who::Claude);
}

#[test]
fn a_killed_codex_session_is_resumed() {
    is_killed_and_taken_on(Who::Codex);
}

/// An agent that only fails is replaced by the fallback agent, whose prompt contains the task.
#[test]
fn the_fallback_agent_takes_over_after_failed_turns() {
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

/// The cost of a cancelled turn is unknown: its whole reservation counts.
#[test]
fn the_reservation_of_a_cancelled_turn_is_written_off() {
    let config =
        "version: 1\nlimits: {budget: {cost: 5, period: total}, reserve_per_turn: {cost: 0.5}}\n";
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
    let budget = &usage["budget"]["limits"][0];
    assert_eq!(budget["written_off"]["cost_micros"], 500_000, "{usage}");
    assert_eq!(usage["budget"]["reserved"]["cost_micros"], 0, "{usage}");
}

/// A turn that costs its whole reservation is no error: the next turn has its own.
#[test]
fn a_turn_that_used_its_reservation_is_followed_by_another() {
    let config =
        "version: 1\nlimits: {budget: {cost: 5, period: total}, reserve_per_turn: {cost: 0.002}}\n";
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

/// An agent that never ends its turn is stopped at the cost limit of the session, within that turn.
#[test]
fn a_turn_is_cancelled_at_the_cost_limit_of_the_session() {
    let stage = stage(Who::Claude, "version: 1\n");
    let again = || Turn::call("Once more.", Who::Claude.run("echo more"));
    stage.model.extend((0..50).map(|_| again()));
    // A request costs 600 millionths of a dollar.
    let ran = stage.run(&["Go on", "--max-cost", "0.002"]);
    assert_eq!(ran.code, 4, "{ran:#?}");
    assert_eq!(ran.all("session_ended")[0]["limit"], "cost", "{ran:#?}");
    let asked = stage.model.requests().len();
    assert!((2..=5).contains(&asked), "{asked} requests");
    assert_eq!(ran.turn()["result"], "cancelled", "{ran:#?}");
}
