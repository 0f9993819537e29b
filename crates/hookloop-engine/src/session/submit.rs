//! From work that the gates have passed to a submission: the hooks of `before_submit`, one after
//! the other.
//!
//! A check that passed on the same files does not run again. That holds after a crash, and after
//! the agent fixed a failure of another hook without changing the files. Hooks that push or rebase
//! check the present state first, so they run each time.

use hookloop_agents::clipped;
use hookloop_core::builtin::Builtin;
use hookloop_core::delivery::Submission;
use hookloop_core::event::EventBody;
use hookloop_core::failure_fingerprint::failure_fingerprint;
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::hook_protocol::{HookStatus, HookVerdict};
use hookloop_core::inbox::one_line;
use hookloop_core::options::PipeOutput;
use hookloop_core::point::Point;
use hookloop_core::session::facts::{HookPointCompleted, TaskExit};
use hookloop_core::session::plan::counted;
use hookloop_core::session::{
    PipedOutput, PromptChannel, SessionOutcome, SubmissionEvaluated, SubmitVerdict,
};
use hookloop_core::task::Task;
use hookloop_git::repo::worktree::PlaceEntry;
use hookloop_git::step_error::{CommittedWork, StepError};
use hookloop_hooks::hook_context::{DeliveryFacts, merge_context};
use hookloop_hooks::hook_run::{HookRun, PIPED_MAX, piped};
use serde_json::Value;

use super::drive::SessionDriver;
use super::point::REASON_MAX;
use super::prompt_items::US;
use super::world::{PauseReason, SessionUpdate, SessionWorld};
use crate::error::EngineError;

