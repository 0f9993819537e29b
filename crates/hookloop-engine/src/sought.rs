//! Tasks that claimants of this process are about to claim, so that they do not choose the same one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of the tasks, shared by the clones of a project.
///
/// Other processes have their own set, and the log decides between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sought(Arc<Mutex<HashSet<u64>>>);

/// Marks one task as sought until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    sought: Sought,
    num: u64,
}

impl Sought {
    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn among<T>(&self, ask: impl FnOnce(&HashSet<u64>) -> T) -> T {
        ask(&self.lock())
    }

    pub(crate) fn hold(&self, num: u64) -> Hold {
        self.lock().insert(num);
        Hold { sought: self.clone(), num }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.sought.lock().remove(&self.num);
    }
}
