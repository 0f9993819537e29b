//! `cargo test`: errors of the compiler, and the output of libtest for any number of binaries.

use std::collections::HashMap;

use super::{
    CheckCounts, CheckOutcome, FoundChecks, KnownRun, ListedCheck, NAME_MAX, cause, summary,
};

/// The number of lines below an error's message that may hold its place.
const PLACE_LINES_MAX: usize = 5;

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let mut run = LibtestRun::default();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = &lines[at + 1..];
        let mut taken = 0;
        if let Some(name) = section(line) {
            let is_passed = run.is_in_successes;
            taken = rest.iter().take_while(|line| !ends_section(line, is_passed)).count();
            if !is_passed {
                let why = cause_of_test(&rest[..taken]);
                run.explain(name, &why);
                found.add(test_name(name), why);
            }
        } else if let Some(name) = failed_test(line) {
            found.add(test_name(name), String::new());
            run.read_line(line, found);
        } else if let Some(error) = compile_error(line, rest) {
            taken = rest.iter().take_while(|line| !line.is_empty()).count();
            let why = std::iter::once(*line).chain(rest[..taken].iter().copied());
            found.is_broken = true;
            found.add(&error, cause(why));
        } else if let Some((target, why)) = crashed_target(line, rest) {
            found.is_broken = true;
            found.add(target, cause([why]));
        } else {
            run.read_line(line, found);
        }
        at += 1 + taken;
    }
    run.end(found);
}

/// The lines of libtest about tests, in all binaries.
#[derive(Default)]
struct LibtestRun<'a> {
    /// The target that cargo named last.
    target: Option<&'a str>,
    binary: Option<LibtestBinary<'a>>,
    /// Tests that passed are in sections, too, with `--show-output`.
    is_in_successes: bool,
    /// The sum of all summaries.
    told: Option<CheckCounts>,
    /// A binary began and listed tests, but has no summary.
    is_begun: bool,
    /// A binary does not list as many tests as it counts.
    is_partial: bool,
}

/// The tests of a binary.
#[derive(Default)]
struct LibtestBinary<'a> {
    target: Option<&'a str>,
    /// The line `running 4 tests` is there.
    has_beginning: bool,
    tests: Vec<LibtestLine<'a>>,
    /// The position of each test.
    places: HashMap<&'a str, usize>,
    counts: CheckCounts,
}

/// A line such as `test src/lib.rs - add (line 5) ... ok`.
struct LibtestLine<'a> {
    name: &'a str,
    outcome: CheckOutcome,
    cause: String,
}

impl<'a> LibtestRun<'a> {
    fn read_line(&mut self, line: &'a str, found: &mut FoundChecks) {
        if let Some((name, outcome)) = listed_test(line) {
            self.binary.get_or_insert_default().add(name, outcome);
        } else if let Some(counts) = result(line) {
            let binary = self.binary.take().unwrap_or_default();
            self.is_partial |= binary.counts != counts;
            self.told = Some(summary::sum(self.told.unwrap_or_default(), counts));
            self.is_in_successes = false;
            binary.list(found);
        } else if is_beginning(line) {
            self.cut(found);
            let target = self.target.take();
            let begun = LibtestBinary { target, has_beginning: true, ..LibtestBinary::default() };
            self.binary = Some(begun);
        } else if let Some(target) = target(line) {
            self.target = Some(target).filter(|target| target.len() <= NAME_MAX);
        } else if line == "successes:" || line == "failures:" {
            self.is_in_successes = line == "successes:";
        }
    }

    /// Sets the cause of a test of the current binary.
    fn explain(&mut self, name: &str, why: &str) {
        let Some(binary) = &mut self.binary else { return };
        let test = binary.places.get(name).and_then(|place| binary.tests.get_mut(*place));
        if let Some(test) = test {
            why.clone_into(&mut test.cause);
        }
    }

    /// Ends a binary that has no summary.
    fn cut(&mut self, found: &mut FoundChecks) {
        let Some(binary) = self.binary.take() else { return };
        self.is_begun |= binary.has_beginning && !binary.tests.is_empty();
        self.is_partial = true;
        binary.list(found);
    }

    fn end(mut self, found: &mut FoundChecks) {
        self.cut(found);
        let lists_all = self.told.is_some() && !self.is_partial;
        if self.told.is_some() || self.is_begun {
            found.run = Some(KnownRun { told: self.told, lists_all });
        }
    }
}

impl<'a> LibtestBinary<'a> {
    fn add(&mut self, name: &'a str, outcome: CheckOutcome) {
        self.places.insert(name, self.tests.len());
        self.tests.push(LibtestLine { name, outcome, cause: String::new() });
        self.counts.add(outcome);
    }

    /// Lists the tests. Examples of one item have no name but their line, and end in any order.
    fn list(mut self, found: &mut FoundChecks) {
        self.tests.sort_by_key(|test| item_and_line(test.name).1);
        for LibtestLine { name, outcome, cause } in self.tests {
            let target = self.target.map(str::to_owned);
            let check = ListedCheck::new(test_name(name), outcome, None);
            found.list(ListedCheck { target, cause, ..check });
        }
    }
}

