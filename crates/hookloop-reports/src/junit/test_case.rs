//! The name and the outcome of one test case.

use hookloop_core::checks::CheckOutcome;

use crate::sink::{ReportSink, append, whole_ms};

/// The class names that Node.js gives to all tests.
const NODE_CLASSES: [&str; 2] = ["test", "suite"];
/// The names under which runners for the JVM report that a class did not start.
const CLASS_FAILURES: [&str; 3] = ["initializationError", "executionError", "classMethod"];
/// The messages of pytest if a module did not load, and if pytest itself failed.
const PYTEST_FAILURES: [&str; 2] = ["collection failure", "internal error"];

/// An element of a test case that decides its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseElement {
    Failure,
    /// A later try failed as well.
    RerunFailure,
    Skipped,
    /// The test is not written yet: its failure does not count.
    Todo,
}

impl CaseElement {
    /// Returns the meaning of an element. A `flakyFailure` is that of an earlier try, so it has none.
    pub(super) fn of(name: &str) -> Option<CaseElement> {
        match name {
            "failure" | "error" => Some(CaseElement::Failure),
            "rerunFailure" | "rerunError" => Some(CaseElement::RerunFailure),
            "skipped" => Some(CaseElement::Skipped),
            _ => None,
        }
    }
}

/// The suites around a test case.
#[derive(Clone, Copy, Debug)]
pub(super) struct SuitesAround<'a> {
    /// The name of the innermost suite.
    pub(super) name: &'a str,
    /// The names of all suites, outermost first.
    pub(super) path: &'a str,
}

/// Joins the names of suites and tests. Suites may have no name.
pub(super) fn joined(above: &str, name: &str) -> String {
    if above.is_empty() || name.is_empty() {
        return [above, name].concat();
    }
    format!("{above} > {name}")
}

/// One test case.
#[derive(Debug, Default)]
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) class_name: String,
    pub(super) file: String,
    ms: Option<u64>,
    has_failure: bool,
    /// An attribute says that the test failed.
    is_marked_failed: bool,
    is_skipped: bool,
    is_todo: bool,
    is_broken: bool,
    cause: String,
}

impl TestCase {
    pub(super) fn set_time(&mut self, seconds: &str) {
        let seconds: Option<f64> = seconds.trim().replace(',', "").parse().ok();
        self.ms = seconds.and_then(|seconds| whole_ms(seconds * 1000.0));
    }

    /// Takes an attribute that some runners write instead of an element.
    pub(super) fn set_status(&mut self, status: &str) {
        match status.to_ascii_lowercase().as_str() {
            "failed" | "failure" | "fail" | "error" | "errored" | "broken" => {
                self.is_marked_failed = true;
            }
            "notrun" | "skipped" | "disabled" | "ignored" | "suppressed" => self.is_skipped = true,
            _ => {}
        }
    }

    pub(super) fn add_element(&mut self, element: CaseElement, message: &str, cause: &str) {
        match element {
            CaseElement::RerunFailure if !self.cause.is_empty() => self.has_failure = true,
            CaseElement::Failure | CaseElement::RerunFailure => {
                self.has_failure = true;
                self.is_broken |= PYTEST_FAILURES.contains(&message);
                append(&mut self.cause, cause);
                append(&mut self.cause, "\n");
            }
            CaseElement::Skipped => self.is_skipped = true,
            CaseElement::Todo => self.is_todo = true,
        }
    }

    pub(super) fn has_failure_element(&self) -> bool {
        self.has_failure
    }

    fn outcome(&self) -> CheckOutcome {
        if self.is_todo {
            CheckOutcome::Skipped
        } else if self.has_failure || self.is_marked_failed {
            CheckOutcome::Failed
        } else if self.is_skipped {
            CheckOutcome::Skipped
        } else {
            CheckOutcome::Passed
        }
    }

    pub(super) fn add_to(&self, suites: SuitesAround<'_>, sink: &mut ReportSink) {
        let outcome = self.outcome();
        if outcome == CheckOutcome::Failed && self.is_whole_file(suites) {
            sink.set_broken();
        }
        sink.add(&self.id(suites, sink), outcome, self.ms, &self.cause);
    }

    /// Whether the case stands for a file or class that did not load or start.
    fn is_whole_file(&self, suites: SuitesAround<'_>) -> bool {
        let is_class = self.name.is_empty() || self.name == self.class_name;
        let is_suite = !self.class_name.is_empty() && suites.name == self.class_name;
        self.is_broken
            || (is_class && is_suite)
            || self.name.starts_with('/')
            || CLASS_FAILURES.contains(&self.name.as_str())
    }

    fn id(&self, suites: SuitesAround<'_>, sink: &ReportSink) -> String {
        let file = sink.relative(&self.file);
        if let Some(id) = self.pytest_id(&file) {
            return id;
        }
        if NODE_CLASSES.contains(&self.class_name.as_str()) {
            return joined(suites.path, &self.name);
        }
        if self.class_name.is_empty() || self.name.starts_with(&self.class_name) {
            return self.name.clone();
        }
        if self.name.is_empty() {
            return self.class_name.clone();
        }
        format!("{}::{}", self.class_name, self.name)
    }

    /// Returns pytest's own name of a test, if the class name is the module of the file.
    fn pytest_id(&self, file: &str) -> Option<String> {
        let module = file.strip_suffix(".py")?.replace('/', ".");
        if self.class_name.is_empty() {
            return (self.name == module).then(|| file.to_owned());
        }
        let classes = self.class_name.strip_prefix(&module)?;
        if !classes.is_empty() && !classes.starts_with('.') {
            return None;
        }
        Some(format!("{file}{}::{}", classes.replace('.', "::"), self.name))
    }
}

/// Adds a failure of a whole suite.
pub(super) fn add_suite_failure(name: &str, cause: &str, sink: &mut ReportSink) {
    sink.add(name, CheckOutcome::Failed, None, cause);
}

/// Returns the message and the text of a failure. Many runners repeat the message in the text.
pub(super) fn cause_text(message: &str, text: &str) -> String {
    let first_line = message.trim().lines().next().unwrap_or_default();
    let has_message = text.trim().lines().next().is_some_and(|line| line.contains(first_line));
    if first_line.is_empty() || has_message {
        return text.to_owned();
    }
    format!("{message}\n{text}")
}
