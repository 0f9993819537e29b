//! Linux: `/proc` tells who there is, and orphans can be adopted.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};

use super::super::descendants::Stat;

/// Whether processes that lose their parents can be had as children.
pub(in super::super) const ADOPTS: bool = true;
/// Fields of a process's line between its session and its start.
const BETWEEN_SESSION_AND_START: usize = 15;

/// This program, also when its file was replaced since it was started.
pub(in super::super) fn this_program() -> io::Result<PathBuf> {
    Ok("/proc/self/exe".into())
}

/// From now on, whoever loses their parents below this process becomes its child.
pub(in super::super) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Waits until a child has ended, or for so long.
pub(in super::super) fn wait_for_end(child: Pid, limit: Duration) {
    if let Ok(end) = pidfd_open(child, PidfdFlags::empty()) {
        let limit = Timespec::try_from(limit).unwrap_or_default();
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&limit)));
    }
}

/// How `ps` shows this process.
pub(in super::super) fn be_called(name: &str) {
    let _ = fs::write("/proc/self/comm", name);
}

/// Whether `/proc` is there, and that of this process's own world.
pub(in super::super) fn sees_itself() -> bool {
    let own = std::process::id().to_string();
    let is_shown = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == own.as_str());
    is_shown && stat(getpid()).is_some()
}

/// The user that started a process, whatever the process has become since.
pub(in super::super) fn real_user(pid: Pid) -> Option<u32> {
    let status = String::from_utf8(read_of(pid, "status")?).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether this process is in a namespace with one user, as an unprivileged process makes it.
pub(in super::super) fn has_one_user() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let counts =
        map.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
    counts.sum::<u64>() <= 1
}

/// What a process runs, as `ps` names it.
pub(in super::super) fn program_name(pid: Pid) -> Option<String> {
    let name = String::from_utf8_lossy(&read_of(pid, "comm")?).trim_end().to_owned();
    Some(name)
}

/// The variables that a process was started with.
pub(in super::super) fn variables_of(pid: Pid) -> Vec<OsString> {
    words(&read_of(pid, "environ").unwrap_or_default())
}

/// A file of a process in `/proc`; none if anything else is mounted there.
fn read_of(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let mut file = fs::File::open(format!("/proc/{pid}/{name}")).ok()?;
    if rustix::fs::fstatfs(&file).ok()?.f_type != rustix::fs::PROC_SUPER_MAGIC {
        return None;
    }
    let mut content = Vec::new();
    io::Read::read_to_end(&mut file, &mut content).ok()?;
    Some(content)
}

/// Makes a pipe larger. Who may not goes on with what it has.
pub(in super::super) fn widen(pipe: &OwnedFd, bytes: usize) {
    let _ = fcntl_setpipe_size(pipe, bytes);
}

pub(in super::super) fn pipe_size(pipe: impl AsFd) -> Option<usize> {
    fcntl_getpipe_size(pipe).ok()
}

/// The children of a process, if the kernel was built with the files that name a thread's.
pub(in super::super) fn children(pid: Pid) -> Option<Vec<Pid>> {
    if !has_children_files() {
        return None;
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(children.split_ascii_whitespace().filter_map(pid_of));
    }
    Some(found)
}

fn has_children_files() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| Path::new("/proc/thread-self/children").exists())
}

pub(in super::super) fn stat(pid: Pid) -> Option<Stat> {
    let line = read_of(pid, "stat")?;
    // The file of another process may be mounted in the place of this one's.
    let is_its_own = line.starts_with(format!("{pid} ").as_bytes());
    parse(&line).filter(|_| is_its_own)
}

/// All processes of the machine, dead ones that nobody waited for included.
pub(in super::super) fn all_processes() -> Vec<(Pid, Stat)> {
    // Who has ended meanwhile has none.
    pids().filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

/// Processes with the variables that they were started with, as far as this user may know. One that is about to become
/// another program has none for a moment.
pub(in super::super) fn variables() -> impl Iterator<Item = (Pid, Vec<OsString>)> {
    let variables = |pid| fs::read(format!("/proc/{pid}/environ")).ok().map(|text| words(&text));
    pids().filter_map(move |pid| Some((pid, variables(pid)?)))
}

/// The arguments of a process, its own name first.
pub(in super::super) fn arguments(pid: Pid) -> Vec<OsString> {
    words(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
}

/// The directory that a process is in, as far as this user may know.
pub(in super::super) fn working_directory(pid: Pid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// What ends with a zero byte each.
fn words(text: &[u8]) -> Vec<OsString> {
    let words = text.split_inclusive(|byte| *byte == 0);
    words.map(|word| OsString::from_vec(word.strip_suffix(&[0]).unwrap_or(word).to_vec())).collect()
}

/// The threads of this machine, in so far as they fit the number.
pub(in super::super) fn threads() -> u16 {
    rustix::system::sysinfo().procs
}

/// The memory of this machine.
pub(in super::super) fn machine_memory() -> u64 {
    let machine = rustix::system::sysinfo();
    machine.totalram.saturating_mul(machine.mem_unit.into())
}

/// What a process has of memory that is not a file's.
pub(in super::super) fn own_memory(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    number(&text, "RssAnon:").saturating_mul(1024)
}

/// The same with what is shared in equal parts. It takes the kernel a while to find that out.
pub(in super::super) fn proportional_memory(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    text.map_or_else(|_| own_memory(pid), |text| number(&text, "Pss_Anon:").saturating_mul(1024))
}

/// What a process has written to disks, with those that it waited for.
pub(in super::super) fn written(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    number(&text, "write_bytes:").saturating_sub(number(&text, "cancelled_write_bytes:"))
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_ascii_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

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

fn pids() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(pid_of))
}

fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse::<u32>().ok()?.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_behind_any_name() {
        let check = |line: &[u8], dead, parent: i32, session: i32| {
            let (parent, session) = (Pid::from_raw(parent), Pid::from_raw(session));
            let (stopped, started) = (false, None);
            let expected = Stat { dead, stopped, parent, session, started };
            assert_eq!(parse(line), Some(expected));
        };
        check(b"7 (sh) S 12 7 5 0", false, 12, 5);
        check(b"7 (a) R 99 (b) Z 12 7 5", true, 12, 5);
        check(b"7 (\xff\n) S 12 7 5", false, 12, 5);
        check(b"1 (init) S 0 1 1", false, 0, 1);
        assert!(parse(b"7 (sh) T 12 7 5").unwrap().stopped);
        let whole = b"7 (sh) S 12 7 5 0 -1 4194304 95 0 0 0 1 2 3 4 20 0 1 0 98765 3108864 1";
        assert_eq!(parse(whole).unwrap().started, Some(98765));
        assert_eq!(parse(b"7 (cut) S 1"), None);
        assert_eq!(parse(b"cut"), None);
    }

    #[test]
    fn what_a_process_uses_is_found() {
        let memory = vec![1_u8; 64 << 20];
        assert!(own_memory(getpid()) > memory.len() as u64 / 2);
        assert!(proportional_memory(getpid()) > memory.len() as u64 / 2);
        assert_eq!(own_memory(Pid::from_raw(i32::MAX).unwrap()), 0);
    }

    #[test]
    fn numbers_are_found_by_their_whole_name() {
        let text = "wchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 96\n";
        assert_eq!(number(text, "write_bytes:"), 4096);
        assert_eq!(number(text, "cancelled_write_bytes:"), 96);
        assert_eq!(number(text, "nothing:"), 0);
    }
}
