//! Content that a commit converts: the tree has it as a commit would, the snapshot has every byte.

use crate::fixture::SnapshotFixture;

/// Checks both trees after each of several changes.
fn check(f: &SnapshotFixture, files: &[(&str, &[u8])]) {
    let snapshot = f.take();
    assert_eq!(snapshot.tree, f.tree_of_commit());
    for (name, bytes) in files {
        let list = f.list(&snapshot.exact);
        let line = list.lines().find(|line| line.ends_with(name)).unwrap();
        let blob = line.split([' ', '\t']).nth(2).unwrap();
        let path = f.path.join("expected");
        std::fs::write(&path, bytes).unwrap();
        let expected = f.store_git(&["hash-object", "--no-filters", path.to_str().unwrap()]);
        assert_eq!(blob, expected, "{name} is exact");
    }
}

#[test]
fn line_ends_are_those_of_the_users_commit() {
    for setting in ["true", "input", "false"] {
        let f = SnapshotFixture::new();
        f.write("crlf-in-head", "a\r\nb\r\n");
        f.git(&["-c", "core.autocrlf=false", "add", "--all"]);
        f.git(&["commit", "--quiet", "-m", "crlf"]);
        f.git(&["config", "core.autocrlf", setting]);
        f.write("new", "a\r\nb\r\n");
        f.write("mixed", "a\r\nb\n");
        f.write("binary", "a\r\n\0b\r\n");
        f.write("crlf-in-head", "a\r\nc\r\n");
        check(&f, &[("new", b"a\r\nb\r\n"), ("mixed", b"a\r\nb\n")]);
        // A file that was converted once and has its old line ends again.
        f.write("crlf-in-head", "a\nc\n");
        check(&f, &[("crlf-in-head", b"a\nc\n")]);
        f.write("crlf-in-head", "a\r\nd\r\n");
        check(&f, &[("crlf-in-head", b"a\r\nd\r\n")]);
    }
}

#[test]
fn attributes_of_files_are_those_of_the_users_commit() {
    let f = SnapshotFixture::new();
    f.write(".gitattributes", "*.txt text=auto\n*.dat -text\n*.win text eol=crlf\n*.u16 text working-tree-encoding=UTF-16LE\n*.id ident\n");
    f.write("sub/.gitattributes", "*.dat text\n");
    f.commit();
    f.write("a.txt", "1\r\n2\r\n");
    f.write("a.dat", "1\r\n2\r\n");
    f.write("sub/a.dat", "1\r\n2\r\n");
    f.write("a.win", "1\r\n2\r\n");
    f.write("a.id", "$Id: something $\n");
    f.write("a.u16", "a\0b\0\r\0\n\0");
    check(
        &f,
        &[("a.txt", b"1\r\n2\r\n"), ("a.u16", b"a\0b\0\r\0\n\0"), ("a.id", b"$Id: something $\n")],
    );
}

#[test]
fn a_repository_with_line_end_rules_and_no_carriage_return_has_one_tree() {
    let f = SnapshotFixture::new();
    f.write(".gitattributes", "* text=auto\n");
    f.commit();
    f.write("file", "unix\n");
    let snapshot = f.take();
    assert_eq!(snapshot.tree, snapshot.exact);
    assert_eq!(snapshot.tree, f.tree_of_commit());
}

#[test]
fn a_filter_of_the_repository_is_not_run() {
    let f = SnapshotFixture::new();
    let proof = f.path.join("ran");
    f.git(&["config", "filter.evil.clean", &format!("touch {}; cat", proof.display())]);
    f.write(".gitattributes", "* filter=evil\n");
    f.write("file", "changed\n");
    f.take();
    assert!(!proof.exists());
}

#[test]
fn large_files_are_pointers_in_the_tree_and_their_content_is_kept() {
    let f = SnapshotFixture::new();
    f.git(&["lfs", "install", "--local"]);
    f.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    f.write("a.bin", &"large\r\n".repeat(1_000));
    f.commit();
    let first = f.take();
    assert_eq!(first.tree, f.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(first.tree, f.tree_of_commit());
    f.write("a.bin", "changed");
    f.write("sub/b.bin", "new");
    f.write("file", "changed\n");
    let second = f.take();
    assert_eq!(second.tree, f.tree_of_commit());
    let stored = std::fs::read_dir(f.path.join("state/snapshots/lfs")).unwrap().count();
    assert_eq!(stored, 3, "the content of three files");
    assert_eq!(f.take(), second);
}

#[test]
fn without_git_lfs_the_content_of_large_files_is_committed() {
    let f = SnapshotFixture::new();
    f.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    f.write("a.bin", "large");
    assert_eq!(f.take().tree, f.tree_of_commit());
}
