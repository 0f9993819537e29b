//! The files that the work of a real session began with, and the tests among them.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use hookloop_core::hook::{Hook, HookRegistry};
use hookloop_core::options::BaseTestRules;
use hookloop_core::session::Session;
use hookloop_core::session::facts::{ExpectationVerdict, TestFinding};
use hookloop_git::repo::CommitId;
use hookloop_git::snapshot::{Snapshot, TreeEdit};
use hookloop_process::{WriteOptions, write_whole};

use super::base_plan::{BaseRunPlan, PatternReach, matcher, plan, relevant_changes};
use super::live_world::{LiveWorld, file_name, known};
use super::observer::SessionObserver;
use super::session_directory;
use super::session_room::remember_copies;
use super::source_signs::BaseAssertions;
use super::surroundings::Surroundings;
use super::unproven_tests::UnprovenTests;
use super::world::SessionWorld;
use crate::delivery_context::{ChangedExpectations, ExpectationQuestion};
use crate::machine::random_word;

/// Maximum bytes of the difference that a gatekeeper reviews.
const DIFFERENCE_MAX: usize = 96 * 1024;
/// The beginning of the name of the empty directory in which a gatekeeper reviews changes of tests.
const REVIEW_DIRECTORY: &str = "test-review";
/// The file with the tree at the time of the last prompt, in an external session.
const PROMPT_TREE: &str = "prompt-tree";

