//! Compares the tables of a view with those derived from the log, row by row.
//!
//! Neither side is held in memory.

use std::fmt;

use hookloop_core::excerpt::first_chars;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Rows, Statement};

use super::tables::RowResult;
use crate::hex;

/// Longest key of a row that is shown, in characters.
const KEY_MAX: usize = 80;

/// The first row of a table that differs from the derived one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewDifference {
    pub table: String,
    /// The key of the row, or `None` if the table itself cannot be read.
    pub row: Option<String>,
}

impl fmt::Display for ViewDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.row {
            Some(row) => write!(f, "row {row} of table `{}`", self.table),
            None => write!(f, "table `{}`", self.table),
        }
    }
}

/// Returns the tables of `stored` that differ from those of `derived`.
///
/// `derived` has the tables of a view and no others.
pub(crate) fn differences(
    stored: &Connection,
    derived: &Connection,
) -> RowResult<Vec<ViewDifference>> {
    let mut select = derived.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    )?;
    let tables = select.query_map([], |row| row.get::<_, String>(0))?;
    let mut found = Vec::new();
    for table in tables {
        let table = table?;
        let keys = keys(derived, &table)?;
        let sql = format!("SELECT * FROM {table} ORDER BY {}", keys.join(", "));
        let mut right = derived.prepare(&sql)?;
        // A table that was dropped or altered cannot be read by this query.
        let Ok(mut left) = stored.prepare(&sql) else {
            found.push(ViewDifference { table, row: None });
            continue;
        };
        if left.column_count() != right.column_count() {
            found.push(ViewDifference { table, row: None });
            continue;
        }
        if let Some(row) = first_difference(&mut left, &mut right)? {
            found.push(ViewDifference { table, row: Some(row) });
        }
    }
    Ok(found)
}

/// Returns the columns that order a table: its primary key, else the order of insertion.
fn keys(conn: &Connection, table: &str) -> RowResult<Vec<String>> {
    let mut select =
        conn.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
    let names = select.query_map([table], |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    Ok(if names.is_empty() { vec!["rowid".to_owned()] } else { names })
}

/// Returns the key of the first row that differs or that only one side has.
fn first_difference(
    left: &mut Statement<'_>,
    right: &mut Statement<'_>,
) -> RowResult<Option<String>> {
    let columns = right.column_count();
    let mut left = left.query([])?;
    let mut right = right.query([])?;
    loop {
        let (ours, theirs) = (next(&mut left, columns)?, next(&mut right, columns)?);
        match (ours, theirs) {
            (None, None) => return Ok(None),
            (ours, theirs) if ours == theirs => {}
            (_, Some(row)) | (Some(row), None) => return Ok(Some(key(&row))),
        }
    }
}

fn next(rows: &mut Rows<'_>, columns: usize) -> RowResult<Option<Vec<Value>>> {
    let Some(row) = rows.next()? else { return Ok(None) };
    let value = |column| row.get_ref(column).map(owned);
    Ok(Some((0..columns).map(value).collect::<rusqlite::Result<_>>()?))
}

fn owned(value: ValueRef<'_>) -> Value {
    match value {
        // Bytes that are not text are compared unchanged.
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
    }
}

/// Returns the first column, and the second if the first is a number internal to the table.
fn key(row: &[Value]) -> String {
    let text = |value: &Value| match value {
        Value::Integer(number) => number.to_string(),
        Value::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => {
                format!("`{}`", first_chars(text, KEY_MAX))
            }
            _ => format!("`{}`", hex::encode(&bytes[..bytes.len().min(KEY_MAX / 2)])),
        },
        other => format!("{other:?}"),
    };
    match row {
        [Value::Integer(number), Value::Blob(bytes), ..] if bytes.len() <= KEY_MAX => {
            format!("{number} ({})", text(&Value::Blob(bytes.clone())))
        }
        [first, ..] => text(first),
        [] => String::new(),
    }
}
