//! Fleet directives in force, the fleet's budget, and rate limits.

use hookloop_core::event::{Event, EventBody};
use hookloop_core::fleet::{
    BudgetSet, FleetDirectiveSet, FleetDirectives, RateLimitReported, StandingDirective,
};
use hookloop_core::shared_budget::SharedBudget;
use hookloop_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use serde::de::DeserializeOwned;

use super::fold::ViewFold;
use super::tables::{RowResult, to_json};
use super::totals::View;
use crate::log::LogError;

const BUDGET: &str = "budget";
const ORDER: &str = "order ";
const SLOW: &str = "slow ";

impl ViewFold<'_> {
    pub(super) fn apply_fleet(&self, event: &Event) -> RowResult<()> {
        match &event.body {
            EventBody::FleetDirectiveSet(ordered) => {
                self.say(&format!("{ORDER}{}", ordered.scope), event, &to_json(ordered))
            }
            EventBody::FleetDirectiveCleared(lifted) => {
                let key = format!("{ORDER}{}", lifted.scope);
                self.run("DELETE FROM fleet WHERE key = ?1", [key]).map(drop)
            }
            EventBody::FleetBudgetSet(budget) => self.say(BUDGET, event, &to_json(budget)),
            EventBody::RateLimited(slowed) => {
                self.say(&format!("{SLOW}{}", slowed.source), event, &to_json(slowed))
            }
            _ => Ok(()),
        }
    }

    fn say(&self, key: &str, event: &Event, data: &str) -> RowResult<()> {
        let put = "INSERT OR REPLACE INTO fleet VALUES (?1, ?2, ?3, ?4)";
        self.run(put, params![key, event.at.0, event.actor, data]).map(drop)
    }
}

impl View<'_> {
    /// Returns the directives in force, by their subject.
    pub fn orders(&self) -> RowResult<FleetDirectives> {
        let read = |row: &Row<'_>| {
            let set: FleetDirectiveSet = read_json(row)?;
            Ok(StandingDirective { set, by: row.get(1)?, at: Timestamp(row.get(0)?) })
        };
        Ok(FleetDirectives(self.said(ORDER, read)?))
    }

    /// Returns the budget of all sessions of the fleet together.
    pub fn budget(&self) -> RowResult<SharedBudget> {
        let select = "SELECT data FROM fleet WHERE key = ?1";
        let found: Option<String> =
            self.conn.prepare_cached(select)?.query_row([BUDGET], |row| row.get(0)).optional()?;
        match found {
            Some(data) => {
                let set: BudgetSet = serde_json::from_str(&data).map_err(damaged)?;
                Ok(set.budget)
            }
            None => Ok(SharedBudget::default()),
        }
    }

    /// Returns the providers and forges that limit requests, each with its end.
    pub fn slowed(&self) -> RowResult<Vec<RateLimitReported>> {
        self.said(SLOW, read_json)
    }

    fn said<T>(&self, start: &str, read: impl Fn(&Row<'_>) -> RowResult<T>) -> RowResult<Vec<T>> {
        let select = "SELECT at, actor, data FROM fleet WHERE substr(key, 1, ?2) = ?1 ORDER BY key";
        let mut select = self.conn.prepare_cached(select)?;
        let mut rows = select.query(params![start, start.len() as i64])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

fn read_json<T: DeserializeOwned>(row: &Row<'_>) -> RowResult<T> {
    serde_json::from_str(&row.get::<_, String>(2)?).map_err(damaged)
}

fn damaged(error: serde_json::Error) -> LogError {
    LogError::damaged(0, error)
}
