//! Runs the same cases over a real server and a real cluster, and checks that all stores have the
//! same state.
//!
//! A server is started once. Each case has its own project, and all projects are in one stream:
//! sequences in such a log start at any number and have gaps.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookloop_core::id::{ProjectName, Subject};
use hookloop_engine::project::Project;
use hookloop_store::jetstream::{self, JetStreamLog, NatsOptions, ServerSafety};
use hookloop_store::log::{EventLog, NewEvent, Seq, StoredEvent};
use hookloop_store::memory::MemoryLog;
use hookloop_store::store::{Store, StoreError};
use hookloop_testbed::{Cluster, Server};
use hookloop_testkit::SeededRandom;
use sha2::{Digest, Sha256};

use crate::directed::DIRECTED;
use crate::rules::Setup;
use crate::schedule::{Case, Home};
use crate::wire::{Overtaken, Wire};
use crate::{check, overtake, play};

/// Servers that run until this value is dropped.
struct Fleet<S> {
    access: NatsOptions,
    names: AtomicU64,
    _servers: S,
}

fn one_server() -> Fleet<Server> {
    let server = Server::single();
    Fleet::new(access(std::slice::from_ref(&server)), server)
}

fn three_servers() -> Fleet<Cluster> {
    let cluster = Cluster::three();
    Fleet::new(access(cluster.nodes()), cluster)
}

fn access(servers: &[Server]) -> NatsOptions {
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let monitors = servers.iter().map(Server::monitor_url).collect();
    NatsOptions::at(urls.join(","), monitors)
}

impl<S> Fleet<S> {
    fn new(access: NatsOptions, servers: S) -> Fleet<S> {
        Fleet { access, names: AtomicU64::new(0), _servers: servers }
    }

    /// Returns a new project in the same stream as the others.
    fn project(&self) -> ProjectName {
        loop {
            let name = format!("p{}", self.names.fetch_add(1, Ordering::Relaxed));
            if Sha256::digest(&name)[1] == 0 {
                return name.parse().unwrap();
            }
        }
    }

    fn log(&self, project: &ProjectName) -> JetStreamLog {
        let log = JetStreamLog::connect(&self.access, project).unwrap();
        log.prepare().unwrap();
        log
    }

    fn wire(&self, overtaken: Overtaken) -> Wire {
        Wire::to(Arc::new(self.log(&self.project())), overtaken)
    }

    /// Plays a random case of one of three kinds.
    fn play(&self, mut rng: SeededRandom) {
        let setup = if rng.chance(40) { Setup::builtin() } else { Setup::declared(&mut rng) };
        let case = match rng.chance(30) {
            true => {
                let wire = self.wire(Overtaken::Anywhere);
                overtake(Case::racing(rng, setup, wire))
            }
            false => play(Case::over(rng, setup, self.wire(Overtaken::OnItsSubjects))),
        };
        compare_with_a_file(&case);
    }

    fn play_directed(&self) {
        for (_, case) in DIRECTED {
            case(self.wire(Overtaken::OnItsSubjects));
        }
    }
}

#[test]
fn one_server_agrees_with_the_model() {
    let fleet = one_server();
    check("one_server", 6, |rng| fleet.play(rng));
}

#[test]
fn three_servers_agree_with_the_model() {
    let fleet = three_servers();
    check("three_servers", 5, |rng| fleet.play(rng));
}

#[test]
fn directed_cases_on_one_server() {
    one_server().play_directed();
}

#[test]
fn directed_cases_on_three_servers() {
    three_servers().play_directed();
}

fn hash(store: &Store) -> String {
    store.read(|view| Ok::<_, StoreError>(view.state_hash()?)).unwrap()
}

/// Checks that a remote log and a file with the same events have the same state, also after a
/// rebuild of the view.
fn compare_with_a_file(case: &Case) {
    let Home::Elsewhere(_) = &case.home else { panic!("not a remote log") };
    let dir = tempfile::tempdir().unwrap();
    let file = Store::open(&dir.path().join("hookloop.db")).unwrap();
    append_all(&case.events, &file);
    let store = case.home.open();
    assert_eq!(hash(&store), hash(&file), "a remote log and a file");
    assert_eq!(store.rebuild(&mut |_| {}).unwrap(), (hash(&file), hash(&file)));
    assert_eq!(store.verify(&mut |_| {}).unwrap().unwrap(), case.events.len() as Seq);
}

/// Appends the events of another log in batches of several sizes. The dispatcher's cursor refers to
/// sequences of that log, but is not in the compared state.
fn append_all(events: &[StoredEvent], to: &dyn EventLog) {
    let (mut versions, mut rest, mut rng) =
        (HashMap::<Subject, Seq>::new(), events, SeededRandom::new(0));
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(1 + rng.below(12)));
        let batch: Vec<NewEvent> = now
            .iter()
            .map(|StoredEvent { event, .. }| NewEvent {
                expected: versions.get(&event.subject).copied().unwrap_or(0),
                event: event.clone(),
            })
            .collect();
        let first = to.append(&batch).unwrap().first();
        for (seq, new) in (first..).zip(batch) {
            versions.insert(new.event.subject, seq);
        }
        rest = later;
    }
}

/// Compares the same events in a file, in memory, on a server and on a cluster.
#[test]
fn the_same_events_give_the_same_state_in_every_store() {
    let (one, three) = (one_server(), three_servers());
    for seed in 0..3 {
        let mut rng = SeededRandom::new(seed);
        let setup = Setup::declared(&mut rng);
        let mut case = Case::in_file(rng, setup);
        case.play(40);
        case.finish();
        let expected = hash(&case.home.open());
        let memory = MemoryLog::default();
        append_all(&case.events, &memory);
        assert_eq!(hash(&Store::over(Arc::new(memory)).unwrap()), expected);
        same_on(&one, &case, &expected);
        same_on(&three, &case, &expected);
    }
}

/// Compares the view in memory, in a file, rebuilt, and built again after its file was deleted.
fn same_on<S>(fleet: &Fleet<S>, case: &Case, expected: &str) {
    let project = fleet.project();
    let log = fleet.log(&project);
    append_all(&case.events, &log);
    let same = |store: &Store| {
        assert_eq!(hash(store), expected);
        let rebuilt = store.rebuild(&mut |_| {}).unwrap();
        assert_eq!(rebuilt, (expected.to_owned(), expected.to_owned()));
        assert_eq!(store.verify(&mut |_| {}).unwrap().unwrap(), case.events.len() as Seq);
    };
    same(&Store::over(Arc::new(log)).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let path = dir.path().join("view.db");
        jetstream::open(&fleet.access, &project, &path).unwrap().store
    };
    same(&open());
    same(&open());
    delete_files(dir.path());
    same(&open());
    // Another actor sees the same state.
    let project = Project::new(open(), case.rules.clone(), "someone");
    assert_eq!(project.read(|view| view.state_hash()).unwrap(), expected);
}

fn delete_files(dir: &Path) {
    for file in std::fs::read_dir(dir).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
}
