//! A temporary project with its own home, and programs that run in it.
//!
//! The path of the hookloop program is a parameter: this crate builds without the program.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "for tests only: a failure ends the test"
)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use crate::git::run_git;
use crate::output::{ProgramOutput, RefusedCommand, json_lines};

/// The user's configuration of most test projects: they have no gates.
const WITHOUT_GATES: &str = "version: 1\ngates: none\n";
/// The turns of the scripted agent, in the project.
const TURNS_FILE: &str = "turns.json";

/// The scripted agent with the turns of [`TestProject::write_turns`], as the value of `--agent`.
pub const SCRIPTED_AGENT: &str = "scripted:turns.json";

/// A project and a home in a temporary directory, deleted on drop.
///
/// Commands run in the project with `HOME` and the variables of the builder; they inherit no other variable.
#[derive(Debug)]
pub struct TestProject {
    directory: TempDir,
    program: PathBuf,
    root: PathBuf,
    variables: Vec<(OsString, OsString)>,
    allows_warnings: bool,
    state: OnceLock<PathBuf>,
}

/// The parts of a [`TestProject`].
#[derive(Clone, Debug)]
#[must_use]
pub struct TestProjectBuilder {
    program: PathBuf,
    directory_name: OsString,
    user_config: Option<String>,
    config: Option<String>,
    files: Vec<(String, String)>,
    variables: Vec<(OsString, OsString)>,
    has_repository: bool,
    is_initialized: bool,
    is_trusted: bool,
    allows_warnings: bool,
}

impl TestProjectBuilder {
    fn new(program: PathBuf) -> TestProjectBuilder {
        TestProjectBuilder {
            program,
            directory_name: "project".into(),
            user_config: Some(WITHOUT_GATES.to_owned()),
            config: None,
            files: Vec::new(),
            variables: vec![("USER".into(), "tester".into())],
            has_repository: false,
            is_initialized: false,
            is_trusted: false,
            allows_warnings: false,
        }
    }

    /// Names the directory of the project; else it is `project`.
    pub fn directory_name(mut self, name: impl Into<OsString>) -> TestProjectBuilder {
        self.directory_name = name.into();
        self
    }

    /// Sets the user's config.yaml; else it is `gates: none`.
    pub fn user_config(mut self, text: impl Into<String>) -> TestProjectBuilder {
        self.user_config = Some(text.into());
        self
    }

    /// Creates no config.yaml of the user.
    pub fn without_user_config(mut self) -> TestProjectBuilder {
        self.user_config = None;
        self
    }

    /// Sets the project's hookloop.yaml; else there is none.
    pub fn config(mut self, text: impl Into<String>) -> TestProjectBuilder {
        self.config = Some(text.into());
        self
    }

    /// Adds a file to the project after `init`, as [`TestProject::write`] does.
    pub fn file(mut self, name: impl Into<String>, text: impl Into<String>) -> TestProjectBuilder {
        self.files.push((name.into(), text.into()));
        self
    }

    /// Sets a variable of the environment of all commands.
    pub fn variable(
        mut self,
        name: impl Into<OsString>,
        value: impl Into<OsString>,
    ) -> TestProjectBuilder {
        set_variable(&mut self.variables, name.into(), value.into());
        self
    }

    /// Sets `PATH` to that of the test.
    pub fn inherited_path(self) -> TestProjectBuilder {
        self.variable("PATH", std::env::var_os("PATH").unwrap_or_default())
    }

    /// Makes the project a git repository whose first commit, on `main`, has all files.
    pub fn repository(mut self) -> TestProjectBuilder {
        self.has_repository = true;
        self
    }

    /// Runs `hookloop init`.
    pub fn initialized(mut self) -> TestProjectBuilder {
        self.is_initialized = true;
        self
    }

    /// Trusts the hooks of the project.
    pub fn trusted(mut self) -> TestProjectBuilder {
        self.is_trusted = true;
        self
    }

    /// Lets commands that succeed write to standard error.
    pub fn allow_warnings(mut self) -> TestProjectBuilder {
        self.allows_warnings = true;
        self
    }

    /// Creates the project.
    ///
    /// # Panics
    ///
    /// If a directory, a file or a command fails.
    pub fn build(self) -> TestProject {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join(&self.directory_name);
        let TestProjectBuilder { program, variables, allows_warnings, .. } = self;
        let state = OnceLock::new();
        let project = TestProject { directory, program, root, variables, allows_warnings, state };
        fs::create_dir(&project.root).unwrap();
        fs::create_dir_all(project.user_directory()).unwrap();
        if let Some(text) = self.user_config {
            project.write_user_config(&text);
        }
        if let Some(text) = self.config {
            project.write("hookloop.yaml", &text);
        }
        if self.is_initialized {
            project.init();
        }
        for (name, text) in &self.files {
            project.write(name, text);
        }
        if self.has_repository {
            project.create_repository();
        }
        if self.is_trusted {
            project.trust();
        }
        project
    }
}

