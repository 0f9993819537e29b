//! Problems that need a person: the events that raise and end them.
//!
//! A problem is named after the event that raised it. So it is the same on every machine and after every
//! restart, and a problem that comes back has another name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::event::EventBody;
use crate::id::{SessionId, Subject, TaskId};
use crate::payload::plan::{Plan, Work};
use crate::payload::session::{Left, Outcome, SessionEnded};
use crate::payload::session_limits::Limit;
use crate::time::Timestamp;

pub use crate::excerpt::one_line;
pub use crate::payload::inbox::{Dismissed, NoticeClaimed, NoticeFailed};

/// The longest text about a problem that leaves the project.
pub const TEXT_MAX: usize = 2_000;

/// The longest line of such a text.
pub const LINE_MAX: usize = 200;

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    TaskBlocked,
    /// A submission can't be merged without a human.
    MergeHeld,
    /// A session did not finish its work, and no task reports it.
    SessionEnded,
    SessionPaused,
    /// A session waits for a decision about gates that fail.
    SessionAsks,
    PurseExhausted,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::TaskBlocked,
        Kind::MergeHeld,
        Kind::SessionEnded,
        Kind::SessionPaused,
        Kind::SessionAsks,
        Kind::PurseExhausted,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::TaskBlocked => "task_blocked",
            Kind::MergeHeld => "merge_held",
            Kind::SessionEnded => "session_ended",
            Kind::SessionPaused => "session_paused",
            Kind::SessionAsks => "session_asks",
            Kind::PurseExhausted => "purse_exhausted",
        }
    }

    /// The problem in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::TaskBlocked => "is blocked",
            Kind::MergeHeld => "can't be merged",
            Kind::SessionEnded => "did not finish",
            Kind::SessionPaused => "is paused",
            Kind::SessionAsks => "asks what to do",
            Kind::PurseExhausted => "is empty",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        Kind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = Kind::ALL.map(Kind::name).join(", ");
            format!("`{text}` is no kind of problem: one of {names}")
        })
    }
}

/// The subject of a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    Task(TaskId),
    Session(SessionId),
    Purse,
}

impl About {
    /// The subject whose events raise the problem.
    pub fn subject(&self) -> Subject {
        match self {
            About::Task(id) => Subject::Task(id.clone()),
            About::Session(id) => Subject::Session(id.clone()),
            About::Purse => Subject::Purse,
        }
    }

    pub fn of(subject: Subject) -> Option<About> {
        match subject {
            Subject::Task(id) => Some(About::Task(id)),
            Subject::Session(id) => Some(About::Session(id)),
            Subject::Purse => Some(About::Purse),
            _ => None,
        }
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            About::Task(id) => write!(f, "task:{id}"),
            About::Session(id) => write!(f, "session:{id}"),
            About::Purse => f.write_str("purse"),
        }
    }
}

/// A problem's name: its subject, and the version of the event that raised it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub about: About,
    pub version: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.about, self.version)
    }
}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Key, BadKey> {
        let bad = || BadKey(text.chars().take(LINE_MAX).collect());
        let (about, version) = text.rsplit_once('@').ok_or_else(bad)?;
        let about = match about.split_once(':') {
            Some(("task", id)) => About::Task(id.parse().map_err(|_| bad())?),
            Some(("session", id)) => About::Session(id.parse().map_err(|_| bad())?),
            None if about == "purse" => About::Purse,
            _ => return Err(bad()),
        };
        Ok(Key { about, version: version.parse().map_err(|_| bad())? })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the key of a problem: `task:ID@N`, `session:ID@N` or `purse@N`")]
pub struct BadKey(String);

/// A problem that needs a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub key: Key,
    pub kind: Kind,
    pub reason: String,
    pub since: Timestamp,
    /// The actor of the event.
    pub by: String,
    /// A person dismissed the problem.
    pub is_dismissed: bool,
}

/// The effect of an event on the problem of its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Arises { kind: Kind, reason: String },
    Passes,
}

fn arises(kind: Kind, reason: &str) -> Option<Change> {
    Some(Change::Arises { kind, reason: reason.to_owned() })
}

/// Returns the effect of a task's event. Most events have none.
pub fn of_task(body: &EventBody) -> Option<Change> {
    match body {
        EventBody::TaskBlocked(obstacle) => arises(Kind::TaskBlocked, &obstacle.reason),
        EventBody::MergeHeld(held) => match &held.reason {
            Some(reason) => arises(Kind::MergeHeld, reason),
            None => Some(Change::Passes),
        },
        EventBody::TaskStarted(_)
        | EventBody::TaskReleased(_)
        | EventBody::TaskSubmitted(_)
        | EventBody::TaskReturned(_)
        | EventBody::TaskApproved(_)
        | EventBody::TaskMerged(_)
        | EventBody::TaskCompleted(_)
        | EventBody::TaskUnblocked(_)
        | EventBody::TaskDeleted(_) => Some(Change::Passes),
        _ => None,
    }
}

/// The ends of a session that are a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// No end: a task reports the problem, or a person is present.
    #[default]
    Nothing,
    /// An end without completion: the session released a task, and nothing else reports that.
    WhenStuck,
    /// Every end without completion: the session has work of its own.
    Always,
}

impl Asks {
    /// Returns the policy at the start of a session.
    pub fn first(plan: &Plan) -> Asks {
        match plan.work {
            Work::Prompt(_) | Work::Spec(_) => Asks::Always,
            Work::Tasks | Work::Task(_) | Work::Own | Work::Review(_) => Asks::Nothing,
        }
    }

