//! A repository with snapshots of its files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hookloop_core::session::facts::RestoreKind;
use hookloop_git::snapshot::{
    RestoreItem, RestorePlan, RestoreReport, RestoredFile, RestoredStates, Snapshot,
    SnapshotOptions, Snapshots, TurnFiles,
};
use hookloop_process::{Cancel, KeeperPool};
use tempfile::TempDir;

pub(crate) struct SnapshotFixture {
    /// Deleted with the fixture.
    _dir: TempDir,
    keepers: Arc<KeeperPool>,
    environment: Vec<(OsString, OsString)>,
    /// The directory that contains all others.
    pub(crate) path: PathBuf,
    /// The checkout.
    pub(crate) top: PathBuf,
}

impl SnapshotFixture {
    /// Creates a directory without a repository.
    pub(crate) fn plain() -> SnapshotFixture {
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
        SnapshotFixture { _dir: dir, keepers, environment, path, top }
    }

    /// Creates a directory with files and without a repository, in which git commands do nothing.
    pub(crate) fn plain_with_files() -> SnapshotFixture {
        let fixture = SnapshotFixture::plain();
        fixture.write("a.txt", "one\n");
        fixture.write("src/c.rs", "two\n");
        fixture.write(".gitignore", "ignored\n*.log\n");
        fixture
    }

    /// Creates a repository with a first commit.
    pub(crate) fn new() -> SnapshotFixture {
        let fixture = SnapshotFixture::plain();
        fixture.git(&["init", "--quiet"]);
        fixture.write("file", "one\ntwo\n");
        fixture.write("lib/code.rs", "fn main() {}\n");
        fixture.write(".gitignore", "ignored\n*.log\n");
        fixture.commit();
        fixture
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.top.join(name), text);
    }

    pub(crate) fn make_executable(&self, name: &str) {
        fs::set_permissions(self.top.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn snapshots_at(&self, root: &Path, period: &str) -> Snapshots {
        Snapshots::new(SnapshotOptions {
            root,
            state: &self.path.join("state"),
            period: period.to_owned(),
            environment: &self.environment,
            keepers: &self.keepers,
            cancel: Cancel::new().unwrap(),
        })
    }

    pub(crate) fn snapshots(&self) -> Snapshots {
        self.snapshots_at(&self.top, "session")
    }

    pub(crate) fn take(&self) -> Snapshot {
        self.snapshots().take().unwrap()
    }

    /// Undoes the turn between two snapshots, apart from files of a person. Returns their names, and the report.
    pub(crate) fn undo(&self, before: Snapshot, after: Snapshot) -> (Vec<String>, RestoreReport) {
        let snapshots = self.snapshots();
        // A file that was written just now counts as changed meanwhile.
        std::thread::sleep(Duration::from_millis(50));
        let planned = SystemTime::now();
        let now = snapshots.take().unwrap();
        let turn = TurnFiles { number: 1, before, after: Some(after) };
        let found = snapshots.undone_files(&[&turn], &now, &RestoredStates::new()).unwrap();
        let (kept, changed): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, file)| file.edited.is_some());
        let lock = snapshots.lock_restore().unwrap();
        let report = snapshots.restore(&plan(&now, changed), planned, &lock).unwrap();
        snapshots.end_restore().unwrap();
        let kept = kept.into_iter().map(|(path, _)| String::from_utf8(path).unwrap()).collect();
        (kept, report)
    }

    /// Runs git in the checkout.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.top, args)
    }

    pub(crate) fn git_in(&self, directory: &Path, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(directory).env_clear();
        let output = command.envs(self.environment.iter().cloned()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?} in {}: {error}", directory.display());
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Commits all files that are not ignored.
    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "change"]);
    }

    /// Returns the tree of a commit of all files, which the user makes in a copy of the repository.
    pub(crate) fn tree_of_commit(&self) -> String {
        let copy = self.path.join(format!("copy-{}", uuid()));
        let copied = Command::new("cp").arg("-a").arg(&self.top).arg(&copy).status().unwrap();
        assert!(copied.success());
        self.git_in(&copy, &["add", "--all"]);
        self.git_in(&copy, &["commit", "--quiet", "--allow-empty", "-a", "-m", "all"]);
        let tree = self.git_in(&copy, &["rev-parse", "HEAD^{tree}"]);
        fs::remove_dir_all(copy).unwrap();
        tree
    }

    /// Lists all entries of a tree in the store, with the user's objects.
    pub(crate) fn list(&self, tree: &str) -> String {
        self.store_git(&["ls-tree", "-r", tree])
    }

    /// Runs git in the store, with the user's objects.
    pub(crate) fn store_git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).env_clear().envs(self.environment.iter().cloned());
        command.env("GIT_DIR", self.path.join("state/snapshots"));
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.top.join(".git/objects"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }
}

/// Returns the plan of an undo that changes these files.
pub(crate) fn plan(
    now: &Snapshot,
    files: impl IntoIterator<Item = (Vec<u8>, RestoredFile)>,
) -> RestorePlan {
    let item =
        |(path, file): (Vec<u8>, RestoredFile)| RestoreItem::new(&path, file.current, file.target);
    RestorePlan {
        label: "undo of turn 1".to_owned(),
        kind: RestoreKind::Undo,
        turn: Some(1),
        name: "1".to_owned(),
        session: "session".to_owned(),
        top: now.top.clone(),
        before: now.id.clone(),
        items: files.into_iter().map(item).collect(),
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn uuid() -> String {
    tempfile::Builder::new().tempfile().unwrap().path().file_name().unwrap().to_string_lossy()[1..]
        .to_owned()
}
