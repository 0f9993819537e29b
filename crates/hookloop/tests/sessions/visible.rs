//! Failures that stop nothing are shown: in the output of `run`, by `sessions show`, and to the
//! agent if the hook requests it.

use hookloop_testkit::TestProject;

use super::{scripted, trusted_project};

const DONE: &str = r#"{"write": {"work": "1"}, "say": "<promise>COMPLETE</promise>"}"#;

/// Returns the output of the program without `--json`.
pub(super) fn shown(project: &TestProject, args: &[&str]) -> String {
    let output = project.run(args);
    output.stdout + &output.stderr
}

fn run_for_people(project: &TestProject, turns: &str) -> String {
    project.write("turns.json", turns);
    shown(project, &["run", "work", "--agent", "scripted:turns.json", "--no-changes-ok"])
}

/// Exit code 1 of a gate with `on_failure: open` lets the work pass; its output is information.
#[test]
fn output_of_an_open_gate_that_failed_is_shown() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true'}
    - {name: advice, command: 'echo three warnings; echo look at them >&2; exit 1', on_failure: open}
";
    let project = trusted_project(config, &[]);
    let output = run_for_people(&project, &format!("[{DONE}]"));
    assert!(output.contains("complete after 1 iteration"), "{output}");
    for line in ["| three warnings", "| look at them", "advice"] {
        assert!(output.contains(line), "{line}: {output}");
    }
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let output = shown(&project, &["sessions", "show", &id]);
    assert!(output.contains("| three warnings"), "{output}");
}

/// hookloop cannot name the failing checks of an unknown test runner, so it shows the gate's
/// output.
#[test]
fn the_last_output_of_a_gate_that_blocks_is_shown() {
    let gate = "#!/bin/sh
for n in 1 2 3 4 5 6 7 8 9; do echo \"line $n.\"; done
printf '\\033[31mred\\033[0m\\tafter a tab\\007\\n' >&2
exit 1
";
    let config = "version: 1\nhooks:\n  stop:\n    - {name: odd, command: ./gate.sh}\n";
    let project = trusted_project(config, &[("gate.sh", gate)]);
    project.write("turns.json", &format!("[{DONE}]"));
    let run = ["run", "work", "--agent", "scripted:turns.json", "--gate-retries", "0"];
    let output = shown(&project, &run);
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let later = shown(&project, &["sessions", "show", &id]);
    for text in [output, later] {
        assert!(text.contains("sent back: gate odd failed"), "{text}");
        assert!(text.contains("| line 3.") && text.contains("| line 9."), "{text}");
        assert!(!text.contains("| line 2."), "more than eight lines: {text}");
        assert!(text.contains("| red     after a tab\\x07\n"), "{text}");
    }
}

/// The output names the failing checks instead.
#[test]
fn the_output_of_a_known_test_runner_is_not_repeated() {
    let gate = "#!/bin/sh
echo 'running 1 test'
echo 'test latin1 ... FAILED'
echo
echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
exit 101
";
    let config = "version: 1\nhooks:\n  stop:\n    - {name: tests, command: ./gate.sh}\n";
    let project = trusted_project(config, &[("gate.sh", gate)]);
    project.write("turns.json", &format!("[{DONE}]"));
    let run = ["run", "work", "--agent", "scripted:turns.json", "--gate-retries", "0"];
    let output = shown(&project, &run);
    assert!(output.contains("sent back by tests: latin1 fails"), "{output}");
    assert!(!output.contains("| test"), "{output}");
}

/// A reaction to an event of the session fails while the session runs.
#[test]
fn a_failed_reaction_is_shown_in_the_output_of_its_session() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true'}
  task_completed:
    - {name: publish, command: 'echo no network; exit 3'}
    - {name: odd, command: 'echo \"[{\\\"type\\\": \\\"sudo\\\", \\\"payload\\\": {}}]\"'}
";
    let project = trusted_project(config, &[]);
    project.json(&["task", "add", "Goal", "--id", "t1"]);
    project.write("turns.json", &format!("[{DONE}]"));
    let args = ["run", "--tasks", "--agent", "scripted:turns.json"];
    let output = shown(&project, &args);
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let later = shown(&project, &["sessions", "show", &id]);
    for text in [output, later] {
        assert!(text.contains("task_completed publish") && text.contains("exit code 3"), "{text}");
        assert!(text.contains("| no network"), "{text}");
        assert!(text.contains("could not sudo  there is no action `sudo`"), "{text}");
    }
    let why = shown(&project, &["why", &id]);
    assert!(why.contains("hook `publish` at task_completed failed: exit code 3"), "{why}");
}

/// The output of gates that do not block and request `pipe_output` is in the next prompt.
#[test]
fn output_of_gates_with_pipe_output_is_in_the_next_prompt() {
    let config = "version: 1
hooks:
  stop:
    - {name: coverage, command: 'echo coverage is 71 percent', pipe_output: true}
    - {name: quiet, command: 'echo nobody reads this'}
    - {name: advice, command: 'echo one warning; exit 1', on_failure: open, pipe_output: on_failure}
    - {name: tests, command: 'grep -q 42 answer || { echo wrong answer; exit 2; }'}
";
    let project = trusted_project(config, &[("answer", "41\n")]);
    let turns = r#"[
        {"say": "<promise>COMPLETE</promise>"},
        {"write": {"answer": "42\n"}, "say": "<promise>COMPLETE</promise>"},
        {"say": "Read it."}
    ]"#;
    let ran = scripted(&project, turns, &[]);
    assert_eq!(ran.verdicts(), ["block", "pass"], "{}", ran.stderr);
    let piped: Vec<(&str, &str)> = ran
        .all("output_piped")
        .iter()
        .map(|piped| (piped["from"].as_str().unwrap(), piped["text"].as_str().unwrap()))
        .filter(|(from, _)| !["tests", "hookloop"].contains(from))
        .collect();
    let advice = "exit code 1\none warning";
    let coverage = "coverage is 71 percent";
    let both = [("coverage", coverage), ("advice", advice)];
    assert_eq!(piped, [both, both].concat());
    // A final turn gets the output of the gates of the last claim, once.
    assert_eq!(ran.count("turn_started"), 1);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(project.read("answer"), "42\n");
}

#[test]
fn pipe_output_where_no_prompt_follows_is_refused() {
    let project = trusted_project("version: 1\n", &[]);
    for point in ["before_merge", "after_merge", "stop_when"] {
        let hook = format!(
            "version: 1\nhooks:\n  {point}:\n    - {{command: 'true', pipe_output: true}}\n"
        );
        project.write("hookloop.yaml", &hook);
        let output = shown(&project, &["hooks", "list"]);
        let expected = format!("`pipe_output` has no effect at `{point}`");
        assert!(output.contains(&expected), "{point}: {output}");
        project.write("hookloop.yaml", &hook.replace("true}", "false}"));
        let output = shown(&project, &["hooks", "list"]);
        assert!(!output.contains("pipe_output"), "{point}: {output}");
    }
}
