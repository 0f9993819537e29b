//! A project with data of every kind, and the actors that run commands in it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hookloop_testkit::TestProject;
use serde_json::Value;

use crate::support::{PROGRAM, project_with};

/// The error that every actor except a person gets.
pub(crate) const REFUSAL: &str = "only a person can";
/// A stop gate that never passes, and a reaction that runs the probes.
const CONFIG: &str = "version: 1
limits: {max_iterations: 1}
hooks:
  stop:
    - {name: green, command: 'false'}
  task_completed:
    - {name: probing, command: 'sh ./probe.sh', timeout: 5m}
";
/// Time limit of a probe.
const PROBE_SECONDS: u32 = 30;

/// The result of one probe.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    pub(crate) code: i32,
    pub(crate) told: String,
}

impl Probed {
    pub(crate) fn is_refused(&self) -> bool {
        self.told.contains(REFUSAL)
    }
}

/// The actors that can run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    Person,
    /// The agent of `hookloop run`.
    SessionAgent,
    /// The agent of a worker's session.
    WorkerAgent,
    /// A reaction that a person's command runs.
    Hook,
    /// A reaction that `hookloop dispatch` runs.
    DispatchedHook,
    /// An agent that a person started, detected by its hooks.
    External,
    /// An agent that a person started, detected by the MCP server that it started.
    ExternalByTools,
}

pub(crate) struct AuthorityProject {
    pub(crate) project: TestProject,
}

impl AuthorityProject {
    pub(crate) fn new() -> AuthorityProject {
        let mut stage = AuthorityProject { project: project_with(CONFIG) };
        stage.project.set_variable("PATH", stage.path());
        stage.project.write("probe.sh", "true\n");
        for args in [
            &["hooks", "trust", "--yes"][..],
            &["task", "add", "Blocked", "--id", "blocked"],
            &["task", "block", "blocked", "--reason", "it has a question"],
            &["task", "add", "Held", "--id", "held"],
            &["task", "claim", "held", "--agent", "somebody"],
            &["task", "add", "Open", "--id", "open"],
            &["task", "add", "Waiting", "--id", "waiting", "--depends-on", "open"],
            &["task", "add", "Trigger", "--id", "trigger"],
            &["schedule", "add", "nightly", "--cron", "0 3 * * *", "--goal", "Tidy up"],
        ] {
            stage.person(args);
        }
        stage
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.project.root().join(name)
    }

