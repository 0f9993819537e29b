//! `jest`: a line for each file, then a block for each test of it that fails.

use super::{FoundChecks, cause, is_foreign};

/// The title of a block about a file that could not be loaded.
const NOT_LOADED: &str = "Test suite failed to run";
/// The line above the actual error. Jest prints general advice above it.
const DETAILS: &str = "Details:";

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let mut file = None;
    for (at, line) in lines.iter().enumerate() {
        match file_result(line) {
            Some(FileResult::Passed) => file = None,
            Some(FileResult::Failed(failed)) => file = Some(failed),
            None => {}
        }
        let (Some(file), Some(test)) = (file, block(line)) else { continue };
        if test == "Console" {
            continue;
        }
        let rest = &lines[at + 1..];
        let length = rest.iter().take_while(|line| !ends_block(line)).count();
        let body: Vec<&str> =
            rest[..length].iter().copied().filter(|line| !is_foreign(line)).collect();
        if test == NOT_LOADED {
            let details = body.iter().position(|line| line.trim() == DETAILS);
            found.is_broken = true;
            found.add(file, cause(body[details.map_or(0, |at| at + 1)..].iter().copied()));
        } else {
            found.add(&format!("{file} › {test}"), cause(body));
        }
    }
}

enum FileResult<'a> {
    Passed,
    Failed(&'a str),
}

/// Parses `FAIL src/cart.test.js (5.2 s)`.
fn file_result(line: &str) -> Option<FileResult<'_>> {
    let line = line.strip_prefix(' ').unwrap_or(line);
    if line.starts_with("PASS ") {
        return Some(FileResult::Passed);
    }
    let file = line.strip_prefix("FAIL ")?.trim();
    let file = match file.rsplit_once(" (") {
        Some((file, time)) if time.ends_with("s)") => file,
        _ => file,
    };
    Some(FileResult::Failed(file))
}

/// Parses `  ● cart › total › adds prices up`.
fn block(line: &str) -> Option<&str> {
    line.strip_prefix("  ● ")
}

fn ends_block(line: &str) -> bool {
    block(line).is_some() || file_result(line).is_some() || line.starts_with("Test Suites: ")
}
