//! Kills hookloop at random moments, thousands of times, and checks that it keeps what it
//! acknowledged.
//!
//! Each cycle starts a random command and kills its process with SIGKILL after 0 to 6 ms (later on
//! a machine where commands take longer), or lets it exit. The test records the acknowledged
//! commands. The project must contain all of them completely, and every reaction once.
//!
//! The full size:
//! `HOOKLOOP_KILL_CYCLES=100000 cargo nextest run -p hookloop --test crash_recovery kill9::`
//! To repeat a run: `HOOKLOOP_KILL_SEED=<seed that a failure prints>`

use std::io::Write;
use std::process::{Child, Output};
use std::thread;
use std::time::{Duration, Instant};

use hookloop_testkit::{SeededRandom, TestProject};

use crate::support::journal::{Answer, Ask, Journal};
use crate::support::{empty_project, number_from_env, project_with, reactions};

const CYCLES: u64 = 1_000;
/// Cycles per project: enough for many WAL checkpoints, and few enough for quick checks.
const CYCLES_PER_PROJECT: u64 = 2_000;
const CYCLES_PER_CHECK: u64 = 200;
/// The latest moment of a kill, unless commands take longer.
const KILL_AFTER_MAX: Duration = Duration::from_millis(6);
/// Projects whose `init` is killed.
const BIRTHS: u64 = 100;
/// Projects that are tested concurrently.
const PARALLEL: u64 = 2;

#[test]
fn acknowledged_commands_survive_sigkill_and_take_effect_completely() {
    let cycles = number_from_env("HOOKLOOP_KILL_CYCLES", CYCLES);
    let seed = number_from_env("HOOKLOOP_KILL_SEED", u64::from(std::process::id()));
    thread::scope(|scope| {
        for index in 0..PARALLEL {
            scope.spawn(move || run_cycles(seed + index, cycles.div_ceil(PARALLEL)));
        }
    });
}

#[test]
fn a_project_is_usable_after_a_killed_init() {
    let seed = number_from_env("HOOKLOOP_KILL_SEED", u64::from(std::process::id()));
    let _told = Told(seed);
    let mut random = SeededRandom::new(seed);
    let mut killed = 0;
    for _ in 0..BIRTHS {
        let project = empty_project();
        let mut process = project.json_command(&["init", "--yes"]).spawn().unwrap();
        thread::sleep(random.moment_before(KILL_AFTER_MAX));
        process.kill().unwrap();
        killed += u32::from(process.wait_with_output().unwrap().status.code().is_none());
        project.init();
        project.json(&["task", "add", "First"]);
        assert_eq!(project.tasks().len(), 1);
        project.assert_intact();
    }
    assert!(killed > 0, "no process was killed in time");
}

fn run_cycles(seed: u64, mut cycles: u64) {
    let _told = Told(seed);
    let mut random = SeededRandom::new(seed);
    while cycles > 0 {
        let here = cycles.min(CYCLES_PER_PROJECT);
        Course::new().run(here, &mut random);
        cycles -= here;
    }
}

/// Prints the seed if the test fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(std::io::stderr(), "HOOKLOOP_KILL_SEED={}", self.0);
        }
    }
}

struct Course {
    project: TestProject,
    journal: Journal,
    /// The duration of a command that is not killed.
    typical: Duration,
}

impl Course {
    fn new() -> Course {
        let project = project_with(reactions::CONFIG);
        Course { project, journal: Journal::default(), typical: KILL_AFTER_MAX }
    }

    fn run(mut self, cycles: u64, random: &mut SeededRandom) {
        let mut completed = 0;
        for cycle in 1..=cycles {
            let ask = Ask::any(random, &self.journal, cycle);
            let answer = self.give(&ask, random);
            self.journal.record(ask, answer);
            if cycle % CYCLES_PER_CHECK == 0 || cycle == cycles {
                completed = self.check();
            }
        }
        assert!(completed > 0, "no task was completed");
        self.journal.assert_varied(cycles);
    }

    /// Runs the command in a process that may be killed.
    fn give(&mut self, ask: &Ask, random: &mut SeededRandom) -> Answer {
        let arguments = ask.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let started = Instant::now();
        let mut process = self.project.json_command(&arguments).spawn().unwrap();
        if random.below(4) == 0 {
            let answer = answer_of(process, &arguments);
            self.typical = (self.typical * 7 + started.elapsed()) / 8;
            return answer;
        }
        let latest = KILL_AFTER_MAX.max(self.typical * 5 / 4);
        thread::sleep(random.moment_before(latest));
        process.kill().unwrap();
        answer_of(process, &arguments)
    }

    /// Checks the project, and returns the number of completed tasks.
    fn check(&self) -> usize {
        self.project.settle();
        let events = self.project.events_from(1);
        self.journal.assert_kept(&events);
        let completed = reactions::assert_done_once(&events);
        self.project.assert_intact();
        completed
    }
}

fn answer_of(process: Child, arguments: &[&str]) -> Answer {
    let Output { status, stdout, stderr } = process.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&stderr);
    match status.code() {
        // The result may be printed while workflows still run.
        None if stdout.is_empty() => Answer::None,
        None | Some(0) => {
            let answer: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
            assert!(answer.is_object(), "{arguments:?}: {answer}");
            Answer::Acknowledged
        }
        Some(1) => Answer::Refused,
        Some(code) => panic!("{arguments:?} ended with {code}: {told}"),
    }
}
