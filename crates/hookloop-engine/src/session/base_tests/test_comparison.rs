//! Compares the tests of the base with those of the work: by their text, and by the results of both runs.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use hookloop_agents::clipped;
use hookloop_core::checks::{CheckOutcome, CheckRecords, CheckResult};
use hookloop_core::excerpt::first_chars;
use hookloop_core::session::facts::{FindingKind, TEST_TEXT_MAX, TestFinding};
use hookloop_evidence::{SourceLanguage, SourceTest};
use hookloop_hooks::hook_run::HookRun;

use super::super::base_plan::{EvidencePlan, FileTests};
use super::super::failing_checks::UNSTABLE;

/// Maximum characters of a cause.
const CAUSE_MAX: usize = 300;
/// Lines of a panic's message: the assertion, the left and the right value.
const PANIC_LINES_MAX: usize = 3;
/// Files and directories that are no part of a module's name.
const UNNAMED_MODULES: [&str; 4] = ["src", "lib", "main", "mod"];

/// The runs of a gate on the two trees. A run without records has only its verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestRuns<'r> {
    /// The run with the tests of the base. None if it did not report its checks.
    pub(crate) base: Option<&'r CheckRecords>,
    pub(crate) has_base_passed: bool,
    /// The checks that failed before the work began, and may fail.
    pub(crate) known: &'r [String],
    /// The run with the tests of the work.
    pub(crate) work: Option<&'r CheckRecords>,
    /// The test files of the base that do not build with the sources of the work.
    pub(crate) broken: &'r [String],
}

