//! Keepers with a cgroup each: the processes that it reaches, and that no cgroup is left behind.
//!
//! Each `delegated_` test runs another test of this file in a delegated cgroup. Root mounts the file system for it if
//! necessary, in a mount namespace of its own. Another user needs a delegated cgroup.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use std::{fs, thread};

use hookloop_process::{ExitReason, Keeper, ProcessError, cgroup_home};
use rustix::process::{Pid, Signal, getuid, kill_process};

use super::{eventually, executable, keeper, marks, number_in, script};

/// Time within which all processes are gone after the end of their keeper.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// Time after which a process that is not ended must be alive.
const A_WHILE: Duration = Duration::from_millis(300);
const RUNS: u32 = 20;
/// Runs a program as another user. A set-user-ID copy of root makes any user root, as `sudo` does.
const SETPRIV: &str = "/usr/bin/setpriv";
/// The id of a user who owns no files.
const NOBODY: u32 = 65534;
/// Processes whose parent, group, session and environment are not the job's.
const DAEMON: &str = "(env -i setsid sh -c \"sleep 600.$MARK & sleep 600.$MARK\" &); ";

/// Runs a command in a new cgroup, which must be empty afterwards.
const IN_A_CGROUP: &str = include_str!("in_a_cgroup.sh");
/// The exit code of the script if there can be no such cgroup.
const NO_CGROUP: i32 = 77;

/// Runs tests of this program in a cgroup, one after another.
fn delegated(arguments: &[&str]) {
    // A mount is for this test alone, in a namespace.
    let mut command = Command::new(if can_mount() { "unshare" } else { "env" });
    let first: &[&str] =
        if can_mount() { &["--mount", "env", "MOUNT=mount"] } else { &["MOUNT=false"] };
    command.args(first).arg("sh");
    command.args(["-c", IN_A_CGROUP, "sh"]).arg(std::env::current_exe().unwrap()).args(arguments);
    let run = command.arg("--test-threads=1").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if run.status.code() == Some(NO_CGROUP) {
        return not_tested(&format!("there is no cgroup v2 here that is delegated: {err}"));
    }
    assert!(run.status.success(), "{arguments:?}: {}\n{out}\n{err}", run.status);
    assert!(out.contains("test result: ok") && !out.contains(" 0 passed"), "{out}");
}

fn can_mount() -> bool {
    let tried = || Command::new("unshare").args(["--mount", "true"]).output();
    getuid().is_root() && tried().is_ok_and(|tried| tried.status.success())
}

fn not_tested(why: &str) {
    // Written directly: the test harness hides the output of tests that pass.
    let mut terminal = std::io::stderr();
    writeln!(terminal, "NOT TESTED: {why}").unwrap();
}

fn inside(test: &str) {
    delegated(&["--include-ignored", "--exact", &format!("cgroup::{test}")]);
}

#[test]
fn delegated_processes_of_a_killed_keeper_are_ended() {
    inside("the_keeper_is_killed");
}

#[test]
fn delegated_the_next_keeper_ends_processes_of_a_killed_program() {
    inside("program_and_keeper_are_killed_together");
}

#[test]
fn delegated_keepers_do_not_end_jobs_of_other_programs() {
    inside("programs_leave_each_other_alone");
}

#[test]
fn delegated_another_users_process_is_ended() {
    let flags = rustix::fs::statvfs(std::env::temp_dir()).unwrap().f_flag;
    let no_setuid = flags.contains(rustix::fs::StatVfsMountFlags::NOSUID);
    if !getuid().is_root() || no_setuid || !Path::new(SETPRIV).exists() {
        return not_tested("it takes root, setpriv, and temporary files that can be set-user-ID");
    }
    inside("another_users_process_is_ended");
}

/// These tests pass with a cgroup as they do without. The last ones remove the cgroups of killed programs.
#[test]
fn delegated_lost_sequence_and_plain_tests_pass_in_a_cgroup() {
    delegated(&["lost::", "sequence::", "plain::"]);
}

fn home() -> PathBuf {
    cgroup_home().unwrap()
}

