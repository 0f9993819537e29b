//! No session starts with fewer or weaker gates than a person has trusted.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cli::{ProgramOutput, Project};

const UNTRUSTED: i32 = 3;
const TURNS: &str = r#"[{"run": "date +%N > work", "say": "<promise>COMPLETE</promise>"}]"#;
/// A gate that always blocks.
const TESTS: &str = "hooks: {stop: [{name: tests, command: exit 2}]}\nlimits: {gate_retries: 0}\n";

fn git(directory: &Path, args: &[&str]) {
    let name = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
    let done = Command::new("git").args(name).args(args).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {done:?}");
}

fn commit(project: &Project) {
    git(&project.root(), &["add", "."]);
    git(&project.root(), &["commit", "-qm", "work"]);
}

/// Returns a repository with a trusted configuration.
fn trusted(config: &str) -> Project {
    let project = Project::with_config(config);
    project.write("turns.json", TURNS);
    git(&project.root(), &["init", "-q", "-b", "main"]);
    commit(&project);
    project.trust();
    project
}

fn session(project: &Project) -> ProgramOutput {
    project.run(&["run", "x", "--agent", "scripted:turns.json"])
}

/// Checks that no session starts with `config`, and that the refusal contains `words`.
fn refused(project: &Project, config: &str, words: &str) {
    project.configure(config);
    let before = project.events_of("session_started").len();
    let run = session(project);
    assert_eq!(run.code, UNTRUSTED, "{config}: {run:?}");
    assert!(run.stderr.contains(words), "{config}: {}", run.stderr);
    assert!(run.stderr.contains("hookloop hooks trust"), "{}", run.stderr);
    assert_eq!(project.events_of("session_started").len(), before, "{config}");
}

/// Returns the output of `why` for the only session.
fn why_of_session(project: &Project) -> String {
    let sessions = project.json(&["sessions", "list"]);
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "{sessions}");
    project.ok(&["why", sessions[0]["id"].as_str().unwrap()])
}

fn digest(project: &Project) -> String {
    project.json(&["hooks", "trust", "--show"])["digest"].as_str().unwrap().to_owned()
}

#[test]
fn a_removed_gate_needs_trust() {
    let project = trusted(TESTS);
    refused(&project, "", "`tests` is gone");
    let status = project.json(&["status"]);
    assert_eq!(status["weakened_gates"][0], "`tests` is gone", "{status}");
    assert!(project.ok(&["status"]).contains("`tests` is gone"));
    let doctor = project.run(&["doctor"]);
    assert!(doctor.stdout.contains("`tests` is gone"), "{doctor:?}");
    let task = project.add("Goal", &[]);
    let why = project.json(&["why", &task]);
    assert!(why["reasons"].to_string().contains("`tests` is gone"), "{why}");
    assert_eq!(why["next"], "hookloop hooks trust", "{why}");
    // A person trusts the change, after seeing the difference.
    assert!(project.ok(&["hooks", "trust", "--show"]).contains("`tests` is gone"));
    let agreed = project.json(&["hooks", "trust", "--yes"]);
    assert_eq!(agreed["changes"][0], "`tests` is gone", "{agreed}");
    let run = session(&project);
    assert_ne!(run.code, UNTRUSTED, "{run:?}");
    let why = why_of_session(&project);
    assert!(why.contains("tester trusted changed gates"), "{why}");
    // A restored gate is more than the trusted set; removing it again is less.
    project.configure(TESTS);
    project.trust();
    refused(&project, "", "`tests` is gone");
}

