//! The keeper: a small process that runs one hook at a time and ends everything that belongs to it.

use std::collections::HashSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookloop_core::limits::Limit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpid, kill_process, kill_process_group, setsid, wait,
};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};
use wait4::{ResUse, try_wait4_pid};

use super::descendants::{Kept, MARK, Stat};
use super::usage_watch::{self, Watch};
use super::wire::{self, Ended, Order, Reply, Request, SURVIVORS_TOLD};
use super::{How, KILL_LIMIT, Usage, cgroup, confined_exec, os};

/// What is left when the first process ends by itself has this long to end too: `tee` at the end of a
/// pipeline still writes what it was given.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(100);
/// Between two looks at whether leftovers are gone: short at first, then longer.
const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// How often nobody has to be found where strays were, before there is nobody.
const LOOKS_AT_STRAYS: usize = 5;
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
    match settle().and_then(|means| serve(socket.as_fd(), &means)) {
        Ok(()) => ExitCode::SUCCESS,
        // There is nobody to tell: the program sees that the keeper is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

/// What a keeper knows its hook's processes by.
struct Means {
    kept: Kept,
    /// Readable when a child may have ended.
    ends: UnixStream,
}

fn settle() -> io::Result<Means> {
    // Without the table of this process's own world nobody would be found, so no hook is run.
    if !os::sees_itself() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (ends, told) = UnixStream::pair()?;
    ends.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, told)?;
    // Who wants it to end ends the program, or both: in each case the socket's end is what it ends for,
    // after its hook. A signal that is ignored or blocked would be so for hooks too; one that is heard is not.
    for signal in REQUESTS {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let kept = Kept { mark: std::env::var_os(MARK) };
    if kept.mark.is_none() {
        os::adopt_orphans()?;
    }
    usage_watch::no_core_files();
    // Neither the terminal's signals nor the terminal itself are for hooks.
    setsid()?;
    // Nor is what this program was started with.
    close_fds::set_fds_cloexec(FIRST_FD, &[]);
    // A directory that somebody wants to delete is not held.
    std::env::set_current_dir("/")?;
    os::be_called(NAME);
    cgroup::enter();
    Ok(Means { kept, ends })
}

fn serve(socket: BorrowedFd<'_>, means: &Means) -> io::Result<()> {
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
        let Request::Run { order, stdio: [stdin, output @ ..], hold } = request else { continue };
        wire::send_reply(socket, &Reply::Taken)?;
        let started = Instant::now();
        let reply = match start(&order, stdin, &output) {
            Err(reply) => reply,
            Ok(child) => match Hook::new(socket, means, &child, &order, started, &mut next).run() {
                Some(ended) => Reply::Ended(ended),
                None => return Ok(()),
            },
        };
        // Not before, or the program would be woken by the end of its output and again by the reply.
        drop(output);
        // Everything that the hook started is gone, so another program may run it from here on. If this program
        // is gone, the held file is closed by the end of this process, after the end of the hook.
        drop(hold);
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
    usage_watch::limit_files(order.limits.disk_bytes);
    if order.confinement.is_some() {
        return confined_exec::start(order, stdio);
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
    // Last, so that nobody takes it off again.
    pass_on_mark(&mut command);
    command.current_dir(&order.cwd);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    command
}

/// Who is marked marks what it starts, whatever else that has for an environment.
pub(super) fn pass_on_mark(command: &mut Command) {
    command.envs(std::env::var_os(MARK).map(|mark| (MARK, mark)));
}

/// The hook that runs.
struct Hook<'a> {
    order: &'a Order,
    socket: BorrowedFd<'a>,
    means: &'a Means,
    /// The process that was started, and when the system says that it was.
    first: Pid,
    began: Option<u64>,
    started: Instant,
    /// The program is gone: there is nobody to run hooks for.
    alone: bool,
    killed: u64,
    /// Strays that were killed: nobody is told of their end.
    strays: HashSet<Pid>,
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
        means: &'a Means,
        child: &Child,
        order: &'a Order,
        started: Instant,
        next: &'a mut Option<Request>,
    ) -> Hook<'a> {
        // Until it is waited for, the id is this process's and no other's.
        let first = Pid::from_child(child);
        let is_marked = means.kept.mark.is_some();
        let began = is_marked.then(|| os::stat(first)).flatten().and_then(|stat| stat.started);
        let watch_over = Watch::new(order.limits, started);
        let (alone, killed, strays) = (false, 0, HashSet::new());
        Hook {
            order,
            socket,
            means,
            first,
            began,
            started,
            alone,
            killed,
            strays,
            next,
            watch_over,
        }
    }

    /// None if the program is gone, and the hook with it.
    fn run(mut self) -> Option<Ended> {
        let (told, quiet_until) = self.wait_for_first();
        if told.is_some() && quiet_until <= Instant::now() || self.alone {
            // The first process was not waited for, so the group is still its own. Nobody in it gets away,
            // however fast they fork.
            let _ = kill_process_group(self.first, Signal::KILL);
            self.kill_all();
        }
        let end = self.take_first();
        let duration = self.started.elapsed();
        let survivors = self.end_leftovers(quiet_until, told.is_some());
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
                Event::Time => {
                    match self.watch_over.look(&self.means.kept, self.first, &self.order.cwd) {
                        // There is no use in asking.
                        Some(limit) => return (Some(How::OverLimit(limit)), Instant::now()),
                        None => continue,
                    }
                }
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
        let mut fds = [
            PollFd::new(&self.means.ends, PollFlags::IN),
            PollFd::new(&self.socket, PollFlags::IN),
        ];
        // A poll that fails would fail again; as it is, the timeout holds. One that a signal ends is told what it was.
        if poll(&mut fds, Some(&timespec(timeout))) == Err(Errno::INTR) {
            return Event::Other;
        }
        let [ends, socket] = fds.map(|fd| !fd.revents().is_empty());
        match (ends, socket) {
            (true, _) if self.has_first_ended() => Event::FirstEnded,
            (_, true) => self.hear(),
            (true, false) => Event::Other,
            (false, false) => Event::Time,
        }
    }

    /// To be asked when a child may have ended.
    fn has_first_ended(&self) -> bool {
        // Who ends from now on is told again.
        while (&self.means.ends).read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        os::has_ended(self.first)
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
        self.means.kept.visit(|pid| {
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
        let until = Instant::now() + KILL_LIMIT;
        while !self.has_first_ended() && Instant::now() < until {
            let mut fds = [PollFd::new(&self.means.ends, PollFlags::IN)];
            let left = until.saturating_duration_since(Instant::now());
            let _ = poll(&mut fds, Some(&timespec(left)));
        }
        try_wait4_pid(self.first.as_raw_nonzero().get().cast_unsigned()).ok().flatten()
    }

    /// Leaves everybody alone until `quiet_until`, then kills them until nobody is left. Returns who
    /// could not be killed.
    fn end_leftovers(&mut self, quiet_until: Instant, was_told: bool) -> Vec<u32> {
        let mut pause = PAUSE_MIN;
        let mut kill_from = quiet_until;
        let mut found_nobody = 0;
        loop {
            let killed_before = self.killed;
            if self.reap() == Left::Nobody && !self.means.kept.has_strays(self.began) {
                found_nobody += 1;
                // Where somebody had to be killed, one who is another process every moment may be missed by a look.
                let is_calm = !was_told && self.killed == 0 && self.strays.is_empty();
                if is_calm || self.means.kept.mark.is_none() || found_nobody >= LOOKS_AT_STRAYS {
                    self.killed += self.strays.len() as u64;
                    return Vec::new();
                }
            } else {
                found_nobody = 0;
            }
            let now = Instant::now();
            if now >= kill_from + KILL_LIMIT {
                return self.survivors();
            }
            if now >= kill_from {
                self.kill_all();
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

    /// Kills everybody, who are stopped first.
    ///
    /// The ids are those of a moment ago: one can't be another process's by now, since the system gives ids
    /// in turn, unless all of them went round in that moment.
    fn kill_all(&mut self) {
        let is_marked = self.means.kept.mark.is_some();
        let is_stray = |stat: Stat| !stat.dead && stat.parent != Some(getpid());
        for pid in self.means.kept.stopped() {
            // Of the end of another's child nobody is told.
            if is_marked && os::stat(pid).is_some_and(is_stray) {
                self.strays.insert(pid);
            }
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn survivors(&self) -> Vec<u32> {
        let mut survivors = Vec::new();
        self.means.kept.visit(|pid| {
            if survivors.len() < SURVIVORS_TOLD {
                survivors.push(pid.as_raw_nonzero().get().cast_unsigned());
            }
        });
        survivors
    }
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
