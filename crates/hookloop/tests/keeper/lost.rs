//! Keepers that are stopped, killed or asked to end while a hook runs, by the hook itself or from outside:
//! nobody is left.

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_engine::process::{How, ProcessError, Ran};
use rustix::process::{Pid, Signal, kill_process};

use super::{eventually, is_marking, keeper, marks, number_in, script};

const TIMEOUT: Duration = Duration::from_secs(2);
/// After the timeout, or after the program's death, everything is gone by then.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// Processes that stay in the hook's group, that leave it, and that have nobody above them.
const FAMILY: &str =
    "sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600 & sleep 600' &); sleep 0.1; ";

/// Runs a hook that does `text` after it has started a family.
fn check(text: &str) -> Result<Ran, ProcessError> {
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
    assert_eq!(keeper.run(script("exit 3")).unwrap().how, How::Exited(3));
    assert_eq!(children_left(), 0, "{text}");
    ran
}

/// Dead children of this process that nobody waited for, other than keepers.
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
fn a_hook_kills_its_keeper() {
    let lost = check("kill -KILL $PPID").unwrap_err();
    assert!(matches!(lost, ProcessError::KeeperLost { .. }), "{lost:?}");
}

/// As in a container whose first process was started from outside: the session has no id in there.
#[test]
fn a_hook_kills_its_keeper_in_a_session_from_outside() {
    // In there, this process is the one that orphans of marking keepers go to.
    if !rustix::process::geteuid().is_root() || is_marking() {
        return;
    }
    let inside = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let mut command = Command::new("unshare");
    command.args(inside).arg(std::env::current_exe().unwrap());
    let run = command.args(["--exact", "lost::a_hook_kills_its_keeper"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}

#[test]
fn a_hook_asks_its_keeper_to_end() {
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "TSTP"] {
        let ran = check(&format!("kill -{signal} $PPID")).unwrap();
        assert_eq!(ran.how, How::TimedOut, "{signal}: {ran:?}");
    }
}

#[test]
fn a_hook_stops_its_keeper() {
    let ran = check("kill -STOP $PPID").unwrap();
    assert_eq!(ran.how, How::TimedOut, "{ran:?}");
}

#[test]
fn a_hook_stops_its_keeper_all_the_time() {
    let lost = check("while kill -STOP $PPID; do :; done").unwrap_err();
    assert!(matches!(lost, ProcessError::KeeperLost { .. }), "{lost:?}");
}

/// A keeper that is gone takes nothing along that belongs to another.
#[test]
fn other_hooks_and_the_programs_own_processes_live_on() {
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
        assert_eq!((ran.how, super::stdout(&ran).as_str()), (How::Exited(0), "whole\n"));
    });
    assert!(own.try_wait().unwrap().is_none());
    own.kill().unwrap();
    own.wait().unwrap();
}

/// As a service manager does it, or whoever ends a whole group of processes.
#[test]
fn program_and_keeper_are_asked_to_end_together() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (mark, directory) = (marks::new(), tempfile::tempdir().unwrap());
        let ready = directory.path().join("ready");
        let mut program = program_with_a_hook(&mark, &ready);
        let keeper = eventually("a hook", super::AMPLE, || number_in(&ready));
        assert!(marks::bearers(&mark).len() >= 5);
        kill_process(Pid::from_raw(keeper).unwrap(), signal).unwrap();
        kill_process(Pid::from_child(&program), signal).unwrap();
        assert!(!program.wait().unwrap().success());
        eventually("nobody left", GONE_WITHIN, || marks::bearers(&mark).is_empty().then_some(()));
    }
}

fn program_with_a_hook(mark: &str, ready: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "lost::a_program_with_a_hook", "--nocapture"])
        .env("MARK", mark)
        .env("READY", ready)
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the process that another test ends"]
fn a_program_with_a_hook() {
    let mut job = script(&format!("{FAMILY}echo $PPID > $READY; sleep 600"));
    for name in ["MARK", "READY"] {
        job.env.push((name.into(), std::env::var_os(name).unwrap()));
    }
    keeper().run(job).unwrap();
}
