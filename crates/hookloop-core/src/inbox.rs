//! Problems that need a person: the events that raise and end them.
//!
//! A problem is named after the event that raised it. So it is the same on every machine and after every
//! restart, and a problem that comes back has another name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::event::EventBody;
use crate::excerpt::first_chars;
use crate::id::{SessionId, Subject, TaskId};
use crate::payload::plan::{SessionPlan, SessionWork};
use crate::payload::session::{SessionEnded, SessionOutcome, TaskExit};
use crate::payload::session_limits::SessionLimit;
use crate::time::Timestamp;

pub use crate::excerpt::one_line;
pub use crate::payload::inbox::{NotificationClaimed, NotificationFailed, ProblemDismissed};

/// The longest text about a problem that leaves the project.
pub const TEXT_MAX: usize = 2_000;

/// The longest line of such a text.
pub const LINE_MAX: usize = 200;

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    TaskBlocked,
    /// A submission can't be merged without a human.
    MergeBlocked,
    /// A session did not finish its work, and no task reports it.
    SessionEnded,
    SessionPaused,
    /// A session waits for a decision about gates that fail.
    SessionAsks,
    BudgetExhausted,
}

impl ProblemKind {
    pub const ALL: [ProblemKind; 6] = [
        ProblemKind::TaskBlocked,
        ProblemKind::MergeBlocked,
        ProblemKind::SessionEnded,
        ProblemKind::SessionPaused,
        ProblemKind::SessionAsks,
        ProblemKind::BudgetExhausted,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::TaskBlocked => "task_blocked",
            ProblemKind::MergeBlocked => "merge_blocked",
            ProblemKind::SessionEnded => "session_ended",
            ProblemKind::SessionPaused => "session_paused",
            ProblemKind::SessionAsks => "session_asks",
            ProblemKind::BudgetExhausted => "budget_exhausted",
        }
    }

    /// Returns the problem in words.
    pub fn words(self) -> &'static str {
        match self {
            ProblemKind::TaskBlocked => "is blocked",
            ProblemKind::MergeBlocked => "can't be merged",
            ProblemKind::SessionEnded => "did not finish",
            ProblemKind::SessionPaused => "is paused",
            ProblemKind::SessionAsks => "needs a decision",
            ProblemKind::BudgetExhausted => "is exhausted",
        }
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ProblemKind {
    type Err = String;

    fn from_str(text: &str) -> Result<ProblemKind, String> {
        ProblemKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = ProblemKind::ALL.map(ProblemKind::name).join(", ");
            format!("`{text}` is not a type of problem: one of {names}")
        })
    }
}

/// The subject of a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemSubject {
    Task(TaskId),
    Session(SessionId),
    Budget,
}

impl ProblemSubject {
    /// Returns the subject whose events raise the problem.
    pub fn subject(&self) -> Subject {
        match self {
            ProblemSubject::Task(id) => Subject::Task(id.clone()),
            ProblemSubject::Session(id) => Subject::Session(id.clone()),
            ProblemSubject::Budget => Subject::Budget,
        }
    }

    pub fn of(subject: Subject) -> Option<ProblemSubject> {
        match subject {
            Subject::Task(id) => Some(ProblemSubject::Task(id)),
            Subject::Session(id) => Some(ProblemSubject::Session(id)),
            Subject::Budget => Some(ProblemSubject::Budget),
            _ => None,
        }
    }
}

impl fmt::Display for ProblemSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemSubject::Task(id) => write!(f, "task:{id}"),
            ProblemSubject::Session(id) => write!(f, "session:{id}"),
            ProblemSubject::Budget => f.write_str("budget"),
        }
    }
}

/// A problem's name: its subject, and the version of the event that raised it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProblemKey {
    pub about: ProblemSubject,
    pub version: u64,
}

impl fmt::Display for ProblemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.about, self.version)
    }
}

impl FromStr for ProblemKey {
    type Err = BadProblemKey;

