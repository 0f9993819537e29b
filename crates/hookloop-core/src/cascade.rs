//! How far hooks may set off hooks.
//!
//! An action makes events, events run hooks, hooks ask for actions. Three limits end that, and what
//! they cut is recorded. Releasing the dependents of a completed task is not counted: it happens
//! once per edge, so the graph itself bounds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::EventId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CascadeLimits {
    /// Hooks that led to one another.
    pub depth: u32,
    /// Actions that one run of a hook may ask for.
    pub fan_out: u32,
    /// Actions that follow from one command, over all hooks.
    pub total: u32,
}

impl Default for CascadeLimits {
    fn default() -> Self {
        CascadeLimits { depth: 8, fan_out: 64, total: 1_000 }
    }
}

/// What made a hook's event: which hook, on which event, and how much the root has led to so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    pub event: EventId,
    pub hook: String,
    /// The event of the command that everything follows from.
    pub root: EventId,
    pub depth: u32,
    /// How many actions of this root came up to and including this one.
    pub count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CascadeLimit {
    Depth,
    FanOut,
    Total,
}

impl std::fmt::Display for CascadeLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CascadeLimit::Depth => "depth",
            CascadeLimit::FanOut => "fan_out",
            CascadeLimit::Total => "total",
        })
    }
}

impl std::fmt::Display for CascadeLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CascadeLimits { depth, fan_out, total } = self;
        write!(f, "depth {depth}, fan_out {fan_out}, total {total}")
    }
}

impl CascadeLimits {
    /// These limits under a scope that allows `ceiling`: what is wider there is what it allows.
    pub fn within(self, ceiling: CascadeLimits) -> CascadeLimits {
        CascadeLimits {
            depth: self.depth.min(ceiling.depth),
            fan_out: self.fan_out.min(ceiling.fan_out),
            total: self.total.min(ceiling.total),
        }
    }

    /// How many of `wanted` actions a hook may have, and the limit that cut the rest.
    pub fn allow(&self, depth: u32, count: u32, wanted: usize) -> (usize, Option<CascadeLimit>) {
        if wanted > 0 && depth > self.depth {
            return (0, Some(CascadeLimit::Depth));
        }
        let left = self.total.saturating_sub(count) as usize;
        let fan_out = self.fan_out as usize;
        if wanted <= fan_out && wanted <= left {
            (wanted, None)
        } else if left < fan_out {
            (left, Some(CascadeLimit::Total))
        } else {
            (fan_out, Some(CascadeLimit::FanOut))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_limit_cuts() {
        let limits = CascadeLimits { depth: 2, fan_out: 4, total: 10 };
        assert_eq!(limits.allow(2, 0, 4), (4, None));
        assert_eq!(limits.allow(2, 0, 5), (4, Some(CascadeLimit::FanOut)));
        assert_eq!(limits.allow(3, 0, 1), (0, Some(CascadeLimit::Depth)));
        assert_eq!(limits.allow(3, 0, 0), (0, None));
        assert_eq!(limits.allow(1, 8, 3), (2, Some(CascadeLimit::Total)));
        assert_eq!(limits.allow(1, 10, 1), (0, Some(CascadeLimit::Total)));
    }
}
