//! The suite that every log passes.
//!
//! `conformance!` runs the suite against the log that its second argument returns. The argument is a pair: an empty log,
//! and a value that lives as long as the log. A further engine is one more line.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hookloop_core::event::{Event, EventBody, NoData, OtherEvent, TaskStarted};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::task::TaskSpec;
use hookloop_core::time::Timestamp;

use hookloop_store::log::{AppendError, AppendOutcome, EventLog, MAX_BATCH, NewEvent, Seq};

/// Defines a test of each promise for the log that `$make` returns.
macro_rules! conformance {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;
            conformance!(@tests $make,
                appends_in_order, refuses_a_stale_version, stores_a_batch_whole_or_not_at_all,
                recognizes_a_repeated_batch, takes_several_events_on_a_subject, limits_the_batch_size,
                reads_back_appended_events, keeps_unknown_event_types_and_subjects, follows_without_a_gap,
                one_of_many_writers_wins);
        }
    };
    (@tests $make:expr, $($test:ident),*) => {
        $(#[test]
        fn $test() {
            let (log, _alive) = $make;
            $crate::conformance::$test(&log);
        })*
    };
}

fn task(name: &str) -> Subject {
    Subject::Task(name.parse().unwrap())
}

fn event(id: u16, subject: Subject, body: EventBody) -> Event {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    Event {
        id: EventId(bytes),
        at: Timestamp(i64::from(id)),
        subject,
        actor: "tester".into(),
        cause: None,
        due: false,
        body,
    }
}

fn created(id: u16, name: &str) -> NewEvent {
    let body =
        EventBody::TaskCreated(TaskSpec { goal: format!("{name} ✓"), ..TaskSpec::default() });
    NewEvent { expected: 0, event: event(id, task(name), body) }
}

fn started(id: u16, name: &str, expected: Seq) -> NewEvent {
    let body = EventBody::TaskStarted(TaskStarted::default());
    NewEvent { expected, event: event(id, task(name), body) }
}

fn advanced(id: u16, expected: Seq) -> NewEvent {
    NewEvent { expected, event: event(id, Subject::Graph, EventBody::GraphAdvanced(NoData {})) }
}

fn conflicts(result: Result<AppendOutcome, AppendError>, on: &Subject, at: Seq) {
    match result {
        Err(AppendError::Conflict { subject, actual, .. }) => {
            assert_eq!((&subject, actual), (on, at));
        }
        other => panic!("not a conflict: {other:?}"),
    }
}

