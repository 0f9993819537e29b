//! The result of an append agrees with the log, for every answer and failure of a server.
//!
//! Every failure happens to an event alone and to an atomic batch, on one server and on three.

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use hookloop_core::event::{Event, EventBody, TaskStarted};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::task::TaskSpec;
use hookloop_core::time::Timestamp;
use hookloop_store::heartbeat::{HeartbeatStore, HeldResource};
use hookloop_store::jetstream::{JetStreamLog, NatsOptions, ServerSafety};
use hookloop_store::log::{AppendError, AppendOutcome, EventLog, LogError, NewEvent, Seq};
use hookloop_testbed::{Cluster, Fault, Plan, Proxy, Server, wait_for};
use serde_json::{Value, json};

/// Every event of every project.
const EVENTS: &str = "hl.ev.";
/// Longer than the client waits for an answer.
const TOO_LATE: Duration = Duration::from_millis(3_500);
const STORED: Duration = Duration::from_secs(20);

/// How many events go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Alone,
    Batch,
}

/// A project's log twice: on a way where things go wrong, and as it is.
struct Bed<'s> {
    servers: &'s [Server],
    project: String,
    proxy: Proxy,
    troubled: JetStreamLog,
    direct: JetStreamLog,
}

impl<'s> Bed<'s> {
    fn new(servers: &'s [Server], name: &str, size: Size) -> Bed<'s> {
        let project = format!("{name}-{size:?}").to_lowercase().replace('_', "-");
        let proxy = Proxy::to(servers[0].client_address());
        let monitors: Vec<String> = servers.iter().map(Server::monitor_url).collect();
        let connect = |urls| {
            let access = NatsOptions::at(urls, monitors.clone());
            JetStreamLog::connect(&access, &project.parse().unwrap()).unwrap()
        };
        let (troubled, direct) = (connect(proxy.url()), connect(servers[0].url()));
        direct.prepare().unwrap();
        Bed { servers, project, proxy, troubled, direct }
    }

    fn plan(&self, fault: Fault) {
        self.proxy.plan(Plan::next(EVENTS, fault));
    }

    /// The place of the last event on `a`, which is behind `at`. Any copy may answer, also one that does
    /// not have it yet.
    fn last_after(&self, at: Seq) -> Seq {
        let last = || self.direct.last(&task("a")).unwrap().map(|event| event.seq);
        wait_for(STORED, || format!("an event behind {at}"), || last().filter(|last| *last > at))
    }

    /// Waits until somebody sees `events` events in the log.
    fn wait_stored(&self, events: usize) {
        let stored = || (self.count() == events).then_some(());
        wait_for(STORED, || format!("{} of {events} events", self.count()), stored);
    }

    /// The events of the project, as the server counts them.
    fn count(&self) -> usize {
        self.subjects().values().map(|count| count.as_u64().unwrap() as usize).sum()
    }

    /// The subjects of the project, with the server's count of the events on each.
    fn subjects(&self) -> serde_json::Map<String, Value> {
        let filter = format!("hl.ev.*.{}.>", self.project);
        let ask = |subject: &str, body: Value| {
            let answer = || self.servers[0].request(subject, &body.to_string()).ok();
            wait_for(STORED, || subject.to_owned(), answer)
        };
        let names = ask("$JS.API.STREAM.NAMES", json!({ "subject": filter }));
        let mut subjects = serde_json::Map::new();
        for stream in names["streams"].as_array().into_iter().flatten() {
            let subject = format!("$JS.API.STREAM.INFO.{}", stream.as_str().unwrap());
            let info = ask(&subject, json!({ "subjects_filter": filter }));
            subjects.extend(info["state"]["subjects"].as_object().cloned().unwrap_or_default());
        }
        subjects
    }

    /// The log holds these events in this order and no others.
    fn assert_log(&self, expected: &[&[NewEvent]]) {
        let events = expected.iter().flat_map(|batch| batch.iter());
        let expected: Vec<&Event> = events.map(|new| &new.event).collect();
        self.wait_stored(expected.len());
        let stored = wait_for(
            STORED,
            || "the log is read".to_owned(),
            || self.direct.read(1, 1_000).ok().filter(|stored| stored.len() == expected.len()),
        );
        let stored: Vec<&Event> = stored.iter().map(|stored| &stored.event).collect();
        assert_eq!(stored, expected);
    }
}

fn task(name: &str) -> Subject {
    Subject::Task(name.parse().unwrap())
}

/// An event whose id is the same in every project: a server may not mistake them for one.
fn new(id: u8, name: &str, expected: Seq) -> NewEvent {
    let body = match expected {
        0 => EventBody::TaskCreated(TaskSpec { goal: "g".into(), ..TaskSpec::default() }),
        _ => EventBody::TaskStarted(TaskStarted::default()),
    };
    let event = Event {
        id: EventId([id; 16]),
        at: Timestamp(i64::from(id)),
        subject: task(name),
        actor: "tester".into(),
        cause: None,
        due: false,
        body,
    };
    NewEvent { expected, event }
}

/// The first events on tasks `a` and, in a batch, `b` and `c`.
fn first(size: Size) -> Vec<NewEvent> {
    match size {
        Size::Alone => vec![new(1, "a", 0)],
        Size::Batch => vec![new(1, "a", 0), new(2, "b", 0), new(3, "c", 0)],
    }
}

/// An event of another writer behind `first`, which is stored from `at` on, on the task that it
/// wrote to last.
fn behind(first: &[NewEvent], at: Seq) -> NewEvent {
    let last = at + first.len() as Seq - 1;
    NewEvent {
        event: Event {
            subject: first[first.len() - 1].event.subject.clone(),
            ..new(9, "x", 1).event
        },
        expected: last,
    }
}

#[track_caller]
fn conflicts(result: Result<AppendOutcome, AppendError>, new: &NewEvent, at: Seq) {
    match result {
        Err(AppendError::Conflict { subject, expected, actual }) => {
            assert_eq!((subject, expected, actual), (new.event.subject.clone(), new.expected, at));
        }
        other => panic!("not a conflict: {other:?}"),
    }
}

/// Defines a test of each failure on one server, and one of all of them on a cluster.
macro_rules! failures {
    ($($name:ident),* $(,)?) => {
        mod one_server {
            use super::*;

            $(#[test]
            fn $name() {
                let server = Server::single();
                for size in [Size::Alone, Size::Batch] {
                    super::$name(&Bed::new(std::slice::from_ref(&server), "p", size), size);
                }
            })*
        }

        #[test]
        fn three_servers() {
            let cluster = Cluster::three();
            std::thread::scope(|scope| {
                $(for size in [Size::Alone, Size::Batch] {
                    let name = concat!("three_servers::", stringify!($name));
                    let nodes = cluster.nodes();
                    let failure = move || $name(&Bed::new(nodes, stringify!($name), size), size);
                    let thread = std::thread::Builder::new().name(format!("{name} {size:?}"));
                    thread.spawn_scoped(scope, failure).unwrap();
                })*
            });
        }
    };
}

failures!(
    an_error_for_a_write_in_flight_is_retried,
    a_false_conflict_is_retried,
    a_false_conflict_of_a_new_leader_is_retried,
    a_false_duplicate_error_is_retried,
    a_real_conflict_is_reported,
    a_version_that_never_existed_is_a_conflict,
    a_lost_answer_stores_events_once,
    an_append_is_found_after_a_lost_answer_and_a_write,
    an_event_found_behind_others_after_a_lost_delivery,
    a_lost_event_is_resent_and_stored_once,
    a_lost_event_conflicts_with_a_rival_write,
    a_no_responders_error_is_retried,
    a_connection_cut_before_an_append_stores_events_once,
    a_connection_cut_after_an_append_stores_events_once,
    a_connection_cut_within_a_batch_stores_events_once,
    a_delayed_event_is_stored_once,
    a_permanent_refusal_stores_nothing,
    a_stored_batch_is_recognized,
);

fn stores_once_after(bed: &Bed<'_>, size: Size, fault: Fault, times: usize) {
    let batch = first(size);
    bed.proxy.plan(Plan { times, ..Plan::next(EVENTS, fault) });
    let appended = bed.troubled.append(&batch).unwrap();
    bed.proxy.wait_happened();
    bed.assert_log(&[&batch]);
    assert_eq!(appended, AppendOutcome::At(bed.last_after(0)));
}

fn an_error_for_a_write_in_flight_is_retried(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::refusal(10_164, "wrong last sequence"), 3);
}

