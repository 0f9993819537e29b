//! Finds processes by a unique mark in their environment or their arguments.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns a new mark, of digits only, so that it can be part of a number.
pub(crate) fn new() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("7{:08}{:08}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Live processes that have the mark, as id and command line.
pub(crate) fn bearers(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file| fs::read(entry.path().join(file)).unwrap_or_default();
        let (environment, arguments) = (read("environ"), read("cmdline"));
        let has = |bytes: &[u8]| bytes.windows(mark.len()).any(|part| part == mark.as_bytes());
        if has(&environment) || has(&arguments) {
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            found.push(format!("{}: {arguments}", entry.file_name().display()));
        }
    }
    found
}

#[test]
fn a_marked_process_is_found_while_it_lives() {
    let (in_environment, in_arguments) = (new(), new());
    let mut bearer = std::process::Command::new("sleep")
        .arg(format!("600.{in_arguments}"))
        .env("MARK", &in_environment)
        .spawn()
        .unwrap();
    // `exec` sets the environment a moment after the name.
    let is_found = || bearers(&in_environment).len() == 1 && bearers(&in_arguments).len() == 1;
    super::eventually("a bearer", super::AMPLE, || is_found().then_some(()));
    bearer.kill().unwrap();
    bearer.wait().unwrap();
    assert_eq!((bearers(&in_environment).len(), bearers(&in_arguments).len()), (0, 0));
}
