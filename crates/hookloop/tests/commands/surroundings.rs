//! Unusual directories, clocks and file owners.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use hookloop_testkit::TestProject;

use crate::cli::BINARY;

const USAGE: i32 = 2;
/// A gate that the agent satisfies.
const CONFIG: &str =
    "version: 1\nhooks:\n  stop:\n    - {name: done, command: \"test -f done.txt\"}\n";
const AGENT: &str = "command:cat > /dev/null; touch done.txt; echo '<promise>COMPLETE</promise>'";

/// Returns a project in a directory of this name, whose user has no configuration.
fn project(name: &[u8]) -> TestProject {
    let builder = TestProject::builder(BINARY).directory_name(OsStr::from_bytes(name));
    builder.without_user_config().inherited_path().build()
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_directory_whose_name_is_not_utf8_is_refused_with_a_hint() {
    let project = project(b"caf\xe9");
    project.git(&["init", "--quiet"]);
    let init = project.hookloop(&["init", "--yes"]).output().unwrap();
    assert_eq!(init.status.code(), Some(USAGE), "{}", error_of(&init));
    assert!(!project.root().join("hookloop.yaml").exists());
    project.write("hookloop.yaml", &format!("{CONFIG}delivery: {{}}\n"));
    for args in [
        &["init", "--yes"][..],
        &["run", "Do it", "--agent", AGENT],
        &["task", "add", "One"],
        &["task", "list", "--json"],
        &["status"],
        &["status", "--json"],
        &["hooks", "list"],
        &["hooks", "trust", "--yes"],
        &["hooks", "run", "done"],
        &["merge"],
        &["worktrees", "list"],
        &["log"],
        &["verify"],
    ] {
        let refused = project.hookloop(args).output().unwrap();
        let error = error_of(&refused);
        assert_eq!(refused.status.code(), Some(USAGE), "{args:?}: {error}");
        assert!(error.contains("is not UTF-8") && error.contains("rename"), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
    }
    // `doctor` still checks everything else.
    let doctor = project.hookloop(&["doctor"]).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("is not UTF-8"));
    assert!(!error_of(&doctor).contains("panicked"), "{}", error_of(&doctor));
}

/// Files whose names are not UTF-8, in a project with a UTF-8 name.
#[test]
fn files_whose_names_are_not_utf8_are_worked_with() {
    let project = project(b"project");
    project.git(&["init", "--quiet"]);
    project.write("hookloop.yaml", CONFIG);
    fs::write(project.root().join(OsStr::from_bytes(b"na\xefve")), "before").unwrap();
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "-m", "first"]);
    let agent = "command:cat > /dev/null; touch done.txt \"$(printf 'new\\351')\"; \
        echo '<promise>COMPLETE</promise>'";
    let trusted = project.hookloop(&["hooks", "trust", "--yes"]).output().unwrap();
    assert!(trusted.status.success(), "{}", error_of(&trusted));
    let ran = project.hookloop(&["run", "Do it", "--agent", agent]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", error_of(&ran));
    assert!(project.root().join(OsStr::from_bytes(b"new\xe9")).exists());
}

#[test]
fn a_clock_before_1970_stops_no_command() {
    let project = project(b"project");
    project.git(&["init", "--quiet"]);
    project.write("hookloop.yaml", CONFIG);
    for args in [
        &["init", "--yes"][..],
        &["hooks", "trust", "--yes"],
        &["task", "add", "One", "--id", "a"],
        &["task", "claim", "a", "--agent", "ada"],
        &["task", "complete", "a", "--force"],
        &["status"],
        &["log"],
        &["run", "Do it", "--agent", AGENT],
        &["sessions", "list"],
        &["usage"],
        &["schedule", "add", "nightly", "--cron", "0 3 * * *", "--goal", "Tidy up"],
        &["inbox", "list"],
        &["verify"],
        &["rebuild"],
    ] {
        // Waits use the monotonic clock, which is not faked.
        let mut command = project.command("faketime");
        command.arg("1960-01-01 00:00:00").arg(BINARY).args(args);
        let ran = command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{args:?}: {}", error_of(&ran));
    }
}

/// Returns a `git` that treats every repository as another user's, as in containers.
fn distrustful_git(project: &TestProject) -> PathBuf {
    let bin = project.beside("bin");
    fs::create_dir(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let is_git = |path: &PathBuf| path.is_file();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(is_git).unwrap();
    let script =
        format!("#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {} \"$@\"\n", git.display());
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    bin
}

fn receipts_with_a_tree(project: &TestProject, bin: &Path) -> usize {
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |args: &[&str]| project.hookloop(args).env("PATH", &path).output().unwrap();
    let _ = fs::remove_file(project.root().join("done.txt"));
    let ran = run(&["run", "Do it", "--agent", AGENT]);
    assert!(!error_of(&ran).contains("panicked"), "{}", error_of(&ran));
    let log = run(&["log", "--json", "--type", "receipt_recorded"]).stdout;
    let log = String::from_utf8(log).unwrap();
    let receipts = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    receipts.filter(|receipt| receipt["data"]["tree"].is_string()).count()
}

#[test]
fn receipts_have_a_tree_in_another_owners_repository() {
    let project = project(b"project");
    project.git(&["init", "--quiet"]);
    project.write("hookloop.yaml", CONFIG);
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "-m", "first"]);
    let trusted = project.hookloop(&["hooks", "trust", "--yes"]).output().unwrap();
    assert!(trusted.status.success(), "{}", error_of(&trusted));
    let bin = distrustful_git(&project);
    // No program of the repository is run, so its owner does not matter.
    assert!(receipts_with_a_tree(&project, &bin) > 0);
}
