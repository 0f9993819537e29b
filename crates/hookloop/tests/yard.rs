//! A project whose work is delivered: a repository with a remote, tasks, and agents that do what a script says.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookloop_testbed::github::GitHub;
use hookloop_testkit::TestProject;
use serde_json::Value;

use super::support::project_with;

/// A test that every commit of the base has to pass: no file says `bad`.
pub(crate) const GREEN: &str = "! grep -rqw bad --include='*.txt' .";

/// What lets the program into the forge, and is seen nowhere else.
pub(crate) const TOKEN: &str = "ghp_forTestsAlone0123456789abcdefghij";

pub(crate) struct Yard {
    pub(crate) project: TestProject,
    root: PathBuf,
    /// What the program finds in its environment beside.
    env: Vec<(&'static str, String)>,
}

/// What a session came to.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        let of_kind = self.events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| &event["data"]).collect()
    }

    /// The verdicts of a submission, in their order.
    pub(crate) fn submitted(&self) -> Vec<&str> {
        let judged = self.all("submit_judged").into_iter();
        judged.map(|judged| judged["verdict"].as_str().unwrap()).collect()
    }

    /// The hooks that ran at a point.
    pub(crate) fn hooks_at(&self, point: &str) -> Vec<&str> {
        let ran = self.all("hook_ran").into_iter().filter(|ran| ran["point"] == point);
        ran.map(|ran| ran["hookName"].as_str().unwrap()).collect()
    }
}

impl Deref for Yard {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

impl Yard {
    /// With a bare repository as its remote.
    pub(crate) fn new(config: &str, files: &[(&str, &str)]) -> Yard {
        let yard = Yard::without_remote(config, files);
        yard.git(&["init", "-q", "--bare", "-b", "main", &yard.remote().display().to_string()]);
        yard.git(&["remote", "add", "origin", &yard.remote().display().to_string()]);
        yard.git(&["push", "-q", "origin", "main"]);
        yard
    }

    /// With a remote that is called as if it was on GitHub, and a forge on loopback that has it.
    pub(crate) fn on_forge(config: &str, files: &[(&str, &str)]) -> (Yard, GitHub) {
        let mut yard = Yard::new(config, files);
        let forge = GitHub::start(&yard.remote());
        let url = "https://github.com/acme/app.git";
        yard.git(&["remote", "set-url", "origin", url]);
        let instead = format!("[url \"{}\"]\n\tinsteadOf = {url}\n", yard.remote().display());
        fs::write(yard.root.join("home/.gitconfig"), instead).unwrap();
        yard.env =
            vec![("HOOKLOOP_GITHUB_API", forge.url()), ("HOOKLOOP_GITHUB_TOKEN", TOKEN.to_owned())];
        (yard, forge)
    }

    /// Sets a variable of the program's environment.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.to_owned()));
    }

    /// Appends to the user's own file.
    pub(crate) fn configure_user(&self, text: &str) {
        let path = self.root.join("home/.config/hookloop/config.yaml");
        let before = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{before}{text}")).unwrap();
    }

    /// A place beside the project that is the test's own.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// With a remote that has this address, which git finds in the bare repository.
    pub(crate) fn at_address(url: &str, config: &str, files: &[(&str, &str)]) -> Yard {
        let yard = Yard::new(config, files);
        yard.git(&["remote", "set-url", "origin", url]);
        let instead = format!("[url \"{}\"]\n\tinsteadOf = {url}\n", yard.remote().display());
        fs::write(yard.root.join("home/.gitconfig"), instead).unwrap();
        yard
    }

    pub(crate) fn without_remote(config: &str, files: &[(&str, &str)]) -> Yard {
        let project = project_with(&format!("version: 1\n{config}"));
        let root = project.root().parent().unwrap().to_owned();
        let yard = Yard { project, root, env: Vec::new() };
        for (name, text) in files {
            let path = yard.project().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        yard.git(&["init", "-q", "-b", "main"]);
        yard.git(&["config", "user.name", "t"]);
        yard.git(&["config", "user.email", "t@example.invalid"]);
        yard.git(&["add", "."]);
        yard.git(&["commit", "-qm", "start"]);
        fs::create_dir(yard.root.join("agent")).unwrap();
        yard.ok(&["hooks", "trust", "--yes"]);
        yard
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.project.root()
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.root.join("remote.git")
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.project(), args)
    }

