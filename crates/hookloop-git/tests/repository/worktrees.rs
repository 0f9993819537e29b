//! A worktree for each task: created, found again, listed, removed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use hookloop_git::repo::{
    BranchFate, GitOperation, RemovedWorktree, RepoError, UnfinishedOperation, UnsavedWork,
    WorkState, WorktreeRemoval,
};

use crate::fixture::{RepositoryFixture, read, task, write};

#[test]
fn a_worktree_starts_at_the_newest_base_and_is_reused() {
    let fixture = RepositoryFixture::new();
    let newest = fixture.others_change("new", "x\n");
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    assert!(w.is_new);
    assert_eq!((w.branch.as_str(), &w.base), ("hookloop/t1", &newest));
    assert_eq!(read(&w, "new"), "x\n");
    assert_eq!(repo.head(&w).unwrap(), newest);
    assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
    // Plain git agrees.
    assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&w.path, &["branch", "--show-current"]), "hookloop/t1");
    assert!(fixture.in_checkout(&["worktree", "list"]).contains("hookloop/t1"));
    fixture.in_checkout(&["worktree", "prune"]);
    write(&w, "file", "changed\n");
    let again = repo.worktree(&task("t1")).unwrap();
    assert!(!again.is_new);
    assert_eq!((&again.path, &again.base), (&w.path, &w.base));
    assert_eq!(read(&w, "file"), "changed\n");
}

#[test]
fn commit_all_includes_all_unignored_files_despite_index_flags() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    assert_eq!(repo.commit_all(&w, "nothing").unwrap(), None);
    let git = |args: &[&str]| fixture.git(&w.path, args);
    git(&["update-index", "--assume-unchanged", "file"]);
    write(&w, "file", "overlooked\n");
    write(&w, "dir/new", "n\n");
    write(&w, ".env", "secret\n");
    write(&w, "built/forced", "f\n");
    git(&["add", "--force", "built/forced"]);
    assert_eq!(repo.state(&w).unwrap(), WorkState::Dirty);
    let commit = repo.commit_all(&w, "the work").unwrap().unwrap();
    assert_eq!(repo.head(&w).unwrap(), commit);
    assert_eq!(git(&["show", "HEAD:file"]), "overlooked");
    assert_eq!(
        git(&["ls-tree", "-r", "--name-only", "HEAD"]),
        ".gitignore\nbuilt/forced\ndir/new\nfile"
    );
    assert_eq!(git(&["log", "-1", "--format=%an <%ae> %s"]), "User <user@example.org> the work");
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
    assert_eq!(repo.commit_all(&w, "again").unwrap(), None);
    // A file that was added with `--force` stays tracked, although it is ignored.
    write(&w, "built/forced", "g\n");
    fs::remove_file(w.path.join("dir/new")).unwrap();
    fs::remove_file(w.path.join("file")).unwrap();
    write(&w, "file/below", "a directory now\n");
    repo.commit_all(&w, "more").unwrap().unwrap();
    assert_eq!(
        git(&["ls-tree", "-r", "--name-only", "HEAD"]),
        ".gitignore\nbuilt/forced\nfile/below"
    );
    assert_eq!(git(&["show", "HEAD:built/forced"]), "g");
    assert_eq!(repo.ahead(&w.base, &repo.head(&w).unwrap()).unwrap(), 2);
}

#[test]
fn a_change_with_the_same_size_and_time_is_committed() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    for round in 0..20 {
        write(&w, "file", &format!("{round:09}\n"));
        assert!(repo.commit_all(&w, "round").unwrap().is_some(), "{round}");
    }
}

