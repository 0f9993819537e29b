//! `hookloop usage`, and the configuration of a budget.

use std::fs;

use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::support::project_with;
use crate::usage::turn;

/// The exit code of complete work that no gate has proven: there is no gate here.
const UNPROVEN: Option<i32> = Some(6);

fn run(project: &TestProject, turns: &Value, args: &[&str]) -> Option<i32> {
    fs::write(project.root().join("turns.json"), turns.to_string()).unwrap();
    let all = [&["run", "--agent", "scripted:turns.json", "--no-changes-ok"], args].concat();
    project.json_command(&all).output().unwrap().status.code()
}

fn done(cost: u64) -> Value {
    let mut done = turn(cost, 0, 0);
    done["say"] = json!("done\n<promise>COMPLETE</promise>");
    done
}

#[test]
fn usage_of_turns_is_summed_by_day_session_task_and_agent() {
    let project = project_with("version: 1\n");
    project.json(&["task", "add", "One", "--id", "one"]);
    project.json(&["task", "add", "Two", "--id", "two"]);
    assert_eq!(run(&project, &json!([turn(5, 0, 0), done(10), done(20)]), &["--tasks"]), UNPROVEN);
    assert_eq!(run(&project, &json!([done(100)]), &["prompt"]), UNPROVEN);
    let rows = |by: &str| project.json(&["usage", "--by", by])["rows"].clone();
    let costs = |by: &str| -> Vec<(String, u64, u64)> {
        let row = |row: &Value| {
            let key = row[by].as_str().unwrap_or("none").to_owned();
            (key, row["cost_micros"].as_u64().unwrap(), row["turns"].as_u64().unwrap())
        };
        rows(by).as_array().unwrap().iter().map(row).collect()
    };
    let mut tasks = costs("task");
    tasks.sort();
    let of = |key: &str, cost, turns| (key.to_owned(), cost, turns);
    assert_eq!(tasks, [of("none", 100, 1), of("one", 15, 2), of("two", 20, 1)]);
    assert_eq!(costs("agent"), [of("scripted:turns.json", 135, 4)]);
    assert_eq!(costs("session").len(), 2);
    let day = rows("day");
    assert_eq!(day.as_array().unwrap().len(), 1);
    let expected = json!({"turns": 4, "input_tokens": 4_000, "cached_tokens": 1_600,
        "output_tokens": 200, "cost_micros": 135, "unpriced_turns": 0});
    let usage = project.json(&["usage"]);
    assert_eq!(usage["total"], expected);
    assert_eq!(usage["budget"]["limits"], json!([]), "no limit by default");
    let later = project.json(&["usage", "--since", "2999-01-01"]);
    assert_eq!((&later["rows"], &later["total"]["turns"]), (&json!([]), &json!(0)));
    project.rebuild();
    assert_eq!(project.json(&["usage"]), usage);
}

#[test]
fn a_total_token_budget_ends_a_session() {
    let limits = "{budget: {tokens: 2500, period: total}, reserve_per_turn: {tokens: 1050}}";
    let project = project_with(&format!("version: 1\nlimits: {limits}\n"));
    let turns = json!([turn(1, 0, 0), turn(1, 0, 0), turn(1, 0, 0)]);
    assert_eq!(run(&project, &turns, &["x"]), Some(4));
    let usage = project.json(&["usage"]);
    assert_eq!(usage["total"]["turns"], 2, "{usage}");
    let limit = &usage["budget"]["limits"][0];
    assert_eq!((&limit["period"], &limit["left"]["tokens"]), (&json!("total"), &json!(400)));
    let session = project.json(&["sessions", "list"])[0].clone();
    assert_eq!((&session["state"], &session["reason"]), (&json!("limit"), &json!("budget")));
    assert_eq!(session["iteration"], 2, "an iteration exceeds the budget");
}

#[test]
fn a_session_reserves_no_more_than_its_own_cost_limit() {
    let project =
        project_with("version: 1\nlimits: {budget: {cost: 5}, reserve_per_turn: {cost: 2}}\n");
    assert_eq!(run(&project, &json!([done(10)]), &["x", "--max-cost", "0.5"]), UNPROVEN);
    let events = project.events_from(1);
    let reserved = events.iter().find(|event| event["type"] == "budget_reserved").unwrap();
    assert_eq!(reserved["data"]["cost_micros"], 500_000, "{reserved}");
}

#[test]
fn budget_mistakes_are_reported_with_file_and_line() {
    for (limits, what) in [
        ("budget: {period: day}", "`cost`, `tokens`, `turns` or several"),
        ("budget: {cost: -1}", "dollars"),
        ("budget: {cost: 1, period: week}", "day"),
        ("reserve_per_turn: {cost: 0}", "more than 0"),
        ("reserve_per_turn: {tokens: 0}", "more than 0"),
    ] {
        let project = project_with("version: 1\n");
        let text = format!("version: 1\nlimits:\n  {limits}\n");
        fs::write(project.root().join("hookloop.yaml"), text).unwrap();
        let output = project.json_command(&["usage"]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{limits}: {told}");
        assert!(told.contains(what) && told.contains("hookloop.yaml:3:"), "{limits}: {told}");
    }
}
