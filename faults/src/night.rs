//! The night test: workers run tasks and merge them while workers are killed, stopped and starved
//! of processor time and servers fail; afterwards the result is checked independently of the
//! product.
//!
//! - [`yard`]: servers, a forge, machines
//! - [`machine`]: one machine with the real program on it
//! - [`strike`]: the faults and their times
//! - [`starve`]: a machine with a twentieth of a processor
//! - [`claims`]: the claims of each task over time, from the log
//! - [`beats`]: heartbeats as they were sent
//! - [`verdict`]: checks of the result

mod beats;
mod claims;
pub(crate) mod machine;
mod starve;
mod strike;
pub(crate) mod verdict;
pub(crate) mod yard;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use beats::Beats;
use claims::Told;
use hookloop_core::options::Length;
use hookloop_testbed::github::State;
use hookloop_testbed::{Cluster, poll};
use hookloop_testkit::SeededRandom;
use rustix::process::Signal;
use strike::{Absence, Kind, Night};
use verdict::{Base, Evidence, Fate, Found, Spread};
use yard::{PROJECT, Task, Yard, git};

use crate::check::{Findings, check_chains};
use crate::history::now_ms;
use crate::stream::{self, Stored};
use crate::table;

/// Concurrent tasks of one worker: more than there is to do, so that a remaining worker has
/// capacity for tasks of lost ones. The project limits the number of tasks in progress (`wip`).
const JOBS: &str = "4";
/// Timeout of all tasks together.
const PATIENCE: Duration = Duration::from_secs(40 * 60);
const PATIENCE_QUICK: Duration = Duration::from_secs(240);
/// Timeout for ending the sessions of lost workers.
const TIDY: Duration = Duration::from_secs(60);
/// Timeout for a worker without tasks to end.
const DRAINED: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(300);
/// Number of violations that are printed; all of them are in the round's directory.
const SHOWN: usize = 12;
/// Interval of progress reports.
const REPORT: Duration = Duration::from_secs(30);
/// Number of tasks in one chain. In a short night the chain keeps the work from finishing too
/// early.
const CHAIN: usize = 4;
const CHAIN_QUICK: usize = 12;

/// High limits, because agents resolve conflicts and other merges may come first many times.
pub(crate) const LIMITS: &str = "limits: {max_remediations: 20, max_continuations: 20}";

const CONFIG: &str = "version: 1
project: night
delivery: {base: main, forge: github}
scheduling: {wip: 16}
hooks:
  stop: [{name: gate, command: sh gate.sh}]
  before_submit: [rebase_on_main, create_pr]
  before_merge: [{name: tests, command: sh gate.sh}]
";

/// Runs a fleet of real workers that complete and merge tasks while they are killed, stopped and
/// starved; fails if a task was lost, duplicated, reclaimed too early or picked up too late.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 8)]
    workers: usize,
    #[arg(long, default_value_t = 200)]
    tasks: usize,
    #[arg(long, default_value = "15s")]
    lease: Length,
    /// Seed of the tasks and the faults.
    #[arg(long)]
    seed: Option<u64>,
    /// The size for CI: three workers, one fault of each kind.
    #[arg(long)]
    quick: bool,
    /// Directory that keeps the files of a night with violations.
    #[arg(long)]
    keep: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let seed = args.seed.unwrap_or_else(|| now_ms() % 1_000_000);
    let home = home(args.keep.as_deref(), &format!("{seed}-night"));
    println!("seed {seed}; the files of a failed night stay in {}", home.display());
    let args = match args.quick {
        true => Args { workers: 3, tasks: 24, ..args.clone() },
        false => args.clone(),
    };
    let begun = Instant::now();
    let report = one_night(&args, seed, &home);
    println!("\n{}", report.text(begun.elapsed()));
    conclude(&home, &report.found)
}

/// Creates a directory for a round.
pub(crate) fn home(keep: Option<&Path>, name: &str) -> PathBuf {
    let keep = keep.map_or_else(|| std::env::temp_dir().join("hookloop-faults"), Path::to_owned);
    let home = keep.join(name);
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home).unwrap();
    home
}

/// Prints the violations, and keeps the files that are needed to analyse them.
pub(crate) fn conclude(home: &Path, found: &Found) -> ExitCode {
    if found.violations.is_empty() {
        let _ = fs::remove_dir_all(home);
        return ExitCode::SUCCESS;
    }
    let lines: Vec<String> =
        found.violations.iter().map(|(kind, line)| format!("{kind}: {line}")).collect();
    fs::write(home.join("violations"), lines.join("\n")).unwrap();
    println!("{} violations, see {}", lines.len(), home.display());
    lines.iter().take(SHOWN).for_each(|line| println!("  {line}"));
    ExitCode::FAILURE
}

