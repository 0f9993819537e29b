//! Hooks that start something: run before the batch that records what came of them.
//!
//! No batch waits for a process. The dispatcher runs what an event's hooks start, then stores the
//! outcome, the actions that were asked for and the cursor's move together: a crash before that runs
//! the process again, and no action takes effect twice.

use std::path::Path;

use hookloop_core::environment::{CommandResult, EnvironmentFacts, EnvironmentGap, cannot_run};
use hookloop_core::event::{Event, HookRan};
use hookloop_core::excerpt::LeftOut;
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::hook_protocol::{HookOutcome, HookStatus};
use hookloop_core::id::EventId;
use hookloop_core::point::Point;
use hookloop_core::task::Task;
use hookloop_store::log::Seq;

use crate::environment;
use crate::kept::Kept;
use crate::project::{EngineError, Project, now};
use crate::reactions::{EventClaim, ReactionHold, ReactionRun};
use crate::runner::{Occasion, RunRefusal, Runner, command_for};
use crate::turns;
use crate::work::Work;

/// What came of the processes of one event's hooks.
#[derive(Clone, Debug)]
pub(crate) struct RanFor {
    pub(crate) event: EventId,
    pub(crate) runs: Vec<HookRun>,
}

/// What came of an attempt to run the processes of one event's hooks.
#[derive(Debug)]
pub(crate) enum EventProcesses {
    /// The event has none.
    None,
    Ran(RanFor),
    /// The view has changed: another event may be the next.
    LookAgain,
    /// Another machine runs hooks.
    Others,
}

/// What came of one hook.
#[derive(Clone, Debug)]
pub struct HookRun {
    pub hook: String,
    pub outcome: HookOutcome,
    /// What the log keeps of it; none if there was no run.
    pub ran: Option<HookRan>,
    /// What it printed, as far as it is kept.
    pub stdout: String,
    pub stderr: String,
    /// What it printed for people and agents: both streams in the order of reading, without an answer.
    pub printed: String,
    /// The parts of that text that it has a note of instead.
    pub left_out: Vec<LeftOut>,
    /// Why its command could not be executed, if it could not.
    pub gap: Option<EnvironmentGap>,
}

impl HookRun {
    fn without(hook: &Hook, outcome: HookOutcome) -> HookRun {
        let (stdout, stderr) = (String::new(), String::new());
        HookRun {
            hook: hook.name.clone(),
            outcome,
            ran: None,
            stdout,
            stderr,
            printed: String::new(),
            left_out: Vec::new(),
            gap: None,
        }
    }

    /// A hook that had nothing to do, and why.
    pub(crate) fn skipped(hook: &Hook, reason: String) -> HookRun {
        let outcome = HookOutcome { reason: Some(reason), ..HookOutcome::of(HookStatus::Skipped) };
        HookRun::without(hook, outcome)
    }

    /// Returns the command that lets the hook run, if it was refused because nobody trusts it as it is.
    pub fn trust_command(&self) -> Option<&'static str> {
        let was_refused = self.ran.is_none() && self.outcome.status == HookStatus::NotStarted;
        let reason = self.outcome.reason.as_deref().filter(|_| was_refused);
        reason.and_then(command_for)
    }

    /// Returns the reason of a run that blocks, then its prompt for the agent, if that says more.
    pub(crate) fn blocking_words(&self) -> Vec<&str> {
        let reason = self.outcome.reason.as_deref();
        let prompt = self.outcome.next_prompt.as_deref();
        match (reason, prompt) {
            (Some(reason), Some(prompt)) if prompt.starts_with(reason) => vec![prompt],
            (reason, prompt) => reason.into_iter().chain(prompt).collect(),
        }
    }

    /// Whether it may go better another time.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(
            self.outcome.status,
            HookStatus::Failed | HookStatus::TimedOut | HookStatus::Killed
        )
    }

    /// Whether the hook could not check anything, for a reason that is not in the work: it could not start, its
    /// condition has no value, or its command can't be executed.
    pub(crate) fn is_misconfigured(&self) -> bool {
        let has_run = self.ran.as_ref().is_some_and(|ran| ran.attempts > 0);
        match self.outcome.status {
            HookStatus::NotStarted => true,
            HookStatus::Failed if !has_run => true,
            _ => self.gap.is_some(),
        }
    }

    /// Notes why the command could not be executed in `directory`, if it could not.
    pub(crate) fn with_gap(mut self, directory: &Path) -> HookRun {
        let result = CommandResult {
            exit_code: self.ran.as_ref().and_then(|ran| ran.exit_code),
            stdout: &self.stdout,
            stderr: &self.stderr,
        };
        // Most runs need no look at the project's files.
        if self.outcome.status != HookStatus::Passed
            && cannot_run(result, &EnvironmentFacts::default()).is_some()
        {
            self.gap = cannot_run(result, &environment::facts(directory));
        }
        self
    }

    /// Tells a person why the hook could not check anything, with its command and the step that prepares the
    /// environment.
    pub(crate) fn why_unable(&self, handler: &HookHandler) -> String {
        let cause = match (&self.gap, &self.outcome.reason) {
            (Some(gap), _) => gap.cause.clone(),
            (None, Some(reason)) => reason.clone(),
            (None, None) => self.outcome.status.name().to_owned(),
        };
        let command = match handler {
            HookHandler::Command(CommandText::Shell(line)) => format!("; its command is `{line}`"),
            HookHandler::Command(CommandText::Exec(args)) => {
                format!("; its command is `{}`", args.join(" "))
            }
            _ => String::new(),
        };
        let setup = self.gap.as_ref().and_then(|gap| gap.setup.as_ref());
        let setup = setup.map_or(String::new(), |setup| format!("; type `{setup}`"));
        let hint = self.outcome.message.as_ref();
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        let name = &self.hook;
        format!("`{name}` can't run here, so no agent can fix it: {cause}{command}{setup}{hint}")
    }

    /// The record of a hook that was not started.
    pub(crate) fn unstarted_record(&self, point: &Point) -> HookRan {
        HookRan {
            hook_name: self.hook.clone(),
            point: point.name().to_owned(),
            status: self.outcome.status.into(),
            exit_code: None,
            duration_ms: 0,
            ended_at: Some(now()),
            attempts: 0,
            reason: self.outcome.reason.clone(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            artifact: None,
            output_tail: Vec::new(),
            message: None,
        }
    }

    /// A hook that was refused, and why.
    pub(crate) fn refused(hook: &Hook, point: &Point, refusal: RunRefusal) -> HookRun {
        let RunRefusal { reason, hint } = refusal;
        let mut run = HookRun::unable(hook, point, HookStatus::NotStarted, reason);
        run.outcome.message = hint;
        run
    }

    /// A hook that could not be run, and why.
    pub(crate) fn unable(
        hook: &Hook,
        point: &Point,
        status: HookStatus,
        reason: String,
    ) -> HookRun {
        let outcome = HookOutcome::unable(status, reason, point.kind(), hook.options.on_failure);
        HookRun::without(hook, outcome)
    }

    /// A hook whose condition can't be evaluated: it did not run, and the log says why.
    pub(crate) fn undecided(hook: &Hook, point: &Point, reason: String) -> HookRun {
        let run = HookRun::unable(hook, point, HookStatus::Failed, reason);
        let ran = run.unstarted_record(point);
        HookRun { ran: Some(ran), ..run }
    }
}

