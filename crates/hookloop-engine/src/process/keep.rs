//! The keeper: a small process that runs one hook at a time and ends everything that belongs to it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookloop_core::limits::Limit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpgid, getpid, kill_process, kill_process_group,
    pidfd_open, set_child_subreaper, setsid, wait,
};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};
use wait4::{ResUse, try_wait4_pid};

use super::watch::{self, Watch};
use super::wire::{self, Ended, Order, Reply, Request, SURVIVORS_TOLD};
use super::{How, KILL_LIMIT, Usage, cgroup, descendants, step};

/// What is left when the first process ends by itself has this long to end too: `tee` at the end of a
/// pipeline still writes what it was given.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(100);
/// Between two looks at whether leftovers are gone: short at first, then longer.
const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// What a shell ends with when what it ran was ended by a signal, above the signal's number.
const SHELL_SIGNALLED: i32 = 128;
/// The first one after stdin, stdout and stderr, which a hook has its own of.
pub(super) const FIRST_FD: i32 = 3;
/// What asks a process to end or to stop; the keeper does neither.
const REQUESTS: [i32; 10] =
    [SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2];
/// As `ps` shows the keeper; fifteen bytes are what there is room for.
const NAME: &str = "hookloop-keeper";

/// Runs hooks for the program at the other end of stdin until that is gone.
pub fn keep() -> ExitCode {
    let socket = io::stdin();
    match settle().and_then(|()| serve(socket.as_fd())) {
        Ok(()) => ExitCode::SUCCESS,
        // There is nobody to tell: the program sees that the keeper is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

fn settle() -> io::Result<()> {
    // Without the `/proc` of this process's own world nobody would be found, so no hook is run.
    if !descendants::sees_itself() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // Who wants it to end ends the program, or both: in each case the socket's end is what it ends for,
    // after its hook. A signal that is ignored or blocked would be so for hooks too; one that is heard is not.
    for signal in REQUESTS {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    set_child_subreaper(Some(getpid()))?;
    watch::no_core_files();
    // Neither the terminal's signals nor the terminal itself are for hooks.
    setsid()?;
    // Nor is what this program was started with.
    close_fds::set_fds_cloexec(FIRST_FD, &[]);
    // A directory that somebody wants to delete is not held.
    std::env::set_current_dir("/")?;
    let _ = fs::write("/proc/self/comm", NAME);
    cgroup::enter();
    Ok(())
}

fn serve(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut next = None;
    loop {
        let request = match next.take() {
            Some(request) => request,
            None => match wire::receive_request(socket)? {
                Some(request) => request,
                None => return Ok(()),
            },
        };
        // A hook that is to be cancelled while none runs has just ended.
        let Request::Run(order, [stdin, output @ ..]) = request else { continue };
        wire::send_reply(socket, &Reply::Taken)?;
        let started = Instant::now();
        let reply = match start(&order, stdin, &output) {
            Err(reply) => reply,
            Ok(child) => match Hook::new(socket, &child, &order, started, &mut next)?.run() {
                Some(ended) => Reply::Ended(ended),
                None => return Ok(()),
            },
        };
        // Not before, or the program would be woken by the end of its output and again by the reply.
        drop(output);
        wire::send_reply(socket, &reply)?;
        // Survivors would be taken for the next one's.
        if matches!(reply, Reply::Ended(ended) if !ended.survivors.is_empty()) {
            return Ok(());
        }
    }
}

fn start(order: &Order, stdin: OwnedFd, output: &[OwnedFd; 2]) -> Result<Child, Reply> {
    let [stdout, stderr] = output.each_ref().map(OwnedFd::try_clone);
    let failed = |error: io::Error| not_started(&error);
    let stdio = [stdin, stdout.map_err(failed)?, stderr.map_err(failed)?];
    watch::limit_files(order.limits.disk_bytes);
    if order.confinement.is_some() {
        return step::start(order, stdio);
    }
    hook_command(order, stdio).process_group(0).spawn().map_err(failed)
}

pub(super) fn not_started(error: &io::Error) -> Reply {
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    Reply::NotStarted { errno }
}

/// What an order asks for, in whatever process it is started.
pub(super) fn hook_command(order: &Order, stdio: [OwnedFd; 3]) -> Command {
    let [stdin, stdout, stderr] = stdio;
    let mut command = Command::new(&order.program);
    if let Some((name, arguments)) = order.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    command.env_clear().envs(order.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(&order.cwd);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    command
}

/// The hook that runs.
struct Hook<'a> {
    order: &'a Order,
    socket: BorrowedFd<'a>,
    /// The process that was started, and a file that is readable when it has ended.
    first: Pid,
    watch: OwnedFd,
    started: Instant,
    /// The program is gone: there is nobody to run hooks for.
    alone: bool,
    killed: u64,
    /// What the program wants to run after this one.
    next: &'a mut Option<Request>,
    watch_over: Watch,
}

/// What a wait ended with.
enum Event {
    FirstEnded,
    Cancelled,
    Alone,
    Time,
    /// Something that is not about this hook.
    Other,
}

/// Whether the keeper has children.
#[derive(PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
}

impl<'a> Hook<'a> {
    fn new(
        socket: BorrowedFd<'a>,
        child: &Child,
        order: &'a Order,
        started: Instant,
        next: &'a mut Option<Request>,
    ) -> io::Result<Hook<'a>> {
        let first = Pid::from_child(child);
        // Until it is waited for, the id is this process's and no other's.
        let watch = pidfd_open(first, PidfdFlags::empty()).inspect_err(|_| kill_all())?;
        let watch_over = Watch::new(order.limits, started);
        Ok(Hook { order, socket, first, watch, started, alone: false, killed: 0, next, watch_over })
    }

    /// None if the program is gone, and the hook with it.
    fn run(mut self) -> Option<Ended> {
        let (told, quiet_until) = self.wait_for_first();
        if told.is_some() && quiet_until <= Instant::now() || self.alone {
            // The first process was not waited for, so the group is still its own. Nobody in it gets away,
            // however fast they fork.
            let _ = kill_process_group(self.first, Signal::KILL);
            kill_all();
        }
        let end = self.take_first();
        let duration = self.started.elapsed();
        let survivors = self.end_leftovers(quiet_until);
        let how = told.or(end.map(|end| how(end.status, self.order))).unwrap_or(How::Signalled(0));
        let usage = end.map(|end| Usage {
            user: end.rusage.utime,
            system: end.rusage.stime,
            max_rss_bytes: end.rusage.maxrss,
        });
        let ended = Ended { how, duration, usage, leftovers_killed: self.killed, survivors };
        (!self.alone).then_some(ended)
    }

    /// Waits until the first process ends or has to be killed. Returns what it was told to end for, and
    /// until when the others are left alone.
    fn wait_for_first(&mut self) -> (Option<How>, Instant) {
        let mut told = None;
        let mut until = self.started + self.order.timeout;
        while !self.alone {
            let event = self.wait(until);
            let why = match event {
                Event::FirstEnded => {
                    let quiet_until =
                        if told.is_some() { until } else { Instant::now() + LEFTOVER_GRACE };
                    return (told, quiet_until);
                }
                Event::Alone => {
                    self.alone = true;
                    break;
                }
                Event::Other => continue,
                Event::Cancelled => How::Cancelled,
                Event::Time if Instant::now() >= until => How::TimedOut,
                Event::Time => match self.watch_over.look(self.first, &self.order.cwd) {
                    // There is no use in asking.
                    Some(limit) => return (Some(How::OverLimit(limit)), Instant::now()),
                    None => continue,
                },
            };
            match (told, event) {
                (None, _) => {
                    self.tell_all_to_end();
                    told = Some(why);
                    until = Instant::now() + self.order.grace;
                }
                (Some(_), Event::Time) => break,
                (Some(_), _) => {}
            }
        }
        (told, Instant::now())
    }

    /// Waits until `until`, or until it is time to look at what the hook uses.
    fn wait(&mut self, until: Instant) -> Event {
        let until = until.min(self.watch_over.next());
        let timeout = until.saturating_duration_since(Instant::now());
        let mut fds =
            [PollFd::new(&self.watch, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        // A poll that fails would fail again; as it is, the timeout holds.
        let _ = poll(&mut fds, Some(&timespec(timeout)));
        let [first, socket] = fds.map(|fd| !fd.revents().is_empty());
        match (first, socket) {
            (true, _) => Event::FirstEnded,
            (false, true) => self.hear(),
            (false, false) => Event::Time,
        }
    }

    /// What the program says while a hook runs.
    fn hear(&mut self) -> Event {
        match wire::receive_request(self.socket) {
            Ok(Some(Request::Cancel { number })) if number == self.order.number => Event::Cancelled,
            Ok(Some(Request::Cancel { .. })) => Event::Other,
            Ok(Some(request)) if self.next.is_none() => {
                *self.next = Some(request);
                Event::Other
            }
            Ok(_) | Err(_) => Event::Alone,
        }
    }

    /// Asks the hook's process group and those who left it. Each is asked once: many take the second
    /// request for impatience. Who is stopped has to go on to hear it.
    fn tell_all_to_end(&self) {
        let mut elsewhere = Vec::new();
        descendants::visit(getpid(), |pid| {
            if getpgid(Some(pid)) != Ok(self.first) {
                elsewhere.push(pid);
            }
        });
        for signal in [Signal::TERM, Signal::CONT] {
            let _ = kill_process_group(self.first, signal);
            for pid in &elsewhere {
                let _ = kill_process(*pid, signal);
            }
        }
    }

    /// The end of the first process, which has ended or was killed.
    fn take_first(&self) -> Option<ResUse> {
        let mut fds = [PollFd::new(&self.watch, PollFlags::IN)];
        let _ = retry_on_intr(|| poll(&mut fds, Some(&timespec(KILL_LIMIT))));
        try_wait4_pid(self.first.as_raw_nonzero().get().cast_unsigned()).ok().flatten()
    }

    /// Leaves everybody alone until `quiet_until`, then kills them until nobody is left. Returns who
    /// could not be killed.
    fn end_leftovers(&mut self, quiet_until: Instant) -> Vec<u32> {
        let mut pause = PAUSE_MIN;
        let mut kill_from = quiet_until;
        loop {
            let killed_before = self.killed;
            if self.reap() == Left::Nobody {
                return Vec::new();
            }
            let now = Instant::now();
            if now >= kill_from + KILL_LIMIT {
                return survivors();
            }
            if now >= kill_from {
                kill_all();
            }
            // Deaths come in quick succession; where there are none, looking more often is of no use.
            pause =
                if self.killed > killed_before { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            if self.alone {
                std::thread::sleep(pause);
            } else if self.lost_program_within(pause) {
                self.alone = true;
                kill_from = kill_from.min(Instant::now());
            }
        }
    }

    fn lost_program_within(&mut self, pause: Duration) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let heard = poll(&mut fds, Some(&timespec(pause))).is_ok_and(|ready| ready > 0);
        heard && matches!(self.hear(), Event::Alone)
    }

    /// Takes in all children that have ended.
    fn reap(&mut self) -> Left {
        loop {
            match retry_on_intr(|| wait(WaitOptions::NOHANG)) {
                Ok(Some((_, status))) => {
                    let by_kill = status.terminating_signal() == Some(Signal::KILL.as_raw());
                    self.killed += u64::from(by_kill);
                }
                Ok(None) => return Left::Somebody,
                Err(_) => return Left::Nobody,
            }
        }
    }
}

/// Kills all descendants, who are stopped first.
///
/// The ids are those of a moment ago: one can't be another process's by now, since the system gives ids
/// in turn, unless all of them went round in that moment.
fn kill_all() {
    for pid in descendants::stopped(getpid()) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn survivors() -> Vec<u32> {
    let mut survivors = Vec::new();
    descendants::visit(getpid(), |pid| {
        if survivors.len() < SURVIVORS_TOLD {
            survivors.push(pid.as_raw_nonzero().get().cast_unsigned());
        }
    });
    survivors
}

fn how(status: ExitStatus, order: &Order) -> How {
    if let Some(bytes) = order.limits.disk_bytes
        && wrote_too_long_a_file(status)
    {
        return How::OverLimit(Limit::Disk { bytes });
    }
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited(code),
        (None, signal) => How::Signalled(signal.unwrap_or_default()),
    }
}

/// Itself, or what a shell ran last.
fn wrote_too_long_a_file(status: ExitStatus) -> bool {
    let signal = Signal::XFSZ.as_raw();
    status.signal() == Some(signal) || status.code() == Some(SHELL_SIGNALLED + signal)
}

/// Every duration here is far below what a timespec holds.
fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or_default()
}
