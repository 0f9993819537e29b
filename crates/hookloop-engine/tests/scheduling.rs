//! Tests of delayed tasks, priority aging, work-in-progress limits and recurring tasks.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookloop_config::effective::{EffectiveConfig, SchedulingRules};
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::event::EventBody;
use hookloop_core::id::TaskId;
use hookloop_core::refusal::Refusal;
use hookloop_core::schedule::{
    OccurrenceResult, Overlap, Schedule, ScheduleCommand, ScheduleFired, ScheduleName, Timetable,
};
use hookloop_core::slots::WipLimits;
use hookloop_core::task::{Priority, TaskOutcome, TaskSpec, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_core::urgency::PriorityAging;
use hookloop_engine::claim::{ClaimRequest, ClaimedTask, WantedTask, WhyNone};
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_store::memory::MemoryLog;
use hookloop_store::store::Store;

const HOUR: i64 = 60 * 60 * 1_000;
const DEADLINE: Duration = Duration::from_secs(60);

fn rules(scheduling: SchedulingRules) -> EffectiveConfig {
    EffectiveConfig { scheduling, ..EffectiveConfig::default() }
}

fn over(log: &MemoryLog, scheduling: &SchedulingRules) -> Project {
    let store = Store::over(Arc::new(log.clone())).unwrap();
    Project::new(store, rules(scheduling.clone()), "tester")
}

fn alone(scheduling: SchedulingRules) -> Project {
    over(&MemoryLog::default(), &scheduling)
}

fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

fn spec(priority: u8, kind: Option<&str>) -> TaskSpec {
    TaskSpec {
        goal: "g".into(),
        priority: Priority::try_from(priority).unwrap(),
        kind: kind.map(str::to_owned),
        ..TaskSpec::default()
    }
}

fn add(project: &Project, name: &str, spec: TaskSpec) {
    project.execute(&Command::AddTask { id: id(name), spec, depends_on: vec![] }).unwrap();
}

fn claim(project: &Project, wanted: WantedTask) -> Result<Option<ClaimedTask>, EngineError> {
    let (agent, worker) = ("agent".to_owned(), "agent".to_owned());
    project.claim(&ClaimRequest {
        agent,
        worker,
        lease: Duration::from_secs(60),
        wanted,
        labels: Vec::new(),
    })
}

fn claimed_id(project: &Project, wanted: WantedTask) -> Option<String> {
    claim(project, wanted).unwrap().map(|claimed| claimed.task.id.to_string())
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, EngineError>) -> Refusal {
    match answer {
        Err(EngineError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn complete(project: &Project, id: TaskId, fence: Fence) -> Result<(), EngineError> {
    project.execute(&Command::CompleteTask { id, outcome: TaskOutcome::default(), fence }).map(drop)
}

fn state(project: &Project, name: &str) -> TaskState {
    project.read(|view| view.task(&id(name))).unwrap().unwrap().task.state
}

#[test]
fn a_task_cannot_be_claimed_before_its_not_before_time() {
    let project = alone(SchedulingRules::default());
    let time = Timestamp(project.now().0 + HOUR);
    add(&project, "later", TaskSpec { not_before: Some(time), ..spec(0, Some("chore")) });
    assert_eq!(state(&project, "later"), TaskState::Created);
    assert_eq!(claimed_id(&project, WantedTask::Any), None);
    assert_eq!(claimed_id(&project, WantedTask::Types(vec!["chore".into()])), None);
    let why = project.why_none(&WantedTask::Any).unwrap();
    assert_eq!(why, WhyNone::NothingReady { next: Some(time) });
    let early = Refusal::TooEarly { id: id("later"), not_before: time };
    assert_eq!(refusal(claim(&project, WantedTask::Task(id("later")))), early);
    let start = Command::StartTask { id: id("later"), context: None };
    assert_eq!(refusal(project.execute(&start)), early);
    // The task becomes ready without any process running.
    let later = project.store().glance(|view| {
        let view = view.at(time);
        let counts = view.counts()?;
        let ready = view.ready(PriorityAging::default(), 9)?;
        Ok((
            view.task(&id("later"))?.unwrap().task.state,
            counts[1],
            ready.len(),
            view.open_tasks()?,
        ))
    });
    assert_eq!(later.unwrap(), (TaskState::Ready, (TaskState::Ready, 1), 1, 1));
    let now = project.read(|view| Ok((view.counts()?, view.early()?, view.open_tasks()?))).unwrap();
    assert_eq!((now.0[0], now.0[1]), ((TaskState::Created, 1), (TaskState::Ready, 0)));
    assert_eq!((now.1.count, now.1.next, now.2), (1, Some(time), 0));
    add(&project, "past", TaskSpec { not_before: Some(Timestamp(0)), ..spec(9, None) });
    assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some("past"));
    // A person may have completed the task earlier.
    complete(&project, id("later"), Fence::None).unwrap();
}

/// The completion of the dependency is announced at once, but the task is not reported as ready
/// before its time.
#[test]
fn a_dependent_is_not_ready_before_its_not_before_time() {
    let project = alone(SchedulingRules::default());
    add(&project, "first", spec(0, None));
    let time = Timestamp(project.now().0 + HOUR);
    let later = TaskSpec { not_before: Some(time), ..spec(0, None) };
    let add = Command::AddTask { id: id("second"), spec: later, depends_on: vec![id("first")] };
    project.execute(&add).unwrap();
    let open = refusal(claim(&project, WantedTask::Task(id("second"))));
    assert!(matches!(open, Refusal::OpenDependencies { open: 1, .. }), "{open:?}");
    let outcome = TaskOutcome::default();
    let complete = Command::CompleteTask { id: id("first"), outcome, fence: Fence::None };
    let done = project.execute(&complete).unwrap();
    project.dispatch().unwrap();
    assert_eq!((done.readied, done.failures), (vec![], vec![] as Vec<String>));
    assert_eq!(state(&project, "second"), TaskState::Created);
    let events = project.log().read(1, 100).unwrap();
    let announced = |body: &EventBody| matches!(body, EventBody::DependencySatisfied(_));
    assert_eq!(events.iter().filter(|stored| announced(&stored.event.body)).count(), 1);
    let failed = |body: &EventBody| matches!(body, EventBody::ActionError(_));
    assert!(!events.iter().any(|stored| failed(&stored.event.body)));
}

#[test]
fn priority_aging_puts_long_waiting_tasks_before_urgent_tasks() {
    for (priority_aging, first) in
        [(PriorityAging::Each { ms: 1 }, "old"), (PriorityAging::Never, "urgent")]
    {
        let project = alone(SchedulingRules { priority_aging, ..SchedulingRules::default() });
        add(&project, "old", spec(9, None));
        // Ten aging steps exceed the number of priorities; a longer wait does not change the
        // result.
        std::thread::sleep(Duration::from_millis(10));
        add(&project, "urgent", spec(0, None));
        assert_eq!(
            claimed_id(&project, WantedTask::Any).as_deref(),
            Some(first),
            "{priority_aging:?}"
        );
    }
}

fn bounded(all: Option<u32>, bugs: Option<u32>) -> SchedulingRules {
    let of_type = bugs.map(|max| ("bug".to_owned(), max)).into_iter().collect();
    SchedulingRules { slots: WipLimits { all, of_type }, ..SchedulingRules::default() }
}

#[test]
fn a_claim_skips_tasks_beyond_the_wip_limits() {
    let project = alone(bounded(Some(3), Some(1)));
    for (name, kind) in [("b1", Some("bug")), ("b2", Some("bug")), ("c1", None), ("c2", None)] {
        add(&project, name, spec(2, kind));
    }
    assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some("b1"));
    let bugs = || WantedTask::Types(vec!["bug".into()]);
    assert_eq!(claimed_id(&project, bugs()), None);
    let why = project.why_none(&bugs()).unwrap();
    assert!(matches!(&why, WhyNone::Full(full) if full.kind.as_deref() == Some("bug")), "{why:?}");
    let named = refusal(claim(&project, WantedTask::Task(id("b2"))));
    assert!(matches!(named, Refusal::NoSlot { .. }), "{named:?}");
    assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some("c1"));
    // A task that is started without a claim counts as in progress as well.
    project.execute(&Command::StartTask { id: id("c2"), context: None }).unwrap();
    assert_eq!(claimed_id(&project, WantedTask::Any), None);
    let why = project.why_none(&WantedTask::Any).unwrap();
    assert!(matches!(&why, WhyNone::Full(full) if full.kind.is_none()), "{why:?}");
    complete(&project, id("b1"), Fence::Epoch(1)).unwrap();
    assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some("b2"));
}

