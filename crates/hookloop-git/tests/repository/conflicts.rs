//! Conflicts that an agent resolves by editing the files.

use std::fs;

use hookloop_git::repo::{
    CommitId, RebaseResult, Repo, RepoError, SettledRequest, UnfinishedOperation, WorkState,
    Worktree,
};

use crate::fixture::{RepositoryFixture, read, task, write};

/// Returns a worktree whose commits conflict with the target in `file`; the target also has a new
/// file `new`, and has changed `also`.
fn conflict<'b>(fixture: &'b RepositoryFixture) -> (Repo<'b>, Worktree, CommitId) {
    fixture.others_change("also", "also\n");
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "file", "1\n2\nours\n4\n5\n");
    write(&w, "own", "own\n");
    repo.commit_all(&w, "ours").unwrap().unwrap();
    fixture.others_change("also", "also theirs\n");
    fixture.others_change("new", "new\n");
    fixture.others_change("file", "1\n2\ntheirs\n4\n5\n");
    let onto = repo.newest_base().unwrap();
    assert!(matches!(repo.rebase(&w, &onto).unwrap(), RebaseResult::Conflict { .. }));
    (repo, w, onto)
}

fn unresolved(settled: SettledRequest) -> (Vec<String>, String) {
    match settled {
        SettledRequest::Unresolved { files, why } => (files, why),
        settled => panic!("{settled:?}"),
    }
}

#[test]
fn a_conflict_is_resolved_when_its_files_have_no_markers() {
    let fixture = RepositoryFixture::new();
    let (repo, w, onto) = conflict(&fixture);
    let head = repo.head(&w).unwrap();
    assert_eq!(repo.settle_conflict(&w).unwrap(), SettledRequest::Nothing);
    let index = fixture.checkout().join(".git/worktrees/t1/index");
    let index_before = fs::read(&index).unwrap();
    let laid_out = repo.lay_out_conflict(&w, &onto).unwrap();
    assert_eq!(laid_out.onto, onto);
    assert_eq!(laid_out.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["file"]);
    assert!(read(&w, "file").contains("<<<<<<< ") && read(&w, "file").contains("theirs\n>>>>>>> "));
    assert_eq!(
        (read(&w, "also"), read(&w, "new")),
        ("also theirs\n".to_owned(), "new\n".to_owned())
    );
    assert_eq!(repo.head(&w).unwrap(), head);
    assert_eq!(fs::read(&index).unwrap(), index_before, "the index stays");
    let (files, why) = unresolved(repo.settle_conflict(&w).unwrap());
    assert_eq!(files, ["file"]);
    assert!(why.contains("markers"), "{why}");
    assert_eq!(repo.state(&w).unwrap(), WorkState::Unfinished(UnfinishedOperation::LaidOut));
    let refused = repo.commit_all(&w, "with markers");
    assert!(matches!(refused, Err(RepoError::Unfinished { .. })), "{refused:?}");
    // A half-resolved conflict is not laid out again.
    write(&w, "file", "1\n2\nours and theirs\n4\n5\n");
    assert_eq!(repo.lay_out_conflict(&w, &onto).unwrap(), laid_out);
    let SettledRequest::Done { commit } = repo.settle_conflict(&w).unwrap() else { panic!() };
    assert_eq!(repo.head(&w).unwrap(), commit);
    let parents = fixture.git(&w.path, &["log", "-1", "--format=%P"]);
    assert_eq!(parents, format!("{head} {onto}"));
    assert_eq!(fixture.git(&w.path, &["show", "HEAD:file"]), "1\n2\nours and theirs\n4\n5");
    assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), "");
    assert_eq!(repo.settle_conflict(&w).unwrap(), SettledRequest::Nothing);
    assert_eq!(repo.rebase(&w, &onto).unwrap(), RebaseResult::UpToDate);
    assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
    // The next change of the target is merged on top, without the same conflict.
    fixture.others_change("later", "later\n");
    let onto = repo.newest_base().unwrap();
    assert!(matches!(repo.rebase(&w, &onto).unwrap(), RebaseResult::Done { .. }));
    assert_eq!(read(&w, "file"), "1\n2\nours and theirs\n4\n5\n");
}

