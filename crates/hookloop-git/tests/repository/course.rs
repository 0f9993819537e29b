//! All operations on a repository, once.

use hookloop_git::repo::{
    BranchFate, CommitId, LandedCommit, MergeHow, MergeMethod, MergedOnto, PushResult,
    RebaseResult, RemovedWorktree, Repo, SettledRequest, UnsavedWork, WorkState, Worktree,
    WorktreeRemoval,
};

use crate::fixture::{RepositoryFixture, task, write};

/// Changes the target as another user; without a remote, in the user's own branch.
fn others_change(fixture: &RepositoryFixture, repo: &Repo<'_>, file: &str, text: &str) -> CommitId {
    let commit = fixture.others_change(file, text);
    if repo.target().remote.is_none() {
        let other = fixture.path().join("other");
        let args =
            ["fetch", "--quiet", "--no-write-fetch-head", other.to_str().unwrap(), "main:main"];
        fixture.in_checkout_unhindered(&args);
    }
    assert_eq!(repo.newest_base().unwrap(), commit);
    commit
}

/// Runs all operations; `plant` stands for the agent's changes to its worktree.
pub(crate) fn course(fixture: &RepositoryFixture, plant: &dyn Fn(&Worktree)) {
    let repo = fixture.repo();
    let has_remote = repo.target().remote.is_some();
    let w = repo.worktree(&task("c1")).unwrap();
    plant(&w);
    write(&w, "own", "own\n");
    write(&w, "file", "1\n2\nours\n4\n5\n");
    assert_eq!(repo.state(&w).unwrap(), WorkState::Dirty);
    repo.commit_all(&w, "work").unwrap().unwrap();
    assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
    let w = repo.worktree(&w.task).unwrap();
    let push = |expected: PushResult| {
        if has_remote {
            assert_eq!(repo.push(&w.branch, &repo.head(&w).unwrap()).unwrap(), expected);
        }
    };
    push(PushResult::Done);
    let onto = others_change(fixture, &repo, "theirs", "theirs\n");
    assert!(matches!(repo.rebase(&w, &onto).unwrap(), RebaseResult::Done { .. }));
    push(PushResult::Done);
    push(PushResult::AlreadyThere);
    let onto = others_change(fixture, &repo, "file", "1\n2\ntheirs\n4\n5\n");
    assert!(matches!(repo.rebase(&w, &onto).unwrap(), RebaseResult::Conflict { .. }));
    repo.lay_out_conflict(&w, &onto).unwrap();
    assert!(matches!(repo.settle_conflict(&w).unwrap(), SettledRequest::Unresolved { .. }));
    write(&w, "file", "1\n2\nboth\n4\n5\n");
    let SettledRequest::Done { commit: head } = repo.settle_conflict(&w).unwrap() else { panic!() };
    assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
    push(PushResult::Done);
    let diff = repo.diff(&onto, &head, 100_000).unwrap();
    assert!(diff.text.contains("+both") && diff.files.len() >= 2, "{diff:?}");
    assert_eq!(repo.worktrees().unwrap().len(), 1);
    let tip = others_change(fixture, &repo, "later", "later\n");
    let mut landing = None;
    for method in [MergeMethod::Rebase, MergeMethod::Merge, MergeMethod::Squash] {
        let how = MergeHow { method, message: "landed".to_owned() };
        let merged = repo.merge_onto(&tip, &head, &how).unwrap();
        let MergedOnto::Done { commit, .. } = merged else { panic!("{merged:?}") };
        let scratch = repo.scratch(&commit, "look").unwrap();
        assert!(scratch.project.join("later").exists() || scratch.path.join("later").exists());
        landing = Some(commit);
    }
    assert_eq!(repo.land(&landing.unwrap(), &tip).unwrap(), LandedCommit::Done);
    if has_remote {
        repo.delete_remote(&w.branch, &head).unwrap();
    }
    let unsaved = UnsavedWork::Stays { delivered: Some(head) };
    let how = WorktreeRemoval { branch: BranchFate::Deleted, unsaved };
    assert_eq!(repo.remove_worktree(&w.task, &how).unwrap(), RemovedWorktree::Done);
}
