//! The list of tools, and calls that are refused before a tool runs.

pub(crate) use hookloop_agents::tools::TOOLS;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::mcp::PLAIN;
use crate::mcp::client::{Called, Client, VERSIONS};
use crate::mcp::http::Server;
use crate::support::{empty_project, project_with};

/// The maximum size of `tools/list`, in tokens.
const TOKENS_MAX: usize = 2_500;
/// The digest of the answer to `tools/list`. Agents read that text as instructions, so a change of
/// it has to change this constant.
const DIGEST: &str = "077bdc19af159103f68328f39d9d859c1b89e76797d53815fab77b45dba1cdf3";

fn listed(client: &mut Client) -> Value {
    client.request("tools/list", json!({}))["result"].clone()
}

/// Returns arguments that match the schema of a tool.
pub(crate) fn fitting(tool: &Value) -> Value {
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let value = |(name, schema): (&String, &Value)| {
        let value = match (name.as_str(), schema["type"].as_str()) {
            ("completionPromise", _) => json!("COMPLETE"),
            ("completionPromises", _) => json!(["COMPLETE"]),
            ("status", _) => json!("ready"),
            (_, Some("integer")) => json!(1),
            (_, Some("array")) => json!([]),
            (_, Some("object") | None) => json!({}),
            _ => schema["enum"].get(0).cloned().unwrap_or(json!("x")),
        };
        (name.clone(), value)
    };
    Value::Object(properties.iter().map(value).collect())
}

#[test]
fn the_tool_list_stays_small_and_unchanged() {
    let project = project_with(PLAIN);
    let list = listed(&mut Client::ready(&project));
    let names: Vec<&str> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, TOOLS);
    let text = list.to_string();
    for noise in ["$schema", "$defs", "title\":{\"title", "outputSchema", "resultType"] {
        assert!(!text.contains(noise), "{noise} in {text}");
    }
    let tokens = hookloop_testbed::tokens::count(&text);
    assert!(tokens <= TOKENS_MAX, "{tokens} tokens");
    let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, DIGEST, "{tokens} tokens: {text}");
}

#[test]
fn the_tool_list_is_the_same_for_all_versions_transports_and_projects() {
    let project = project_with(PLAIN);
    let expected = listed(&mut Client::ready(&project));
    for version in VERSIONS {
        let mut client = Client::start(&project);
        client.initialize(version);
        assert_eq!(listed(&mut client), expected);
    }
    let server = Server::start(&project);
    assert_eq!(server.request("tools/list", json!({}))["result"], expected);
    // The list contains nothing of a repository.
    let elsewhere = empty_project();
    assert_eq!(listed(&mut Client::ready(&elsewhere)), expected);
}

#[test]
fn every_tool_can_be_called_and_answers_in_both_forms() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let server = Server::start(&project);
    for tool in listed(&mut client)["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        for called in [client.call(name, fitting(tool)), server.call(name, fitting(tool))] {
            let code = &called.value["error"]["code"];
            assert!(!called.is_error || code != "invalid_argument", "{name}: {called:?}");
        }
    }
}

/// Wrong arguments give a result that is an error, never an error of the protocol.
#[test]
fn invalid_arguments_are_reported_as_a_tool_error() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    for tool in listed(&mut client)["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let mut unknown = fitting(tool);
        unknown["frobnicate"] = json!(1);
        let error = client.refused(name, unknown);
        assert_eq!(error["code"], "invalid_argument");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("`frobnicate`"), "{message}");
        for needed in tool["inputSchema"]["required"].as_array().into_iter().flatten() {
            assert!(message.contains(needed.as_str().unwrap()), "{message}");
            let mut without = fitting(tool);
            without.as_object_mut().unwrap().remove(needed.as_str().unwrap());
            let error = client.refused(name, without);
            assert_eq!(error["message"], format!("`{}` is missing", needed.as_str().unwrap()));
        }
    }
    let error = client.refused("hook_register", json!({ "taskId": "a", "hookType": "rm -rf /" }));
    assert_eq!(error["message"], "`hookType` should be one of default, validation, promise");
    let error = client.refused("task_list", json!({ "status": "done" }));
    assert!(error["message"].as_str().unwrap().contains("created, ready"), "{error}");
    let error = client
        .refused("iteration_complete", json!({ "iterationId": "x", "completionPromise": "done" }));
    assert_eq!(error["code"], "invalid_argument");
}