struct Report {
    workers: usize,
    tasks: usize,
    events: usize,
    lease: Length,
    absences: Vec<Absence>,
    means: &'static str,
    merged: usize,
    found: Found,
}

fn one_night(args: &Args, seed: u64, home: &Path) -> Report {
    let mut yard = Yard::new(home, args.workers, &format!("{CONFIG}{LIMITS}\n"));
    let chain = if args.quick { CHAIN_QUICK } else { CHAIN };
    let tasks = tasks(&mut SeededRandom::named(seed, "tasks"), args.tasks, chain);
    yard.add(&tasks);
    let beats = Beats::listen(yard.cluster.urls());
    let agent = yard.agent();
    let lease = args.lease.to_string();
    let worker = ["--agent", &agent, "--jobs", JOBS, "--lease", &lease].map(str::to_owned).to_vec();
    let mut dice = SeededRandom::named(seed, "strikes");
    let plan =
        strike::plan(&mut dice, Duration::from_millis(args.lease.ms), args.workers, args.quick);
    let mut night = Night::begin(&mut yard, worker, plan, dice);
    let mut tail = Tail::of(&night.yard.cluster);
    let patience = if args.quick { PATIENCE_QUICK } else { PATIENCE };
    let mut wrong = work(&mut night, &mut tail, tasks.len(), patience);
    night.end();
    wrong.extend(tidy_up(night.yard, &mut tail));
    let (absences, outlived) = (night.absences, night.outlived);
    let means = night.means.unwrap_or("-");
    wrong.extend(outlived.into_iter().map(|line| format!("outlived its worker: {line}")));
    for kind in [Kind::Killed, Kind::Stopped, Kind::Starved, Kind::Leader] {
        if !absences.iter().any(|absence| absence.kind == kind) {
            wrong.push(format!("all tasks ended before a process was {kind:?}"));
        }
    }
    wrong.extend(drain(&mut yard));
    fs::write(home.join("absences"), format!("{absences:#?}")).unwrap();
    let log = read_log(&yard, home, &mut wrong);
    let last_beat = |claim: &claims::Claim, at_ms| beats.before(&claim.task, claim.epoch, at_ms);
    let evidence = Evidence {
        log: &log,
        tasks: &tasks,
        absences: &absences,
        lease_ms: args.lease.ms,
        picked_up_ms: match args.quick {
            true => verdict::PICKED_UP_QUICK_MS,
            false => verdict::PICKED_UP_MS,
        },
        begun: begun(&yard),
        last_beat: &last_beat,
    };
    let mut found = verdict::judge(&evidence);
    let base = base(&yard, home);
    verdict::check_base(&evidence, &base, &mut found);
    wrong.into_iter().for_each(|line| found.add("broken", line));
    fs::write(home.join("orphans"), format!("{:#?}", found.orphans)).unwrap();
    Report {
        workers: args.workers,
        tasks: tasks.len(),
        events: log.len(),
        lease: args.lease,
        absences,
        means,
        merged: base.requests.iter().filter(|(_, merged)| merged.is_some()).count(),
        found,
    }
}

/// Returns a graph of tasks: chains, and tasks that depend on some of the earlier ones.
fn tasks(dice: &mut SeededRandom, count: usize, chain: usize) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for n in 0..count {
        let id = format!("t-{n:03}");
        let depends_on = match n % 2 {
            0 if n % (2 * chain) != 0 => vec![tasks[n - 2].id.clone()],
            1 if n > 6 && dice.below(3) == 0 => {
                let mut earlier =
                    vec![tasks[dice.below(n)].id.clone(), tasks[dice.below(n)].id.clone()];
                earlier.dedup();
                earlier
            }
            _ => vec![],
        };
        let script = script(dice, &id);
        let priority = dice.within(0..4);
        tasks.push(Task { id, priority, depends_on, script });
    }
    tasks
}