pub(crate) fn appends_in_order(log: &dyn EventLog) {
    assert_eq!(log.last(&task("a")).unwrap(), None);
    assert_eq!(log.append(&[created(1, "a")]).unwrap(), AppendOutcome::At(1));
    assert_eq!(log.append(&[created(2, "b")]).unwrap(), AppendOutcome::At(2));
    assert_eq!(log.append(&[started(3, "a", 1)]).unwrap(), AppendOutcome::At(3));
    assert_eq!(log.last(&task("a")).unwrap().unwrap().seq, 3);
    assert_eq!(log.last(&task("b")).unwrap().unwrap().seq, 2);
    let history = log.history(&task("a"), 10).unwrap();
    assert_eq!(history.iter().map(|e| e.seq).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(log.history(&task("a"), 1).unwrap()[0].seq, 3);
}

pub(crate) fn refuses_a_stale_version(log: &dyn EventLog) {
    log.append(&[created(1, "a")]).unwrap();
    conflicts(log.append(&[created(2, "a")]), &task("a"), 1);
    log.append(&[started(3, "a", 1)]).unwrap();
    conflicts(log.append(&[started(4, "a", 1)]), &task("a"), 2);
    conflicts(log.append(&[started(5, "a", 7)]), &task("a"), 2);
    assert_eq!(log.read(1, 10).unwrap().len(), 2);
}

pub(crate) fn stores_a_batch_whole_or_not_at_all(log: &dyn EventLog) {
    log.append(&[created(1, "a")]).unwrap();
    conflicts(log.append(&[created(2, "b"), advanced(3, 0), created(4, "a")]), &task("a"), 1);
    assert_eq!(log.read(1, 10).unwrap().len(), 1);
    assert_eq!(log.last(&task("b")).unwrap(), None);
    assert_eq!(log.append(&[created(2, "b"), advanced(3, 0)]).unwrap(), AppendOutcome::At(2));
    assert_eq!(log.last(&Subject::Graph).unwrap().unwrap().seq, 3);
}

pub(crate) fn recognizes_a_repeated_batch(log: &dyn EventLog) {
    let first = [created(1, "a"), advanced(2, 0)];
    log.append(&first).unwrap();
    for n in 3..40 {
        log.append(&[started(n, "a", log.last(&task("a")).unwrap().unwrap().seq)]).unwrap();
    }
    assert_eq!(log.append(&first).unwrap(), AppendOutcome::Before(1));
    assert_eq!(log.append(&[started(3, "a", 1)]).unwrap(), AppendOutcome::Before(3));
    assert_eq!(log.read(1, 100).unwrap().len(), 39);
}

pub(crate) fn takes_several_events_on_a_subject(log: &dyn EventLog) {
    let batch = [created(1, "a"), started(2, "a", 0), created(3, "b"), started(4, "a", 0)];
    assert_eq!(log.append(&batch).unwrap(), AppendOutcome::At(1));
    assert_eq!(log.last(&task("a")).unwrap().unwrap().seq, 4);
    let history = log.history(&task("a"), 10).unwrap();
    assert_eq!(history.iter().map(|e| e.seq).collect::<Vec<_>>(), [1, 2, 4]);
}

pub(crate) fn limits_the_batch_size(log: &dyn EventLog) {
    let many = |n: usize| (0..n).map(|i| created(i as u16, &format!("t{i}"))).collect::<Vec<_>>();
    assert!(matches!(log.append(&[]), Err(AppendError::BatchSize(0))));
    let over = MAX_BATCH + 1;
    assert!(matches!(log.append(&many(over)), Err(AppendError::BatchSize(n)) if n == over));
    assert_eq!(log.append(&many(MAX_BATCH)).unwrap(), AppendOutcome::At(1));
    assert_eq!(log.read(MAX_BATCH as Seq, 10).unwrap().len(), 1);
}

pub(crate) fn reads_back_appended_events(log: &dyn EventLog) {
    let mut new = created(7, "a");
    new.event.actor = "Zoë \"; DROP TABLE event".into();
    new.event.due = true;
    new.event.cause = Some(hookloop_core::cascade::EventCause {
        event: EventId([1; 16]),
        hook: "h".into(),
        root: EventId([2; 16]),
        depth: 3,
        count: 4,
    });
    log.append(std::slice::from_ref(&new)).unwrap();
    let stored = log.last(&task("a")).unwrap().unwrap();
    assert_eq!(stored.event, new.event);
    assert_eq!(log.read(0, 10).unwrap(), [stored]);
    assert!(log.read(2, 10).unwrap().is_empty());
    assert!(log.read(1, 0).unwrap().is_empty());
}

pub(crate) fn keeps_unknown_event_types_and_subjects(log: &dyn EventLog) {
    let data = serde_json::json!({"to": "mars", "with": ["ada"]});
    let body = EventBody::Other(OtherEvent { kind: "teleported".to_owned(), data });
    let subjects = ["_p", "_xyz", "_q-abc", "_w-_v-1"].map(|name| name.parse::<Subject>().unwrap());
    for (id, subject) in (1..).zip(&subjects) {
        let event = event(id, subject.clone(), body.clone());
        assert_eq!(
            log.append(&[NewEvent { expected: 0, event }]).unwrap(),
            AppendOutcome::At(id.into())
        );
    }
    let read = log.read(1, 10).unwrap();
    assert_eq!(read.iter().map(|e| &e.event.subject).collect::<Vec<_>>(), subjects.each_ref());
    assert!(read.iter().all(|stored| stored.event.body == body), "{read:?}");
    for (seq, subject) in (1..).zip(&subjects) {
        assert_eq!(log.last(subject).unwrap().unwrap().seq, seq);
        assert_eq!(log.history(subject, 10).unwrap().len(), 1);
    }
    let (mut follower, mut followed) = (log.follow(1).unwrap(), Vec::new());
    let end = Instant::now() + Duration::from_secs(5);
    while followed.len() < read.len() && Instant::now() < end {
        followed.extend(follower.next(Duration::from_secs(1)).unwrap());
    }
    assert_eq!(followed, read);
}

pub(crate) fn follows_without_a_gap(log: &dyn EventLog) {
    const EVENTS: u16 = 500;
    log.append(&[created(0, "first")]).unwrap();
    let mut follower = log.follow(1).unwrap();
    assert!(log.follow(2).unwrap().next(Duration::ZERO).unwrap().is_empty());
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let (mut seen, end) = (Vec::new(), Instant::now() + Duration::from_secs(30));
            while seen.len() <= usize::from(EVENTS) && Instant::now() < end {
                let next = follower.next(Duration::from_secs(5)).unwrap();
                seen.extend(next.into_iter().map(|event| event.seq));
            }
            seen
        });
        for n in 1..=EVENTS {
            log.append(&[created(n, &format!("t{n}"))]).unwrap();
        }
        assert_eq!(reader.join().unwrap(), (1..=Seq::from(EVENTS) + 1).collect::<Vec<_>>());
    });
}

/// Many writers race for the same version of one subject: each round exactly one is stored.
pub(crate) fn one_of_many_writers_wins(log: &dyn EventLog) {
    const WRITERS: u16 = 4;
    const ROUNDS: u16 = 25;
    log.append(&[created(0, "a")]).unwrap();
    let wins = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let wins = &wins;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let version = log.last(&task("a")).unwrap().unwrap().seq;
                    let id = 1 + writer * ROUNDS + round;
                    match log.append(&[started(id, "a", version)]) {
                        Ok(appended) => wins.lock().unwrap().push(appended.first()),
                        Err(AppendError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let wins = wins.into_inner().unwrap();
    assert_eq!(wins.iter().collect::<HashSet<_>>().len(), wins.len(), "no place is won twice");
    assert_eq!(log.read(1, 1_000).unwrap().len(), wins.len() + 1, "no win is lost");
    assert!(wins.len() >= usize::from(ROUNDS), "someone wins every round");
}
