//! Signs in the sources of the work that they are written for the tests of the base: special cases with the values of
//! a test, and code that can tell whether a test runner runs it.

use globset::GlobSet;
use hookloop_core::excerpt::first_chars;
use hookloop_core::session::facts::{FindingKind, TestFinding};
use hookloop_evidence::{
    EvidenceRole, SourceBaseline, SourceLanguage, SourceSuspicion, SuspicionKind, role_of, tests_in,
};
use hookloop_git::repo::RepoError;
use hookloop_git::snapshot::Snapshots;

/// Files that are read at once.
const BATCH: usize = 256;
/// Maximum bytes of test files that are read.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum characters of a cause.
const CAUSE_MAX: usize = 300;

/// The assertions of all tests of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseAssertions {
    /// The tree, and the patterns of further test files.
    of: (String, Vec<String>),
    baseline: SourceBaseline,
    /// The number of test files that can't be read.
    pub(crate) unread: u64,
}

/// A source file that the work changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangedSource<'s> {
    pub(crate) path: &'s str,
    pub(crate) language: SourceLanguage,
    pub(crate) base: Option<&'s str>,
    pub(crate) work: Option<&'s str>,
}

impl BaseAssertions {
    pub(crate) fn read(
        snapshots: &Snapshots,
        tree: &str,
        (patterns, protect): (&[String], &GlobSet),
    ) -> Result<BaseAssertions, RepoError> {
        let of = (tree.to_owned(), patterns.to_vec());
        let mut found = BaseAssertions { of, ..BaseAssertions::default() };
        let files = snapshots.file_states(tree)?;
        let mut sources: Vec<(SourceLanguage, &str)> = Vec::new();
        for (path, state) in files.iter().filter(|(_, state)| !state.is_link()) {
            let path = String::from_utf8_lossy(path);
            let has_tests = match role_of(&path, protect) {
                EvidenceRole::Test => true,
                EvidenceRole::Source(language) => language == SourceLanguage::Rust,
                _ => false,
            };
            if let Some(language) = SourceLanguage::of_path(&path).filter(|_| has_tests) {
                sources.push((language, &state.object));
            }
        }
        let mut bytes = 0;
        for batch in sources.chunks(BATCH) {
            if bytes > BYTES_MAX {
                found.unread += batch.len() as u64;
                continue;
            }
            let objects: Vec<&str> = batch.iter().map(|(_, object)| *object).collect();
            for ((language, _), content) in batch.iter().zip(snapshots.contents(&objects)?) {
                bytes += content.len();
                found.add(*language, &String::from_utf8_lossy(&content));
            }
        }
        Ok(found)
    }

    /// Whether these are the assertions of a tree with these test files.
    pub(crate) fn is_of(&self, tree: &str, patterns: &[String]) -> bool {
        self.of.0 == tree && self.of.1 == patterns
    }

    fn add(&mut self, language: SourceLanguage, text: &str) {
        let added = tests_in(language, text).and_then(|tests| {
            tests.iter().try_for_each(|test| self.baseline.add_assertions(&test.assertions))
        });
        if added.is_err() {
            self.unread += 1;
        }
    }

    /// Returns the signs in the sources that the work changed.
    pub(crate) fn signs_in(&self, sources: &[ChangedSource<'_>]) -> Vec<TestFinding> {
        let mut baseline = self.baseline.clone();
        for source in sources {
            let Some(base) = source.base else { continue };
            // Code that moved out of a source that can't be read may be a finding.
            if let Err(error) = baseline.add_source(source.language, base) {
                tracing::debug!(path = source.path, %error, "a source of the base can't be read");
            }
        }
        let mut found = Vec::new();
        for source in sources {
            let Some(work) = source.work else { continue };
            match baseline.suspicions(source.language, source.base, work) {
                Ok(signs) => found.extend(signs.into_iter().map(|sign| finding(source.path, sign))),
                // The grammar does not know the language of some sources. The work did not make those unreadable.
                Err(_) if is_unread(source) => {}
                Err(error) => found.push(unread(source.path, &error.to_string())),
            }
        }
        found
    }
}

/// Whether the source could not be read in the base.
fn is_unread(source: &ChangedSource<'_>) -> bool {
    source.base.is_some_and(|base| tests_in(source.language, base).is_err())
}

fn finding(path: &str, sign: SourceSuspicion) -> TestFinding {
    TestFinding {
        kind: match sign.kind {
            SuspicionKind::TestLiteral => FindingKind::TestLiteral,
            SuspicionKind::RunnerMention => FindingKind::RunnerMention,
        },
        check: format!("{path}:{}", sign.line),
        path: Some(path.to_owned()),
        cause: first_chars(&sign.text, CAUSE_MAX),
        before: None,
        after: Some(sign.detail),
        content: None,
        allowed_by: None,
    }
}

fn unread(path: &str, why: &str) -> TestFinding {
    TestFinding {
        kind: FindingKind::UnreadSource,
        check: path.to_owned(),
        path: Some(path.to_owned()),
        cause: first_chars(why, CAUSE_MAX),
        before: None,
        after: None,
        content: None,
        allowed_by: None,
    }
}
