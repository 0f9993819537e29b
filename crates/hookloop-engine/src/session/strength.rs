//! The strength of the tests of a gate: a suite that notices no change of the code proves little.
//!
//! After a gate with `strength` passed, a mutation engine changes the functions that the work changed, and runs the
//! tests on each such mutant. The engine runs in a second room, in the box of a gate. Too many survivors block the
//! work. Without a result, a person is needed.

use std::path::PathBuf;

use hookloop_agents::clipped;
use hookloop_core::excerpt::first_names;
use hookloop_core::hook::{CommandText, Hook, HookHandler, HookMetadata, HookSource};
use hookloop_core::hook_protocol::{HookOutcome, HookStatus, HookVerdict};
use hookloop_core::options::{EnvEntry, HookOptions, RoomChoice, RoomRules, StrengthRules};
use hookloop_core::point::Point;
use hookloop_core::session::facts::{StrengthStatus, TestStrength};
use hookloop_hooks::hook_run::HookRun;
use hookloop_mutation::{EngineEnd, EnginePlan, reported, result_of};

use super::base_tests::{escalated, needed_by};
use super::drive::SessionDriver;
use super::gate_results::GateResults;
use super::session_room::leaves_files;
use super::world::{SessionUpdate, SessionWorld};
use crate::error::EngineError;

/// Maximum survivors that a reason names.
const NAMED_MAX: usize = 5;
/// Maximum bytes of the output of an engine in the reason of its failure.
const OUTPUT_MAX: usize = 600;
const REPAIR: &str =
    "Repair the engine or change `strength`, then `hookloop resume` measures again";
const WRITE_TESTS: &str = "The tests pass, and they also pass after each of these changes of your code. Add or sharpen \
                           tests so that they fail for these changes. If a change makes no difference for users, \
                           remove the code that it changes, or report ESCALATE with the reason.\n";

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Measures the strength of the tests of gates that passed, and changes the results of those that are too weak.
    pub(super) fn check_strength(
        &mut self,
        gates: &[Hook],
        results: &mut GateResults,
    ) -> Result<(), EngineError> {
        for gate in gates {
            let Some(rules) = gate.options.strength else { continue };
            let has_passed =
                |run: &HookRun| run.hook == gate.name && run.outcome.status == HookStatus::Passed;
            let Some(position) = results.runs.iter().position(has_passed) else { continue };
            if self.is_stopping() {
                return Ok(());
            }
            let strength = match &results.tree {
                Some(tree) => self.strength_on(gate, rules, &tree.clone())?,
                None => failed(rules, "the tree of the work is unknown"),
            };
            if let Some(outcome) = outcome_of(&strength) {
                let run = &mut results.runs[position];
                run.outcome = outcome;
                // The output of the run that passed explains nothing.
                (run.printed, run.left_out) = (String::new(), Vec::new());
            }
            results.strength.insert(gate.name.clone(), strength);
        }
        Ok(())
    }

    /// Returns the strength of a gate's tests on a tree, which is measured once.
    fn strength_on(
        &mut self,
        gate: &Hook,
        rules: StrengthRules,
        tree: &str,
    ) -> Result<TestStrength, EngineError> {
        let key = (format!("{} {rules}", gate.name), tree.to_owned());
        if let Some(known) = self.strengths.get(&key) {
            return Ok(known.clone());
        }
        let strength = self.measure(gate, rules, tree)?;
        // A person may repair an engine that failed while the session runs.
        if !strength.is_unknown() {
            self.strengths.insert(key, strength.clone());
        }
        Ok(strength)
    }

    fn measure(
        &mut self,
        gate: &Hook,
        rules: StrengthRules,
        tree: &str,
    ) -> Result<TestStrength, EngineError> {
        let plan = match self.world.plan_strength(gate, rules, tree) {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                let nothing = (StrengthStatus::NothingToMutate, None);
                return Ok(TestStrength::without_score(None, rules.at_least, nothing));
            }
            Err(why) => return Ok(failed(rules, &why)),
        };
        let engine = plan.engine.engine;
        self.world.notice(SessionUpdate::Strength { gate: &gate.name, engine: engine.name() });
        let hook = engine_hook(gate, rules, &plan.engine);
        let all = self.hooks_at(&Point::Stop);
        let earlier = all.into_iter().take_while(|other| other.name != gate.name);
        let earlier: Vec<Hook> = earlier.filter(leaves_files).collect();
        let gates = [needed_by(gate, &earlier), vec![hook.clone()]].concat();
        let mut found = None;
        let run = self.run_in_base_room(&gates, &plan.tree, |world, run| {
            found = world.room_directory(&hook).map(|directory| {
                let end = (end_of(run), run.printed.as_str());
                let mutants = result_of(&plan.engine, &plan.targets, &directory, end);
                let report = mutants.as_ref().ok().and_then(|mutants| {
                    world.keep_mutation_report(&gate.name, rules, (&plan, mutants))
                });
                (mutants, report)
            });
        })?;
        let mut strength = match (run, found) {
            (Err(why), _) => failed(rules, &why),
            (Ok(run), _) if run.is_misconfigured() => failed(rules, &run.why_unable(&hook.handler)),
            (Ok(_), None) => failed(rules, "there is no room for the engine"),
            (Ok(run), Some((Err(why), _))) => {
                let strength = failed(rules, &format!("{why}{}", end_of_output(&run)));
                TestStrength { duration_ms: duration_of(&run), ..strength }
            }
            (Ok(run), Some((Ok(mutants), report))) => TestStrength {
                duration_ms: duration_of(&run),
                report: report.map(|path: PathBuf| path.display().to_string()),
                ..TestStrength::measured(engine.name(), rules, reported(&mutants))
            },
        };
        strength.engine.get_or_insert_with(|| engine.name().to_owned());
        Ok(strength)
    }
}

