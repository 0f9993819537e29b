//! Names of tasks, events, workflow runs and the subjects that events are about.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::schedule::ScheduleName;

/// The longest id a task may have.
pub const TASK_ID_MAX: usize = 64;
/// Characters of an id that hookloop makes: 60 bits, so that a million tasks stay apart.
const GENERATED_LEN: usize = 12;
/// Lower case, without the letters that are read as digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a task id: 1 to {TASK_ID_MAX} letters, digits, `_` or `-`, the first a letter or a digit"
)]
pub struct BadTaskId(String);

/// A task's name: `[A-Za-z0-9][A-Za-z0-9_-]*`, so that it is one word for a shell, one token for a
/// message subject, and never an option.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// An id from 60 bits of `seed`.
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

/// The first 60 bits of `hash` in [`ALPHABET`].
fn word(hash: &[u8]) -> String {
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
            Err(BadTaskId(text.chars().take(TASK_ID_MAX + 1).collect()))
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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a project's name: 1 to {TASK_ID_MAX} letters, digits, `_` or `-`, the first a letter or a digit"
)]
pub struct BadProjectName(String);

/// A project's name where machines share it: what its directory is called is their own affair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectName(TaskId);

impl ProjectName {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// What the log of a fleet is kept as, beside those of its projects. No project can be called that.
    pub fn of_fleet() -> ProjectName {
        ProjectName(TaskId("_fleet".to_owned()))
    }

    /// A name for a new project in a directory called `directory`, unlike that of any other.
    pub fn generate(directory: &str, seed: EventId) -> ProjectName {
        const READABLE: usize = 32;
        let word = TaskId::generate(seed);
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let start: String = directory.chars().filter(fits).take(READABLE).collect();
        let named = format!("{}-{word}", start.trim_matches(['_', '-']));
        ProjectName(named.parse().unwrap_or(word))
    }

    /// What people call the project of that name: without the word that makes it unlike any other.
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

    /// The same words as task ids, for the same reason: one token of a message subject.
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

