//! A user's clone of a remote, and another user's clone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookloop_core::id::TaskId;
use hookloop_git::repo::{CommitId, Repo, RepoDirectories, RepoError, RepoOptions, Worktree};
use hookloop_process::{Cancel, KeeperPool};
use tempfile::TempDir;

pub(crate) struct RepositoryFixture {
    /// Deleted with the fixture.
    _dir: TempDir,
    keepers: KeeperPool,
    environment: Vec<(OsString, OsString)>,
    state: PathBuf,
    /// The project's directory.
    pub(crate) root: PathBuf,
    pub(crate) cancel: Cancel,
    pub(crate) options: RepoOptions,
}

impl RepositoryFixture {
    /// Creates a bare remote with one commit on `main`, and a clone of it.
    pub(crate) fn new() -> RepositoryFixture {
        let fixture = RepositoryFixture::empty();
        fixture.git(
            fixture.path(),
            &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"],
        );
        fixture.git(fixture.path(), &["clone", "--quiet", "origin.git", "other"]);
        fs::write(fixture.path().join("other/file"), "1\n2\n3\n4\n5\n").unwrap();
        fs::write(fixture.path().join("other/.gitignore"), ".env\n*.local\nbuilt/\n").unwrap();
        fixture.save("other", "first");
        fixture.git(&fixture.path().join("other"), &["push", "--quiet", "origin", "main"]);
        fixture.git(fixture.path(), &["clone", "--quiet", "origin.git", "checkout"]);
        fixture
    }

    /// Creates a clone without a remote, in which `main` is not checked out.
    pub(crate) fn alone() -> RepositoryFixture {
        let fixture = RepositoryFixture::new();
        fixture.in_checkout(&["remote", "remove", "origin"]);
        fixture.in_checkout(&["switch", "--quiet", "-c", "mine"]);
        fixture
    }

    /// Creates a home directory only.
    pub(crate) fn empty() -> RepositoryFixture {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        fs::create_dir(real.join("home")).unwrap();
        fs::create_dir(real.join("state")).unwrap();
        let identity = "[user]\n\tname = User\n\temail = user@example.org\n";
        fs::write(real.join("home/.gitconfig"), identity).unwrap();
        let variable = |name: &str, value: OsString| (OsString::from(name), value);
        let environment = vec![
            variable("PATH", std::env::var_os("PATH").unwrap()),
            variable("HOME", real.join("home").into()),
            variable("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        let options = RepoOptions {
            base: None,
            remote: None,
            prefix: "hookloop/".to_owned(),
            copy: Vec::new(),
        };
        RepositoryFixture {
            keepers: KeeperPool::new(env!("CARGO_BIN_EXE_hookloop-git-keeper").into()),
            environment,
            state: real.join("state"),
            root: real.join("checkout"),
            cancel: Cancel::new().unwrap(),
            options,
            _dir: dir,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.state.parent().unwrap()
    }

    pub(crate) fn checkout(&self) -> PathBuf {
        self.path().join("checkout")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.state.clone()
    }

    pub(crate) fn open(&self) -> Result<Repo<'_>, RepoError> {
        let (root, state, environment) = (&self.root, &self.state, &self.environment);
        let grounds = RepoDirectories { root, state, environment, keepers: &self.keepers };
        Repo::at(grounds, self.options.clone(), &self.cancel)
    }

    pub(crate) fn repo(&self) -> Repo<'_> {
        self.open().unwrap()
    }

    /// Sets a variable of the user's environment.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// Copies the whole fixture, to restore it later.
    pub(crate) fn set_aside(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_all(self.path(), copy.path());
        copy
    }

    pub(crate) fn restore(&self, copy: &TempDir) {
        for entry in fs::read_dir(self.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        copy_all(copy.path(), self.path());
    }

    pub(crate) fn replace(&mut self, name: &str, value: OsString) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.into(), value));
    }

    /// Runs git as a user would; returns its output.
    pub(crate) fn git(&self, directory: &Path, args: &[&str]) -> String {
        let output = self.command(directory, args).output().unwrap();
        let (said, why) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "git {args:?} in {}: {why}", directory.display());
        String::from_utf8_lossy(&said).trim_end().to_owned()
    }

    pub(crate) fn command(&self, directory: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(directory)
            .env_clear()
            .envs(self.environment.iter().cloned());
        command.env("GIT_CONFIG_COUNT", "1");
        command.env("GIT_CONFIG_KEY_0", "protocol.file.allow").env("GIT_CONFIG_VALUE_0", "always");
        command
    }

    pub(crate) fn in_checkout(&self, args: &[&str]) -> String {
        self.git(&self.checkout(), args)
    }

    /// Runs git in the checkout without the hooks and the fsmonitor of its configuration.
    pub(crate) fn in_checkout_unhindered(&self, args: &[&str]) {
        let mut command = self.command(&self.checkout(), args);
        let settings = [("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false")];
        for (number, (name, value)) in settings.into_iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{}", number + 1), name);
            command.env(format!("GIT_CONFIG_VALUE_{}", number + 1), value);
        }
        assert!(command.env("GIT_CONFIG_COUNT", "3").status().unwrap().success());
    }

    /// Commits everything in a directory.
    pub(crate) fn save(&self, directory: &str, message: &str) -> CommitId {
        let directory = self.path().join(directory);
        self.git(&directory, &["add", "--all"]);
        self.git(&directory, &["commit", "--quiet", "-m", message]);
        self.git(&directory, &["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Pushes a change to `main` as another user.
    pub(crate) fn others_change(&self, file: &str, text: &str) -> CommitId {
        let other = self.path().join("other");
        self.git(&other, &["pull", "--quiet", "--rebase", "origin", "main"]);
        let path = other.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let commit = self.save("other", &format!("change {file}"));
        self.git(&other, &["push", "--quiet", "origin", "main"]);
        commit
    }

    /// Returns the head of a branch at the remote.
    pub(crate) fn at_remote(&self, branch: &str) -> Option<String> {
        let args = ["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")];
        let output = self.command(&self.path().join("origin.git"), &args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// Copies with times and modes, because an index depends on them.
fn copy_all(from: &Path, to: &Path) {
    let from = from.join(".");
    let copied = Command::new("cp").arg("-a").args([from.as_path(), to]).status().unwrap();
    assert!(copied.success());
}

pub(crate) fn task(id: &str) -> TaskId {
    id.parse().unwrap()
}

pub(crate) fn write(w: &Worktree, file: &str, text: &str) {
    let path = w.path.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn read(w: &Worktree, file: &str) -> String {
    fs::read_to_string(w.path.join(file)).unwrap()
}

/// Returns every file below a directory with its bytes or link target, except `left_out`.
pub(crate) fn snapshot(top: &Path, left_out: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut due = vec![top.to_owned()];
    while let Some(directory) = due.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().to_owned();
            if left_out.iter().any(|out| name == Path::new(out)) {
                continue;
            }
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                due.push(path);
            } else if kind.is_symlink() {
                found.insert(
                    name,
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                );
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Returns everything that belongs to the user: files, index, HEAD, refs and their logs,
/// configuration, stash.
pub(crate) fn users_own(checkout: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let ours = [
        ".git/objects",
        ".git/worktrees",
        ".git/refs/hookloop",
        ".git/refs/heads/hookloop",
        ".git/logs/refs/heads/hookloop",
        ".git/logs/refs/hookloop",
    ];
    snapshot(checkout, &ours)
}
