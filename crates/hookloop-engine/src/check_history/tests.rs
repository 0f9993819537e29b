//! Tests of the fold.

use hookloop_core::checks::CheckOutcome::{self, Failed, Passed, Skipped};

use super::*;

fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// Returns a record of the gate `tests`, whose tree has the name `tree`.
fn record(tree: &str, whole: bool, checks: &[(&str, CheckOutcome)]) -> ChecksRecorded {
    let mut counts = CheckCounts::default();
    checks.iter().for_each(|(_, outcome)| counts.add(*outcome));
    let listed = checks.iter().map(|(id, outcome)| RecordedCheck {
        id: (*id).to_owned(),
        outcome: *outcome,
        ms: None,
    });
    ChecksRecorded {
        gate: "tests".to_owned(),
        point: "stop".to_owned(),
        tree: Some(tree.to_owned()),
        room: None,
        tools: None,
        source: "junit".to_owned(),
        counts,
        complete: true,
        whole,
        checks: listed.collect(),
        gone: Vec::new(),
        more: 0,
    }
}

/// Applies records of one session at the times 1, 2, ….
fn folded(records: &[ChecksRecorded]) -> CheckHistory {
    let mut history = CheckHistory::default();
    for (at, recorded) in (1..).zip(records) {
        history.apply(&session("s1"), Timestamp(at), recorded);
    }
    history
}

fn check<'h>(history: &'h CheckHistory, id: &str) -> &'h CheckTrend {
    let gate = history.gate("tests").unwrap();
    gate.checks().into_iter().find(|check| check.id == id).unwrap()
}

#[test]
fn a_check_that_a_later_record_does_not_list_has_the_same_outcome() {
    let history = folded(&[
        record("t1", true, &[("a", Passed), ("b", Failed)]),
        record("t2", false, &[]),
        record("t3", false, &[("b", Passed)]),
        record("t4", false, &[]),
    ]);
    let a = check(&history, "a");
    assert_eq!((a.outcome, a.runs, a.failures, a.flips), (Passed, 4, 0, 0));
    assert_eq!(
        (a.run.tree.as_deref(), a.since, a.run.at),
        (Some("t4"), Timestamp(1), Timestamp(4))
    );
    let b = check(&history, "b");
    assert_eq!((b.outcome, b.runs, b.failures, b.flips), (Passed, 4, 2, 1));
    assert_eq!((b.run.tree.as_deref(), b.since), (Some("t4"), Timestamp(3)));
    assert_eq!(b.history, [Failed, Failed, Passed, Passed]);
}

#[test]
fn checks_that_are_gone_are_listed_last() {
    let mut later = record("t2", false, &[("c", Passed)]);
    later.gone = vec!["a".to_owned()];
    let history = folded(&[record("t1", true, &[("a", Failed), ("b", Passed)]), later]);
    let a = check(&history, "a");
    assert!(a.gone && !a.is_failing());
    assert_eq!((a.runs, a.run.tree.as_deref()), (1, Some("t1")));
    let ids = |history: &CheckHistory| -> Vec<String> {
        let gate = history.gate("tests").unwrap();
        gate.checks().into_iter().map(|check| check.id.clone()).collect()
    };
    assert_eq!(ids(&history), ["b", "c", "a"]);
    // A whole record without a check does not have it either. A check may come back.
    let all = record("t1", true, &[("a", Failed), ("b", Passed)]);
    let history = folded(&[all.clone(), record("t2", true, &[("b", Passed)])]);
    assert!(check(&history, "a").gone);
    let history = folded(&[all.clone(), record("t2", true, &[("b", Passed)]), all]);
    assert_eq!((check(&history, "a").gone, check(&history, "a").runs), (false, 2));
}

#[test]
fn failed_checks_come_first_then_skipped_then_passed() {
    let checks = [("d", Passed), ("a", Passed), ("c", Skipped), ("e", Failed), ("b", Failed)];
    let history = folded(&[record("t1", true, &checks)]);
    let gate = history.gate("tests").unwrap();
    let ids: Vec<&str> = gate.checks().iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids, ["b", "e", "c", "a", "d"]);
}