fn a_false_conflict_is_retried(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::refusal(10_071, "wrong last sequence: 7"), 2);
}

/// A server that has just become the leader may not have everything yet that it has to show.
fn a_false_conflict_of_a_new_leader_is_retried(bed: &Bed<'_>, size: Size) {
    let before = first(size);
    let at = bed.direct.append(&before).unwrap().first();
    let mut next = vec![new(4, "a", at)];
    if size == Size::Batch {
        next.push(new(5, "d", 0));
    }
    bed.plan(Fault::refusal(10_071, "wrong last sequence: 0"));
    let appended = bed.troubled.append(&next).unwrap();
    bed.proxy.wait_happened();
    bed.assert_log(&[&before, &next]);
    // Not right behind: other projects share the stream.
    assert_eq!(appended, AppendOutcome::At(bed.last_after(at)));
}

fn a_false_duplicate_error_is_retried(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::refusal(10_201, "contains duplicate"), 2);
}

fn a_real_conflict_is_reported(bed: &Bed<'_>, size: Size) {
    let mut batch = first(size);
    let rival = NewEvent {
        event: Event { id: EventId([8; 16]), ..batch[batch.len() - 1].event.clone() },
        expected: 0,
    };
    let at = bed.direct.append(std::slice::from_ref(&rival)).unwrap().first();
    conflicts(bed.troubled.append(&batch), &rival, at);
    bed.assert_log(&[std::slice::from_ref(&rival)]);
    batch.last_mut().unwrap().expected = at;
    assert!(matches!(bed.troubled.append(&batch).unwrap(), AppendOutcome::At(first) if first > at));
    bed.assert_log(&[&[rival], &batch]);
}

