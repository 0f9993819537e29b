//! Folds the events of a session into its state.

use super::state::{Session, SessionPhase};
use crate::event::EventBody;
use crate::payload::plan::SessionWork;
use crate::payload::session::{
    AllowedFindings, SessionOutcome, SessionReopened, TaskExit, WorktreeSnapshotted,
};
use crate::point::Point;

impl Session {
    /// Returns the session of these events, or `None` if the first one does not start a session.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e EventBody>) -> Option<Session> {
        let mut events = events.into_iter();
        let Some(EventBody::SessionStarted(plan)) = events.next() else { return None };
        let mut session = Session::new(plan.clone());
        for event in events {
            session.apply(event);
        }
        Some(session)
    }

    /// Applies the next event. Events of other kinds change nothing.
    pub fn apply(&mut self, event: &EventBody) {
        if self.is_over() {
            if let EventBody::SessionReopened(reopened) = event {
                self.reopen(reopened);
            }
            return;
        }
        match event {
            EventBody::HookPointCompleted(passed) => self.pass(&passed.point),
            EventBody::OutputPiped(piped) => self.pipe(piped.clone()),
            EventBody::IterationStarted(started) => self.start_iteration(started),
            EventBody::TurnStarted(started) => self.start_turn(started),
            EventBody::CompletionClaimed(claimed) => self.claim(claimed),
            EventBody::TurnEnded(ended) => self.end_turn(ended),
            EventBody::StopEvaluated(decided) => self.decide(decided),
            EventBody::ReceiptRecorded(receipt) => self.keep(receipt.clone()),
            EventBody::GatesEvaluated(judged) => self.judge(judged),
            EventBody::EmptyDifferenceFound(found) => self.find_no_changes(found.was_asked),
            EventBody::UnclaimedWorkChecked(checked) => self.unclaimed = Some(checked.clone()),
            EventBody::SubmissionEvaluated(judged) => self.judge_submission(judged),
            EventBody::DecisionMade(answered) => self.answer(answered.answer),
            EventBody::SessionTaskClaimed(taken) => self.take_task(taken.clone()),
            EventBody::SessionTaskReleased(left) => self.leave_task(left),
            EventBody::CheckpointMade(made) => self.checkpoint = Some(made.data.clone()),
            EventBody::TrustDriftDetected(drift) => {
                self.drifted.extend(drift.changed.iter().cloned())
            }
            EventBody::WorktreeSnapshotted(seen) => self.see_files(seen),
            EventBody::WorktreeRecreated(_) => self.lose_worktree(),
            EventBody::PauseRequested(_) => self.pause_requested = true,
            EventBody::StopRequested(_) => self.stop_requested = true,
            EventBody::SessionPaused(_) => self.phase = SessionPhase::Paused,
            EventBody::SessionResumed(resumed) => {
                self.run = resumed.run;
                self.pause_requested = false;
                self.stop_requested = false;
                // The budget may have more by now.
                self.shortage = None;
                // The person who resumes the session may have logged in or upgraded the agent.
                self.fault = None;
                if let Some(hooks) = &resumed.hooks {
                    self.plan.hooks.clone_from(hooks);
                }
                if resumed.scripts.is_some() {
                    self.plan.scripts.clone_from(&resumed.scripts);
                }
                if self.phase == SessionPhase::Paused {
                    self.phase = match std::mem::take(&mut self.is_claim_kept) {
                        true => SessionPhase::Gating,
                        false => SessionPhase::Ready,
                    };
                }
            }
            EventBody::BudgetExhausted(shortage) => self.shortage = Some(*shortage),
            EventBody::SessionEnding(outcome) => self.begin_end(outcome.clone()),
            EventBody::SessionEnded(_) => {
                self.undelivered += self.pending.len();
                self.phase = SessionPhase::Ended;
            }
            _ => {}
        }
    }

    /// Pauses a session that ended, so that it can be resumed. Its failure counters start again. Iterations,
    /// time, tokens and cost continue.
    fn reopen(&mut self, reopened: &SessionReopened) {
        if let Some(limits) = reopened.limits {
            self.plan.limits = limits;
        }
        // The next prompt will contain the pending output.
        self.undelivered = self.undelivered.saturating_sub(self.pending.len());
        self.return_withheld(None);
        self.outcome = None;
        (self.errors, self.waits, self.wait_until_ms) = (0, 0, None);
        (self.fault, self.shortage) = (None, None);
        (self.retries, self.deliveries) = (0, 0);
        self.progress.forgive();
        self.claims.clear();
        (self.decided, self.unclaimed) = (None, None);
        self.was_asked_for_changes = false;
        (self.pause_requested, self.stop_requested) = (false, false);
        // With many tasks, each task that is still blocked counts until it is claimed again.
        if let SessionWork::Task(_) = self.plan.work {
            self.tasks_blocked.clear();
        }
        // A person knows that other holders had these tasks. The next claim shows whether a task is available.
        self.tasks_lost.clear();
        self.void();
        self.plan.may_change.extend(reopened.may_change.iter().cloned());
        if let Some(AllowedFindings { by, digests }) = &reopened.allowed {
            let digests = digests.iter().map(|digest| (digest.clone(), by.clone()));
            self.allowed_findings.extend(digests);
        }
        let is_allowed = !reopened.may_change.is_empty() || reopened.allowed.is_some();
        self.is_claim_kept = is_allowed && self.task.is_none();
        self.was_told_of_tests = false;
        self.phase = SessionPhase::Paused;
    }

    /// Applies a snapshot of the files between turns. Changes by hooks are not the agent's. When a program
    /// resumes the session, a person may have changed the files, which counts as a change.
    fn see_files(&mut self, seen: &WorktreeSnapshotted) {
        let files = seen.files.as_str();
        if self.has_worked && !seen.after_hooks && self.files.as_deref() != Some(files) {
            self.is_unchanged = false;
        }
        if !self.has_worked || seen.after_hooks && self.is_unchanged {
            self.start = Some(seen.clone());
        }
        self.files = Some(files.to_owned());
        self.progress.begin(files);
        // Hooks of the session's end run after the verdict, and a final turn voids the verdict.
        if seen.after_hooks && self.phase == SessionPhase::Ending {
            return;
        }
        let is_green = |green: &Option<String>| green.as_deref() == Some(files);
        if self.green.as_ref().is_some_and(|green| !is_green(green)) {
            self.void();
            if let SessionPhase::TaskOver { how: TaskExit::Completed, reason: None }
            | SessionPhase::Submitting = self.phase
            {
                self.phase = SessionPhase::Gating;
            }
        }
    }

    /// Voids the claim, because the agent's files are lost. The agent continues.
    fn lose_worktree(&mut self) {
        self.recreations = self.recreations.saturating_add(1);
        self.void();
        self.gated_tree = None;
        let has_claim = matches!(
            self.phase,
            SessionPhase::After
                | SessionPhase::Deciding
                | SessionPhase::Gating
                | SessionPhase::Submitting
                | SessionPhase::AtRetryLimit
                | SessionPhase::TaskOver { how: TaskExit::Completed, .. }
        );
        if has_claim {
            self.phase = SessionPhase::Ready;
        }
    }

    fn pass(&mut self, point: &str) {
        self.phase = match (&self.phase, point.parse()) {
            (SessionPhase::Starting | SessionPhase::Settling, Ok(Point::SessionStart)) => {
                SessionPhase::Ready
            }
            (phase, Ok(Point::AfterSubmit)) => {
                self.submitted = None;
                match phase {
                    SessionPhase::Submitted => SessionPhase::Ready,
                    phase => phase.clone(),
                }
            }
            (SessionPhase::After, Ok(Point::PostIteration)) => SessionPhase::Deciding,
            (SessionPhase::Failed { .. }, Ok(Point::OnError)) => SessionPhase::Recovering,
            (phase, _) => phase.clone(),
        };
    }

    fn begin_end(&mut self, outcome: SessionOutcome) {
        self.unbind();
        self.outcome = Some(outcome);
        self.phase = SessionPhase::Ending;
    }
}
