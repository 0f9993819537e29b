//! Checks that every request conforms to GitHub's API description.
//!
//! `.ci/forge-contract` installs the description in $HOOKLOOP_FORGE_CONTRACT, by default
//! ~/.cache/hookloop-forge.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hookloop_git::forge::{Forge, MergeMethod, MergeOptions, MergeRequestDraft};
use hookloop_testbed::github::{Described, Recorded, Route};
use serde_json::{Value, json};

use crate::ground::client;

/// Number of the example request in GitHub's description.
const EXAMPLE: u64 = 1347;
const BRANCH: &str = "new-topic";
const BASE: &str = "master";
const HEAD: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";

/// Returns the directory of the installed description. A test without it fails.
fn installed() -> PathBuf {
    let named = std::env::var_os("HOOKLOOP_FORGE_CONTRACT").map(PathBuf::from);
    let usual = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/hookloop-forge");
    let path = named.unwrap_or_else(usual);
    let is_there = path.join("api.json").exists();
    assert!(is_there, "{} has no api.json: `.ci/forge-contract` installs it", path.display());
    path
}

fn request_draft() -> MergeRequestDraft {
    MergeRequestDraft {
        branch: BRANCH.into(),
        base: BASE.into(),
        head: HEAD.into(),
        title: "A title".into(),
        body: "A text".into(),
        is_draft: true,
        labels: vec!["one".into(), "two".into()],
        reviewers: vec!["ada".into(), "team:core".into()],
    }
}

/// Sends every request with all of its parameters.
fn ask_for_everything(described: &Described) {
    let forge = client(&described.url());
    forge.find(BRANCH, BASE).unwrap();
    forge.open(&request_draft()).unwrap();
    forge.update(EXAMPLE, &MergeRequestDraft { base: "next".into(), ..request_draft() }).unwrap();
    // The example is not a draft, and only a draft can be made ready. It already has title and
    // body.
    let mut draft = example(described);
    draft["draft"] = true.into();
    let text = |name: &str| draft[name].as_str().unwrap().to_owned();
    let ready = MergeRequestDraft {
        is_draft: false,
        title: text("title"),
        body: text("body"),
        ..request_draft()
    };
    described.answer_next(Route::Get, 200, draft);
    forge.update(EXAMPLE, &ready).unwrap();
    forge.checks(HEAD).unwrap();
    for method in MergeMethod::ALL {
        let (head, title, message) = (HEAD.into(), "A title".into(), "A text".into());
        let how = MergeOptions { method, head, title, message };
        forge.merge(EXAMPLE, &how).unwrap();
        // After a failed merge the client asks for the reason.
        described.answer_next(Route::Merge, 405, json!({ "message": "no" }));
        assert!(forge.merge(EXAMPLE, &how).is_err());
    }
    ask_about_the_queue(described, &forge);
    forge.comment(EXAMPLE, "A text").unwrap();
    forge.close(EXAMPLE).unwrap();
}

/// Sends the requests for the merge queue, auto-merge and the rules of the base, which exist only
/// in GraphQL.
fn ask_about_the_queue(described: &Described, forge: &impl Forge) {
    let next = |data: Value| described.answer_next(Route::GraphQl, 200, json!({ "data": data }));
    next(json!({ "repository": { "mergeQueue": { "id": "MQ_1" } } }));
    assert!(forge.has_merge_queue(BASE).unwrap());
    let entry = json!({ "position": 1, "state": "QUEUED", "estimatedTimeToMerge": 60 });
    next(json!({ "enqueuePullRequest": { "mergeQueueEntry": entry } }));
    assert_eq!(forge.enqueue(EXAMPLE, HEAD).unwrap().position, 1);
    let empty = json!({ "nodes": [] });
    next(json!({ "repository": { "autoMergeAllowed": true, "pullRequest": {
        "state": "OPEN", "isDraft": false, "headRefOid": HEAD, "reviewDecision": null,
        "viewerCanEnableAutoMerge": true, "autoMergeRequest": null, "mergeQueue": null,
        "mergeQueueEntry": null, "timelineItems": empty, "baseRef": null, "reviewThreads": empty,
        "commits": empty,
    } } }));
    assert!(forge.merge_status(EXAMPLE).unwrap().is_ready());
    let (head, title, message) = (HEAD.into(), "A title".into(), "A text".into());
    let how = MergeOptions { method: MergeMethod::Squash, head, title, message };
    forge.enable_auto_merge(EXAMPLE, &how).unwrap();
}

