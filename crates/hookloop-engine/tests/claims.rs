//! Tests of concurrent claims, expired leases, and hooks of claimed tasks.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hookloop_config::effective::EffectiveConfig;
use hookloop_config::project_file;
use hookloop_config::user::UserConfig;
use hookloop_core::claim::{Fence, LEASE_MIN_MS, ReleaseReason};
use hookloop_core::command::Command;
use hookloop_core::event::EventBody;
use hookloop_core::id::TaskId;
use hookloop_core::refusal::Refusal;
use hookloop_core::task::{Priority, TaskOutcome, TaskSpec, TaskState};
use hookloop_core::urgency::PriorityAging;
use hookloop_engine::claim::{ClaimRequest, ClaimedTask, TYPES_MAX, WantedTask};
use hookloop_engine::dispatcher::{DispatchRound, Dispatcher};
use hookloop_engine::error::EngineError;
use hookloop_engine::lease::{Liveness, SilenceDetector};
use hookloop_engine::project::Project;
use hookloop_store::memory::MemoryLog;
use hookloop_store::store::Store;

const LEASE: Duration = Duration::from_millis(LEASE_MIN_MS);
const AGENT: &str = "agent";

fn project(store: Store) -> Project {
    Project::new(store, EffectiveConfig::default(), "tester")
}

fn alone() -> Project {
    project(Store::over(Arc::new(MemoryLog::default())).unwrap())
}

fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

fn add(project: &Project, name: &str, priority: u8, kind: Option<&str>) {
    let spec = TaskSpec {
        goal: "g".into(),
        priority: Priority::try_from(priority).unwrap(),
        kind: kind.map(str::to_owned),
        ..TaskSpec::default()
    };
    project.execute(&Command::AddTask { id: id(name), spec, depends_on: vec![] }).unwrap();
}

