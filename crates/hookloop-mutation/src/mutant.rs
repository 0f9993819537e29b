//! Mutants and their results.

use hookloop_core::excerpt::first_chars;
use hookloop_core::session::facts::{CHANGE_TEXT_MAX, MutantCounts, SurvivingMutant};

/// Maximum mutants that are read.
pub(crate) const MUTANTS_MAX: usize = 100_000;

/// A mutant with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestedMutant {
    /// The file, from the working directory of the engine.
    pub path: String,
    /// The line of the change, counted from 1.
    pub line: u64,
    /// The change, as the engine describes it.
    pub change: String,
    pub outcome: MutantOutcome,
}

/// The result of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutantOutcome {
    Killed,
    /// No test failed, or no test runs the code.
    Survived,
    TimedOut,
    /// The mutant does not build, or the engine left it out on purpose.
    Unviable,
    NotRun,
}

impl MutantOutcome {
    /// Returns the status in the schema of Stryker.
    pub(crate) fn stryker_status(self) -> &'static str {
        match self {
            MutantOutcome::Killed => "Killed",
            MutantOutcome::Survived => "Survived",
            MutantOutcome::TimedOut => "Timeout",
            MutantOutcome::Unviable => "CompileError",
            MutantOutcome::NotRun => "Pending",
        }
    }
}

/// Returns the counts of mutants, and the survivors.
pub fn reported(mutants: &[TestedMutant]) -> (MutantCounts, Vec<SurvivingMutant>) {
    let count = |outcome: MutantOutcome| {
        mutants.iter().filter(|mutant| mutant.outcome == outcome).count() as u64
    };
    let counts = MutantCounts {
        killed: count(MutantOutcome::Killed),
        survived: count(MutantOutcome::Survived),
        timed_out: count(MutantOutcome::TimedOut),
        unviable: count(MutantOutcome::Unviable),
        not_run: count(MutantOutcome::NotRun),
    };
    let survivors = mutants.iter().filter(|mutant| mutant.outcome == MutantOutcome::Survived);
    let survivors = survivors.map(|mutant| SurvivingMutant {
        path: mutant.path.clone(),
        line: mutant.line,
        change: first_chars(&mutant.change, CHANGE_TEXT_MAX),
    });
    (counts, survivors.collect())
}
