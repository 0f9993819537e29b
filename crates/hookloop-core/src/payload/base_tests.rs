//! The tests of the base that ran against the work, and the findings.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::CheckCounts;
use crate::digest::sha256_hex;

/// Maximum findings in a receipt. Further findings are counted.
pub const FINDINGS_MAX: usize = 50;
/// Maximum bytes of a test's text in a finding.
pub const TEST_TEXT_MAX: usize = 2_000;

/// The tests of the base beside a gate that passed on the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaseTests {
    /// The git tree that the tests come from; none if the work has no base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The git tree with the tests of the base and the sources of the work; none if the work changed no tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The counts of the checks that ran there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<CheckCounts>,
    /// The duration of the run.
    #[serde(default)]
    pub duration_ms: u64,
    /// The differences that were found: the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<TestFinding>,
    /// The verdict of a gatekeeper about the changed expectations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ExpectationVerdict>,
    /// The number of test files of the base that can't be read. Special cases for their tests are not found.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread: u64,
    /// The number of failing checks that failed before the work began, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub known_failures: u64,
    /// The number of further findings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The digest of all findings, those that are not listed, too; none if all are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_of_all: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The verdict of a gatekeeper about changed expectations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectationVerdict {
    /// The gatekeeper.
    pub by: String,
    /// Whether the work asks for the changes; none if the gatekeeper gave no verdict.
    pub approves: Option<bool>,
    /// The reason in one line.
    pub reason: String,
}

/// A difference between the tests of the base and those of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFinding {
    pub kind: FindingKind,
    /// The check or the test. For a file as a whole, the file.
    pub check: String,
    /// The file of the test in the base, from the top of the repository; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The reason: the cause of the failure, or the part that is missing.
    pub cause: String,
    /// The source of the test in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The source of the test in the work, or the line of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// A digest of the changed files that the finding is about, on both sides. Texts can be cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The person or the option that allowed the change; none if it is not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
}

/// The kind of a finding, which decides what follows.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A test of the base exists nowhere in the work, is newly skipped, or did not run.
    Gone,
    /// A test that the work left as it was fails with the tests of the base.
    UnchangedRed,
    /// The work changed a test, and the test of the base fails.
    ExpectationChanged,
    /// A test of the base is gone and passes against the work, or fails because code around it changed.
    TestReplaced,
    /// A new special case in the sources has the values of a test of the base.
    TestLiteral,
    /// New code in the sources can tell whether a test runner runs it.
    RunnerMention,
    /// A program or a setting outside of the project changed while the session ran, and gates use it.
    SurroundingsChanged,
    /// A source can't be searched for special cases.
    UnreadSource,
    /// A test file of the base does not build with the sources of the work.
    NotBuildable,
}

impl FindingKind {
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Gone => "gone",
            FindingKind::UnchangedRed => "unchanged_red",
            FindingKind::ExpectationChanged => "expectation_changed",
            FindingKind::TestReplaced => "test_replaced",
            FindingKind::TestLiteral => "test_literal",
            FindingKind::RunnerMention => "runner_mention",
            FindingKind::SurroundingsChanged => "surroundings_changed",
            FindingKind::UnreadSource => "unread_source",
            FindingKind::NotBuildable => "not_buildable",
        }
    }

    /// Returns the end of a sentence about a check.
    pub fn words(self) -> &'static str {
        match self {
            FindingKind::Gone => "is gone",
            FindingKind::UnchangedRed => "fails, although the work left it as it was",
            FindingKind::ExpectationChanged => "was changed, and fails as it was before",
            FindingKind::TestReplaced => "was replaced",
            FindingKind::TestLiteral => "repeats the values of a test",
            FindingKind::RunnerMention => "can tell whether a test runs",
            FindingKind::SurroundingsChanged => "changed while the session ran",
            FindingKind::UnreadSource => "can't be searched for special cases",
            FindingKind::NotBuildable => "does not build with the new sources",
        }
    }

    /// Returns the kind as a heading of findings.
    pub fn heading(self) -> &'static str {
        match self {
            FindingKind::Gone => "Gone",
            FindingKind::UnchangedRed => "Fails, although the work left the test as it was",
            FindingKind::ExpectationChanged => "Changed, and the test before the work fails",
            FindingKind::TestReplaced => "Replaced: the test is gone, or code around it changed",
            FindingKind::TestLiteral => "Special case with the values of a test",
            FindingKind::RunnerMention => "Code that can tell whether a test runs",
            FindingKind::SurroundingsChanged => "Changed outside of the project during the session",
            FindingKind::UnreadSource => "Source that can't be searched for special cases",
            FindingKind::NotBuildable => "Does not build with the new sources",
        }
    }

    /// Whether the agent has to undo the change, or a person has to allow it.
    pub fn blocks(self) -> bool {
        matches!(self, FindingKind::Gone | FindingKind::UnchangedRed) || self.is_of_source()
    }

    /// Whether the finding is a file outside of the project.
    pub fn is_of_surroundings(self) -> bool {
        self == FindingKind::SurroundingsChanged
    }

    /// Whether the finding is a line of a source, and no test.
    pub fn is_of_source(self) -> bool {
        matches!(self, FindingKind::TestLiteral | FindingKind::RunnerMention)
    }

    /// Whether a person has to look at the change.
    pub fn asks(self) -> bool {
        matches!(
            self,
            FindingKind::ExpectationChanged
                | FindingKind::TestReplaced
                | FindingKind::SurroundingsChanged
                | FindingKind::UnreadSource
        )
    }
}

