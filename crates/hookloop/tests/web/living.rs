//! Pages with live updates.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::project_with;
use crate::web::PLAIN;
use crate::web::browser::PATIENCE;
use crate::web::server::Server;

#[test]
fn a_new_task_appears_without_a_reload_and_keeps_the_focused_input() {
    let test_project = project_with(PLAIN);
    test_project.json(&["task", "add", "The first", "--id", "first"]);
    let server = Server::start(&test_project);
    let (mut browser, project) = server.visited();
    browser.go(&format!("{project}tasks"));
    browser.until("document.querySelector('#live').textContent == 'live'");
    browser.eval("window.isTheSame = true");
    browser.type_into("input[name=q]", "half a wo");
    test_project.json(&["task", "add", "Comes <b>later</b>", "--id", "later"]);
    browser.until("document.querySelector('[data-key=later]')?.innerText.includes('Comes <b>later</b>') ?? false");
    assert_eq!(browser.eval("window.isTheSame"), true, "the page was loaded again");
    assert_eq!(browser.text("document.activeElement.name"), "q");
    assert_eq!(browser.text("document.activeElement.value"), "half a wo");
    test_project.json(&["task", "delete", "first"]);
    browser.until("document.querySelector('[data-key=first]') == null");
    test_project.json(&["task", "block", "later", "--reason", "Which one?"]);
    browser.until("document.querySelector('#problem-count').innerText.startsWith('1')");
    browser.assert_calm("a page that follows");
}

#[test]
fn the_list_of_projects_follows_without_a_reload() {
    let test_project = project_with(PLAIN);
    let server = Server::start(&test_project);
    let (mut browser, _) = server.visited();
    browser.go(&server.url("/"));
    browser.eval("window.isTheSame = true");
    let ready = |count: usize| {
        format!("document.querySelectorAll('#part-list td')[2].innerText == '{count}'")
    };
    browser.until(&ready(0));
    test_project.json(&["task", "add", "Something to do"]);
    browser.until(&ready(1));
    assert_eq!(browser.eval("window.isTheSame"), true, "the page was loaded again");
    browser.assert_calm("the list of projects");
}

/// A gate that prints a line before and after it waits for a file.
const SLOW_GATE: &str = "version: 1
hooks:
  stop:
    - {name: slow, room: here, command: 'echo one of two; until [ -e go ]; do sleep 0.05; done; echo two of two'}
";

#[test]
fn a_running_gate_is_shown_with_its_command_and_last_lines() {
    let test_project = project_with(SLOW_GATE);
    test_project.trust();
    let turns = r#"[{"write": {"work": "1"}, "say": "<promise>COMPLETE</promise>"}]"#;
    test_project.write("turns.json", turns);
    let server = Server::start(&test_project);
    let (mut browser, project) = server.visited();
    let mut run = test_project.json_command(&["run", "x", "--agent", "scripted:turns.json"]);
    let mut session = run.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    browser.until("document.querySelector('#part-running').innerText.includes('stop slow runs, ')");
    let sessions = test_project.json(&["sessions", "list"]);
    let id = sessions[0]["id"].as_str().unwrap();
    browser.go(&format!("{project}sessions/{id}"));
    let hook = "(document.querySelector('.now-hook')?.innerText ?? '')";
    browser.until(&format!("{hook}.includes('slow echo one of two; until [ -e go ]')"));
    browser.until("document.querySelector('.now-hook pre').innerText.trim() == 'one of two'");
    test_project.write("go", "");
    browser.until("document.querySelector('.now-hook') == null");
    browser.assert_calm("a running gate");
    assert_eq!(session.wait().unwrap().code(), Some(0));
}

/// Checks that an empty list names the command that fills it.
#[test]
fn empty_pages_name_the_command_to_type() {
    let test_project = project_with(PLAIN);
    let server = Server::start(&test_project);
    let (mut browser, project) = server.visited();
    let expected = [
        ("", "hookloop run "),
        ("sessions", "hookloop run "),
        ("tasks", "hookloop task add "),
        ("graph", "hookloop task add "),
        ("usage", "hookloop run "),
        ("fleet", "hookloop worker "),
    ];
    for (page, command) in expected {
        browser.go(&format!("{project}{page}"));
        let shown = browser.text(
            "[...document.querySelectorAll('.calm-line code')].map(code => code.innerText).join('\\n')",
        );
        assert!(shown.lines().any(|line| line.starts_with(command)), "{page}: {shown}");
    }
}

