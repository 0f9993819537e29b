//! A night without a person: the inbox is enough to decide in the morning, and the work continues.

use hookloop_testkit::eventually;
use serde_json::Value;

use crate::cli::{DEADLINE, Project};
use crate::inbox::{key, keys};

/// Works on each task by its name: `pay` asks, `parse` always fails its gate, `big` needs four
/// turns.
const AGENT: &str = r##"#!/bin/sh
prompt=$(cat)
printf '%s\n' "$prompt" >> ../prompts.txt
task=$(printf '%s\n' "$prompt" | sed -n 's/^# Task \([a-z]*\):.*/\1/p' | head -1)
case $task in
pay)
  case $prompt in
  *"Answer: Stripe"*) echo stripe > pay.txt ;;
  *) printf 'I compared both libraries.\n\nShall I use Stripe or Adyen?\n<promise>BLOCKED</promise>\n'; exit ;;
  esac ;;
parse)
  case $prompt in
  *latin-1*) echo latin-1 > parse.txt ;;
  *) echo utf-8 > parse.txt; echo "I read the files as UTF-8." ;;
  esac ;;
big)
  echo step >> big.txt
  [ "$(wc -l < big.txt)" -ge 4 ] || { echo "More steps remain."; exit; } ;;
*) echo done > "$task.txt"; echo "Wrote $task." ;;
esac
printf '\n<promise>COMPLETE</promise>\n'
"##;

const CHECK: &str = r#"#!/bin/sh
[ "$HOOKLOOP_TASK_ID" != parse ] || grep -q latin-1 parse.txt || {
  printf '\033[31mFAILED\033[0m test_parse: UnicodeDecodeError: byte 0xe9\n'; exit 1; }
"#;

const OTHERS: [&str; 5] = ["cart", "login", "search", "email", "footer"];

/// Returns a project of eight tasks, in a repository with a gate.
fn shop() -> Project {
    let project =
        Project::with_config("hooks:\n  stop:\n    - {name: tests, command: ./check.sh}\n");
    project.write("agent.sh", AGENT);
    project.write("check.sh", CHECK);
    let made = project.shell(
        "chmod +x agent.sh check.sh && git init -q -b main && git add -A && \
         git -c user.name=t -c user.email=t@t commit -qm start",
    );
    assert_eq!(made.code, 0, "{made:?}");
    project.trust();
    project.add("Take payments", &["--id", "pay", "--priority", "0"]);
    project.add("Parse the price list", &["--id", "parse", "--priority", "1"]);
    for id in OTHERS {
        project.add(&format!("Write the {id}"), &["--id", id, "--priority", "2"]);
    }
    project.add("Migrate the catalogue", &["--id", "big", "--priority", "9"]);
    project
}

fn item(project: &Project, start: &str) -> Value {
    let found = keys(project);
    let key = found.iter().find(|key| key.starts_with(start));
    let key = key.unwrap_or_else(|| panic!("{start}: {found:?}"));
    project.json(&["inbox", "show", key])
}

