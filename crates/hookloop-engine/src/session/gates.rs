//! Decides whether an iteration was the last one: by the stop conditions, then by the gates.

use std::collections::BTreeSet;

use hookloop_agents::clipped;
use hookloop_core::event::EventBody;
use hookloop_core::excerpt::first_names;
use hookloop_core::feedback::{CheckChanges, GateFailure, GateOutput, feedback};
use hookloop_core::gates::{self, GateResult, GateRun, GatesVerdict};
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::hook_protocol::{HookStatus, HookVerdict, SKIP};
use hookloop_core::options::PipeOutput;
use hookloop_core::point::Point;
use hookloop_core::promise::{self, NearMiss, Promise};
use hookloop_core::session::facts::{FILES_CHANGED, UnclaimedWorkChecked};
use hookloop_core::session::stop::{self, ClaimJudge, StopCondition, ValidationResult};
use hookloop_core::session::{
    GatesEvaluated, JointVerdict, PipedOutput, PromptChannel, SessionOutcome, StopDecision,
    StopEvaluated, StopWhen,
};
use hookloop_hooks::hook_run::{HookRun, PIPED_MAX, piped};

use super::drive::SessionDriver;
use super::gate_results::{GateResults, SETUP_FAILED, named_files};
use super::point::REASON_MAX;
use super::prompt_items::US;
use super::world::SessionWorld;
use crate::error::EngineError;