/// The cgroups of keepers.
fn cgroups() -> Vec<PathBuf> {
    let entries = fs::read_dir(home()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// A job that starts a daemon, writes its keeper's id to a file, and stays.
fn daemon<'a>(mark: &str, ready: &Path) -> hookloop_process::Job<'a> {
    let mut job = script(&format!("{DAEMON}echo $PPID > $READY; exec sleep 600"));
    job.env.push(("MARK".into(), mark.into()));
    job.env.push(("READY".into(), ready.into()));
    job
}

/// Waits for the processes of such a job. Returns its keeper, and the ids of the daemon.
fn started(mark: &str, ready: &Path) -> (Pid, Vec<String>) {
    let keeper = eventually("a job", super::AMPLE, || number_in(ready));
    let asleep = format!("sleep 600.{mark} ");
    let all = eventually("a daemon", super::AMPLE, || {
        let all = marks::bearers(mark);
        let is_asleep = |bearer: &&String| bearer.split_once(": ").unwrap().1 == asleep;
        (all.iter().filter(is_asleep).count() == 2).then_some(all)
    });
    let ids = all.iter().map(|bearer| bearer.split_once(": ").unwrap().0.to_owned());
    (Pid::from_raw(keeper).unwrap(), ids.collect())
}

#[test]
#[ignore = "in a cgroup that another test makes"]
fn the_keeper_is_killed() {
    let mark = marks::new();
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let job = daemon(&mark, &ready);
    let mut keeper = keeper();
    let lost = thread::scope(|scope| {
        let killed = scope.spawn(|| {
            let (keeper, processes) = started(&mark, &ready);
            processes.iter().for_each(|pid| assert_is_in_a_keepers_cgroup(pid));
            kill_process(keeper, Signal::KILL).unwrap();
            eventually("no process left", GONE_WITHIN, || {
                marks::bearers(&mark).is_empty().then_some(())
            });
        });
        let lost = keeper.run(job).unwrap_err();
        killed.join().unwrap();
        lost
    });
    assert!(matches!(lost, ProcessError::KeeperLost { .. }), "{lost:?}");
    assert_eq!(cgroups(), [""; 0].map(PathBuf::from));
    assert_eq!(keeper.run(script("exit 3")).unwrap().exit, ExitReason::Exited(3));
}

fn assert_is_in_a_keepers_cgroup(pid: &str) {
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(cgroup.lines().any(|line| line.contains("/hookloop-")), "{pid}: {cgroup}");
}

#[test]
#[ignore = "in a cgroup that another test makes"]
fn program_and_keeper_are_killed_together() {
    let mark = marks::new();
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let mut program = program_with_a_daemon(&mark, &ready);
    let (keeper, _) = started(&mark, &ready);
    // Both are stopped first, so that neither sees the end of the other.
    let both = [keeper, Pid::from_child(&program)];
    both.iter().for_each(|pid| kill_process(*pid, Signal::STOP).unwrap());
    eventually("both stopped", super::AMPLE, || {
        both.iter().all(|pid| is_stopped(*pid)).then_some(())
    });
    both.iter().for_each(|pid| kill_process(*pid, Signal::KILL).unwrap());
    program.wait().unwrap();
    thread::sleep(A_WHILE);
    assert!(!marks::bearers(&mark).is_empty());
    assert_eq!(super::keeper().run(script("exit 3")).unwrap().exit, ExitReason::Exited(3));
    assert_eq!(marks::bearers(&mark), [""; 0]);
    assert_eq!(cgroups(), [""; 0].map(PathBuf::from));
}

/// Returns whether every thread of a process has stopped.
fn is_stopped(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).unwrap();
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    })
}

fn program_with_a_daemon(mark: &str, ready: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "cgroup::a_program_with_a_daemon", "--nocapture"])
        .env("MARKED", mark)
        .env("READY", ready)
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the process that another test kills"]
fn a_program_with_a_daemon() {
    let mark = std::env::var("MARKED").unwrap();
    let ready = std::env::var("READY").unwrap();
    keeper().run(daemon(&mark, ready.as_ref())).unwrap();
}

#[test]
#[ignore = "in a cgroup that another test makes"]
fn programs_leave_each_other_alone() {
    let mark = marks::new();
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let mut program = program_with_a_daemon(&mark, &ready);
    let (_, before) = started(&mark, &ready);
    for _ in 0..RUNS {
        assert_eq!(keeper().run(script("exit 3")).unwrap().exit, ExitReason::Exited(3));
        keeper().run(script("kill -KILL $PPID; sleep 600")).unwrap_err();
    }
    let (_, after) = started(&mark, &ready);
    assert_eq!(after, before);
    assert_eq!(cgroups().len(), 1);
    // The keeper ends with its program. The next keeper removes the empty cgroup.
    program.kill().unwrap();
    program.wait().unwrap();
    eventually("no process left", GONE_WITHIN, || marks::bearers(&mark).is_empty().then_some(()));
    keeper().run(script("exit 3")).unwrap();
    assert_eq!(cgroups(), [""; 0].map(PathBuf::from));
}

/// A keeper cannot kill a process of root, and a cgroup can.
#[test]
#[ignore = "in a cgroup that another test makes"]
fn another_users_process_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let allow = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
    let copy = |from: &Path, name: &str, mode| {
        fs::copy(from, at(name)).unwrap();
        allow(&at(name), mode).unwrap();
    };
    allow(directory.path(), 0o777).unwrap();
    copy(&std::env::current_exe().unwrap(), "tests", 0o755);
    copy(&executable(), "keeper", 0o755);
    copy(SETPRIV.as_ref(), "as", 0o4755);
    chown(home(), Some(NOBODY), Some(NOBODY)).unwrap();
    chown(home().join("cgroup.procs"), Some(NOBODY), Some(NOBODY)).unwrap();
    let id = NOBODY.to_string();
    let mut command = Command::new(SETPRIV);
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(at("tests"));
    command.args(["--ignored", "--exact", "cgroup::a_program_of_another_user"]);
    let run = command.current_dir(directory.path()).output().unwrap();
    assert!(run.status.success(), "{run:?}");
}

#[test]
#[ignore = "the process of another user"]
fn a_program_of_another_user() {
    assert_eq!(getuid().as_raw(), NOBODY);
    let mark = marks::new();
    let own = std::env::current_dir().unwrap();
    let mut job =
        script(&format!("setsid ./as --reuid 0 sleep 600.{mark} & sleep 0.3; echo $! > pid"));
    job.cwd.clone_from(&own);
    let ran = thread::scope(|scope| {
        scope.spawn(|| {
            let pid = eventually("a pid", super::AMPLE, || number_in(&own.join("pid")));
            assert_eq!(fs::metadata(format!("/proc/{pid}")).unwrap().uid(), 0);
        });
        Keeper::new(own.join("keeper")).run(job).unwrap()
    });
    assert_eq!((ran.exit, &ran.survivors[..]), (ExitReason::Exited(0), &[][..]), "{ran:?}");
    assert_eq!(ran.leftovers_killed, 1);
    assert_eq!(marks::bearers(&mark), [""; 0]);
    assert_eq!(cgroups(), [""; 0].map(PathBuf::from));
}
