//! A room has the same files as a checkout of its tree by hand: content, permissions and links.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use hookloop_git::snapshot::Snapshot;

use crate::fixture::{RoomFixture, assert_same, exists, files, run, set_mode, write};

/// Enters a new room, and compares it with a checkout by hand.
fn check(f: &RoomFixture) {
    let (room, snapshot) = f.entered();
    f.assert_fresh(&room, &snapshot);
}

#[test]
fn a_room_has_tracked_and_untracked_files_with_their_permissions() {
    let f = RoomFixture::new();
    f.write("run.sh", "#!/bin/sh\n");
    set_mode(&f.top.join("run.sh"), 0o755);
    f.write("new/untracked", "x");
    f.write("ignored", "left out");
    f.write("lib/code.rs", "changed\n");
    let (mut room, snapshot) = (f.room(), f.take());
    let change = f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
    assert!(change.is_new);
    assert_eq!(change.written_files, 5);
    assert!(!exists(&room.files().join("ignored")));
    assert_eq!(fs::read(room.files().join("lib/code.rs")).unwrap(), b"changed\n");
}

#[test]
fn links_are_links_in_a_room() {
    let f = RoomFixture::new();
    symlink("file", f.top.join("link")).unwrap();
    symlink("../nowhere", f.top.join("lib/dangling")).unwrap();
    symlink("lib", f.top.join("directory")).unwrap();
    symlink("file", f.top.join("same")).unwrap();
    check(&f);
}

#[test]
fn links_are_files_in_a_room_if_they_are_in_the_users_checkout() {
    let f = RoomFixture::new();
    symlink("file", f.top.join("link")).unwrap();
    f.commit();
    f.git(&["config", "core.symlinks", "false"]);
    f.git(&["rm", "--quiet", "--cached", "link"]);
    fs::remove_file(f.top.join("link")).unwrap();
    f.git(&["reset", "--quiet", "--hard"]);
    assert_eq!(fs::read(f.top.join("link")).unwrap(), b"file");
    let (mut room, snapshot) = f.entered();
    f.assert_fresh(&room, &snapshot);
    assert_eq!(f.enter(&mut room, &snapshot).written_files, 0);
}

#[test]
fn unusual_names_are_kept() {
    let f = RoomFixture::new();
    for name in [
        b"with space".as_slice(),
        b"tab\tand\nnewline",
        b"\"quoted\" \\back",
        b"-dash",
        b"\xff\xfe",
        "\u{fc}ml\u{e4}ut".as_bytes(),
        b"a*[?]",
        b":(top)x",
        b"#comment",
        b"!not",
    ] {
        let path = f.top.join(OsStr::from_bytes(name));
        fs::write(&path, name).unwrap();
        let mut link = name.to_vec();
        link.extend_from_slice(b".link");
        symlink(OsStr::from_bytes(name), f.top.join(OsStr::from_bytes(&link))).unwrap();
    }
    check(&f);
}

#[test]
fn line_ends_are_those_of_the_users_checkout() {
    let f = RoomFixture::new();
    f.write("crlf", "a\r\nb\r\n");
    f.git(&["-c", "core.autocrlf=false", "add", "--all"]);
    f.git(&["commit", "--quiet", "-m", "crlf"]);
    f.git(&["config", "core.autocrlf", "true"]);
    f.write("new", "a\r\nb\r\n");
    f.write("binary", "a\n\0b\n");
    let (room, snapshot) = f.entered();
    f.assert_fresh(&room, &snapshot);
    assert_eq!(fs::read(room.files().join("file")).unwrap(), b"one\r\ntwo\r\n");
}