fn claim(project: &Project, wanted: WantedTask) -> Result<Option<ClaimedTask>, EngineError> {
    project.claim(&ClaimRequest {
        agent: AGENT.into(),
        worker: AGENT.into(),
        lease: LEASE,
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

fn complete(project: &Project, name: &str, fence: Fence) -> Result<(), EngineError> {
    let outcome = TaskOutcome::default();
    project.execute(&Command::CompleteTask { id: id(name), outcome, fence }).map(drop)
}

#[test]
fn tasks_are_claimed_by_priority_then_age() {
    let project = alone();
    for (name, priority) in [("low", 9), ("mid", 2), ("top", 0), ("also-mid", 2)] {
        add(&project, name, priority, None);
    }
    for name in ["top", "mid", "also-mid", "low"] {
        assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some(name));
    }
    assert_eq!(claimed_id(&project, WantedTask::Any), None);
}

#[test]
fn a_task_with_an_expired_claim_is_claimed_before_more_urgent_tasks() {
    let project = alone();
    let end = |name: &str, reason: ReleaseReason| {
        let fence = Fence::Override;
        let release = Command::ReleaseTask { id: id(name), fence, reason, note: None };
        project.execute(&release).unwrap();
    };
    let bugs = || WantedTask::Types(vec!["bug".to_owned()]);
    for (name, priority, kind) in
        [("other", 9, None), ("left", 9, Some("bug")), ("bug", 0, Some("bug")), ("top", 0, None)]
    {
        add(&project, name, priority, kind);
    }
    assert_eq!(claimed_id(&project, WantedTask::Task(id("left"))).as_deref(), Some("left"));
    end("left", ReleaseReason::Expired);
    let order = |project: &Project| {
        let ready = project.read(|view| view.ready(PriorityAging::Never, 1)).unwrap();
        ready.into_iter().map(|row| row.task.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(order(&project), ["left"]);
    assert_eq!(claimed_id(&project, bugs()).as_deref(), Some("left"));
    end("left", ReleaseReason::Expired);
    let others = WantedTask::Types(vec!["chore".to_owned()]);
    assert_eq!(claimed_id(&project, others), None, "the task has another type");
    assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some("left"));
    // A released task is ordered like all others.
    end("left", ReleaseReason::Released);
    for name in ["bug", "top", "other", "left"] {
        assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some(name));
    }
}

/// The leader and the next dispatcher in line may die together with a holder: a third dispatcher
/// has observed the holder's silence too.
#[test]
fn losing_two_dispatchers_with_a_claimant_does_not_delay_the_expiry() {
    let lease = Duration::from_secs(6);
    let directory = tempfile::tempdir().unwrap();
    let open = || project(Store::open(&directory.path().join("p.db")).unwrap());
    let ours = open();
    add(&ours, "a", 0, None);
    let request = ClaimRequest {
        agent: AGENT.into(),
        worker: AGENT.into(),
        lease,
        wanted: WantedTask::Any,
        labels: Vec::new(),
    };
    ours.claim(&request).unwrap().unwrap();
    let claimed = Instant::now();
    let mut watchers: Vec<Dispatcher> =
        ["a", "b", "c", "d"].map(|name| Dispatcher::new(&open(), name).unwrap()).into();
    let round = |watchers: &mut [Dispatcher]| {
        let rounds: Vec<DispatchRound> =
            watchers.iter_mut().map(|watcher| watcher.stand_by().unwrap()).collect();
        std::thread::sleep(Duration::from_millis(100));
        rounds
    };
    while claimed.elapsed() < lease / 2 {
        let rounds = round(&mut watchers);
        assert_eq!(
            rounds,
            [
                DispatchRound::Leading,
                DispatchRound::Standby,
                DispatchRound::Standby,
                DispatchRound::Standby
            ]
        );
    }
    // The first two dispatchers stop without a message.
    watchers.drain(..2);
    let is_over = |watcher: &mut Dispatcher| !watcher.take_expired().is_empty();
    while !watchers.iter_mut().any(is_over) {
        round(&mut watchers);
        assert!(claimed.elapsed() < lease + Duration::from_secs(4), "too late");
    }
    assert!(claimed.elapsed() >= lease);
    // A dispatcher becomes leader again once there is a claim to watch.
    add(&ours, "b", 0, None);
    ours.claim(&ClaimRequest { lease: lease * 20, ..request }).unwrap().unwrap();
    while !round(&mut watchers).contains(&DispatchRound::Leading) {
        assert!(claimed.elapsed() < Duration::from_secs(60), "nobody leads");
    }
}

#[test]
fn a_dependent_claimed_before_the_dispatch_is_announced_once() {
    let project = alone();
    add(&project, "a", 0, None);
    let spec = TaskSpec { goal: "g".into(), ..TaskSpec::default() };
    let waits = Command::AddTask { id: id("b"), spec, depends_on: vec![id("a")] };
    project.execute(&waits).unwrap();
    assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some("a"));
    complete(&project, "a", Fence::Epoch(1)).unwrap();
    assert_eq!(claimed_id(&project, WantedTask::Any).as_deref(), Some("b"));
    project.dispatch().unwrap();
    let events = project.log().read(1, 100).unwrap();
    let told = |kind: &EventBody| matches!(kind, EventBody::DependencySatisfied(_));
    assert_eq!(events.iter().filter(|stored| told(&stored.event.body)).count(), 1);
    let failed = |kind: &EventBody| matches!(kind, EventBody::ActionError(_));
    assert!(!events.iter().any(|stored| failed(&stored.event.body)));
}

#[test]
fn only_tasks_of_the_wanted_types_are_claimed() {
    let project = alone();
    let types = |names: &[&str]| WantedTask::Types(names.iter().map(ToString::to_string).collect());
    add(&project, "untyped", 0, None);
    add(&project, "chore", 1, Some("chore"));
    add(&project, "bug", 0, Some("bug"));
    add(&project, "later-bug", 3, Some("bug"));
    let check = |wanted: WantedTask, expected: Option<&str>| {
        assert_eq!(claimed_id(&project, wanted).as_deref(), expected);
    };
    check(types(&["docs"]), None);
    check(types(&[]), None);
    check(types(&["chore", "bug"]), Some("bug"));
    check(types(&["chore", "bug"]), Some("chore"));
    check(types(&["chore", "bug"]), Some("later-bug"));
    check(types(&["chore", "bug"]), None);
    check(WantedTask::Any, Some("untyped"));
    let many = WantedTask::Types(vec!["x".to_owned(); TYPES_MAX + 1]);
    assert!(matches!(refusal(claim(&project, many)), Refusal::TooMany { .. }));
}

#[test]
fn a_task_is_claimed_by_name() {
    let project = alone();
    add(&project, "a", 0, None);
    add(&project, "b", 9, None);
    let claimed = claim(&project, WantedTask::Task(id("b"))).unwrap().unwrap();
    assert_eq!((claimed.task.id, claimed.epoch), (id("b"), 1));
    assert_eq!(claimed.task.claim.unwrap().agent, AGENT);
    let again = refusal(claim(&project, WantedTask::Task(id("b"))));
    assert!(matches!(again, Refusal::Claimed { epoch: 1, .. }), "{again:?}");
}

/// Claims from many threads until no task is left: each task is claimed once, the most urgent
/// first.
fn claim_all(opened: &[Project]) {
    const TASKS: usize = 500;
    const PRIORITIES: usize = 4;
    for n in 0..TASKS {
        add(&opened[0], &format!("t{n}"), (n * 7 % PRIORITIES) as u8, None);
    }
    let taken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for project in opened {
            let taken = &taken;
            scope.spawn(move || {
                let mut began = Instant::now();
                while let Some(claimed) = claim(project, WantedTask::Any).unwrap() {
                    assert_eq!(claimed.epoch, 1);
                    let ended = Instant::now();
                    taken.lock().unwrap().push((claimed.task.id, began, ended));
                    began = Instant::now();
                }
            });
        }
    });
    let taken = taken.into_inner().unwrap();
    let names: HashSet<&TaskId> = taken.iter().map(|(id, ..)| id).collect();
    assert_eq!((taken.len(), names.len()), (TASKS, TASKS));
    let events = opened[0].log().read(TASKS as u64 + 1, usize::MAX >> 1).unwrap();
    assert_eq!(events.len(), TASKS, "one event each");
    assert!(events.iter().all(|stored| matches!(stored.event.body, EventBody::TaskStarted(_))));
    // A claim skips a more urgent task only while another claim of it is in flight.
    let priority = |id: &TaskId| id.as_str()[1..].parse::<usize>().unwrap() * 7 % PRIORITIES;
    for (id, _, ended) in &taken {
        let passed =
            taken.iter().find(|(other, began, _)| priority(other) < priority(id) && began > ended);
        assert_eq!(passed, None, "{id} was claimed first");
    }
}

