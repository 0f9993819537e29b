//! Keepers that are stopped, killed or asked to end while a job runs, by the job itself or from outside: no process is
//! left.

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_process::{ExitReason, JobResult, ProcessError};
use rustix::process::{Pid, Signal, kill_process};

use super::{eventually, has_own_process, is_marking, keeper, marks, number_in, script};

const TIMEOUT: Duration = Duration::from_secs(2);
/// Time within which all processes are gone after the timeout, or after the end of the program.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// Processes that stay in the job's group, that leave it, and orphans.
const FAMILY: &str =
    "sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600 & sleep 600' &); sleep 0.1; ";

/// Runs a job that executes `text` after it has started other processes.
fn check(text: &str) -> Result<JobResult, ProcessError> {
    let mark = marks::new();
    let mut job = script(&format!("{FAMILY}{text}; sleep 600"));
    job.env.push(("MARK".into(), mark.clone().into()));
    job.timeout = TIMEOUT;
    let mut keeper = keeper();
    let start = Instant::now();
    let ran = keeper.run(job);
    let took = start.elapsed();
    assert_eq!(marks::bearers(&mark), [""; 0], "{text}: {ran:?}");
    assert!(took < TIMEOUT + GONE_WITHIN, "{text}: {took:?}: {ran:?}");
    assert_eq!(keeper.run(script("exit 3")).unwrap().exit, ExitReason::Exited(3));
    assert_eq!(children_left(), 0, "{text}");
    ran
}

/// Number of zombies among the children of this process.
fn children_left() -> usize {
    let mut zombies = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let own = format!(" {} ", std::process::id());
        zombies += usize::from(fields.starts_with('Z') && fields[1..].starts_with(&own));
    }
    zombies
}

#[test]
fn processes_of_a_job_that_kills_its_keeper_are_ended() {
    if !has_own_process() {
        return;
    }
    let lost = check("kill -KILL $PPID").unwrap_err();
    assert!(matches!(lost, ProcessError::KeeperLost { .. }), "{lost:?}");
}

/// In a container whose first process was started from outside, the session has no id.
#[test]
fn processes_of_a_job_that_kills_its_keeper_are_ended_in_a_pid_namespace() {
    // In the container, orphans of marking keepers become children of this process.
    if !rustix::process::geteuid().is_root() || is_marking() {
        return;
    }
    let inside = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let mut command = Command::new("unshare");
    command.args(inside).arg(std::env::current_exe().unwrap());
    let run = command
        .args(["--exact", "lost::processes_of_a_job_that_kills_its_keeper_are_ended"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}

#[test]
fn a_keeper_ignores_termination_signals_of_its_job() {
    if !has_own_process() {
        return;
    }
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "TSTP"] {
        let ran = check(&format!("kill -{signal} $PPID")).unwrap();
        assert_eq!(ran.exit, ExitReason::TimedOut, "{signal}: {ran:?}");
    }
}

#[test]
fn a_keeper_stopped_by_its_job_is_continued() {
    if !has_own_process() {
        return;
    }
    let ran = check("kill -STOP $PPID").unwrap();
    assert_eq!(ran.exit, ExitReason::TimedOut, "{ran:?}");
}

#[test]
fn a_keeper_stopped_repeatedly_by_its_job_is_lost() {
    if !has_own_process() {
        return;
    }
    let lost = check("while kill -STOP $PPID; do :; done").unwrap_err();
    assert!(matches!(lost, ProcessError::KeeperLost { .. }), "{lost:?}");
}

/// The loss of a keeper ends neither other jobs nor other processes of the program.
#[test]
fn other_jobs_and_children_of_the_program_survive_a_lost_keeper() {
    if !has_own_process() {
        return;
    }
    let mut own = Command::new("sleep").arg("600").spawn().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut job = script("(setsid sleep 1 &); sleep 1; echo whole");
            job.timeout = super::AMPLE;
            keeper().run(job).unwrap()
        });
        for _ in 0..3 {
            check("kill -KILL $PPID").unwrap_err();
        }
        let ran = other.join().unwrap();
        assert_eq!((ran.exit, super::stdout(&ran).as_str()), (ExitReason::Exited(0), "whole\n"));
    });
    assert!(own.try_wait().unwrap().is_none());
    own.kill().unwrap();
    own.wait().unwrap();
}

/// A service manager signals all processes of a service.
#[test]
fn no_process_is_left_after_signals_to_program_and_keeper() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mark = marks::new();
        let directory = tempfile::tempdir().unwrap();
        let ready = directory.path().join("ready");
        let mut program = program_with_a_job(&mark, &ready);
        let keeper = eventually("a job", super::AMPLE, || number_in(&ready));
        assert!(marks::bearers(&mark).len() >= 5);
        kill_process(Pid::from_raw(keeper).unwrap(), signal).unwrap();
        kill_process(Pid::from_child(&program), signal).unwrap();
        assert!(!program.wait().unwrap().success());
        eventually("no process left", GONE_WITHIN, || {
            marks::bearers(&mark).is_empty().then_some(())
        });
    }
}

fn program_with_a_job(mark: &str, ready: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "lost::a_program_with_a_job", "--nocapture"])
        .env("MARK", mark)
        .env("READY", ready)
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the process that another test ends"]
fn a_program_with_a_job() {
    let mut job = script(&format!("{FAMILY}echo $PPID > $READY; sleep 600"));
    for name in ["MARK", "READY"] {
        job.env.push((name.into(), std::env::var_os(name).unwrap()));
    }
    keeper().run(job).unwrap();
}
