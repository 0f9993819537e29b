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

/// Which tasks are taken, and how many at once.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulingEntry {
    /// How long a ready task waits until it is a step of priority more urgent, such as `4h` or `2d`, or `never`;
    /// 8 hours if it is not given.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("type" = ["string", "integer", "null"]))]
    #[schemars(extend("pattern" = "^([0-9]+ ?(ms|s|m|h|d)?|never)$"))]
    ageing: Option<Located<TimeText>>,
    /// Tasks of the project that may be in somebody's hands at once, over all machines; no bound if it is not given.
    #[schemars(range(min = 1))]
    wip: Option<Located<u32>>,
    /// The same for tasks of a type.
    #[serde(default)]
    wip_of: BTreeMap<String, Located<u32>>,
}

impl SchedulingEntry {
    pub(crate) fn read(self) -> Result<SchedulingRules, ConfigComplaint> {
        let ageing = self.ageing.map_or(Ok(PriorityAging::default()), ageing)?;
        let all = self.wip.map(|wip| bound("wip", &wip)).transpose()?;
        if let Some((_, Located { at, .. })) = self.wip_of.iter().nth(TYPES_MAX) {
            return Err(ConfigComplaint::new(*at, format!("more than {TYPES_MAX} types")));
        }
        let of_type = self.wip_of.into_iter().map(|(kind, wip)| {
            let max = bound(&kind, &wip)?;
            Ok((kind, max))
        });
        let of_type = of_type.collect::<Result<_, ConfigComplaint>>()?;
        Ok(SchedulingRules { ageing, slots: WipLimits { all, of_type } })
    }
}

fn ageing(Located { value, at }: Located<TimeText>) -> Result<PriorityAging, ConfigComplaint> {
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
            format!("`{name}` is 1 or more; without it there is no bound"),
        )),
        max => Ok(max),
    }
}
