//! `scheduling:`: priority aging and limits of work in progress.

use std::collections::BTreeMap;

use hookloop_core::options::Length;
use hookloop_core::slots::WipLimits;
use hookloop_core::urgency::PriorityAging;
use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Located, TimeText};
use crate::effective::SchedulingRules;
use crate::yaml::ConfigComplaint;

/// The most types with a limit of their own.
const TYPES_MAX: usize = 64;

/// Order of tasks, and limits of work in progress
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulingEntry {
    /// Waiting time after which a ready task counts as one priority higher, in seconds or with a unit such as `4h` or
    /// `2d`, or `never` [default: 8h]
    #[schemars(with = "Option<String>")]
    #[schemars(extend("type" = ["string", "integer", "null"]))]
    #[schemars(extend("pattern" = "^([0-9]+ ?(ms|s|m|h|d)?|never)$"))]
    priority_aging: Option<Located<TimeText>>,
    /// Maximum tasks of the project in progress at once, on all machines together [default: no limit]
    #[schemars(range(min = 1))]
    wip: Option<Located<u32>>,
    /// Maximum tasks of a type in progress at once, on all machines together, by type [default: no limit]
    #[serde(default)]
    wip_by_type: BTreeMap<String, Located<u32>>,
}

impl SchedulingEntry {
    pub(crate) fn read(self) -> Result<SchedulingRules, ConfigComplaint> {
        let priority_aging =
            self.priority_aging.map_or(Ok(PriorityAging::default()), priority_aging)?;
        let all = self.wip.map(|wip| bound("wip", &wip)).transpose()?;
        if let Some((_, Located { at, .. })) = self.wip_by_type.iter().nth(TYPES_MAX) {
            return Err(ConfigComplaint::new(*at, format!("more than {TYPES_MAX} types")));
        }
        let of_type = self.wip_by_type.into_iter().map(|(kind, wip)| {
            let max = bound(&kind, &wip)?;
            Ok((kind, max))
        });
        let of_type = of_type.collect::<Result<_, ConfigComplaint>>()?;
        Ok(SchedulingRules { priority_aging, slots: WipLimits { all, of_type } })
    }
}

fn priority_aging(
    Located { value, at }: Located<TimeText>,
) -> Result<PriorityAging, ConfigComplaint> {
    let length = match value {
        TimeText::WithUnit(text) if text == "never" => return Ok(PriorityAging::Never),
        TimeText::WithUnit(text) => Length::of_waiting(&text),
        TimeText::Seconds(seconds) => Length::of_waiting(&format!("{seconds}s")),
    };
    match length {
        Ok(length) => Ok(PriorityAging::Each { ms: length.ms }),
        Err(error) => Err(ConfigComplaint::new(at, format!("{error}, or `never`"))),
    }
}

/// Reads a limit, which must be at least 1: with 0 no task would ever be claimed.
fn bound(name: &str, wip: &Located<u32>) -> Result<u32, ConfigComplaint> {
    match wip.value {
        0 => Err(ConfigComplaint::new(
            wip.at,
            format!("`{name}` is 1 or more; leave it out for no limit"),
        )),
        max => Ok(max),
    }
}