    fn from_str(text: &str) -> Result<ProblemKey, BadProblemKey> {
        let bad = || BadProblemKey(first_chars(text, LINE_MAX));
        let (about, version) = text.rsplit_once('@').ok_or_else(bad)?;
        let about = match about.split_once(':') {
            Some(("task", id)) => ProblemSubject::Task(id.parse().map_err(|_| bad())?),
            Some(("session", id)) => ProblemSubject::Session(id.parse().map_err(|_| bad())?),
            // Logs of earlier builds have the key as `purse@N`.
            None if about == "budget" || about == "purse" => ProblemSubject::Budget,
            _ => return Err(bad()),
        };
        Ok(ProblemKey { about, version: version.parse().map_err(|_| bad())? })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the key of a problem: `task:ID@N`, `session:ID@N` or `budget@N`")]
pub struct BadProblemKey(String);

/// A problem that needs a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub key: ProblemKey,
    pub kind: ProblemKind,
    pub reason: String,
    pub since: Timestamp,
    /// The actor of the event.
    pub by: String,
    /// A person dismissed the problem.
    pub is_dismissed: bool,
}

/// The effect of an event on the problem of its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemChange {
    Arises { kind: ProblemKind, reason: String },
    Passes,
}

fn arises(kind: ProblemKind, reason: &str) -> Option<ProblemChange> {
    Some(ProblemChange::Arises { kind, reason: reason.to_owned() })
}

/// Returns the effect of a task's event. Most events have none.
pub fn of_task(body: &EventBody) -> Option<ProblemChange> {
    match body {
        EventBody::TaskBlocked(obstacle) => arises(ProblemKind::TaskBlocked, &obstacle.reason),
        EventBody::MergeBlocked(held) => match &held.reason {
            Some(reason) => arises(ProblemKind::MergeBlocked, reason),
            None => Some(ProblemChange::Passes),
        },
        EventBody::TaskStarted(_)
        | EventBody::TaskReleased(_)
        | EventBody::TaskSubmitted(_)
        | EventBody::TaskReturned(_)
        | EventBody::TaskApproved(_)
        | EventBody::TaskMerged(_)
        | EventBody::TaskCompleted(_)
        | EventBody::TaskUnblocked(_)
        | EventBody::TaskDeleted(_) => Some(ProblemChange::Passes),
        _ => None,
    }
}

/// The ends of a session that are a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndReporting {
    /// No end: a task reports the problem, or a person is present.
    #[default]
    Nothing,
    /// An end without completion: the session released a task, and nothing else reports that.
    WhenStuck,
    /// Every end without completion: the session has work of its own.
    Always,
}

impl EndReporting {
    /// Returns the policy at the start of a session.
    pub fn first(plan: &SessionPlan) -> EndReporting {
        match plan.work {
            SessionWork::Prompt(_) | SessionWork::Spec(_) => EndReporting::Always,
            SessionWork::Tasks
            | SessionWork::Task(_)
            | SessionWork::Own
            | SessionWork::Review(_) => EndReporting::Nothing,
        }
    }

    /// Returns the policy after a task was left in this way.
    pub fn after(left: TaskExit) -> EndReporting {
        match left {
            TaskExit::Released => EndReporting::WhenStuck,
            TaskExit::Completed
            | TaskExit::Submitted
            | TaskExit::Returned
            | TaskExit::Blocked
            | TaskExit::Lost => EndReporting::Nothing,
        }
    }
}

