//! The time of moves, compared with `git status` on the same files in the same run.
//!
//! `HOOKLOOP_ROOM_FILES=50000` measures a large repository. `--release` measures the program as it ships.

use std::io::Write;
use std::time::{Duration, Instant};

use hookloop_git::snapshot::Snapshot;

use crate::fixture::RoomFixture;

/// Files in a run without the variable.
const FILES: usize = 3_000;
/// Runs of each measurement.
const RUNS: usize = 9;
/// The highest ratios that are allowed. Without optimization, hookloop's own part takes several times as long.
const UNCHANGED_MAX: f64 = if cfg!(debug_assertions) { 10.0 } else { 4.0 };
const CHANGED_MAX: f64 = if cfg!(debug_assertions) { 30.0 } else { 12.0 };

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
fn a_move_costs_the_difference_and_not_the_repository() {
    let measured = std::env::var("HOOKLOOP_ROOM_FILES").ok();
    let is_measured = measured.is_some();
    let count = measured.map_or(FILES, |files| files.parse().unwrap());
    let f = RoomFixture::new();
    for number in 0..count {
        let name = format!("d{}/s{}/f{number}.txt", number % 97, number % 13);
        f.write(&name, &format!("file {number}\n").repeat(5 + number % 50));
    }
    f.commit();
    let snapshots = [0, 1].map(|number: usize| {
        f.write("d1/s1/changed.txt", &number.to_string());
        f.write("file", &number.to_string());
        f.take()
    });
    let mut room = f.room();
    let mut enter = |snapshot: &Snapshot, written: usize| {
        let mut change = None;
        let took = time(|| change = Some(f.enter(&mut room, snapshot)));
        assert_eq!(change.unwrap().written_files, written);
        room.note_run(false).unwrap();
        took
    };
    let first = enter(&snapshots[0], count + 4);
    let (mut status, mut unchanged, mut changed, mut at_once) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    f.git(&["status", "--porcelain"]);
    for run in 0..RUNS {
        status.push(time(|| drop(f.git(&["status", "--porcelain"]))));
        unchanged.push(enter(&snapshots[run % 2], 0));
        at_once.push(enter(&snapshots[(run + 1) % 2], 2));
        if is_measured {
            // Files get the time of the clock.
            std::thread::sleep(Duration::from_millis(3_000));
            enter(&snapshots[(run + 1) % 2], 0);
            std::thread::sleep(Duration::from_millis(1_200));
            changed.push(enter(&snapshots[run % 2], 2));
            enter(&snapshots[(run + 1) % 2], 2);
        }
    }
    let (status, unchanged, at_once) = (median(status), median(unchanged), median(at_once));
    let changed = if is_measured { median(changed) } else { at_once };
    let ratio = |time: Duration| time.as_secs_f64() / status.as_secs_f64();
    // Shown by `--no-capture`.
    let _ = writeln!(
        std::io::stdout(),
        "{count} files: first checkout {first:?}; git status {status:?}; unchanged {unchanged:?} ({:.2}), two changed \
         files {changed:?} ({:.2}), within a second {at_once:?} ({:.2})",
        ratio(unchanged),
        ratio(changed),
        ratio(at_once)
    );
    assert!(ratio(unchanged) <= UNCHANGED_MAX && ratio(at_once) <= CHANGED_MAX);
}
