//! Requests from opening to merging or closing.

use hookloop_git::forge::{
    CommitChecks, Forge, ForgeError, MergeMethod, MergeRequestDraft, RequestState,
};
use hookloop_testbed::github::{Check, Kind, Route, Says, State};

use crate::ground::{BRANCH, Ground};

#[test]
fn an_opened_pull_request_has_the_requested_fields_and_is_found() {
    let ground = Ground::new();
    assert_eq!(ground.forge.find(BRANCH, "main"), Ok(None));
    let draft = MergeRequestDraft { is_draft: true, ..ground.draft() };
    let request = ground.forge.open(&draft).unwrap();
    assert_eq!((request.number, request.is_draft), (Some(1), true));
    assert_eq!((&request.head, request.base.as_str()), (&draft.head, "main"));
    assert_eq!(request.state, RequestState::Open);
    assert!(request.url.as_deref().unwrap().ends_with("/octo/demo/pull/1"));
    let pull = &ground.hub.pulls()[0];
    assert_eq!((pull.title.as_str(), pull.body.as_str()), ("Do a", "It does a."));
    assert_eq!(pull.labels, ["agent"]);
    assert_eq!((&pull.reviewers[..], &pull.teams[..]), (&["ada".into()][..], &["core".into()][..]));
    assert_eq!(ground.forge.find(BRANCH, "main"), Ok(Some(request.clone())));
    assert_eq!(ground.forge.get(1), Ok(request));
    assert_eq!(ground.forge.find(BRANCH, "other"), Ok(None));
    assert_eq!(ground.forge.find("other", "main"), Ok(None));
}

#[test]
fn an_update_changes_only_differing_fields_and_removes_nothing() {
    let ground = Ground::new();
    ground.forge.open(&MergeRequestDraft { is_draft: true, ..ground.draft() }).unwrap();
    ground.hub.review(1, "ada");
    let before = ground.hub.requests().len();
    let same =
        ground.forge.update(1, &MergeRequestDraft { is_draft: true, ..ground.draft() }).unwrap();
    assert!(same.is_draft);
    // A user who has given a review is not asked for another, so there is no change.
    let asked: Vec<_> = ground.hub.requests()[before..].iter().map(|r| r.route).collect();
    assert_eq!(asked, [Some(Route::Get), Some(Route::Events)]);

    let draft = MergeRequestDraft {
        title: "Do a well".into(),
        labels: vec!["Agent".into(), "reviewed".into()],
        reviewers: vec!["ADA".into(), "bob".into()],
        ..ground.draft()
    };
    let request = ground.forge.update(1, &draft).unwrap();
    assert!(!request.is_draft);
    let pull = &ground.hub.pulls()[0];
    assert!(!pull.is_draft);
    assert_eq!((pull.title.as_str(), pull.body.as_str()), ("Do a well", "It does a."));
    assert_eq!(pull.labels, ["agent", "reviewed"]);
    assert_eq!((&pull.reviewers[..], &pull.teams[..]), (&["bob".into()][..], &["core".into()][..]));
    ground.forge.update(1, &MergeRequestDraft { is_draft: true, ..draft }).unwrap();
    assert!(ground.hub.pulls()[0].is_draft);
}

#[test]
fn the_base_of_a_pull_request_can_be_changed() {
    let ground = Ground::new();
    ground.bare(&["branch", "next", "main"]);
    ground.forge.open(&ground.draft()).unwrap();
    let request = ground
        .forge
        .update(1, &MergeRequestDraft { base: "next".into(), ..ground.draft() })
        .unwrap();
    assert_eq!(request.base, "next");
    let refused =
        ground.forge.update(1, &MergeRequestDraft { base: "nowhere".into(), ..ground.draft() });
    assert!(matches!(refused, Err(ForgeError::Permanent { .. })), "{refused:?}");
}

#[test]
fn each_merge_method_creates_its_commits() {
    for (method, parents, commits) in
        [(MergeMethod::Squash, 1, 2), (MergeMethod::Rebase, 1, 3), (MergeMethod::Merge, 2, 4)]
    {
        let ground = Ground::new();
        let base = ground.head("main");
        ground.forge.open(&ground.draft()).unwrap();
        let merged = ground.forge.merge(1, &ground.merge_options(method)).unwrap();
        assert_eq!(ground.head("main"), merged.commit, "{method}");
        let line = ground.bare(&["rev-list", "--parents", "-1", "main"]);
        assert_eq!(line.split(' ').count() - 1, parents, "{method}");
        assert_eq!(ground.bare(&["rev-list", "--count", "main"]), commits.to_string(), "{method}");
        assert_eq!(ground.bare(&["merge-base", &base, "main"]), base, "{method}");
        let trees =
            ["main^{tree}", &format!("{BRANCH}^{{tree}}")].map(|t| ground.bare(&["rev-parse", t]));
        assert_eq!(trees[0], trees[1], "{method}");
        let message = ground.bare(&["log", "-1", "--format=%B", "main"]);
        let own = if method == MergeMethod::Rebase { "b: one" } else { "Do a (#1)\n\nBecause." };
        assert_eq!(message, own, "{method}");
        let state = RequestState::Merged { commit: merged.commit.clone() };
        assert_eq!(ground.forge.get(1).unwrap().state, state);
        assert_eq!(ground.forge.find(BRANCH, "main").unwrap().unwrap().state, state);
        // A repeated merge returns the same result.
        assert_eq!(ground.forge.merge(1, &ground.merge_options(method)), Ok(merged), "{method}");
    }
}

