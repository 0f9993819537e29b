//! The process table as the `sysinfo` library reads it, for systems other than Linux.

use std::ffi::OsString;

use rustix::process::{Pid, getpid};
use sysinfo::{Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

use super::ProcessStat;

/// Returns whether the process table shows this process.
pub(crate) fn sees_itself() -> bool {
    stat(getpid()).is_some()
}

pub(crate) fn stat(pid: Pid) -> Option<ProcessStat> {
    one(pid, ProcessRefreshKind::nothing(), stat_of)
}

/// Returns all processes of the machine.
pub(crate) fn all_processes() -> Vec<(Pid, ProcessStat)> {
    let table = table(ProcessRefreshKind::nothing());
    let all = table.processes().values().filter(|process| process.thread_kind().is_none());
    all.filter_map(|process| Some((pid_of(process.pid())?, stat_of(process)))).collect()
}

/// Returns all processes with their initial environment, as far as this user may read it.
///
/// During `exec` a process has an empty environment for a moment.
pub(crate) fn variables() -> impl Iterator<Item = (Pid, Vec<OsString>)> {
    let table = table(ProcessRefreshKind::nothing().with_environ(UpdateKind::Always));
    let of = |process: &Process| Some((pid_of(process.pid())?, process.environ().to_vec()));
    let found: Vec<_> = table.processes().values().filter_map(of).collect();
    found.into_iter()
}

/// Returns the arguments of a process, beginning with its own name.
pub(crate) fn arguments(pid: Pid) -> Vec<OsString> {
    let wanted = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always);
    one(pid, wanted, |process| process.cmd().to_vec()).unwrap_or_default()
}

/// Returns the working directory of a process, as far as this user may read it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn working_directory(pid: Pid) -> Option<std::path::PathBuf> {
    let wanted = ProcessRefreshKind::nothing().with_cwd(UpdateKind::Always);
    one(pid, wanted, |process| process.cwd().map(std::path::Path::to_owned)).flatten()
}

/// Returns the user of a process.
pub(crate) fn real_user(pid: Pid) -> Option<u32> {
    let wanted = ProcessRefreshKind::nothing().with_user(UpdateKind::Always);
    one(pid, wanted, |process| process.user_id().map(|user| **user)).flatten()
}

/// Returns the program name of a process, as `ps` shows it.
pub(crate) fn program_name(pid: Pid) -> Option<String> {
    let name = |process: &Process| process.name().to_string_lossy().into_owned();
    one(pid, ProcessRefreshKind::nothing(), name)
}

/// Returns the environment that a process was started with.
pub(crate) fn variables_of(pid: Pid) -> Vec<OsString> {
    let wanted = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    one(pid, wanted, |process| process.environ().to_vec()).unwrap_or_default()
}

/// Returns the memory of this machine, in bytes.
pub(crate) fn machine_memory() -> u64 {
    let mut system = System::new();
    system.refresh_memory();
    system.total_memory()
}

/// Returns the memory of a process, in bytes.
pub(crate) fn own_memory(pid: Pid) -> u64 {
    one(pid, ProcessRefreshKind::nothing().with_memory(), Process::memory).unwrap_or(0)
}

/// Returns the bytes that a process wrote to disks.
pub(crate) fn written(pid: Pid) -> u64 {
    let wanted = ProcessRefreshKind::nothing().with_disk_usage();
    one(pid, wanted, |process| process.disk_usage().total_written_bytes).unwrap_or(0)
}

fn one<T>(pid: Pid, wanted: ProcessRefreshKind, of: impl FnOnce(&Process) -> T) -> Option<T> {
    let pid = sysinfo::Pid::from_u32(pid.as_raw_nonzero().get().cast_unsigned());
    let mut system = System::new();
    system.refresh_processes_specifics(
        ProcessesToUpdate::Some(&[pid]),
        true,
        wanted.without_tasks(),
    );
    system.process(pid).map(of)
}

fn table(wanted: ProcessRefreshKind) -> System {
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, wanted.without_tasks());
    system
}

fn stat_of(process: &Process) -> ProcessStat {
    ProcessStat {
        dead: matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead),
        stopped: matches!(process.status(), ProcessStatus::Stop),
        parent: process.parent().and_then(pid_of),
        session: process.session_id().and_then(pid_of),
        started: Some(process.start_time()),
    }
}

fn pid_of(pid: sysinfo::Pid) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid.as_u32()).ok()?)
}

/// Compares the table with `/proc`.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use rustix::process::{Signal, kill_process};

    use super::super::linux;
    use super::*;

    #[test]
    fn the_table_agrees_with_proc() {
        let mut command = Command::new("sleep");
        let mut child = command.arg("60").env_clear().env("HOOKLOOP_TABLE", "x y").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let same = |stat: ProcessStat| ProcessStat { started: None, ..stat };
        let start = std::time::Instant::now();
        // `exec` sets the environment a moment after the arguments.
        let own = Some((pid, vec!["HOOKLOOP_TABLE=x y".into()]));
        while linux::variables().find(|(of, _)| *of == pid) != own {
            assert!(start.elapsed() < std::time::Duration::from_secs(10));
        }
        assert_eq!(same(stat(pid).unwrap()), same(linux::stat(pid).unwrap()));
        assert_eq!(arguments(pid), linux::arguments(pid));
        assert_eq!(real_user(pid), linux::real_user(pid));
        assert_eq!(program_name(pid), linux::program_name(pid));
        assert_eq!(variables_of(pid), linux::variables_of(pid));
        assert_eq!(variables().find(|(of, _)| *of == pid), own);
        assert!(all_processes().contains(&(pid, stat(pid).unwrap())));
        assert!(own_memory(pid) > 0 && machine_memory() > own_memory(pid));
        assert_eq!(written(pid), linux::written(pid));
        kill_process(pid, Signal::STOP).unwrap();
        while !stat(pid).unwrap().stopped {
            assert!(start.elapsed() < std::time::Duration::from_secs(10));
        }
        child.kill().unwrap();
        while stat(pid).is_some_and(|stat| !stat.dead) {
            assert!(start.elapsed() < std::time::Duration::from_secs(10));
        }
        child.wait().unwrap();
        assert_eq!(stat(pid), None);
        assert!(sees_itself());
    }
}
