//! The shared budget of a project's sessions, and its reservations.
//!
//! Before a turn begins, its expected usage is reserved. When the turn ends, its actual usage
//! replaces the reservation. So concurrent sessions cannot exceed the budget together. If a session
//! dies, its whole reservation counts as spent.
//!
//! Spent and reserved amounts come only from the log. [`crate::budget_change`] has the effect of
//! each event.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{CompactCount, Dollars};
use crate::usage::Usage;

/// The default reservation of a turn.
pub(crate) const TURN_COST_MICROS: u64 = 1_000_000;

pub(crate) const TURN_TOKENS: u64 = 2_000_000;

/// Money, tokens and turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Amount {
    /// Millionths of a dollar.
    #[serde(alias = "costMicros")]
    pub cost_micros: u64,
    pub tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub turns: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Amount {
    /// An unlimited amount.
    pub const ALL: Amount = Amount { cost_micros: u64::MAX, tokens: u64::MAX, turns: u64::MAX };

    /// Returns the usage of a turn that ended.
    pub fn of_turn(usage: Usage) -> Amount {
        Amount { turns: 1, ..Amount::from(usage) }
    }

    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount {
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            tokens: self.tokens.saturating_add(other.tokens),
            turns: self.turns.saturating_add(other.turns),
        }
    }

    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        Amount {
            cost_micros: self.cost_micros.saturating_sub(other.cost_micros),
            tokens: self.tokens.saturating_sub(other.tokens),
            turns: self.turns.saturating_sub(other.turns),
        }
    }

    #[must_use]
    pub fn min(self, other: Amount) -> Amount {
        Amount {
            cost_micros: self.cost_micros.min(other.cost_micros),
            tokens: self.tokens.min(other.tokens),
            turns: self.turns.min(other.turns),
        }
    }

    #[must_use]
    pub fn max(self, other: Amount) -> Amount {
        Amount {
            cost_micros: self.cost_micros.max(other.cost_micros),
            tokens: self.tokens.max(other.tokens),
            turns: self.turns.max(other.turns),
        }
    }

    /// Whether all of it is within `other`.
    pub fn is_within(self, other: Amount) -> bool {
        self.cost_micros <= other.cost_micros
            && self.tokens <= other.tokens
            && self.turns <= other.turns
    }

    pub fn is_nothing(&self) -> bool {
        *self == Amount::default()
    }
}

impl From<Usage> for Amount {
    fn from(usage: Usage) -> Amount {
        Amount { cost_micros: usage.cost_micros, tokens: usage.tokens(), turns: 0 }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} tokens", Dollars(self.cost_micros), CompactCount(self.tokens))
    }
}

/// Limits of money, tokens and turns, each optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BudgetBounds {
    /// Millionths of a dollar.
    #[serde(alias = "costMicros", skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
}

impl BudgetBounds {
    pub fn is_none(&self) -> bool {
        *self == BudgetBounds::default()
    }

    fn allow(&self, amount: Amount) -> bool {
        let allows = |bound: Option<u64>, amount| bound.is_none_or(|bound| amount <= bound);
        allows(self.cost_micros, amount.cost_micros)
            && allows(self.tokens, amount.tokens)
            && allows(self.turns, amount.turns)
    }

    /// Whether a limit is reached.
    fn is_reached(&self, spent: Amount) -> bool {
        let is_reached = |bound: Option<u64>, spent| bound.is_some_and(|bound| spent >= bound);
        is_reached(self.cost_micros, spent.cost_micros)
            || is_reached(self.tokens, spent.tokens)
            || is_reached(self.turns, spent.turns)
    }

    /// Returns the amount, cut to the limits.
    fn cut(&self, amount: Amount) -> Amount {
        let cut = |bound: Option<u64>, amount: u64| bound.map_or(amount, |bound| amount.min(bound));
        Amount {
            cost_micros: cut(self.cost_micros, amount.cost_micros),
            tokens: cut(self.tokens, amount.tokens),
            turns: cut(self.turns, amount.turns),
        }
    }

    /// Returns the narrower limits of both.
    fn within(self, ceiling: BudgetBounds) -> BudgetBounds {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        BudgetBounds {
            cost_micros: least(self.cost_micros, ceiling.cost_micros),
            tokens: least(self.tokens, ceiling.tokens),
            turns: least(self.turns, ceiling.turns),
        }
    }

    /// Returns these limits, with `others` for those that are missing.
    fn over(self, others: BudgetBounds) -> BudgetBounds {
        BudgetBounds {
            cost_micros: self.cost_micros.or(others.cost_micros),
            tokens: self.tokens.or(others.tokens),
            turns: self.turns.or(others.turns),
        }
    }
}

impl fmt::Display for BudgetBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.cost_micros.map(|cost| Dollars(cost).to_string()),
            self.tokens.map(|tokens| format!("{} tokens", CompactCount(tokens))),
            self.turns.map(|turns| format!("{} turns", CompactCount(turns))),
        ];
        match parts.into_iter().flatten().collect::<Vec<_>>().as_slice() {
            [] => f.write_str("no bound"),
            parts => f.write_str(&parts.join(", ")),
        }
    }
}

