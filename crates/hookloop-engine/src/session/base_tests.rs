//! The tests of the base against the work: an agent that weakens a test has not done its work.
//!
//! After the gates passed on the work, a gate with `base_tests` runs once more: on the sources of the work with the
//! tests, the configuration of test runners and the test settings of the base. A check that holds in only one of the
//! runs is a finding.
//!
//! `test_comparison` has the findings, `known_failures` the checks that failed before the work, `expectation_verdict`
//! the review of changed expectations.

mod expectation_verdict;
mod known_failures;
mod test_comparison;

use hookloop_agents::clipped;
use hookloop_core::excerpt::first_names;
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::{HookOutcome, HookStatus, HookVerdict};
use hookloop_core::options::{BaseTestRules, ExpectationPolicy};
use hookloop_core::point::Point;
use hookloop_core::session::facts::{
    BaseTests, ExpectationVerdict, FINDINGS_MAX, FindingKind, TestFinding, by_cause, digest_of_all,
};
use hookloop_core::task::Task;
use hookloop_hooks::hook_run::HookRun;

use self::test_comparison::{TestRuns, broken_files, findings};
use super::base_plan::{self, BaseRunPlan, PatternReach};
use super::drive::SessionDriver;
use super::gate_results::GateResults;
use super::session_room::leaves_files;
use super::world::{RoomEntry, SessionUpdate, SessionWorld};
use crate::error::EngineError;

/// Maximum checks that a reason names.
const NAMED_MAX: usize = 5;
/// Maximum repetitions of a run without test files that do not build.
const REBUILDS_MAX: usize = 2;
/// Maximum bytes of a test's text in the feedback to the agent.
const FEEDBACK_TEXT_MAX: usize = 600;
const RESTORE_TESTS: &str = "hookloop also ran the tests as they were before your work, against your sources. These no \
                             longer hold. Restore them, or report ESCALATE with the reason why they have to change.\n";
const SOLVE_THE_TASK: &str = "These lines of your sources depend on the tests: they repeat their values, or ask \
                              whether a test runs. Solve the task for all inputs, or report ESCALATE with the reason \
                              why the lines are needed.\n";

