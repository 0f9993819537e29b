//! A cgroup for each keeper, where the system lets this program make one: cgroup v2, delegated to the user.
//!
//! Who is started in a cgroup stays in it, whatever its session, its parent or its user become, and all that
//! are in it can be killed at once. So it reaches what is out of a signal's reach, and what was left behind
//! when keeper and program were killed in one moment: the next program in the same place finds it by its name.
//!
//! It has no limits of its own. Those would be the cgroup's above to give, which can't while it has processes
//! itself: this program, and the shell that it was started from.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access, statfs};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

use super::{KILL_PAUSE, descendants, os};

/// Where the cgroups are. Beside older ones they are elsewhere, and not used.
const MOUNT: &str = "/sys/fs/cgroup";
/// What the file system of cgroups v2 calls itself.
const CGROUP2: u64 = 0x6367_7270;
/// What a keeper's cgroup begins with; the rest tells whose it is.
const PREFIX: &str = "hookloop-";
/// Who is in a cgroup; and where one writes to be in it.
const MEMBERS: &str = "cgroup.procs";
/// Kills all that are in a cgroup and in those below, from Linux 5.14 on.
const KILL: &str = "cgroup.kill";
/// Killed processes are gone by then, or their cgroup is left for a later program.
const REMOVE_LIMIT: Duration = Duration::from_millis(200);
/// Cgroups that are looked at to remove one: those that a hook made in it.
const REMOVED_MAX: usize = 1_024;
/// Cgroups of dead programs that one start of a keeper deals with.
const ABANDONED_MAX: usize = 64;

/// A keeper's cgroup. Who is in it ends with it.
#[derive(Debug)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes one, if that can be done here, after ending what dead programs left.
    pub(super) fn make() -> Option<Cgroup> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (home, owner) = (home()?, Owner::this_program()?);
        end_all(&abandoned(&home, owner.namespace));
        let path = home.join(owner.name(NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&path).ok()?;
        let cgroup = Cgroup(path);
        cgroup.0.join(KILL).exists().then_some(cgroup)
    }

    /// A file for a keeper to [`enter`] by.
    pub(super) fn door(&self) -> Option<File> {
        open(&self.0, MEMBERS).ok()
    }

    /// Kills all that are in it, whoever they run as.
    pub(super) fn kill(&self) {
        kill(&self.0);
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if !remove(&self.0) {
            end_all(std::slice::from_ref(&self.0));
        }
    }
}

/// Moves this process into the cgroup that its output leads to. If it leads nowhere, that has no effect.
pub(super) fn enter() {
    let _ = rustix::io::write(io::stdout(), b"0");
}

/// This program's own cgroup, if it can have others below it.
pub fn home() -> Option<PathBuf> {
    if u64::try_from(statfs(MOUNT).ok()?.f_type) != Ok(CGROUP2) {
        return None;
    }
    let home = Path::new(MOUNT).join(own_path(&fs::read_to_string("/proc/self/cgroup").ok()?)?);
    access(&home, Access::WRITE_OK | Access::EXEC_OK).ok()?;
    access(home.join(MEMBERS), Access::WRITE_OK).ok()?;
    // In a name space of its own, a path can be that of another cgroup.
    let members = fs::read_to_string(home.join(MEMBERS)).ok()?;
    let own = getpid().to_string();
    members.lines().any(|member| member == own).then_some(home)
}

/// What `/proc/self/cgroup` says of cgroups v2. A way up leads out of what this process can see.
fn own_path(text: &str) -> Option<&Path> {
    let path = Path::new(text.lines().find_map(|line| line.strip_prefix("0::/"))?);
    path.components().all(|part| matches!(part, Component::Normal(_))).then_some(path)
}

/// A program that has keepers, so that no other can be taken for it: ids are used again.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    /// In which the id holds.
    namespace: u64,
    pid: Pid,
    /// In the kernel's ticks.
    started: u64,
}

impl Owner {
    fn this_program() -> Option<Owner> {
        let pid = getpid();
        // With another world's `/proc`, neither would be this process's.
        if !os::sees_itself() {
            return None;
        }
        let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
        Some(Owner { namespace, pid, started: os::stat(pid)?.started? })
    }

    fn name(&self, number: u64) -> String {
        let Owner { namespace, pid, started } = self;
        format!("{PREFIX}{namespace}-{pid}-{started}-{number}")
    }

