//! Tasks that claimants of this process are about to claim, so that they do not choose the same one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of the tasks, shared by the clones of a project.
///
/// Other processes have their own set, and the log decides between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlightClaims(Arc<Mutex<HashSet<u64>>>);

/// Marks one task as sought until it is dropped.
#[derive(Debug)]
pub(crate) struct ClaimGuard {
    sought: InFlightClaims,
    num: u64,
}

impl InFlightClaims {
    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn among<T>(&self, ask: impl FnOnce(&HashSet<u64>) -> T) -> T {
        ask(&self.lock())
    }

    pub(crate) fn hold(&self, num: u64) -> ClaimGuard {
        self.lock().insert(num);
        ClaimGuard { sought: self.clone(), num }
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        self.sought.lock().remove(&self.num);
    }
}