/// A run of a gate with the tests of the base.
struct BaseRun {
    run: HookRun,
    /// The test files that don't build with the sources of the work. The run had those of the work instead.
    broken: Vec<String>,
}

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Runs the tests of the base beside the gates that passed, and changes the results of those with findings.
    pub(super) fn check_base_tests(
        &mut self,
        gates: &[Hook],
        results: &mut GateResults,
    ) -> Result<(), EngineError> {
        // The same for all gates: they run in boxes, and change nothing outside.
        let mut surroundings = None;
        for gate in gates {
            let Some(rules) = gate.options.base_tests.clone() else { continue };
            let position = results
                .runs
                .iter()
                .position(|run| run.hook == gate.name && run.outcome.status == HookStatus::Passed);
            let Some(position) = position else { continue };
            if self.is_stopping() {
                return Ok(());
            }
            let run = results.runs[position].clone();
            let around =
                surroundings.get_or_insert_with(|| self.world.changed_surroundings()).clone();
            let tests = match around {
                Ok(around) => {
                    self.base_tests_of(gate, &rules, (&run, around), results.tree.as_deref())?
                }
                Err(why) => Err(why),
            };
            let outcome = match tests {
                Ok(mut tests) => {
                    tests.known_failures =
                        results.known_failures.get(&gate.name).copied().unwrap_or_default();
                    self.review_expectations(&rules, results.tree.as_deref(), &mut tests);
                    let outcome = self.outcome_of(&tests);
                    results.base_tests.insert(gate.name.clone(), tests);
                    outcome
                }
                Err(why) => {
                    let reason = format!("the tests of the base can't run: {why}");
                    Some(escalated(reason))
                }
            };
            if let Some(outcome) = outcome {
                let run = &mut results.runs[position];
                run.outcome = outcome;
                // The output of the run that passed explains nothing.
                (run.printed, run.left_out) = (String::new(), Vec::new());
            }
        }
        Ok(())
    }

    /// Returns the tests of the base beside one gate. `found` are the findings that all gates have. The inner error is
    /// for a person.
    fn base_tests_of(
        &mut self,
        gate: &Hook,
        rules: &BaseTestRules,
        (run, mut found): (&HookRun, Vec<TestFinding>),
        tree: Option<&str>,
    ) -> Result<Result<BaseTests, String>, EngineError> {
        let Some(tree) = tree else {
            return Ok(Err("the tree of the work is unknown".to_owned()));
        };
        let planned = match self.world.plan_base_run(rules, tree) {
            Ok(Some(planned)) => planned,
            Ok(None) => return Ok(Ok(BaseTests::default())),
            Err(why) => return Ok(Err(why)),
        };
        let mut tests = BaseTests {
            base: Some(planned.base.clone()),
            tree: planned.tree.clone(),
            unread: planned.unread,
            ..BaseTests::default()
        };
        found.extend(planned.evidence.signs.iter().cloned());
        if planned.tree.is_some() {
            let base_run = match self.run_base(gate, (&planned, tree), &mut tests)? {
                Ok(run) => run,
                Err(why) => return Ok(Err(why)),
            };
            tests.checks = base_run.run.checks.as_ref().map(|checks| checks.counts);
            let known = self.names_before(gate);
            let runs = TestRuns {
                base: base_run.run.checks.as_ref(),
                has_base_passed: base_run.run.outcome.status == HookStatus::Passed
                    || self.fails_as_before(gate, &base_run.run),
                known: &known,
                work: run.checks.as_ref(),
                broken: &base_run.broken,
            };
            found.extend(findings(&planned.evidence, runs));
        }
        for finding in found.iter_mut().filter(|finding| !finding.kind.is_of_surroundings()) {
            finding.content = Some(planned.evidence.content_of(finding.path.as_deref()));
        }
        tests.more = found.len().saturating_sub(FINDINGS_MAX) as u64;
        tests.digest_of_all = (tests.more > 0).then(|| digest_of_all(&found));
        let all = tests.digest_of_all.as_deref();
        self.allow(rules, (&planned.evidence.changed, all), &mut found);
        // Findings that need an answer come before those that are only recorded.
        found.sort_by_key(|finding| (finding.allowed_by.is_some(), finding.kind));
        found.truncate(FINDINGS_MAX);
        tests.findings = found;
        Ok(Ok(tests))
    }

    /// Runs a gate with the tests of the base. The inner error is for a person.
    ///
    /// A test file that does not build with the sources of the work can keep all others from running. The gate runs
    /// again without such files: with those of the work. The last run has the settings of the base only.
    fn run_base(
        &mut self,
        gate: &Hook,
        (planned, work): (&BaseRunPlan, &str),
        tests: &mut BaseTests,
    ) -> Result<Result<BaseRun, String>, EngineError> {
        let mut broken: Vec<String> = Vec::new();
        let mut tree = planned.tree.clone().unwrap_or_default();
        for rebuild in 0..=REBUILDS_MAX {
            let run = match self.run_on(gate, &tree)? {
                Ok(run) => run,
                Err(why) => return Ok(Err(why)),
            };
            tests.duration_ms += run.ran.as_ref().map_or(0, |ran| ran.duration_ms);
            tests.tree = Some(tree);
            let new = broken_files(&planned.evidence, &run, &broken);
            if new.is_empty() || rebuild == REBUILDS_MAX || self.is_stopping() {
                return Ok(Ok(BaseRun { run, broken }));
            }
            match rebuild + 1 == REBUILDS_MAX {
                true => broken = planned.evidence.test_files(),
                false => broken.extend(new),
            }
            let edits = planned.evidence.edits_without(&broken);
            tree = match self.world.edited_tree(work, &edits) {
                Ok(tree) => tree,
                Err(why) => return Ok(Err(why)),
            };
        }
        Ok(Err("the run with the tests of the base did not end".to_owned()))
    }

    /// Runs a gate in a room with another tree. The inner error is for a person.
    ///
    /// If it fails, it runs again after all gates before it, which may leave files that it needs.
    fn run_on(&mut self, gate: &Hook, tree: &str) -> Result<Result<HookRun, String>, EngineError> {
        let all = self.hooks_at(&Point::Stop);
        let earlier = all.into_iter().take_while(|other| other.name != gate.name);
        let earlier: Vec<Hook> = earlier.filter(leaves_files).collect();
        let needed = needed_by(gate, &earlier);
        let is_same = needed.len() == earlier.len();
        let run = self.run_after(needed, gate, tree)?;
        let has_failed = run.as_ref().is_ok_and(|run| run.outcome.status != HookStatus::Passed);
        match has_failed && !is_same && !self.is_stopping() {
            true => self.run_after(earlier, gate, tree),
            false => Ok(run),
        }
    }

    /// Runs a gate after others in a room with another tree. The inner error is for a person.
    fn run_after(
        &mut self,
        before: Vec<Hook>,
        gate: &Hook,
        tree: &str,
    ) -> Result<Result<HookRun, String>, EngineError> {
        let gates = [before, vec![gate.clone()]].concat();
        self.world.notice(SessionUpdate::BaseTests { gate: &gate.name });
        let run = self.run_in_base_room(&gates, tree, |_, _| {})?;
        Ok(run.and_then(|run| match run.is_misconfigured() {
            true => Err(run.why_unable(&gate.handler)),
            false => Ok(run),
        }))
    }

    /// Runs hooks in the second room with a tree, and returns the run of the last one. The inner error is for a person.
    ///
    /// `read` gets the run while its files are still in the room.
    pub(super) fn run_in_base_room(
        &mut self,
        hooks: &[Hook],
        tree: &str,
        read: impl FnOnce(&W, &HookRun),
    ) -> Result<Result<HookRun, String>, EngineError> {
        let mut results = GateResults::default();
        let problem = match self.world.enter_base_room(hooks, tree) {
            RoomEntry::Here => Some("there is no room for them".to_owned()),
            RoomEntry::Unable { reason } => Some(reason),
            RoomEntry::Ready(entered) => {
                results.tree = Some(entered.tree);
                results.room = Some(entered.record);
                self.set_up(&mut results)?.err()
            }
        };
        let run = match problem {
            Some(why) => Err(why),
            None => {
                self.is_base_run = true;
                let runs = self.run_hooks(hooks, &Point::Stop);
                self.is_base_run = false;
                let last = hooks.last().map(|hook| &hook.name);
                let run = runs?.into_iter().rev().find(|run| Some(&run.hook) == last);
                run.ok_or_else(|| "the gate did not run".to_owned())
            }
        };
        let has_passed = run.as_ref().is_ok_and(|run| run.outcome.status == HookStatus::Passed);
        if let Ok(run) = &run {
            read(&self.world, run);
        }
        self.world.leave_base_room(!has_passed);
        Ok(run)
    }

    /// Marks the findings that an option or a person allows. `all` is their digest, if a receipt can't list them.
    fn allow(
        &self,
        rules: &BaseTestRules,
        (changed, all): (&[String], Option<&str>),
        found: &mut [TestFinding],
    ) {
        let plan = &self.journal.session.plan;
        let of_task = self.task.as_ref().map(|task| &task.spec);
        let kind = of_task.and_then(|spec| spec.kind.as_deref());
        let project = self.journal.project;
        let mut of_type = project.rules().may_change(kind);
        // An agent could give a task of its own the type that allows what it needs.
        let is_of_person = |task: &Task| matches!(project.is_added_by_agent(&task.id), Ok(false));
        if !of_type.is_empty() && !self.task.as_ref().is_some_and(is_of_person) {
            of_type = &[];
        }
        let of_task = of_task.map_or(&[][..], |spec| &spec.may_change);
        let may_change = [plan.may_change.as_slice(), of_type, of_task].concat();
        let patterns = base_plan::matcher(&may_change, PatternReach::Directory).unwrap_or_default();
        // A failure that no file explains has its cause in one of the changed files.
        let are_all_named =
            !changed.is_empty() && changed.iter().all(|path| patterns.is_match(path));
        let allowed = &self.journal.session.allowed_findings;
        let by_all = all.and_then(|all| allowed.get(all));
        for finding in found {
            let is_of_tests = !finding.kind.is_of_surroundings();
            let is_named = finding
                .path
                .as_deref()
                .map_or(are_all_named && is_of_tests, |path| patterns.is_match(path));
            if let Some(by) = allowed.get(&finding.digest()).or(by_all) {
                finding.allowed_by = Some(by.clone());
            } else if is_named {
                finding.allowed_by = Some("may_change".to_owned());
            } else if let Some(by) = self.approved_by(rules, finding) {
                finding.allowed_by = Some(by);
            } else if finding.kind == FindingKind::ExpectationChanged
                && rules.expectations == ExpectationPolicy::Allow
            {
                finding.allowed_by = Some("expectations: allow".to_owned());
            }
        }
    }

    /// Returns the result of a gate with these findings; `None` if it stays passed.
    fn outcome_of(&self, tests: &BaseTests) -> Option<HookOutcome> {
        let blocking: Vec<&TestFinding> = tests.blocking().collect();
        let asking: Vec<&TestFinding> = tests.asking().collect();
        if blocking.is_empty() && asking.is_empty() {
            return None;
        }
        if blocking.is_empty() || self.journal.session.was_told_of_tests {
            return Some(escalated(question(&blocking, &asking, tests.review.as_ref())));
        }
        Some(HookOutcome {
            verdict: HookVerdict::Block { feedback: feedback(&blocking) },
            reason: Some(summary(&blocking)),
            ..HookOutcome::of(HookStatus::Blocked)
        })
    }
}

