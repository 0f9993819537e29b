//! Random turns and their undo: every file has its old bytes, and a person's later edit stays.
//!
//! `HOOKLOOP_UNDO_TURNS=10000` runs the campaign at full size.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::fixture::{SnapshotFixture, write};

/// Turns in a run without the variable.
const TURNS: u64 = 40;

/// A generator of numbers that depends on its seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Every file outside of the repository's own directory: mode and content.
fn files(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut due = vec![top.to_owned()];
    while let Some(directory) = due.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            if path == top.join(".git") {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                due.push(path);
                continue;
            }
            let state = match kind.is_symlink() {
                true => (0, fs::read_link(&path).unwrap().as_os_str().as_encoded_bytes().to_vec()),
                false => (path.metadata().unwrap().mode() & 0o111, fs::read(&path).unwrap()),
            };
            found.insert(path.strip_prefix(top).unwrap().to_owned(), state);
        }
    }
    found
}

const NAMES: [&str; 12] = [
    "a.txt",
    "b.txt",
    "src/c.rs",
    "src/d.rs",
    "src/deep/e",
    "bin/run",
    "data.bin",
    "crlf.txt",
    "link",
    "x",
    "x/y",
    "sub/lib",
];

/// One change of a file, by a person or an agent.
fn change(random: &mut Random, f: &SnapshotFixture, names: &[&str]) {
    let top = &f.top;
    let name = names[random.below(names.len())];
    let path = top.join(name);
    // A file that is in the way of a directory, or a directory in the way of a file.
    for parent in path.ancestors().skip(1).take_while(|parent| *parent != top.as_path()) {
        if parent.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(parent).unwrap();
        }
    }
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(&path).unwrap();
    }
    let content = match random.below(5) {
        0 => b"one\r\ntwo\r\n".to_vec(),
        1 => (0..random.below(2_000)).map(|_| random.below(256) as u8).collect(),
        2 => b"mixed\r\nlines\n".to_vec(),
        _ => format!("text {}\n", random.below(1_000)).into_bytes(),
    };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let exists = path.symlink_metadata().is_ok();
    match random.below(10) {
        0 | 1 if exists => fs::remove_file(&path).unwrap(),
        2 if exists => {
            let other = top.join(format!("moved-{}", random.below(5)));
            if other.symlink_metadata().is_err() {
                fs::rename(&path, other).unwrap();
            }
        }
        3 => {
            let _ = fs::remove_file(&path);
            symlink(NAMES[random.below(NAMES.len())], &path).unwrap();
        }
        4 if path.metadata().is_ok_and(|found| found.is_file()) && !path.is_symlink() => {
            let mode = if random.chance(50) { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        _ => {
            if path.is_symlink() {
                fs::remove_file(&path).unwrap();
            }
            fs::write(&path, content).unwrap();
        }
    }
}

/// One turn of an agent.
fn turn(random: &mut Random, f: &SnapshotFixture) {
    // A file that is ignored from now on was there before, and is restored with its rule.
    let name = NAMES[random.below(8)];
    if random.chance(5) && f.top.join(name).symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        f.write(".gitignore", &format!("ignored\n*.log\n/{name}\n"));
    }
    for _ in 0..random.below(6) {
        change(random, f, &NAMES);
    }
    let nested = f.top.join("nested");
    if random.chance(15) {
        match nested.exists() {
            true if random.chance(40) => fs::remove_dir_all(&nested).unwrap(),
            true => {
                write(&nested.join("n"), &random.below(100).to_string());
                f.git_in(&nested, &["add", "--all"]);
                f.git_in(&nested, &["commit", "--quiet", "--allow-empty", "-m", "nested"]);
            }
            false => {
                fs::create_dir(&nested).unwrap();
                f.git_in(&nested, &["init", "--quiet"]);
                write(&nested.join("n"), "first");
            }
        }
    }
    if random.chance(10) && f.top.join(".git").is_dir() && f.top.join("sub/.git").exists() {
        write(&f.top.join("sub/more"), &random.below(100).to_string());
    }
    if random.chance(10) && f.top.join(".git").exists() {
        f.git(&["add", "--all", "--", ":!nested"]);
        f.git(&["commit", "--quiet", "--allow-empty", "-m", "by the agent"]);
    }
}

fn campaign_in(f: &SnapshotFixture, random: &mut Random, turns: u64) {
    for number in 0..turns {
        f.write("ignored", &number.to_string());
        let snapshots = f.snapshots();
        let before = snapshots.take().unwrap();
        let old = files(&f.top);
        turn(random, f);
        let after = snapshots.take().unwrap();
        let left = files(&f.top);
        // A person edits a file that the turn may have changed.
        if random.chance(30) {
            f.write("person.txt", &number.to_string());
        }
        if random.chance(20) {
            change(random, f, &["a.txt", "b.txt", "src/c.rs"]);
        }
        let edited = files(&f.top);
        let (refused, report) = f.undo(before, after);
        let restored = files(&f.top);
        let refused: Vec<PathBuf> = refused
            .into_iter()
            .map(PathBuf::from)
            .chain(report.left.iter().map(|left| PathBuf::from(&left.path)))
            .collect();
        for path in old.keys().chain(left.keys()).chain(edited.keys()) {
            let is_persons = left.get(path) != edited.get(path);
            let expected = match is_persons || refused.contains(path) {
                true => edited.get(path),
                false => old.get(path),
            };
            assert_eq!(
                restored.get(path),
                expected,
                "turn {number}: {} (a person's: {is_persons}, refused: {refused:?})",
                path.display()
            );
        }
        // Only a file that a person touched is refused.
        for path in &refused {
            let near = |other: &Path| other.starts_with(path) || path.starts_with(other);
            let changed =
                edited.keys().chain(left.keys()).filter(|p| left.get(*p) != edited.get(*p));
            assert!(
                changed.into_iter().any(|other| near(other)),
                "turn {number}: {path:?} refused"
            );
        }
    }
}

fn turns() -> u64 {
    std::env::var("HOOKLOOP_UNDO_TURNS").map_or(TURNS, |turns| turns.parse().unwrap())
}

#[test]
fn random_turns_are_undone_byte_by_byte() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut left, mut round) = (turns(), 0);
    while left > 0 {
        let f = match round % 4 {
            0 => crate::nested::with_submodule(),
            3 => SnapshotFixture::plain_with_files(),
            _ => SnapshotFixture::new(),
        };
        match round % 4 {
            1 => drop(f.git(&["config", "core.autocrlf", "true"])),
            2 => f.write(".gitattributes", "*.txt text=auto\n*.bin binary\n"),
            _ => {}
        }
        let part = left.min(100);
        campaign_in(&f, &mut random, part);
        left -= part;
        round += 1;
    }
}