#[test]
fn each_task_is_claimed_once_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| project(Store::open(path).unwrap());
    let shared: Vec<Project> = (0..4).map(|_| open(&dir.path().join("log.db"))).collect();
    // Two threads for each open file.
    claim_all(&[shared.clone(), shared].concat());
}

#[test]
fn each_task_is_claimed_once_from_a_remote_log() {
    let log = MemoryLog::default();
    let open = |_| project(Store::over(Arc::new(log.clone())).unwrap());
    let shared: Vec<Project> = (0..4).map(open).collect();
    claim_all(&[shared.clone(), shared].concat());
}

#[test]
fn only_the_claim_holders_heartbeat_is_accepted() {
    let project = alone();
    add(&project, "t", 0, None);
    let beat = |epoch| project.heartbeat(&id("t"), epoch);
    assert!(matches!(refusal(beat(1)), Refusal::StaleClaim { yours: 1, .. }));
    claim(&project, WantedTask::Any).unwrap();
    beat(1).unwrap();
    assert!(matches!(refusal(beat(2)), Refusal::StaleClaim { yours: 2, .. }));
    project.take_over(&id("t"), 1, "other", LEASE).unwrap();
    assert!(matches!(refusal(beat(1)), Refusal::StaleClaim { yours: 1, .. }));
    beat(2).unwrap();
}

