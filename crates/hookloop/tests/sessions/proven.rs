//! Rules for when a session counts as proven, and a gate as passed.

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject, eventually};
use serde_json::{Value, json};

use super::{SOON, run_as_it_is, scripted, trusted_project};

/// Writes a file and claims to be done.
const WORK: &str =
    r#"[{"write": {"work.txt": "done\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;

fn judged(ran: &SessionOutput) -> &Value {
    ran.all("gates_evaluated").last().copied().unwrap()
}

/// Returns the output of `hookloop run` for people.
fn printed(config: &str) -> String {
    printed_in(&trusted_project(config, &[("turns.json", WORK)]))
}

fn printed_in(project: &TestProject) -> String {
    let output = project.run(&["run", "x", "--agent", SCRIPTED_AGENT, "--plain"]);
    output.stdout + &output.stderr
}

#[test]
fn a_skipped_gate_is_not_a_passed_gate() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true'}
    - {name: lint, command: 'true', when: 'iteration > 99'}
    - {name: style, command: 'exit 1', on_failure: open}
";
    let project = trusted_project(config, &[]);
    let ran = scripted(&project, WORK, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let judged = judged(&ran);
    assert_eq!(judged["passed"], json!(["tests"]));
    assert_eq!(judged["skipped"], json!(["lint"]));
    assert_eq!(judged["failed"], json!(["style"]));
    let text = printed(config);
    assert!(
        text.contains("1 passed, 1 skipped, 1 failed without blocking (lint, style)"),
        "{text}"
    );
    assert!(!text.contains("all 3 gates pass"), "{text}");
}

#[test]
fn a_skipped_gate_does_not_satisfy_its_any_of_group() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'exit 2', any_of: g}
    - {name: other, command: 'true', any_of: g, when: 'iteration > 99'}