#[test]
fn unfinished_git_operations_of_an_agent_are_reported() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let git = |args: &[&str]| fixture.git(&w.path, args);
    let unfinished = || match repo.state(&w).unwrap() {
        WorkState::Unfinished(what) => what,
        state => panic!("{state:?}"),
    };
    git(&["switch", "--quiet", "--detach"]);
    assert_eq!(unfinished(), UnfinishedOperation::Detached { branch: w.branch.clone() });
    let refused = repo.commit_all(&w, "x");
    assert!(matches!(refused, Err(RepoError::Unfinished { .. })), "{refused:?}");
    git(&["switch", "--quiet", "-c", "own"]);
    let branch = w.branch.clone();
    assert_eq!(unfinished(), UnfinishedOperation::Elsewhere { found: "own".to_owned(), branch });
    write(&w, "file", "own\n");
    git(&["commit", "--quiet", "-am", "own"]);
    git(&["switch", "--quiet", "hookloop/t1"]);
    assert_eq!(repo.state(&w).unwrap(), WorkState::Clean);
    write(&w, "file", "ours\n");
    git(&["commit", "--quiet", "-am", "ours"]);
    for (args, expected) in [
        (["merge", "own"], GitOperation::Merge),
        (["rebase", "own"], GitOperation::Rebase),
        (["cherry-pick", "own"], GitOperation::CherryPick),
    ] {
        assert!(!fixture.command(&w.path, &args).output().unwrap().status.success());
        assert_eq!(unfinished(), UnfinishedOperation::Underway(expected));
        git(&[args[0], "--abort"]);
    }
}

#[test]
fn configured_ignored_files_are_copied_to_the_worktree() {
    let mut fixture = RepositoryFixture::new();
    let checkout = fixture.checkout();
    let write = |name: &str, text: &str| {
        fs::create_dir_all(checkout.join(name).parent().unwrap()).unwrap();
        fs::write(checkout.join(name), text).unwrap();
    };
    write(".env", "secret");
    fs::set_permissions(checkout.join(".env"), fs::Permissions::from_mode(0o640)).unwrap();
    write("config/a.local", "a");
    write("config/deep/b.local", "b");
    write("file", "the user's own edit");
    symlink("/etc/passwd", checkout.join("config/link.local")).unwrap();
    symlink("config", checkout.join("linked")).unwrap();
    let names = [".env", "config/*.local", "missing", "file", "linked/a.local"];
    fixture.options.copy = names.map(str::to_owned).to_vec();
    let refused = fixture.repo().worktree(&task("t0")).unwrap_err();
    assert!(matches!(refused, RepoError::Io { .. }), "through a link: {refused}");
    fixture.options.copy.pop();
    let w = fixture.repo().worktree(&task("t1")).unwrap();
    let copied = |name: &str| fs::read_to_string(w.path.join(name)).ok();
    assert_eq!(copied(".env").as_deref(), Some("secret"));
    let mode = fs::metadata(w.path.join(".env")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(copied("config/a.local").as_deref(), Some("a"));
    assert_eq!(copied("config/deep/b.local"), None);
    assert_eq!(copied("config/link.local"), None);
    assert_eq!(copied("file").as_deref(), Some("1\n2\n3\n4\n5\n"), "never overwritten");
    assert_eq!(fixture.repo().state(&w).unwrap(), WorkState::Clean);
}

#[test]
fn a_copied_file_that_is_not_ignored_is_refused() {
    let mut fixture = RepositoryFixture::new();
    fs::write(fixture.checkout().join("token"), "secret").unwrap();
    fixture.options.copy = vec!["token".to_owned()];
    let refused = fixture.repo().worktree(&task("t1")).unwrap_err();
    assert!(refused.to_string().contains("does not ignore"), "{refused}");
    for outside in ["../other/file", "/etc/passwd", "a/../../x"] {
        fixture.options.copy = vec![outside.to_owned()];
        let refused = fixture.repo().worktree(&task("t1")).unwrap_err();
        assert!(refused.to_string().contains("not in the project"), "{refused}");
    }
    // The worktree is created once the setting is fixed.
    fixture.options.copy = vec!["token".to_owned()];
    fs::write(fixture.checkout().join(".git/info/exclude"), "token\n").unwrap();
    let w = fixture.repo().worktree(&task("t1")).unwrap();
    assert_eq!(read(&w, "token"), "secret");
}

#[test]
fn worktrees_are_listed_with_state_and_commits_ahead() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let (a, b) = (repo.worktree(&task("a")).unwrap(), repo.worktree(&task("b")).unwrap());
    write(&a, "file", "a\n");
    let commit = repo.commit_all(&a, "a").unwrap().unwrap();
    write(&b, "new", "b\n");
    let listed = repo.worktrees().unwrap();
    let told: Vec<_> =
        listed.iter().map(|one| (one.task.as_str(), one.is_dirty, one.ahead)).collect();
    assert_eq!(told, [("a", false, 1), ("b", true, 0)]);
    assert_eq!(listed[0].head, commit);
    assert!(listed.iter().all(|one| one.last_used.elapsed().is_ok()));
}

