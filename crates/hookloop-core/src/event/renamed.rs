//! Event types of format 1 that have another name since format 2.
//!
//! Logs of format 1 stay as they are: their events are decoded as the types of today. The names
//! of their fields are `alias` attributes at the payload types.

use serde::Deserialize;

/// The last format with the old names.
const OLD_FORMAT: u32 = 1;

/// The types with another name, and their name of today.
const RENAMED: &[(&str, &str)] = &[
    ("cascade_cut", "cascade_limit_reached"),
    ("files_seen", "worktree_snapshotted"),
    ("fleet_order_lifted", "fleet_directive_cleared"),
    ("fleet_ordered", "fleet_directive_set"),
    ("gates_judged", "gates_evaluated"),
    ("merge_held", "merge_blocked"),
    ("notice_claimed", "notification_claimed"),
    ("notice_dropped", "notification_dropped"),
    ("notice_failed", "notification_failed"),
    ("notice_sent", "notification_sent"),
    ("point_passed", "hook_point_completed"),
    ("purse_exhausted", "budget_exhausted"),
    ("receipt_made", "receipt_recorded"),
    ("retry_limit_answered", "decision_made"),
    ("retry_limit_asked", "decision_requested"),
    ("slot_taken", "wip_permit_acquired"),
    ("slowed", "rate_limited"),
    ("stop_decided", "stop_evaluated"),
    ("submit_judged", "submission_evaluated"),
    ("task_left", "session_task_released"),
    ("task_taken", "session_task_claimed"),
    ("trust_drift", "trust_drift_detected"),
    ("turn_claimed", "completion_claimed"),
    ("turn_reserved", "budget_reserved"),
];

/// The data of the old type `hook_switched`, which is two types today.
#[derive(Deserialize)]
struct OldHookSwitch {
    enabled: bool,
}

/// Returns today's name of a stored type.
pub(super) fn current_name<'k>(
    kind: &'k str,
    format: u32,
    data: &str,
) -> Result<&'k str, serde_json::Error> {
    if format > OLD_FORMAT {
        return Ok(kind);
    }
    if kind == "hook_switched" {
        let switch: OldHookSwitch = serde_json::from_str(data)?;
        return Ok(if switch.enabled { "hook_enabled" } else { "hook_disabled" });
    }
    let renamed = RENAMED.iter().find(|(old, _)| *old == kind);
    Ok(renamed.map_or(kind, |(_, current)| current))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventBody, FORMAT};

    #[test]
    fn old_event_types_are_read_as_current_types() {
        let types = EventBody::type_names();
        for (old, current) in RENAMED {
            assert!(types.contains(current), "{current}");
            assert!(!types.contains(old), "{old}");
            assert_eq!(current_name(old, OLD_FORMAT, "{}").unwrap(), *current);
            assert_eq!(current_name(old, FORMAT, "{}").unwrap(), *old);
        }
    }

    #[test]
    fn hook_switched_events_are_read_as_hook_enabled_or_hook_disabled() {
        let read = |data| EventBody::decode("hook_switched", OLD_FORMAT, data);
        assert_eq!(read(r#"{"name":"a","enabled":true}"#).unwrap().kind(), "hook_enabled");
        assert_eq!(read(r#"{"name":"a","enabled":false}"#).unwrap().kind(), "hook_disabled");
        assert!(read(r#"{"name":"a"}"#).is_err());
    }

    #[test]
    fn old_agent_names_of_external_sessions_get_the_current_prefix() {
        let data = r#"{"turn":"work","result":"finished","agent":"guest:claude","durationMs":1,"activeMs":1}"#;
        let EventBody::TurnEnded(ended) =
            EventBody::decode("turn_ended", OLD_FORMAT, data).unwrap()
        else {
            panic!("{data}")
        };
        assert_eq!(ended.agent, "external:claude");
    }
}