#[test]
fn attributes_convert_files_as_in_the_users_checkout() {
    let f = RoomFixture::new();
    f.write(
        ".gitattributes",
        "*.win text eol=crlf\n*.unix text eol=lf\n*.u16 text working-tree-encoding=UTF-16LE\n*.id ident\n",
    );
    f.write("sub/.gitattributes", "*.dat text eol=crlf\n");
    f.write(".git/info/attributes", "*.local eol=crlf\n");
    f.commit();
    f.write("a.win", "1\n2\n");
    f.write("a.unix", "1\r\n2\r\n");
    f.write("sub/a.dat", "1\n");
    f.write("a.dat", "1\n");
    f.write("a.local", "1\n");
    f.write("a.id", "$Id$\n");
    f.write("a.u16", "a\0b\0\n\0");
    let (room, snapshot) = f.entered();
    f.assert_fresh(&room, &snapshot);
    assert_eq!(fs::read(room.files().join("a.win")).unwrap(), b"1\r\n2\r\n");
    assert_eq!(fs::read(room.files().join("a.local")).unwrap(), b"1\r\n");
}

#[test]
fn a_file_whose_line_ends_were_never_converted_is_entered() {
    let f = RoomFixture::new();
    f.write("mixed", "a\r\nb\n");
    f.commit();
    f.write(".gitattributes", "mixed text eol=crlf\n");
    f.git(&["add", ".gitattributes"]);
    f.git(&["commit", "--quiet", "-m", "attributes"]);
    check(&f);
}

#[test]
fn a_filter_of_the_repository_does_not_run_in_a_room() {
    let f = RoomFixture::new();
    let proof = f.path.join("ran");
    for name in ["clean", "smudge"] {
        let command = format!("touch {}; cat", proof.display());
        f.git(&["config", &format!("filter.evil.{name}"), &command]);
    }
    f.write(".gitattributes", "* filter=evil\n");
    let (room, _) = f.entered();
    assert!(!proof.exists());
    assert_eq!(fs::read(room.files().join("file")).unwrap(), b"one\ntwo\n");
}

/// A repository with large files, which git-lfs has to support.
fn with_large_files() -> RoomFixture {
    let f = RoomFixture::new();
    f.git(&["lfs", "install", "--local"]);
    f.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    f.write("a.bin", &"large\r\n".repeat(1_000));
    f.write("pointer.txt", "version https://git-lfs.github.com/spec/v1\n");
    f.commit();
    f
}

#[test]
fn large_files_have_their_content_in_a_room() {
    let f = with_large_files();
    f.write("sub/new.bin", "not committed");
    set_mode(&f.top.join("sub/new.bin"), 0o755);
    let (mut room, snapshot) = f.entered();
    let content = fs::read(room.files().join("sub/new.bin")).unwrap();
    assert_eq!(content, b"not committed");
    assert_same(&files(room.files()), &without_git_files(&f));
    assert_eq!(f.enter(&mut room, &snapshot).written_files, 0, "the files are not read again");
    write(&room.files().join("a.bin"), "other");
    f.enter(&mut room, &snapshot);
    assert_same(&files(room.files()), &without_git_files(&f));
}

/// The files of the user's checkout, which are those of a checkout by hand where nothing is converted.
fn without_git_files(f: &RoomFixture) -> crate::fixture::Files {
    files(&f.top)
}

#[test]
fn a_large_file_without_content_is_a_pointer_until_the_content_arrives() {
    let f = with_large_files();
    let content = f.path.join("content");
    let snapshot = f.take();
    fs::rename(f.top.join(".git/lfs"), &content).unwrap();
    fs::remove_dir_all(f.path.join("state/snapshots/lfs")).unwrap();
    let mut room = f.room();
    let change = f.enter(&mut room, &snapshot);
    assert_eq!(change.missing_large_files, 1);
    let text = fs::read_to_string(room.files().join("a.bin")).unwrap();
    assert!(text.starts_with("version https://git-lfs"), "{text}");
    assert_eq!(f.enter(&mut room, &snapshot).missing_large_files, 1);
    fs::rename(&content, f.top.join(".git/lfs")).unwrap();
    let change = f.enter(&mut room, &snapshot);
    assert_eq!((change.written_files, change.missing_large_files), (1, 0));
    let expected = fs::read(f.top.join("a.bin")).unwrap();
    assert_eq!(fs::read(room.files().join("a.bin")).unwrap(), expected);
}

