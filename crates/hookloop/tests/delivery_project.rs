//! A project with delivery: a repository with a remote, tasks, and agents that run scripts.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;

use hookloop_testbed::github::GitHub;
use hookloop_testkit::{SessionOutput, TaskScripts, TestProject, run_git};
use serde_json::Value;

use super::support::builder;

/// A test that every commit of the base must pass: no file contains `bad`.
pub(crate) const GREEN: &str = "! grep -rqw bad --include='*.txt' .";

/// The token of the forge. No output may contain it.
pub(crate) const TOKEN: &str = "ghp_forTestsAlone0123456789abcdefghij";

/// A trusted [`TestProject`] in a git repository.
pub(crate) struct DeliveryProject {
    project: TestProject,
    scripts: TaskScripts,
}

impl Deref for DeliveryProject {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

impl DerefMut for DeliveryProject {
    fn deref_mut(&mut self) -> &mut TestProject {
        &mut self.project
    }
}

impl DeliveryProject {
    /// Returns a project whose remote is a bare repository.
    pub(crate) fn new(config: &str, files: &[(&str, &str)]) -> DeliveryProject {
        let project = DeliveryProject::without_remote(config, files);
        let remote = project.remote().display().to_string();
        project.git(&["init", "-q", "--bare", "-b", "main", &remote]);
        project.git(&["remote", "add", "origin", &remote]);
        project.git(&["push", "-q", "origin", "main"]);
        project
    }

    /// Returns a project whose remote has this URL, which git maps to the bare repository.
    pub(crate) fn at_address(url: &str, config: &str, files: &[(&str, &str)]) -> DeliveryProject {
        let project = DeliveryProject::new(config, files);
        project.git(&["remote", "set-url", "origin", url]);
        let instead = format!("[url \"{}\"]\n\tinsteadOf = {url}\n", project.remote().display());
        fs::write(project.home().join(".gitconfig"), instead).unwrap();
        project
    }

    /// Returns a project whose remote has a GitHub URL, and a forge on localhost that serves it.
    pub(crate) fn on_forge(config: &str, files: &[(&str, &str)]) -> (DeliveryProject, GitHub) {
        let url = "https://github.com/acme/app.git";
        let mut project = DeliveryProject::at_address(url, config, files);
        let forge = GitHub::start(&project.remote());
        project.set_variable("HOOKLOOP_GITHUB_API", forge.url());
        project.set_variable("HOOKLOOP_GITHUB_TOKEN", TOKEN);
        (project, forge)
    }

    pub(crate) fn without_remote(config: &str, files: &[(&str, &str)]) -> DeliveryProject {
        let builder = builder().config(format!("version: 1\n{config}"));
        let builder =
            files.iter().fold(builder, |builder, (name, text)| builder.file(*name, *text));
        let project = builder.initialized().repository().trusted().build();
        project.git(&["config", "user.name", "t"]);
        project.git(&["config", "user.email", "t@example.invalid"]);
        let scripts = TaskScripts::create(project.beside("agent"));
        DeliveryProject { project, scripts }
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.beside("remote.git")
    }

    /// Runs git in the remote repository.
    pub(crate) fn at_remote(&self, args: &[&str]) -> String {
        run_git(&self.remote(), args)
    }

    /// Runs hookloop with `--json`, which must succeed; returns all printed values.
    pub(crate) fn json_values(&self, args: &[&str]) -> Vec<Value> {
        let text = self.ok(&[args, &["--json"]].concat());
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        values.map(Result::unwrap).collect()
    }

    pub(crate) fn add(&self, id: &str, rest: &[&str]) {
        let args = [&["task", "add", "Goal of it", "--id", id], rest].concat();
        self.json_values(&args);
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.json_values(&["task", "show", id]).remove(0)
    }

    pub(crate) fn state(&self, id: &str) -> String {
        self.task(id)["state"].as_str().unwrap().to_owned()
    }

    /// Sets the script of the agent's turn number `turn` on a task: lines for `sh`, run in the
    /// agent's directory.
    pub(crate) fn does(&self, task: &str, turn: u32, script: &str) {
        self.scripts.write(task, turn, script);
    }

    /// Returns everything that hookloop has stored.
    pub(crate) fn kept(&self) -> Vec<u8> {
        let mut found = BTreeMap::new();
        let state = self.home().join(".local/state");
        collect(&state, &state, &mut found);
        found.into_values().flatten().collect()
    }

    /// Returns the prompt of a task's turn.
    pub(crate) fn prompt(&self, task: &str, turn: u32) -> String {
        self.scripts.prompt(task, turn)
    }

    /// Returns the agent that runs its scripts and reports COMPLETE.
    pub(crate) fn agent(&self) -> String {
        self.scripts.agent()
    }

    /// Runs a session of the agent.
    pub(crate) fn run_session(&self, args: &[&str]) -> SessionOutput {
        let agent = self.agent();
        let all = [&["run", "--agent", &agent], args].concat();
        self.json_command(&all).output().unwrap().into()
    }

    /// Runs a session of the agent for each task that is ready.
    pub(crate) fn run_tasks(&self) -> SessionOutput {
        self.run_session(&["--tasks"])
    }

    /// Returns the result of `hookloop merge` for each task, with its message.
    pub(crate) fn merge(&self) -> BTreeMap<String, (String, String)> {
        let output = self.json_command(&["merge"]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{:?} {told}", output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let read = |line: Value| {
            let why = format!("{} {}", word(&line["by"]), word(&line["reason"]));
            (word(&line["task"]), (word(&line["result"]), why))
        };
        lines.map(read).collect()
    }

    /// Returns a file of the base branch in the remote.
    pub(crate) fn on_main(&self, file: &str) -> String {
        let output = Command::new("git")
            .args(["show", &format!("main:{file}")])
            .current_dir(self.remote())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Pushes a change to the base as another user.
    pub(crate) fn push_to_main(&self, file: &str, text: &str) {
        let clone = self.beside("somebody");
        if !clone.exists() {
            let (from, to) = (self.remote().display().to_string(), clone.display().to_string());
            self.git(&["clone", "-q", &from, &to]);
        }
        run_git(&clone, &["pull", "-q"]);
        fs::write(clone.join(file), text).unwrap();
        run_git(&clone, &["add", "."]);
        let who = ["-c", "user.name=s", "-c", "user.email=s@example.invalid"];
        run_git(&clone, &[&who[..], &["commit", "-qm", "meanwhile"]].concat());
        run_git(&clone, &["push", "-q", "origin", "HEAD:main"]);
    }

    /// Returns everything that belongs to the user: files, index, HEAD, branches and
    /// remote-tracking refs, except the branches of tasks.
    pub(crate) fn users(&self) -> BTreeMap<String, Vec<u8>> {
        let root = self.root();
        let mut found = BTreeMap::new();
        collect(&root, &root, &mut found);
        for name in ["index", "HEAD", "ORIG_HEAD", "FETCH_HEAD"] {
            let bytes = fs::read(root.join(".git").join(name)).unwrap_or_default();
            found.insert(format!(".git/{name}"), bytes);
        }
        let refs =
            self.git(&["for-each-ref", "refs/heads", "refs/remotes", "refs/stash", "refs/tags"]);
        let theirs: Vec<&str> =
            refs.lines().filter(|line| !line.contains("refs/heads/hookloop/")).collect();
        found.insert("refs".to_owned(), theirs.join("\n").into_bytes());
        found
    }
}

fn collect(root: &Path, directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        match path.is_dir() {
            true => collect(root, &path, found),
            false => {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
}
