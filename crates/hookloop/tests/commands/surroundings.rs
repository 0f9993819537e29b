//! Directories, clocks and owners that are not as usual.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::cli::BINARY;

const USAGE: i32 = 2;
/// A gate that the agent satisfies, and the agent.
const CONFIG: &str =
    "version: 1\nhooks:\n  stop:\n    - {name: done, command: \"test -f done.txt\"}\n";
const AGENT: &str = "command:cat > /dev/null; touch done.txt; echo '<promise>COMPLETE</promise>'";

/// A home and a directory in it, with the program.
struct Bed {
    directory: TempDir,
    root: PathBuf,
}

impl Bed {
    fn new(name: &[u8]) -> Bed {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join(OsStr::from_bytes(name));
        fs::create_dir(&root).unwrap();
        fs::create_dir(directory.path().join("home")).unwrap();
        Bed { directory, root }
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("USER", "tester");
        command.env("HOME", self.directory.path().join("home"));
        command
    }

    fn git(&self, args: &[&str]) {
        let config = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let done = self.command("git").args(config).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_directory_whose_name_is_not_utf8_is_refused_with_a_hint() {
    let bed = Bed::new(b"caf\xe9");
    bed.git(&["init", "--quiet"]);
    let init = bed.command(BINARY).args(["init", "--yes"]).output().unwrap();
    assert_eq!(init.status.code(), Some(USAGE), "{}", error_of(&init));
    assert!(!bed.root.join("hookloop.yaml").exists());
    fs::write(bed.root.join("hookloop.yaml"), format!("{CONFIG}delivery: {{}}\n")).unwrap();
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
        let refused = bed.command(BINARY).args(args).output().unwrap();
        let error = error_of(&refused);
        assert_eq!(refused.status.code(), Some(USAGE), "{args:?}: {error}");
        assert!(error.contains("is not UTF-8") && error.contains("rename"), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
    }
    // Doctor looks at everything else nevertheless.
    let doctor = bed.command(BINARY).args(["doctor"]).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("is not UTF-8"));
    assert!(!error_of(&doctor).contains("panicked"), "{}", error_of(&doctor));
}

/// Files whose names are not UTF-8, in a project whose own name is.
#[test]
fn files_whose_names_are_not_utf8_are_worked_with() {
    let bed = Bed::new(b"project");
    bed.git(&["init", "--quiet"]);
    fs::write(bed.root.join("hookloop.yaml"), CONFIG).unwrap();
    fs::write(bed.root.join(OsStr::from_bytes(b"na\xefve")), "before").unwrap();
    bed.git(&["add", "--all"]);
    bed.git(&["commit", "--quiet", "-m", "first"]);
    let agent = "command:cat > /dev/null; touch done.txt \"$(printf 'new\\351')\"; \
        echo '<promise>COMPLETE</promise>'";
    let trusted = bed.command(BINARY).args(["hooks", "trust", "--yes"]).output().unwrap();
    assert!(trusted.status.success(), "{}", error_of(&trusted));
    let ran = bed.command(BINARY).args(["run", "Do it", "--agent", agent]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", error_of(&ran));
    assert!(bed.root.join(OsStr::from_bytes(b"new\xe9")).exists());
}

#[test]
fn a_clock_before_1970_stops_no_command() {
    let bed = Bed::new(b"project");
    bed.git(&["init", "--quiet"]);
    fs::write(bed.root.join("hookloop.yaml"), CONFIG).unwrap();
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
        // Waits go by the other clock, which is left alone.
        let mut command = bed.command("faketime");
        command.arg("1960-01-01 00:00:00").arg(BINARY).args(args);
        let ran = command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{args:?}: {}", error_of(&ran));
    }
}

/// A `git` that takes every repository for another user's, as it does in containers.
fn distrustful_git(bed: &Bed) -> PathBuf {
    let bin = bed.directory.path().join("bin");
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

fn receipts_with_a_tree(bed: &Bed, bin: &Path) -> usize {
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |args: &[&str]| bed.command(BINARY).args(args).env("PATH", &path).output().unwrap();
    let _ = fs::remove_file(bed.root.join("done.txt"));
    let ran = run(&["run", "Do it", "--agent", AGENT]);
    assert!(!error_of(&ran).contains("panicked"), "{}", error_of(&ran));
    let log = run(&["log", "--json", "--type", "receipt_made"]).stdout;
    let log = String::from_utf8(log).unwrap();
    let receipts = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    receipts.filter(|receipt| receipt["data"]["tree"].is_string()).count()
}

#[test]
fn a_repository_of_another_owner_has_a_tree_where_the_user_calls_it_safe() {
    let bed = Bed::new(b"project");
    bed.git(&["init", "--quiet"]);
    fs::write(bed.root.join("hookloop.yaml"), CONFIG).unwrap();
    bed.git(&["add", "--all"]);
    bed.git(&["commit", "--quiet", "-m", "first"]);
    let trusted = bed.command(BINARY).args(["hooks", "trust", "--yes"]).output().unwrap();
    assert!(trusted.status.success(), "{}", error_of(&trusted));
    let bin = distrustful_git(&bed);
    let before = receipts_with_a_tree(&bed, &bin);
    assert_eq!(before, 0, "git refuses the repository");
    let root = bed.root.canonicalize().unwrap();
    bed.git(&["config", "--global", "--add", "safe.directory", root.to_str().unwrap()]);
    assert!(receipts_with_a_tree(&bed, &bin) > 0);
}