#[test]
fn content_that_does_not_belong_to_its_pointer_is_not_used() {
    let f = with_large_files();
    let snapshot = f.take();
    fs::remove_dir_all(f.path.join("state/snapshots/lfs")).unwrap();
    // An agent writes other content of the same size.
    let size = fs::metadata(f.top.join("a.bin")).unwrap().len();
    let listed = files(&f.top.join(".git/lfs/objects"));
    let (name, _) = listed.iter().find(|(_, (_, bytes))| bytes.len() as u64 == size).unwrap();
    let object = f.top.join(".git/lfs/objects").join(name);
    set_mode(&object, 0o644);
    fs::write(&object, vec![b'x'; usize::try_from(size).unwrap()]).unwrap();
    let mut room = f.room();
    assert_eq!(f.enter(&mut room, &snapshot).missing_large_files, 1);
    let text = fs::read_to_string(room.files().join("a.bin")).unwrap();
    assert!(text.starts_with("version https://git-lfs"), "{text}");
}

/// A repository with a submodule, which has one of its own.
fn with_submodules() -> RoomFixture {
    let f = RoomFixture::new();
    for (name, part) in [("inner", None), ("library", Some("inner"))] {
        let library = f.path.join(name);
        fs::create_dir(&library).unwrap();
        f.git_in(&library, &["init", "--quiet"]);
        write(&library.join("lib"), &format!("{name}\n"));
        write(&library.join(".gitignore"), "*.o\n");
        if let Some(part) = part {
            let url = format!("../{part}");
            f.git_in(&library, &["submodule", "--quiet", "add", &url, "deep/inner"]);
        }
        f.git_in(&library, &["add", "--all"]);
        f.git_in(&library, &["commit", "--quiet", "-m", "first"]);
    }
    f.git(&["submodule", "--quiet", "add", "../library", "sub"]);
    f.git(&["submodule", "--quiet", "update", "--init", "--recursive"]);
    f.commit();
    f
}

#[test]
fn submodules_have_their_files_in_a_room() {
    let f = with_submodules();
    let (mut room, _) = f.entered();
    let expected = || {
        let mut expected = files(&f.top);
        expected.retain(|path, _| !path.components().any(|part| part.as_os_str() == ".git"));
        expected
    };
    assert_same(&files(room.files()), &expected());
    assert!(room.files().join("sub/deep/inner/lib").exists());
    // A gate changes files of a submodule and leaves others.
    write(&room.files().join("sub/lib"), "changed by a gate\n");
    write(&room.files().join("sub/left"), "x");
    write(&room.files().join("sub/warm.o"), "x");
    write(&room.files().join("sub/.git/config"), "x");
    // Changes in a submodule are no part of the tree until they are committed.
    let committed = expected();
    write(&f.top.join("sub/lib"), "changed by the agent\n");
    write(&f.top.join("sub/new"), "x");
    let snapshot = f.take();
    f.enter(&mut room, &snapshot);
    let warm = room.files().join("sub/warm.o");
    assert!(warm.exists(), "it is ignored there");
    fs::remove_file(warm).unwrap();
    assert_same(&files(room.files()), &committed);
    assert_eq!(room.uncommitted(), [PathBuf::from("sub")]);
    assert_eq!(room.unnamed_trees(), []);
    f.git_in(&f.top.join("sub"), &["add", "--all"]);
    f.git_in(&f.top.join("sub"), &["commit", "--quiet", "-m", "the agent's"]);
    let snapshot = f.take();
    f.enter(&mut room, &snapshot);
    assert_same(&files(room.files()), &expected());
    assert!(room.uncommitted().is_empty());
    // The submodule is removed, then it is a file.
    f.git(&["rm", "--quiet", "--force", "sub"]);
    f.commit();
    let snapshot = f.take();
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
    f.write("sub", "a file now\n");
    let snapshot = f.take();
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
}