#[test]
fn overnight_run_is_decided_from_the_inbox_and_completes() {
    let project = shop();
    let night = ["run", "--tasks", "--agent", "command:./agent.sh", "--gate-retries", "2"];
    let ran = project.run(&[&night[..], &["--max-iterations", "11"]].concat());
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(keys(&project).len(), 3, "{:?}", keys(&project));

    // The question is kept, although five other tasks were worked on since.
    let pay = item(&project, "task:pay@");
    assert_eq!(pay["record"]["question"], "Shall I use Stripe or Adyen?", "{pay}");
    assert_eq!(pay["record"]["worked_on"], "pay");
    assert_eq!(pay["record"]["iteration"], 1);
    assert_eq!(pay["record"]["receipts"], serde_json::json!([]), "no gate judged this task");
    assert!(!pay["details"].to_string().contains("footer"), "{pay}");

    // The gate, its command and its output, and the receipts for this task's tree.
    let parse = item(&project, "task:parse@");
    let gate = &parse["record"]["failed_gates"][0];
    assert_eq!((&gate["gate"], &gate["command"]), (&"tests".into(), &"./check.sh".into()));
    let output = gate["output"].to_string();
    assert!(output.contains("FAILED test_parse: UnicodeDecodeError"), "{output}");
    assert!(!output.contains("\\u001b"), "colours are stripped: {output}");
    let receipts = parse["record"]["receipts"].as_array().unwrap();
    assert!(receipts.iter().all(|receipt| receipt["status"] != "passed"), "{parse}");
    assert_eq!(parse["record"]["difference"]["files"], serde_json::json!(["parse.txt"]));
    let see = parse["record"]["difference"]["command"].as_str().unwrap();
    let seen = project.shell(see);
    assert!(seen.stdout.contains("+utf-8"), "a new file is shown: {see}: {seen:?}");
    assert!(parse["reason"].as_str().unwrap().contains("after 2 retries"), "{parse}");
    let retries = &parse["record"]["limits"][1];
    assert_eq!((&retries["used"], &retries["of"]), (&"2".into(), &"2".into()));

    // The limit, and the command that raises it.
    let limit = item(&project, "session:");
    let used = &limit["record"]["limits"][0];
    assert_eq!(
        (&used["used"], &used["of"], &used["reached"]),
        (&"11".into(), &"11".into(), &true.into())
    );
    assert_eq!(limit["record"]["worked_on"], "big");
    let resume = limit["next"][0].as_str().unwrap().to_owned();
    assert!(resume.ends_with("--max-iterations +20"), "{resume}");
    let why = project.json(&["why", "big"]);
    assert!(why["reasons"].to_string().contains("its limit of 11 iterations"), "{why}");
    assert_eq!(why["next"], resume.as_str());

    // Both pages for the person contain all of it.
    assert_eq!(project.ok(&["inbox"]).lines().count(), 3);
    let shown = project.ok(&["inbox", "show"]);
    for part in ["Shall I use Stripe or Adyen?", "`./check.sh`", "11 of 11 iterations", &resume] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    project.ok(&["inbox", "answer", "pay", "Stripe, with refunds."]);
    project.ok(&["inbox", "answer", "parse", "The files are latin-1."]);
    let done = project.shell(&resume);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(keys(&project), [""; 0]);
    for id in ["pay", "parse", "big"].iter().chain(&OTHERS) {
        assert_eq!(project.state_of(id), "completed", "{id}");
    }
    let prompts = std::fs::read_to_string(project.root().join("../prompts.txt")).unwrap();
    let told = "Question: \"Shall I use Stripe or Adyen?\"\nAnswer: Stripe, with refunds.";
    assert!(prompts.contains(told), "{prompts}");
    assert_eq!(project.event("session_reopened")["data"]["limits"]["max_iterations"], 31);
    assert_eq!(project.json(&["rebuild"])["equal"], true);
}

#[test]
fn reopened_session_with_blocked_tasks_is_not_complete() {
    let project = shop();
    let night = ["run", "--tasks", "--agent", "command:./agent.sh", "--gate-retries", "2"];
    assert_eq!(project.run(&[&night[..], &["--max-iterations", "11"]].concat()).code, 4);
    let ran = project.run(&["resume", "--max-iterations", "+20"]);
    assert_eq!(ran.code, 3, "two tasks still need a person: {ran:?}");
    assert!(ran.stdout.contains("2 tasks need a human: pay, parse"), "{ran:?}");
}

