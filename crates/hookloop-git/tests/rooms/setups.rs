//! The result of a setup: it stays as long as its files are unchanged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use hookloop_git::room::{Room, SetupState};
use hookloop_git::snapshot::Snapshot;

use crate::fixture::{RoomFixture, files, set_mode, write};

/// A room after its setup, which left files that are ignored and files that are not.
fn with_setup(f: &RoomFixture) -> (Room, Snapshot) {
    let (mut room, snapshot) = f.entered();
    assert_eq!(room.setup_state("digest").unwrap(), SetupState::NotDone);
    write(&room.files().join("node_modules/a/index.js"), "a");
    write(&room.files().join("node_modules/b/index.js"), "b");
    symlink("../a/index.js", room.files().join("node_modules/b/link")).unwrap();
    fs::create_dir(room.files().join("node_modules/empty")).unwrap();
    write(&room.files().join("build/generated"), "g");
    write(&room.files().join("lib/generated.rs"), "g");
    write(&room.caches().join("npm/package"), "p");
    write(&room.caches().join("npm/other"), "p");
    set_mode(&room.files().join("node_modules/b"), 0o555);
    room.note_setup("digest").unwrap();
    (room, snapshot)
}

fn ready(room: &Room) -> bool {
    room.setup_state("digest").unwrap() == SetupState::Ready
}

#[test]
fn a_setup_is_ready_for_its_own_digest() {
    let f = RoomFixture::new();
    let (room, _) = with_setup(&f);
    assert!(ready(&room));
    assert_eq!(room.setup_state("other").unwrap(), SetupState::NotDone);
}

#[test]
fn a_setup_stays_over_moves_cold_rooms_and_sessions() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = with_setup(&f);
    let expected = files(room.files());
    f.enter(&mut room, &snapshot);
    assert_eq!(files(room.files()), expected, "files of the setup that are not ignored stay");
    // A gate leaves files among those of the setup.
    write(&room.files().join("node_modules/a/poison.js"), "x");
    write(&room.files().join("node_modules/.cache/x"), "x");
    write(&room.caches().join("npm/poison"), "x");
    write(&room.caches().join("npm/other"), "changed");
    room.note_run(true).unwrap();
    assert!(ready(&room), "further files are no damage");
    room.make_cold().unwrap();
    assert_eq!(files(room.files()), expected);
    assert!(ready(&room));
    assert!(room.caches().join("npm/package").exists());
    assert!(!room.caches().join("npm/poison").exists());
    assert!(!room.caches().join("npm/other").exists(), "a gate changed it");
    write(&room.files().join("node_modules/a/poison.js"), "x");
    write(&room.files().join("ignored"), "x");
    room.note_run(false).unwrap();
    drop(room);
    let mut room = f.rooms().acquire("other").unwrap();
    f.enter(&mut room, &snapshot);
    assert_eq!(files(room.files()), expected);
    assert!(ready(&room));
    // The setup of another session may have used the files of the tree that it ran on.
    f.write("file", "changed\n");
    f.enter(&mut room, &f.take());
    assert_eq!(room.setup_state("digest").unwrap(), SetupState::Old);
    assert!(!room.has_setup_of_its_trees().unwrap());
}

/// A package that is installed by copying has the files of the tree on which the setup ran.
#[test]
fn a_setup_is_old_when_a_file_that_it_copied_changes() {
    let f = RoomFixture::new();
    f.write("lib/package.py", "def answer(): return 41\n");
    let (mut room, snapshot) = f.entered();
    let source = fs::read(room.files().join("lib/package.py")).unwrap();
    let copy = room.files().join("site-packages/package.py");
    write(&copy, &String::from_utf8(source).unwrap());
    room.note_setup("digest").unwrap();
    assert!(ready(&room));
    f.write("file", "changed\n");
    f.enter(&mut room, &f.take());
    assert!(ready(&room), "the setup did not copy it");
    assert!(!room.has_setup_of_its_trees().unwrap());
    f.write("lib/package.py", "def answer(): return 42\n");
    f.enter(&mut room, &f.take());
    assert_eq!(room.setup_state("digest").unwrap(), SetupState::Old);
    f.enter(&mut room, &snapshot);
    assert!(ready(&room) && room.has_setup_of_its_trees().unwrap());
    fs::remove_file(&copy).unwrap();
    assert_eq!(room.setup_damage().unwrap(), Some("site-packages/package.py".into()));
}