impl Project {
    /// Gets ready for the hooks of a batch that are about to be run here: meanwhile the disk has its work.
    pub(crate) fn expect_processes(&self, work: &Work<'_, '_, '_>) -> Result<(), EngineError> {
        let (Some(runner), Kept::Here) = (&self.runner, &self.kept) else { return Ok(()) };
        let may_run = |hook: &&Hook| {
            matches!(hook.handler, HookHandler::Command(_)) && runner.standing(hook).may_run()
        };
        let staged = (0..work.unit.len()).filter_map(|index| work.unit.staged(index));
        for event in staged.filter(|event| event.due) {
            if work.process_hooks(event)?.iter().any(may_run) {
                runner.keepers().get_ready();
                break;
            }
        }
        Ok(())
    }

    /// Runs the hooks of the due event at `seq` that start a process.
    pub(crate) fn run_processes(
        &self,
        seq: Seq,
        hold: &mut ReactionHold,
    ) -> Result<EventProcesses, EngineError> {
        let found = self.store.transact(|unit| -> Result<_, EngineError> {
            let Some(stored) = unit.due_event(seq)? else { return Ok(None) };
            let done = unit.totals().cursor.clone();
            let done = done.part.filter(|_| done.seq == seq).map(|part| part.hooks_done);
            let work = Work::new(unit, &self.rules, now())?;
            let mut hooks: Vec<Hook> =
                work.process_hooks(&stored.event)?.into_iter().cloned().collect();
            hooks.retain(|hook| done.as_ref().is_none_or(|done| !done.contains(&hook.name)));
            let task = work.task_of(&stored.event)?;
            Ok(Some((stored.event, hooks, task)))
        })?;
        let Some((event, hooks, task)) = found.filter(|(_, hooks, _)| !hooks.is_empty()) else {
            return Ok(EventProcesses::None);
        };
        match self.claim_event(hold, seq)? {
            EventClaim::Had => {}
            EventClaim::LookAgain => return Ok(EventProcesses::LookAgain),
            EventClaim::Others => return Ok(EventProcesses::Others),
        }
        let (root, depth) = match &event.cause {
            Some(cause) => (cause.root, cause.depth + 1),
            None => (event.id, 1),
        };
        let reaction = ReactionRun { lock: hold.lock(), event: event.id, root, depth };
        let point = Point::Event(event.body.kind().to_owned());
        let occasion = Occasion {
            point: &point,
            event: Some(&event),
            task: task.as_ref(),
            session: None,
            cancel: None,
            bench: None,
            changes: None,
            branches: None,
            delivery: None,
            reaction: Some(reaction),
            board: None,
        };
        let runs = self.run_hooks(&hooks, &occasion);
        Ok(EventProcesses::Ran(RanFor { event: event.id, runs }))
    }

    /// Runs the hooks of a point that have anything to do, and tells what came of each.
    pub(crate) fn run_hooks(&self, hooks: &[Hook], occasion: &Occasion<'_>) -> Vec<HookRun> {
        let homeless = |hook: &Hook| {
            let reason = "there is no project directory to run it in".to_owned();
            HookRun::unable(hook, occasion.point, HookStatus::NotStarted, reason)
        };
        match &self.runner {
            Some(runner) => turns::run_all(runner, hooks, occasion, &mut |_| {}),
            None => hooks.iter().map(homeless).collect(),
        }
    }

    /// Runs one hook as if `event` had happened, and records nothing.
    pub fn try_hook(
        &self,
        hook: &Hook,
        point: &Point,
        event: Option<&Event>,
        task: Option<&Task>,
    ) -> HookRun {
        let occasion = Occasion {
            point,
            event,
            task,
            session: None,
            cancel: None,
            bench: None,
            changes: None,
            branches: None,
            delivery: None,
            reaction: None,
            board: None,
        };
        let runs = self.run_hooks(std::slice::from_ref(hook), &occasion);
        let nothing = || HookRun::skipped(hook, "it was not run".to_owned());
        runs.into_iter().next().unwrap_or_else(nothing)
    }

    pub fn runner(&self) -> Option<&Runner> {
        self.runner.as_deref()
    }
}