/// The period of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    /// A day of the calendar, in UTC.
    #[default]
    Day,
    /// No end.
    #[serde(alias = "ever")]
    Total,
}

impl BudgetPeriod {
    pub fn name(self) -> &'static str {
        match self {
            BudgetPeriod::Day => "day",
            BudgetPeriod::Total => "total",
        }
    }
}

/// The budget of a project. A limit for each day and a limit in total can both hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SharedBudget {
    #[serde(skip_serializing_if = "BudgetBounds::is_none")]
    pub day: BudgetBounds,
    #[serde(alias = "ever", skip_serializing_if = "BudgetBounds::is_none")]
    pub total: BudgetBounds,
    /// The reservation of a turn; a default where it is missing.
    #[serde(alias = "turn", skip_serializing_if = "BudgetBounds::is_none")]
    pub reserve_per_turn: BudgetBounds,
}

/// The spent and reserved amounts of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetStanding {
    /// The amounts spent today and in total: the usage of turns, and reservations that were written off.
    pub day: Amount,
    pub total: Amount,
    /// The reservations of running turns.
    pub open: Amount,
}

/// The reason why a turn has to wait, or can't begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shortage {
    #[serde(alias = "per")]
    pub period: BudgetPeriod,
    pub limit: BudgetBounds,
    /// The spent amount.
    pub spent: Amount,
    /// The reservations of running turns.
    pub reserved: Amount,
    /// The reservation that the turn needs.
    pub wanted: Amount,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortage { limit, spent, reserved, wanted, period } = self;
        let when = match period {
            BudgetPeriod::Day => " today (UTC)",
            BudgetPeriod::Total => "",
        };
        let of = |amount: &Amount| BudgetBounds {
            cost_micros: limit.cost_micros.map(|_| amount.cost_micros),
            tokens: limit.tokens.map(|_| amount.tokens),
            turns: limit.turns.map(|_| amount.turns),
        };
        write!(f, "{} of {limit} spent{when}", of(spent))?;
        if !reserved.is_nothing() {
            write!(f, ", {} reserved for running turns", of(reserved))?;
        }
        write!(f, "; a turn needs {}", of(wanted))
    }
}

/// Whether a turn may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationAnswer {
    Granted,
    /// The turn would fit if other turns used nothing of their reservations.
    Wait(Shortage),
    /// The turn does not fit in this period in any case.
    Exhausted(Shortage),
}

impl SharedBudget {
    pub fn is_none(&self) -> bool {
        self.day.is_none() && self.total.is_none()
    }

    /// Returns these limits, with `others` for those that are missing.
    #[must_use]
    pub fn over(self, others: SharedBudget) -> SharedBudget {
        SharedBudget {
            day: self.day.over(others.day),
            total: self.total.over(others.total),
            reserve_per_turn: self.reserve_per_turn.over(others.reserve_per_turn),
        }
    }

    /// Returns these limits under `ceiling`. A larger reservation per turn is the narrower limit: without
    /// reservations, any number of turns could start.
    #[must_use]
    pub fn within(self, ceiling: SharedBudget) -> SharedBudget {
        let most = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).max();
        // A budget without a reservation per turn has the default one.
        let is_bound = |of: fn(&BudgetBounds) -> Option<u64>| {
            of(&ceiling.day).is_some() || of(&ceiling.total).is_some()
        };
        let usual = BudgetBounds {
            cost_micros: is_bound(|bounds| bounds.cost_micros).then_some(TURN_COST_MICROS),
            tokens: is_bound(|bounds| bounds.tokens).then_some(TURN_TOKENS),
            turns: None,
        };
        let ceiling =
            SharedBudget { reserve_per_turn: ceiling.reserve_per_turn.over(usual), ..ceiling };
        SharedBudget {
            day: self.day.within(ceiling.day),
            total: self.total.within(ceiling.total),
            reserve_per_turn: BudgetBounds {
                cost_micros: most(
                    self.reserve_per_turn.cost_micros,
                    ceiling.reserve_per_turn.cost_micros,
                ),
                tokens: most(self.reserve_per_turn.tokens, ceiling.reserve_per_turn.tokens),
                turns: None,
            },
        }
    }

    /// Returns the reservation for a turn of a session with `left` of its own limits.
    ///
    /// It never exceeds the whole budget: then no turn could begin.
    pub fn amount(&self, left: Amount) -> Amount {
        let turn = Amount {
            cost_micros: self.reserve_per_turn.cost_micros.unwrap_or(TURN_COST_MICROS),
            tokens: self.reserve_per_turn.tokens.unwrap_or(TURN_TOKENS),
            turns: 1,
        };
        self.total.cut(self.day.cut(turn)).min(left)
    }

    /// Whether a reservation is large enough for all limited amounts.
    pub fn covers(&self, reserved: Amount, needed: Amount) -> bool {
        let is_bound = |day: Option<u64>, total: Option<u64>| day.is_some() || total.is_some();
        let is_enough = |is_bound: bool, reserved, needed: u64| !is_bound || needed <= reserved;
        let (of_cost, of_tokens) = (
            is_bound(self.day.cost_micros, self.total.cost_micros),
            is_bound(self.day.tokens, self.total.tokens),
        );
        is_enough(of_cost, reserved.cost_micros, needed.cost_micros)
            && is_enough(of_tokens, reserved.tokens, needed.tokens)
    }

    /// Returns whether `amount` can be reserved in addition to all reservations.
    pub fn reserve(&self, standing: &BudgetStanding, amount: Amount) -> ReservationAnswer {
        let periods = [
            (BudgetPeriod::Day, self.day, standing.day),
            (BudgetPeriod::Total, self.total, standing.total),
        ];
        let mut answer = ReservationAnswer::Granted;
        for (period, limit, spent) in periods {
            let reserved = standing.open;
            let shortage = Shortage { period, limit, spent, reserved, wanted: amount };
            if limit.allow(spent.plus(reserved).plus(amount)) && !limit.is_reached(spent) {
                continue;
            }
            if limit.is_reached(spent) || !limit.allow(spent.plus(amount)) {
                return ReservationAnswer::Exhausted(shortage);
            }
            answer = ReservationAnswer::Wait(shortage);
        }
        answer
    }
}

