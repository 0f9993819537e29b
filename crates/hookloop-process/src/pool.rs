//! Runs jobs at the same time, each with a keeper of its own. Keepers are reused.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::ProcessError;
use crate::job::{Job, JobResult, JobSource};
use crate::keeper::{Keeper, KeeperSettings};

/// A sensible number of concurrent short jobs. This many idle keepers stay for later jobs.
pub const PARALLEL_MAX: usize = 8;
/// The largest number of jobs at the same time. Later ones wait.
///
/// It is far above the number of long jobs that a program has, so that a short job does not wait for a long one.
const JOBS_MAX: usize = 4_096;
/// The largest number of idle keepers.
const IDLE_MAX: usize = PARALLEL_MAX;

/// Runs jobs at the same time, from any thread.
#[derive(Debug)]
pub struct KeeperPool {
    settings: KeeperSettings,
    keepers: Mutex<PooledKeepers>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct PooledKeepers {
    idle: Vec<Keeper>,
    lent: usize,
}

impl KeeperPool {
    /// Creates a pool whose keepers run this program. See [`Keeper::of_this_program`].
    pub fn of_this_program() -> KeeperPool {
        KeeperPool::with(KeeperSettings::new(None))
    }

    /// Creates a pool whose keepers run the program at `executable`.
    pub fn new(executable: PathBuf) -> KeeperPool {
        KeeperPool::with(KeeperSettings::new(Some(executable)))
    }

    fn with(settings: KeeperSettings) -> KeeperPool {
        KeeperPool { settings, keepers: Mutex::default(), returned: Condvar::new() }
    }

    /// Returns the path of the program that the keepers run.
    pub fn program(&self) -> std::io::Result<PathBuf> {
        match &self.settings.executable {
            Some(executable) => Ok(executable.clone()),
            None => std::env::current_exe(),
        }
    }

    /// Makes keepers mark their jobs, as on systems where a process cannot adopt orphans.
    #[must_use]
    pub fn marking(self) -> KeeperPool {
        KeeperPool::with(self.settings.marking())
    }

    /// Sets the environment of the keepers. See [`Keeper::with_environment`].
    #[must_use]
    pub fn with_environment(self, variables: Vec<(OsString, OsString)>) -> KeeperPool {
        KeeperPool::with(self.settings.with_environment(variables))
    }

    /// Runs a job to its end. A job that was cancelled before is not started.
    pub fn run(&self, job: Job<'_>) -> Result<JobResult, ProcessError> {
        self.lend().keeper.run(job)
    }

    /// Starts a keeper ahead of the first job.
    pub fn get_ready(&self) {
        self.lend().keeper.get_ready();
    }

    /// Runs jobs one after another, without a gap between them.
    pub fn run_sequence<'a>(&self, jobs: &mut impl JobSource<'a>) {
        self.lend().keeper.run_sequence(jobs);
    }

    fn lend(&self) -> LentKeeper<'_> {
        let mut keepers = self.lock();
        while keepers.lent >= JOBS_MAX {
            keepers = self.returned.wait(keepers).unwrap_or_else(PoisonError::into_inner);
        }
        keepers.lent += 1;
        // The last one returned is the most likely to have a running process.
        let idle = keepers.idle.pop();
        // A keeper starts no process before its first job.
        let keeper = idle.unwrap_or_else(|| Keeper::with(self.settings.clone()));
        LentKeeper { pool: self, keeper }
    }

    fn lock(&self) -> MutexGuard<'_, PooledKeepers> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A keeper that returns to its pool, even if a filter of the job panics.
struct LentKeeper<'a> {
    pool: &'a KeeperPool,
    keeper: Keeper,
}

impl Drop for LentKeeper<'_> {
    fn drop(&mut self) {
        let keeper = std::mem::replace(&mut self.keeper, Keeper::new(PathBuf::new()));
        let mut keepers = self.pool.lock();
        keepers.lent -= 1;
        let mut surplus = None;
        if keepers.idle.len() < IDLE_MAX {
            keepers.idle.push(keeper);
        } else {
            surplus = Some(keeper);
        }
        drop(keepers);
        self.pool.returned.notify_one();
        // Ending a keeper takes a moment, so the pool is not locked meanwhile.
        drop(surplus);
    }
}
