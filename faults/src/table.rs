//! The result table, with one row for each round.

use crate::check::Findings;

/// Result of a round.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) findings: Findings,
    pub(crate) faults: usize,
    pub(crate) events: usize,
    pub(crate) seconds: u64,
    /// The longest time from healing to a worker's first acknowledged write.
    pub(crate) recovery_ms: Option<u64>,
    /// Further remarks.
    pub(crate) remark: String,
}

const HEAD: [&str; 13] = [
    "round", "secs", "faults", "events", "acked", "unknown", "refused", "lost", "doubled", "stale",
    "missing", "broken", "recovery",
];

pub(crate) fn text(rows: &[Row]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| [cells(row), vec![row.remark.clone()]].concat()));
    aligned(&lines)
}

/// Aligns lines of cells in columns. Cells beyond the number of cells in the first line are
/// appended unaligned.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        for (cell, width) in line.iter().zip(&widths) {
            text.push_str(&format!("{cell:>width$}  "));
        }
        line.iter().skip(columns).for_each(|remark| text.push_str(remark));
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let found = &row.findings;
    let recovery = row.recovery_ms.map_or("-".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1e3));
    let numbers = [
        row.seconds as usize,
        row.faults,
        row.events,
        found.acknowledged,
        found.unknown,
        found.refused,
        found.lost.len(),
        found.doubled.len() + found.effects_doubled.len(),
        found.stale.len(),
        found.effects_missing.len(),
        found.broken.len(),
    ];
    let numbers = numbers.iter().map(usize::to_string);
    [row.name.clone()].into_iter().chain(numbers).chain([recovery]).collect()
}