/// How often hooks of a submission may change files that the gates had passed.
const REGATES_MAX: u32 = 10;
/// How often a submission is rebased because its base moved.
///
/// A base that moves faster than the gates run would cause endless rebases. The merge train tests
/// the work on the newest base anyway.
const REBASES_MAX: u32 = 3;
/// Maximum characters of an obstacle.
const OBSTACLE_MAX: usize = 400;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Prepares the task's own worktree, and runs the `session_start` hooks there.
    pub(super) fn settle(&mut self) -> Result<(), EngineError> {
        self.commit()?;
        let Some(task) = self.task.clone() else {
            // The claim was lost before the worktree was ready.
            self.pass_start();
            return Ok(());
        };
        let entered = self.world.enter(&task, PlaceEntry::First);
        if self.is_stopping() {
            return Ok(());
        }
        match entered {
            Ok(None) => {}
            Ok(Some(loss)) => self.note_loss(&task, loss)?,
            Err(trouble) => return self.leave_without_place(&trouble),
        }
        if let Err(damage) = self.check_place() {
            let reason = format!("no usable worktree: {damage}");
            return self.leave_task(TaskExit::Blocked, Some(reason));
        }
        self.see_files();
        // The agent runs the tests in its worktree, too.
        let setup = self.hooks_at(&Point::Setup);
        self.run_hooks(&setup, &Point::Setup)?;
        self.run_point(&Point::SessionStart)?;
        if self.is_stopping() {
            return Ok(());
        }
        let before = self.journal.project.read(|view| view.delivery(&task.id))?;
        if let Some(reason) = before.reason {
            let text = "This task was worked on before, and the work was returned. The work is in this \
                        directory. Fix what the reason names.";
            self.instruct(US, &Point::BeforeSubmit, text.to_owned());
            self.tell_reason(reason, before.returned_by);
        }
        self.pass_start();
        Ok(())
    }

    /// Adds the reason why earlier work was returned to the next prompt.
    ///
    /// The text of a person is a message. Everything else, such as output of tests, is data.
    fn tell_reason(&mut self, reason: String, person: Option<String>) {
        let (channel, text) = match &person {
            Some(person) => {
                let words = reason.strip_prefix(person.as_str());
                let words = words.and_then(|words| words.strip_prefix(": ")).unwrap_or(&reason);
                (PromptChannel::User, words)
            }
            None => (PromptChannel::CheckResult, reason.as_str()),
        };
        let text = clipped(text, PIPED_MAX);
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: person.unwrap_or_else(|| "returned".to_owned()),
            point: Point::BeforeSubmit.name().to_owned(),
            text,
            channel: Some(channel),
            ..PipedOutput::default()
        }));
    }

    /// Gives up a task whose worktree or forge cannot be used.
    ///
    /// It blocks the task for a person, and the session continues with others. After a retryable
    /// error the session ends instead.
    pub(super) fn leave_without_place(&mut self, trouble: &StepError) -> Result<(), EngineError> {
        let reason = format!("can't work on the task: {}", trouble.reason());
        if let StepError::Retry { .. } = trouble {
            let outcome = match self.journal.session.plan.worker {
                // An unreachable remote must not block every task for a person.
                Some(_) => {
                    self.leave_task(TaskExit::Released, Some(reason))?;
                    SessionOutcome::Interrupted
                }
                None => SessionOutcome::NeedsHuman { reason },
            };
            self.journal.note(EventBody::SessionEnding(outcome));
            return Ok(());
        }
        self.leave_task(TaskExit::Blocked, Some(reason))
    }

    fn pass_start(&mut self) {
        let point = Point::SessionStart.name().to_owned();
        self.journal.note(EventBody::HookPointCompleted(HookPointCompleted { point }));
    }

    /// Runs the remaining hooks of `before_submit`, and records the result.
    pub(super) fn submit(&mut self, pause_ms: u64) -> Result<(), EngineError> {
        self.commit()?;
        if pause_ms > 0 {
            let reason = PauseReason::Delivery;
            self.world.notice(SessionUpdate::Pause { ms: pause_ms, reason });
            self.world.pause(pause_ms);
            if self.is_stopping() {
                return Ok(());
            }
        }
        let Some(task) = self.task.clone() else {
            let reason = "there is no task to submit".to_owned();
            self.judge_submission(None, SubmitVerdict::Escalate { reason });
            return Ok(());
        };
        let hooks = self.hooks_at(&Point::BeforeSubmit);
        let mut context = SubmissionContext::default();
        for place in 0..=hooks.len() {
            let wrapped = self.world.wrap_up(&task);
            // A cancelled step says nothing about the task.
            if self.is_stopping() {
                return Ok(());
            }
            let wrapped = match wrapped {
                Ok(wrapped) => wrapped,
                Err(trouble) => {
                    self.give_up(trouble);
                    return Ok(());
                }
            };
            if wrapped.commits == 0 {
                self.submit_nothing();
                return Ok(());
            }
            // The proof is about the files of the commit that is submitted.
            let tree = self.world.tree_of_commit(&wrapped.head);
            let last = place.checked_sub(1).and_then(|last| hooks.get(last));
            if self.is_ungated(tree.as_deref()) {
                self.gate_again(last);
                return Ok(());
            }
            let Some(hook) = hooks.get(place) else {
                self.pass_submission(context, wrapped);
                return Ok(());
            };
            let is_excused = context.is_excused(hook) || self.has_followed_enough(hook);
            if is_excused {
                continue;
            }
            if let Some(values) = self.passed_before(hook, tree.as_deref()) {
                context.take_in_values(&values);
                context.passed.push(hook.name.clone());
                continue;
            }
            self.delivery = Some(context.facts(&wrapped, self.journal.session.agent()));
            let run = self.run_submit_hook(hook, tree);
            self.delivery = None;
            let Some(run) = run? else { return Ok(()) };
            if let Some(verdict) = self.stands_in_the_way(hook, &run, &task) {
                self.refuse_submission(context, hook, &run, verdict);
                return Ok(());
            }
            context.take_in(hook, &run);
        }
        Ok(())
    }

    /// Ends a submission whose branch has no change.
    fn submit_nothing(&mut self) {
        if self.must_change_files() {
            self.find_no_changes("your branch has no change that its base branch does not have");
        } else {
            self.judge_submission(None, SubmitVerdict::Pass { submission: None });
        }
    }

    /// Records that all hooks of the submission have passed.
    fn pass_submission(&mut self, mut context: SubmissionContext, wrapped: CommittedWork) {
        let passed = std::mem::take(&mut context.passed);
        let agent = self.journal.session.agent().to_owned();
        let remediations = Some(self.journal.session.remediations);
        let submission = context.submission(wrapped, agent);
        let submission = Some(Submission { remediations, ..submission });
        let verdict = SubmitVerdict::Pass { submission };
        let judged =
            SubmissionEvaluated { verdict, hook: None, passed, failure: None, obstacle: None };
        self.journal.note(EventBody::SubmissionEvaluated(judged));
    }

    /// Records that a hook of the submission does not let it pass.
    fn refuse_submission(
        &mut self,
        context: SubmissionContext,
        hook: &Hook,
        run: &HookRun,
        verdict: SubmitVerdict,
    ) {
        let is_block = verdict == SubmitVerdict::Block;
        if is_block {
            for (name, status, text) in context.piped {
                self.tell_hook_output(&name, &Point::BeforeSubmit, status, text);
            }
        }
        let failure = is_block.then(|| fingerprint(run));
        let hook = Some(hook.name.clone());
        let judged =
            SubmissionEvaluated { verdict, hook, passed: Vec::new(), failure, obstacle: None };
        self.journal.note(EventBody::SubmissionEvaluated(judged));
    }

    /// Runs one hook. Returns none if the hook was ended before its result.
    fn run_submit_hook(
        &mut self,
        hook: &Hook,
        tree: Option<String>,
    ) -> Result<Option<HookRun>, EngineError> {
        let gates = [hook.clone()];
        let lists = [(Point::BeforeSubmit, gates.to_vec())];
        let results = self.run_round(&lists, &gates)?;
        if self.is_stopping() {
            return Ok(None);
        }
        let run = results.runs.first().cloned();
        // A delivery step without work proves nothing.
        let is_proof =
            |run: &&HookRun| !(is_ours(hook) && run.outcome.status == HookStatus::Skipped);
        if let Some(run) = run.as_ref().filter(is_proof) {
            let tree = results.tree.clone().or(tree);
            self.note_receipt(hook, &Point::BeforeSubmit, run, tree, &results);
        }
        self.commit()?;
        Ok(run)
    }

    /// Returns the verdict of a run that prevents the submission, or none if the submission may
    /// continue.
    fn stands_in_the_way(
        &mut self,
        hook: &Hook,
        run: &HookRun,
        task: &Task,
    ) -> Option<SubmitVerdict> {
        match &run.outcome.verdict {
            HookVerdict::Pass => None,
            HookVerdict::Escalate { reason } => {
                Some(SubmitVerdict::Escalate { reason: clipped(reason, REASON_MAX) })
            }
            // An agent cannot fix a failed delivery step, nor a reviewer that cannot be reached.
            HookVerdict::Block { .. }
                if is_about_us(hook) && run.outcome.status != HookStatus::Blocked =>
            {
                let why = run.outcome.reason.as_deref().unwrap_or("it failed");
                let reason = format!("`{}` of task `{}`: {why}", hook.name, task.id);
                Some(SubmitVerdict::Retry { reason: clipped(&reason, REASON_MAX) })
            }
            // A damaged worktree is restored first, and the hook runs there.
            HookVerdict::Block { .. } if run.is_misconfigured() && self.check_place().is_ok() => {
                Some(SubmitVerdict::Escalate {
                    reason: clipped(&run.why_unable(&hook.handler), REASON_MAX),
                })
            }
            HookVerdict::Block { .. } if let Some(reason) = self.why_no_remediation(run) => {
                Some(SubmitVerdict::Escalate { reason })
            }
            HookVerdict::Block { .. } => {
                match (&hook.handler, &run.outcome.next_prompt) {
                    // The prompt of a built-in step is complete, so it needs no summary.
                    (HookHandler::Builtin(_) | HookHandler::Gatekeepers { .. }, Some(prompt)) => {
                        self.instruct(US, &Point::BeforeSubmit, prompt.clone());
                        if !run.stdout.is_empty() {
                            self.tell_check(&Point::BeforeSubmit, run, run.stdout.clone());
                        }
                    }
                    _ => drop(self.tell_blocked(&Point::BeforeSubmit, &[run], 1)),
                }
                Some(SubmitVerdict::Block)
            }
        }
    }

    /// Returns why the agent gets no further remediation turn for this failure, or none if it gets
    /// one.
    fn why_no_remediation(&self, run: &HookRun) -> Option<String> {
        let session = &self.journal.session;
        let (hook, turns) = (&run.hook, session.remediations);
        let failure = evidence(run);
        if session.submit_failure.as_deref() == Some(fingerprint(run).as_str()) {
            let reason =
                format!("`{hook}` fails in the same way after a remediation turn: {failure}");
            return Some(clipped(&reason, REASON_MAX));
        }
        (turns >= session.plan.limits.max_remediations).then(|| {
            let turns = counted(turns, "remediation turn", "remediation turns");
            clipped(&format!("`{hook}` still fails after {turns}: {failure}"), REASON_MAX)
        })
    }

    fn give_up(&mut self, trouble: StepError) {
        let verdict = match trouble {
            StepError::Block { prompt, .. } => {
                let obstacle = Some(one_line(&prompt, OBSTACLE_MAX));
                self.instruct(US, &Point::BeforeSubmit, prompt);
                let verdict = SubmitVerdict::Block;
                let judged = SubmissionEvaluated {
                    verdict,
                    hook: None,
                    passed: Vec::new(),
                    failure: None,
                    obstacle,
                };
                self.journal.note(EventBody::SubmissionEvaluated(judged));
                return;
            }
            StepError::Retry { why } => SubmitVerdict::Retry { reason: why },
            StepError::NeedsHuman { why } => SubmitVerdict::Escalate { reason: why },
        };
        self.judge_submission(None, verdict);
    }

    /// Whether the files differ from those that the gates passed.
    fn is_ungated(&self, tree: Option<&str>) -> bool {
        let gated = self.journal.session.gated_tree.as_deref();
        gated.is_some() && gated != tree
    }

    fn gate_again(&mut self, by: Option<&Hook>) {
        let verdict = match self.journal.session.regates >= REGATES_MAX {
            false => SubmitVerdict::Regate,
            true => SubmitVerdict::Escalate {
                reason: format!("files changed {REGATES_MAX} times while they were submitted"),
            },
        };
        self.judge_submission(by, verdict);
    }

    /// Returns the values of a hook that passed on the same files, or none if it did not.
    fn passed_before(&self, hook: &Hook, tree: Option<&str>) -> Option<Value> {
        let is_of = |receipt: &hookloop_core::session::Receipt| {
            receipt.gate == hook.name
                && receipt.point == Point::BeforeSubmit.name()
                && receipt.is_green()
                && receipt.tree.as_deref() == tree
        };
        if tree.is_none() || is_ours(hook) {
            return None;
        }
        let receipts = &self.journal.session.receipts;
        receipts.iter().rev().find(|receipt| is_of(receipt)).map(|receipt| receipt.context.clone())
    }

    fn has_followed_enough(&self, hook: &Hook) -> bool {
        let is_rebase = matches!(hook.handler, HookHandler::Builtin(Builtin::RebaseOnMain));
        is_rebase && self.journal.session.regates >= REBASES_MAX
    }

    fn judge_submission(&mut self, hook: Option<&Hook>, verdict: SubmitVerdict) {
        let hook = hook.map(|hook| hook.name.clone());
        self.journal.note(EventBody::SubmissionEvaluated(SubmissionEvaluated {
            verdict,
            hook,
            passed: Vec::new(),
            failure: None,
            obstacle: None,
        }));
    }
}

