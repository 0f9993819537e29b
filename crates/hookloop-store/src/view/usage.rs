//! Usage of turns, and reservations of the budget for turns in progress.

use hookloop_core::budget_change::BudgetChange;
use hookloop_core::event::BudgetReserved;
use hookloop_core::id::SessionId;
use hookloop_core::session::plan::CostFigure;
use hookloop_core::session::{TurnEnded, Usage};
use hookloop_core::shared_budget::{Amount, BudgetStanding};
use hookloop_core::time::{Day, Timestamp};
use rusqlite::{OptionalExtension, Row, params};

use super::fold::ViewFold;
use super::tables::RowResult;
use super::totals::View;
use crate::log::LogError;

/// Largest usage of one turn, a billion dollars. A larger report must not overflow the sums.
const TURN_MAX: u64 = 1_000_000_000_000_000;
/// Largest sum of a column. Sums saturate there instead of overflowing.
pub(super) const SUM_MAX: i64 = i64::MAX / 4;

/// The key by which rows of usage are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    Day,
    Session,
    Task,
    Agent,
}

/// A row of the usage table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// A day, a session, a task (or empty) or an agent.
    pub key: String,
    pub turns: u64,
    pub usage: Usage,
    /// Turns whose cost is unknown.
    pub unpriced_turns: u64,
}

impl UsageRow {
    pub fn cost(&self) -> CostFigure {
        CostFigure { micros: self.usage.cost_micros, unpriced_turns: self.unpriced_turns }
    }

    /// Adds another row's turns and usage. Sums saturate.
    pub fn add(&mut self, other: &UsageRow) {
        self.turns = self.turns.saturating_add(other.turns);
        self.usage.add(other.usage);
        self.unpriced_turns = self.unpriced_turns.saturating_add(other.unpriced_turns);
    }
}

/// The usage of an agent on a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageOfDay {
    pub day: Day,
    pub agent: String,
    pub turns: u64,
    pub usage: Usage,
    /// Turns whose cost is unknown.
    pub unpriced_turns: u64,
}

/// The reservation for a session's turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetReservation {
    pub session: SessionId,
    pub since: Day,
    pub amount: Amount,
}

/// The amount that was spent of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpentAmount {
    /// Used by turns that ended.
    pub used: Amount,
    /// Reserved for turns that never reported their usage.
    pub written_off: Amount,
}

impl SpentAmount {
    pub fn total(&self) -> Amount {
        self.used.plus(self.written_off)
    }
}

