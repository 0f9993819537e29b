//! Tests that the checker finds each kind of violation.

use serde_json::json;

use super::*;

fn stored(seq: u64, subject: &str, kind: &str, after: u64, data: Value) -> Stored {
    Stored {
        seq,
        at_ms: seq as i64 * 1_000,
        project: "p".to_owned(),
        subject: subject.to_owned(),
        actor: "w".to_owned(),
        id: format!("id-{seq}"),
        kind: kind.to_owned(),
        after: Some(after),
        data,
        batch: None,
    }
}

fn claim(seq: u64, after: u64, agent: &str, epoch: u64) -> Stored {
    stored(seq, "a", "task_started", after, json!({"claim": {"agent": agent, "epoch": epoch}}))
}

fn operation(op: Op, outcome: Outcome) -> Operation {
    Operation { worker: "w".to_owned(), op, outcome, ended_ms: Some(0) }
}

fn complete(epoch: u64, token: &str, outcome: Outcome) -> Operation {
    operation(Op::Complete { task: "a".into(), epoch, token: token.into() }, outcome)
}

fn refused() -> Outcome {
    Outcome::Refused { why: "no".into() }
}

fn unknown() -> Outcome {
    Outcome::Unknown { why: "silence".into() }
}

/// Returns the history of a task that is added, claimed, released, claimed again and completed.
fn sound() -> (Vec<Operation>, Vec<Stored>) {
    let claimed = |agent: &str, epoch| {
        let op = Op::Claim { agent: agent.into(), types: vec![] };
        operation(op, Outcome::Claimed { task: "a".into(), epoch })
    };
    let operations = vec![
        operation(Op::Add { task: "a".into() }, Outcome::Done),
        claimed("w-1", 1),
        operation(Op::Release { task: "a".into(), epoch: 1, token: "w-2".into() }, unknown()),
        claimed("w-3", 2),
        complete(1, "w-4", refused()),
        complete(2, "w-5", Outcome::Done),
    ];
    let log = vec![
        stored(1, "a", "task_created", 0, json!({"labels": ["agent"], "priority": 1})),
        claim(2, 1, "w-1", 1),
        stored(3, "a", "task_released", 2, json!({"epoch": 1, "note": "w-2"})),
        claim(4, 3, "w-3", 2),
        stored(5, "a", "task_completed", 4, json!({"result": "w-5"})),
        stored(6, "a", "agent_metrics", 5, json!({})),
        stored(
            7,
            "r",
            "task_created",
            0,
            json!({"labels": ["review", "agent"], "parent_task_id": "a"}),
        ),
    ];
    (operations, log)
}

/// Checks the kinds of violation that are found after `damage`.
#[track_caller]
fn check_damage(damage: impl FnOnce(&mut Vec<Operation>, &mut Vec<Stored>), expected: &[&str]) {
    let (mut operations, mut log) = sound();
    damage(&mut operations, &mut log);
    let findings = check(&operations, &log);
    let found: BTreeSet<&str> = findings.violations().map(|(kind, _)| kind).collect();
    let lines: Vec<_> = findings.violations().collect();
    assert_eq!(found, expected.iter().copied().collect(), "{lines:?}");
}

#[test]
fn a_sound_run_has_no_violations() {
    check_damage(|_, _| (), &[]);
}

#[test]
fn operations_that_disagree_with_the_log_are_violations() {
    let add = |task: &str, outcome| operation(Op::Add { task: task.into() }, outcome);
    check_damage(|operations, _| operations.push(add("b", Outcome::Done)), &["lost"]);
    check_damage(|operations, _| operations.push(add("b", unknown())), &[]);
    check_damage(|operations, _| operations.push(add("a", refused())), &[]);
    check_damage(|operations, _| operations[0].outcome = refused(), &["doubled"]);
    check_damage(|operations, _| operations[5].outcome = refused(), &["doubled"]);
    let twice = |_: &mut Vec<Operation>, log: &mut Vec<Stored>| {
        log.push(stored(8, "b", "task_created", 0, json!({})));
        log.push(Stored { subject: "b".into(), ..claim(9, 8, "w-3", 1) });
    };
    check_damage(twice, &["doubled"]);
}

