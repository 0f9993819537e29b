//! What a keeper costs: the same processes with and without one.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use hookloop_engine::process::{Confinement, How};

use super::{keeper, script};

const JOBS: u32 = 200;
/// Far above what it is, for machines that do other things too.
const RATIO_MAX: f64 = 3.0;
/// What a sandbox adds to a hook; far above what it is, too.
const SANDBOX_MAX: Duration = Duration::from_millis(50);

#[test]
fn a_keeper_costs_little() {
    let mut keeper = keeper();
    let bare = || {
        let mut command = Command::new("sh");
        assert!(command.args(["-c", "true"]).output().unwrap().status.success());
    };
    keeper.run(script("true")).unwrap();
    let keeper_id = keeper.pid().unwrap().to_string();
    bare();

    let used = || on_cpu("thread-self") + on_cpu(&keeper_id);
    let mut kept = || assert_eq!(keeper.run(script("true")).unwrap().how, How::Exited(0));
    let (used_before, start) = (used(), Instant::now());
    (0..JOBS).for_each(|_| kept());
    let (kept_wall, kept_cpu) = (start.elapsed() / JOBS, (used() - used_before) / JOBS);
    let (used_before, start) = (used(), Instant::now());
    (0..JOBS).for_each(|_| bare());
    let (bare_wall, bare_cpu) = (start.elapsed() / JOBS, (used() - used_before) / JOBS);

    let ratio = kept_wall.as_secs_f64() / bare_wall.as_secs_f64();
    writeln!(
        std::io::stderr(),
        "with a keeper {kept_wall:?} and {kept_cpu:?} of a processor, \
         without {bare_wall:?} and {bare_cpu:?}: {ratio:.2} times as long"
    )
    .unwrap();
    assert!(ratio < RATIO_MAX, "{ratio}");
}

/// Only hooks in a sandbox pay for it.
#[test]
fn a_sandbox_costs_little() {
    let mut keeper = keeper();
    let mut run = |confinement: Option<Confinement>| {
        let mut job = script("true");
        job.confinement = confinement;
        assert_eq!(keeper.run(job).unwrap().how, How::Exited(0));
    };
    let everything = Confinement { no_network: true, write: Some(vec!["/tmp".into()]) };
    run(None);
    run(Some(everything.clone()));
    let start = Instant::now();
    (0..JOBS).for_each(|_| run(None));
    let open = start.elapsed() / JOBS;
    let start = Instant::now();
    (0..JOBS).for_each(|_| run(Some(everything.clone())));
    let confined = start.elapsed() / JOBS;
    writeln!(std::io::stderr(), "in a sandbox {confined:?}, else {open:?}").unwrap();
    assert!(confined < open + SANDBOX_MAX, "{confined:?} and {open:?}");
}

/// The time that a process's main thread had a processor.
fn on_cpu(process: &str) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
    Duration::from_nanos(text.split_ascii_whitespace().next().unwrap().parse().unwrap())
}
