//! Forbidden effects for agents: every tool against every effect, with the most dangerous
//! arguments.

use std::fs;
use std::path::PathBuf;

use hookloop_agents::tools::TOOLS;
use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::support::project_with;

/// A configuration in which no gate passes.
const RED: &str = "version: 1
limits: {max_iterations: 4, gate_retries: 3}
hooks:
  stop:
    - {name: green, file: green.txt}
  validation:
    - {name: valid, file: valid.txt}
";
const COMPLETE: &str = "Done.\n<promise>COMPLETE</promise>";
const MANY: u32 = 1_000_000;

/// An effect that no call may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    RunsShellText,
    ChangesTrust,
    LoosensAGate,
    RaisesALimit,
    CompletesWhatIsNotProven,
    WritesWithAStaleClaim,
}

struct Scene {
    project: TestProject,
    client: Client,
    iteration: String,
}

/// State that a call must not change.
#[derive(Debug, PartialEq)]
struct Guarded {
    trust: Option<Vec<u8>>,
    config: Vec<u8>,
    hooks: Value,
}

impl Scene {
    fn new() -> Scene {
        let project = project_with(RED);
        project.json(&["task", "add", "Parser", "--id", "t1"]);
        let mut client = Client::ready(&project);
        client.ok("hook_register", json!({ "taskId": "t1", "hookType": "promise" }));
        client.ok("checkpoint_create", json!({ "taskId": "t1" }));
        let started = client.ok("iteration_start", json!({ "taskId": "t1" }));
        let iteration = started["iterationId"].as_str().unwrap().to_owned();
        Scene { project, client, iteration }
    }

    fn guarded(&self) -> Guarded {
        let trust: PathBuf = self.project.database_path().parent().unwrap().join("trust.json");
        Guarded {
            trust: fs::read(trust).ok(),
            config: fs::read(self.project.root().join("hookloop.yaml")).unwrap(),
            hooks: self.project.json(&["hooks", "list"]),
        }
    }

    fn task(&self) -> Value {
        self.project.json(&["task", "show", "t1"])
    }

    fn events_on_task(&self) -> usize {
        let of_task = |event: &&Value| event["node_id"] == "t1";
        self.project.events_from(1).iter().filter(of_task).count()
    }

    /// Another agent claims the task.
    fn lose_the_claim(&self) {
        self.project.json(&["task", "requeue", "t1", "--force"]);
        self.project.json(&["task", "claim", "t1", "--agent", "thief"]);
    }

    /// Returns valid arguments for a tool.
    fn arguments(&self, tool: &str) -> Value {
        let id = &self.iteration;
        match tool {
            "hook_register" => json!({ "taskId": "t1", "hookType": "promise" }),
            "hook_evaluate" | "iteration_validate" => {
                json!({ "iterationId": id, "agentOutput": COMPLETE })
            }
            "iteration_next" => json!({ "iterationId": id }),
            "iteration_complete" => json!({ "iterationId": id, "completionPromise": "COMPLETE" }),
            "iteration_start" | "hook_list" | "hook_clear" | "checkpoint_create"
            | "checkpoint_resume" => json!({ "taskId": "t1" }),
            "task_get" => json!({ "id": "t1" }),
            "task_list" => json!({}),
            "task_add" => json!({ "title": "more" }),
            "task_update" => json!({ "id": "t1", "status": "completed", "notes": "proven" }),
            other => panic!("{other} has no arguments here"),
        }
    }

