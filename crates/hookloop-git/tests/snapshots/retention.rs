//! The removal of old snapshots: every kept one stays whole, and the others are gone from the disk.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use hookloop_git::snapshot::{GcReport, RetentionLimits, Snapshot};

use crate::fixture::{SnapshotFixture, write};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns a time at which no object of the store is young.
fn later() -> SystemTime {
    SystemTime::now() + HOUR * 2
}

fn count(max_count: usize) -> RetentionLimits {
    RetentionLimits { max_count, ..RetentionLimits::default() }
}

fn collect(f: &SnapshotFixture, limits: &RetentionLimits) -> GcReport {
    f.snapshots().collect(limits, later(), &|_| false, false).unwrap()
}

/// Returns text that does not compress well.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:016x}\n")
    };
    (0..1_000).map(|_| word()).collect()
}

fn store(f: &SnapshotFixture) -> PathBuf {
    f.path.join("state/snapshots")
}

/// Takes a snapshot, and keeps it under a name that was written so long ago.
fn keep(f: &SnapshotFixture, group: &str, name: &str, age: Duration) -> Snapshot {
    let snapshot = f.take();
    f.snapshots().keep(group, name, &snapshot).unwrap();
    let path = store(f).join("refs/snapshots").join(group).join(name);
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    snapshot
}

fn group(number: usize) -> String {
    format!("session-{number}")
}

/// Takes the first snapshot of the working directory. Its tree stays in use, for the attributes of files.
fn begin(f: &SnapshotFixture) {
    f.take();
}

/// Keeps five snapshots of five sessions. The first is the oldest.
fn five(f: &SnapshotFixture) -> Vec<Snapshot> {
    begin(f);
    let one = |number: usize| {
        f.write("file", &noise(number as u64));
        f.write(&format!("dir/new-{number}"), &format!("{number}\n"));
        keep(f, &group(number), "1-after", HOUR * (10 - number as u32))
    };
    (0..5).map(one).collect()
}

/// Returns whether the snapshots have their names.
fn named(f: &SnapshotFixture) -> Vec<bool> {
    let find = |number| f.snapshots().find(&group(number), "1-after").unwrap();
    (0..5).map(|number| find(number).is_some()).collect()
}

