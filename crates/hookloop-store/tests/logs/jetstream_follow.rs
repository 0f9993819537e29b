//! Events of a real server arrive in order and without a gap, across failures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::task::TaskSpec;
use hookloop_core::time::Timestamp;
use hookloop_store::jetstream::{self, JetStreamLog, NatsLinks, NatsOptions, ServerSafety};
use hookloop_store::log::{EventFollower, EventLog, MAX_BATCH, NewEvent, Seq};
use hookloop_store::snapshot::{SnapshotStore, ViewSnapshot};
use hookloop_store::sqlite::SCHEMA;
use hookloop_store::store::{Store, StoreError};
use hookloop_testbed::{Fault, Plan, Proxy, Server};
use serde_json::{Value, json};

/// A client takes up to ten seconds to find that a consumer is gone.
const LIMIT: Duration = Duration::from_secs(40);

fn access(server: &Server, urls: String) -> NatsOptions {
    NatsOptions::at(urls, vec![server.monitor_url()])
}

fn connect(server: &Server, urls: String) -> JetStreamLog {
    let log = JetStreamLog::connect(&access(server, urls), &"demo".parse().unwrap()).unwrap();
    log.prepare().unwrap();
    log
}

fn created(n: u64) -> NewEvent {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&n.to_be_bytes());
    let spec = TaskSpec { goal: "g".into(), ..TaskSpec::default() };
    let event = Event {
        id: EventId(id),
        at: Timestamp(n as i64),
        subject: Subject::Task(format!("t{n}").parse().unwrap()),
        actor: "tester".into(),
        cause: None,
        due: false,
        body: EventBody::TaskCreated(spec),
    };
    NewEvent { expected: 0, event }
}

/// Appends event after event, from number `from` up to `to`.
fn append(log: &JetStreamLog, from: Seq, to: Seq) {
    for n in from..=to {
        log.append(&[created(n)]).unwrap();
    }
}

/// The events that a follower gets up to event `last`, which has to be everything from `first` on.
#[track_caller]
fn assert_follows(follower: &mut dyn EventFollower, first: Seq, last: Seq) {
    let (mut seen, end) = (Vec::new(), Instant::now() + LIMIT);
    while seen.last() != Some(&last) && Instant::now() < end {
        let next = follower.next(Duration::from_millis(200)).unwrap();
        seen.extend(next.into_iter().map(|stored| stored.seq));
    }
    assert!(seen.into_iter().eq(first..=last), "every event from {first} to {last}, once");
}

fn ask(server: &Server, subject: &str) -> Value {
    server.request(subject, &json!({}).to_string()).unwrap()
}

/// Deletes what the server keeps for its followers; answers how many there were.
fn delete_consumers(server: &Server) -> usize {
    let streams = ask(server, "$JS.API.STREAM.NAMES");
    let streams = streams["streams"].as_array().unwrap();
    let mut deleted = 0;
    for stream in streams.iter().map(|stream| stream.as_str().unwrap()) {
        let found = ask(server, &format!("$JS.API.CONSUMER.NAMES.{stream}"));
        for consumer in found["consumers"].as_array().into_iter().flatten() {
            let name = consumer.as_str().unwrap();
            let answer = ask(server, &format!("$JS.API.CONSUMER.DELETE.{stream}.{name}"));
            assert_eq!(answer["success"], true, "{answer}");
            deleted += 1;
        }
    }
    deleted
}

#[test]
fn follows_across_a_restart_of_the_server() {
    let server = Server::single();
    let log = connect(&server, server.url());
    let mut follower = log.follow(1).unwrap();
    append(&log, 1, 5);
    assert_follows(&mut *follower, 1, 5);
    server.restart();
    append(&log, 6, 10);
    assert_follows(&mut *follower, 6, 10);
}

/// Nothing is read while the server restarts and events come.
#[test]
fn follows_across_restarts_while_nothing_is_read() {
    let server = Server::single();
    let log = connect(&server, server.url());
    let mut follower = log.follow(1).unwrap();
    append(&log, 1, 5);
    server.restart();
    append(&log, 6, 10);
    server.restart();
    append(&log, 11, 15);
    assert_follows(&mut *follower, 1, 15);
}