#[test]
fn a_resumed_session_has_the_users_answer_in_its_prompt() {
    let project = Project::new();
    project.write("says.txt", "Looked.\n\nWhich one?\n<promise>BLOCKED</promise>\n");
    let agent = crate::inbox::problems::AGENT;
    assert_eq!(project.run(&["run", "Do it", "--agent", agent]).code, 3);
    let shown = project.json(&["inbox", "show", &key(&project)]);
    assert_eq!(shown["record"]["question"], "Which one?");
    project.write("says.txt", "<promise>COMPLETE</promise>\n");
    std::fs::remove_file(project.root().join("prompts.txt")).unwrap();
    // Without an answer no session is started.
    let why = project.fails(1, &["resume"]);
    assert!(why.contains("needs a person") && why.contains("--answer"), "{why}");
    let ran = project.run(&["resume", "--answer", "The second."]);
    assert_eq!(ran.code, 6, "there is no gate: {ran:?}");
    let prompt = std::fs::read_to_string(project.root().join("prompts.txt")).unwrap();
    let told = "# From the user (tester)\n\nQuestion: \"Which one?\"\nAnswer: The second.\n";
    assert!(prompt.contains(told), "{prompt}");
    assert_eq!(keys(&project), [""; 0]);
    // A complete session can't be resumed.
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let why = project.fails(1, &["resume", &id]);
    assert!(why.contains("is over: complete"), "{why}");
}

#[test]
fn inbox_answer_reopens_a_session_that_ended() {
    let project = Project::new();
    project.write("says.txt", "Which one?\n<promise>BLOCKED</promise>\n");
    let agent = crate::inbox::problems::AGENT;
    assert_eq!(project.run(&["run", "Do it", "--agent", agent]).code, 3);
    let answered = project.json(&["inbox", "answer", &key(&project), "The second."]);
    assert_eq!(keys(&project), [""; 0]);
    project.write("says.txt", "<promise>COMPLETE</promise>\n");
    let ran = project.shell(answered["next"].as_str().unwrap());
    assert_eq!(ran.code, 6, "there is no gate: {ran:?}");
    let prompt = std::fs::read_to_string(project.root().join("prompts.txt")).unwrap();
    assert!(prompt.contains("Question: \"Which one?\"\nAnswer: The second.\n"), "{prompt}");
}

#[test]
fn limit_has_to_be_raised_before_a_session_continues() {
    let project = Project::with_config("limits: {max_iterations: 1}\n");
    project.write("says.txt", "working\n");
    let agent = crate::inbox::problems::AGENT;
    assert_eq!(project.run(&["run", "Do it", "--agent", agent]).code, 4);
    let why = project.fails(1, &["resume"]);
    assert!(why.contains("its limit of 1 iteration was reached"), "{why}");
    assert!(why.contains("--max-iterations +20"), "{why}");
    for bad in ["+0", "0", "-1", "many", "+"] {
        let ran = project.run(&["resume", &format!("--max-iterations={bad}")]);
        assert_eq!(ran.code, 2, "{bad}: {ran:?}");
    }
    // An agent can't raise the limit.
    let raise = ["resume", "--max-iterations", "+1"];
    let output = project.hookloop(&raise).env("HOOKLOOP_SESSION", "k3m9x2").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("only a person can raise the limits"), "{told}");
    assert_eq!(project.run(&raise).code, 4, "one more iteration");
    assert_eq!(project.events_of("iteration_started").len(), 2);
    project.write("says.txt", "<promise>COMPLETE</promise>\n");
    assert_eq!(project.run(&["resume", "--max-iterations", "3", "--max-cost", "+5"]).code, 6);
}

/// An agent that runs until its session is stopped.
const SLEEPS: &str = "command:cat > prompt.txt; touch ../runs; sleep 600";