/// Returns those of the objects that git can't read in the store, with or without the user's objects.
fn missing(f: &SnapshotFixture, objects: &[String], users: Option<&Path>) -> Vec<String> {
    let list = f.path.join("objects-to-read");
    fs::write(&list, objects.iter().map(|object| format!("{object}\n")).collect::<String>())
        .unwrap();
    let mut command = Command::new("git");
    command
        .args(["cat-file", "--batch"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.env("GIT_DIR", store(f)).stdin(Stdio::from(File::open(&list).unwrap()));
    if let Some(users) = users {
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", users);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().filter_map(|line| line.strip_suffix(" missing").map(str::to_owned)).collect()
}

/// Returns the blob of a file in a snapshot.
fn blob(f: &SnapshotFixture, snapshot: &Snapshot, name: &str) -> String {
    f.store_git(&["rev-parse", &format!("{}:{name}", snapshot.exact)])
}

fn is_stored(f: &SnapshotFixture, object: &str) -> bool {
    missing(f, &[object.to_owned()], None).is_empty()
}

/// Checks that every object of a snapshot can be read.
fn check_whole(f: &SnapshotFixture, snapshot: &Snapshot) {
    let mut objects = vec![snapshot.id.to_string()];
    for tree in [&snapshot.tree, &snapshot.exact] {
        objects.push(tree.clone());
        let list = f.store_git(&["ls-tree", "-r", "-t", tree]);
        let files = list.lines().filter(|line| !line.starts_with("160000"));
        objects.extend(files.map(|line| line.split([' ', '\t']).nth(2).unwrap().to_owned()));
    }
    let users = f.top.join(".git/objects");
    assert_eq!(missing(f, &objects, Some(&users)), [""; 0], "of {}", snapshot.id);
}

/// Returns all files below a directory with their lengths.
fn files(directory: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let data = entry.metadata().unwrap();
            if data.is_dir() {
                left.push(entry.path());
            } else {
                found.insert(entry.path(), data.len());
            }
        }
    }
    found
}

fn loose_file(f: &SnapshotFixture, object: &str) -> PathBuf {
    let (start, rest) = object.split_at(2);
    store(f).join("objects").join(start).join(rest)
}

/// Replaces a file, even if it can't be written.
fn damage(path: &Path) {
    fs::remove_file(path).unwrap();
    fs::write(path, "damaged").unwrap();
}

/// Checks that a removal fails and leaves all files.
fn check_failure(f: &SnapshotFixture) {
    let before = files(&store(f));
    let failed = f.snapshots().collect(&count(1), later(), &|_| false, false);
    assert!(failed.is_err(), "{failed:?}");
    let after = files(&store(f));
    for (path, bytes) in before {
        assert_eq!(after.get(&path), Some(&bytes), "{}", path.display());
    }
}

#[test]
fn the_oldest_snapshots_beyond_the_number_are_gone_from_the_disk() {
    let f = SnapshotFixture::new();
    let snapshots = five(&f);
    let blobs: Vec<String> = snapshots.iter().map(|found| blob(&f, found, "file")).collect();
    let usage = f.snapshots().usage().unwrap();
    assert_eq!((usage.snapshots, usage.groups), (5, 5));
    let report = collect(&f, &count(2));
    assert_eq!((report.removed, report.kept), (3, 2));
    assert_eq!(report.bytes_before, usage.bytes);
    assert!(report.bytes_after < report.bytes_before, "{report:?}");
    assert_eq!(report.bytes_after, f.snapshots().usage().unwrap().bytes);
    assert_eq!(named(&f), [false, false, false, true, true]);
    for (number, snapshot) in snapshots.iter().enumerate() {
        assert_eq!(is_stored(&f, snapshot.id.as_str()), number > 2, "{number}");
        assert_eq!(is_stored(&f, &blobs[number]), number > 2, "{number}");
    }
    snapshots[3..].iter().for_each(|snapshot| check_whole(&f, snapshot));
    // Nothing is left to remove.
    let again = collect(&f, &count(2));
    assert_eq!((again.removed, again.bytes_after), (0, report.bytes_after));
}

#[test]
fn old_snapshots_are_removed() {
    let f = SnapshotFixture::new();
    begin(&f);
    f.write("file", &noise(0));
    let old = keep(&f, &group(0), "1-after", DAY * 31);
    f.write("file", &noise(1));
    let new = keep(&f, &group(1), "1-after", DAY * 29);
    let report = collect(&f, &RetentionLimits::default());
    assert_eq!((report.removed, report.kept), (1, 1));
    assert!(!is_stored(&f, old.id.as_str()));
    check_whole(&f, &new);
    let limits = RetentionLimits { max_age: DAY * 7, ..RetentionLimits::default() };
    assert_eq!(collect(&f, &limits).removed, 1);
    // The last snapshot of the working directory needs no name.
    assert_eq!(f.take(), new);
    check_whole(&f, &new);
}

#[test]
fn whole_sessions_are_removed_until_the_rest_fits() {
    let f = SnapshotFixture::new();
    let snapshots = five(&f);
    f.snapshots().keep(&group(0), "2-after", &snapshots[0]).unwrap();
    let bytes = f.snapshots().usage().unwrap().bytes;
    // Each of them has a file of its own of more than 8 KiB. The first session has the latest name.
    let limits = RetentionLimits { max_bytes: bytes - 12 * 1024, ..RetentionLimits::default() };
    let report = collect(&f, &limits);
    assert_eq!((report.removed, report.kept), (2, 4));
    assert!(report.bytes_after <= limits.max_bytes, "{report:?}");
    assert_eq!(named(&f), [true, false, false, true, true]);
    for number in [0, 3, 4] {
        check_whole(&f, &snapshots[number]);
    }
    let limits = RetentionLimits { max_bytes: 0, ..RetentionLimits::default() };
    assert_eq!(collect(&f, &limits).kept, 0);
    assert_eq!(f.take(), snapshots[4]);
}

#[test]
fn snapshots_of_a_protected_session_stay() {
    let f = SnapshotFixture::new();
    let snapshots = five(&f);
    let limits = RetentionLimits { max_age: Duration::ZERO, max_count: 0, max_bytes: 0 };
    let is_open = |name: &str| name == group(1);
    let report = f.snapshots().collect(&limits, later(), &is_open, false).unwrap();
    assert_eq!((report.removed, report.kept), (4, 1));
    assert_eq!(named(&f), [false, true, false, false, false]);
    check_whole(&f, &snapshots[1]);
}

#[test]
fn a_dry_run_changes_nothing() {
    let f = SnapshotFixture::new();
    five(&f);
    let before = files(&store(&f));
    let planned = f.snapshots().collect(&count(2), later(), &|_| false, true).unwrap();
    assert_eq!(files(&store(&f)), before);
    assert_eq!((planned.removed, planned.kept), (3, 2));
    assert!(planned.bytes_after < planned.bytes_before, "{planned:?}");
    assert_eq!(collect(&f, &count(2)), planned);
}

#[test]
fn a_store_that_does_not_exist_has_nothing_to_remove() {
    let f = SnapshotFixture::new();
    assert_eq!(collect(&f, &count(0)), GcReport::default());
    assert!(!store(&f).exists());
}

#[test]
fn the_next_snapshots_are_as_without_a_removal() {
    let f = SnapshotFixture::new();
    five(&f);
    let last = f.take();
    collect(&f, &count(0));
    assert_eq!(f.take(), last);
    f.write("file", "changed\n");
    f.write("dir/more", "more\n");
    let changed = f.take();
    assert_eq!(changed.tree, f.tree_of_commit());
    check_whole(&f, &changed);
    collect(&f, &count(0));
    f.write("file", &noise(4));
    fs::remove_file(f.top.join("dir/more")).unwrap();
    assert_eq!(f.take(), last);
    check_whole(&f, &last);
    let next = f.snapshots_at(&f.top, "next").take().unwrap();
    assert_eq!(next, last);
    check_whole(&f, &next);
}

#[test]
fn a_snapshot_without_a_name_stays_for_an_hour() {
    let f = SnapshotFixture::new();
    begin(&f);
    f.write("file", &noise(1));
    let unnamed = f.take();
    f.write("file", &noise(2));
    f.take();
    f.snapshots().collect(&count(0), SystemTime::now(), &|_| false, false).unwrap();
    check_whole(&f, &unnamed);
    collect(&f, &count(0));
    assert!(!is_stored(&f, unnamed.id.as_str()));
}

#[test]
fn a_removal_that_was_killed_is_continued() {
    let f = SnapshotFixture::new();
    let snapshots = five(&f);
    // It was killed after it deleted a name.
    fs::remove_file(store(&f).join("refs/snapshots/session-0/1-after")).unwrap();
    let left = store(&f).join("objects/pack/tmp_pack_left");
    fs::write(&left, noise(9)).unwrap();
    let report = collect(&f, &count(10));
    assert_eq!((report.removed, report.kept), (0, 4));
    assert!(!is_stored(&f, snapshots[0].id.as_str()));
    assert!(!left.exists());
    snapshots[1..].iter().for_each(|snapshot| check_whole(&f, snapshot));
}

#[test]
fn nothing_is_removed_if_git_fails() {
    // A commit, a tree and the index of the working directory.
    for number in 0..3 {
        let f = SnapshotFixture::new();
        let snapshots = five(&f);
        match number {
            0 => damage(&loose_file(&f, snapshots[4].id.as_str())),
            1 => damage(&loose_file(&f, &snapshots[4].exact)),
            _ => {
                let mut places = fs::read_dir(store(&f).join("places")).unwrap();
                damage(&places.next().unwrap().unwrap().path().join("index"));
            }
        }
        check_failure(&f);
    }
}

#[test]
fn nothing_is_removed_if_an_object_is_empty() {
    let f = SnapshotFixture::new();
    let snapshots = five(&f);
    let tree = f.store_git(&["rev-parse", &format!("{}:dir", snapshots[4].exact)]);
    let path = loose_file(&f, &tree);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    check_failure(&f);
}

/// Writes more files than the store keeps as single objects.
fn write_many(f: &SnapshotFixture) {
    begin(f);
    for number in 0..1_100 {
        f.write(&format!("many/{number}"), &format!("{number}\n"));
    }
}

#[test]
fn many_objects_become_one_pack() {
    let f = SnapshotFixture::new();
    write_many(&f);
    let kept = keep(&f, &group(0), "1-after", HOUR);
    f.write("many/0", "changed\n");
    let last = f.take();
    let report = collect(&f, &RetentionLimits::default());
    assert_eq!(report.kept, 1);
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|end| end == "pack");
    let objects = files(&store(&f).join("objects"));
    assert_eq!(objects.keys().filter(|path| is_pack(path)).count(), 1);
    assert!(objects.len() < 10, "{objects:?}");
    check_whole(&f, &kept);
    check_whole(&f, &last);
    assert_eq!(f.take(), last);
    // The same pack is not written and deleted.
    collect(&f, &RetentionLimits::default());
    assert_eq!(files(&store(&f).join("objects")), objects);
    // Without the names most of the pack is waste.
    for number in 0..1_100 {
        fs::remove_file(f.top.join(format!("many/{number}"))).unwrap();
    }
    let last = f.take();
    let report = collect(&f, &count(0));
    assert!(report.bytes_after < report.bytes_before / 2, "{report:?}");
    check_whole(&f, &last);
    assert_eq!(f.take(), last);
}

