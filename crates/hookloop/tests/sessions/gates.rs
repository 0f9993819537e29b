//! A claim is not proof: gates, retries with feedback, and receipts.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_testkit::eventually;

use super::visible::shown;
use super::{SOON, run, scripted, trusted_project};

const DONE: &str = r#"{"say": "All tests pass.\n<promise>COMPLETE</promise>"}"#;

/// Fails with three tests, then with one, then passes.
const ATTEMPTS: &str = "#!/bin/sh
n=$(cat attempts 2>/dev/null || echo 0)
n=$((n + 1))
echo $n > attempts
case $n in
  1) echo '3 tests failing: fix auth, db, api' >&2; exit 2 ;;
  2) echo '1 test failing: fix api validation' >&2; exit 2 ;;
  *) echo 'All tests passed!' ;;
esac
";

#[test]
fn a_session_completes_after_two_failed_gate_attempts() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: ./test-hook.sh}
";
    let agent = "#!/bin/sh\ncat > prompt-$HOOKLOOP_ITERATION\necho done\n";
    let project = trusted_project(
        config,
        &[("test-hook.sh", ATTEMPTS), ("agent.sh", agent), (".gitignore", "attempts\n")],
    );
    let ran = run(&project, &["x", "--agent", "command:./agent.sh", "--stop-when", "turn"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(ran.count("iteration_started"), 3);
    assert_eq!(ran.verdicts(), ["block", "block", "pass"]);
    assert!(project.read("prompt-2").contains("3 tests failing: fix auth, db, api"));
    assert!(project.read("prompt-3").contains("1 test failing: fix api validation"));
    assert!(!project.read("prompt-3").contains("fix auth"), "feedback is repeated");
}

#[test]
fn at_the_limit_of_retries_a_human_is_needed() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'echo broken >&2; exit 2'}
";
    let check = |retries: &str, blocks: usize| {
        let project = trusted_project(config, &[]);
        // Each turn changes a file, so the session makes progress but stays wrong.
        let turns: Vec<String> = (0..20)
            .map(|n| {
                format!(r#"{{"write": {{"f": "{n}"}}, "say": "<promise>COMPLETE</promise>"}}"#)
            })
            .collect();
        let turns = format!("[{}]", turns.join(","));
        let ran = scripted(&project, &turns, &["--gate-retries", retries]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
        assert_eq!(ran.count("gates_evaluated"), blocks, "{retries}");
        let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
        let why = project.json(&["why", &id]);
        let reasons = why["reasons"].to_string();
        assert!(reasons.contains("gates still fail") && reasons.contains("fails: tests"), "{why}");
    };
    check("0", 1);
    check("2", 3);
    let project = trusted_project(config, &[]);
    let accepted = scripted(
        &project,
        &format!("[{DONE}]"),
        &["--gate-retries", "0", "--at-retry-limit", "accept"],
    );
    assert_eq!((accepted.code, accepted.outcome()), (6, "complete"));
    assert_eq!(accepted.all("session_ended")[0]["unproven"], true, "marked as unproven");
}

#[test]
fn a_session_gets_more_gate_retries_while_fewer_tests_fail() {
    let gate = "#!/bin/sh
n=$(cat fixed 2>/dev/null || echo 0)
echo 'running 9 tests'
for t in 1 2 3 4 5 6 7 8 9; do
  [ $t -le $n ] && echo \"test t$t ... ok\" || echo \"test t$t ... FAILED\"
done
echo; echo \"test result: FAILED. $n passed; $((9 - n)) failed; 0 ignored; 0 measured; 0 filtered out\"
[ $n -ge 9 ] || exit 2
";
    let project = trusted_project(
        "version: 1\nhooks:\n  stop:\n    - {name: tests, command: ./gate.sh}\n",
        &[("gate.sh", gate)],
    );
    let turns: Vec<String> = (1..=9)
        .map(|n| {
            format!(r#"{{"write": {{"fixed": "{n}"}}, "say": "<promise>COMPLETE</promise>"}}"#)
        })
        .collect();
    let ran = scripted(&project, &format!("[{}]", turns.join(",")), &["--gate-retries", "1"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let failing: Vec<usize> = ran
        .all("gates_evaluated")
        .iter()
        .map(|judged| judged["failing"].as_array().unwrap().len())
        .collect();
    assert_eq!(failing, [8, 7, 6, 5, 4, 3, 2, 1, 0]);
    let mut told = ran.all("output_piped");
    told.retain(|piped| piped["channel"] == "check_result");
    let text = told[1]["text"].as_str().unwrap();
    assert!(text.contains("t2") && text.to_lowercase().contains("fixed"), "{text}");
}

#[test]
fn a_gate_that_crashes_or_times_out_does_not_pass() {
    let check = |gate: &str, status: &str| {
        let config = format!("version: 1\nhooks:\n  stop:\n    - {{name: gate, {gate}}}\n");
        let project = trusted_project(&config, &[]);
        let ran = scripted(&project, &format!("[{DONE}]"), &["--gate-retries", "0"]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{gate}: {}", ran.stderr);
        let receipts = ran.all("receipt_recorded");
        assert_eq!(receipts.len(), 1, "{gate}");
        assert_eq!(receipts[0]["status"], status, "{gate}");
    };
    check("command: 'sleep 60', timeout: 200ms", "timed_out");
    check("command: 'kill -9 $$'", "killed");
    check("command: 'echo \"{\\\"decision\\\": 7}\"'", "failed");
    check("command: 'exit 1'", "failed");
    check("command: /no/such/program", "failed");
    check("command: [/no/such/program]", "not_started");
}

#[test]
fn a_false_completion_claim_is_rejected_by_the_gate() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'grep -q 42 answer'}
";
    let project = trusted_project(config, &[("answer", "41\n")]);
    let lies = format!("[{DONE}]");
    let ran = scripted(&project, &lies, &["--max-no-progress", "3"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert!(ran.all("receipt_recorded").iter().all(|receipt| receipt["status"] != "passed"));
    // `grep` exits with 1 if there is no match, which fails a closed gate.
    project.write("answer", "42\n");
    let ran = scripted(&project, &lies, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
}

#[test]
fn a_receipt_is_for_the_tree_that_git_would_commit() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true'}
";
    let project = trusted_project(config, &[("a", "1\n"), (".gitignore", "ignored\n")]);
    project.write("ignored", "1");
    let turns = r#"[{"write": {"new": "2\n", "a": "3\n"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, turns, &[]);
    let tree = ran.all("receipt_recorded")[0]["tree"].as_str().unwrap().to_owned();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(project.root());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    // The user's index was not touched.
    assert_eq!(git(&["diff", "--cached", "--name-only"]), "");
    git(&["add", "--all"]);
    assert_eq!(git(&["write-tree"]), tree);
    // One more byte makes another tree.
    project.write("a", "3\n ");
    git(&["add", "--all"]);
    assert_ne!(git(&["write-tree"]), tree);
}

/// Git compares times in seconds. It detects a change of the same size in the second of the last
/// `git add` only because the index is not newer than the file.
#[test]
fn a_receipts_tree_includes_a_change_of_the_same_second_and_size() {
    let config = "version: 1\nhooks:\n  stop:\n    - {name: tests, command: 'true'}\n";
    let project = trusted_project(config, &[("a", "1\n")]);
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(project.root()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let second = |name: &str| fs::metadata(project.root().join(name)).unwrap().ctime();
    eventually("all in one second", SOON, || {
        project.write("a", "1\n");
        let first = second("a");
        git(&["add", "a"]);
        project.write("a", "3\n");
        [second(".git/index"), second("a")] == [first; 2]
    });
    let changed = second("a");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    eventually("the next second", SOON, || now() > changed.cast_unsigned());
    let ran = scripted(&project, r#"[{"say": "<promise>COMPLETE</promise>"}]"#, &[]);
    let tree = ran.all("receipt_recorded")[0]["tree"].as_str().unwrap().to_owned();
    git(&["add", "--all"]);
    assert_eq!(tree, git(&["write-tree"]));
}

/// The tests pass, then the final turn breaks them, so the work is not complete.
#[test]
fn a_change_after_passing_gates_invalidates_the_receipt() {
    let config = "version: 1
hooks:
  post_iteration:
    - {name: note, command: 'echo please tidy up', pipe_output: true, when: 'iteration == 1'}
  stop:
    - {name: tests, command: 'grep -q 42 answer'}
";
    let project = trusted_project(config, &[("answer", "42\n")]);
    let turns = r#"[
        {"say": "<promise>COMPLETE</promise>"},
        {"write": {"answer": "43\n"}, "say": "tidied"},
        {"write": {"answer": "42\n"}, "say": "oh.\n<promise>COMPLETE</promise>"}
    ]"#;
    let ran = scripted(&project, turns, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(ran.verdicts(), ["pass", "block", "pass"]);
    let last = ran.all("receipt_recorded").last().copied().cloned().unwrap();
    assert_eq!(last["status"], "passed");
}

/// A gate that changes files runs again on the changed files.
#[test]
fn gates_run_again_after_a_gate_changes_files() {
    let config = "version: 1
room: here
hooks:
  stop:
    - {name: format, command: './format.sh'}
    - {name: counts, command: 'echo ran >> /dev/null'}
";
    let once = "#!/bin/sh\ngrep -q formatted code || echo formatted >> code\n";
    let project = trusted_project(config, &[("format.sh", once), ("code", "x\n")]);
    let ran = scripted(&project, &format!("[{DONE}]"), &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let runs = ran.all("hook_ran");
    assert_eq!(runs.iter().filter(|run| run["hook_name"] == "counts").count(), 2);
    let restless = "#!/bin/sh\ndate +%N >> code\n";
    let done = "#!/bin/sh\ncat > /dev/null\necho '<promise>COMPLETE</promise>'\n";
    let files = [("format.sh", restless), ("done.sh", done), ("code", "x\n")];
    let project = trusted_project(config, &files);
    let ran = scripted(&project, &format!("[{DONE}]"), &["--gate-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let reason = ran.all("gates_evaluated")[0]["reason"].to_string();
    assert!(reason.contains("change files each time: code"), "{reason}");
    let shown =
        shown(&project, &["run", "x", "--gate-retries", "0", "--agent", "command:./done.sh"]);
    let repeats = shown.matches("files changed while the gates ran, so they run again: code");
    assert_eq!(repeats.count(), 2, "{shown}");
    assert!(shown.contains("change files each time: code"), "{shown}");
    assert!(!shown.contains("sent back"), "{shown}");
}

/// Rules that passed before a gate changed files run again on the changed files.
#[test]
fn validation_rules_run_again_after_a_gate_changes_files() {
    let config = "version: 1
room: here
hooks:
  validation:
    - {name: tests, command: './tests.sh'}
  stop:
    - {name: format, command: './format.sh'}
";
    let files = [
        ("tests.sh", "#!/bin/sh\n! grep -q formatted code || exit 2\n"),
        ("format.sh", "#!/bin/sh\ngrep -q formatted code || echo formatted >> code\n"),
        ("code", "x\n"),
    ];
    let project = trusted_project(config, &files);
    let ran = scripted(&project, r#"[{"say": "working"}]"#, &["--gate-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let failing = ran.all("gates_evaluated")[0]["failing"].to_string();
    assert!(failing.contains("tests"), "{failing}");
}

/// Without git, a snapshot of the files shows that a gate changed them.
#[test]
fn without_git_a_gate_that_keeps_changing_files_does_not_pass() {
    let config = "version: 1
room: here
hooks:
  stop:
    - {name: restless, command: 'date +%N >> code'}
";
    let project = trusted_project(config, &[("code", "x\n")]);
    std::fs::remove_dir_all(project.root().join(".git")).unwrap();
    let ran = scripted(&project, &format!("[{DONE}]"), &["--gate-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.all("receipt_recorded")[0]["tree"], serde_json::Value::Null);
}

/// Only the tests of the claims count, not the rules that passed before them.
#[test]
fn passing_rules_do_not_hide_that_fewer_tests_fail() {
    let gate = "#!/bin/sh
n=$(cat fixed)
echo 'running 9 tests'
for t in 1 2 3 4 5 6 7 8 9; do
  [ $t -le $n ] && echo \"test t$t ... ok\" || echo \"test t$t ... FAILED\"
done
echo; echo \"test result: FAILED. $n passed; $((9 - n)) failed; 0 ignored; 0 measured; 0 filtered out\"
[ $n -ge 9 ] || exit 2
";
    let config = "version: 1
hooks:
  validation:
    - {name: there, file: fixed}
  stop:
    - {name: tests, command: ./gate.sh}
";
    let project = trusted_project(config, &[("gate.sh", gate)]);
    let turns: Vec<String> =
        (1..=9).map(|n| format!(r#"{{"write": {{"fixed": "{n}"}}, "say": "one more"}}"#)).collect();
    let ran = scripted(&project, &format!("[{}]", turns.join(",")), &["--gate-retries", "1"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
}

#[test]
fn one_passing_gate_of_an_any_of_group_is_enough() {
    let check = |first: &str, second: &str, code: i32| {
        let config = format!(
            "version: 1
hooks:
  stop:
    - {{name: a, command: 'exit {first}', any_of: either}}
    - {{name: b, command: 'exit {second}', any_of: either}}
"
        );
        let project = trusted_project(&config, &[]);
        let ran = scripted(&project, &format!("[{DONE}]"), &["--gate-retries", "0"]);
        assert_eq!(ran.code, code, "{first} {second}: {}", ran.stderr);
    };
    check("2", "0", 0);
    check("0", "2", 0);
    check("2", "2", 3);
}

/// Settings of a repository that make git run a command, and attributes that use them.
const HOSTILE: &[&str] = &[
    "core.fsmonitor=CANARY",
    "core.hooksPath=evil",
    "core.pager=CANARY",
    "core.editor=CANARY",
    "core.askPass=CANARY",
    "core.sshCommand=CANARY",
    "core.gitProxy=CANARY",
    "core.alternateRefsCommand=CANARY",
    "credential.helper=!CANARY",
    "diff.external=CANARY",
    "diff.x.command=CANARY",
    "diff.x.textconv=CANARY",
    "merge.x.driver=CANARY",
    "filter.x.clean=CANARY",
    "filter.x.smudge=CANARY",
    "filter.x.process=CANARY",
    "filter.x.required=true",
    "filter.a b.clean=CANARY",
    "gpg.program=CANARY",
    "gpg.ssh.program=CANARY",
    "alias.add=!CANARY",
    "alias.write-tree=!CANARY",
    "sequence.editor=CANARY",
    "uploadpack.packObjectsHook=CANARY",
    "interactive.diffFilter=CANARY",
    "web.browser=CANARY",
    "submodule.x.update=!CANARY",
];

/// A configuration that asks git for the changed files and for the tree of the gates.
const ASKS_GIT: &str = "version: 1
hooks:
  validation:
    - {name: changed, changed: answer}
  stop:
    - {name: tests, command: 'true'}
";

#[test]
fn git_runs_no_command_that_the_repository_configures() {
    for setting in HOSTILE {
        let project = trusted_project(ASKS_GIT, &[("answer", "1\n")]);
        let canary = project.root().join("../canary");
        project.write("evil.sh", &format!("#!/bin/sh\ntouch {}\ncat\n", canary.display()));
        for hook in ["post-index-change", "pre-commit", "reference-transaction", "post-checkout"] {
            project.write(
                &format!("evil/{hook}"),
                &format!("#!/bin/sh\ntouch {}\n", canary.display()),
            );
            project.write(
                &format!(".git/hooks/{hook}"),
                &format!("#!/bin/sh\ntouch {}\n", canary.display()),
            );
        }
        project.write(".gitattributes", "* filter=x diff=x merge=x\n*.b \"filter=a b\"\n");
        let evil = project.root().join("evil.sh");
        let (key, value) = setting.split_once('=').unwrap();
        let value = value.replace("CANARY", evil.to_str().unwrap());
        let set = ["config", key, &value];
        let done = Command::new("git").args(set).current_dir(project.root()).output().unwrap();
        assert!(done.status.success(), "{setting}: {done:?}");
        let turns =
            r#"[{"write": {"answer": "2\n", "x.b": "3"}, "say": "<promise>COMPLETE</promise>"}]"#;
        let ran = scripted(&project, turns, &["--max-iterations", "1"]);
        assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{setting}: {}", ran.stderr);
        assert!(!canary.exists(), "{setting} ran something");
    }
}

/// The settings of a nested repository take effect in any git command that reads it.
#[test]
fn git_runs_no_command_that_a_nested_repository_configures() {
    let project = trusted_project(ASKS_GIT, &[("answer", "1\n")]);
    let canary = project.root().join("../canary");
    let evil = project.root().join("../evil.sh");
    fs::write(&evil, format!("#!/bin/sh\ntouch {}\ncat\n", canary.display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let git = |directory: &str, args: &[&str]| {
        let directory = project.root().join(directory);
        let done = Command::new("git").args(args).current_dir(directory).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    };
    let identity = ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "-m", "x"];
    git(".", &["init", "--quiet", "inside"]);
    project.write("inside/file", "1\n");
    git("inside", &["add", "."]);
    git("inside", &identity);
    git(".", &["-c", "advice.addEmbeddedRepo=false", "add", "inside"]);
    git(".", &identity);
    project.write("inside/.gitattributes", "* filter=x\n");
    project.write("inside/file", "2\n");
    git("inside", &["config", "filter.x.clean", evil.to_str().unwrap()]);
    let turns = r#"[{"write": {"answer": "2\n"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, turns, &["--max-iterations", "1"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert!(!canary.exists());
    git(".", &["add", "--all"]);
    assert!(canary.exists(), "the canary does not work");
}

/// An agent cannot install a missing dependency of a gate, so no further turn is spent.
#[test]
fn a_stop_gate_that_can_not_run_needs_a_person_after_one_turn() {
    let check = |gate: &str, parts: &[&str]| {
        let config = format!("version: 1\nhooks:\n  stop:\n    - {{name: gate, {gate}}}\n");
        let project = trusted_project(
            &config,
            &[("package.json", r#"{"devDependencies": {"some-runner": "1"}}"#)],
        );
        let ran = scripted(&project, &format!("[{DONE}]"), &[]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{gate}: {}", ran.stderr);
        assert_eq!(ran.count("iteration_started"), 1, "{gate}");
        assert_eq!(ran.verdicts(), ["escalate"], "{gate}");
        let reason =
            ran.all("gates_evaluated")[0]["reason"].as_str().unwrap_or_default().to_owned();
        for part in parts {
            assert!(reason.contains(part), "{gate}: {part}: {reason}");
        }
    };
    check(
        "command: 'no-such-program --now'",
        &[
            "`gate` can't run here",
            "`no-such-program` was not found (exit code 127)",
            "its command is `no-such-program --now`",
        ],
    );
    check(
        "command: 'some-runner --all'",
        &["`some-runner` was not found", "`hooks: {setup: [{command: npm install}]}`"],
    );
    check("command: ./not-there.sh", &["`gate` can't run here", "not-there.sh"]);
    check("command: [no-such-program]", &["`gate` can't run here", "no-such-program"]);
    check("command: 'exit 127'", &["exit code 127 and no output"]);
}

/// A test suite that produces output and exits with 127 is an ordinary failure.
#[test]
fn a_gate_with_output_and_exit_code_127_is_an_ordinary_failure() {
    let config = "version: 1\nhooks:\n  stop:\n    - {name: gate, command: 'grep -q 42 answer || { echo the answer is wrong >&2; exit 127; }'}\n";
    let project = trusted_project(config, &[("answer", "41\n")]);
    let turns = format!(
        r#"[{DONE}, {{"write": {{"answer": "42\n"}}, "say": "<promise>COMPLETE</promise>"}}]"#
    );
    let ran = scripted(&project, &turns, &[]);
    assert_eq!((ran.code, ran.verdicts().len()), (0, 2), "{}", ran.stderr);
}

/// A gate that ran before and no longer can was broken by the agent, which gets one report.
#[test]
fn a_gate_that_the_agent_broke_is_reported_to_the_agent_first() {
    let config = "version: 1\nhooks:\n  stop:\n    - {name: gate, command: '$(cat run)'}\n";
    let project = trusted_project(config, &[("run", "false\n")]);
    let broken = r#"{"write": {"run": "no-such-program\n"}, "say": "<promise>COMPLETE</promise>"}"#;
    let mended = r#"{"write": {"run": "true\n"}, "say": "<promise>COMPLETE</promise>"}"#;
    let ran = scripted(&project, &format!("[{DONE}, {broken}, {mended}]"), &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(ran.verdicts(), ["block", "block", "pass"]);
}

#[test]
fn a_reaction_that_can_not_start_leaves_an_event() {
    let config =
        "version: 1\nhooks:\n  session_start:\n    - {name: ready, command: ./not-there.sh}\n";
    let project = trusted_project(config, &[]);
    let ran = scripted(&project, &format!("[{DONE}]"), &[]);
    let runs = ran.all("hook_ran");
    let own =
        runs.iter().find(|run| run["hook_name"] == "ready").unwrap_or_else(|| panic!("{runs:?}"));
    assert_eq!(own["status"], "not_started", "{own}");
    assert!(own["reason"].as_str().unwrap().contains("not-there.sh"), "{own}");
}

/// A gate that timed out without output gets a hint. A gate that printed until the timeout does
/// not.
#[test]
fn a_gate_that_times_out_without_output_gets_a_hint_about_watch_mode() {
    let hint = "does its command watch files or wait for input?";
    // The gate that prints has a long timeout, because a busy machine may not schedule it for a
    // second.
    let ticking = "while true; do echo tick; sleep 0.02; done";
    for (command, timeout, is_quiet) in [("sleep 600", "700ms", true), (ticking, "4s", false)] {
        let config = format!(
            "version: 1\nhooks:\n  stop:\n    - {{name: slow, command: '{command}', timeout: {timeout}}}\n"
        );
        let project = trusted_project(&config, &[]);
        let turns = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;
        let ran = scripted(&project, turns, &["--gate-retries", "0"]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        let run = ran.all("hook_ran")[0].to_string();
        assert!(run.contains("timed_out"), "{run}");
        assert_eq!(run.contains(hint), is_quiet, "{run}");
        // The time is less than a second.
        assert_eq!(
            run.contains("it printed nothing for the last ") && run.contains("ms; "),
            is_quiet,
            "{run}"
        );
    }
}
