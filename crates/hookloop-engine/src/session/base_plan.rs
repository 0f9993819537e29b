//! The tests of the base over the sources of the work: which files change, and which tests they hold.
//!
//! Only files that differ between the base and the work matter. A test file or a configuration of a test runner gets
//! the state that it has in the base. Of a manifest or a source with tests inside, only the tests do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use hookloop_core::digest::sha256_hex;
use hookloop_core::session::facts::TestFinding;
use hookloop_evidence::{
    EvidenceRole, ManifestKind, SourceLanguage, SourceTest, graft_manifest, graft_tests, role_of,
    tests_in,
};
use hookloop_git::repo::RepoError;
use hookloop_git::snapshot::{FileChange, FileState, Snapshots, TreeEdit};

use super::source_signs::{BaseAssertions, ChangedSource};

/// Maximum changed files with tests or sources.
const FILES_MAX: usize = 20_000;

/// The reason why the tests of the base can't run against the work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvidencePlanError {
    #[error(transparent)]
    Repo(#[from] RepoError),
    #[error("the work changed more than {FILES_MAX} files with tests or sources")]
    TooMany,
    #[error("`{pattern}` of `protect`: {why}")]
    Pattern { pattern: String, why: String },
}

/// The tests of the base over the sources of the work.
#[derive(Debug, Default)]
pub(crate) struct EvidencePlan {
    /// The edits that put the tests of the base into the tree of the work. Empty if the work changed no tests.
    pub(crate) edits: Vec<(Vec<u8>, TreeEdit)>,
    /// The tests in the files that changed, as they are in the base.
    pub(crate) base: Vec<FileTests>,
    /// The tests in the files that changed, as they are in the work.
    pub(crate) work: Vec<FileTests>,
    /// The files with tests or settings of tests that the work changed.
    pub(crate) changed: Vec<String>,
    /// Those of them with data of tests: expected results, or other protected files without code.
    pub(crate) data: BTreeSet<String>,
    /// The files with tests or sources that the work changed, with their objects on both sides.
    objects: BTreeMap<String, String>,
    /// Signs in the sources that they are written for the tests.
    pub(crate) signs: Vec<TestFinding>,
}

/// The plan of a base run, with both trees.
#[derive(Debug)]
pub(crate) struct BaseRunPlan {
    /// The tree of the base.
    pub(crate) base: String,
    /// The tree with the tests of the base and the sources of the work; none if the work changed no tests.
    pub(crate) tree: Option<String>,
    /// The number of test files of the base that can't be read.
    pub(crate) unread: u64,
    pub(crate) evidence: EvidencePlan,
}

/// The tests of one file.
#[derive(Debug)]
pub(crate) struct FileTests {
    pub(crate) path: String,
    pub(crate) tests: Vec<SourceTest>,
    /// The lines outside of tests, without imports and indentation: helpers and fixtures.
    pub(crate) helpers: Vec<String>,
}

impl FileTests {
    fn read(path: &str, language: SourceLanguage, text: &str) -> Option<FileTests> {
        // A file that can't be parsed has no tests that could be found again.
        let tests = tests_in(language, text).ok()?;
        let helpers = lines_outside(&tests, text);
        Some(FileTests { path: path.to_owned(), tests, helpers })
    }
}

/// Returns the lines of a text that are in no test, and no imports.
fn lines_outside(tests: &[SourceTest], text: &str) -> Vec<String> {
    let mut of_tests: HashMap<&str, usize> = HashMap::new();
    for line in tests.iter().flat_map(|test| test.source.lines()) {
        *of_tests.entry(line.trim()).or_default() += 1;
    }
    let mut outside = Vec::new();
    for line in text.lines().map(str::trim) {
        match of_tests.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ if is_import(line) || !line.contains(char::is_alphanumeric) => {}
            _ => outside.push(line.to_owned()),
        }
    }
    outside
}