";
    let project = trusted_project(config, &[]);
    let ran = scripted(&project, WORK, &["--gate-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
}

#[test]
fn a_condition_on_a_name_without_a_value_fails_the_gate() {
    // Without delivery there is no branch at `stop`, so hookloop rejects the name when it reads the
    // file. At `before_submit` the name is known. `project` is known everywhere.
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true', when: 'project != \"\"'}
";
    let project = trusted_project(config, &[]);
    let ran = scripted(&project, WORK, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(judged(&ran)["passed"], json!(["tests"]));

    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true', when: 'task.type == \"fix\"'}
";
    let project = trusted_project(config, &[]);
    let ran = scripted(&project, WORK, &["--gate-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let ran_hook = ran.all("hook_ran");
    assert_eq!(ran_hook[0]["status"], "failed");
    assert!(ran_hook[0]["reason"].as_str().unwrap().contains("`task` has no value here"));
}

#[test]
fn a_reaction_whose_condition_has_no_value_is_recorded_as_failed() {
    let config = "version: 1
hooks:
  post_iteration:
    - {name: note, command: 'touch noted', when: 'task.type == \"fix\"'}
  stop:
    - {name: tests, command: 'true'}
";
    let project = trusted_project(config, &[]);
    let ran = scripted(&project, WORK, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let note = ran.all("hook_ran").into_iter().find(|ran| ran["hook_name"] == "note").unwrap();
    assert_eq!(note["status"], "failed");
    assert!(note["reason"].as_str().unwrap().contains("`task` has no value here"), "{note}");
    assert!(!project.root().join("noted").exists());
}

/// Checks that every name that conditions may use at a point of a session has a value there.
#[test]
fn every_name_of_a_condition_has_a_value_in_a_session() {
    let names = |point: &str| -> Vec<&str> {
        let own: &[&str] = match point {
            "session_start" | "session_end" => &[],
            "on_error" => &["iteration >= 0", "error != ''"],
            _ => &["iteration >= 0"],
        };
        let all = ["point != ''", "project != ''", "session != ''", "task == null"];
        all.into_iter().chain(own.iter().copied()).collect()
    };
    let points = [
        "session_start",
        "pre_iteration",
        "post_iteration",
        "on_error",
        "validation",
        "stop",
        "session_end",
    ];
    let mut config = "version: 1\nhooks:\n".to_owned();
    let mut expected = Vec::new();
    for point in points {
        config += &format!("  {point}:\n");
        for (number, condition) in names(point).into_iter().enumerate() {
            let name = format!("{point}-{number}");
            config += &format!("    - {{name: {name}, command: 'true', when: \"{condition}\"}}\n");
            expected.push(name);
        }
    }
    let project = trusted_project(&config, &[]);
    let turns = r#"[{"fail": "no network"},
        {"write": {"work.txt": "done\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, turns, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    for name in expected {
        let runs: Vec<&Value> =
            ran.all("hook_ran").into_iter().filter(|ran| ran["hook_name"] == *name).collect();
        assert!(!runs.is_empty(), "{name} did not run");
        assert!(runs.iter().all(|ran| ran["status"] == "passed"), "{name}: {runs:?}");
    }
}

/// Runs `hookloop run` with these turns, without options that loosen a rule.
fn honest(project: &TestProject, turns: &str, args: &[&str]) -> SessionOutput {
    project.write("../turns.json", turns);
    let agent = ["work", "--agent", "scripted:../turns.json"];
    run_as_it_is(project, &[&agent[..], args].concat())
}

fn is_proven(ran: &SessionOutput) -> bool {
    ran.all("session_ended").last().unwrap()["proven"].as_bool().unwrap()
}

const TESTS: &str = "version: 1\nhooks:\n  stop:\n    - {name: tests, command: 'true'}\n";
const CLAIM: &str = r#"[{"say": "Done.\n<promise>COMPLETE</promise>"}]"#;

#[test]
fn complete_without_a_gate_that_passed_is_exit_code_6() {
    let check = |config: &str, code: i32, proven: bool| {
        let project = trusted_project(config, &[]);
        let ran = honest(&project, WORK, &["--gate-retries", "0", "--at-retry-limit", "accept"]);
        assert_eq!((ran.code, ran.outcome()), (code, "complete"), "{config}: {}", ran.stderr);
        assert_eq!(is_proven(&ran), proven, "{config}");
        let listed = project.json(&["sessions", "list"]);
        assert_eq!(listed[0]["proven"], proven, "{config}");
    };
    check(TESTS, 0, true);
    check("version: 1\n", 6, false);
    let skipped = TESTS.replace("command: 'true'", "command: 'true', when: 'iteration > 9'");
    check(&skipped, 6, false);
    let open = TESTS.replace("command: 'true'", "command: 'exit 1', on_failure: open");
    check(&open, 6, false);
    let accepted = TESTS.replace("'true'", "'exit 2'");
    check(&accepted, 6, false);
}

#[test]
fn a_session_without_tasks_exits_with_0_although_nothing_is_proven() {
    let project = trusted_project(TESTS, &[("turns.json", CLAIM)]);
    let ran = run_as_it_is(&project, &["--tasks", "--agent", "scripted:turns.json"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert!(!is_proven(&ran));
}

#[test]
fn a_task_completed_with_passing_gates_is_shown_as_proven() {
    let check = |config: &str, code: i32, proven: bool| {
        let project = trusted_project(config, &[]);
        project.write("../turns.json", WORK);
        project.json(&["task", "add", "x", "--id", "x"]);
        let ran = run_as_it_is(&project, &["--tasks", "--agent", "scripted:../turns.json"]);
        assert_eq!(ran.code, code, "{config}: {}", ran.stderr);
        assert_eq!(is_proven(&ran), proven);
        assert_eq!(project.json(&["task", "show", "x"])["proven"], proven);
    };
    check(TESTS, 0, true);
}

#[test]
fn a_task_completed_by_another_process_does_not_complete_the_session() {
    let project = trusted_project("version: 1\n", &[]);
    project.json(&["task", "add", "x", "--id", "x"]);
    let agent = "#!/bin/sh\ncat > /dev/null\ntouch work began\nwhile [ ! -f go ]; do sleep 0.02; done\n\
                 echo '<promise>COMPLETE</promise>'\n";
    project.write("agent.sh", agent);
    let args = ["run", "--tasks", "--agent", "command:./agent.sh"];
    let child = project.json_command(&args).spawn().unwrap();
    eventually("the turn", SOON, || project.root().join("began").exists());
    project.json(&["task", "complete", "x", "--force"]);
    project.write("go", "");
    let ran = SessionOutput::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert!(!is_proven(&ran));
}

#[test]
fn a_claim_without_a_change_is_asked_about_once_and_then_needs_a_person() {
    let project = trusted_project(TESTS, &[]);
    let ran = honest(&project, CLAIM, &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("iteration_started"), 2);
    let ended = ran.all("session_ended")[0];
    assert!(ended["reason"].as_str().unwrap().starts_with("no changes"), "{ended}");
    let asked = ran.all("output_piped");
    assert!(asked[0]["text"].as_str().unwrap().contains("no file changed"), "{asked:?}");
    let found: Vec<&Value> =
        ran.all("empty_difference_found").into_iter().map(|found| &found["was_asked"]).collect();
    assert_eq!(found, [&json!(false), &json!(true)]);
    let why = project.run(&["why"]).stdout;
    assert!(why.contains("`hookloop run … --no-changes-ok` accepts work without"), "{why}");
    assert!(why.contains(" --answer \"…\""), "{why}");
}

#[test]
fn an_agent_that_changes_something_when_asked_completes() {
    let turns = r#"[{"say": "<promise>COMPLETE</promise>"},
        {"write": {"work.txt": "x"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let project = trusted_project(TESTS, &[]);
    let ran = honest(&project, turns, &[]);
    assert_eq!((ran.code, is_proven(&ran)), (0, true), "{}", ran.stderr);
}

#[test]
fn a_commit_is_a_change() {
    let project = trusted_project(TESTS, &[]);
    let commit = "git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m x";
    let turns = json!([{ "run": commit, "say": "<promise>COMPLETE</promise>" }]).to_string();
    let ran = honest(&project, &turns, &[]);
    assert_eq!((ran.code, is_proven(&ran)), (0, true), "{}", ran.stderr);
}

/// Returns a project with a hook at this point that runs a command; its only gate passes.
fn project_with_hook(point: &str, command: &str) -> TestProject {
    let hook = format!("  {point}:\n    - {{name: log, command: '{command}'}}\n");
    trusted_project(&format!("{TESTS}{hook}"), &[])
}

const APPEND: &str = "date +%N >> run.log";

#[test]
fn files_that_hooks_of_an_iteration_write_are_not_the_agents_change() {
    let commit = "git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m x";
    for point in ["pre_iteration", "post_iteration"] {
        for command in [APPEND, commit] {
            let project = project_with_hook(point, command);
            let ran = honest(&project, CLAIM, &[]);
            let ended = (ran.code, ran.outcome());
            assert_eq!(ended, (3, "needs_human"), "{point}: {command}: {}", ran.stderr);
            assert_eq!(ran.count("iteration_started"), 2, "{point}: {command}");
            for turn in ran.all("turn_ended") {
                assert_eq!(turn.get("changed"), None, "{point}: {turn}");
            }
            let project = project_with_hook(point, command);
            project.write("../turns.json", CLAIM);
            project.json(&["task", "add", "x", "--id", "x"]);
            let ran = run_as_it_is(&project, &["--tasks", "--agent", "scripted:../turns.json"]);
            assert_eq!(ran.code, 3, "{point}: {command}: {}", ran.stderr);
        }
    }
}

#[test]
fn files_that_hooks_of_an_iteration_write_are_no_progress() {
    let silent = r#"[{"say": "Still looking."}]"#;
    for point in ["pre_iteration", "post_iteration"] {
        let project = project_with_hook(point, APPEND);
        let ran = honest(&project, silent, &["--max-no-progress", "3", "--max-iterations", "9"]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{point}: {}", ran.stderr);
        assert_eq!(ran.count("iteration_started"), 3, "{point}");
        let checked = ran.all("unclaimed_work_checked");
        assert_eq!(checked[0]["changed"], false, "{point}: {checked:?}");
    }
}

#[test]
fn files_that_hooks_wrote_before_a_resume_are_not_the_agents_change() {
    for point in ["pre_iteration", "post_iteration", "session_end"] {
        let project = project_with_hook(point, APPEND);
        let turns = r#"[{"say": "Still looking."}, {"say": "<promise>COMPLETE</promise>"}]"#;
        let ran = honest(&project, turns, &["--max-no-progress", "1"]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{point}: {}", ran.stderr);
        let resumed = SessionOutput::from(
            project.json_command(&["resume", "--answer", "x"]).output().unwrap(),
        );
        assert_eq!(resumed.code, 3, "{point}: {}", resumed.stderr);
        assert_eq!(resumed.count("empty_difference_found"), 2, "{point}: {}", resumed.stderr);
    }
}

#[test]
fn a_change_by_a_person_before_a_resume_counts() {
    let project = trusted_project(TESTS, &[]);
    let turns = r#"[{"say": "Still looking."}, {"say": "<promise>COMPLETE</promise>"}]"#;
    let ran = honest(&project, turns, &["--max-no-progress", "1"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    project.write("by-hand.txt", "x");
    let resumed =
        SessionOutput::from(project.json_command(&["resume", "--answer", "x"]).output().unwrap());
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

#[test]
fn files_that_gates_write_are_no_progress_and_no_change() {
    let config = TESTS.replace("'true'", "'[ -f report ] || date +%N > report'");
    let project = trusted_project(&config, &[]);
    let ran = honest(&project, CLAIM, &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
}

#[test]
fn a_file_that_hooks_and_the_agent_change_is_the_agents_change() {
    for point in ["pre_iteration", "post_iteration"] {
        let project = project_with_hook(point, APPEND);
        let turns = r#"[{"run": "echo agent >> run.log", "say": "<promise>COMPLETE</promise>"}]"#;
        let ran = honest(&project, turns, &[]);
        assert_eq!((ran.code, is_proven(&ran)), (0, true), "{point}: {}", ran.stderr);
        assert_eq!(ran.all("turn_ended")[0]["changed"], json!(["run.log"]), "{point}");
    }
}

#[test]
fn a_change_that_the_agent_takes_back_is_no_change() {
    let turns = r#"[{"write": {"work.txt": "x"}, "say": "Not yet."},
        {"run": "rm work.txt", "say": "<promise>COMPLETE</promise>"},
        {"say": "<promise>COMPLETE</promise>"}]"#;
    let project = trusted_project(TESTS, &[]);
    let ran = honest(&project, turns, &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
}

#[test]
fn work_without_changes_is_accepted_if_the_user_or_task_type_allows_it() {
    let project = trusted_project(TESTS, &[]);
    let ran = honest(&project, CLAIM, &["--no-changes-ok"]);
    assert_eq!((ran.code, is_proven(&ran)), (0, true), "{}", ran.stderr);
    let config = format!("{TESTS}task_types:\n  question: {{no_changes_ok: true}}\n");
    let check = |kind: &str, code: i32, state: &str| {
        let project = trusted_project(&config, &[]);
        project.write("../turns.json", CLAIM);
        project.json(&["task", "add", "x", "--id", "x", "--type", kind]);
        let ran = run_as_it_is(&project, &["--tasks", "--agent", "scripted:../turns.json"]);
        assert_eq!(ran.code, code, "{kind}: {}", ran.stderr);
        assert_eq!(project.json(&["task", "show", "x"])["state"], state);
    };
    check("question", 0, "completed");
    check("fix", 3, "blocked");
}

#[test]
fn no_turn_follows_an_acceptance_or_the_retry_limit() {
    for (answer, code) in [("accept", 6), ("needs_human", 3)] {
        let config = TESTS.replace("'true'", "'echo no >&2; exit 2'");
        let project = trusted_project(&config, &[]);
        // A turn after the decision would write another file.
        let turns = r#"[{"write": {"first": "x"}, "say": "<promise>COMPLETE</promise>"},
            {"write": {"second": "x"}, "say": "<promise>COMPLETE</promise>"}]"#;
        let ran = honest(&project, turns, &["--gate-retries", "0", "--at-retry-limit", answer]);
        assert_eq!(ran.code, code, "{answer}: {}", ran.stderr);
        assert_eq!(ran.count("turn_ended"), 1, "{answer}");
        assert!(!project.root().join("second").exists(), "{answer}");
    }
}

#[test]
fn gates_are_evaluated_after_a_final_turn_at_the_iteration_limit() {
    let config = "version: 1
hooks:
  post_iteration:
    - {name: hint, command: 'echo look', pipe_output: true}
  stop:
    - {name: tests, command: 'true'}
";
    let project = trusted_project(config, &[]);
    let turns = r#"[{"write": {"first": "x"}, "say": "Not yet."},
        {"write": {"second": "x"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let ran = honest(&project, turns, &["--max-iterations", "1"]);
    assert_eq!((ran.code, ran.outcome()), (4, "limit"), "{}", ran.stderr);
    assert_eq!((ran.count("turn_started"), ran.count("gates_evaluated")), (1, 1));
    assert!(!is_proven(&ran));
}

const TWO_TASKS: [&[&str]; 2] = [
    &["task", "add", "first", "--id", "first"],
    &["task", "add", "second", "--id", "second", "--depends-on", "first"],
];

/// Runs two tasks, the second dependent on the first; returns the exit code and their states.
fn two_tasks(project: &TestProject) -> (i32, [String; 2]) {
    for add in TWO_TASKS {
        project.json(add);
    }
    let agent = "#!/bin/sh\ncat > /dev/null\necho work >> work-$HOOKLOOP_TASK_ID\n\
                 echo '<promise>COMPLETE</promise>'\n";
    project.write("agent.sh", agent);
    let ran = run_as_it_is(project, &["--tasks", "--agent", "command:./agent.sh"]);
    let state =
        |id: &str| project.json(&["task", "show", id])["state"].as_str().unwrap().to_owned();
    (ran.code, ["first", "second"].map(state))
}

fn own_file(project: &TestProject, text: &str) {
    let path = project.root().join("../home/.config/hookloop/config.yaml");
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_task_without_proof_does_not_release_its_dependents() {
    let project = trusted_project("version: 1\n", &[]);
    own_file(&project, "version: 1\n");
    let (code, states) = two_tasks(&project);
    assert_eq!((code, states[0].as_str()), (3, "blocked"));
    assert_ne!(states[1], "completed");
    let shown = project.json(&["task", "show", "first"]);
    let reason = shown["blocked"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("completed without proof"), "{reason}");
    assert!(reason.contains("hookloop task complete first"), "{reason}");
    // A person's completion releases the dependent, but proves nothing.
    project.json(&["task", "unblock", "first"]);
    project.json(&["task", "complete", "first"]);
    assert_eq!(project.json(&["task", "show", "first"])["proven"], false);
    assert_eq!(project.json(&["task", "show", "second"])["open_dependencies"], 0);
}

#[test]
fn gates_none_releases_dependents_and_exits_with_6() {
    let project = trusted_project("version: 1\n", &[]);
    own_file(&project, "version: 1\ngates: none\n");
    let (code, states) = two_tasks(&project);
    assert_eq!((code, states), (6, ["completed", "completed"].map(str::to_owned)));
}

#[test]
fn gates_none_prints_no_hint_to_add_a_stop_hook() {
    let project = trusted_project("version: 1\n", &[("turns.json", WORK)]);
    for (own, is_told) in [("version: 1\n", true), ("version: 1\ngates: none\n", false)] {
        own_file(&project, own);
        std::fs::remove_file(project.root().join("work.txt")).ok();
        let text = printed_in(&project);
        assert!(text.contains("not proven: no gate ran"), "{text}");
        assert_eq!(text.contains("add a `stop` hook"), is_told, "{text}");
    }
}

#[test]
fn a_session_without_gates_is_shown_as_not_proven() {
    let project = trusted_project("version: 1\n", &[("turns.json", WORK)]);
    own_file(&project, "version: 1\n");
    let text = printed_in(&project);
    let done = "done when the agent reports completion (no gates: the result will not be proven)";
    assert!(text.contains(done), "{text}");
    let next = "next: add a `stop` hook to hookloop.yaml, then run `hookloop hooks trust`";
    assert!(text.contains(next), "{text}");
    for args in [&["sessions", "list"][..], &["why"]] {
        let shown = project.run(args).stdout;
        assert!(shown.contains("complete, not proven"), "{args:?}: {shown}");
    }
    assert_eq!(project.json(&["sessions", "list"])[0]["state"], "complete");
    assert_eq!(project.json(&["why"])["state"], "complete");
    // A gate that passes proves the work.
    let project = trusted_project(TESTS, &[("turns.json", WORK)]);
    let text = printed_in(&project);
    assert!(text.contains("done when the agent reports completion and the gates pass"), "{text}");
    let listed = project.run(&["sessions", "list"]).stdout;
    assert!(listed.contains("complete") && !listed.contains("not proven"), "{listed}");
}

#[test]
fn a_project_with_a_stop_hook_gets_no_hint_to_add_a_stop_hook() {
    let skipped = TESTS.replace("command: 'true'", "command: 'true', when: 'iteration > 9'");
    let open = TESTS.replace("command: 'true'", "command: 'exit 1', on_failure: open");
    for (config, reason) in [
        (&skipped, "not proven: no gate passed (tests skipped)"),
        (&open, "not proven: no gate passed (tests failed without blocking)"),
    ] {
        let project = trusted_project(config, &[("turns.json", WORK)]);
        own_file(&project, "version: 1\n");
        let text = printed_in(&project);
        assert!(text.contains(reason), "{text}");
        assert!(!text.contains("add a `stop` hook"), "{text}");
        assert!(text.contains("run: hookloop why "), "{text}");
        let project = trusted_project(config, &[]);
        own_file(&project, "version: 1\n");
        assert_eq!(two_tasks(&project).0, 3);
        let blocked = project.json(&["task", "show", "first"])["blocked"].to_string();
        assert!(blocked.contains("let one of its gates run and pass"), "{blocked}");
        assert!(!blocked.contains("add a `stop` hook"), "{blocked}");
    }
}

#[test]
fn tasks_that_gates_proved_release_their_dependents() {
    let project = trusted_project(TESTS, &[]);
    own_file(&project, "version: 1\n");
    let (code, states) = two_tasks(&project);
    assert_eq!((code, states), (0, ["completed", "completed"].map(str::to_owned)));
}

#[test]
fn a_repository_cannot_set_gates_to_none() {
    let project = trusted_project(TESTS, &[]);
    project.write("hookloop.yaml", &format!("{TESTS}gates: none\n"));
    let ran = honest(&project, WORK, &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("not a repository's"), "{}", ran.stderr);
}
