//! Decisions of people on the pages of the dashboard.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::delivery_project::DeliveryProject;
use crate::support::project_with;
use crate::web::PLAIN;
use crate::web::browser::Browser;
use crate::web::server::Server;
use crate::web::stage::{DashboardProject, Ordinary};

const SAID: &str = "document.querySelector('#said').innerText";

/// Waits until the status message contains a text.
pub(super) fn await_said(browser: &mut Browser, text: &str) {
    browser.until(&format!("{SAID}.includes({})", json!(text)));
}

/// Returns a project with a task whose submission its reviewer refused.
fn refused() -> DeliveryProject {
    let config = "delivery: {}\nlimits: {max_continuations: 0}\nagents:\n  strict:\n    type: command\n    command: >-\n      \
         cat > $HOME/prompt;\n      \
         id=$(sed -n 's/.*\"const\": *\"\\([0-9a-f]*\\)\".*/\\1/p' $HOME/prompt | head -1);\n      \
         sed \"s/ID/$id/\" $HOME/answer\n\
         gatekeepers:\n  qa: {agent: strict}\nhooks:\n  before_merge:\n    - gatekeeper: qa\n";
    let delivery_project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    delivery_project.json_values(&["agents", "trust", "--yes"]);
    let refusal = r#"{"review": "ID", "verdict": "reject", "summary": "no", "findings": [
        {"file": "work.txt", "line": 1, "message": "not like this", "severity": "blocker"}]}"#;
    fs::write(delivery_project.root().parent().unwrap().join("home/answer"), refusal).unwrap();
    delivery_project.add("t1", &[]);
    delivery_project.does("t1", 1, "echo fine > work.txt");
    assert_eq!(delivery_project.run_tasks().code, 6, "no gate has passed yet");
    assert_eq!(delivery_project.merge()["t1"].0, "blocked");
    delivery_project
}

#[test]
fn a_submission_is_approved_on_the_dashboard() {
    let delivery_project = refused();
    let server = Server::spawn(delivery_project.json_command(&["serve", "--port", "0"]));
    let (mut browser, _) = server.visited();
    browser.click("form[data-post]:has(input[value=approve]) button");
    await_said(&mut browser, "Approved: task t1 is submitted");
    assert!(browser.questions[0].contains("Accept the submitted work?"), "{:?}", browser.questions);
    browser
        .until("document.querySelector('#part-problems').innerText.includes('The inbox is empty')");
    assert_eq!(delivery_project.state("t1"), "submitted");
    browser.assert_calm("an approval");
    assert_eq!(delivery_project.merge()["t1"].0, "merged");
}

/// A question is answered with the keyboard alone, without a mouse.
#[test]
fn a_blocked_task_is_answered_with_the_keyboard_only() {
    let test_project = project_with(PLAIN);
    test_project.json(&["task", "add", "Ask", "--id", "ask"]);
    test_project.json(&["task", "block", "ask", "--reason", "Which one?"]);
    let server = Server::start(&test_project);
    let (mut browser, _) = server.visited();
    let mut reached = Vec::new();
    while browser.text("document.activeElement.name ?? ''") != "text" {
        browser.key("Tab");
        reached.push(browser.text("document.activeElement.innerText ?? ''"));
        assert!(reached.len() < 40, "{reached:?}");
        let outline = browser.text("getComputedStyle(document.activeElement).outlineStyle");
        assert_ne!(outline, "none", "the focus is not visible: {reached:?}");
    }
    browser.call("Input.insertText", json!({ "text": "The <b>left</b> one" }));
    browser.key("Enter");
    await_said(&mut browser, "Answered: task ask is ready");
    browser
        .until("document.querySelector('#part-problems').innerText.includes('The inbox is empty')");
    let notes = test_project.json(&["task", "show", "ask"])["notes"].clone();
    assert_eq!(notes[0]["text"], "The <b>left</b> one");
    assert_eq!(notes[0]["by"], "tester");
}

#[test]
fn outdated_and_invalid_actions_are_refused_without_effect() {
    let test_project = project_with(PLAIN);
    test_project.json(&["task", "add", "Ask", "--id", "ask"]);
    test_project.json(&["task", "block", "ask", "--reason", "Which one?"]);
    let server = Server::start(&test_project);
    let act = |body: Value| {
        let (status, told) =
            server.ask("POST", &format!("{}do", server.project()), &body.to_string());
        (status, serde_json::from_str::<Value>(&told).unwrap())
    };
    let key = test_project.json(&["inbox", "list"])[0]["key"].clone();
    let (status, told) = act(json!({ "do": "dismiss", "key": key }));
    assert_eq!((status, &told["message"]), (200, &"Dismissed".into()));
    test_project.json(&["task", "unblock", "ask"]);
    let before = test_project.count_events();
    for (body, expected) in [
        (json!({ "do": "answer", "key": key, "text": "The left one" }), 409),
        (json!({ "do": "approve", "key": key }), 409),
        (json!({ "do": "dismiss", "key": "nothing" }), 400),
        (json!({ "do": "answer", "key": key, "text": "a", "force": true }), 400),
        (json!({ "do": "delete", "key": key }), 400),
        (json!({ "do": "pause", "session": "none" }), 409),
        (json!({ "do": "resume", "session": "none" }), 409),
        (json!({ "do": "message", "session": "none", "text": "Hello" }), 409),
        (json!([]), 400),
    ] {
        let (status, told) = act(body.clone());
        assert_eq!(status, expected, "{body} {told}");
        assert!(told["error"].as_str().is_some_and(|why| !why.is_empty()), "{body} {told}");
    }
    assert_eq!(test_project.count_events(), before);
}

