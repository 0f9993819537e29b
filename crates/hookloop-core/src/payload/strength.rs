//! The strength of the tests of a gate: which changes of the code they notice.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::options::StrengthRules;
use crate::quantity::counted_items;

/// Maximum survivors in a receipt. Further survivors are counted.
const SURVIVORS_MAX: usize = 20;
/// Maximum characters of the change of a survivor.
pub const CHANGE_TEXT_MAX: usize = 400;
/// The smallest number of tested mutants from which a score counts, unless the work has fewer.
const TESTED_MIN: u64 = 3;
/// The part of the wanted mutants that has to be tested: one of this many.
const TESTED_PART: u64 = 4;

/// The strength of the tests of a gate, measured by a mutation engine on the functions that the work changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestStrength {
    /// The engine; none if the work changed no function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    pub status: StrengthStatus,
    /// The required share of noticed mutants, in percent.
    pub at_least: u8,
    /// The noticed share of the tested mutants, in percent; none if there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    pub mutants: MutantCounts,
    /// The first mutants that no test noticed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<SurvivingMutant>,
    /// The reason why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The duration of the engine's run.
    #[serde(default)]
    pub duration_ms: u64,
    /// The path of the report on this machine, in the schema of Stryker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrengthStatus {
    /// Enough mutants were tested for a score.
    Measured,
    /// The work changed no function, or the engine has no mutant for the changed functions.
    NothingToMutate,
    /// The budget ended before enough mutants were tested.
    OutOfBudget,
    /// The engine is missing, does not support the project, or failed.
    EngineFailed,
}

/// The numbers of mutants by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MutantCounts {
    /// A test failed.
    #[serde(default)]
    pub killed: u64,
    /// No test failed.
    #[serde(default)]
    pub survived: u64,
    /// The tests took too long, which counts as noticed.
    #[serde(default)]
    pub timed_out: u64,
    /// The mutant does not build, which counts for nothing.
    #[serde(default)]
    pub unviable: u64,
    /// The budget or the number of mutants ended before.
    #[serde(default)]
    pub not_run: u64,
}

/// A change of the code that no test noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SurvivingMutant {
    /// The file, from the working directory of the gate.
    pub path: String,
    /// The line of the work, counted from 1.
    pub line: u64,
    /// The change: lines that begin with `-` and `+`, or a sentence of the engine.
    pub change: String,
}

impl MutantCounts {
    /// Returns the number of mutants with a result that counts.
    pub fn tested(self) -> u64 {
        self.killed + self.timed_out + self.survived
    }

    /// Returns the noticed share in percent, rounded down; none if nothing was tested.
    pub fn score(self) -> Option<u8> {
        let noticed = self.killed + self.timed_out;
        u8::try_from((noticed * 100).checked_div(self.tested())?).ok()
    }

    /// Whether enough mutants were tested for a score, if `most` are wanted.
    fn are_enough(self, most: u32) -> bool {
        let wanted = TESTED_MIN.max(u64::from(most) / TESTED_PART);
        self.tested() >= wanted.min(self.tested() + self.not_run).max(1)
    }
}

impl TestStrength {
    /// Returns a result without a score.
    pub fn without_score(
        engine: Option<&str>,
        at_least: u8,
        (status, reason): (StrengthStatus, Option<String>),
    ) -> TestStrength {
        TestStrength {
            engine: engine.map(str::to_owned),
            status,
            at_least,
            score: None,
            mutants: MutantCounts::default(),
            survivors: Vec::new(),
            reason,
            duration_ms: 0,
            report: None,
        }
    }

