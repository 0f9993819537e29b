//! The merge train: commits are merged onto the target in the private repository, checked out in a
//! scratch directory, and landed.

use std::fs;

use hookloop_git::repo::{
    CommitId, LandedCommit, MergeHow, MergeMethod, MergedOnto, Repo, RepoError,
};

use crate::fixture::{RepositoryFixture, task, write};

fn how(method: MergeMethod) -> MergeHow {
    MergeHow { method, message: "land t1\n\nwith a body".to_owned() }
}

fn done(merged: MergedOnto) -> (CommitId, MergeMethod) {
    match merged {
        MergedOnto::Done { commit, method } => (commit, method),
        merged => panic!("{merged:?}"),
    }
}

/// Returns the head of a task with two commits.
fn two_commits(repo: &Repo<'_>, id: &str) -> CommitId {
    let w = repo.worktree(&task(id)).unwrap();
    for name in ["a", "b"] {
        write(&w, &format!("{id}-{name}"), name);
        repo.commit_all(&w, &format!("{id} {name}")).unwrap();
    }
    repo.head(&w).unwrap()
}

#[test]
fn each_merge_method_creates_deterministic_commits() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    two_commits(&repo, "t1");
    let w = repo.worktree(&task("t1")).unwrap();
    let mut amend = fixture.command(&w.path, &["commit", "--quiet", "--amend", "--no-edit"]);
    let amended = amend.env("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z").status().unwrap();
    assert!(amended.success());
    let head = repo.head(&w).unwrap();
    let tip = fixture.others_change("theirs", "theirs\n");
    repo.newest_base().unwrap();
    let private_repo = fixture.state().join("private_repo.git");
    let subjects = |commit: &CommitId| {
        let range = format!("{tip}..{commit}");
        fixture.git(&private_repo, &["log", "--format=%s", "--first-parent", &range])
    };
    for (method, expected) in [
        (MergeMethod::Squash, "land t1"),
        (MergeMethod::Merge, "land t1"),
        (MergeMethod::Rebase, "t1 b\nt1 a"),
    ] {
        let (commit, used) = done(repo.merge_onto(&tip, &head, &how(method)).unwrap());
        assert_eq!(used, method);
        assert_eq!(subjects(&commit), expected);
        let files = fixture.git(&private_repo, &["ls-tree", "--name-only", commit.as_str()]);
        assert_eq!(files, ".gitignore\nfile\nt1-a\nt1-b\ntheirs");
        assert_eq!(repo.is_ancestor(&head, &commit).unwrap(), method == MergeMethod::Merge);
        // Another process creates the same commit, because its time is that of the merged commit
        // and not the current time.
        let time = fixture.git(&private_repo, &["log", "-1", "--format=%ct", commit.as_str()]);
        assert_eq!(time, "978307200");
        assert_eq!(done(fixture.repo().merge_onto(&tip, &head, &how(method)).unwrap()).0, commit);
        let again = repo.merge_onto(&commit, &head, &how(method)).unwrap();
        assert_eq!(again, MergedOnto::AlreadyIn);
    }
}

#[test]
fn a_branch_with_merges_is_squashed_instead_of_rebased() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    two_commits(&repo, "t1");
    let w = repo.worktree(&task("t1")).unwrap();
    let first = fixture.others_change("x", "x\n");
    fixture.in_checkout(&["fetch", "--quiet", "origin"]);
    fixture.git(&w.path, &["merge", "--quiet", "-m", "merged", first.as_str()]);
    let tip = fixture.others_change("y", "y\n");
    repo.newest_base().unwrap();
    let head = repo.head(&w).unwrap();
    let (_, used) = done(repo.merge_onto(&tip, &head, &how(MergeMethod::Rebase)).unwrap());
    assert_eq!(used, MergeMethod::Squash);
}

#[test]
fn a_conflict_names_its_files() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "file", "ours\n");
    let head = repo.commit_all(&w, "ours").unwrap().unwrap();
    let tip = fixture.others_change("file", "theirs\n");
    repo.newest_base().unwrap();
    for method in [MergeMethod::Squash, MergeMethod::Rebase, MergeMethod::Merge] {
        let merged = repo.merge_onto(&tip, &head, &how(method)).unwrap();
        let MergedOnto::Conflict { files } = merged else { panic!("{merged:?}") };
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].path, "file");
    }
}