#[test]
fn a_pull_request_is_merged_after_a_push_of_its_head_to_the_base() {
    let ground = Ground::new();
    ground.forge.open(&ground.draft()).unwrap();
    let head = ground.head(BRANCH);
    ground.work(&["push", "-q", "origin", &format!("{head}:refs/heads/main")]);
    let merged = RequestState::Merged { commit: head };
    assert_eq!(ground.forge.get(1).unwrap().state, merged);
    // A merged request is not updated any more.
    assert_eq!(ground.forge.update(1, &ground.draft()).unwrap().state, merged);
}

#[test]
fn find_prefers_open_to_merged_and_merged_to_closed_requests() {
    let ground = Ground::new();
    ground.forge.open(&ground.draft()).unwrap();
    ground.forge.merge(1, &ground.merge_options(MergeMethod::Squash)).unwrap();
    ground.commit(BRANCH, "c", "one");
    ground.forge.open(&ground.draft()).unwrap();
    ground.forge.close(2).unwrap();
    assert_eq!(ground.hub.pulls()[1].state, State::Closed);
    let number = || ground.forge.find(BRANCH, "main").unwrap().unwrap().number;
    assert_eq!(number(), Some(1));
    ground.forge.open(&ground.draft()).unwrap();
    assert_eq!(number(), Some(3));
    ground.forge.close(3).unwrap();
    ground.forge.close(3).unwrap();
    assert_eq!(number(), Some(1));
}

#[test]
fn pending_check_runs_and_statuses_are_reported_until_they_end() {
    let ground = Ground::new();
    let head = ground.head(BRANCH);
    assert_eq!(ground.forge.checks(&head), Ok(CommitChecks::None));
    ground.hub.check(Check::new(Kind::Run, "lint", [Says::Skipped]));
    assert_eq!(ground.forge.checks(&head), Ok(CommitChecks::None));
    ground.hub.check(Check::new(
        Kind::Run,
        "ci",
        [Says::Pending, Says::Passed, Says::Passed, Says::Failed],
    ));
    ground.hub.check(Check::new(Kind::Status, "old", [Says::Pending, Says::Pending, Says::Passed]));
    let pending = |names: &[&str]| {
        Ok(CommitChecks::Pending { names: names.iter().map(|n| (*n).into()).collect() })
    };
    assert_eq!(ground.forge.checks(&head), pending(&["ci", "old"]));
    assert_eq!(ground.forge.checks(&head), pending(&["old"]));
    assert_eq!(ground.forge.checks(&head), Ok(CommitChecks::Passed));
    let (names, urls) = (vec!["ci".into()], vec!["https://checks.example/ci".into()]);
    assert_eq!(ground.forge.checks(&head), Ok(CommitChecks::Failed { names, urls }));
}

#[test]
fn checks_on_many_pages_are_all_read() {
    let ground = Ground::new();
    for number in 0..120 {
        ground.hub.check(Check::new(Kind::Run, &format!("c{number:03}"), [Says::Passed]));
    }
    let head = ground.head(BRANCH);
    assert_eq!(ground.forge.checks(&head), Ok(CommitChecks::Passed));
    ground.hub.check(Check::new(Kind::Run, "last", [Says::Pending]));
    assert_eq!(
        ground.forge.checks(&head),
        Ok(CommitChecks::Pending { names: vec!["last".into()] })
    );
    // With more checks than are read, the result is an error.
    for number in 0..900 {
        ground.hub.check(Check::new(Kind::Run, &format!("d{number:03}"), [Says::Passed]));
    }
    assert!(matches!(ground.forge.checks(&head), Err(ForgeError::Permanent { .. })));
}

#[test]
fn comments_are_posted_to_the_pull_request() {
    let ground = Ground::new();
    ground.forge.open(&ground.draft()).unwrap();
    ground.forge.comment(1, "A word.").unwrap();
    assert_eq!(ground.hub.pulls()[0].comments, ["A word."]);
}

#[test]
fn special_characters_in_branch_names_do_not_change_the_route() {
    let ground = Ground::new();
    for branch in ["a/b", "x&state=closed", "q#1", "100%41", "ä", "plus+and space"] {
        assert_eq!(ground.forge.find(branch, "main"), Ok(None), "{branch}");
        let asked = ground.hub.requests().pop().unwrap();
        assert_eq!(asked.route, Some(Route::List), "{branch}");
        assert_eq!(asked.path.matches("state=").count(), 1, "{}", asked.path);
    }
    let hostile = "a/../b?x#y";
    assert_eq!(ground.forge.find(hostile, hostile), Ok(None));
    assert!(ground.forge.checks(hostile).is_err());
    assert!(ground.forge.checks("../../../../graphql").is_err());
    assert!(ground.hub.requests().iter().all(|request| request.route.is_some()));
}
