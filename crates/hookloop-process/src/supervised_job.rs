//! A job that a keeper runs: waits for its end, its timeout or a cancellation, then ends all of its processes.

use std::collections::HashSet;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpid, kill_process, kill_process_group, wait,
};
use wait4::{ResUse, try_wait4_pid};

use crate::descendants::JobProcesses;
use crate::job::{ExitReason, ResourceUsage};
use crate::limits::ExceededLimit;
use crate::os::{self, ProcessStat};
use crate::timing::{KILL_LIMIT, KILL_LIMIT_OF_STORM, LEFTOVER_GRACE};
use crate::usage_watch::UsageWatch;
use crate::wire::{self, EndReport, JobOrder, KeeperRequest, SURVIVORS_MAX};

/// The shortest and the longest time between two searches for leftovers.
const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// Number of searches without a result after which no marked process is left.
const EMPTY_SEARCHES: usize = 5;
/// A shell exits with this plus the number of the signal that ended its command.
const SHELL_SIGNALLED: i32 = 128;

/// The state of a keeper between jobs.
pub(crate) struct KeeperState {
    pub(crate) processes: JobProcesses,
    /// Readable when a child may have ended.
    pub(crate) child_ended: UnixStream,
}

/// The running job of a keeper.
pub(crate) struct SupervisedJob<'a> {
    order: &'a JobOrder,
    socket: BorrowedFd<'a>,
    state: &'a KeeperState,
    /// The process that was started.
    first: Pid,
    /// Its start time as the system reports it, for marked jobs.
    began: Option<u64>,
    started: Instant,
    /// The program has ended, so the keeper ends after this job.
    is_alone: bool,
    killed: u64,
    /// Marked processes that were killed and are no children of the keeper. Their end is not reported to it.
    strays: HashSet<Pid>,
    /// The request that follows this job.
    next: &'a mut Option<KeeperRequest>,
    usage_watch: UsageWatch,
}

/// The result of a wait.
enum WaitEvent {
    FirstEnded,
    Cancelled,
    Alone,
    Time,
    /// An event that does not concern this job.
    Other,
}

