//! Gates in rooms: clean checkouts of the files that a receipt names.

mod attacks;
mod commands;
mod confined;
mod disturbed;
mod escapes;
mod in_turn;
mod leaks;
mod setup;

use std::fs;
use std::path::PathBuf;

use hookloop_core::digest::sha256_hex;
use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};
use serde_json::{Value, json};

use super::{run, scripted, trusted_project};
use crate::support::builder;

/// A turn that changes nothing and claims to be complete.
const DONE: &str = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;

/// Returns a configuration with one gate.
fn gate(gate: &str) -> String {
    format!("version: 1\nhooks:\n  stop:\n    - {{name: tests, {gate}}}\n")
}

/// Runs a session that may not retry, and returns it with its only receipt.
fn judged(project: &TestProject, turns: &str) -> (SessionOutput, Value) {
    let ran = scripted(project, turns, &["--gate-retries", "0"]);
    let receipts = ran.all("receipt_recorded");
    assert_eq!(receipts.len(), 1, "{}", ran.stderr);
    let receipt = receipts[0].clone();
    (ran, receipt)
}

#[track_caller]
fn assert_complete(ran: &SessionOutput) {
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
}

#[track_caller]
fn assert_refused(ran: &SessionOutput) {
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
}

/// Returns the tree that a commit of all files would have.
fn tree_of_files(project: &TestProject) -> String {
    project.git(&["add", "--all"]);
    project.git(&["write-tree"])
}

#[test]
fn a_file_that_git_ignores_does_not_decide_a_gate() {
    let config = gate("command: 'test -e secret'");
    let project = trusted_project(&config, &[(".gitignore", "secret\n"), ("secret", "1\n")]);
    let (ran, receipt) = judged(&project, DONE);
    assert_refused(&ran);
    assert_eq!(receipt["status"], "failed");
    assert_eq!(receipt["room"]["kind"], "clean");
    assert_eq!(project.read("secret"), "1\n");
}

#[test]
fn files_that_a_gate_writes_stay_in_the_room() {
    let config = gate("command: 'mkdir out && echo 1 > out/report && echo changed > source'");
    let project = trusted_project(&config, &[("source", "original\n")]);
    let turns = r#"[{"write": {"new": "1\n"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let (ran, receipt) = judged(&project, turns);
    assert_complete(&ran);
    assert_eq!(receipt["room"]["kind"], "clean");
    assert!(!project.root().join("out").exists(), "the gate wrote into the working directory");
    assert_eq!(project.read("source"), "original\n");
    assert_eq!(receipt["tree"], tree_of_files(&project));
}

/// The whole repository is in the room, also if the project is a directory of it.
#[test]
fn a_project_in_a_subdirectory_is_judged_on_the_whole_repository() {
    let project = builder().build();
    let config = gate("command: 'grep -qx 42 ../lib/answer && echo 1 > ../lib/by-gate'");
    project.write("svc/hookloop.yaml", &config);
    project.write("lib/answer", "41\n");
    project.create_repository();
    project.ok(&["-C", "svc", "init", "--yes"]);
    project.ok(&["-C", "svc", "hooks", "trust", "--yes"]);
    let agent =
        "command:cat > /dev/null; echo 42 > ../lib/answer; echo '<promise>COMPLETE</promise>'";
    let args = ["-C", "svc", "run", "--no-changes-ok", "x", "--agent", agent];
    let ran: SessionOutput = project.json_command(&args).output().unwrap().into();
    assert_complete(&ran);
    let receipt = &ran.all("receipt_recorded")[0];
    assert_eq!(receipt["room"]["kind"], "clean");
    assert_eq!(project.read("lib/answer"), "42\n");
    assert!(!project.root().join("lib/by-gate").exists());
    assert_eq!(receipt["tree"], tree_of_files(&project));
}

#[test]
fn a_gate_with_room_here_runs_in_the_working_directory() {
    let config = gate("command: 'test -e secret && echo 1 > ignored', room: here");
    let ignored = (".gitignore", "secret\nignored\n");
    let project = trusted_project(&config, &[ignored, ("secret", "1\n")]);
    let (ran, receipt) = judged(&project, DONE);
    assert_complete(&ran);
    assert_eq!(receipt["room"], json!({"kind": "here", "boxed": false}));
    assert_eq!(project.read("ignored"), "1\n");
}

/// The bytes are those at the start of the session: the agent cannot change them.
#[test]
fn a_copied_file_is_in_the_room_and_its_digest_is_in_the_receipt() {
    let config = gate("command: 'grep -qx key=1 .env.test', room: {copy: [.env.test]}");
    let files = [(".gitignore", ".env.test\n"), (".env.test", "key=1\n")];
    let project = trusted_project(&config, &files);
    let turns = r#"[{"write": {".env.test": "key=2\n"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let (ran, receipt) = judged(&project, turns);
    assert_complete(&ran);
    let copies = json!([{"path": ".env.test", "sha256": sha256_hex(b"key=1\n")}]);
    assert_eq!(receipt["room"]["copies"], copies);
    assert_eq!(project.read(".env.test"), "key=2\n");
}

