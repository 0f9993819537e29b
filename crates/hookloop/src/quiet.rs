//! Whether only errors are printed on standard error (`-q`). Like the choice of colour, it holds for the whole process.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn set() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_set() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}
