//! The tests of a source and their assertions.

use crate::assertions::TestAssertion;
use crate::error::EvidenceError;
use crate::syntax::NodeRef;

/// Maximum tests of a source.
pub const TESTS_MAX: usize = 20_000;
/// Maximum classes, modules and groups around a test.
pub const SCOPE_DEPTH_MAX: usize = 64;
/// Maximum bytes of all tests of a source together. Subtests also count for the test around them.
const TEST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A test in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTest {
    /// The name of the function, or the title.
    pub name: String,
    /// The classes, modules, groups and tests around it, outermost first.
    pub scope: Vec<String>,
    /// The line of its name, counted from 1.
    pub line: usize,
    /// Its tokens without the name and comments: the same if only formatting or the name differs.
    pub text: String,
    /// Its lines in the source, without their common indentation.
    pub source: String,
    /// Its own assertions, in source order, without those of its subtests.
    pub assertions: Vec<TestAssertion>,
    /// Whether the source skips the test or expects it to fail, perhaps under a condition.
    pub is_skipped: bool,
}

/// Returns the source from the first node to the end of the last, without the indentation of the first line.
pub(crate) fn lines_between(first: NodeRef<'_>, last: NodeRef<'_>) -> String {
    let source = first.source();
    let Some(text) = source.get(first.start()..last.end()) else { return String::new() };
    let line = source[..first.start()].rfind('\n').map_or(0, |end| end + 1);
    let before = &source[line..first.start()];
    let indentation = &before[..before.len() - before.trim_start().len()];
    let lines: Vec<&str> =
        text.lines().map(|line| line.strip_prefix(indentation).unwrap_or(line)).collect();
    lines.join("\n")
}

/// Collects the tests of a source within the limits.
#[derive(Default)]
pub(crate) struct TestSink {
    tests: Vec<SourceTest>,
    bytes: usize,
}

impl TestSink {
    pub(crate) fn add(&mut self, test: SourceTest) -> Result<(), EvidenceError> {
        let part = "the source";
        if self.tests.len() == TESTS_MAX {
            return Err(EvidenceError::TooMany { part, things: "tests", limit: TESTS_MAX });
        }
        if test.scope.len() > SCOPE_DEPTH_MAX {
            return Err(EvidenceError::TooDeep { part: "a test", limit: SCOPE_DEPTH_MAX });
        }
        self.tests.push(test);
        Ok(())
    }

    /// Counts a node of the source before a test that contains or uses it is read.
    pub(crate) fn charge(&mut self, node: NodeRef<'_>) -> Result<(), EvidenceError> {
        self.bytes += node.text().len();
        if self.bytes > TEST_BYTES_MAX {
            let (part, things) = ("the source", "bytes of tests");
            return Err(EvidenceError::TooMany { part, things, limit: TEST_BYTES_MAX });
        }
        Ok(())
    }

    /// Returns the tests in source order.
    pub(crate) fn finish(mut self) -> Vec<SourceTest> {
        self.tests.sort_by_key(|test| test.line);
        self.tests
    }
}
