//! Files that a gate left on purpose: nothing outside of the room is written or deleted, and the room is right again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookloop_git::room::Room;
use hookloop_git::snapshot::Snapshot;

use crate::fixture::{Files, RoomFixture, assert_same, exists, files, run, set_mode, write};

/// A room, and files beside it that no move may change.
struct HostileFixture {
    f: RoomFixture,
    room: Room,
    snapshot: Snapshot,
    outside: PathBuf,
    before: Files,
}

impl HostileFixture {
    fn new() -> HostileFixture {
        let f = RoomFixture::new();
        f.write("lib/deep/a", "a\n");
        f.write("lib/deep/b", "b\n");
        f.write("build/tracked", "ignored and tracked\n");
        f.git(&["add", "--force", "build/tracked"]);
        f.commit();
        let (room, snapshot) = f.entered();
        let outside = f.path.join("outside");
        for name in ["code.rs", "deep/a", "deep/b", "tracked", "file", "HEAD", "config"] {
            write(&outside.join(name), "not a file of the room");
        }
        let before = files(&outside);
        HostileFixture { f, room, snapshot, outside, before }
    }

    fn top(&self) -> &Path {
        self.room.files()
    }

    /// Moves the room to its tree again, then to another one and back, and compares all files.
    fn check(&mut self, what: &str) {
        let HostileFixture { f, room, snapshot, outside, before } = self;
        f.enter(room, snapshot);
        assert_same(&files(outside), before);
        assert_same(&files(room.files()), &f.fresh(&snapshot.tree));
        assert!(!exists(&room.files().parent().unwrap().join("trash")), "{what}: trash is left");
    }

    /// Moves the room to another tree, and compares all files.
    fn check_move(&mut self) {
        self.f.write("lib/deep/b", "changed\n");
        self.f.write("lib/new", "new\n");
        fs::remove_file(self.f.top.join("lib/code.rs")).unwrap();
        let other = self.f.take();
        self.f.enter(&mut self.room, &other);
        assert_same(&files(&self.outside), &self.before);
        self.f.assert_fresh(&self.room, &other);
    }
}

/// Replaces a directory by a link to another one, which gets its files.
fn replace_by_link(directory: &Path, target: &Path) {
    fs::remove_dir_all(directory).unwrap();
    symlink(target, directory).unwrap();
}

#[test]
fn a_directory_that_became_a_link_is_a_directory_again() {
    for name in ["lib", "lib/deep", "build"] {
        let mut h = HostileFixture::new();
        let target = if name == "lib/deep" { h.outside.join("deep") } else { h.outside.clone() };
        replace_by_link(&h.top().join(name), &target);
        h.check(name);
        replace_by_link(&h.top().join(name), &target);
        h.check_move();
    }
}

#[test]
fn a_directory_that_was_moved_behind_a_link_is_a_directory_again() {
    // The files keep their inodes and times, so only the link is new.
    for name in ["lib", "lib/deep", "build"] {
        let mut h = HostileFixture::new();
        let moved = h.room.temporary().join("moved");
        fs::rename(h.top().join(name), &moved).unwrap();
        symlink(&moved, h.top().join(name)).unwrap();
        h.check(name);
        let moved = h.room.caches().join("moved");
        fs::rename(h.top().join(name), &moved).unwrap();
        symlink(&moved, h.top().join(name)).unwrap();
        h.check_move();
    }
}

#[test]
fn a_file_that_became_a_link_is_a_file_again() {
    let mut h = HostileFixture::new();
    fs::remove_file(h.top().join("file")).unwrap();
    symlink(h.outside.join("file"), h.top().join("file")).unwrap();
    fs::remove_file(h.top().join("lib/deep/b")).unwrap();
    fs::hard_link(h.outside.join("deep/b"), h.top().join("lib/deep/b")).unwrap();
    h.check_move();
}

#[test]
fn untracked_links_are_removed_and_not_followed() {
    let mut h = HostileFixture::new();
    symlink(&h.outside, h.top().join("new")).unwrap();
    symlink(&h.outside, h.top().join("lib/link")).unwrap();
    fs::create_dir(h.top().join("more")).unwrap();
    symlink(&h.outside, h.top().join("more/link")).unwrap();
    symlink("link", h.top().join("lib/loop")).unwrap();
    h.check("links");
    // An ignored link stays while the room is warm, and is removed without its target.
    fs::create_dir_all(h.top().join("build")).unwrap();
    symlink(&h.outside, h.top().join("build/link")).unwrap();
    h.f.enter(&mut h.room, &h.snapshot);
    assert!(exists(&h.top().join("build/link")));
    h.room.make_cold().unwrap();
    h.check("ignored link");
}

#[test]
fn the_files_of_a_room_are_a_directory_again() {
    let mut h = HostileFixture::new();
    let top = h.top().to_owned();
    replace_by_link(&top, &h.outside);
    h.check("a link");
    fs::remove_dir_all(&top).unwrap();
    h.check("nothing");
    fs::remove_dir_all(&top).unwrap();
    fs::write(&top, "a file").unwrap();
    h.check("a file");
    fs::remove_dir_all(&top).unwrap();
    fs::create_dir(&top).unwrap();
    h.check("an empty directory");
    set_mode(&top, 0o000);
    h.check("a directory without permissions");
    let (caches, temporary) = (h.room.caches().to_owned(), h.room.temporary().to_owned());
    replace_by_link(&caches, &h.outside);
    replace_by_link(&temporary, &h.outside);
    h.check("caches and temporary files");
    assert!(!caches.is_symlink() && !temporary.is_symlink());
}

