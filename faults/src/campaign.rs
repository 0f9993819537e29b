//! A round of a scenario: cluster, workers, faults, healing, verdict.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hookloop_config::effective::EffectiveConfig;
use hookloop_engine::project::Project;
use hookloop_store::jetstream::{self, NatsOptions};
use hookloop_store::store::Store;
use hookloop_testbed::{Cluster, poll};
use hookloop_testkit::SeededRandom;

use crate::check::{self, Findings};
use crate::fleet::{Process, Site};
use crate::history::{Operation, now_ms};
use crate::scenario::{Fault, Ground, Scenario};
use crate::stream::{self, Stored};
use crate::table::{self, Row};
use crate::worker::Role;
use crate::{claims, expiry};

const WORKERS: usize = 6;
const DISPATCHERS: usize = 3;
/// Limit from healing to the first acknowledged write of every worker.
const RECOVERY_MAX_MS: u64 = 15_000;
/// Timeout for expected results of a round.
const PATIENCE: Duration = Duration::from_secs(60);
/// The log counts as idle after this time without a new event.
const REST: Duration = Duration::from_secs(3);
/// Number of violations that are printed per round; all of them are in its directory.
const SHOWN: usize = 12;

/// Runs a campaign; fails if an event was lost, duplicated or wrongly accepted.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// `all`, or the name of one scenario.
    #[arg(long, default_value = "all")]
    scenario: String,
    /// How long faults strike in each round.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Seed of the faults and of the workers' operations.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of tasks in the `claims` scenario.
    #[arg(long, default_value_t = 10_000)]
    tasks: usize,
    /// The size for CI: every scenario once, in a few minutes.
    #[arg(long)]
    quick: bool,
    /// Directory of the histories; those of rounds without a violation are deleted.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// One round.
