//! Linux: `/proc` is the process table, and a process can adopt orphans.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};

use super::ProcessStat;

/// Whether orphans below a process can become its children.
pub(crate) const ADOPTS: bool = true;
/// The longest wait for the environment of a process during `exec`. A busy machine can delay that for long.
pub(crate) const EXEC_LIMIT: Duration = Duration::from_secs(2);
/// Number of fields between the name and the flags in `/proc/PID/stat`.
const BETWEEN_NAME_AND_FLAGS: usize = 6;
/// Number of fields between session and start time in `/proc/PID/stat`.
const BETWEEN_SESSION_AND_START: usize = 15;
/// The flag of a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Bytes of the first read of a file in `/proc`.
const FIRST_READ: usize = 2_048;
/// Far above the arguments and the environment that the kernel gives to a process.
const PROC_FILE_MAX: u64 = 64 * 1024 * 1024;

/// Returns the path of this program, valid even if its file was replaced since the start.
pub(crate) fn this_program() -> io::Result<PathBuf> {
    Ok("/proc/self/exe".into())
}

/// Makes orphans below this process its children from now on.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Waits until a child has ended, at most for `limit`.
pub(crate) fn wait_for_end(child: Pid, limit: Duration) {
    if let Ok(end) = pidfd_open(child, PidfdFlags::empty()) {
        let limit = Timespec::try_from(limit).unwrap_or_default();
        // A wait that fails is over early, and the caller kills the child.
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&limit)));
    }
}

/// Sets the name under which `ps` shows this process.
pub(crate) fn set_process_name(name: &str) {
    // Without it, `ps` shows another name.
    let _ = fs::write("/proc/self/comm", name);
}

/// Returns whether `/proc` is mounted and shows this process's own pid namespace.
pub(crate) fn sees_itself() -> bool {
    let own = std::process::id().to_string();
    let is_shown = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == own.as_str());
    is_shown && stat(getpid()).is_some()
}

/// Returns the real user of a process, which `setuid` programs keep.
pub(crate) fn real_user(pid: Pid) -> Option<u32> {
    let status = String::from_utf8(read_of(pid, "status")?).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns whether this process is in a user namespace with one user, as unprivileged processes create.
pub(crate) fn has_one_user() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let counts =
        map.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
    counts.sum::<u64>() <= 1
}

/// Returns the program name of a process, as `ps` shows it.
pub(crate) fn program_name(pid: Pid) -> Option<String> {
    let name = String::from_utf8_lossy(&read_of(pid, "comm")?).trim_end().to_owned();
    Some(name)
}

/// Returns the environment that a process was started with.
pub(crate) fn variables_of(pid: Pid) -> Vec<OsString> {
    words(&read_of(pid, "environ").unwrap_or_default())
}

/// Reads a file of a process in `/proc`. Returns `None` if another file system is mounted over it.
fn read_of(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let file = fs::File::open(format!("/proc/{pid}/{name}")).ok()?;
    if rustix::fs::fstatfs(&file).ok()?.f_type != rustix::fs::PROC_SUPER_MAGIC {
        return None;
    }
    read_all(file)
}

/// Reads a file of `/proc`, whose size is unknown before. Most fit into the first read.
fn read_all(file: fs::File) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(FIRST_READ);
    // `File::read_to_end` would ask for the size and begin with reads of a few bytes.
    file.take(PROC_FILE_MAX).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Enlarges a pipe. On failure its size stays unchanged.
pub(crate) fn widen(pipe: &OwnedFd, bytes: usize) {
    let _ = fcntl_setpipe_size(pipe, bytes);
}

pub(crate) fn pipe_size(pipe: impl AsFd) -> Option<usize> {
    fcntl_getpipe_size(pipe).ok()
}