/// Maximum bytes of feedback to the agent about one gate, and about all gates.
const FEEDBACK_MAX: usize = 16 * 1024;
const FEEDBACKS_MAX: usize = 64 * 1024;
/// The reason to continue after a turn whose final message has no promise.
const NO_REPORT: &str = "the agent reported none of COMPLETE, BLOCKED and ESCALATE";
/// Maximum gates that the instruction to fix them names.
const GATES_TOLD_MAX: usize = 20;
/// Maximum gates of one result in the record of a verdict.
const GATES_NAMED_MAX: usize = 256;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Whether the current work has gates or validation rules.
    pub(crate) fn has_gates(&self) -> bool {
        [Point::Stop, Point::Validation].iter().any(|point| !self.hooks_at(point).is_empty())
    }

    /// Returns the judge of the agent's promises.
    pub(super) fn claim_judge(&self) -> ClaimJudge {
        if self.has_gates() { ClaimJudge::Gates } else { ClaimJudge::Nobody }
    }

    /// Returns the promises of a message that count here, or the near misses if none does.
    ///
    /// `alone` are the promises alone on their line, as the agent's adapter found them in the whole
    /// message.
    pub(crate) fn counted_promises(
        &self,
        alone: Vec<Promise>,
        message: &str,
    ) -> (Vec<Promise>, Vec<NearMiss>) {
        let mut found = promise::read(message);
        if !alone.is_empty() {
            found.alone = alone;
        }
        let counted = found.counted(self.has_gates());
        if counted.is_empty() { (counted, found.near_misses) } else { (counted, Vec::new()) }
    }

    /// Evaluates the stop conditions in order, and records the decision.
    pub(super) fn decide(&mut self) -> Result<(), EngineError> {
        let last = self.journal.session.last.as_ref();
        let promises = last.map_or_else(Vec::new, |last| last.promises.clone());
        let (by, mut said) = self.ask_stop_conditions(&promises)?;
        let claims = &self.journal.session.claims;
        if let (StopDecision::Escalate, Some(why)) =
            (said.decision, claims.iter().find_map(|claimed| claimed.reason.as_deref()))
        {
            said.reason = format!("{}: {why}", said.reason);
        } else if let (StopDecision::Escalate, Some(last)) =
            (said.decision, &self.journal.session.last)
            && stop::by_promise(&last.promises, self.claim_judge()).as_ref() == Some(&said)
            && let Some(words) = stop::last_words(&last.message)
        {
            said.reason = format!("{}: {words}", said.reason);
        }
        if let (StopDecision::Continue, Some(last)) = (said.decision, &self.journal.session.last) {
            for near_miss in &last.near_misses {
                said.reason = format!("{}; not a report: {near_miss}", said.reason);
            }
        }
        // A condition that was cancelled has not decided, nor has one without the task's files.
        if self.is_stopping() || self.check_place().is_err() {
            return Ok(());
        }
        if let Some(prompt) = &said.next_prompt {
            self.instruct(&by, &Point::StopWhen, prompt.clone());
        }
        if let Some(output) = &said.output {
            self.tell_output(&by, output);
        }
        let failing = match (self.validated.is_empty(), said.decision) {
            (true, _) => None,
            (false, StopDecision::Continue) => Some(self.tell_failing_rules()),
            (false, _) => Some(stop::failing(&self.validated)),
        };
        let (decision, reason) = (said.decision, clipped(&said.reason, REASON_MAX));
        let contradicting =
            if stop::contradiction(&promises).is_some() { promises } else { Vec::new() };
        let decided = StopEvaluated { decision, reason, by, failing, contradicting };
        self.journal.note(EventBody::StopEvaluated(decided));
        Ok(())
    }

    /// Returns the decision of the stop conditions about these promises, and the deciding
    /// condition.
    pub(crate) fn ask_stop_conditions(
        &mut self,
        promises: &[Promise],
    ) -> Result<(String, stop::StopVote), EngineError> {
        let ways = self.stop_conditions()?;
        let mut failed = None;
        let decided = stop::decide(&ways, |way| match self.ask_stop_condition(way, promises) {
            Ok(said) => said,
            Err(error) => {
                let why = error.to_string();
                failed = Some(error);
                Err(why)
            }
        });
        failed.map_or(Ok(decided), Err)
    }

    /// Whether the task has registered stop hooks, or the project has stop hooks.
    pub(crate) fn has_stop_hooks(&self) -> Result<bool, EngineError> {
        let own = &self.journal.session.plan.stop_when;
        let Some(task) = &self.task else { return Ok(false) };
        let registered = self.journal.project.read(|view| view.stop_hooks(&task.id))?;
        Ok(!registered.is_empty() || own.iter().any(StopWhen::is_hook))
    }

    /// Returns the stop conditions: those registered for the task, else the session's.
    ///
    /// A registration of an agent does not overrule the stop hooks of a project.
    fn stop_conditions(&self) -> Result<Vec<StopCondition>, EngineError> {
        let own = &self.journal.session.plan.stop_when;
        let task = self.task.as_ref().filter(|_| !own.iter().any(StopWhen::is_hook));
        let registered = match task {
            Some(task) => self.journal.project.read(|view| view.stop_hooks(&task.id))?,
            None => Vec::new(),
        };
        Ok(match registered.is_empty() {
            true => own.iter().map(StopCondition::from).collect(),
            false => registered
                .into_iter()
                .map(|hook| StopCondition { name: hook.what.id, when: hook.what.hook_type.way() })
                .collect(),
        })
    }

    /// Evaluates one stop condition. The inner error is the reason why it could not decide.
    fn ask_stop_condition(
        &mut self,
        way: &StopWhen,
        promises: &[Promise],
    ) -> Result<Result<stop::StopVote, String>, EngineError> {
        let promised = stop::by_promise(promises, self.claim_judge());
        let nothing = |what: &str| stop::StopVote::new(StopDecision::Continue, what);
        Ok(Ok(match way {
            StopWhen::Turn => stop::StopVote::new(StopDecision::Complete, "the turn has ended"),
            StopWhen::Promise => promised.unwrap_or_else(|| nothing(NO_REPORT)),
            StopWhen::Default => match promised {
                Some(said) => said,
                None if self.hooks_at(&Point::Validation).is_empty() => nothing(NO_REPORT),
                None => self.validate()?,
            },
            StopWhen::Validation => self.validate()?,
            StopWhen::Tasks => match self.journal.project.read(|view| view.open_tasks())? {
                0 => stop::StopVote::new(StopDecision::Complete, "no task is open"),
                open => nothing(&format!("{open} tasks are open")),
            },
            StopWhen::Hook(name) => return self.ask_hook(name),
        }))
    }

    /// Runs a stop hook of the project.
    fn ask_hook(&mut self, name: &str) -> Result<Result<stop::StopVote, String>, EngineError> {
        // The hook gets the current results of the rules.
        if self.validated.is_empty() {
            let voted = self.validate()?;
            if voted.decision == StopDecision::Escalate {
                return Ok(Ok(voted));
            }
        }
        let mut hooks = self.hooks_at(&Point::StopWhen);
        hooks.retain(|hook| hook.name == name);
        if hooks.is_empty() {
            return Ok(Err("there is no such hook".to_owned()));
        }
        let runs = self.run_hooks(&hooks, &Point::StopWhen)?;
        let Some(run) = runs.into_iter().next() else {
            return Ok(Err("it was not run".to_owned()));
        };
        let reason = run.outcome.reason.clone();
        let why = |usual: &str| reason.clone().unwrap_or_else(|| usual.to_owned());
        let said = match (&run.outcome.status, &run.outcome.verdict) {
            (_, HookVerdict::Escalate { reason }) => {
                stop::StopVote::new(StopDecision::Escalate, reason.clone())
            }
            // A skip that the hook's definition does not allow is no permission to complete.
            (HookStatus::Passed, HookVerdict::Pass) if run.outcome.ignored.contains(&SKIP) => {
                stop::StopVote::new(StopDecision::Continue, why("it had nothing to say"))
            }
            (HookStatus::Passed, HookVerdict::Pass) => {
                stop::StopVote::new(StopDecision::Complete, why("it says so"))
            }
            (HookStatus::Blocked, HookVerdict::Block { feedback }) => {
                // A hook that blocks by its exit code has printed the reason, which is data.
                let is_told = run.ran.as_ref().is_some_and(|ran| ran.exit_code == Some(2));
                let next_prompt = run.outcome.next_prompt.clone();
                let output = feedback.clone();
                stop::StopVote {
                    output: (is_told && next_prompt.is_none()).then_some(output),
                    next_prompt,
                    ..stop::StopVote::new(StopDecision::Continue, why("it says so"))
                }
            }
            (HookStatus::Skipped, _) => {
                stop::StopVote::new(StopDecision::Continue, why("it had nothing to say"))
            }
            (status, _) => return Ok(Err(why(status.name()))),
        };
        Ok(Ok(said))
    }

    /// Runs the validation rules on the current files.
    fn validate(&mut self) -> Result<stop::StopVote, EngineError> {
        let rules = self.hooks_at(&Point::Validation);
        if rules.is_empty() {
            return Ok(stop::by_validation(&[]));
        }
        let proof = self.run_gates(&[(Point::Validation, rules.clone())])?;
        self.note_receipts(&rules, &Point::Validation, &proof);
        let judged = verdict(&rules, &proof.runs);
        let validated = |(run, result): (&HookRun, &GateResult)| ValidationResult {
            rule: run.hook.clone(),
            result: *result,
        };
        self.validated = proof.runs.iter().zip(&judged.results).map(validated).collect();
        let leak = proof.leaks.values().next();
        let leak = leak.map(|reason| stop::StopVote::new(StopDecision::Escalate, reason.clone()));
        self.proof = Some(proof);
        Ok(leak.unwrap_or_else(|| stop::by_validation(&self.validated)))
    }

    /// Sends the failing rules to the agent, which continues, and returns the failing checks.
    fn tell_failing_rules(&mut self) -> Vec<String> {
        let Some(proof) = self.proof.take() else { return Vec::new() };
        let rules = self.hooks_at(&Point::Validation);
        let judged = verdict(&rules, &proof.runs);
        let blocked = proof.blocked(&judged);
        let failing = self.tell_blocked(&Point::Validation, &blocked, proof.runs.len());
        self.proof = Some(proof);
        failing.into_iter().collect()
    }

    /// Runs the gates on a completion claim, and records the verdict.
    pub(super) fn gate(&mut self) -> Result<(), EngineError> {
        let gates = self.hooks_at(&Point::Stop);
        let rules = self.hooks_at(&Point::Validation);
        let able = self.executed.clone();
        let mut proof = match self.proof.take().filter(|proof| proof.is_stable && !rules.is_empty())
        {
            Some(before) => self.run_gates_after_rules(&gates, &rules, before)?,
            None => self.run_all_gates(&gates, &rules)?,
        };
        if self.is_stopping() || self.check_place().is_err() {
            return Ok(());
        }
        self.excuse_known_failures(&gates, &mut proof)?;
        if verdict(&[&gates[..], &rules[..]].concat(), &proof.runs).verdict == JointVerdict::Pass {
            self.check_base_tests(&gates, &mut proof)?;
            if self.is_stopping() {
                return Ok(());
            }
        }
        if verdict(&[&gates[..], &rules[..]].concat(), &proof.runs).verdict == JointVerdict::Pass {
            self.check_strength(&gates, &mut proof)?;
            if self.is_stopping() {
                return Ok(());
            }
        }
        self.note_receipts(&gates, &Point::Stop, &proof);
        self.note_receipts(&rules, &Point::Validation, &proof);
        let all: Vec<Hook> = gates.into_iter().chain(rules).collect();
        self.note_executed(&proof.runs);
        let has_base_tests = !proof.base_tests.is_empty();
        let is_measured = !proof.strength.is_empty();
        let judged = self.judge(&all, proof, &able);
        let has_passed = judged.verdict == JointVerdict::Pass;
        if has_passed && has_base_tests {
            self.world.note_proven_tests();
        } else if has_passed && is_measured {
            self.world.note_measured_work();
        }
        self.journal.note(EventBody::GatesEvaluated(judged));
        // Submitted work is compared with its base at the submission.
        let session = &self.journal.session;
        let is_compared = has_passed
            && !session.plan.delivers
            && !matches!(session.outcome, Some(SessionOutcome::Limit { .. }));
        if is_compared && self.must_change_files() && self.has_changed_nothing() {
            let finding = match self.task {
                Some(_) => "no file changed since you were given this task",
                None => "no file changed since this session began",
            };
            self.find_no_changes(finding);
        }
        Ok(())
    }

    /// Runs the gates on work that the agent did not report as complete.
    ///
    /// The result is a record for the person who is needed next, and completes nothing.
    pub(super) fn check_unclaimed(&mut self) -> Result<(), EngineError> {
        let gates = self.hooks_at(&Point::Stop);
        let rules = self.hooks_at(&Point::Validation);
        let proof = self.run_all_gates(&gates, &rules)?;
        if self.is_stopping() || self.check_place().is_err() {
            return Ok(());
        }
        self.note_receipts(&gates, &Point::Stop, &proof);
        self.note_receipts(&rules, &Point::Validation, &proof);
        let all: Vec<Hook> = gates.into_iter().chain(rules).collect();
        let judged = verdict(&all, &proof.runs);
        let mut failing = judged.names(GateResult::Blocked);
        failing.truncate(GATES_NAMED_MAX);
        let has_passed = !judged.names(GateResult::Passed).is_empty();
        let checked = UnclaimedWorkChecked {
            gates: all.len() as u32,
            passed: judged.verdict == JointVerdict::Pass && has_passed && proof.is_stable,
            changed: !self.has_changed_nothing(),
            failing,
        };
        self.journal.note(EventBody::UnclaimedWorkChecked(checked));
        Ok(())
    }

    /// Runs the gates, and reuses the results of rules on the same files.
    ///
    /// If the gates change the files, the rules run again.
    fn run_gates_after_rules(
        &mut self,
        gates: &[Hook],
        rules: &[Hook],
        before: GateResults,
    ) -> Result<GateResults, EngineError> {
        let is_same = |tree: &Option<String>| tree.is_some() && *tree == before.tree;
        if !is_same(&self.world.tree()) {
            return self.run_all_gates(gates, rules);
        }
        if gates.is_empty() {
            return Ok(before);
        }
        let mut proof = self.run_gates(&[(Point::Stop, gates.to_vec())])?;
        if !is_same(&proof.tree) {
            return self.run_all_gates(gates, rules);
        }
        proof.runs.extend(before.runs);
        proof.leaks.extend(before.leaks);
        Ok(proof)
    }

    fn run_all_gates(
        &mut self,
        gates: &[Hook],
        rules: &[Hook],
    ) -> Result<GateResults, EngineError> {
        if gates.is_empty() && rules.is_empty() {
            let files = self.world.look_at_files().map(|look| look.digest);
            return Ok(GateResults { files, is_stable: true, ..GateResults::default() });
        }
        self.run_gates(&[(Point::Stop, gates.to_vec()), (Point::Validation, rules.to_vec())])
    }

    /// Returns the verdict of the gates, and sends feedback to the agent if they block.
    fn judge(
        &mut self,
        gates: &[Hook],
        proof: GateResults,
        able: &BTreeSet<String>,
    ) -> GatesEvaluated {
        let judged = verdict(gates, &proof.runs);
        let blocked = proof.blocked(&judged);
        let mut failing = self.tell_blocked(&Point::Stop, &blocked, proof.runs.len());
        self.pipe_gates(gates, &proof.runs, &judged.verdict);
        let mut unstable = None;
        if failing.is_empty() && !proof.is_stable {
            let files = named_files(&proof.changed);
            unstable = proof.rewriting_gates(&files);
            if unstable.is_none() {
                let what = format!(
                    "files changed while the gates ran, each time: {files}. The results of the gates are not about \
                     one state of the files. Stop the process that writes them"
                );
                self.instruct(US, &Point::Stop, what);
                failing.insert(format!("{FILES_CHANGED}{files}"));
            }
        }
        let unable = blocked.iter().find_map(|run| {
            let gate = gates.iter().find(|gate| gate.name == run.hook)?;
            let reason = run.outcome.reason.as_deref().unwrap_or_default();
            // The agent can rarely fix a setup.
            let is_of_setup = reason.contains(SETUP_FAILED);
            let is_unable = is_command(gate)
                && run.is_misconfigured()
                && (is_of_setup || !able.contains(&run.hook));
            is_unable.then(|| run.why_unable(&gate.handler))
        });
        let named = |result| {
            let mut names = judged.names(result);
            names.truncate(GATES_NAMED_MAX);
            names
        };
        GatesEvaluated {
            passed: named(GateResult::Passed),
            skipped: named(GateResult::Skipped),
            failed: named(GateResult::Failed),
            verdict: match judged.verdict {
                JointVerdict::Escalate { reason } => {
                    JointVerdict::Escalate { reason: clipped(&reason, REASON_MAX) }
                }
                // A gate that cannot run does not prove the work wrong. A person decides, before
                // another turn costs money.
                JointVerdict::Block if let Some(reason) = unable => {
                    JointVerdict::Escalate { reason: clipped(&reason, REASON_MAX) }
                }
                JointVerdict::Pass if let Some(reason) = unstable => {
                    JointVerdict::Escalate { reason: clipped(&reason, REASON_MAX) }
                }
                JointVerdict::Pass if !failing.is_empty() => JointVerdict::Block,
                verdict => verdict,
            },
            gates: gates.len() as u32,
            tree: proof.tree,
            files: proof.files,
            failing: failing.into_iter().collect(),
        }
    }

    /// Records the gates whose command was executed here.
    ///
    /// If such a command can no longer be executed, the agent's own change is the cause. The agent
    /// gets this feedback once.
    fn note_executed(&mut self, runs: &[HookRun]) {
        for run in runs {
            if run.is_misconfigured() {
                self.executed.remove(&run.hook);
            } else if run.ran.as_ref().is_some_and(|ran| ran.exit_code.is_some()) {
                self.executed.insert(run.hook.clone());
            }
        }
    }

    /// Adds the output of passing gates that request it to the next prompt.
    ///
    /// In a session without tasks, the final turn gets it. After a completed task it is dropped,
    /// because the next prompt is for another task.
    fn pipe_gates(&mut self, gates: &[Hook], runs: &[HookRun], verdict: &JointVerdict) {
        let session = &self.journal.session;
        let is_heard = match verdict {
            JointVerdict::Block => true,
            JointVerdict::Pass => session.task.is_none() && session.deliveries == 0,
            JointVerdict::Escalate { .. } => false,
        };
        if !is_heard {
            return;
        }
        let asks = |hook: &&Hook| hook.options.pipe_output != PipeOutput::Never;
        for hook in gates.iter().filter(asks) {
            let is_own =
                |run: &&HookRun| run.hook == hook.name && run.outcome.verdict == HookVerdict::Pass;
            let Some(run) = runs.iter().find(is_own) else { continue };
            if let Some(text) = piped(hook, run) {
                let status = run.outcome.status;
                self.tell_hook_output(&hook.name, &Point::Stop, status, text);
            }
        }
    }

    /// Sends the blocking results and their changes since the last feedback to the agent.
    ///
    /// Returns the failing checks.
    pub(super) fn tell_blocked(
        &mut self,
        point: &Point,
        blocked: &[&HookRun],
        count: usize,
    ) -> BTreeSet<String> {
        let before = self.journal.session.failing.clone();
        let mut all = BTreeSet::new();
        let mut room = FEEDBACKS_MAX;
        let mut changes = None;
        let mut told_of = Vec::new();
        for run in blocked {
            let own = |failing: &BTreeSet<String>| -> BTreeSet<String> {
                let prefix = format!("{}: ", run.hook);
                let is_own = |check: &&String| **check == run.hook || check.starts_with(&prefix);
                failing.iter().filter(is_own).cloned().collect()
            };
            let before = before.as_ref().map(own);
            let said = match &run.outcome.verdict {
                HookVerdict::Block { feedback } => feedback.as_str(),
                _ => "",
            };
            let output = if run.printed.trim().is_empty() {
                GateOutput::from(said)
            } else {
                GateOutput { text: run.printed.trim(), left_out: &run.left_out }
            };
            let failure = GateFailure {
                gate: &run.hook,
                reason: run.outcome.reason.as_deref(),
                output,
                records: run.checks.as_ref(),
                before: before.as_ref(),
            };
            let told = feedback(&failure, FEEDBACK_MAX.min(room));
            room = room.saturating_sub(told.text.len());
            all.extend(told.failing);
            changes = match (changes, told.changes) {
                (Some(sum), Some(more)) => Some(CheckChanges::plus(sum, more)),
                (sum, more) => sum.or(more),
            };
            told_of.push((*run, told.text));
        }
        if !blocked.is_empty() {
            let text = self.summary(point, blocked, count, changes);
            self.instruct(US, point, text);
        }
        for (run, text) in told_of {
            if let Some(prompt) = &run.outcome.next_prompt {
                self.instruct(&run.hook, point, prompt.clone());
            }
            self.tell_check(point, run, text);
        }
        all
    }

    /// Returns the instruction to an agent whose work did not pass: the reason and the next step.
    fn summary(
        &self,
        point: &Point,
        blocked: &[&HookRun],
        count: usize,
        changes: Option<CheckChanges>,
    ) -> String {
        let last = self.journal.session.last.as_ref();
        let has_reported = last.is_some_and(|last| last.promises.contains(&Promise::Complete));
        let hook_context = match point {
            Point::BeforeSubmit => "Your work was about to be submitted.",
            _ if has_reported => "You reported COMPLETE.",
            _ => "hookloop checked the files as you left them.",
        };
        let names: Vec<&str> = blocked.iter().map(|run| run.hook.as_str()).collect();
        let names = first_names(&names, GATES_TOLD_MAX);
        let gates = if count == 1 { "gate" } else { "gates" };
        let changes = changes.map_or_else(String::new, |changes| format!(" {changes}."));
        let failed = blocked.len();
        format!(
            "{hook_context} {failed} of {count} {gates} failed: {names}.{changes} Fix the cause."
        )
    }

    /// Adds the output of a stop hook that continues the loop to the next prompt, as data.
    fn tell_output(&mut self, hook: &str, output: &str) {
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: hook.to_owned(),
            point: Point::StopWhen.name().to_owned(),
            text: clipped(output, PIPED_MAX),
            channel: Some(PromptChannel::CheckResult),
            ..PipedOutput::default()
        }));
    }
}

/// Returns the joint verdict of these gate runs.
pub(super) fn verdict(gates: &[Hook], runs: &[HookRun]) -> GatesVerdict {
    let group = |run: &HookRun| {
        let gate = gates.iter().find(|gate| gate.name == run.hook);
        gate.and_then(|gate| gate.options.any_of.as_deref())
    };
    let runs: Vec<GateRun<'_>> = runs
        .iter()
        .map(|run| GateRun { name: &run.hook, any_of: group(run), outcome: &run.outcome })
        .collect();
    gates::verdict(&runs)
}

/// Whether a gate starts a program of the project or of the machine.
fn is_command(gate: &Hook) -> bool {
    matches!(gate.handler, HookHandler::Command(_) | HookHandler::Builtin(_))
}
