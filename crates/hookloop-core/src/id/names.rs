//! Names of projects, sessions, workflow runs, notices and schedules.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::event_id::EventId;
use super::task_id::{ALPHABET, BadTaskId, GENERATED_LEN, TASK_ID_MAX, TaskId, word};
use crate::excerpt::first_chars;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a project's name: 1 to {TASK_ID_MAX} letters, digits, `_` or `-`, the first a letter or a digit"
)]
pub struct BadProjectName(String);

/// A project's name on all machines that share it, independent of its directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectName(TaskId);

impl ProjectName {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the name of a fleet's log. No project can have this name.
    pub fn of_fleet() -> ProjectName {
        ProjectName(TaskId("_fleet".to_owned()))
    }

    /// Returns a unique name for a new project in `directory`.
    pub fn generate(directory: &str, seed: EventId) -> ProjectName {
        const READABLE: usize = 32;
        let word = TaskId::generate(seed);
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let start: String = directory.chars().filter(fits).take(READABLE).collect();
        let named = format!("{}-{word}", start.trim_matches(['_', '-']));
        ProjectName(named.parse().unwrap_or(word))
    }

    /// Returns the readable part of a project's name, without its unique suffix.
    pub fn readable(name: &str) -> &str {
        let is_made = |word: &str| {
            word.len() == GENERATED_LEN && word.bytes().all(|byte| ALPHABET.contains(&byte))
        };
        match name.rsplit_once('-') {
            Some((start, word)) if !start.is_empty() && is_made(word) => start,
            _ => name,
        }
    }
}

impl FromStr for ProjectName {
    type Err = BadProjectName;

    /// Accepts the same names as task ids, because a name is one token of a message subject.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(ProjectName).map_err(|BadTaskId(text)| BadProjectName(text))
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A session's name in the log.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct SessionId(TaskId);

impl SessionId {
    pub fn generate(seed: EventId) -> SessionId {
        SessionId(TaskId::generate(seed))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the actor that the log names in this session's events.
    pub fn actor(&self) -> String {
        format!("{SESSION_ACTOR}{self}")
    }

    /// Returns the session that an actor is, if it is one.
    pub fn of_actor(actor: &str) -> Option<SessionId> {
        actor.strip_prefix(SESSION_ACTOR)?.parse().ok()
    }
}

/// The start of the actor of a session.
const SESSION_ACTOR: &str = "session:";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a session")]
pub struct BadSessionId(String);

impl FromStr for SessionId {
    type Err = BadSessionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(SessionId).map_err(|BadTaskId(text)| BadSessionId(text))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run of a workflow, named by the event that asked for it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct RunId(pub String);

impl RunId {
    pub fn generate(seed: EventId) -> RunId {
        RunId(word(&Sha256::digest(seed.0)))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A notification, named after its channel and subject, so that two senders of the same notification use the
/// same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NoticeId(TaskId);

impl NoticeId {
    /// Returns the id of the notification that these words name.
    pub fn of(words: &[&str]) -> NoticeId {
        let mut hash = Sha256::new();
        for text in words {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let hash = hash.finalize();
        // Two words: one is only long enough for the tasks of one project.
        NoticeId(TaskId(word(&hash) + &word(&hash[8..])))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for NoticeId {
    type Err = BadTaskId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(NoticeId)
    }
}

impl fmt::Display for NoticeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The length of the suffix in the id of a schedule's task: `-20261116T0300`.
const SLOT_LEN: usize = 14;

/// The longest name of a schedule, so that the name with an occurrence is a task id.
pub(crate) const SCHEDULE_NAME_MAX: usize = TASK_ID_MAX - SLOT_LEN - 2;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a schedule's name: 1 to {SCHEDULE_NAME_MAX} letters, digits, `_` or `-`, the first a letter or a digit"
)]
pub struct BadScheduleName(String);

/// A schedule's name: a word like a task's id, with room for an occurrence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleName(TaskId);

impl ScheduleName {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the task of an occurrence. It is the same on every machine, so an occurrence makes one task.
    pub fn task_at(&self, slot: Timestamp) -> Option<TaskId> {
        let minute: String = slot.to_string().chars().take("2026-11-16T03:00".len()).collect();
        format!("{self}-{}", minute.replace(['-', ':'], "")).parse().ok()
    }
}

impl FromStr for ScheduleName {
    type Err = BadScheduleName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(name) if text.len() <= SCHEDULE_NAME_MAX => Ok(ScheduleName(name)),
            _ => Err(BadScheduleName(first_chars(text, SCHEDULE_NAME_MAX + 1))),
        }
    }
}

impl fmt::Display for ScheduleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
