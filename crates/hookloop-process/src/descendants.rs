//! Finds the descendants of a process, the members of a session, and all processes of a keeper's job.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::time::Instant;

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::os::{self, ProcessStat};
use crate::timing::KILL_PAUSE;

/// The variable that marks the processes of a job where orphans cannot be adopted.
pub(crate) const MARK: &str = "HOOKLOOP_KEEPER";

/// All processes of the job of this process, which is the job's keeper.
#[derive(Debug, Default)]
pub(crate) struct JobProcesses {
    /// The mark by which orphans are found. `None` where orphans become children of this process.
    pub(crate) mark: Option<OsString>,
}

impl JobProcesses {
    /// Calls `visit` for every process, zombies included.
    ///
    /// Each process is visited before the search for its children, so one that `visit` stops has no further children.
    /// A process that forks or loses its parent meanwhile may be missed: repeat until there is none.
    pub(crate) fn visit(&self, visit: impl FnMut(Pid)) {
        self.walk(usize::MAX, visit);
    }

    /// Returns at most `max` processes, after calling `visit` for each.
    pub(crate) fn up_to(&self, max: usize, visit: impl FnMut(Pid)) -> Vec<Pid> {
        let mut found = self.walk(max, visit);
        found.truncate(max);
        found
    }

    /// Stops all processes, parents before children, and returns them.
    ///
    /// This also catches a process that forks without pause.
    pub(crate) fn stop_all(&self) -> Vec<Pid> {
        self.walk(usize::MAX, stop)
    }

    /// Returns whether marked processes may be alive that are no descendants of this one.
    ///
    /// A process without a readable environment that started with the job or later counts as marked, for at most
    /// [`os::EXEC_LIMIT`].
    pub(crate) fn has_strays(&self, began: Option<u64>) -> bool {
        let Some(mark) = &self.mark else { return false };
        let until = Instant::now() + os::EXEC_LIMIT;
        loop {
            let search = MarkSearch::new(mark);
            if search.marked.into_iter().any(is_alive) {
                return true;
            }
            let is_of_job = |stat: ProcessStat| !stat.dead && stat.started >= began;
            let is_unknown = |pid: &Pid| os::stat(*pid).is_some_and(is_of_job);
            if Instant::now() >= until || !search.unknown.iter().any(is_unknown) {
                return false;
            }
            std::thread::sleep(KILL_PAUSE);
        }
    }

    fn walk(&self, max: usize, visit: impl FnMut(Pid)) -> Vec<Pid> {
        walk(getpid(), self.mark.as_ref().map(marked).unwrap_or_default(), max, visit)
    }
}

/// Returns the processes with a keeper's mark, other than this one.
pub(crate) fn marked(mark: &OsString) -> Vec<Pid> {
    MarkSearch::new(mark).marked
}

/// The result of a search of all processes for a mark.
struct MarkSearch {
    marked: Vec<Pid>,
    /// Processes with an empty environment. During `exec` that is so for a moment.
    unknown: Vec<Pid>,
}

impl MarkSearch {
    fn new(mark: &OsString) -> MarkSearch {
        let mut wanted = OsString::from(format!("{MARK}="));
        wanted.push(mark);
        let mut search = MarkSearch { marked: Vec::new(), unknown: Vec::new() };
        for (pid, variables) in os::variables().filter(|(pid, _)| *pid != getpid()) {
            if variables.is_empty() {
                search.unknown.push(pid);
            } else if variables.contains(&wanted) {
                search.marked.push(pid);
            }
        }
        search
    }
}

/// Stops all descendants of a process, parents before children, and returns them.
pub(crate) fn stop_below(ancestor: Pid) -> Vec<Pid> {
    walk(ancestor, Vec::new(), usize::MAX, stop)
}

fn stop(pid: Pid) {
    // A process that is gone needs no signal; one of another user is a survivor that the report names.
    let _ = kill_process(pid, Signal::STOP);
}

/// Returns the descendants of `root`, and `others` with their descendants. The search ends after `max`.
fn walk(root: Pid, others: Vec<Pid>, max: usize, mut visit: impl FnMut(Pid)) -> Vec<Pid> {
    let mut table = None;
    let mut children = |pid: Pid| match os::children(pid) {
        Some(children) => children,
        None => {
            let table = table.get_or_insert_with(children_by_parent);
            table.get(&pid).cloned().unwrap_or_default()
        }
    };
    let mut known = HashSet::new();
    let mut found: Vec<Pid> = children(root).into_iter().chain(others).collect();
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

/// Returns the children of a process, zombies included.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    os::children(pid).unwrap_or_else(|| children_by_parent().remove(&pid).unwrap_or_default())
}

/// Returns the children of every process of the machine, zombies included.
fn children_by_parent() -> HashMap<Pid, Vec<Pid>> {
    let mut table: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (pid, stat) in os::all_processes() {
        if let Some(parent) = stat.parent {
            table.entry(parent).or_default().push(pid);
        }
    }
    table
}

/// Returns the living processes of a session.
pub(crate) fn in_session(session: Pid) -> Vec<Pid> {
    let all = os::all_processes().into_iter();
    let members = all.filter(|(_, stat)| stat.session == Some(session) && !stat.dead);
    members.map(|(pid, _)| pid).collect()
}

/// Returns whether a process is stopped by a signal.
pub(crate) fn is_stopped(pid: Pid) -> bool {
    os::stat(pid).is_some_and(|stat| stat.stopped)
}

/// Returns whether a process exists and has not ended.
pub(crate) fn is_alive(pid: Pid) -> bool {
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
    fn a_child_is_found_by_its_file_and_by_the_table() {
        let mut child = sleeper();
        let own = getpid();
        let pid = Pid::from_child(&child);
        assert!(children_by_parent()[&own].contains(&pid));
        assert!(os::children(own).is_none_or(|children| children.contains(&pid)));
        let mut visited = Vec::new();
        JobProcesses::default().visit(|pid| visited.push(pid));
        assert!(visited.contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_living_members_of_a_session_are_found() {
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