/// The counterpart of a test of the base in the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counterpart<'t> {
    /// The test has the same text, there or elsewhere.
    Same(&'t SourceTest),
    /// The test has the same name, and another text.
    Edited(&'t SourceTest),
    /// Other tests have its expectations.
    Merged,
    None,
}

/// Returns the differences that are findings.
pub(crate) fn findings(plan: &EvidencePlan, runs: TestRuns<'_>) -> Vec<TestFinding> {
    let comparison = TestComparison::new(plan);
    let mut found: Vec<TestFinding> = comparison.gone(runs);
    let known: HashSet<String> = found.iter().map(|finding| finding.check.clone()).collect();
    found.extend(
        comparison.failing(plan, runs).into_iter().filter(|new| !known.contains(&new.check)),
    );
    found.extend(comparison.not_run(runs).into_iter().filter(|new| !known.contains(&new.check)));
    let total = |run: Option<&CheckRecords>| run.map_or(0, |run| run.counts.total());
    if runs.has_base_passed && total(runs.base) == 0 && total(runs.work) > 0 {
        found.extend(of_files(plan, FindingKind::Gone, "no test of the base ran"));
    } else if !runs.has_base_passed && found.is_empty() {
        let cause = "the gate fails with the tests and settings of the base, and names no check";
        found.extend(of_files(plan, FindingKind::ExpectationChanged, cause));
    }
    found.sort_by(|a, b| (a.kind, &a.path, &a.check).cmp(&(b.kind, &b.path, &b.check)));
    found.dedup_by(|a, b| (a.kind, &a.check) == (b.kind, &b.check));
    found
}

struct TestComparison<'p> {
    /// The tests of the base in files that the work changed, with their counterparts.
    tests: Vec<(&'p str, &'p SourceTest, Counterpart<'p>)>,
}

impl<'p> TestComparison<'p> {
    fn new(plan: &'p EvidencePlan) -> TestComparison<'p> {
        let work: Vec<(&str, &SourceTest)> = all(&plan.work).collect();
        let by_text: HashMap<&str, &SourceTest> =
            work.iter().map(|(_, test)| (test.text.as_str(), *test)).collect();
        let counterpart = |path: &str, test: &SourceTest| {
            let is_named = |other: &&(&str, &'p SourceTest)| other.1.name == test.name;
            let is_same_place = |other: &&(&str, &'p SourceTest)| {
                other.0 == path && other.1.scope == test.scope && is_named(other)
            };
            let named = work.iter().find(is_same_place).or_else(|| work.iter().find(is_named));
            match (named, by_text.get(test.text.as_str())) {
                (Some((_, other)), _) if other.text == test.text => Counterpart::Same(other),
                (_, Some(other)) => Counterpart::Same(other),
                (Some((_, other)), None) => Counterpart::Edited(other),
                (None, None) if is_merged(test, &work) => Counterpart::Merged,
                (None, None) => Counterpart::None,
            }
        };
        let tests = all(&plan.base).map(|(path, test)| (path, test, counterpart(path, test)));
        TestComparison { tests: tests.collect() }
    }

    /// Returns the tests that exist nowhere in the work, or are newly skipped there.
    fn gone(&self, runs: TestRuns<'_>) -> Vec<TestFinding> {
        let mut found = Vec::new();
        for (path, test, counterpart) in &self.tests {
            let cause = match counterpart {
                Counterpart::None => "the work has no such test".to_owned(),
                Counterpart::Same(other) | Counterpart::Edited(other)
                    if other.is_skipped && !test.is_skipped =>
                {
                    "the work skips it".to_owned()
                }
                _ => continue,
            };
            let of_test: Vec<&CheckResult> = runs
                .base
                .iter()
                .flat_map(|run| run.checks.iter().filter(|check| self.is_run_of(check, test)))
                .collect();
            let check = of_test.first().map_or_else(|| titled(test), |check| check.id.clone());
            // Such a test hides no failure: it was rewritten, split, or is no longer wanted. A person knows which.
            let still_passes = !of_test.is_empty()
                && of_test.iter().all(|check| check.outcome == CheckOutcome::Passed);
            if *counterpart == Counterpart::None && still_passes {
                let cause = format!("{cause}, although it passes with the sources of the work");
                let kind = FindingKind::TestReplaced;
                found.push(finding(kind, check, path, cause, (Some(test), None)));
                continue;
            }
            let after = match counterpart {
                Counterpart::Same(other) | Counterpart::Edited(other) => Some(*other),
                _ => None,
            };
            found.push(finding(FindingKind::Gone, check, path, cause, (Some(test), after)));
        }
        found
    }

    /// Returns the checks of the base that fail against the work.
    fn failing(&self, plan: &EvidencePlan, runs: TestRuns<'_>) -> Vec<TestFinding> {
        let is_new = |check: &&CheckResult| !runs.known.contains(&check.id);
        let failing: Vec<&CheckResult> =
            runs.base.map(|run| run.failing().filter(is_new).collect()).unwrap_or_default();
        let mut found: Vec<TestFinding> =
            runs.broken.iter().flat_map(|file| self.not_buildable(plan, file)).collect();
        let is_stable = runs.base.is_none_or(|run| !UNSTABLE.contains(&run.source));
        found.extend(failing.into_iter().map(|check| self.failed(plan, check, is_stable)));
        found
    }

    /// Returns the findings about a file that does not build with the new sources: the file, and the changes that are
    /// more than other names.
    fn not_buildable(&self, plan: &EvidencePlan, file: &str) -> Vec<TestFinding> {
        let kind = FindingKind::NotBuildable;
        let cause = "hookloop compared the text of its tests".to_owned();
        let mut found = vec![finding(kind, file.to_owned(), file, cause, (None, None))];
        let kind = FindingKind::ExpectationChanged;
        for (path, test, counterpart) in &self.tests {
            let Counterpart::Edited(other) = counterpart else { continue };
            if *path == file && !is_renamed(other, test) {
                let cause = "the file does not build, and the test expects something else";
                let texts = (Some(*test), Some(*other));
                found.push(finding(kind, titled(test), path, cause.to_owned(), texts));
            }
        }
        let helpers = |files: &[FileTests]| {
            let of_file = files.iter().find(|tests| tests.path == file);
            of_file.map(|tests| tests.helpers.join("\n")).unwrap_or_default()
        };
        let (before, after) = (helpers(&plan.base), helpers(&plan.work));
        if before != after {
            let cause = "the file does not build, and its code outside of tests changed".to_owned();
            found.push(TestFinding {
                before: Some(clipped(&before, TEST_TEXT_MAX)),
                after: Some(clipped(&after, TEST_TEXT_MAX)),
                ..finding(kind, file.to_owned(), file, cause, (None, None))
            });
        }
        found
    }

    /// Returns the test of a check. Of several with its name, that is the one whose file and scope it names most.
    fn test_of(&self, check: &CheckResult) -> Option<&(&'p str, &'p SourceTest, Counterpart<'p>)> {
        let own = self.tests.iter().filter(|(path, test, _)| is_of(check, path, test));
        own.rev().max_by_key(|(path, test, _)| closeness(check, path, test))
    }

    fn is_run_of(&self, check: &CheckResult, test: &SourceTest) -> bool {
        self.test_of(check).is_some_and(|(_, own, _)| std::ptr::eq(*own, test))
    }

    fn failed(&self, plan: &EvidencePlan, check: &CheckResult, is_stable: bool) -> TestFinding {
        let own = self.test_of(check);
        let changed = |kind| move |file: &str| (kind, Some(file.to_owned()));
        let (kind, path, texts) = match own {
            Some((path, test, counterpart)) => {
                let (kind, after) = match counterpart {
                    Counterpart::Edited(other) => (FindingKind::ExpectationChanged, Some(*other)),
                    Counterpart::Merged => (FindingKind::ExpectationChanged, None),
                    // Its helpers or its table of cases changed.
                    Counterpart::Same(other) if has_changed_helpers(plan, path) => {
                        (FindingKind::TestReplaced, Some(*other))
                    }
                    Counterpart::Same(other) => (FindingKind::UnchangedRed, Some(*other)),
                    Counterpart::None => (FindingKind::Gone, None),
                };
                (kind, Some((*path).to_owned()), (Some(*test), after))
            }
            // The check is not of a test that is known by its text: a generated test, or an assertion by itself.
            None => {
                let named = plan.base.iter().map(|file| file.path.as_str());
                let named =
                    named.filter(|file| begins_with(&check.id, file)).map(str::to_owned).next();
                let edited = self.tests.iter().find(|(.., found)| {
                    matches!(found, Counterpart::Edited(_) | Counterpart::Merged)
                });
                let (kind, path) = match (named, edited) {
                    (Some(file), _) => changed(FindingKind::ExpectationChanged)(&file),
                    (None, Some((path, ..))) if !is_stable => {
                        changed(FindingKind::ExpectationChanged)(path)
                    }
                    _ => match changed_data(plan, check) {
                        Some(path) => (FindingKind::ExpectationChanged, path),
                        None => (FindingKind::UnchangedRed, None),
                    },
                };
                (kind, path, (None, None))
            }
        };
        let cause = first_cause(&check.cause);
        finding(kind, check.id.clone(), path.as_deref().unwrap_or_default(), cause, texts)
    }

    /// Returns the checks that passed with the tests of the base, and did not run with those of the work.
    fn not_run(&self, runs: TestRuns<'_>) -> Vec<TestFinding> {
        let (Some(base), Some(work)) = (runs.base, runs.work) else { return Vec::new() };
        if !base.is_complete || !work.is_complete || UNSTABLE.contains(&base.source) {
            return Vec::new();
        }
        let outcomes: HashMap<&str, CheckOutcome> =
            work.checks.iter().map(|check| (check.id.as_str(), check.outcome)).collect();
        let new: HashSet<&str> = {
            let known: HashSet<&str> = base.checks.iter().map(|check| check.id.as_str()).collect();
            let ran = work.checks.iter().filter(|check| check.outcome == CheckOutcome::Passed);
            ran.map(|check| check.id.as_str()).filter(|id| !known.contains(id)).map(leaf).collect()
        };
        let mut found = Vec::new();
        for check in base.checks.iter().filter(|check| check.outcome == CheckOutcome::Passed) {
            let cause = match outcomes.get(check.id.as_str()) {
                Some(CheckOutcome::Passed | CheckOutcome::Failed) => continue,
                Some(CheckOutcome::Skipped) => "the work skips it",
                None if new.contains(leaf(&check.id)) => continue,
                None => "it does not run in the work",
            };
            let own = self.test_of(check);
            // A test with another name or in another form runs under another id.
            let has_other_id = own.is_some_and(|(_, test, counterpart)| match counterpart {
                Counterpart::Same(other) => other.name != test.name,
                Counterpart::Merged => true,
                Counterpart::Edited(_) | Counterpart::None => false,
            });
            if has_other_id && !outcomes.contains_key(check.id.as_str()) {
                continue;
            }
            let (path, test) = own.map_or(("", None), |(path, test, _)| (*path, Some(*test)));
            let kind = FindingKind::Gone;
            found.push(finding(kind, check.id.clone(), path, cause.to_owned(), (test, None)));
        }
        found
    }
}

/// Returns the test files that the work changed and that do not build with its sources, without the known ones.
///
/// If nothing builds and the output names no file, all of them may be the cause.
pub(crate) fn broken_files(plan: &EvidencePlan, run: &HookRun, known: &[String]) -> Vec<String> {
    let Some(checks) = &run.checks else { return Vec::new() };
    let files = || {
        let files = plan.base.iter().map(|file| file.path.as_str());
        files.filter(|file| !known.iter().any(|known| known == file))
    };
    // The check has the name of the file, or begins with it and a line.
    let is_file = |check: &CheckResult, file: &str| {
        let id = check.id.as_str();
        let place =
            id.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
        place && !id.contains("::") || file.ends_with(&format!("/{id}"))
    };
    let named: Vec<&str> =
        files().filter(|file| checks.failing().any(|check| is_file(check, file))).collect();
    let is_all_broken = checks.is_broken && checks.counts.passed == 0;
    if !named.is_empty() || !is_all_broken {
        return named.into_iter().map(str::to_owned).collect();
    }
    let in_output: Vec<&str> = files().filter(|file| names_line(&run.printed, file)).collect();
    let found = if in_output.is_empty() { files().collect() } else { in_output };
    found.into_iter().map(str::to_owned).collect()
}

/// Whether a compiler's output names a line of a file: `tests/a.rs:3:5`. Some compilers leave out directories.
fn names_line(output: &str, file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    output.match_indices(name).any(|(at, _)| {
        let line = output[at + name.len()..].strip_prefix([':', '(']);
        let is_line = line.is_some_and(|line| line.starts_with(|char: char| char.is_ascii_digit()));
        let before = output[..at].rsplit(|char: char| char.is_whitespace() || char == '(').next();
        let before = before.unwrap_or_default().trim_start_matches("./");
        is_line
            && (before.is_empty()
                || format!("{before}{name}").ends_with(file)
                || file.ends_with(&format!("{before}{name}")))
    })
}

/// Whether an edited test differs from the test before in names only.
fn is_renamed(edited: &SourceTest, before: &SourceTest) -> bool {
    let literals = |test: &SourceTest| -> Vec<(Vec<String>, Vec<String>)> {
        let assertions = test.assertions.iter();
        assertions.map(|found| (found.inputs.clone(), found.outcomes.clone())).collect()
    };
    let shape = |test: &SourceTest| -> Vec<String> {
        let is_name = |token: &str| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let tokens = test.text.split(' ');
        tokens.map(|token| if is_name(token) { "_".to_owned() } else { token.to_owned() }).collect()
    };
    literals(edited) == literals(before) && shape(edited) == shape(before)
}

/// Returns the data that a check expects, if the work changed such data and neither tests nor settings: its snapshot, or
/// no path if any of several files may be it.
fn changed_data(plan: &EvidencePlan, check: &CheckResult) -> Option<Option<String>> {
    if plan.changed.is_empty() || !plan.changed.iter().all(|path| plan.data.contains(path)) {
        return None;
    }
    let snapshot = plan.changed.iter().find(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.strip_suffix(".snap").is_some_and(|file| {
            begins_with(&check.id, file) || {
                let of_check = check.id.split([':', '>']).next().unwrap_or_default().trim();
                of_check.ends_with(&format!("/{file}"))
            }
        })
    });
    let only = Some(&plan.changed)
        .filter(|changed| changed.len() == 1)
        .and_then(|changed| changed.first());
    Some(snapshot.or(only).cloned())
}

/// Whether the work changed test code of a file outside of its tests.
fn has_changed_helpers(plan: &EvidencePlan, path: &str) -> bool {
    let helpers = |files: &[FileTests]| {
        files.iter().find(|file| file.path == path).map(|file| file.helpers.clone())
    };
    // Sources with tests inside have an edit only if test code changed.
    let is_edited = plan.edits.iter().any(|(edited, _)| edited == path.as_bytes());
    is_edited && helpers(&plan.base) != helpers(&plan.work)
}

/// Returns a finding for each file that the work changed.
fn of_files(plan: &EvidencePlan, kind: FindingKind, cause: &str) -> Vec<TestFinding> {
    let of_file = |path: &String| finding(kind, path.clone(), path, cause.to_owned(), (None, None));
    plan.changed.iter().map(of_file).collect()
}

fn all(files: &[FileTests]) -> impl Iterator<Item = (&str, &SourceTest)> {
    files.iter().flat_map(|file| file.tests.iter().map(|test| (file.path.as_str(), test)))
}

fn finding(
    kind: FindingKind,
    check: String,
    path: &str,
    cause: String,
    (before, after): (Option<&SourceTest>, Option<&SourceTest>),
) -> TestFinding {
    let text = |test: &SourceTest| clipped(&test.source, TEST_TEXT_MAX);
    TestFinding {
        kind,
        check,
        path: Some(path.to_owned()).filter(|path| !path.is_empty()),
        cause: first_chars(&cause, CAUSE_MAX),
        before: before.map(text),
        after: after.map(text),
        content: None,
        allowed_by: None,
    }
}

/// Whether the expectations of a test that is gone are in a test of the work: as rows of a table, for example.
fn is_merged(test: &SourceTest, work: &[(&str, &SourceTest)]) -> bool {
    let literals: Vec<&str> = test
        .assertions
        .iter()
        .flat_map(|assertion| assertion.inputs.iter().chain(&assertion.outcomes))
        .map(String::as_str)
        .collect();
    let has_all = |other: &SourceTest| {
        let known: HashSet<&str> = other
            .assertions
            .iter()
            .flat_map(|assertion| assertion.inputs.iter().chain(&assertion.outcomes))
            .map(String::as_str)
            .collect();
        literals.iter().all(|literal| known.contains(literal))
    };
    !literals.is_empty() && work.iter().any(|(_, other)| !other.is_skipped && has_all(other))
}

/// Whether a check is a run of a test.
fn is_of(check: &CheckResult, path: &str, test: &SourceTest) -> bool {
    let id = without_repetition(without_parameters(&check.id));
    // A title with placeholders begins like each of its runs.
    let title = test.name.split(['%', '$']).next().unwrap_or_default();
    let is_template = title.len() < test.name.len() && !title.trim().is_empty();
    let ends = match is_template {
        true => leaf(id).starts_with(title.trim_end()),
        false => ends_with(id, &test.name),
    };
    // An id that names a file belongs to the tests of that file.
    ends && (begins_with(id, path) || !names_file(id))
}

/// Returns how many words at the end of a check's id are those of a test, of its scope and of its file. Of two tests with
/// as many, the one in fewer modules is closer.
fn closeness(check: &CheckResult, path: &str, test: &SourceTest) -> (usize, Reverse<usize>) {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|char: char| !char.is_alphanumeric() && char != '_');
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let mut own = words(stem);
    own.retain(|word| !UNNAMED_MODULES.contains(&word.as_str()));
    own.extend(test.scope.iter().chain([&test.name]).flat_map(|part| words(part)));
    let id = words(without_repetition(without_parameters(&check.id)));
    let common = own.iter().rev().zip(id.iter().rev()).take_while(|(own, id)| own == id).count();
    (common, Reverse(own.len() - common))
}

/// Returns the first line of a cause that says more than a place. A panic begins with its thread and its place.
fn first_cause(cause: &str) -> String {
    let mut lines = cause.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return String::new() };
    if !(first.starts_with("thread '") && first.contains(" panicked at ")) {
        return first.to_owned();
    }
    let rest: Vec<&str> = lines.take(PANIC_LINES_MAX).collect();
    if rest.is_empty() { first.to_owned() } else { rest.join(", ") }
}

