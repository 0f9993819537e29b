//! A machine with a worker: it has its own home, clone and network namespace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hookloop_testbed::{Netns, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::yard::Site;

/// Time after the death of a worker by which all processes that it started are dead.
const OUTLIVES: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

pub(crate) struct Machine {
    pub(crate) name: String,
    home: PathBuf,
    netns: Netns,
    env: Vec<(&'static str, String)>,
    forward: Child,
    worker: Option<Child>,
}

/// A process on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) pid: Pid,
    /// Path of its executable.
    pub(crate) program: PathBuf,
    pub(crate) line: String,
}

impl Machine {
    pub(crate) fn new(name: &str, site: &Site, netns: Netns) -> Machine {
        let home = site.home.join(name);
        let config = home.join(".config/hookloop");
        fs::create_dir_all(&config).unwrap();
        let monitors = serde_json::to_string(&site.monitors).unwrap();
        let (store, remote) = (&site.store, site.remote.display());
        // The project sets higher conflict limits than the defaults, and the user's configuration
        // allows them.
        let user = format!(
            "version: 1\nstores:\n  \"{store}\": {{monitoring_urls: {monitors}}}\n{}\n",
            super::LIMITS
        );
        fs::write(config.join("config.yaml"), user).unwrap();
        let git = format!(
            "[user]\n\tname = {name}\n\temail = {name}@example.invalid\n\
             [url \"{remote}\"]\n\tinsteadOf = {}\n",
            site.url
        );
        fs::write(home.join(".gitconfig"), git).unwrap();
        let forward = forward(&netns, site.forge);
        let env = vec![
            ("HOME", home.display().to_string()),
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOOKLOOP_STORE", store.clone()),
            ("HOOKLOOP_GITHUB_API", format!("http://127.0.0.1:{}", site.forge.port())),
            ("HOOKLOOP_GITHUB_TOKEN", "ghp_forTheNightAlone0123456789abcdef".to_owned()),
        ];
        let machine = Machine { name: name.to_owned(), home, netns, env, forward, worker: None };
        machine.clone_project(&site.url);
        machine.ok(&["hooks", "trust", "--yes"]);
        machine
    }

    fn clone_project(&self, url: &str) {
        let mut git = self.command("git");
        let cloned = git.args(["clone", "-q", url, "project"]).current_dir(&self.home).output();
        let cloned = cloned.unwrap();
        assert!(cloned.status.success(), "{}", String::from_utf8_lossy(&cloned.stderr));
    }

    /// Returns a command that runs on this machine and dies with the campaign.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.netns.command("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn hookloop(&self, args: &[&str]) -> Command {
        let mut command = self.command(program());
        command.args(args).arg("--json").current_dir(self.home.join("project"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program to completion and returns its output.
    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        let output = self.hookloop(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    pub(crate) fn start(&mut self, args: &[String]) {
        let to = |name: &str| {
            let path = self.home.join(name);
            File::options().create(true).append(true).open(path).unwrap()
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let all = [&["worker", "--name", &self.name], &args[..]].concat();
        let mut command = self.hookloop(&all);
        command.stdout(to("stdout")).stderr(to("stderr"));
        self.worker = Some(command.spawn().unwrap());
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.worker.as_ref().map(Pid::from_child)
    }

    /// Kills the worker; returns the processes that outlived it for too long.
    pub(crate) fn kill(&mut self) -> Vec<Found> {
        if let Some(mut worker) = self.worker.take() {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        let is_alone = || {
            std::thread::sleep(LOOK);
            self.processes().is_empty().then_some(())
        };
        poll(OUTLIVES, is_alone);
        self.processes()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, signal);
        }
    }

    /// Returns whether the worker has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.worker.as_mut().is_some_and(|worker| !matches!(worker.try_wait(), Ok(None)))
    }

    /// Waits for the end of a worker that was asked to end; returns an error if it failed.
    pub(crate) fn wait_ended(&mut self, limit: Duration) -> Result<(), String> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        let status = poll(limit, || worker.try_wait().unwrap());
        let said = fs::read_to_string(self.home.join("stderr")).unwrap_or_default();
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("{}: {status}: {said}", self.name)),
            None => Err(format!("{} does not end: {said}", self.name)),
        }
    }

    /// Returns all processes on this machine: those with this home, and those in a directory below
    /// it.
    pub(crate) fn processes(&self) -> Vec<Found> {
        processes_of(&self.home)
    }

    /// Returns the sessions that the worker reported as begun, including those that the log does
    /// not contain.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let said = fs::read_to_string(self.home.join("stdout")).unwrap_or_default();
        let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let took = lines.filter(|line| line["worker"] == "claimed");
        took.filter_map(|line| line["session"].as_str().map(str::to_owned)).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
        let _ = self.forward.kill();
        let _ = self.forward.wait();
    }
}

/// Returns the path of the program under test, in the directory of this one.
pub(crate) fn program() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("hookloop")
}

fn forward(netns: &Netns, to: std::net::SocketAddr) -> Child {
    let mut command = netns.command("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["forward", "--port", &to.port().to_string(), "--to", &to.to_string()]);
    command.stdin(Stdio::null()).spawn().unwrap()
}

/// Returns the processes with `home` as their home or with a working directory below it.
pub(crate) fn processes_of(home: &Path) -> Vec<Found> {
    let marker = format!("HOME={}\0", home.display()).into_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else { continue };
        let at = entry.path();
        let environ = fs::read(at.join("environ")).unwrap_or_default();
        let has_home = environ.windows(marker.len()).any(|part| part == marker);
        let is_inside = fs::read_link(at.join("cwd")).is_ok_and(|cwd| cwd.starts_with(home));
        // A zombie process has no executable.
        let Ok(program) = fs::read_link(at.join("exe")) else { continue };
        if has_home || is_inside {
            let line = fs::read(at.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(Found { pid, program, line });
        }
    }
    found
}