impl ViewFold<'_> {
    /// Adds to the reservation for a session's turn.
    pub(super) fn reserve(&self, reserved: &BudgetReserved, at: Timestamp) -> RowResult<()> {
        // A session that ended would never release its reservation. Usage counts at once.
        let insert = "INSERT INTO reservation SELECT id, ?2, ?3, ?4, ?5 FROM session
            WHERE id = ?1 AND ended_at IS NULL ON CONFLICT DO UPDATE SET day = max(day, ?2),
            cost_micros = min(cost_micros + ?3, ?6), tokens = min(tokens + ?4, ?6), turns = turns + ?5";
        let [cost, tokens, turns] = parts(reserved.amount);
        let session = reserved.session.as_str();
        self.run(insert, params![session, Day::from(at).0, cost, tokens, turns, SUM_MAX]).map(drop)
    }

    pub(super) fn change_budget(
        &self,
        session: &str,
        movement: BudgetChange,
        at: Timestamp,
    ) -> RowResult<()> {
        const OVER: &str = "DELETE FROM reservation WHERE session = ?1";
        match movement {
            BudgetChange::SettlePart(usage) => {
                let [cost, tokens, turns] = parts(Amount::of_turn(usage));
                let keep = "UPDATE reservation SET cost_micros = max(0, cost_micros - ?2),
                    tokens = max(0, tokens - ?3), turns = max(0, turns - ?4) WHERE session = ?1";
                self.run(keep, params![session, cost, tokens, turns])?;
                self.change_budget(session, BudgetChange::Abandon, at)?;
                self.change_budget(session, BudgetChange::Settle(usage), at)?;
            }
            BudgetChange::Settle(usage) => {
                self.run(OVER, [session])?;
                let add = "INSERT INTO spent VALUES (?1, ?2, ?3, ?4, 0, 0, 0) ON CONFLICT DO UPDATE
                    SET cost_micros = min(cost_micros + ?2, ?5), tokens = min(tokens + ?3, ?5), turns = turns + ?4";
                let [cost, tokens, turns] = parts(Amount::of_turn(usage));
                self.run(add, params![Day::from(at).0, cost, tokens, turns, SUM_MAX])?;
            }
            BudgetChange::Abandon => {
                // The amount counts on the day of its reservation, not on the day it is written
                // off.
                let add = "INSERT INTO spent SELECT day, 0, 0, 0, cost_micros, tokens, turns
                    FROM reservation WHERE session = ?1 ON CONFLICT DO UPDATE
                    SET lost_cost_micros = min(lost_cost_micros + excluded.lost_cost_micros, ?2),
                        lost_tokens = min(lost_tokens + excluded.lost_tokens, ?2),
                        lost_turns = lost_turns + excluded.lost_turns";
                self.run(add, params![session, SUM_MAX])?;
                self.run(OVER, [session])?;
            }
            BudgetChange::Release => {
                self.run(OVER, [session])?;
            }
        }
        Ok(())
    }

    /// Adds a turn to the usage table. Without an agent in the event, the session's agent counts.
    pub(super) fn enter(&self, session: &str, ended: &TurnEnded, at: Timestamp) -> RowResult<()> {
        let add = "INSERT INTO usage SELECT ?2, id, coalesce(task, ''),
                CASE ?3 WHEN '' THEN agent ELSE ?3 END, 1, ?4, ?5, ?6, ?7, ?8
            FROM session WHERE id = ?1 ON CONFLICT DO UPDATE SET turns = turns + 1,
                input_tokens = min(input_tokens + ?4, ?9), cached_tokens = min(cached_tokens + ?5, ?9),
                output_tokens = min(output_tokens + ?6, ?9), cost_micros = min(cost_micros + ?7, ?9),
                unpriced_turns = unpriced_turns + ?8";
        let Usage { input_tokens, cached_tokens, output_tokens, cost_micros } = ended.usage;
        let values = params![
            session,
            Day::from(at).0,
            ended.agent,
            stored(input_tokens),
            stored(cached_tokens),
            stored(output_tokens),
            stored(cost_micros),
            ended.has_unknown_cost(),
            SUM_MAX
        ];
        self.run(add, values).map(drop)
    }
}

/// Sums of the usage columns. `total` does not fail where `sum` would overflow.
const SUMS: &str = "CAST(min(total(input_tokens), 2.0e18) AS INTEGER),
    CAST(min(total(cached_tokens), 2.0e18) AS INTEGER), CAST(min(total(output_tokens), 2.0e18) AS INTEGER),
    CAST(min(total(cost_micros), 2.0e18) AS INTEGER), sum(unpriced_turns)";