pub(crate) struct Round {
    pub(crate) scenario: Scenario,
    pub(crate) duration: Duration,
    pub(crate) tasks: usize,
    pub(crate) seed: u64,
    pub(crate) home: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let seed = args.seed.unwrap_or_else(|| now_ms() % 1_000_000);
    let keep = args.keep.clone().unwrap_or_else(|| std::env::temp_dir().join("hookloop-faults"));
    println!("seed {seed}; histories of failed rounds stay in {}", keep.display());
    let mut rows = Vec::new();
    for number in 0..args.rounds {
        for scenario in scenarios(&args.scenario) {
            let seconds = match args.quick {
                true => scenario.quick_seconds(),
                false => Some(args.seconds),
            };
            let Some(seconds) = seconds else { continue };
            let name =
                format!("{}-{}", scenario.to_possible_value().unwrap().get_name(), number + 1);
            let round = Round {
                scenario,
                duration: Duration::from_secs(seconds),
                tasks: if args.quick { 2_000 } else { args.tasks },
                seed: seed + number,
                home: keep.join(format!("{seed}-{name}")),
            };
            let row = one_round(&round, name);
            print!("{}", table::text(std::slice::from_ref(&row)));
            rows.push(row);
        }
    }
    println!("\n{}", table::text(&rows));
    match rows.iter().all(|row| row.findings.violations().next().is_none()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn scenarios(name: &str) -> Vec<Scenario> {
    match Scenario::from_str(name, true) {
        Ok(one) => vec![one],
        Err(_) if name == "all" => Scenario::value_variants().to_vec(),
        Err(_) => panic!("no such scenario: {name}"),
    }
}

/// Runs a round, prints its violations, and keeps its histories if there are any.
fn one_round(round: &Round, name: String) -> Row {
    let _ = std::fs::remove_dir_all(&round.home);
    std::fs::create_dir_all(&round.home).unwrap();
    let begun = Instant::now();
    let mut row = match round.scenario {
        Scenario::Claims => claims::round(round),
        Scenario::Expiry => expiry::round(round),
        _ => round.under_faults(),
    };
    (row.name, row.seconds) = (name, begun.elapsed().as_secs());
    let violations: Vec<String> =
        row.findings.violations().map(|(kind, line)| format!("{kind}: {line}")).collect();
    if violations.is_empty() {
        let _ = std::fs::remove_dir_all(&round.home);
    } else {
        std::fs::write(round.home.join("violations"), violations.join("\n")).unwrap();
        println!("{} violations, see {}", violations.len(), round.home.display());
        violations.iter().take(SHOWN).for_each(|line| println!("  {line}"));
    }
    row
}

impl Round {
    fn under_faults(&self) -> Row {
        let ground = Ground::new(self.scenario);
        let site = Site::of(&ground.cluster, &self.home, self.seed);
        drop(open(&site, &self.home.join("first.db")));
        let mut workers = start_all(&site, &ground.cluster, self.scenario);
        let faults = self.strike(&ground, &workers);
        let healed_ms = faults.last().map_or(0, |fault| fault.healed_ms);
        wait_for_writes(&workers, healed_ms);
        let mut verdict = Verdict::new(&ground.cluster, &site);
        verdict.end(&mut workers);
        let mut row = verdict.judge(&workers, |_, _| vec![]);
        row.faults = faults.len();
        row.recovery_ms = check_recovery(&workers, &faults, &mut row.findings);
        std::fs::write(self.home.join("faults"), format!("{faults:#?}")).unwrap();
        row
    }

    fn strike(&self, ground: &Ground, workers: &[Process]) -> Vec<Fault> {
        let mut dice = SeededRandom::named(self.seed, "faults");
        let end = Instant::now() + self.duration;
        let mut faults = Vec::new();
        while faults.is_empty() || Instant::now() < end {
            faults.push(ground.strike(self.scenario, workers, &mut dice));
        }
        faults
    }
}

/// Opens a separate view for the campaign.
pub(crate) fn open(site: &Site, view: &Path) -> Store {
    let access = NatsOptions::at(site.urls.clone(), site.monitors.clone());
    jetstream::open(&access, &site.project.parse().unwrap(), view).unwrap().store
}

fn start_all(site: &Site, cluster: &Cluster, scenario: Scenario) -> Vec<Process> {
    let mixed = (0..WORKERS).map(|n| (Role::Mixed, format!("w{n}"), n));
    let dispatchers = (0..DISPATCHERS).map(|n| (Role::Dispatcher, format!("d{n}"), n));
    let workers: Vec<Process> = mixed
        .chain(dispatchers)
        .map(|(role, name, n)| {
            let mut args = site.args(role, &name);
            args.live = n % 2 == 1;
            let netns = scenario.parts().then(|| cluster.network().netns());
            Process::start(args, netns)
        })
        .collect();
    wait_for_writes(&workers, 1);
    workers
}

/// Waits until every writing worker has an acknowledged write after `since_ms`.
fn wait_for_writes(workers: &[Process], since_ms: u64) {
    let wrote = |worker: &Process| first_write(&worker.operations(), since_ms).is_some();
    let writers = || workers.iter().filter(|worker| worker.args.role == Role::Mixed);
    // A worker that no longer writes is a violation, which the recovery check reports.
    poll(PATIENCE, || {
        std::thread::sleep(Duration::from_millis(200));
        writers().all(|worker| wrote(worker) || worker.has_ended()).then_some(())
    });
}

/// Returns the time at which the first write after `since_ms` was acknowledged.
fn first_write(operations: &[Operation], since_ms: u64) -> Option<u64> {
    let acknowledged = operations.iter().filter(|operation| operation.is_acknowledged_write());
    acknowledged.filter_map(|operation| operation.ended_ms).find(|ended| *ended >= since_ms)
}

/// Returns the longest time from healing to a worker's first acknowledged write. If the next fault
/// strikes a worker before it writes, the time counts from the next healing.
fn check_recovery(workers: &[Process], faults: &[Fault], findings: &mut Findings) -> Option<u64> {
    let mut longest = None;
    for worker in workers.iter().filter(|worker| worker.args.role == Role::Mixed) {
        let operations = worker.operations();
        for (n, fault) in faults.iter().enumerate() {
            let next = faults.get(n + 1).map_or(u64::MAX, |next| next.struck_ms);
            let took = match first_write(&operations, fault.healed_ms) {
                Some(at) if at <= next => at - fault.healed_ms,
                _ if next != u64::MAX => continue,
                late => late.unwrap_or_else(now_ms) - fault.healed_ms,
            };
            longest = longest.max(Some(took));
            if took > RECOVERY_MAX_MS {
                let name = &worker.args.name;
                findings
                    .broken
                    .push(format!("{name} wrote {took} ms after fault {} was healed", n + 1));
            }
        }
    }
    longest
}

/// The end of a round: stops all workers, compares the replicas and the views, and runs the
/// checker.
pub(crate) struct Verdict<'c> {
    cluster: &'c Cluster,
    site: &'c Site,
    stream: String,
    broken: Vec<String>,
}

impl<'c> Verdict<'c> {
    pub(crate) fn new(cluster: &'c Cluster, site: &'c Site) -> Verdict<'c> {
        Verdict { cluster, site, stream: stream::name(cluster), broken: vec![] }
    }

