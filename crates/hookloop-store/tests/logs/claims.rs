//! Claims in the view, heartbeats in the file, and files of the version before them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use hookloop_core::claim::{Claim, ReleaseReason};
use hookloop_core::event::{Event, EventBody, TaskReleased, TaskStarted, TaskSubmitted};
use hookloop_core::id::{EventId, Subject, TaskId};
use hookloop_core::task::{Priority, Task, TaskObstacle, TaskOutcome, TaskSpec, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_core::urgency::PriorityAging;
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::log::EventLog;
use hookloop_store::memory::MemoryLog;
use hookloop_store::sqlite::SCHEMA;
use hookloop_store::store::{Store, StoreError, ViewFile};
use hookloop_store::view::TypeFilter;
use tempfile::TempDir;

fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// Adds an event to the log of `store`, at the time that its place makes.
fn add(store: &Store, name: &str, body: EventBody) {
    let stage = |unit: &mut hookloop_store::store::WorkUnit<'_>| {
        let n = unit.totals().head + 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        unit.stage(Event {
            id: EventId(bytes),
            at: Timestamp(n as i64),
            subject: Subject::Task(id(name)),
            actor: "tester".into(),
            cause: None,
            due: false,
            body: body.clone(),
        })
    };
    store.transact::<_, StoreError>(stage).unwrap();
}

fn created(priority: u8, kind: Option<&str>) -> EventBody {
    EventBody::TaskCreated(TaskSpec {
        goal: "g".into(),
        priority: Priority::try_from(priority).unwrap(),
        kind: kind.map(str::to_owned),
        ..TaskSpec::default()
    })
}

fn claimed(agent: &str, epoch: u64) -> EventBody {
    let claim = Some(Claim { agent: agent.into(), epoch, lease_ms: 60_000 });
    EventBody::TaskStarted(TaskStarted { claim, ..TaskStarted::default() })
}

fn released(epoch: u64) -> EventBody {
    EventBody::TaskReleased(TaskReleased { epoch, reason: ReleaseReason::Expired, note: None })
}

fn file() -> (Store, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Store::open(&dir.path().join("log.db")).unwrap(), dir)
}

fn task(store: &Store, name: &str) -> Task {
    store.glance(|view| view.task(&id(name))).unwrap().unwrap().task
}

fn state_hash(store: &Store) -> String {
    store.glance(|view| view.state_hash()).unwrap()
}

/// A task's state, epoch and holder after each event.
fn check_course(store: &Store, course: &[(EventBody, TaskState, u64, Option<&str>)]) {
    add(store, "t", created(2, None));
    for (body, state, epoch, holder) in course {
        add(store, "t", body.clone());
        let task = task(store, "t");
        let agent = task.claim.as_ref().map(|claim| claim.agent.as_str());
        assert_eq!((task.state, task.epoch, agent), (*state, *epoch, *holder), "after {body:?}");
        assert_eq!(task.started_at.is_some(), *state != TaskState::Ready, "after {body:?}");
    }
}

#[test]
fn the_view_tracks_the_claim_of_a_task() {
    let course = [
        (claimed("a", 1), TaskState::Active, 1, Some("a")),
        (released(1), TaskState::Ready, 1, None),
        (claimed("b", 2), TaskState::Active, 2, Some("b")),
        (claimed("c", 3), TaskState::Active, 3, Some("c")),
        (EventBody::TaskSubmitted(TaskSubmitted::default()), TaskState::Submitted, 3, Some("c")),
        (released(3), TaskState::Ready, 3, None),
        (EventBody::TaskStarted(TaskStarted::default()), TaskState::Active, 3, None),
        (released(3), TaskState::Ready, 3, None),
        (claimed("d", 4), TaskState::Active, 4, Some("d")),
        (EventBody::TaskBlocked(TaskObstacle::default()), TaskState::Blocked, 4, None),
    ];
    let (in_file, _dir) = file();
    check_course(&in_file, &course);
    let log = MemoryLog::default();
    let over = Store::over(Arc::new(log.clone())).unwrap();
    check_course(&over, &course);
    assert_eq!(state_hash(&in_file), state_hash(&over));
    assert_eq!(state_hash(&over), state_hash(&Store::over(Arc::new(log)).unwrap()));
    let before = state_hash(&in_file);
    assert_eq!(in_file.rebuild(&mut |_| ()).unwrap(), (before.clone(), before));
}

