//! Progress of long work: one line on a terminal, nothing in a pipe.
//!
//! Drawn without a library: the usual one makes the start of every command slower.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::quiet;

/// Work that is over sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);
const BETWEEN_DRAWS: Duration = Duration::from_millis(100);
const WIDTH: u64 = 30;
/// Events between two readings of the clock.
const STEP: u64 = 4_096;
/// Back to the start of the line, and empty it.
const CLEAR: &str = "\r\x1b[K";

/// A bar on standard error, if that is a terminal and the work takes a while.
pub(crate) struct ProgressBar {
    what: &'static str,
    started: Instant,
    drawn: Cell<Option<Instant>>,
    terminal: bool,
}

impl ProgressBar {
    pub(crate) fn new(what: &'static str) -> ProgressBar {
        let terminal = std::io::stderr().is_terminal() && !quiet::is_set();
        ProgressBar { what, started: Instant::now(), drawn: Cell::new(None), terminal }
    }

    pub(crate) fn at(&self, done: u64, all: u64) {
        self.say(|| line(self.what, done, all, self.started.elapsed()));
    }

    /// Draws a line in the place of the one before, if it is time for one.
    pub(crate) fn say(&self, line: impl FnOnce() -> String) {
        let just_drawn = self.drawn.get().is_some_and(|at| at.elapsed() < BETWEEN_DRAWS);
        if !self.terminal || self.started.elapsed() < PATIENCE || just_drawn {
            return;
        }
        self.drawn.set(Some(Instant::now()));
        // A line that can't be drawn does not stop the work.
        let _ = write!(std::io::stderr(), "{CLEAR}{}", line());
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.drawn.get().is_some() {
            // A terminal that is gone needs no clearing.
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
    }
}

fn line(what: &str, done: u64, all: u64, elapsed: Duration) -> String {
    let all = all.max(1);
    let filled = (done.min(all) * WIDTH / all) as usize;
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH as usize - filled));
    let rate = done * 1_000 / (elapsed.as_millis() as u64).max(1);
    let left = all.saturating_sub(done) / rate.max(1);
    format!("{what} {bar} {done} of {all}  {rate}/s  {left} s left")
}

/// Returns a progress bar for a walk over the project's `all` events, as a function to call for each of them.
pub(crate) fn over_events(what: &'static str, all: u64) -> impl FnMut(u64) {
    let progress = ProgressBar::new(what);
    move |seq| {
        if seq.is_multiple_of(STEP) {
            progress.at(seq, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_has_count_rate_and_remaining_time() {
        let half = line("importing", 500, 1_000, Duration::from_secs(5));
        assert_eq!(
            half,
            format!("importing {}{} 500 of 1000  100/s  5 s left", "█".repeat(15), "░".repeat(15))
        );
        assert!(line("x", 0, 0, Duration::ZERO).contains("0 of 1"));
    }
}
