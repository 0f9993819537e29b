//! Jobs that use all they can get: each is ended for exceeding a named limit, and the program stays responsive.
//!
//! Fork bombs run as a user with a limited number of processes, so that a failing keeper does not take the machine down.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use hookloop_process::{ExceededLimit, ExitReason, Job, JobResult, ResourceLimits};
use rustix::process::geteuid;

use super::{has_own_process, keeper, marks, script, stderr};

/// The largest number of processes of a fork bomb that is not ended.
const BOMB_MAX: u32 = 1_500;
/// The id of a user without processes.
const NOBODY: u32 = 54_321;
/// The largest delay of another thread of the program.
const LATE_MAX: Duration = Duration::from_secs(1);
const MEMORY_GROWTH_MAX_KIB: u64 = 32 * 1024;
/// The timeout of the jobs, which are ended long before.
const ENDED_WITHIN: Duration = Duration::from_secs(20);
const MIB: u64 = 1024 * 1024;

/// Runs a job, and checks that it ended for the expected reason.
fn check(mut job: Job<'_>, limits: ResourceLimits, expected: ExitReason) -> JobResult {
    let mark = marks::new();
    job.env.push(("MARK".into(), mark.clone().into()));
    (job.limits, job.timeout) = (limits, ENDED_WITHIN);
    let mut keeper = keeper();
    keeper.run(script("echo warm")).unwrap();
    let keeper_id = keeper.pid().unwrap().to_string();
    let memory = || kib("self", "VmHWM:") + kib(&keeper_id, "VmHWM:");
    let memory_before = memory();
    let start = Instant::now();
    let (ran, late) = with_largest_delay(|| keeper.run(job).unwrap());
    let took = start.elapsed();
    assert_eq!(ran.exit, expected, "{ran:?}: {}", stderr(&ran));
    assert_eq!(marks::bearers(&mark), [""; 0]);
    assert!(ran.survivors.is_empty(), "{ran:?}");
    assert!(took < ENDED_WITHIN, "{took:?}");
    assert!(late < LATE_MAX, "{late:?}");
    let grown = memory() - memory_before;
    assert!(grown <= MEMORY_GROWTH_MAX_KIB, "{grown} KiB");
    let _ =
        writeln!(std::io::stderr(), "ended after {took:?}, {grown} KiB, largest delay {late:?}");
    assert_eq!(keeper.run(script("exit 3")).unwrap().exit, ExitReason::Exited(3));
    ran
}

/// Returns the largest delay of another thread while `work` runs.
fn with_largest_delay<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    const PAUSE: Duration = Duration::from_millis(10);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut late = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let before = Instant::now();
                thread::sleep(PAUSE);
                late = late.max(before.elapsed() - PAUSE);
            }
            late
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        (result, other.join().unwrap())
    })
}

fn kib(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// A script as a user with a limited number of processes. The limit does not hold for root, which can become another
/// user.
fn bounded<'a>(text: &str) -> Job<'a> {
    let user = NOBODY.to_string();
    let limit = format!("--nproc={BOMB_MAX}");
    let as_nobody = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    let bounded = ["prlimit", &limit, "sh", "-c", text];
    if geteuid().is_root() {
        super::job(&[&as_nobody[..], &bounded].concat())
    } else {
        super::job(&bounded)
    }
}

fn processes(count: u64) -> ResourceLimits {
    ResourceLimits { processes: Some(count), ..ResourceLimits::default() }
}

#[test]
fn a_fork_bomb_is_ended_at_the_process_limit() {
    if !has_own_process() {
        return;
    }
    let bomb = bounded("perl -e 'fork while 1'");
    check(bomb, processes(200), ExitReason::OverLimit(ExceededLimit::Processes(200)));
}

/// A job without a limit has the default one.
#[test]
fn a_fork_bomb_is_ended_at_the_default_process_limit() {
    if !has_own_process() {
        return;
    }
    let bomb = bounded("perl -e 'fork while 1'");
    check(bomb, ResourceLimits::default(), ExitReason::OverLimit(ExceededLimit::Processes(1_024)));
}

/// Each process is in a session of its own, so that no signal reaches them all.
#[test]
fn a_fork_bomb_of_many_sessions_is_ended_at_the_process_limit() {
    if !has_own_process() {
        return;
    }
    let bomb = bounded(
        "export B='setsid sh -c \"$B\" & setsid sh -c \"$B\" & sleep 600'; sh -c \"$B\" 2>/dev/null; sleep 600",
    );
    check(bomb, processes(200), ExitReason::OverLimit(ExceededLimit::Processes(200)));
}

#[test]
fn a_process_that_uses_too_much_memory_is_ended() {
    if !has_own_process() {
        return;
    }
    let limits = ResourceLimits { memory_bytes: Some(128 * MIB), ..ResourceLimits::default() };
    let hog = script(
        "ulimit -v 4000000; perl -e 'while (1) { push @x, q(x) x (1 << 20); select undef, undef, undef, 0.001 }'; sleep 600",
    );
    check(hog, limits, ExitReason::OverLimit(ExceededLimit::Memory { bytes: 128 * MIB }));
}

#[test]
fn processes_that_use_too_much_memory_together_are_ended() {
    if !has_own_process() {
        return;
    }
    let limits = ResourceLimits { memory_bytes: Some(128 * MIB), ..ResourceLimits::default() };
    let hogs = script(
        "for i in 1 2 3 4 5 6 7 8; do perl -e '$x = q(x) x (32 << 20); sleep 600' & done; sleep 600",
    );
    check(hogs, limits, ExitReason::OverLimit(ExceededLimit::Memory { bytes: 128 * MIB }));
}

/// Shared memory counts once.
#[test]
fn shared_memory_of_processes_is_counted_once() {
    if !has_own_process() {
        return;
    }
    let limits = ResourceLimits { memory_bytes: Some(128 * MIB), ..ResourceLimits::default() };
    let sharing = script(
        "perl -e '$x = q(x) x (48 << 20); for (1..7) { fork || last } sleep 1; 1 while wait > 0'",
    );
    check(sharing, limits, ExitReason::Exited(0));
}

#[test]
fn a_job_that_fills_the_disk_with_many_files_is_ended() {
    if !has_own_process() {
        return;
    }
    let directory = disk();
    let limits = ResourceLimits { disk_bytes: Some(64 * MIB), ..ResourceLimits::default() };
    let mut filler = script(
        "i=0; while [ $i -lt 1000 ]; do head -c 4M /dev/zero > $i; i=$((i+1)); done; sleep 600",
    );
    filler.cwd = directory.path().into();
    check(filler, limits, ExitReason::OverLimit(ExceededLimit::Disk { bytes: 64 * MIB }));
    // The job writes on between two checks, but ends long before it has written all files.
    let written = size(directory.path());
    assert!(written < 3_000 * MIB, "{written}");
}

#[test]
fn a_job_that_fills_the_disk_with_one_file_is_ended() {
    if !has_own_process() {
        return;
    }
    let directory = disk();
    let limits = ResourceLimits { disk_bytes: Some(64 * MIB), ..ResourceLimits::default() };
    let mut filler = script("exec cat /dev/zero > large");
    filler.cwd = directory.path().into();
    check(filler, limits, ExitReason::OverLimit(ExceededLimit::Disk { bytes: 64 * MIB }));
    assert!(size(directory.path()) <= 64 * MIB);
}

/// A directory on a disk, not in memory.
fn disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn size(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_crash_leaves_no_core_file() {
    if !has_own_process() {
        return;
    }
    let ran = keeper().run(script("ulimit -c")).unwrap();
    assert_eq!(super::stdout(&ran), "0\n");
}
