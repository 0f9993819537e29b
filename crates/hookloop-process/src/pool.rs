//! Jobs at the same time: a keeper for each, used again for later ones.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::ancestry::KeeperOwner;
use super::keeper::Kind;
use super::{Job, Keeper, ProcessError, Ran, Turns};

/// Hooks of one point at the same time; the next one waits.
pub const PARALLEL_MAX: usize = 8;
/// Jobs at the same time. More than the sessions of a worker have under way: an agent has a keeper for as long as its
/// turn lasts, and whoever waits for one must not wait for a turn.
const JOBS_MAX: usize = 4_096;
/// Keepers that stay for later jobs.
const IDLE_MAX: usize = PARALLEL_MAX;

/// Runs jobs at the same time, from any thread.
#[derive(Debug)]
pub struct KeeperPool {
    kind: Kind,
    keepers: Mutex<Keepers>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Keepers {
    idle: Vec<Keeper>,
    lent: usize,
}

impl KeeperPool {
    /// A pool of keepers that are this program.
    pub fn of_this_program() -> KeeperPool {
        KeeperPool::of(Kind::new(None))
    }

    /// A pool of keepers that are the program at `executable`.
    pub fn new(executable: PathBuf) -> KeeperPool {
        KeeperPool::of(Kind::new(Some(executable)))
    }

    fn of(kind: Kind) -> KeeperPool {
        KeeperPool { kind, keepers: Mutex::default(), returned: Condvar::new() }
    }

    /// A pool of keepers as they are where orphans can't be adopted, also where they can.
    pub fn marking(self) -> KeeperPool {
        KeeperPool::of(self.kind.marking())
    }

    /// A pool of keepers that name the project they work for to what they run.
    #[must_use]
    pub fn working_for(self, owner: KeeperOwner) -> KeeperPool {
        KeeperPool::of(self.kind.working_for(owner))
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
        while keepers.lent >= JOBS_MAX {
            keepers = self.returned.wait(keepers).unwrap_or_else(PoisonError::into_inner);
        }
        keepers.lent += 1;
        // The last one back is the one that is most likely to have its process.
        let idle = keepers.idle.pop();
        // A keeper costs nothing before its first job.
        let keeper = idle.unwrap_or_else(|| Keeper::of(self.kind.clone()));
        Lent { pool: self, keeper }
    }

    fn lock(&self) -> MutexGuard<'_, Keepers> {
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
        let mut keepers = self.pool.lock();
        keepers.lent -= 1;
        let surplus = match keepers.idle.len() < IDLE_MAX {
            true => {
                keepers.idle.push(keeper);
                None
            }
            false => Some(keeper),
        };
        drop(keepers);
        self.pool.returned.notify_one();
        // It takes a moment to end.
        drop(surplus);
    }
}