#[test]
fn the_state_hash_depends_on_the_claim() {
    let with = |body: EventBody| {
        let (store, _dir) = file();
        add(&store, "t", created(2, None));
        add(&store, "t", body);
        state_hash(&store)
    };
    let unclaimed = with(EventBody::TaskStarted(TaskStarted::default()));
    let hashes = [unclaimed, with(claimed("a", 1)), with(claimed("b", 1)), with(claimed("a", 2))];
    for (i, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..i].contains(hash), "{i}");
    }
}

#[test]
fn the_front_is_the_oldest_ready_tasks_of_the_highest_priority() {
    let (store, _dir) = file();
    let tasks =
        [(2, None), (1, Some("a")), (1, None), (1, Some("b")), (0, Some("c")), (1, Some("a"))];
    for (n, (priority, kind)) in tasks.into_iter().enumerate() {
        add(&store, &format!("t{}", n + 1), created(priority, kind));
    }
    fn wanted(kinds: &[String]) -> TypeFilter<'_> {
        match kinds {
            [] => TypeFilter::Except(&[]),
            kinds => TypeFilter::Only(kinds),
        }
    }
    let check = |kinds: &[&str], limit: usize, front: &[u64], ready: &[u64]| {
        let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        assert_eq!(
            store
                .glance(|view| view.front(
                    &wanted(&kinds),
                    PriorityAging::Never,
                    limit,
                    &HashSet::new()
                ))
                .unwrap(),
            front,
            "{kinds:?}"
        );
        let rows = store.glance(|view| view.ready_of(&kinds, PriorityAging::Never, limit)).unwrap();
        assert_eq!(rows.iter().map(|row| row.num).collect::<Vec<_>>(), ready, "{kinds:?}");
    };
    check(&[], 9, &[5], &[]);
    check(&["a"], 9, &[2, 6], &[2, 6]);
    check(&["b", "a", "b"], 9, &[2, 4, 6], &[2, 4, 6]);
    check(&["b", "a"], 2, &[2, 4], &[2, 4]);
    check(&["a", "c"], 9, &[5], &[5, 2, 6]);
    check(&["d"], 9, &[], &[]);
    add(&store, "t5", claimed("x", 1));
    check(&[], 2, &[2, 3], &[]);
    check(&["c"], 9, &[], &[]);
    let held = store.glance(|view| Ok((view.claimed()?, view.count_claimed()?))).unwrap();
    assert_eq!((held.0.len(), held.0[0].num, held.1), (1, 5, 1));
}