fn ends_with(id: &str, name: &str) -> bool {
    let Some(before) = id.strip_suffix(name) else { return false };
    before.is_empty() || before.ends_with([':', '>', ' ', '/', '.', '$'])
}

/// Whether an id begins with a path, as far as the id names one.
fn begins_with(id: &str, path: &str) -> bool {
    let file = id.split("::").next().unwrap_or(id).split(" > ").next().unwrap_or(id).trim();
    !file.is_empty() && (path == file || path.ends_with(&format!("/{file}")))
}

/// Whether an id begins with the name of a file.
fn names_file(id: &str) -> bool {
    let first = id.split("::").next().unwrap_or(id).split(" > ").next().unwrap_or(id).trim();
    SourceLanguage::of_path(first).is_some()
}

/// Returns an id without the parameters of a parametrized test.
fn without_parameters(id: &str) -> &str {
    match id.ends_with(']').then(|| id.find('[')).flatten() {
        Some(at) => &id[..at],
        None => id,
    }
}

/// Returns an id without the number that tells checks of one name apart: `works #2`.
fn without_repetition(id: &str) -> &str {
    let is_number =
        |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match id.rsplit_once(" #") {
        Some((name, number)) if is_number(number) => name,
        _ => id,
    }
}

/// Returns the last part of an id.
fn leaf(id: &str) -> &str {
    let id = without_parameters(id);
    let after = id.rsplit("::").next().unwrap_or(id);
    after.rsplit(" > ").next().unwrap_or(after)
}

