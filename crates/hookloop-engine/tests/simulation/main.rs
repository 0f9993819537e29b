//! Runs the loop in a simulated world with random agents, hooks, people and crashes, one run per
//! seed, and checks the invariants of every session.
//!
//! `HOOKLOOP_SEEDS=100000` runs more seeds, `HOOKLOOP_SEED=7` runs one and prints its events.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod check;
mod scene;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use hookloop_core::event::EventBody;
use hookloop_core::id::{EventId, SessionId, Subject};
use hookloop_core::session::facts::SessionResumed;
use hookloop_core::session::{Session, SessionPhase};
use hookloop_engine::project::Project;
use hookloop_engine::session::SessionDriver;
use hookloop_store::log::{EventLog, NewEvent, StoredEvent};
use hookloop_store::memory::MemoryLog;
use hookloop_store::store::Store;
use hookloop_store::view::{BudgetReservation, SpentAmount};

use hookloop_testkit::SeededRandom;
use scene::{Crash, Nature, Scene, Story};

const SEEDS: u64 = 10_000;
/// Maximum number of processes that run one session one after the other.
const PROGRAMS_MAX: u32 = 200;

/// State of a session after its end.
pub(crate) struct Ended {
    pub(crate) nature: Nature,
    pub(crate) story: Story,
    pub(crate) events: Vec<StoredEvent>,
    /// All events, including those of the budget.
    pub(crate) all: Vec<StoredEvent>,
    pub(crate) books: (SpentAmount, Vec<BudgetReservation>),
    pub(crate) session: Session,
    pub(crate) programs: u32,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the session of a seed, with as many processes as it needs.
fn perform(seed: u64) -> Ended {
    let mut dice = SeededRandom::new(seed);
    let nature = Nature::roll(&mut dice);
    let log = MemoryLog::default();
    let open = || {
        let store = Store::over(Arc::new(log.clone())).unwrap();
        Project::new(store, nature.rules.clone(), "sim")
    };
    let id = SessionId::generate(EventId([7; 16]));
    let subject = Subject::Session(id.clone());
    append(&log, &subject, EventBody::SessionStarted(nature.plan()));
    let story = Rc::new(RefCell::new(Story::default()));
    let dice = Rc::new(RefCell::new(dice));
    for programs in 1..=PROGRAMS_MAX {
        let project = open();
        let scene =
            Scene::new(&nature, Rc::clone(&story), Rc::clone(&dice), log.clone(), id.clone());
        let hooks = nature.rules.hooks.clone();
        let mut driver = SessionDriver::open(&project, &id, scene, hooks).unwrap().unwrap();
        let done = catch_unwind(AssertUnwindSafe(|| driver.run()));
        match done {
            Ok(result) => result.unwrap(),
            Err(panic) if panic.is::<Crash>() => {
                take_on(&log, &subject);
                continue;
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
        let session = driver.session().clone();
        let events = log.history(&subject, usize::MAX).unwrap();
        let again = Session::of(events.iter().map(|stored| &stored.event.body)).unwrap();
        assert_eq!(session, again, "the state in memory differs from the log");
        if session.phase == SessionPhase::Paused {
            take_on(&log, &subject);
            continue;
        }
        assert!(session.is_over(), "{:?}", session.phase);
        drop(driver);
        let story = story.borrow().clone();
        let all = log.read(1, usize::MAX).unwrap();
        let books = project.read(|view| Ok((view.spent(None)?, view.reservations()?))).unwrap();
        return Ended { nature, story, events, all, books, session, programs };
    }
    panic!("{PROGRAMS_MAX} programs did not end the session");
}

/// Records that another process continues the session, like `hookloop resume`.
fn take_on(log: &MemoryLog, subject: &Subject) {
    let events = log.history(subject, usize::MAX).unwrap();
    let session = Session::of(events.iter().map(|stored| &stored.event.body)).unwrap();
    if session.is_over() {
        return;
    }
    let (run, machine) = (session.run + 1, "sim".to_owned());
    append(
        log,
        subject,
        EventBody::SessionResumed(SessionResumed { run, machine, hooks: None, scripts: None }),
    );
}

pub(crate) fn append(log: &MemoryLog, subject: &Subject, body: EventBody) {
    let expected = log.last(subject).unwrap().map_or(0, |stored| stored.seq);
    let event = hookloop_core::event::Event {
        id: EventId(*uuid::Uuid::now_v7().as_bytes()),
        at: hookloop_core::time::Timestamp(0),
        subject: subject.clone(),
        actor: "sim".into(),
        cause: None,
        due: false,
        body,
    };
    log.append(&[NewEvent { expected, event }]).unwrap();
}

/// Returns the situations that occurred in the sessions of these seeds, after checking each
/// session.
fn perform_all(seeds: impl Iterator<Item = u64>) -> check::Seen {
    let mut seen = check::Seen::default();
    for seed in seeds {
        let done = catch_unwind(AssertUnwindSafe(|| {
            let ended = perform(seed);
            check::all(&ended);
            ended
        }));
        match done {
            Ok(ended) => seen.note(&ended),
            Err(panic) => {
                eprintln!("HOOKLOOP_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    seen
}

#[test]
fn sessions_end_correctly_under_random_faults() {
    if let Some(seed) = number("HOOKLOOP_SEED") {
        let ended = perform(seed);
        let kinds: Vec<&str> = ended.events.iter().map(|stored| stored.event.body.kind()).collect();
        eprintln!("{:?}\n{:#?}\n{kinds:?}", ended.nature, ended.story);
        check::all(&ended);
        return;
    }
    let seeds = number("HOOKLOOP_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let mut seen = check::Seen::default();
    std::thread::scope(|scope| {
        let part =
            |first: u64| scope.spawn(move || perform_all((first..seeds).step_by(threads as usize)));
        let parts: Vec<_> = (0..threads).map(part).collect();
        for part in parts {
            match part.join() {
                Ok(part) => seen.add(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    eprintln!("{seeds} seeds: {seen:?}");
    seen.check(seeds);
}