#[test]
fn ready_tasks_are_ordered_by_not_before_and_priority_aging() {
    let (store, _dir) = file();
    // A task is added at the time that its number is.
    let tasks = [
        (3, None, None),
        (0, None, None),
        (1, None, Some(50)),
        (0, Some("a"), Some(90)),
        (3, Some("a"), None),
        (2, None, Some(3)),
    ];
    for (n, (priority, kind, time)) in tasks.into_iter().enumerate() {
        let EventBody::TaskCreated(spec) = created(priority, kind) else { panic!() };
        let spec = TaskSpec { not_before: time.map(Timestamp), ..spec };
        add(&store, &format!("t{}", n + 1), EventBody::TaskCreated(spec));
    }
    let each = |ms| PriorityAging::Each { ms };
    let check = |now: i64, aging: PriorityAging, front: &[u64], ready: &[u64]| {
        let asked = store.glance(|view| {
            let view = view.at(Timestamp(now));
            let front = view.front(&TypeFilter::Except(&[]), aging, 9, &HashSet::new())?;
            let first = view.front(&TypeFilter::Except(&[]), aging, 1, &HashSet::new())?;
            assert_eq!(first, front[..1], "at {now} with {aging:?}");
            let ready = view.ready(aging, 9)?.into_iter().map(|row| row.num).collect::<Vec<_>>();
            Ok((front, ready))
        });
        assert_eq!(asked.unwrap(), (front.to_vec(), ready.to_vec()), "at {now} with {aging:?}");
    };
    check(10, PriorityAging::Never, &[2], &[2, 6, 1, 5]);
    check(49, PriorityAging::Never, &[2], &[2, 6, 1, 5]);
    check(50, PriorityAging::Never, &[2], &[2, 3, 6, 1, 5]);
    check(100, PriorityAging::Never, &[2, 4], &[2, 4, 3, 6, 1, 5]);
    check(100, each(10), &[2], &[2, 6, 1, 5, 3, 4]);
    add(&store, "t2", claimed("x", 1));
    check(100, PriorityAging::Never, &[4], &[4, 3, 6, 1, 5]);
    check(100, each(10), &[6], &[6, 1, 5, 3, 4]);
    check(100, each(1), &[1], &[1, 5, 6, 3, 4]);
    // As urgent as each other, of two priorities: the older one first.
    check(60, each(50), &[6, 3], &[6, 3, 1, 5]);
    let of_a = |now: i64, aging: PriorityAging| {
        let kinds = ["a".to_owned()];
        let ask = |kinds: TypeFilter<'_>| {
            store.glance(|view| view.at(Timestamp(now)).front(&kinds, aging, 9, &HashSet::new()))
        };
        (ask(TypeFilter::Only(&kinds)).unwrap(), ask(TypeFilter::Except(&kinds)).unwrap())
    };
    assert_eq!(of_a(89, PriorityAging::Never), (vec![5], vec![3]));
    assert_eq!(of_a(90, PriorityAging::Never), (vec![4], vec![3]));
    assert_eq!(of_a(100, each(10)), (vec![5], vec![6]));
    let hash = state_hash(&store);
    assert_eq!(store.rebuild(&mut |_| ()).unwrap(), (hash.clone(), hash));
}

fn check_beats(pulse: &dyn HeartbeatStore) {
    let (one, other) = (HeldResource::Task(id("t")), HeldResource::Dispatcher);
    assert_eq!(pulse.last_beat(&one).unwrap(), None);
    pulse.beat(&one, "a", 1).unwrap();
    let beat =
        |holder: &str, epoch, count| Some(HeartbeatRecord { holder: holder.into(), epoch, count });
    assert_eq!(pulse.last_beat(&one).unwrap(), beat("a", 1, 1));
    pulse.beat(&one, "a", 1).unwrap();
    pulse.beat(&other, "p", 0).unwrap();
    assert_eq!(pulse.last_beat(&one).unwrap(), beat("a", 1, 2));
    pulse.beat(&one, "b", 2).unwrap();
    assert_eq!(pulse.last_beat(&one).unwrap(), beat("b", 2, 3));
    assert_eq!(pulse.last_beat(&other).unwrap(), beat("p", 0, 1));
}

#[test]
fn heartbeats_are_stored_with_every_kind_of_log() {
    check_beats(&MemoryLog::default());
    check_beats(&Store::over(Arc::new(MemoryLog::default())).unwrap());
    let (store, dir) = file();
    check_beats(&store);
    let other = Store::open(&dir.path().join("log.db")).unwrap();
    assert_eq!(other.last_beat(&HeldResource::Task(id("t"))).unwrap().unwrap().count, 3);
    let hash = state_hash(&store);
    assert_eq!(store.rebuild(&mut |_| ()).unwrap(), (hash.clone(), hash));
    assert_eq!(other.last_beat(&HeldResource::Task(id("t"))).unwrap().unwrap().count, 3);
}

#[test]
fn heartbeats_of_ended_claims_are_deleted() {
    let (store, _dir) = file();
    for name in ["t", "u"] {
        add(&store, name, created(2, None));
        add(&store, name, claimed("a", 1));
        store.beat(&HeldResource::Task(id(name)), "a", 1).unwrap();
    }
    add(&store, "t", EventBody::TaskCompleted(TaskOutcome::default()));
    store.beat(&HeldResource::Dispatcher, "p", 0).unwrap();
    assert_eq!(store.last_beat(&HeldResource::Task(id("t"))).unwrap(), None);
    assert!(store.last_beat(&HeldResource::Task(id("u"))).unwrap().is_some());
}