impl<O: SessionObserver> LiveWorld<'_, O> {
    /// Returns the tree that the session began with, which the first call records.
    pub(super) fn base_tree(&mut self) -> Option<String> {
        if let Ok(tree) = fs::read_to_string(&self.base) {
            return Some(tree);
        }
        let snapshot = self.take_snapshot()?;
        let not_kept = "the tree at the start of the work is not kept";
        let (group, name) = (self.group(), file_name(&self.base));
        known(self.snapshots()?.keep(&group, &name, &snapshot), not_kept)?;
        known(fs::write(&self.base, &snapshot.tree), not_kept)?;
        Some(snapshot.tree)
    }

    /// Returns the commit that was checked out when the work began.
    pub(super) fn base_commit(&self) -> Option<CommitId> {
        fs::read_to_string(self.base.with_extension("commit")).ok()?.trim().parse().ok()
    }

    /// Records the commit that is checked out, when the work begins.
    pub(super) fn remember_base_commit(&self, snapshot: &Snapshot) {
        let path = self.base.with_extension("commit");
        if let Some(head) = snapshot.head.as_ref().filter(|_| !path.exists()) {
            known(fs::write(&path, head.as_str()), "the first commit is not kept");
        }
    }

    /// Records the files at the time of a user's prompt.
    pub(crate) fn note_prompt_files(&mut self) {
        let path = self.directory.join(PROMPT_TREE);
        let Some(snapshot) = self.take_snapshot() else {
            // Unknown files are never equal to those at the prompt.
            return session_directory::remove_if_there(&path);
        };
        known(fs::write(&path, &snapshot.tree), "the files at the prompt are not kept");
    }

    /// Whether the files are those at the time of the last prompt.
    pub(crate) fn is_as_at_prompt(&mut self) -> bool {
        let then = fs::read_to_string(self.directory.join(PROMPT_TREE)).ok();
        then.is_some() && self.take_snapshot().map(|snapshot| snapshot.tree) == then
    }

    /// Records the files at the start of the session, if one of its hooks needs the changes.
    pub(crate) fn remember_base_for(&mut self, hooks: &HookRegistry) {
        remember_copies(self.runner.root(), &self.directory, hooks.list());
        let is_measured =
            |hook: &Hook| hook.options.base_tests.is_some() || hook.options.strength.is_some();
        if hooks.list().iter().any(is_measured) {
            // Before the first turn. Without it, a claim needs a person.
            known(self.test_base(), "the tests at the start of the work are unknown");
            known(self.surroundings_since(), "the start of the work is unknown");
            known(self.tree_before_work(), "the files at the start of the work are unknown");
        }
        if hooks.list().iter().any(hookloop_hooks::hook_context::needs_changes) {
            self.base_tree();
        }
    }

    /// Returns the files that changed since the work began, with their changed lines.
    pub(super) fn changes(&mut self) -> Option<Vec<(String, u64)>> {
        let base = self.base_tree()?;
        let now = self.take_snapshot()?.tree;
        known(self.snapshots()?.changes(&base, &now), "the changed files are unknown")
    }

    /// Plans the run of the base's tests against a tree of the work.
    pub(super) fn plan_tests_of_base(
        &mut self,
        rules: &BaseTestRules,
        tree: &str,
    ) -> Result<Option<BaseRunPlan>, String> {
        // A base that is recorded at a claim would be the work itself.
        if !self.base.with_extension("tests").exists() {
            return Err("the tests at the start of the work are unknown".to_owned());
        }
        let base = self.test_base()?;
        let known = self.assertions.take();
        let Some(snapshots) = self.snapshots() else { return Ok(None) };
        let assertions = match known.filter(|known| known.is_of(&base, &rules.protect)) {
            Some(known) => known,
            None => {
                let protect = matcher(&rules.protect, PatternReach::Below)
                    .map_err(|error| error.to_string())?;
                let read = BaseAssertions::read(snapshots, &base, (&rules.protect, &protect));
                read.map_err(|error| error.to_string())?
            }
        };
        let evidence = plan(snapshots, (&base, tree), &rules.protect, &assertions)
            .map_err(|error| error.to_string())?;
        let mixed = match evidence.edits.is_empty() {
            true => None,
            false => {
                let mixed = snapshots.edited_tree(tree, &evidence.edits);
                Some(mixed.map_err(|error| error.to_string())?)
            }
        };
        let unread = assertions.unread;
        self.assertions = Some(assertions);
        Ok(Some(BaseRunPlan { base, tree: mixed, unread, evidence }))
    }

    /// Asks a gatekeeper whether the work asks for changes of tests. The error is for a person.
    pub(super) fn ask_reviewer(
        &mut self,
        session: &Session,
        changed: &ChangedExpectations<'_>,
    ) -> Result<ExpectationVerdict, String> {
        let work = self.work_text(session)?;
        if changed.task.is_none() && work.is_empty() {
            return Err("the text of the work is unknown".to_owned());
        }
        let (base, tree) = changed.trees;
        let snapshots = self.snapshots().ok_or("git is not installed")?;
        let difference = snapshots
            .difference(base, tree, DIFFERENCE_MAX)
            .map_err(|error| format!("the change can't be shown to a gatekeeper: {error}"))?;
        if difference.lines().any(|line| line.starts_with("Binary files ")) {
            return Err("the change has binary files, which a gatekeeper can't review".to_owned());
        }
        // An agent that reads the work's files could follow the instructions in them.
        let directory = self.directory.join(format!("{REVIEW_DIRECTORY}-{}", random_word()));
        fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let verdict = self.steps.review_expectations(&ExpectationQuestion {
            project: self.project,
            place: &self.runner.at(directory.clone()),
            changed,
            agent: session.agent(),
            work: &work,
            difference: &difference,
            left: session.left(),
            cancel: &self.stop.cancel,
        });
        known(fs::remove_dir_all(&directory), "the directory of a review is not removed");
        verdict
    }

    /// Returns the tree at the start of the first session here whose work no gate has proven. The first call records it.
    ///
    /// A check that an earlier session broke did not fail before the work.
    pub(super) fn tree_before_work(&mut self) -> Result<String, String> {
        let unproven = UnprovenTests::of(self.runner.state(), self.place.root());
        if let Some(tree) = unproven.first_tree()? {
            return Ok(tree);
        }
        // A tree that is recorded at a claim would be the work itself.
        let is_start = !self.base.exists();
        let tree = self.base_tree().ok_or("the files at the start of the work are unknown")?;
        let is_known = is_start || self.base.with_extension("tests").exists();
        if !is_known {
            return Err("the files at the start of the work are unknown".to_owned());
        }
        unproven.note_first_tree(&tree)?;
        Ok(tree)
    }

    /// Returns the files outside of the project that gates use and that changed since the session began.
    pub(super) fn surroundings_since_start(&mut self) -> Result<Vec<TestFinding>, String> {
        let since = self.surroundings_since()?;
        let home = self.runner.environment().iter().find(|(name, _)| name == "HOME");
        let surroundings = Surroundings {
            path: self.runner.path(),
            home: home.map(|(_, home)| Path::new(home)),
            project: [self.place.root(), self.runner.root()],
            since,
        };
        surroundings.changed()
    }

    /// Returns the start of the first session here whose work no gate has proven. The first call records it.
    ///
    /// Changes that a refused session left around the project must not help the next one.
    fn surroundings_since(&self) -> Result<SystemTime, String> {
        let unread =
            |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let started = fs::metadata(&self.base).and_then(|data| data.modified());
        let started = started.map_err(|error| unread(&self.base, &error))?;
        let unproven = UnprovenTests::of(self.runner.state(), self.place.root());
        unproven.first_start(started)
    }

    /// Returns the tree whose tests are the base, which the first call records.
    ///
    /// That is the tree that the work began with, without unproven changes of earlier sessions.
    pub(super) fn test_base(&mut self) -> Result<String, String> {
        let unknown = || "the files at the start of the work are unknown".to_owned();
        let first = self.base_tree().ok_or_else(unknown)?;
        let edits = self.edits_of_base(&first)?;
        let snapshots = self.snapshots().ok_or_else(unknown)?;
        snapshots.edited_tree(&first, &edits).map_err(|error| error.to_string())
    }

    /// Returns the edits that remove unproven changes of earlier sessions from the files at the start, which the first
    /// call records.
    fn edits_of_base(&mut self, first: &str) -> Result<Vec<(Vec<u8>, TreeEdit)>, String> {
        let path = self.base.with_extension("tests");
        let unread = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        match fs::read(&path) {
            Ok(text) => return serde_json::from_slice(&text).map_err(|error| unread(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unread(&error)),
        }
        let head = self.head();
        let unproven = UnprovenTests::of(self.runner.state(), self.place.root());
        let snapshots = self.snapshots().ok_or("the files at the start of the work are unknown")?;
        let edits = unproven.edits(snapshots, first, head.as_deref())?;
        let text = serde_json::to_vec(&edits).map_err(|error| unread(&error))?;
        write_whole(&path, &text, WriteOptions::CACHE).map_err(|error| unread(&error))?;
        Ok(edits)
    }

    /// Records the tests that differ from the base after a turn.
    pub(super) fn note_unproven_tests(&mut self, snapshot: Option<&Snapshot>) {
        let Ok(hooks) = self.project.hooks() else { return };
        let rules: Vec<BaseTestRules> =
            hooks.list().iter().filter_map(|hook| hook.options.base_tests.clone()).collect();
        if rules.is_empty() {
            return;
        }
        let protect: Vec<String> = rules.into_iter().flat_map(|rules| rules.protect).collect();
        let unproven = UnprovenTests::of(self.runner.state(), self.place.root());
        let Some(snapshot) = snapshot else {
            let noted = unproven.note_unknown("there is no snapshot of the files after a turn");
            known(noted, "changed tests are not recorded");
            return;
        };
        let noted = self.test_base().and_then(|base| {
            let snapshots = self.snapshots().ok_or("git is not installed")?;
            let trees = (base.as_str(), snapshot.tree.as_str());
            let changes =
                relevant_changes(snapshots, trees, &protect).map_err(|error| error.to_string())?;
            let changes = changes.into_iter().map(|(change, ..)| change).collect();
            unproven.note(snapshots, changes, snapshot.head.as_ref().map(CommitId::as_str))
        });
        // Without a record, weakened tests would be the base of the next session.
        let noted = noted.or_else(|why| unproven.note_unknown(&why));
        known(noted, "changed tests are not recorded");
    }

    /// Forgets the changed tests of earlier turns: gates passed together with the tests of the base.
    pub(super) fn forget_unproven_tests(&mut self) {
        let unproven = UnprovenTests::of(self.runner.state(), self.place.root());
        known(unproven.forget(), "the record of unproven tests stays");
    }
}
