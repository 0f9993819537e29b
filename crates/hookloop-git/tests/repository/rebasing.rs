//! Rebasing of work onto a target that has moved.

use std::fs;

use hookloop_git::repo::{RebaseResult, RepoError, WorkState};

use crate::fixture::{RepositoryFixture, read, snapshot, task, write};

#[test]
fn each_commit_is_rebased_onto_the_target() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    assert_eq!(repo.rebase(&w, &w.base).unwrap(), RebaseResult::UpToDate);
    for (name, text) in [("file", "1\n2\n3\n4\nfive\n"), ("second", "2\n")] {
        write(&w, name, text);
        repo.commit_all(&w, &format!("work on {name}\n\nwith a body")).unwrap().unwrap();
    }
    write(&w, ".env", "ignored, and in nobody's way\n");
    // Rewritten with the same contents.
    let same = read(&w, "file");
    std::fs::remove_file(w.path.join("file")).unwrap();
    write(&w, "file", &same);
    let before = repo.head(&w).unwrap();
    fixture.others_change("file", "one\n2\n3\n4\n5\n");
    let onto = fixture.others_change("dir/new", "new\n");
    assert_eq!(repo.newest_base().unwrap(), onto);
    let RebaseResult::Done { from, to } = repo.rebase(&w, &onto).unwrap() else { panic!() };
    assert_eq!((&from, &to), (&before, &repo.head(&w).unwrap()));
    assert_eq!(read(&w, "file"), "one\n2\n3\n4\nfive\n");
    assert_eq!((read(&w, "dir/new"), read(&w, "second")), ("new\n".to_owned(), "2\n".to_owned()));
    let git = |args: &[&str]| fixture.git(&w.path, args);
    assert_eq!(git(&["log", "--format=%an %s", "-2"]), "User work on second\nUser work on file");
    assert_eq!(git(&["log", "--format=%b", "-1"]), "with a body");
    assert_eq!(git(&["rev-parse", "HEAD~2"]), onto.as_str());
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(git(&["rev-parse", "refs/hookloop/kept/t1/1"]), before.as_str());
    assert_eq!(repo.worktree(&w.task).unwrap().base, onto);
    assert_eq!(repo.rebase(&w, &onto).unwrap(), RebaseResult::UpToDate);
}

#[test]
fn commits_already_in_the_target_are_dropped() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "same", "same\n");
    repo.commit_all(&w, "same").unwrap();
    write(&w, "own", "own\n");
    repo.commit_all(&w, "own").unwrap();
    let onto = fixture.others_change("same", "same\n");
    repo.newest_base().unwrap();
    assert!(matches!(repo.rebase(&w, &onto).unwrap(), RebaseResult::Done { .. }));
    assert_eq!(repo.ahead(&onto, &repo.head(&w).unwrap()).unwrap(), 1);
}

#[test]
fn a_branch_with_merges_keeps_them() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "own", "own\n");
    let own = repo.commit_all(&w, "own").unwrap().unwrap();
    let first = fixture.others_change("a", "a\n");
    repo.newest_base().unwrap();
    fixture.in_checkout(&["fetch", "--quiet", "origin"]);
    fixture.git(&w.path, &["merge", "--quiet", "--no-ff", "-m", "merged", first.as_str()]);
    let onto = fixture.others_change("b", "b\n");
    repo.newest_base().unwrap();
    assert!(matches!(repo.rebase(&w, &onto).unwrap(), RebaseResult::Done { .. }));
    let head = repo.head(&w).unwrap();
    assert!(repo.is_ancestor(&own, &head).unwrap() && repo.is_ancestor(&onto, &head).unwrap());
    assert_eq!((read(&w, "a"), read(&w, "b")), ("a\n".to_owned(), "b\n".to_owned()));
}

#[test]
fn a_conflict_leaves_the_worktree_unchanged() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "first", "fits\n");
    repo.commit_all(&w, "fits").unwrap();
    write(&w, "file", "1\n2\nours\n4\n5\n");
    let head = repo.commit_all(&w, "does not").unwrap().unwrap();
    fixture.others_change("file", "1\n2\ntheirs\n4\n5\n");
    let onto = repo.newest_base().unwrap();
    // Reading the state first, because it may update the index.
    repo.state(&w).unwrap();
    let git_dir = fixture.checkout().join(".git/worktrees/t1");
    let before = (snapshot(&w.path, &[]), snapshot(&git_dir, &[]));
    let RebaseResult::Conflict { files } = repo.rebase(&w, &onto).unwrap() else { panic!() };
    assert_eq!((snapshot(&w.path, &[]), snapshot(&git_dir, &[])), before);
    assert_eq!(repo.head(&w).unwrap(), head);
    assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
    assert_eq!(fixture.git(&w.path, &["status", "--porcelain=2", "--branch"]).lines().count(), 2);
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!(file.path, "file");
    for part in ["<<<<<<< ", "ours", "=======", "theirs", ">>>>>>> "] {
        assert!(file.excerpt.contains(part), "{}", file.excerpt);
    }
    assert_eq!(
        fixture.in_checkout(&["rev-parse", "refs/hookloop/kept/t1/1"]),
        head.as_str(),
        "kept, whatever comes next"
    );
}

#[test]
fn uncommitted_and_ignored_files_are_not_overwritten_by_a_rebase() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "file", "work\n");
    let onto = fixture.others_change("new", "n\n");
    repo.newest_base().unwrap();
    assert!(matches!(repo.rebase(&w, &onto), Err(RepoError::Dirty(_))));
    assert_eq!(read(&w, "file"), "work\n");
    fs::write(w.path.join("file"), "1\n2\n3\n4\n5\n").unwrap();
    // An ignored file, for which the target has a tracked file of the same name.
    write(&w, "built/out", "mine\n");
    let other = fixture.path().join("other");
    fixture.git(&other, &["pull", "--quiet", "--rebase", "origin", "main"]);
    fs::create_dir_all(other.join("built")).unwrap();
    fs::write(other.join("built/out"), "theirs\n").unwrap();
    fixture.git(&other, &["add", "--force", "built/out"]);
    let onto = fixture.save("other", "built");
    fixture.git(&other, &["push", "--quiet", "origin", "main"]);
    repo.newest_base().unwrap();
    let refused = repo.rebase(&w, &onto).unwrap_err();
    assert!(matches!(refused, RepoError::NeedsHuman { .. }), "{refused}");
    assert_eq!(read(&w, "built/out"), "mine\n");
    fs::remove_file(w.path.join("built/out")).unwrap();
    assert!(matches!(repo.rebase(&w, &onto).unwrap(), RebaseResult::Done { .. }));
    assert_eq!(read(&w, "built/out"), "theirs\n");
}
