//! Field names of the lifecycle-hook specification, which hooks receive beside hookloop's own.
//!
//! The log and `--json` have each field once, in snake case. A script that was written for that
//! specification reads the names in camel case, so a hook's input has both.

use serde_json::Value;

use super::EventBody;

/// Fields of event data: hookloop's name and the specification's name.
const SEED_NAMES: &[(&str, &str)] = &[
    ("completed_task_id", "completedTaskId"),
    ("dependent_task_id", "dependentTaskId"),
    ("duration_ms", "durationMs"),
    ("edge_id", "edgeId"),
    ("edge_type", "edgeType"),
    ("edges_removed", "edgesRemoved"),
    ("from_id", "fromId"),
    ("required_knowledge", "requiredKnowledge"),
    ("to_id", "toId"),
];

impl EventBody {
    /// Returns the data for a hook: as stored, and with the specification's names.
    pub fn data_for_hooks(&self) -> Value {
        let mut data = self.data();
        if let (Value::Object(fields), false) = (&mut data, matches!(self, EventBody::Other(_))) {
            for (name, seed_name) in SEED_NAMES {
                if let Some(value) = fields.get(*name).cloned() {
                    fields.insert((*seed_name).to_owned(), value);
                }
            }
        }
        data
    }
}