/// Returns a script with 0.5 to 4 s of work. One in 25 causes conflicts, one in 12 fails at first.
fn script(dice: &mut SeededRandom, id: &str) -> String {
    let pause = dice.within(500..4_000) as f64 / 1e3;
    let shared = match dice.below(25) {
        0 => format!("grep -qx {id} shared.txt || echo {id} >> shared.txt\n"),
        _ => String::new(),
    };
    let wrong = match dice.below(12) {
        0 => format!(
            "[ -e $SCRIPTS/{id}.erred ] || {{ touch $SCRIPTS/{id}.erred; echo wrong > done/{id}.txt; exit 0; }}\n"
        ),
        _ => String::new(),
    };
    // The resolution keeps both sides of a conflict.
    format!(
        "sleep {pause}\n\
         sed -i -e '/^<<<<<<</d' -e '/^=======/d' -e '/^>>>>>>>/d' -e '/^|||||||/d' shared.txt\n\
         mkdir -p done\n{wrong}echo {id} > done/{id}.txt\n{shared}"
    )
}

/// Reads the log as it grows.
pub(crate) struct Tail {
    stream: String,
    next: u64,
    /// Events of the project only.
    log: Vec<Stored>,
}

impl Tail {
    pub(crate) fn of(cluster: &Cluster) -> Tail {
        let stream = stream::of_project(cluster, PROJECT).expect("the project has a stream");
        Tail { stream, next: 1, log: Vec::new() }
    }

    /// Reads new events; those that cannot be read now are read by the next call.
    pub(crate) fn read(&mut self, cluster: &Cluster) -> Told {
        let from = self.next;
        let last = stream::last(cluster, &self.stream).unwrap_or(0);
        let node = cluster.nodes().iter().find(|node| node.is_awake());
        if let Some(node) = node.filter(|_| last >= from) {
            let read = stream::read(node, &self.stream, from..=last).unwrap_or_default();
            self.next = read.last().map_or(from, |stored| stored.seq + 1);
            self.log.extend(read.into_iter().filter(|stored| stored.project == PROJECT));
        }
        Told::of(&self.log)
    }
}

