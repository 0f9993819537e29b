//! The joint verdict of the gates on a claim or a merge.
//!
//! A gate that was skipped did not pass, and neither did one that failed with `on_failure: open`.
//! Both are reported apart from the gates that passed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hook_protocol::{HookOutcome, HookStatus, HookVerdict};
use crate::payload::verdict::JointVerdict;

/// A run of a gate.
#[derive(Clone, Copy, Debug)]
pub struct GateRun<'r> {
    pub name: &'r str,
    /// The group in which one passing gate is enough.
    pub any_of: Option<&'r str>,
    pub outcome: &'r HookOutcome,
}

/// The result of one gate among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    Passed,
    /// The gate did not run, or answered that it had nothing to check.
    Skipped,
    /// The gate failed and does not block: it is open, or another gate of its `any_of` group passed.
    Failed,
    Blocked,
}

/// The joint verdict, with the result of each gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatesVerdict {
    pub verdict: JointVerdict,
    /// The results of the runs, in the order of the runs.
    pub results: Vec<GateResult>,
    names: Vec<String>,
}

impl GatesVerdict {
    /// Returns the gates with this result, in the order of their runs.
    pub fn names(&self, result: GateResult) -> Vec<String> {
        let of_result = |(name, found): (&String, &GateResult)| {
            if *found == result { Some(name.clone()) } else { None }
        };
        self.names.iter().zip(&self.results).filter_map(of_result).collect()
    }

    pub fn has(&self, result: GateResult) -> bool {
        self.results.contains(&result)
    }

    /// Returns the number of gates with a result, which are all but the skipped ones.
    pub fn ran(&self) -> usize {
        self.results.iter().filter(|result| **result != GateResult::Skipped).count()
    }
}

/// Judges the runs of several gates. A request for a person outweighs a block, a block outweighs a pass.
pub fn verdict(runs: &[GateRun<'_>]) -> GatesVerdict {
    let results: Vec<GateResult> = runs.iter().map(|run| result_of(run, runs)).collect();
    let escalated = runs.iter().find_map(|run| match &run.outcome.verdict {
        HookVerdict::Escalate { reason } => Some(reason.clone()),
        _ => None,
    });
    let verdict = if let Some(reason) = escalated {
        JointVerdict::Escalate { reason }
    } else if results.contains(&GateResult::Blocked) {
        JointVerdict::Block
    } else {
        JointVerdict::Pass
    };
    let names = runs.iter().map(|run| run.name.to_owned()).collect();
    GatesVerdict { verdict, results, names }
}

fn result_of(run: &GateRun<'_>, all: &[GateRun<'_>]) -> GateResult {
    match (&run.outcome.verdict, run.outcome.status) {
        (HookVerdict::Pass, HookStatus::Passed) => GateResult::Passed,
        (HookVerdict::Pass, HookStatus::Skipped) => GateResult::Skipped,
        (HookVerdict::Pass, _) => GateResult::Failed,
        (HookVerdict::Escalate { .. }, _) => GateResult::Blocked,
        (HookVerdict::Block { .. }, _) if is_excused(run, all) => GateResult::Failed,
        (HookVerdict::Block { .. }, _) => GateResult::Blocked,
    }
}

/// Whether another gate of the same group passed.
fn is_excused(run: &GateRun<'_>, all: &[GateRun<'_>]) -> bool {
    let has_passed = |other: &GateRun<'_>| {
        other.any_of == run.any_of
            && other.outcome.verdict == HookVerdict::Pass
            && other.outcome.status == HookStatus::Passed
    };
    run.any_of.is_some() && all.iter().any(has_passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(word: &str) -> HookOutcome {
        let of = |status, verdict| HookOutcome { verdict, ..HookOutcome::of(status) };
        let block = || HookVerdict::Block { feedback: "no".to_owned() };
        match word {
            "passes" => of(HookStatus::Passed, HookVerdict::Pass),
            "skips" => of(HookStatus::Skipped, HookVerdict::Pass),
            "fails open" => of(HookStatus::Failed, HookVerdict::Pass),
            "times out" => of(HookStatus::TimedOut, block()),
            "blocks" => of(HookStatus::Blocked, block()),
            "asks" => of(HookStatus::Blocked, HookVerdict::Escalate { reason: "look".to_owned() }),
            other => panic!("{other}"),
        }
    }

    /// Checks gates, each written as `result` or `result in group`.
    fn check(gates: &[&str], expected: JointVerdict, results: &[GateResult]) {
        let parsed: Vec<(HookOutcome, Option<&str>)> = gates
            .iter()
            .map(|gate| match gate.split_once(" in ") {
                Some((word, group)) => (outcome(word), Some(group)),
                None => (outcome(gate), None),
            })
            .collect();
        let runs: Vec<GateRun<'_>> = parsed
            .iter()
            .map(|(outcome, any_of)| GateRun { name: "gate", any_of: *any_of, outcome })
            .collect();
        let found = verdict(&runs);
        assert_eq!((found.verdict, found.results.as_slice()), (expected, results), "{gates:?}");
    }

    #[test]
    fn the_strictest_gate_decides_the_joint_verdict() {
        use GateResult::{Blocked, Failed, Passed, Skipped};
        let escalate = || JointVerdict::Escalate { reason: "look".to_owned() };
        check(&[], JointVerdict::Pass, &[]);
        check(&["passes"], JointVerdict::Pass, &[Passed]);
        check(&["passes", "skips"], JointVerdict::Pass, &[Passed, Skipped]);
        check(&["passes", "fails open"], JointVerdict::Pass, &[Passed, Failed]);
        check(&["passes", "blocks"], JointVerdict::Block, &[Passed, Blocked]);
        check(&["times out"], JointVerdict::Block, &[Blocked]);
        check(&["blocks", "asks"], escalate(), &[Blocked, Blocked]);
    }

    #[test]
    fn an_any_of_group_needs_one_passed_gate() {
        use GateResult::{Blocked, Failed, Passed, Skipped};
        let escalate = JointVerdict::Escalate { reason: "look".to_owned() };
        check(&["blocks in g", "passes in g"], JointVerdict::Pass, &[Failed, Passed]);
        check(&["blocks in g", "passes in h"], JointVerdict::Block, &[Blocked, Passed]);
        check(&["blocks in g", "passes"], JointVerdict::Block, &[Blocked, Passed]);
        check(&["blocks in g", "skips in g"], JointVerdict::Block, &[Blocked, Skipped]);
        check(&["blocks in g", "fails open in g"], JointVerdict::Block, &[Blocked, Failed]);
        check(&["asks in g", "passes in g"], escalate, &[Blocked, Passed]);
    }

    #[test]
    fn gate_names_are_listed_by_result() {
        let (passed, skipped) = (outcome("passes"), outcome("skips"));
        let runs = [
            GateRun { name: "tests", any_of: None, outcome: &passed },
            GateRun { name: "lint", any_of: None, outcome: &skipped },
        ];
        let found = verdict(&runs);
        assert_eq!(found.names(GateResult::Passed), ["tests"]);
        assert_eq!(found.names(GateResult::Skipped), ["lint"]);
        assert_eq!(found.ran(), 1);
    }
}
