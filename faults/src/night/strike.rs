//! Faults that strike a fleet during a night, and their times; a seed determines both.

use std::ops::Range;
use std::time::{Duration, Instant};

use hookloop_testkit::SeededRandom;
use rustix::process::{Pid, Signal, kill_process};

use super::claims::Told;
use super::starve::Starved;
use super::yard::{PROJECT, Yard};
use crate::history::now_ms;
use crate::stream;

/// Time until a killed worker is restarted.
const DEAD_MS: Range<u64> = 1_000..40_000;
/// Time by which a stop exceeds the worker's lease.
const BEYOND_MS: Range<u64> = 4_000..15_000;
const STARVED_MS: Range<u64> = 60_000..90_000;
/// Downtime of the stream's leader.
const DOWN_MS: Range<u64> = 2_000..15_000;
const BETWEEN_MS: Range<u64> = 3_000..14_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    /// `kill -9`; the worker is restarted after this time, or never.
    Kill(Option<Duration>),
    /// The worker is stopped for this time, with or without the processes that it started.
    Stop { time: Duration, is_whole: bool },
    /// A twentieth of a processor for worker, agents and hooks.
    Starve(Duration),
    /// `kill -9` for the server that leads the project's stream.
    Leader(Duration),
}

/// Returns the faults of a night, each with the delay before it.
pub(crate) fn plan(
    dice: &mut SeededRandom,
    lease: Duration,
    workers: usize,
    is_quick: bool,
) -> Vec<(Duration, Strike)> {
    let mut ms = |range: Range<u64>| Duration::from_millis(dice.within(range));
    if is_quick {
        let long = lease + ms(6_000..8_000);
        return vec![
            (ms(2_000..4_000), Strike::Kill(Some(long))),
            (long, Strike::Leader(ms(3_000..5_000))),
            (ms(3_000..5_000), Strike::Starve(ms(60_000..62_000))),
            (ms(1_000..2_000), Strike::Stop { time: long, is_whole: false }),
        ];
    }
    let mut all = Vec::new();
    let gone = workers / 4;
    all.extend((0..gone).map(|_| Strike::Kill(None)));
    all.extend((0..2 * workers).map(|_| Strike::Kill(Some(ms(DEAD_MS)))));
    for n in 0..workers {
        all.push(Strike::Stop { time: lease + ms(BEYOND_MS), is_whole: n.is_multiple_of(2) });
    }
    all.extend((0..workers.div_ceil(3)).map(|_| Strike::Starve(ms(STARVED_MS))));
    all.extend((0..2).map(|_| Strike::Leader(ms(DOWN_MS))));
    // One fault of each kind comes first, because the rest of the plan is dropped when the work is
    // done.
    let mut order: Vec<Strike> = Vec::new();
    for kind in 0..4 {
        let at = all.iter().position(|strike| strike.kind() == kind);
        order.extend(at.map(|at| all.remove(at)));
    }
    while let Some(strike) = dice.take(&mut all) {
        order.push(strike);
    }
    let between = |strike| (Duration::from_millis(dice.within(BETWEEN_MS)), strike);
    order.into_iter().map(between).collect()
}

impl Strike {
    fn kind(self) -> usize {
        match self {
            Strike::Starve(_) => 0,
            Strike::Kill(_) => 1,
            Strike::Leader(_) => 2,
            Strike::Stop { .. } => 3,
        }
    }
}

/// A period in which a worker or server was down or slowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(crate) worker: String,
    pub(crate) kind: Kind,
    pub(crate) from_ms: u64,
    /// `None` if the worker never came back.
    pub(crate) until_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Killed,
    Stopped,
    /// Alive, and its claims must not be ended.
    Starved,
    /// A server, not a worker.
    Leader,
}

/// The action that ends a fault later.
enum Healing {
    Start(usize),
    Continue(Vec<Pid>),
    Feed(usize),
    Node(usize),
}

/// State of a night while it runs.
pub(crate) struct Night<'y> {
    pub(crate) yard: &'y mut Yard,
    stream: String,
    worker_args: Vec<String>,
    plan: Vec<(Duration, Strike)>,
    struck: Instant,
    starved: Vec<Option<Starved>>,
    /// Pending actions, each with the index of the absence that it ends.
    due: Vec<(Instant, usize, Healing)>,
    pub(crate) absences: Vec<Absence>,
    /// Processes that outlived their worker.
    pub(crate) outlived: Vec<String>,
    pub(crate) means: Option<&'static str>,
    dice: SeededRandom,
}

