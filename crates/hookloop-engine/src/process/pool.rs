//! Jobs at the same time: a keeper for each, used again for later ones.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Job, Keeper, ProcessError, Ran, Turns};

/// Jobs at the same time; the next one waits.
pub const PARALLEL_MAX: usize = 8;

/// Runs up to [`PARALLEL_MAX`] jobs at the same time, from any thread.
#[derive(Debug)]
pub struct KeeperPool {
    keepers: Mutex<Vec<Keeper>>,
    returned: Condvar,
}

impl KeeperPool {
    /// A pool of keepers that are this program.
    pub fn of_this_program() -> KeeperPool {
        KeeperPool::of(Keeper::of_this_program)
    }

    /// A pool of keepers that are the program at `executable`.
    pub fn new(executable: PathBuf) -> KeeperPool {
        KeeperPool::of(|| Keeper::new(executable.clone()))
    }

    /// A keeper costs nothing before its first job.
    fn of(keeper: impl Fn() -> Keeper) -> KeeperPool {
        let keepers = (0..PARALLEL_MAX).map(|_| keeper()).collect();
        KeeperPool { keepers: Mutex::new(keepers), returned: Condvar::new() }
    }

    pub fn run(&self, job: Job<'_>) -> Result<Ran, ProcessError> {
        self.lend().keeper.run(job)
    }

    /// Starts a keeper ahead of the first job.
    pub fn get_ready(&self) {
        self.lend().keeper.get_ready();
    }

    /// Runs jobs one after the other, without a gap between them.
    pub fn run_in_turn<'a>(&self, turns: &mut impl Turns<'a>) {
        self.lend().keeper.run_in_turn(turns);
    }

    fn lend(&self) -> Lent<'_> {
        let mut keepers = self.lock();
        loop {
            // The last one back is the one that is most likely to have its process.
            if let Some(keeper) = keepers.pop() {
                return Lent { pool: self, keeper };
            }
            keepers = self.returned.wait(keepers).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Keeper>> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A keeper that goes back to its pool, also when a job's filter panics.
struct Lent<'a> {
    pool: &'a KeeperPool,
    keeper: Keeper,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let keeper = std::mem::replace(&mut self.keeper, Keeper::new(PathBuf::new()));
        self.pool.lock().push(keeper);
        self.pool.returned.notify_one();
    }
}
