//! Ways for a process to outlive its job, each tried many times: none succeeds, and each ends in time.

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_process::{ExitReason, Job, JobResult, ProcessError};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    eventually, is_marking, keeper, marks, number_from_env, number_in, pool, script, text_of,
};

const TIMES: u64 = 20;
/// Jobs at the same time.
const PARALLEL: u64 = 4;
const TIMEOUT: Duration = Duration::from_millis(150);
/// Shorter than the default, so that many can be tried.
const GRACE: Duration = Duration::from_millis(100);
/// Time within which all processes are gone after the timeout, or after the end of the program.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// The longest timeout of a script on a machine that is too busy for the usual one.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The first lines of each script.
const HELLO: &str = "echo out; echo err >&2; ";
/// Creates a file once both outputs are written.
const WRITTEN: &str = ": > $WRITTEN; ";
/// A job of four processes, one of them in another session.
const FAMILY: &str = "sleep 600 & setsid sleep 600 & echo $PPID > $READY; sleep 600";

fn times() -> u64 {
    number_from_env("HOOKLOOP_ESCAPES", TIMES)
}

/// Calls `once` many times, in several threads.
fn many_times(once: impl Fn() + Sync) {
    let left = AtomicU64::new(times());
    let take =
        || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while take().is_ok() {
                    once();
                }
            });
        }
    });
}

/// Runs a script that tries to leave processes behind, and checks that none is left.
fn check(text: &str, prepare: impl Fn(&mut Job<'_>) + Sync, expect: impl Fn(&JobResult) + Sync) {
    let pool = pool();
    let directory = tempfile::tempdir().unwrap();
    let once = |timeout: Duration| {
        let mark = marks::new();
        let written = directory.path().join(&mark);
        let mut job = script(&format!("{HELLO}{WRITTEN}{text}"));
        job.env.push(("MARK".into(), mark.clone().into()));
        job.env.push(("WRITTEN".into(), written.clone().into()));
        (job.timeout, job.grace) = (timeout, GRACE);
        prepare(&mut job);
        // The search for marks takes longer.
        let limit = job.timeout + if is_marking() { 4 * GONE_WITHIN } else { GONE_WITHIN };

        let start = Instant::now();
        let ran = pool.run(job).unwrap();
        let took = start.elapsed();

        assert_eq!(marks::bearers(&mark), [""; 0], "{ran:?}");
        assert!(took < limit, "{took:?}: {ran:?}");
        assert!(ran.survivors.is_empty(), "{ran:?}");
        if ran.exit == ExitReason::TimedOut && !written.exists() && timeout < LONGEST_TIMEOUT {
            return false;
        }
        assert!(text_of(&ran.output.stdout).starts_with("out\n"), "{ran:?}");
        assert!(text_of(&ran.output.stderr).starts_with("err\n"), "{ran:?}");
        expect(&ran);
        true
    };
    many_times(|| {
        let mut timeout = TIMEOUT;
        while !once(timeout) {
            timeout *= 2;
        }
    });
}

fn as_it_is(_: &mut Job<'_>) {}

fn timed_out(ran: &JobResult) {
    assert_eq!(ran.exit, ExitReason::TimedOut);
}

/// The first process succeeded, and the processes that it left were killed.
fn left_something(ran: &JobResult) {
    assert_eq!(ran.exit, ExitReason::Exited(0));
    assert!(ran.leftovers_killed > 0, "{ran:?}");
}

fn long_enough(job: &mut Job<'_>) {
    job.timeout = super::AMPLE;
}

#[test]
fn background_and_pipeline_processes_are_killed() {
    check("sleep 600 & sleep 600 | cat", as_it_is, timed_out);
}

#[test]
fn a_double_fork_into_another_session_is_killed() {
    let text = "(setsid sh -c 'sleep 600 & sleep 600' &); sleep 0.05; exit 0";
    check(text, long_enough, left_something);
}

#[test]
fn processes_that_ignore_sigterm_are_killed() {
    check("trap '' TERM; while :; do sleep 600; done", as_it_is, timed_out);
}

#[test]
fn stopped_processes_are_killed() {
    check("sleep 600 & kill -STOP $!; kill -STOP $$", as_it_is, timed_out);
}

#[test]
fn stopped_processes_that_ignore_sigterm_are_killed() {
    let text = "trap '' TERM; sleep 600 & kill -STOP $!; kill -STOP $$; sleep 600";
    check(text, as_it_is, timed_out);
}

/// A tree of 127 processes, and one that starts its successor in a new session and exits, without pause.
///
/// A search for marks may not keep up with that, nor may init with reaping.
#[test]
fn a_storm_of_forks_is_killed() {
    if is_marking() {
        return;
    }
    let text = r#"
        grow() { [ $1 -gt 0 ] || exec sleep 600; grow $(($1-1)) & grow $(($1-1)) & wait; }
        export N=5000 NEXT='[ $N -gt 0 ] || exec sleep 600; N=$((N-1)); setsid sh -c "$NEXT" & exit'
        sh -c "$NEXT"
        grow 6; sleep 600"#;
    check(text, as_it_is, timed_out);
}

#[test]
fn a_job_that_never_reads_its_input_times_out() {
    check("sleep 600", |job| job.stdin = vec![b'x'; 1 << 20], timed_out);
}

#[test]
fn a_job_may_write_large_output_before_reading_its_input() {
    let text = "head -c 1048576 /dev/zero; wc -c >&2";
    let prepare = |job: &mut Job<'_>| {
        long_enough(job);
        job.stdin = vec![b'x'; 1 << 20];
    };
    check(text, prepare, |ran| {
        assert_eq!(ran.exit, ExitReason::Exited(0));
        assert_eq!(ran.output.stdout.bytes, (1 << 20) + "out\n".len() as u64);
        assert_eq!(text_of(&ran.output.stderr), "err\n1048576\n");
    });
}

#[test]
fn nohup_and_disowned_processes_are_killed() {
    let prepare = |job: &mut Job<'_>| {
        long_enough(job);
        job.argv[0] = "bash".into();
    };
    let text = "nohup sleep 600 </dev/null >/dev/null 2>&1 & disown; sleep 0.02; exit 0";
    check(text, prepare, left_something);
}

