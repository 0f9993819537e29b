//! Tests that the verdict finds each kind of violation.

use serde_json::{Value, json};

use super::*;

const LEASE_MS: u64 = 15_000;

fn said(seconds: u64, subject: &str, actor: &str, kind: &str, data: Value) -> Stored {
    Stored {
        seq: seconds,
        at_ms: seconds as i64 * 1_000,
        project: "night".to_owned(),
        subject: subject.to_owned(),
        id: format!("id-{seconds}"),
        kind: kind.to_owned(),
        actor: actor.to_owned(),
        after: None,
        data,
        batch: None,
    }
}

fn claim(seconds: u64, session: &str, epoch: u64) -> Stored {
    let agent = format!("{ACTOR}{session}");
    let data = json!({"claim": {"agent": agent, "epoch": epoch}});
    said(seconds, "a", &agent, "task_started", data)
}

fn session(seconds: u64, id: &str, kind: &str, worker: &str) -> Stored {
    said(seconds, &format!("_s-{id}"), "w", kind, json!({"machine": worker}))
}

fn of_task(seconds: u64, actor: &str, kind: &str, data: Value) -> Stored {
    said(seconds, "a", actor, kind, data)
}

/// A worker with a claimed task is killed at second 10; another claims it at 27 and submits it.
fn sound() -> (Vec<Stored>, Vec<Absence>) {
    let log = vec![
        of_task(1, "c", "task_created", json!({})),
        claim(2, "s1", 1),
        session(3, "s1", "session_started", "w1"),
        of_task(26, "w", "task_released", json!({"epoch": 1, "reason": "expired"})),
        claim(27, "s2", 2),
        session(28, "s2", "session_started", "w2"),
        session(29, "s1", "session_resumed", "w2"),
        session(30, "s1", "session_ended", "w2"),
        of_task(31, "session:s2", "task_submitted", json!({"head": "h"})),
        session(32, "s2", "session_ended", "w2"),
        of_task(33, "w", "task_merged", json!({"head": "h", "commit": "c1"})),
        of_task(34, "w", "task_completed", json!({})),
    ];
    let killed = Absence {
        worker: "w1".to_owned(),
        kind: Kind::Killed,
        from_ms: 10_000,
        until_ms: Some(40_000),
    };
    (log, vec![killed])
}

fn judged(log: &[Stored], absences: &[Absence]) -> Found {
    let tasks = [Task { id: "a".to_owned(), ..Task::default() }];
    let evidence = Evidence {
        log,
        tasks: &tasks,
        absences,
        lease_ms: LEASE_MS,
        picked_up_ms: PICKED_UP_MS,
        begun: HashMap::new(),
        last_beat: &|_, at_ms| Some(at_ms - 2_000),
    };
    judge(&evidence)
}

/// Checks the kinds of violation that are found after `damage`.
#[track_caller]
fn check(damage: impl FnOnce(&mut Vec<Stored>, &mut Vec<Absence>), expected: &[&str]) -> Found {
    let (mut log, mut absences) = sound();
    damage(&mut log, &mut absences);
    let found = judged(&log, &absences);
    let kinds: Vec<&str> = found.violations.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, expected, "{:?}", found.violations);
    found
}

#[test]
fn a_sound_night_has_no_violations() {
    let found = check(|_, _| (), &[]);
    assert_eq!((found.completed, found.claims, found.expired, found.by_holders), (1, 2, 1, 1));
    let orphan = Orphan {
        task: "a".to_owned(),
        worker: "w1".to_owned(),
        kind: Kind::Killed,
        fate: Fate::Taken,
        freed_ms: Some(16_000),
        waited_ms: 17_000,
        silent_ms: Some(19_000),
    };
    assert_eq!(found.orphans, [orphan]);
}

#[test]
fn unfinished_and_doubly_completed_tasks_are_violations() {
    check(|log, _| _ = log.pop(), &["undone"]);
    check(|log, _| _ = log.remove(10), &["undone"]);
    let again = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log.push(of_task(35, "w", "task_completed", json!({})));
    };
    check(again, &["doubled"]);
    let on = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log.push(of_task(35, "w", "task_returned", json!({})));
    };
    check(on, &["doubled"]);
}

#[test]
fn events_of_a_session_without_the_claim_are_violations() {
    let late = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log[8].actor = "session:s1".to_owned();
    };
    check(late, &["stale"]);
    let old = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log[8].data = json!({"epoch": 1});
    };
    check(old, &["stale"]);
    let after = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log.insert(9, of_task(31, "session:s2", "task_noted", json!({})));
    };
    check(after, &["stale"]);
    // Two sessions hold the task at once.
    check(|log, _| _ = log.remove(3), &["stale"]);
    let talk = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log.push(session(35, "s2", "turn_started", "w2"));
    };
    check(talk, &["stale"]);
}

