//! The effects of tools, compared with the document that defines them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::PLAIN;
use crate::mcp::client::Client;
use crate::support::project_with;

/// Returns the sorted field names of an answer.
fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn task(client: &mut Client) -> String {
    let added = client.ok("task_add", json!({ "title": "Parser" }));
    added["id"].as_str().unwrap().to_owned()
}

fn iteration(client: &mut Client, task: &str) -> String {
    let started = client.ok("iteration_start", json!({ "taskId": task }));
    started["iterationId"].as_str().unwrap().to_owned()
}

#[test]
fn hooks_are_registered_listed_and_cleared() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    let given =
        json!({ "taskId": task, "hookType": "validation", "metadata": { "description": "d" } });
    let hook = client.ok("hook_register", given);
    assert_eq!(fields(&hook), ["enabled", "hookId", "hookType", "metadata", "taskId"]);
    assert_eq!(
        (&hook["taskId"], &hook["hookType"], &hook["enabled"]),
        (&json!(task), &json!("validation"), &json!(true))
    );
    client.ok("hook_register", json!({ "taskId": task }));
    let list = client.ok("hook_list", json!({ "taskId": task }));
    assert_eq!(fields(&list), ["hookCount", "hooks", "taskId"]);
    assert_eq!(list["hookCount"], 2);
    assert_eq!(fields(&list["hooks"][0]), ["enabled", "id", "metadata"]);
    assert_eq!(list["hooks"][0]["id"], hook["hookId"]);
    let kinds: Vec<&Value> = (0..2).map(|i| &list["hooks"][i]["metadata"]["type"]).collect();
    assert_eq!(kinds, ["validation", "default"]);
    let cleared = client.ok("hook_clear", json!({ "taskId": task }));
    assert_eq!(cleared, json!({ "taskId": task, "hooksCleared": 2 }));
    assert_eq!(client.ok("hook_list", json!({ "taskId": task }))["hookCount"], 0);
}

/// The server of the document forgets them.
#[test]
fn registrations_outlive_the_server() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    let hook = client.ok("hook_register", json!({ "taskId": task, "hookType": "promise" }));
    let iteration = iteration(&mut client, &task);
    drop(client);
    let mut client = Client::ready(&project);
    let output = "All done.\n\n<promise>COMPLETE</promise>\n";
    let decided =
        client.ok("hook_evaluate", json!({ "iterationId": iteration, "agentOutput": output }));
    assert_eq!(decided["hookId"], hook["hookId"]);
    assert_eq!(decided["action"], "complete");
}

#[test]
fn hook_evaluate_maps_promises_to_actions() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    let iteration = iteration(&mut client, &task);
    let none = client.ok("hook_evaluate", json!({ "iterationId": iteration }));
    assert_eq!((&none["hookId"], &none["action"]), (&json!("default"), &json!("continue")));
    assert_eq!(none["reason"], "No hooks registered for this task");
    client.ok("hook_register", json!({ "taskId": task, "hookType": "promise" }));
    for (word, action) in [
        ("COMPLETE", "complete"),
        ("BLOCKED", "escalate"),
        ("ESCALATE", "escalate"),
        ("X", "continue"),
    ] {
        let output = format!("Well.\n\n<promise>{word}</promise>");
        let decided = client.ok(
            "hook_evaluate",
            json!({ "iterationId": iteration, "agentOutput": output, "filesModified": ["a.rs"] }),
        );
        let expected = [
            "action",
            "checkpointCreated",
            "hookId",
            "iteration",
            "metadata",
            "nextPrompt",
            "reason",
            "taskId",
        ];
        assert_eq!(fields(&decided), expected);
        assert_eq!(decided["action"], action, "{decided}");
        assert_eq!((&decided["taskId"], &decided["iteration"]), (&json!(task), &json!(1)));
        assert_eq!(decided["nextPrompt"], Value::Null);
    }
    let quoted = "I will say `<promise>COMPLETE</promise>` when it is done.";
    let decided =
        client.ok("hook_evaluate", json!({ "iterationId": iteration, "agentOutput": quoted }));
    assert_eq!(decided["action"], "continue");
}