impl fmt::Display for SharedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.day.is_none(), self.total.is_none()) {
            (false, false) => write!(f, "{} a day, {} in total", self.day, self.total)?,
            (false, true) => write!(f, "{} a day", self.day)?,
            (true, false) => write!(f, "{} in total", self.total)?,
            (true, true) => return f.write_str("none"),
        }
        write!(f, "; {} reserved for a turn", self.amount(Amount::ALL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(cost: u64) -> Amount {
        Amount { cost_micros: cost, ..Amount::default() }
    }

    fn bound(cost: u64) -> BudgetBounds {
        BudgetBounds { cost_micros: Some(cost), ..BudgetBounds::default() }
    }

    #[test]
    fn a_reservation_is_granted_waits_or_finds_the_budget_exhausted() {
        let budget = SharedBudget { day: bound(100), ..SharedBudget::default() };
        let check = |spent: u64, open: u64, amount: u64| {
            let spent = dollars(spent);
            let standing = BudgetStanding { day: spent, total: spent, open: dollars(open) };
            match budget.reserve(&standing, dollars(amount)) {
                ReservationAnswer::Granted => "granted",
                ReservationAnswer::Wait(_) => "wait",
                ReservationAnswer::Exhausted(_) => "exhausted",
            }
        };
        assert_eq!(check(0, 0, 100), "granted");
        assert_eq!(check(0, 0, 101), "exhausted");
        assert_eq!(check(50, 40, 10), "granted");
        assert_eq!(check(50, 41, 10), "wait");
        assert_eq!(check(91, 0, 10), "exhausted");
        assert_eq!(check(91, 5, 10), "exhausted", "waiting would not help");
        assert_eq!(check(200, 0, 0), "exhausted", "more than all of it is spent");
        assert_eq!(check(100, 0, 0), "exhausted", "nothing is left");
    }

    #[test]
    fn a_total_budget_holds_beside_a_daily_budget() {
        let budget = SharedBudget { day: bound(100), total: bound(150), ..SharedBudget::default() };
        let standing = BudgetStanding { day: dollars(0), total: dollars(149), open: dollars(0) };
        let answer = budget.reserve(&standing, dollars(2));
        assert!(matches!(
            answer,
            ReservationAnswer::Exhausted(Shortage { period: BudgetPeriod::Total, .. })
        ));
    }

    #[test]
    fn a_project_can_only_narrow_the_users_budget() {
        let user = SharedBudget {
            day: bound(100),
            total: BudgetBounds::default(),
            reserve_per_turn: bound(10),
        };
        let wide = SharedBudget { day: bound(200), total: bound(50), reserve_per_turn: bound(1) };
        let narrowed =
            SharedBudget { day: bound(100), total: bound(50), reserve_per_turn: bound(10) };
        assert_eq!(wide.over(user).within(user), narrowed);
        assert_eq!(SharedBudget::default().over(user).within(user), user);
        assert!(SharedBudget::default().is_none() && !user.is_none());
    }

    #[test]
    fn a_reservation_never_exceeds_the_budget() {
        let left = Amount::ALL;
        let budget =
            SharedBudget { day: bound(5), reserve_per_turn: bound(10), ..SharedBudget::default() };
        assert_eq!(budget.amount(left).cost_micros, 5);
        assert_eq!(budget.amount(Amount { cost_micros: 3, ..left }).cost_micros, 3);
        assert_eq!(budget.amount(left).tokens, TURN_TOKENS);
    }
}
