//! Settings are read when a session begins. Later changes have no effect.

use crate::fixture::SnapshotFixture;

#[test]
fn ignore_rules_outside_of_the_files_are_those_of_the_start() {
    let f = SnapshotFixture::new();
    f.write("../home/.config/git/ignore", "global\n");
    f.write(".git/info/exclude", "local\n");
    for name in ["global", "local", "seen"] {
        f.write(name, "x");
    }
    let snapshot = f.take();
    assert_eq!(snapshot.tree, f.tree_of_commit());
    // An agent tries to hide a file.
    f.write(".git/info/exclude", "*\n");
    f.git(&["config", "core.excludesFile", "/nowhere"]);
    f.write("hidden", "x");
    assert!(f.list(&f.take().tree).contains("hidden"));
    // The next session reads the rules again.
    let next = f.snapshots_at(&f.top, "next").take().unwrap();
    assert!(!f.list(&next.tree).contains("hidden"));
}

#[test]
fn attributes_and_line_ends_are_those_of_the_start() {
    let f = SnapshotFixture::new();
    f.take();
    f.git(&["config", "core.autocrlf", "true"]);
    f.write(".gitattributes", "* text=auto\n");
    f.write("file", "a\r\n");
    let snapshot = f.take();
    assert_eq!(snapshot.tree, snapshot.exact, "nothing is converted in this session");
}

#[test]
fn files_outside_of_a_sparse_checkout_come_from_the_commit() {
    for cone in ["--cone", "--no-cone"] {
        let f = SnapshotFixture::new();
        f.write("in/a", "1");
        f.write("out/b", "1");
        f.write("out/c", "1");
        f.commit();
        let patterns = if cone == "--cone" { "in" } else { "/in/" };
        f.git(&["sparse-checkout", "set", cone, patterns]);
        assert!(!f.top.join("out").exists());
        assert_eq!(f.take().tree, f.git(&["rev-parse", "HEAD^{tree}"]));
        f.write("in/a", "2");
        f.write("in/new", "2");
        assert_eq!(f.take().tree, f.tree_of_commit());
        std::fs::remove_file(f.top.join("in/a")).unwrap();
        assert_eq!(f.take().tree, f.tree_of_commit());
        // A file outside of the patterns that is there nevertheless.
        f.write("out/b", "changed");
        let list = f.list(&f.take().tree);
        let hash = f.store_git(&["hash-object", f.top.join("out/b").to_str().unwrap()]);
        assert!(list.contains(&hash), "{list}");
        assert!(list.contains("out/c"));
    }
}

#[test]
fn a_partial_clone_has_snapshots_without_a_fetch() {
    let f = SnapshotFixture::new();
    f.write("big/a", "1");
    f.commit();
    f.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = f.path.join("clone");
    let url = format!("file://{}", f.top.display());
    let args =
        ["clone", "--quiet", "--filter=blob:none", "--sparse", &url, clone.to_str().unwrap()];
    f.git_in(&f.path, &args);
    // The blob of `big/a` is not here, and the remote is gone.
    std::fs::rename(&f.top, f.path.join("moved")).unwrap();
    std::fs::write(clone.join("file"), "changed\n").unwrap();
    let snapshot = f.snapshots_at(&clone, "session").take().unwrap();
    f.git_in(&clone, &["commit", "--quiet", "-a", "-m", "all"]);
    assert_eq!(snapshot.tree, f.git_in(&clone, &["rev-parse", "HEAD^{tree}"]));
}
