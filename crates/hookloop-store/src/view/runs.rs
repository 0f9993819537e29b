//! Counts, results and durations of hook runs.

use hookloop_core::event::HookRan;
use hookloop_core::hook_status::HookStatus;
use rusqlite::params;

use super::fold::ViewFold;
use super::tables::RowResult;
use super::totals::View;

/// Number of buckets for each doubling of time.
const PER_DOUBLING: u32 = 4;

/// The results of the runs of one hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookRuns {
    pub name: String,
    pub runs: u64,
    pub failures: u64,
    pub blocks: u64,
    /// The median duration, exact to a fifth.
    pub p50_ms: u64,
    pub p95_ms: u64,
}

/// Returns the bucket of a duration. Integers only, so that every machine gets the same result.
pub(super) fn size_of(ms: u64) -> u32 {
    (0..64 * PER_DOUBLING).find(|size| ms_of(*size) >= ms).unwrap_or(64 * PER_DOUBLING)
}

/// Returns the longest duration of a bucket.
pub(super) fn ms_of(size: u32) -> u64 {
    // Four steps between two powers of two.
    let base = 1u64.checked_shl(size / PER_DOUBLING).unwrap_or(u64::MAX / 2);
    base.saturating_add(base / u64::from(PER_DOUBLING) * u64::from(size % PER_DOUBLING))
}

impl ViewFold<'_> {
    pub(super) fn count_run(&self, ran: &HookRan) -> RowResult<()> {
        let is_block = ran.status.known() == Some(HookStatus::Blocked);
        let is_failure = !is_block
            && !matches!(ran.status.known(), Some(HookStatus::Passed | HookStatus::Skipped));
        let count = "INSERT INTO hook_runs VALUES (?1, 1, ?2, ?3) ON CONFLICT DO UPDATE
            SET runs = runs + 1, failures = failures + ?2, blocks = blocks + ?3";
        self.run(count, params![ran.hook_name, is_failure, is_block])?;
        let time =
            "INSERT INTO hook_time VALUES (?1, ?2, 1) ON CONFLICT DO UPDATE SET runs = runs + 1";
        self.run(time, params![ran.hook_name, size_of(ran.duration_ms)])?;
        Ok(())
    }
}

impl View<'_> {
    pub fn hook_runs(&self) -> RowResult<Vec<HookRuns>> {
        let select = "SELECT name, runs, failures, blocks FROM hook_runs ORDER BY name";
        let mut select = self.conn.prepare_cached(select)?;
        let mut rows = select.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
            let (runs, failures, blocks) = (number(1)?, number(2)?, number(3)?);
            let (p50_ms, p95_ms) =
                (self.percentile(&name, runs, 50)?, self.percentile(&name, runs, 95)?);
            found.push(HookRuns { name, runs, failures, blocks, p50_ms, p95_ms });
        }
        Ok(found)
    }

    fn percentile(&self, name: &str, runs: u64, percent: u64) -> RowResult<u64> {
        let select = "SELECT size, runs FROM hook_time WHERE name = ?1 ORDER BY size";
        let mut select = self.conn.prepare_cached(select)?;
        let mut rows = select.query([name])?;
        let wanted = (runs * percent).div_ceil(100).max(1);
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            seen += row.get::<_, i64>(1)? as u64;
            if seen >= wanted {
                return Ok(ms_of(row.get::<_, u32>(0)?));
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_bucket_is_within_a_quarter_of_the_duration() {
        for ms in [0, 1, 2, 3, 5, 10, 100, 999, 1_000, 60_000, 86_400_000] {
            let longest = ms_of(size_of(ms));
            assert!(longest >= ms && longest <= ms + ms / 4 + 1, "{ms}: {longest}");
        }
    }
}