#[test]
fn an_iteration_loop_runs_from_task_to_completion() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    client.ok("task_get", json!({ "id": task }));
    client.ok("hook_register", json!({ "taskId": task, "hookType": "default" }));
    let request = json!({ "taskId": task, "maxIterations": 5, "completionPromises": ["COMPLETE", "<promise>BLOCKED</promise>"] });
    let started = client.ok("iteration_start", request);
    assert_eq!((&started["taskId"], &started["iterationNumber"]), (&json!(task), &json!(1)));
    assert_eq!(started["maxIterations"], 5);
    assert_eq!(started["config"]["completionPromises"], json!(["COMPLETE", "BLOCKED"]));
    assert!(started["createdAt"].as_str().unwrap().ends_with('Z'), "{started}");
    let id = started["iterationId"].clone();
    let judged =
        client.ok("iteration_validate", json!({ "iterationId": id, "agentOutput": "Not yet." }));
    assert_eq!(judged["completionSignal"], "CONTINUE", "{judged}");
    let next = client.ok(
        "iteration_next",
        json!({ "iterationId": id, "validationResult": judged, "agentContext": {} }),
    );
    assert_eq!((&next["iterationNumber"], &next["remainingIterations"]), (&json!(2), &json!(3)));
    let output = "Done.\n\n<promise>COMPLETE</promise>";
    let judged =
        client.ok("iteration_validate", json!({ "iterationId": id, "agentOutput": output }));
    assert_eq!(judged["completionSignal"], "COMPLETE", "{judged}");
    assert_eq!(judged["completionPromisesDetected"], json!(["COMPLETE"]));
    assert_eq!(judged["detectedPromise"], "COMPLETE");
    assert_eq!(judged["hookDecision"]["action"], "complete");
    let done = client
        .ok("iteration_complete", json!({ "iterationId": id, "completionPromise": "COMPLETE" }));
    assert_eq!((&done["status"], &done["totalIterations"]), (&json!("completed"), &json!(2)));
    client.ok("hook_clear", json!({ "taskId": task }));
}

#[test]
fn checkpoints_are_created_and_resumed() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    let given = json!({ "taskId": task, "executionPhase": "testing", "executionStep": 3, "agentContext": { "a": [1] }, "draftContent": "fn x() {}", "draftType": "implementation" });
    let kept = client.ok("checkpoint_create", given);
    assert_eq!(fields(&kept), ["createdAt", "expiresAt", "id", "sequence", "taskId", "trigger"]);
    assert_eq!(
        (&kept["sequence"], &kept["trigger"], &kept["expiresAt"]),
        (&json!(1), &json!("manual"), &Value::Null)
    );
    client.ok("checkpoint_create", json!({ "taskId": task, "trigger": "auto_iteration" }));
    let named =
        client.ok("checkpoint_resume", json!({ "taskId": task, "checkpointId": kept["id"] }));
    assert_eq!((&named["restoredPhase"], &named["restoredStep"]), (&json!("testing"), &json!(3)));
    assert_eq!((&named["hasDraft"], &named["draftPreview"]), (&json!(true), &json!("fn x() {}")));
    assert_eq!(
        (&named["taskTitle"], &named["agentContext"]),
        (&json!("Parser"), &json!({ "a": [1] }))
    );
    let last = client.ok("checkpoint_resume", json!({ "taskId": task }));
    assert_eq!((&last["hasDraft"], &last["draftPreview"]), (&json!(false), &Value::Null));
}