impl<'y> Night<'y> {
    pub(crate) fn begin(
        yard: &'y mut Yard,
        worker_args: Vec<String>,
        mut plan: Vec<(Duration, Strike)>,
        dice: SeededRandom,
    ) -> Night<'y> {
        plan.reverse();
        let stream = stream::of_project(&yard.cluster, PROJECT).unwrap();
        yard.machines.iter_mut().for_each(|machine| machine.start(&worker_args));
        let starved = yard.machines.iter().map(|_| None).collect();
        Night {
            yard,
            stream,
            worker_args,
            plan,
            struck: Instant::now(),
            starved,
            due: Vec::new(),
            absences: Vec::new(),
            outlived: Vec::new(),
            means: None,
            dice,
        }
    }

    /// Injects the next fault if it is due, and ends faults that are due.
    pub(crate) fn step(&mut self, told: &Told) {
        let now = Instant::now();
        while let Some(at) = self.due.iter().position(|(until, ..)| *until <= now) {
            let (_, absence, healing) = self.due.remove(at);
            self.heal(absence, healing);
        }
        let Some((pause, strike)) = self.plan.last().copied() else { return };
        if self.struck.elapsed() >= pause && self.strike(strike, told) {
            self.plan.pop();
            self.struck = Instant::now();
        }
    }

    /// Drops the rest of the plan and ends all faults.
    pub(crate) fn end(&mut self) {
        self.plan.clear();
        for (_, absence, healing) in std::mem::take(&mut self.due) {
            self.heal(absence, healing);
        }
    }

    /// Injects a fault; returns whether there was a suitable worker or server.
    fn strike(&mut self, strike: Strike, told: &Told) -> bool {
        let time = match strike {
            Strike::Leader(time) => return self.strike_leader(time),
            Strike::Kill(back) => back,
            Strike::Stop { time, .. } | Strike::Starve(time) => Some(time),
        };
        let is_gone = time.is_none();
        let Some(victim) = self.victim(told, is_gone) else { return false };
        let machine = &mut self.yard.machines[victim];
        let from_ms = now_ms();
        let (kind, healing) = match strike {
            Strike::Kill(_) => {
                let left = machine.kill();
                let name = &machine.name;
                self.outlived.extend(left.iter().map(|found| format!("{name}: {}", found.line)));
                (Kind::Killed, Healing::Start(victim))
            }
            Strike::Stop { is_whole, .. } => {
                machine.signal(Signal::STOP);
                let mut stopped: Vec<Pid> = machine.pid().into_iter().collect();
                if is_whole {
                    for found in machine.processes() {
                        let _ = kill_process(found.pid, Signal::STOP);
                        stopped.push(found.pid);
                    }
                }
                (Kind::Stopped, Healing::Continue(stopped))
            }
            Strike::Starve(_) | Strike::Leader(_) => {
                let starved = Starved::begin(machine);
                self.means = Some(starved.means());
                self.starved[victim] = Some(starved);
                (Kind::Starved, Healing::Feed(victim))
            }
        };
        let worker = self.yard.machines[victim].name.clone();
        self.note(Absence { worker, kind, from_ms, until_ms: None }, time, healing);
        true
    }

    fn strike_leader(&mut self, time: Duration) -> bool {
        let Some(leader) = self.yard.cluster.leader_of(&self.stream) else { return false };
        let worker = self.yard.cluster.node(leader).name().to_owned();
        let from_ms = now_ms();
        self.yard.cluster.kill9(leader);
        let absence = Absence { worker, kind: Kind::Leader, from_ms, until_ms: None };
        self.note(absence, Some(time), Healing::Node(leader));
        true
    }

    fn note(&mut self, absence: Absence, time: Option<Duration>, healing: Healing) {
        if let Some(time) = time {
            self.due.push((Instant::now() + time, self.absences.len(), healing));
        }
        self.absences.push(absence);
    }

    /// Returns a healthy worker with claimed tasks, if enough other workers are healthy.
    fn victim(&mut self, told: &Told, is_gone: bool) -> Option<usize> {
        let all = self.yard.machines.len();
        let is_absent = |name: &str| {
            let mut of_it = self.absences.iter().filter(|absence| absence.worker == name);
            of_it.any(|absence| absence.until_ms.is_none())
        };
        let names: Vec<String> = self.yard.machines.iter().map(|one| one.name.clone()).collect();
        let well: Vec<usize> = (0..all).filter(|n| !is_absent(&names[*n])).collect();
        let gone = all - well.len();
        let least = if is_gone { all.div_ceil(2) + 1 } else { all / 2 };
        if well.len() <= least.max(1) || gone >= all {
            return None;
        }
        let mut busy: Vec<usize> =
            well.into_iter().filter(|n| told.held_by(&names[*n]).next().is_some()).collect();
        self.dice.take(&mut busy)
    }

    fn heal(&mut self, absence: usize, healing: Healing) {
        match healing {
            Healing::Start(machine) => {
                let args = self.worker_args.clone();
                self.yard.machines[machine].start(&args);
            }
            Healing::Continue(stopped) => {
                for pid in stopped {
                    // The process may have been killed meanwhile.
                    let _ = kill_process(pid, Signal::CONT);
                }
            }
            Healing::Feed(machine) => drop(self.starved[machine].take()),
            Healing::Node(node) => self.yard.cluster.restart(node),
        }
        self.absences[absence].until_ms = Some(now_ms());
    }
}