#[test]
fn undelivered_work_is_removed_only_on_request() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    let safely = |delivered| WorktreeRemoval {
        branch: BranchFate::Deleted,
        unsaved: UnsavedWork::Stays { delivered },
    };
    let stayed = |removed| matches!(removed, RemovedWorktree::Stayed { .. });
    write(&w, "file", "work\n");
    assert!(stayed(repo.remove_worktree(&w.task, &safely(None)).unwrap()), "not committed");
    let commit = repo.commit_all(&w, "work").unwrap().unwrap();
    assert!(stayed(repo.remove_worktree(&w.task, &safely(None)).unwrap()), "not delivered");
    assert!(w.path.exists());
    let keeping = WorktreeRemoval {
        branch: BranchFate::Kept,
        unsaved: UnsavedWork::Stays { delivered: None },
    };
    assert_eq!(repo.remove_worktree(&w.task, &keeping).unwrap(), RemovedWorktree::Done);
    assert!(!w.path.exists());
    let w = repo.worktree(&task("t1")).unwrap();
    assert_eq!(repo.head(&w).unwrap(), commit, "the branch lost the commit");
    assert_eq!(read(&w, "file"), "work\n");
    let removed = repo.remove_worktree(&w.task, &safely(Some(commit.clone()))).unwrap();
    assert_eq!(removed, RemovedWorktree::Done);
    assert_eq!(fixture.in_checkout(&["branch", "--list", "hookloop/*"]), "");
    assert!(!fixture.in_checkout(&["worktree", "list"]).contains("hookloop"));
    let gone = WorktreeRemoval { branch: BranchFate::Deleted, unsaved: UnsavedWork::Goes };
    assert_eq!(repo.remove_worktree(&w.task, &gone).unwrap(), RemovedWorktree::NotThere);
    // Discarded work can be restored as well.
    let w = repo.worktree(&task("t2")).unwrap();
    write(&w, "file", "thrown away\n");
    assert_eq!(repo.remove_worktree(&w.task, &gone).unwrap(), RemovedWorktree::Done);
    assert_eq!(fixture.in_checkout(&["show", "refs/hookloop/kept/t2/1:file"]), "thrown away");
}

#[test]
fn a_task_branch_checked_out_by_the_user_needs_a_person() {
    let fixture = RepositoryFixture::new();
    fixture.in_checkout(&["switch", "--quiet", "-c", "hookloop/t1"]);
    let refused = fixture.repo().worktree(&task("t1")).unwrap_err();
    assert!(matches!(refused, RepoError::NeedsHuman { .. }), "{refused}");
    assert_eq!(fixture.in_checkout(&["branch", "--show-current"]), "hookloop/t1");
}