/// Returns the gates that a gate needs, directly or through others.
pub(super) fn needed_by(gate: &Hook, earlier: &[Hook]) -> Vec<Hook> {
    let mut needs: Vec<&str> = gate.options.needs.iter().map(String::as_str).collect();
    let mut needed: Vec<Hook> = Vec::new();
    for other in earlier.iter().rev().filter(|other| leaves_files(other)) {
        if needs.contains(&other.name.as_str()) {
            needs.extend(other.options.needs.iter().map(String::as_str));
            needed.insert(0, other.clone());
        }
    }
    needed
}

pub(super) fn escalated(reason: String) -> HookOutcome {
    HookOutcome {
        verdict: HookVerdict::Escalate { reason: reason.clone() },
        reason: Some(reason),
        ..HookOutcome::of(HookStatus::Blocked)
    }
}

fn summary(found: &[&TestFinding]) -> String {
    let names: Vec<&str> = found.iter().map(|finding| finding.check.as_str()).collect();
    let about = match found.iter().all(|finding| finding.kind.is_of_source()) {
        true => "sources know the tests",
        false => "tests of the base no longer hold",
    };
    format!("{about}: {}", first_names(&names, NAMED_MAX))
}

/// Returns the reason why a person has to look at the tests.
fn question(
    blocking: &[&TestFinding],
    asking: &[&TestFinding],
    review: Option<&ExpectationVerdict>,
) -> String {
    let found: Vec<&TestFinding> = blocking.iter().chain(asking).copied().collect();
    let groups = by_cause(found.iter().copied());
    let lines: Vec<String> = groups.iter().take(NAMED_MAX).map(|group| one_line(group)).collect();
    let more = groups.len().saturating_sub(NAMED_MAX);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let are_all = |is_of: fn(FindingKind) -> bool| found.iter().all(|finding| is_of(finding.kind));
    let about = if are_all(FindingKind::is_of_source) {
        "sources of the work know the tests"
    } else if are_all(FindingKind::is_of_surroundings) {
        "gates use files that changed outside of the project"
    } else {
        "the work changed tests of the base"
    };
    let review = review.map_or_else(String::new, |verdict| format!(". {verdict}"));
    format!(
        "{about}: {}{more}{review}. `hookloop inbox show` has both versions, and the command that allows them",
        lines.join("; ")
    )
}

