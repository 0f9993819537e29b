//! Problems that need a human, and the notifications about them.

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::{NoticeId, SessionId, Subject};
use hookloop_core::inbox::{
    EndReporting, NotificationClaimed, Problem, ProblemChange, ProblemKey, ProblemKind,
    ProblemSubject, of_session, of_task,
};
use hookloop_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use super::fold::ViewFold;
use super::tables::{RowResult, to_json};
use super::totals::View;
use crate::log::{LogError, Seq};

/// The state of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationState {
    /// A process is sending it, or died while doing so.
    Claimed = 0,
    /// It was sent, or is no longer needed.
    Over = 1,
    Failed = 2,
}

/// A notification to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationRow {
    pub id: NoticeId,
    pub state: NotificationState,
    /// The number of attempts to send it.
    pub tries: u32,
    /// The place of its last event.
    pub version: Seq,
    pub problems: Vec<ProblemKey>,
}

impl ViewFold<'_> {
    /// Applies an event of a task to its problem. Only a task that waits can have one.
    pub(super) fn trouble_task(&self, seq: Seq, event: &Event, is_waiting: bool) -> RowResult<()> {
        match of_task(&event.body) {
            Some(ProblemChange::Passes) if !is_waiting => Ok(()),
            change => self.change_problem(seq, event, change),
        }
    }

    pub(super) fn trouble_session(&self, seq: Seq, id: &SessionId, event: &Event) -> RowResult<()> {
        let asks = match event.body {
            EventBody::SessionEnded(_) => self.asks(id)?,
            EventBody::BudgetExhausted(shortage) => {
                // The next report of the same problem adds nothing.
                if View::new(self.conn).problem_of(&ProblemSubject::Budget)?.is_some() {
                    return Ok(());
                }
                let (kind, reason) = (ProblemKind::BudgetExhausted, shortage.to_string());
                return self.put_problem(seq, event, ProblemSubject::Budget, kind, &reason);
            }
            EventBody::IterationStarted(_) | EventBody::TurnStarted(_) => {
                // The budget covered the turn.
                self.end_problem(&Subject::Budget)?;
                EndReporting::Nothing
            }
            _ => EndReporting::Nothing,
        };
        self.change_problem(seq, event, of_session(&event.body, asks))
    }

    fn asks(&self, id: &SessionId) -> RowResult<EndReporting> {
        let select = "SELECT asks FROM session WHERE id = ?1";
        let mut select = self.conn.prepare_cached(select)?;
        let asks = select.query_row([id.as_str()], |row| row.get::<_, i64>(0)).optional()?;
        Ok(match asks {
            Some(2) => EndReporting::Always,
            Some(1) => EndReporting::WhenStuck,
            _ => EndReporting::Nothing,
        })
    }

    fn change_problem(
        &self,
        seq: Seq,
        event: &Event,
        change: Option<ProblemChange>,
    ) -> RowResult<()> {
        match change {
            Some(ProblemChange::Arises { kind, reason }) => {
                match ProblemSubject::of(event.subject.clone()) {
                    Some(about) => self.put_problem(seq, event, about, kind, &reason),
                    None => Ok(()),
                }
            }
            Some(ProblemChange::Passes) => self.end_problem(&event.subject),
            None => Ok(()),
        }
    }

    fn put_problem(
        &self,
        seq: Seq,
        event: &Event,
        about: ProblemSubject,
        kind: ProblemKind,
        reason: &str,
    ) -> RowResult<()> {
        let put = "INSERT OR REPLACE INTO problem VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)";
        let subject = about.subject().to_string();
        let key = ProblemKey { about, version: seq }.to_string();
        let (at, actor) = (event.at.0, &event.actor);
        self.run(put, params![subject, key, seq as i64, at, actor, kind.name(), reason]).map(drop)
    }

    pub(super) fn end_problem(&self, subject: &Subject) -> RowResult<()> {
        self.run("DELETE FROM problem WHERE about = ?1", [subject.to_string()]).map(drop)
    }

    pub(super) fn apply_notice(&self, seq: Seq, id: &NoticeId, body: &EventBody) -> RowResult<()> {
        let end = |state: NotificationState| {
            let update = "UPDATE notice SET state = ?2, seq = ?3 WHERE id = ?1";
            self.run(update, params![id.as_str(), state as i64, seq as i64]).map(drop)
        };
        match body {
            EventBody::NotificationClaimed(claimed) => self.claim_notice(seq, id, claimed),
            EventBody::NotificationSent(_) | EventBody::NotificationDropped(_) => {
                end(NotificationState::Over)
            }
            EventBody::NotificationFailed(_) => end(NotificationState::Failed),
            EventBody::ProblemDismissed(dismissed) => {
                let Ok(ProblemKey { about, version }) = dismissed.problem.parse() else {
                    return Ok(());
                };
                let update = "UPDATE problem SET dismissed = 1 WHERE about = ?1 AND seq = ?2";
                let about = about.subject().to_string();
                self.run(update, params![about, version as i64]).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn claim_notice(
        &self,
        seq: Seq,
        id: &NoticeId,
        claimed: &NotificationClaimed,
    ) -> RowResult<()> {
        let put = "INSERT INTO notice VALUES (?1, ?2, 0, 1, ?3, ?4) ON CONFLICT DO UPDATE
            SET state = 0, tries = tries + 1, seq = ?3";
        let values = params![id.as_str(), claimed.to, seq as i64, to_json(&claimed.problems)];
        self.run(put, values)?;
        for problem in &claimed.problems {
            self.run("INSERT OR IGNORE INTO told VALUES (?1, ?2)", params![claimed.to, problem])?;
        }
        Ok(())
    }
}

const COLUMNS: &str = "about, seq, at, actor, kind, reason, dismissed";

impl View<'_> {
    /// Returns the problems that need a human and are not dismissed, oldest first.
    pub fn problems(&self, limit: usize) -> RowResult<Vec<Problem>> {
        let select =
            format!("SELECT {COLUMNS} FROM problem WHERE dismissed = 0 ORDER BY seq LIMIT ?1");
        let mut select = self.conn.prepare_cached(&select)?;
        let mut rows = select.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    /// Returns the problems without a notification on a channel, oldest first.
    ///
    /// If `kinds` is empty, it returns all kinds.
    pub fn untold(
        &self,
        channel: &str,
        kinds: &[ProblemKind],
        limit: usize,
    ) -> RowResult<Vec<Problem>> {
        let select = format!(
            "SELECT {COLUMNS} FROM problem WHERE dismissed = 0
             AND (?2 = '[]' OR kind IN (SELECT value FROM json_each(?2)))
             AND NOT EXISTS (SELECT 1 FROM told WHERE channel = ?1 AND problem = key)
             ORDER BY seq LIMIT ?3"
        );
        let mut select = self.conn.prepare_cached(&select)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = select.query(params![channel, to_json(&kinds), limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    pub fn count_problems(&self) -> RowResult<u64> {
        let count = "SELECT count(*) FROM problem WHERE dismissed = 0";
        Ok(self.conn.prepare_cached(count)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }

    /// Returns the problem of a subject, dismissed or not.
    pub fn problem_of(&self, about: &ProblemSubject) -> RowResult<Option<Problem>> {
        let select = format!("SELECT {COLUMNS} FROM problem WHERE about = ?1");
        let mut select = self.conn.prepare_cached(&select)?;
        let about = about.subject().to_string();
        select.query_row([about], |row| Ok(read(row))).optional()?.transpose()
    }

    /// Whether a channel has, or is about to get, a notification of a problem.
    pub fn is_told(&self, channel: &str, problem: &ProblemKey) -> RowResult<bool> {
        let select = "SELECT 1 FROM told WHERE channel = ?1 AND problem = ?2";
        Ok(self.conn.prepare_cached(select)?.exists(params![channel, problem.to_string()])?)
    }

    pub fn notice(&self, id: &NoticeId) -> RowResult<Option<NotificationRow>> {
        let select = "SELECT id, state, tries, seq, problems FROM notice WHERE id = ?1";
        let mut select = self.conn.prepare_cached(select)?;
        select.query_row([id.as_str()], |row| Ok(read_notice(row))).optional()?.transpose()
    }

    /// Returns notifications of a channel that were claimed and not sent, at most `limit`.
    ///
    /// Notifications with `tries_max` attempts are left out.
    pub fn unsent(
        &self,
        channel: &str,
        tries_max: u32,
        limit: usize,
    ) -> RowResult<Vec<NotificationRow>> {
        let select = "SELECT id, state, tries, seq, problems FROM notice
            WHERE channel = ?1 AND state <> 1 AND tries < ?2 ORDER BY seq LIMIT ?3";
        let mut select = self.conn.prepare_cached(select)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = select.query(params![channel, tries_max, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read_notice(row)?);
        }
        Ok(found)
    }
}

fn read(row: &Row<'_>) -> RowResult<Problem> {
    let (about, version) = (row.get::<_, String>(0)?, row.get::<_, i64>(1)? as Seq);
    let damaged = |what: &str| LogError::damaged(version, format!("in the view: {what}"));
    let about =
        about.parse().ok().and_then(ProblemSubject::of).ok_or_else(|| damaged("a subject"))?;
    let kind: String = row.get(4)?;
    Ok(Problem {
        key: ProblemKey { about, version },
        since: Timestamp(row.get(2)?),
        by: row.get(3)?,
        kind: kind.parse().map_err(|error: String| damaged(&error))?,
        reason: row.get(5)?,
        is_dismissed: row.get(6)?,
    })
}

fn read_notice(row: &Row<'_>) -> RowResult<NotificationRow> {
    let version = row.get::<_, i64>(3)? as Seq;
    let damaged = |what: &str| LogError::damaged(version, format!("in the view: {what}"));
    let id: String = row.get(0)?;
    let problems: String = row.get(4)?;
    let problems: Vec<String> =
        serde_json::from_str(&problems).map_err(|error| damaged(&error.to_string()))?;
    Ok(NotificationRow {
        id: id.parse().map_err(|_| damaged("a notice"))?,
        state: match row.get::<_, i64>(1)? {
            0 => NotificationState::Claimed,
            1 => NotificationState::Over,
            _ => NotificationState::Failed,
        },
        tries: row.get(2)?,
        version,
        // Skips keys of a newer version, whose problems this version does not know.
        problems: problems.iter().filter_map(|key| key.parse().ok()).collect(),
    })
}