#[test]
fn a_changed_file_damages_a_setup() {
    for (name, change) in [
        ("node_modules/a/index.js", "content"),
        ("node_modules/a/index.js", "time"),
        ("node_modules/a/index.js", "mode"),
        ("node_modules/a/index.js", "deletion"),
        ("lib/generated.rs", "deletion"),
        ("node_modules/empty", "directory"),
    ] {
        let f = RoomFixture::new();
        let (mut room, snapshot) = with_setup(&f);
        let path = room.files().join(name);
        match change {
            "content" => write(&path, "ab"),
            // The same size, and the modification time of before.
            "time" => {
                let before = fs::metadata(&path).unwrap().modified().unwrap();
                write(&path, "X");
                fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
            }
            "mode" => set_mode(&path, 0o600),
            "directory" => fs::remove_dir(&path).unwrap(),
            _ => fs::remove_file(&path).unwrap(),
        }
        let damaged = SetupState::Damaged { path: PathBuf::from(name) };
        assert_eq!(room.setup_state("digest").unwrap(), damaged, "{name}: {change}");
        room.make_cold().unwrap();
        assert_eq!(room.setup_state("digest").unwrap(), SetupState::NotDone);
        f.assert_fresh(&room, &snapshot);
    }
}

#[test]
fn a_damaged_setup_is_not_used_by_another_session() {
    let f = RoomFixture::new();
    let (room, snapshot) = with_setup(&f);
    write(&room.files().join("node_modules/a/index.js"), "poison");
    drop(room);
    let mut room = f.rooms().acquire("other").unwrap();
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
    assert_eq!(room.setup_state("digest").unwrap(), SetupState::NotDone);
    assert_eq!(fs::read_dir(room.caches()).unwrap().count(), 0);
}

#[test]
fn files_of_gates_are_not_taken_for_the_result_of_a_setup() {
    let f = RoomFixture::new();
    let (mut room, _) = f.entered();
    write(&room.files().join("build/out"), "by a gate");
    room.note_run(false).unwrap();
    assert!(room.note_setup("digest").is_err());
    assert_eq!(room.setup_state("digest").unwrap(), SetupState::NotDone);
    room.make_cold().unwrap();
    room.note_setup("digest").unwrap();
    assert!(ready(&room));
}

#[test]
fn a_copied_file_is_no_part_of_a_setup() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    room.copy_in(".env".as_ref(), b"secret").unwrap();
    write(&room.files().join("node_modules/a"), "a");
    room.note_setup("digest").unwrap();
    drop(room);
    let mut room = f.rooms().acquire("other").unwrap();
    f.enter(&mut room, &snapshot);
    assert!(!room.files().join(".env").exists());
    assert!(room.files().join("node_modules/a").exists());
    assert!(ready(&room));
}

#[test]
fn a_file_of_the_setup_that_a_tree_has_later_is_that_of_the_tree() {
    let f = RoomFixture::new();
    let (mut room, _) = with_setup(&f);
    f.write("lib/generated.rs", "tracked now\n");
    f.enter(&mut room, &f.take());
    assert_eq!(fs::read(room.files().join("lib/generated.rs")).unwrap(), b"tracked now\n");
    let damaged = SetupState::Damaged { path: "lib/generated.rs".into() };
    assert_eq!(room.setup_state("digest").unwrap(), damaged);
}