fn titled(test: &SourceTest) -> String {
    let parts: Vec<&str> =
        test.scope.iter().map(String::as_str).chain([test.name.as_str()]).collect();
    parts.join(" > ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_named(id: &str) -> CheckResult {
        CheckResult {
            id: id.to_owned(),
            outcome: CheckOutcome::Failed,
            ms: None,
            cause: String::new(),
        }
    }

    #[test]
    fn a_check_belongs_to_the_test_whose_file_it_names() {
        let source = "#[test]\nfn join() { assert_eq!(1, 2); }\n";
        let tests = hookloop_evidence::tests_in(SourceLanguage::Rust, source).unwrap();
        let (test, check) = (&tests[0], check_named);
        let close = |id: &str, path: &str| closeness(&check(id), path, test);
        assert!(close("bytes::join", "src/bytes.rs") > close("bytes::join", "src/lib.rs"));
        assert!(close("join", "src/lib.rs") > close("join", "src/bytes.rs"));
        assert!(
            close("a::bytes::join", "src/a/bytes.rs") > close("a::bytes::join", "src/bytes.rs")
        );
    }

    #[test]
    fn the_cause_of_a_panic_is_its_message() {
        let panic = "thread 'join' (17) panicked at src/lib.rs:3:5:\nassertion `left == right` failed\n  left: \
                     1\n right: 2\nnote: run with `RUST_BACKTRACE=1`";
        assert_eq!(first_cause(panic), "assertion `left == right` failed, left: 1, right: 2");
        let place = "thread 'join' (17) panicked at src/lib.rs:3:5:";
        assert_eq!(first_cause(place), place);
        assert_eq!(first_cause("\nAssertionError: 1\nmore"), "AssertionError: 1");
        assert_eq!(first_cause(""), "");
    }

    #[test]
    fn the_output_of_a_compiler_names_a_line_of_a_file() {
        for (output, is_named) in [
            ("error[E0425]: x\n  --> crates/a/tests/sum.rs:3:5\n", true),
            ("# shop\n./sum.rs:12:3: undefined: X\n", true),
            ("src/sum.rs(3,5): error TS2304: Cannot find name", false),
            ("tests/sum.rs(3,5): error TS2304: Cannot find name", true),
            ("warning: tests/sum.rs is long", false),
            ("  --> crates/b/tests/sum.rs:3:5", false),
            ("  --> tests/resum.rs:3:5", false),
        ] {
            assert_eq!(names_line(output, "crates/a/tests/sum.rs"), is_named, "{output}");
        }
    }
}