#[test]
fn validation_rules_with_commands_are_refused() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let rules = json!([{ "name": "t", "command": "touch /tmp/x" }]);
    let error =
        client.refused("iteration_start", json!({ "taskId": "a", "validationRules": rules }));
    assert_eq!(error["code"], "not_allowed");
    assert!(error["next"].as_str().unwrap().contains("`validation:` in hookloop.yaml"), "{error}");
}

/// No tool has an argument for any of these.
#[test]
fn no_tool_accepts_arguments_reserved_for_people() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let names = [
        "command",
        "script",
        "shell",
        "run",
        "callback",
        "http",
        "url",
        "env",
        "hooks",
        "rules",
        "validationRules",
        "gates",
        "skipGates",
        "enabled",
        "disabled",
        "trust",
        "digest",
        "limits",
        "budget",
        "force",
        "epoch",
        "claim",
        "policy",
        "config",
        "state",
        "cwd",
        "path",
    ];
    for tool in listed(&mut client)["tools"].as_array().unwrap() {
        for name in names {
            let mut arguments = fitting(tool);
            arguments[name] = json!("touch /tmp/x");
            let error = client.refused(tool["name"].as_str().unwrap(), arguments);
            let code = error["code"].as_str().unwrap();
            assert!(["invalid_argument", "not_allowed"].contains(&code), "{name}: {error}");
        }
    }
}

#[test]
fn an_unknown_tool_is_a_protocol_error() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    for params in [json!({ "name": "rm" }), json!({ "name": 3 }), json!({})] {
        let answer = client.request("tools/call", params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    client.is_alive();
}

#[test]
fn tool_calls_without_a_project_suggest_init() {
    let project = empty_project();
    let mut client = Client::ready(&project);
    let error = client.refused("task_list", json!({}));
    assert_eq!(error["code"], "no_project");
    assert_eq!(error["next"], "ask your user to run: hookloop init");
    assert_eq!(client.request("resources/list", json!({}))["result"]["resources"], json!([]));
    // The server finds the project as soon as it exists.
    project.init();
    let called = client.call("task_list", json!({}));
    assert_ne!(called.value["error"]["code"], "no_project");
}

#[test]
fn a_changed_configuration_is_read_at_the_next_tool_call() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    let code = |called: Called| called.value["error"]["code"].clone();
    assert_ne!(code(client.call("task_list", json!({}))), "misconfigured");
    let path = project.root().join("hookloop.yaml");
    std::fs::write(&path, "version: 1\nhooks: 3\n").unwrap();
    assert_eq!(code(client.call("task_list", json!({}))), "misconfigured");
    std::fs::write(&path, PLAIN).unwrap();
    assert_ne!(code(client.call("task_list", json!({}))), "misconfigured");
}

#[test]
fn reading_an_unknown_resource_is_an_error() {
    let project = project_with(PLAIN);
    let mut client = Client::ready(&project);
    assert_eq!(client.request("resources/list", json!({}))["result"]["resources"], json!([]));
    for uri in ["hookloop://nothing", "file:///etc/passwd", "hookloop://task/current"] {
        let answer = client.request("resources/read", json!({ "uri": uri }));
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri);
        assert!(answer["error"]["data"]["error"]["next"].is_string(), "{answer}");
    }
}

#[test]
fn the_session_and_run_options_are_required_together() {
    let project = project_with(PLAIN);
    for args in [vec!["mcp", "--session", "abc"], vec!["mcp", "--run", "1"]] {
        assert_eq!(project.json_command(&args).output().unwrap().status.code(), Some(2));
    }
    let mut client = Client::start_with(&project, &["--session", "abc", "--run", "1"]);
    client.initialize(VERSIONS[0]);
    client.is_alive();
}
