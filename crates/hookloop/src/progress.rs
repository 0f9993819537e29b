//! Progress of long work: a bar on a terminal, nothing in a pipe.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const DRAWS_PER_SECOND: u8 = 10;
/// Work that is over sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar on standard error, if that is a terminal and the work takes a while.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let template = "{msg} {bar:30} {human_pos} of {human_len}  {per_sec}  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar: bar.with_message(what), started: Instant::now() }
    }

    pub(crate) fn at(&self, done: u64, all: u64) {
        if self.bar.is_hidden() && self.started.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
        }
        self.bar.set_length(all);
        self.bar.set_position(done);
    }
}

/// Events between two updates of a bar.
const STEP: u64 = 4_096;

/// A bar for a walk over the project's `all` events: what to call at each of them.
pub(crate) fn over_events(what: &'static str, all: u64) -> impl FnMut(u64) {
    let progress = Progress::new(what);
    move |seq| {
        if seq % STEP == 0 {
            progress.at(seq, all);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