    /// Returns the program as a person starts it, with a `PATH` that contains it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.project.json_command(args)
    }

    /// Runs a command as a person. The command must succeed.
    pub(crate) fn person(&self, args: &[&str]) -> Value {
        let output = self.command(args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {told}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Returns a `PATH` with Debian's programs and hookloop only, so a probe cannot start a server.
    fn path(&self) -> String {
        let bin = self.file(".bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(PROGRAM, bin.join("hookloop")).unwrap();
        format!("{}:/usr/bin:/bin", bin.display())
    }

    /// Runs each shell line as `actor`; returns the result of each line.
    pub(crate) fn probe(&self, actor: Actor, lines: &[String]) -> Vec<Probed> {
        let results = self.file("results");
        let _ = fs::remove_dir_all(&results);
        fs::create_dir(&results).unwrap();
        let mut script = format!("cd '{}'\n", self.project.root().display());
        for (number, line) in lines.iter().enumerate() {
            let at = results.join(number.to_string());
            let at = at.display();
            fs::write(format!("{at}.sh"), format!("{line}\n")).unwrap();
            script.push_str(&format!(
                "timeout -k 1 {PROBE_SECONDS} sh '{at}.sh' </dev/null >'{at}.out' 2>'{at}.err'; echo $? >'{at}.code'\n"
            ));
        }
        script.push_str("exit 0\n");
        self.act(actor, &script);
        (0..lines.len())
            .map(|number| {
                let read = |ending: &str| {
                    fs::read_to_string(results.join(format!("{number}.{ending}")))
                        .unwrap_or_default()
                };
                let code = read("code").trim().parse();
                let code =
                    code.unwrap_or_else(|_| panic!("{actor:?} did not run `{}`", lines[number]));
                Probed { code, told: read("out") + &read("err") }
            })
            .collect()
    }

    fn act(&self, actor: Actor, script: &str) {
        self.project.write("agent.sh", &format!("#!/bin/sh\n{script}"));
        match actor {
            Actor::Person => self.shell(script),
            Actor::SessionAgent => self.ends(&["run", "x", "--agent", "command:./agent.sh"]),
            Actor::WorkerAgent => {
                self.person(&["task", "add", "Mine", "--id", "mine", "--label", "worker"]);
                let agent = "command:./agent.sh";
                self.ends(&["worker", "--agent", agent, "--label", "worker", "--until-idle"]);
            }
            Actor::Hook => {
                self.trust_probe(script);
                self.ends(&["task", "complete", "trigger"]);
            }
            Actor::DispatchedHook => {
                self.leave_reaction();
                self.trust_probe(script);
                self.ends(&["dispatch"]);
            }
            Actor::External => {
                let input = r#"{"session_id":"s1","hook_event_name":"SessionStart","cwd":"."}"#;
                let hello = format!("echo '{input}' | hookloop hook SessionStart --agent claude\n");
                self.agent(&format!("{hello}{script}"));
            }
            Actor::ExternalByTools => self.agent(&format!("hookloop mcp </dev/null\n{script}")),
        }
    }

    /// Sets the script of the reaction and trusts it as a person.
    fn trust_probe(&self, script: &str) {
        fs::write(self.file("probe.sh"), script).unwrap();
        self.person(&["hooks", "trust", "--yes"]);
    }

    /// Leaves an unfinished reaction behind: kills the process that runs it.
    fn leave_reaction(&self) {
        self.trust_probe("touch begun; sleep 60\n");
        let mut command = self.command(&["task", "complete", "trigger"]);
        let mut runner = command.spawn().unwrap();
        let start = Instant::now();
        while !self.file("begun").exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "the reaction does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        runner.kill().unwrap();
        runner.wait().unwrap();
    }

    /// Runs a command until it exits, with any result.
    fn ends(&self, args: &[&str]) {
        self.command(args).output().unwrap();
    }

    /// Runs a script as a separate program, as an agent would.
    fn agent(&self, script: &str) {
        let path = self.project.write("external-agent", &format!("#!/bin/sh\n{script}"));
        run_quietly(self.project.command(path));
    }

    /// Runs a script as a person's shell does: line by line from standard input.
    fn shell(&self, script: &str) {
        let path = self.project.write("typed.sh", script);
        let mut command = self.project.command("sh");
        command.arg("-s").stdin(fs::File::open(path).unwrap());
        run_quietly(command);
    }

    /// Returns the state that only a person may change.
    pub(crate) fn guarded(&self) -> Value {
        let state = self.project.database_path().parent().unwrap().to_owned();
        let hooks: Vec<Value> = match self.person(&["hooks", "list"]) {
            Value::Array(hooks) => hooks,
            other => panic!("{other}"),
        };
        let hooks: Vec<Value> =
            hooks.iter().map(|hook| serde_json::json!([hook["name"], hook["enabled"]])).collect();
        let task = |id: &str| self.person(&["task", "show", id])["state"].clone();
        serde_json::json!({
            "trust": fs::read_to_string(state.join("trust.json")).unwrap(),
            "hooks": hooks,
            "blocked": task("blocked"),
            "held": task("held"),
            "waiting": task("waiting"),
            "schedules": self.person(&["schedule", "list"])[0]["name"],
            "settings": self.file(".claude/settings.json").exists(),
        })
    }
}

fn run_quietly(mut command: Command) {
    assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
}