/// Parses `test name ... ok`, and `ignored, reason` or `bench: 5 ns/iter` in place of `ok`.
fn listed_test(line: &str) -> Option<(&str, CheckOutcome)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let word = result.split([' ', ',']).next()?;
    let outcome = match without_colour(word) {
        "ok" | "bench:" => CheckOutcome::Passed,
        "FAILED" => CheckOutcome::Failed,
        "ignored" => CheckOutcome::Skipped,
        _ => return None,
    };
    Some((name, outcome))
}

/// Parses `running 4 tests`.
fn is_beginning(line: &str) -> bool {
    let number = line.strip_prefix("running ").and_then(|rest| rest.split_once(' '));
    number.is_some_and(|(number, word)| is_number(number) && matches!(word, "test" | "tests"))
}

/// Parses `test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.12s`.
fn result(line: &str) -> Option<CheckCounts> {
    let (word, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let parts = counts.split("; ").filter(|part| !part.starts_with("finished in "));
    let is_result = matches!(without_colour(word), "ok" | "FAILED");
    is_result.then(|| summary::counts(parts, &["filtered out"]))?
}

/// Returns a word without the `B` that remains of `ESC ( B`, the end of libtest's colours in some terminals.
fn without_colour(word: &str) -> &str {
    word.strip_suffix('B').unwrap_or(word)
}

/// Returns `orders` of `     Running tests/orders.rs (target/debug/deps/orders-0671b646198c8fc8)`, or the crate of
/// `   Doc-tests shop`.
fn target(line: &str) -> Option<&str> {
    let line = line.strip_prefix(' ')?.trim_start();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(name);
    }
    let rest = line.strip_prefix("Running ")?;
    let path = rest.rsplit_once('(').and_then(|(_, path)| path.strip_suffix(')')).unwrap_or(rest);
    let file = path.rsplit(['/', '\\']).next()?;
    let (name, hash) = file.strip_suffix(".exe").unwrap_or(file).rsplit_once('-')?;
    let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(name)
}

/// Parses `---- name stdout ----`.
fn section(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Whether a line ends the section above it. A test that failed may print `successes:` itself.
fn ends_section(line: &str, is_passed: bool) -> bool {
    let is_end =
        section(line).is_some() || line == "failures:" || line.starts_with("test result: ");
    is_end || is_passed && line == "successes:"
}

/// Parses `test name ... FAILED`, or `name --- FAILED` in quiet mode.
fn failed_test(line: &str) -> Option<&str> {
    match line.strip_prefix("test ") {
        Some(test) => test.strip_suffix(" ... FAILED"),
        None => line.strip_suffix(" --- FAILED"),
    }
}

/// Returns a test's name without the text after it.
///
/// The line of a doctest is left out, because edits above it change the line.
fn test_name(name: &str) -> &str {
    item_and_line(name).0
}

/// Returns a test's name without the text after it, and the line of a doctest.
fn item_and_line(name: &str) -> (&str, Option<u64>) {
    let kinds = [" - should panic", " - compile fail", " - compile"];
    let name = kinds.iter().find_map(|kind| name.strip_suffix(kind)).unwrap_or(name);
    if let Some((item, rest)) = name.rsplit_once(" (line ")
        && let Some(line) = rest.strip_suffix(')').filter(|line| is_number(line))
    {
        return (item, line.parse().ok());
    }
    (name, None)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns `error[E0308] src/a.rs:3` if `line` is a message and a line below it has the place.
fn compile_error(line: &str, rest: &[&str]) -> Option<String> {
    let kind = match line.strip_prefix("error[") {
        Some(coded) => &line[..coded.find(']')? + "error[".len() + 1],
        None => line.starts_with("error: ").then_some("error")?,
    };
    let below = rest.iter().take(PLACE_LINES_MAX).take_while(|line| !line.is_empty());
    let place = below.filter_map(|line| line.trim_start().strip_prefix("--> ")).next()?;
    let mut parts = place.rsplitn(2, ':');
    let column = parts.next().filter(|column| is_number(column));
    let place = if column.is_some() { parts.next()? } else { place };
    Some(format!("{kind} {place}"))
}

/// Returns the target whose process crashed, and how. No test is named then.
fn crashed_target<'a>(line: &'a str, rest: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let target = line.strip_prefix("error: test failed, to rerun pass `")?.strip_suffix('`')?;
    match rest {
        ["", "Caused by:", why, ..] => Some((target, why)),
        _ => None,
    }
}

/// Returns the output of a failed test from its cause on, without the stack.
pub(super) fn cause_of_test(lines: &[&str]) -> String {
    let is_panic = |line: &&str| line.contains("panicked at ") || line.starts_with("Error: ");
    let begin = lines.iter().position(is_panic).unwrap_or(0);
    let is_stack = |line: &&str| {
        let line = line.trim_start();
        line == "stack backtrace:" || line.starts_with("note: run with `RUST_BACKTRACE=")
    };
    let why = lines[begin..].iter().take_while(|line| !is_stack(line));
    cause(why.copied())
}
