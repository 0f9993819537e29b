//! Twenty loops on two machines, and one directive that ends the processes they started: agents and
//! hooks that sleep for long, with children in other sessions. A second directive lets all tasks
//! complete.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hookloop_core::options::Length;
use hookloop_testbed::poll;

use crate::history::now_ms;
use crate::night::machine::{Found as Process, program};
use crate::night::verdict::{self, Evidence};
use crate::night::yard::{Task, Yard};
use crate::night::{LIMITS, Tail, base, begun, conclude, drain, home, read_log};

const WORKERS: usize = 2;
const LOOPS: usize = 20;
/// Time after the directive by which no process of agents and hooks is left.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);
/// Time afterwards in which no process comes back.
const QUIET: Duration = Duration::from_secs(3);
/// Timeout for the loops to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(20);
const LEASE_MS: u64 = 15_000;

/// Stops a fleet of twenty loops with one directive, then lets it continue; fails if one of its
/// processes is left after 5 s.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory that keeps the files of a run with violations.
    #[arg(long)]
    keep: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let home = home(args.keep.as_deref(), &format!("{}-stop", now_ms() % 1_000_000));
    let scripts = home.join("scripts");
    let mut yard = Yard::new(&home, WORKERS, &config(&scripts.display().to_string()));
    let tasks: Vec<Task> = (0..LOOPS).map(task).collect();
    yard.add(&tasks);
    let agent = yard.agent();
    let (jobs, lease) = ((LOOPS / WORKERS).to_string(), Length { ms: LEASE_MS }.to_string());
    let worker = ["--agent", &agent, "--jobs", &jobs, "--lease", &lease].map(str::to_owned);
    yard.machines.iter_mut().for_each(|machine| machine.start(&worker));
    let mut wrong = Vec::new();
    let began = || {
        let all = fs::read_dir(&scripts).unwrap().flatten();
        all.filter(|entry| entry.file_name().to_string_lossy().ends_with(".began")).count()
    };
    let begun_all = poll(PATIENCE, || {
        std::thread::sleep(LOOK);
        (began() >= LOOPS).then_some(())
    });
    if begun_all.is_none() {
        wrong.push(format!("{} of {LOOPS} loops have begun", began()));
    }
    wrong.extend(stop(&yard));
    fs::write(scripts.join("calm"), "").unwrap();
    yard.desk.ok(&["fleet", "resume"]);
    let resumed = Instant::now();
    let mut tail = Tail::of(&yard.cluster);
    let done = poll(PATIENCE, || {
        std::thread::sleep(LOOK);
        (tail.read(&yard.cluster).completed >= LOOPS).then_some(())
    });
    println!(
        "{} s after it was resumed: all done: {}",
        resumed.elapsed().as_secs(),
        done.is_some()
    );
    wrong.extend(drain(&mut yard));
    let log = read_log(&yard, &home, &mut wrong);
    let evidence = Evidence {
        log: &log,
        tasks: &tasks,
        absences: &[],
        lease_ms: LEASE_MS,
        picked_up_ms: verdict::PICKED_UP_MS,
        begun: begun(&yard),
        last_beat: &|_, _| None,
    };
    let mut found = verdict::judge(&evidence);
    verdict::check_base(&evidence, &base(&yard, &home), &mut found);
    wrong.into_iter().for_each(|line| found.add("broken", line));
    let (completed, claims) = (found.completed, found.claims);
    println!("{completed} of {LOOPS} tasks completed in {claims} claims");
    conclude(&home, &found)
}

/// Sets the directive, and waits until no process of agents and hooks is left. Returns the
/// violations.
fn stop(yard: &Yard) -> Vec<String> {
    let before = started(yard).len();
    let ordered = Instant::now();
    yard.desk.ok(&["fleet", "stop", "--reason", "a drill"]);
    let said = ordered.elapsed();
    let none = poll(PATIENCE, || {
        std::thread::sleep(LOOK);
        started(yard).is_empty().then(|| ordered.elapsed())
    });
    let mut wrong = Vec::new();
    match none {
        Some(took) => {
            println!(
                "{before} processes of agents and hooks; {:.2} s after the order was given none is left \
                 (the command itself took {:.2} s)",
                took.as_secs_f64(),
                said.as_secs_f64()
            );
            if took > STOPPED_WITHIN {
                wrong.push(format!("the last process ended after {took:?}"));
            }
        }
        None => {
            wrong.extend(started(yard).iter().map(|left| format!("runs on: {}", left.line)));
        }
    }
    let end = Instant::now() + QUIET;
    while Instant::now() < end && wrong.is_empty() {
        wrong.extend(
            started(yard).iter().map(|new| format!("started after the directive: {}", new.line)),
        );
        std::thread::sleep(LOOK);
    }
    wrong
}

/// Returns the processes that workers started for agents and hooks: all except the program itself.
fn started(yard: &Yard) -> Vec<Process> {
    let program = program();
    let all = yard.machines.iter().flat_map(|machine| machine.processes());
    all.filter(|process| process.program != program).collect()
}

/// Half of the agents sleep, with children in other sessions; the others trigger a hook that does
/// so.
fn task(n: usize) -> Task {
    let id = format!("t-{n:02}");
    let sleep = "[ -e $SCRIPTS/calm ] || { (setsid sh -c 'sleep 600 & sleep 600' &); touch $SCRIPTS/$HOOKLOOP_TASK_ID.began; sleep 600; }\n";
    let sleep = if n.is_multiple_of(2) { sleep } else { "" };
    let script = format!("{sleep}mkdir -p done; echo {id} > done/{id}.txt\n");
    Task { id, script, ..Task::default() }
}

fn config(scripts: &str) -> String {
    format!(
        "version: 1
project: night
delivery: {{base: main, forge: github}}
{LIMITS}
hooks:
  stop:
    - name: gate
      command: sh gate.sh
    - name: slow
      # In a room, a gate can't write to the directory of the scripts.
      room: here
      command: \"[ -e {scripts}/calm ] || {{ (setsid sleep 600 &); touch {scripts}/$HOOKLOOP_TASK_ID.began; sleep 600; }}\"
      timeout: 1h
  before_submit: [rebase_on_main, create_pr]
  before_merge: [{{name: tests, command: sh gate.sh}}]
"
    )
}
