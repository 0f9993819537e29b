//! The choice of rooms, their list and their removal.

use std::time::{Duration, SystemTime};

use hookloop_git::repo::RepoError;
use hookloop_git::room::{RemovedRooms, RoomRetention};

use crate::fixture::{RoomFixture, exists, write};

#[test]
fn rooms_at_the_same_time_are_different_ones() {
    let f = RoomFixture::new();
    let rooms = f.rooms();
    let first = rooms.acquire("a").unwrap();
    let second = rooms.acquire("b").unwrap();
    // Another process has its own files of the same locks.
    let third = f.rooms().acquire("a").unwrap();
    assert_eq!((first.slot(), second.slot(), third.slot()), (1, 2, 3));
    drop(second);
    assert_eq!(rooms.acquire("c").unwrap().slot(), 2);
}

#[test]
fn a_session_gets_its_last_room_again() {
    let f = RoomFixture::new();
    let rooms = f.rooms();
    let snapshot = f.take();
    let mut first = rooms.acquire("a").unwrap();
    let mut second = rooms.acquire("b").unwrap();
    f.enter(&mut first, &snapshot);
    f.enter(&mut second, &snapshot);
    drop((first, second));
    assert_eq!(rooms.acquire("b").unwrap().slot(), 2);
    assert_eq!(rooms.acquire("a").unwrap().slot(), 1);
    assert_eq!(rooms.acquire("new").unwrap().slot(), 1);
    let held = rooms.acquire("b").unwrap();
    assert_eq!(rooms.acquire("b").unwrap().slot(), 1, "its own room is in use");
    drop(held);
}

#[test]
fn no_more_rooms_than_the_limit_are_used() {
    let f = RoomFixture::new();
    let rooms = f.rooms();
    let held: Vec<_> = (0..64).map(|_| rooms.acquire("a").unwrap()).collect();
    assert!(matches!(rooms.acquire("a"), Err(RepoError::Retry { .. })));
    drop(held);
    assert_eq!(rooms.acquire("a").unwrap().slot(), 1);
}

#[test]
fn a_list_names_trees_sessions_and_sizes() {
    let f = RoomFixture::new();
    let rooms = f.rooms();
    assert_eq!(rooms.list().unwrap(), []);
    let (mut room, snapshot) = f.entered();
    write(&room.caches().join("large"), &"x".repeat(1_000_000));
    room.note_run(false).unwrap();
    let before = rooms.list().unwrap();
    let [info] = before.as_slice() else { panic!("one room: {before:?}") };
    assert_eq!(info.slot, 1);
    assert_eq!(info.tree.as_deref(), Some(snapshot.tree.as_str()));
    assert_eq!(info.session.as_deref(), Some(crate::fixture::SESSION));
    assert!(info.is_in_use);
    assert!((1_000_000..3_000_000).contains(&info.bytes), "{} bytes", info.bytes);
    assert!((10..100).contains(&info.files), "{} files", info.files);
    let age = SystemTime::now().duration_since(info.last_used.unwrap()).unwrap();
    assert!(age < Duration::from_secs(600), "{age:?}");
    drop(room);
    assert!(!rooms.list().unwrap()[0].is_in_use);
}

#[test]
fn rooms_are_removed_unless_they_are_in_use() {
    let f = RoomFixture::new();
    let (rooms, snapshot) = (f.rooms(), f.take());
    let mut first = rooms.acquire("a").unwrap();
    let mut second = rooms.acquire("b").unwrap();
    f.enter(&mut first, &snapshot);
    f.enter(&mut second, &snapshot);
    let directory = first.files().parent().unwrap().to_owned();
    drop(first);
    let age = RoomRetention::UnusedFor(Duration::from_secs(3_600));
    assert_eq!(rooms.remove(&age, false).unwrap(), RemovedRooms::default());
    let dry = rooms.remove(&RoomRetention::All, true).unwrap();
    assert_eq!(dry.slots, [1]);
    assert!(dry.bytes > 0 && dry.files > 0);
    assert_eq!(rooms.list().unwrap().len(), 2);
    assert_eq!(rooms.remove(&RoomRetention::All, false).unwrap(), dry);
    let slots: Vec<u32> = rooms.list().unwrap().iter().map(|room| room.slot).collect();
    assert_eq!(slots, [2]);
    assert!(!exists(&directory.join("files")) && !exists(&directory.join("trash")));
    drop(second);
    assert_eq!(rooms.remove(&RoomRetention::UntilBytes(0), false).unwrap().slots, [2]);
    // A removed room is made again.
    let mut room = rooms.acquire("a").unwrap();
    assert!(f.enter(&mut room, &snapshot).is_new);
    f.assert_fresh(&room, &snapshot);
}
