//! Tests of a store over a file and over a log in memory.

use std::sync::Arc;

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::task::TaskSpec;
use hookloop_core::time::Timestamp;

use super::{Store, StoreError};
use crate::log::{EventLog, NewEvent, Seq};
use crate::view::TaskFilter;

pub(super) fn created(name: &str) -> Event {
    let mut id = [0; 16];
    id[..name.len()].copy_from_slice(name.as_bytes());
    Event {
        id: EventId(id),
        at: Timestamp(0),
        subject: Subject::Task(name.parse().unwrap()),
        actor: "tester".into(),
        cause: None,
        due: false,
        body: EventBody::TaskCreated(TaskSpec { goal: name.into(), ..TaskSpec::default() }),
    }
}

fn add(store: &Store, name: &str) {
    store.transact(|unit| unit.stage(created(name)).map(drop)).unwrap();
}

#[test]
fn a_unit_that_fails_or_panics_stores_no_event() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("log.db")).unwrap();
    let failed: Result<(), StoreError> = store.transact(|unit| {
        unit.stage(created("fails"))?;
        Err(StoreError::Contended)
    });
    assert!(failed.is_err());
    let panicking = store.clone();
    let panicked = std::thread::spawn(move || {
        panicking.transact(|unit| -> Result<(), StoreError> {
            unit.stage(created("panics"))?;
            panic!("half-way");
        })
    });
    assert!(panicked.join().is_err());
    add(&store, "works");
    let tasks = store.read(|view| Ok::<_, StoreError>(view.totals()?.tasks())).unwrap();
    assert_eq!((tasks, store.read_all()), (1, vec!["works".to_owned()]));
    let (before, after) = store.rebuild(&mut |_| ()).unwrap();
    assert_eq!(before, after);
}

#[test]
fn task_lists_are_filtered_by_text_and_position() {
    let store = Store::over(Arc::new(crate::memory::MemoryLog::default())).unwrap();
    for (name, goal) in
        [("a", "Say \"50% done\""), ("b", "under_score"), ("c", "Größe"), ("d50", "")]
    {
        let spec =
            TaskSpec { goal: goal.into(), labels: vec!["Odd\\one".into()], ..TaskSpec::default() };
        let event = Event { body: EventBody::TaskCreated(spec), ..created(name) };
        store.transact(|unit| unit.stage(event.clone()).map(drop)).unwrap();
    }
    let check = |text: &str, before: Option<u64>, expected: &str| {
        let filter = TaskFilter { text: Some(text.into()), before, ..TaskFilter::default() };
        let found = store.read(|view| Ok::<_, StoreError>(view.list(&filter)?)).unwrap();
        let ids: Vec<&str> = found.iter().map(|row| row.task.id.as_str()).collect();
        assert_eq!(ids.join(" "), expected, "{text}");
    };
    check("50", None, "d50 a");
    check("50%", None, "a");
    check("\"50% DONE\"", None, "a");
    check("_", None, "b");
    check("größe", None, "c");
    check("GRÖ", None, "");
    check("d\\O", None, "d50 c b a");
    check("goal", None, "");
    check("o", Some(3), "b a");
}

impl Store {
    fn read_all(&self) -> Vec<String> {
        let events = EventLog::read(self, 1, usize::MAX).unwrap();
        events.iter().map(|stored| stored.event.subject.to_string()).collect()
    }
}

#[test]
fn a_unit_that_a_rival_overtook_is_retried_on_the_rivals_events() {
    let log = Arc::new(crate::memory::MemoryLog::default());
    let [one, rival] = [(); 2].map(|()| Store::over(log.clone()).unwrap());
    let mut tries = 0;
    let late = one.transact(|unit| {
        tries += 1;
        // The other process writes first: the same id, another time, and a smaller batch.
        if tries == 1 {
            let event = Event { at: Timestamp(1), ..created("a") };
            rival.transact(|unit| unit.stage(event.clone()).map(drop))?;
        }
        if unit.view()?.task(&"a".parse().unwrap())?.is_none() {
            unit.stage(created("a"))?;
        }
        unit.stage(created("b"))
    });
    late.unwrap();
    add(&rival, "c");
    assert_eq!((tries, one.read_all()), (2, ["a", "b", "c"].map(str::to_owned).to_vec()));
    let hash = |store: &Store| store.read(|view| Ok::<_, StoreError>(view.state_hash()?));
    assert_eq!(hash(&one).unwrap(), hash(&rival).unwrap());
}

#[test]
fn an_event_appended_twice_is_applied_once() {
    let log = Arc::new(crate::memory::MemoryLog::default());
    let store = Store::over(log.clone()).unwrap();
    let mut tries = 0;
    let added = store.transact(|unit| {
        tries += 1;
        let event = created("a");
        if tries == 1 {
            log.append(&[NewEvent { expected: 0, event: event.clone() }])?;
        }
        unit.stage(event)
    });
    added.unwrap();
    assert_eq!((tries, store.read_all()), (1, vec!["a".to_owned()]));
    let tasks = store.read(|view| Ok::<_, StoreError>(view.totals()?.tasks()));
    assert_eq!(tasks.unwrap(), 1);
}

#[test]
fn a_full_disk_is_reported_and_later_writes_succeed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("log.db")).unwrap();
    add(&store, "before");
    let limit = |pages: u32| {
        let inner = store.lock();
        inner.conn.pragma_update(None, "max_page_count", pages).unwrap();
    };
    limit(1);
    let large = TaskSpec { goal: "x".repeat(64 * 1024), ..TaskSpec::default() };
    for _ in 0..2 {
        let event = Event { body: EventBody::TaskCreated(large.clone()), ..created("large") };
        let full: Result<(), StoreError> =
            store.transact(|unit| unit.stage(event.clone()).map(drop));
        assert!(full.unwrap_err().to_string().contains("full"));
    }
    limit(1_000_000);
    add(&store, "after");
    assert_eq!(store.read_all(), ["before", "after"]);
    assert_eq!(store.verify(&mut |_| ()).unwrap(), Ok(2));
}

#[test]
fn concurrent_units_of_many_threads_are_all_stored() {
    const THREADS: usize = 8;
    const EACH: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("log.db")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || (0..EACH).for_each(|n| add(store, &format!("t{thread}-{n}"))));
        }
    });
    assert_eq!(store.read_all().len(), THREADS * EACH);
    assert_eq!(store.verify(&mut |_| ()).unwrap(), Ok((THREADS * EACH) as Seq));
}
