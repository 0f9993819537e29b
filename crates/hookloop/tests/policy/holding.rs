//! Checks that a policy is enforced, and that each refusal names the line of the policy.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{BINARY, Project};
use crate::policy::set_mode;

const TURNS: &str = r#"[{"run": "date +%N > work", "say": "<promise>COMPLETE</promise>"}]"#;
/// The exit code of complete work that no gate has proven.
const UNPROVEN: i32 = 6;

fn names(project: &Project, point: &str, task: &str) -> Vec<String> {
    let explained = project.under_json(&["hooks", "explain", point, "--task", task]);
    let hooks = explained.as_array().unwrap().iter();
    hooks
        .map(|hook| {
            format!("{} {}", hook["name"].as_str().unwrap(), hook["list"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn a_policy_gate_runs_first_for_every_task_type_and_cannot_be_disabled() {
    let project = Project::with_config(
        "hooks: {stop: [{name: theirs, file: hookloop.yaml, priority: -5}]}
task_types: {quiet: {hooks: {stop: []}}}
",
    );
    project.write_own("hooks: {stop: [{name: mine, file: hookloop.yaml}]}\n");
    project.write_policy("gates:\n  stop:\n    - {name: checked, file: checked, priority: 900}\n");
    project.write("turns.json", TURNS);
    let (plain, quiet) = (project.add("plain", &[]), project.add("quiet", &["--type", "quiet"]));
    assert_eq!(
        names(&project, "stop", &plain),
        ["policy/checked operator", "theirs project", "mine user"]
    );
    assert_eq!(names(&project, "stop", &quiet), ["policy/checked operator", "mine user"]);
    let shown = project.under(&["hooks", "explain", "stop"]).stdout;
    assert!(shown.contains("policy.yaml:4"), "{shown}");
    project.forbidden(&["hooks", "disable", "policy/checked"], 4);
    let listed = project.under_json(&["hooks", "list"]);
    let gate = listed.as_array().unwrap().iter().find(|hook| hook["name"] == "policy/checked");
    assert_eq!(gate.unwrap()["source"], "operator");

    let run = project.session(&["--gate-retries", "0"]);
    assert_eq!(run.code, 3, "the gate did not pass: {run:?}");
    project.write("checked", "");
    assert_eq!(project.session(&[]).code, 0);
}

/// A hook disabled before the policy existed, or by a user who ran hookloop without the policy.
#[test]
fn a_policy_gate_cannot_be_disabled_without_the_policy() {
    let project = Project::with_config("");
    project.write_policy("gates: {stop: [{name: checked, file: checked}]}\n");
    let taken = project.run(&["hooks", "disable", "policy/checked"]);
    assert_eq!(taken.code, 1, "there is no such hook without the policy: {taken:?}");
    let listed = project.under_json(&["hooks", "show", "policy/checked"]);
    assert_eq!(listed["enabled"], true);
}

#[test]
fn the_policy_can_ignore_hooks_agents_and_templates_of_repositories() {
    let project = Project::with_config(
        "hooks: {task_completed: [{name: theirs, command: touch ran}, {name: made, actions: [{create_task: {goal: more}}]}]}
agents: {mine: {type: command, command: touch ran}}
loop: {prompt_template: prompt.md}
",
    );
    project.write("prompt.md", "REPOSITORY'S WORD {{ work }}");
    project.write("turns.json", TURNS);
    project.trust();
    project.ok(&["agents", "trust", "--yes"]);
    project.write_policy("repository_hooks: none\n");
    let id = project.under_json(&["task", "add", "a"])["id"].as_str().unwrap().to_owned();
    project.under_json(&["task", "complete", &id]);
    let run = project.under(&["run", "x", "--agent", "mine"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(project.session(&[]).code, UNPROVEN);
    assert!(!project.root().join("ran").exists());
    assert_eq!(project.goals(), ["a"]);
    let state = project.state();
    let transcripts = fs::read_dir(state.join("sessions")).unwrap();
    for session in transcripts.flatten() {
        let said = fs::read_to_string(session.path().join("transcript.jsonl")).unwrap();
        assert!(!said.contains("REPOSITORY'S WORD"), "{said}");
    }
    let shown = project.under(&["hooks", "trust", "--show"]).stdout;
    assert!(shown.contains("policy.yaml:2"), "{shown}");
}

#[test]
fn the_policy_can_trust_hooks_by_digest() {
    let project =
        Project::with_config("hooks: {task_completed: [{name: theirs, command: touch ran}]}\n");
    let digest = project.run(&["hooks", "trust", "--show", "--json"]).stdout;
    let digest: Value = serde_json::from_str(&digest).unwrap();
    let digest = digest["digest"].as_str().unwrap().to_owned();
    let complete = || {
        let id = project.under_json(&["task", "add", "a"])["id"].as_str().unwrap().to_owned();
        project.under(&["task", "complete", &id]);
        project.root().join("ran").exists()
    };
    project.write_policy(&format!("trust: ['sha256:{}']\n", "0".repeat(64)));
    assert!(!complete(), "another digest");
    project.write_policy(&format!("trust: ['{digest}']\n"));
    assert!(complete());
    fs::remove_file(project.root().join("ran")).unwrap();
    project.configure("hooks: {task_completed: [{name: theirs, command: touch ran ran2}]}\n");
    assert!(!complete(), "another hook");
    assert!(!project.state().join("trust.json").exists(), "trust was stored");
}

#[test]
fn the_policy_restricts_agents_and_their_permissions() {
    let project = Project::with_config("");
    project.write_own(
        "agents:
  claude: {permissions: full}
  other: {type: claude, command: [./claude]}
  free: {type: claude, allowed_tools: ['Bash(*)']}
",
    );
    let claude = project.write("claude", "#!/bin/sh\n");
    set_mode(&claude, 0o755);
    project.write("turns.json", TURNS);
    project.write_policy("agents:\n  - claude\npermissions: edit\n");
    project.forbidden(&["run", "x", "--agent", "command:true"], 3);
    project.forbidden(&["run", "x", "--agent", "scripted:turns.json"], 3);
    project.forbidden(&["run", "x", "--agent", "codex"], 3);
    project.forbidden(&["run", "x", "--agent", "other"], 3);
    project.forbidden(&["run", "x", "--agent", "free"], 4);
    project.forbidden(&["run", "x", "--agent", "claude", "--permissions", "full"], 4);
    let listed = project.under_json(&["agents", "list"]);
    let claude = listed.as_array().unwrap().iter().find(|agent| agent["name"] == "claude").unwrap();
    assert_eq!(claude["permissions"], "edit", "the user's file does not count");
    // hookloop cannot enforce permissions on this agent, so the policy must name it.
    project.write_policy("permissions: edit\n");
    project.forbidden(&["run", "x", "--agent", "command:true"], 2);
    project.write_policy("agents: [scripted]\npermissions: edit\n");
    assert_eq!(project.session(&[]).code, UNPROVEN);
}

#[test]
fn limits_of_users_and_projects_stay_within_the_policy() {
    let project = Project::with_config("limits: {max_iterations: 80}\n");
    project.write_own("limits: {max_iterations: 90, budget: {cost: 9}}\n");
    project.write("turns.json", TURNS);
    project.write_policy("limits:\n  max_iterations: 7\n  max_errors: 50\n  budget: {cost: 3}\n");
    let wide = ["--max-iterations", "1000", "--max-errors", "60"];
    assert_eq!(project.session(&wide).code, UNPROVEN);
    let began = project.event("session_started");
    assert_eq!(began["data"]["limits"]["max_iterations"], 7);
    assert_eq!(began["data"]["limits"]["max_errors"], 50);
    let usage = project.under_json(&["usage"]);
    assert!(usage.to_string().contains("3000000"), "{usage}");
}

#[test]
fn a_session_with_limits_above_the_policy_is_not_resumed() {
    let project = Project::with_config("");
    project.write("turns.json", r#"[{"say": "on it"}, {"say": "<promise>COMPLETE</promise>"}]"#);
    project.write_policy("");
    let script =
        "#!/bin/sh\ncat >/dev/null\ntouch begun; while [ ! -f paused ]; do sleep 0.05; done\n";
    let waiting = project.write("wait.sh", script);
    set_mode(&waiting, 0o755);
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| project.under(&["run", "work", "--agent", "command:./wait.sh"]));
        let began = std::time::Instant::now();
        while !project.root().join("begun").exists() {
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "no turn started");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(project.under(&["pause"]).code, 0);
        project.write("paused", "");
        run.join().unwrap()
    });
    assert_eq!(run.code, 5, "paused: {run:?}");
    project.write_policy("limits: {max_iterations: 3}\n");
    project.forbidden(&["resume"], 2);
}

#[test]
fn the_policy_can_forbid_accepting_work_at_the_retry_limit() {
    let project = Project::with_config("hooks: {stop: [{name: theirs, file: missing}]}\n");
    project.write_own("loop: {at_retry_limit: accept}\n");
    project.write("turns.json", TURNS);
    project.write_policy("accept_at_retry_limit: true\n");
    let accept = ["--gate-retries", "0", "--at-retry-limit", "accept"];
    assert_eq!(project.session(&accept).code, UNPROVEN, "control");
    project.write_policy("accept_at_retry_limit: false\n");
    assert_eq!(project.session(&accept).code, 3);
    assert_eq!(project.session(&["--gate-retries", "0"]).code, 3);
}

#[test]
fn a_project_outside_the_policys_repositories_is_refused() {
    let project = Project::with_config("");
    project.write_policy("repositories: ['/srv/work/*']\n");
    project.forbidden(&["task", "add", "a"], 2);
    project.forbidden(&["run", "x", "--agent", "command:true"], 2);
    assert_eq!(project.under(&["log"]).code, 0, "the log stays readable");
    let root = project.root().canonicalize().unwrap();
    project.write_policy(&format!("repositories: ['{}/*']\n", root.parent().unwrap().display()));
    project.under_json(&["task", "add", "a"]);
}

#[test]
fn an_invalid_policy_stops_commands_except_help_schema_log_and_verify() {
    let project = Project::with_config("");
    project.add("a", &[]);
    for (policy, mode, place) in [("colour: red\n", 0o644, ":2:1"), ("", 0o666, "others can write")]
    {
        project.write_policy(policy);
        set_mode(&project.policy_file(), mode);
        for args in [
            &["task", "add", "b"][..],
            &["run", "x", "--agent", "command:true"],
            &["hooks", "list"],
            &["dispatch"],
            &["policy"],
        ] {
            let run = project.under(args);
            assert!(run.code == 2 && run.stderr.contains(place), "{args:?}: {run:?}");
        }
        for args in [&["--help"][..], &["schema"], &["schema", "--policy"], &["log"], &["verify"]] {
            assert_eq!(project.under(args).code, 0, "{args:?}");
        }
        let run = project.under(&["doctor", "--json"]);
        let findings: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(findings[0]["about"], "policy");
        assert_eq!(findings[0]["status"], "error");
    }
    assert_eq!(project.goals(), ["a"]);
    let missing = project.hookloop(&["task", "list"]).env("HOOKLOOP_POLICY", "/no/such").output();
    assert_eq!(missing.unwrap().status.code(), Some(2));
}

/// Checks that no setting of a user keeps hookloop from reading the file of the system.
#[test]
fn the_system_policy_file_is_always_read() {
    let project = Project::with_config("");
    project.write_policy("");
    for named in ["", project.policy_file().to_str().unwrap()] {
        let trace = project.home().join("trace");
        let mut command = project.command("strace");
        command.args(["-f", "-qq", "-e", "trace=file", "-o"]).arg(&trace);
        command.args([BINARY, "task", "list"]).env("HOOKLOOP_POLICY", named);
        assert!(command.output().unwrap().status.success());
        let calls = fs::read_to_string(&trace).unwrap();
        assert!(calls.contains("\"/etc/hookloop/policy.yaml\""), "{calls}");
        assert_eq!(!named.is_empty(), calls.contains("etc/policy.yaml\", O_RDONLY"), "{calls}");
    }
}

#[test]
fn policy_rules_are_listed_with_file_and_line() {
    let project = Project::with_config("");
    assert_eq!(project.json(&["policy"]), json!({ "files": [], "rules": [], "own_secrets": [] }));
    project.write_own("secrets: {'*': {MY_KEY: {command: [op, read, 'op://private/item']}}}\n");
    project.write_policy(
        "gates: {stop: [{name: checked, file: checked}]}
limits:
  max_iterations: 7
agents: [claude]
secrets: {'*': {DEPLOY: {file: /run/secrets/deploy}}}
",
    );
    let policy = project.under_json(&["policy"]);
    let file = project.policy_file().display().to_string();
    let rule = |rule: &str, value: &str, line: u64| json!({ "rule": rule, "value": value, "file": file, "line": line });
    assert_eq!(
        policy["rules"],
        json!([
            rule("gates.stop", "policy/checked", 2),
            rule("limits.max_iterations", "7", 4),
            rule("agents", "claude", 5),
            rule("secrets.DEPLOY", "from file /run/secrets/deploy, for *", 6),
        ])
    );
    assert_eq!(policy["own_secrets"][0]["value"], "from command op, for *");
    let shown = project.under(&["policy"]).stdout;
    assert!(shown.contains(&format!("{file}:4")), "{shown}");
    let doctor = project.under(&["doctor"]).stdout;
    assert!(doctor.contains("4 rules of"), "{doctor}");
}

/// Machines share the log, but each machine stores its own trust records.
#[test]
fn trust_recorded_in_the_log_counts_if_the_policy_names_its_user() {
    let project = Project::with_config("hooks: {stop: [{name: green, command: 'true'}]}\n");
    project.write("turns.json", TURNS);
    project.write_policy("");
    let state = project.state();
    project.trust();
    let elsewhere = || {
        for file in ["trust.json", "ledger.json"] {
            let _ = std::fs::remove_file(state.join(file));
        }
    };
    elsewhere();
    assert_eq!(project.session(&[]).code, 3, "another machine lacks the trust");
    project.write_policy("trust_from: [somebody]\n");
    assert_eq!(project.session(&[]).code, 3, "trust of another user counts");
    project.write_policy("trust_from: [somebody, tester]\n");
    let run = project.session(&[]);
    assert_ne!(run.code, 3, "{run:?}");
    // Trust is for a specific content, and only the last record counts.
    project.configure("");
    let run = project.session(&[]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("`green` is gone"), "{run:?}");
    project.trust();
    elsewhere();
    project.configure("hooks: {stop: [{name: green, command: 'true'}]}\n");
    assert_eq!(project.session(&[]).code, 3, "an older trust record still counts");
}