#[test]
fn a_copied_file_that_does_not_exist_needs_a_human() {
    let config = gate("command: 'true', room: {copy: [.env.test]}");
    let project = trusted_project(&config, &[(".gitignore", ".env.test\n")]);
    let (ran, receipt) = judged(&project, DONE);
    assert_refused(&ran);
    assert_eq!(receipt["status"], "not_started");
    assert!(ran.all("session_ended")[0].to_string().contains(".env.test"), "{}", ran.stderr);
}

#[test]
fn a_tree_that_a_gate_has_passed_is_not_judged_again() {
    let project = trusted_project(&gate("command: 'test -e a'"), &[("a", "1\n")]);
    let (first, receipt) = judged(&project, DONE);
    assert_complete(&first);
    assert_eq!(first.hooks_at("stop"), ["tests"]);
    assert_eq!(receipt["reused_from"], Value::Null);
    let session = project.json(&["sessions", "list"])[0]["id"].clone();
    let (second, reused) = judged(&project, DONE);
    assert_complete(&second);
    assert!(second.hooks_at("stop").is_empty(), "the gate ran again");
    assert_eq!((&reused["status"], &reused["tree"]), (&json!("passed"), &receipt["tree"]));
    assert_eq!(reused["reused_from"], session);
    project.write("a", "2\n");
    let (third, receipt) = judged(&project, DONE);
    assert_complete(&third);
    assert_eq!(third.hooks_at("stop"), ["tests"], "another tree");
    assert_eq!(receipt["reused_from"], Value::Null);
}

/// A gate may read the refs of the repository and its environment.
#[test]
fn a_gate_is_judged_again_when_its_surroundings_change() {
    let project = trusted_project(&gate("command: 'test -e a'"), &[("a", "1\n")]);
    let hooks = |name: &str, value: &str| {
        project.write_turns(DONE);
        let args = ["run", "--no-changes-ok", "work", "--agent", SCRIPTED_AGENT];
        let mut command = project.json_command(&args);
        let ran: SessionOutput = command.env(name, value).output().unwrap().into();
        assert_complete(&ran);
        ran.hooks_at("stop").len()
    };
    assert_eq!(hooks("TERM", "vt100"), 1);
    assert_eq!(hooks("TERM", "xterm"), 0, "a terminal decides nothing");
    assert_eq!(hooks("RUST_LOG", "debug"), 1);
    project.git(&["tag", "v1"]);
    assert_eq!(hooks("TERM", "xterm"), 1, "a gate may read tags");
    assert_eq!(hooks("TERM", "xterm"), 0);
}

#[test]
fn a_tree_with_a_link_out_of_the_repository_is_judged_again() {
    let project = trusted_project(&gate("command: 'test -e link'"), &[("a", "1\n")]);
    std::os::unix::fs::symlink("/etc/passwd", project.root().join("link")).unwrap();
    for _ in 0..2 {
        let (ran, receipt) = judged(&project, DONE);
        assert_complete(&ran);
        assert_eq!(ran.hooks_at("stop"), ["tests"]);
        assert_eq!(receipt["room"]["outside"], json!(["link"]));
    }
}

/// A tree names the commit of a submodule. Changes that are not committed are not proven.
#[test]
fn a_gate_runs_on_the_commit_of_a_submodule() {
    let project = trusted_project(&gate("command: 'grep -q old sub/file'"), &[("a", "1\n")]);
    project.write("sub/file", "old\n");
    for args in [&["init", "--quiet"][..], &["add", "file"], &["commit", "--quiet", "-m", "first"]]
    {
        project.git(&[&["-C", "sub"], args].concat());
    }
    project.git(&["add", "sub"]);
    project.git(&["commit", "--quiet", "-m", "with a submodule"]);
    let turns = r#"[{"write": {"sub/file": "new\n"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let (ran, receipt) = judged(&project, turns);
    assert_complete(&ran);
    assert_eq!(receipt["room"]["uncommitted"], json!(["sub"]));
    assert_eq!(receipt["tree"], tree_of_files(&project));
    let printed =
        project.run(&["run", "x", "--no-changes-ok", "--agent", SCRIPTED_AGENT, "--plain"]);
    let text = printed.stdout + &printed.stderr;
    assert!(text.contains("not committed in: sub"), "{text}");
}