/// Returns the findings of one cause in one line.
fn one_line(group: &[&TestFinding]) -> String {
    match group {
        [] => String::new(),
        [finding] => finding.to_string(),
        [first, ..] => {
            let names: Vec<&str> = group.iter().map(|finding| finding.check.as_str()).collect();
            let cause =
                if first.cause.is_empty() { String::new() } else { format!(": {}", first.cause) };
            format!("{} ({}){cause}", first_names(&names, NAMED_MAX), first.kind.name())
        }
    }
}

/// Returns the feedback to the agent: the tests to restore, with their text in the base, and the lines that know tests.
fn feedback(found: &[&TestFinding]) -> String {
    let (lines, tests): (Vec<&TestFinding>, Vec<&TestFinding>) =
        found.iter().take(FINDINGS_MAX).partition(|finding| finding.kind.is_of_source());
    let mut text = String::new();
    for (about, found) in [(RESTORE_TESTS, tests), (SOLVE_THE_TASK, lines)] {
        if !found.is_empty() {
            text.push_str(about);
        }
        for finding in found {
            let path = finding.path.as_deref().filter(|path| !finding.check.starts_with(path));
            let place = path.map(|path| format!(" ({path})")).unwrap_or_default();
            text.push_str(&format!("\n- {finding}{place}\n"));
            let shown = if finding.kind.is_of_source() { &finding.after } else { &finding.before };
            let shown = shown.as_deref().map(|shown| clipped(shown, FEEDBACK_TEXT_MAX));
            for line in shown.iter().flat_map(|shown| shown.lines()) {
                text.push_str(&format!("    {line}\n"));
            }
        }
    }
    text
}
