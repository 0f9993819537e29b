//! Statements that begin, end or undo a transaction.

use rusqlite::Connection;

use super::error::StoreError;

/// Runs a statement without parameters and without rows.
pub(super) fn run_statement(conn: &Connection, statement: &'static str) -> Result<(), StoreError> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}
