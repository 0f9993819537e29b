//! `hookloop merge`

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hookloop_core::delivery::QueuePlace;
use hookloop_core::id::TaskId;
use hookloop_engine::delivery::train::{self, MergeResult, TrainReport};
use hookloop_engine::project::Project;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::Cancel;
use serde::Serialize;

use super::session::{handle_signals, runner};
use super::value_parsers::length;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::{CommandOutput, DIM};
use crate::sanitize::plain;

/// The exit code if a task needs a person.
const NEEDS_HUMAN: u8 = 3;
/// The exit code if tasks still wait when the time of `--wait` was over.
const STILL_WAITING: u8 = 4;
/// The longest `--wait`.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Pauses between checks while it waits: the first, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often a pause checks for a signal.
const SIGNAL_POLL: Duration = Duration::from_millis(100);

/// Test and merge submitted tasks one after the other
///
/// The gates of before_merge run first. Each task is tested on top of the tasks before it. A task that fails becomes
/// ready again, with the reason. Your checkout does not change. If the base has a merge queue on GitHub, tested tasks go
/// into the queue. Exit code: 0; 3 if a task needs a person; 4 if tasks still wait when the time of --wait is over.
#[derive(clap::Args)]
pub(crate) struct MergeArgs {
    /// Maximum wait for checks and the merge queue, such as `30m` (at most 24h) [default: none]
    #[arg(long, value_name = "TIME", value_parser = wait_time)]
    wait: Option<Duration>,
}

fn wait_time(text: &str) -> std::result::Result<Duration, String> {
    let time = Duration::from_millis(length(text)?);
    if time > WAIT_MAX { Err("at most 24h".to_owned()) } else { Ok(time) }
}

/// A line of `--json`.
#[derive(Serialize)]
pub(crate) struct ArrivalJson<'a> {
    task: &'a str,
    /// `merged`, `returned`, `blocked`, `queued` or `waits`.
    result: &'static str,
    commit: Option<&'a str>,
    by: Option<&'a str>,
    reason: Option<&'a str>,
    /// The place in the merge queue of the forge, of a task that is `queued`.
    queue: Option<&'a QueuePlace>,
}

impl<'a> From<&'a TrainReport> for ArrivalJson<'a> {
    fn from(arrival: &'a TrainReport) -> ArrivalJson<'a> {
        let queue = match &arrival.fate {
            MergeResult::Queued { place, .. } => Some(place),
            _ => None,
        };
        let (result, commit, by, reason) = match &arrival.fate {
            MergeResult::Merged { commit } => ("merged", Some(commit), None, None),
            MergeResult::Returned { by, reason } => ("returned", None, Some(by), Some(reason)),
            MergeResult::Blocked { reason } => ("blocked", None, None, Some(reason)),
            MergeResult::Queued { .. } => ("queued", None, None, None),
            MergeResult::Waits { reason } | MergeResult::Held { reason } => {
                ("waits", None, None, Some(reason))
            }
        };
        ArrivalJson {
            task: arrival.task.as_str(),
            result,
            commit: commit.map(String::as_str),
            by: by.map(String::as_str),
            reason: reason.map(String::as_str),
            queue,
        }
    }
}

impl MergeArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let runner = runner(&project)?;
        let stop = handle_signals()?;
        // A review whose program died may hold a reservation that others need.
        super::resume::end_interrupted(context, &project, &stop)?;
        let until = self.wait.map(|time| Instant::now() + time);
        let mut looks = MergeLooks::default();
        let mut pause = PAUSE;
        loop {
            let pending = looks.look(&project, runner, stop.cancel(), &mut context.out)?;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let Some(left) = left.filter(|_| pending > 0 && !stop.cancel().is_triggered()) else {
                break;
            };
            if left.is_zero() {
                context.exit = STILL_WAITING;
                break;
            }
            rest(pause.min(left), stop.cancel());
            pause = (pause * 2).min(PAUSE_MAX);
        }
        if looks.last.is_empty() && !context.out.json {
            context.out.line(format_args!("{DIM}No submitted tasks.{DIM:#}"))?;
        }
        if looks.is_blocked {
            context.exit = NEEDS_HUMAN;
        }
        context.finish(&project)
    }
}

/// Merges, one after the other, with the last word about each task.
#[derive(Default)]
struct MergeLooks {
    last: BTreeMap<TaskId, String>,
    is_blocked: bool,
}

impl MergeLooks {
    /// Merges, and prints new results. Returns how many tasks are still on their way.
    fn look(
        &mut self,
        project: &Project,
        runner: &HookRunner,
        cancel: &Cancel,
        out: &mut CommandOutput,
    ) -> CliResult<usize> {
        let mut shown = Ok(());
        let mut show = |arrival: &TrainReport| {
            let text = arrival.to_string();
            let is_news =
                self.last.insert(arrival.task.clone(), text.clone()) != Some(text.clone());
            self.is_blocked |=
                matches!(arrival.fate, MergeResult::Blocked { .. } | MergeResult::Held { .. });
            if shown.is_ok() && is_news {
                let said = if out.json {
                    out.json(&ArrivalJson::from(arrival))
                } else {
                    out.line(plain(&text))
                };
                shown = said.and_then(|()| out.flush());
            }
        };
        let arrivals = train::merge(project, runner, cancel, &mut show)?;
        shown?;
        Ok(arrivals.iter().filter(|arrival| arrival.fate.is_pending()).count())
    }
}

/// Waits for a while, or until a signal comes.
fn rest(time: Duration, cancel: &Cancel) {
    let until = Instant::now() + time;
    while Instant::now() < until && !cancel.is_triggered() {
        std::thread::sleep(SIGNAL_POLL.min(time));
    }
}
