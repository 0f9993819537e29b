//! The current step of a session, in a small file in the session's directory.
//!
//! The process that performs the session replaces the file during the step. Other processes of the
//! machine read it: `status`, `why`, the TUI and the dashboard. The file is for display only.
//! Decisions use the log.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hookloop_agents::TurnUpdate;
use hookloop_config::clock::now;
use hookloop_core::event::EventBody;
use hookloop_core::id::SessionId;
use hookloop_core::session::TurnKind;
use hookloop_core::time::Timestamp;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::{HookBoard, HookStart, QUIET_AFTER};
use hookloop_process::JobObserver;
use serde::{Deserialize, Serialize};

use super::session_directory;
use super::world::{PauseReason, SessionUpdate};

const NAME: &str = "now.json";
/// The file before it is renamed.
const DRAFT: &str = "now.json.new";
/// Minimum time between two writes of the file.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// Maximum bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum lines of output that are kept, and bytes of each.
const LINES_MAX: usize = 8;
const LINE_BYTES_MAX: usize = 512;
/// Maximum running hooks in the record.
const HOOKS_MAX: usize = 16;
/// The current step of a session, at the time of writing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NowRecord {
    /// The process that performs the session.
    pub pid: u32,
    pub iteration: u32,
    /// The task that the session has claimed.
    pub task: Option<String>,
    pub step: NowStep,
    pub since: Timestamp,
    /// The latest end of the step.
    pub until: Option<Timestamp>,
    /// The last lines of the agent's output in its turn, the oldest first.
    pub lines: Vec<String>,
    /// The hooks that run, the oldest first.
    pub hooks: Vec<RunningHook>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NowStep {
    /// Between two steps.
    Between,
    Hooks {
        point: String,
        /// The number of hooks of the point, and of those that have ended.
        count: usize,
        ended: usize,
    },
    Turn {
        turn: TurnKind,
    },
    /// The agent's provider returned a rate limit.
    RateLimit,
    /// The session waits after a failed turn.
    Backoff,
    /// The session waits before it retries a delivery.
    DeliveryRetry,
    /// The session waits for the decision of a person about this question.
    Person {
        question: String,
    },
    /// Other sessions have reserved the rest of the budget.
    Budget,
    /// The worker starts no new steps.
    Rest,
}

/// A running hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningHook {
    pub name: String,
    /// The command line, or a description of a hook without one.
    pub command: String,
    pub attempt: u32,
    pub since: Timestamp,
    /// The time at which the hook times out.
    pub until: Timestamp,
    /// The time of its last output.
    pub printed_at: Option<Timestamp>,
    /// The last lines of its output, the oldest first.
    pub lines: Vec<String>,
}

impl RunningHook {
    /// Returns the last line of its output that is not blank.
    pub fn last_line(&self) -> Option<&str> {
        self.lines.iter().rev().map(|line| line.trim()).find(|line| !line.is_empty())
    }

    /// Returns how long it has printed nothing, if that is long enough to show.
    pub fn quiet_for(&self, now: Timestamp) -> Option<Duration> {
        let ms = now.millis_since(self.printed_at.unwrap_or(self.since));
        let quiet = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        (quiet >= QUIET_AFTER).then_some(quiet)
    }
}

/// The last lines of a stream.
#[derive(Clone, Debug, Default)]
struct LastLines {
    whole: VecDeque<String>,
    open: Vec<u8>,
}

impl LastLines {
    fn push(&mut self, text: &[u8]) {
        // Of a large chunk, only the end is kept.
        let most = LINES_MAX * LINE_BYTES_MAX;
        let text = &text[text.len().saturating_sub(most)..];
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            let is_over = piece.ends_with(b"\n");
            self.open.extend_from_slice(&piece[..piece.len() - usize::from(is_over)]);
            if self.open.len() > LINE_BYTES_MAX {
                // Of a line that is redrawn with carriage returns, only the last version is kept.
                let start = match self.open.iter().rposition(|byte| *byte == b'\r') {
                    Some(at) if self.open.len() - at <= LINE_BYTES_MAX => at + 1,
                    _ if is_over => 0,
                    _ => self.open.len() - LINE_BYTES_MAX,
                };
                self.open.drain(..start);
                self.open.truncate(LINE_BYTES_MAX);
            }
            if is_over {
                self.whole.push_back(String::from_utf8_lossy(&self.open).into_owned());
                self.open.clear();
                if self.whole.len() > LINES_MAX {
                    self.whole.pop_front();
                }
            }
        }
    }

    fn lines(&self) -> Vec<String> {
        let open = String::from_utf8_lossy(&self.open).into_owned();
        let open = Some(open).filter(|line| !line.is_empty());
        let all = self.whole.len() + usize::from(open.is_some());
        let lines = self.whole.iter().cloned().chain(open);
        lines.skip(all.saturating_sub(LINES_MAX)).collect()
    }
}

