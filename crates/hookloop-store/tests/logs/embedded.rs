//! The logs that exist, and the suite that all of them pass.

use std::sync::Arc;

use hookloop_store::memory::MemoryLog;
use hookloop_store::store::Store;

fn in_a_file() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Store::open(&dir.path().join("log.db")).unwrap(), dir)
}

conformance!(memory, (MemoryLog::default(), ()));
conformance!(sqlite, in_a_file());
conformance!(over_a_log_elsewhere, (Store::over(Arc::new(MemoryLog::default())).unwrap(), ()));
