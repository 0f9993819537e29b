//! The plan of a measurement of tests, and the parts of the world that measure.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hookloop_core::hook::Hook;
use hookloop_core::options::StrengthRules;
use hookloop_mutation::{EnginePlan, MutationTarget, TestedMutant};

/// The measurement of a gate's tests.
#[derive(Clone, Debug)]
pub(crate) struct StrengthPlan {
    pub(crate) engine: EnginePlan,
    /// The changed functions, by file.
    pub(crate) targets: Vec<MutationTarget>,
    /// The tree of the work with the engine's configuration.
    pub(crate) tree: String,
    /// The texts of the files with changed functions, by path.
    pub(crate) sources: BTreeMap<String, String>,
}

/// The parts of the world that measure the strength of tests.
pub trait StrengthWorld {
    /// Plans the measurement of a gate's tests on a tree. None if the work changed no function. The error is for a person.
    #[expect(private_interfaces, reason = "only the world of real sessions measures")]
    fn plan_strength(
        &mut self,
        _: &Hook,
        _: StrengthRules,
        _tree: &str,
    ) -> Result<Option<StrengthPlan>, String> {
        Err("there are no trees here".to_owned())
    }
    /// Returns the directory of a hook in the room, as this program sees it. None without a room.
    fn room_directory(&self, _: &Hook) -> Option<PathBuf> {
        None
    }
    /// Keeps the report of a measurement, and returns its path. A report that can't be kept is only missing.
    #[expect(private_interfaces, reason = "only the world of real sessions measures")]
    fn keep_mutation_report(
        &self,
        _gate: &str,
        _: StrengthRules,
        _: (&StrengthPlan, &[TestedMutant]),
    ) -> Option<PathBuf> {
        None
    }
    /// Records that gates passed on the work, whose strength was measured.
    fn note_measured_work(&mut self) {}
}
