//! `hookloop merge`

use hookloop_engine::delivery::train::{self, Arrival, Fate};
use serde::Serialize;

use super::Context;
use super::session::{heed_signals, runner};
use crate::output::{DIM, Result, plain};

/// What scripts can rely on: somebody is needed for one of them.
const NEEDS_HUMAN: u8 = 3;

/// Merge submitted tasks, one after the other, each tested on top of those before it
///
/// Gates of before_merge are asked first. What fails goes back to whoever takes the task next, with the reason. Nothing
/// is done in your checkout. Exit code: 0, or 3 if a human is needed for one of them.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// A line of `--json`.
#[derive(Serialize)]
pub(crate) struct ArrivalJson<'a> {
    task: &'a str,
    /// `merged`, `returned`, `blocked` or `waits`.
    fate: &'static str,
    commit: Option<&'a str>,
    by: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> From<&'a Arrival> for ArrivalJson<'a> {
    fn from(arrival: &'a Arrival) -> ArrivalJson<'a> {
        let (fate, commit, by, reason) = match &arrival.fate {
            Fate::Merged { commit } => ("merged", Some(commit), None, None),
            Fate::Returned { by, reason } => ("returned", None, Some(by), Some(reason)),
            Fate::Blocked { reason } => ("blocked", None, None, Some(reason)),
            Fate::Waits { reason } => ("waits", None, None, Some(reason)),
        };
        ArrivalJson {
            task: arrival.task.as_str(),
            fate,
            commit: commit.map(String::as_str),
            by: by.map(String::as_str),
            reason: reason.map(String::as_str),
        }
    }
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.project()?;
        let runner = runner(&project)?;
        let stop = heed_signals()?;
        // A review whose program died has something set aside that others may need.
        super::resume::end_interrupted(context, &project, &stop)?;
        let out = &mut context.out;
        let mut shown = Ok(());
        let mut show = |arrival: &Arrival| {
            if shown.is_ok() {
                let said = match out.json {
                    true => out.json(&ArrivalJson::from(arrival)),
                    false => out.line(plain(&arrival.to_string())),
                };
                shown = said.and_then(|()| out.flush());
            }
        };
        let arrivals = train::merge(&project, runner, stop.cancel(), &mut show)?;
        shown?;
        if arrivals.is_empty() && !out.json {
            out.line(format_args!("{DIM}Nothing waits to be merged.{DIM:#}"))?;
        }
        let is_blocked = |arrival: &Arrival| matches!(arrival.fate, Fate::Blocked { .. });
        if arrivals.iter().any(is_blocked) {
            context.exit = NEEDS_HUMAN;
        }
        context.finish(&project)
    }
}
