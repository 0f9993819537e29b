//! The time of a snapshot, compared with `git status` on the same files in the same run.
//!
//! `HOOKLOOP_SNAPSHOT_FILES=100000` measures a large repository. `--release` measures the program as it ships.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::fixture::SnapshotFixture;

/// Files in a run without the variable.
const FILES: usize = 3_000;
/// Runs of each measurement.
const RUNS: usize = 15;
/// The highest ratio that is allowed. Without optimization, hookloop's own part takes several times as long.
const RATIO_MAX: f64 = if cfg!(debug_assertions) { 2.5 } else { 1.5 };

fn time(mut work: impl FnMut()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
fn a_snapshot_costs_little_more_than_git_status() {
    let files =
        std::env::var("HOOKLOOP_SNAPSHOT_FILES").map_or(FILES, |files| files.parse().unwrap());
    let f = SnapshotFixture::new();
    for number in 0..files {
        let name = format!("d{}/s{}/f{number}.txt", number % 97, number % 13);
        f.write(&name, &format!("file {number}\n").repeat(5 + number % 50));
    }
    f.commit();
    let snapshots = f.snapshots();
    // Files that are older than the index need not be read again.
    std::thread::sleep(Duration::from_millis(1_100));
    for _ in 0..3 {
        snapshots.take().unwrap();
        f.git(&["status", "--porcelain"]);
    }
    let (mut status, mut unchanged, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        status.push(time(|| drop(f.git(&["status", "--porcelain"]))));
        unchanged.push(time(|| drop(snapshots.take().unwrap())));
        f.write("d1/s1/changed.txt", &run.to_string());
        f.write("file", &run.to_string());
        changed.push(time(|| drop(snapshots.take().unwrap())));
    }
    let (status, unchanged, changed) = (median(status), median(unchanged), median(changed));
    let ratio = |time: Duration| time.as_secs_f64() / status.as_secs_f64();
    // Shown by `--no-capture`.
    let _ = writeln!(
        std::io::stdout(),
        "{files} files: git status {status:?}; snapshot without a change {unchanged:?} ({:.2}), with two changed \
         files {changed:?} ({:.2})",
        ratio(unchanged),
        ratio(changed)
    );
    assert!(ratio(unchanged) <= RATIO_MAX && ratio(changed) <= RATIO_MAX);
}