/// A version that the subject never had.
fn a_version_that_never_existed_is_a_conflict(bed: &Bed<'_>, size: Size) {
    let batch = first(size);
    let at = bed.direct.append(&batch).unwrap().first();
    let mut next = vec![new(4, "a", at + 1_000)];
    if size == Size::Batch {
        next.push(new(5, "d", 0));
    }
    conflicts(bed.troubled.append(&next), &next[0], at);
    bed.assert_log(&[&batch]);
}

fn a_lost_answer_stores_events_once(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::LoseAnswer, 1);
}

fn an_append_is_found_after_a_lost_answer_and_a_write(bed: &Bed<'_>, size: Size) {
    let batch = first(size);
    bed.plan(Fault::LoseAnswer);
    std::thread::scope(|scope| {
        let append = scope.spawn(|| bed.troubled.append(&batch).unwrap());
        bed.wait_stored(batch.len());
        let at = bed.last_after(0);
        let rival = behind(&batch, at);
        bed.direct.append(std::slice::from_ref(&rival)).unwrap();
        assert_eq!(append.join().unwrap(), AppendOutcome::At(at));
        bed.assert_log(&[&batch, &[rival]]);
    });
}

/// The stored event is looked for behind the expected version. A consumer that lost a delivery starts
/// again from the beginning of the subject, where older events are.
fn an_event_found_behind_others_after_a_lost_delivery(bed: &Bed<'_>, size: Size) {
    let before = first(Size::Alone);
    let version = bed.direct.append(&before).unwrap().first();
    let mut batch = vec![new(4, "a", version)];
    if size == Size::Batch {
        batch.push(new(5, "d", 0));
    }
    // All answers are lost until the rival's event is stored: a retry that is answered before would find its own event
    // as the last one, without a consumer.
    bed.proxy.plan(Plan { times: usize::MAX, ..Plan::next(EVENTS, Fault::LoseAnswer) });
    std::thread::scope(|scope| {
        let append = scope.spawn(|| bed.troubled.append(&batch));
        bed.wait_stored(1 + batch.len());
        let at = bed.last_after(version);
        let rival = new(9, "a", at);
        bed.direct.append(std::slice::from_ref(&rival)).unwrap();
        bed.proxy.cancel_plans();
        bed.plan(Fault::LoseDelivery);
        assert_eq!(append.join().unwrap().unwrap(), AppendOutcome::At(at));
        bed.proxy.wait_happened();
        bed.assert_log(&[&before, &batch, &[rival]]);
    });
}