/// Marks are in the environment, so marking keepers miss this one. docs/install.md documents that.
#[test]
fn processes_without_an_environment_are_killed() {
    if is_marking() {
        return;
    }
    let unmarked = marks::new();
    let text = format!("env -i setsid sleep 600.{unmarked} & sleep 0.05; exit 0");
    check(&text, long_enough, left_something);
    assert_eq!(marks::bearers(&unmarked), [""; 0]);
}

#[test]
fn a_background_process_that_keeps_writing_is_killed() {
    let text = "(while :; do echo more; sleep 0.01; done) & exit 0";
    check(text, long_enough, left_something);
}

/// The end of a pipeline may still write its input.
#[test]
fn a_leftover_that_ends_by_itself_is_not_killed() {
    let patient = |job: &mut Job<'_>| (job.timeout, job.grace) = (super::AMPLE, super::AMPLE);
    check("(sleep 0.02; echo late) & exit 0", patient, |ran| {
        assert_eq!(ran.exit, ExitReason::Exited(0));
        assert_eq!(ran.leftovers_killed, 0);
        assert_eq!(text_of(&ran.output.stdout), "out\nlate\n");
    });
}

#[test]
fn processes_of_a_killed_program_are_killed() {
    many_times(|| {
        let mark = marks::new();
        let directory = tempfile::tempdir().unwrap();
        let ready = directory.path().join("ready");
        let mut program = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "escapes::a_program_with_a_job", "--nocapture"])
            .env("MARK", &mark)
            .env("READY", &ready)
            .spawn()
            .unwrap();
        let keeper = eventually("a job", super::AMPLE, || number_in(&ready));
        let all = || (marks::bearers(&mark).len() >= 4).then_some(());
        eventually("the job's four processes", super::AMPLE, all);
        program.kill().unwrap();
        program.wait().unwrap();
        eventually("no process left", GONE_WITHIN, || {
            marks::bearers(&mark).is_empty().then_some(())
        });
        // A zombie has no command line. Init reaps it at some time.
        let command_line = || std::fs::read(format!("/proc/{keeper}/cmdline")).unwrap_or_default();
        eventually("no keeper left", GONE_WITHIN, || command_line().is_empty().then_some(()));
    });
}

#[test]
#[ignore = "the process that another test kills"]
fn a_program_with_a_job() {
    let mut job = script(FAMILY);
    for name in ["MARK", "READY"] {
        job.env.push((name.into(), std::env::var_os(name).unwrap()));
    }
    let ran = keeper().run(job);
    writeln!(std::io::stderr(), "not killed: {ran:?}").unwrap();
}

/// The program kills the processes in the session of a lost keeper.
#[test]
fn processes_of_a_killed_keeper_are_killed() {
    many_times(|| {
        let mark = marks::new();
        let directory = tempfile::tempdir().unwrap();
        let ready = directory.path().join("ready");
        let mut job = script(&format!("{HELLO}sleep 600 & echo $PPID > $READY; sleep 600 | cat"));
        job.env.push(("MARK".into(), mark.clone().into()));
        job.env.push(("READY".into(), ready.clone().into()));
        let mut keeper = keeper();
        let error = thread::scope(|scope| {
            scope.spawn(|| {
                let pid = eventually("a job", super::AMPLE, || number_in(&ready));
                kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
            });
            keeper.run(job).unwrap_err()
        });
        let ProcessError::KeeperLost { output } = &error else { panic!("{error:?}") };
        assert_eq!(text_of(&output.stdout), "out\n");
        assert_eq!(text_of(&output.stderr), "err\n");
        eventually("no process left", GONE_WITHIN, || {
            marks::bearers(&mark).is_empty().then_some(())
        });
        assert_eq!(keeper.run(script("exit 3")).unwrap().exit, ExitReason::Exited(3));
    });
}

/// A keeper that dies between two jobs is replaced.
#[test]
fn a_killed_idle_keeper_is_replaced() {
    let mut keeper = keeper();
    for _ in 0..times() {
        assert_eq!(keeper.run(script("exit 3")).unwrap().exit, ExitReason::Exited(3));
        let pid = keeper.pid().unwrap();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    }
}
