//! Whatever sessions do at the same time, they do not spend more than there is, but for what a turn used beyond
//! what was set aside for it.

use std::collections::BTreeMap;

use hookloop_core::purse::{Amount, BudgetBounds, BudgetStanding, Purse, ReservationAnswer};
use proptest::prelude::*;

const LIMIT: u64 = 1_000;
const TURN: u64 = 100;

/// What one of the sessions does next.
#[derive(Clone, Debug)]
enum Act {
    Begin,
    /// The turn used so much.
    End(u64),
    /// Its program died, and another took the session on.
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

/// Everything that happened: what is asked of it is added up from the beginning, each time.
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
        BudgetStanding { day: spent, ever: spent, open: dollars(self.open().values().sum()) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_order_no_more_is_spent_than_there_is(acts in prop::collection::vec(act(), 0..200)) {
        let bound = |cost| BudgetBounds { cost_micros: Some(cost), ..BudgetBounds::default() };
        let purse = Purse { day: bound(LIMIT), ever: BudgetBounds::default(), turn: bound(TURN) };
        let wish = purse.wish(dollars(u64::MAX));
        let mut history = History::default();
        for (session, act) in acts {
            let is_open = history.open().contains_key(&session);
            match (&act, is_open) {
                (Act::Begin, false) => {
                    let standing = history.standing();
                    let (spent, open) = (standing.day.cost_micros, standing.open.cost_micros);
                    match purse.reserve(&standing, wish) {
                        ReservationAnswer::Granted => history.0.push((session, act)),
                        // It fits as soon as the others have used nothing.
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