    /// Returns the actor that the log names for what this session does.
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

/// A message that a person is told something by, named after the channel and what it is about: whoever is about to
/// send the same names it the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NoticeId(TaskId);

impl NoticeId {
    /// The id of what these words name together.
    pub fn of(words: &[&str]) -> NoticeId {
        let mut hash = Sha256::new();
        for text in words {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let hash = hash.finalize();
        // Two words: that of a task is long enough for the tasks of one project.
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

/// A 128-bit event id whose first 48 bits are milliseconds, as in UUID version 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub [u8; 16]);

impl EventId {
    /// The id of what `label` makes of this event as its `index`th result. The same arguments give
    /// the same id for ever: a repeated reaction can't name its effects anew.
    pub fn derive(self, label: &str, index: usize) -> EventId {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
        hash.update((index as u64).to_le_bytes());
        let digest = hash.finalize();
        let mut id = self.0;
        id[6..].copy_from_slice(&digest[..10]);
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        EventId(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an event id")]
pub struct BadEventId(String);

impl FromStr for EventId {
    type Err = BadEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadEventId(text.to_owned());
        let mut bytes = [0; 16];
        let mut digits = text.bytes().filter(|b| *b != b'-');
        for byte in &mut bytes {
            let mut digit = || {
                let d = digits.next().ok_or_else(bad)?;
                char::from(d).to_digit(16).ok_or_else(bad)
            };
            *byte = (digit()? << 4 | digit()?) as u8;
        }
        match digits.next() {
            None => Ok(EventId(bytes)),
            Some(_) => Err(bad()),
        }
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What an event is about, and the unit of optimistic concurrency: a subject's version is the
/// sequence number of the last event on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Task(TaskId),
    /// Edges between tasks that both exist already; two of them can't close a cycle together.
    Graph,
    /// How far reactions have come.
    Cursor,
    /// The project itself: hook switches, and records that belong to no task.
    Project,
    Workflow(RunId),
    Session(SessionId),
    /// What those who run the fleet want.
    Fleet,
    /// What is set aside of the project's purse: who sets something aside has seen all of it.
    Purse,
    /// A message to a person: who sends it has claimed it here.
    Notice(NoticeId),
    /// Tasks that came into somebody's hands where their number is bounded: who takes one has seen all of them.
    Slots,
    Schedule(ScheduleName),
    /// What a newer version writes about. It is kept, and means nothing here.
    Newer(NewerSubject),
}

/// The longest name of a subject that this version does not know.
const NEWER_SUBJECT_MAX: usize = 128;

/// The name of a subject that this version does not know, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NewerSubject(String);

impl FromStr for NewerSubject {
    type Err = BadSubject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match text.starts_with('_') && text.len() <= NEWER_SUBJECT_MAX && text.chars().all(is_word)
        {
            true => Ok(NewerSubject(text.to_owned())),
            false => Err(BadSubject(text.to_owned())),
        }
    }
}

impl Subject {
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Subject::Task(id) => Some(id),
            _ => None,
        }
    }

    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Subject::Session(id) => Some(id),
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Task(id) => f.write_str(id.as_str()),
            Subject::Graph => f.write_str("_graph"),
            Subject::Cursor => f.write_str("_cur"),
            Subject::Project => f.write_str("_p"),
            Subject::Workflow(run) => write!(f, "_w-{run}"),
            Subject::Session(id) => write!(f, "_s-{id}"),
            Subject::Fleet => f.write_str("_fleet"),
            Subject::Purse => f.write_str("_purse"),
            // The version before this one stops at a name that it does not know, but keeps all that is said of a run
            // of a workflow, whatever that is called. No run is called like this: its name has no underscore.
            Subject::Notice(id) => write!(f, "_w-_n-{id}"),
            Subject::Slots => f.write_str("_w-_slots"),
            Subject::Schedule(name) => write!(f, "_w-_t-{name}"),
            Subject::Newer(name) => f.write_str(&name.0),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a subject")]
pub struct BadSubject(String);

impl FromStr for Subject {
    type Err = BadSubject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "_graph" => Ok(Subject::Graph),
            "_cur" => Ok(Subject::Cursor),
            "_p" => Ok(Subject::Project),
            "_fleet" => Ok(Subject::Fleet),
            "_purse" => Ok(Subject::Purse),
            "_w-_slots" => Ok(Subject::Slots),
            _ => read_subject(text).ok_or_else(|| BadSubject(text.to_owned())),
        }
    }
}

/// One whose name has a part of its own. What this version can't read is a newer one's, unless no version writes such.
fn read_subject(text: &str) -> Option<Subject> {
    let after = |prefix: &str| text.strip_prefix(prefix);
    let known = if let Some(id) = after("_w-_n-") {
        id.parse().ok().map(Subject::Notice)
    } else if let Some(name) = after("_w-_t-") {
        name.parse().ok().map(Subject::Schedule)
    } else if let Some(run) = after("_w-").filter(|run| !run.starts_with('_')) {
        Some(Subject::Workflow(RunId(run.to_owned())))
    } else if let Some(id) = after("_s-") {
        id.parse().ok().map(Subject::Session)
    } else {
        text.parse().ok().map(Subject::Task)
    };
    known.or_else(|| text.parse().ok().map(Subject::Newer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_are_one_word_and_never_an_option() {
        for good in ["a", "task_42", "7", "A-b_C", &"x".repeat(64)] {
            assert!(good.parse::<TaskId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "_graph", "a.b", "a b", "a/b", "ä", "a\n", &"x".repeat(65)] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn derived_ids_depend_on_every_argument_and_nothing_else() {
        let id = EventId([7; 16]);
        assert_eq!(id.derive("hook", 1), id.derive("hook", 1));
        assert_ne!(id.derive("hook", 1), id.derive("hook", 2));
        assert_ne!(id.derive("hook", 1), id.derive("hooks", 1));
        assert_ne!(id.derive("hook", 1), EventId([8; 16]).derive("hook", 1));
        assert_eq!(id.derive("hook", 1).0[..6], id.0[..6], "sorts with its cause");
    }

    #[test]
    fn a_new_project_is_named_after_its_directory() {
        for (directory, start) in [("shop", "shop-"), ("my shop!", "myshop-"), ("-x-", "x-")] {
            let name = ProjectName::generate(directory, EventId([7; 16])).to_string();
            assert!(name.starts_with(start) && name.parse::<ProjectName>().is_ok(), "{name}");
        }
        let nameless = ProjectName::generate("∑", EventId([7; 16]));
        assert_eq!(nameless.as_str(), TaskId::generate(EventId([7; 16])).as_str());
        let named = ProjectName::generate("my-shop", EventId([7; 16]));
        assert_eq!(ProjectName::readable(named.as_str()), "my-shop");
        for name in [nameless.as_str(), "shop", "my-shop", "a-0123456789abc", "-0123456789ab"] {
            assert_eq!(ProjectName::readable(name), name);
        }
    }

    #[test]
    fn a_notice_is_named_after_its_words_and_where_they_end() {
        assert_eq!(NoticeId::of(&["a", "b"]), NoticeId::of(&["a", "b"]));
        for other in [&["ab"][..], &["b", "a"], &["a", "b", ""], &["a"]] {
            assert_ne!(NoticeId::of(other), NoticeId::of(&["a", "b"]), "{other:?}");
        }
    }

    #[test]
    fn subjects_of_a_newer_version_are_told_from_what_no_version_writes() {
        for name in ["_xyz", "_q-abc", "_s-", "_w-_v-1", "_w-_n-", "_"] {
            let newer = name.parse().map(Subject::Newer).unwrap();
            assert_eq!(name.parse::<Subject>().unwrap(), newer, "{name}");
        }
        for bad in ["", "-a", "_a.b", "_a b", "_ä", &format!("_{}", "x".repeat(128))] {
            assert!(bad.parse::<Subject>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_read_back() {
        let id = EventId([0xa5; 16]).derive("x", 0);
        assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
        for bad in ["", "00", &format!("{id}0"), &"g".repeat(32)] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
        let task = TaskId::generate(id);
        assert_eq!(task.as_str().len(), GENERATED_LEN);
        for subject in [
            Subject::Task(task),
            Subject::Graph,
            Subject::Cursor,
            Subject::Project,
            Subject::Workflow(RunId::generate(id)),
            Subject::Session(SessionId::generate(id)),
            Subject::Purse,
            Subject::Notice(NoticeId::of(&["a", "b"])),
            Subject::Slots,
            Subject::Schedule("nightly".parse().unwrap()),
            Subject::Newer("_q-abc".parse().unwrap()),
        ] {
            assert_eq!(subject.to_string().parse::<Subject>().unwrap(), subject);
        }
    }
}
