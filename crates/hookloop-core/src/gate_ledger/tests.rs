use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn gate(name: &str) -> GateRecord {
    GateRecord {
        name: name.to_owned(),
        list: None,
        points: vec!["stop".to_owned()],
        is_users: false,
        enabled: true,
        handler: json!({ "shell": "npm test" }),
        scripts: BTreeMap::new(),
        blocks_on_failure: true,
        any_of: None,
        when: None,
        needs: Vec::new(),
        timeout_ms: 300_000,
        attempts: 1,
        surroundings: Value::Null,
    }
}

fn ledger(gates: Vec<GateRecord>) -> GateLedger {
    let stop_when = vec!["default".to_owned()];
    GateLedger { gates, stop_when, ..GateLedger::default() }
}

fn words(agreed: &GateLedger, now: &GateLedger) -> Vec<String> {
    let changes = compare(agreed, now).into_iter();
    changes.filter(GateChange::needs_consent).map(|change| change.to_string()).collect()
}

/// Returns the text for one gate that `change` altered.
fn changed(change: impl FnOnce(&mut GateRecord)) -> Vec<String> {
    let mut now = gate("tests");
    change(&mut now);
    words(&ledger(vec![gate("tests")]), &ledger(vec![now]))
}

#[test]
fn a_weaker_gate_is_described() {
    assert_eq!(words(&ledger(vec![gate("tests")]), &ledger(vec![])), ["`tests` is gone"]);
    assert_eq!(changed(|gate| gate.enabled = false), ["`tests` is switched off"]);
    assert_eq!(
        changed(|gate| gate.blocks_on_failure = false),
        ["`tests` no longer blocks when it crashes or times out"]
    );
    assert_eq!(
        changed(|gate| gate.when = Some("false".to_owned())),
        ["`tests` now runs only when `false`"]
    );
    assert_eq!(changed(|gate| gate.timeout_ms = 10_000), ["`tests` has 10s instead of 5m"]);
    assert_eq!(changed(|gate| gate.attempts = 5), ["`tests` is run up to 5 instead of 1 times"]);
    assert_eq!(
        changed(|gate| gate.needs.push("x".to_owned())),
        ["`tests` now runs only after `x` passed"]
    );
    assert_eq!(
        changed(|gate| gate.points = vec!["before_submit".to_owned()]),
        ["`tests` is gone"],
        "an agreed point counts, and no other"
    );
    assert_eq!(
        changed(|gate| gate.handler = json!({ "rule": "file README.md" })),
        ["`tests` is now `file README.md` instead of `npm test`"]
    );
}

#[test]
fn a_gate_that_runs_at_fewer_points_is_weaker() {
    let mut both = gate("tests");
    both.points.push("before_submit".to_owned());
    let now = ledger(vec![gate("tests")]);
    assert_eq!(words(&ledger(vec![both]), &now), ["`tests` no longer runs at `before_submit`"]);
}

#[test]
fn a_trivial_member_of_an_any_of_group_is_a_replacement() {
    let grouped = |name: &str| GateRecord { any_of: Some("g".to_owned()), ..gate(name) };
    let agreed = ledger(vec![gate("tests")]);
    let now = ledger(vec![grouped("tests"), grouped("r")]);
    assert_eq!(words(&agreed, &now), ["`tests` may now be replaced by `r`"]);
    assert_eq!(words(&now, &agreed), ["`r` is gone"], "a gate alone is no weaker than in a group");
    // A gate that joins the group of the user's own gate is reported.
    let users = GateRecord { is_users: true, ..grouped("own") };
    let agreed = ledger(vec![users.clone()]);
    let now = ledger(vec![users, grouped("r")]);
    assert_eq!(words(&agreed, &now), ["`own` may now be replaced by `r`"]);
}