#[test]
fn a_weaker_gate_needs_trust() {
    let project = trusted(TESTS);
    let with = |rest: &str| {
        format!(
            "hooks: {{stop: [{{name: tests, command: exit 2{rest}}}]}}\nlimits: {{gate_retries: 0}}\n"
        )
    };
    refused(&project, &with(", enabled: false"), "`tests` is switched off");
    let replaced = TESTS.replace("command: exit 2", "file: turns.json");
    refused(
        &project,
        &replaced,
        "gates changed since you trusted them: `tests` is now `file turns.json` instead of `exit 2`",
    );
    let grouped = with(", any_of: g}, {name: r, file: turns.json, any_of: g");
    refused(&project, &grouped, "`tests` may now be replaced by `r`");
    let limits = TESTS.replace("gate_retries: 0", "gate_retries: 9");
    refused(&project, &limits, "`limits.gate_retries` is 9 instead of 0");
    let stop = format!("{TESTS}loop: {{stop_when: turn}}\n");
    refused(&project, &stop, "`loop.stop_when` is `turn` instead of `default`");
    let typed = format!("{TESTS}task_types: {{fix: {{hooks: {{stop: []}}}}}}\n");
    refused(&project, &typed, "`tests` is gone, for tasks of type `fix`");
    // A change of any other option makes it a different command.
    project.configure(&with(", on_failure: open"));
    assert_eq!(session(&project).code, UNTRUSTED);
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(shown.contains("`tests` no longer blocks when it crashes or times out"), "{shown}");
    // With the trusted configuration, the session starts.
    project.configure(TESTS);
    assert_eq!(project.events_of("session_started").len(), 0);
    session(&project);
    assert_eq!(project.events_of("session_started").len(), 1);
}

/// A rule starts no process, so it needs no trust; it is a gate nevertheless.
#[test]
fn a_rule_of_an_earlier_session_is_part_of_the_trusted_gates() {
    let project = Project::with_config("hooks: {stop: [{name: r, file: missing}]}\n");
    project.write("turns.json", TURNS);
    assert_eq!(
        project.run(&["run", "x", "--agent", "scripted:turns.json", "--gate-retries", "0"]).code,
        3
    );
    assert_eq!(project.events_of("session_started").len(), 1);
    refused(&project, "", "`r` is gone");
    refused(
        &project,
        "hooks: {stop: [{name: r, file: turns.json}]}\n",
        "`r` is now `file turns.json` instead of `file missing`",
    );
    // Additional gates need no trust.
    project.configure("hooks: {stop: [{name: r, file: missing}, {name: s, file: turns.json}]}\n");
    session(&project);
    assert_eq!(project.events_of("session_started").len(), 2);
    refused(&project, "hooks: {stop: [{name: r, file: missing}]}\n", "`s` is gone");
}

#[test]
fn a_gate_that_a_person_disables_stays_in_the_ledger() {
    let project = trusted(TESTS);
    project.ok(&["hooks", "disable", "tests"]);
    let run = session(&project);
    assert_ne!(run.code, UNTRUSTED, "{run:?}");
    let why = why_of_session(&project);
    assert!(why.contains("tester disabled `tests`"), "{why}");
    project.ok(&["hooks", "enable", "tests"]);
    refused(&project, "", "`tests` is gone");
}

#[test]
fn trusted_gates_are_kept_for_each_branch_and_shared_by_worktrees() {
    let project = trusted(TESTS);
    // Another branch has to match the trusted gates, too, and can then have its own.
    git(&project.root(), &["checkout", "-qb", "loose"]);
    refused(&project, "", "`tests` is gone");
    project.trust();
    commit(&project);
    assert_ne!(session(&project).code, UNTRUSTED);
    git(&project.root(), &["checkout", "-q", "main"]);
    refused(&project, "", "`tests` is gone");
    git(&project.root(), &["checkout", "-q", "hookloop.yaml"]);
    // A linked worktree has another state and the same trusted gates.
    let other = project.home().join("linked");
    git(&project.root(), &["worktree", "add", "-q", "-b", "more", other.to_str().unwrap()]);
    std::fs::write(other.join("hookloop.yaml"), "version: 1\n").unwrap();
    let run = at(&project, &other, &["run", "x", "--agent", "scripted:turns.json"]);
    assert_eq!(run.status.code(), Some(UNTRUSTED), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stderr).contains("`tests` is gone"), "{run:?}");
}

/// Runs the program in another directory.
fn at(project: &Project, directory: &Path, args: &[&str]) -> Output {
    project.hookloop(args).current_dir(directory).output().unwrap()
}

