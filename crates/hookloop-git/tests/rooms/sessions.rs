//! Files of one session are not used by another, and a cold room has no files of gates.

use std::fs;

use hookloop_git::room::{Room, RoomTarget};

use crate::fixture::{RoomFixture, SESSION, write};

#[test]
fn a_room_is_warm_after_a_run_of_its_session() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    assert!(!room.is_warm() && !room.is_touched_by_refused());
    write(&room.files().join("build/out"), "warm");
    room.note_run(true).unwrap();
    assert!(room.is_warm() && room.is_touched_by_refused());
    drop(room);
    let mut room = f.room();
    f.enter(&mut room, &snapshot);
    assert!(room.is_warm() && room.is_touched_by_refused());
    assert!(room.files().join("build/out").exists());
    room.note_run(false).unwrap();
    assert!(room.is_touched_by_refused(), "a refused run was there before");
    room.make_cold().unwrap();
    assert!(!room.is_warm() && !room.is_touched_by_refused());
    f.assert_fresh(&room, &snapshot);
    room.note_run(false).unwrap();
    assert!(room.is_warm() && !room.is_touched_by_refused());
}

#[test]
fn a_run_whose_end_is_not_recorded_makes_a_room_warm() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    f.enter(&mut room, &snapshot);
    assert!(!room.is_warm(), "no run left files");
    for leave in
        [|room: &Room| room.files().join("build/out"), |room: &Room| room.caches().join("out")]
    {
        write(&leave(&room), "left by a run that was killed");
        drop(room);
        room = f.room();
        f.enter(&mut room, &snapshot);
        assert!(room.is_warm() && room.is_touched_by_refused());
        room.make_cold().unwrap();
        f.enter(&mut room, &snapshot);
        assert!(!room.is_warm() && !room.is_touched_by_refused());
    }
}

#[test]
fn files_caches_and_temporary_files_of_another_session_are_removed() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    write(&room.files().join("build/out"), "poison");
    write(&room.files().join("lib/__pycache__/x"), "poison");
    write(&room.caches().join("pip/x"), "poison");
    write(&room.temporary().join("x"), "poison");
    room.copy_in(".env.test".as_ref(), b"secret").unwrap();
    room.note_run(false).unwrap();
    let slot = room.slot();
    drop(room);
    let mut room = f.rooms().acquire("other").unwrap();
    assert_eq!(room.slot(), slot);
    assert!(!room.is_warm());
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
    for directory in [room.caches(), room.temporary()] {
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
    }
}

#[test]
fn temporary_files_are_removed_before_each_run_and_caches_stay_in_a_session() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    write(&room.caches().join("pip/x"), "warm");
    write(&room.temporary().join("x"), "left");
    room.note_run(false).unwrap();
    f.enter(&mut room, &snapshot);
    assert!(room.caches().join("pip/x").exists());
    assert_eq!(fs::read_dir(room.temporary()).unwrap().count(), 0);
    room.make_cold().unwrap();
    assert_eq!(fs::read_dir(room.caches()).unwrap().count(), 0);
}

#[test]
fn a_room_for_another_directory_has_no_files_of_the_first() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    write(&room.files().join("build/out"), "names its directory");
    room.note_setup("digest").unwrap();
    room.note_run(false).unwrap();
    let other = f.path.join("other");
    let (from, to) = (f.top.to_str().unwrap(), other.to_str().unwrap());
    f.git_in(&f.path, &["clone", "--quiet", from, to]);
    let snapshots = f.snapshots().at(&other);
    let taken = snapshots.take().unwrap();
    let (tree, base) = (taken.tree.as_str(), taken.head.as_ref());
    room.enter(&RoomTarget { tree, base, top: &other, nested: &[], snapshots: &snapshots })
        .unwrap();
    assert_eq!(taken.tree, snapshot.tree);
    f.assert_fresh(&room, &snapshot);
}

#[test]
fn copied_files_stay_in_their_session_and_are_no_part_of_the_tree() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    let copy = room.files().join("config/local.json");
    room.copy_in("config/local.json".as_ref(), b"{}").unwrap();
    room.copy_in(".env.test".as_ref(), b"A=1\n").unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"{}");
    f.enter(&mut room, &snapshot);
    assert_eq!(fs::read(&copy).unwrap(), b"{}");
    // A gate changed a copy. A cold room has only copies with their own content.
    write(&copy, "changed");
    room.make_cold().unwrap();
    assert!(!copy.exists());
    assert!(room.files().join(".env.test").exists());
    room.copy_in("config/local.json".as_ref(), b"{}").unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"{}");
    for name in ["file", "lib", "../outside", "/etc/passwd", ".git/config", ""] {
        assert!(room.copy_in(name.as_ref(), b"x").is_err(), "{name}");
    }
    assert_eq!(fs::read(room.files().join("file")).unwrap(), b"one\ntwo\n");
    drop(room);
    let mut room = f.rooms().acquire(SESSION).unwrap();
    f.enter(&mut room, &snapshot);
    assert!(copy.exists());
}

#[test]
fn a_room_without_a_tree_is_not_used() {
    let f = RoomFixture::new();
    let mut room = f.room();
    assert!(room.make_cold().is_err());
    assert!(room.note_setup("digest").is_err());
    assert!(room.copy_in("a".as_ref(), b"x").is_err());
}
