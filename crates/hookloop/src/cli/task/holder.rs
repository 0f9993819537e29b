//! The claimant of a task, the length of its lease, and the right to change a claimed task.

use std::env;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use hookloop_core::claim::{Fence, LEASE_MAX_MS, LEASE_MIN_MS};
use hookloop_core::id::TaskId;

use crate::error::{CliError, CliResult};

/// The name of the new claimant, and its lease.
#[derive(clap::Args)]
pub(super) struct ClaimantArgs {
    /// Name of the claimant [default: $HOOKLOOP_CLAIMANT, else USER@MACHINE]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    agent: Option<String>,

    /// Longest time between two heartbeats, such as `30s` or `5m` (1s to 24h)
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_lease)]
    pub(super) lease: Duration,
}

impl ClaimantArgs {
    pub(super) fn agent(&self) -> String {
        let named = self.agent.clone().or_else(|| env::var("HOOKLOOP_CLAIMANT").ok());
        named.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| {
            format!("{}@{}", crate::environment::user_name(), crate::environment::machine())
        })
    }
}

/// The right by which a command changes a task that may be claimed.
#[derive(clap::Args)]
pub(super) struct ClaimRight {
    #[command(flatten)]
    epoch: EpochArg,

    /// Override the claim of another claimant
    #[arg(long, conflicts_with = "epoch")]
    force: bool,
}

impl ClaimRight {
    pub(super) fn forces(&self) -> bool {
        self.force
    }

    pub(super) fn fence(&self, id: &TaskId) -> CliResult<Fence> {
        if self.force {
            return Ok(Fence::Override);
        }
        Ok(self.epoch.of(id)?.map_or(Fence::None, Fence::Epoch))
    }
}

#[derive(clap::Args)]
pub(super) struct EpochArg {
    /// Epoch of your claim [default: $HOOKLOOP_EPOCH for the task $HOOKLOOP_TASK_ID]
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,
}

impl EpochArg {
    /// Returns the epoch that the user names for `id`. The environment names the epoch of one task only.
    pub(super) fn of(&self, id: &TaskId) -> CliResult<Option<u64>> {
        let task = env::var("HOOKLOOP_TASK_ID").is_ok_and(|task| task == id.as_str());
        match (self.epoch, env::var("HOOKLOOP_EPOCH")) {
            (None, Ok(text)) if task => {
                let wrong =
                    |_| CliError::usage(format!("HOOKLOOP_EPOCH is not a number: `{text}`"));
                text.parse().map(Some).map_err(wrong)
            }
            (epoch, _) => Ok(epoch),
        }
    }
}

fn parse_lease(text: &str) -> std::result::Result<Duration, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let value = units.into_iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(ms)
    });
    match value {
        Some(ms) if (LEASE_MIN_MS..=LEASE_MAX_MS).contains(&ms) => Ok(Duration::from_millis(ms)),
        Some(_) => Err("a lease is 1s to 24h long".to_owned()),
        None => Err("a lease is a number and a unit: `30s`, `5m`, `2h`".to_owned()),
    }
}

/// Returns a length of time for people.
pub(super) fn said(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds if seconds % 3_600 == 0 => format!("{} h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_parsed_from_a_number_and_a_unit() {
        let check = |text: &str, expected: Option<u64>| {
            let ms = parse_lease(text).ok().map(|lease| lease.as_millis() as u64);
            assert_eq!(ms, expected, "{text}");
        };
        check("1s", Some(1_000));
        check("1500ms", Some(1_500));
        check("5m", Some(300_000));
        check("24h", Some(86_400_000));
        for bad in ["", "5", "s", "-5s", "1.5s", "999ms", "25h", "99999999999999999999h", "5 weeks"]
        {
            check(bad, None);
        }
    }

    #[test]
    fn durations_are_printed_in_the_largest_whole_unit() {
        let check = |ms: u64, expected: &str| {
            assert_eq!(said(Duration::from_millis(ms)), expected);
        };
        check(400, "400 ms");
        check(1_500, "1 s");
        check(60_000, "1 min");
        check(90_000, "90 s");
        check(7_200_000, "2 h");
    }
}
