//! The literals that the tests of the base expect, and those that its sources already have.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::assertions::TestAssertion;
use crate::error::EvidenceError;
use crate::language::SourceLanguage;
use crate::suspicion::literal_weight::{is_specific, weight};
use crate::suspicion::source_parts::SourceParts;
use crate::suspicion::special_cases::{SpecialCase, special_cases};
use crate::syntax::SyntaxTree;

/// Maximum pairs of literals that the tests of a project expect.
const EXPECTED_PAIRS_MAX: usize = 8_000_000;
/// Maximum inputs and outcomes of an assertion that become pairs.
const DIRECTION_MAX: usize = 12;
/// Numbers of neighbouring inputs that also are expected together.
const SEQUENCE_LENGTHS: [usize; 2] = [2, 3];
/// Minimum weight of the literals of a special case.
const CASE_WEIGHT_MIN: usize = 3;
/// The weight of several inputs that an assertion has in the same order.
const SEQUENCE_WEIGHT: usize = 2;

/// The literals that the tests of the base expect, and those that its sources already have.
#[derive(Clone, Debug, Default)]
pub struct SourceBaseline {
    /// Hashes of inputs with an outcome.
    expected: HashSet<u64>,
    known: HashSet<u64>,
}

impl SourceBaseline {
    /// Adds the assertions of a test of the base.
    pub fn add_assertions(&mut self, assertions: &[TestAssertion]) -> Result<(), EvidenceError> {
        for assertion in assertions {
            let inputs = &assertion.inputs[..assertion.inputs.len().min(DIRECTION_MAX)];
            for outcome in assertion.outcomes.iter().take(DIRECTION_MAX) {
                for input in inputs {
                    self.expected.insert(pair_hash(std::slice::from_ref(input), outcome));
                }
                // A special case can compare all inputs, or those of one call.
                let windows = SEQUENCE_LENGTHS.iter().flat_map(|length| inputs.windows(*length));
                for sequence in windows.chain((inputs.len() > 1).then_some(inputs)) {
                    self.expected.insert(pair_hash(sequence, outcome));
                }
            }
            if self.expected.len() > EXPECTED_PAIRS_MAX {
                let (part, things) = ("the base", "pairs of expected literals");
                return Err(EvidenceError::TooMany { part, things, limit: EXPECTED_PAIRS_MAX });
            }
        }
        Ok(())
    }

    /// Adds a source of the base. The caller adds at least every source that the work changed, moved or removed.
    pub fn add_source(
        &mut self,
        language: SourceLanguage,
        source: &str,
    ) -> Result<(), EvidenceError> {
        let tree = SyntaxTree::parse(language, source)?;
        for special in special_cases(&SourceParts::of(tree.root())) {
            for keys in &special.keys {
                let pairs = special.outcomes.iter().map(|outcome| pair_hash(keys, outcome));
                self.known.extend(pairs);
            }
        }
        Ok(())
    }

    /// Returns the literals of a special case that an assertion of the base expects together.
    pub(super) fn test_literals(&self, special: &SpecialCase) -> Option<String> {
        for keys in special.keys.iter().rev() {
            for outcome in &special.outcomes {
                let pair = pair_hash(keys, outcome);
                let is_expected = self.expected.contains(&pair) && !self.known.contains(&pair);
                // A result that repeats its key is a name.
                let is_name = keys.contains(outcome);
                if is_expected && !is_name && is_heavy(keys, outcome) {
                    return Some(format!("{} → {outcome}", keys.join(", ")));
                }
            }
        }
        None
    }
}

/// Whether an entry of a table needs no second one.
pub(super) fn stands_alone(special: &SpecialCase) -> bool {
    special.table.is_none() || special.keys.iter().flatten().any(|key| is_specific(key))
}

/// Whether inputs and an outcome hardly occur together by chance.
fn is_heavy(keys: &[String], outcome: &str) -> bool {
    let of_keys: usize = keys.iter().map(|key| weight(key)).sum();
    let of_outcome = weight(outcome);
    if of_outcome == 0 && keys.len() == 1 {
        return is_specific(&keys[0]);
    }
    let of_sequence = if keys.len() > 1 { SEQUENCE_WEIGHT } else { 0 };
    of_keys > 0 && of_keys + of_outcome + of_sequence >= CASE_WEIGHT_MIN
}

fn pair_hash(keys: &[String], outcome: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    keys.hash(&mut hasher);
    outcome.hash(&mut hasher);
    hasher.finish()
}
