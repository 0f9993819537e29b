//! The effect of claimed and released tasks on the state of a session.

use super::state::{Session, SessionPhase};
use crate::payload::session::{SessionTaskClaimed, SessionTaskReleased, TaskExit};

impl Session {
    pub(super) fn take_task(&mut self, taken: SessionTaskClaimed) {
        let used = taken.remediations;
        self.tasks_blocked.retain(|id| *id != taken.task);
        self.tasks_lost.retain(|id| *id != taken.task);
        self.return_withheld(Some(&taken.task));
        self.allowed_findings.extend(taken.allowed_findings.clone());
        self.task = Some(taken);
        self.conversation = None;
        (self.retries, self.was_sent_back, self.failing) = (0, false, None);
        (self.remediations, self.regates, self.submit_tries) = (used, 0, 0);
        self.submit_failure = None;
        self.recreations = 0;
        (self.submission, self.start) = (None, None);
        (self.has_worked, self.was_asked_for_changes) = (false, false);
        self.was_told_of_tests = false;
        self.is_unchanged = true;
        (self.is_accepted, self.is_submission_proof) = (false, false);
        self.progress.restart();
        self.phase = if self.plan.delivers { SessionPhase::Settling } else { SessionPhase::Ready };
    }

    pub(super) fn leave_task(&mut self, left: &SessionTaskReleased) {
        if matches!(left.result, TaskExit::Completed | TaskExit::Submitted)
            && !self.has_proven_task()
        {
            self.tasks_unproven.push(left.task.clone());
        }
        self.task = None;
        self.unbind();
        match left.result {
            TaskExit::Completed => self.tasks_completed.push(left.task.clone()),
            TaskExit::Submitted => {
                self.tasks_submitted.push(left.task.clone());
                self.submitted = Some(left.task.clone());
            }
            TaskExit::Blocked => self.tasks_blocked.push(left.task.clone()),
            TaskExit::Lost => self.tasks_lost.push(left.task.clone()),
            TaskExit::Released | TaskExit::Returned => {}
        }
        if !matches!(self.phase, SessionPhase::Ending) {
            let is_owed = self.submitted.is_some();
            self.phase = if is_owed { SessionPhase::Submitted } else { SessionPhase::Ready };
        }
    }
}