fn a_lost_event_is_resent_and_stored_once(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::Lose, 1);
}

fn a_lost_event_conflicts_with_a_rival_write(bed: &Bed<'_>, size: Size) {
    let batch = first(size);
    bed.plan(Fault::Lose);
    std::thread::scope(|scope| {
        let append = scope.spawn(|| bed.troubled.append(&batch));
        bed.proxy.wait_happened();
        let rival = new(8, "a", 0);
        let at = bed.direct.append(std::slice::from_ref(&rival)).unwrap().first();
        conflicts(append.join().unwrap(), &rival, at);
        bed.assert_log(&[&[rival]]);
    });
}

fn a_no_responders_error_is_retried(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::NoResponders, 3);
}

fn a_connection_cut_before_an_append_stores_events_once(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::Cut, 1);
}

fn a_connection_cut_after_an_append_stores_events_once(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::CutAnswer, 1);
}

fn a_connection_cut_within_a_batch_stores_events_once(bed: &Bed<'_>, size: Size) {
    let batch = first(size);
    let fault = Plan { after: batch.len() - 1, ..Plan::next(EVENTS, Fault::Cut) };
    bed.proxy.plan(fault);
    let appended = bed.troubled.append(&batch).unwrap();
    bed.proxy.wait_happened();
    bed.assert_log(&[&batch]);
    assert_eq!(appended.first(), bed.direct.last(&task("a")).unwrap().unwrap().seq);
}

fn a_delayed_event_is_stored_once(bed: &Bed<'_>, size: Size) {
    stores_once_after(bed, size, Fault::Delay(TOO_LATE), 1);
}

/// A write that can't succeed is not tried again, and nothing is stored.
fn a_permanent_refusal_stores_nothing(bed: &Bed<'_>, size: Size) {
    bed.plan(Fault::refusal(10_054, "message size exceeds maximum allowed"));
    let refused = bed.troubled.append(&first(size));
    assert!(
        matches!(&refused, Err(AppendError::Log(LogError::Engine(error)))
            if error.to_string().contains("10054")),
        "{refused:?}"
    );
    bed.assert_log(&[]);
}

/// A batch that was stored before is known, also when the server can't answer at first.
fn a_stored_batch_is_recognized(bed: &Bed<'_>, size: Size) {
    let batch = first(size);
    let at = bed.direct.append(&batch).unwrap().first();
    assert_eq!(bed.troubled.append(&batch).unwrap(), AppendOutcome::Before(at));
    let rival = behind(&batch, at);
    bed.direct.append(std::slice::from_ref(&rival)).unwrap();
    assert_eq!(bed.troubled.append(&batch).unwrap(), AppendOutcome::Before(at));
    bed.plan(Fault::NoResponders);
    assert_eq!(bed.troubled.append(&batch).unwrap().first(), at);
    bed.assert_log(&[&batch, &[rival]]);
}

/// A holder learns that its heartbeat was refused.
#[test]
fn a_refused_heartbeat_is_an_error() {
    let server = Server::single();
    let bed = Bed::new(std::slice::from_ref(&server), "p", Size::Alone);
    let held = HeldResource::Task("a".parse().unwrap());
    bed.proxy.plan(Plan::next("hl.pulse.", Fault::refusal(10_023, "insufficient resources")));
    assert!(bed.troubled.beat(&held, "me", 1).is_err());
    assert_eq!(bed.direct.last_beat(&held).unwrap(), None);
    bed.troubled.beat(&held, "me", 1).unwrap();
    assert_eq!(bed.direct.last_beat(&held).unwrap().unwrap().holder, "me");
}

