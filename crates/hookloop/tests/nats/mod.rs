//! A machine as servers see it: a home and a copy of a project, with the real program.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use hookloop_testbed::Server;
use serde_json::Value;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_hookloop");

/// The program, in a directory, with nothing of the environment of the tests.
pub(crate) fn hookloop(directory: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command.current_dir(directory).env_clear().env("USER", "tester").stdin(Stdio::null());
    command
}

/// A command that did not work.
pub(crate) struct Refused {
    pub(crate) code: i32,
    pub(crate) error: String,
    pub(crate) took: Duration,
}

pub(crate) struct Machine {
    directory: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        let machine = Machine { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(machine.own()).unwrap();
        std::fs::create_dir(machine.root()).unwrap();
        machine
    }

    /// With a copy of a project that is kept on `server`, which may be listed.
    pub(crate) fn on(server: &Server, project: &str) -> Machine {
        let machine = Machine::new();
        let (url, monitor) = (server.url(), server.monitor_url());
        machine.write("hookloop.yaml", &format!("version: 1\nproject: {project}\nstore: {url}\n"));
        machine
            .write_own(&format!("version: 1\nstores:\n  {url}: {{monitors: [\"{monitor}\"]}}\n"));
        machine
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Where the user's own configuration is.
    pub(crate) fn own(&self) -> PathBuf {
        self.home().join(".config/hookloop")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.root().join(name), text).unwrap();
    }

    pub(crate) fn write_own(&self, text: &str) {
        std::fs::write(self.own().join("config.yaml"), text).unwrap();
    }

    pub(crate) fn append_own(&self, text: &str) {
        let before = std::fs::read_to_string(self.own().join("config.yaml")).unwrap();
        self.write_own(&format!("{before}{text}"));
    }

    pub(crate) fn change_own(&self, from: &str, to: &str) {
        let before = std::fs::read_to_string(self.own().join("config.yaml")).unwrap();
        assert!(before.contains(from), "no {from} in\n{before}");
        self.write_own(&before.replace(from, to));
    }

    pub(crate) fn write_secret(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.own().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        hookloop(&self.root()).args(args).env("HOME", self.home()).output().unwrap()
    }

    /// What a command that has to work prints.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {}\n{told}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--json"]].concat())).unwrap()
    }

    /// The values of a command that prints one a line.
    pub(crate) fn lines(&self, args: &[&str]) -> Vec<Value> {
        let printed = self.ok(&[args, &["--json"]].concat());
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What a command that must not work says.
    pub(crate) fn refused(&self, args: &[&str]) -> Refused {
        let start = Instant::now();
        let output = self.run(args);
        let took = start.elapsed();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{args:?} worked");
        Refused { code: output.status.code().unwrap_or(-1), error, took }
    }
}
