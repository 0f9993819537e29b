//! A machine that is limited to a twentieth of a processor.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::machine::Machine;

/// Scheduling period, and the share of it in which the machine may run: a twentieth.
const PERIOD: Duration = Duration::from_millis(100);
const SHARE: Duration = Duration::from_millis(5);
/// Interval of the search for new processes.
const LOOK: Duration = Duration::from_secs(1);
/// Number of passes: a later pass finds processes that were forked during an earlier one.
const MOVES: usize = 3;

const V1: &str = "/sys/fs/cgroup/cpu";
const V2: &str = "/sys/fs/cgroup";

pub(crate) enum Starved {
    /// A cgroup below this directory.
    Group { root: &'static str, own: PathBuf },
    /// Stopping and continuing the processes, if there are no cgroups.
    Turns { is_over: Arc<AtomicBool>, thread: Option<JoinHandle<()>> },
}

impl Starved {
    pub(crate) fn begin(machine: &Machine) -> Starved {
        let name = format!("hookloop-night-{}-{}", std::process::id(), machine.name);
        match group(V1, &name).or_else(|| group(V2, &name)) {
            Some((root, own)) => {
                for _ in 0..MOVES {
                    for found in machine.processes() {
                        let pid = found.pid.as_raw_nonzero().to_string();
                        let _ = fs::write(own.join("cgroup.procs"), pid);
                    }
                }
                Starved::Group { root, own }
            }
            None => turns(machine),
        }
    }

    /// Returns the name of the method, for the table.
    pub(crate) fn means(&self) -> &'static str {
        match self {
            Starved::Group { .. } => "cgroup",
            Starved::Turns { .. } => "stops",
        }
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        match self {
            Starved::Group { root, own } => {
                let end = Instant::now() + LOOK;
                while fs::remove_dir(&own).is_err() && Instant::now() < end {
                    let all = fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default();
                    for pid in all.lines() {
                        let _ = fs::write(PathBuf::from(*root).join("cgroup.procs"), pid);
                    }
                }
            }
            Starved::Turns { is_over, thread } => {
                is_over.store(true, Ordering::Relaxed);
                let _ = thread.take().map(JoinHandle::join);
            }
        }
    }
}

/// Creates a cgroup that limits its members to their share; returns `None` if that is not possible.
fn group(root: &'static str, name: &str) -> Option<(&'static str, PathBuf)> {
    let own = PathBuf::from(root).join(name);
    let (share, period) = (SHARE.as_micros(), PERIOD.as_micros());
    fs::create_dir(&own).ok()?;
    let is_set = match root {
        V1 => {
            fs::write(own.join("cpu.cfs_period_us"), period.to_string()).is_ok()
                && fs::write(own.join("cpu.cfs_quota_us"), share.to_string()).is_ok()
        }
        _ => fs::write(own.join("cpu.max"), format!("{share} {period}")).is_ok(),
    };
    if !is_set {
        let _ = fs::remove_dir(&own);
    }
    is_set.then_some((root, own))
}

fn turns(machine: &Machine) -> Starved {
    let is_over = Arc::new(AtomicBool::new(false));
    let of_thread = Arc::clone(&is_over);
    let home = machine.home().to_owned();
    let thread = std::thread::spawn(move || {
        let (mut all, mut looked): (Vec<Pid>, Option<Instant>) = (Vec::new(), None);
        let each = |all: &[Pid], signal| {
            for pid in all {
                // The process may have ended meanwhile.
                let _ = kill_process(*pid, signal);
            }
        };
        while !of_thread.load(Ordering::Relaxed) {
            if looked.is_none_or(|looked| looked.elapsed() > LOOK) {
                all = super::machine::processes_of(&home).iter().map(|found| found.pid).collect();
                looked = Some(Instant::now());
            }
            each(&all, Signal::STOP);
            std::thread::sleep(PERIOD - SHARE);
            each(&all, Signal::CONT);
            std::thread::sleep(SHARE);
        }
    });
    Starved::Turns { is_over, thread: Some(thread) }
}
