//! A view over a log on servers that does not deliver every event.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookloop_core::event::{Event, EventBody, TaskStarted};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::task::TaskSpec;
use hookloop_core::time::Timestamp;
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::log::{
    AppendError, AppendOutcome, EventFollower, EventLog, LogError, NewEvent, Seq, StoredEvent,
};
use hookloop_store::memory::MemoryLog;
use hookloop_store::snapshot::{SnapshotStore, ViewSnapshot};
use hookloop_store::sqlite::{LogDefect, SCHEMA};
use hookloop_store::store::{LogIdentity, Store, StoreError, ViewFile};

/// A log that names the version each event follows, and does not deliver one of them.
#[derive(Clone)]
struct Leaky {
    log: MemoryLog,
    lost: Seq,
    /// Followers that are silent, from now on.
    silent: Arc<AtomicUsize>,
    /// The end of the log can't be asked for.
    is_denied: bool,
}

impl EventLog for Leaky {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
        self.log.append(batch)
    }

    fn digests(
        &self,
        batch: &[NewEvent],
    ) -> Result<Vec<hookloop_store::chain::ChainHash>, LogError> {
        self.log.digests(batch)
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        self.log.last(subject)
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        self.log.history(subject, limit)
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let mut events = self.follow(from)?.next(Duration::ZERO)?;
        events.truncate(limit);
        Ok(events)
    }

    fn head(&self) -> Result<Seq, LogError> {
        self.log.head()
    }

    fn end_before(&self, seen: Seq) -> Result<Option<Seq>, LogError> {
        if self.is_denied {
            Err(LogError::Engine("denied".into()))
        } else {
            Ok(Some(self.log.head()?).filter(|end| *end < seen))
        }
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError> {
        let silence = |left: usize| left.checked_sub(1);
        if self.silent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, silence).is_ok() {
            return Ok(Box::new(Silent));
        }
        let follower = LeakyFollower {
            events: self.log.follow(1)?,
            from,
            lost: self.lost,
            versions: HashMap::new(),
        };
        Ok(Box::new(follower))
    }
}

struct LeakyFollower {
    events: Box<dyn EventFollower>,
    from: Seq,
    lost: Seq,
    versions: HashMap<Subject, Seq>,
}

impl EventFollower for LeakyFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let mut events = self.events.next(timeout)?;
        for stored in &mut events {
            let before = self.versions.insert(stored.event.subject.clone(), stored.seq);
            stored.after = Some(before.unwrap_or(0));
        }
        events.retain(|stored| stored.seq >= self.from && stored.seq != self.lost);
        Ok(events)
    }
}

impl HeartbeatStore for Leaky {
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError> {
        self.log.beat(held, holder, epoch)
    }

    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError> {
        self.log.take(held, holder, epoch, seen)
    }

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError> {
        self.log.last_beat(held)
    }

    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError> {
        self.log.workers()
    }

    fn forget(&self, held: &HeldResource) -> Result<(), LogError> {
        self.log.forget(held)
    }
}

impl SnapshotStore for Leaky {
    fn latest(&self, schema: i64) -> Result<Option<ViewSnapshot>, LogError> {
        self.log.latest(schema)
    }

    fn latest_head(&self, schema: i64) -> Result<Seq, LogError> {
        self.log.latest_head(schema)
    }

    fn save(&self, snapshot: &ViewSnapshot) -> Result<(), LogError> {
        self.log.save(snapshot)
    }
}

fn event(id: u8, name: &str, body: EventBody) -> Event {
    Event {
        id: EventId([id; 16]),
        at: Timestamp(i64::from(id)),
        subject: Subject::Task(name.parse().unwrap()),
        actor: "tester".into(),
        cause: None,
        due: false,
        body,
    }
}

fn created(id: u8, name: &str) -> NewEvent {
    let spec = TaskSpec { goal: "g".into(), ..TaskSpec::default() };
    NewEvent { expected: 0, event: event(id, name, EventBody::TaskCreated(spec)) }
}

fn started(id: u8, name: &str, expected: Seq) -> NewEvent {
    let body = EventBody::TaskStarted(TaskStarted::default());
    NewEvent { expected, event: event(id, name, body) }
}

/// A log of five events, of which a follower does not get the one at `lost`.
fn leaky(lost: Seq) -> Leaky {
    let log = MemoryLog::default();
    log.append(&[created(1, "a"), created(2, "b")]).unwrap();
    log.append(&[started(3, "a", 1)]).unwrap();
    log.append(&[started(4, "a", 3)]).unwrap();
    log.append(&[created(5, "c")]).unwrap();
    Leaky { log, lost, silent: Arc::default(), is_denied: false }
}

fn hash(store: &Store) -> String {
    store.read(|view| Ok::<_, StoreError>(view.state_hash()?)).unwrap()
}

/// A follower whose server has forgotten it.
struct Silent;

impl EventFollower for Silent {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        std::thread::sleep(timeout);
        Ok(vec![])
    }
}

fn found(path: &Path) -> ViewFile {
    ViewFile::find(path).unwrap()
}

fn identity(_: Option<String>) -> Result<LogIdentity, StoreError> {
    Ok(LogIdentity { log: "the log".to_owned(), note: String::new() })
}

#[test]
fn a_view_of_all_events_passes_verification() {
    let store = Store::over(Arc::new(leaky(0))).unwrap();
    let memory = Store::over(Arc::new(leaky(0).log)).unwrap();
    assert_eq!(hash(&store), hash(&memory));
    assert_eq!(store.verify(&mut |_| ()).unwrap(), Ok(5));
}

