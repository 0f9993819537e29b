//! Moves from tree to tree: the cost is the difference, and the files are those of a new checkout.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_git::room::Room;

use crate::fixture::{RoomFixture, exists, files, run, set_mode, write};

fn modified(path: &Path) -> (i64, i64) {
    let found = path.symlink_metadata().unwrap();
    (found.mtime(), found.mtime_nsec())
}

#[test]
fn a_move_writes_only_files_that_differ() {
    let f = RoomFixture::new();
    let (mut room, first) = f.entered();
    let file = room.files().join("file");
    let before = modified(&file);
    assert_eq!(f.enter(&mut room, &first).written_files, 0);
    f.write("lib/code.rs", "changed\n");
    f.write("lib/new.rs", "new\n");
    let second = f.take();
    let change = f.enter(&mut room, &second);
    assert!(!change.is_new);
    assert_eq!(change.written_files, 2);
    f.assert_fresh(&room, &second);
    assert_eq!(modified(&file), before);
    f.enter(&mut room, &first);
    f.assert_fresh(&room, &first);
}

#[test]
fn changed_attributes_convert_files_that_did_not_change() {
    let f = RoomFixture::new();
    let (mut room, plain) = f.entered();
    f.write(".gitattributes", "file text eol=crlf\n");
    f.commit();
    // Attributes are read when a session begins.
    let converted = f.snapshots_of("next").take().unwrap();
    f.enter(&mut room, &converted);
    f.assert_fresh(&room, &converted);
    assert_eq!(fs::read(room.files().join("file")).unwrap(), b"one\r\ntwo\r\n");
    f.enter(&mut room, &plain);
    f.assert_fresh(&room, &plain);
}

#[test]
fn changed_settings_convert_files_that_did_not_change() {
    let f = RoomFixture::new();
    f.write("build/tracked", "ignored and tracked\n");
    f.git(&["add", "--force", "build/tracked"]);
    f.commit();
    let (mut room, _) = f.entered();
    f.git(&["rm", "--quiet", "build/tracked"]);
    f.git(&["commit", "--quiet", "-m", "removed"]);
    f.git(&["config", "core.autocrlf", "true"]);
    // The settings of a new session.
    f.snapshots_of("next").take().unwrap();
    let snapshot = f.take();
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
    assert_eq!(fs::read(room.files().join("file")).unwrap(), b"one\r\ntwo\r\n");
}

#[test]
fn files_that_a_gate_left_are_removed_unless_they_are_ignored() {
    let f = RoomFixture::new();
    f.write("build/tracked", "ignored and tracked\n");
    f.git(&["add", "--force", "build/tracked"]);
    f.commit();
    let (mut room, snapshot) = f.entered();
    let top = room.files().to_owned();
    let left = ["left", "lib/left", "new/left", "new/deep/left", "other/.gitignore"];
    let warm = [
        "ignored",
        "a.log",
        "lib/__pycache__/x.pyc",
        "build/out",
        "gen/only.log",
        "gen/deep/__pycache__/y",
    ];
    for name in left.iter().chain(&warm) {
        write(&top.join(name), "by a gate");
    }
    fs::create_dir_all(top.join("empty/deep")).unwrap();
    write(&top.join("gen/left"), "by a gate");
    f.enter(&mut room, &snapshot);
    for name in left.iter().chain(&["empty", "gen/left", "new", "other"]) {
        assert!(!exists(&top.join(name)), "{name} stays");
    }
    for name in warm {
        assert!(top.join(name).exists(), "{name} is gone");
        fs::remove_file(top.join(name)).unwrap();
    }
    f.enter(&mut room, &snapshot);
    for name in ["lib/__pycache__", "gen/deep/__pycache__", "gen/deep", "gen"] {
        // Empty directories that are ignored stay.
        let _ = fs::remove_dir(top.join(name));
    }
    f.assert_fresh(&room, &snapshot);
}

