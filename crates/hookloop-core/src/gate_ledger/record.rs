//! Records of gates, and the changes between two sets of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The longest part of a configuration that a change quotes.
const QUOTED_MAX: usize = 80;

/// Limits with another name in records of earlier builds, and their name of today.
const RENAMED_LIMITS: &[(&str, &str)] = &[
    ("iterations", "max_iterations"),
    ("duration", "max_duration"),
    ("turn", "turn_timeout"),
    ("errors", "max_errors"),
    ("hook_retries", "gate_retries"),
    ("no_progress", "max_no_progress"),
    ("remediations", "max_remediations"),
    ("continuations", "max_continuations"),
    ("tokens", "max_tokens"),
    ("cost", "max_cost"),
    ("unpriced_turns", "max_unpriced_turns"),
];

/// Every gate of a project, and the settings that bound its gates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateLedger {
    pub gates: Vec<GateRecord>,
    /// Lists that replace the project's list at a gate point, also if they are empty.
    #[serde(default)]
    pub lists: BTreeSet<GateList>,
    /// The stop conditions (`loop.stop_when`), by name.
    #[serde(default)]
    pub stop_when: Vec<String>,
    /// Limits that the repository's file sets, by name.
    #[serde(default, deserialize_with = "limits_of_today")]
    pub limits: BTreeMap<String, u64>,
    /// Task types whose work may be complete without a change of files.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub no_changes_ok: BTreeSet<String>,
    /// Patterns of tests that work on tasks of a type may change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub may_change: BTreeMap<String, BTreeSet<String>>,
}

/// Reads limits by name, and replaces the names of earlier builds.
fn limits_of_today<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, u64>, D::Error> {
    let stored = BTreeMap::<String, u64>::deserialize(deserializer)?;
    let rename = |(name, limit): (String, u64)| {
        let renamed = RENAMED_LIMITS.iter().find(|(old, _)| *old == name);
        (renamed.map_or(name, |(_, current)| (*current).to_owned()), limit)
    };
    Ok(stored.into_iter().map(rename).collect())
}

/// A task type's or an agent's own list of hooks at one point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GateList {
    /// The task type, or `agent:` and the agent's name.
    pub owner: String,
    pub point: String,
}

/// A gate, with everything that makes it strong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRecord {
    pub name: String,
    /// The owner of the list that contains the gate, or `None` for the project's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    pub points: Vec<String>,
    /// The gate comes from the user's own configuration, so no repository can remove it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_users: bool,
    pub enabled: bool,
    /// The command, rule, built-in, gatekeepers or address.
    pub handler: Value,
    /// Scripts of the project that the gate runs, with the digests of their bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scripts: BTreeMap<String, String>,
    /// The gate blocks when it crashes or times out (`on_failure: closed`).
    pub blocks_on_failure: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    pub timeout_ms: u64,
    /// Runs in all, if the gate fails.
    pub attempts: u32,
    /// Environment, directory, sandbox and resource limits of the gate's process.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub surroundings: Value,
}

/// A difference between trusted gates and the present ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateChange {
    /// The gate, or the setting (`loop.stop_when`, `limits.max_iterations`).
    pub gate: String,
    /// The tasks and agents that the change is about.
    pub scope: GateScope,
    pub kind: GateChangeKind,
}

/// The effect of a change on a gate. The texts follow the gate's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateChangeKind {
    Removed,
    Disabled,
    Weakened(String),
    /// A difference without an order.
    Changed(String),
    Added,
    Strengthened(String),
}

/// The tasks and agents that a list of gates is for. Empty means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateScope {
    pub task_type: Option<String>,
    pub agent: Option<String>,
}

impl GateChange {
    /// Returns whether a person has to trust the change.
    pub fn needs_consent(&self) -> bool {
        !matches!(self.kind, GateChangeKind::Added | GateChangeKind::Strengthened(_))
    }

    /// Returns whether the gate is known to be absent or weaker, not only different.
    pub fn is_weaker(&self) -> bool {
        use GateChangeKind::{Disabled, Removed, Weakened};
        matches!(self.kind, Removed | Disabled | Weakened(_))
    }
}

impl fmt::Display for GateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match &self.kind {
            GateChangeKind::Removed => "is gone",
            GateChangeKind::Disabled => "is switched off",
            GateChangeKind::Added => "is new",
            GateChangeKind::Weakened(words)
            | GateChangeKind::Changed(words)
            | GateChangeKind::Strengthened(words) => words,
        };
        write!(f, "`{}` {words}{}", quoted(&self.gate), self.scope)
    }
}

impl fmt::Display for GateScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(task_type) = &self.task_type {
            write!(f, ", for tasks of type `{}`", quoted(task_type))?;
        }
        if let Some(agent) = &self.agent {
            write!(f, ", for agent `{}`", quoted(agent))?;
        }
        Ok(())
    }
}

/// Returns a part of a configuration, on one line and not too long.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
    let mut short: String = text.chars().take(QUOTED_MAX).map(plain).collect();
    if text.chars().nth(QUOTED_MAX).is_some() {
        short.push('…');
    }
    short
}
