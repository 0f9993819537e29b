//! The tree of a snapshot is that of a commit of all files.

use std::fs;
use std::os::unix::fs::symlink;

use crate::fixture::SnapshotFixture;

#[test]
fn a_snapshot_has_the_tree_of_a_commit_of_all_files() {
    let f = SnapshotFixture::new();
    assert_eq!(f.take().tree, f.git(&["rev-parse", "HEAD^{tree}"]), "nothing changed");
    f.write("file", "one\n2\n");
    f.write("new/deep/file", "x");
    f.write("ignored", "x");
    f.write("a.log", "x");
    fs::remove_file(f.top.join("lib/code.rs")).unwrap();
    symlink("file", f.top.join("link")).unwrap();
    f.make_executable("file");
    assert_eq!(f.take().tree, f.tree_of_commit());
    // A file becomes a directory, and a directory a link.
    fs::remove_file(f.top.join("file")).unwrap();
    f.write("file/inside", "x");
    fs::remove_dir_all(f.top.join("new")).unwrap();
    symlink("nowhere", f.top.join("new")).unwrap();
    assert_eq!(f.take().tree, f.tree_of_commit());
}

#[test]
fn the_same_files_have_the_same_snapshot() {
    let f = SnapshotFixture::new();
    let first = f.take();
    assert_eq!(f.take(), first);
    f.write("file", "changed\n");
    assert_ne!(f.take(), first);
    f.write("file", "one\ntwo\n");
    assert_eq!(f.take(), first);
    assert_eq!(f.snapshots_at(&f.top, "another").take().unwrap(), first);
}

#[test]
fn flags_and_settings_of_the_users_repository_hide_no_change() {
    let f = SnapshotFixture::new();
    f.git(&["update-index", "--assume-unchanged", "file"]);
    f.git(&["update-index", "--skip-worktree", "lib/code.rs"]);
    f.git(&["config", "core.worktree", "/nowhere"]);
    f.git(&["config", "core.fileMode", "true"]);
    f.write("file", "changed\n");
    f.write("lib/code.rs", "changed\n");
    let list = f.list(&f.take().tree);
    let hash = f.store_git(&["hash-object", f.top.join("file").to_str().unwrap()]);
    assert_eq!(list.matches(&hash).count(), 2, "{list}");
}

#[test]
fn a_project_in_a_subdirectory_has_the_tree_of_the_whole_repository() {
    let f = SnapshotFixture::new();
    f.write("svc/main", "x");
    f.commit();
    let snapshots = f.snapshots_at(&f.top.join("svc"), "session");
    let before = snapshots.take().unwrap();
    f.write("lib/code.rs", "fn other() {}\n");
    f.write("svc/main", "y\n");
    let after = snapshots.take().unwrap();
    assert_eq!(after.tree, f.tree_of_commit());
    let changes = snapshots.changes(&before.tree, &after.tree).unwrap();
    assert_eq!(changes, [("../lib/code.rs".to_owned(), 2), ("main".to_owned(), 2)]);
}

#[test]
fn files_that_the_user_added_are_part_of_a_snapshot_even_if_ignored() {
    let f = SnapshotFixture::new();
    f.write("ignored", "added by force");
    f.git(&["add", "--force", "ignored"]);
    assert_eq!(f.take().tree, f.tree_of_commit());
    // Committed in the session, and ignored.
    f.write("b.log", "x");
    f.git(&["add", "--force", "b.log"]);
    f.git(&["commit", "--quiet", "-m", "log"]);
    assert_eq!(f.take().tree, f.tree_of_commit());
}

#[test]
fn a_file_that_is_ignored_later_leaves_the_tree_but_not_the_snapshot() {
    let f = SnapshotFixture::new();
    f.write("notes", "mine");
    let first = f.take();
    f.write(".gitignore", "ignored\n*.log\nnotes\n");
    f.write("notes", "overwritten");
    let second = f.take();
    assert_eq!(second.tree, f.tree_of_commit());
    assert!(f.list(&second.exact).contains("notes"));
    let list = f.list(&first.exact);
    let blob = list.lines().find(|line| line.ends_with("notes")).unwrap();
    let blob = blob.split([' ', '\t']).nth(2).unwrap();
    assert_eq!(f.store_git(&["cat-file", "blob", blob]), "mine");
}