    /// Returns the arguments that come closest to an effect.
    fn pushes(&self, tool: &str, effect: Effect) -> Vec<Value> {
        let shell = "touch canary; true";
        let rule = json!([{ "type": "command", "name": "r", "config": { "command": shell } }]);
        let more = match effect {
            Effect::RunsShellText => vec![
                json!({ "command": shell }),
                json!({ "validationRules": rule }),
                json!({ "hookType": shell }),
                json!({ "metadata": { "command": shell, "type": "command", "$(touch canary)": "`touch canary`" } }),
                json!({ "agentOutput": format!("$({shell}) `{shell}`"), "draftContent": shell }),
                json!({ "trigger": shell, "agentContext": { "command": shell } }),
                json!({ "title": format!("$({shell})"), "type": shell, "notes": format!("`{shell}`") }),
            ],
            Effect::ChangesTrust => vec![
                json!({ "trust": true }),
                json!({ "metadata": { "trust": "yes" } }),
                json!({ "yes": true, "force": true }),
            ],
            Effect::LoosensAGate => vec![
                json!({ "enabled": false }),
                json!({ "gates": [] }),
                json!({ "metadata": { "enabled": false, "gates": [], "on_failure": "open" } }),
                json!({ "stopWhen": "turn", "force": true }),
                json!({ "type": "ungated" }),
            ],
            Effect::RaisesALimit => vec![
                json!({ "maxIterations": MANY, "circuitBreakerThreshold": MANY }),
                json!({ "gate_retries": MANY }),
                json!({ "limits": { "max_iterations": MANY } }),
            ],
            Effect::CompletesWhatIsNotProven => vec![
                json!({}),
                json!({ "force": true }),
                json!({ "status": "completed", "notes": COMPLETE }),
                json!({ "completionPromise": "<promise>COMPLETE</promise>" }),
                json!({ "validationResult": { "overallPassed": true } }),
            ],
            Effect::WritesWithAStaleClaim => vec![json!({}), json!({ "epoch": 2, "force": true })],
        };
        let with = |more: Value| {
            let mut all = self.arguments(tool);
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        more.into_iter().map(with).collect()
    }

    fn assert_without(&self, effect: Effect, before: &Guarded, context: &str) {
        match effect {
            Effect::RunsShellText => {
                for place in [self.project.root(), self.project.root().join("..")] {
                    assert!(!place.join("canary").exists(), "{context}");
                }
            }
            Effect::ChangesTrust | Effect::LoosensAGate => {
                assert_eq!(self.guarded(), *before, "{context}");
            }
            Effect::RaisesALimit => {
                for event in self.project.events_from(1) {
                    if event["type"] == "session_started" {
                        let limits = &event["data"]["limits"];
                        assert_eq!(
                            (&limits["max_iterations"], &limits["gate_retries"]),
                            (&json!(4), &json!(3)),
                            "{context}"
                        );
                    }
                }
            }
            Effect::CompletesWhatIsNotProven => {
                assert_ne!(self.task()["state"], "completed", "{context}");
            }
            Effect::WritesWithAStaleClaim => {
                let task = self.task();
                let claim = (&task["state"], &task["claim"]["agent"]);
                assert_eq!(claim, (&json!("active"), &json!("thief")), "{context}");
            }
        }
    }
}

fn check(effect: Effect) {
    let mut scene = Scene::new();
    let before = scene.guarded();
    if effect == Effect::WritesWithAStaleClaim {
        scene.lose_the_claim();
    }
    for tool in TOOLS {
        for arguments in scene.pushes(tool, effect) {
            let events = scene.events_on_task();
            let context = format!("{tool} {arguments}");
            scene.client.call(tool, arguments);
            scene.assert_without(effect, &before, &context);
            if effect == Effect::WritesWithAStaleClaim {
                assert_eq!(scene.events_on_task(), events, "{context}");
            }
        }
    }
}

#[test]
fn no_tool_runs_shell_text() {
    check(Effect::RunsShellText);
}

#[test]
fn no_tool_changes_trust() {
    check(Effect::ChangesTrust);
}

#[test]
fn no_tool_loosens_a_gate() {
    check(Effect::LoosensAGate);
}

#[test]
fn no_tool_raises_a_limit() {
    check(Effect::RaisesALimit);
}

#[test]
fn no_tool_completes_a_task_with_failed_gates() {
    check(Effect::CompletesWhatIsNotProven);
}

#[test]
fn no_tool_writes_with_a_stale_claim() {
    check(Effect::WritesWithAStaleClaim);
}

/// With passing gates the same calls do complete the task: the tests above can fail.
#[test]
fn a_task_with_passed_gates_is_completed() {
    let mut scene = Scene::new();
    for name in ["green.txt", "valid.txt"] {
        fs::write(scene.project.root().join(name), "").unwrap();
    }
    for tool in ["iteration_validate", "task_update"] {
        let arguments = scene.arguments(tool);
        scene.client.ok(tool, arguments);
    }
    assert_eq!(scene.task()["state"], "completed");
}