    /// Stops the writing workers; then, when the log is idle, the reacting ones.
    pub(crate) fn end(&mut self, workers: &mut [Process]) {
        workers
            .iter_mut()
            .filter(|one| one.args.role != Role::Dispatcher)
            .for_each(Process::ask_to_end);
        for worker in workers.iter_mut().filter(|one| one.args.role != Role::Dispatcher) {
            self.broken.extend(worker.wait_ended().err());
        }
        self.wait_for_rest();
        workers.iter_mut().for_each(Process::ask_to_end);
        for worker in workers.iter_mut() {
            self.broken.extend(worker.wait_ended().err());
        }
    }

    fn wait_for_rest(&self) {
        let (mut last, mut since) = (None, Instant::now());
        poll(PATIENCE, || {
            std::thread::sleep(Duration::from_millis(100));
            let now = stream::last(self.cluster, &self.stream);
            if now != last || now.is_none() {
                (last, since) = (now, Instant::now());
            }
            (since.elapsed() > REST).then_some(())
        });
    }

    pub(crate) fn judge(
        mut self,
        workers: &[Process],
        further: impl Fn(&[Operation], &[Stored]) -> Vec<String>,
    ) -> Row {
        let operations: Vec<Operation> = workers.iter().flat_map(Process::operations).collect();
        let log = self.read_copies();
        let lines: Vec<String> = log.iter().map(|stored| format!("{stored:?}")).collect();
        std::fs::write(self.site.home.join("log"), lines.join("\n")).unwrap();
        self.compare_views(workers);
        let mut findings = check::check(&operations, &log);
        findings.broken.extend(self.broken);
        findings.broken.extend(further(&operations, &log));
        Row {
            name: String::new(),
            findings,
            faults: 0,
            events: log.len(),
            seconds: 0,
            recovery_ms: None,
            remark: String::new(),
        }
    }

    /// Reads the stream from each node; returns one of the copies.
    fn read_copies(&mut self) -> Vec<Stored> {
        if !stream::wait_caught_up(self.cluster, &self.stream) {
            self.broken.push("the replicas do not converge".to_owned());
        }
        let last = stream::last(self.cluster, &self.stream).unwrap_or(0);
        let mut copies = HashMap::new();
        for node in self.cluster.nodes() {
            match stream::read(node, &self.stream, 1..=last) {
                Ok(copy) => _ = copies.insert(node.name().to_owned(), copy),
                Err(error) => self.broken.push(error),
            }
        }
        self.broken.extend(stream::differences(&copies));
        copies.into_values().next().unwrap_or_default()
    }

    /// Checks that two fresh views and the view of every worker are equal.
    fn compare_views(&mut self, workers: &[Process]) {
        let fresh = ["fresh-1.db", "fresh-2.db"].map(|name| self.site.home.join(name));
        let views = fresh.into_iter().chain(workers.iter().map(|worker| worker.args.view()));
        let hashes: Vec<(PathBuf, String)> = views
            .map(|view| {
                let project =
                    Project::new(open(self.site, &view), EffectiveConfig::default(), "checker");
                let hash = project.read(|view| view.state_hash());
                (view, hash.unwrap_or_else(|error| error.to_string()))
            })
            .collect();
        for (view, hash) in &hashes {
            if *hash != hashes[0].1 {
                self.broken.push(format!("{} has {hash}, not {}", view.display(), hashes[0].1));
            }
        }
    }
}