#[test]
fn trusted_gates_survive_a_moved_or_replaced_git_directory() {
    let project = trusted(TESTS);
    project.configure("");
    let git_dir = project.root().join(".git");
    let moved: PathBuf = project.home().join("moved.git");
    std::fs::rename(&git_dir, &moved).unwrap();
    refused(&project, "", "`tests` is gone");
    git(&project.root(), &["init", "-q", "-b", "fresh"]);
    refused(&project, "", "`tests` is gone");
    std::fs::remove_dir_all(&git_dir).unwrap();
    let elsewhere = project.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    git(&elsewhere, &["init", "-q", "-b", "main"]);
    let link = format!("gitdir: {}\n", elsewhere.join(".git").display());
    std::fs::write(&git_dir, link).unwrap();
    refused(&project, "", "`tests` is gone");
}

#[test]
fn a_project_trusted_before_ledgers_existed_gets_a_ledger() {
    let project = trusted(TESTS);
    let state = project.state();
    std::fs::remove_file(state.join("ledger.json")).unwrap();
    std::fs::remove_dir_all(state.parent().unwrap().join("_repos")).unwrap();
    assert!(state.join("trust.json").exists());
    refused(&project, "", "`tests` is gone");
    project.configure(TESTS);
    session(&project);
    assert_eq!(project.events_of("session_started").len(), 1);
}

#[test]
fn the_trust_digest_covers_the_gates() {
    let project = trusted(TESTS);
    let agreed = digest(&project);
    project.configure("");
    let loosened = digest(&project);
    assert_ne!(agreed, loosened);
    let run = |digest: &str| {
        project.run(&["run", "x", "--agent", "scripted:turns.json", "--trust", digest])
    };
    assert_eq!(run(&agreed).code, UNTRUSTED);
    assert_ne!(run(&loosened).code, UNTRUSTED, "trusted for this run");
    assert_eq!(session(&project).code, UNTRUSTED, "not trusted for other runs");
}

#[test]
fn an_unreadable_ledger_prevents_sessions_from_starting() {
    let project = trusted(TESTS);
    let state = project.state();
    let repositories = std::fs::read_dir(state.parent().unwrap().join("_repos")).unwrap();
    let directory = repositories.flatten().next().unwrap().path();
    std::fs::write(directory.join("ledger.json"), "{").unwrap();
    let run = session(&project);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("ledger.json"), "{}", run.stderr);
    assert!(project.events_of("session_started").is_empty());
}

#[test]
fn trusting_hooks_is_an_event_with_its_actor_and_digest() {
    let project = trusted(TESTS);
    let event = &project.events_of("hooks_trusted")[0];
    assert_eq!(event["metadata"]["triggered_by"], "tester", "{event}");
    assert_eq!(event["data"]["digest"], digest(&project).as_str(), "{event}");
    assert_eq!(event["data"]["gates"], serde_json::json!(["tests"]), "{event}");
    project.configure("");
    project.trust();
    let changes = &project.events_of("hooks_trusted")[1]["data"]["changes"];
    assert_eq!(changes[0], "`tests` is gone", "{changes}");
    project.configure("agents: {mine: {type: command, command: 'true'}}\n");
    project.ok(&["agents", "trust", "--yes"]);
    let event = &project.events_of("agents_trusted")[0];
    assert_eq!(event["metadata"]["triggered_by"], "tester", "{event}");
    assert!(event["data"]["digest"].as_str().unwrap().starts_with("sha256:"), "{event}");
}

#[test]
fn only_the_user_can_set_at_retry_limit_to_accept() {
    let project = trusted(TESTS);
    project.configure(&format!("{TESTS}loop: {{at_retry_limit: accept}}\n"));
    let run = session(&project);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("--at-retry-limit accept"), "{}", run.stderr);
    project.configure(TESTS);
    assert_eq!(session(&project).code, 3, "the gate refuses");
    project.write_own("loop: {at_retry_limit: accept}\n");
    session(&project);
    let answered = project.events_of("decision_made");
    assert_eq!(answered.last().unwrap()["data"]["answer"], "accept", "{answered:?}");
}

