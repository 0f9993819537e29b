//! Arbitrary reports of test runners and linters: read in bounded time, and either refused or consistent.

#![no_main]

use std::collections::HashSet;
use std::path::Path;

use hookloop_core::checks::{CHECKS_MAX, CheckRecords};
use hookloop_reports::{ReportFormat, go_test_text, read, recognize};
use libfuzzer_sys::fuzz_target;

#[path = "../time.rs"]
mod time;

/// The directory of the project in the seeds.
const ROOT: &str = "/project";

fuzz_target!(|data: &[u8]| {
    let read = || read(data, Path::new(ROOT));
    let format = recognize(data);
    match time::limited("reading it", read) {
        Err(error) => assert!(!error.to_string().trim().is_empty()),
        Ok(records) => {
            assert_eq!(read().as_ref().ok(), Some(&records), "two parses differ");
            assert_eq!(format.as_ref().ok().map(|format| format.name()), Some(records.source));
            check_records(&records);
        }
    }
    let is_go = format.is_ok_and(|format| format == ReportFormat::GoTest);
    assert_eq!(go_test_text(data).is_some(), is_go);
});

/// Checks that ids are unique, in one line and below the project, and that counts include all checks.
fn check_records(records: &CheckRecords) {
    assert!(records.checks.len() <= CHECKS_MAX);
    let listed = records.checks.len() as u64;
    assert!(records.counts.total() >= listed);
    assert_eq!(records.is_complete, records.counts.total() == listed);
    let mut ids = HashSet::new();
    for check in &records.checks {
        assert!(ids.insert(&check.id), "two checks `{}`", check.id);
        assert!(!check.id.trim().is_empty() && !check.id.contains(char::is_control));
        assert!(!check.id.starts_with("/project/"), "{}", check.id);
    }
    assert_eq!(records.report().is_some(), records.counts.failed > 0);
}