/// Claims and completes from all projects until no task is left, and checks the number of
/// concurrent claims in the log.
fn check_bounds(opened: &[Project], all: u32, bugs: u32) {
    const TASKS: usize = 80;
    for n in 0..TASKS {
        let kind = n.is_multiple_of(2).then_some("bug");
        add(&opened[0], &format!("t{n}"), spec((n % 3) as u8, kind));
    }
    let claims = || claim(&opened[0], WantedTask::Any).unwrap();
    let first: Vec<ClaimedTask> = std::iter::from_fn(claims).take(TASKS).collect();
    assert_eq!(first.len(), all as usize, "not as many claims as the limit allows");
    for ClaimedTask { task, epoch, .. } in first {
        complete(&opened[0], task.id, Fence::Epoch(epoch)).unwrap();
    }
    let end = Instant::now() + DEADLINE;
    std::thread::scope(|scope| {
        for project in opened {
            scope.spawn(move || {
                loop {
                    assert!(Instant::now() < end, "not done by the deadline");
                    match claim(project, WantedTask::Any).unwrap() {
                        Some(claimed) => {
                            let fence = Fence::Epoch(claimed.epoch);
                            complete(project, claimed.task.id, fence).unwrap();
                        }
                        None if project.read(|view| view.open_tasks()).unwrap() == 0 => break,
                        None => std::thread::yield_now(),
                    }
                }
            });
        }
    });
    let (mut held, mut held_bugs, mut most, mut most_bugs) = (0i64, 0i64, 0, 0);
    let mut started = 0;
    for stored in opened[0].log().read(1, usize::MAX >> 1).unwrap() {
        let change = match &stored.event.body {
            EventBody::TaskStarted(_) => 1,
            EventBody::TaskCompleted(_) => -1,
            _ => continue,
        };
        let number: usize = stored.event.node_id()[1..].parse().unwrap();
        started += usize::from(change == 1);
        held += change;
        held_bugs += if number.is_multiple_of(2) { change } else { 0 };
        (most, most_bugs) = (most.max(held), most_bugs.max(held_bugs));
    }
    assert_eq!((started, held), (TASKS, 0));
    assert!(most <= i64::from(all) && most_bugs <= i64::from(bugs), "{most} {most_bugs}");
}

