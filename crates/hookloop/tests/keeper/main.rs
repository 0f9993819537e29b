//! Hooks' processes: what a hook gets, what is kept of it, and that nothing it starts outlives it.
//!
//! The full size of the escapes: `HOOKLOOP_ESCAPES=1000 cargo nextest run -p hookloop --test keeper escapes`;
//! of the output: `HOOKLOOP_OUTPUT_MIB=1024 cargo nextest run --release -p hookloop --test keeper output`.
//!
//! With `HOOKLOOP_MARKING=1`, keepers do as they do on systems where nobody but the first process adopts orphans.
#![expect(clippy::unwrap_used, reason = "tests")]

mod cgroup;
mod cost;
mod escapes;
mod gluttons;
mod lost;
mod marks;
mod output;
mod plain;
mod turns;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_engine::process::{Job, Keeper, KeeperPool, Ran};

/// For jobs that end by themselves; it only has to be longer than they take on a busy machine.
const AMPLE: Duration = Duration::from_secs(60);

fn executable() -> PathBuf {
    env!("CARGO_BIN_EXE_hookloop").into()
}

/// Whether keepers are those of systems where orphans can't be adopted.
fn is_marking() -> bool {
    std::env::var_os("HOOKLOOP_MARKING").is_some()
}

fn keeper() -> Keeper {
    match is_marking() {
        true => Keeper::new(executable()).marking(),
        false => Keeper::new(executable()),
    }
}

fn pool() -> KeeperPool {
    match is_marking() {
        true => KeeperPool::new(executable()).marking(),
        false => KeeperPool::new(executable()),
    }
}

fn job<'a>(argv: &[&str]) -> Job<'a> {
    let mut job = Job::new(argv.iter().map(OsString::from).collect(), "/".into(), AMPLE);
    job.env.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    job
}

fn script<'a>(text: &str) -> Job<'a> {
    job(&["sh", "-c", text])
}

fn stdout(ran: &Ran) -> String {
    ran.output.stdout.excerpt()
}

fn stderr(ran: &Ran) -> String {
    ran.output.stderr.excerpt()
}

fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Waits until `done` gives something.
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

/// The number that a process has written to a file, with the end of its line.
fn number_in(file: &Path) -> Option<i32> {
    std::fs::read_to_string(file).ok()?.strip_suffix('\n')?.trim().parse().ok()
}
