//! Failures of a forge, and the reaction to them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use hookloop_git::forge::{
    Forge, ForgeError, MergeMethod, MergeOptions, MergeRequestDraft, RequestState,
};
use hookloop_testbed::github::{Fault, Route};
use serde_json::json;

use crate::ground::{BRANCH, Ground, TOKEN, client};

fn is_retry<T>(result: &Result<T, ForgeError>) -> bool {
    matches!(result, Err(ForgeError::Retry { .. }))
}

fn is_stale<T>(result: &Result<T, ForgeError>) -> bool {
    matches!(result, Err(ForgeError::Stale { .. }))
}

fn needs_human<T>(result: &Result<T, ForgeError>) -> bool {
    matches!(result, Err(ForgeError::NeedsHuman { .. }))
}

#[test]
fn a_retry_after_a_lost_answer_opens_no_second_pull_request() {
    let ground = Ground::new();
    let draft = ground.draft();
    ground.hub.fail_at(Route::Open, 1, Fault::HangUpAfter);
    assert!(is_retry(&ground.forge.open(&draft)));
    let request = ground.forge.open(&draft).unwrap();
    assert_eq!(request.number, Some(1));
    assert_eq!(ground.hub.pulls().len(), 1);
    // The retry does the steps that failed the first time.
    assert_eq!(ground.hub.pulls()[0].labels, ["agent"]);
    assert_eq!(ground.hub.pulls()[0].reviewers, ["ada"]);
    assert_eq!(ground.hub.count(Route::Open), 1);
}

#[test]
fn a_failure_at_any_step_of_opening_leads_to_one_complete_pull_request() {
    // Every request of an opening is lost once, before or after its effect.
    for fault in [Fault::HangUp, Fault::HangUpAfter, Fault::status(500), Fault::status(502)] {
        for route in [Route::Open, Route::AddLabels, Route::Events, Route::AskForReview] {
            let ground = Ground::new();
            let draft = ground.draft();
            ground.hub.fail_at(route, 1, fault.clone());
            let first = ground.forge.open(&draft);
            assert!(is_retry(&first), "{route:?} {fault:?}: {first:?}");
            let number = ground.forge.open(&draft).unwrap().number;
            assert_eq!((number, ground.hub.pulls().len()), (Some(1), 1), "{route:?} {fault:?}");
            let pull = &ground.hub.pulls()[0];
            assert_eq!(pull.labels, ["agent"], "{route:?} {fault:?}");
            assert_eq!(pull.reviewers, ["ada"], "{route:?} {fault:?}");
            assert_eq!(pull.teams, ["core"], "{route:?} {fault:?}");
        }
    }
}

#[test]
fn a_retry_after_a_lost_answer_merges_once() {
    let ground = Ground::new();
    ground.forge.open(&ground.draft()).unwrap();
    let how = ground.merge_options(MergeMethod::Squash);
    ground.hub.fail_at(Route::Merge, 1, Fault::HangUpAfter);
    assert!(is_retry(&ground.forge.merge(1, &how)));
    let commit = ground.head("main");
    assert_eq!(ground.forge.merge(1, &how).unwrap().commit, commit);
    assert_eq!(ground.head("main"), commit);
    assert_eq!(ground.forge.get(1).unwrap().state, RequestState::Merged { commit });
}

#[test]
fn updates_and_merges_of_another_head_are_refused_as_stale() {
    let ground = Ground::new();
    let (draft, how) = (ground.draft(), ground.merge_options(MergeMethod::Squash));
    ground.forge.open(&draft).unwrap();
    let base = ground.head("main");
    let head = ground.commit(BRANCH, "c", "pushed by another");
    assert!(is_stale(&ground.forge.update(1, &MergeRequestDraft { title: "New".into(), ..draft })));
    assert_eq!(ground.hub.pulls()[0].title, "Do a");
    assert!(is_stale(&ground.forge.merge(1, &how)));
    assert_eq!(ground.head("main"), base);
    // Another user merged the request with more commits than requested.
    ground.forge.merge(1, &MergeOptions { head, ..how.clone() }).unwrap();
    assert!(is_stale(&ground.forge.merge(1, &how)));
}

#[test]
fn an_unpushed_branch_or_unknown_commit_is_a_stale_error() {
    let ground = Ground::new();
    let draft = MergeRequestDraft { branch: "unpushed".into(), ..ground.draft() };
    assert!(is_stale(&ground.forge.open(&draft)));
    let draft = MergeRequestDraft { base: "nowhere".into(), ..ground.draft() };
    assert!(matches!(ground.forge.open(&draft), Err(ForgeError::Permanent { .. })));
    let unknown = "0123456789012345678901234567890123456789";
    assert!(is_stale(&ground.forge.checks(unknown)));
}

#[test]
fn opening_a_branch_without_own_commits_is_a_permanent_error() {
    let ground = Ground::new();
    ground.bare(&["branch", "-f", BRANCH, "main"]);
    let refused = ground.forge.open(&ground.draft());
    assert!(matches!(refused, Err(ForgeError::Permanent { .. })), "{refused:?}");
}

