//! The strength that the tests of a gate must have.

use hookloop_core::options::StrengthRules;
use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Located, TimeText, length};
use crate::yaml::ConfigComplaint;

/// Most mutants of one measurement.
const MUTANTS_MAX: u32 = 10_000;

/// Strength of tests: the share of mutants that they notice. A mutant is a copy of the work with one changed function.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Strength")]
pub(crate) struct StrengthEntry {
    /// Minimum share of mutants that the tests notice, in percent, 1 to 100 [default: 80]
    at_least: Option<u8>,
    /// Time of the mutation engine, in seconds or with a unit [default: 3m]
    budget: Option<TimeText>,
    /// Maximum mutants, 1 to 10000 [default: 40]
    most: Option<u32>,
}

impl StrengthEntry {
    pub(crate) fn read(entry: Located<StrengthEntry>) -> Result<StrengthRules, ConfigComplaint> {
        let Located { value: StrengthEntry { at_least, budget, most }, at } = entry;
        let defaults = StrengthRules::default();
        let at_least = at_least.unwrap_or(defaults.at_least);
        if !(1..=100).contains(&at_least) {
            return Err(ConfigComplaint::new(at, "`at_least` is a percentage from 1 to 100"));
        }
        let most = most.unwrap_or(defaults.most);
        if !(1..=MUTANTS_MAX).contains(&most) {
            return Err(ConfigComplaint::new(at, format!("`most` is 1 to {MUTANTS_MAX}")));
        }
        let budget_ms = budget.map_or(Ok(defaults.budget_ms), |budget| length(budget, at))?;
        Ok(StrengthRules { at_least, budget_ms, most })
    }
}
