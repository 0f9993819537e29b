//! Hooks that take what they can get: each is ended for a reason that has a name, and the program that
//! watches over them hardly notices.
//!
//! A bomb goes off as a user who can't have more than a few processes, so that a keeper that fails does
//! not take the machine along.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_core::limits::{Limit, Limits};
use hookloop_engine::process::{How, Job, Ran};
use rustix::process::geteuid;

use super::{keeper, marks, script, stderr};

/// Processes that a bomb can have when nobody stops it.
const BOMB_MAX: u32 = 1_500;
/// A user who has no processes.
const NOBODY: u32 = 54_321;
/// Whoever watches is never later than this.
const LATE_MAX: Duration = Duration::from_secs(1);
const MEMORY_GROWTH_MAX_KIB: u64 = 32 * 1024;
/// They are ended long before.
const ENDED_WITHIN: Duration = Duration::from_secs(20);
const MIB: u64 = 1024 * 1024;

/// Runs a glutton; what it is told is what it was ended for.
fn check(mut job: Job<'_>, limits: Limits, expected: How) -> Ran {
    let mark = marks::new();
    job.env.push(("MARK".into(), mark.clone().into()));
    (job.limits, job.timeout) = (limits, ENDED_WITHIN);
    let mut keeper = keeper();
    keeper.run(script("echo warm")).unwrap();
    let keeper_id = keeper.pid().unwrap().to_string();
    let memory = || kib("self", "VmHWM:") + kib(&keeper_id, "VmHWM:");
    let memory_before = memory();
    let start = Instant::now();
    let (ran, late) = with_heartbeat(|| keeper.run(job).unwrap());
    let took = start.elapsed();
    assert_eq!(ran.how, expected, "{ran:?}: {}", stderr(&ran));
    assert_eq!(marks::bearers(&mark), [""; 0]);
    assert!(ran.survivors.is_empty(), "{ran:?}");
    assert!(took < ENDED_WITHIN, "{took:?}");
    assert!(late < LATE_MAX, "{late:?}");
    let grown = memory() - memory_before;
    assert!(grown <= MEMORY_GROWTH_MAX_KIB, "{grown} KiB");
    let _ = writeln!(std::io::stderr(), "ended after {took:?}, {grown} KiB, latest beat {late:?}");
    assert_eq!(keeper.run(script("exit 3")).unwrap().how, How::Exited(3));
    ran
}

/// How late the latest beat of another thread was.
fn with_heartbeat<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    const BEAT: Duration = Duration::from_millis(10);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let heart = scope.spawn(|| {
            let mut late = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let before = Instant::now();
                thread::sleep(BEAT);
                late = late.max(before.elapsed() - BEAT);
            }
            late
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        (result, heart.join().unwrap())
    })
}

fn kib(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// A script as a user who can't have many processes. Only root is not held to that, and only root can
/// become somebody else.
fn bounded<'a>(text: &str) -> Job<'a> {
    let (user, limit) = (NOBODY.to_string(), format!("--nproc={BOMB_MAX}"));
    let as_nobody = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    let bounded = ["prlimit", &limit, "sh", "-c", text];
    match geteuid().is_root() {
        true => super::job(&[&as_nobody[..], &bounded].concat()),
        false => super::job(&bounded),
    }
}

fn processes(count: u64) -> Limits {
    Limits { processes: Some(count), ..Limits::default() }
}

#[test]
fn a_fork_bomb() {
    let bomb = bounded("perl -e 'fork while 1'");
    check(bomb, processes(200), How::OverLimit(Limit::Processes(200)));
}

/// Without a limit of its own: there is one for all.
#[test]
fn a_fork_bomb_that_nobody_expected() {
    let bomb = bounded("perl -e 'fork while 1'");
    check(bomb, Limits::default(), How::OverLimit(Limit::Processes(1_024)));
}

/// Each is in a session of its own, so that no signal reaches them all.
#[test]
fn a_fork_bomb_that_scatters() {
    let bomb = bounded(
        "export B='setsid sh -c \"$B\" & setsid sh -c \"$B\" & sleep 600'; sh -c \"$B\" 2>/dev/null; sleep 600",
    );
    check(bomb, processes(200), How::OverLimit(Limit::Processes(200)));
}

#[test]
fn a_hog_of_memory() {
    let limits = Limits { memory_bytes: Some(128 * MIB), ..Limits::default() };
    let hog = script(
        "ulimit -v 4000000; perl -e 'while (1) { push @x, q(x) x (1 << 20); select undef, undef, undef, 0.001 }'; sleep 600",
    );
    check(hog, limits, How::OverLimit(Limit::Memory { bytes: 128 * MIB }));
}

#[test]
fn hogs_of_memory_together() {
    let limits = Limits { memory_bytes: Some(128 * MIB), ..Limits::default() };
    let hogs = script(
        "for i in 1 2 3 4 5 6 7 8; do perl -e '$x = q(x) x (32 << 20); sleep 600' & done; sleep 600",
    );
    check(hogs, limits, How::OverLimit(Limit::Memory { bytes: 128 * MIB }));
}

/// What processes have in common counts once.
#[test]
fn shared_memory_is_not_counted_for_each() {
    let limits = Limits { memory_bytes: Some(128 * MIB), ..Limits::default() };
    let sharing = script(
        "perl -e '$x = q(x) x (48 << 20); for (1..7) { fork || last } sleep 1; 1 while wait > 0'",
    );
    check(sharing, limits, How::Exited(0));
}

#[test]
fn a_disk_filler_with_many_files() {
    let directory = disk();
    let limits = Limits { disk_bytes: Some(64 * MIB), ..Limits::default() };
    let mut filler = script(
        "i=0; while [ $i -lt 1000 ]; do head -c 4M /dev/zero > $i; i=$((i+1)); done; sleep 600",
    );
    filler.cwd = directory.path().into();
    check(filler, limits, How::OverLimit(Limit::Disk { bytes: 64 * MIB }));
    // The disk is faster than the looks; it is the difference that counts.
    let written = size(directory.path());
    assert!(written < 3_000 * MIB, "{written}");
}

#[test]
fn a_disk_filler_with_one_file() {
    let directory = disk();
    let limits = Limits { disk_bytes: Some(64 * MIB), ..Limits::default() };
    let mut filler = script("exec cat /dev/zero > large");
    filler.cwd = directory.path().into();
    check(filler, limits, How::OverLimit(Limit::Disk { bytes: 64 * MIB }));
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
    let ran = keeper().run(script("ulimit -c")).unwrap();
    assert_eq!(super::stdout(&ran), "0\n");
}