impl TestProject {
    /// Starts a project for the hookloop program at this path.
    pub fn builder(program: impl Into<PathBuf>) -> TestProjectBuilder {
        TestProjectBuilder::new(program.into())
    }

    pub fn program_path(&self) -> &Path {
        &self.program
    }

    /// The directory of the project.
    pub fn root(&self) -> PathBuf {
        self.root.clone()
    }

    pub fn home(&self) -> PathBuf {
        self.beside("home")
    }

    /// A path beside the project and the home; it is deleted with them.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of the user's own configuration.
    pub fn user_directory(&self) -> PathBuf {
        self.home().join(".config/hookloop")
    }

    /// Writes the user's config.yaml.
    pub fn write_user_config(&self, text: &str) {
        fs::write(self.user_directory().join("config.yaml"), text).unwrap();
    }

    pub fn append_user_config(&self, text: &str) {
        self.write_user_config(&format!("{}{text}", self.user_config()));
    }

    /// Replaces a text in the user's config.yaml, which has to contain it.
    #[track_caller]
    pub fn replace_in_user_config(&self, from: &str, to: &str) {
        let before = self.user_config();
        assert!(before.contains(from), "no {from} in\n{before}");
        self.write_user_config(&before.replace(from, to));
    }

    /// Writes a file beside the user's config.yaml that nobody else can read.
    pub fn write_user_secret(&self, name: &str, text: &str) {
        let path = self.user_directory().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub fn user_config(&self) -> String {
        fs::read_to_string(self.user_directory().join("config.yaml")).unwrap()
    }

    /// Writes a file of the project, with its directories; returns its path. A text that begins with `#!` can be
    /// executed.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }

    /// Reads a file of the project; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }

    /// Writes the turns of [`SCRIPTED_AGENT`], as JSON.
    pub fn write_turns(&self, turns: impl ToString) {
        self.write(TURNS_FILE, &turns.to_string());
    }

    /// Sets a variable of the environment of all commands from now on.
    pub fn set_variable(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        set_variable(&mut self.variables, name.into(), value.into());
    }

    /// A program in the project, without the environment of the test.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.prepare(Command::new(program))
    }

    /// Moves a command into the project: its directory, its environment, no input.
    pub fn prepare(&self, mut command: Command) -> Command {
        command
            .current_dir(&self.root)
            .env_clear()
            .env("HOME", self.home())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// The hookloop program in the project.
    pub fn hookloop(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.args(args);
        command
    }

    /// The hookloop program in the project with `--json`, ready to start with its output captured.
    pub fn json_command(&self, args: &[&str]) -> Command {
        let mut command = self.hookloop(args);
        command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> ProgramOutput {
        self.hookloop(args).output().unwrap().into()
    }

    /// Runs a line in a shell, as a user types it.
    pub fn shell(&self, line: &str) -> ProgramOutput {
        self.command("bash").args(["-c", line]).output().unwrap().into()
    }

    /// Runs hookloop with this text on its standard input.
    pub fn run_with_input(&self, args: &[&str], input: &str) -> ProgramOutput {
        with_input(self.hookloop(args), input)
    }

    /// Runs hookloop as an agent does: from another process. The test stays a person.
    pub fn run_by_agent(&self, args: &[&str], input: &str) -> ProgramOutput {
        let mut agent = self.command("timeout");
        agent.args(["--foreground", "600"]).arg(&self.program).args(args);
        with_input(agent, input)
    }

    /// Runs hookloop, which has to succeed; returns its standard output.
    ///
    /// # Panics
    ///
    /// If it fails, or writes to standard error where the builder does not allow that.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let is_quiet = self.allows_warnings || output.stderr.is_empty();
        assert!(output.code == 0 && is_quiet, "{args:?}: {output:?}");
        output.stdout
    }

    /// Runs hookloop, which has to fail with `code` and to print only an error; returns the error.
    #[track_caller]
    pub fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.code == code && output.stdout.is_empty(), "{args:?}: {output:?}");
        assert!(output.stderr.starts_with("error: "), "{args:?}: {output:?}");
        output.stderr
    }

    /// Runs hookloop, which has to fail.
    #[track_caller]
    pub fn refused(&self, args: &[&str]) -> RefusedCommand {
        let start = Instant::now();
        let output = self.run(args);
        let took = start.elapsed();
        assert_ne!(output.code, 0, "{args:?}: {output:?}");
        RefusedCommand { code: output.code, error: output.stderr, took }
    }

    /// Runs hookloop with `--json`, which has to succeed; returns its JSON value.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--json"]].concat())).unwrap()
    }

    /// Runs hookloop with `--json`, which has to succeed; returns a JSON value for each line.
    #[track_caller]
    pub fn json_lines(&self, args: &[&str]) -> Vec<Value> {
        json_lines(&self.ok(&[args, &["--json"]].concat()))
    }

    /// Runs `hookloop init`.
    #[track_caller]
    pub fn init(&self) {
        let made = self.json(&["init", "--yes"]);
        self.state.get_or_init(|| PathBuf::from(made["state"].as_str().unwrap()));
    }

    /// The directory of the project's state.
    ///
    /// # Panics
    ///
    /// Before [`TestProject::init`].
    #[track_caller]
    pub fn state_directory(&self) -> &Path {
        self.state.get().expect("the project is initialized")
    }

    /// Trusts the hooks of the project.
    #[track_caller]
    pub fn trust(&self) {
        self.ok(&["hooks", "trust", "--yes"]);
    }

    /// Makes the project a git repository; its first commit, on `main`, has all files.
    #[track_caller]
    pub fn create_repository(&self) {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message=start"]);
    }

    /// Runs git in the project; returns its standard output.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        run_git(&self.root, args)
    }
}