/// Returns the example request of the description.
fn example(described: &Described) -> Value {
    let url = format!("{}/repos/octo/demo/pulls/{EXAMPLE}", described.url());
    let text = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns the query parameters of a request that the description does not contain.
fn unknown_names(description: &Value, request: &Recorded) -> Vec<String> {
    let (method, path) = request.route.unwrap().template();
    let operation = &description["paths"][path][method.to_lowercase()];
    let known = operation["parameters"].as_array().into_iter().flatten();
    let known: Vec<&str> = known.filter_map(|parameter| parameter["name"].as_str()).collect();
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    let names = query.split('&').filter_map(|pair| pair.split_once('='));
    let names = names.map(|(name, _)| name.to_owned());
    names.filter(|name| !known.contains(&name.as_str())).collect()
}

/// Returns the errors of each query according to GitHub's schema.
fn wrong_queries(directory: &Path, queries: &[String]) -> Vec<Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/forge-graphql.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .arg(directory.join("node_modules"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin.take().unwrap().write_all(json!(queries).to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_request_conforms_to_githubs_api_description() {
    let directory = installed();
    let described = Described::start(&directory);
    ask_for_everything(&described);
    let requests = described.requests();
    let description = std::fs::read_to_string(directory.join("api.json")).unwrap();
    let description: Value = serde_json::from_str(&description).unwrap();
    for request in &requests {
        let is_well = request.status.is_some_and(|status| status < 300);
        assert!(is_well, "GitHub does not describe {request:?}");
        assert_eq!(unknown_names(&description, request), [""; 0], "{request:?}");
    }
    let asked: BTreeSet<Route> = requests.iter().filter_map(|request| request.route).collect();
    assert_eq!(asked, BTreeSet::from(Route::ALL), "a route is not covered by this test");
    let graphql = requests.iter().filter(|request| request.route == Some(Route::GraphQl));
    let queries: BTreeSet<String> =
        graphql.map(|request| request.body["query"].as_str().unwrap().to_owned()).collect();
    let queries: Vec<String> = queries.into_iter().collect();
    assert_eq!(queries.len(), 6);
    assert_eq!(wrong_queries(&directory, &queries), [[""; 0]; 6]);
}

#[test]
fn requests_outside_githubs_api_description_are_refused() {
    let directory = installed();
    let described = Described::start(&directory);
    let ask = |method: &str, path: &str, body: Value| {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}/repos/octo/demo{path}", described.url()))
            .header("content-type", "application/json")
            .body(body.to_string())
            .unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build();
        ureq::Agent::from(agent).run(request).unwrap().status().as_u16()
    };
    let opened =
        |draft: Value| json!({ "head": BRANCH, "base": BASE, "title": "t", "draft": draft });
    assert_eq!(ask("POST", "/pulls", opened(true.into())), 201);
    assert_eq!(ask("POST", "/pulls", opened("yes".into())), 422);
    assert_eq!(ask("POST", "/pulls", json!({ "head": BRANCH, "title": "t" })), 422);
    assert_eq!(ask("PUT", "/pulls/1/merge", json!({ "merge_methd": "squash" })), 422);
    assert_eq!(ask("PUT", "/pulls/1/merge", json!({ "merge_method": "fast" })), 422);
    assert_eq!(ask("POST", "/issues/1/labels", json!({ "labels": 1 })), 422);
    assert_eq!(ask("POST", "/pulls/1/nothing", json!({})), 404);
    let wrong = wrong_queries(&directory, &["mutation { nothing }".to_owned()]);
    assert_eq!(wrong.len(), 1);
    assert!(!wrong[0].is_empty());
}
