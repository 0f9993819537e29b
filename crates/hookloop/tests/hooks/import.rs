//! Hooks that were written for a coding agent, imported.

use serde_json::{Value, json};

use crate::cli::Project;

fn imported(settings: &Value) -> (Project, String) {
    let project = Project::bare();
    project.write("settings.json", &settings.to_string());
    let printed = project.ok(&["import", "agent-hooks", "settings.json"]);
    (project, printed)
}

/// The example of seed 001, with its table of exit codes.
#[test]
fn a_stop_hook_of_an_agent_is_a_stop_gate_here() {
    let (project, printed) = imported(&json!({
        "hooks": {"Stop": [{"matcher": "*", "hooks": [{
            "type": "command", "command": "./.codemie/run-tests.sh",
        }]}]},
        "maxHookRetries": 5,
    }));
    assert!(printed.starts_with("Wrote "), "{printed}");
    let yaml = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    assert!(yaml.contains("gate_retries: 5"), "{yaml}");
    std::fs::create_dir(project.root().join(".codemie")).unwrap();
    for (code, status, verdict) in
        [(0, "passed", "pass"), (1, "failed", "pass"), (2, "blocked", "block")]
    {
        project.script(".codemie/run-tests.sh", &format!("echo 3 tests fail >&2; exit {code}"));
        project.trust();
        let run = project.try_hook(&["run-tests"]);
        assert_eq!((&run["status"], &run["verdict"]), (&json!(status), &json!(verdict)), "{run}");
    }
}

#[test]
fn settings_without_an_equivalent_are_reported() {
    let command = |command: &str| json!({"type": "command", "command": command});
    let (project, printed) = imported(&json!({
        "model": "x",
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [command("guard")]}],
            "SessionStart": [{"hooks": [command("echo \"a: 'b'\" # c")]}],
            "Stop": [{"hooks": [
                {"type": "prompt", "prompt": "done?"},
                {"type": "command", "command": "a", "timeout": 60},
                {"type": "command", "command": "b", "timeout": 60000},
            ]}],
        },
    }));
    assert!(printed.contains("no equivalent\tPreToolUse\tleft with the agent"), "{printed}");
    assert!(printed.contains("no equivalent\tStop: a hook of type `prompt`"), "{printed}");
    assert!(printed.contains("no equivalent\tmodel\t"), "{printed}");
    let yaml = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    assert!(yaml.contains("timeout: 60s") && yaml.contains("timeout: 60000ms"), "{yaml}");
    let explained = project.json(&["hooks", "explain", "session_start"]);
    assert_eq!(explained[0]["what"], "echo \"a: 'b'\" # c", "{explained}");
}

#[test]
fn an_import_without_usable_hooks_is_an_error() {
    let project = Project::bare();
    project.write("settings.json", &json!({"hooks": {"PreToolUse": []}}).to_string());
    let error = project.fails(2, &["import", "agent-hooks", "settings.json"]);
    assert!(error.contains("nothing that can be imported"), "{error}");
    assert!(!project.root().join("hookloop.yaml").exists());
}

/// An imported script may answer in JSON; a test runner may not, because it prints output of the
/// code.
#[test]
fn imported_scripts_may_answer_in_json_and_test_runners_may_not() {
    let command = |command: &str| json!({"type": "command", "command": command});
    let (project, printed) = imported(&json!({
        "hooks": {
            "SessionStart": [{"hooks": [command("./.claude/hooks/start.sh")]}],
            "Stop": [{"hooks": [
                command("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/gate.sh"),
                command("npm test"),
                command("./run-tests.sh"),
            ]}],
        },
    }));
    assert_eq!(printed.matches("`answers: json`").count(), 1, "{printed}");
    let yaml = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    let allowed: Vec<&str> =
        yaml.split("command: ").filter(|it| it.contains("answers: json")).collect();
    assert!(allowed.len() == 1 && allowed[0].contains("gate.sh"), "{yaml}");
    let shown = project.json(&["hooks", "trust", "--show"]);
    let hooks = shown["hooks"].as_array().unwrap();
    let acting: Vec<&Value> =
        hooks.iter().filter(|hook| hook["definition"]["options"]["answers"] == "json").collect();
    assert!(acting.len() == 1 && acting[0]["name"] == "gate", "{shown}");
}