#[test]
fn only_claims_without_heartbeats_expire() {
    let log = MemoryLog::default();
    let open = || project(Store::over(Arc::new(log.clone())).unwrap());
    let (holder, sweeper) = (open(), open());
    for name in ["dead", "alive", "long"] {
        add(&holder, name, 0, None);
    }
    claim(&holder, WantedTask::Task(id("dead"))).unwrap();
    claim(&holder, WantedTask::Task(id("alive"))).unwrap();
    let wanted = WantedTask::Task(id("long"));
    let lease = LEASE * 60;
    holder
        .claim(&ClaimRequest {
            agent: AGENT.into(),
            worker: AGENT.into(),
            lease,
            wanted,
            labels: Vec::new(),
        })
        .unwrap();
    let mut watch = SilenceDetector::default();
    let mut expired = vec![];
    for _ in 0..8 {
        assert_eq!(expired, [], "too early");
        holder.heartbeat(&id("alive"), 1).unwrap();
        expired = sweeper.expire_silent(&mut watch).unwrap();
        std::thread::sleep(LEASE / 6);
        if !expired.is_empty() {
            break;
        }
    }
    let names: Vec<String> = expired.iter().map(|expired| expired.id.to_string()).collect();
    assert_eq!(names, ["dead"]);
    assert_eq!(sweeper.expire_silent(&mut watch).unwrap(), []);
    let state = |name: &str| holder.read(|view| view.task(&id(name))).unwrap().unwrap().task.state;
    assert_eq!(state("dead"), TaskState::Ready);
    assert_eq!((state("alive"), state("long")), (TaskState::Active, TaskState::Active));
    let late = refusal(complete(&holder, "dead", Fence::Epoch(1)));
    assert!(matches!(late, Refusal::StaleClaim { .. }), "{late:?}");
    complete(&holder, "alive", Fence::Epoch(1)).unwrap();
    assert_eq!(claim(&sweeper, WantedTask::Any).unwrap().unwrap().epoch, 2);
}

#[test]
fn observing_a_claim_distinguishes_alive_from_silent() {
    let project = alone();
    add(&project, "t", 0, None);
    let mut watch = SilenceDetector::default();
    let unclaimed = refusal(project.look_at(&id("t"), &mut watch));
    assert_eq!(unclaimed, Refusal::NotClaimed(id("t")));
    claim(&project, WantedTask::Any).unwrap();
    let mut look = || project.look_at(&id("t"), &mut watch).unwrap();
    assert_eq!(look().sight, Liveness::First);
    assert!(matches!(look().sight, Liveness::Silent(_)));
    project.heartbeat(&id("t"), 1).unwrap();
    assert_eq!(look().sight, Liveness::Alive);
    assert!(!look().is_over());
    std::thread::sleep(LEASE);
    assert!(look().is_over());
}

fn with_hooks(yaml: &str) -> Project {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hookloop.yaml");
    std::fs::write(&path, format!("version: 1\nhooks:\n{yaml}")).unwrap();
    let rules = project_file::settings(&path, &UserConfig::default()).unwrap().rules;
    Project::new(Store::over(Arc::new(MemoryLog::default())).unwrap(), rules, "tester")
}

#[test]
fn a_task_started_hook_may_change_the_newly_claimed_task() {
    let project = with_hooks(
        "  task_started:\n    - name: refuse\n      actions:\n        \
         - update_task: {task_id: \"{{task_id}}\", action: block, payload: {reason: no}}\n",
    );
    add(&project, "t", 0, None);
    let claimed = claim(&project, WantedTask::Any).unwrap().unwrap();
    assert_eq!(claimed.done.failures, [] as [String; 0]);
    assert_eq!((claimed.task.state, claimed.task.claim), (TaskState::Blocked, None));
}

#[test]
fn a_hook_cannot_complete_a_task_claimed_by_an_agent() {
    let project = with_hooks(
        "  task_completed:\n    - name: finish\n      actions:\n        \
         - update_task: {task_id: held, action: complete}\n",
    );
    add(&project, "held", 0, None);
    add(&project, "other", 1, None);
    claim(&project, WantedTask::Any).unwrap();
    complete(&project, "other", Fence::None).unwrap();
    project.dispatch().unwrap();
    let task = project.read(|view| view.task(&id("held"))).unwrap().unwrap().task;
    assert_eq!(task.state, TaskState::Active);
    let events = project.log().read(1, 100).unwrap();
    let failed = |stored: &&hookloop_store::log::StoredEvent| match &stored.event.body {
        EventBody::ActionError(error) => error.error.contains("claimed by `agent`"),
        _ => false,
    };
    assert_eq!(events.iter().filter(failed).count(), 1);
}
