//! A holder is frozen past its lease: another worker takes over, and the holder is refused when it
//! resumes.

use std::time::{Duration, Instant};

use hookloop_config::effective::EffectiveConfig;
use hookloop_core::command::Command;
use hookloop_core::task::TaskSpec;
use hookloop_engine::project::Project;
use hookloop_testbed::{Cluster, poll};
use rustix::process::Signal;

use crate::campaign::{Round, Verdict, open};
use crate::fleet::{Process, Site};
use crate::history::{Op, Operation, Outcome};
use crate::table::Row;
use crate::worker::Role;

pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// How long a holder works on a task: longer than the lease, so that only heartbeats keep the
/// claim.
pub(crate) const HOLD: Duration = Duration::from_secs(5);
/// Timeout of each step.
const PATIENCE: Duration = Duration::from_secs(40);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const TASKS: usize = 200;

pub(crate) fn round(round: &Round) -> Row {
    let cluster = Cluster::three();
    let site = Site::of(&cluster, &round.home, round.seed);
    add(&site, round);
    let mut workers: Vec<Process> =
        [(Role::Holder, "frozen"), (Role::Holder, "steady"), (Role::Observer, "observer")]
            .into_iter()
            .map(|(role, name)| Process::start(site.args(role, name), None))
            .collect();
    let (mut wrong, mut faults) = (Vec::new(), 0);
    let end = Instant::now() + round.duration;
    while faults == 0 || Instant::now() < end {
        faults += 1;
        wrong.extend(freeze(&workers[0], &workers[2], faults).err());
    }
    let mut verdict = Verdict::new(&cluster, &site);
    verdict.end(&mut workers);
    wrong.extend(check_steady(&workers[1].operations()));
    let mut row = verdict.judge(&workers, |_, _| wrong.clone());
    row.faults = faults;
    row
}

fn add(site: &Site, round: &Round) {
    let store = open(site, &round.home.join("first.db"));
    let project = Project::new(store, EffectiveConfig::default(), "campaign");
    for n in 0..TASKS {
        let id = format!("t-{n}").parse().unwrap();
        let spec = TaskSpec { goal: "hold me".to_owned(), ..TaskSpec::default() };
        project.execute(&Command::AddTask { id, spec, depends_on: vec![] }).unwrap();
    }
}

/// Freezes the holder during its next claim until the observer has completed the task, then thaws
/// it.
fn freeze(holder: &Process, observer: &Process, number: usize) -> Result<(), String> {
    let before = claims(holder).len();
    let claim = soon(|| claims(holder).get(before).cloned());
    let (task, epoch) = claim.ok_or(format!("{number}: the holder claims nothing"))?;
    holder.signal(Signal::STOP);
    let taken = soon(|| completion(observer, &task, epoch + 1));
    holder.signal(Signal::CONT);
    match taken {
        Some(Outcome::Done) => {}
        other => return Err(format!("{number}: {task} of a frozen holder: {other:?}")),
    }
    match soon(|| completion(holder, &task, epoch)) {
        Some(Outcome::Refused { .. }) => Ok(()),
        other => Err(format!("{number}: the holder of {task} resumed and got {other:?}")),
    }
}

/// Polls the histories until `ask` returns a value.
fn soon<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    poll(PATIENCE, || {
        std::thread::sleep(LOOK_EVERY);
        ask()
    })
}

fn claims(worker: &Process) -> Vec<(String, u64)> {
    let claims = worker.operations().into_iter().filter_map(|operation| match operation.outcome {
        Outcome::Claimed { task, epoch } => Some((task, epoch)),
        _ => None,
    });
    claims.collect()
}

/// Returns the outcome of a worker's attempt to complete a task.
fn completion(worker: &Process, task: &str, epoch: u64) -> Option<Outcome> {
    worker.operations().into_iter().find_map(|operation| match &operation.op {
        Op::Complete { task: of, epoch: by, .. } if of == task && *by == epoch => {
            operation.ended_ms.map(|_| operation.outcome)
        }
        _ => None,
    })
}

/// Checks that no holder that sends heartbeats loses its claim.
fn check_steady(operations: &[Operation]) -> Vec<String> {
    let refused = operations.iter().filter(|operation| {
        matches!(operation.op, Op::Complete { .. }) && operation.outcome != Outcome::Done
    });
    refused.map(|operation| format!("a steady holder: {operation:?}")).collect()
}