#[test]
fn a_link_to_the_working_directory_leads_to_the_room() {
    let config = gate("command: 'echo changed > data && grep -qx changed link'");
    let project = trusted_project(&config, &[("data", "original\n")]);
    let target = project.root().canonicalize().unwrap().join("data");
    std::os::unix::fs::symlink(target, project.root().join("link")).unwrap();
    let (ran, receipt) = judged(&project, DONE);
    assert_complete(&ran);
    assert_eq!(receipt["room"]["kind"], "clean");
    assert_eq!(project.read("data"), "original\n");
}

/// Code that is complete only in the working directory: git ignores a module that `app` imports.
fn python_files() -> [(&'static str, &'static str); 3] {
    [
        (".gitignore", "src/helper.py\n__pycache__\n"),
        ("src/app.py", "import helper\n"),
        ("src/helper.py", "answer = 42\n"),
    ]
}

/// Checks that a gate passes in the working directory and is refused in a room.
fn check_import(command: &str, prepare: impl Fn(&mut TestProject)) {
    for (room, is_red) in [(", room: here", false), ("", true)] {
        let config = gate(&format!("command: {command}, env: [PYTHONPATH]{room}"));
        let mut project = trusted_project(&config, &python_files());
        prepare(&mut project);
        let (ran, receipt) = judged(&project, DONE);
        if is_red {
            assert_refused(&ran);
            assert_eq!(receipt["room"]["kind"], "clean");
            let output = ran.all("hook_ran")[0].to_string();
            assert!(output.contains("No module named 'helper'"), "{output}");
        } else {
            assert_complete(&ran);
        }
    }
}

#[test]
fn a_python_path_to_the_working_directory_imports_the_code_of_the_room() {
    check_import("'python3 -c \"import app\"'", |project| {
        let source = project.root().canonicalize().unwrap().join("src");
        project.set_variable("PYTHONPATH", source);
    });
}

/// `pip install -e .` writes such a file.
#[test]
fn an_editable_install_of_the_working_directory_imports_the_code_of_the_room() {
    check_import("'\"$HOME\"/venv/bin/python -c \"import app\"'", |project| {
        let venv = project.home().join("venv");
        let mut python = project.command("python3");
        let made = python.args(["-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let source = project.root().canonicalize().unwrap().join("src");
        let packages: Vec<PathBuf> = fs::read_dir(venv.join("lib"))
            .unwrap()
            .map(|entry| entry.unwrap().path().join("site-packages"))
            .collect();
        assert_eq!(packages.len(), 1, "{packages:?}");
        fs::write(packages[0].join("app.pth"), format!("{}\n", source.display())).unwrap();
    });
}

/// Tags, the base commit and the index are there: tools ask git for versions and changes.
#[test]
fn a_room_is_a_repository_of_its_own() {
    let script = "#!/bin/sh
set -e
[ \"$(git describe --tags)\" = v1 ]
[ \"$(git diff --cached --name-only HEAD | sort | tr '\\n' ' ')\" = 'a new ' ]
git diff --exit-code
[ -z \"$(git status --porcelain --untracked-files=all | grep '^??')\" ]
[ \"$CI\" = 1 ] && [ -n \"$HOOKLOOP_SLOT\" ] && [ -d \"$TMPDIR\" ]
";
    let config = gate("command: ./gate.sh");
    let files = [("gate.sh", script), ("a", "1\n"), (".gitignore", "turns.json\n")];
    let project = trusted_project(&config, &files);
    project.git(&["tag", "v1"]);
    let turns = r#"[{"write": {"a": "2\n", "new": "1\n"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let (ran, _) = judged(&project, turns);
    assert_complete(&ran);
}

#[test]
fn a_file_with_the_same_size_and_second_is_compiled_again() {
    let config = gate("command: 'python3 -c \"import m; exit(m.v != 2)\"'");
    let files = [("m.py", "v = 0\n"), (".gitignore", "__pycache__\n")];
    let project = trusted_project(&config, &files);
    let turns = r#"[
        {"write": {"m.py": "v = 1\n"}, "say": "<promise>COMPLETE</promise>"},
        {"write": {"m.py": "v = 2\n"}, "say": "<promise>COMPLETE</promise>"}
    ]"#;
    let ran = scripted(&project, turns, &[]);
    assert_complete(&ran);
    assert_eq!(ran.verdicts(), ["block", "pass"]);
}

#[test]
fn a_room_has_no_ignored_files_of_another_session() {
    let config = gate("command: 'test ! -e cache && touch cache && grep -qx ok state'");
    let files = [(".gitignore", "cache\n"), ("state", "no\n")];
    let project = trusted_project(&config, &files);
    let refused = run(
        &project,
        &["x", "--agent", "command:echo '<promise>COMPLETE</promise>'", "--gate-retries", "0"],
    );
    assert_refused(&refused);
    project.write("state", "ok\n");
    let (ran, _) = judged(&project, DONE);
    assert_complete(&ran);
}
