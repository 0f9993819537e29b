//! Topics of pages, and the events that change them.

use std::collections::HashMap;

use hookloop_core::event::EventBody;
use hookloop_core::id::Subject;
use hookloop_engine::store::{Seq, StoredEvent};

/// Subjects that are tracked. With more, all earlier ones count as changed.
const SUBJECTS_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Problems,
    Sessions,
    Tasks,
    Usage,
    Hooks,
    Log,
    /// The subject of the page.
    This,
}

/// Those that all pages of a project share.
const SHARED: [Topic; 6] =
    [Topic::Problems, Topic::Sessions, Topic::Tasks, Topic::Usage, Topic::Hooks, Topic::Log];

impl Topic {
    pub(super) fn name(self) -> &'static str {
        match self {
            Topic::Problems => "problems",
            Topic::Sessions => "sessions",
            Topic::Tasks => "tasks",
            Topic::Usage => "usage",
            Topic::Hooks => "hooks",
            Topic::Log => "log",
            Topic::This => "this",
        }
    }
}

/// The last event that changed each thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The last event of all.
    pub(super) seq: Seq,
    topics: [Seq; SHARED.len()],
    subjects: HashMap<Subject, Seq>,
    /// No subject that is not tracked has an event after this one.
    before: Seq,
}

impl Marks {
    /// Everything may have changed up to event `seq`.
    pub(super) fn all(seq: Seq) -> Marks {
        Marks { seq, topics: [seq; SHARED.len()], subjects: HashMap::new(), before: seq }
    }

    pub(super) fn note(&mut self, stored: &StoredEvent) {
        let seq = stored.seq;
        let subject = &stored.event.subject;
        self.seq = self.seq.max(seq);
        for topic in changed(subject, &stored.event.body) {
            self.topics[*topic as usize] = seq;
        }
        if !matches!(subject, Subject::Task(_) | Subject::Session(_)) {
            return;
        }
        if self.subjects.len() == SUBJECTS_MAX && !self.subjects.contains_key(subject) {
            self.subjects.clear();
            self.before = seq;
        }
        self.subjects.insert(subject.clone(), seq);
    }

    /// Returns the topics that have changed since event `seq`, for a page about `subject`.
    pub(super) fn since(&self, seq: Seq, subject: Option<&Subject>) -> Vec<Topic> {
        let shared = SHARED.into_iter().filter(|topic| self.topics[*topic as usize] > seq);
        let is_changed =
            |subject: &Subject| self.subjects.get(subject).copied().unwrap_or(self.before) > seq;
        let this = subject.filter(|subject| is_changed(subject)).map(|_| Topic::This);
        shared.chain(this).collect()
    }
}

/// Returns the topics of an event. Events of tasks and sessions also change problems.
fn changed(subject: &Subject, body: &EventBody) -> &'static [Topic] {
    use Topic::{Hooks, Log, Problems, Sessions, Tasks, Usage};
    match (subject, body) {
        (Subject::Task(_) | Subject::Graph, _) => &[Tasks, Problems, Log],
        (Subject::Session(_), EventBody::HookRan(_)) => &[Hooks, Log],
        (Subject::Session(_), EventBody::TurnEnded(_)) => &[Sessions, Usage, Log],
        (
            Subject::Session(_),
            EventBody::SessionStarted(_)
            | EventBody::IterationStarted(_)
            | EventBody::TurnStarted(_)
            | EventBody::SessionTaskClaimed(_)
            | EventBody::SessionTaskReleased(_)
            | EventBody::DecisionRequested(_)
            | EventBody::DecisionMade(_)
            | EventBody::PauseRequested(_)
            | EventBody::StopRequested(_)
            | EventBody::SessionReopened(_)
            | EventBody::SessionPaused(_)
            | EventBody::SessionResumed(_)
            | EventBody::SessionEnded(_)
            | EventBody::BudgetExhausted(_),
        ) => &[Sessions, Problems, Log],
        (Subject::Session(_), _) => &[Log],
        (Subject::Budget, _) => &[Usage],
        (Subject::Notice(_), _) => &[Problems, Log],
        (
            _,
            EventBody::HookEnabled(_)
            | EventBody::HookDisabled(_)
            | EventBody::HooksTrusted(_)
            | EventBody::HookRan(_),
        ) => &[Hooks, Log],
        _ => &[Log],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookloop_core::event::{Event, NoData};
    use hookloop_core::id::EventId;
    use hookloop_core::time::Timestamp;

    fn event(seq: Seq, subject: &str, body: EventBody) -> StoredEvent {
        let subject = subject.parse().unwrap();
        let event = Event {
            id: EventId([0; 16]),
            at: Timestamp(0),
            subject,
            actor: String::new(),
            cause: None,
            due: false,
            body,
        };
        StoredEvent { seq, after: None, digest: [0; 32], event }
    }

    fn names(topics: &[Topic]) -> String {
        topics.iter().map(|topic| topic.name()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_page_is_notified_of_its_topics_and_subject() {
        let mut marks = Marks::all(10);
        marks.note(&event(11, "_s-a", EventBody::SessionPaused(NoData {})));
        marks.note(&event(12, "t", EventBody::TaskUnblocked(NoData {})));
        let a: Subject = "_s-a".parse().unwrap();
        let b: Subject = "_s-b".parse().unwrap();
        let since = |seq, subject| names(&marks.since(seq, subject));
        assert_eq!(since(10, Some(&a)), "problems sessions tasks log this");
        assert_eq!(since(10, Some(&b)), "problems sessions tasks log");
        assert_eq!(since(11, Some(&a)), "problems tasks log");
        assert_eq!(since(12, Some(&a)), "");
        assert_eq!(since(9, None), "problems sessions tasks usage hooks log");
    }

    #[test]
    fn changes_of_more_subjects_than_the_limit_are_not_missed() {
        let mut marks = Marks::all(0);
        for n in 1..=SUBJECTS_MAX as Seq + 1 {
            marks.note(&event(n, &format!("t{n}"), EventBody::TaskUnblocked(NoData {})));
        }
        let first: Subject = "t1".parse().unwrap();
        assert!(marks.subjects.len() < SUBJECTS_MAX);
        assert!(marks.since(0, Some(&first)).contains(&Topic::This));
        assert!(!marks.since(SUBJECTS_MAX as Seq + 1, Some(&first)).contains(&Topic::This));
    }
}
