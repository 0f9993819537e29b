//! Progress of long work: a bar on a terminal, nothing in a pipe.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const DRAWS_PER_SECOND: u8 = 10;

/// A bar for `all` steps, drawn on standard error if that is a terminal.
pub(crate) fn bar(what: &'static str, all: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let bar = ProgressBar::with_draw_target(Some(all), target).with_message(what);
    let template = "{msg} {bar:30} {human_pos} of {human_len}  {per_sec}  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