#[test]
fn stop_ends_a_session_of_another_terminal_and_it_can_be_resumed() {
    let project = Project::new();
    let why = project.fails(1, &["stop"]);
    assert!(why.contains("no session runs in this directory"), "{why}");
    let mut running = project.hookloop(&["run", "Do it", "--agent", SLEEPS]);
    let mut running = running.stdout(std::process::Stdio::null()).spawn().unwrap();
    eventually("a turn", DEADLINE, || project.root().join("../runs").exists().then_some(()));
    // An agent can't stop a session.
    let output = project.hookloop(&["stop"]).env("HOOKLOOP_SESSION", "k3m9x2").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("only a person can stop a session"), "{told}");
    let stopped = project.json(&["stop"]);
    assert_eq!(stopped["stopped"], true, "{stopped}");
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let asked = project.event("stop_requested");
    assert_eq!(asked["metadata"]["triggered_by"], "tester", "{asked}");
    assert_eq!(project.event("session_ended")["data"]["outcome"], "cancelled");
    let id = stopped["session"].as_str().unwrap();
    let why = project.fails(1, &["stop", id]);
    assert!(why.contains("is not running: cancelled"), "{why}");
    assert!(why.contains(&format!("run `hookloop resume {id}")), "{why}");
    // The session continues, and the earlier stop request does not end it again.
    let mut again = project.hookloop(&["resume"]);
    std::fs::remove_file(project.root().join("../runs")).unwrap();
    let mut again = again.stdout(std::process::Stdio::null()).spawn().unwrap();
    eventually("another turn", DEADLINE, || project.root().join("../runs").exists().then_some(()));
    project.ok(&["stop", id]);
    assert_eq!(again.wait().unwrap().code(), Some(130));
    assert_eq!(project.events_of("stop_requested").len(), 2);
}

/// Starts a session that runs until it is stopped, and waits for its turn; its agent creates the
/// file `mark`.
fn sleeping(project: &Project, mark: &str, more: &[&str]) -> (std::process::Child, String) {
    let agent = format!("command:cat > /dev/null; touch ../{mark}; sleep 600");
    let mut run = project.hookloop(&[&["run", "Do it", "--agent", &agent], more].concat());
    let run = run.stdout(std::process::Stdio::null()).spawn().unwrap();
    eventually("a turn", DEADLINE, || {
        project.root().join(format!("../{mark}")).exists().then_some(())
    });
    // The newest session is first.
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    (run, id)
}

