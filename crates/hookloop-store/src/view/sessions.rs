//! Sessions that run, and the results of those that ended.

use hookloop_core::budget_change::BudgetChange;
use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::SessionId;
use hookloop_core::inbox::EndReporting;
use hookloop_core::session::plan::CostFigure;
use hookloop_core::session::{
    SessionEnded, SessionOutcome, SessionPlan, SessionState, SessionWork,
};
use hookloop_core::time::Timestamp;
use rusqlite::{OptionalExtension, Params, Row, params};

use super::fold::ViewFold;
use super::tables::RowResult;
use super::task_rows::containing;
use super::totals::View;
use super::usage::{SUM_MAX, stored};
use crate::log::{LogError, Seq};

/// The name of the work of a review.
pub const REVIEW: &str = "review";

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub id: SessionId,
    pub name: String,
    pub state: SessionState,
    pub reason: Option<String>,
    pub work: String,
    pub agent: String,
    pub machine: String,
    pub iteration: u32,
    pub task: Option<String>,
    pub tokens: u64,
    pub cost_micros: u64,
    /// Turns whose cost is unknown.
    pub unpriced_turns: u64,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Whether gates passed on the final files.
    pub proven: bool,
}

/// A filter of sessions. Lists are newest first.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    pub state: Option<SessionState>,
    /// Text in the id, name, work, agent, machine or task.
    pub text: Option<String>,
    /// Number of newest sessions to skip.
    pub skip: usize,
    pub limit: usize,
}

impl SessionRow {
    /// Returns the cost of the session's turns.
    pub fn cost(&self) -> CostFigure {
        CostFigure { micros: self.cost_micros, unpriced_turns: self.unpriced_turns }
    }

    pub fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }
}

impl ViewFold<'_> {
    pub(super) fn apply_session(&self, seq: Seq, id: &SessionId, event: &Event) -> RowResult<()> {
        self.trouble_session(seq, id, event)?;
        let id = id.as_str();
        if let Some(movement) = BudgetChange::of(&event.body) {
            self.change_budget(id, movement, event.at)?;
        }
        let set = |column: &'static str, value: &dyn rusqlite::ToSql| {
            self.run(column, params![id, value]).map(drop)
        };
        match &event.body {
            EventBody::SessionStarted(plan) => self.insert_session(id, plan, event.at),
            EventBody::IterationStarted(started) => {
                set("UPDATE session SET iteration = ?2 WHERE id = ?1", &started.number)
            }
            EventBody::TurnEnded(ended) => {
                self.enter(id, ended, event.at)?;
                let is_unpriced = ended.has_unknown_cost();
                if ended.usage.is_none() && !is_unpriced {
                    return Ok(());
                }
                let (tokens, cost) =
                    (stored(ended.usage.tokens()), stored(ended.usage.cost_micros));
                let add = "UPDATE session SET tokens = min(tokens + ?2, ?5),
                    cost_micros = min(cost_micros + ?3, ?5), unpriced_turns = unpriced_turns + ?4
                    WHERE id = ?1";
                self.run(add, params![id, tokens, cost, is_unpriced, SUM_MAX]).map(drop)
            }
            EventBody::SessionTaskClaimed(taken) => {
                set("UPDATE session SET task = ?2 WHERE id = ?1", &taken.task.as_str())
            }
            EventBody::SessionTaskReleased(left) => {
                let update = "UPDATE session SET task = NULL, asks = ?2 WHERE id = ?1";
                set(update, &(EndReporting::after(left.result) as i64))
            }
            EventBody::SessionPaused(_) => {
                set("UPDATE session SET state = ?2 WHERE id = ?1", &SessionState::Paused.name())
            }
            EventBody::SessionResumed(resumed) => {
                set("UPDATE session SET state = ?2 WHERE id = ?1", &SessionState::Running.name())?;
                set("UPDATE session SET machine = ?2 WHERE id = ?1", &resumed.machine)
            }
            EventBody::SessionEnded(SessionEnded { outcome, proven }) => {
                let update =
                    "UPDATE session SET state = ?2, reason = ?3, ended_at = ?4, proven = ?5
                    WHERE id = ?1";
                let reason = reason(outcome);
                self.run(
                    update,
                    params![id, SessionState::from(outcome).name(), reason, event.at.0, proven],
                )
                .map(drop)
            }
            EventBody::SessionReopened(_) => {
                let update = "UPDATE session SET state = ?2, reason = NULL, ended_at = NULL,
                    proven = 0 WHERE id = ?1 AND ended_at IS NOT NULL";
                set(update, &SessionState::Paused.name())
            }
            EventBody::HookRan(ran) => self.count_run(ran),
            _ => Ok(()),
        }
    }

    fn insert_session(&self, id: &str, plan: &SessionPlan, at: Timestamp) -> RowResult<()> {
        let work = match &plan.work {
            SessionWork::Prompt(prompt) => prompt.lines().next().unwrap_or_default().to_owned(),
            SessionWork::Spec(path) => format!("spec {path}"),
            SessionWork::Tasks => "tasks".to_owned(),
            SessionWork::Task(id) => format!("task {id}"),
            SessionWork::Own => "its user's".to_owned(),
            SessionWork::Review(_) => REVIEW.to_owned(),
        };
        let insert =
            "INSERT INTO session(id, name, state, work, agent, machine, iteration, asks, tokens,
            cost_micros, started_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, 0, 0, ?8)";
        let asks = EndReporting::first(plan) as i64;
        let state = SessionState::Running.name();
        let values = params![id, plan.name, state, work, plan.agent, plan.machine, asks, at.0];
        self.run(insert, values).map(drop)
    }
}

