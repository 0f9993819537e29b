//! A cgroup for each keeper, where this program may create one: cgroup v2, delegated to the user.
//!
//! A process stays in its cgroup when its session, parent or user changes, and all processes of a
//! cgroup can be killed at once. This reaches processes that a signal cannot. It also reaches
//! processes that outlive a keeper and a program that were killed at the same moment. The next
//! program in the same cgroup finds them by the name.
//!
//! The cgroup has no resource limits. Its parent would have to set them, and cannot while it has
//! processes itself: this program, and the shell that started it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::fs::{Access, access, statfs};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

use crate::os::{self, ProcessStat};
use crate::timing::KILL_PAUSE;

/// The mount point of cgroup v2. Hybrid systems mount it elsewhere, and it is not used there.
const MOUNT: &str = "/sys/fs/cgroup";
/// The type of the cgroup v2 file system.
const CGROUP2: u64 = 0x6367_7270;
/// The beginning of the name of a keeper's cgroup. The rest names its owner.
const PREFIX: &str = "hookloop-";
/// The file that lists the processes of a cgroup. Writing to it adds one.
const MEMBERS: &str = "cgroup.procs";
/// The file that kills all processes in a cgroup and below it, since Linux 5.14.
const KILL: &str = "cgroup.kill";
/// The longest wait for killed processes. After it, their cgroup is left to a later program.
const REMOVE_LIMIT: Duration = Duration::from_millis(200);
/// The largest number of cgroups within a keeper's cgroup that are removed with it.
const REMOVED_MAX: usize = 1_024;
/// The largest number of cgroups of dead programs that one start of a keeper removes.
const ABANDONED_MAX: usize = 64;

/// A keeper's cgroup. Dropping it ends its processes.
#[derive(Debug)]
pub(crate) struct KeeperCgroup(PathBuf);

impl KeeperCgroup {
    /// Creates a cgroup if this system allows it, after ending those of dead programs.
    pub(crate) fn create() -> Option<KeeperCgroup> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let home = home()?;
        let owner = CgroupOwner::this_program()?;
        end_all(&abandoned(&home, owner.namespace));
        let path = home.join(owner.name(NUMBER.fetch_add(1, Ordering::Relaxed)));
        let unmade = |error: &io::Error| {
            tracing::debug!(path = %path.display(), %error, "jobs have no cgroup of their own");
        };
        fs::create_dir(&path).inspect_err(unmade).ok()?;
        let cgroup = KeeperCgroup(path);
        cgroup.0.join(KILL).exists().then_some(cgroup)
    }

    /// Opens the file by which a keeper can [`enter`].
    pub(crate) fn members_file(&self) -> Option<File> {
        open(&self.0, MEMBERS).ok()
    }

    /// Kills all processes in the cgroup, whichever user they run as.
    pub(crate) fn kill(&self) {
        kill(&self.0);
    }
}

impl Drop for KeeperCgroup {
    fn drop(&mut self) {
        if !remove(&self.0) {
            end_all(std::slice::from_ref(&self.0));
        }
    }
}

/// Moves this process into the cgroup whose members file is its stdout. Has no effect if stdout is `/dev/null`.
pub(crate) fn enter() {
    // Without a cgroup the keeper finds the processes of its job in other ways.
    let _ = rustix::io::write(io::stdout(), b"0");
}

/// Returns the cgroup of this program, if this program may create others below it.
pub fn home() -> Option<PathBuf> {
    if u64::try_from(statfs(MOUNT).ok()?.f_type) != Ok(CGROUP2) {
        return None;
    }
    let home = Path::new(MOUNT).join(own_path(&fs::read_to_string("/proc/self/cgroup").ok()?)?);
    access(&home, Access::WRITE_OK | Access::EXEC_OK).ok()?;
    access(home.join(MEMBERS), Access::WRITE_OK).ok()?;
    // In another cgroup namespace, the same path can be another cgroup.
    let members = fs::read_to_string(home.join(MEMBERS)).ok()?;
    let own = getpid().to_string();
    members.lines().any(|member| member == own).then_some(home)
}

/// Parses the cgroup v2 path in `/proc/self/cgroup`. A path with `..` leads out of the visible tree and is refused.
fn own_path(text: &str) -> Option<&Path> {
    let path = Path::new(text.lines().find_map(|line| line.strip_prefix("0::/"))?);
    path.components().all(|part| matches!(part, Component::Normal(_))).then_some(path)
}

