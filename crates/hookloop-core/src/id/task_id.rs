//! Ids of tasks, and the words that hookloop generates as names.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::event_id::EventId;
use crate::excerpt::first_chars;

/// The longest id a task may have.
pub const TASK_ID_MAX: usize = 64;

/// Characters of an id that hookloop makes: 60 bits, so that a million tasks stay apart.
pub(super) const GENERATED_LEN: usize = 12;

/// Lower case, without the letters that are read as digits.
pub(super) const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a task id: 1 to {TASK_ID_MAX} letters, digits, `_` or `-`, the first a letter or a digit"
)]
pub struct BadTaskId(pub(super) String);

/// A task's name: `[A-Za-z0-9][A-Za-z0-9_-]*`. It is one word for a shell, one token of a message subject, and
/// never an option.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(pub(super) String);

impl TaskId {
    /// Generates an id from 60 bits of `seed`.
    pub fn generate(seed: EventId) -> TaskId {
        TaskId(word(&Sha256::digest(seed.0)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` could be an id or the start of one.
    pub fn is_valid(text: &str) -> bool {
        let inner = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-';
        let bytes = text.as_bytes();
        (1..=TASK_ID_MAX).contains(&bytes.len())
            && bytes[0].is_ascii_alphanumeric()
            && bytes.iter().all(inner)
    }
}

/// Returns the first 60 bits of `hash` in [`ALPHABET`].
pub(super) fn word(hash: &[u8]) -> String {
    let mut bits = hash.iter().take(8).fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let mut text = String::with_capacity(GENERATED_LEN);
    for _ in 0..GENERATED_LEN {
        text.push(char::from(ALPHABET[(bits >> 59) as usize]));
        bits <<= 5;
    }
    text
}

impl FromStr for TaskId {
    type Err = BadTaskId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if TaskId::is_valid(text) {
            Ok(TaskId(text.to_owned()))
        } else {
            Err(BadTaskId(first_chars(text, TASK_ID_MAX + 1)))
        }
    }
}

impl TryFrom<String> for TaskId {
    type Error = BadTaskId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if TaskId::is_valid(&text) { Ok(TaskId(text)) } else { text.parse() }
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> String {
        id.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