#[test]
fn nothing_is_removed_if_an_object_can_not_be_packed() {
    let f = SnapshotFixture::new();
    five(&f);
    write_many(&f);
    let last = f.take();
    damage(&loose_file(&f, &blob(&f, &last, "many/7")));
    check_failure(&f);
}

#[test]
fn both_trees_of_converted_files_stay_whole() {
    let f = SnapshotFixture::new();
    f.write(".gitattributes", "* text=auto\n");
    f.commit();
    begin(&f);
    let mut snapshots = Vec::new();
    for number in 0..4 {
        f.write("file", &noise(number).replace('\n', "\r\n"));
        f.write("plain", &format!("{number}\n"));
        snapshots.push(keep(&f, &group(number as usize), "1-after", HOUR * (9 - number as u32)));
    }
    assert_ne!(snapshots[3].tree, snapshots[3].exact);
    let report = collect(&f, &count(2));
    assert!(report.bytes_after < report.bytes_before, "{report:?}");
    snapshots[2..].iter().for_each(|snapshot| check_whole(&f, snapshot));
    assert!(!is_stored(&f, &snapshots[0].tree));
    assert_eq!(f.take(), snapshots[3]);
    f.write("plain", "other\n");
    let next = f.take();
    assert_eq!(next.tree, f.tree_of_commit());
    check_whole(&f, &next);
}