#[test]
fn files_and_directories_without_permissions_are_replaced() {
    let mut h = HostileFixture::new();
    write(&h.top().join("left/deep/x"), "x");
    write(&h.top().join("lib/left/x"), "x");
    for (name, mode) in [
        ("left/deep/x", 0o000),
        ("left/deep", 0o000),
        ("left", 0o555),
        ("lib/left/x", 0o000),
        ("lib/left", 0o000),
        ("lib/deep/a", 0o000),
        ("lib/deep", 0o000),
        ("lib", 0o000),
        ("file", 0o000),
    ] {
        set_mode(&h.top().join(name), mode);
    }
    h.check("modes");
    write(&h.top().join("build/locked/x"), "x");
    set_mode(&h.top().join("build/locked"), 0o000);
    set_mode(&h.top().join("build"), 0o500);
    h.room.make_cold().unwrap();
    h.check("cold");
    write(&h.room.caches().join("locked/x"), "x");
    write(&h.room.temporary().join("locked/x"), "x");
    set_mode(&h.room.caches().join("locked"), 0o000);
    set_mode(&h.room.temporary().join("locked"), 0o000);
    h.room.make_cold().unwrap();
    assert_eq!(fs::read_dir(h.room.caches()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(h.room.temporary()).unwrap().count(), 0);
}

#[test]
fn a_git_directory_that_became_a_link_is_replaced_without_its_target() {
    let mut h = HostileFixture::new();
    let git = h.top().join(".git");
    replace_by_link(&git, &h.outside);
    h.check("link to a directory");
    assert!(!git.is_symlink() && git.join("HEAD").exists());
    fs::remove_dir_all(&git).unwrap();
    fs::write(&git, format!("gitdir: {}\n", h.outside.display())).unwrap();
    h.check("file");
    assert!(git.join("HEAD").exists());
    // Parts of it lead elsewhere.
    for name in ["HEAD", "config", "index", "objects"] {
        let path = git.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        symlink(h.outside.join("config"), &path).unwrap();
    }
    h.check("links within");
    // A repository in a tracked directory would be found by commands that run there.
    write(&h.top().join("lib/.git/config"), "by a gate");
    symlink(&h.outside, h.top().join("lib/deep/.git")).unwrap();
    run(Command::new("git").args(["init", "--quiet", "nested"]).current_dir(h.top()));
    h.check("repositories within");
}

/// Creates directories, one in the other, deeper than a path can be long.
fn make_deep(top: &Path) {
    let script = "import os, sys\n\
                  os.chdir(sys.argv[1])\n\
                  for _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\n\
                  open('file', 'w').close()\n";
    run(Command::new("python3").args(["-c", script]).arg(top));
}

#[test]
fn directories_that_are_too_deep_for_a_path_are_removed() {
    let mut h = HostileFixture::new();
    for name in ["left", "lib/left", ".git/left"] {
        fs::create_dir(h.top().join(name)).unwrap();
        make_deep(&h.top().join(name));
    }
    let temporary = h.room.temporary().to_owned();
    make_deep(&temporary);
    h.check("deep");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    fs::create_dir(h.top().join("build/left")).unwrap();
    make_deep(&h.top().join("build/left"));
    make_deep(h.room.caches());
    h.room.make_cold().unwrap();
    h.check("deep and ignored");
}

#[test]
fn pipes_do_not_block_a_move() {
    let mut h = HostileFixture::new();
    for name in [
        "pipe",
        "lib/.gitignore",
        "lib/deep/.gitattributes",
        "new/.gitignore",
        "new/.gitattributes",
        "build/.gitignore",
        "build/pipe",
    ] {
        let path = h.top().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        run(Command::new("mkfifo").arg(path));
    }
    for name in ["file", ".gitignore", "lib/deep/a"] {
        fs::remove_file(h.top().join(name)).unwrap();
        run(Command::new("mkfifo").arg(h.top().join(name)));
    }
    let socket = std::os::unix::net::UnixListener::bind(h.top().join("socket")).unwrap();
    drop(socket);
    h.check("pipes");
}

#[test]
fn a_copied_file_does_not_go_through_a_link() {
    let mut h = HostileFixture::new();
    symlink(&h.outside, h.top().join("config")).unwrap();
    assert!(h.room.copy_in("config/file".as_ref(), b"x").is_err());
    symlink(h.outside.join("file"), h.top().join("link")).unwrap();
    h.room.copy_in("link".as_ref(), b"x").unwrap();
    assert!(!h.top().join("link").is_symlink());
    assert_eq!(fs::read(h.top().join("link")).unwrap(), b"x");
    fs::create_dir(h.top().join("directory")).unwrap();
    assert!(h.room.copy_in("directory".as_ref(), b"x").is_err());
    assert_same(&files(&h.outside), &h.before);
    // A copy whose directory became a link is not the copy.
    h.room.copy_in("local/file".as_ref(), b"not a file of the room").unwrap();
    replace_by_link(&h.top().join("local"), &h.outside);
    h.room.make_cold().unwrap();
    assert!(!exists(&h.top().join("local")));
    assert_same(&files(&h.outside), &h.before);
}