/// Injects faults until the work is done; returns the violations found meanwhile.
fn work(night: &mut Night<'_>, tail: &mut Tail, tasks: usize, patience: Duration) -> Vec<String> {
    let (begun, mut reported, mut wrong) = (Instant::now(), Instant::now(), Vec::new());
    loop {
        let told = tail.read(&night.yard.cluster);
        if told.completed >= tasks {
            return wrong;
        }
        if begun.elapsed() > patience {
            wrong.push(format!("after {patience:?} {} of {tasks} are completed", told.completed));
            return wrong;
        }
        // Faults only matter once a task is claimed.
        if !told.claims.is_empty() {
            night.step(&told);
        }
        if reported.elapsed() > REPORT {
            reported = Instant::now();
            let (done, struck) = (told.completed, night.absences.len());
            println!("{} s: {done} of {tasks} tasks, {struck} faults", begun.elapsed().as_secs());
        }
        for machine in &mut night.yard.machines {
            if machine.has_ended() {
                wrong.push(format!("{} ended by itself", machine.name));
                machine.kill();
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits until the remaining workers have ended the sessions of the lost ones.
fn tidy_up(yard: &Yard, tail: &mut Tail) -> Option<String> {
    let is_tidy = || {
        std::thread::sleep(LOOK);
        let told = tail.read(&yard.cluster);
        told.sessions.values().all(|session| session.is_ended).then_some(())
    };
    match poll(TIDY, is_tidy) {
        Some(()) => None,
        None => Some(format!("sessions are open {TIDY:?} after the last task was completed")),
    }
}

/// Ends all workers; a process that is left afterwards is a violation.
pub(crate) fn drain(yard: &mut Yard) -> Vec<String> {
    yard.machines.iter().for_each(|machine| machine.signal(Signal::TERM));
    let mut wrong = Vec::new();
    for machine in &mut yard.machines {
        wrong.extend(machine.wait_ended(DRAINED).err());
        let left = machine.processes().into_iter();
        wrong.extend(left.map(|found| format!("left on {}: {}", machine.name, found.line)));
    }
    wrong
}

/// Returns the project's events, and checks that every replica of the stream has the same.
pub(crate) fn read_log(yard: &Yard, home: &Path, wrong: &mut Vec<String>) -> Vec<Stored> {
    let stream = stream::of_project(&yard.cluster, PROJECT).expect("the project has a stream");
    if !stream::wait_caught_up(&yard.cluster, &stream) {
        wrong.push("the replicas do not converge".to_owned());
    }
    let last = stream::last(&yard.cluster, &stream).unwrap_or(0);
    let mut copies = HashMap::new();
    for node in yard.cluster.nodes() {
        match stream::read(node, &stream, 1..=last) {
            Ok(copy) => _ = copies.insert(node.name().to_owned(), copy),
            Err(error) => wrong.push(error),
        }
    }
    wrong.extend(stream::differences(&copies));
    let all = copies.into_values().next().unwrap_or_default();
    let mut findings = Findings::default();
    check_chains(&all, &mut findings);
    wrong.extend(findings.violations().map(|(kind, line)| format!("{kind}: {line}")));
    let lines: Vec<String> = all.iter().map(|stored| format!("{stored:?}")).collect();
    fs::write(home.join("log"), lines.join("\n")).unwrap();
    all.into_iter().filter(|stored| stored.project == PROJECT).collect()
}

/// Returns the worker that began each session, as reported by the workers.
pub(crate) fn begun(yard: &Yard) -> HashMap<String, String> {
    let of = |machine: &machine::Machine| {
        let name = machine.name.clone();
        machine.sessions().into_iter().map(move |session| (session, name.clone()))
    };
    yard.machines.iter().flat_map(of).collect()
}

/// Returns the commits of the base branch, after running the gate on each of them.
pub(crate) fn base(yard: &Yard, home: &Path) -> Base {
    let list = yard.at_remote(&["log", "--first-parent", "--reverse", "--format=%H %s", "main"]);
    let commits: Vec<(String, String)> = list
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(commit, subject)| (commit.to_owned(), subject.to_owned()))
        .collect();
    let files = home.join("checked");
    git(home, &["clone", "-q", "remote.git", "checked"]);
    let is_red = |commit: &str| {
        git(&files, &["checkout", "-q", "--detach", commit]);
        let passed = Command::new("sh").args(["-c", yard::GATE]).current_dir(&files).output();
        !passed.unwrap().status.success()
    };
    let red = commits.iter().filter(|(commit, _)| is_red(commit));
    let red = red.map(|(commit, subject)| format!("{commit} {subject}")).collect();
    let requests = yard.forge.pulls().into_iter().map(|pull| match pull.state {
        State::Merged(commit) => (pull.branch, Some(commit)),
        _ => (pull.branch, None),
    });
    Base { commits, requests: requests.collect(), red }
}

impl Report {
    fn text(&self, took: Duration) -> String {
        let count = |kind: Kind| self.absences.iter().filter(|one| one.kind == kind).count();
        let gone = self.absences.iter().filter(|one| one.until_ms.is_none()).count();
        let found = &self.found;
        let cells = [
            ("secs", took.as_secs() as usize),
            ("workers", self.workers),
            ("tasks", self.tasks),
            ("killed", count(Kind::Killed)),
            ("for good", gone),
            ("stopped", count(Kind::Stopped)),
            ("starved", count(Kind::Starved)),
            ("leaders", count(Kind::Leader)),
            ("events", self.events),
            ("claims", found.claims),
            ("expired", found.expired),
            ("done", found.completed),
            ("merged", self.merged),
            ("undone", found.count("undone")),
            ("doubled", found.count("doubled") + found.count("delivery")),
            ("stale", found.count("stale")),
            ("false", found.count("false reclaim")),
            ("red", found.count("red")),
            (
                "broken",
                found.count("broken") + found.count("open session") + found.count("forsaken"),
            ),
        ];
        let head = cells.iter().map(|(name, _)| (*name).to_owned()).collect();
        let row = cells.iter().map(|(_, value)| value.to_string()).collect();
        let mut text = table::aligned(&[head, row]);
        text.push_str(&format!(
            "\n{} events of holders on their tasks; starved by {}; lease {}; {} of {} orphans resumed by their worker\n\n",
            found.by_holders,
            self.means,
            self.lease,
            found.orphans.iter().filter(|orphan| orphan.fate == Fate::Resumed).count(),
            found.orphans.len(),
        ));
        let head = ["seconds from … until a worker continues", "n", "p50", "p99", "max"];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        let orphans = || found.orphans.iter();
        let rows: [(&str, Vec<u64>); 4] = [
            ("the kill or stop", orphans().map(|one| one.waited_ms).collect()),
            ("the last sign of life", orphans().filter_map(|one| one.silent_ms).collect()),
            (
                "the kill or stop, taken by others",
                orphans().filter(|one| one.fate == Fate::Taken).map(|one| one.waited_ms).collect(),
            ),
            (
                "the kill or stop until it is free",
                orphans().filter_map(|one| one.freed_ms).collect(),
            ),
        ];
        for (name, times) in rows {
            let n = times.len().to_string();
            let Some(Spread { p50, p99, max }) = Spread::of(times) else { continue };
            let seconds = |ms: u64| format!("{:.1}", ms as f64 / 1e3);
            lines.push(vec![name.to_owned(), n, seconds(p50), seconds(p99), seconds(max)]);
        }
        text + &table::aligned(&lines)
    }
}