    /// Returns the result of these mutants. The survivors are cut to the limit of a receipt.
    pub fn measured(
        engine: &str,
        rules: StrengthRules,
        (counts, mut survivors): (MutantCounts, Vec<SurvivingMutant>),
    ) -> TestStrength {
        survivors.truncate(SURVIVORS_MAX);
        let at_least = rules.at_least;
        let (status, reason) = if counts.tested() + counts.not_run + counts.unviable == 0 {
            (StrengthStatus::NothingToMutate, None)
        } else if counts.tested() + counts.not_run == 0 {
            let unviable = counts.unviable;
            (StrengthStatus::EngineFailed, Some(format!("none of {unviable} mutants builds")))
        } else if counts.are_enough(rules.most) {
            (StrengthStatus::Measured, None)
        } else {
            let all = counts.tested() + counts.not_run;
            let tested = counts.tested();
            let reason = format!("{tested} of {all} mutants were tested before the budget ended");
            (StrengthStatus::OutOfBudget, Some(reason))
        };
        let result = TestStrength::without_score(Some(engine), at_least, (status, reason));
        let score = counts.score().filter(|_| status == StrengthStatus::Measured);
        TestStrength { score, mutants: counts, survivors, ..result }
    }

    /// Whether the tests are strong enough, or there is nothing that they could notice.
    pub fn is_enough(&self) -> bool {
        match self.status {
            StrengthStatus::Measured => self.score.is_some_and(|score| score >= self.at_least),
            StrengthStatus::NothingToMutate => true,
            StrengthStatus::OutOfBudget | StrengthStatus::EngineFailed => false,
        }
    }

    /// Whether only a person can help: the strength is unknown.
    pub fn is_unknown(&self) -> bool {
        matches!(self.status, StrengthStatus::OutOfBudget | StrengthStatus::EngineFailed)
    }
}

/// "the tests notice 60 % of 10 mutants (mutmut), 80 % are required".
impl fmt::Display for TestStrength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine.as_deref().unwrap_or("no engine");
        match (self.status, self.score) {
            (StrengthStatus::Measured, Some(score)) => {
                let tested = usize::try_from(self.mutants.tested()).unwrap_or(usize::MAX);
                let tested = counted_items(tested, "mutant", "mutants");
                let at_least = self.at_least;
                write!(
                    f,
                    "the tests notice {score} % of {tested} ({engine}), {at_least} % are required"
                )
            }
            (StrengthStatus::NothingToMutate, _) => {
                f.write_str("the work changed no function that can be mutated")
            }
            _ => {
                let reason = self.reason.as_deref().unwrap_or("the engine has no result");
                write!(f, "the strength of the tests is unknown ({engine}): {reason}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(killed: u64, survived: u64, not_run: u64) -> MutantCounts {
        MutantCounts { killed, survived, not_run, ..MutantCounts::default() }
    }

    #[track_caller]
    fn check(counts: MutantCounts, status: StrengthStatus, score: Option<u8>, is_enough: bool) {
        let found =
            TestStrength::measured("mutmut", StrengthRules::default(), (counts, Vec::new()));
        assert_eq!((found.status, found.score), (status, score));
        assert_eq!(found.is_enough(), is_enough);
    }

    #[test]
    fn a_score_is_the_noticed_share_of_the_tested_mutants() {
        check(counts(8, 2, 29), StrengthStatus::Measured, Some(80), true);
        check(counts(79, 21, 0), StrengthStatus::Measured, Some(79), false);
        let timed_out = MutantCounts { timed_out: 1, unviable: 7, ..counts(0, 2, 0) };
        check(timed_out, StrengthStatus::Measured, Some(33), false);
        check(counts(1, 0, 0), StrengthStatus::Measured, Some(100), true);
        check(counts(0, 0, 0), StrengthStatus::NothingToMutate, None, true);
    }

    #[test]
    fn too_few_tested_mutants_are_no_result() {
        check(counts(2, 0, 30), StrengthStatus::OutOfBudget, None, false);
        check(counts(0, 0, 1), StrengthStatus::OutOfBudget, None, false);
        check(counts(9, 0, 30), StrengthStatus::OutOfBudget, None, false);
        check(counts(10, 0, 30), StrengthStatus::Measured, Some(100), true);
        check(counts(2, 0, 0), StrengthStatus::Measured, Some(100), true);
    }

    #[test]
    fn mutants_of_which_none_builds_are_no_result() {
        let unviable = MutantCounts { unviable: 4, ..MutantCounts::default() };
        check(unviable, StrengthStatus::EngineFailed, None, false);
    }
}