#[test]
fn a_file_that_is_not_ignored_any_more_is_removed() {
    let f = RoomFixture::new();
    let (mut room, _) = f.entered();
    write(&room.files().join("out.log"), "by a gate");
    f.enter(&mut room, &f.take());
    assert!(room.files().join("out.log").exists());
    f.write(".gitignore", "ignored\n");
    let snapshot = f.take();
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
}

#[test]
fn rules_that_a_gate_wrote_hide_nothing() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    let top = room.files().to_owned();
    write(&top.join("lib/.gitignore"), "*\n");
    write(&top.join("lib/hidden"), "by a gate");
    write(&top.join("new/.gitignore"), "hidden\n.gitignore\n");
    write(&top.join("new/hidden"), "by a gate");
    write(&top.join(".gitignore"), "*\n");
    write(&top.join(".git/info/exclude"), "*\n");
    write(&top.join("hidden"), "by a gate");
    write(&top.join("lib/.gitattributes"), "* text eol=crlf\n");
    f.write("lib/more", "a\n");
    let second = f.take();
    f.enter(&mut room, &second);
    f.assert_fresh(&room, &second);
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
}

#[test]
fn a_cache_that_ignores_itself_stays() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    let cache = room.files().join(".some_cache");
    write(&cache.join(".gitignore"), "# Created by a linter.\n*\n");
    write(&cache.join("v1/data"), "warm");
    f.enter(&mut room, &snapshot);
    assert!(cache.join("v1/data").exists());
    room.make_cold().unwrap();
    f.assert_fresh(&room, &snapshot);
}

/// A change of tracked files by a gate.
type GateChange = (&'static str, fn(&Path));

const GATE_CHANGES: [GateChange; 8] = [
    ("content", |top| write(&top.join("file"), "other")),
    ("content of the same size and time", |top| {
        let path = top.join("file");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        write(&path, "two\none\n");
        fs::File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
    }),
    ("permissions", |top| set_mode(&top.join("file"), 0o600)),
    ("permission to execute", |top| set_mode(&top.join("file"), 0o755)),
    ("deletion", |top| fs::remove_file(top.join("file")).unwrap()),
    ("deletion of a directory", |top| fs::remove_dir_all(top.join("lib")).unwrap()),
    ("directory in place of a file", |top| {
        fs::remove_file(top.join("file")).unwrap();
        write(&top.join("file/inside"), "x");
    }),
    ("permissions of a directory", |top| set_mode(&top.join("lib"), 0o700)),
];

#[test]
fn each_change_of_a_tracked_file_is_undone() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    let expected = f.fresh(&snapshot.tree);
    for (what, change) in GATE_CHANGES {
        change(room.files());
        assert_ne!(files(room.files()), expected, "{what}");
        f.enter(&mut room, &snapshot);
        assert_eq!(files(room.files()), expected, "{what}");
    }
}

#[test]
fn a_move_that_was_killed_is_repaired() {
    let f = RoomFixture::new();
    f.write("build/tracked", "ignored and tracked\n");
    f.git(&["add", "--force", "build/tracked"]);
    f.commit();
    let (room, first) = f.entered();
    let (files, slot) = (room.files().to_owned(), room.files().parent().unwrap().to_owned());
    drop(room);
    f.write("file", "changed\n");
    f.write("lib/new", "new\n");
    let second = f.take();
    // The state says that files are moving; some are written, and git left a lock.
    let state = fs::read_to_string(slot.join("room.json")).unwrap();
    assert!(state.contains("\"is_moving\":false"));
    let moving = state.replace("\"is_moving\":false", "\"is_moving\":true");
    for target in [&first, &second, &first] {
        fs::write(slot.join("room.json"), &moving).unwrap();
        write(&files.join("file"), "chan");
        write(&files.join("build/other"), "a file of another tree");
        write(&slot.join("git/index.lock"), "half");
        fs::remove_file(files.join("lib/code.rs")).unwrap();
        let mut room = f.room();
        let change = f.enter(&mut room, target);
        assert!(change.is_new);
        f.assert_fresh(&room, target);
    }
    // A state that can't be read is no state.
    fs::write(slot.join("room.json"), "{").unwrap();
    write(&files.join("ignored"), "x");
    let mut room = f.room();
    f.enter(&mut room, &first);
    f.assert_fresh(&room, &first);
}