#[test]
fn wip_limits_hold_across_machines() {
    let (log, scheduling) = (MemoryLog::default(), bounded(Some(3), Some(1)));
    let machines: Vec<Project> = (0..4).map(|_| over(&log, &scheduling)).collect();
    // Two threads for each project.
    check_bounds(&[machines.clone(), machines].concat(), 3, 1);
}

#[test]
fn wip_limits_hold_across_processes_on_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let open = |_| {
        let store = Store::open(&dir.path().join("log.db")).unwrap();
        Project::new(store, rules(bounded(Some(3), Some(1))), "tester")
    };
    let processes: Vec<Project> = (0..3).map(open).collect();
    check_bounds(&[processes.clone(), processes].concat(), 3, 1);
}

#[test]
fn no_wip_permit_is_recorded_without_a_wip_limit() {
    let kinds = |scheduling: SchedulingRules| {
        let project = alone(scheduling);
        add(&project, "t", spec(2, Some("bug")));
        claim(&project, WantedTask::Any).unwrap().unwrap();
        let events = project.log().read(2, 9).unwrap();
        events.iter().map(|stored| stored.event.body.kind().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(SchedulingRules::default()), ["task_started"]);
    assert_eq!(kinds(bounded(None, Some(1))), ["task_started", "wip_permit_acquired"]);
    let others = [("chore".to_owned(), 1)].into();
    let slots = WipLimits { all: None, of_type: others };
    assert_eq!(kinds(SchedulingRules { slots, ..SchedulingRules::default() }), ["task_started"]);
}

fn name() -> ScheduleName {
    "nightly".parse().unwrap()
}

fn schedule(overlap: Overlap) -> ScheduleCommand {
    let timetable = Timetable { cron: "0 * * * *".into(), tz: None };
    ScheduleCommand::Set(Box::new(Schedule { timetable, overlap, task: spec(1, Some("chore")) }))
}

fn ask(project: &Project, ask: ScheduleCommand) -> Result<(), EngineError> {
    project.execute(&Command::Schedule { name: name(), ask }).map(drop)
}

fn next(project: &Project) -> Option<Timestamp> {
    project.read(|view| view.schedule(&name())).unwrap().unwrap().next
}

fn fired(project: &Project) -> Vec<ScheduleFired> {
    let events = project.log().read(1, usize::MAX >> 1).unwrap();
    let fired = events.into_iter().filter_map(|stored| match stored.event.body {
        EventBody::ScheduleFired(fired) => Some(fired),
        _ => None,
    });
    fired.collect()
}

#[test]
fn an_occurrence_creates_one_task_across_machines() {
    const SLOTS: i64 = 5;
    let (log, scheduling) = (MemoryLog::default(), SchedulingRules::default());
    let machines: Vec<Project> = (0..4).map(|_| over(&log, &scheduling)).collect();
    ask(&machines[0], schedule(Overlap::Allow)).unwrap();
    let first = next(&machines[0]).unwrap();
    std::thread::scope(|scope| {
        for project in machines.iter().chain(&machines) {
            scope.spawn(move || {
                for slot in 0..SLOTS {
                    // Reading updates the view with the events of other machines.
                    project.read(|view| view.totals()).unwrap();
                    project.fire_schedules(Timestamp(first.0 + slot * HOUR)).unwrap();
                }
            });
        }
    });
    let slots: Vec<i64> =
        fired(&machines[0]).iter().map(|f| (f.occurrence.0 - first.0) / HOUR).collect();
    assert!(slots.is_sorted_by(|a, b| a < b), "each at most once, in order: {slots:?}");
    assert_eq!(slots.last(), Some(&(SLOTS - 1)));
    let tasks = machines[1].read(|view| Ok(view.totals()?.tasks())).unwrap();
    assert_eq!(tasks, slots.len() as u64);
    let task = machines[2].read(|view| view.task(&name().task_at(first).unwrap())).unwrap();
    assert_eq!(task.unwrap().task.spec, spec(1, Some("chore")));
    let hash = |project: &Project| project.read(|view| view.state_hash()).unwrap();
    assert_eq!(hash(&machines[0]), hash(&over(&log, &scheduling)));
}

#[test]
fn only_the_last_missed_occurrence_creates_a_task() {
    let project = alone(SchedulingRules::default());
    ask(&project, schedule(Overlap::Skip)).unwrap();
    let first = next(&project).unwrap();
    assert_eq!(project.fire_schedules(Timestamp(first.0 - 1)).unwrap(), []);
    let later = Timestamp(first.0 + 5 * HOUR + 7);
    let task = name().task_at(Timestamp(first.0 + 5 * HOUR)).unwrap();
    assert_eq!(project.fire_schedules(later).unwrap(), std::slice::from_ref(&task));
    assert_eq!(project.fire_schedules(later).unwrap(), []);
    assert_eq!(next(&project), Some(Timestamp(first.0 + 6 * HOUR)));
    assert_eq!(fired(&project)[0].missed_from, Some(first));
    // While the task is open no other one is created, and the skip is recorded.
    let after = Timestamp(first.0 + 6 * HOUR);
    assert_eq!(project.fire_schedules(after).unwrap(), []);
    assert_eq!(fired(&project)[1].came, OccurrenceResult::SkippedFor(task.clone()));
    complete(&project, task, Fence::None).unwrap();
    let after = Timestamp(first.0 + 7 * HOUR);
    assert_eq!(project.fire_schedules(after).unwrap(), [name().task_at(after).unwrap()]);
}

#[test]
fn a_paused_or_removed_schedule_creates_no_tasks() {
    let project = alone(SchedulingRules::default());
    ask(&project, schedule(Overlap::Allow)).unwrap();
    let exists = refusal(ask(&project, schedule(Overlap::Allow)));
    assert_eq!(exists, Refusal::ScheduleExists(name()));
    let first = next(&project).unwrap();
    ask(&project, ScheduleCommand::Pause).unwrap();
    assert_eq!((next(&project), project.has_schedule_due(first).unwrap()), (None, false));
    assert_eq!(project.fire_schedules(first).unwrap(), []);
    ask(&project, ScheduleCommand::Run { task: id("by-hand") }).unwrap();
    assert_eq!((state(&project, "by-hand"), next(&project)), (TaskState::Ready, None));
    ask(&project, ScheduleCommand::Resume).unwrap();
    assert!(next(&project).is_some());
    ask(&project, ScheduleCommand::Remove).unwrap();
    assert_eq!(project.fire_schedules(Timestamp(first.0 + HOUR)).unwrap(), []);
    assert_eq!(refusal(ask(&project, ScheduleCommand::Pause)), Refusal::NoSuchSchedule(name()));
    ask(&project, schedule(Overlap::Skip)).unwrap();
    assert_eq!(fired(&project).len(), 1);
}

/// Checks that hooks run for the task of a schedule as for any other.
#[test]
fn hooks_run_for_tasks_of_a_schedule() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hookloop.yaml");
    let yaml = "version: 1\nhooks:\n  task_created:\n    - name: mark\n      when: task.type == 'chore'\n      actions: [{log: {type: seen}}]\n";
    std::fs::write(&path, yaml).unwrap();
    let user = hookloop_config::user::UserConfig::default();
    let rules = hookloop_config::project_file::settings(&path, &user).unwrap().rules;
    let store = Store::over(Arc::new(MemoryLog::default())).unwrap();
    let project = Project::new(store, rules, "tester");
    ask(&project, schedule(Overlap::Skip)).unwrap();
    let due = next(&project).unwrap();
    project.fire_schedules(due).unwrap();
    project.dispatch().unwrap();
    let events = project.log().read(1, 100).unwrap();
    let kinds: Vec<&str> = events.iter().map(|stored| stored.event.body.kind()).collect();
    assert!(kinds.contains(&"hook.mark.seen"), "{kinds:?}");
    let created = events.iter().find(|stored| stored.event.body.kind() == "task_created").unwrap();
    assert_eq!(created.event.actor, "schedule:nightly");
}