/// A file of version 1 that holds the events of `store`, which is at `path`.
fn version_1(dir: &Path, path: &Path) -> std::path::PathBuf {
    let old = dir.join("old.db");
    let conn = rusqlite::Connection::open(&old).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.execute_batch(include_str!("version_1.sql")).unwrap();
    conn.execute("ATTACH ?1 AS new", [path.to_str().unwrap()]).unwrap();
    conn.execute_batch(
        "INSERT INTO event SELECT * FROM new.event;
         INSERT INTO task SELECT num, id, version, state, open_deps, announced, priority, created_at,
            started_at, completed_at, parent, spec, detail FROM new.task;
         UPDATE totals SET (head, hash, ready, completed) =
            (SELECT head, hash, ready, completed FROM new.totals);",
    )
    .unwrap();
    old
}

#[test]
fn a_file_of_schema_1_is_migrated() {
    const PROCESSES: usize = 6;
    let (store, dir) = file();
    add(&store, "t", created(0, Some("chore")));
    add(&store, "u", created(1, None));
    add(&store, "u", EventBody::TaskCompleted(TaskOutcome::default()));
    let old = version_1(dir.path(), &dir.path().join("log.db"));
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                let opened = Store::open(&old).unwrap();
                assert_eq!(state_hash(&opened), state_hash(&store));
            });
        }
    });
    let opened = Store::open(&old).unwrap();
    assert_eq!(opened.verify(&mut |_| ()).unwrap(), Ok(3));
    let front = opened
        .glance(|view| {
            view.front(
                &TypeFilter::Only(&["chore".to_owned()]),
                PriorityAging::Never,
                1,
                &HashSet::new(),
            )
        })
        .unwrap();
    assert_eq!(front, [1]);
    add(&opened, "t", claimed("a", 1));
    opened.beat(&HeldResource::Task(id("t")), "a", 1).unwrap();
    assert_eq!(EventLog::read(&opened, 1, 10).unwrap().len(), 4);
    let conn = rusqlite::Connection::open(&old).unwrap();
    let version: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, SCHEMA);
}

#[test]
fn a_file_of_schema_2_is_migrated() {
    let (store, dir) = file();
    add(&store, "t", created(0, Some("chore")));
    let hash = state_hash(&store);
    drop(store);
    let path = dir.path().join("log.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(
        "DROP INDEX task_busy;
         CREATE INDEX task_busy ON task(state, num) WHERE state IN (1, 2, 4);
         PRAGMA user_version = 2;",
    )
    .unwrap();
    drop(conn);
    let opened = Store::open(&path).unwrap();
    assert_eq!((state_hash(&opened), opened.verify(&mut |_| ()).unwrap()), (hash, Ok(1)));
    let conn = rusqlite::Connection::open(&path).unwrap();
    let index = "SELECT sql FROM sqlite_schema WHERE name = 'task_busy'";
    let sql: String = conn.query_row(index, [], |row| row.get(0)).unwrap();
    assert!(!sql.contains("IN ("), "{sql}");
}

/// A view of a log elsewhere has only those events that are still due: it is not made from them.
#[test]
fn a_view_of_a_remote_log_with_an_older_schema_is_reset() {
    let (store, dir) = file();
    add(&store, "t", created(0, None));
    add(&store, "t", EventBody::TaskCompleted(TaskOutcome::default()));
    drop(store);
    let path = dir.path().join("log.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(
        "CREATE TABLE origin(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
         DELETE FROM event WHERE seq = 1;
         PRAGMA user_version = 4;",
    )
    .unwrap();
    drop(conn);
    ViewFile::find(&path).unwrap();
    let conn = rusqlite::Connection::open(&path).unwrap();
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT head FROM totals"), 0);
    assert_eq!(count("SELECT count(*) FROM event") + count("SELECT count(*) FROM task"), 0);
}