    /// Git in the remote repository.
    pub(crate) fn at_remote(&self, args: &[&str]) -> String {
        git(&self.remote(), args)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.json_command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn ok(&self, args: &[&str]) -> Vec<Value> {
        let output = self.command(args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {:?} {told}", output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        values.map(Result::unwrap).collect()
    }

    pub(crate) fn add(&self, id: &str, rest: &[&str]) {
        let args = [&["task", "add", "Goal of it", "--id", id], rest].concat();
        self.ok(&args);
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.ok(&["task", "show", id]).remove(0)
    }

    pub(crate) fn state(&self, id: &str) -> String {
        self.task(id)["state"].as_str().unwrap().to_owned()
    }

    /// What the agent does in its turn number `turn` on a task: lines for `sh`, in its directory.
    pub(crate) fn does(&self, task: &str, turn: u32, script: &str) {
        fs::write(self.root.join(format!("agent/{task}.{turn}")), script).unwrap();
    }

    /// Everything that the program has stored.
    pub(crate) fn kept(&self) -> Vec<u8> {
        let mut found = BTreeMap::new();
        let state = self.root.join("home/.local/state");
        collect(&state, &state, &mut found);
        found.into_values().flatten().collect()
    }

    /// The prompts of a task's turns.
    pub(crate) fn prompt(&self, task: &str, turn: u32) -> String {
        fs::read_to_string(self.root.join(format!("agent/{task}.{turn}.prompt")))
            .unwrap_or_default()
    }

    /// An agent that does what was written down for it, and says that it is done.
    pub(crate) fn agent(&self) -> String {
        let agent = self.root.join("agent");
        let agent = agent.display();
        format!(
            "command:t=$HOOKLOOP_TASK_ID; n=$(cat {agent}/$t.count 2>/dev/null || echo 0); n=$((n + 1)); \
             echo $n > {agent}/$t.count; cat > {agent}/$t.$n.prompt; \
             if [ -f {agent}/$t.$n ]; then sh -e {agent}/$t.$n >&2 || exit 1; fi; \
             echo '<promise>COMPLETE</promise>'"
        )
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let agent = self.agent();
        let all = [&["run", "--agent", &agent], args].concat();
        Ran::of(self.command(&all))
    }

    pub(crate) fn tasks(&self) -> Ran {
        self.run(&["--tasks"])
    }

    /// What `hookloop merge` says of each task: its fate, and what it says about that.
    pub(crate) fn merge(&self) -> BTreeMap<String, (String, String)> {
        let output = self.command(&["merge"]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{:?} {told}", output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let read = |line: Value| {
            let why = format!("{} {}", word(&line["by"]), word(&line["reason"]));
            (word(&line["task"]), (word(&line["fate"]), why))
        };
        lines.map(read).collect()
    }

    /// A file on the base, as the remote has it.
    pub(crate) fn on_main(&self, file: &str) -> String {
        let output = Command::new("git")
            .args(["show", &format!("main:{file}")])
            .current_dir(self.remote())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Somebody else changes the base meanwhile.
    pub(crate) fn push_to_main(&self, file: &str, text: &str) {
        let clone = self.root.join("somebody");
        if !clone.exists() {
            git(&self.root, &["clone", "-q", &self.remote().display().to_string(), "somebody"]);
        }
        git(&clone, &["pull", "-q"]);
        fs::write(clone.join(file), text).unwrap();
        git(&clone, &["add", "."]);
        let who = ["-c", "user.name=s", "-c", "user.email=s@example.invalid"];
        git(&clone, &[&who[..], &["commit", "-qm", "meanwhile"]].concat());
        git(&clone, &["push", "-q", "origin", "HEAD:main"]);
    }

    /// Everything that is the user's: files, index, HEAD, branches and remote-tracking refs but for those of tasks.
    pub(crate) fn users(&self) -> BTreeMap<String, Vec<u8>> {
        let project = self.project();
        let mut found = BTreeMap::new();
        collect(&project, &project, &mut found);
        for name in ["index", "HEAD", "ORIG_HEAD", "FETCH_HEAD"] {
            let bytes = fs::read(project.join(".git").join(name)).unwrap_or_default();
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

impl Ran {
    pub(crate) fn of(mut command: Command) -> Ran {
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ran { code: output.status.code().unwrap_or(-1), events, stderr }
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

pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(directory).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {told}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
