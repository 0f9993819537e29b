//! The log on a real server and on a real cluster, and the suite that every log passes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hookloop_core::event::{Event, EventBody, OtherEvent};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::time::Timestamp;
use hookloop_store::jetstream::{self, JetStreamLog, NatsOptions, ServerSafety};
use hookloop_store::log::{EventLog, NewEvent};
use hookloop_testbed::{Cluster, Server, wait_for};

fn access(servers: &[Server]) -> NatsOptions {
    let join = |part: fn(&Server) -> String| servers.iter().map(part).collect::<Vec<_>>();
    NatsOptions::at(join(Server::url).join(","), join(Server::monitor_url))
}

/// A log on servers of its own, checked as a user's would be.
fn connect(servers: &[Server]) -> JetStreamLog {
    let log = JetStreamLog::connect(&access(servers), &"demo".parse().unwrap()).unwrap();
    log.prepare().unwrap();
    log
}

fn on_one_server() -> (JetStreamLog, Server) {
    let server = Server::single();
    (connect(std::slice::from_ref(&server)), server)
}

fn on_three_servers() -> (JetStreamLog, Cluster) {
    let cluster = Cluster::three();
    (connect(cluster.nodes()), cluster)
}

conformance!(one_server, on_one_server());
conformance!(three_servers, on_three_servers());

/// A replica answers reads, and may be behind the leader that acknowledged the event.
#[test]
fn a_log_reads_its_own_writes_from_every_server() {
    const ROUNDS: usize = 200;
    let (_log, cluster) = on_three_servers();
    let mut last = 0;
    for node in cluster.nodes() {
        let one = std::slice::from_ref(node);
        let log = JetStreamLog::connect(&access(one), &"demo".parse().unwrap()).unwrap();
        for _ in 0..ROUNDS {
            last = log.append(&[note(last)]).unwrap().first();
            assert_eq!(log.last(&Subject::Project).unwrap().map(|event| event.seq), Some(last));
            assert_eq!(log.head().unwrap(), last);
            assert_eq!(log.read(last, 10).unwrap().len(), 1);
        }
    }
}

#[test]
fn concurrent_writes_while_opening_are_not_reported_as_loss() {
    const OPENED: usize = 10;
    let (log, server) = on_one_server();
    let access = access(std::slice::from_ref(&server));
    let dir = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                last = log.append(&[note(last)]).unwrap().first();
            }
        });
        let opened: Vec<_> = (0..OPENED)
            .map(|n| {
                let view = dir.path().join(format!("{n}.db"));
                jetstream::open(&access, &"demo".parse().unwrap(), &view)
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        opened.into_iter().for_each(|opened| assert_eq!(opened.unwrap().lost, None));
    });
}

#[test]
fn readers_leave_no_consumers_on_the_server() {
    let (log, server) = on_one_server();
    log.append(&[note(0)]).unwrap();
    for _ in 0..20 {
        assert_eq!(log.read(1, 10).unwrap().len(), 1);
    }
    let consumers = || {
        let info = server.request("$JS.API.STREAM.INFO.HL_EV_151", "").unwrap();
        info["state"]["consumer_count"].as_u64().unwrap()
    };
    wait_for(
        Duration::from_secs(5),
        || "no consumers".to_owned(),
        || (consumers() == 0).then_some(()),
    );
}

/// The event behind place `last` of the project.
fn note(last: u64) -> NewEvent {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&(last + 1).to_be_bytes());
    let body = OtherEvent { kind: "note".to_owned(), data: serde_json::json!({}) };
    let event = Event {
        id: EventId(id),
        at: Timestamp(0),
        subject: Subject::Project,
        actor: "tester".to_owned(),
        cause: None,
        due: false,
        body: EventBody::Other(body),
    };
    NewEvent { expected: last, event }
}