/// The event behind it on its task tells.
#[test]
fn a_missing_event_is_reported_as_damage() {
    let missed = Store::over(Arc::new(leaky(3))).map(drop);
    let damaged = matches!(missed, Err(StoreError::Log(LogError::Damaged { seq: 4, ref reason }))
        if reason.contains("something is missing"));
    assert!(damaged, "{missed:?}");
}

/// Events before the gap stay in the view, and no event behind it is taken in.
#[test]
fn a_view_file_stops_before_a_missing_event() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("view.db");
    let open = |engine: Leaky| Store::over_at(Arc::new(engine), found(&path), identity).unwrap();
    let leaking = open(leaky(3));
    for _ in 0..2 {
        let missed = leaking.glance(|view| view.totals());
        let damaged = matches!(missed, Err(StoreError::Log(LogError::Damaged { seq: 4, .. })));
        assert!(damaged, "{missed:?}");
    }
    let verified = leaking.verify(&mut |_| ()).unwrap();
    assert_eq!(verified, Err(LogDefect::Missing { seq: 3 }));
    drop(leaking);
    let whole = open(leaky(0));
    assert_eq!(hash(&whole), hash(&Store::over(Arc::new(leaky(0).log)).unwrap()));
}

/// A server that does not show the end of its log has not lost events by that.
#[test]
fn an_unreadable_end_of_the_log_is_not_reported_as_loss() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("view.db");
    let open = |engine: Leaky| Store::over_at(Arc::new(engine), found(&path), identity).unwrap();
    let whole = open(leaky(0));
    assert_eq!(whole.verify(&mut |_| ()).unwrap(), Ok(5));
    drop(whole);
    let empty = || Leaky { log: MemoryLog::default(), ..leaky(0) };
    let denied = open(Leaky { is_denied: true, ..empty() }).verify(&mut |_| ());
    assert!(denied.is_err(), "{denied:?}");
    let lost = open(empty()).verify(&mut |_| ()).unwrap();
    assert_eq!(lost, Err(LogDefect::Short { found: 0, expected: 5 }));
}

#[test]
fn a_new_machine_loads_a_snapshot_and_later_events() {
    let (log, dir) = (MemoryLog::default(), tempfile::tempdir().unwrap());
    let old = Store::over(Arc::new(log.clone())).unwrap();
    log.append(&[created(1, "a"), created(2, "b")]).unwrap();
    hash(&old);
    assert_eq!(old.save_snapshot().unwrap(), 2);
    log.append(&[started(3, "a", 1)]).unwrap();
    // Without the snapshot, the first event would be missed.
    let log = Leaky { log, lost: 1, silent: Arc::default(), is_denied: false };
    let path = dir.path().join("view.db");
    let new = Store::over_at(Arc::new(log), found(&path), identity).unwrap();
    assert_eq!(hash(&new), hash(&old));
    // Readers do not wait for writers, as in a view that was read from the log.
    let conn = rusqlite::Connection::open(&path).unwrap();
    let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

/// Each has found no file: the second does not take it away from the first.
#[test]
fn a_view_file_created_by_two_processes_is_shared() {
    let (log, dir) = (MemoryLog::default(), tempfile::tempdir().unwrap());
    let old = Store::over(Arc::new(log.clone())).unwrap();
    log.append(&[created(1, "a"), created(2, "b")]).unwrap();
    hash(&old);
    old.save_snapshot().unwrap();
    let path = dir.path().join("view.db");
    let (one, other) = (found(&path), found(&path));
    let open = |file| Store::over_at(Arc::new(log.clone()), file, identity).unwrap();
    let file = || std::fs::metadata(&path).unwrap().ino();
    let first = open(one);
    let is = file();
    let second = open(other);
    assert_eq!(file(), is);
    log.append(&[started(3, "a", 1)]).unwrap();
    assert_eq!((hash(&first), hash(&second)), (hash(&old), hash(&old)));
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().contains("new")).count(), 0);
}

#[test]
fn an_invalid_snapshot_is_ignored() {
    let log = MemoryLog::default();
    log.append(&[created(1, "a"), created(2, "b")]).unwrap();
    let whole = Store::over(Arc::new(log.clone())).unwrap();
    whole.save_snapshot().unwrap();
    let snapshot = log.latest(SCHEMA).unwrap().unwrap();
    let half = snapshot.view[..snapshot.view.len() / 2].to_vec();
    for view in [b"not a database".repeat(99), half, vec![]] {
        log.save(&ViewSnapshot { view, ..snapshot.clone() }).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("view.db");
        let new = Store::over_at(Arc::new(log.clone()), found(&path), identity).unwrap();
        assert_eq!(hash(&new), hash(&whole));
        assert_eq!(new.rebuild(&mut |_| ()).unwrap(), (hash(&whole), hash(&whole)));
    }
}

/// A thread that waits for more events does not wait for the interval of a follower's own
/// heartbeats.
#[test]
fn a_silent_follower_is_replaced_when_an_append_conflicts() {
    let log = leaky(0);
    let store = Store::over(Arc::new(log.clone())).unwrap();
    log.silent.store(1, Ordering::SeqCst);
    store.go_live().unwrap();
    // Behind the view's back: the next to write is overtaken, and waits until the view shows why.
    let at = log.log.append(&[created(50, "x")]).unwrap().first();
    let begun = std::time::Instant::now();
    let event = created(51, "x").event;
    store
        .transact(|unit| match unit.view()?.version(&event.subject)? {
            0 => unit.stage(event.clone()).map(drop),
            _ => Ok(()),
        })
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(store.glance(|view| Ok(view.totals()?.head)).unwrap() >= at);
}
