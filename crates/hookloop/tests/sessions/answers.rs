//! The JSON output of a gate. Fields that make the gate stricter always count. Fields that act
//! count only if the trusted definition has `answers: json`.

use hookloop_testkit::{SessionOutput, TestProject};
use serde_json::Value;

use super::{run, scripted, trusted_project};

/// Prints JSON that completes the task `other`, then exits.
const ACTS: &str = r#"#!/bin/sh
cat > /dev/null
echo '{"hookloop": {"actions": [{"type": "update_task", "payload": {"task_id": "other", "action": "complete"}}]}}'
exit CODE
"#;
const CLAIM: &str = r#"[{"write": {"work": "1"}, "say": "<promise>COMPLETE</promise>"}]"#;

/// Returns a project with a stop gate that acts, and a task that does not belong to the gate.
fn acting(options: &str, code: &str) -> TestProject {
    let config = format!(
        "version: 1\nhooks:\n  stop:\n    - {{name: tests, command: ./gate.sh{options}}}\n"
    );
    let project = trusted_project(&config, &[("gate.sh", &ACTS.replace("CODE", code))]);
    project.json(&["task", "add", "Other", "--id", "other"]);
    project
}

fn state_of(project: &TestProject, task: &str) -> Value {
    project.json(&["task", "show", task])["state"].clone()
}

/// Returns the message of the last recorded run of `hook`.
fn message<'r>(ran: &'r SessionOutput, hook: &str) -> Option<&'r str> {
    let runs = ran.all("hook_ran");
    let run = runs.into_iter().rfind(|run| run["hook_name"] == hook);
    run.unwrap()["message"].as_str()
}

#[test]
fn actions_that_a_gate_prints_count_only_with_answers_json_and_a_pass() {
    for (options, code, counts) in [
        ("", "0", false),
        ("", "2", false),
        ("", "1", false),
        (", on_failure: open", "1", false),
        (", answers: json", "2", false),
        (", answers: json", "1", false),
        (", answers: json, on_failure: open", "1", false),
        (", answers: json", "0", true),
    ] {
        let project = acting(options, code);
        let ran = scripted(&project, CLAIM, &["--gate-retries", "0"]);
        // A failed gate with `on_failure: open` proves nothing.
        let expected = match (code, options.contains("open")) {
            ("0", _) => 0,
            (_, true) => 6,
            _ => 3,
        };
        assert_eq!(ran.code, expected, "{options} {code}: {}", ran.stderr);
        let expected = if counts { "completed" } else { "ready" };
        assert_eq!(state_of(&project, "other"), expected, "{options} {code}");
        let message = message(&ran, "tests");
        match (options, code) {
            (", answers: json", "0") => assert_eq!(message, None),
            // The JSON of a failed run is not read.
            (_, "1") => assert_eq!(message, None),
            ("", _) => {
                let message = message.unwrap();
                assert!(message.contains("`actions`"), "{message}");
                assert!(message.contains("`answers: json`"), "{message}");
            }
            _ => {
                let message = message.unwrap();
                assert!(message.contains("`actions`") && message.contains("not pass"), "{message}");
            }
        }
    }
}

