//! The figures, one row for each round.

use crate::check::Findings;

/// What a round came to.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) findings: Findings,
    pub(crate) faults: usize,
    pub(crate) events: usize,
    pub(crate) seconds: u64,
    /// The longest time from healing to the first write that a worker was acknowledged.
    pub(crate) recovery_ms: Option<u64>,
    /// What else there is to say.
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

/// Lines of cells, in columns. What a line has beyond the first one's cells stands at its end as it is.
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
