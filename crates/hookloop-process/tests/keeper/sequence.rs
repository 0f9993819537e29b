//! Sequences of jobs without a gap between them.

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use hookloop_process::{Cancel, ExitReason, Job, JobResult, JobSource, ProcessError};

use super::{job, keeper, script, stdout};

/// Jobs that are ready from the start, or that each wait for the one before.
#[derive(Default)]
struct QueuedJobs<'a> {
    jobs: VecDeque<Job<'a>>,
    given: usize,
    results: Vec<Result<JobResult, ProcessError>>,
    one_by_one: bool,
}

impl<'a> QueuedJobs<'a> {
    fn of(jobs: impl IntoIterator<Item = Job<'a>>) -> QueuedJobs<'a> {
        QueuedJobs { jobs: jobs.into_iter().collect(), ..QueuedJobs::default() }
    }
}

impl<'a> JobSource<'a> for QueuedJobs<'a> {
    fn next(&mut self) -> Option<Job<'a>> {
        if self.one_by_one && self.given > self.results.len() {
            return None;
        }
        self.given += 1;
        self.jobs.pop_front()
    }

    fn done(&mut self, result: Result<JobResult, ProcessError>) {
        self.results.push(result);
    }
}

fn texts(line: &QueuedJobs<'_>) -> Vec<String> {
    line.results.iter().map(|result| stdout(result.as_ref().unwrap())).collect()
}

#[test]
fn jobs_run_one_after_another_with_their_own_input_and_output() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("running");
    for one_by_one in [false, true] {
        let jobs = (0..50).map(|number| {
            // Of two jobs at the same time, the second would fail: the directory exists.
            let text = format!("mkdir {0} && read line && echo $line && rmdir {0}", file.display());
            let mut job = script(&text);
            job.stdin = format!("{number}\n").into_bytes();
            job
        });
        let mut line = QueuedJobs { one_by_one, ..QueuedJobs::of(jobs) };
        keeper().run_sequence(&mut line);
        let expected: Vec<String> = (0..50).map(|number| format!("{number}\n")).collect();
        assert_eq!(texts(&line), expected);
    }
}

#[test]
fn a_waiting_job_may_have_a_large_environment_and_input() {
    let mut large = script("wc -c; echo ${#LARGE}");
    large.stdin = vec![b'x'; 1 << 20];
    large.env.push(("LARGE".into(), "y".repeat(100_000).into()));
    let mut line = QueuedJobs::of([script("sleep 0.2"), large, script("echo last")]);
    keeper().run_sequence(&mut line);
    assert_eq!(texts(&line), ["", "1048576\n100000\n", "last\n"]);
}

#[test]
fn a_job_that_cannot_start_reports_in_order_and_delays_no_other() {
    let missing = || job(&["there-is-no-such-program"]);
    let mut line =
        QueuedJobs::of([missing(), script("echo a"), missing(), missing(), script("echo b")]);
    keeper().run_sequence(&mut line);
    let told: Vec<_> = line.results.iter().map(|result| result.as_ref().ok().map(stdout)).collect();
    assert_eq!(told, [None, Some("a\n".into()), None, None, Some("b\n".into())]);
}

#[test]
fn the_leftovers_of_a_job_are_gone_before_the_next_starts() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let leave = script(&format!("setsid sleep 600 & echo $! > {}", file.display()));
    // A zombie counts as gone.
    let look =
        format!("grep -q '^State:.[^ZX]' /proc/$(cat {})/status && echo alive", file.display());
    let look = script(&look);
    let mut line = QueuedJobs::of([leave, look]);
    keeper().run_sequence(&mut line);
    assert!(!texts(&line)[1].contains("alive"), "{:?}", texts(&line));
    assert_eq!(line.results[0].as_ref().unwrap().leftovers_killed, 1);
}

/// If one job kills its keeper, every other one runs exactly once.
#[test]
fn a_lost_keeper_fails_only_its_running_job() {
    for victim in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ran");
        let jobs = (0..4).map(|number| {
            let end = if number == victim { "kill -KILL $PPID; sleep 600" } else { "" };
            script(&format!("echo {number} >> {}; {end}", file.display()))
        });
        let mut line = QueuedJobs::of(jobs);
        keeper().run_sequence(&mut line);
        assert_eq!(fs::read_to_string(&file).unwrap(), "0\n1\n2\n3\n");
        for (number, result) in line.results.iter().enumerate() {
            match result {
                Ok(ran) => assert_eq!((ran.exit, number == victim), (ExitReason::Exited(0), false)),
                Err(ProcessError::KeeperLost { .. }) => assert_eq!(number, victim),
                Err(error) => panic!("{number}: {error}"),
            }
        }
    }
}

/// A cancellation that arrives after the end of its job does not cancel the next one.
#[test]
fn a_late_cancellation_does_not_affect_the_next_job() {
    for _ in 0..50 {
        let cancel = Cancel::new().unwrap();
        let first = Job { cancel: Some(&cancel), ..script("sleep 0.02") };
        let mut line = QueuedJobs::of([first, script("sleep 0.02; echo whole")]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                cancel.trigger();
            });
            keeper().run_sequence(&mut line);
        });
        assert_eq!(texts(&line)[1], "whole\n");
    }
}