    fn of(name: &str) -> Option<Owner> {
        let mut numbers = name.strip_prefix(PREFIX)?.split('-').map(|part| part.parse().ok());
        let (namespace, pid, started) = (numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next()??;
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        numbers.next().is_none().then_some(Owner { namespace, pid, started })
    }

    /// If in doubt, it is not.
    fn is_dead(&self) -> bool {
        let is_another = |stat: descendants::Stat| {
            stat.dead || stat.started.is_some_and(|started| started != self.started)
        };
        test_kill_process(self.pid) == Err(Errno::SRCH)
            || os::stat(self.pid).is_some_and(is_another)
    }
}

/// Cgroups of programs that are dead. Those of another name space can't be asked for, and are left.
fn abandoned(home: &Path, namespace: u64) -> Vec<PathBuf> {
    let is_abandoned = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let owner = name.and_then(Owner::of).filter(|owner| owner.namespace == namespace);
        owner.is_some_and(|owner| owner.is_dead())
    };
    below(home).filter(is_abandoned).take(ABANDONED_MAX).collect()
}

/// Kills all that are in these cgroups, and removes them.
fn end_all(cgroups: &[PathBuf]) {
    cgroups.iter().for_each(|cgroup| kill(cgroup));
    let start = Instant::now();
    for cgroup in cgroups {
        while !remove(cgroup) && start.elapsed() < REMOVE_LIMIT {
            thread::sleep(KILL_PAUSE);
        }
    }
}

fn kill(cgroup: &Path) {
    let _ = open(cgroup, KILL).and_then(|file| Ok(rustix::io::write(file, b"1")?));
}

/// Whether a cgroup is gone, with those below it. One that has processes stays.
fn remove(cgroup: &Path) -> bool {
    if is_removed(cgroup) {
        return true;
    }
    let mut all = vec![cgroup.to_owned()];
    let mut next = 0;
    while next < all.len() && all.len() < REMOVED_MAX {
        let more: Vec<_> = below(&all[next]).take(REMOVED_MAX - all.len()).collect();
        all.extend(more);
        next += 1;
    }
    all.iter().rev().fold(false, |_, cgroup| is_removed(cgroup))
}

fn is_removed(cgroup: &Path) -> bool {
    match fs::remove_dir(cgroup) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Cgroups directly below another.
fn below(cgroup: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(cgroup).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path())
}

fn open(cgroup: &Path, file: &str) -> io::Result<File> {
    OpenOptions::new().write(true).open(cgroup.join(file))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_own_cgroup_is_found() {
        let check = |text, expected: Option<&str>| {
            assert_eq!(own_path(text), expected.map(Path::new), "{text}");
        };
        check("0::/\n", Some(""));
        check("0::/user.slice/a.scope\n", Some("user.slice/a.scope"));
        check("4:memory:/m\n1:cpu:/c\n0::/u\n", Some("u"));
        check("0::/../elsewhere\n", None);
        check("4:memory:/m\n", None);
        check("", None);
    }

    #[test]
    fn a_name_tells_whose_it_is() {
        let own = Owner::this_program().unwrap();
        assert_eq!(Owner::of(&own.name(7)), Some(own));
        for other in
            ["hookloop-1-2-3", "hookloop-1-2-3-4-5", "hookloop-1-0-3-4", "hookloop-a-2-3-4"]
        {
            assert_eq!(Owner::of(other), None, "{other}");
        }
        for other in ["hookloop-tests", "hookloop-", "1-2-3-4", ""] {
            assert_eq!(Owner::of(other), None, "{other}");
        }
    }

    #[test]
    fn the_living_are_not_dead_and_their_ids_are_not_enough() {
        let own = Owner::this_program().unwrap();
        assert!(!own.is_dead());
        assert!(Owner { started: own.started - 1, ..own }.is_dead());
    }

    /// Also while nobody has waited for it.
    #[test]
    fn the_dead_are_dead() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let started = os::stat(pid).unwrap().started.unwrap();
        let owner = Owner { namespace: 0, pid, started };
        let start = Instant::now();
        while !owner.is_dead() {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        child.wait().unwrap();
        assert!(owner.is_dead());
    }

    /// Cgroups and directories are removed in the same way, but that files are in the way of directories.
    #[test]
    fn what_is_abandoned_is_found_and_removed_with_what_is_below() {
        let home = tempfile::tempdir().unwrap();
        let own = Owner::this_program().unwrap();
        let dead = Owner { started: own.started - 1, ..own };
        let elsewhere = Owner { namespace: own.namespace + 1, ..dead };
        let make = |name: &str| fs::create_dir_all(home.path().join(name)).unwrap();
        make(&own.name(0));
        make(&elsewhere.name(0));
        make("hookloop-tests");
        make(&format!("{}/a/b/c", dead.name(0)));
        make(&format!("{}/d", dead.name(0)));
        let found = abandoned(home.path(), own.namespace);
        assert_eq!(found, [home.path().join(dead.name(0))]);
        end_all(&found);
        assert_eq!(below(home.path()).count(), 3);
    }
}
