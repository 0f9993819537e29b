//! Dispatches deferred work concurrently with other dispatchers, without a lock.

use std::time::Duration;

use super::Worker;
use crate::history::{Op, Outcome};

const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn run(worker: &Worker) {
    while !worker.stop.is_set() {
        worker.history.record(Op::Dispatch, || {
            worker.project.dispatch()?;
            worker.project.run_workflows()?;
            Ok(Outcome::Done)
        });
        std::thread::sleep(PAUSE);
    }
}