fn state_of_session(project: &Project, id: &str) -> String {
    let sessions = project.json(&["sessions", "list"]);
    let row = sessions.as_array().unwrap().iter().find(|row| row["id"] == id);
    row.unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn stop_needs_a_session_name_if_several_sessions_run() {
    let project = Project::new();
    let (mut first, one) = sleeping(&project, "one", &["--name", "first"]);
    let (mut second, two) = sleeping(&project, "two", &["--share-checkout"]);
    let why = project.fails(1, &["stop"]);
    assert!(why.contains("several sessions run in this directory"), "{why}");
    assert!(why.contains(&one) && why.contains(&two), "{why}");
    assert!(why.contains("run `hookloop stop "), "{why}");
    assert_eq!(project.events_of("stop_requested").len(), 0);
    let stopped = project.json(&["stop", "first"]);
    assert_eq!((&stopped["session"], &stopped["stopped"]), (&one.as_str().into(), &true.into()));
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert!(second.try_wait().unwrap().is_none(), "the other session still runs");
    assert_eq!(project.json(&["stop"])["session"], two.as_str());
    assert_eq!(second.wait().unwrap().code(), Some(130));
}

#[test]
fn stop_of_a_session_whose_process_died_is_refused_with_the_resume_command() {
    let project = Project::new();
    let (mut run, id) = sleeping(&project, "one", &[]);
    run.kill().unwrap();
    run.wait().unwrap();
    let why = project.fails(1, &["stop", &id]);
    assert!(why.contains(&format!("session {id} is not running: its program died")), "{why}");
    assert!(why.contains(&format!("run `hookloop resume {id}")), "{why}");
    let why = project.fails(1, &["stop"]);
    assert!(why.contains("no session runs in this directory"), "{why}");
    assert_eq!(project.events_of("stop_requested").len(), 0);
    // A dead session does not prevent stopping one that runs.
    let (mut run, other) = sleeping(&project, "two", &[]);
    assert_eq!(project.json(&["stop"])["session"], other.as_str());
    assert_eq!(run.wait().unwrap().code(), Some(130));
}

#[test]
fn stop_of_an_unknown_or_ambiguous_session_stops_nothing() {
    let project = Project::new();
    let (mut run, id) = sleeping(&project, "one", &[]);
    let (mut other, _) = sleeping(&project, "two", &["--share-checkout"]);
    for unknown in ["zzz", "task", "-"] {
        let why = project.fails(1, &["stop", unknown]);
        assert!(why.contains(&format!("there is no session `{unknown}`")), "{why}");
        assert!(why.contains("run `hookloop sessions list"), "{why}");
    }
    // The empty text is a prefix of every id.
    let why = project.fails(1, &["stop", ""]);
    assert!(why.contains("is the start of several sessions") && why.contains(&id), "{why}");
    assert_eq!(project.events_of("stop_requested").len(), 0);
    for id in project.json(&["sessions", "list"]).as_array().unwrap() {
        project.ok(&["stop", id["id"].as_str().unwrap()]);
    }
    assert_eq!((run.wait().unwrap().code(), other.wait().unwrap().code()), (Some(130), Some(130)));
}

/// `+N` raises a limit by N; `N` sets it.
#[test]
fn a_limit_of_tokens_is_raised_by_an_amount_or_to_an_amount() {
    let project = Project::new();
    let turn = r#"{"say": "working", "run": "date +%N > work", "usage": {"input_tokens": 60, "output_tokens": 40, "cached_tokens": 0, "cost_micros": 1}}"#;
    project.write("turns.json", &format!("[{turn}, {turn}, {turn}, {turn}]"));
    let run = ["run", "Do it", "--agent", "scripted:turns.json", "--max-tokens", "100"];
    assert_eq!(project.run(&run).code, 4);
    let why = project.fails(1, &["resume"]);
    assert!(why.contains("tokens") && why.contains("--max-tokens +"), "{why}");
    let limit = |project: &Project| {
        let reopened = project.events_of("session_reopened");
        reopened.last().unwrap()["data"]["limits"]["max_tokens"].clone()
    };
    assert_eq!(project.run(&["resume", "--max-tokens", "+50"]).code, 4);
    assert_eq!(limit(&project), 150);
    // A limit below the number of used tokens is refused.
    let why = project.fails(1, &["resume", "--max-tokens", "120"]);
    assert!(why.contains("its token limit was reached: 200 of 120"), "{why}");
    assert_eq!(project.events_of("session_reopened").len(), 1);
    assert_eq!(project.run(&["resume", "--max-tokens", "250"]).code, 4);
    assert_eq!(limit(&project), 250);
    for bad in ["+0", "0", "-5", "lots", "+", "1.5"] {
        let ran = project.run(&["resume", &format!("--max-tokens={bad}")]);
        assert_eq!(ran.code, 2, "{bad}: {ran:?}");
    }
}

#[test]
fn a_limit_of_time_is_raised_by_an_amount_or_to_an_amount() {
    let project = Project::new();
    let agent =
        "command:cat > /dev/null; [ -e done.txt ] || sleep 600; echo '<promise>COMPLETE</promise>'";
    assert_eq!(project.run(&["run", "Do it", "--agent", agent, "--max-duration", "300ms"]).code, 4);
    let why = project.fails(1, &["resume"]);
    assert!(why.contains("--max-duration +"), "{why}");
    let why = project.fails(1, &["resume", "--max-duration", "100ms"]);
    assert!(why.contains("its time limit of 100ms was reached"), "{why}");
    // No event has the exact duration of the session, so the limit is far above it.
    project.write("done.txt", "");
    let ran = project.run(&["resume", "--max-duration", "+1h"]);
    assert_eq!(ran.code, 6, "there is no gate: {ran:?}");
    let limits = project.event("session_reopened")["data"]["limits"].clone();
    assert_eq!(limits["max_duration_ms"], 3_600_300, "{limits}");

    let project = Project::new();
    assert_eq!(project.run(&["run", "Do it", "--agent", agent, "--max-duration", "300ms"]).code, 4);
    project.write("done.txt", "");
    assert_eq!(project.run(&["resume", "--max-duration", "2h"]).code, 6);
    let limits = project.event("session_reopened")["data"]["limits"].clone();
    assert_eq!(limits["max_duration_ms"], 7_200_000, "{limits}");
    for bad in ["+0s", "0s", "-5s", "soon", "+"] {
        let ran = project.run(&["resume", &format!("--max-duration={bad}")]);
        assert_eq!(ran.code, 2, "{bad}: {ran:?}");
    }
}

/// Runs a session, and changes its task while the agent works.
fn lose(project: &Project, work: &[&str], taken: &[&str]) -> String {
    let agent = "command:cat > /dev/null; touch ../runs; while [ ! -e ../go ]; do sleep 0.02; done; \
                 date +%N > work.txt; echo '<promise>COMPLETE</promise>'";
    let mut run = project.hookloop(&[&["run", "--agent", agent], work].concat());
    let mut run = run.stdout(std::process::Stdio::null()).spawn().unwrap();
    eventually("a turn", DEADLINE, || project.root().join("../runs").exists().then_some(()));
    project.ok(taken);
    std::fs::write(project.root().join("../go"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(3));
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(state_of_session(project, &id), "needs_human");
    id
}

const GATED: &str = "hooks:\n  stop:\n    - {name: tests, command: 'true', timeout: 30s}\n";

#[test]
fn a_session_that_lost_its_task_can_claim_the_task_again_when_resumed() {
    let project = Project::with_config(GATED);
    project.trust();
    project.add("Do it", &["--id", "shared"]);
    let released = ["task", "release", "shared", "--epoch", "1"];
    let id = lose(&project, &["--task", "shared"], &released);
    let ran = project.run(&["resume", &id]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(project.state_of("shared"), "completed");
    assert_eq!(project.json(&["rebuild"])["equal"], true);
}

#[test]
fn a_session_whose_task_is_completed_elsewhere_cannot_be_resumed() {
    for (work, part) in [
        (&["--task", "shared"][..], "somebody else completed task `shared`"),
        (&["--tasks"], "no task is open"),
    ] {
        let project = Project::with_config(GATED);
        project.trust();
        project.add("Do it", &["--id", "shared"]);
        let id = lose(&project, work, &["task", "complete", "shared", "--force"]);
        let why = project.fails(1, &["resume", &id]);
        assert!(why.contains(&format!("session {id} can't continue: {part}")), "{why}");
        assert!(why.contains("run `hookloop task "), "{why}");
        assert_eq!(project.events_of("session_reopened").len(), 0);
    }
}

/// Pending outputs are kept while the session can be resumed, and the next prompt has them.
#[test]
fn outputs_of_a_session_that_escalated_wait_for_the_next_prompt() {
    let config = "hooks:\n  post_iteration:\n    - {name: a, command: 'echo from-a', pipe_output: true}\n    - \
                  {name: b, command: 'echo from-b', pipe_output: true}\n";
    let project = Project::with_config(config);
    project.trust();
    project.write("says.txt", "Which one?\n<promise>ESCALATE</promise>\n");
    let agent = crate::inbox::problems::AGENT;
    let ran = project.run(&["run", "Do it", "--agent", agent]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!ran.stdout.contains("not delivered"), "{}", ran.stdout);
    assert!(ran.stdout.contains("2 texts are pending for the next prompt"), "{ran:?}");
    std::fs::remove_file(project.root().join("prompts.txt")).unwrap();
    project.write("says.txt", "<promise>COMPLETE</promise>\n");
    let ran = project.run(&["resume", "--answer", "This one."]);
    assert_eq!(ran.code, 6, "there is no gate: {ran:?}");
    // A complete session reports no undelivered outputs.
    for text in ["not delivered", "did not reach", "pending for the next prompt"] {
        assert!(!ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
    let prompts = std::fs::read_to_string(project.root().join("prompts.txt")).unwrap();
    assert!(prompts.contains("from-a") && prompts.contains("from-b"), "{prompts}");
}