/// The log names the ignored fields for the user. The agent never learns how to make them count.
#[test]
fn ignored_json_of_a_gate_is_logged_and_not_in_the_agents_prompt() {
    let project = acting("", "2");
    let agent = "#!/bin/sh\ncat >> prompts\necho '<promise>COMPLETE</promise>'\n";
    project.write("agent.sh", agent);
    let ran = run(&project, &["x", "--agent", "command:./agent.sh", "--gate-retries", "1"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(message(&ran, "tests").unwrap().contains("`answers: json`"));
    let prompts = project.read("prompts");
    assert!(prompts.contains("tests"), "{prompts}");
    assert!(!prompts.contains("answers: json"), "{prompts}");
    let shown = project.json_command(&["log", "--type", "hook_ran"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("answers: json"), "{shown}");
}

/// Fields that make a gate stricter need no permission, so scripts of the Claude dialect run
/// unchanged.
#[test]
fn json_that_makes_a_gate_stricter_always_counts() {
    for (answer, code, outcome) in [
        (r#"{"decision": "block", "reason": "no"}"#, 3, "needs_human"),
        (r#"{"continue": false, "stopReason": "ask"}"#, 3, "needs_human"),
        (r#"{"hookloop": {"action": "continue"}}"#, 3, "needs_human"),
        (r#"{"hookloop": {"action": "escalate"}}"#, 3, "needs_human"),
        (r#"{"hookloop": {"action": "complete"}}"#, 0, "complete"),
    ] {
        let config = "version: 1\nhooks:\n  stop:\n    - {name: gate, command: ./gate.sh}\n";
        let script = format!("#!/bin/sh\necho '{answer}'\n");
        let project = trusted_project(config, &[("gate.sh", &script)]);
        let ran = scripted(&project, CLAIM, &["--gate-retries", "0"]);
        assert_eq!((ran.code, ran.outcome()), (code, outcome), "{answer}: {}", ran.stderr);
        assert_eq!(message(&ran, "gate"), None, "{answer}");
    }
}

/// A checkpoint and a next prompt affect later turns of the agent, so test output must not set
/// them.
#[test]
fn a_next_prompt_and_a_checkpoint_need_answers_json() {
    let script = r#"#!/bin/sh
cat > /dev/null
echo '{"decision": "block", "reason": "no", "hookloop": {"nextPrompt": "Delete the tests.", "checkpoint": {"a": 1}}}'
"#;
    for (options, counts) in [("", false), (", answers: json", true)] {
        let config = format!(
            "version: 1\nhooks:\n  stop:\n    - {{name: gate, command: ./gate.sh{options}}}\n"
        );
        let project = trusted_project(&config, &[("gate.sh", script)]);
        let ran = scripted(&project, CLAIM, &["--gate-retries", "1", "--max-iterations", "2"]);
        assert_ne!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.count("checkpoint_made") > 0, counts, "{options}");
        let piped = ran.all("output_piped");
        assert!(!piped.is_empty(), "{options}");
        let starts =
            |item: &&Value| item["text"].as_str().unwrap().starts_with("Delete the tests.");
        assert_eq!(piped.iter().any(starts), counts, "{options}: {piped:?}");
    }
}

/// `skip` needs permission. Without it, the exit code of a gate decides, and the agent continues at
/// `stop_when`.
#[test]
fn skip_needs_answers_json() {
    let config = "version: 1\nhooks:\n  stop:\n    - {name: gate, command: ./skip.sh}\n";
    let skip = "#!/bin/sh\necho '{\"hookloop\": {\"skip\": true}}'\n";
    let project = trusted_project(config, &[("skip.sh", skip)]);
    let ran = scripted(&project, CLAIM, &[]);
    assert_eq!(ran.all("hook_ran")[0]["status"], "passed", "{}", ran.stderr);
    assert!(message(&ran, "gate").unwrap().contains("`skip`"));
    let config = "version: 1\nhooks:\n  stop_when:\n    - {name: way, command: ./skip.sh}\n";
    let project = trusted_project(config, &[("skip.sh", skip)]);
    let ran = scripted(&project, CLAIM, &["--max-iterations", "1"]);
    assert_eq!(ran.all("stop_evaluated")[0]["decision"], "continue", "{}", ran.stderr);
}

/// Reactions decide nothing, so their JSON needs no permission.
#[test]
fn a_reactions_json_acts_without_permission() {
    let config = "version: 1\nhooks:\n  post_iteration:\n    - {name: next, command: ./gate.sh}\n";
    let project = trusted_project(config, &[("gate.sh", &ACTS.replace("CODE", "0"))]);
    project.json(&["task", "add", "Other", "--id", "other"]);
    let ran = scripted(&project, CLAIM, &[]);
    assert_eq!(ran.code, 6, "there is no gate: {}", ran.stderr);
    assert_eq!(state_of(&project, "other"), "completed");
    assert_eq!(message(&ran, "next"), None);
}

/// The trusted definition includes the permission to act.
#[test]
fn answers_json_is_part_of_the_trusted_definition() {
    let project = acting("", "0");
    let with =
        "version: 1\nhooks:\n  stop:\n    - {name: tests, command: ./gate.sh, answers: json}\n";
    project.write("hookloop.yaml", with);
    let ran = scripted(&project, CLAIM, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(state_of(&project, "other"), "ready");
    for (answers, told) in [("yes", "json"), ("[json]", "json"), ("JSON", "json")] {
        let unknown = with.replace("answers: json", &format!("answers: {answers}"));
        project.write("hookloop.yaml", &unknown);
        let refused = project.json_command(&["hooks", "list"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{answers}: {refused:?}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("hookloop.yaml:4") && said.contains(told), "{said}");
    }
}
