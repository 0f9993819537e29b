//! Measures the resources that a job uses while it runs, and finds exceeded limits.
//!
//! A job that ends before the first check is never measured. Between two checks a job can exceed its limits: they end
//! jobs that would continue to grow.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getrlimit, kill_process,
    kill_process_group, setrlimit, waitpid,
};

use crate::descendants::JobProcesses;
use crate::limits::{ExceededLimit, ResourceLimits};
use crate::os;

/// Time between two checks. A job that ends before the first costs nothing.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// A check uses at most one part of this many of the keeper's time.
const CHECK_SHARE: u32 = 10;
/// Default limit of processes at the same time.
const PROCESSES_DEFAULT: u64 = 1_024;
/// Default limits as a share of the machine's memory, and of the free space on the disk.
const SHARE_DEFAULT: (u64, u64) = (3, 4);

/// Measures one job.
pub(crate) struct UsageWatch {
    limits: ResourceLimits,
    next: Instant,
    /// Threads on this machine at the last check without growth.
    threads: u16,
    /// Set by the first check.
    bounds: Option<UsageBounds>,
}

/// The limits of one job on this machine.
#[derive(Clone, Copy)]
struct UsageBounds {
    processes: u64,
    memory: u64,
    disk: u64,
    /// Bytes that the keeper and its reaped children had written before the job.
    written_before: u64,
}

impl UsageWatch {
    pub(crate) fn new(limits: ResourceLimits, started: Instant) -> UsageWatch {
        UsageWatch { limits, next: started + CHECK_EVERY, threads: os::threads(), bounds: None }
    }

    /// Returns the time of the next check.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Measures the job whose first process is `first`, and returns a limit that it exceeds.
    ///
    /// `cwd` selects the disk whose free space counts. Dead orphans are reaped.
    pub(crate) fn check(
        &mut self,
        processes: &JobProcesses,
        first: Pid,
        cwd: &Path,
    ) -> Option<ExceededLimit> {
        let start = Instant::now();
        let bounds = *self.bounds.get_or_insert_with(|| UsageBounds::new(self.limits, cwd));
        let is_paused = has_grown(&mut self.threads, bounds.processes / 2);
        let counted = CountedProcesses { processes, first, is_paused };
        let exceeded = bounds.exceeded_by(&counted);
        self.next = Instant::now() + CHECK_EVERY.max(start.elapsed() * CHECK_SHARE);
        exceeded
    }
}

/// Returns whether the machine has more than `by` new threads since `before`, and updates `before` if so.
///
/// With so many new processes, a search that visits one after another may never finish.
pub(crate) fn has_grown(before: &mut u16, by: u64) -> bool {
    let now = os::threads();
    // The count wraps around, so a smaller one is a negative growth.
    let growth = now.wrapping_sub(*before).cast_signed();
    let has_grown = u64::try_from(growth).is_ok_and(|growth| growth > by);
    if has_grown {
        *before = now;
    }
    has_grown
}

/// The processes of a job, which can be paused while they are counted.
struct CountedProcesses<'a> {
    processes: &'a JobProcesses,
    first: Pid,
    is_paused: bool,
}

impl CountedProcesses<'_> {
    /// Returns the processes, at most `most`.
    fn find(&self, most: usize) -> Vec<Pid> {
        if !self.is_paused {
            return self.processes.up_to(most, |_| {});
        }
        // The whole process group at once, which leaves time for processes outside of it. Processes that are gone need
        // no signal, here and below.
        let _ = kill_process_group(self.first, Signal::STOP);
        self.processes.up_to(most, |pid| {
            let _ = kill_process(pid, Signal::STOP);
        })
    }

    fn resume(&self, all: &[Pid]) {
        if self.is_paused {
            // Processes that are gone need no signal.
            let _ = kill_process_group(self.first, Signal::CONT);
            for pid in all {
                let _ = kill_process(*pid, Signal::CONT);
            }
        }
    }
}

impl UsageBounds {
    fn new(limits: ResourceLimits, cwd: &Path) -> UsageBounds {
        let share = |of: u64| of / SHARE_DEFAULT.1 * SHARE_DEFAULT.0;
        let memory = || share(os::machine_memory());
        let disk = || {
            let free =
                rustix::fs::statvfs(cwd).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
            free.map_or(u64::MAX, share)
        };
        UsageBounds {
            processes: limits.processes.unwrap_or(PROCESSES_DEFAULT),
            memory: limits.memory_bytes.unwrap_or_else(memory),
            disk: limits.disk_bytes.unwrap_or_else(disk),
            written_before: os::written(getpid()),
        }
    }

    fn exceeded_by(&self, counted: &CountedProcesses<'_>) -> Option<ExceededLimit> {
        let most = usize::try_from(self.processes).unwrap_or(usize::MAX).saturating_add(1);
        let mut all = counted.find(most);
        all.retain(|pid| *pid == counted.first || !reap(*pid));
        if all.len() as u64 > self.processes {
            return Some(ExceededLimit::Processes(self.processes));
        }
        counted.resume(&all);
        // This sum counts shared memory once per process. Only if it is too large, shared memory is divided.
        let sum = |of: fn(Pid) -> u64| sum(&all, of);
        if sum(os::own_memory) > self.memory && self.is_memory_exceeded(counted, most) {
            return Some(ExceededLimit::Memory { bytes: self.memory });
        }
        let by_keeper = os::written(getpid()).saturating_sub(self.written_before);
        let written = sum(os::written).saturating_add(by_keeper);
        (written > self.disk).then_some(ExceededLimit::Disk { bytes: self.disk })
    }

    /// Measures memory with shared pages divided, while the job is paused.
    ///
    /// When a process ends, the shares of the others grow. Shares read before and after that would add up to more than
    /// there is.
    fn is_memory_exceeded(&self, counted: &CountedProcesses<'_>, most: usize) -> bool {
        let counted = CountedProcesses { is_paused: true, ..*counted };
        let all = counted.find(most);
        let is_exceeded = sum(&all, os::proportional_memory) > self.memory;
        counted.resume(&all);
        is_exceeded
    }
}

fn sum(all: &[Pid], of: fn(Pid) -> u64) -> u64 {
    all.iter().map(|pid| of(*pid)).fold(0, u64::saturating_add)
}

/// Reaps a process, and returns whether it was a dead child of this one.
fn reap(pid: Pid) -> bool {
    waitpid(Some(pid), WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some())
}

/// Sets the largest file size for processes that start from now on. A process can raise it for itself.
pub(crate) fn limit_file_size(bytes: Option<u64>) {
    let Rlimit { current, maximum } = getrlimit(Resource::Fsize);
    let wanted = match (bytes, maximum) {
        (Some(bytes), Some(maximum)) => Some(bytes.min(maximum)),
        (bytes, maximum) => bytes.or(maximum),
    };
    if current != wanted {
        // Setting a limit that is at most the maximum does not fail.
        let _ = setrlimit(Resource::Fsize, Rlimit { current: wanted, maximum });
    }
}

/// Turns core files off, which would write the memory of a crashed job to disk.
pub(crate) fn disable_core_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    // Setting a limit that is at most the maximum does not fail.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}