#[test]
fn a_move_that_fails_is_made_again_without_the_old_files() {
    let f = RoomFixture::new();
    let (mut room, snapshot) = f.entered();
    let slot = room.files().parent().unwrap().to_owned();
    write(&room.files().join("ignored"), "warm");
    room.note_run(false).unwrap();
    fs::remove_file(slot.join("git/config")).unwrap();
    write(&slot.join("git/config/in-the-way"), "x");
    let change = f.enter(&mut room, &snapshot);
    assert!(change.is_new);
    assert!(!room.is_warm());
    f.assert_fresh(&room, &snapshot);
    assert!(!slot.join("trash").exists());
}

/// Runs Python in a room, which keeps byte code there.
fn imported(room: &Room) -> String {
    let mut command = Command::new("python3");
    command.args(["-c", "import module; print(module.VALUE)"]).current_dir(room.files());
    run(command.env_remove("PYTHONDONTWRITEBYTECODE").env_remove("PYTHONPYCACHEPREFIX"))
}

#[test]
fn python_imports_a_module_that_is_written_twice_within_a_second() {
    let f = RoomFixture::new();
    f.write("module.py", "VALUE = 0\n");
    let (mut room, first) = f.entered();
    assert_eq!(imported(&room), "0");
    let path = room.files().join("module.py");
    let mut last = modified(&path).0;
    for number in 1..5 {
        // The time of a run's end is not always known.
        if number % 2 == 0 {
            room.note_run(true).unwrap();
        }
        f.write("module.py", &format!("VALUE = {number}\n"));
        let snapshot = f.take();
        f.enter(&mut room, &snapshot);
        assert!(room.files().join("__pycache__").exists(), "byte code stays");
        assert_eq!(imported(&room), number.to_string());
        let now = modified(&path).0;
        assert!(now > last, "{now} is not later than {last}");
        last = now;
        assert_eq!(f.enter(&mut room, &snapshot).written_files, 0, "git sees no change");
    }
    room.note_run(false).unwrap();
    // The time of the last version may be a second that is still to come, and Python takes two versions of one second
    // for the same. The clock of files is behind by some milliseconds.
    let later = UNIX_EPOCH + Duration::from_secs(u64::try_from(last + 1).unwrap());
    let later = later + Duration::from_millis(100);
    while let Ok(left) = later.duration_since(SystemTime::now()) {
        std::thread::sleep(left);
    }
    // A gate changes a file, and the room restores it.
    write(&path, "VALUE = 9\n");
    assert_eq!(imported(&room), "9");
    f.enter(&mut room, &first);
    assert_eq!(imported(&room), "0");
}

#[test]
fn files_have_the_time_of_the_clock_if_the_last_run_ended_long_ago() {
    let f = RoomFixture::new();
    let (room, _) = f.entered();
    let slot = room.files().parent().unwrap().to_owned();
    drop(room);
    let (mut room, _) = f.entered();
    room.note_run(false).unwrap();
    drop(room);
    let state = fs::read_to_string(slot.join("room.json")).unwrap();
    let start = state.find("\"latest_ns\":").unwrap() + "\"latest_ns\":".len();
    let end = start + state[start..].find(',').unwrap();
    fs::write(slot.join("room.json"), format!("{}1000{}", &state[..start], &state[end..])).unwrap();
    f.write("file", "changed\n");
    let (room, _) = f.entered();
    let age = fs::metadata(room.files().join("file")).unwrap().modified().unwrap().elapsed();
    assert!(age.is_ok(), "the time is not one to come");
}
