//! The disk use of snapshots.

use std::path::Path;

use hookloop_git::snapshot::{SnapshotUsage, snapshot_usage};

use super::{Finding, FindingGroup};

const ABOUT: &str = "snapshots";
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Reports the disk use of a project's snapshots, given the directory of its state. None if there are none.
pub fn examine_snapshots(state: &Path) -> Option<Finding> {
    match snapshot_usage(state) {
        Ok(SnapshotUsage { snapshots: 0, bytes: 0, .. }) => None,
        Ok(usage) => Some(FindingGroup::State.ok(ABOUT, in_words(&usage))),
        Err(error) => {
            let message = format!("their disk use is unknown: {error}");
            Some(FindingGroup::State.warning(ABOUT, message).typed("hookloop gc"))
        }
    }
}

fn in_words(usage: &SnapshotUsage) -> String {
    let sessions = if usage.groups == 1 { "session" } else { "sessions" };
    format!(
        "{} in {} {sessions}, {} (hookloop gc removes old ones)",
        grouped(usage.snapshots),
        grouped(usage.groups),
        disk_size(usage.bytes)
    )
}

/// Returns a number of bytes for people, such as `312 MiB`.
pub fn disk_size(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{} KiB", bytes / KIB),
        MIB..GIB => format!("{} MiB", bytes / MIB),
        _ => format!("{}.{} GiB", bytes / GIB, bytes % GIB * 10 / GIB),
    }
}

/// Returns `1204` as `1,204`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_use_of_snapshots_is_one_line() {
        let usage = SnapshotUsage { snapshots: 1_204, groups: 37, bytes: 312 * MIB + 5 };
        let expected = "1,204 in 37 sessions, 312 MiB (hookloop gc removes old ones)";
        assert_eq!(in_words(&usage), expected);
        for (bytes, expected) in [
            (0, "0 bytes"),
            (KIB, "1 KiB"),
            (MIB - 1, "1023 KiB"),
            (GIB, "1.0 GiB"),
            (5 * GIB + GIB / 2, "5.5 GiB"),
        ] {
            assert_eq!(disk_size(bytes), expected);
        }
    }

    #[test]
    fn a_project_without_snapshots_has_no_line() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(examine_snapshots(state.path()), None);
    }
}
