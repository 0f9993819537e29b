//! `limits:` of a configuration file.

use std::collections::BTreeMap;

use hookloop_core::cascade::CascadeLimits;
use hookloop_core::session::SessionLimits;
use hookloop_core::session::plan::{Dollars, UNPRICED_TURNS};
use hookloop_core::shared_budget::{BudgetBounds, SharedBudget};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Location;

use super::values::{DollarAmount, Located, TimeText, length};
use crate::limits::LimitSettings;
use crate::yaml::ConfigComplaint;

/// Limits of sessions, of hooks that cause hooks, and of the shared budget
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub(crate) struct LimitEntries {
    /// Limits of actions that hooks cause
    #[serde(default)]
    pub(crate) cascade: CascadeEntry,
    /// Retries of a session after failing gates without improvement, before a person is asked [default: 5]
    pub(crate) gate_retries: Option<u32>,
    /// Maximum iterations of a session [default: 100]
    pub(crate) max_iterations: Option<u32>,
    /// Maximum run time of a session, in seconds or with a unit such as `90m` [default: 8h]
    pub(crate) max_duration: Option<Located<TimeText>>,
    /// Timeout of one turn of the agent, in seconds or with a unit such as `20m` [default: 1h]
    pub(crate) turn_timeout: Option<Located<TimeText>>,
    /// Maximum failed turns of a session in a row [default: 5]
    pub(crate) max_errors: Option<u32>,
    /// Maximum iterations of a session in a row without progress [default: 5]
    pub(crate) max_no_progress: Option<u32>,
    /// Maximum turns of a task in which agents fix failures of hooks of a delivery or a merge [default: 3]
    pub(crate) max_remediations: Option<u32>,
    /// Maximum returns of an unfinished task before a person is asked [default: 3]
    pub(crate) max_continuations: Option<u32>,
    /// Maximum tokens of a session, as reported by the agent [default: 50000000]
    pub(crate) max_tokens: Option<u64>,
    /// Maximum cost of a session in dollars, as reported by the agent [default: 50]
    pub(crate) max_cost: Option<DollarAmount>,
    /// Maximum turns of a session whose cost is unknown [default: 20 if `max_cost` is set, else no limit]
    pub(crate) max_unpriced_turns: Option<u32>,
    /// Budget that all sessions of the project share [default: no limit]
    pub(crate) budget: Option<Located<BudgetEntry>>,
    /// Part of the budget that is reserved before each turn
    #[serde(default)]
    pub(crate) reserve_per_turn: TurnReserveEntry,
}

/// Budget that all sessions of a project share. Cost and tokens count as reported by agents.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetEntry {
    /// Maximum cost in dollars [default: no limit]
    pub(crate) cost: Option<DollarAmount>,
    /// Maximum tokens [default: no limit]
    pub(crate) tokens: Option<u64>,
    /// Maximum turns of agents [default: no limit]
    pub(crate) turns: Option<u64>,
    /// Period of the budget: `day` (calendar day in UTC) or `total` (no end) [default: `day`]
    pub(crate) period: Option<PeriodEntry>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PeriodEntry {
    Day,
    Total,
}

/// Part of the budget that is reserved before each turn
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnReserveEntry {
    /// Reserved cost in dollars [default: 1]
    pub(crate) cost: Option<Located<DollarAmount>>,
    /// Reserved tokens [default: 2000000]
    pub(crate) tokens: Option<Located<u64>>,
}

impl BudgetEntry {
    fn read(self, at: Location) -> Result<SharedBudget, ConfigComplaint> {
        let BudgetEntry { cost, tokens, turns, period } = self;
        let bounds = BudgetBounds { cost_micros: cost.map(|cost| cost.0.0), tokens, turns };
        if bounds.is_none() {
            return Err(ConfigComplaint::new(
                at,
                "a budget has `cost`, `tokens`, `turns` or several of them",
            ));
        }
        Ok(match period {
            None | Some(PeriodEntry::Day) => {
                SharedBudget { day: bounds, ..SharedBudget::default() }
            }
            Some(PeriodEntry::Total) => SharedBudget { total: bounds, ..SharedBudget::default() },
        })
    }
}

