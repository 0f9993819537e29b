//! The document of the stop hook system: its calls exactly as written, its orders and its answers.

use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::mcp::PLAIN;
use crate::mcp::client::Client;
use crate::support::project_with;

/// One rule, which passes if a file exists in the project.
const RULED: &str =
    "version: 1\nhooks:\n  validation:\n    - {name: tests_pass, file: answer.txt}\n";

fn task(client: &mut Client) -> String {
    let added = client.ok("task_add", json!({ "title": "Parser" }));
    added["id"].as_str().unwrap().to_owned()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}")).to_owned()
}

fn promising(iteration: &str, word: &str) -> Value {
    json!({ "iterationId": iteration, "agentOutput": format!("Well.\n<promise>{word}</promise>") })
}

/// The document names the argument `taskId`, other tools name it `id`.
#[test]
fn every_tool_that_takes_a_task_takes_task_id_and_id() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let about_tasks: Vec<String> = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["inputSchema"]["properties"].get("taskId").is_some())
        .map(|tool| text(tool, "name"))
        .collect();
    assert_eq!(about_tasks.len(), 8, "{about_tasks:?}");
    for tool in &about_tasks {
        for name in ["taskId", "id"] {
            let error = client.refused(tool, json!({ name: "nosuchtask" }));
            assert_eq!(error["code"], "no_such_task", "{tool} {name}: {error}");
        }
        let error = client.refused(tool, json!({ "taskId": "a", "id": "b" }));
        assert_eq!(error["message"], "`taskId` and `id` are different", "{tool}");
        assert_eq!(client.refused(tool, json!({}))["message"], "`taskId` is missing", "{tool}");
    }
}

#[test]
fn a_loop_of_no_iterations_is_an_argument_error_and_blocks_nothing() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    for field in ["maxIterations", "circuitBreakerThreshold"] {
        let error = client.refused("iteration_start", json!({ "taskId": task, field: 0 }));
        assert_eq!(error["code"], "invalid_argument");
        assert_eq!(error["message"], format!("`{field}` should be a whole number, 1 or more"));
    }
    assert_eq!(client.ok("task_get", json!({ "taskId": task }))["status"], "ready");
}

/// Every offered status is accepted; iteration_start claims a task.
#[test]
fn task_update_offers_only_what_it_accepts() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let update =
        list.as_array().unwrap().iter().find(|tool| tool["name"] == "task_update").unwrap();
    let offered = &update["inputSchema"]["properties"]["status"]["enum"];
    assert_eq!(offered, &json!(["completed", "blocked"]));
    for status in ["completed", "blocked"] {
        let task = task(&mut client);
        let updated = client.ok("task_update", json!({ "id": task, "status": status }));
        assert_eq!(updated["status"], status);
    }
    let task = task(&mut client);
    let error = client.refused("task_update", json!({ "id": task, "status": "in_progress" }));
    assert!(text(&error, "next").contains("iteration_start"), "{error}");
    client.ok("iteration_start", json!({ "taskId": task }));
    let updated = client.ok("task_update", json!({ "taskId": task, "status": "in_progress" }));
    assert_eq!(updated["status"], "active");
}

#[test]
fn a_loop_without_a_registered_hook_ends_by_the_stop_when_of_the_project() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    let started = client.ok("iteration_start", json!({ "taskId": task, "maxIterations": 10 }));
    let id = text(&started, "iterationId");
    let none = client.ok("hook_evaluate", promising(&id, "COMPLETE"));
    assert_eq!(
        (text(&none, "hookId"), text(&none, "action"), text(&none, "reason")),
        ("default".into(), "continue".into(), "No hooks registered for this task".into())
    );
    let judged = client.ok("iteration_validate", promising(&id, "COMPLETE"));
    assert_eq!(judged["completionSignal"], "COMPLETE", "{judged}");
    client.ok("iteration_complete", json!({ "iterationId": id, "completionPromise": "COMPLETE" }));
    assert_eq!(client.ok("task_get", json!({ "id": task }))["status"], "completed");
}

/// The decision logic of the three presets: promises, validation, both.
#[test]
fn hook_presets_decide_by_promise_and_validation() {
    use serde_json::json as j;
    // (preset, the rule passes, promise, action)
    let cases = [
        ("default", false, "COMPLETE", "complete"),
        ("default", false, "ESCALATE", "escalate"),
        ("default", false, "BLOCKED", "escalate"),
        ("default", true, "NOTHING", "complete"),
        ("default", false, "NOTHING", "continue"),
        ("validation", true, "NOTHING", "complete"),
        ("validation", true, "ESCALATE", "complete"),
        ("validation", false, "COMPLETE", "continue"),
        ("promise", false, "COMPLETE", "complete"),
        ("promise", false, "ESCALATE", "escalate"),
        ("promise", false, "BLOCKED", "escalate"),
        ("promise", true, "NOTHING", "continue"),
    ];
    let project = project_with(RULED);
    let mut client = Client::ready(&project);
    for (preset, is_met, word, action) in cases {
        let answer = project.root().join("answer.txt");
        let _ = std::fs::remove_file(&answer);
        if is_met {
            std::fs::write(&answer, "42").unwrap();
        }
        let task = task(&mut client);
        client.ok("hook_register", j!({ "taskId": task, "hookType": preset }));
        let started = client.ok("iteration_start", j!({ "taskId": task }));
        let decided = client.ok("hook_evaluate", promising(&text(&started, "iterationId"), word));
        assert_eq!(decided["action"], action, "{preset} {is_met} {word}: {decided}");
        if action == "continue" && preset == "validation" {
            assert!(text(&decided, "nextPrompt").contains("tests_pass"), "{decided}");
        }
    }
    // Without rules, validation continues the loop.
    let plain = project_with(PLAIN);
    let mut client = Client::ready(&plain);
    let task = task(&mut client);
    client.ok("hook_register", json!({ "taskId": task, "hookType": "validation" }));
    let started = client.ok("iteration_start", json!({ "taskId": task }));
    let decided = client.ok("hook_evaluate", promising(&text(&started, "iterationId"), "COMPLETE"));
    assert_eq!(decided["action"], "continue", "{decided}");
}

