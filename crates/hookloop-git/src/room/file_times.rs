//! Modification times of files that a move writes.
//!
//! A program that keeps results by the time and size of a file, such as Python, would use an old result for a file that
//! is written twice within a second. So a file gets a time that is at least one second later than every earlier version.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, openat, utimensat};

use super::checkout::RoomCheckout;
use super::index_entries::IndexEntry;
use super::survey::path;
use crate::repo::RepoError;

const SECOND_NS: u64 = 1_000_000_000;
/// After so long a time, the clock itself gives a later time. It is more than a second: the clock of files may lag.
const PAUSE_NS: u64 = 1_100_000_000;
/// The clock of file times may be behind by so much.
pub(super) const CLOCK_LAG: Duration = Duration::from_millis(20);

/// Returns the present time in nanoseconds.
pub(super) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time that written files get, in nanoseconds; `None` if the clock gives a time that is late enough.
pub(super) fn later_time(latest_ns: u64, now_ns: u64) -> Option<u64> {
    if now_ns >= latest_ns.saturating_add(PAUSE_NS) {
        return None;
    }
    let seconds = latest_ns.saturating_add(SECOND_NS).div_ceil(SECOND_NS);
    Some(seconds.saturating_mul(SECOND_NS))
}

impl RoomCheckout<'_> {
    /// Sets the modification time of files that have an earlier one, and the times in the index.
    pub(super) fn set_times(&self, files: &[&IndexEntry], ns: u64) -> Result<(), RepoError> {
        let is_earlier = |entry: &&&IndexEntry| u64::from(entry.inode.modified.0) < ns / SECOND_NS;
        let files: Vec<&&IndexEntry> = files.iter().filter(is_earlier).collect();
        if files.is_empty() {
            return Ok(());
        }
        let failed = |errno: rustix::io::Errno| RepoError::io(&self.files)(errno.into());
        let flags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
        let top = openat(CWD, &self.files, flags, Mode::empty()).map_err(failed)?;
        let seconds = i64::try_from(ns / SECOND_NS).unwrap_or(i64::MAX);
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: 0 },
        };
        for entry in files {
            utimensat(&top, path(&entry.path), &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(failed)?;
        }
        let args = ["update-index", "-q", "--ignore-submodules", "--really-refresh"];
        self.git(&args, Vec::new()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_file_written_soon_after_gets_a_later_whole_second() {
        for (latest_ms, now_ms, expected_s) in [
            (10_300, 10_400, Some(12)),
            (10_000, 10_000, Some(11)),
            (10_300, 11_399, Some(12)),
            (10_300, 11_400, None),
            // The clock went backwards.
            (10_300, 5_000, Some(12)),
            // The last files got a time that is still to come.
            (12_000, 10_500, Some(13)),
            (0, 10_000, None),
        ] {
            let later = later_time(latest_ms * MS, now_ms * MS);
            assert_eq!(later, expected_s.map(|s| s * SECOND_NS), "{latest_ms} {now_ms}");
            if let Some(later) = later {
                assert!(later >= latest_ms * MS + SECOND_NS);
            }
        }
    }
}