/// Returns a fingerprint that is equal for the same failure of the same hook.
fn fingerprint(run: &HookRun) -> String {
    failure_fingerprint(&run.hook, &evidence(run))
}

/// Returns the reason, the prompt and the output of a run that blocks.
fn evidence(run: &HookRun) -> String {
    let printed = [run.stderr.trim(), run.stdout.trim()];
    let parts = run.blocking_words().into_iter().chain(printed).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

/// Whether the hook is a delivery step, which checks the present state before it acts.
fn is_ours(hook: &Hook) -> bool {
    use Builtin::{CreatePr, Merge, RebaseOnMain};
    matches!(hook.handler, HookHandler::Builtin(RebaseOnMain | CreatePr | Merge))
}

/// Whether a failure of the hook, other than a block, says nothing about the work.
fn is_about_us(hook: &Hook) -> bool {
    is_ours(hook)
        || matches!(hook.handler, HookHandler::Gatekeepers { .. } | HookHandler::Http { .. })
}

/// The results of earlier hooks, for later hooks and for the submission.
#[derive(Debug, Default)]
struct SubmissionContext {
    url: Option<String>,
    number: Option<u64>,
    skipped: Vec<String>,
    /// Hooks that checked the files and passed.
    passed: Vec<String>,
    /// The values of all hooks so far.
    values: Value,
    /// Output of passed hooks that request it, for the agent if the work is returned: name, status,
    /// text.
    piped: Vec<(String, HookStatus, String)>,
}

impl SubmissionContext {
    fn take_in(&mut self, hook: &Hook, run: &HookRun) {
        // A branch without a request is still submitted, so hooks that need that step run.
        if run.outcome.status == HookStatus::Skipped && !is_ours(hook) {
            self.skipped.push(hook.name.clone());
        }
        let is_check = !is_ours(hook);
        if is_check
            && run.outcome.status == HookStatus::Passed
            && run.outcome.verdict == HookVerdict::Pass
        {
            self.passed.push(hook.name.clone());
        }
        if hook.options.pipe_output != PipeOutput::Never
            && let Some(text) = piped(hook, run)
        {
            self.piped.push((hook.name.clone(), run.outcome.status, text));
        }
        self.take_in_values(&run.outcome.values);
    }

    fn take_in_values(&mut self, values: &Value) {
        merge_context(&mut self.values, values);
        let url =
            ["pr_url", "url"].iter().find_map(|name| values.get(name)).and_then(Value::as_str);
        self.url = url.map(str::to_owned).or(self.url.take());
        self.number = values.get("number").and_then(Value::as_u64).or(self.number);
    }

    /// Whether a hook needs another hook that was skipped.
    fn is_excused(&self, hook: &Hook) -> bool {
        hook.options.needs.iter().any(|need| self.skipped.contains(need))
    }

    /// Returns the facts about the delivery for the next hook.
    fn facts(&self, wrapped: &CommittedWork, agent: &str) -> DeliveryFacts {
        DeliveryFacts {
            url: self.url.clone(),
            number: self.number,
            head: Some(wrapped.head.clone()),
            commits: Some(wrapped.commits),
            agent: Some(agent.to_owned()),
            context: self.values.clone(),
        }
    }

    fn submission(self, wrapped: CommittedWork, agent: String) -> Submission {
        let CommittedWork { branch, head, base, commits } = wrapped;
        Submission {
            branch,
            head,
            base,
            url: self.url,
            number: self.number,
            proven: false,
            commits: Some(commits),
            agent: Some(agent),
            remediations: None,
        }
    }
}
