//! One hash of the whole view, equal wherever the same events were applied.
//!
//! It leaves out places in the log, which belong to the engine and differ between engines.

use hookloop_core::digest::hex;
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

use super::tables::RowResult;
use super::totals::View;

/// One query for each table, in a fixed order.
const PARTS: [&str; 19] = [
    "SELECT t.id, t.state, t.open_deps, t.announced, t.priority, t.epoch, t.claim, t.created_at,
        t.started_at, t.completed_at, p.id, t.spec, t.detail FROM task t LEFT JOIN task p ON p.num = t.parent ORDER BY t.num",
    "SELECT task.id FROM orphan JOIN task ON task.num = orphan.task ORDER BY orphan.task",
    "SELECT a.id, b.id FROM edge JOIN task a ON a.num = edge.task JOIN task b ON b.num = edge.needs
        ORDER BY edge.task, edge.needs",
    "SELECT task.id, remark.kind, number, at, actor, data FROM remark JOIN task ON task.num = remark.task
        ORDER BY task, remark.kind, seq",
    "SELECT task.id, data FROM delivery JOIN task ON task.num = delivery.task ORDER BY delivery.task",
    "SELECT about, at, actor, kind, reason, dismissed FROM problem ORDER BY about",
    // Keys of problems contain places in the log.
    "SELECT id, channel, state, tries FROM notice ORDER BY id",
    "SELECT name, data, paused, next, last FROM schedule ORDER BY name",
    "SELECT name, enabled FROM hook_switch ORDER BY name",
    "SELECT name, runs, failures, blocks FROM hook_runs ORDER BY name",
    "SELECT name, size, runs FROM hook_time ORDER BY name, size",
    "SELECT id, workflow, next_step, steps FROM run ORDER BY num",
    "SELECT id, name, state, reason, work, agent, machine, iteration, task, tokens, cost_micros, unpriced_turns,
        started_at, ended_at FROM session ORDER BY num",
    "SELECT * FROM usage ORDER BY day, session, task, agent",
    "SELECT * FROM spent ORDER BY day",
    "SELECT * FROM reservation ORDER BY session",
    "SELECT * FROM fleet ORDER BY key",
    "SELECT subject, reason, accepted FROM quarantine ORDER BY seq",
    "SELECT created, ready, active, submitted, completed, blocked, deleted, runs_completed,
        runs_failed FROM totals",
];

impl View<'_> {
    /// Returns the state hash, in hexadecimal.
    pub fn state_hash(&self) -> RowResult<String> {
        let mut hash = Sha256::new();
        for part in PARTS {
            let mut select = self.conn.prepare(part)?;
            let columns = select.column_count();
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                for column in 0..columns {
                    add(&mut hash, row.get_ref(column)?);
                }
            }
            hash.update([b'.']);
        }
        Ok(hex(&hash.finalize()))
    }
}

fn add(hash: &mut Sha256, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => hash.update([b'n']),
        ValueRef::Integer(number) => {
            hash.update([b'i']);
            hash.update(number.to_le_bytes());
        }
        ValueRef::Real(number) => {
            hash.update([b'r']);
            hash.update(number.to_le_bytes());
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            hash.update([b't']);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
}
