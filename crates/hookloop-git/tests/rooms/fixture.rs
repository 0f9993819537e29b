//! A repository with snapshots of its files, and rooms.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hookloop_git::repo::RepoError;
use hookloop_git::room::{Room, RoomChange, RoomOptions, RoomTarget, Rooms};
use hookloop_git::snapshot::{Snapshot, SnapshotOptions, Snapshots};
use hookloop_process::{Cancel, KeeperPool};
use tempfile::TempDir;

/// The session of most tests.
pub(crate) const SESSION: &str = "session";

pub(crate) struct RoomFixture {
    /// Deleted with the fixture.
    _dir: TempDir,
    keepers: Arc<KeeperPool>,
    environment: Vec<(OsString, OsString)>,
    /// The directory that contains all others.
    pub(crate) path: PathBuf,
    /// The user's checkout.
    pub(crate) top: PathBuf,
}

impl RoomFixture {
    /// Creates a directory without a repository.
    pub(crate) fn plain() -> RoomFixture {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        for name in ["home", "state", "checkout"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let identity = "[user]\n\tname = User\n\temail = user@example.org\n[init]\n\tdefaultBranch = main\n\
                        [protocol \"file\"]\n\tallow = always\n[commit]\n\tgpgSign = false\n";
        fs::write(path.join("home/.gitconfig"), identity).unwrap();
        let variable = |name: &str, value: OsString| (OsString::from(name), value);
        let environment = vec![
            variable("PATH", std::env::var_os("PATH").unwrap()),
            variable("HOME", path.join("home").into()),
            variable("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        let keepers = Arc::new(KeeperPool::new(env!("CARGO_BIN_EXE_hookloop-git-keeper").into()));
        let top = path.join("checkout");
        RoomFixture { _dir: dir, keepers, environment, path, top }
    }

    /// Returns the fixture with another checkout.
    pub(crate) fn at(self, top: PathBuf) -> RoomFixture {
        RoomFixture { top, ..self }
    }

    /// Creates a repository with a first commit.
    pub(crate) fn new() -> RoomFixture {
        let fixture = RoomFixture::plain();
        fixture.git(&["init", "--quiet"]);
        fixture.write("file", "one\ntwo\n");
        fixture.write("lib/code.rs", "fn main() {}\n");
        fixture.write(".gitignore", "ignored\n*.log\n__pycache__/\n/build/\n");
        fixture.commit();
        fixture
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.top.join(name), text);
    }

    pub(crate) fn snapshots(&self) -> Snapshots {
        self.snapshots_of(SESSION)
    }

    pub(crate) fn snapshots_of(&self, session: &str) -> Snapshots {
        Snapshots::new(SnapshotOptions {
            root: &self.top,
            state: &self.path.join("state"),
            period: session.to_owned(),
            environment: &self.environment,
            keepers: &self.keepers,
            cancel: Cancel::new().unwrap(),
        })
    }

    pub(crate) fn take(&self) -> Snapshot {
        self.snapshots().take().unwrap()
    }

    pub(crate) fn rooms(&self) -> Rooms {
        Rooms::new(RoomOptions {
            state: &self.path.join("state"),
            environment: &self.environment,
            keepers: &self.keepers,
            cancel: Cancel::new().unwrap(),
        })
    }

    pub(crate) fn room(&self) -> Room {
        self.rooms().acquire(SESSION).unwrap()
    }

    /// Moves a room to a snapshot.
    pub(crate) fn try_enter(
        &self,
        room: &mut Room,
        snapshot: &Snapshot,
    ) -> Result<RoomChange, RepoError> {
        room.enter(&RoomTarget {
            tree: &snapshot.tree,
            base: snapshot.head.as_ref(),
            top: &self.top,
            nested: &snapshot.nested,
            snapshots: &self.snapshots(),
        })
    }

    pub(crate) fn enter(&self, room: &mut Room, snapshot: &Snapshot) -> RoomChange {
        self.try_enter(room, snapshot).unwrap()
    }

    /// Returns a room that has the files of the user's checkout.
    pub(crate) fn entered(&self) -> (Room, Snapshot) {
        let (mut room, snapshot) = (self.room(), self.take());
        self.enter(&mut room, &snapshot);
        (room, snapshot)
    }

    /// Checks that a room has the files of a new checkout by hand.
    pub(crate) fn assert_fresh(&self, room: &Room, snapshot: &Snapshot) {
        assert_same(&files(room.files()), &self.fresh(&snapshot.tree));
    }

    /// Returns the files of a tree in a new clone, under the user's configuration.
    pub(crate) fn fresh(&self, tree: &str) -> Files {
        let clone = self.path.join(format!("fresh-{}", unique()));
        let (from, to) = (self.top.to_str().unwrap(), clone.to_str().unwrap());
        self.git_in(&self.path, &["clone", "--quiet", "--no-checkout", from, to]);
        for name in ["config", "info/attributes"] {
            if self.top.join(".git").join(name).exists() {
                fs::copy(self.top.join(".git").join(name), clone.join(".git").join(name)).unwrap();
            }
        }
        let lfs = self.top.join(".git/lfs");
        if lfs.exists() {
            copy_all(&lfs, &clone.join(".git/lfs"));
        }
        // A room has all files of its tree.
        self.git_in(&clone, &["config", "core.sparseCheckout", "false"]);
        let mut command = self.command(&clone, &["read-tree", "--reset", "-u", tree]);
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.path.join("state/snapshots/objects"));
        run(&mut command);
        let found = files(&clone);
        fs::remove_dir_all(&clone).unwrap();
        found
    }

    /// Runs git in the user's checkout.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.top, args)
    }

    pub(crate) fn git_in(&self, directory: &Path, args: &[&str]) -> String {
        run(&mut self.command(directory, args))
    }

    /// Returns a command of git under the user's configuration.
    pub(crate) fn command(&self, directory: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(args).current_dir(directory).env_clear();
        command.envs(self.environment.iter().cloned());
        command
    }

    /// Commits all files that are not ignored.
    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "change"]);
    }
}

/// Runs a command, which has to succeed. Returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Files by path: kind and permissions, and the content or the target of a link. Directories have none.
pub(crate) type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Returns everything in a directory, apart from `.git` at its top.
pub(crate) fn files(top: &Path) -> Files {
    let mut found = BTreeMap::new();
    let mut due = vec![top.to_owned()];
    while let Some(directory) = due.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            if path == top.join(".git") {
                continue;
            }
            let metadata = entry.metadata().unwrap();
            let content = if metadata.is_dir() {
                due.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let relative = path.strip_prefix(top).unwrap().to_owned();
            found.insert(relative, (metadata.mode(), content));
        }
    }
    found
}

/// Compares files, and names those that differ.
pub(crate) fn assert_same(found: &Files, expected: &Files) {
    let names = found.keys().chain(expected.keys());
    let differing: Vec<_> = names.filter(|name| found.get(*name) != expected.get(*name)).collect();
    let describe = |state: Option<&(u32, Vec<u8>)>| {
        state.map(|(mode, bytes)| format!("{mode:o} {:?}", String::from_utf8_lossy(bytes)))
    };
    if let Some(name) = differing.first() {
        let (found, expected) = (describe(found.get(*name)), describe(expected.get(*name)));
        panic!("{} is {found:?}, expected {expected:?}; differing: {differing:?}", name.display());
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns whether something is at a path, be it a link that leads nowhere.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub(crate) fn copy_all(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

fn unique() -> String {
    let file = tempfile::Builder::new().prefix("").tempfile().unwrap();
    file.path().file_name().unwrap().to_str().unwrap().to_owned()
}