/// The current step of a session. Clones share it.
#[derive(Clone, Debug)]
pub struct NowBoard(Arc<SharedBoard>);

#[derive(Debug)]
struct SharedBoard {
    state: Mutex<BoardState>,
    changed: Condvar,
}

#[derive(Debug)]
struct BoardState {
    /// The record without its hooks and lines.
    record: NowRecord,
    said: LastLines,
    hooks: Vec<(u64, RunningHook, LastLines)>,
    next_hook: u64,
    is_dirty: bool,
    is_over: bool,
}

impl BoardState {
    fn record(&self) -> NowRecord {
        let hooks = self.hooks.iter().take(HOOKS_MAX);
        let hooks =
            hooks.map(|(_, hook, last)| RunningHook { lines: last.lines(), ..hook.clone() });
        NowRecord { lines: self.said.lines(), hooks: hooks.collect(), ..self.record.clone() }
    }
}

impl Default for NowBoard {
    fn default() -> NowBoard {
        let record = NowRecord {
            pid: std::process::id(),
            iteration: 0,
            task: None,
            step: NowStep::Between,
            since: now(),
            until: None,
            lines: Vec::new(),
            hooks: Vec::new(),
        };
        let state = BoardState {
            record,
            said: LastLines::default(),
            hooks: Vec::new(),
            next_hook: 0,
            is_dirty: true,
            is_over: false,
        };
        NowBoard(Arc::new(SharedBoard { state: Mutex::new(state), changed: Condvar::new() }))
    }
}

impl NowBoard {
    fn lock(&self) -> MutexGuard<'_, BoardState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, act: impl FnOnce(&mut BoardState)) {
        let mut state = self.lock();
        act(&mut state);
        state.is_dirty = true;
        drop(state);
        self.0.changed.notify_all();
    }

    pub fn record(&self) -> NowRecord {
        self.lock().record()
    }

    /// Starts another step, which takes at most `most`.
    pub(crate) fn begin(&self, step: NowStep, most: Option<Duration>) {
        self.change(|state| {
            let since = now();
            let until = most.map(|most| after(since, most));
            state.record = NowRecord { step, since, until, ..state.record.clone() };
            state.said = LastLines::default();
        });
    }

    pub(crate) fn hold(&self, task: Option<String>) {
        self.change(|state| state.record.task = task);
    }

    /// Sets the maximum duration of the agent's turn.
    pub(crate) fn limit_turn(&self, most: Duration) {
        self.change(|state| state.record.until = Some(after(state.record.since, most)));
    }

    pub(crate) fn hear(&self, update: TurnUpdate<'_>) {
        self.change(|state| match update {
            TurnUpdate::Output(text) => state.said.push(text),
            TurnUpdate::Text(text) | TurnUpdate::Tool(text) => {
                state.said.push(text.as_bytes());
                state.said.push(b"\n");
            }
            TurnUpdate::Usage(_) => {}
        });
    }

    /// Counts a hook of the point that has ended, after all its attempts.
    pub(crate) fn count_ended_hook(&self) {
        self.change(|state| {
            if let NowStep::Hooks { ended, .. } = &mut state.record.step {
                *ended += 1;
            }
        });
    }

    pub(crate) fn notice(&self, notice: &SessionUpdate<'_>) {
        match notice {
            SessionUpdate::Hooks { point, count } => {
                let (point, count, ended) = (point.name().to_owned(), *count, 0);
                self.begin(NowStep::Hooks { point, count, ended }, None);
            }
            SessionUpdate::Turn { kind, iteration } => {
                self.begin(NowStep::Turn { turn: *kind }, None);
                self.change(|state| state.record.iteration = *iteration);
            }
            SessionUpdate::Pause { ms, reason } => {
                let step = match reason {
                    PauseReason::RateLimit => NowStep::RateLimit,
                    PauseReason::FailedTurn => NowStep::Backoff,
                    PauseReason::Delivery => NowStep::DeliveryRetry,
                };
                self.begin(step, Some(Duration::from_millis(*ms)));
            }
            SessionUpdate::Budget => self.begin(NowStep::Budget, None),
            SessionUpdate::Ran(_) => self.begin(NowStep::Between, None),
            SessionUpdate::Stored(events) => {
                for stored in *events {
                    if let EventBody::IterationStarted(started) = &stored.event.body {
                        self.change(|state| state.record.iteration = started.number);
                    }
                }
            }
            SessionUpdate::Said(_)
            | SessionUpdate::Did(_)
            | SessionUpdate::GatesRepeat { .. }
            | SessionUpdate::GatesWrote { .. }
            | SessionUpdate::SetupRepeats { .. }
            | SessionUpdate::ParallelRepeats { .. }
            | SessionUpdate::UncommittedSubmodules { .. }
            | SessionUpdate::BaseTests { .. }
            | SessionUpdate::Strength { .. }
            | SessionUpdate::TestReview { .. } => {}
        }
    }

    /// Returns an observer for a hook. The hook is shown from its start until the observer is
    /// dropped.
    fn hook(&self, start: HookStart) -> HookProgress {
        HookProgress { board: self.clone(), start, key: Mutex::new(None) }
    }
}