#[test]
fn snapshots_of_nested_repositories_stay_with_theirs() {
    let f = SnapshotFixture::new();
    let nested = f.top.join("nested");
    fs::create_dir(&nested).unwrap();
    f.git_in(&nested, &["init", "--quiet"]);
    // The first snapshot stays: later ones are built from it.
    write(&nested.join("a"), "0\n");
    f.take();
    write(&nested.join("a"), "1\n");
    let old = keep(&f, &group(0), "1-after", HOUR * 9);
    write(&nested.join("a"), "2\n");
    let kept = keep(&f, &group(1), "1-after", HOUR * 8);
    write(&nested.join("a"), "3\n");
    f.take();
    collect(&f, &count(1));
    check_whole(&f, &kept);
    for nested in &kept.nested {
        let list = f.list(nested.id.as_str());
        let objects = list.lines().map(|line| line.split([' ', '\t']).nth(2).unwrap().to_owned());
        assert_eq!(missing(&f, &objects.collect::<Vec<_>>(), None), [""; 0]);
    }
    assert!(!is_stored(&f, old.nested[0].id.as_str()));
}

#[test]
fn content_of_large_files_stays_with_its_snapshots() {
    let f = SnapshotFixture::new();
    f.git(&["lfs", "install", "--local"]);
    f.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    f.write("committed.bin", &noise(1));
    f.commit();
    begin(&f);
    let large = store(&f).join("lfs");
    for number in 2..5 {
        f.write("changed.bin", &noise(number));
        keep(&f, &group(number as usize), "1-after", HOUR * (9 - number as u32));
    }
    assert_eq!(files(&large).len(), 4);
    let report = collect(&f, &count(2));
    assert_eq!(report.kept, 2);
    // The pointer to the committed file is only in the user's repository.
    assert_eq!(files(&large).len(), 3);
    collect(&f, &count(0));
    assert_eq!(files(&large).len(), 2, "the last snapshot has no name");
    f.write("changed.bin", "small");
    fs::remove_file(f.top.join("committed.bin")).unwrap();
    f.snapshots_at(&f.top, "next").take().unwrap();
    collect(&f, &count(0));
    assert_eq!(files(&large).len(), 1);
}

