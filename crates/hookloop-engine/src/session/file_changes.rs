//! Changes of files, compared with those that a session started with.

use hookloop_core::event::{EventBody, WorktreeSnapshotted};
use hookloop_core::point::Point;
use hookloop_core::session::facts::EmptyDifferenceFound;

use super::drive::SessionDriver;
use super::prompt_items::US;
use super::world::SessionWorld;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Records the current files, which may differ from those that the last turn left.
    pub(crate) fn see_files(&mut self) {
        if let Some(seen) = self.worktree_snapshotted(false) {
            self.journal.note(EventBody::WorktreeSnapshotted(seen));
        }
    }

    /// Records the files after hooks, so that their changes do not count as those of the agent.
    ///
    /// An external session works at any time, so its changes cannot be distinguished from those of
    /// hooks.
    pub(super) fn see_files_of_hooks(&mut self) {
        if self.journal.session.plan.is_external() {
            return;
        }
        let seen = self.worktree_snapshotted(true);
        if let Some(seen) = seen.filter(|seen| self.journal.session.is_news(seen)) {
            self.journal.note(EventBody::WorktreeSnapshotted(seen));
        }
    }

    /// Records the files before a pause or the end.
    ///
    /// A resume can then tell changes by a person from those of hooks.
    pub(super) fn see_files_before_rest(&mut self) {
        let plan = &self.journal.session.plan;
        if plan.must_change_files() && !plan.work.is_of_tasks() {
            self.see_files_of_hooks();
        }
    }

    fn worktree_snapshotted(&mut self, after_hooks: bool) -> Option<WorktreeSnapshotted> {
        let files = self.world.look_at_files()?.digest;
        Some(WorktreeSnapshotted { files, head: self.compared_head(), after_hooks })
    }

    /// Returns the commit that is checked out, if a commit counts as a change.
    pub(super) fn compared_head(&mut self) -> Option<String> {
        let is_compared = self.journal.session.plan.must_change_files();
        is_compared.then(|| self.world.head()).flatten()
    }

    /// Whether the agent's work changed neither the files nor the commit.
    ///
    /// True if no turn changed them, or if they equal those at the start of the work. Unknown files
    /// do not count as equal.
    pub(super) fn has_changed_nothing(&mut self) -> bool {
        if self.journal.session.is_unchanged {
            return true;
        }
        let Some(start) = self.journal.session.start.clone() else { return false };
        let now = self.world.look_at_files().map(|look| look.digest);
        now.as_deref() == Some(start.files.as_str()) && self.world.head() == start.head
    }

    /// Whether work without changes needs an explanation.
    pub(super) fn must_change_files(&self) -> bool {
        let kind = self.task.as_ref().and_then(|task| task.spec.kind.as_deref());
        let is_allowed = self.journal.project.rules().allows_no_changes(kind);
        // A person looked at the changes that the task's work made before.
        let session = &self.journal.session;
        let is_approved =
            session.task.as_ref().is_some_and(|taken| !taken.allowed_findings.is_empty());
        session.plan.must_change_files() && !is_allowed && !is_approved
    }

    /// Asks the agent why nothing changed, or a person if the agent was asked before.
    pub(super) fn find_no_changes(&mut self, finding: &str) {
        let was_asked = self.journal.session.was_asked_for_changes;
        if !was_asked {
            let question = format!(
                "You reported COMPLETE, but {finding}. If something has to change, \
                 change it. If nothing has to change, say why and report COMPLETE again."
            );
            self.instruct(US, &Point::Stop, question);
        }
        let found = EmptyDifferenceFound { was_asked };
        self.journal.note(EventBody::EmptyDifferenceFound(found));
    }
}
