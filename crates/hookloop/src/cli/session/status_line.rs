//! The step of a running session on a terminal's last line, or as a few lines in a pipe.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hookloop_core::time::Timestamp;
use hookloop_engine::session::now::{NowBoard, NowRecord, NowStep, RunningHook};

use crate::output::{CommandOutput, DIM, cut_to_terminal};
use crate::present::now;
use crate::quiet;

/// The time between two drawings of the status line.
const TICK: Duration = Duration::from_millis(250);
/// In a pipe, a hook gets a line after it has run this long, and further lines at this interval.
const TOLD_AFTER_MS: i64 = 1_000;
const TOLD_EVERY_MS: i64 = 10_000;
/// Returns to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Starts the display of a running session's step; none if the output is JSON, or with `-q` on a terminal.
pub(super) fn status_line(out: &CommandOutput, board: &NowBoard) -> Option<StatusLine> {
    match (out.json, out.terminal) {
        (true, _) => None,
        (false, true) if quiet::is_set() => None,
        (false, true) => Some(StatusLine::start(StatusPlace::Terminal, board)),
        (false, false) => {
            // Without a second descriptor there are no such lines; events are still printed.
            let stdout = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
            let file = File::from(stdout);
            let told = Vec::new();
            Some(StatusLine::start(StatusPlace::Pipe(PipeLines { file, told }), board))
        }
    }
}

/// A text that is made again for each drawing.
pub(super) type StatusText = Box<dyn Fn() -> String + Send>;

/// The display of a running session's step: the last line of a terminal, which is redrawn, or a few lines in a pipe.
pub(super) struct StatusLine {
    shared: Arc<Mutex<StatusContent>>,
    over: Arc<AtomicBool>,
}

struct StatusContent {
    what: Option<StatusText>,
    since: Instant,
    said: String,
    board: NowBoard,
    place: StatusPlace,
}

enum StatusPlace {
    Terminal,
    Pipe(PipeLines),
}

/// Prints lines about slow hooks.
struct PipeLines {
    file: File,
    /// The hooks that have a line, and the times of their last lines.
    told: Vec<(String, Timestamp, Timestamp)>,
}

impl StatusLine {
    fn start(place: StatusPlace, board: &NowBoard) -> StatusLine {
        let what = None;
        let said = String::new();
        let shown =
            StatusContent { what, since: Instant::now(), said, board: board.clone(), place };
        let shared = Arc::new(Mutex::new(shown));
        let over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&shared);
        let is_over = Arc::clone(&over);
        // Without a thread there is no status line; the session runs anyway.
        let _ = std::thread::Builder::new().name("status".to_owned()).spawn(move || {
            loop {
                std::thread::sleep(TICK);
                let mut shown = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                shown.draw();
            }
        });
        StatusLine { shared, over }
    }

    pub(super) fn now(&self, what: StatusText) {
        let mut shown = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shown.what = Some(what);
        shown.since = Instant::now();
        shown.said = String::new();
    }

    pub(super) fn say(&self, line: &str) {
        let mut shown = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shown.said = now::shown(line);
    }

    /// Clears the line, then writes something else.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        let shown = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clear();
        let written = write();
        drop(shown);
        written
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        let shown = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.over.store(true, Ordering::SeqCst);
        shown.clear();
    }
}

impl StatusContent {
    fn clear(&self) {
        if let StatusPlace::Terminal = self.place {
            // A terminal that is gone needs no clearing.
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
    }

    fn draw(&mut self) {
        let record = self.board.record();
        let at = crate::environment::now();
        match &mut self.place {
            StatusPlace::Pipe(lines) => lines.tell(&record, at),
            StatusPlace::Terminal => {
                let text = match (record.hooks.first(), &self.what) {
                    (Some(hook), _) => {
                        format!("{}  {}", now::line(&record, at), now::last_output(hook, at))
                    }
                    (None, None) => return,
                    (None, Some(what)) => {
                        let seconds = self.since.elapsed().as_secs();
                        format!("{} {seconds} s  {}", what(), self.said)
                    }
                };
                let line = cut_to_terminal(&format!("  {text}"));
                // A line that can't be drawn does not stop the session.
                let _ = write!(anstream::stderr(), "{CLEAR}{DIM}{line}{DIM:#}");
            }
        }
    }
}

impl PipeLines {
    fn tell(&mut self, record: &NowRecord, at: Timestamp) {
        let NowStep::Hooks { point, .. } = &record.step else { return };
        let is_running = |name: &str, since: Timestamp| {
            record.hooks.iter().any(|hook| hook.name == name && hook.since == since)
        };
        self.told.retain(|(name, since, _)| is_running(name, *since));
        for hook in &record.hooks {
            let RunningHook { name, since, .. } = hook;
            let own = |(known, began, _): &&mut (String, Timestamp, Timestamp)| {
                known == name && began == since
            };
            let shown_name = now::shown(name);
            let line = match self.told.iter_mut().find(own) {
                None if at.millis_since(*since) < TOLD_AFTER_MS => continue,
                None => {
                    self.told.push((name.clone(), *since, at));
                    let command = now::shown(&hook.command);
                    format!("  {point:<14} {shown_name:<24} started: {command}")
                }
                Some((.., last)) if at.millis_since(*last) < TOLD_EVERY_MS => continue,
                Some((.., last)) => {
                    *last = at;
                    let took = now::elapsed(*since, at);
                    let output = now::last_output(hook, at);
                    format!("  {point:<14} {shown_name:<24} running {took}, {output}")
                }
            };
            // A closed pipe is noticed when the next event is printed.
            let _ = self.file.write_all(format!("{line}\n").as_bytes());
        }
    }
}
