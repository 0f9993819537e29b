//! The events with the results of a gate's checks.
//!
//! The first record of a gate in a session lists all checks. Later records list those that differ.

use std::collections::HashMap;

use hookloop_core::checks::{CheckOutcome, CheckRecords, CheckResult};
use hookloop_core::session::Receipt;
use hookloop_core::session::facts::{CHECKS_PER_EVENT, ChecksRecorded, RecordedCheck};

/// The outcomes of a gate's checks, by id.
pub(super) type CheckOutcomes = HashMap<String, CheckOutcome>;

pub(super) fn outcomes(records: &CheckRecords) -> CheckOutcomes {
    records.checks.iter().map(|check| (check.id.clone(), check.outcome)).collect()
}

/// Returns the events of a run. `known` are the outcomes of the session's last record of the gate.
pub(super) fn events(
    records: &CheckRecords,
    receipt: &Receipt,
    known: Option<&CheckOutcomes>,
) -> Vec<ChecksRecorded> {
    // A list without all checks says nothing about those that it lacks.
    let known = known.filter(|_| records.is_complete);
    let is_new = |check: &&CheckResult| {
        known.is_none_or(|known| known.get(&check.id) != Some(&check.outcome))
    };
    let listed: Vec<RecordedCheck> = records
        .checks
        .iter()
        .filter(is_new)
        .map(|check| RecordedCheck { id: check.id.clone(), outcome: check.outcome, ms: check.ms })
        .collect();
    let now = outcomes(records);
    let mut gone: Vec<String> = known
        .into_iter()
        .flat_map(HashMap::keys)
        .filter(|id| !now.contains_key(*id))
        .cloned()
        .collect();
    gone.sort();
    let mut parts: Vec<Vec<RecordedCheck>> =
        listed.chunks(CHECKS_PER_EVENT).map(<[_]>::to_vec).collect();
    if parts.is_empty() {
        parts.push(Vec::new());
    }
    let mut gone_parts = gone.chunks(CHECKS_PER_EVENT);
    let gone_count = gone.len().div_ceil(CHECKS_PER_EVENT);
    parts.resize_with(parts.len().max(gone_count), Vec::new);
    let count = parts.len();
    let event = |(index, checks): (usize, Vec<RecordedCheck>)| ChecksRecorded {
        gate: receipt.gate.clone(),
        point: receipt.point.clone(),
        tree: receipt.tree.clone(),
        room: receipt.room.clone(),
        tools: receipt.tools.clone(),
        source: records.source.to_owned(),
        counts: records.counts,
        complete: records.is_complete,
        whole: known.is_none(),
        checks,
        gone: gone_parts.next().map(<[_]>::to_vec).unwrap_or_default(),
        more: u32::try_from(count - index - 1).unwrap_or(u32::MAX),
    };
    parts.into_iter().enumerate().map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookloop_core::checks::RecordsBuilder;
    use hookloop_core::hook_protocol::HookStatus;

    fn records(checks: &[(&str, CheckOutcome)]) -> CheckRecords {
        let mut builder = RecordsBuilder::new("junit");
        for (id, outcome) in checks {
            builder.add(id, *outcome, Some(1), String::new());
        }
        builder.finish()
    }

    fn receipt() -> Receipt {
        Receipt {
            gate: "tests".to_owned(),
            point: "stop".to_owned(),
            definition: serde_json::Value::Null,
            status: HookStatus::Passed.into(),
            exit_code: Some(0),
            tree: Some("t".to_owned()),
            output_sha256: String::new(),
            duration_ms: 1,
            context: serde_json::Value::Null,
            digest: None,
            room: None,
            attempts: 1,
            checks: None,
            base_tests: None,
            strength: None,
            tools: None,
            reused_from: None,
        }
    }

    #[test]
    fn later_records_list_the_differences() {
        use CheckOutcome::{Failed, Passed};
        let first = records(&[("a", Passed), ("b", Failed), ("c", Passed)]);
        let events_of_first = events(&first, &receipt(), None);
        assert_eq!(events_of_first.len(), 1);
        assert!(events_of_first[0].whole && events_of_first[0].checks.len() == 3);
        let second = records(&[("a", Passed), ("b", Passed), ("d", Passed)]);
        let later = events(&second, &receipt(), Some(&outcomes(&first)));
        let ids: Vec<&str> = later[0].checks.iter().map(|check| check.id.as_str()).collect();
        assert_eq!((ids, later[0].gone.as_slice()), (vec!["b", "d"], &["c".to_owned()][..]));
        assert!(!later[0].whole && later[0].counts.passed == 3);
    }

    #[test]
    fn a_long_list_is_divided() {
        let ids: Vec<String> = (0..2_500).map(|number| format!("t{number}")).collect();
        let all: Vec<(&str, CheckOutcome)> =
            ids.iter().map(|id| (id.as_str(), CheckOutcome::Passed)).collect();
        let parts = events(&records(&all), &receipt(), None);
        let sizes: Vec<(usize, u32)> =
            parts.iter().map(|part| (part.checks.len(), part.more)).collect();
        assert_eq!(sizes, [(1_000, 2), (1_000, 1), (500, 0)]);
    }
}