#[test]
fn damaged_worktrees_are_detected_and_repaired() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let id = task("t1");
    let w = repo.worktree(&id).unwrap();
    assert_eq!(repo.check_worktree(&w), Ok(()));
    let git_dir = fixture.checkout().join(".git/worktrees/t1");
    let users_git = fixture.checkout().join(".git");
    let aside = fixture.path().join("aside");
    let link = w.path.join(".git");
    let damages: [(&str, &dyn Fn()); 8] = [
        ("gone", &|| fs::remove_dir_all(&w.path).unwrap()),
        ("a link", &|| {
            fs::remove_dir_all(&w.path).unwrap();
            symlink(fixture.checkout(), &w.path).unwrap();
        }),
        ("a file", &|| {
            fs::remove_dir_all(&w.path).unwrap();
            fs::write(&w.path, "").unwrap();
        }),
        ("empty", &|| {
            fs::remove_dir_all(&w.path).unwrap();
            fs::create_dir(&w.path).unwrap();
        }),
        ("led to the user's repository", &|| {
            fs::write(&link, format!("gitdir: {}\n", users_git.display())).unwrap();
        }),
        ("without its link", &|| fs::remove_file(&link).unwrap()),
        ("of another repository", &|| {
            fs::write(git_dir.join("commondir"), "/nowhere\n").unwrap();
        }),
        ("forgotten", &|| {
            let _ = fs::remove_dir_all(&aside);
            fs::rename(&git_dir, &aside).unwrap();
        }),
    ];
    for (what, damage) in damages {
        damage();
        assert!(repo.check_worktree(&w).is_err(), "{what}");
        let w = repo.worktree_again(&id, None).unwrap();
        assert_eq!(repo.check_worktree(&w), Ok(()), "{what}");
        assert_eq!(read(&w, "file"), "1\n2\n3\n4\n5\n", "{what}");
        repo.forget_loss(&id).unwrap();
    }
    // The user's own repository is unchanged.
    assert_eq!(fixture.in_checkout(&["branch", "--show-current"]), "main");
    assert_eq!(fixture.in_checkout(&["status", "--porcelain"]), "");
}

/// `rm -rf "$PWD"` of an agent that works in a subdirectory.
#[test]
fn files_of_a_worktree_without_its_project_directory_are_saved() {
    let mut fixture = RepositoryFixture::new();
    fixture.others_change("deep/project/hookloop.yaml", "version: 1\n");
    fixture.in_checkout(&["pull", "--quiet"]);
    fixture.root = fixture.checkout().join("deep/project");
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "beside", "work\n");
    fs::remove_dir_all(&w.project).unwrap();
    assert!(repo.check_worktree(&w).is_err());
    let again = repo.worktree_again(&w.task, None).unwrap();
    assert_eq!(repo.check_worktree(&again), Ok(()));
    assert_eq!(read(&again, "deep/project/hookloop.yaml"), "version: 1\n");
    let loss = again.loss.unwrap();
    assert_eq!(fixture.in_checkout(&["show", &format!("{}:beside", loss.saved.unwrap())]), "work");
    // Every process reports the loss until it is recorded.
    assert!(fixture.repo().worktree(&w.task).unwrap().loss.is_some());
    repo.forget_loss(&w.task).unwrap();
    assert_eq!(repo.worktree(&w.task).unwrap().loss, None);
    // A project directory that is a link to another place is invalid.
    fs::remove_dir_all(&w.project).unwrap();
    symlink(fixture.checkout().join("deep/project"), &w.project).unwrap();
    assert!(repo.check_worktree(&w).is_err());
    let again = repo.worktree_again(&w.task, None).unwrap();
    assert_eq!(repo.check_worktree(&again), Ok(()));
    assert!(fixture.checkout().join("deep/project/hookloop.yaml").exists());
}

#[test]
fn work_in_a_worktree_without_its_branch_is_kept() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "own", "own\n");
    fixture.in_checkout(&["update-ref", "-d", "refs/heads/hookloop/t1"]);
    for entered in [repo.worktree(&w.task), repo.worktree_again(&w.task, None)] {
        assert!(matches!(entered, Err(RepoError::NeedsHuman { .. })), "{entered:?}");
        assert_eq!(read(&w, "own"), "own\n");
    }
    // Nothing is left of a worktree that the user removed with its branch, so a new one is created.
    fs::remove_dir_all(&w.path).unwrap();
    fixture.in_checkout(&["worktree", "unlock", "t1"]);
    fixture.in_checkout(&["worktree", "prune"]);
    assert!(repo.worktree_again(&w.task, None).is_err(), "not in the middle of a session");
    assert_eq!(repo.worktree(&w.task).unwrap().loss, None);
}
