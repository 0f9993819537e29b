//! Sessions of the real program with real hooks and agents that are scripts.

mod answers;
mod checkout;
mod commands;
mod ending;
mod gates;
mod governor;
mod lifecycle;
mod prompts;
mod proven;
mod running;
mod scripts;
mod stopping;
mod tasks;
mod visible;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::time::Duration;

use hookloop_testkit::TestProject;
use serde_json::Value;

use crate::support::project_with;

/// Nothing in here takes longer.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Less than the programs of tests last that are broken off, and more than a busy machine delays that.
pub(crate) const BROKEN_OFF: Duration = Duration::from_secs(30);

/// What a session came to.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Ran {
        let text = String::from_utf8(output.stdout).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ran { code: output.status.code().unwrap_or(-1), events, stderr }
    }

    /// The data of all events of a type.
    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        let of_kind = self.events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| &event["data"]).collect()
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.all(kind).len()
    }

    /// What the gates said to each claim.
    pub(crate) fn verdicts(&self) -> Vec<&str> {
        let judged = self.all("gates_judged").into_iter();
        judged.map(|judged| judged["verdict"].as_str().unwrap()).collect()
    }

    pub(crate) fn outcome(&self) -> &str {
        let ended = self.all("session_ended");
        assert_eq!(ended.len(), 1, "{}", self.stderr);
        ended[0]["outcome"].as_str().unwrap()
    }
}

/// A trusted project in a git repository.
pub(crate) fn trusted_project(config: &str, files: &[(&str, &str)]) -> TestProject {
    let project = project_with(config);
    for (name, text) in files {
        write(&project, name, text);
    }
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(project.root()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "start"]);
    let trusted = command(&project, &["hooks", "trust", "--yes"]).output().unwrap();
    assert!(trusted.status.success(), "{trusted:?}");
    project
}

pub(crate) fn write(project: &TestProject, name: &str, text: &str) {
    let path = project.root().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

pub(crate) fn read(project: &TestProject, name: &str) -> String {
    fs::read_to_string(project.root().join(name)).unwrap_or_default()
}

pub(crate) fn command(project: &TestProject, args: &[&str]) -> Command {
    let mut command = project.json_command(args);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// `hookloop run` with these arguments, to its end. Most agents of tests claim to be done and change nothing.
pub(crate) fn run(project: &TestProject, args: &[&str]) -> Ran {
    run_as_it_is(project, &[&["--no-changes-ok"], args].concat())
}

/// The same with nothing but these arguments.
pub(crate) fn run_as_it_is(project: &TestProject, args: &[&str]) -> Ran {
    let all: Vec<&str> = ["run"].into_iter().chain(args.iter().copied()).collect();
    Ran::of(command(project, &all).output().unwrap())
}

/// The same with turns of an agent that is written down.
pub(crate) fn scripted(project: &TestProject, turns: &str, args: &[&str]) -> Ran {
    write(project, "turns.json", turns);
    let all: Vec<&str> = ["work", "--agent", "scripted:turns.json"]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    run(project, &all)
}

pub(crate) fn json(project: &TestProject, args: &[&str]) -> Value {
    let output = command(project, args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