#[test]
fn tasks_are_added_found_and_updated() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let first = task(&mut client);
    let more = json!({ "title": "Tests", "description": "d", "labels": ["x"], "priority": 1, "type": "chore", "dependsOn": [first] });
    let second = client.ok("task_add", more);
    assert_eq!(second["status"], "created");
    let found = client.ok("task_get", json!({ "id": second["id"] }));
    assert_eq!(
        (&found["title"], &found["priority"], &found["dependsOn"]),
        (&json!("Tests"), &json!(1), &json!([first]))
    );
    let ready = client.ok("task_list", json!({ "status": "pending" }));
    assert_eq!(ready["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(ready["tasks"][0]["id"], json!(first));
    assert!(ready["tasks"][0].get("description").is_none(), "{ready}");
    let blocked = client.ok("task_update", json!({ "id": first, "status": "blocked", "blockedReason": "which encoding?", "notes": "asked" }));
    assert_eq!(
        (&blocked["status"], &blocked["blockedReason"]),
        (&json!("blocked"), &json!("which encoding?"))
    );
    assert_eq!(client.ok("task_get", json!({ "id": first }))["notes"][0]["text"], "asked");
    assert_eq!(client.refused("task_get", json!({ "id": "nosuch" }))["code"], "no_such_task");
}

/// The program that started the server closes its input while a gate runs.
#[test]
fn end_of_input_ends_a_running_gate() {
    let project = project_with(
        "version: 1\nhooks:\n  validation: [{room: here, command: 'echo $$ > begun; exec sleep 61'}]\n",
    );
    project.trust();
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    client.ok("hook_register", json!({ "taskId": task, "hookType": "validation" }));
    let iteration = iteration(&mut client, &task);
    client.ask(
        "tools/call",
        json!({ "name": "iteration_validate", "arguments": { "iterationId": iteration } }),
    );
    let begun = project.root().join("begun");
    let since = Instant::now();
    while fs::read_to_string(&begun).unwrap_or_default().is_empty() {
        assert!(since.elapsed() < Duration::from_secs(30), "the gate did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    client.is_alive();
    client.end_input();
    let gate = fs::read_to_string(&begun).unwrap();
    assert!(client.ended(Duration::from_secs(1)).success());
    // The gate ends, too.
    let since = Instant::now();
    while Path::new("/proc").join(gate.trim()).exists() {
        assert!(since.elapsed() < Duration::from_secs(10), "the gate still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Only a person trusts hooks: no tool's answer contains the command for it.
#[test]
fn a_refusal_names_no_command_that_trusts() {
    let gated = "version: 1\nhooks:\n  stop: [{name: gate, command: 'exit 2'}]\n";
    let project = project_with(gated);
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    let refused = client.refused("iteration_start", json!({ "taskId": task }));
    assert_eq!(refused["code"], "untrusted", "{refused}");
    let told = refused.to_string();
    assert!(told.contains("only a person"), "{told}");
    assert!(!told.contains("hooks trust") && !told.contains("--trust"), "{told}");
    // A trust record that can't be parsed.
    let state = project.json(&["status"])["state"].clone();
    fs::write(Path::new(state.as_str().unwrap()).join("trust.json"), "{").unwrap();
    let mut client = Client::ready(&project);
    let refused = client.refused("iteration_start", json!({ "taskId": task })).to_string();
    assert!(!refused.contains("hooks trust") && !refused.contains("--trust"), "{refused}");
}

/// An iteration loop that an agent leads runs the scripts that existed at its start.
#[test]
fn an_iteration_loop_runs_the_scripts_that_it_began_with() {
    let config = "version: 1\nhooks:\n  stop: [{name: gate, room: here, command: sh gate.sh}]\n";
    let project = project_with(config);
    let script = project.root().join("gate.sh");
    fs::write(&script, "echo old >> runs\nexit 2\n").unwrap();
    project.trust();
    let mut client = Client::ready(&project);
    let task = task(&mut client);
    client.ok("hook_register", json!({ "taskId": task }));
    let id = iteration(&mut client, &task);
    fs::write(&script, "echo new >> runs\nexit 0\n").unwrap();
    project.trust();
    let said = json!({ "iterationId": id, "agentOutput": "Done.\n<promise>COMPLETE</promise>" });
    let judged = client.ok("iteration_validate", said);
    assert_eq!(judged["completionSignal"], "CONTINUE", "{judged}");
    assert!(!judged.to_string().contains("hooks trust"), "{judged}");
    let runs = fs::read_to_string(project.root().join("runs")).unwrap();
    assert!(!runs.is_empty() && runs.lines().all(|run| run == "old"), "{runs}");
}
