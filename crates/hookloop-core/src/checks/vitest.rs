//! `vitest`: all failures at the end, each between lines.

use super::{FoundChecks, cause, is_foreign};

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let is_vitest = |line: &&str| {
        line.starts_with(" Test Files  ") || line.starts_with(RULE) && line.contains(" Failed ")
    };
    if !lines.iter().any(is_vitest) {
        return;
    }
    let mut at = 0;
    while at < lines.len() {
        // Tests that fail for the same reason share one block.
        let names = lines[at..].iter().map_while(|line| failed(line)).count();
        let rest = &lines[at + names..];
        let length = rest.iter().take_while(|line| !ends_failure(line)).count();
        let why = rest[..length].iter().copied().filter(|line| !is_foreign(line));
        let why = if names > 0 { cause(why) } else { String::new() };
        for name in lines[at..at + names].iter().filter_map(|line| failed(line)) {
            let file = suite(name);
            found.is_broken |= file.is_some();
            found.add(file.unwrap_or(name), why.clone());
        }
        at += (names + length).max(1);
    }
}

fn ends_failure(line: &str) -> bool {
    line.starts_with(RULE) || failed(line).is_some()
}

const RULE: &str = "⎯⎯⎯";

/// Parses ` FAIL  src/cart.test.js > cart > adds prices up`.
fn failed(line: &str) -> Option<&str> {
    line.strip_prefix(" FAIL  ")
}

/// Returns the file that could not be loaded: `src/a.test.js [ src/a.test.js ]`.
fn suite(name: &str) -> Option<&str> {
    let (file, path) = name.strip_suffix(" ]")?.split_once(" [ ")?;
    file.ends_with(path).then_some(file)
}