#[test]
fn refs_of_commits_that_no_snapshot_needs_are_removed() {
    let f = SnapshotFixture::new();
    let refs =
        || f.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/hookloop/snapshots"]);
    let mut heads = Vec::new();
    for number in 0..3 {
        f.write("file", &noise(number));
        f.commit();
        heads.push(f.git(&["rev-parse", "HEAD"]));
        let snapshots = f.snapshots_at(&f.top, &group(number as usize));
        let snapshot = snapshots.take().unwrap();
        snapshots.keep(&group(number as usize), "1-after", &snapshot).unwrap();
    }
    assert_eq!(refs().lines().count(), 3);
    let is_first = |name: &str| name == group(0);
    f.snapshots().collect(&count(0), later(), &is_first, false).unwrap();
    // The first is that of a snapshot, the last that of the working directory.
    let mut expected = vec![heads[0].as_str(), heads[2].as_str()];
    expected.sort_unstable();
    assert_eq!(refs().lines().collect::<Vec<_>>(), expected);
    // Another project in the same repository may need them.
    let other = f.path.join("other/snapshots/places/one");
    fs::create_dir_all(&other).unwrap();
    let objects = f.top.join(".git/objects");
    fs::write(other.join("state.json"), format!("{{\"objects\": {objects:?}}}")).unwrap();
    collect(&f, &count(0));
    assert_eq!(refs().lines().count(), 2);
    fs::remove_dir_all(f.path.join("other")).unwrap();
    collect(&f, &count(0));
    assert_eq!(refs(), heads[2]);
}

#[test]
fn directories_that_are_gone_leave_nothing() {
    let f = SnapshotFixture::new();
    f.take();
    let other = f.path.join("elsewhere");
    write(&other.join("a"), "1\n");
    f.snapshots_at(&other, "session").take().unwrap();
    let places = || fs::read_dir(store(&f).join("places")).unwrap().count();
    assert_eq!(places(), 2);
    collect(&f, &count(0));
    assert_eq!(places(), 2, "it is still there");
    fs::remove_dir_all(&other).unwrap();
    collect(&f, &count(0));
    assert_eq!(places(), 1);
}

#[test]
fn kept_snapshots_of_a_removed_worktree_can_be_read() {
    let f = SnapshotFixture::new();
    let tree = f.path.join("tree");
    f.git(&["worktree", "add", "--quiet", "--detach", tree.to_str().unwrap()]);
    let snapshots = f.snapshots_at(&tree, "session");
    let before = snapshots.take().unwrap();
    write(&tree.join("file"), "changed\n");
    let after = snapshots.take().unwrap();
    snapshots.keep("session", "1-before", &before).unwrap();
    snapshots.keep("session", "1-after", &after).unwrap();
    f.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    for _ in 0..2 {
        assert_eq!(collect(&f, &RetentionLimits::default()).kept, 2);
        // The old content is only in the user's repository.
        let changes = f.snapshots().changes(&before.tree, &after.tree).unwrap();
        assert_eq!(changes, [("file".to_owned(), 3)]);
    }
    let places = files(&store(&f).join("places"));
    assert_eq!(places.len(), 1, "{places:?}");
}

#[test]
fn snapshots_that_are_taken_during_a_removal_stay_whole() {
    let f = SnapshotFixture::new();
    let rounds = 12;
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            for _ in 0..rounds {
                collect(&f, &count(3));
            }
        });
        for number in 0..rounds {
            // Old content comes back, whose objects may be about to be deleted.
            f.write("file", &noise(number % 3));
            f.write("dir/file", &noise(number % 4));
            let snapshot = f.take();
            f.snapshots().keep("session", &format!("{number}-after"), &snapshot).unwrap();
        }
        remover.join().unwrap();
    });
    let snapshots = f.snapshots();
    let names = snapshots.names("session").unwrap();
    assert!(!names.is_empty());
    for name in names {
        check_whole(&f, &snapshots.find("session", &name).unwrap().unwrap());
    }
}
