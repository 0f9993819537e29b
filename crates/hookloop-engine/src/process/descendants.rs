//! Who a process started, and who those started; who is in a session. Both by `/proc`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Gives `visit` every descendant of a process, dead ones that nobody waited for included, and each before
/// its own children are looked for: who is stopped by `visit` has no further children.
///
/// What forks or loses its parent meanwhile may be missing, so look again until there is none.
pub(super) fn visit(ancestor: Pid, visit: impl FnMut(Pid)) {
    walk(ancestor, usize::MAX, visit);
}

/// Descendants of a process, no more than `max` of them, each after `visit` was given it.
pub(super) fn up_to(ancestor: Pid, max: usize, visit: impl FnMut(Pid)) -> Vec<Pid> {
    let mut found = walk(ancestor, max, visit);
    found.truncate(max);
    found
}

/// Stops all descendants of a process, parents before their children, so that what forks all the time does
/// not get away; tells who they are.
pub(super) fn stopped(ancestor: Pid) -> Vec<Pid> {
    walk(ancestor, usize::MAX, |pid| {
        let _ = kill_process(pid, Signal::STOP);
    })
}

/// Who started this process, and who started that, no more than `max` of them.
pub(super) fn ancestors(max: usize) -> Vec<Pid> {
    let parent = |pid: &Pid| stat(*pid).and_then(|stat| stat.parent);
    std::iter::successors(parent(&rustix::process::getpid()), parent).take(max).collect()
}

/// Whether `/proc` is that of this process's own world.
pub(super) fn sees_itself() -> bool {
    let own = std::process::id().to_string();
    fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == own.as_str())
}

/// Stops to look when it has found `max`.
fn walk(ancestor: Pid, max: usize, mut visit: impl FnMut(Pid)) -> Vec<Pid> {
    let table = (!has_children_files()).then(children_by_parent);
    let children = |pid: Pid| match &table {
        Some(table) => table.get(&pid).cloned().unwrap_or_default(),
        None => children_by_file(pid),
    };
    let mut found = children(ancestor);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        visit(pid);
        if found.len() < max {
            found.extend(children(pid));
        }
        next += 1;
    }
    found
}

/// Whether the kernel was built with the files that name a thread's children.
fn has_children_files() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

/// The children of a process, dead ones that nobody waited for included.
pub(super) fn children(pid: Pid) -> Vec<Pid> {
    match has_children_files() {
        true => children_by_file(pid),
        false => children_by_parent().remove(&pid).unwrap_or_default(),
    }
}

/// The children of each of a process's threads.
fn children_by_file(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(children.split_ascii_whitespace().filter_map(pid_of));
    }
    found
}

/// The same for all processes of the machine.
fn children_by_parent() -> HashMap<Pid, Vec<Pid>> {
    let mut table: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (pid, stat) in all_processes() {
        if let Some(parent) = stat.parent {
            table.entry(parent).or_default().push(pid);
        }
    }
    table
}

/// The living processes of a session.
pub(super) fn in_session(session: Pid) -> Vec<Pid> {
    let members = all_processes().filter(|(_, stat)| stat.session == Some(session) && !stat.dead);
    members.map(|(pid, _)| pid).collect()
}

/// Whether a process does nothing because somebody stopped it.
pub(super) fn is_stopped(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| stat.stopped)
}

/// Whether a process is there and has not ended.
pub(super) fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| !stat.dead)
}

pub(super) fn stat(pid: Pid) -> Option<Stat> {
    Stat::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn all_processes() -> impl Iterator<Item = (Pid, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str().and_then(pid_of)?;
        // Who has ended meanwhile has none.
        Some((pid, Stat::parse(&fs::read(entry.path().join("stat")).ok()?)?))
    })
}

/// Of what `/proc/<pid>/stat` tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) dead: bool,
    stopped: bool,
    parent: Option<Pid>,
    /// None for one that began outside of this process's world, as a container's first process has it.
    pub(super) session: Option<Pid>,
    /// In the kernel's ticks.
    pub(super) started: Option<u64>,
}

/// Fields of a process's line between its session and its start.
const BETWEEN_SESSION_AND_START: usize = 15;

impl Stat {
    /// `7 (name) S 1 7 7 …`: state, parent, group, session; and a name may hold anything.
    fn parse(line: &[u8]) -> Option<Stat> {
        let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
        let mut fields = std::str::from_utf8(&line[after_name..]).ok()?.split_ascii_whitespace();
        let state = fields.next()?;
        let (dead, stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
        let parent = pid_of(fields.next()?);
        let session = pid_of(fields.nth(1)?);
        let started = fields.nth(BETWEEN_SESSION_AND_START).and_then(|ticks| ticks.parse().ok());
        Some(Stat { dead, stopped, parent, session, started })
    }
}

fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse::<u32>().ok()?.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn both_ways_find_a_child() {
        let mut child = sleeper();
        let (own, pid) = (rustix::process::getpid(), Pid::from_child(&child));
        assert!(children_by_parent()[&own].contains(&pid));
        assert!(!has_children_files() || children_by_file(own).contains(&pid));
        let mut visited = Vec::new();
        visit(own, |pid| visited.push(pid));
        assert!(visited.contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_session_is_found_behind_any_name() {
        let check = |line: &[u8], dead, parent: i32, session: i32| {
            let (parent, session) = (Pid::from_raw(parent), Pid::from_raw(session));
            let (stopped, started) = (false, None);
            let expected = Stat { dead, stopped, parent, session, started };
            assert_eq!(Stat::parse(line), Some(expected));
        };
        check(b"7 (sh) S 12 7 5 0", false, 12, 5);
        check(b"7 (a) R 99 (b) Z 12 7 5", true, 12, 5);
        check(b"7 (\xff\n) S 12 7 5", false, 12, 5);
        check(b"1 (init) S 0 1 1", false, 0, 1);
        assert!(Stat::parse(b"7 (sh) T 12 7 5").unwrap().stopped);
        let whole = b"7 (sh) S 12 7 5 0 -1 4194304 95 0 0 0 1 2 3 4 20 0 1 0 98765 3108864 1";
        assert_eq!(Stat::parse(whole).unwrap().started, Some(98765));
        assert_eq!(Stat::parse(b"7 (cut) S 1"), None);
        assert_eq!(Stat::parse(b"cut"), None);
    }

    #[test]
    fn members_of_a_session_are_found_while_they_live() {
        let mut child =
            Command::new("setsid").args(["sh", "-c", "sleep 60 & wait"]).spawn().unwrap();
        let session = Pid::from_child(&child);
        let start = std::time::Instant::now();
        while in_session(session).len() < 2 {
            assert!(start.elapsed() < std::time::Duration::from_secs(10));
        }
        for member in in_session(session) {
            rustix::process::kill_process(member, rustix::process::Signal::KILL).unwrap();
        }
        child.wait().unwrap();
        while !in_session(session).is_empty() {
            assert!(start.elapsed() < std::time::Duration::from_secs(10));
        }
    }
}