/// Returns the children of a process, or `None` if this kernel has no `children` files.
pub(crate) fn children(pid: Pid) -> Option<Vec<Pid>> {
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

pub(crate) fn stat(pid: Pid) -> Option<ProcessStat> {
    let line = read_of(pid, "stat")?;
    // Another process's file may be mounted over this one.
    let is_its_own = line.starts_with(format!("{pid} ").as_bytes());
    parse(&line).filter(|_| is_its_own)
}

/// Returns all processes of the machine, zombies included.
pub(crate) fn all_processes() -> Vec<(Pid, ProcessStat)> {
    // A process that has ended meanwhile is left out.
    pids().filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

/// Returns all processes with their initial environment, as far as this user may read it.
///
/// A process has an empty environment only during `exec`: others without variables are left out.
pub(crate) fn variables() -> impl Iterator<Item = (Pid, Vec<OsString>)> {
    let variables = |pid| fs::read(format!("/proc/{pid}/environ")).ok().map(|text| words(&text));
    let found = pids().filter_map(move |pid| Some((pid, variables(pid)?)));
    found.filter(|(pid, variables)| !variables.is_empty() || may_be_in_exec(*pid))
}

/// Whether a process without variables may be in the middle of `exec`, which sets its arguments and variables together.
fn may_be_in_exec(pid: Pid) -> bool {
    let flags = |line: Vec<u8>| flags_of(&line);
    let is_of_kernel =
        || read_of(pid, "stat").and_then(flags).is_some_and(|flags| flags & KERNEL_THREAD != 0);
    arguments(pid).is_empty() && !is_of_kernel()
}

/// Returns the flags in a line of `/proc/PID/stat`.
fn flags_of(line: &[u8]) -> Option<u64> {
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(&line[after_name..]).ok()?;
    fields.split_ascii_whitespace().nth(BETWEEN_NAME_AND_FLAGS)?.parse().ok()
}

/// Returns the arguments of a process, beginning with its own name.
pub(crate) fn arguments(pid: Pid) -> Vec<OsString> {
    let file = fs::File::open(format!("/proc/{pid}/cmdline")).ok();
    words(&file.and_then(read_all).unwrap_or_default())
}

/// Returns the working directory of a process, as far as this user may read it.
pub(crate) fn working_directory(pid: Pid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Splits text into words that each end with a zero byte.
fn words(text: &[u8]) -> Vec<OsString> {
    let words = text.split_inclusive(|byte| *byte == 0);
    words.map(|word| OsString::from_vec(word.strip_suffix(&[0]).unwrap_or(word).to_vec())).collect()
}

/// Returns the number of threads on this machine, modulo 65,536.
pub(crate) fn threads() -> u16 {
    rustix::system::sysinfo().procs
}

/// Returns the memory of this machine, in bytes.
pub(crate) fn machine_memory() -> u64 {
    let machine = rustix::system::sysinfo();
    machine.totalram.saturating_mul(machine.mem_unit.into())
}

/// Returns the anonymous memory of a process, in bytes.
pub(crate) fn own_memory(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    number(&text, "RssAnon:").saturating_mul(1024)
}

/// Returns the anonymous memory of a process, with shared pages divided among their users.
///
/// This is slow, because the kernel walks all pages.
pub(crate) fn proportional_memory(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    text.map_or_else(|_| own_memory(pid), |text| number(&text, "Pss_Anon:").saturating_mul(1024))
}

/// Returns the bytes that a process and its reaped children wrote to disks.
pub(crate) fn written(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    number(&text, "write_bytes:").saturating_sub(number(&text, "cancelled_write_bytes:"))
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_ascii_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Parses `7 (name) S 1 7 7 …`: state, parent, group, session. The name may hold any byte.
fn parse(line: &[u8]) -> Option<ProcessStat> {
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&line[after_name..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let dead = matches!(state, "Z" | "X");
    let stopped = matches!(state, "T" | "t");
    let parent = pid_of(fields.next()?);
    let session = pid_of(fields.nth(1)?);
    let started = fields.nth(BETWEEN_SESSION_AND_START).and_then(|ticks| ticks.parse().ok());
    Some(ProcessStat { dead, stopped, parent, session, started })
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
    fn a_session_is_parsed_after_any_process_name() {
        let check = |line: &[u8], dead, parent: i32, session: i32| {
            let (parent, session) = (Pid::from_raw(parent), Pid::from_raw(session));
            let (stopped, started) = (false, None);
            let expected = ProcessStat { dead, stopped, parent, session, started };
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
    fn processes_without_variables_are_left_out_unless_they_are_in_exec() {
        let mut child = std::process::Command::new("sleep").arg("60").env_clear().spawn().unwrap();
        let start = std::time::Instant::now();
        while arguments(Pid::from_child(&child)) != ["sleep", "60"] {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        let found: Vec<(Pid, Vec<OsString>)> = variables().collect();
        assert!(found.iter().all(|(pid, _)| *pid != Pid::from_child(&child)));
        let is_of_kernel = |pid: Pid| {
            read_of(pid, "stat").and_then(|line| flags_of(&line)).unwrap_or(0) & KERNEL_THREAD != 0
        };
        assert!(found.iter().all(|(pid, _)| !is_of_kernel(*pid)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_flags_of_a_process_are_read_after_any_name() {
        assert_eq!(flags_of(b"2 (a) 1) S 0 0 0 0 -1 2129984 0"), Some(2_129_984));
        assert_eq!(flags_of(b"2 (a) S 0 0"), None);
    }

    #[test]
    fn the_memory_of_a_process_is_measured() {
        let memory = vec![1_u8; 64 << 20];
        assert!(own_memory(getpid()) > memory.len() as u64 / 2);
        assert!(proportional_memory(getpid()) > memory.len() as u64 / 2);
        assert_eq!(own_memory(Pid::from_raw(i32::MAX).unwrap()), 0);
    }

    #[test]
    fn a_number_is_found_by_its_whole_name() {
        let text = "wchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 96\n";
        assert_eq!(number(text, "write_bytes:"), 4096);
        assert_eq!(number(text, "cancelled_write_bytes:"), 96);
        assert_eq!(number(text, "nothing:"), 0);
    }
}