impl HookBoard for NowBoard {
    fn show(&self, start: HookStart) -> Arc<dyn JobObserver> {
        Arc::new(self.hook(start))
    }
}

fn after(at: Timestamp, length: Duration) -> Timestamp {
    Timestamp(at.0.saturating_add(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)))
}

/// Shows a hook on a board while it runs.
#[derive(Debug)]
struct HookProgress {
    board: NowBoard,
    start: HookStart,
    /// None until the hook starts.
    key: Mutex<Option<u64>>,
}

impl HookProgress {
    fn key(&self) -> MutexGuard<'_, Option<u64>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobObserver for HookProgress {
    fn began(&self) {
        let mut key = self.key();
        if key.is_some() {
            return;
        }
        let HookStart { name, command, attempt, timeout } = self.start.clone();
        let since = now();
        let until = after(since, timeout);
        let (printed_at, lines) = (None, Vec::new());
        let hook = RunningHook { name, command, attempt, since, until, printed_at, lines };
        self.board.change(|state| {
            state.next_hook += 1;
            *key = Some(state.next_hook);
            state.hooks.push((state.next_hook, hook, LastLines::default()));
        });
    }

    fn printed(&self, text: &[u8]) {
        let key = *self.key();
        self.board.change(|state| {
            let own = state.hooks.iter_mut().find(|(number, ..)| Some(*number) == key);
            if let Some((_, hook, last)) = own {
                hook.printed_at = Some(now());
                last.push(text);
            }
        });
    }
}

impl Drop for HookProgress {
    fn drop(&mut self) {
        let key = *self.key();
        if key.is_some() {
            self.board.change(|state| state.hooks.retain(|(number, ..)| Some(*number) != key));
        }
    }
}

/// Writes a board to the session's directory until it is dropped.
#[derive(Debug)]
pub(crate) struct NowWriter {
    board: NowBoard,
    directory: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl NowWriter {
    pub(crate) fn start(directory: &Path, board: &NowBoard) -> NowWriter {
        forget(directory);
        let (shared, place) = (board.clone(), directory.to_owned());
        // Without the thread there is no file.
        let thread = std::thread::Builder::new()
            .name("now".to_owned())
            .spawn(move || write_changes(&shared, &place))
            .inspect_err(|error| tracing::warn!(%error, "the step of a session is not shown"))
            .ok();
        NowWriter { board: board.clone(), directory: directory.to_owned(), thread }
    }
}

impl Drop for NowWriter {
    fn drop(&mut self) {
        self.board.change(|state| state.is_over = true);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("the thread that shows the session's step panicked");
        }
        forget(&self.directory);
    }
}

fn write_changes(board: &NowBoard, directory: &Path) {
    loop {
        let waited =
            board.0.changed.wait_while(board.lock(), |state| !state.is_dirty && !state.is_over);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return;
        }
        state.is_dirty = false;
        let record = state.record();
        drop(state);
        // If the record cannot be written, other processes do not see it.
        let written = write(directory, &record);
        if let Err(error) = written {
            tracing::debug!(path = %directory.display(), %error, "the step of a session is not shown");
        }
        let rested =
            board.0.changed.wait_timeout_while(board.lock(), WRITE_EVERY, |state| !state.is_over);
        drop(rested);
    }
}