impl<'a> SupervisedJob<'a> {
    pub(crate) fn new(
        socket: BorrowedFd<'a>,
        state: &'a KeeperState,
        child: &Child,
        order: &'a JobOrder,
        started: Instant,
        next: &'a mut Option<KeeperRequest>,
    ) -> SupervisedJob<'a> {
        // Until the process is reaped, no other can have its id.
        let first = Pid::from_child(child);
        let is_marked = state.processes.mark.is_some();
        let began = is_marked.then(|| os::stat(first)).flatten().and_then(|stat| stat.started);
        SupervisedJob {
            order,
            socket,
            state,
            first,
            began,
            started,
            is_alone: false,
            killed: 0,
            strays: HashSet::new(),
            next,
            usage_watch: UsageWatch::new(order.limits, started),
        }
    }

    /// Runs the job to its end. Returns `None` if the program has ended.
    pub(crate) fn run(mut self) -> Option<EndReport> {
        let (asked_for, spared_until) = self.wait_for_first();
        if asked_for.is_some() && spared_until <= Instant::now() || self.is_alone {
            // The first process is not reaped yet, so its group id is still its own. No process in the group escapes by
            // forking. A group that is gone needs no signal.
            let _ = kill_process_group(self.first, Signal::KILL);
            self.kill_all();
        }
        let end = self.reap_first();
        let duration = self.started.elapsed();
        let survivors = self.end_leftovers(spared_until, asked_for.is_some());
        let by_status = end.map(|end| exit_reason(end.status, self.order));
        let exit = asked_for.or(by_status).unwrap_or(ExitReason::Signalled(0));
        let usage = end.map(|end| ResourceUsage {
            user: end.rusage.utime,
            system: end.rusage.stime,
            max_rss_bytes: end.rusage.maxrss,
        });
        let ended = EndReport { exit, duration, usage, leftovers_killed: self.killed, survivors };
        (!self.is_alone).then_some(ended)
    }

    /// Waits until the first process ends or has to be killed.
    ///
    /// Returns the reason for ending the job, and the time until which its other processes may run.
    fn wait_for_first(&mut self) -> (Option<ExitReason>, Instant) {
        let mut asked_for = None;
        let mut until = self.started + self.order.timeout;
        while !self.is_alone {
            let event = self.wait(until);
            let why = match event {
                WaitEvent::FirstEnded => {
                    let grace_end = Instant::now() + LEFTOVER_GRACE;
                    return (asked_for, if asked_for.is_some() { until } else { grace_end });
                }
                WaitEvent::Alone => {
                    self.is_alone = true;
                    break;
                }
                WaitEvent::Other => continue,
                WaitEvent::Cancelled => ExitReason::Cancelled,
                WaitEvent::Time if Instant::now() >= until => ExitReason::TimedOut,
                WaitEvent::Time => {
                    match self.usage_watch.check(&self.state.processes, self.first, &self.order.cwd)
                    {
                        // A request to end would come too late.
                        Some(limit) => return (Some(ExitReason::OverLimit(limit)), Instant::now()),
                        None => continue,
                    }
                }
            };
            match (asked_for, event) {
                (None, _) => {
                    self.ask_all_to_end();
                    asked_for = Some(why);
                    until = Instant::now() + self.order.grace;
                }
                (Some(_), WaitEvent::Time) => break,
                (Some(_), _) => {}
            }
        }
        (asked_for, Instant::now())
    }

    /// Waits until `until`, or until the next check of resource usage.
    fn wait(&mut self, until: Instant) -> WaitEvent {
        let until = until.min(self.usage_watch.next());
        let timeout = until.saturating_duration_since(Instant::now());
        let mut fds = [
            PollFd::new(&self.state.child_ended, PollFlags::IN),
            PollFd::new(&self.socket, PollFlags::IN),
        ];
        // After a signal the wait begins again. Another error would recur, and is treated as the end of the wait.
        if poll(&mut fds, Some(&timespec(timeout))) == Err(Errno::INTR) {
            return WaitEvent::Other;
        }
        let [child_ended, socket] = fds.map(|fd| !fd.revents().is_empty());
        match (child_ended, socket) {
            (true, _) if self.has_first_ended() => WaitEvent::FirstEnded,
            (_, true) => self.receive(),
            (true, false) => WaitEvent::Other,
            (false, false) => WaitEvent::Time,
        }
    }

    /// Returns whether the first process has ended. Call it when a child may have ended.
    fn has_first_ended(&self) -> bool {
        // Emptied first, so that a child that ends from now on is reported again.
        while (&self.state.child_ended).read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        os::has_ended(self.first)
    }

    /// Receives a request of the program while the job runs.
    fn receive(&mut self) -> WaitEvent {
        match wire::receive_request(self.socket) {
            Ok(Some(KeeperRequest::Cancel { number })) if number == self.order.number => {
                WaitEvent::Cancelled
            }
            Ok(Some(KeeperRequest::Cancel { .. })) => WaitEvent::Other,
            Ok(Some(request)) if self.next.is_none() => {
                *self.next = Some(request);
                WaitEvent::Other
            }
            Ok(_) | Err(_) => WaitEvent::Alone,
        }
    }

    /// Sends SIGTERM once to the job's process group and to each process outside of it.
    ///
    /// Many programs take a second SIGTERM as an order to exit at once. SIGCONT follows, because a stopped process does
    /// not handle signals.
    fn ask_all_to_end(&self) {
        let mut elsewhere = Vec::new();
        self.state.processes.visit(|pid| {
            if getpgid(Some(pid)) != Ok(self.first) {
                elsewhere.push(pid);
            }
        });
        // Processes that are gone need no signal. Those that stay are killed when their time is over.
        for signal in [Signal::TERM, Signal::CONT] {
            let _ = kill_process_group(self.first, signal);
            for pid in &elsewhere {
                let _ = kill_process(*pid, signal);
            }
        }
    }

    /// Reaps the first process, which has ended or was killed.
    fn reap_first(&self) -> Option<ResUse> {
        let until = Instant::now() + KILL_LIMIT;
        while !self.has_first_ended() && Instant::now() < until {
            let mut fds = [PollFd::new(&self.state.child_ended, PollFlags::IN)];
            let left = until.saturating_duration_since(Instant::now());
            // A wait that fails is over early, and the loop looks again.
            let _ = poll(&mut fds, Some(&timespec(left)));
        }
        try_wait4_pid(self.first.as_raw_nonzero().get().cast_unsigned()).ok().flatten()
    }

    /// Waits for the remaining processes until `spared_until`, then kills them until none is left.
    ///
    /// Returns those that could not be killed.
    fn end_leftovers(&mut self, spared_until: Instant, was_asked: bool) -> Vec<u32> {
        let mut pause = PAUSE_MIN;
        let mut kill_from = spared_until;
        let mut last_end = spared_until;
        let mut empty_searches = 0;
        loop {
            let killed_before = self.killed;
            if !self.reap_all() && !self.state.processes.has_strays(self.began) {
                empty_searches += 1;
                // If processes had to be killed, one that forks and exits without pause may be missed by a search.
                let is_calm = !was_asked && self.killed == 0 && self.strays.is_empty();
                let is_marked = self.state.processes.mark.is_some();
                if is_calm || !is_marked || empty_searches >= EMPTY_SEARCHES {
                    self.killed += self.strays.len() as u64;
                    return Vec::new();
                }
            } else {
                empty_searches = 0;
            }
            let now = Instant::now();
            if self.killed > killed_before {
                last_end = now;
            }
            let is_stuck = now >= last_end.max(kill_from) + KILL_LIMIT;
            if is_stuck || now >= kill_from + KILL_LIMIT_OF_STORM {
                return self.survivors();
            }
            if now >= kill_from {
                self.kill_all();
            }
            // Ends follow each other quickly. Without one, a longer pause is enough.
            let has_killed = self.killed > killed_before;
            pause = if has_killed { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            if self.is_alone {
                std::thread::sleep(pause);
            } else if self.lost_program_within(pause) {
                self.is_alone = true;
                kill_from = kill_from.min(Instant::now());
            }
        }
    }

    fn lost_program_within(&mut self, pause: Duration) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let has_request = poll(&mut fds, Some(&timespec(pause))).is_ok_and(|ready| ready > 0);
        has_request && matches!(self.receive(), WaitEvent::Alone)
    }

    /// Reaps all children that have ended. Returns whether others are left.
    fn reap_all(&mut self) -> bool {
        loop {
            match retry_on_intr(|| wait(WaitOptions::NOHANG)) {
                Ok(Some((_, status))) => {
                    let by_kill = status.terminating_signal() == Some(Signal::KILL.as_raw());
                    self.killed += u64::from(by_kill);
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Stops all processes of the job, then kills them.
    ///
    /// An id from the search can belong to another process only if the system has assigned all ids since then.
    fn kill_all(&mut self) {
        let is_marked = self.state.processes.mark.is_some();
        let is_stray = |stat: ProcessStat| !stat.dead && stat.parent != Some(getpid());
        for pid in self.state.processes.stop_all() {
            // The end of another process's child is not reported to the keeper.
            if is_marked && os::stat(pid).is_some_and(is_stray) {
                self.strays.insert(pid);
            }
            // A process that can't be killed is a survivor, which the report names.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn survivors(&self) -> Vec<u32> {
        let mut survivors = Vec::new();
        self.state.processes.visit(|pid| {
            if survivors.len() < SURVIVORS_MAX {
                survivors.push(pid.as_raw_nonzero().get().cast_unsigned());
            }
        });
        survivors
    }
}

fn exit_reason(status: ExitStatus, order: &JobOrder) -> ExitReason {
    if let Some(bytes) = order.limits.disk_bytes
        && wrote_too_large_a_file(status)
    {
        return ExitReason::OverLimit(ExceededLimit::Disk { bytes });
    }
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Exited(code),
        (None, signal) => ExitReason::Signalled(signal.unwrap_or_default()),
    }
}

/// Returns whether SIGXFSZ ended the process, or the last command of a shell.
fn wrote_too_large_a_file(status: ExitStatus) -> bool {
    let signal = Signal::XFSZ.as_raw();
    status.signal() == Some(signal) || status.code() == Some(SHELL_SIGNALLED + signal)
}

/// Converts a duration. All durations here fit a timespec.
fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or_default()
}
