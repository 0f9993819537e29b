//! Files that are restored after a turn, in cases where a simple rule would lose something.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::SystemTime;

use hookloop_git::snapshot::{RestoredStates, TurnFiles};

use crate::fixture::{SnapshotFixture, plan, write};

fn read(f: &SnapshotFixture, name: &str) -> String {
    fs::read_to_string(f.top.join(name)).unwrap()
}

#[test]
fn a_snapshot_after_a_failed_one_has_every_change() {
    let f = SnapshotFixture::new();
    let first = f.take();
    f.write("file", "changed\n");
    let nested = f.top.join("nested");
    fs::create_dir(&nested).unwrap();
    f.git_in(&nested, &["init", "--quiet"]);
    fs::write(nested.join(".git/config"), "[broken").unwrap();
    f.snapshots().take().unwrap_err();
    fs::remove_dir_all(&nested).unwrap();
    let second = f.take();
    assert_ne!(second.tree, first.tree);
    assert_eq!(second.tree, f.tree_of_commit());
}

#[test]
fn a_file_that_was_ignored_before_the_turn_is_not_deleted() {
    let f = SnapshotFixture::new();
    f.write("ignored", "a secret of the user\n");
    f.write("sub/x.log", "old\n");
    let before = f.take();
    fs::remove_file(f.top.join(".gitignore")).unwrap();
    f.write("new", "by the agent\n");
    let after = f.take();
    let (kept, report) = f.undo(before, after);
    assert_eq!(kept, ["ignored", "sub/x.log"]);
    assert_eq!(report.left, []);
    assert_eq!(read(&f, "ignored"), "a secret of the user\n");
    assert!(!f.top.join("new").exists());
    assert!(f.top.join(".gitignore").exists());
}

#[test]
fn the_text_of_a_pointer_stays_text() {
    let f = SnapshotFixture::new();
    f.git(&["lfs", "install", "--local"]);
    f.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    f.write("a.bin", &"x".repeat(3_000));
    f.commit();
    let pointer = f.git(&["show", "HEAD:a.bin"]) + "\n";
    f.write("doc.txt", &pointer);
    let before = f.take();
    f.write("a.bin", "short");
    f.write("doc.txt", "changed");
    let after = f.take();
    f.undo(before, after);
    assert_eq!(read(&f, "doc.txt"), pointer);
    assert_eq!(read(&f, "a.bin"), "x".repeat(3_000));
}

#[test]
fn a_directory_that_became_a_link_is_restored() {
    let f = SnapshotFixture::new();
    let before = f.take();
    fs::rename(f.top.join("lib"), f.top.join("lib2")).unwrap();
    symlink("lib2", f.top.join("lib")).unwrap();
    let after = f.take();
    assert_eq!(after.tree, f.tree_of_commit());
    f.undo(before, after);
    assert!(f.top.join("lib").symlink_metadata().unwrap().is_dir());
    assert_eq!(read(&f, "lib/code.rs"), "fn main() {}\n");
    assert!(!f.top.join("lib2").exists());
}

#[test]
fn nothing_is_written_through_a_link_that_took_the_place_of_a_directory() {
    let f = SnapshotFixture::new();
    let outside = f.path.join("outside");
    fs::create_dir(&outside).unwrap();
    f.write("ignored/kept", "x");
    let before = f.take();
    fs::remove_file(f.top.join("lib/code.rs")).unwrap();
    let after = f.take();
    // A link that git ignores: no snapshot has it.
    f.write(".git/info/exclude", "lib\n");
    fs::remove_dir(f.top.join("lib")).unwrap();
    symlink(&outside, f.top.join("lib")).unwrap();
    f.undo(before, after);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_git_directory_that_became_a_link_gets_no_directories() {
    let f = SnapshotFixture::new();
    let sub = f.top.join("sub");
    fs::create_dir(&sub).unwrap();
    f.git_in(&sub, &["init", "--quiet"]);
    write(&sub.join("f"), "1\n");
    let before = f.take();
    let outside = f.path.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::rename(sub.join(".git"), f.path.join("moved")).unwrap();
    symlink(&outside, sub.join(".git")).unwrap();
    write(&sub.join("f"), "2\n");
    let after = f.take();
    f.undo(before, after);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_repository_that_is_made_in_a_turn_does_not_prevent_the_undo() {
    let f = SnapshotFixture::plain_with_files();
    let before = f.take();
    f.git(&["init", "--quiet"]);
    f.write("a.txt", "changed\n");
    f.commit();
    let after = f.take();
    f.undo(before, after);
    assert_eq!(read(&f, "a.txt"), "one\n");
}

#[test]
fn a_commit_in_a_nested_repository_can_be_undone() {
    let f = SnapshotFixture::new();
    let sub = f.top.join("sub");
    fs::create_dir(&sub).unwrap();
    f.git_in(&sub, &["init", "--quiet"]);
    write(&sub.join("f"), "1\n");
    f.git_in(&sub, &["add", "--all"]);
    f.git_in(&sub, &["commit", "--quiet", "-m", "first"]);
    let before = f.take();
    write(&sub.join("f"), "2\n");
    f.git_in(&sub, &["commit", "--quiet", "-a", "-m", "second"]);
    let after = f.take();
    let (kept, report) = f.undo(before.clone(), after);
    assert_eq!((kept.len(), report.left.len()), (0, 0));
    assert_eq!(f.git_in(&sub, &["log", "--format=%s"]), "first");
    assert_eq!(f.take().nested, before.nested);
}

#[test]
fn a_file_that_became_an_empty_directory_or_a_pipe_is_restored() {
    for make in ["mkdir -p a/e", "mkfifo a"] {
        let f = SnapshotFixture::new();
        f.write("a", "1\n");
        f.commit();
        let before = f.take();
        fs::remove_file(f.top.join("a")).unwrap();
        let made = std::process::Command::new("sh").args(["-c", make]).current_dir(&f.top).status();
        assert!(made.unwrap().success());
        let after = f.take();
        let (_, report) = f.undo(before, after);
        assert_eq!(report.left, [], "{make}");
        assert_eq!(read(&f, "a"), "1\n");
    }
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_not_begun() {
    let f = SnapshotFixture::new();
    f.write("untracked", "mine\n");
    let before = f.take();
    f.write("file", "changed\n");
    let after = f.take();
    fs::remove_dir_all(f.top.join(".git")).unwrap();
    let snapshots = f.snapshots();
    let now = snapshots.take().unwrap();
    let turn = TurnFiles { number: 1, before, after: Some(after) };
    let found = snapshots.undone_files(&[&turn], &now, &RestoredStates::new()).unwrap();
    let plan = plan(&now, found);
    let lock = snapshots.lock_restore().unwrap();
    snapshots.restore(&plan, SystemTime::now(), &lock).unwrap_err();
    assert_eq!(snapshots.pending_restore().unwrap(), None);
}

#[test]
fn modes_are_those_of_the_files_even_if_git_ignores_them() {
    let f = SnapshotFixture::new();
    f.git(&["config", "core.fileMode", "false"]);
    f.write("run.sh", "true\n");
    f.make_executable("run.sh");
    let before = f.take();
    assert_eq!(before.tree, f.tree_of_commit());
    fs::remove_file(f.top.join("run.sh")).unwrap();
    let after = f.take();
    f.undo(before, after);
    let mode = f.top.join("run.sh").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
}

#[test]
fn a_submodule_that_was_deleted_is_gone_from_the_tree() {
    let f = crate::nested::with_submodule();
    f.take();
    fs::remove_dir_all(f.top.join("sub")).unwrap();
    assert_eq!(f.take().tree, f.tree_of_commit());
}
