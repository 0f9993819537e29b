//! The input of hook commands, and the meaning of their answers.

use serde_json::{Value, json};

use crate::cli::Project;

fn gate(script: &str) -> Project {
    gate_with("timeout: 20s", script)
}

fn gate_with(options: &str, script: &str) -> Project {
    let project = Project::with_config(&format!(
        "hooks:\n  stop:\n    - {{name: check, command: [./check.sh], {options}}}\n"
    ));
    project.script("check.sh", script);
    project.trust();
    project
}

fn run(project: &Project) -> Value {
    project.try_hook(&["check"])
}

#[test]
fn exit_codes_and_json_output_decide_a_gates_verdict() {
    let check = |script: &str, status: &str, verdict: &str, feedback: Value| {
        let run = run(&gate(script));
        assert_eq!(
            (&run["status"], &run["verdict"], &run["feedback"]),
            (&json!(status), &json!(verdict), &feedback),
            "{script}: {run}"
        );
    };
    check("true", "passed", "pass", Value::Null);
    check("echo two tests fail >&2; exit 2", "blocked", "block", json!("two tests fail"));
    check("echo '{\"decision\":\"block\",\"reason\":\"r\"}'", "blocked", "block", json!("r"));
    check(
        "echo '{\"continue\":false,\"stopReason\":\"ask\"}'",
        "blocked",
        "escalate",
        json!("ask"),
    );
    check("exit 1", "failed", "block", json!("exit code 1"));
    check("kill -9 $$", "killed", "block", json!("killed by signal 9"));
    let broken = run(&gate("echo '{broken}'"));
    assert_eq!((&broken["status"], &broken["verdict"]), (&json!("failed"), &json!("block")));
}

/// Row 4 of the bugs to beat: a gate that crashes or times out is reported, and does not pass
/// unless the file has `on_failure: open`. A gate that blocks still blocks then.
#[test]
fn a_gate_that_crashes_or_times_out_passes_only_with_on_failure_open() {
    let check = |options: &str, script: &str, status: &str, verdict: &str| {
        let run = run(&gate_with(options, script));
        let seen = (run["status"].as_str().unwrap(), run["verdict"].as_str().unwrap());
        assert_eq!(seen, (status, verdict), "{options} {script}: {run}");
    };
    for (script, status) in [
        ("kill -SEGV $$", "killed"),
        ("exec ./no-such-program", "failed"),
        ("echo '{\"decision\": nope}'", "failed"),
    ] {
        check("timeout: 20s", script, status, "block");
        check("timeout: 20s, on_failure: open", script, status, "pass");
    }
    check("timeout: 300ms", "sleep 600", "timed_out", "block");
    check("timeout: 300ms, on_failure: open", "sleep 600", "timed_out", "pass");
    check("timeout: 20s, on_failure: open", "echo '{broken}'; exit 2", "blocked", "block");
    let missing = gate("true");
    missing.configure("hooks: {stop: [{name: check, command: [./gone.sh], timeout: 9s}]}\n");
    missing.ok(&["hooks", "trust", "--yes"]);
    let run = run(&missing);
    assert_eq!((&run["status"], &run["verdict"]), (&json!("not_started"), &json!("block")));
}

/// Row 3 of the bugs to beat: the verdict of a gate does not depend on the length of its output.
#[test]
fn long_gate_output_is_evaluated_and_oversized_output_fails() {
    let says =
        |size: usize| format!("printf '{{\"decision\":\"block\",\"reason\":\"%0{size}d\"}}' 0");
    let long = run(&gate(&says(500_000)));
    assert_eq!((&long["status"], &long["verdict"]), (&json!("blocked"), &json!("block")));
    assert_eq!(long["feedback"].as_str().unwrap().len(), 500_000);
    let too_long = run(&gate(&says(2_000_000)));
    assert_eq!((&too_long["status"], &too_long["verdict"]), (&json!("failed"), &json!("block")));
}

/// A script that was written for the hooks of another agent.
#[test]
fn a_hook_script_for_another_agent_runs_unchanged() {
    let script = r#"
input=$(cat)
name=$(printf '%s' "$input" | jq -r .hook_event_name)
dir=$(printf '%s' "$input" | jq -r .cwd)
[ "$name" = Stop ] && [ "$dir" = "$CLAUDE_PROJECT_DIR" ] || exit 1
jq -n --arg reason "run the tests" '{decision: "block", reason: $reason}'
"#;
    let run = run(&gate(script));
    assert_eq!((&run["verdict"], &run["feedback"]), (&json!("block"), &json!("run the tests")));
}

#[test]
fn hook_input_is_one_json_object_with_task_and_event() {
    let project = Project::with_check("cat > seen.json");
    let id = project.complete("Write docs");
    let text = std::fs::read_to_string(project.root().join("seen.json")).unwrap();
    let seen: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(seen["hook_event_name"], "TaskCompleted");
    assert_eq!((&seen["task_id"], &seen["task_subject"]), (&json!(id), &json!("Write docs")));
    assert_eq!(seen["hookloop"]["point"], "task_completed");
    assert_eq!(seen["hookloop"]["task"]["state"], "completed");
    assert_eq!(seen["hookloop"]["event"]["type"], "task_completed");
}

#[test]
fn actions_in_hook_output_take_effect_and_cannot_forge_task_events() {
    let good =
        r#"echo '{"hookloop":{"actions":[{"type":"create_task","payload":{"goal":"Next"}}]}}'"#;
    let project = Project::with_check(good);
    project.complete("Goal");
    let goals = project.json(&["task", "list"]);
    assert!(goals.as_array().unwrap().iter().any(|task| task["goal"] == "Next"), "{goals}");
    let forged =
        r#"echo '{"hookloop":{"actions":[{"type":"log","payload":{"type":"task_completed"}}]}}'"#;
    let project = Project::with_check(forged);
    project.complete("Goal");
    assert_eq!(project.logged("task_completed").len(), 1);
    assert_eq!(project.logged("hook.check.task_completed").len(), 1);
}

#[test]
fn a_hook_runs_only_if_its_condition_and_needs_are_met() {
    let project = Project::with_config(
        "hooks:
  on_task_complete:
    - {name: first, priority: 1, command: 'exit 1'}
    - {name: second, needs: first, command: touch second}
    - {name: urgent, when: task.priority == 0, command: touch urgent}
    - {name: normal, when: task.priority == 2, command: touch normal}
",
    );
    project.trust();
    project.complete("Goal");
    let there = |name: &str| project.root().join(name).exists();
    assert_eq!((there("second"), there("urgent"), there("normal")), (false, false, true));
}

#[test]
fn a_failed_hook_is_retried_until_it_passes_or_attempts_run_out() {
    let config = "hooks:\n  on_task_complete:\n    - {name: check, command: ./check.sh, retry: {attempts: 3, backoff: 1ms}}\n";
    let check = |script: &str, runs: usize, status: &str| {
        let project = Project::with_config(config);
        project.script("check.sh", script);
        project.trust();
        let run = project.try_hook(&["check"]);
        let lines = std::fs::read_to_string(project.root().join("runs")).unwrap();
        assert_eq!((lines.lines().count(), &run["status"]), (runs, &json!(status)), "{run}");
    };
    check("echo >> runs; exit 1", 3, "failed");
    check("echo >> runs; [ $(wc -l < runs) -ge 2 ]", 2, "passed");
    check("echo >> runs", 1, "passed");
}
