//! The repository that gates see.

use std::fs;
use std::process::Command;

use hookloop_git::room::Room;

use crate::fixture::{RoomFixture, exists, run, write};

/// Runs git as a gate does, with the user's objects mounted.
fn git(f: &RoomFixture, room: &Room, args: &[&str]) -> String {
    run(&mut command(f, room, args))
}

fn command(f: &RoomFixture, room: &Room, args: &[&str]) -> Command {
    let mut command = f.command(room.files(), args);
    command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", room.users_objects().unwrap());
    command
}

#[test]
fn git_commands_work_in_a_room() {
    let f = RoomFixture::new();
    f.git(&["tag", "-a", "v1.0", "-m", "first"]);
    f.git(&["tag", "light"]);
    f.write("file", "two\n");
    f.commit();
    f.git(&["branch", "other"]);
    f.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let (mut room, committed) = f.entered();
    assert_eq!(git(&f, &room, &["status", "--porcelain"]), "");
    git(&f, &room, &["diff", "--exit-code"]);
    git(&f, &room, &["diff", "--exit-code", "HEAD"]);
    let described = git(&f, &room, &["describe", "--tags", "--match", "v*"]);
    assert_eq!(described, f.git(&["describe", "--tags", "--match", "v*"]));
    assert!(described.starts_with("v1.0-1-g"), "{described}");
    assert_eq!(git(&f, &room, &["log", "-1", "--format=%H"]), f.git(&["rev-parse", "HEAD"]));
    assert_eq!(git(&f, &room, &["rev-parse", "origin/main"]), f.git(&["rev-parse", "HEAD"]));
    assert_eq!(
        git(&f, &room, &["for-each-ref"]),
        f.git(&["for-each-ref", "refs/heads", "refs/remotes", "refs/tags"])
    );
    // Work that is not committed is staged.
    f.write("new", "x");
    f.write("file", "three\n");
    let changed = f.take();
    f.enter(&mut room, &changed);
    assert_eq!(git(&f, &room, &["status", "--porcelain"]), "M  file\nA  new");
    git(&f, &room, &["diff", "--exit-code"]);
    assert_eq!(git(&f, &room, &["write-tree"]), changed.tree);
    // A gate notices a file that it changed.
    write(&room.files().join("file"), "four\n");
    assert_eq!(git(&f, &room, &["status", "--porcelain"]), "MM file\nA  new");
    f.enter(&mut room, &committed);
    assert_eq!(git(&f, &room, &["status", "--porcelain"]), "");
}

#[test]
fn refs_are_those_of_the_repository_now() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    assert_eq!(git(&f, &room, &["tag"]), "");
    f.git(&["tag", "new"]);
    f.enter(&mut room, &snapshot);
    assert_eq!(git(&f, &room, &["tag"]), "new");
    f.git(&["tag", "--delete", "new"]);
    f.enter(&mut room, &snapshot);
    assert_eq!(git(&f, &room, &["tag"]), "");
    // All refs in one file.
    f.git(&["tag", "packed"]);
    f.git(&["pack-refs", "--all"]);
    f.enter(&mut room, &snapshot);
    assert_eq!(git(&f, &room, &["tag"]), "packed");
}

#[test]
fn the_repository_of_a_gate_is_written_again_and_hookloop_does_not_read_it() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    let proof = f.path.join("ran");
    let config = fs::read_to_string(room.files().join(".git/config")).unwrap();
    assert!(!config.contains("filter") && !config.contains("remote"), "{config}");
    let script = format!("#!/bin/sh\ntouch {}\n", proof.display());
    let hook = f.path.join("hook");
    write(&hook, &script);
    crate::fixture::set_mode(&hook, 0o755);
    for name in ["post-index-change", "post-checkout", "fsmonitor"] {
        write(&room.files().join(".git/hooks").join(name), &script);
        crate::fixture::set_mode(&room.files().join(".git/hooks").join(name), 0o755);
    }
    let evil = format!(
        "[core]\n\tfsmonitor = {0}\n\thooksPath = {1}\n[filter \"x\"]\n\tsmudge = {0}\n\tclean = {0}\n",
        hook.display(),
        room.files().join(".git/hooks").display()
    );
    write(&room.files().join(".git/config"), &evil);
    write(&room.files().join(".gitattributes"), "* filter=x\n");
    write(&room.files().join("file"), "changed");
    git_directory_commit(&f, &room);
    fs::remove_file(&proof).unwrap();
    f.write("lib/more", "x");
    let second = f.take();
    f.enter(&mut room, &second);
    assert!(!proof.exists(), "nothing of the gate's repository ran");
    f.assert_fresh(&room, &second);
    assert_eq!(fs::read_to_string(room.files().join(".git/config")).unwrap(), config);
    assert!(!exists(&room.files().join(".git/hooks")));
    f.enter(&mut room, &snapshot);
    assert_eq!(git(&f, &room, &["log", "--format=%s"]), "change");
}

/// A gate commits, which runs its hooks.
fn git_directory_commit(f: &RoomFixture, room: &Room) {
    let args = ["commit", "--quiet", "--allow-empty", "-m", "by a gate"];
    // Its filter prints nothing, so the result does not matter here.
    command(f, room, &args).output().unwrap();
}

#[test]
fn a_shallow_clone_has_a_repository_in_its_room() {
    let f = RoomFixture::new();
    f.write("file", "second\n");
    f.commit();
    let clone = f.path.join("shallow");
    let url = format!("file://{}", f.top.display());
    f.git_in(&f.path, &["clone", "--quiet", "--depth=1", &url, clone.to_str().unwrap()]);
    let f = f.at(clone);
    let (room, _) = f.entered();
    assert_eq!(git(&f, &room, &["log", "--format=%s"]), "change");
}

#[test]
fn a_repository_with_borrowed_objects_has_one_in_its_room() {
    let f = RoomFixture::new();
    let clone = f.path.join("clone");
    let (from, to) = (f.top.to_str().unwrap(), clone.to_str().unwrap());
    f.git_in(&f.path, &["clone", "--quiet", "--shared", from, to]);
    write(&clone.join(".git/objects/info/alternates"), "../../../checkout/.git/objects\n");
    let f = f.at(clone);
    let (room, snapshot) = f.entered();
    // The objects are mounted elsewhere, so a relative path leads nowhere there.
    assert_eq!(f.git_in(room.files(), &["log", "--format=%s"]), "change");
    assert_eq!(f.git_in(room.files(), &["write-tree"]), snapshot.tree);
}

#[test]
fn a_moved_room_has_the_index_of_its_files() {
    let f = RoomFixture::new();
    f.write("module.py", "VALUE = 0\n");
    let (mut room, _) = f.entered();
    for number in 1..4 {
        f.write("module.py", &format!("VALUE = {number}\n"));
        f.enter(&mut room, &f.take());
        // `diff-files` compares times, and reads no content.
        assert_eq!(git(&f, &room, &["diff-files"]), "");
        room.note_run(false).unwrap();
    }
}
