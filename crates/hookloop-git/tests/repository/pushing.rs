//! Branches at a remote.

use hookloop_git::repo::{CommitId, PushResult, Repo, RepoError, Worktree};

use crate::fixture::{RepositoryFixture, task, write};

fn work(repo: &Repo<'_>, w: &Worktree, text: &str) -> CommitId {
    write(w, "work", text);
    repo.commit_all(w, text).unwrap().unwrap()
}

#[test]
fn later_and_rewritten_commits_are_pushed() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let first = work(&repo, &w, "first");
    assert_eq!(repo.remote_head(&w.branch).unwrap(), None);
    assert_eq!(repo.push(&w.branch, &first).unwrap(), PushResult::Done);
    assert_eq!(repo.push(&w.branch, &first).unwrap(), PushResult::AlreadyThere);
    let second = work(&repo, &w, "second");
    assert_eq!(repo.push(&w.branch, &second).unwrap(), PushResult::Done);
    assert_eq!(repo.remote_head(&w.branch).unwrap(), Some(second));
    // After a rebase the history differs, but the branch is still ours.
    let onto = fixture.others_change("new", "n\n");
    repo.newest_base().unwrap();
    repo.rebase(&w, &onto).unwrap();
    let third = repo.head(&w).unwrap();
    assert_eq!(repo.push(&w.branch, &third).unwrap(), PushResult::Done);
    assert_eq!(fixture.at_remote(&w.branch).as_deref(), Some(third.as_str()));
    // Another process, later, knows the pushed commit.
    let repo = fixture.repo();
    fixture.git(&w.path, &["commit", "--quiet", "--amend", "-m", "amended"]);
    let amended = repo.head(&w).unwrap();
    assert_eq!(repo.push(&w.branch, &amended).unwrap(), PushResult::Done);
    assert_eq!(fixture.at_remote(&w.branch).as_deref(), Some(amended.as_str()));
}

#[test]
fn commits_pushed_by_others_are_not_overwritten() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let first = work(&repo, &w, "first");
    repo.push(&w.branch, &first).unwrap();
    let other = fixture.path().join("other");
    fixture.git(&other, &["fetch", "--quiet", "origin"]);
    fixture.git(&other, &["switch", "--quiet", "hookloop/t1"]);
    std::fs::write(other.join("theirs"), "theirs").unwrap();
    let theirs = fixture.save("other", "theirs");
    fixture.git(&other, &["push", "--quiet", "origin", "hookloop/t1"]);
    let second = work(&repo, &w, "second");
    let Err(RepoError::Foreign { branch, found }) = repo.push(&w.branch, &second) else { panic!() };
    assert_eq!((branch.as_str(), &found), ("hookloop/t1", &theirs));
    let refused = repo.delete_remote(&w.branch, &first);
    assert!(matches!(refused, Err(RepoError::Foreign { .. })), "{refused:?}");
    assert_eq!(fixture.at_remote("hookloop/t1").as_deref(), Some(theirs.as_str()));
    // A branch of the same name existed before.
    fixture.git(&other, &["push", "--quiet", "origin", "hookloop/t1:hookloop/t2"]);
    let w = repo.worktree(&task("t2")).unwrap();
    let own = work(&repo, &w, "own");
    assert!(matches!(repo.push(&w.branch, &own), Err(RepoError::Foreign { .. })));
    assert_eq!(fixture.at_remote("hookloop/t2").as_deref(), Some(theirs.as_str()));
}

#[test]
fn a_remote_branch_at_an_ancestor_is_fast_forwarded() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    // A user created the branch manually, at the base.
    fixture.git(&fixture.path().join("other"), &["push", "--quiet", "origin", "main:hookloop/t1"]);
    let commit = work(&repo, &w, "work");
    assert_eq!(repo.push(&w.branch, &commit).unwrap(), PushResult::Done);
}

#[test]
fn a_push_of_a_killed_process_is_recognized_as_own() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let first = work(&repo, &w, "first");
    // State after a killed process: the note of the pending push, and the push itself.
    let note = fixture.state().join("pushed/hookloop%2Ft1");
    std::fs::create_dir_all(note.parent().unwrap()).unwrap();
    std::fs::write(note, format!("{first}\n")).unwrap();
    fixture.git(&w.path, &["push", "--quiet", "origin", "HEAD:hookloop/t1"]);
    fixture.git(&w.path, &["commit", "--quiet", "--amend", "-m", "another"]);
    let another = repo.head(&w).unwrap();
    assert!(!repo.is_ancestor(&first, &another).unwrap());
    assert_eq!(fixture.repo().push(&w.branch, &another).unwrap(), PushResult::Done);
    // The note is written before the push.
    let third = work(&repo, &w, "third");
    let hook = fixture.path().join("origin.git/hooks/update");
    let noted = fixture.state().join("pushed/hookloop%2Ft1");
    let text = format!("#!/bin/sh\ngrep -q {third} '{}'\n", noted.display());
    std::fs::write(&hook, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).unwrap();
    assert_eq!(repo.push(&w.branch, &third).unwrap(), PushResult::Done);
}

#[test]
fn a_refused_push_and_a_missing_remote_need_a_person() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let commit = work(&repo, &w, "work");
    let hook = fixture.path().join("origin.git/hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho not today >&2\nexit 1\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).unwrap();
    let Err(RepoError::NeedsHuman { why, .. }) = repo.push(&w.branch, &commit) else { panic!() };
    assert!(why.contains("not today"), "{why}");
    std::fs::remove_file(hook).unwrap();
    let (here, away) = (fixture.path().join("origin.git"), fixture.path().join("away.git"));
    std::fs::rename(&here, &away).unwrap();
    let refused = repo.push(&w.branch, &commit);
    assert!(matches!(refused, Err(RepoError::NeedsHuman { .. })), "{refused:?}");
    std::fs::rename(&away, &here).unwrap();
    assert_eq!(repo.push(&w.branch, &commit).unwrap(), PushResult::Done);
}

#[test]
fn an_unreachable_remote_is_a_retryable_error() {
    let fixture = RepositoryFixture::new();
    // A port on which no process listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    fixture.in_checkout(&[
        "remote",
        "set-url",
        "origin",
        &format!("http://127.0.0.1:{port}/a.git"),
    ]);
    let repo = fixture.repo();
    let refused = repo.newest_base();
    assert!(matches!(refused, Err(RepoError::Retry { .. })), "{refused:?}");
    assert!(matches!(repo.remote_head("x"), Err(RepoError::Retry { .. })));
}

#[test]
fn deleting_a_remote_branch_can_be_repeated() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let commit = work(&repo, &w, "work");
    repo.push(&w.branch, &commit).unwrap();
    repo.delete_remote(&w.branch, &commit).unwrap();
    assert_eq!(fixture.at_remote(&w.branch), None);
    repo.delete_remote(&w.branch, &commit).unwrap();
}

#[test]
fn branch_and_scratch_names_that_are_options_or_invalid_are_refused() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let base = repo.newest_base().unwrap();
    for name in ["--all", "-x", "a..b", "a b", "", "refs/../x", "a\n"] {
        assert!(matches!(repo.push(name, &base), Err(RepoError::Permanent { .. })), "{name}");
        assert!(matches!(repo.remote_head(name), Err(RepoError::Permanent { .. })), "{name}");
    }
    for name in ["../x", "a/b", "-x", ""] {
        assert!(repo.scratch(&base, name).is_err(), "{name}");
    }
}
