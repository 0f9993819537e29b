//! What a hook uses of the machine, looked at while it runs; and what is too much.
//!
//! A hook that ends soon is not looked at. One that takes more between two looks than the machine has gets
//! that far: limits end what would go on.

use std::path::Path;
use std::time::{Duration, Instant};

use hookloop_core::limits::{Limit, Limits};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getrlimit, kill_process,
    kill_process_group, setrlimit, waitpid,
};

use super::descendants::Kept;
use super::os;

/// Between two looks. A hook that ends before the first costs nothing.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The share of its time that a keeper looks, at most: one part of this.
const LOOK_SHARE: u32 = 10;
/// Processes at the same time, for hooks that do not say.
const PROCESSES_DEFAULT: u64 = 1_024;
/// Of the machine's memory, and of what is free on the disk, for hooks that do not say: three quarters.
const SHARE_DEFAULT: (u64, u64) = (3, 4);

/// Watches over one hook.
pub(super) struct Watch {
    limits: Limits,
    next: Instant,
    /// Threads on this machine, when there were no more than there should be.
    threads: u16,
    /// Known from the first look on.
    bounds: Option<Bounds>,
}

/// What is too much, for one hook on this machine.
#[derive(Clone, Copy)]
struct Bounds {
    processes: u64,
    memory: u64,
    disk: u64,
    /// What the keeper had written before, with those that it waited for.
    written_before: u64,
}

impl Watch {
    pub(super) fn new(limits: Limits, started: Instant) -> Watch {
        Watch { limits, next: started + LOOK_EVERY, threads: os::threads(), bounds: None }
    }

    /// When to look next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Looks at the hook whose first process is `first` and which runs in `cwd`; takes in its dead orphans.
    pub(super) fn look(&mut self, kept: &Kept, first: Pid, cwd: &Path) -> Option<Limit> {
        let start = Instant::now();
        let bounds = *self.bounds.get_or_insert_with(|| Bounds::new(self.limits, cwd));
        let is_growing = has_grown(&mut self.threads, bounds.processes / 2);
        let crowd = Crowd { kept, first, stands_still: is_growing };
        let passed = bounds.passed(&crowd);
        self.next = Instant::now() + LOOK_EVERY.max(start.elapsed() * LOOK_SHARE);
        passed
    }
}

/// Whether the machine has that many more threads than before. Then it could be that whoever looks at one
/// process after the other does not get done.
pub(super) fn has_grown(before: &mut u16, by: u64) -> bool {
    let now = os::threads();
    // The count begins again at some point; a smaller one is a negative growth.
    let growth = now.wrapping_sub(*before).cast_signed();
    let has_grown = u64::try_from(growth).is_ok_and(|growth| growth > by);
    if has_grown {
        *before = now;
    }
    has_grown
}

/// The processes of a hook. They may have to stand still while they are counted.
struct Crowd<'a> {
    kept: &'a Kept,
    first: Pid,
    stands_still: bool,
}

impl Crowd<'_> {
    /// No more than `most`.
    fn count(&self, most: usize) -> Vec<Pid> {
        if !self.stands_still {
            return self.kept.up_to(most, |_| {});
        }
        // All of a group at once, so that there is time for those who left it.
        let _ = kill_process_group(self.first, Signal::STOP);
        self.kept.up_to(most, |pid| {
            let _ = kill_process(pid, Signal::STOP);
        })
    }

    fn go_on(&self, all: &[Pid]) {
        if self.stands_still {
            let _ = kill_process_group(self.first, Signal::CONT);
            for pid in all {
                let _ = kill_process(*pid, Signal::CONT);
            }
        }
    }
}

impl Bounds {
    fn new(limits: Limits, cwd: &Path) -> Bounds {
        let share = |of: u64| of / SHARE_DEFAULT.1 * SHARE_DEFAULT.0;
        let memory = || share(os::machine_memory());
        let disk = || {
            let free =
                rustix::fs::statvfs(cwd).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
            free.map_or(u64::MAX, share)
        };
        Bounds {
            processes: limits.processes.unwrap_or(PROCESSES_DEFAULT),
            memory: limits.memory_bytes.unwrap_or_else(memory),
            disk: limits.disk_bytes.unwrap_or_else(disk),
            written_before: os::written(getpid()),
        }
    }

    fn passed(&self, crowd: &Crowd<'_>) -> Option<Limit> {
        let most = usize::try_from(self.processes).unwrap_or(usize::MAX).saturating_add(1);
        let mut all = crowd.count(most);
        all.retain(|pid| *pid == crowd.first || !take_in(*pid));
        if all.len() as u64 > self.processes {
            return Some(Limit::Processes(self.processes));
        }
        crowd.go_on(&all);
        // What processes share is in each one's count; who is over by that count is looked at closely.
        let sum = |of: fn(Pid) -> u64| sum(&all, of);
        if sum(os::own_memory) > self.memory && self.is_memory_passed(crowd, most) {
            return Some(Limit::Memory { bytes: self.memory });
        }
        let before = self.written_before;
        let written = sum(os::written).saturating_add(os::written(getpid()).saturating_sub(before));
        (written > self.disk).then_some(Limit::Disk { bytes: self.disk })
    }

    /// They stand still meanwhile: when one of them ends, the parts of the others grow, and who is read
    /// before and who is read after that would add up to more than there is.
    fn is_memory_passed(&self, crowd: &Crowd<'_>, most: usize) -> bool {
        let crowd = Crowd { stands_still: true, ..*crowd };
        let all = crowd.count(most);
        let is_passed = sum(&all, os::proportional_memory) > self.memory;
        crowd.go_on(&all);
        is_passed
    }
}

fn sum(all: &[Pid], of: fn(Pid) -> u64) -> u64 {
    all.iter().map(|pid| of(*pid)).fold(0, u64::saturating_add)
}

/// Takes in a dead orphan. Whoever is not is an error, or an answer.
fn take_in(pid: Pid) -> bool {
    waitpid(Some(pid), WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some())
}

/// Sets how long a file may get that the processes to come write, as far as they do not change that.
pub(super) fn limit_files(bytes: Option<u64>) {
    let Rlimit { current, maximum } = getrlimit(Resource::Fsize);
    let wanted = match (bytes, maximum) {
        (Some(bytes), Some(maximum)) => Some(bytes.min(maximum)),
        (bytes, maximum) => bytes.or(maximum),
    };
    if current != wanted {
        // A lower limit of one's own can always be set.
        let _ = setrlimit(Resource::Fsize, Rlimit { current: wanted, maximum });
    }
}

/// What a crashed hook had in memory stays out of files.
pub(super) fn no_core_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}
