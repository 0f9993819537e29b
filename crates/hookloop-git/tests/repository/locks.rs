//! Lock files of git: leftovers of killed processes, and locks that are in use.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use hookloop_git::repo::{BranchFate, RepoError, UnsavedWork, WorktreeRemoval};

use crate::course::course;
use crate::fixture::{RepositoryFixture, task, users_own, write};

/// Time limit of every step.
const SOON: Duration = Duration::from_secs(60);

/// Creates a lock that a process left a minute ago.
fn plant(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::create(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
}

#[test]
fn leftover_locks_in_the_private_repository_are_cleared() {
    let fixture = RepositoryFixture::new();
    fixture.repo().newest_base().unwrap();
    let private_repo = fixture.state().join("private_repo.git");
    let names = [
        "HEAD.lock",
        "config.lock",
        "packed-refs.lock",
        "shallow.lock",
        "index.lock",
        "gc.pid",
        "refs/hookloop/target/main.lock",
        "refs/hookloop/branches/hookloop/c1.lock",
        "refs/heads/none.lock",
        "info/attributes.lock",
        "objects/info/alternates.lock",
        "objects/pack/multi-pack-index.lock",
    ];
    for name in names {
        plant(&private_repo.join(name));
    }
    fixture.others_change("new", "new\n");
    course(&fixture, &|_| {});
    for name in names {
        assert!(!private_repo.join(name).exists(), "{name}");
    }
}

/// Locks may appear at any time, not only before the repository is opened.
#[test]
fn a_lock_left_after_the_repository_was_opened_is_cleared() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    repo.newest_base().unwrap();
    let lock = fixture.state().join("private_repo.git/refs/hookloop/target/main.lock");
    plant(&lock);
    let newest = fixture.others_change("new", "new\n");
    assert_eq!(repo.newest_base().unwrap(), newest);
    assert!(!lock.exists());
}

#[test]
fn leftover_locks_on_task_refs_and_worktrees_are_cleared() {
    let fixture = RepositoryFixture::new();
    let git = fixture.checkout().join(".git");
    plant(&git.join("refs/hookloop/base/main.lock"));
    plant(&git.join("refs/heads/hookloop/t1.lock"));
    plant(&fixture.state().join("worktrees/t1.notes/index.lock"));
    let repo = fixture.repo();
    fixture.others_change("new", "new\n");
    let w = repo.worktree(&task("t1")).unwrap();
    plant(&git.join("worktrees/t1/index.lock"));
    plant(&git.join("worktrees/t1/HEAD.lock"));
    plant(&git.join("refs/heads/hookloop/t1.lock"));
    plant(&fixture.state().join("worktrees/t1.notes/index.lock"));
    let w = repo.worktree(&w.task).unwrap();
    // The agent's own git finds none of the locks.
    fixture.git(&w.path, &["commit", "--quiet", "--allow-empty", "-m", "own"]);
    plant(&git.join("refs/heads/hookloop/t1.lock"));
    plant(&git.join("refs/hookloop/kept/t1/1.lock"));
    write(&w, "file", "work\n");
    repo.commit_all(&w, "work").unwrap().unwrap();
    let gone = WorktreeRemoval { branch: BranchFate::Deleted, unsaved: UnsavedWork::Goes };
    repo.remove_worktree(&w.task, &gone).unwrap();
    assert_eq!(fixture.in_checkout(&["branch", "--list", "hookloop/*"]), "");
}

/// A new lock may be held by a git that is not visible from here, so hookloop waits for it.
#[test]
fn a_persistent_lock_of_a_task_branch_is_cleared_after_a_wait() {
    let fixture = RepositoryFixture::new();
    let lock = fixture.checkout().join(".git/refs/heads/hookloop/t1.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    let began = Instant::now();
    fixture.repo().worktree(&task("t1")).unwrap();
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(!lock.exists());
}

#[test]
fn locks_of_the_user_are_kept_and_do_not_block_operations() {
    let fixture = RepositoryFixture::new();
    let git = fixture.checkout().join(".git");
    let locks = ["index.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock"];
    let locks = locks.map(|name| git.join(name));
    for lock in &locks {
        plant(lock);
    }
    let before = users_own(&fixture.checkout());
    course(&fixture, &|_| {});
    assert!(locks.iter().all(|lock| lock.exists()));
    assert_eq!(users_own(&fixture.checkout()), before);
}

#[test]
fn a_blocking_lock_of_the_user_is_reported_with_an_rm_command() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let lock = fixture.checkout().join(".git/packed-refs.lock");
    plant(&lock);
    let gone = WorktreeRemoval { branch: BranchFate::Deleted, unsaved: UnsavedWork::Goes };
    let refused = repo.remove_worktree(&w.task, &gone).unwrap_err();
    assert!(matches!(refused, RepoError::Locked { .. }), "{refused:?}");
    let told = refused.to_string();
    assert!(told.contains(&format!("rm {}", lock.display())), "{told}");
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    repo.remove_worktree(&w.task, &gone).unwrap();
    assert_eq!(fixture.in_checkout(&["branch", "--list", "hookloop/*"]), "");
}