#[test]
fn project_gates_hidden_by_a_type_or_agent_list_are_reported() {
    let agreed = ledger(vec![gate("tests")]);
    for (owner, told) in [
        ("fix", "`tests` is gone, for tasks of type `fix`"),
        ("agent:claude", "`tests` is gone, for agent `claude`"),
    ] {
        let list = GateList { owner: owner.to_owned(), point: "stop".to_owned() };
        let now = GateLedger { lists: BTreeSet::from([list.clone()]), ..agreed.clone() };
        assert_eq!(words(&agreed, &now), [told]);
        assert!(words(&now, &agreed).is_empty(), "the type has more gates without its list");
        let own = GateRecord { list: Some(owner.to_owned()), ..gate("tests") };
        let gates = vec![gate("tests"), own];
        let now = GateLedger { lists: BTreeSet::from([list]), ..ledger(gates) };
        assert!(words(&agreed, &now).is_empty(), "the same gate in a list of its own");
    }
}

#[test]
fn a_first_before_merge_gate_is_reported_as_replacing_session_gates() {
    let agreed = ledger(vec![gate("tests")]);
    let mut first = gate("r");
    (first.points, first.handler) = (vec!["before_merge".to_owned()], json!({ "rule": "file a" }));
    let now = ledger(vec![gate("tests"), first.clone()]);
    assert_eq!(words(&agreed, &now), ["`tests` no longer judges merged work: `r` does instead"]);
    first.handler = gate("tests").handler;
    assert!(words(&agreed, &ledger(vec![gate("tests"), first])).is_empty());
}

#[test]
fn wider_limits_and_changed_stop_conditions_are_reported() {
    let limited = |retries: Option<u64>| GateLedger {
        limits: retries.map(|count| ("gate_retries".to_owned(), count)).into_iter().collect(),
        ..ledger(vec![gate("tests")])
    };
    assert_eq!(
        words(&limited(Some(2)), &limited(Some(9))),
        ["`limits.gate_retries` is 9 instead of 2"]
    );
    assert_eq!(
        words(&limited(Some(2)), &limited(None)),
        ["`limits.gate_retries` is no longer set by the project; it was 2"]
    );
    assert!(words(&limited(Some(2)), &limited(Some(1))).is_empty());
    let turn = vec!["turn".to_owned()];
    let now = GateLedger { stop_when: turn.clone(), ..ledger(vec![gate("tests")]) };
    assert_eq!(
        words(&ledger(vec![gate("tests")]), &now),
        ["`loop.stop_when` is `turn` instead of `default`"]
    );
    let now = GateLedger { stop_when: turn, ..ledger(vec![]) };
    assert!(words(&ledger(vec![]), &now).is_empty(), "a project without gates has none to lose");
}

#[test]
fn limits_of_earlier_builds_are_read_by_their_current_names() {
    let stored = json!({ "gates": [], "limits": { "hook_retries": 2, "turn": 9 } });
    let ledger: GateLedger = serde_json::from_value(stored).unwrap();
    let expected = [("gate_retries".to_owned(), 2), ("turn_timeout".to_owned(), 9)];
    assert_eq!(ledger.limits, BTreeMap::from(expected));
}

#[test]
fn a_quoted_part_of_a_configuration_stays_on_one_line() {
    let told = changed(|gate| gate.when = Some(format!("a\n`\u{1b}[2J{}", "x".repeat(200))));
    assert!(!told[0].contains(['\n', '\u{1b}']), "{told:?}");
    assert!(told[0].chars().count() < 150, "{told:?}");
}

