//! Holds a task, or watches other holders.

use std::time::{Duration, Instant};

use hookloop_engine::claim::WantedTask;
use hookloop_engine::error::EngineError;
use hookloop_engine::lease::SilenceDetector;

use super::{Claim, Worker, by_holder, id};
use crate::expiry::{HOLD, LEASE};
use crate::history::{Op, Outcome};

const PAUSE: Duration = Duration::from_millis(100);

/// Claims, sends heartbeats for a while, and completes. The campaign freezes it in between.
pub(super) fn hold(worker: &Worker) {
    for n in 0.. {
        if worker.stop.is_set() {
            return;
        }
        let name = format!("{}.{n}", worker.args.name);
        let claimed = worker.claim(&worker.project, name.clone(), WantedTask::Any, LEASE);
        let Outcome::Claimed { task, epoch } = claimed else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let claim = Claim { task, epoch };
        let end = Instant::now() + HOLD;
        while Instant::now() < end {
            worker.beat(&claim);
            std::thread::sleep(LEASE / 8);
        }
        worker.complete(&claim, name, by_holder);
    }
}

/// Takes over and completes the claims of silent holders.
pub(super) fn observe(worker: &Worker) {
    let mut watch = SilenceDetector::default();
    let mut count = 0;
    while !worker.stop.is_set() {
        // Claims that cannot be read now are read again in the next pass.
        for silent in silent(worker, &mut watch).unwrap_or_default() {
            let agent = format!("{}.{count}", worker.args.name);
            count += 1;
            let Claim { task, epoch } = silent;
            let op = Op::TakeOver { agent: agent.clone(), task: task.clone(), silent_epoch: epoch };
            let taken = worker.history.record(op, || {
                let taken = worker.project.take_over(&id(&task), epoch, &agent, LEASE)?;
                Ok(Outcome::Claimed { task: task.clone(), epoch: taken.epoch })
            });
            if let Outcome::Claimed { task, epoch } = taken {
                worker.complete(&Claim { task, epoch }, agent, by_holder);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns claims whose holders missed their heartbeats for a whole lease.
fn silent(worker: &Worker, watch: &mut SilenceDetector) -> Result<Vec<Claim>, EngineError> {
    let mut silent = Vec::new();
    for row in worker.project.read(|view| view.claimed())? {
        let sighting = worker.project.look_at(&row.task.id, watch)?;
        if sighting.is_over() {
            let task = row.task.id.to_string();
            silent.push(Claim { task, epoch: sighting.claim.epoch });
        }
    }
    Ok(silent)
}