#[test]
fn a_directory_without_a_repository_has_snapshots() {
    let f = SnapshotFixture::plain();
    f.write("a", "1");
    f.write("skipped.log", "1");
    f.write(".gitignore", "*.log\n");
    let first = f.take();
    assert_eq!(f.list(&first.tree).lines().count(), 2);
    f.write("b/c", "2");
    fs::remove_file(f.top.join("a")).unwrap();
    let second = f.take();
    assert_ne!(first.tree, second.tree);
    assert_eq!(f.snapshots_at(&f.top, "next").take().unwrap().tree, second.tree);
    assert!(!f.top.join(".git").exists());
}

#[test]
fn a_repository_without_commits_has_snapshots() {
    let f = SnapshotFixture::plain();
    f.git(&["init", "--quiet"]);
    f.write("a", "1");
    f.write("b", "2");
    f.git(&["add", "b"]);
    let first = f.take();
    assert_eq!(first.tree, f.tree_of_commit());
    f.commit();
    let second = f.take();
    assert_eq!(second.tree, first.tree);
    assert_eq!(second.head.unwrap().to_string(), f.git(&["rev-parse", "HEAD"]));
}

#[test]
fn a_repository_with_sha256_names_has_snapshots() {
    let f = SnapshotFixture::plain();
    f.git(&["init", "--quiet", "--object-format=sha256"]);
    f.write("a", "1");
    f.commit();
    f.write("a", "2");
    assert_eq!(f.take().tree, f.tree_of_commit());
    f.write("b", "2");
    assert_eq!(f.take().tree, f.tree_of_commit());
}

#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let f = SnapshotFixture::new();
    for name in [&b"new\nline"[..], b"\xff\xfe", b" space ", b"quote\"s", "äö".as_bytes()] {
        fs::write(f.top.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    assert_eq!(f.take().tree, f.tree_of_commit());
}

#[test]
fn a_snapshot_needs_no_index_of_the_user_and_changes_none() {
    let f = SnapshotFixture::new();
    f.write("file", "changed\n");
    let index = f.top.join(".git/index");
    let before = fs::read(&index).unwrap();
    let tree = f.take().tree;
    assert_eq!(fs::read(&index).unwrap(), before);
    fs::write(&index, "garbage").unwrap();
    f.write("more", "x");
    assert_ne!(f.take().tree, tree, "an unreadable index of the user does not matter");
}

#[test]
fn a_snapshot_stays_whole_after_the_user_rewrote_and_pruned_the_history() {
    let f = SnapshotFixture::new();
    for number in 0..5 {
        f.write("file", &format!("{number}\n"));
        f.commit();
    }
    f.write("staged", "staged by the user, not committed");
    f.git(&["add", "staged"]);
    f.write("file", "dirty\n");
    let kept = f.take();
    f.snapshots().keep("session", "1-before", &kept).unwrap();
    // The agent commits. Then the user throws everything away.
    f.commit();
    let committed = f.take();
    f.snapshots().keep("session", "1-after", &committed).unwrap();
    f.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    f.git(&["rm", "-rf", "--quiet", "."]);
    f.write("other", "x");
    f.commit();
    f.git(&["branch", "-D", "main"]);
    f.git(&["reflog", "expire", "--expire=now", "--all"]);
    f.git(&["gc", "--quiet", "--prune=now"]);
    for snapshot in [kept, committed] {
        for tree in [&snapshot.tree, &snapshot.exact] {
            for line in f.list(tree).lines() {
                let object = line.split([' ', '\t']).nth(2).unwrap();
                f.store_git(&["cat-file", "-e", object]);
            }
        }
    }
}
