//! Who a process started, and who those started; who is in a session; and all that belong to a keeper's hook.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::{KILL_PAUSE, os};

/// The variable that marks the processes of a keeper's hook where orphans can't be adopted.
pub(super) const MARK: &str = "HOOKLOOP_KEEPER";

/// How long a process is waited for that has no variables.
const UNTOLD_LIMIT: Duration = Duration::from_millis(50);

/// What is known of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) dead: bool,
    pub(super) stopped: bool,
    pub(super) parent: Option<Pid>,
    /// None for one that began outside of this process's world, as a container's first process has it.
    pub(super) session: Option<Pid>,
    /// In whatever the system counts.
    pub(super) started: Option<u64>,
}

/// All that belong to the hook of this process, which is its keeper.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// What those have who lost their parents; none where they become this process's children.
    pub(super) mark: Option<OsString>,
}

impl Kept {
    /// Gives `visit` everybody, dead ones that nobody waited for included, and each before their own children are looked
    /// for: who is stopped by `visit` has no further children.
    ///
    /// What forks or loses its parent meanwhile may be missing, so look again until there is none.
    pub(super) fn visit(&self, visit: impl FnMut(Pid)) {
        self.walk(usize::MAX, visit);
    }

    /// No more than `max` of them, each after `visit` was given it.
    pub(super) fn up_to(&self, max: usize, visit: impl FnMut(Pid)) -> Vec<Pid> {
        let mut found = self.walk(max, visit);
        found.truncate(max);
        found
    }

    /// Stops all, parents before their children, so that what forks all the time does not get away; tells who they are.
    pub(super) fn stopped(&self) -> Vec<Pid> {
        self.walk(usize::MAX, stop)
    }

    /// Whether some of them may live and be nobody's child here. Who began with the hook or later and can't be told yet
    /// is one of them until it can, and no longer than for [`UNTOLD_LIMIT`].
    pub(super) fn has_strays(&self, began: Option<u64>) -> bool {
        let Some(mark) = &self.mark else { return false };
        let until = Instant::now() + UNTOLD_LIMIT;
        loop {
            let look = Look::new(mark);
            if look.marked.into_iter().any(is_alive) {
                return true;
            }
            let is_of_hook = |stat: Stat| !stat.dead && stat.started >= began;
            let is_untold = |pid: &Pid| os::stat(*pid).is_some_and(is_of_hook);
            if Instant::now() >= until || !look.untold.iter().any(is_untold) {
                return false;
            }
            std::thread::sleep(KILL_PAUSE);
        }
    }

    fn walk(&self, max: usize, visit: impl FnMut(Pid)) -> Vec<Pid> {
        walk(&[getpid()], self.mark.as_ref().map(marked).unwrap_or_default(), max, visit)
    }
}

/// Those that have a keeper's mark, but for that keeper.
pub(super) fn marked(mark: &OsString) -> Vec<Pid> {
    Look::new(mark).marked
}

/// What a look at all processes finds.
struct Look {
    marked: Vec<Pid>,
    /// Those that have no variables: who is about to become another program has none for a moment.
    untold: Vec<Pid>,
}

impl Look {
    fn new(mark: &OsString) -> Look {
        let mut wanted = OsString::from(format!("{MARK}="));
        wanted.push(mark);
        let mut look = Look { marked: Vec::new(), untold: Vec::new() };
        for (pid, variables) in os::variables().filter(|(pid, _)| *pid != getpid()) {
            if variables.is_empty() {
                look.untold.push(pid);
            } else if variables.contains(&wanted) {
                look.marked.push(pid);
            }
        }
        look
    }
}

/// Stops all descendants of a process, parents before their children; tells who they are.
pub(super) fn stopped(ancestor: Pid) -> Vec<Pid> {
    walk(&[ancestor], Vec::new(), usize::MAX, stop)
}

fn stop(pid: Pid) {
    let _ = kill_process(pid, Signal::STOP);
}

/// The descendants of some, and others with theirs. Stops to look when it has found `max`.
fn walk(of: &[Pid], others: Vec<Pid>, max: usize, mut visit: impl FnMut(Pid)) -> Vec<Pid> {
    let mut table = None;
    let mut children = |pid: Pid| match os::children(pid) {
        Some(children) => children,
        None => {
            let table = table.get_or_insert_with(children_by_parent);
            table.get(&pid).cloned().unwrap_or_default()
        }
    };
    let mut known = HashSet::new();
    let mut found: Vec<Pid> = of.iter().flat_map(|pid| children(*pid)).chain(others).collect();
    found.retain(|pid| known.insert(*pid));
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        visit(pid);
        if found.len() < max {
            found.extend(children(pid).into_iter().filter(|pid| known.insert(*pid)));
        }
        next += 1;
    }
    found
}

/// The children of a process, dead ones that nobody waited for included.
pub(super) fn children(pid: Pid) -> Vec<Pid> {
    os::children(pid).unwrap_or_else(|| children_by_parent().remove(&pid).unwrap_or_default())
}

/// The same for all processes of the machine.
fn children_by_parent() -> HashMap<Pid, Vec<Pid>> {
    let mut table: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (pid, stat) in os::all_processes() {
        if let Some(parent) = stat.parent {
            table.entry(parent).or_default().push(pid);
        }
    }
    table
}

/// The living processes of a session.
pub(super) fn in_session(session: Pid) -> Vec<Pid> {
    let all = os::all_processes().into_iter();
    let members = all.filter(|(_, stat)| stat.session == Some(session) && !stat.dead);
    members.map(|(pid, _)| pid).collect()
}

/// Whether a process does nothing because somebody stopped it.
pub(super) fn is_stopped(pid: Pid) -> bool {
    os::stat(pid).is_some_and(|stat| stat.stopped)
}

/// Whether a process is there and has not ended.
pub(super) fn is_alive(pid: Pid) -> bool {
    os::stat(pid).is_some_and(|stat| !stat.dead)
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
        let (own, pid) = (getpid(), Pid::from_child(&child));
        assert!(children_by_parent()[&own].contains(&pid));
        assert!(os::children(own).is_none_or(|children| children.contains(&pid)));
        let mut visited = Vec::new();
        Kept::default().visit(|pid| visited.push(pid));
        assert!(visited.contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
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