#[test]
fn a_resolution_that_drops_changes_of_the_target_is_refused() {
    let fixture = RepositoryFixture::new();
    let (repo, w, onto) = conflict(&fixture);
    repo.lay_out_conflict(&w, &onto).unwrap();
    let both = "1\n2\nboth\n4\n5\n";
    let check = |what: &str, expected: &[&str]| {
        let (files, why) = unresolved(repo.settle_conflict(&w).unwrap());
        assert_eq!(files, expected, "{what}: {why}");
    };
    write(&w, "file", "1\n2\nours\n4\n5\n");
    check("reset to its own side", &["file"]);
    write(&w, "file", both);
    write(&w, "also", "also\n");
    check("a file that had no conflict, put back", &["also"]);
    write(&w, "also", "also theirs\n");
    fs::remove_file(w.path.join("new")).unwrap();
    check("a file that the target added, removed", &["new"]);
    write(&w, "new", "new\n");
    fs::remove_file(w.path.join("also")).unwrap();
    check("a file that the target changed, removed", &["also"]);
    fixture.git(&w.path, &["checkout", "--quiet", "--", "."]);
    fs::remove_file(w.path.join("new")).unwrap();
    check("all of it thrown away", &["also", "file", "new"]);
    write(&w, "also", "also theirs, and more\n");
    write(&w, "new", "new, changed\n");
    write(&w, "file", "1\n2\ntheirs\n4\n5\n");
    // Taking the other side is a valid resolution, and so is deleting a file of the branch.
    fs::remove_file(w.path.join("own")).unwrap();
    let SettledRequest::Done { commit } = repo.settle_conflict(&w).unwrap() else { panic!() };
    let files = fixture.git(&w.path, &["ls-tree", "--name-only", commit.as_str()]);
    assert_eq!(files, ".gitignore\nalso\nfile\nnew");
}

#[test]
fn an_agent_can_resolve_a_conflict_with_its_own_git_commands() {
    let fixture = RepositoryFixture::new();
    let (repo, w, onto) = conflict(&fixture);
    repo.lay_out_conflict(&w, &onto).unwrap();
    let git = |args: &[&str]| fixture.git(&w.path, args);
    // The agent discards the laid-out conflict, and merges.
    git(&["reset", "--quiet", "--hard"]);
    git(&["clean", "--quiet", "-fd"]);
    assert!(
        !fixture.command(&w.path, &["merge", onto.as_str()]).output().unwrap().status.success()
    );
    let (_, why) = unresolved(repo.settle_conflict(&w).unwrap());
    assert!(why.contains("in the middle of a merge"), "{why}");
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "-m", "with markers"]);
    let (files, _) = unresolved(repo.settle_conflict(&w).unwrap());
    assert_eq!(files, ["file"], "committed markers are markers");
    write(&w, "file", "1\n2\nboth\n4\n5\n");
    git(&["commit", "--quiet", "-am", "without"]);
    let head = repo.head(&w).unwrap();
    assert_eq!(repo.settle_conflict(&w).unwrap(), SettledRequest::Done { commit: head });
}

#[test]
fn a_merge_with_strategy_ours_does_not_resolve_a_conflict() {
    let fixture = RepositoryFixture::new();
    let (repo, w, onto) = conflict(&fixture);
    repo.lay_out_conflict(&w, &onto).unwrap();
    let git = |args: &[&str]| fixture.git(&w.path, args);
    git(&["reset", "--quiet", "--hard"]);
    git(&["clean", "--quiet", "-fd"]);
    git(&["merge", "--quiet", "-s", "ours", "-m", "ours", onto.as_str()]);
    let (files, _) = unresolved(repo.settle_conflict(&w).unwrap());
    assert_eq!(files, ["also", "file", "new"]);
}

#[test]
fn a_file_deleted_by_one_side_is_a_conflict() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    fs::remove_file(w.path.join("file")).unwrap();
    repo.commit_all(&w, "gone").unwrap();
    fixture.others_change("file", "1\n2\n3\n4\n5\n6\n");
    let onto = repo.newest_base().unwrap();
    let RebaseResult::Conflict { files } = repo.rebase(&w, &onto).unwrap() else { panic!() };
    assert!(files[0].excerpt.contains("deleted"), "{files:?}");
    repo.lay_out_conflict(&w, &onto).unwrap();
    assert_eq!(read(&w, "file"), "1\n2\n3\n4\n5\n6\n");
    fs::remove_file(w.path.join("file")).unwrap();
    let (files, _) = unresolved(repo.settle_conflict(&w).unwrap());
    assert_eq!(files, ["file"]);
    write(&w, "file", "1\n2\n3\n4\n5\n6\n");
    assert!(matches!(repo.settle_conflict(&w).unwrap(), SettledRequest::Done { .. }));
}

#[test]
fn a_conflict_is_not_laid_out_over_uncommitted_work() {
    let fixture = RepositoryFixture::new();
    let (repo, w, onto) = conflict(&fixture);
    write(&w, "unsaved", "work\n");
    assert!(matches!(repo.lay_out_conflict(&w, &onto), Err(RepoError::Dirty(_))));
    assert_eq!(read(&w, "file"), "1\n2\nours\n4\n5\n");
}
