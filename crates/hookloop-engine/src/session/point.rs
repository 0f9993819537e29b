//! The hooks of a point: the records of their runs, and their output for the agent.

use hookloop_agents::clipped;
use hookloop_core::event::{EventBody, HookRan};
use hookloop_core::excerpt::LeftOut;
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::{HookStatus, HookVerdict};
use hookloop_core::point::Point;
use hookloop_core::session::SessionOutcome;
use hookloop_core::session::facts::CheckpointMade;
use hookloop_hooks::hook_context::SessionCall;
use hookloop_hooks::hook_run::{HookRun, piped};

use super::drive::SessionDriver;
use super::world::{SessionUpdate, SessionWorld};
use crate::error::EngineError;

/// Maximum output of all hooks of a point. Of later output, only the length is reported.
const POINT_MAX: usize = 128 * 1024;
/// Maximum size of a stored checkpoint, as JSON.
const CHECKPOINT_MAX: usize = 64 * 1024;
/// Maximum length of a hook's reason.
pub(crate) const REASON_MAX: usize = 2_000;
/// Maximum pending items for a prompt. Of further items, only the length is reported.
const PENDING_MAX: usize = 500;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Returns the hooks of a point for the current task.
    pub(crate) fn hooks_at(&self, point: &Point) -> Vec<Hook> {
        let task_type = self.task.as_ref().and_then(|task| task.spec.kind.as_deref());
        let agent = Some(self.journal.session.agent());
        let hooks = self.hooks.resolve_for(point.name(), task_type, agent);
        hooks.into_iter().cloned().collect()
    }

    /// Runs the hooks of a point, and records their results.
    pub(super) fn run_point(&mut self, point: &Point) -> Result<Vec<HookRun>, EngineError> {
        let hooks = self.hooks_at(point);
        let runs = self.run_hooks(&hooks, point)?;
        for run in &runs {
            if run.ran.is_none() && run.outcome.status == HookStatus::NotStarted {
                self.journal.note(EventBody::HookRan(run.unstarted_record(point)));
            }
        }
        // After the end of the session no prompt contains the output.
        if *point != Point::SessionEnd {
            self.pipe(point, &hooks, &runs);
        }
        self.note_wishes(point, &runs);
        Ok(runs)
    }

    /// Runs hooks and records their results, after it has stored all noted events.
    ///
    /// A run that other hooks follow is stored when it ends, so that people see it while the others
    /// run. A run with actions is stored together with the step: after a crash the hooks run again,
    /// and its actions must not happen twice.
    pub(super) fn run_hooks(
        &mut self,
        hooks: &[Hook],
        point: &Point,
    ) -> Result<Vec<HookRun>, EngineError> {
        if hooks.is_empty() {
            return Ok(Vec::new());
        }
        self.commit()?;
        self.world.notice(SessionUpdate::Hooks { point, count: hooks.len() });
        let error = self.error();
        let (id, session) = (self.journal.id.clone(), self.journal.session.clone());
        let call = SessionCall {
            id: &id,
            session: &session,
            point,
            task: self.task.as_ref(),
            error: error.as_deref(),
            validated: &self.validated,
            delivery: self.delivery.as_ref(),
        };
        let (world, journal) = (&mut self.world, &mut self.journal);
        let mut stored_runs: Vec<String> = Vec::new();
        let mut unstored: Vec<HookRan> = Vec::new();
        let mut ended_count = 0;
        let mut failure = None;
        let mut ended = |run: &HookRun| {
            ended_count += 1;
            // Concurrent hooks that disturbed each other run twice. Each run gets its own event.
            stored_runs.retain(|hook| *hook != run.hook);
            for ran in unstored.extract_if(.., |ran| ran.hook_name == run.hook) {
                journal.note(EventBody::HookRan(ran));
            }
            let Some(ran) = &run.ran else { return Vec::new() };
            let acts = !run.outcome.actions.is_empty() || run.outcome.checkpoint.is_some();
            if acts || ended_count >= hooks.len() {
                unstored.push(ran.clone());
                return Vec::new();
            }
            if failure.is_some() {
                return Vec::new();
            }
            stored_runs.push(run.hook.clone());
            journal.note(EventBody::HookRan(ran.clone()));
            journal.commit().unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            })
        };
        let runs = world.run_hooks(hooks, &call, &mut ended);
        if let Some(error) = failure {
            return Err(error);
        }
        // The last run of a hook may have no record: it was not started again.
        let has_record =
            |ran: &HookRan| runs.iter().any(|run| run.hook == ran.hook_name && run.ran.is_some());
        for ran in unstored.into_iter().filter(|ran| !has_record(ran)) {
            self.journal.note(EventBody::HookRan(ran));
        }
        self.world.notice(SessionUpdate::Ran(&runs));
        self.settle_reactions()?;
        self.note_runs(runs.iter().filter(|run| !stored_runs.contains(&run.hook)));
        Ok(runs)
    }

    /// Notes the record, the actions and the checkpoint of each run.
    fn note_runs<'r>(&mut self, runs: impl Iterator<Item = &'r HookRun>) {
        for run in runs {
            if let Some(ran) = &run.ran {
                let ran = HookRan { base_tests: self.is_base_run, ..ran.clone() };
                self.journal.note(EventBody::HookRan(ran));
                // The gate has acted when it ran on the work.
                if self.is_base_run {
                    continue;
                }
                self.journal.note_actions(&run.hook, run.outcome.actions.clone());
            }
            let checkpoint = run.outcome.checkpoint.as_ref();
            if let Some(data) = checkpoint.filter(|data| data.to_string().len() <= CHECKPOINT_MAX) {
                let by = run.hook.clone();
                self.journal
                    .note(EventBody::CheckpointMade(CheckpointMade { by, data: data.clone() }));
            }
        }
    }

    /// Adds the output of hooks to the next prompt.
    fn pipe(&mut self, point: &Point, hooks: &[Hook], runs: &[HookRun]) {
        let mut room = POINT_MAX;
        for run in runs {
            let hook = hooks.iter().find(|hook| hook.name == run.hook);
            let Some(text) = hook.and_then(|hook| piped(hook, run)) else { continue };
            let text = match text.len() <= room && self.journal.session.pending.len() < PENDING_MAX
            {
                true => text,
                false => run
                    .left_out
                    .iter()
                    .fold(LeftOut::of(&text), |all, cut| all.plus(*cut))
                    .to_string(),
            };
            room = room.saturating_sub(text.len());
            self.tell_hook_output(&run.hook, point, run.outcome.status, text);
        }
    }

    /// Ends the session if a hook requests a person. A reaction cannot block, but it can escalate.
    fn note_wishes(&mut self, point: &Point, runs: &[HookRun]) {
        if *point == Point::SessionEnd {
            return;
        }
        let escalated = runs.iter().find_map(|run| match &run.outcome.verdict {
            HookVerdict::Escalate { reason } => Some(clipped(reason, REASON_MAX)),
            _ => None,
        });
        if let Some(reason) = escalated {
            self.journal.note(EventBody::SessionEnding(SessionOutcome::NeedsHuman { reason }));
        }
    }
}