/// Whether a line only names modules, or things of modules.
fn is_import(line: &str) -> bool {
    let words = ["import ", "from ", "use ", "pub use ", "mod ", "extern crate ", "package "];
    let is_name = |char: char| char.is_alphanumeric() || "_$. ,".contains(char);
    words.iter().any(|word| line.starts_with(word))
        || line.contains(" = require(")
        || line.contains("} from ")
        // One of several names, or a module of Go.
        || line.ends_with(',') && line.chars().all(is_name)
        || line.ends_with('"') && line.matches('"').count() == 2 && line.split(' ').count() <= 2
}

/// The files that `*` in a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternReach {
    /// Those of directories below, too: a pattern that protects files.
    Below,
    /// Those of one directory: a pattern that allows changes.
    Directory,
}

/// Returns the matcher of these patterns.
pub(crate) fn matcher(
    patterns: &[String],
    reach: PatternReach,
) -> Result<GlobSet, EvidencePlanError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let bad = |error: globset::Error| EvidencePlanError::Pattern {
            pattern: pattern.clone(),
            why: error.to_string(),
        };
        let mut glob = GlobBuilder::new(pattern);
        glob.literal_separator(reach == PatternReach::Directory);
        set.add(glob.build().map_err(bad)?);
    }
    let bad = |error: globset::Error| EvidencePlanError::Pattern {
        pattern: patterns.join(", "),
        why: error.to_string(),
    };
    set.build().map_err(bad)
}

/// Returns the plan for the work in a tree.
pub(crate) fn plan(
    snapshots: &Snapshots,
    (base, work): (&str, &str),
    protect: &[String],
    assertions: &BaseAssertions,
) -> Result<EvidencePlan, EvidencePlanError> {
    let relevant = relevant_changes(snapshots, (base, work), protect)?;
    let contents = FileContents::read(snapshots, &relevant)?;
    let mut plan = EvidencePlan::default();
    let mut sources = Vec::new();
    for (change, path, role) in &relevant {
        let (before, after) = (contents.get(&change.from), contents.get(&change.to));
        let object = |state: &Option<FileState>| {
            state
                .as_ref()
                .map(|state| format!("{} {}", state.mode, state.object))
                .unwrap_or_default()
        };
        let objects = format!("{path}\n{}\n{}\n", object(&change.from), object(&change.to));
        plan.objects.insert(path.clone(), objects);
        plan.add(change, path, *role, before, after);
        if let EvidenceRole::Source(language) = *role {
            sources.push(ChangedSource { path, language, base: before, work: after });
        }
    }
    plan.signs = assertions.signs_in(&sources);
    Ok(plan)
}

/// Returns the files that differ between two trees and may hold tests or their settings.
pub(crate) fn relevant_changes(
    snapshots: &Snapshots,
    (base, work): (&str, &str),
    protect: &[String],
) -> Result<Vec<(FileChange, String, EvidenceRole)>, EvidencePlanError> {
    let protect = matcher(protect, PatternReach::Below)?;
    let changes = snapshots.tree_changes(base, work)?;
    let changes = changes.into_iter().map(|change| {
        let path = String::from_utf8_lossy(&change.path).into_owned();
        let role = role_of(&path, &protect);
        (change, path, role)
    });
    let relevant: Vec<_> = changes.filter(|(_, _, role)| *role != EvidenceRole::Other).collect();
    match relevant.len() > FILES_MAX {
        true => Err(EvidencePlanError::TooMany),
        false => Ok(relevant),
    }
}

impl EvidencePlan {
    /// Returns a digest of a changed file and of all changed tests and settings, on both sides; of all changed files if
    /// it is none of them.
    ///
    /// A helper of a test decides about the test, too.
    pub(crate) fn content_of(&self, path: Option<&str>) -> String {
        let own = path.and_then(|path| self.objects.get(path));
        let text: String = match own {
            Some(own) => {
                let of_tests = self.changed.iter().filter_map(|path| self.objects.get(path));
                std::iter::once(own).chain(of_tests).map(String::as_str).collect()
            }
            None => self.objects.values().map(String::as_str).collect(),
        };
        sha256_hex(text.as_bytes())
    }

    /// Returns the changed files with tests.
    pub(crate) fn test_files(&self) -> Vec<String> {
        self.base.iter().map(|file| file.path.clone()).collect()
    }

