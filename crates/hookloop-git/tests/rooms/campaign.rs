//! Random trees and random gates: after each move the room has the files of a new checkout.
//!
//! `HOOKLOOP_ROOM_MOVES=1000` runs the campaign at full size.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::fixture::{RoomFixture, assert_same, files, set_mode};

/// Moves in a run without the variable.
const MOVES: usize = 30;

/// A generator of numbers that depends on its seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const NAMES: [&str; 14] = [
    "a.txt",
    "b.txt",
    "src/c.rs",
    "src/d.rs",
    "src/deep/e",
    "bin/run",
    "data.bin",
    "link",
    "x",
    "x/y",
    "x/y/z",
    ".gitignore",
    ".gitattributes",
    "src/.gitattributes",
];

/// Changes a file, by an agent or a gate.
fn change(random: &mut Random, top: &Path, names: &[&str]) {
    let name = names[random.below(names.len())];
    let path = top.join(name);
    // A file that is in the way of a directory, or a directory in the way of a file.
    for parent in path.ancestors().skip(1).take_while(|parent| *parent != top) {
        if parent.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(parent).unwrap();
        }
    }
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let number = random.below(100);
    let content = match name.rsplit('/').next().unwrap() {
        ".gitignore" => ["*.log\n", "*.log\n/x\n", "*.log\n*.bin\n"][number % 3].to_owned(),
        ".gitattributes" => {
            ["* text=auto\n", "*.txt eol=crlf\n", "*.rs -text\n"][number % 3].to_owned()
        }
        _ if number.is_multiple_of(4) => format!("one\r\ntwo {number}\r\n"),
        _ => format!("text {number}\n"),
    };
    let exists = path.symlink_metadata().is_ok();
    match random.below(8) {
        0 | 1 if exists => fs::remove_file(&path).unwrap(),
        2 if !name.contains(".git") => {
            let _ = fs::remove_file(&path);
            symlink(NAMES[random.below(NAMES.len())], &path).unwrap();
        }
        _ => {
            let _ = fs::remove_file(&path);
            fs::write(&path, content).unwrap();
            set_mode(&path, if random.below(5) == 0 { 0o755 } else { 0o644 });
        }
    }
}

/// Returns whether git ignores a file, by the rules in a directory.
fn is_ignored(f: &RoomFixture, top: &Path, path: &Path) -> bool {
    let mut command = f.command(top, &["check-ignore", "--quiet", "--no-index", "--"]);
    command.arg(path).status().unwrap().success()
}

fn moves() -> usize {
    std::env::var("HOOKLOOP_ROOM_MOVES").map_or(MOVES, |moves| moves.parse().unwrap())
}

#[test]
fn a_room_has_the_files_of_a_new_checkout_after_each_of_many_moves() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let f = RoomFixture::new();
    f.git(&["config", "core.autocrlf", "input"]);
    let mut known = vec![f.take()];
    let mut room = f.room();
    for number in 0..moves() {
        for _ in 0..random.below(5) {
            change(&mut random, &f.top, &NAMES);
        }
        if random.below(4) == 0 {
            f.commit();
        }
        // Attributes are read when a session begins.
        let period = format!("session-{}", number / 5);
        known.push(f.snapshots_of(&period).take().unwrap());
        // An agent's turn can be undone, so a room goes back at times.
        let position =
            if random.below(4) == 0 { random.below(known.len()) } else { known.len() - 1 };
        let snapshot = &known[position];
        f.enter(&mut room, snapshot);
        let expected = f.fresh(&snapshot.tree);
        let mut found = files(room.files());
        found.retain(|path, _| expected.contains_key(path) || !is_ignored(&f, room.files(), path));
        assert_same(&found, &expected);
        // A gate changes files of all kinds.
        for _ in 0..random.below(6) {
            let names = [NAMES.as_slice(), &["out.log", "left", "gen/left"]].concat();
            change(&mut random, room.files(), &names);
        }
        if random.below(2) == 0 {
            room.note_run(false).unwrap();
        }
    }
}