impl View<'_> {
    /// Returns the number of turns on a day, or on all days, whose cost is unknown.
    pub fn unpriced_turns(&self, day: Option<Day>) -> RowResult<u64> {
        let select =
            "SELECT coalesce(sum(unpriced_turns), 0) FROM usage WHERE ?1 IS NULL OR day = ?1";
        let mut select = self.conn.prepare_cached(select)?;
        Ok(select.query_row([day.map(|day| day.0)], |row| number(row, 0))?)
    }

    /// Returns the usage from a day on, summed by a key.
    pub fn usage(&self, by: UsageBy, since: Option<Day>) -> RowResult<Vec<UsageRow>> {
        let column = match by {
            UsageBy::Day => "day",
            UsageBy::Session => "session",
            UsageBy::Task => "task",
            UsageBy::Agent => "agent",
        };
        let select = format!(
            "SELECT {column}, sum(turns), {SUMS} FROM usage WHERE day >= ?1 GROUP BY 1 ORDER BY min(day), 1"
        );
        let mut select = self.conn.prepare(&select)?;
        let read = |row: &Row<'_>| {
            let key = match by {
                UsageBy::Day => Day(row.get(0)?).to_string(),
                _ => row.get(0)?,
            };
            let usage = Usage {
                input_tokens: number(row, 2)?,
                cached_tokens: number(row, 3)?,
                output_tokens: number(row, 4)?,
                cost_micros: number(row, 5)?,
            };
            Ok(UsageRow { key, turns: number(row, 1)?, usage, unpriced_turns: number(row, 6)? })
        };
        let rows = select.query_map([since.map_or(i64::MIN, |day| day.0)], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the usage from a day on, by day and agent.
    pub fn usage_of_days(&self, since: Day) -> RowResult<Vec<UsageOfDay>> {
        let select = format!(
            "SELECT day, agent, sum(turns), {SUMS} FROM usage WHERE day >= ?1 GROUP BY 1, 2 ORDER BY 1, 2"
        );
        let mut select = self.conn.prepare_cached(&select)?;
        let read = |row: &Row<'_>| {
            let usage = Usage {
                input_tokens: number(row, 3)?,
                cached_tokens: number(row, 4)?,
                output_tokens: number(row, 5)?,
                cost_micros: number(row, 6)?,
            };
            let (day, agent) = (Day(row.get(0)?), row.get(1)?);
            let unpriced_turns = number(row, 7)?;
            Ok(UsageOfDay { day, agent, turns: number(row, 2)?, usage, unpriced_turns })
        };
        let rows = select.query_map([since.0], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the amount spent on a day, or in total.
    pub fn spent(&self, day: Option<Day>) -> RowResult<SpentAmount> {
        let read =
            |row: &Row<'_>| Ok(SpentAmount { used: amount(row, 0)?, written_off: amount(row, 3)? });
        let found = match day {
            Some(day) => {
                let select = "SELECT cost_micros, tokens, turns, lost_cost_micros, lost_tokens,
                    lost_turns FROM spent WHERE day = ?1";
                self.conn.prepare_cached(select)?.query_row([day.0], read).optional()?
            }
            None => {
                let select = "SELECT CAST(min(total(cost_micros), 2.0e18) AS INTEGER),
                    CAST(min(total(tokens), 2.0e18) AS INTEGER), coalesce(sum(turns), 0),
                    CAST(min(total(lost_cost_micros), 2.0e18) AS INTEGER),
                    CAST(min(total(lost_tokens), 2.0e18) AS INTEGER), coalesce(sum(lost_turns), 0)
                    FROM spent";
                self.conn.prepare_cached(select)?.query_row([], read).optional()?
            }
        };
        Ok(found.unwrap_or_default())
    }

    /// Returns the reservations, with their sessions.
    pub fn reservations(&self) -> RowResult<Vec<BudgetReservation>> {
        let select =
            "SELECT session, day, cost_micros, tokens, turns FROM reservation ORDER BY session";
        let mut select = self.conn.prepare_cached(select)?;
        let mut rows = select.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let session: String = row.get(0)?;
            found.push(BudgetReservation {
                session: session.parse().map_err(|error| LogError::damaged(0, error))?,
                since: Day(row.get(1)?),
                amount: amount(row, 2)?,
            });
        }
        Ok(found)
    }

    /// Returns the state of the budget on a day.
    pub fn budget_standing(&self, today: Day) -> RowResult<BudgetStanding> {
        let reservations = self.reservations()?;
        let open = reservations.iter().fold(Amount::default(), |sum, one| sum.plus(one.amount));
        Ok(BudgetStanding {
            day: self.spent(Some(today))?.total(),
            total: self.spent(None)?.total(),
            open,
        })
    }
}

/// Returns an amount as the values of its columns.
fn parts(amount: Amount) -> [i64; 3] {
    [stored(amount.cost_micros), stored(amount.tokens), stored(amount.turns)]
}

/// Reads the amount in three columns.
fn amount(row: &Row<'_>, at: usize) -> rusqlite::Result<Amount> {
    let [cost_micros, tokens, turns] =
        [number(row, at)?, number(row, at + 1)?, number(row, at + 2)?];
    Ok(Amount { cost_micros, tokens, turns })
}

pub(super) fn stored(number: u64) -> i64 {
    number.min(TURN_MAX).cast_signed()
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}