#[test]
fn a_merge_conflict_is_behind_and_unknown_mergeability_is_stale() {
    let ground = Ground::new();
    ground.forge.open(&ground.draft()).unwrap();
    ground.commit_to_base("a", "another");
    let merged = ground.forge.merge(1, &ground.merge_options(MergeMethod::Merge));
    assert!(matches!(merged, Err(ForgeError::Behind { .. })), "{merged:?}");
    let ground = Ground::new();
    ground.forge.open(&ground.draft()).unwrap();
    // Once for the merge, once for the query of the reason.
    ground.hub.ponder(2);
    assert!(is_stale(&ground.forge.merge(1, &ground.merge_options(MergeMethod::Merge))));
    ground.forge.merge(1, &ground.merge_options(MergeMethod::Merge)).unwrap();
}

#[test]
fn merges_refused_by_rules_drafts_or_closed_requests_need_a_person() {
    let ground = Ground::new();
    ground.forge.open(&ground.draft()).unwrap();
    let how = ground.merge_options(MergeMethod::Squash);
    ground.hub.protect(true);
    let refused = ground.forge.merge(1, &how).unwrap_err();
    assert!(matches!(refused, ForgeError::Unmet { needs_person: true, .. }), "{refused:?}");
    assert!(refused.to_string().contains("an approving review"), "{refused}");
    ground.hub.protect(false);
    ground.hub.allow(&["merge"]);
    let refused = ground.forge.merge(1, &how);
    assert!(needs_human(&refused), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("squash"));
    ground.hub.allow(&["squash"]);
    ground.forge.update(1, &MergeRequestDraft { is_draft: true, ..ground.draft() }).unwrap();
    assert!(needs_human(&ground.forge.merge(1, &how)));
    ground.forge.close(1).unwrap();
    assert!(needs_human(&ground.forge.merge(1, &how)));
    assert!(needs_human(&ground.forge.update(1, &ground.draft())));
}

#[test]
fn rate_limits_are_retried_after_the_requested_delay() {
    let ground = Ground::new();
    let body = json!({ "message": "You have exceeded a secondary rate limit" });
    let headers = vec![("Retry-After".to_owned(), "30".to_owned())];
    for status in [403, 429] {
        ground.hub.fail(1, Fault::Answer { status, headers: headers.clone(), body: body.clone() });
        let Err(ForgeError::Retry { after, .. }) = ground.forge.get(1) else { panic!("{status}") };
        assert_eq!(after, Some(Duration::from_secs(30)), "{status}");
    }
    ground.hub.fail(1, Fault::status(403));
    assert!(needs_human(&ground.forge.get(1)));
    ground.hub.fail(1, Fault::status(401));
    assert!(needs_human(&ground.forge.get(1)));
    assert!(matches!(ground.forge.get(7), Err(ForgeError::Permanent { .. })));
}

#[test]
fn the_token_is_redacted_from_all_errors() {
    let ground = Ground::new();
    let encoded = data_url(TOKEN);
    let headers = vec![("x-echo".to_owned(), TOKEN.to_owned())];
    // Redaction must come before truncation, which would otherwise leave half of the token at the
    // end.
    let padding = "x".repeat(480);
    for status in [301, 400, 401, 403, 404, 409, 422, 429, 500] {
        let body = json!({
            "message": format!("bad token {TOKEN} {encoded}"),
            "documentation_url": TOKEN,
            "errors": [{ "field": TOKEN, "code": TOKEN, "message": format!("{padding}{TOKEN}") }, TOKEN],
        });
        ground.hub.fail(1, Fault::Answer { status, headers: headers.clone(), body });
        let error = ground.forge.get(1).unwrap_err();
        let told = format!("{error} {error:?}");
        for secret in [TOKEN, &TOKEN[..10], &encoded] {
            assert!(!told.contains(secret), "{status}: {told}");
        }
    }
    let body = json!({ "errors": [{ "type": TOKEN, "message": format!("no {TOKEN}") }] });
    ground.forge.open(&ground.draft()).unwrap();
    ground.hub.fail_at(Route::GraphQl, 1, Fault::Answer { status: 200, headers, body });
    let error = ground
        .forge
        .update(1, &MergeRequestDraft { is_draft: true, ..ground.draft() })
        .unwrap_err();
    assert!(!format!("{error} {error:?}").contains(TOKEN), "{error:?}");
    assert!(!format!("{:?}", ground.forge).contains(TOKEN));
}

/// Returns the text as it appears in a URL.
fn data_url(text: &str) -> String {
    text.replace('_', "%5F")
}

/// Starts a server that answers every request with these bytes; the thread returns the number of
/// bytes it read.
fn server(answer: String) -> (String, std::thread::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let read = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        read
    });
    (url, served)
}

#[test]
fn redirects_are_not_followed_with_the_token() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = format!("http://{}/repos/octo/demo/pulls/1", elsewhere.local_addr().unwrap());
    for status in [301, 302, 307, 308] {
        let (url, served) = server(format!(
            "HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ));
        let error = client(&url).get(1).unwrap_err();
        assert!(matches!(error, ForgeError::Permanent { .. }), "{status}: {error:?}");
        assert!(served.join().unwrap() > 0);
    }
    elsewhere.set_nonblocking(true).unwrap();
    let visitor = elsewhere.accept().unwrap_err();
    assert_eq!(visitor.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn malformed_answers_and_refused_connections_are_retryable() {
    for (body, length) in [("<html>", 6), ("{}", 2), (r#"{"number": 1"#, 12), ("", 100)] {
        let (url, served) = server(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ));
        let answer = client(&url).get(1);
        assert!(is_retry(&answer), "{body}: {answer:?}");
        served.join().unwrap();
    }
    // No process listens on this address.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(is_retry(&client(&format!("http://{gone}")).get(1)));
}