/// The log of a project that was copied has the ids of the other, and may share its stream.
#[test]
fn projects_of_one_stream_may_have_events_with_the_same_ids() {
    let server = Server::single();
    let access = NatsOptions::at(server.url(), vec![server.monitor_url()]);
    let logs = ["demo", "p21"].map(|name| {
        let log = JetStreamLog::connect(&access, &name.parse().unwrap()).unwrap();
        log.prepare().unwrap();
        log
    });
    let streams = server.request("$JS.API.STREAM.NAMES", r#"{"subject":"hl.ev.>"}"#).unwrap();
    assert_eq!(streams["total"], 1, "{streams}");
    for size in [Size::Batch, Size::Alone] {
        let batch: Vec<NewEvent> = first(size)
            .into_iter()
            .map(|mut new| {
                new.event.id.0[0] = size as u8;
                new.event.subject = task(&format!("{}-{size:?}", new.event.subject));
                new
            })
            .collect();
        let [one, other] = logs.each_ref().map(|log| log.append(&batch).unwrap());
        assert_eq!(other, AppendOutcome::At(one.first() + batch.len() as Seq));
        assert_eq!(logs[1].append(&batch).unwrap(), AppendOutcome::Before(other.first()));
    }
    for log in &logs {
        assert_eq!(log.read(1, 100).unwrap().len(), 4);
    }
}

/// A server takes so many batches at a time; those that were begun and left hold their places for
/// ten seconds.
#[test]
fn an_append_is_retried_while_the_server_has_too_many_batches() {
    const AT_ONCE: usize = 50;
    let server = Server::single();
    let bed = Bed::new(std::slice::from_ref(&server), "p", Size::Batch);
    bed.direct.append(&[new(1, "a", 0)]).unwrap();
    let mut crowd = std::net::TcpStream::connect(server.client_address()).unwrap();
    write!(crowd, "CONNECT {{\"verbose\":false,\"headers\":true}}\r\n").unwrap();
    let of_a = bed.subjects().keys().next().unwrap().clone();
    let subject = format!("{}left", of_a.strip_suffix('a').unwrap());
    for n in 0..AT_ONCE {
        let headers =
            format!("NATS/1.0\r\nNats-Batch-Id: left{n}\r\nNats-Batch-Sequence: 1\r\n\r\n");
        let (length, total) = (headers.len(), headers.len() + 2);
        write!(crowd, "HPUB {subject} {length} {total}\r\n{headers}{{}}\r\n").unwrap();
    }
    write!(crowd, "PING\r\n").unwrap();
    let mut lines = BufReader::new(crowd).lines();
    assert!(lines.any(|line| line.unwrap() == "PONG"), "the server has all of it");
    let batch = [new(2, "b", 0), new(3, "c", 0)];
    let appended = bed.direct.append(&batch).unwrap();
    assert_eq!(appended, AppendOutcome::At(2));
    bed.assert_log(&[&[new(1, "a", 0)], &batch]);
}

/// A server that starts is offline until the cluster has heard from it.
#[test]
fn stream_creation_is_retried_while_a_peer_is_offline() {
    const CREATE: &str = "$JS.API.STREAM.CREATE.";
    const OFFLINE: &str = "no suitable peers for placement, peer offline";
    const TAGS: &str = "no suitable peers for placement, tags not matched";
    let (server, id) = (Server::single(), "demo".parse().unwrap());
    let proxy = Proxy::to(server.client_address());
    let access = NatsOptions::at(proxy.url(), vec![server.monitor_url()]);
    let prepare = || JetStreamLog::connect(&access, &id).unwrap().prepare();
    proxy.plan(Plan::next(CREATE, Fault::refusal(10_005, TAGS)));
    let refused = prepare().unwrap_err();
    assert!(refused.to_string().contains("too few servers"), "{refused}");
    proxy.plan(Plan { times: 3, ..Plan::next(CREATE, Fault::refusal(10_005, OFFLINE)) });
    prepare().unwrap();
    proxy.wait_happened();
}