fn write(directory: &Path, record: &NowRecord) -> std::io::Result<()> {
    let draft = directory.join(DRAFT);
    let mut options = OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    fs::rename(&draft, directory.join(NAME))
}

/// Removes the record of a session.
pub(crate) fn forget(directory: &Path) {
    for name in [NAME, DRAFT] {
        session_directory::remove_if_there(&directory.join(name));
    }
}

/// Returns the current step of a session that a process of this machine performs.
///
/// A record that another process left behind is not returned.
pub fn read(runner: &ExecContext, id: &SessionId) -> Option<NowRecord> {
    let directory = session_directory::directory(runner, id);
    let holder = session_directory::holder(&directory)?;
    let record = read_file(&directory)?;
    (record.pid == holder).then_some(record)
}

fn read_file(directory: &Path) -> Option<NowRecord> {
    let file = File::open(directory.join(NAME)).ok()?;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use hookloop_core::point::Point;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn start(name: &str) -> HookStart {
        let command = format!("./{name}.sh");
        HookStart { name: name.to_owned(), command, attempt: 1, timeout: Duration::from_secs(60) }
    }

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_hook_is_in_the_now_record_only_while_running() {
        let board = NowBoard::default();
        board.notice(&SessionUpdate::Hooks { point: &Point::Stop, count: 2 });
        let (tests, lint) = (board.hook(start("tests")), board.hook(start("lint")));
        tests.began();
        tests.printed(b"one\ntw");
        tests.printed(b"o");
        let record = board.record();
        assert_eq!(record.hooks.len(), 1, "a hook that waits for its turn does not run");
        let hook = &record.hooks[0];
        assert_eq!((hook.name.as_str(), hook.command.as_str()), ("tests", "./tests.sh"));
        assert_eq!(hook.until.millis_since(hook.since), 60_000);
        assert_eq!(
            (hook.lines.as_slice(), hook.last_line()),
            (&["one", "two"].map(String::from)[..], Some("two"))
        );
        lint.began();
        drop(tests);
        board.count_ended_hook();
        let record = board.record();
        assert_eq!(record.hooks.iter().map(|hook| &hook.name).collect::<Vec<_>>(), ["lint"]);
        assert_eq!(record.step, NowStep::Hooks { point: "stop".to_owned(), count: 2, ended: 1 });
    }

    #[test]
    fn only_the_last_lines_of_hook_output_are_kept() {
        let mut last = LastLines::default();
        let flood: Vec<u8> = (0..100_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        last.push(&flood);
        assert_eq!(last.lines().len(), LINES_MAX);
        assert_eq!(last.lines().last().unwrap(), "99999");
        for percent in 0..10_000 {
            last.push(format!("\r{percent} %").as_bytes());
        }
        assert!(last.open.len() <= LINE_BYTES_MAX, "{}", last.open.len());
        assert!(last.lines().last().unwrap().ends_with("9999 %"));
        last.push(&vec![b'x'; 10 * LINE_BYTES_MAX]);
        last.push(b"\n");
        assert_eq!(last.lines().last().unwrap().len(), LINE_BYTES_MAX);
    }

    #[test]
    fn a_hook_without_output_is_quiet_after_a_while() {
        let board = NowBoard::default();
        let progress = board.hook(start("watch"));
        progress.began();
        let hook = board.record().hooks.remove(0);
        let later = |ms: i64| Timestamp(hook.since.0 + ms);
        let quiet = i64::try_from(QUIET_AFTER.as_millis()).unwrap();
        assert_eq!(hook.quiet_for(later(quiet - 1)), None);
        assert_eq!(hook.quiet_for(later(quiet)), Some(QUIET_AFTER));
    }

    #[test]
    fn the_now_file_follows_the_board_and_is_removed_with_its_writer() {
        let directory = tempfile::tempdir().unwrap();
        let board = NowBoard::default();
        let writer = NowWriter::start(directory.path(), &board);
        let progress = board.hook(start("tests"));
        progress.began();
        let shows = |line: &str| {
            read_file(directory.path()).is_some_and(|record| {
                record.hooks.iter().any(|hook| hook.last_line() == Some(line))
            })
        };
        for line in ["first", "second"] {
            progress.printed(format!("{line}\n").as_bytes());
            until(line, || shows(line));
        }
        drop(writer);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
