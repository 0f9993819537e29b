//! Concurrent sessions do not exceed the budget, except for usage of a turn beyond its reservation.

use std::collections::BTreeMap;

use hookloop_core::shared_budget::{
    Amount, BudgetBounds, BudgetStanding, ReservationAnswer, SharedBudget,
};
use proptest::prelude::*;

const LIMIT: u64 = 1_000;
const TURN: u64 = 100;

/// The next step of a session.
#[derive(Clone, Debug)]
enum Act {
    Begin,
    /// The turn ends with this usage.
    End(u64),
    /// The process dies, and another one continues the session.
    Die,
}

fn act() -> impl Strategy<Value = (usize, Act)> {
    let what = prop_oneof![
        4 => Just(Act::Begin),
        3 => (0..=TURN).prop_map(Act::End),
        1 => (0..3 * TURN).prop_map(Act::End),
        1 => Just(Act::Die),
    ];
    (0..12_usize, what)
}

fn dollars(cost_micros: u64) -> Amount {
    Amount { cost_micros, ..Amount::default() }
}

/// All steps so far. Each query sums them up from the beginning.
#[derive(Default)]
struct History(Vec<(usize, Act)>);

impl History {
    fn open(&self) -> BTreeMap<usize, u64> {
        let mut open = BTreeMap::new();
        for (session, act) in &self.0 {
            match act {
                Act::Begin => drop(open.insert(*session, TURN)),
                Act::End(_) | Act::Die => drop(open.remove(session)),
            }
        }
        open
    }

    fn spent(&self) -> u64 {
        let of = |act: &Act| match act {
            Act::Begin => 0,
            Act::End(used) => *used,
            Act::Die => TURN,
        };
        self.0.iter().map(|(_, act)| of(act)).sum()
    }

    fn excess(&self) -> u64 {
        let of = |act: &Act| if let Act::End(used) = act { used.saturating_sub(TURN) } else { 0 };
        self.0.iter().map(|(_, act)| of(act)).sum()
    }

    fn standing(&self) -> BudgetStanding {
        let spent = dollars(self.spent());
        BudgetStanding { day: spent, total: spent, open: dollars(self.open().values().sum()) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reservations_in_any_order_never_exceed_the_budget(acts in prop::collection::vec(act(), 0..200)) {
        let bound = |cost| BudgetBounds { cost_micros: Some(cost), ..BudgetBounds::default() };
        let budget = SharedBudget { day: bound(LIMIT), total: BudgetBounds::default(), reserve_per_turn: bound(TURN) };
        let amount = budget.amount(dollars(u64::MAX));
        let mut history = History::default();
        for (session, act) in acts {
            let is_open = history.open().contains_key(&session);
            match (&act, is_open) {
                (Act::Begin, false) => {
                    let standing = history.standing();
                    let (spent, open) = (standing.day.cost_micros, standing.open.cost_micros);
                    match budget.reserve(&standing, amount) {
                        ReservationAnswer::Granted => history.0.push((session, act)),
                        // The turn fits if the other open turns use nothing.
                        ReservationAnswer::Wait(_) => prop_assert!(open > 0 && spent + TURN <= LIMIT),
                        ReservationAnswer::Exhausted(shortage) => {
                            prop_assert!(spent + TURN > LIMIT);
                            prop_assert_eq!(shortage.spent.cost_micros, spent);
                        }
                    }
                }
                (Act::End(_) | Act::Die, true) => history.0.push((session, act)),
                _ => {}
            }
            let standing = history.standing();
            let all = standing.day.plus(standing.open).cost_micros;
            prop_assert!(all <= LIMIT + history.excess(), "{} of {}", all, LIMIT);
        }
    }
}
