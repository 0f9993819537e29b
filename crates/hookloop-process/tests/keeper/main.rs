//! Tests of keepers: the environment and output of jobs, and that no process of a job outlives it.
//!
//! Full size: `HOOKLOOP_ESCAPES=1000 cargo nextest run -p hookloop-process --test keeper escapes` and
//! `HOOKLOOP_OUTPUT_MIB=1024 cargo nextest run --release -p hookloop-process --test keeper output`.
//!
//! With `HOOKLOOP_MARKING=1`, keepers work as on systems where a process cannot adopt orphans.
#![expect(clippy::unwrap_used, reason = "tests")]

mod cgroup;
mod cost;
mod escapes;
#[cfg(target_os = "linux")]
mod hidden;
mod lost;
mod marks;
#[cfg(target_os = "linux")]
mod mounts;
mod output;
mod over_limit;
mod plain;
mod sequence;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_process::{Job, JobResult, Keeper, KeeperPool, StreamOutput};

/// The timeout of jobs that end by themselves, even on a busy machine.
const AMPLE: Duration = Duration::from_secs(60);

/// Names another copy of the keeper's program, for tests that run as another user.
const EXECUTABLE: &str = "HOOKLOOP_TEST_KEEPER";

fn executable() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_hookloop-process-keeper").into();
    std::env::var_os(EXECUTABLE).unwrap_or_else(built).into()
}

/// Whether keepers work as on systems where a process cannot adopt orphans.
fn is_marking() -> bool {
    std::env::var_os("HOOKLOOP_MARKING").is_some()
}

fn keeper() -> Keeper {
    let keeper = Keeper::new(executable());
    if is_marking() { keeper.marking() } else { keeper }
}

fn pool() -> KeeperPool {
    let pool = KeeperPool::new(executable());
    if is_marking() { pool.marking() } else { pool }
}

fn job<'a>(argv: &[&str]) -> Job<'a> {
    let mut job = Job::new(argv.iter().map(OsString::from).collect(), "/".into(), AMPLE);
    job.env.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    job
}

fn script<'a>(text: &str) -> Job<'a> {
    job(&["sh", "-c", text])
}

fn stdout(ran: &JobResult) -> String {
    text_of(&ran.output.stdout)
}

fn stderr(ran: &JobResult) -> String {
    text_of(&ran.output.stderr)
}

/// The kept output of a stream.
fn text_of(output: &StreamOutput) -> String {
    String::from_utf8_lossy(&[output.head(), output.tail()].concat()).into_owned()
}

fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Runs the calling test again in a process of its own, unless it has one. Returns whether it has.
///
/// Tests that count the children, files or memory of this process need that. nextest does it for every test.
fn has_own_process() -> bool {
    const ALONE: &str = "HOOKLOOP_ALONE";
    let test = thread::current().name().unwrap_or_default().to_owned();
    let is_alone = ["NEXTEST", ALONE].iter().any(|name| std::env::var_os(name).is_some());
    // With one test thread, the harness runs one test after another on the main thread.
    if is_alone || test == "main" {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let run = command.args(["--exact", &test]).env(ALONE, "1").output().unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && out.contains("1 passed"), "{out}");
    false
}

/// Waits until `done` returns a value, at most for `limit`.
fn eventually<T>(what: &str, limit: Duration, mut done: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Reads a number that a process has written to a file, if the line is complete.
fn number_in(file: &Path) -> Option<i32> {
    std::fs::read_to_string(file).ok()?.strip_suffix('\n')?.trim().parse().ok()
}