fn reason(outcome: &SessionOutcome) -> Option<String> {
    match outcome {
        SessionOutcome::NeedsHuman { reason } => Some(reason.clone()),
        SessionOutcome::Limit { limit } => Some(limit.name().to_owned()),
        SessionOutcome::Complete { unproven: true } => Some("accepted without proof".to_owned()),
        _ => None,
    }
}

const COLUMNS: &str = "id, name, state, reason, work, agent, machine, iteration, task, tokens,
    cost_micros, started_at, ended_at, proven, unpriced_turns";

impl View<'_> {
    /// Returns the latest sessions, newest first.
    pub fn sessions(&self, limit: usize) -> RowResult<Vec<SessionRow>> {
        let select = format!("SELECT {COLUMNS} FROM session ORDER BY num DESC LIMIT ?1");
        self.session_rows(&select, [i64::try_from(limit).unwrap_or(i64::MAX)])
    }

    /// Returns the sessions that match the filter, newest first.
    pub fn list_sessions(&self, filter: &SessionFilter) -> RowResult<Vec<SessionRow>> {
        let select = format!(
            "SELECT {COLUMNS} FROM session WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR
             id || ' ' || name || ' ' || work || ' ' || agent || ' ' || machine || ' ' || coalesce(task, '')
             LIKE ?2 ESCAPE '\\') ORDER BY num DESC LIMIT ?3 OFFSET ?4"
        );
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let text = filter.text.as_deref().map(containing);
        let state = filter.state.map(SessionState::name);
        let values = params![state, text, number(filter.limit), number(filter.skip)];
        self.session_rows(&select, values)
    }

    /// Returns the sessions that have not ended, newest first.
    pub fn open_sessions(&self, limit: usize) -> RowResult<Vec<SessionRow>> {
        let select = format!(
            "SELECT {COLUMNS} FROM session WHERE ended_at IS NULL ORDER BY num DESC LIMIT ?1"
        );
        self.session_rows(&select, [i64::try_from(limit).unwrap_or(i64::MAX)])
    }

    pub fn session(&self, id: &SessionId) -> RowResult<Option<SessionRow>> {
        let select = format!("SELECT {COLUMNS} FROM session WHERE id = ?1");
        let mut select = self.conn.prepare_cached(&select)?;
        select.query_row([id.as_str()], |row| Ok(read(row))).optional()?.transpose()
    }

    /// Whether a machine or worker has run a session.
    pub fn has_session_on(&self, machine: &str) -> RowResult<bool> {
        let select = "SELECT EXISTS(SELECT 1 FROM session WHERE machine = ?1)";
        Ok(self.conn.prepare_cached(select)?.query_row([machine], |row| row.get(0))?)
    }

    /// Returns the machines or workers that have run sessions, each once, latest first.
    pub fn session_machines(&self, limit: usize) -> RowResult<Vec<String>> {
        let select = "SELECT machine FROM session GROUP BY machine ORDER BY max(num) DESC LIMIT ?1";
        let mut select = self.conn.prepare_cached(select)?;
        let rows =
            select.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn session_rows(&self, select: &str, values: impl Params) -> RowResult<Vec<SessionRow>> {
        let mut select = self.conn.prepare_cached(select)?;
        let mut rows = select.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

fn read(row: &Row<'_>) -> RowResult<SessionRow> {
    let id: String = row.get(0)?;
    let state: String = row.get(2)?;
    Ok(SessionRow {
        id: id.parse().map_err(|error| LogError::damaged(0, error))?,
        name: row.get(1)?,
        state: state.parse().map_err(|error| LogError::damaged(0, error))?,
        reason: row.get(3)?,
        work: row.get(4)?,
        agent: row.get(5)?,
        machine: row.get(6)?,
        iteration: row.get(7)?,
        task: row.get(8)?,
        tokens: row.get::<_, i64>(9)? as u64,
        cost_micros: row.get::<_, i64>(10)? as u64,
        started_at: Timestamp(row.get(11)?),
        ended_at: row.get::<_, Option<i64>>(12)?.map(Timestamp),
        proven: row.get(13)?,
        unpriced_turns: row.get::<_, i64>(14)? as u64,
    })
}