#[test]
fn a_reclaim_from_a_live_worker_is_a_violation() {
    check(|_, absences| absences.clear(), &["false reclaim"]);
    check(|_, absences| absences[0].kind = Kind::Starved, &["false reclaim"]);
    check(|_, absences| absences[0].worker = "w2".to_owned(), &["false reclaim"]);
    // The worker was back for longer than the lease.
    check(|_, absences| absences[0].until_ms = Some(10_500), &["false reclaim"]);
    check(|_, absences| absences[0].until_ms = Some(11_500), &[]);
    check(|_, absences| absences[0].until_ms = None, &[]);
}

#[test]
fn slow_reclaims_of_orphaned_tasks_are_violations() {
    let slow = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log[4].at_ms = 30_500;
    };
    check(slow, &["slow"]);
    let resumed = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log[4].at_ms = 30_500;
        log.insert(4, session(12, "s1", "session_resumed", "w1"));
    };
    let found = check(resumed, &[]);
    assert_eq!((found.orphans[0].fate, found.orphans[0].waited_ms), (Fate::Resumed, 2_000));
    // The worker was stopped, and its lease did not expire.
    let unmissed = |log: &mut Vec<Stored>, absences: &mut Vec<Absence>| {
        log.retain(|stored| ![26, 27, 28, 29, 30, 32].contains(&stored.seq));
        log.iter_mut().for_each(|stored| stored.actor = stored.actor.replace("s2", "s1"));
        log.push(session(35, "s1", "session_ended", "w1"));
        (absences[0].kind, absences[0].until_ms) = (Kind::Stopped, Some(28_000));
    };
    let found = check(unmissed, &[]);
    assert_eq!((found.orphans[0].fate, found.orphans[0].waited_ms), (Fate::Resumed, 18_000));
    let forsaken = |log: &mut Vec<Stored>, _: &mut Vec<Absence>| {
        log.retain(|stored| stored.seq != 27 && stored.seq != 31);
    };
    check(forsaken, &["forsaken"]);
}

#[test]
fn an_open_session_is_a_violation() {
    check(|log, _| _ = log.remove(9), &["open session"]);
}

#[test]
fn a_base_without_exactly_one_commit_per_task_is_a_violation() {
    let (log, _) = sound();
    let check = |base: Base, expected: &[&str]| {
        let tasks = [Task { id: "a".to_owned(), ..Task::default() }];
        let evidence = Evidence {
            log: &log,
            tasks: &tasks,
            absences: &[],
            lease_ms: LEASE_MS,
            picked_up_ms: PICKED_UP_MS,
            begun: HashMap::new(),
            last_beat: &|_, _| None,
        };
        let mut found = Found::default();
        check_base(&evidence, &base, &mut found);
        let kinds: Vec<&str> = found.violations.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, expected, "{:?}", found.violations);
    };
    let commits = |names: &[&str]| {
        names.iter().map(|name| ((*name).to_owned(), String::new())).collect::<Vec<_>>()
    };
    let merged = || ("hookloop/a".to_owned(), Some("c1".to_owned()));
    let base = |names: &[&str], requests| Base { commits: commits(names), requests, red: vec![] };
    check(base(&["c0", "c1"], vec![merged()]), &[]);
    check(base(&["c0", "c1"], vec![]), &["delivery"]);
    check(base(&["c0", "c1"], vec![merged(), merged()]), &["delivery"]);
    check(base(&["c0", "c1"], vec![("hookloop/a".to_owned(), None)]), &["delivery"]);
    check(base(&["c0", "c1", "c2"], vec![merged()]), &["delivery"]);
    check(base(&["c0", "c2"], vec![merged()]), &["delivery"]);
    let red = Base { red: vec!["c1".to_owned()], ..base(&["c0", "c1"], vec![merged()]) };
    check(red, &["red"]);
}

#[test]
fn spread_has_median_p99_and_maximum() {
    assert_eq!(Spread::of(vec![]), None);
    assert_eq!(Spread::of(vec![3, 1, 2]), Some(Spread { p50: 2, p99: 3, max: 3 }));
    let hundred = Spread::of((1..=200).collect());
    assert_eq!(hundred, Some(Spread { p50: 100, p99: 198, max: 200 }));
}
