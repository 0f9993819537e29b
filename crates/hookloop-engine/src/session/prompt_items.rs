//! Items for the next prompt: instructions, hook output, check results.

use hookloop_agents::clipped;
use hookloop_core::event::EventBody;
use hookloop_core::hook::Hook;
use hookloop_core::hook_status::HookStatus;
use hookloop_core::point::Point;
use hookloop_core::session::{PipedOutput, PromptChannel};
use hookloop_hooks::hook_run::{HookRun, PIPED_MAX, describe};

use super::drive::SessionDriver;
use super::prompt::{self, PromptGate};
use super::world::SessionWorld;

/// The sender of hookloop's own instructions.
pub(super) const US: &str = "hookloop";

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Adds an instruction to the next prompt.
    ///
    /// It is from hookloop, or from a hook whose trusted definition allows it.
    pub(super) fn instruct(&mut self, from: &str, point: &Point, text: String) {
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: from.to_owned(),
            point: point.name().to_owned(),
            text: clipped(&text, PIPED_MAX),
            channel: Some(PromptChannel::Instruction),
            ..PipedOutput::default()
        }));
    }

    /// Adds the output of a hook to the next prompt, as data.
    ///
    /// `text` is the excerpt that [`hookloop_hooks::hook_run::piped`] makes.
    pub(super) fn tell_hook_output(
        &mut self,
        hook: &str,
        point: &Point,
        status: HookStatus,
        text: String,
    ) {
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: hook.to_owned(),
            point: point.name().to_owned(),
            status: Some(status.into()),
            text,
            channel: Some(PromptChannel::HookOutput),
            ..PipedOutput::default()
        }));
    }

    /// Adds the result of a check to the next prompt, as data.
    pub(super) fn tell_check(&mut self, point: &Point, run: &HookRun, text: String) {
        let gate = self.gate_named(point, &run.hook);
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: run.hook.clone(),
            point: point.name().to_owned(),
            status: Some(run.outcome.status.into()),
            text: clipped(&text, PIPED_MAX),
            channel: Some(PromptChannel::CheckResult),
            command: gate.map(|gate| describe(&gate)),
            exit_code: run.ran.as_ref().and_then(|ran| ran.exit_code),
            question: None,
        }));
    }

    /// Returns the gate with this name at a point. Validation rules are reported with the gates.
    fn gate_named(&self, point: &Point, name: &str) -> Option<Hook> {
        let points = [point.clone(), Point::Validation];
        points.iter().flat_map(|point| self.hooks_at(point)).find(|hook| hook.name == name)
    }

    /// Returns the gates that check the work when the agent reports COMPLETE.
    pub(super) fn prompt_gates(&self) -> Vec<PromptGate> {
        let points = [Point::Stop, Point::Validation, Point::BeforeSubmit];
        let points = if self.journal.session.plan.delivers { &points[..] } else { &points[..2] };
        let hooks = points.iter().flat_map(|point| self.hooks_at(point));
        hooks.filter(prompt::is_check).map(|hook| PromptGate::from(&hook)).collect()
    }
}