    /// Returns the policy after a task was left in this way.
    pub fn after(left: Left) -> Asks {
        match left {
            Left::Released => Asks::WhenStuck,
            Left::Completed | Left::Submitted | Left::Returned | Left::Blocked | Left::Lost => {
                Asks::Nothing
            }
        }
    }
}

/// Returns the effect of a session's event.
pub fn of_session(body: &EventBody, asks: Asks) -> Option<Change> {
    match (body, asks) {
        (EventBody::SessionPaused(_), _) => arises(Kind::SessionPaused, "it was asked to pause"),
        (EventBody::RetryLimitAsked(asked), _) => arises(Kind::SessionAsks, &asked.to_string()),
        (
            EventBody::SessionEnded(SessionEnded {
                outcome: Outcome::NeedsHuman { reason }, ..
            }),
            Asks::Always | Asks::WhenStuck,
        ) => arises(Kind::SessionEnded, reason),
        // An exhausted budget is one problem for all sessions.
        (
            EventBody::SessionEnded(SessionEnded {
                outcome: Outcome::Limit { limit: Limit::Purse },
                ..
            }),
            _,
        ) => Some(Change::Passes),
        (
            EventBody::SessionEnded(SessionEnded { outcome: Outcome::Limit { limit }, .. }),
            Asks::Always | Asks::WhenStuck,
        ) => arises(Kind::SessionEnded, &format!("its limit of {} was reached", limit.name())),
        (
            EventBody::SessionEnded(_)
            | EventBody::SessionReopened(_)
            | EventBody::SessionResumed(_)
            | EventBody::RetryLimitAnswered(_),
            _,
        ) => Some(Change::Passes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Held;
    use crate::event::Empty;
    use crate::session::facts::RetryLimitAsked;
    use crate::task::Obstacle;

    #[test]
    fn a_key_reads_back() {
        for text in ["task:a-b@7", "session:x1@12", "purse@3"] {
            assert_eq!(text.parse::<Key>().map(|key| key.to_string()).as_deref(), Ok(text));
        }
        for bad in ["", "task:a", "task:@1", "task:a@", "task:a@x", "run:a@1", "purse:a@1", "a@1"] {
            assert!(bad.parse::<Key>().is_err(), "{bad}");
        }
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::json!(kind), kind.name());
        }
    }

    #[test]
    fn what_is_said_about_a_task_does_not_end_its_problem() {
        let blocked =
            EventBody::TaskBlocked(Obstacle { reason: "why".into(), ..Obstacle::default() });
        assert_eq!(of_task(&blocked), arises(Kind::TaskBlocked, "why"));
        assert_eq!(of_task(&EventBody::TaskUnblocked(Empty {})), Some(Change::Passes));
        let noted = EventBody::TaskNoted(crate::remark::Noted { text: "a".into(), question: None });
        assert_eq!(of_task(&noted), None);
        let held = |reason: Option<&str>| {
            let reason = reason.map(str::to_owned);
            of_task(&EventBody::MergeHeld(Held { head: "a".into(), reason }))
        };
        assert_eq!(held(Some("no token")), arises(Kind::MergeHeld, "no token"));
        assert_eq!(held(None), Some(Change::Passes));
    }

    #[test]
    fn a_session_asks_where_no_task_does() {
        let stuck = EventBody::SessionEnded(Outcome::NeedsHuman { reason: "why".into() }.into());
        let limit = |limit| EventBody::SessionEnded(Outcome::Limit { limit }.into());
        let check = |body: &EventBody, asks: Asks, expected: Option<&str>| {
            let reason = match of_session(body, asks) {
                Some(Change::Arises { reason, .. }) => Some(reason),
                _ => None,
            };
            assert_eq!(reason.as_deref(), expected, "{body:?} {asks:?}");
        };
        check(&stuck, Asks::Always, Some("why"));
        check(&stuck, Asks::WhenStuck, Some("why"));
        check(&stuck, Asks::Nothing, None);
        check(&limit(Limit::Errors), Asks::Always, Some("its limit of errors was reached"));
        check(&limit(Limit::Errors), Asks::WhenStuck, Some("its limit of errors was reached"));
        check(&limit(Limit::Errors), Asks::Nothing, None);
        check(&limit(Limit::Purse), Asks::Always, None);
        check(&EventBody::SessionPaused(Empty {}), Asks::Nothing, Some("it was asked to pause"));
        let asked = |retries: u32, failing: &[&str]| {
            let failing = failing.iter().map(|check| (*check).to_owned()).collect();
            EventBody::RetryLimitAsked(RetryLimitAsked { retries, failing })
        };
        let one = "gates said no after 1 retry: lint";
        check(&asked(1, &["lint"]), Asks::Nothing, Some(one));
        let many = "gates said no after 2 retries: a, b, c, d and 1 more";
        check(&asked(2, &["a", "b", "c", "d", "e"]), Asks::Nothing, Some(many));
    }

    #[test]
    fn a_line_is_a_line_whatever_is_in_it() {
        let check =
            |text: &str, max: usize, expected: &str| assert_eq!(one_line(text, max), expected);
        check("a\r\nBcc: x@y\n\n b", 99, "a Bcc: x@y b");
        check("a\u{1b}[31mb\u{202e}c\0", 99, "a [31mb c");
        check("漢字漢字字", 4, "漢字漢…");
        check("漢字漢字", 4, "漢字漢字");
        check("", 4, "");
    }
}
