//! The environment and input of a hook's process, and the data that it can't access.

use crate::cli::Project;
use crate::hooks::CHECK;

fn environment_of(project: &Project, extra: &[(&str, &str)]) -> Vec<String> {
    let mut command = project.hookloop(&["hooks", "run", "check", "--json"]);
    command.envs(extra.iter().copied());
    let output = command.output().unwrap();
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["status"], "passed", "{run}");
    let text = run["stdout"].as_str().unwrap().to_owned();
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
        .collect();
    names.sort();
    names
}

#[test]
fn a_hook_has_only_the_declared_environment_variables() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: [/usr/bin/env], env: [WANTED]}\n",
    );
    project.trust();
    let names = environment_of(
        &project,
        &[("WANTED", "1"), ("API_KEY", "secret-value"), ("LD_PRELOAD", "")],
    );
    assert_eq!(
        names,
        [
            "CI",
            "CLAUDE_PROJECT_DIR",
            "HOME",
            "HOOKLOOP_HOOK",
            "HOOKLOOP_POINT",
            "HOOKLOOP_PROJECT",
            "HOOKLOOP_TASK_ID",
            "PATH",
            "TERM",
            "TZ",
            "USER",
            "WANTED"
        ]
    );
}

#[test]
fn secrets_in_hook_output_are_not_stored() {
    const SECRET: &str = "correct-horse-battery";
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: 'echo $MY_TOKEN; echo $MY_TOKEN >&2; exit 3', env: [MY_TOKEN]}\n",
    );
    project.trust();
    let id = project.add("Goal", &[]);
    let output =
        project.hookloop(&["task", "complete", &id]).env("MY_TOKEN", SECRET).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains(SECRET));
    assert_eq!(project.logged("hook_ran").len(), 1);
    for entry in walk(&project.state()) {
        let bytes = std::fs::read(&entry).unwrap();
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{}", entry.display());
    }
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push(path),
        }
    }
    files
}

/// Row 2 of the bugs to beat, T9: a title is never run as a command.
#[test]
fn a_task_goal_is_never_run_as_a_command() {
    let config = "hooks:\n  on_task_complete:\n    - name: check\n      command: \"printf '%s' {{task_content}} > seen; printf '%s' '{{task_content}}' > seen1; printf '%s' \\\"{{task_content}}\\\" > seen2\"\n";
    for title in [
        "x\"; touch pwned #",
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "{{error}} {{task_id}}",
        "a\nb",
        "-rf",
        "$HOME *",
    ] {
        let project = Project::with_config(config);
        project.trust();
        project.complete_titled(title);
        assert!(!project.root().join("pwned").exists(), "{title}");
        for seen in ["seen", "seen1", "seen2"] {
            let text = std::fs::read_to_string(project.root().join(seen)).unwrap();
            assert_eq!(text, title, "{seen}");
        }
    }
}

impl Project {
    fn complete_titled(&self, title: &str) {
        self.ok(&["task", "add", "--id", "titled", "--", title]);
        self.run(&["task", "complete", "titled"]);
    }
}

#[test]
fn a_hook_that_times_out_is_killed_and_its_output_is_kept() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, timeout: 3s, command: 'echo before; echo worse >&2; sleep 600 & sleep 600 | cat'}\n",
    );
    project.trust();
    let start = std::time::Instant::now();
    let run = project.try_hook(&["check"]);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    assert_eq!(run["status"], "timed_out", "{run}");
    assert_eq!(
        (run["stdout"].as_str(), run["stderr"].as_str()),
        (Some("before\n"), Some("worse\n"))
    );
}

/// Row 20 of the bugs to beat: a large payload arrives whole.
#[test]
fn a_large_payload_arrives_whole() {
    let project = Project::with_check("wc -c");
    let long = "x".repeat(64 * 1024);
    let id = project.json(&["task", "add", "Goal", "--description", &long])["id"].clone();
    let id = id.as_str().unwrap();
    project.run(&["task", "complete", id, "--result", &long]);
    let run = project.try_hook(&["check", "--task", id]);
    let bytes: usize = run["stdout"].as_str().unwrap().trim().parse().unwrap();
    // This is more than one string of an environment can have.
    assert!(bytes > 3 * 64 * 1024, "{bytes}");
}

