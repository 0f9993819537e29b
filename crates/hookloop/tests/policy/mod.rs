//! A policy of an administrator above users and projects, and secrets by reference.

mod holding;
mod secrets;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::{ProgramOutput, Project};

impl Project {
    /// Returns the path of this project's policy.
    fn policy_file(&self) -> PathBuf {
        self.home().join("etc/policy.yaml")
    }

    /// Writes the policy after `version: 1`, writable only by its owner.
    fn write_policy(&self, yaml: &str) {
        let path = self.policy_file();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("version: 1\n{yaml}")).unwrap();
        set_mode(&path, 0o644);
        set_mode(path.parent().unwrap(), 0o755);
    }

    /// Runs a command with the policy.
    fn under(&self, args: &[&str]) -> ProgramOutput {
        self.hookloop(args).env("HOOKLOOP_POLICY", self.policy_file()).output().unwrap().into()
    }

    /// Runs a command with the policy, which must succeed; returns its JSON.
    fn under_json(&self, args: &[&str]) -> serde_json::Value {
        let run = self.under(&[args, &["--json"]].concat());
        assert_eq!(run.code, 0, "{args:?}: {run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Runs a command that the policy forbids at `line`; returns the error, which names the line.
    fn forbidden(&self, args: &[&str], line: u64) -> String {
        let run = self.under(args);
        let place = format!("{}:{line}", self.policy_file().display());
        assert!(run.code == 1 && run.stderr.contains(&place), "{args:?} {line}: {run:?}");
        assert!(run.stderr.contains("hookloop policy"), "{run:?}");
        run.stderr
    }

    /// Runs a session with the turns of `turns.json`.
    fn session(&self, args: &[&str]) -> ProgramOutput {
        self.under(&[&["run", "work", "--agent", "scripted:turns.json"], args].concat())
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
