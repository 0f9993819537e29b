//! Strength by mutmut, with pytest.

use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use super::{claims, installed, strength};
use crate::sessions::trusted_project;

const STUB: &str = "def total(prices, limit):\n    return 0\n\n\ndef other():\n    return 1 + 1\n";
const WORK: &str = "def total(prices, limit):\n    amount = sum(prices)\n    if amount > limit:\n        return -1\n    \
                    return amount\n\n\ndef other():\n    return 1 + 1\n";
const WEAK: &str =
    "from cart import total\n\n\ndef test_total():\n    assert total([10, 20], 100) == 30\n";
const STRONG: &str = "from cart import total\n\n\ndef test_total():\n    assert total([10, 20], 100) == 30\n    assert \
                      total([10, 20], 30) == 30\n    assert total([10, 20], 29) == -1\n    assert total([10, 20], 31) == 30\n";

fn project(options: &str, tests: &str) -> TestProject {
    let python = installed("python/bin/python");
    let config = format!(
        "version: 1\nhooks:\n  stop:\n    - {{name: tests, command: {python} -m pytest -q, strength: {options}}}\n"
    );
    trusted_project(
        &config,
        &[("cart.py", STUB), ("tests/test_cart.py", tests), ("conftest.py", "")],
    )
}

fn work() -> Value {
    json!({"cart.py": WORK})
}

#[test]
fn weak_tests_go_to_the_agent_with_the_surviving_changes() {
    let project = project("{at_least: 90}", WEAK);
    let ran = claims(&project, &[work(), json!({"tests/test_cart.py": STRONG})]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let told = format!("{:?}", ran.all("output_piped"));
    assert!(told.contains("cart.py:3") && told.contains("amount >= limit"), "{told}");
    assert!(told.contains("sharpen"), "{told}");
    let receipts = ran.all("receipt_recorded");
    let [weak, strong] = &receipts[..] else { panic!("{receipts:?}") };
    assert_eq!(weak["status"], "blocked");
    let weak = &weak["strength"];
    assert!(weak["score"].as_u64().unwrap() < 90, "{weak}");
    // Only the changed function is mutated.
    let lines: Vec<u64> = weak["survivors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|survivor| survivor["line"].as_u64().unwrap())
        .collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| (1..=5).contains(line)), "{weak}");
    let strong = &strong["strength"];
    assert_eq!((&strong["engine"], &strong["status"]), (&json!("mutmut"), &json!("measured")));
    assert!(strong["score"].as_u64().unwrap() >= 90, "{strong}");
    let report = std::fs::read_to_string(strong["report"].as_str().unwrap()).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["files"]["cart.py"]["source"], WORK);
    let mutants = report["files"]["cart.py"]["mutants"].as_array().unwrap();
    assert!(mutants.iter().any(|mutant| mutant["status"] == "Killed"), "{report}");
}

#[test]
fn the_number_of_mutants_is_limited() {
    let ran = claims(&project("{at_least: 1, most: 3}", WEAK), &[work()]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let mutants = strength(&ran)["mutants"].clone();
    let tested = ["killed", "survived", "timed_out"].map(|name| mutants[name].as_u64().unwrap());
    assert_eq!(tested.iter().sum::<u64>(), 3, "{mutants}");
}

#[test]
fn an_engine_without_a_result_in_its_budget_needs_a_person() {
    let slow = format!("import time\n{WEAK}    time.sleep(3)\n");
    let ran = claims(&project("{budget: 4s}", &slow), &[work(), work()]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("turn_ended"), 1, "{}", ran.stderr);
    let strength = strength(&ran);
    assert_eq!(strength["status"], "out_of_budget", "{strength}");
    let duration = strength["duration_ms"].as_u64().unwrap();
    assert!((4_000..6_000).contains(&duration), "{strength}");
}

#[test]
fn tests_that_fail_inside_of_the_engine_are_not_the_agents_fault() {
    let tests =
        format!("{WEAK}    import os\n    assert os.path.basename(os.getcwd()) != 'mutants'\n");
    let ran = claims(&project("{}", &tests), &[work(), work()]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("turn_ended"), 1, "{}", ran.stderr);
    let strength = strength(&ran);
    assert_eq!(strength["status"], "engine_failed", "{strength}");
    assert!(
        strength["reason"].as_str().unwrap().contains("mutmut ended with exit code 1"),
        "{strength}"
    );
}