impl TurnReserveEntry {
    /// Reads the reservation. A reservation of zero would not limit anything.
    fn read(self) -> Result<BudgetBounds, ConfigComplaint> {
        let refuse = |at, name: &str| {
            let message = format!("`reserve_per_turn: {{{name}: 0}}`: write more than 0");
            Err(ConfigComplaint::new(at, message))
        };
        Ok(BudgetBounds {
            cost_micros: match self.cost {
                Some(Located { value: DollarAmount(Dollars(0)), at }) => return refuse(at, "cost"),
                cost => cost.map(|cost| cost.value.0.0),
            },
            tokens: match self.tokens {
                Some(Located { value: 0, at }) => return refuse(at, "tokens"),
                tokens => tokens.map(|tokens| tokens.value),
            },
            turns: None,
        })
    }
}

impl LimitEntries {
    /// Returns the session limits that are set, by name.
    pub(crate) fn set(&self) -> Result<BTreeMap<String, u64>, ConfigComplaint> {
        let time = |time: &Option<Located<TimeText>>| {
            let length = |time: &Located<TimeText>| length(time.value.clone(), time.at);
            time.as_ref().map(length).transpose()
        };
        let given = [
            ("max_iterations", self.max_iterations.map(u64::from)),
            ("max_duration", time(&self.max_duration)?),
            ("turn_timeout", time(&self.turn_timeout)?),
            ("max_errors", self.max_errors.map(u64::from)),
            ("gate_retries", self.gate_retries.map(u64::from)),
            ("max_no_progress", self.max_no_progress.map(u64::from)),
            ("max_remediations", self.max_remediations.map(u64::from)),
            ("max_continuations", self.max_continuations.map(u64::from)),
            ("max_tokens", self.max_tokens),
            ("max_cost", self.max_cost.map(|cost| cost.0.0)),
            ("max_unpriced_turns", self.max_unpriced_turns.map(u64::from)),
        ];
        let given = given.into_iter();
        Ok(given.filter_map(|(name, limit)| Some((name.to_owned(), limit?))).collect())
    }

    /// Returns these limits, with those of `others` where none is set.
    pub(crate) fn over(self, others: LimitSettings) -> Result<LimitSettings, ConfigComplaint> {
        let time = |time: Option<Located<TimeText>>, other: u64| match time {
            Some(Located { value, at }) => length(value, at),
            None => Ok(other),
        };
        let session = others.session;
        let session = SessionLimits {
            max_iterations: self.max_iterations.unwrap_or(session.max_iterations),
            max_duration_ms: time(self.max_duration, session.max_duration_ms)?,
            turn_timeout_ms: time(self.turn_timeout, session.turn_timeout_ms)?,
            max_errors: self.max_errors.unwrap_or(session.max_errors),
            gate_retries: self.gate_retries.unwrap_or(session.gate_retries),
            max_no_progress: self.max_no_progress.unwrap_or(session.max_no_progress),
            max_remediations: self.max_remediations.unwrap_or(session.max_remediations),
            max_continuations: self.max_continuations.unwrap_or(session.max_continuations),
            max_tokens: self.max_tokens.unwrap_or(session.max_tokens),
            max_cost_micros: self.max_cost.map_or(session.max_cost_micros, |cost| cost.0.0),
            max_unpriced_turns: match (self.max_unpriced_turns, self.max_cost) {
                (Some(turns), _) => turns,
                (None, Some(_)) => session.max_unpriced_turns.min(UNPRICED_TURNS),
                (None, None) => session.max_unpriced_turns,
            },
        };
        let budget =
            self.budget.map_or(Ok(SharedBudget::default()), |entry| entry.value.read(entry.at))?;
        let reserve_per_turn = self.reserve_per_turn.read()?;
        let budget = SharedBudget { reserve_per_turn, ..budget }.over(others.budget);
        let cascade = CascadeLimits {
            depth: self.cascade.depth.unwrap_or(others.cascade.depth),
            fan_out: self.cascade.fan_out.unwrap_or(others.cascade.fan_out),
            total: self.cascade.total.unwrap_or(others.cascade.total),
        };
        Ok(LimitSettings { cascade, session, budget })
    }
}

/// Limits of actions that hooks cause
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Cascade")]
pub(crate) struct CascadeEntry {
    /// Maximum depth of hooks that cause hooks [default: 8]
    pub(crate) depth: Option<u32>,
    /// Maximum actions of one run of a hook [default: 64]
    pub(crate) fan_out: Option<u32>,
    /// Maximum actions that one event causes [default: 1000]
    pub(crate) total: Option<u32>,
}