#[test]
fn a_scratch_checkout_is_an_independent_repository_and_is_removed() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let head = two_commits(&repo, "t1");
    let (commit, _) = done(
        repo.merge_onto(&repo.newest_base().unwrap(), &head, &how(MergeMethod::Squash)).unwrap(),
    );
    let scratch = repo.scratch(&commit, "try-1").unwrap();
    let path = scratch.path.clone();
    assert_eq!(fs::read_to_string(path.join("t1-a")).unwrap(), "a");
    assert_eq!(fixture.git(&path, &["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&path, &["rev-parse", "HEAD"]), commit.as_str());
    assert_eq!(fixture.git(&path, &["log", "-1", "--format=%s"]), "land t1");
    // Processes in the scratch checkout change only its own configuration.
    let before = fs::read(fixture.state().join("private_repo.git/config")).unwrap();
    fixture.git(&path, &["config", "core.fsmonitor", "touch /tmp/never"]);
    assert_eq!(fs::read(fixture.state().join("private_repo.git/config")).unwrap(), before);
    // A scratch checkout in use stays; leftovers of a dead process are removed.
    fs::create_dir_all(fixture.state().join("scratch/left/behind")).unwrap();
    let second = fixture.repo();
    assert!(path.exists());
    assert!(!fixture.state().join("scratch/left").exists());
    drop(scratch);
    assert!(!path.exists());
    drop(second.scratch(&commit, "try-1").unwrap());
}

#[test]
fn the_target_is_moved_only_from_the_expected_commit() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let head = two_commits(&repo, "t1");
    let base = repo.newest_base().unwrap();
    let (commit, _) = done(repo.merge_onto(&base, &head, &how(MergeMethod::Squash)).unwrap());
    assert_eq!(repo.land(&commit, &base).unwrap(), LandedCommit::Done);
    assert_eq!(fixture.at_remote("main").as_deref(), Some(commit.as_str()));
    assert_eq!(repo.land(&commit, &base).unwrap(), LandedCommit::AlreadyThere);
    let other = two_commits(&repo, "t2");
    let (second, _) = done(repo.merge_onto(&commit, &other, &how(MergeMethod::Squash)).unwrap());
    let now = fixture.others_change("quicker", "q\n");
    assert_eq!(repo.land(&second, &commit).unwrap(), LandedCommit::Lost { now: now.clone() });
    assert_eq!(fixture.at_remote("main").as_deref(), Some(now.as_str()));
    // A process that was killed after landing finds other commits on top.
    assert_eq!(repo.land(&commit, &base).unwrap(), LandedCommit::AlreadyThere);
    let refused = repo.land(&base, &now);
    assert!(matches!(refused, Err(RepoError::Permanent { .. })), "backwards: {refused:?}");
}

#[test]
fn a_checked_out_local_target_is_not_moved() {
    let fixture = RepositoryFixture::alone();
    let repo = fixture.repo();
    assert_eq!((repo.target().branch.as_str(), &repo.target().remote), ("main", &None));
    let head = two_commits(&repo, "t1");
    let base = repo.newest_base().unwrap();
    let (commit, _) = done(repo.merge_onto(&base, &head, &how(MergeMethod::Squash)).unwrap());
    fixture.in_checkout(&["switch", "--quiet", "main"]);
    let Err(RepoError::CheckedOut { path, .. }) = repo.land(&commit, &base) else { panic!() };
    assert_eq!(path, fixture.checkout());
    fixture.in_checkout(&["switch", "--quiet", "mine"]);
    assert_eq!(repo.land(&commit, &base).unwrap(), LandedCommit::Done);
    assert_eq!(fixture.in_checkout(&["rev-parse", "main"]), commit.as_str());
    fixture.in_checkout(&["fsck", "--strict"]);
    assert_eq!(repo.land(&commit, &base).unwrap(), LandedCommit::AlreadyThere);
    assert!(matches!(repo.push("x", &commit), Err(RepoError::NeedsHuman { .. })));
}

#[test]
fn a_long_diff_is_truncated_with_a_byte_count() {
    let fixture = RepositoryFixture::new();
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "long", &"line\n".repeat(50_000));
    write(&w, "file", "1\n2\n3\n4\n");
    let head = repo.commit_all(&w, "long").unwrap().unwrap();
    let diff = repo.diff(&w.base, &head, 1_000).unwrap();
    let length = diff.text.len();
    assert!((900..=1_000).contains(&length) && diff.text.ends_with('\n'), "{length}");
    assert!(diff.left_out_bytes > 250_000, "{}", diff.left_out_bytes);
    let told: Vec<_> =
        diff.files.iter().map(|file| (file.path.as_str(), file.added, file.deleted)).collect();
    assert_eq!(told, [("file", 0, 1), ("long", 50_000, 0)]);
    let whole = repo.diff(&w.base, &head, 1_000_000).unwrap();
    assert_eq!(whole.left_out_bytes, 0);
    assert!(whole.text.starts_with(&diff.text));
}