fn any_gate() -> impl Strategy<Value = GateRecord> {
    let list = prop::option::of(prop::sample::select(vec!["fix", "agent:claude"]));
    let points = prop::sample::subsequence(
        vec!["stop", "validation", "before_submit", "before_merge"],
        1..=4,
    );
    let group = prop::option::of(prop::sample::select(vec!["g", "h"]));
    let when = prop::option::of(prop::sample::select(vec!["true", "task.priority > 1"]));
    let handler = prop::sample::select(vec![
        json!({ "shell": "npm test" }),
        json!({ "rule": "file a" }),
        json!({ "gatekeeper": ["qa"] }),
    ]);
    (("[a-d]", list, points, any::<bool>()), (group, when, handler, any::<bool>(), 1..4_u32))
        .prop_map(|((name, list, points, enabled), (group, when, handler, closed, attempts))| {
            GateRecord {
                list: list.map(str::to_owned),
                points: points.into_iter().map(str::to_owned).collect(),
                enabled,
                any_of: group.map(str::to_owned),
                when: when.map(str::to_owned),
                handler,
                blocks_on_failure: closed,
                attempts,
                ..gate(&name)
            }
        })
}

/// Ledgers as a configuration makes them: names are unique in a list, and a list with gates is known.
fn any_ledger() -> impl Strategy<Value = GateLedger> {
    prop::collection::vec(any_gate(), 0..8).prop_map(|gates| {
        let mut unique: Vec<GateRecord> = Vec::new();
        for gate in gates {
            if !unique.iter().any(|known| (&known.name, &known.list) == (&gate.name, &gate.list)) {
                unique.push(gate);
            }
        }
        let lists = unique.iter().flat_map(|gate| {
            let list =
                |point: &String| Some(GateList { owner: gate.list.clone()?, point: point.clone() });
            gate.points.iter().filter_map(list)
        });
        GateLedger { lists: lists.collect(), ..ledger(unique.clone()) }
    })
}

/// Returns a ledger with an enabled gate of the project's list to weaken, called `victim`.
fn with_victim() -> impl Strategy<Value = GateLedger> {
    any_ledger().prop_map(|mut known| {
        known.gates.push(gate("victim"));
        known
    })
}

fn weakened(known: &GateLedger, weaken: impl FnOnce(&mut GateRecord)) -> GateLedger {
    let mut now = known.clone();
    if let Some(gate) = now.gates.iter_mut().find(|gate| gate.name == "victim") {
        weaken(gate);
    }
    now
}

fn is_reported(agreed: &GateLedger, now: &GateLedger) -> bool {
    compare(agreed, now).iter().any(|change| change.gate == "victim" && change.needs_consent())
}

proptest! {
    #[test]
    fn the_same_gates_have_no_differences(known in any_ledger()) {
        prop_assert_eq!(compare(&known, &known), vec![]);
    }

    #[test]
    fn a_removed_gate_is_always_reported(known in with_victim()) {
        let mut now = known.clone();
        now.gates.retain(|gate| gate.name != "victim");
        prop_assert!(is_reported(&known, &now));
    }

    #[test]
    fn a_disabled_gate_is_always_reported(known in with_victim()) {
        prop_assert!(is_reported(&known, &weakened(&known, |gate| gate.enabled = false)));
    }

    #[test]
    fn a_gate_that_no_longer_blocks_on_failure_is_always_reported(known in with_victim()) {
        let now = weakened(&known, |gate| gate.blocks_on_failure = false);
        prop_assert!(is_reported(&known, &now));
    }

    #[test]
    fn a_gate_that_may_be_replaced_is_always_reported(known in with_victim()) {
        let mut now = weakened(&known, |gate| gate.any_of = Some("trivial".to_owned()));
        now.gates.push(GateRecord { any_of: Some("trivial".to_owned()), ..gate("r") });
        prop_assert!(is_reported(&known, &now));
    }

    #[test]
    fn gates_that_are_only_added_at_stop_need_no_consent(known in any_ledger()) {
        let mut now = known.clone();
        now.gates.push(gate("more"));
        let needed: Vec<String> = words(&known, &now);
        prop_assert_eq!(needed, Vec::<String>::new());
    }

    #[test]
    fn a_ledger_is_stored_without_loss(known in any_ledger()) {
        let text = serde_json::to_string(&known).unwrap();
        prop_assert_eq!(serde_json::from_str::<GateLedger>(&text).unwrap(), known);
    }
}
