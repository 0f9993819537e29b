//! Jobs that follow each other without a gap.

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use hookloop_engine::process::{Cancel, How, Job, ProcessError, Ran, Turns};

use super::{job, keeper, script, stdout};

/// Jobs that are all there from the start, or that each wait for the one before.
#[derive(Default)]
struct Line<'a> {
    jobs: VecDeque<Job<'a>>,
    given: usize,
    results: Vec<Result<Ran, ProcessError>>,
    one_by_one: bool,
}

impl<'a> Line<'a> {
    fn of(jobs: impl IntoIterator<Item = Job<'a>>) -> Line<'a> {
        Line { jobs: jobs.into_iter().collect(), ..Line::default() }
    }
}

impl<'a> Turns<'a> for Line<'a> {
    fn next(&mut self) -> Option<Job<'a>> {
        if self.one_by_one && self.given > self.results.len() {
            return None;
        }
        self.given += 1;
        self.jobs.pop_front()
    }

    fn done(&mut self, result: Result<Ran, ProcessError>) {
        self.results.push(result);
    }
}

fn texts(line: &Line<'_>) -> Vec<String> {
    line.results.iter().map(|result| stdout(result.as_ref().unwrap())).collect()
}

#[test]
fn each_job_has_its_own_input_and_output_and_starts_when_the_one_before_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("running");
    for one_by_one in [false, true] {
        let jobs = (0..50).map(|number| {
            // Two that run at the same time would find each other's directory.
            let text = format!("mkdir {0} && read line && echo $line && rmdir {0}", file.display());
            let mut job = script(&text);
            job.stdin = format!("{number}\n").into_bytes();
            job
        });
        let mut line = Line { one_by_one, ..Line::of(jobs) };
        keeper().run_in_turn(&mut line);
        let expected: Vec<String> = (0..50).map(|number| format!("{number}\n")).collect();
        assert_eq!(texts(&line), expected);
    }
}

#[test]
fn a_job_that_waits_may_have_a_large_order_and_a_large_input() {
    let mut large = script("wc -c; echo ${#LARGE}");
    large.stdin = vec![b'x'; 1 << 20];
    large.env.push(("LARGE".into(), "y".repeat(100_000).into()));
    let mut line = Line::of([script("sleep 0.2"), large, script("echo last")]);
    keeper().run_in_turn(&mut line);
    assert_eq!(texts(&line), ["", "1048576\n100000\n", "last\n"]);
}

#[test]
fn what_can_not_start_holds_nobody_up_and_is_told_in_its_place() {
    let missing = || job(&["there-is-no-such-program"]);
    let mut line = Line::of([missing(), script("echo a"), missing(), missing(), script("echo b")]);
    keeper().run_in_turn(&mut line);
    let told: Vec<_> = line.results.iter().map(|result| result.as_ref().ok().map(stdout)).collect();
    assert_eq!(told, [None, Some("a\n".into()), None, None, Some("b\n".into())]);
}

#[test]
fn the_leftovers_of_a_job_are_gone_before_the_next_starts() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let leave = script(&format!("setsid sleep 600 & echo $! > {}", file.display()));
    // One that nobody has waited for is gone, too.
    let look =
        format!("grep -q '^State:.[^ZX]' /proc/$(cat {})/status && echo alive", file.display());
    let look = script(&look);
    let mut line = Line::of([leave, look]);
    keeper().run_in_turn(&mut line);
    assert!(!texts(&line)[1].contains("alive"), "{:?}", texts(&line));
    assert_eq!(line.results[0].as_ref().unwrap().leftovers_killed, 1);
}

/// Whichever job kills its keeper: every other one runs, once.
#[test]
fn a_keeper_that_dies_takes_one_job_with_it() {
    for victim in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ran");
        let jobs = (0..4).map(|number| {
            let end = if number == victim { "kill -KILL $PPID; sleep 600" } else { "" };
            script(&format!("echo {number} >> {}; {end}", file.display()))
        });
        let mut line = Line::of(jobs);
        keeper().run_in_turn(&mut line);
        assert_eq!(fs::read_to_string(&file).unwrap(), "0\n1\n2\n3\n");
        for (number, result) in line.results.iter().enumerate() {
            match result {
                Ok(ran) => assert_eq!((ran.how, number == victim), (How::Exited(0), false)),
                Err(ProcessError::KeeperLost { .. }) => assert_eq!(number, victim),
                Err(error) => panic!("{number}: {error}"),
            }
        }
    }
}

/// The cancellation of a job that has just ended is not for the one that runs by then.
#[test]
fn a_cancellation_is_for_its_own_job() {
    for _ in 0..50 {
        let cancel = Cancel::new().unwrap();
        let first = Job { cancel: Some(&cancel), ..script("sleep 0.02") };
        let mut line = Line::of([first, script("sleep 0.02; echo whole")]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                cancel.trigger();
            });
            keeper().run_in_turn(&mut line);
        });
        assert_eq!(texts(&line)[1], "whole\n");
    }
}
