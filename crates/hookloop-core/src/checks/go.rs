//! `go test`: the tests of a package, then the package's own line.

use std::collections::{HashMap, HashSet};

use super::{
    CAUSE_LINES_MAX, CheckOutcome, FoundChecks, KnownRun, ListedCheck, NAME_MAX, cause, summary,
};
use crate::excerpt::first_chars;

/// The lines since the last package's line.
#[derive(Default)]
struct GoPackage<'a> {
    failed: Vec<&'a str>,
    results: Vec<GoResult<'a>>,
    /// The tests that began, which only `-v` prints.
    begun: HashSet<&'a str>,
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

/// The packages so far.
#[derive(Default)]
struct GoRun {
    /// A package passed or has no tests. Only go prints such a line.
    is_known: bool,
    /// A package lists all of its tests.
    has_list: bool,
    /// A package does not list all of its tests.
    has_gap: bool,
}

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let mut run = GoRun::default();
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
                false => run.end_package(read, found, Some(name)),
            }
        } else if line.starts_with("ok  \t") || line.starts_with("?   \t") {
            run.pass_package(std::mem::take(&mut package), found, line);
        } else {
            package.read_line(line);
        }
    }
    run.end_package(package, found, None);
    let is_listed = run.has_list && !run.has_gap;
    if run.is_known || run.has_list {
        found.run = Some(KnownRun { told: None, lists_all: is_listed });
    }
}

impl GoRun {
    /// Ends a package that failed, or that has no line of its own.
    fn end_package(&mut self, package: GoPackage<'_>, found: &mut FoundChecks, name: Option<&str>) {
        let is_listed = name.is_some() && package.lists_all();
        self.has_list |= is_listed;
        self.has_gap |= !is_listed && (name.is_some() || package.has_tests());
        let name = name.map(|name| first_chars(name, NAME_MAX));
        let results = package.results.clone();
        package.add_to(found, name.as_deref());
        for result in results {
            let Some(check) = result.listed(name.as_deref()) else { continue };
            // A test that fails only with its subtests was not added.
            if check.outcome != CheckOutcome::Failed || found.has_listed(&check) {
                found.list_once(check);
            }
        }
    }

    /// Ends a package with a line such as `ok  \texample.com/shop/cart\t0.002s`.
    fn pass_package(&mut self, package: GoPackage<'_>, found: &mut FoundChecks, line: &str) {
        let mut fields = line.split('\t').skip(1);
        let name = fields.next().map(|name| first_chars(name.trim(), NAME_MAX));
        let Some(what) = fields.next() else { return };
        self.is_known |= what == "[no test files]" || what == "(cached)" || what.ends_with('s');
        if line.starts_with('?') {
            return;
        }
        let has_tests = !line.ends_with("[no tests to run]");
        self.has_list |= package.lists_all();
        self.has_gap |= has_tests && !package.lists_all();
        let listed = package.results.iter().filter_map(|result| result.listed(name.as_deref()));
        for check in listed.filter(|check| check.outcome != CheckOutcome::Failed) {
            found.list_once(check);
        }
    }
}

/// Returns a test's name after its package, if the package is known.
fn prefixed(package: Option<&str>, test: &str) -> String {
    match package {
        Some(package) => format!("{package} {test}"),
        None => test.to_owned(),
    }
}

/// Parses `FAIL\texample.com/shop/cart\t0.002s`, or with `[build failed]` in place of the time.
fn failed_package(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("FAIL\t")?;
    rest.split_once(['\t', ' '])
}

/// A line such as `--- FAIL: TestTotal/wrong (0.00s)`.
#[derive(Clone, Copy)]
struct GoResult<'a> {
    word: &'a str,
    name: &'a str,
    seconds: &'a str,
}

impl<'a> GoResult<'a> {
    fn read(line: &'a str) -> Option<GoResult<'a>> {
        let (word, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
        let (name, time) = rest.rsplit_once(" (")?;
        let seconds = time.strip_suffix("s)")?;
        (word.len() == 4).then_some(GoResult { word, name, seconds })
    }

    /// Returns the test, or `None` if the word is not a result.
    fn listed(self, package: Option<&str>) -> Option<ListedCheck> {
        let outcome = match self.word {
            "PASS" => CheckOutcome::Passed,
            "FAIL" => CheckOutcome::Failed,
            "SKIP" => CheckOutcome::Skipped,
            _ => return None,
        };
        let ms = summary::ms_of_seconds(self.seconds);
        Some(ListedCheck::new(&prefixed(package, self.name), outcome, ms))
    }
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
            if line.starts_with("=== RUN ") {
                self.begun.insert(name);
            }
        } else if let Some(result) = GoResult::read(line) {
            self.current = (result.word == "FAIL").then_some(result.name);
            self.failed.extend(self.current);
            self.results.push(result);
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

    fn has_tests(&self) -> bool {
        !self.results.is_empty() || !self.begun.is_empty()
    }

    /// Whether each test that began has a result.
    fn lists_all(&self) -> bool {
        let ended: HashSet<&str> = self.results.iter().map(|result| result.name).collect();
        !ended.is_empty() && ended == self.begun
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
            found.add(&prefixed(package, name), why);
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