/// Returns the effect of a session's event.
pub fn of_session(body: &EventBody, asks: EndReporting) -> Option<ProblemChange> {
    match (body, asks) {
        (EventBody::SessionPaused(_), _) => {
            arises(ProblemKind::SessionPaused, "it was asked to pause")
        }
        (EventBody::DecisionRequested(asked), _) => {
            arises(ProblemKind::SessionAsks, &asked.to_string())
        }
        (
            EventBody::SessionEnded(SessionEnded {
                outcome: SessionOutcome::NeedsHuman { reason },
                ..
            }),
            EndReporting::Always | EndReporting::WhenStuck,
        ) => arises(ProblemKind::SessionEnded, reason),
        // An exhausted budget is one problem for all sessions.
        (
            EventBody::SessionEnded(SessionEnded {
                outcome: SessionOutcome::Limit { limit: SessionLimit::Budget },
                ..
            }),
            _,
        ) => Some(ProblemChange::Passes),
        (
            EventBody::SessionEnded(SessionEnded {
                outcome: SessionOutcome::Limit { limit }, ..
            }),
            EndReporting::Always | EndReporting::WhenStuck,
        ) => {
            arises(ProblemKind::SessionEnded, &format!("its limit of {} was reached", limit.name()))
        }
        (
            EventBody::SessionEnded(_)
            | EventBody::SessionReopened(_)
            | EventBody::SessionResumed(_)
            | EventBody::DecisionMade(_),
            _,
        ) => Some(ProblemChange::Passes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::MergeBlocked;
    use crate::event::NoData;
    use crate::session::facts::DecisionRequested;
    use crate::task::TaskObstacle;

    #[test]
    fn problem_keys_and_kinds_read_back() {
        for text in ["task:a-b@7", "session:x1@12", "budget@3"] {
            assert_eq!(text.parse::<ProblemKey>().map(|key| key.to_string()).as_deref(), Ok(text));
        }
        for bad in ["", "task:a", "task:@1", "task:a@", "task:a@x", "run:a@1", "budget:a@1", "a@1"]
        {
            assert!(bad.parse::<ProblemKey>().is_err(), "{bad}");
        }
        for kind in ProblemKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::json!(kind), kind.name());
        }
    }

    #[test]
    fn a_note_does_not_clear_the_problem_of_a_blocked_task() {
        let blocked = EventBody::TaskBlocked(TaskObstacle {
            reason: "why".into(),
            ..TaskObstacle::default()
        });
        assert_eq!(of_task(&blocked), arises(ProblemKind::TaskBlocked, "why"));
        assert_eq!(of_task(&EventBody::TaskUnblocked(NoData {})), Some(ProblemChange::Passes));
        let noted =
            EventBody::TaskNoted(crate::remark::TaskNoted { text: "a".into(), question: None });
        assert_eq!(of_task(&noted), None);
        let held = |reason: Option<&str>| {
            let reason = reason.map(str::to_owned);
            of_task(&EventBody::MergeBlocked(MergeBlocked { head: "a".into(), reason }))
        };
        assert_eq!(held(Some("no token")), arises(ProblemKind::MergeBlocked, "no token"));
        assert_eq!(held(None), Some(ProblemChange::Passes));
    }

    #[test]
    fn session_problems_arise_as_the_end_reporting_allows() {
        let stuck =
            EventBody::SessionEnded(SessionOutcome::NeedsHuman { reason: "why".into() }.into());
        let limit = |limit| EventBody::SessionEnded(SessionOutcome::Limit { limit }.into());
        let check = |body: &EventBody, asks: EndReporting, expected: Option<&str>| {
            let reason = match of_session(body, asks) {
                Some(ProblemChange::Arises { reason, .. }) => Some(reason),
                _ => None,
            };
            assert_eq!(reason.as_deref(), expected, "{body:?} {asks:?}");
        };
        check(&stuck, EndReporting::Always, Some("why"));
        check(&stuck, EndReporting::WhenStuck, Some("why"));
        check(&stuck, EndReporting::Nothing, None);
        check(
            &limit(SessionLimit::Errors),
            EndReporting::Always,
            Some("its limit of errors was reached"),
        );
        check(
            &limit(SessionLimit::Errors),
            EndReporting::WhenStuck,
            Some("its limit of errors was reached"),
        );
        check(&limit(SessionLimit::Errors), EndReporting::Nothing, None);
        check(&limit(SessionLimit::Budget), EndReporting::Always, None);
        check(
            &EventBody::SessionPaused(NoData {}),
            EndReporting::Nothing,
            Some("it was asked to pause"),
        );
        let asked = |retries: u32, failing: &[&str]| {
            let failing = failing.iter().map(|check| (*check).to_owned()).collect();
            EventBody::DecisionRequested(DecisionRequested { retries, failing })
        };
        let one = "gates still fail after 1 retry: lint";
        check(&asked(1, &["lint"]), EndReporting::Nothing, Some(one));
        let many = "gates still fail after 2 retries: a, b, c, d and 1 more";
        check(&asked(2, &["a", "b", "c", "d", "e"]), EndReporting::Nothing, Some(many));
    }

    #[test]
    fn one_line_removes_line_breaks_and_control_characters_and_truncates() {
        let check =
            |text: &str, max: usize, expected: &str| assert_eq!(one_line(text, max), expected);
        check("a\r\nBcc: x@y\n\n b", 99, "a Bcc: x@y b");
        check("a\u{1b}[31mb\u{202e}c\0", 99, "a [31mb c");
        check("漢字漢字字", 4, "漢字漢…");
        check("漢字漢字", 4, "漢字漢字");
        check("", 4, "");
    }
}