#[test]
fn a_completion_with_a_stale_claim_is_a_violation() {
    let stale = |operations: &mut Vec<Operation>, _: &mut Vec<Stored>| {
        operations[5] = complete(1, "w-5", Outcome::Done);
    };
    check_damage(stale, &["stale accepted"]);
    check_damage(|_, log| log[3] = claim(4, 3, "w-3", 1), &["lost", "stale accepted"]);
    check_damage(|_, log| log[2].kind = "note".into(), &["stale accepted"]);
}

#[test]
fn missing_and_doubled_reactions_are_violations() {
    check_damage(|_, log| _ = log.pop(), &["effect missing"]);
    let again = |_: &mut Vec<Operation>, log: &mut Vec<Stored>| {
        log.push(stored(8, "a", "agent_metrics", 6, json!({})));
    };
    check_damage(again, &["effect doubled"]);
}

#[test]
fn missing_and_doubled_dependency_events_are_violations() {
    let waits = |told: usize| {
        move |_: &mut Vec<Operation>, log: &mut Vec<Stored>| {
            log.insert(0, stored(1, "d", "task_created", 0, json!({})));
            log.insert(
                1,
                stored(2, "d", "dependency_added", 1, json!({"from_id": "d", "to_id": "a"})),
            );
            for (place, event) in log.iter_mut().enumerate().skip(2) {
                event.seq = place as u64 + 1;
                event.id = format!("id-{}", event.seq);
                event.after = event.after.map(|after| if after == 0 { 0 } else { after + 2 });
            }
            for n in 0..told as u64 {
                let after = if n == 0 { 2 } else { 9 + n };
                log.push(stored(10 + n, "d", "dependency_satisfied", after, json!({})));
            }
        }
    };
    check_damage(waits(0), &["effect missing"]);
    check_damage(waits(1), &[]);
    check_damage(waits(2), &["effect doubled"]);
}

#[test]
fn broken_chains_and_batches_are_violations() {
    check_damage(|_, log| log[4].after = Some(3), &["broken"]);
    check_damage(|_, log| log[4].after = None, &["broken"]);
    check_damage(|_, log| log[6].id = "id-1".into(), &["doubled"]);
    let batch = |numbers: [u64; 2]| {
        move |_: &mut Vec<Operation>, log: &mut Vec<Stored>| {
            log[4].batch = Some(("b".into(), numbers[0]));
            log[5].batch = Some(("b".into(), numbers[1]));
            log[5].after = None;
        }
    };
    check_damage(batch([1, 2]), &[]);
    check_damage(batch([1, 3]), &["broken"]);
    check_damage(batch([2, 3]), &["broken"]);
}

#[test]
fn a_claim_that_skips_a_more_urgent_task_is_a_violation() {
    let spec = |priority: u64, kind: &str| json!({"priority": priority, "type": kind});
    let log = [
        stored(1, "urgent", "task_created", 0, spec(0, "docs")),
        stored(2, "a", "task_created", 0, spec(1, "code")),
        claim(4, 2, "w-1", 1),
    ];
    let check = |types: &[&str], slack_ms, expected: usize| {
        let types = types.iter().map(ToString::to_string).collect();
        let op = Op::Claim { agent: "w-1".into(), types };
        let operations = [operation(op, Outcome::Nothing)];
        let wrong = check_urgency(&operations, &log, slack_ms);
        assert_eq!(wrong.len(), expected, "{wrong:?}");
    };
    check(&[], 1_000, 1);
    check(&[], 5_000, 0);
    check(&["code"], 1_000, 0);
    check(&["code", "docs"], 1_000, 1);
    check(&["docs"], 5_000, 1);

    // Another claimant's claim of the urgent task was in flight.
    let urgent = |seq| stored(seq, "urgent", "task_started", 1, json!({"claim": {"agent": "w-2"}}));
    for (seq, expected) in [(5, 0), (6, 1)] {
        let log = [log[0].clone(), log[1].clone(), log[2].clone(), urgent(seq)];
        assert_eq!(check_urgency(&[], &log, 1_000).len(), expected, "claimed at {seq}");
    }
}
