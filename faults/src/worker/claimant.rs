//! Claims with many threads that share one store, until no task is left.

use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookloop_engine::claim::WantedTask;
use hookloop_engine::project::Project;

use super::Worker;
use crate::claims::{THREADS, TYPES};
use crate::history::{Op, Outcome};

/// Long enough that no claim expires.
const LEASE: Duration = Duration::from_secs(3_600);
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn run(mut worker: Worker) {
    let spare = worker.project.clone();
    let project = RwLock::new(std::mem::replace(&mut worker.project, spare));
    let claims = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (worker, project, claims) = (&worker, &project, &claims);
            scope.spawn(move || claim_all(worker, project, thread, claims));
        }
        if let Some(after) = worker.args.reopen_after {
            while claims.load(Ordering::Relaxed) < after && !worker.stop.is_set() {
                std::thread::sleep(PAUSE);
            }
            reopen(&worker, &project);
        }
    });
}

fn claim_all(worker: &Worker, project: &RwLock<Project>, thread: usize, claims: &AtomicU64) {
    for n in 0.. {
        if worker.stop.is_set() {
            return;
        }
        let agent = format!("{}.{thread}.{n}", worker.args.name);
        let now = project.read().unwrap().clone();
        match worker.claim(&now, agent, wanted(thread), LEASE) {
            Outcome::Claimed { .. } => _ = claims.fetch_add(1, Ordering::Relaxed),
            _ => std::thread::sleep(PAUSE),
        }
    }
}

/// One thread in four accepts any type; the others serve two types each.
fn wanted(thread: usize) -> WantedTask {
    match thread % 4 {
        0 => WantedTask::Any,
        n => WantedTask::Types(
            TYPES
                .iter()
                .enumerate()
                .filter(|(i, _)| i + 1 != n)
                .map(|(_, t)| (*t).to_owned())
                .collect(),
        ),
    }
}

/// Deletes the view during the work and rebuilds it from the log.
fn reopen(worker: &Worker, project: &RwLock<Project>) {
    worker.history.record(Op::Reopen, || {
        let view = worker.args.view();
        for file in [view.clone(), view.with_extension("db-wal"), view.with_extension("db-shm")] {
            let _ = std::fs::remove_file(file);
        }
        *project.write().unwrap() = worker.args.open()?;
        Ok(Outcome::Done)
    });
}
