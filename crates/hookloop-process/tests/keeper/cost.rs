//! The cost of a keeper: the same processes with and without one.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use hookloop_process::{Confinement, ExitReason};

use super::{keeper, script};

const JOBS: u32 = 200;
/// Far above the usual ratio, for busy machines.
const RATIO_MAX: f64 = 3.0;
/// The time that a sandbox may add to a job, far above the usual.
const SANDBOX_MAX: Duration = Duration::from_millis(50);

#[test]
fn a_keeper_adds_little_time_to_a_job() {
    let mut keeper = keeper();
    let bare = || {
        let mut command = Command::new("sh");
        assert!(command.args(["-c", "true"]).output().unwrap().status.success());
    };
    keeper.run(script("true")).unwrap();
    let keeper_id = keeper.pid().unwrap().to_string();
    bare();

    let used = || on_cpu("thread-self") + on_cpu(&keeper_id);
    let mut kept = || assert_eq!(keeper.run(script("true")).unwrap().exit, ExitReason::Exited(0));
    let used_before = used();
    let start = Instant::now();
    (0..JOBS).for_each(|_| kept());
    let kept_wall = start.elapsed() / JOBS;
    let kept_cpu = (used() - used_before) / JOBS;
    let used_before = used();
    let start = Instant::now();
    (0..JOBS).for_each(|_| bare());
    let bare_wall = start.elapsed() / JOBS;
    let bare_cpu = (used() - used_before) / JOBS;

    let ratio = kept_wall.as_secs_f64() / bare_wall.as_secs_f64();
    writeln!(
        std::io::stderr(),
        "with a keeper {kept_wall:?} and {kept_cpu:?} of a processor, \
         without {bare_wall:?} and {bare_cpu:?}: {ratio:.2} times as long"
    )
    .unwrap();
    assert!(ratio < RATIO_MAX, "{ratio}");
}

/// Jobs without a sandbox do not pay for it.
#[test]
fn a_sandbox_adds_little_time_to_a_job() {
    let mut keeper = keeper();
    let mut run = |confinement: Option<Confinement>| {
        let mut job = script("true");
        job.confinement = confinement;
        assert_eq!(keeper.run(job).unwrap().exit, ExitReason::Exited(0));
    };
    let everything = Confinement {
        no_network: true,
        write: Some(vec!["/tmp".into()]),
        ..Confinement::default()
    };
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

/// CPU time of the main thread of a process.
fn on_cpu(process: &str) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
    Duration::from_nanos(text.split_ascii_whitespace().next().unwrap().parse().unwrap())
}

/// The added time is that of the namespace and of each mount.
#[cfg(target_os = "linux")]
#[test]
fn private_mounts_add_little_time_to_a_job() {
    use hookloop_process::PrivateMount;

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let bind =
        PrivateMount::Bind { source: path("checkout"), target: path("project"), read_only: false };
    let overlay = PrivateMount::Overlay {
        target: path("cache"),
        changes: path("changes"),
        work: path("work"),
    };
    let hide = PrivateMount::Hide { target: path("hidden") };
    let mut keeper = keeper();
    let mut time = |mounts: Vec<PrivateMount>| {
        let confined =
            Confinement { mounts, write: Some(vec![path("project")]), ..Confinement::default() };
        let start = Instant::now();
        for _ in 0..JOBS {
            let mut job = script("true");
            job.confinement = Some(confined.clone());
            assert_eq!(keeper.run(job).unwrap().exit, ExitReason::Exited(0));
        }
        start.elapsed() / JOBS
    };
    time(vec![bind.clone()]);
    let (without, one) = (time(Vec::new()), time(vec![bind.clone()]));
    let three = time(vec![bind, overlay, hide]);
    let ratio = three.as_secs_f64() / without.as_secs_f64();
    writeln!(
        std::io::stderr(),
        "a sandbox without mounts {without:?}, with a bind {one:?}, with a bind, an overlay and a hidden directory \
         {three:?}: {ratio:.2} times as long"
    )
    .unwrap();
    assert!(three < without + SANDBOX_MAX, "{three:?} and {without:?}");
}