/// A tree names the commit of a submodule, which may be an older one than that in the user's directory.
#[test]
fn a_submodule_has_the_files_of_the_commit_that_the_tree_names() {
    let f = with_submodules();
    let old = f.take();
    write(&f.top.join("sub/lib"), "newer\n");
    f.git_in(&f.top.join("sub"), &["commit", "--quiet", "-a", "-m", "newer"]);
    let mut room = f.room();
    let lib = room.files().join("sub/lib");
    let new = f.take();
    f.enter(&mut room, &new);
    assert_eq!(fs::read(&lib).unwrap(), b"newer\n");
    f.enter(&mut room, &Snapshot { tree: old.tree, ..new });
    assert_eq!(fs::read(&lib).unwrap(), b"library\n");
    assert_eq!(room.uncommitted(), [PathBuf::from("sub")]);
}

#[test]
fn a_commit_that_a_submodule_does_not_have_is_named() {
    let f = with_submodules();
    let none = "1234567890123456789012345678901234567890";
    f.git(&["update-index", "--cacheinfo", &format!("160000,{none},sub")]);
    let tree = f.git(&["write-tree"]);
    let mut room = f.room();
    let error = f.try_enter(&mut room, &Snapshot { tree, ..f.take() }).unwrap_err().to_string();
    assert!(error.contains("sub") && error.contains(none), "{error}");
}

#[test]
fn links_out_of_the_repository_are_found() {
    let f = RoomFixture::new();
    symlink("/etc/hostname", f.top.join("outside")).unwrap();
    symlink("../..", f.top.join("lib/above")).unwrap();
    symlink("lib", f.top.join("inside")).unwrap();
    symlink(f.top.join("lib"), f.top.join("absolute")).unwrap();
    let (room, _) = f.entered();
    let found = room.links_outside(&f.top, 20).unwrap();
    assert_eq!(found, [PathBuf::from("lib/above"), PathBuf::from("outside")]);
    assert_eq!(room.links_outside(&f.top, 1).unwrap().len(), 1);
}

#[test]
fn submodules_have_their_files_again_after_a_hostile_gate() {
    let f = with_submodules();
    let (mut room, snapshot) = f.entered();
    let (top, expected) = (room.files().to_owned(), files(room.files()));
    let outside = f.path.join("outside");
    write(&outside.join("lib"), "not a file of the room");
    write(&outside.join("inner/lib"), "not a file of the room");
    let changes: [(&str, &dyn Fn()); 5] = [
        ("link to a directory", &|| {
            fs::remove_dir_all(top.join("sub")).unwrap();
            symlink(&outside, top.join("sub")).unwrap();
        }),
        ("link within", &|| {
            fs::remove_dir_all(top.join("sub/deep")).unwrap();
            symlink(&outside, top.join("sub/deep")).unwrap();
        }),
        ("deletion", &|| fs::remove_dir_all(top.join("sub")).unwrap()),
        ("file", &|| {
            fs::remove_dir_all(top.join("sub")).unwrap();
            write(&top.join("sub"), "a file");
        }),
        ("pipes of a repository", &|| {
            for name in ["sub/.git/HEAD", "sub/.git/config", "sub/deep/inner/.git"] {
                fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
                run(Command::new("mkfifo").arg(top.join(name)));
            }
            write(&top.join("file"), "so that git runs");
        }),
    ];
    for (what, change) in changes {
        change();
        f.enter(&mut room, &snapshot);
        assert_eq!(files(&top), expected, "{what}");
        let kept = fs::read(outside.join("inner/lib")).unwrap();
        assert_eq!(kept, b"not a file of the room", "{what}");
    }
}

#[test]
fn a_submodule_that_was_not_initialized_is_an_empty_directory() {
    let f = with_submodules();
    f.git(&["submodule", "--quiet", "deinit", "--force", "--all"]);
    let (mut room, snapshot) = f.entered();
    f.assert_fresh(&room, &snapshot);
    write(&room.files().join("sub/left"), "by a gate");
    write(&room.files().join("sub/.git/HEAD"), "by a gate");
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
}