#[test]
fn follows_across_lost_connections() {
    let server = Server::single();
    let proxy = Proxy::to(server.client_address());
    let (log, direct) = (connect(&server, proxy.url()), connect(&server, server.url()));
    let mut follower = log.follow(1).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| append(&direct, 1, 300));
        scope.spawn(|| {
            for _ in 0..4 {
                std::thread::sleep(Duration::from_millis(150));
                proxy.cut();
            }
        });
        assert_follows(&mut *follower, 1, 300);
    });
}

#[test]
fn follows_when_its_consumer_is_deleted() {
    let server = Server::single();
    let log = connect(&server, server.url());
    let mut follower = log.follow(1).unwrap();
    append(&log, 1, 5);
    assert_follows(&mut *follower, 1, 5);
    assert_eq!(delete_consumers(&server), 1);
    append(&log, 6, 10);
    assert_follows(&mut *follower, 6, 10);
}

/// More events than a client keeps for a follower that does not read.
#[test]
fn follows_after_more_events_than_its_buffer_holds() {
    const BATCHES: u64 = 72;
    let server = Server::single();
    let (log, writer) = (connect(&server, server.url()), connect(&server, server.url()));
    let mut follower = log.follow(1).unwrap();
    append(&writer, 1, 1);
    assert_follows(&mut *follower, 1, 1);
    for n in 0..BATCHES {
        let first = 2 + n * MAX_BATCH as Seq;
        let batch: Vec<NewEvent> = (first..first + MAX_BATCH as Seq).map(created).collect();
        writer.append(&batch).unwrap();
    }
    assert_follows(&mut *follower, 2, 1 + BATCHES * MAX_BATCH as Seq);
}

fn tasks(store: &Store) -> u64 {
    store.read(|view| Ok::<_, StoreError>(view.totals()?.tasks())).unwrap()
}

fn hash(store: &Store) -> String {
    store.read(|view| Ok::<_, StoreError>(view.state_hash()?)).unwrap()
}

fn add(store: &Store, n: u64) {
    store.transact(|unit| unit.stage(created(n).event).map(drop)).unwrap();
}

/// A machine with a view in a file of its own.
struct Machine {
    dir: tempfile::TempDir,
    access: NatsOptions,
}

impl Machine {
    fn new(access: NatsOptions) -> Machine {
        Machine { dir: tempfile::tempdir().unwrap(), access }
    }

    fn open(&self) -> Store {
        let path = self.dir.path().join("view.db");
        jetstream::open(&self.access, &"demo".parse().unwrap(), &path).unwrap().store
    }