fn set_variable(variables: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    variables.retain(|(known, _)| *known != name);
    variables.push((name, value));
}

fn with_input(mut command: Command, input: &str) -> ProgramOutput {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that prints its arguments, its directory and its environment.
    const REPORTING: &str = "#!/bin/sh\nprintf '%s\\n' \"$*\" \"$PWD\"; env | sort\n";

    fn program(directory: &TempDir, text: &str) -> PathBuf {
        let path = directory.path().join("program");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn commands_run_in_the_project_with_nothing_of_the_tests_environment() {
        let directory = tempfile::tempdir().unwrap();
        let builder = TestProject::builder(program(&directory, REPORTING));
        let project = builder.variable("USER", "ada").variable("COLOR", "red").build();
        let printed = project.ok(&["task", "list"]);
        let root = project.root().canonicalize().unwrap();
        let own = |line: &&str| {
            !["PWD=", "_=", "OLDPWD=", "SHLVL="].iter().any(|name| line.starts_with(name))
        };
        let lines: Vec<&str> = printed.lines().filter(own).collect();
        let home = format!("HOME={}", project.home().display());
        assert_eq!(lines, ["task list", root.to_str().unwrap(), "COLOR=red", &home, "USER=ada"]);
    }

    #[test]
    fn a_builder_writes_files_and_a_repository_with_them() {
        let directory = tempfile::tempdir().unwrap();
        let program = program(
            &directory,
            "#!/bin/sh\necho \"$*\" >> ../calls\necho '{\"state\": \"/state\"}'\n",
        );
        let builder = TestProject::builder(program).config("version: 1\n").file("a/b.txt", "b");
        let project = builder.repository().initialized().trusted().build();
        assert_eq!(project.git(&["ls-files"]), "a/b.txt\nhookloop.yaml");
        assert_eq!(project.git(&["branch", "--show-current"]), "main");
        assert_eq!(project.user_config(), WITHOUT_GATES);
        assert_eq!(project.state_directory(), Path::new("/state"));
        let calls = fs::read_to_string(project.beside("calls")).unwrap();
        assert_eq!(calls, "init --yes --json\nhooks trust --yes\n");
    }

    #[test]
    #[should_panic(expected = "a warning")]
    fn a_warning_fails_a_command_that_has_to_succeed() {
        let directory = tempfile::tempdir().unwrap();
        let program = program(&directory, "#!/bin/sh\necho 'a warning' >&2\n");
        TestProject::builder(program).build().ok(&["status"]);
    }

    #[test]
    fn a_warning_is_allowed_by_the_builder_option() {
        let directory = tempfile::tempdir().unwrap();
        let program = program(&directory, "#!/bin/sh\necho 'a warning' >&2; echo '{\"a\": 1}'\n");
        let project = TestProject::builder(program).allow_warnings().build();
        assert_eq!(project.json(&["status"])["a"], 1);
    }
}
