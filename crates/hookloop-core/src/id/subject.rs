//! Subjects of events: tasks, sessions, and other things that the log keeps apart.

use std::fmt;
use std::str::FromStr;

use super::names::{NoticeId, RunId, ScheduleName, SessionId};
use super::task_id::TaskId;

/// The subject of an event, and the unit of optimistic concurrency: a subject's version is the sequence number
/// of the last event on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Task(TaskId),
    /// Edges between two existing tasks. On one subject, two of them cannot close a cycle together.
    Graph,
    /// The position of reactions.
    Cursor,
    /// The project itself: enabled hooks, and records that belong to no task.
    Project,
    Workflow(RunId),
    Session(SessionId),
    /// The directives of the fleet.
    Fleet,
    /// Reservations of the shared budget. A process that reserves has read all earlier reservations.
    Budget,
    /// A notification. Its sender has claimed it on this subject.
    Notice(NoticeId),
    /// Claims under a WIP limit. A process that claims has read all earlier claims.
    Slots,
    Schedule(ScheduleName),
    /// A subject of a newer version. It is stored and has no effect.
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
            // The stored name stays, for logs of earlier builds.
            Subject::Budget => f.write_str("_purse"),
            // The previous version stops at an unknown name, but accepts any name of a workflow run. No run has
            // this name, because names of runs have no underscore.
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
            "_purse" => Ok(Subject::Budget),
            "_w-_slots" => Ok(Subject::Slots),
            _ => read_subject(text).ok_or_else(|| BadSubject(text.to_owned())),
        }
    }
}

/// Reads a subject with a name of its own. An unreadable one belongs to a newer version, unless no version
/// writes such a name.
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
