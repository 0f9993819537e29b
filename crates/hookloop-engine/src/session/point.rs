//! The hooks of a point: what is recorded of their runs, and what of their output is for the agent.

use hookloop_core::answer::{Status, Verdict};
use hookloop_core::event::EventBody;
use hookloop_core::excerpt::{ExcerptRules, LeftOut, head_and_tail};
use hookloop_core::hook::Hook;
use hookloop_core::options::PipeOutput;
use hookloop_core::point::Point;
use hookloop_core::session::Outcome;
use hookloop_core::session::facts::CheckpointMade;

use super::drive::Driver;
use super::world::{Call, Notice, World};
use crate::agents::clipped;
use crate::project::EngineError;
use crate::run::HookRun;

/// The most of one hook's output that a prompt has.
pub(crate) const PIPED_MAX: usize = 32 * 1024;
/// The most that all hooks of a point have together; what comes after is told by its length.
const POINT_MAX: usize = 128 * 1024;
/// The largest checkpoint that is kept, as JSON.
const CHECKPOINT_MAX: usize = 64 * 1024;
/// The longest reason that a hook gives.
pub(crate) const REASON_MAX: usize = 2_000;
/// Items that may wait for a prompt; beyond that they are told by their length.
const PENDING_MAX: usize = 500;

impl<W: World> Driver<'_, W> {
    /// The hooks of a point, for the task at hand.
    pub(crate) fn hooks_at(&self, point: &Point) -> Vec<Hook> {
        let task_type = self.task.as_ref().and_then(|task| task.spec.kind.as_deref());
        let agent = Some(self.journal.session.agent());
        let hooks = self.hooks.resolve_for(point.name(), task_type, agent);
        hooks.into_iter().cloned().collect()
    }

    /// Runs the hooks of a point and notes what came of them.
    pub(super) fn run_point(&mut self, point: &Point) -> Result<Vec<HookRun>, EngineError> {
        let hooks = self.hooks_at(point);
        let runs = self.run_hooks(&hooks, point)?;
        self.note_runs(&runs);
        for run in &runs {
            if run.ran.is_none() && run.outcome.status == Status::NotStarted {
                self.journal.note(EventBody::HookRan(run.unstarted_record(point)));
            }
        }
        // Nobody reads what is said after the end.
        if *point != Point::SessionEnd {
            self.pipe(point, &hooks, &runs);
        }
        self.note_wishes(point, &runs);
        Ok(runs)
    }

    /// Runs hooks; what was noted before is stored first.
    pub(super) fn run_hooks(
        &mut self,
        hooks: &[Hook],
        point: &Point,
    ) -> Result<Vec<HookRun>, EngineError> {
        if hooks.is_empty() {
            return Ok(Vec::new());
        }
        self.commit()?;
        self.world.notice(Notice::Hooks { point, count: hooks.len() });
        let error = self.error();
        let call = Call {
            id: &self.journal.id,
            session: &self.journal.session,
            point,
            task: self.task.as_ref(),
            error: error.as_deref(),
            validated: &self.validated,
            delivery: self.delivery.as_ref(),
        };
        let runs = self.world.run_hooks(hooks, &call);
        self.world.notice(Notice::Ran(&runs));
        self.settle_reactions()?;
        Ok(runs)
    }

    /// What the log has of each run, and what it asks for.
    pub(super) fn note_runs(&mut self, runs: &[HookRun]) {
        for run in runs {
            if let Some(ran) = &run.ran {
                self.journal.note(EventBody::HookRan(ran.clone()));
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

    /// Adds to what waits for a prompt.
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
            self.tell_hook_output(&run.hook, point, run.outcome.status.name(), text);
        }
    }

    /// A reaction can't say no, but it may ask for a human.
    fn note_wishes(&mut self, point: &Point, runs: &[HookRun]) {
        if *point == Point::SessionEnd {
            return;
        }
        let escalated = runs.iter().find_map(|run| match &run.outcome.verdict {
            Verdict::Escalate { reason } => Some(clipped(reason, REASON_MAX)),
            _ => None,
        });
        if let Some(reason) = escalated {
            self.journal.note(EventBody::SessionEnding(Outcome::NeedsHuman { reason }));
        }
    }
}

/// What a run has for the agent.
pub(crate) fn piped(hook: &Hook, run: &HookRun) -> Option<String> {
    let is_failure = !matches!(run.outcome.status, Status::Passed | Status::Skipped);
    let is_piped = match hook.options.pipe_output {
        PipeOutput::Always => run.outcome.status != Status::Skipped,
        PipeOutput::OnFailure => is_failure,
        PipeOutput::Never => false,
    };
    let is_plain = is_piped && !run.outcome.is_quiet;
    let is_answer = hookloop_core::answer::looks_like_answer(&run.stdout);
    let reason = run.outcome.reason.as_deref().filter(|_| is_piped && is_failure);
    let parts = [
        run.outcome.context.as_deref(),
        reason,
        Some(run.stdout.as_str()).filter(|_| is_plain && !is_answer),
        Some(run.stderr.as_str()).filter(|_| is_plain),
    ];
    let parts: Vec<&str> =
        parts.into_iter().flatten().map(str::trim).filter(|part| !part.is_empty()).collect();
    let rules = ExcerptRules { max: PIPED_MAX, head_parts: 2, earlier: &run.left_out };
    (!parts.is_empty()).then(|| head_and_tail(&parts.join("\n"), rules))
}