#[test]
fn projects_of_one_repository_have_separate_trusted_gates() {
    let project = trusted(TESTS);
    let inner = project.root().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("hookloop.yaml"), "version: 1\n").unwrap();
    std::fs::write(inner.join("turns.json"), TURNS).unwrap();
    let args = ["run", "x", "--agent", "scripted:turns.json"];
    // A project that an agent creates beside one with gates does not bypass those gates.
    let run = at(&project, &inner, &args);
    assert_eq!(run.status.code(), Some(UNTRUSTED), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stderr).contains("`tests` is gone"), "{run:?}");
    assert!(at(&project, &inner, &["hooks", "trust", "--yes"]).status.success());
    let run = at(&project, &inner, &args);
    assert_ne!(run.status.code(), Some(UNTRUSTED), "a person trusted it: {run:?}");
    refused(&project, "", "`tests` is gone");
}

/// A refused session trusts nothing: otherwise an edit that is reverted would lock its user out.
#[test]
fn a_refused_session_does_not_change_the_trusted_gates() {
    let project = trusted(TESTS);
    let config = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    let more = config.replace("[{name: tests", "[{name: extra, command: 'true'}, {name: tests");
    project.write("hookloop.yaml", &more);
    let run = session(&project);
    assert!(run.code == UNTRUSTED && run.stderr.contains("extra"), "{run:?}");
    project.write("hookloop.yaml", &config);
    let run = session(&project);
    assert!(run.stdout.contains("tests"), "the session starts: {run:?}");
    assert!(!run.stderr.contains("extra"), "{run:?}");
}

/// Declared actions run without a process; actions that complete or unblock tasks still need trust.
#[test]
fn actions_that_complete_or_unblock_tasks_need_trust() {
    let project = Project::with_config("");
    for id in ["two", "stuck"] {
        project.add("Goal", &["--id", id]);
    }
    project.ok(&["task", "block", "stuck", "--reason", "a person must look"]);
    project.configure(
        "hooks:
  task_created:
    - name: z
      actions:
        - update_task: {task_id: two, action: complete}
        - update_task: {task_id: stuck, action: unblock}
",
    );
    let states = || (project.state_of("two"), project.state_of("stuck"));
    project.add("Trigger", &["--id", "first"]);
    assert_eq!(states(), ("ready".to_owned(), "blocked".to_owned()));
    let failed = project.event("hook_error")["data"]["error"].to_string();
    assert!(failed.contains("not trusted"), "{failed}");
    // After a person has trusted the hook, it acts; its actions are part of the trusted content.
    project.trust();
    project.add("Trigger", &["--id", "second"]);
    assert_eq!(states(), ("completed".to_owned(), "ready".to_owned()));
    // A workflow can't be trusted, so it may neither complete nor unblock tasks.
    project.configure("workflows: {loosen: [{update_task: {task_id: two, action: complete}}]}\n");
    let why = project.fails(2, &["task", "list"]);
    assert!(why.contains("workflow `loosen` completes or unblocks a task"), "{why}");
}

/// A person has to trust a task type that allows work without a change.
#[test]
fn a_task_type_with_no_changes_ok_needs_trust() {
    let project = trusted(TESTS);
    let config = format!("{TESTS}task_types: {{chore: {{no_changes_ok: true}}}}\n");
    refused(&project, &config, "`task_types.chore` lets work be complete without a change");
    project.trust();
    assert!(session(&project).stdout.contains("tests"), "the session starts");
}

#[test]
fn a_task_type_that_may_change_tests_needs_trust() {
    let project = trusted(TESTS);
    let config =
        |patterns: &str| format!("{TESTS}task_types: {{docs: {{may_change: {patterns}}}}}\n");
    let why = "`task_types.docs` lets work change the tests in";
    refused(&project, &config("'tests/**'"), &format!("{why} tests/**"));
    project.trust();
    assert!(session(&project).stdout.contains("tests"), "the session starts");
    refused(&project, &config("['tests/**', 'golden/**']"), &format!("{why} golden/**"));
}