/// A program that has keepers, distinct from a later one with the same process id.
#[derive(Debug, PartialEq, Eq)]
struct CgroupOwner {
    /// The pid namespace of the id.
    namespace: u64,
    pid: Pid,
    /// Start time in clock ticks.
    started: u64,
}

impl CgroupOwner {
    fn this_program() -> Option<CgroupOwner> {
        let pid = getpid();
        // In the `/proc` of another namespace, both values would belong to another process.
        if !os::sees_itself() {
            return None;
        }
        let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
        Some(CgroupOwner { namespace, pid, started: os::stat(pid)?.started? })
    }

    fn name(&self, number: u64) -> String {
        let CgroupOwner { namespace, pid, started } = self;
        format!("{PREFIX}{namespace}-{pid}-{started}-{number}")
    }

    fn of(name: &str) -> Option<CgroupOwner> {
        let mut numbers = name.strip_prefix(PREFIX)?.split('-').map(|part| part.parse().ok());
        let namespace = numbers.next()??;
        let pid = numbers.next()??;
        let started = numbers.next()??;
        numbers.next()??;
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        numbers.next().is_none().then_some(CgroupOwner { namespace, pid, started })
    }

    /// Returns whether the program has certainly ended.
    fn is_dead(&self) -> bool {
        let is_another = |stat: ProcessStat| {
            stat.dead || stat.started.is_some_and(|started| started != self.started)
        };
        test_kill_process(self.pid) == Err(Errno::SRCH)
            || os::stat(self.pid).is_some_and(is_another)
    }
}

/// Returns the cgroups of dead programs.
///
/// Cgroups of another pid namespace are left out, because their owners cannot be checked.
fn abandoned(home: &Path, namespace: u64) -> Vec<PathBuf> {
    let is_abandoned = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let owner = name.and_then(CgroupOwner::of).filter(|owner| owner.namespace == namespace);
        owner.is_some_and(|owner| owner.is_dead())
    };
    below(home).filter(is_abandoned).take(ABANDONED_MAX).collect()
}

/// Kills all processes in these cgroups, and removes the cgroups.
fn end_all(cgroups: &[PathBuf]) {
    cgroups.iter().for_each(|cgroup| kill(cgroup));
    let start = Instant::now();
    for cgroup in cgroups {
        while !remove(cgroup) {
            if start.elapsed() >= REMOVE_LIMIT {
                tracing::warn!(path = %cgroup.display(), "a cgroup is not removed");
                break;
            }
            thread::sleep(KILL_PAUSE);
        }
    }
}

fn kill(cgroup: &Path) {
    // A cgroup that is removed has no such file. One that stays is reported by `end_all`.
    let _ = open(cgroup, KILL).and_then(|file| Ok(rustix::io::write(file, b"1")?));
}

/// Removes a cgroup and those below it. Returns whether it was removed: one with processes stays.
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

/// Returns the cgroups directly below another.
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
    fn the_cgroup_path_of_this_process_is_parsed() {
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
    fn a_cgroup_name_identifies_its_owner() {
        let own = CgroupOwner::this_program().unwrap();
        assert_eq!(CgroupOwner::of(&own.name(7)), Some(own));
        for other in
            ["hookloop-1-2-3", "hookloop-1-2-3-4-5", "hookloop-1-0-3-4", "hookloop-a-2-3-4"]
        {
            assert_eq!(CgroupOwner::of(other), None, "{other}");
        }
        for other in ["hookloop-tests", "hookloop-", "1-2-3-4", ""] {
            assert_eq!(CgroupOwner::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_live_owner_is_not_dead_and_a_reused_id_is_another_owner() {
        let own = CgroupOwner::this_program().unwrap();
        assert!(!own.is_dead());
        assert!(CgroupOwner { started: own.started - 1, ..own }.is_dead());
    }

    /// A zombie counts as dead.
    #[test]
    fn an_ended_owner_is_dead() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let started = os::stat(pid).unwrap().started.unwrap();
        let owner = CgroupOwner { namespace: 0, pid, started };
        let start = Instant::now();
        while !owner.is_dead() {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        child.wait().unwrap();
        assert!(owner.is_dead());
    }

    /// Plain directories replace cgroups here, as `rmdir` removes both.
    #[test]
    fn cgroups_of_dead_programs_are_removed_with_those_below() {
        let home = tempfile::tempdir().unwrap();
        let own = CgroupOwner::this_program().unwrap();
        let dead = CgroupOwner { started: own.started - 1, ..own };
        let elsewhere = CgroupOwner { namespace: own.namespace + 1, ..dead };
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