#[test]
fn a_repository_with_sha256_names_has_rooms() {
    let f = RoomFixture::plain();
    f.git(&["init", "--quiet", "--object-format=sha256"]);
    f.write("a", "1\n");
    symlink("a", f.top.join("link")).unwrap();
    f.commit();
    f.write("b", "2\n");
    let (mut room, first) = f.entered();
    assert_eq!(first.tree.len(), 64);
    f.assert_fresh(&room, &first);
    f.write("a", "3\n");
    let second = f.take();
    f.enter(&mut room, &second);
    f.assert_fresh(&room, &second);
    let args = ["-c", "safe.directory=*", "rev-parse", "HEAD"];
    assert_eq!(f.git_in(room.files(), &args), f.git(&["rev-parse", "HEAD"]));
}

#[test]
fn a_project_without_a_repository_has_rooms() {
    let f = RoomFixture::plain();
    f.write("a.txt", "one\n");
    f.write("src/run", "two\n");
    set_mode(&f.top.join("src/run"), 0o755);
    f.write(".gitignore", "ignored\n");
    symlink("a.txt", f.top.join("link")).unwrap();
    let (mut room, _) = f.entered();
    assert_same(&files(room.files()), &files(&f.top));
    assert!(!exists(&room.files().join(".git")));
    assert_eq!(room.users_objects(), None);
    // A repository within is part of the files, without its own directory.
    let nested = f.top.join("vendor/nested");
    fs::create_dir_all(&nested).unwrap();
    f.git_in(&nested, &["init", "--quiet"]);
    write(&nested.join("n"), "1\n");
    f.write("ignored", "x");
    f.write("a.txt", "changed\n");
    let snapshot = f.take();
    f.enter(&mut room, &snapshot);
    let mut expected = files(&f.top);
    expected.retain(|path, _| {
        !path.components().any(|part| part.as_os_str() == ".git" || part.as_os_str() == "ignored")
    });
    assert_same(&files(room.files()), &expected);
    write(&room.files().join(".git/config"), "by a gate");
    write(&room.files().join("vendor/nested/left"), "by a gate");
    write(&room.files().join("vendor/left"), "by a gate");
    f.enter(&mut room, &snapshot);
    assert_same(&files(room.files()), &expected);
    assert!(!exists(&room.files().join(".git")));
    fs::remove_dir_all(f.top.join("vendor")).unwrap();
    fs::remove_file(f.top.join("ignored")).unwrap();
    f.enter(&mut room, &f.take());
    assert_same(&files(room.files()), &files(&f.top));
}

#[test]
fn a_room_of_a_sparse_checkout_has_all_files_of_its_tree() {
    let f = RoomFixture::new();
    f.write("in/a", "1");
    f.write("out/b", "1");
    f.commit();
    f.git(&["sparse-checkout", "set", "--cone", "in"]);
    assert!(!f.top.join("out").exists());
    f.write("in/a", "2");
    let (room, snapshot) = f.entered();
    f.assert_fresh(&room, &snapshot);
    assert!(room.files().join("out/b").exists());
}

#[test]
fn a_repository_without_commits_has_rooms() {
    let f = RoomFixture::plain();
    f.git(&["init", "--quiet"]);
    f.write("a", "1\n");
    f.write("sub/b", "2\n");
    let (room, snapshot) = f.entered();
    assert_eq!(snapshot.head, None);
    assert_same(&files(room.files()), &files(&f.top));
    let status = f.git_in(room.files(), &["status", "--porcelain"]);
    assert_eq!(status, "A  a\nA  sub/b");
}

#[test]
fn a_linked_worktree_has_rooms() {
    let f = RoomFixture::new();
    let linked = f.path.join("linked");
    f.git(&["worktree", "add", "--quiet", "-b", "task", linked.to_str().unwrap()]);
    let main = f.at(linked);
    main.write("new", "x");
    let (room, snapshot) = main.entered();
    assert_same(&files(room.files()), &{
        let mut expected = files(&main.top);
        expected.remove(std::path::Path::new(".git"));
        expected
    });
    assert_eq!(snapshot.head.unwrap().to_string(), main.git(&["rev-parse", "HEAD"]));
    let objects = main.path.join("checkout/.git/objects");
    assert_eq!(room.users_objects(), Some(objects.as_path()));
    let mut log = main.command(room.files(), &["log", "-1", "--format=%s"]);
    log.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
    assert_eq!(run(&mut log), "change");
}