/// Returns the next live update.
fn word(reads: &mut impl BufRead) -> String {
    let mut word = String::new();
    while !word.contains("event: changed") || !word.ends_with("\n\n") {
        let mut line = String::new();
        assert!(reads.read_line(&mut line).unwrap() > 0, "it ended: {word}");
        // The length of a chunk is not part of the update.
        if line.ends_with("\r\n") {
            continue;
        }
        word.push_str(&line);
    }
    word
}

#[test]
fn live_updates_include_missed_changes_and_are_rate_limited() {
    let test_project = project_with(PLAIN);
    let server = Server::start(&test_project);
    let project = server.project();
    let before = test_project.count_events();
    test_project.json(&["task", "add", "While nobody looked"]);
    let mut reads =
        BufReader::new(server.asking("GET", &format!("{project}live?since={before}"), ""));
    assert!(word(&mut reads).contains("tasks"));
    let lines: Vec<_> =
        (0..3_000).map(|n| serde_json::json!({ "goal": format!("Task {n}") })).collect();
    let began = Instant::now();
    test_project.import_tasks(&lines);
    test_project.json(&["task", "add", "The last", "--id", "last"]);
    let last = test_project.count_events();
    let mut words = 0;
    loop {
        let word = word(&mut reads);
        words += 1;
        if word.contains(&format!("id: {last}\n")) {
            break;
        }
    }
    let most = began.elapsed().as_millis() / 250 + 2;
    assert!(words <= most, "{words} words in {:?}", began.elapsed());
}

#[test]
fn the_number_of_live_pages_is_limited() {
    let test_project = project_with(PLAIN);
    let mut server = Server::start(&test_project);
    let live = format!("{}live", server.project());
    let mut following: Vec<_> = (0..64)
        .map(|_| {
            let mut reads = BufReader::new(server.asking("GET", &live, ""));
            let mut line = String::new();
            while !line.contains("hello") {
                line.clear();
                assert!(reads.read_line(&mut line).unwrap() > 0);
            }
            reads
        })
        .collect();
    let (status, told) = server.ask("GET", &live, "");
    assert_eq!(status, 503);
    assert!(told.contains("64 pages are live"), "{told}");
    let (status, _) = server.ask("GET", &server.project(), "");
    assert_eq!(status, 200);
    // A closed connection frees its slot.
    drop(following.pop());
    let end = Instant::now() + PATIENCE;
    loop {
        let mut stream = server.asking("GET", &live, "");
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        if start.ends_with(b"200") {
            break;
        }
        assert!(Instant::now() < end, "the slot is not free again");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Open connections do not keep the server from ending.
    let began = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// A gate that prints a line, and ends when the test creates its file.
const SLOW: &str = "version: 1
hooks:
  stop:
    - {name: quick, command: 'true'}
    - {name: slow, room: here, command: 'echo \"<b>one</b> of two\"; until [ -e go-2 ]; do sleep 0.05; done; echo two of two; until [ -e go-3 ]; do sleep 0.05; done'}
";

#[test]
fn the_output_of_a_running_gate_is_shown_live() {
    let test_project = project_with(SLOW);
    let write = |name: &str, text: &str| {
        std::fs::write(test_project.root().join(name), text).unwrap();
    };
    write("turns.json", r#"[{"say": "<promise>COMPLETE</promise>"}]"#);
    test_project.trust();
    let run = ["run", "work", "--agent", "scripted:turns.json", "--no-changes-ok"];
    let mut command = test_project.json_command(&run);
    command.stdout(std::process::Stdio::null());
    let mut session = command.spawn().unwrap();
    let server = Server::start(&test_project);
    let (mut browser, project) = server.visited();
    browser.until("document.querySelector('#part-running')?.innerText.includes('stop slow (2 of 2) runs') ?? false");
    let link = browser.text("document.querySelector('#part-running tbody a').getAttribute('href')");
    browser.go(&server.url(&link));
    browser.eval("window.isTheSame = true");
    let shows =
        |text: &str| format!("document.querySelector('#part-now').innerText.includes('{text}')");
    browser.until(&shows("<b>one</b> of two"));
    browser.until(&shows("stop slow (2 of 2) runs"));
    if let Some(to) = std::env::var_os("HOOKLOOP_PAGES") {
        browser.size(1280, 800);
        let to = std::path::PathBuf::from(to);
        std::fs::write(to.join("gate.png"), browser.picture()).unwrap();
    }
    write("go-2", "");
    browser.until(&shows("two of two"));
    write("go-3", "");
    browser.until(&shows("The session has ended."));
    assert_eq!(browser.eval("window.isTheSame"), true, "the page was loaded again");
    assert!(session.wait().unwrap().code().is_some_and(|code| code == 0 || code == 6));
    browser.go(&project);
    browser.assert_calm("a session that runs");
}