#[test]
fn the_parts_of_a_divided_list_are_one_run() {
    let counts = CheckCounts { passed: 2, failed: 1, skipped: 0 };
    let part = |checks: &[(&str, CheckOutcome)], more: u32| ChecksRecorded {
        more,
        counts,
        ..record("t1", true, checks)
    };
    let parts = [part(&[("a", Passed)], 2), part(&[("b", Failed)], 1), part(&[("c", Passed)], 0)];
    let history = folded(&parts);
    let gate = history.gate("tests").unwrap();
    assert_eq!(gate.checks().len(), 3);
    assert!(gate.checks().iter().all(|check| check.runs == 1 && !check.gone));
    assert_eq!(gate.newest().unwrap().counts, counts);
    // A run without its last part is left out.
    assert_eq!(folded(&parts[..2]).gates().count(), 0);
    let again = record("t2", true, &[("a", Passed), ("b", Passed), ("c", Passed)]);
    let history = folded(&[parts[0].clone(), parts[1].clone(), again]);
    assert_eq!((check(&history, "b").runs, check(&history, "b").failures), (1, 0));
    // Without its first parts, a run proves nothing about the other checks.
    let known = record("t0", true, &[("a", Passed), ("b", Passed), ("c", Passed)]);
    let history = folded(&[known, parts[2].clone()]);
    assert!(!check(&history, "a").gone && check(&history, "a").runs == 1);
    assert_eq!(check(&history, "c").runs, 2);
}

#[test]
fn records_of_a_session_build_on_its_own_records() {
    let mut history = CheckHistory::default();
    let mut apply = |name: &str, at: i64, recorded: ChecksRecorded| {
        history.apply(&session(name), Timestamp(at), &recorded);
    };
    apply("s1", 1, record("t1", true, &[("a", Passed), ("b", Failed)]));
    apply("s2", 2, record("u1", true, &[("a", Failed), ("c", Passed)]));
    // In the session s1, the check `a` passes still.
    apply("s1", 3, record("t2", false, &[("b", Passed)]));
    let a = check(&history, "a");
    assert_eq!((a.outcome, a.runs, a.flips), (Passed, 3, 2));
    assert_eq!((a.run.session.as_str(), a.run.tree.as_deref()), ("s1", Some("t2")));
    assert_eq!(
        (a.since, a.history.clone()),
        (Timestamp(3), VecDeque::from([Passed, Failed, Passed]))
    );
    assert_eq!((check(&history, "b").runs, check(&history, "b").gone), (2, false));
    assert!(check(&history, "c").gone, "the newest run does not have it");
}

#[test]
fn skipped_runs_between_two_failures_are_no_flips() {
    let runs = [Failed, Skipped, Failed, Skipped, Passed, Skipped];
    let records: Vec<ChecksRecorded> =
        runs.iter().map(|outcome| record("t", true, &[("a", *outcome)])).collect();
    let history = folded(&records);
    let a = check(&history, "a");
    assert_eq!((a.flips, a.failures, a.runs), (1, 2, 6));
    assert!(a.is_newly_skipped());
    let always = folded(&[record("t", true, &[("a", Skipped)]), record("t", false, &[])]);
    assert!(!check(&always, "a").is_newly_skipped());
}

#[test]
fn the_history_of_a_check_is_limited() {
    let records: Vec<ChecksRecorded> = (0..30)
        .map(|run| record("t", true, &[("a", if run < 15 { Failed } else { Passed })]))
        .collect();
    let history = folded(&records);
    let a = check(&history, "a");
    assert_eq!((a.history.len(), a.runs, a.failures), (HISTORY_MAX, 30, 15));
    assert_eq!(a.history.iter().filter(|outcome| **outcome == Failed).count(), 5);
}

#[test]
fn output_that_names_only_failures_says_nothing_about_other_checks() {
    let all = record("t1", true, &[("a", Passed), ("b", Failed), ("c", Passed)]);
    let mut failures = record("t2", true, &[("c", Failed)]);
    failures.complete = false;
    failures.counts = CheckCounts { passed: 2, failed: 1, skipped: 0 };
    let history = folded(&[all.clone(), failures.clone()]);
    let a = check(&history, "a");
    assert_eq!((a.outcome, a.runs, a.run.tree.as_deref()), (Passed, 1, Some("t1")));
    assert!(check(&history, "b").gone, "it did not fail in the newest run");
    assert!(
        check(&history, "c").is_failing()
            && !history.gate("tests").unwrap().newest().unwrap().complete
    );
    // Failures without a name may be those of known checks.
    failures.counts.failed = 2;
    assert!(check(&folded(&[all, failures]), "b").is_failing());
}

#[test]
fn the_slowest_checks_of_the_newest_run_are_found() {
    let mut first =
        record("t1", true, &[("a", Passed), ("b", Passed), ("c", Skipped), ("d", Passed)]);
    for (listed, ms) in first.checks.iter_mut().zip([Some(5), Some(900), Some(9_000), None]) {
        listed.ms = ms;
    }
    let mut second = record("t2", false, &[("e", Passed)]);
    second.checks[0].ms = Some(40);
    second.gone = vec!["a".to_owned()];
    let history = folded(&[first, second]);
    let gate = history.gate("tests").unwrap();
    assert_eq!(gate.slowest(5), [("b", 900), ("e", 40)]);
    assert_eq!(gate.slowest(1), [("b", 900)]);
}