/// hookloop waits for a lock of the user that is removed shortly afterwards.
#[test]
fn a_short_lived_lock_of_the_user_is_waited_for() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let lock = fixture.checkout().join(".git/packed-refs.lock");
    plant(&lock);
    let held = std::thread::spawn({
        let lock = lock.clone();
        move || {
            std::thread::sleep(Duration::from_millis(700));
            fs::remove_file(lock).unwrap();
        }
    });
    let gone = WorktreeRemoval { branch: BranchFate::Deleted, unsaved: UnsavedWork::Goes };
    repo.remove_worktree(&w.task, &gone).unwrap();
    held.join().unwrap();
    assert_eq!(fixture.in_checkout(&["branch", "--list", "hookloop/*"]), "");
}

/// A program named git that creates a lock, holds it until it may continue, and reports whether the
/// lock was still its own.
struct Holder {
    child: Child,
    lock: PathBuf,
    go: PathBuf,
}

impl Holder {
    fn start(fixture: &RepositoryFixture, lock: PathBuf, set: impl FnOnce(&mut Command)) -> Holder {
        let bin = fixture.path().join("holder");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        let (program, go) = (bin.join("git"), bin.join("go"));
        let text = format!(
            "#!/bin/sh\nset -C\necho mine > {lock} || exit 9\nwhile [ ! -f {go} ]; do sleep 0.02; done\n\
             [ \"$(cat {lock})\" = mine ] || exit 8\nrm {lock}\n",
            lock = lock.display(),
            go = go.display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(&program);
        command.arg("fetch").current_dir(fixture.path());
        set(&mut command);
        let child = command.spawn().unwrap();
        let began = Instant::now();
        while !lock.exists() {
            assert!(began.elapsed() < SOON, "the lock was never created");
            std::thread::sleep(Duration::from_millis(5));
        }
        // As old as a leftover, so that its age does not protect it.
        let file = File::options().write(true).open(&lock).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        Holder { child, lock, go }
    }

    /// Lets the program continue after a while, and checks that its lock was not removed.
    fn end(mut self, after: Duration) {
        std::thread::sleep(after);
        assert!(self.lock.exists(), "a live lock was removed");
        fs::write(&self.go, "").unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "its lock was replaced");
    }
}

/// The process that started this git may be dead while the git is still alive.
#[test]
fn a_lock_of_a_live_git_in_the_private_repository_is_kept() {
    let fixture = RepositoryFixture::new();
    fixture.repo().newest_base().unwrap();
    let private_repo = fixture.state().join("private_repo.git");
    let holder =
        Holder::start(&fixture, private_repo.join("refs/hookloop/target/main.lock"), |command| {
            command.env("GIT_DIR", &private_repo);
        });
    let newest = fixture.others_change("new", "new\n");
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| fixture.repo().newest_base().unwrap());
        holder.end(Duration::from_millis(1500));
        assert_eq!(opened.join().unwrap(), newest);
    });
}

#[test]
fn a_lock_of_a_live_git_of_the_user_on_a_task_branch_is_kept() {
    let fixture = RepositoryFixture::new();
    let checkout = fixture.checkout();
    let lock = checkout.join(".git/refs/heads/hookloop/t1.lock");
    let holder = Holder::start(&fixture, lock, |command| {
        command.current_dir(&checkout);
    });
    std::thread::scope(|scope| {
        let made = scope.spawn(|| fixture.repo().worktree(&task("t1")).map(drop));
        holder.end(Duration::from_millis(1500));
        made.join().unwrap().unwrap();
    });
}

/// A git of another process that uses the same index of hookloop, for example to list worktrees.
#[test]
fn a_lock_of_a_live_git_on_an_index_is_kept() {
    let fixture = RepositoryFixture::new();
    let w = fixture.repo().worktree(&task("t1")).unwrap();
    write(&w, "file", "work\n");
    let notes = fixture.state().join("worktrees/t1.notes");
    let holder = Holder::start(&fixture, notes.join("index.lock"), |command| {
        command.env("GIT_INDEX_FILE", notes.join("index"));
    });
    std::thread::scope(|scope| {
        let listed = scope.spawn(|| fixture.repo().worktrees().unwrap());
        holder.end(Duration::from_millis(1500));
        assert!(listed.join().unwrap()[0].is_dirty);
    });
}

/// Several processes clear leftovers concurrently: all of them succeed, and none loses a lock that
/// it holds.
#[test]
fn concurrent_clearing_of_leftover_locks_succeeds() {
    let fixture = RepositoryFixture::new();
    let private_repo = fixture.state().join("private_repo.git");
    fixture.repo().newest_base().unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (fixture, private_repo) = (&fixture, &private_repo);
            scope.spawn(move || {
                let id = task(&format!("t{number}"));
                for round in 0..3 {
                    plant(&fixture.checkout().join(format!(".git/refs/heads/hookloop/{id}.lock")));
                    plant(
                        &private_repo
                            .join(format!("refs/hookloop/target/left-{number}-{round}.lock")),
                    );
                    let repo = fixture.repo();
                    let w = repo.worktree(&id).unwrap();
                    write(&w, "own", &format!("{number} {round}\n"));
                    repo.commit_all(&w, "own").unwrap().unwrap();
                    repo.push(&w.branch, &repo.head(&w).unwrap()).unwrap();
                }
            });
        }
    });
    for number in 0..4 {
        assert!(fixture.at_remote(&format!("hookloop/t{number}")).is_some(), "{number}");
    }
    fixture.in_checkout(&["fsck", "--strict"]);
}
