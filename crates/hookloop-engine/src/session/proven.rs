//! Gates that passed in a room, for reuse: the same gate on the same tree is not run again.
//!
//! The log has the receipts. This file of the project's state finds them by tree, also for sessions that are not open.

use std::path::{Path, PathBuf};

use hookloop_core::checks::CheckCounts;
use hookloop_core::session::facts::{BuildState, CopiedFile, NestedTree};
use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};

/// The name of the file in the project's state.
const NAME: &str = "proven.json";
/// Maximum gates in the file. The oldest are forgotten.
const GATES_MAX: usize = 1_000;
/// Maximum size of a file that is read.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A gate that passed on a tree in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenGate {
    #[serde(flatten)]
    pub key: ProofKey,
    pub build: BuildState,
    /// The session with the receipt.
    pub session: String,
    #[serde(default)]
    pub checks: Option<CheckCounts>,
}

/// The facts that must be the same for a proof to hold again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofKey {
    pub tree: String,
    pub gate: String,
    /// The digest of the gate's definition and scripts.
    pub digest: String,
    /// The commit that HEAD names in the room.
    #[serde(default)]
    pub base: Option<String>,
    #[serde(default)]
    pub setup: Option<String>,
    #[serde(default)]
    pub copies: Vec<CopiedFile>,
    #[serde(default)]
    pub tools: Option<String>,
    /// The digest of the environment, without names that differ from terminal to terminal.
    #[serde(default)]
    pub environment: Option<String>,
    /// The digest of the tags and branches that the gate sees.
    #[serde(default)]
    pub refs: Option<String>,
    /// The trees of nested repositories that the tree does not name.
    #[serde(default)]
    pub nested: Vec<NestedTree>,
    /// The digests of the gates before it, which may leave files for it.
    #[serde(default)]
    pub earlier: Vec<String>,
}

/// The proven gates of a project.
#[derive(Debug)]
pub(super) struct ProvenGates {
    path: PathBuf,
}

impl ProvenGates {
    pub(super) fn of(state: &Path) -> ProvenGates {
        ProvenGates { path: state.join(NAME) }
    }

    /// Returns the newest proof with this key.
    pub(super) fn find(&self, key: &ProofKey) -> Option<ProvenGate> {
        self.read().into_iter().rev().find(|gate| gate.key == *key)
    }

    /// Adds gates that passed. A reader that misses one runs the gate again.
    pub(super) fn add(&self, passed: Vec<ProvenGate>) {
        let mut gates = self.read();
        gates.retain(|known| !passed.iter().any(|gate| gate.key == known.key));
        gates.extend(passed);
        let surplus = gates.len().saturating_sub(GATES_MAX);
        gates.drain(..surplus);
        let Ok(text) = serde_json::to_vec(&gates) else { return };
        if let Err(error) = write_whole(&self.path, &text, WriteOptions::CACHE) {
            tracing::warn!(path = %self.path.display(), %error, "proven gates are not kept");
        }
    }

    fn read(&self) -> Vec<ProvenGate> {
        let text = hookloop_git::files::read_text(&self.path, BYTES_MAX).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(tree: usize, digest: &str) -> ProvenGate {
        ProvenGate {
            key: ProofKey {
                tree: tree.to_string(),
                gate: "tests".to_owned(),
                base: None,
                digest: digest.to_owned(),
                setup: None,
                copies: Vec::new(),
                tools: None,
                environment: None,
                refs: None,
                nested: Vec::new(),
                earlier: Vec::new(),
            },
            build: BuildState::Cold,
            session: "s".to_owned(),
            checks: None,
        }
    }

    #[test]
    fn a_proof_holds_for_the_same_tree_and_gate() {
        let state = tempfile::tempdir().unwrap();
        let proven = ProvenGates::of(state.path());
        assert_eq!(proven.find(&gate(1, "a").key), None);
        proven.add(vec![gate(1, "a")]);
        assert_eq!(proven.find(&gate(1, "a").key), Some(gate(1, "a")));
        assert_eq!(proven.find(&gate(1, "b").key), None);
        assert_eq!(proven.find(&gate(2, "a").key), None);
        proven.add((0..GATES_MAX).map(|tree| gate(tree + 2, "a")).collect());
        assert_eq!(proven.find(&gate(1, "a").key), None, "forgotten");
        assert_eq!(proven.read().len(), GATES_MAX);
    }

    #[test]
    fn a_damaged_file_proves_nothing() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(NAME), "[{").unwrap();
        let proven = ProvenGates::of(state.path());
        assert_eq!(proven.find(&gate(1, "a").key), None);
        proven.add(vec![gate(1, "a")]);
        assert!(proven.find(&gate(1, "a").key).is_some());
    }
}