impl fmt::Display for ExpectationVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExpectationVerdict { by, approves, reason } = self;
        match approves {
            Some(true) => write!(f, "gatekeeper {by} approves the changed tests: {reason}"),
            Some(false) => write!(f, "gatekeeper {by} rejects the changed tests: {reason}"),
            None => write!(f, "gatekeeper {by} gave no verdict on the changed tests: {reason}"),
        }
    }
}

impl BaseTests {
    /// Returns the findings that nobody allowed and that block the work.
    pub fn blocking(&self) -> impl Iterator<Item = &TestFinding> {
        self.open().filter(|finding| finding.kind.blocks())
    }

    /// Returns the findings that nobody allowed and that a person has to look at.
    pub fn asking(&self) -> impl Iterator<Item = &TestFinding> {
        self.open().filter(|finding| finding.kind.asks())
    }

    /// Returns the findings that nobody allowed, and that need somebody.
    pub fn open(&self) -> impl Iterator<Item = &TestFinding> {
        let needs_answer = |finding: &&TestFinding| {
            finding.allowed_by.is_none() && (finding.kind.blocks() || finding.kind.asks())
        };
        self.findings.iter().filter(needs_answer)
    }
}

impl TestFinding {
    /// Returns a digest of the difference: the same as long as the files have the same content on both sides.
    pub fn digest(&self) -> String {
        let TestFinding { kind, check, path, before, after, content, .. } = self;
        let parts = [
            Some(kind.name()),
            Some(check),
            path.as_deref(),
            before.as_deref(),
            after.as_deref(),
            content.as_deref(),
        ];
        let mut text = String::new();
        for part in parts {
            let part = part.unwrap_or_default();
            text.push_str(&format!("{}:{part}", part.len()));
        }
        sha256_hex(text.as_bytes())
    }
}

/// Returns the digest of all findings that need somebody, in any order, whether somebody allowed them or not.
pub fn digest_of_all(findings: &[TestFinding]) -> String {
    let needs_answer = |finding: &&TestFinding| finding.kind.blocks() || finding.kind.asks();
    let digests = findings.iter().filter(needs_answer).map(TestFinding::digest);
    let digests: BTreeSet<String> = digests.collect();
    sha256_hex(digests.into_iter().collect::<Vec<_>>().join("\n").as_bytes())
}

/// Groups findings of one kind and one cause, in the order of the first of each group. One failed import can have many
/// findings.
pub fn by_cause<'f>(
    findings: impl IntoIterator<Item = &'f TestFinding>,
) -> Vec<Vec<&'f TestFinding>> {
    let mut groups: Vec<Vec<&TestFinding>> = Vec::new();
    for finding in findings {
        let is_same = |group: &&mut Vec<&TestFinding>| {
            group
                .first()
                .is_some_and(|first| (first.kind, &first.cause) == (finding.kind, &finding.cause))
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

impl fmt::Display for TestFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TestFinding { kind, check, cause, .. } = self;
        let words = kind.words();
        write!(f, "{check} {words}")?;
        match cause.is_empty() {
            true => Ok(()),
            false => write!(f, ": {cause}"),
        }
    }
}