    /// Returns the edits but those of these files.
    pub(crate) fn edits_without(&self, files: &[String]) -> Vec<(Vec<u8>, TreeEdit)> {
        let is_kept = |(path, _): &&(Vec<u8>, TreeEdit)| {
            !files.iter().any(|file| file.as_bytes() == path.as_slice())
        };
        self.edits.iter().filter(is_kept).cloned().collect()
    }

    /// Adds a file that differs. The texts are its content in the base and in the work.
    fn add(
        &mut self,
        change: &FileChange,
        path: &str,
        role: EvidenceRole,
        before: Option<&str>,
        after: Option<&str>,
    ) {
        let restored = match &change.from {
            Some(state) => TreeEdit::State(state.clone()),
            None => TreeEdit::Remove,
        };
        let edit = match role {
            EvidenceRole::Other => return,
            EvidenceRole::Test | EvidenceRole::Configuration => Some(restored),
            EvidenceRole::Manifest(kind) => {
                with_base_settings(kind, before, after, change, restored)
            }
            EvidenceRole::Source(language) => with_base_tests(language, before, after, change),
        };
        let Some(edit) = edit else { return };
        self.changed.push(path.to_owned());
        if role == EvidenceRole::Test && SourceLanguage::of_path(path).is_none() {
            self.data.insert(path.to_owned());
        }
        self.edits.push((change.path.clone(), edit));
        let Some(language) = SourceLanguage::of_path(path) else { return };
        let read = |text: Option<&str>| FileTests::read(path, language, text?);
        self.base.extend(read(before));
        self.work.extend(read(after));
    }
}

/// Returns the edit that gives a manifest the test settings of the base; `None` if it has them.
fn with_base_settings(
    kind: ManifestKind,
    before: Option<&str>,
    after: Option<&str>,
    change: &FileChange,
    restored: TreeEdit,
) -> Option<TreeEdit> {
    let (Some(after), Some(state)) = (after, &change.to) else { return Some(restored) };
    match graft_manifest(kind, before.unwrap_or_default(), after) {
        Ok(None) => None,
        Ok(Some(text)) => Some(content(state, text)),
        // Settings that can't be read may be any settings.
        Err(_) => Some(restored),
    }
}

/// Returns the edit that gives a source file the tests of the base; `None` if it has them.
fn with_base_tests(
    language: SourceLanguage,
    before: Option<&str>,
    after: Option<&str>,
    change: &FileChange,
) -> Option<TreeEdit> {
    let (Some(after), Some(state)) = (after, &change.to) else { return None };
    match graft_tests(language, before.unwrap_or_default(), after) {
        Ok(Some(text)) => Some(content(state, text)),
        // A source that can't be parsed does not compile either.
        Ok(None) | Err(_) => None,
    }
}

fn content(state: &FileState, text: String) -> TreeEdit {
    TreeEdit::Content { mode: state.mode.clone(), content: text.into_bytes() }
}

/// The contents of files, by object.
struct FileContents(HashMap<String, String>);

impl FileContents {
    fn read(
        snapshots: &Snapshots,
        files: &[(FileChange, String, EvidenceRole)],
    ) -> Result<FileContents, RepoError> {
        let is_text = |path: &str, role: EvidenceRole| {
            matches!(role, EvidenceRole::Manifest(_) | EvidenceRole::Source(_))
                || SourceLanguage::of_path(path).is_some()
        };
        let states = files
            .iter()
            .filter(|(_, path, role)| is_text(path, *role))
            .flat_map(|(change, _, _)| change.from.iter().chain(&change.to))
            .filter(|state| !state.is_link());
        let mut objects: Vec<&str> = states.map(|state| state.object.as_str()).collect();
        objects.sort_unstable();
        objects.dedup();
        let contents = snapshots.contents(&objects)?;
        let texts = contents.into_iter().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(FileContents(objects.into_iter().map(str::to_owned).zip(texts).collect()))
    }

    fn get(&self, state: &Option<FileState>) -> Option<&str> {
        self.0.get(&state.as_ref()?.object).map(String::as_str)
    }
}
