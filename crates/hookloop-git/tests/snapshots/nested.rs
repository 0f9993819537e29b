//! Repositories within a working directory.

use std::fs;

use crate::fixture::{SnapshotFixture, write};

pub(crate) fn with_submodule() -> SnapshotFixture {
    let f = SnapshotFixture::new();
    let library = f.path.join("library");
    fs::create_dir(&library).unwrap();
    f.git_in(&library, &["init", "--quiet"]);
    write(&library.join("lib"), "1\n");
    f.git_in(&library, &["add", "--all"]);
    f.git_in(&library, &["commit", "--quiet", "-m", "first"]);
    f.git(&["submodule", "--quiet", "add", "../library", "sub"]);
    f.commit();
    f
}

#[test]
fn a_submodule_is_in_the_tree_by_its_commit() {
    let f = with_submodule();
    let first = f.take();
    assert_eq!(first.tree, f.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(first.nested.len(), 1);
    let sub = f.top.join("sub");
    write(&sub.join("lib"), "2\n");
    let dirty = f.take();
    assert_eq!(dirty.tree, first.tree, "its commit is the same");
    assert_ne!(dirty.nested, first.nested, "its files are not");
    f.git_in(&sub, &["commit", "--quiet", "-a", "-m", "second"]);
    let committed = f.take();
    assert_eq!(committed.tree, f.tree_of_commit());
    assert_ne!(committed.tree, first.tree);
    f.commit();
    assert_eq!(f.take().tree, f.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn a_nested_repository_is_part_of_the_snapshot_with_its_git_directory() {
    let f = SnapshotFixture::new();
    let first = f.take();
    let nested = f.top.join("nested");
    fs::create_dir(&nested).unwrap();
    f.git_in(&nested, &["init", "--quiet"]);
    write(&nested.join("a"), "1\n");
    let unborn = f.take();
    assert_eq!(unborn.tree, first.tree, "a commit does not have it");
    assert_eq!(unborn.nested.len(), 2);
    f.git_in(&nested, &["add", "--all"]);
    f.git_in(&nested, &["commit", "--quiet", "-m", "first"]);
    let born = f.take();
    assert_ne!(born.nested, unborn.nested);
    assert_eq!(f.take(), born);
    fs::remove_dir_all(&nested).unwrap();
    assert_eq!(f.take(), first);
}

#[test]
fn a_git_directory_among_tracked_files_hides_nothing() {
    let f = SnapshotFixture::new();
    f.git_in(&f.top.join("lib"), &["init", "--quiet"]);
    f.write("lib/code.rs", "changed\n");
    f.write("lib/new.rs", "new\n");
    let list = f.list(&f.take().tree);
    let hash = f.store_git(&["hash-object", f.top.join("lib/code.rs").to_str().unwrap()]);
    assert!(list.contains(&hash), "{list}");
    assert!(list.contains("lib/new.rs"), "{list}");
}
