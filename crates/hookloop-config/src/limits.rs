//! Limits of sessions, cascades and the shared budget.

use std::fmt;

use hookloop_core::cascade::CascadeLimits;
use hookloop_core::session;
use hookloop_core::shared_budget::SharedBudget;

/// The limits of sessions. The user's limits are the upper bound for a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitSettings {
    pub cascade: CascadeLimits,
    pub session: session::SessionLimits,
    /// The budget of all sessions together.
    pub budget: SharedBudget,
}

impl LimitSettings {
    /// Returns limits without any bound.
    pub fn boundless() -> LimitSettings {
        let cascade = CascadeLimits { depth: u32::MAX, fan_out: u32::MAX, total: u32::MAX };
        let session = session::SessionLimits {
            max_iterations: u32::MAX,
            max_duration_ms: u64::MAX,
            turn_timeout_ms: u64::MAX,
            max_errors: u32::MAX,
            gate_retries: u32::MAX,
            max_no_progress: u32::MAX,
            max_remediations: u32::MAX,
            max_continuations: u32::MAX,
            max_tokens: u64::MAX,
            max_cost_micros: u64::MAX,
            max_unpriced_turns: u32::MAX,
        };
        LimitSettings { cascade, session, budget: SharedBudget::default() }
    }

    /// Returns these limits, each at most that of `ceiling`.
    pub fn within(self, ceiling: LimitSettings) -> LimitSettings {
        LimitSettings {
            cascade: self.cascade.within(ceiling.cascade),
            session: self.session.within(ceiling.session),
            budget: self.budget.within(ceiling.budget),
        }
    }
}

impl fmt::Display for LimitSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, cascade {}", self.session, self.cascade)?;
        match self.budget.is_none() {
            true => Ok(()),
            false => write!(f, ", budget {}", self.budget),
        }
    }
}
