//! Processes that are killed, and processes that continue their work.
//!
//! The full size, every call:
//! `HOOKLOOP_CALLS_APART=1 cargo nextest run -p hookloop-git --test repository crashes::`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hookloop_git::repo::{RebaseResult, Repo, RepoError, SettledRequest, WorkState, Worktree};

use crate::fixture::{RepositoryFixture, read, task, write};

/// Upper bound of the git calls of an operation.
const CALLS_MAX: u32 = 200;

/// When the process is killed, relative to its last call of git.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// Before the call.
    Before,
    /// After the call, without seeing its result.
    After,
}

/// Installs a git that fails at its `last` call, and at all later ones.
fn mortal_git(fixture: &mut RepositoryFixture, last: u32, moment: Moment) {
    let bin = fixture.path().join("bin");
    let count = fixture.path().join("count");
    fs::create_dir_all(&bin).unwrap();
    let _ = fs::remove_file(&count);
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|directory| directory.join("git"))
        .find(|file| file.is_file());
    let (real, count) = (real.unwrap().display().to_string(), count.display().to_string());
    let then = match moment {
        Moment::Before => "exit 137".to_owned(),
        Moment::After => format!("[ $n -gt {last} ] || {real} \"$@\" >/dev/null 2>&1; exit 137"),
    };
    let text = format!(
        "#!/bin/sh\necho x >> {count}\nn=$(wc -l < {count})\nif [ $n -ge {last} ]; then {then}; fi\nexec {real} \"$@\"\n"
    );
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let all = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)));
    fixture.replace("PATH", all.unwrap());
}

fn immortal_git(fixture: &mut RepositoryFixture) {
    fixture.replace("PATH", std::env::var_os("PATH").unwrap());
}

/// An operation that is killed and repeated.
type Act<'a> = &'a dyn Fn(&Repo<'_>) -> Result<(), RepoError>;

/// Kills `act` at each of its calls of git, and lets the next process repeat it.
fn at_each_call(
    prepare: &dyn Fn(&RepositoryFixture),
    act: Act<'_>,
    check: &dyn Fn(&RepositoryFixture),
) {
    let mut fixture = RepositoryFixture::new();
    prepare(&fixture);
    let prepared = fixture.set_aside();
    let apart =
        std::env::var("HOOKLOOP_CALLS_APART").map_or(6, |text| text.parse::<u32>().unwrap());
    let mut calls: u32 = 0;
    // The two kinds start at different calls, so that fewer calls are skipped.
    for (moment, first) in [(Moment::Before, 1), (Moment::After, 1 + apart / 2)] {
        for last in (first..).step_by(apart as usize) {
            assert!(last < CALLS_MAX, "more calls of git than CALLS_MAX");
            fixture.restore(&prepared);
            mortal_git(&mut fixture, last, moment);
            let survived = fixture.open().and_then(|repo| act(&repo)).is_ok();
            immortal_git(&mut fixture);
            if let Err(error) = fixture.open().and_then(|repo| act(&repo)) {
                panic!("{moment:?} {last}: {error:?}");
            }
            check(&fixture);
            if survived {
                break;
            }
            calls += 1;
        }
    }
    assert!(calls * apart > 20, "{calls}");
}

fn found(repo: &Repo<'_>) -> Worktree {
    repo.worktree(&task("t1")).unwrap()
}

#[test]
fn worktree_creation_killed_at_any_git_call_can_be_repeated() {
    let act = |repo: &Repo<'_>| repo.worktree(&task("t1")).map(|_| ());
    let check = |fixture: &RepositoryFixture| {
        let repo = fixture.repo();
        let w = found(&repo);
        assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
        assert_eq!(read(&w, "file"), "1\n2\n3\n4\n5\n");
        assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), "");
        assert_eq!(fixture.in_checkout(&["worktree", "list"]).lines().count(), 2);
    };
    at_each_call(&|_| {}, &act, &check);
}

#[test]
fn a_rebase_killed_at_any_git_call_can_be_repeated() {
    let prepare = |fixture: &RepositoryFixture| {
        let repo = fixture.repo();
        let w = found(&repo);
        write(&w, "own", "own\n");
        repo.commit_all(&w, "own").unwrap();
        fixture.others_change("file", "theirs\n");
        fixture.others_change("new", "new\n");
    };
    let act = |repo: &Repo<'_>| {
        let w = repo.worktree(&task("t1"))?;
        let onto = repo.newest_base()?;
        let rebased = repo.rebase(&w, &onto)?;
        assert!(
            matches!(rebased, RebaseResult::Done { .. } | RebaseResult::UpToDate),
            "{rebased:?}"
        );
        Ok(())
    };
    let check = |fixture: &RepositoryFixture| {
        let repo = fixture.repo();
        let w = found(&repo);
        assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
        let files = [read(&w, "own"), read(&w, "file"), read(&w, "new")];
        assert_eq!(files, ["own\n", "theirs\n", "new\n"]);
        let subjects = fixture.git(&w.path, &["log", "--format=%s", "-2"]);
        assert_eq!(subjects, "own\nchange new");
        assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), "");
    };
    at_each_call(&prepare, &act, &check);
}