    fn delete_view(&self) {
        for file in std::fs::read_dir(self.dir.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
}

#[test]
fn a_deleted_view_file_is_rebuilt() {
    let server = Server::single();
    let machine = Machine::new(access(&server, server.url()));
    let store = machine.open();
    (1..=5).for_each(|n| add(&store, n));
    machine.delete_view();
    // A process that has the deleted file open keeps using it.
    add(&store, 6);
    let next = machine.open();
    add(&next, 7);
    add(&store, 8);
    assert_eq!((tasks(&store), tasks(&next), tasks(&machine.open())), (8, 8, 8));
    assert_eq!(hash(&store), hash(&next));
    let (before, after) = next.rebuild(&mut |_| ()).unwrap();
    assert_eq!((&before, &after), (&hash(&store), &hash(&store)));
}

#[test]
fn a_live_view_follows_across_a_restart() {
    let server = Server::single();
    let machines = [(); 2].map(|()| Machine::new(access(&server, server.url())));
    let [one, two] = machines.each_ref().map(Machine::open);
    one.go_live().unwrap();
    add(&one, 1);
    server.restart();
    add(&two, 2);
    add(&one, 3);
    assert_eq!(tasks(&one), 3);
    assert_eq!(hash(&one), hash(&two));
}

#[test]
fn a_new_machine_loads_a_snapshot_and_later_events() {
    let server = Server::single();
    let machine = Machine::new(access(&server, server.url()));
    let old = machine.open();
    (1..=300).for_each(|n| add(&old, n));
    assert_eq!(old.save_snapshot().unwrap(), 300);
    (301..=310).for_each(|n| add(&old, n));
    let proxy = Proxy::to(server.client_address());
    // Only to see that it is asked for a piece of the snapshot.
    let piece = "$JS.API.DIRECT.GET.HL_SNAPSHOT.hl.snap.demo.300-";
    proxy.plan(Plan::next(piece, Fault::Delay(Duration::ZERO)));
    let machine = Machine::new(access(&server, proxy.url()));
    let new = machine.open();
    proxy.wait_happened();
    assert_eq!((tasks(&new), hash(&new)), (310, hash(&old)));
    let (before, after) = new.rebuild(&mut |_| ()).unwrap();
    assert_eq!(before, after);
}

#[test]
fn an_incomplete_snapshot_is_ignored() {
    let server = Server::single();
    let machine = Machine::new(access(&server, server.url()));
    let old = machine.open();
    (1..=20).for_each(|n| add(&old, n));
    old.save_snapshot().unwrap();
    let purged = server
        .request("$JS.API.STREAM.PURGE.HL_SNAPSHOT", r#"{"filter":"hl.snap.demo.*.0"}"#)
        .unwrap();
    assert_eq!(purged["purged"], 1, "{purged}");
    let machine = Machine::new(access(&server, server.url()));
    let new = machine.open();
    assert_eq!(hash(&new), hash(&old));
}

/// The snapshot before it stays, and a new machine starts with that one.
#[test]
fn a_failed_snapshot_is_an_error_and_the_previous_one_is_kept() {
    let server = Server::single();
    let proxy = Proxy::to(server.client_address());
    let machine = Machine::new(access(&server, proxy.url()));
    let old = machine.open();
    add(&old, 1);
    old.save_snapshot().unwrap();
    add(&old, 2);
    let full = Fault::refusal(10_023, "insufficient resources");
    proxy.plan(Plan::next("hl.snap.demo.2-", full));
    assert!(old.save_snapshot().is_err(), "a piece of it was refused");
    proxy.wait_happened();
    let kept = connect(&server, server.url()).latest(SCHEMA).unwrap();
    assert_eq!(kept.map(|snapshot| snapshot.head), Some(1));
    let machine = Machine::new(access(&server, server.url()));
    let new = machine.open();
    assert_eq!(hash(&new), hash(&old));
}

#[test]
fn a_snapshot_that_is_no_database_is_ignored() {
    let server = Server::single();
    let log = connect(&server, server.url());
    append(&log, 1, 3);
    let view = b"not a database, and long enough not to be taken for an empty one".to_vec();
    log.save(&ViewSnapshot { head: 3, schema: SCHEMA, view }).unwrap();
    let machine = Machine::new(access(&server, server.url()));
    let new = machine.open();
    assert_eq!(tasks(&new), 3);
    let over = Store::over(Arc::new(log)).unwrap();
    assert_eq!(hash(&new), hash(&over));
}

/// A worker has many projects, and the servers have many workers.
#[test]
fn logs_with_shared_links_use_one_connection() {
    let server = Server::single();
    let connections = || server.monitor("/varz").unwrap()["connections"].as_u64().unwrap();
    let open = |links: &Option<NatsLinks>, name: &str| {
        let access = NatsOptions { links: links.clone(), ..access(&server, server.url()) };
        let log = JetStreamLog::connect(&access, &name.parse().unwrap()).unwrap();
        log.prepare().unwrap();
        log
    };
    let links = Some(NatsLinks::default());
    let (one, other) = (open(&links, "one"), open(&links, "other"));
    assert_eq!(connections(), 1);
    let mut follower = other.follow(1).unwrap();
    append(&one, 1, 3);
    append(&other, 4, 5);
    assert_eq!(follower.next(LIMIT).unwrap()[0].event, created(4).event);
    assert_eq!(one.read(1, 9).unwrap().len(), 3);
    drop(one);
    append(&other, 6, 6);
    assert_eq!(other.read(1, 9).unwrap().len(), 3);
    assert_eq!(connections(), 1);
    let _apart = (open(&None, "one"), open(&Some(NatsLinks::default()), "one"));
    assert_eq!(connections(), 3);
}

/// Servers let no more than a thousand follow a stream that says nothing about it.
#[test]
fn a_stream_has_room_for_the_followers_of_a_large_fleet() {
    let server = Server::single();
    let log = connect(&server, server.url());
    append(&log, 1, 1);
    let stream = JetStreamLog::stream_of(&"demo".parse().unwrap());
    let info = server.request(&format!("$JS.API.STREAM.INFO.{stream}"), "").unwrap();
    assert_eq!(info["config"]["max_consumers"], json!(100_000));
}
