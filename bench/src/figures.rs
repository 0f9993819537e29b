//! Medians, percentiles, tables.

use std::time::{Duration, Instant};

/// A sample of durations.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Runs `work` and adds its duration to the sample.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.add(start.elapsed());
        done
    }

    pub fn add(&mut self, duration: Duration) {
        self.0.push(duration.as_secs_f64() * 1e3);
    }

    /// Returns the value that the given share of the sample does not exceed, in milliseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    pub fn median(&self) -> f64 {
        self.percentile(0.5)
    }
}

/// Prints a table in Markdown.
pub fn table(headings: &[&str], rows: &[Vec<String>]) {
    println!("| {} |", headings.join(" | "));
    println!("|{}", "---|".repeat(headings.len()));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
    println!();
}

/// Formats milliseconds with three digits.
pub fn ms(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0} ms"),
        v if v >= 1.0 => format!("{v:.2} ms"),
        v => format!("{v:.3} ms"),
    }
}

pub fn times(value: f64) -> String {
    format!("{value:.2} ×")
}