#[test]
fn a_conflict_resolution_killed_at_any_git_call_can_be_repeated() {
    let prepare = |fixture: &RepositoryFixture| {
        let repo = fixture.repo();
        let w = found(&repo);
        write(&w, "file", "ours\n");
        repo.commit_all(&w, "ours").unwrap();
        fixture.others_change("file", "theirs\n");
        fixture.others_change("new", "new\n");
        repo.newest_base().unwrap();
    };
    let act = |repo: &Repo<'_>| {
        let w = repo.worktree(&task("t1"))?;
        let onto = repo.newest_base()?;
        if !repo.is_ancestor(&onto, &repo.head(&w)?)? {
            repo.lay_out_conflict(&w, &onto)?;
            write(&w, "file", "both\n");
        }
        let settled = repo.settle_conflict(&w)?;
        assert!(
            matches!(settled, SettledRequest::Done { .. } | SettledRequest::Nothing),
            "{settled:?}"
        );
        Ok(())
    };
    let check = |fixture: &RepositoryFixture| {
        let repo = fixture.repo();
        let w = found(&repo);
        assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
        assert_eq!([read(&w, "file"), read(&w, "new")], ["both\n", "new\n"]);
        assert_eq!(repo.ahead(&repo.newest_base().unwrap(), &repo.head(&w).unwrap()).unwrap(), 2);
    };
    at_each_call(&prepare, &act, &check);
}

#[test]
fn an_incomplete_worktree_is_created_again() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = found(&repo);
    fs::remove_file(fixture.state().join("worktrees/t1.notes/made")).unwrap();
    fs::remove_file(w.path.join("file")).unwrap();
    let w = found(&repo);
    assert!(w.is_new);
    assert_eq!(read(&w, "file"), "1\n2\n3\n4\n5\n");
}

#[test]
fn an_unregistered_worktree_is_repaired_and_keeps_its_edits() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = found(&repo);
    write(&w, "own", "committed\n");
    let head = repo.commit_all(&w, "own").unwrap().unwrap();
    write(&w, "file", "edited\n");
    fixture.in_checkout(&["worktree", "unlock", w.path.to_str().unwrap()]);
    fs::remove_dir_all(fixture.checkout().join(".git/worktrees/t1")).unwrap();
    let again = found(&repo);
    assert!(!again.is_new);
    assert_eq!(repo.head(&again).unwrap(), head);
    assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), " M file");
    // Killed in the middle of that repair, before and after git has recorded it.
    for is_told in [false, true] {
        let aside = fixture.state().join("worktrees/t1.aside");
        fs::rename(&w.path, &aside).unwrap();
        if is_told {
            fs::create_dir(&w.path).unwrap();
            fs::rename(aside.join(".git"), w.path.join(".git")).unwrap();
        }
        let again = found(&repo);
        assert_eq!(read(&again, "file"), "edited\n");
        assert_eq!(repo.state(&again).unwrap(), WorkState::Dirty);
    }
}

#[test]
fn a_deleted_worktree_is_recreated_from_its_branch() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = found(&repo);
    write(&w, "own", "own\n");
    let head = repo.commit_all(&w, "own").unwrap().unwrap();
    fs::remove_dir_all(&w.path).unwrap();
    fixture.others_change("new", "new\n");
    let again = found(&repo);
    assert!(again.is_new);
    assert_eq!(repo.head(&again).unwrap(), head, "a branch with work in it stays");
    assert_eq!(read(&again, "own"), "own\n");
}

#[test]
fn leftover_index_locks_do_not_prevent_a_commit() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = found(&repo);
    let touch = |path: &Path| fs::write(path, "").unwrap();
    touch(&fixture.checkout().join(".git/worktrees/t1/index.lock"));
    touch(&fixture.state().join("worktrees/t1.notes/index.lock"));
    write(&w, "file", "work\n");
    repo.commit_all(&w, "work").unwrap().unwrap();
    assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), "");
}

#[test]
fn a_leftover_index_lock_does_not_prevent_worktree_creation() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let notes = fixture.state().join("worktrees/t1.notes");
    fs::create_dir_all(&notes).unwrap();
    fs::write(notes.join("index.lock"), "").unwrap();
    let w = found(&repo);
    assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), "");
}

#[test]
fn a_target_ref_to_a_missing_object_is_fetched_again() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    repo.newest_base().unwrap();
    let private_repo = fixture.state().join("private_repo.git");
    let gone = "1".repeat(40);
    fs::write(private_repo.join("refs/hookloop/target/main"), format!("{gone}\n")).unwrap();
    let commit = fixture.others_change("new", "n\n");
    assert_eq!(repo.newest_base().unwrap(), commit);
}

#[test]
fn a_cancelled_operation_returns_the_error_cancelled() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    fixture.cancel.trigger();
    let refused = repo.newest_base();
    assert!(matches!(refused, Err(RepoError::Cancelled)), "{refused:?}");
}