#[test]
fn actions_in_hook_output_take_effect_once() {
    let answer =
        r#"{"hookloop":{"actions":[{"type":"create_task","payload":{"goal":"Follow up"}}]}}"#;
    let project = Project::with_check(&format!("echo '{answer}'"));
    project.complete("Goal");
    let again = project.json(&["task", "list"]);
    let goals: Vec<_> = again.as_array().unwrap().iter().map(|task| task["goal"].clone()).collect();
    let follow_ups = goals.iter().filter(|goal| **goal == "Follow up").count();
    assert_eq!(follow_ups, 1, "{goals:?}");
    project.ok(&["status"]);
    assert_eq!(
        project.json(&["task", "list"]).as_array().unwrap().len(),
        again.as_array().unwrap().len()
    );
}

#[test]
fn hook_failures_are_recorded_and_counted() {
    let project = Project::with_check("echo no >&2; exit 7");
    project.complete("Goal");
    let ran = &project.logged("hook_ran")[0]["data"];
    assert_eq!((ran["status"].as_str(), ran["exit_code"].as_i64()), (Some("failed"), Some(7)));
    let hooks = project.json(&["hooks", "list"]);
    let check = hooks.as_array().unwrap().iter().find(|hook| hook["name"] == "check").unwrap();
    assert_eq!((check["runs"].as_u64(), check["failures"].as_u64()), (Some(1), Some(1)));
    let missing = Project::with_config(&CHECK.replace("./check.sh", "no-such-program"));
    missing.ok(&["hooks", "trust", "--yes"]);
    missing.complete("Goal");
    let ran = &missing.logged("hook_ran")[0]["data"];
    assert_eq!((ran["status"].as_str(), ran["exit_code"].as_i64()), (Some("failed"), Some(127)));
}

#[test]
fn a_hook_over_its_process_limit_is_killed_with_the_reason() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, limits: {processes: 8, memory: 1GB}, command: 'for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; sleep 600'}\n",
    );
    assert!(
        project.ok(&["hooks", "trust", "--show"]).contains("limits  8 processes, 1GB of memory")
    );
    project.trust();
    let run = project.try_hook(&["check"]);
    assert_eq!(run["status"], "killed", "{run}");
    let reason = run["reason"].as_str().unwrap();
    assert!(reason.contains("more than 8 processes (limits: processes)"), "{run}");
    let explained = project.ok(&["hooks", "explain", "task_completed"]);
    assert!(explained.contains("at most 8 processes, 1GB of memory"), "{explained}");
}

#[test]
fn hooks_run_exits_with_1_if_the_hook_does_not_pass() {
    let check = |command: &str, options: &str, code: i32, status: &str| {
        let command = serde_json::to_string(command).unwrap();
        let project = Project::with_config(&format!(
            "hooks:\n  stop:\n    - {{name: check, command: {command}{options}}}\n"
        ));
        project.trust();
        for args in [&["hooks", "run", "check"][..], &["hooks", "run", "check", "--json"]] {
            let run = project.run(args);
            assert_eq!((run.code, run.stderr.as_str()), (code, ""), "{command}: {run:?}");
            assert!(run.stdout.contains(status), "{command}: {run:?}");
        }
    };
    check("true", "", 0, "passed");
    check("true", ", when: 'project == \"\"'", 0, "skipped");
    check("echo no >&2; exit 2", "", 1, "blocked");
    check("exit 7", "", 1, "failed");
    check("exit 7", ", on_failure: open", 1, "failed");
    check("echo '{\"continue\": false, \"stopReason\": \"ask\"}'", "", 1, "blocked");
    check("sleep 600", ", timeout: 300ms", 1, "timed_out");
}

#[test]
fn shown_hook_output_has_no_colours_tabs_or_control_characters() {
    let project = Project::with_check(
        "printf '\\033[1;32mgreen\\033[0m\\tcolumn\\n\\033[2Jcleared\\007 \\342\\200\\256turned\\n'",
    );
    let shown = project.ok(&["hooks", "run", "check"]);
    assert!(shown.contains("| green   column\n"), "{shown}");
    assert!(shown.contains("| \\x1b[2Jcleared\\x07 \\u{202e}turned\n"), "{shown}");
}