/// Returns the hook that runs the engine as the gate runs its tests.
fn engine_hook(gate: &Hook, rules: StrengthRules, plan: &EnginePlan) -> Hook {
    let HookOptions { env, cwd, exclusive, sandbox, limits, room, .. } = gate.options.clone();
    let given = plan.env.iter();
    let given =
        given.map(|(name, value)| EnvEntry::Set { name: name.clone(), value: value.clone() });
    Hook {
        // No name in a configuration has these characters.
        name: format!("{} (strength)", gate.name),
        points: vec![Point::Stop],
        task_type: gate.task_type.clone(),
        // hookloop wrote the command.
        source: HookSource::Builtin,
        priority: gate.priority,
        enabled: true,
        metadata: HookMetadata::default(),
        handler: HookHandler::Command(CommandText::Exec(plan.argv.clone())),
        options: HookOptions {
            env: env.into_iter().chain(given).collect(),
            room: RoomRules { choice: RoomChoice::Clean, ..room },
            timeout_ms: Some(rules.budget_ms),
            cwd,
            exclusive,
            sandbox,
            limits,
            ..HookOptions::default()
        },
    }
}

fn failed(rules: StrengthRules, why: &str) -> TestStrength {
    let status = (StrengthStatus::EngineFailed, Some(clipped(why, OUTPUT_MAX)));
    TestStrength::without_score(None, rules.at_least, status)
}

fn end_of(run: &HookRun) -> EngineEnd {
    let code = run.ran.as_ref().and_then(|ran| ran.exit_code);
    match (run.outcome.status, code) {
        (HookStatus::TimedOut, _) => EngineEnd::OutOfBudget,
        (_, Some(code)) => EngineEnd::Exited(code),
        (_, None) => EngineEnd::Killed,
    }
}

fn duration_of(run: &HookRun) -> u64 {
    run.ran.as_ref().map_or(0, |ran| ran.duration_ms)
}

/// Returns the last lines of an engine's output, for the reason of its failure.
fn end_of_output(run: &HookRun) -> String {
    let lines: Vec<&str> =
        run.printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(NAMED_MAX)..].join(" | ");
    if last.is_empty() { last } else { format!(": {last}") }
}

/// Returns the result of a gate with tests of this strength; `None` if it stays passed.
fn outcome_of(strength: &TestStrength) -> Option<HookOutcome> {
    if strength.is_enough() {
        return None;
    }
    if strength.is_unknown() {
        return Some(escalated(format!("{strength}. {REPAIR}")));
    }
    let survivors = &strength.survivors;
    let places: Vec<String> =
        survivors.iter().map(|mutant| format!("{}:{}", mutant.path, mutant.line)).collect();
    let mut feedback = format!("{strength}. {WRITE_TESTS}");
    for mutant in survivors {
        feedback.push_str(&format!("\n- {}:{}\n", mutant.path, mutant.line));
        for line in mutant.change.lines() {
            feedback.push_str(&format!("    {line}\n"));
        }
    }
    let more = strength.mutants.survived.saturating_sub(survivors.len() as u64);
    if more > 0 {
        feedback.push_str(&format!("\n- and {more} more\n"));
    }
    Some(HookOutcome {
        verdict: HookVerdict::Block { feedback },
        reason: Some(format!("{strength}: {}", first_names(&places, NAMED_MAX))),
        ..HookOutcome::of(HookStatus::Blocked)
    })
}
