//! Limits of sessions, cascades and the shared budget.

use std::fmt;

use hookloop_core::cascade::CascadeLimits;
use hookloop_core::purse::Purse;
use hookloop_core::session;

/// The limits of sessions. The user's limits are the upper bound for a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitSettings {
    pub cascade: CascadeLimits,
    pub session: session::SessionLimits,
    /// The budget of all sessions together.
    pub purse: Purse,
}

impl LimitSettings {
    /// Returns limits without any bound.
    pub fn boundless() -> LimitSettings {
        let cascade = CascadeLimits { depth: u32::MAX, fan_out: u32::MAX, total: u32::MAX };
        let session = session::SessionLimits {
            iterations: u32::MAX,
            duration_ms: u64::MAX,
            turn_ms: u64::MAX,
            errors: u32::MAX,
            hook_retries: u32::MAX,
            no_progress: u32::MAX,
            remediations: u32::MAX,
            continuations: u32::MAX,
            tokens: u64::MAX,
            cost_micros: u64::MAX,
            unpriced_turns: u32::MAX,
        };
        LimitSettings { cascade, session, purse: Purse::default() }
    }

    /// Returns these limits, each at most that of `ceiling`.
    pub fn within(self, ceiling: LimitSettings) -> LimitSettings {
        LimitSettings {
            cascade: self.cascade.within(ceiling.cascade),
            session: self.session.within(ceiling.session),
            purse: self.purse.within(ceiling.purse),
        }
    }
}

impl fmt::Display for LimitSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, cascade {}", self.session, self.cascade)?;
        match self.purse.is_none() {
            true => Ok(()),
            false => write!(f, ", purse {}", self.purse),
        }
    }
}