#[test]
fn a_session_is_messaged_paused_and_resumed_on_the_dashboard() {
    let mut stage = DashboardProject::new(&Ordinary);
    let turns = json!([
        { "say": "A start.", "run": "while [ ! -e go ]; do sleep 0.05; done" },
        { "say": "Done.\n<promise>COMPLETE</promise>", "write": { "answer": "42\n" } },
    ]);
    let id = stage.start_turns("slow", &turns);
    let server = Server::start(&stage.project);
    let (mut browser, project) = server.visited();
    browser.go(&format!("{project}sessions/{id}"));
    browser.type_into("#message", "Look at <i>src</i> first");
    browser.key("Enter");
    await_said(&mut browser, "contains the message");
    browser.until(
        "document.querySelector('#part-waiting').innerText.includes('Look at <i>src</i> first')",
    );
    browser.click("form:has(input[value=pause]) button");
    await_said(&mut browser, "pauses when its turn is over");
    fs::write(stage.project.root().join("go"), "").unwrap();
    browser.until("document.querySelector('#part-facts .state').innerText == 'paused'");
    browser.click("form:has(input[value=resume]) button");
    await_said(&mut browser, "resumed");
    browser.until("document.querySelector('#part-facts .state').innerText == 'complete'");
    browser.assert_calm("a session");
}

#[test]
fn a_session_is_stopped_on_the_dashboard_after_a_confirmation() {
    let mut stage = DashboardProject::new(&Ordinary);
    let id = stage.start_session("slow");
    let server = Server::start(&stage.project);
    let (mut browser, project) = server.visited();
    browser.go(&format!("{project}sessions/{id}"));
    browser.click("form:has(input[value=stop]) button");
    await_said(&mut browser, &format!("Session {id} is stopping"));
    await_said(&mut browser, &format!("hookloop resume {id}"));
    let asked = &browser.questions[0];
    assert!(asked.contains("Stop this session now?"), "{asked}");
    browser.until("document.querySelector('#part-facts .state').innerText == 'cancelled'");
    browser.until("!document.querySelector('form:has(input[value=stop])')");
    browser.assert_calm("a stopped session");
    // A request from a page that was open before is refused.
    let body = json!({ "do": "stop", "session": id });
    let (status, told) = server.ask("POST", &format!("{}do", server.project()), &body.to_string());
    assert!(status == 409 && told.contains("is not running: cancelled"), "{status} {told}");
    let body = json!({ "do": "stop", "session": "none" });
    let (status, told) = server.ask("POST", &format!("{}do", server.project()), &body.to_string());
    assert!(status == 409 && told.contains("there is no session `none`"), "{status} {told}");
}

/// An agent that starts a server does not count as the person who decides.
#[test]
fn an_agent_cannot_start_the_dashboard() {
    let test_project = project_with(PLAIN);
    let mut command = test_project.json_command(&["serve", "--port", "0"]);
    let output = command.env("HOOKLOOP_SESSION", "abc").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("only a person can serve the dashboard"), "{told}");
}

/// Returns a command that runs on a terminal, as a person would run it.
fn on_terminal(command: &Command, more: &str) -> Command {
    let words = command.get_args().filter(|word| *word != "--json");
    let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let line = format!("{} {}{more}", command.get_program().display(), words.join(" "));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(command.get_current_dir().unwrap());
    script.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    script.envs(command.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    script.stdin(Stdio::piped()).stdout(Stdio::null());
    script
}

#[test]
fn a_decision_requested_on_a_terminal_is_answered_on_the_dashboard() {
    let test_project =
        project_with("version: 1\nhooks: {stop: [{name: tests, command: 'test -e fixed'}]}\n");
    test_project.trust();
    let fixes = r#"{"write": {"fixed": ""}, "say": "<promise>COMPLETE</promise>"}"#;
    let turns = format!(r#"[{{"say": "<promise>COMPLETE</promise>"}}, {fixes}]"#);
    fs::write(test_project.root().join("turns.json"), turns).unwrap();
    let server = Server::start(&test_project);
    let (mut browser, _) = server.visited();
    let run = test_project.json_command(&["run", "--plain", "x", "--agent", "scripted:turns.json"]);
    let mut asking = on_terminal(&run, " --gate-retries 0").spawn().unwrap();
    browser
        .until("document.querySelector('#part-problems').innerText.includes('needs a decision')");
    browser.click("form[data-post]:has(input[value=continue]) button");
    await_said(&mut browser, "Continued");
    browser
        .until("document.querySelector('#part-problems').innerText.includes('The inbox is empty')");
    browser.assert_calm("an answer");
    assert_eq!(asking.wait().unwrap().code(), Some(0));
}
