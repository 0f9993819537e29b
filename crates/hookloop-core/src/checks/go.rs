//! `go test`: the tests of a package, then the package's own line.

use std::collections::{HashMap, HashSet};

use super::{CAUSE_LINES_MAX, FoundChecks, cause};

/// The lines since the last package's line.
#[derive(Default)]
struct GoPackage<'a> {
    failed: Vec<&'a str>,
    /// The output of each test.
    printed: HashMap<&'a str, Vec<&'a str>>,
    /// The test whose output follows.
    current: Option<&'a str>,
    crash: Option<GoCrash<'a>>,
}

/// A failure that ended all tests, such as a panic or a timeout.
struct GoCrash<'a> {
    /// The test that crashed, if the output names it.
    test: Option<&'a str>,
    lines: Vec<&'a str>,
    /// The stack has not begun.
    is_open: bool,
}

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let mut package = GoPackage::default();
    let mut unbuilt: HashSet<&str> = HashSet::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        if let Some(name) = line.strip_prefix("# ") {
            let errors = lines[at..].iter().take_while(is_build_error).count();
            if add_build_errors(&lines[at..at + errors], found) {
                unbuilt.insert(name.split(' ').next().unwrap_or(name));
            }
            at += errors;
        } else if let Some((name, what)) = failed_package(line) {
            let read = std::mem::take(&mut package);
            match what.strip_prefix('[').is_some() {
                true if unbuilt.contains(name) => {}
                true => {
                    found.is_broken = true;
                    found.add(&format!("{name} {what}"), String::new());
                }
                false => read.add_to(found, Some(name)),
            }
        } else if line.starts_with("ok  \t") || line.starts_with("?   \t") {
            package = GoPackage::default();
        } else {
            package.read_line(line);
        }
    }
    package.add_to(found, None);
}

/// Parses `FAIL\texample.com/shop/cart\t0.002s`, or with `[build failed]` in place of the time.
fn failed_package(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("FAIL\t")?;
    rest.split_once(['\t', ' '])
}

/// Parses `--- FAIL: TestTotal/wrong (0.00s)`.
fn result(line: &str) -> Option<(&str, &str)> {
    let (outcome, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let (name, time) = rest.rsplit_once(" (")?;
    (outcome.len() == 4 && time.ends_with("s)")).then_some((outcome, name))
}

/// Returns the test that prints from here on: `=== RUN   TestTotal/wrong`.
fn turn(line: &str) -> Option<&str> {
    let (_, name) = line.strip_prefix("=== ")?.split_once(' ')?;
    Some(name.trim_start())
}

impl<'a> GoPackage<'a> {
    fn read_line(&mut self, line: &'a str) {
        if let Some(name) = turn(line) {
            self.current = Some(name);
        } else if let Some((outcome, name)) = result(line) {
            self.current = (outcome == "FAIL").then_some(name);
            self.failed.extend(self.current);
        } else if let Some(crash) = &mut self.crash {
            crash.is_open &= !line.starts_with("goroutine ");
            if crash.is_open && crash.lines.len() < CAUSE_LINES_MAX {
                crash.lines.push(line);
            }
        } else if line.starts_with("panic: ") || line.starts_with("fatal error: ") {
            // A test that panics has failed just before. A timeout ends all tests.
            let is_told = self.current == self.failed.last().copied()
                && !line.starts_with("panic: test timed out");
            let test = self.current.filter(|_| is_told);
            self.crash = Some(GoCrash { test, lines: vec![line], is_open: true });
        } else if line == "FAIL" || line.starts_with("exit status") {
            self.current = None;
        } else if let Some(current) = self.current {
            let printed = self.printed.entry(current).or_default();
            // Keeps one line more than is shown, which proves that lines are missing.
            if printed.len() <= CAUSE_LINES_MAX {
                printed.push(line);
            }
        }
    }

    fn add_to(mut self, found: &mut FoundChecks, package: Option<&str>) {
        found.is_broken |= package.is_some() && self.crash.is_some();
        match (self.crash.take(), package) {
            (Some(GoCrash { test: Some(test), lines, .. }), _) => {
                self.printed.entry(test).or_default().extend(lines);
            }
            (Some(crash), Some(package)) => found.add(package, cause(crash.lines)),
            (None, Some(package)) if self.failed.is_empty() => found.add(package, String::new()),
            _ => {}
        }
        let parents: HashSet<&str> = self.failed.iter().flat_map(|name| parents(name)).collect();
        for name in &self.failed {
            let why = cause(self.printed.get(name).into_iter().flatten().copied());
            // A test that fails only with its subtests adds nothing.
            if why.is_empty() && parents.contains(name) {
                continue;
            }
            match package {
                Some(package) => found.add(&format!("{package} {name}"), why),
                None => found.add(name, why),
            }
        }
    }
}

/// Returns the parents of a test: `a` and `a/b` of `a/b/c`.
fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(at, _)| &name[..at])
}

/// Whether a line below `# package` is an error, or continues the one before.
fn is_build_error(line: &&&str) -> bool {
    line.starts_with('\t') || place(line).is_some() || **line == "too many errors"
}

/// Parses `cart/cart.go:12:17: undefined: absent` as file and message.
fn place(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("vet: ").unwrap_or(line);
    let (place, message) = line.split_once(": ")?;
    let (file, numbers) = place.split_once(".go:")?;
    let is_place = numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    is_place.then(|| (&place[..file.len() + ".go".len()], message))
}

/// Adds a check for each error. Returns whether there was one.
fn add_build_errors(lines: &[&str], found: &mut FoundChecks) -> bool {
    let mut is_any = false;
    for (at, line) in lines.iter().enumerate() {
        let Some((file, message)) = place(line) else { continue };
        let more = lines[at + 1..].iter().take_while(|line| line.starts_with('\t'));
        let why = std::iter::once(line).chain(more);
        found.add(&format!("{file}: {message}"), cause(why.copied()));
        found.is_broken = true;
        is_any = true;
    }
    is_any
}
