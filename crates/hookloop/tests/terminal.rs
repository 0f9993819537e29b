//! Output on a terminal, which `script` provides.

use hookloop_testkit::eventually;

use crate::cli::{DEADLINE, ProgramOutput, Project};

const ESCAPE: char = '\u{1b}';

fn with_tasks() -> Project {
    let project = Project::new();
    project.add("First", &["--id", "first", "--label", "agent"]);
    project.add("Second", &["--id", "second", "--depends-on", "first"]);
    project.add(&"long ".repeat(60), &["--id", "third"]);
    project
}

/// Runs a line on a terminal of 100 columns; returns the output.
fn on_terminal(project: &Project, line: &str, environment: &[(&str, &str)]) -> String {
    let line = format!("stty cols 100; {line}");
    let mut command = project.command("script");
    command.args(["-qec", &line, "/dev/null"]).envs(environment.iter().copied());
    let run: ProgramOutput = command.output().unwrap().into();
    assert_eq!(run.code, 0, "{line}: {run:?}");
    run.stdout.replace("\r\n", "\n")
}

/// Returns the text without colours.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split(ESCAPE);
    let first = pieces.next().unwrap().to_owned();
    pieces.fold(first, |plain, piece| plain + piece.split_once('m').unwrap().1)
}

#[test]
fn task_lists_have_headings_colours_and_truncated_lines() {
    let seen = on_terminal(&with_tasks(), "hookloop task list", &[]);
    assert!(seen.contains("\u{1b}[32mready"), "{seen:?}");
    let plain = without_colours(&seen);
    let lines: Vec<&str> = plain.lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(words, ["id", "prio", "state", "labels", "goal"]);
    assert_eq!(lines.len(), 4, "{plain}");
    assert!(lines[1].ends_with('…') && lines[1].chars().count() == 100, "{plain}");
    assert!(lines[2].contains("waits for 1"), "{plain}");
    for row in &lines[1..] {
        let (goal, column) = (row.find("First").or(row.find("Second")), lines[0].find("goal"));
        assert!(goal.is_none() || goal == column, "columns: {plain}");
    }
}

#[test]
fn colours_can_be_switched_off() {
    let project = with_tasks();
    let check = |line: &str, environment: &[(&str, &str)], coloured: bool| {
        let seen = on_terminal(&project, line, environment);
        assert_eq!(seen.contains(ESCAPE), coloured, "{line} {environment:?}: {seen:?}");
    };
    for command in ["task list", "task show first", "log", "status", "hooks list", "task graph"] {
        check(&format!("hookloop {command}"), &[], true);
        check(&format!("hookloop {command} --color never"), &[], false);
        check(&format!("hookloop {command}"), &[("NO_COLOR", "1")], false);
        check(&format!("hookloop {command}"), &[("TERM", "dumb")], false);
    }
    check("hookloop task list | cat", &[], false);
    check("hookloop task show first --color always | cat", &[], true);
    check("hookloop task list --json", &[], false);
}

#[test]
fn errors_are_coloured_on_a_terminal_alone() {
    let project = with_tasks();
    let seen = on_terminal(&project, "hookloop task show nope || true", &[]);
    assert!(seen.contains(ESCAPE), "{seen:?}");
    assert!(without_colours(&seen).starts_with("error: there is no task"), "{seen:?}");
    let off = [("NO_COLOR", "1")];
    assert!(!on_terminal(&project, "hookloop task show nope || true", &off).contains(ESCAPE));
    let never = on_terminal(&project, "hookloop task show nope --color never || true", &[]);
    assert!(!never.contains(ESCAPE), "{never:?}");
}

#[test]
fn empty_task_lists_print_a_hint() {
    let project = Project::new();
    for (command, expected) in [
        ("task list", "No tasks yet. Add one: hookloop task add \"…\""),
        ("task ready", "No tasks are ready. See all: hookloop task list"),
    ] {
        let seen = without_colours(&on_terminal(&project, &format!("hookloop {command}"), &[]));
        assert_eq!(seen.trim(), expected, "{command}");
    }
}

