//! Hooks that run in a delegated cgroup leave neither processes nor cgroups behind.
//!
//! Keepers themselves are tested in `hookloop-process`.

use std::fs;
use std::io::Write;
use std::process::Command;

use rustix::process::getuid;

/// Runs a command in a new cgroup, which must be empty afterwards.
const IN_A_CGROUP: &str = include_str!("../../../hookloop-process/tests/keeper/in_a_cgroup.sh");
/// The exit code of the script if it can't create such a cgroup.
const NO_CGROUP: i32 = 77;
const RUNS: u32 = 20;

/// Runs the other test of this file in a cgroup.
#[test]
fn delegated_hooks_leave_no_process_and_no_cgroup() {
    // The mount is made in a namespace of its own, so that only this test sees it.
    let tried = || Command::new("unshare").args(["--mount", "true"]).output();
    let can_mount = getuid().is_root() && tried().is_ok_and(|tried| tried.status.success());
    let first: &[&str] = if can_mount {
        &["unshare", "--mount", "env", "MOUNT=mount"]
    } else {
        &["env", "MOUNT=false"]
    };
    let mut command = Command::new(first[0]);
    command.args(&first[1..]).args(["sh", "-c", IN_A_CGROUP, "sh"]);
    command.arg(std::env::current_exe().unwrap());
    let run = command
        .args(["--ignored", "--exact", "hooks::cgroup::hooks_leave_no_process_and_no_cgroup"])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    let err = String::from_utf8_lossy(&run.stderr);
    if run.status.code() == Some(NO_CGROUP) {
        // Written directly: the test harness hides the output of tests that pass.
        let why = "NOT TESTED: there is no delegated cgroup v2 here";
        writeln!(std::io::stderr(), "{why}: {err}").unwrap();
        return;
    }
    assert!(run.status.success(), "{}\n{out}\n{err}", run.status);
    assert!(out.contains("1 passed"), "{out}");
}

/// Checks a hook that leaves a daemon and a cgroup of its own.
#[test]
#[ignore = "in a cgroup that another test makes"]
fn hooks_leave_no_process_and_no_cgroup() {
    let directory = tempfile::tempdir().unwrap();
    let mark = format!("7{:08}", std::process::id());
    let hookloop = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookloop"));
        command.args(arguments).current_dir(directory.path()).env("HOME", directory.path());
        let run = command.env_remove("XDG_STATE_HOME").output().unwrap();
        assert!(run.status.success(), "{arguments:?}: {run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    hookloop(&["init", "--yes"]);
    let below = "mkdir /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/own";
    let command = format!("(setsid sleep 600.{mark} &); {below} && echo made");
    let hook = format!("hooks:\n  task_completed:\n    - {{name: check, command: {command:?}}}\n");
    let mut file = fs::OpenOptions::new().append(true).open(directory.path().join("hookloop.yaml"));
    file.as_mut().unwrap().write_all(hook.as_bytes()).unwrap();
    hookloop(&["hooks", "trust", "--yes"]);
    assert!(hookloop(&["doctor"]).contains("cgroup: hooks' processes are in one of their own"));
    for _ in 0..RUNS {
        let ran = hookloop(&["hooks", "run", "check"]);
        assert!(ran.contains("made"), "{ran}");
        assert_eq!(processes_with(&mark), [""; 0]);
        assert_eq!(cgroups_below(), 0);
    }
}

/// Returns the command lines of live processes that contain a text.
fn processes_with(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

/// Returns the number of cgroups below the cgroup of this process.
fn cgroups_below() -> usize {
    let home = hookloop_process::cgroup_home().unwrap();
    fs::read_dir(home).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
}
