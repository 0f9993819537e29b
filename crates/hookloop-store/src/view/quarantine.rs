//! Foreign messages of a shared log. Every reader skips them, and they are shown until accepted.

use hookloop_core::excerpt::first_chars;
use hookloop_core::id::Subject;
use rusqlite::params;

use super::fold::ViewFold;
use super::tables::RowResult;
use super::totals::View;
use crate::log::Seq;

/// Largest number of messages that the view lists. It counts all of them.
const LISTED_MAX: u64 = 1_000;
/// Longest stored reason, in characters. It may quote a forged message.
const REASON_MAX: usize = 300;

/// A message that is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRow {
    /// The place of the message in the log.
    pub seq: Seq,
    /// The subject of the message on the server.
    pub subject: String,
    pub reason: String,
    /// Whether a person has accepted the message.
    pub accepted: bool,
}

impl ViewFold<'_> {
    /// Skips the message at `seq`. Returns the version of its subject before it.
    ///
    /// The message still counts as the last one of its subject, because the server compares
    /// expected versions with it.
    pub(crate) fn quarantine(
        &mut self,
        seq: Seq,
        subject: &Subject,
        place: &str,
        reason: &str,
    ) -> RowResult<Seq> {
        self.cool()?;
        self.totals.head = seq;
        self.totals.quarantined += 1;
        if self.totals.quarantined <= LISTED_MAX {
            let reason = first_chars(reason, REASON_MAX);
            let insert = "INSERT INTO quarantine VALUES (?1, ?2, ?3, 0)";
            self.run(insert, params![seq as i64, place, reason])?;
        }
        let before = View::new(self.conn).version(subject)?;
        if let Subject::Task(id) = subject {
            let raise = "UPDATE task SET version = ?2 WHERE id = ?1";
            if self.run(raise, params![id.as_str(), seq as i64])? == 1 {
                return Ok(before);
            }
        }
        self.raise_version(subject, seq)?;
        Ok(before)
    }

    pub(super) fn accept_foreign(&self, through: Seq) -> RowResult<()> {
        let through = i64::try_from(through).unwrap_or(i64::MAX);
        self.run("UPDATE quarantine SET accepted = 1 WHERE seq <= ?1", [through]).map(drop)
    }
}

impl View<'_> {
    /// Returns the foreign messages that no person has accepted yet, oldest first.
    pub fn quarantined(&self) -> RowResult<Vec<QuarantineRow>> {
        let select =
            "SELECT seq, subject, reason, accepted FROM quarantine WHERE accepted = 0 ORDER BY seq";
        let mut select = self.conn.prepare_cached(select)?;
        let rows = select.query_map([], |row| {
            Ok(QuarantineRow {
                seq: row.get::<_, i64>(0)? as Seq,
                subject: row.get(1)?,
                reason: row.get(2)?,
                accepted: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