#[test]
fn hostile_texts_stay_in_their_row() {
    let project = Project::new();
    project.add("\u{1b}[31mred\nnext \u{202e}row\u{9b}2J", &[]);
    let seen = on_terminal(&project, "hookloop task list --color never", &[]);
    assert!(!seen.contains([ESCAPE, '\u{202e}', '\u{9b}']), "{seen:?}");
    assert_eq!(seen.lines().count(), 2, "{seen:?}");
}

#[test]
fn init_asks_on_a_terminal() {
    let check = |answer: &str, written: bool| {
        let project = Project::bare();
        let line = format!(
            "printf '{answer}\\n' > answer; script -qec 'hookloop init' /dev/null < answer"
        );
        let run = project.shell(&line);
        assert!(run.stdout.contains("hookloop.yaml? [Y/n]"), "{run:?}");
        assert_eq!(project.root().join("hookloop.yaml").exists(), written, "{answer}: {run:?}");
    };
    check("y", true);
    check("", true);
    check("n", false);
}

/// Starts a session that asks for a decision on its terminal, where no one answers.
///
/// Gates fail until `fixed` exists. Returns the process and the key of the question.
fn asking(project: &Project) -> (std::process::Child, String) {
    let line = "hookloop run --plain x --agent scripted:turns.json --gate-retries 0";
    let mut command = project.command("script");
    command.args(["-qec", line, "/dev/null"]).stdout(std::process::Stdio::piped());
    let child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let key = eventually("the question", DEADLINE, || {
        let list = project.json(&["inbox", "list"]);
        let asks = |problem: &serde_json::Value| problem["type"] == "session_asks";
        let found = list.as_array().unwrap().iter().find(|problem| asks(problem)).cloned();
        found.map(|problem| problem["key"].as_str().unwrap().to_owned())
    });
    (child, key)
}

#[test]
fn a_decision_requested_on_a_terminal_can_be_made_through_the_inbox() {
    let config = "hooks: {stop: [{name: tests, command: 'test -e fixed'}]}\n";
    let check = |decision: &[&str], code: i32, ended: &str| {
        let project = Project::with_config(config);
        project.trust();
        let done = r#"{"say": "<promise>COMPLETE</promise>"}"#;
        let fixes = r#"{"write": {"fixed": ""}, "say": "<promise>COMPLETE</promise>"}"#;
        project.write("turns.json", &format!("[{done}, {fixes}]"));
        let (mut child, key) = asking(&project);
        let _keyboard = child.stdin.take();
        let why = project.fails(1, &["inbox", "answer", "session:none@1", "x"]);
        assert!(why.contains("nothing that needs a human"), "{why}");
        let args: Vec<&str> =
            decision.iter().map(|word| if *word == "KEY" { key.as_str() } else { word }).collect();
        project.ok(&[&["inbox"], args.as_slice()].concat());
        let run: ProgramOutput = child.wait_with_output().unwrap().into();
        assert_eq!(run.code, code, "{decision:?}: {run:?}");
        assert!(run.stdout.contains("answered elsewhere"), "{decision:?}: {run:?}");
        assert!(run.stdout.contains(ended), "{decision:?}: {run:?}");
        project
    };
    let project = check(&["answer", "KEY", "Fix the test."], 0, "complete after 2 iterations");
    let piped = project.events_of("output_piped");
    assert!(piped.iter().any(|event| event["data"]["text"] == "Fix the test."), "{piped:?}");
    assert_eq!(project.json(&["inbox", "list"]), serde_json::json!([]));
    let project = check(&["approve", "KEY"], 6, "without proof");
    assert_eq!(project.event("decision_made")["data"]["answer"], "accept");
    // The session still waits for a person.
    let project = check(&["abort", "KEY"], 3, "a human is needed");
    assert_eq!(project.json(&["inbox", "list"])[0]["type"], "session_ended");
    let key = project.json(&["inbox", "list"])[0]["key"].as_str().unwrap().to_owned();
    let why = project.fails(1, &["inbox", "abort", &key]);
    assert!(why.contains("only a session that needs a decision"), "{why}");
}
