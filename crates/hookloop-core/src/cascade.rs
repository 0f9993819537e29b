//! Limits of hooks that trigger other hooks.
//!
//! An action makes events, events run hooks, and hooks request actions. Three limits end such a cascade, and
//! the log records each cut. Releasing the dependents of a completed task is not counted: it happens once for
//! each edge, so the graph bounds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::EventId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CascadeLimits {
    /// The longest chain of hooks that trigger each other.
    pub depth: u32,
    /// Actions that one run of a hook may request.
    pub fan_out: u32,
    /// Actions of all hooks that follow from one command.
    pub total: u32,
}

impl Default for CascadeLimits {
    fn default() -> Self {
        CascadeLimits { depth: 8, fan_out: 64, total: 1_000 }
    }
}

/// The cause of a hook's event: the hook, the event that triggered it, and the size of the cascade so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCause {
    pub event: EventId,
    pub hook: String,
    /// The event of the command that began the cascade.
    pub root: EventId,
    pub depth: u32,
    /// The number of actions of this root so far, this one included.
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
    /// Returns these limits, none of them wider than in `ceiling`.
    pub fn within(self, ceiling: CascadeLimits) -> CascadeLimits {
        CascadeLimits {
            depth: self.depth.min(ceiling.depth),
            fan_out: self.fan_out.min(ceiling.fan_out),
            total: self.total.min(ceiling.total),
        }
    }

    /// Returns how many of `wanted` actions a hook may take, and the limit that cut the rest.
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
    fn a_cascade_is_cut_at_the_first_limit_reached() {
        let limits = CascadeLimits { depth: 2, fan_out: 4, total: 10 };
        assert_eq!(limits.allow(2, 0, 4), (4, None));
        assert_eq!(limits.allow(2, 0, 5), (4, Some(CascadeLimit::FanOut)));
        assert_eq!(limits.allow(3, 0, 1), (0, Some(CascadeLimit::Depth)));
        assert_eq!(limits.allow(3, 0, 0), (0, None));
        assert_eq!(limits.allow(1, 8, 3), (2, Some(CascadeLimit::Total)));
        assert_eq!(limits.allow(1, 10, 1), (0, Some(CascadeLimit::Total)));
    }
}