/// Hooks run in registration order; the first that completes or escalates stops, else the last
/// result counts.
#[test]
fn hooks_are_evaluated_in_registration_order() {
    let project = project_with(RULED);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    let ids: Vec<String> = ["validation", "promise", "default"]
        .iter()
        .map(|preset| {
            let hook = client.ok("hook_register", json!({ "taskId": task, "hookType": preset }));
            text(&hook, "hookId")
        })
        .collect();
    assert!(ids.iter().all(|id| id.starts_with("HOOK-")), "{ids:?}");
    let started = client.ok("iteration_start", json!({ "taskId": task }));
    let id = text(&started, "iterationId");
    let decided = client.ok("hook_evaluate", promising(&id, "NOTHING"));
    assert_eq!(
        (text(&decided, "hookId"), text(&decided, "action")),
        (ids[2].clone(), "continue".into())
    );
    let decided = client.ok("hook_evaluate", promising(&id, "ESCALATE"));
    assert_eq!(
        (text(&decided, "hookId"), text(&decided, "action")),
        (ids[1].clone(), "escalate".into())
    );
    std::fs::write(project.root().join("answer.txt"), "42").unwrap();
    let decided = client.ok("hook_evaluate", promising(&id, "ESCALATE"));
    assert_eq!(
        (text(&decided, "hookId"), text(&decided, "action")),
        (ids[0].clone(), "complete".into())
    );
    // A cleared hook no longer decides.
    assert_eq!(client.ok("hook_clear", json!({ "taskId": task }))["hooksCleared"], 3);
    let decided = client.ok("hook_evaluate", promising(&id, "COMPLETE"));
    assert_eq!(decided["hookId"], "default");
}

/// Returns a project whose own command decides, and a loop in it.
fn custom(script: &str) -> (TestProject, Client, String) {
    let config = "version: 1\nhooks:\n  validation:\n    - {name: tests_pass, file: answer.txt}\n  \
                  stop_when:\n    - {name: custom, command: sh decide.sh, answers: json}\n";
    let project = project_with(config);
    std::fs::write(project.root().join("decide.sh"), script).unwrap();
    project.trust();
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    // A hook that an agent registers does not overrule the project: it is disabled, and skipped.
    let hook = client.ok("hook_register", json!({ "taskId": task, "hookType": "default" }));
    assert_eq!(hook["enabled"], false);
    let listed = client.ok("hook_list", json!({ "taskId": task }));
    assert_eq!(listed["hooks"][0]["enabled"], false);
    let started = client.ok("iteration_start", json!({ "taskId": task }));
    let id = text(&started, "iterationId");
    (project, client, id)
}

/// A custom hook of the document: a command decides, with the context that the document lists as
/// its input.
#[test]
fn a_custom_stop_hook_decides_with_the_agents_context() {
    let tdd = "cat > input.json\ncat <<'JSON'\n{\"hookloop\": {\"action\": \"continue\", \"reason\": \
               \"Tests still failing\", \"nextPrompt\": \"Fix failing tests and run again\"}}\nJSON\n";
    let (project, mut client, id) = custom(tdd);
    let judged = client.ok("iteration_validate", promising(&id, "COMPLETE"));
    assert_eq!(judged["completionSignal"], "CONTINUE", "{judged}");
    let decided = &judged["hookDecision"];
    assert_eq!((&decided["hookId"], &decided["action"]), (&json!("custom"), &json!("continue")));
    assert_eq!(decided["reason"], "Tests still failing");
    assert!(judged["feedback"].to_string().contains("Fix failing tests and run again"), "{judged}");
    let input = std::fs::read_to_string(project.root().join("input.json")).unwrap();
    let input: Value = serde_json::from_str(&input).unwrap();
    assert!(input["last_assistant_message"].as_str().unwrap().starts_with("Well."), "{input}");
    let ours = &input["hookloop"];
    assert_eq!(ours["iteration"], 1);
    assert_eq!(ours["promises"], json!([{ "type": "COMPLETE", "detected": true }]), "{input}");
    assert_eq!(ours["validation_results"], json!([{ "ruleName": "tests_pass", "passed": false }]));
    assert!(ours["files_modified"].is_array() && ours["task"]["id"].is_string(), "{input}");
}

#[test]
fn a_stop_hook_that_fails_escalates() {
    let (_sandbox, mut client, id) = custom("cat > /dev/null\necho broken >&2\nexit 1\n");
    let decided = client.ok("hook_evaluate", promising(&id, "COMPLETE"));
    assert_eq!(decided["action"], "escalate", "{decided}");
    assert!(text(&decided, "reason").starts_with("Hook evaluation failed: "), "{decided}");
    assert!(!text(&decided["metadata"], "error").is_empty(), "{decided}");
    let judged = client.ok("iteration_validate", promising(&id, "COMPLETE"));
    assert_eq!(judged["completionSignal"], "ESCALATE", "{judged}");
}
