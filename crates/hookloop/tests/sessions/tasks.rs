//! Sessions that work on tasks of the graph.

use hookloop_testkit::{SessionOutput, TestProject};

use super::{run, run_as_it_is, scripted, trusted_project};

fn add(project: &TestProject, id: &str, rest: &[&str]) {
    let args: Vec<&str> =
        ["task", "add", "Goal", "--id", id].into_iter().chain(rest.iter().copied()).collect();
    project.json(&args);
}

fn state(project: &TestProject, id: &str) -> String {
    project.json(&["task", "show", id])["state"].as_str().unwrap().to_owned()
}

fn tasks(project: &TestProject, turns: &str, args: &[&str]) -> SessionOutput {
    project.write("turns.json", turns);
    let all: Vec<&str> = ["--tasks", "--agent", "scripted:turns.json"]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    run(project, &all)
}

const DONE: &str = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;

#[test]
fn ready_tasks_are_done_by_priority_until_none_is_left() {
    let project = trusted_project("version: 1\n", &[]);
    add(&project, "low", &["--priority", "9"]);
    add(&project, "after", &["--priority", "0", "--depends-on", "low"]);
    add(&project, "top", &["--priority", "0"]);
    let ran = tasks(&project, DONE, &[]);
    assert_eq!((ran.code, ran.outcome()), (6, "complete"), "{}", ran.stderr);
    let taken: Vec<_> = ran
        .all("session_task_claimed")
        .iter()
        .map(|taken| taken["task"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(taken, ["top", "low", "after"]);
    for id in ["top", "low", "after"] {
        assert_eq!(state(&project, id), "completed");
    }
}

#[test]
fn a_session_continues_with_other_tasks_after_a_task_needs_a_human() {
    let config = "version: 1\nhooks:\n  stop:\n    - {name: gate, command: '[ \"$HOOKLOOP_TASK_ID\" != bad ] || exit 2'}\n";
    let project = trusted_project(config, &[]);
    add(&project, "bad", &["--priority", "0"]);
    add(&project, "good", &["--priority", "1"]);
    let ran = tasks(&project, DONE, &["--gate-retries", "1", "--max-no-progress", "9"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(
        (state(&project, "bad"), state(&project, "good")),
        ("blocked".into(), "completed".into())
    );
    let why = project.json(&["why", "bad"]);
    assert!(why["reasons"].to_string().contains("gates still fail"), "{why}");
}

#[test]
fn a_session_that_ends_at_a_limit_releases_its_task() {
    let project = trusted_project("version: 1\n", &[]);
    add(&project, "a", &[]);
    let ran = tasks(&project, r#"[{"say": "hm"}]"#, &["--max-iterations", "2"]);
    assert_eq!((ran.code, ran.outcome()), (4, "limit"), "{}", ran.stderr);
    assert_eq!(state(&project, "a"), "ready");
    assert_eq!(tasks(&project, DONE, &[]).code, 6);
}

#[test]
fn an_agent_does_not_complete_its_task_itself() {
    let project = trusted_project(
        "version: 1\nhooks:\n  stop:\n    - {name: gate, command: 'exit 2'}\n",
        &[],
    );
    add(&project, "a", &[]);
    let program = crate::support::PROGRAM;
    let turns = format!(
        r#"[{{"run": "{program} task complete a || true", "say": "<promise>COMPLETE</promise>"}}]"#
    );
    let ran = tasks(&project, &turns, &["--gate-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(state(&project, "a"), "blocked");
}

#[test]
fn a_session_without_ready_tasks_runs_no_turn() {
    let project = trusted_project("version: 1\n", &[]);
    let ran = tasks(&project, DONE, &[]);
    assert_eq!((ran.code, ran.count("turn_ended")), (0, 0), "{}", ran.stderr);
    let spec = scripted(&project, DONE, &[]);
    assert_eq!(spec.code, 6);
    project.write("SPEC.md", "Build it\n");
    let agent = "#!/bin/sh\ncat > prompt\necho '<promise>COMPLETE</promise>'\n";
    project.write("agent.sh", agent);
    let ran = run(&project, &["--spec", "SPEC.md", "--agent", "command:./agent.sh"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(project.read("prompt").contains("Build it"));
}

#[test]
fn a_task_that_was_accepted_leaves_the_session_unproven() {
    let project = trusted_project(
        "version: 1\nhooks:\n  stop:\n    - {name: gate, command: 'exit 2'}\n",
        &[],
    );
    add(&project, "a", &[]);
    let ran = tasks(&project, DONE, &["--gate-retries", "0", "--at-retry-limit", "accept"]);
    assert_eq!((ran.code, ran.outcome()), (6, "complete"), "{}", ran.stderr);
    assert_eq!(ran.all("session_ended")[0]["unproven"], true);
}

/// While a session is paused, another session may claim its task.
#[test]
fn a_paused_session_releases_its_task() {
    let project = trusted_project("version: 1\n", &[]);
    add(&project, "a", &[]);
    let waiting = "touch begun; while [ ! -f paused ]; do sleep 0.05; done";
    let turns = format!(
        r#"[{{"run": "{waiting}", "say": "resting"}}, {{"say": "<promise>COMPLETE</promise>"}}]"#
    );
    let ran = std::thread::scope(|scope| {
        let ran = scope.spawn(|| tasks(&project, &turns, &[]));
        let began = std::time::Instant::now();
        while !project.root().join("begun").exists() {
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "no turn started");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        project.json(&["pause"]);
        std::fs::write(project.root().join("paused"), "").unwrap();
        ran.join().unwrap()
    });
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert_eq!(state(&project, "a"), "ready");
    let resumed = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!(resumed.code, 6, "{}", resumed.stderr);
    assert_eq!(state(&project, "a"), "completed");
}

#[test]
fn why_names_the_proof_of_each_task_of_a_session() {
    let config = "version: 1\nhooks:\n  stop:\n    - {name: tests, command: 'true'}\n";
    let agent = "#!/bin/sh\ncat > /dev/null\necho work >> work-$HOOKLOOP_TASK_ID\n\
                 [ $HOOKLOOP_TASK_ID = b ] || [ $(wc -l < work-a) -ge 2 ] || exit 0\n\
                 echo '<promise>COMPLETE</promise>'\n";
    let project = trusted_project(config, &[("agent.sh", agent)]);
    project.json(&["task", "add", "First", "--id", "a", "--priority", "0"]);
    project.json(&["task", "add", "Second", "--id", "b", "--priority", "1"]);
    let ran = run_as_it_is(&project, &["--tasks", "--agent", "command:./agent.sh"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let receipts = ran.all("receipt_recorded");
    assert_eq!(receipts.len(), 2, "{receipts:?}");
    assert_ne!(receipts[0]["tree"], receipts[1]["tree"]);
    for (task, receipt, iterations) in
        [("a", receipts[0], "in 2 iterations"), ("b", receipts[1], "in 1 iteration")]
    {
        let why = project.json(&["why", task]);
        let reasons: Vec<&str> = why["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .map(|reason| reason.as_str().unwrap())
            .collect();
        let proof = format!("gate tests passed on {}", receipt["tree"].as_str().unwrap());
        let gates: Vec<_> = reasons.iter().filter(|reason| reason.starts_with("gate ")).collect();
        assert_eq!(gates.len(), 1, "{task}: {gates:?}");
        assert!(gates[0].starts_with(&proof), "{task}: {gates:?}");
        assert!(reasons.iter().any(|reason| reason.ends_with(iterations)), "{task}: {reasons:?}");
    }
}
