//! The worker processes, as seen by the campaign.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::ValueEnum;
use hookloop_testbed::{Cluster, Netns, Server, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::history::{self, Operation};
use crate::worker::{Args, Role};

/// Timeout for a worker to end; it may first wait for the product's own timeouts.
const ENDED: Duration = Duration::from_secs(90);

/// Options that check whether a process has ended without reaping it.
const PEEK: WaitIdOptions =
    WaitIdOptions::EXITED.union(WaitIdOptions::NOHANG).union(WaitIdOptions::NOWAIT);

/// Environment of the workers of a round.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) urls: String,
    pub(crate) monitors: Vec<String>,
    pub(crate) project: String,
    pub(crate) seed: u64,
    pub(crate) home: PathBuf,
}

impl Site {
    pub(crate) fn of(cluster: &Cluster, home: &Path, seed: u64) -> Site {
        Site {
            urls: cluster.urls().join(","),
            monitors: cluster.nodes().iter().map(Server::monitor_url).collect(),
            project: "campaign".to_owned(),
            seed,
            home: home.to_owned(),
        }
    }

    /// Returns the arguments of the worker with this name and role.
    pub(crate) fn args(&self, role: Role, name: &str) -> Args {
        Args {
            role,
            name: name.to_owned(),
            urls: self.urls.clone(),
            monitors: self.monitors.clone(),
            project: self.project.clone(),
            dir: self.home.join(name),
            seed: self.seed,
            live: false,
            reopen_after: None,
        }
    }
}

/// A worker process, killed when dropped.
pub(crate) struct Process {
    pub(crate) args: Args,
    child: Child,
    /// Its own network namespace, if it has one.
    pub(crate) netns: Option<Netns>,
}

impl Process {
    pub(crate) fn start(args: Args, netns: Option<Netns>) -> Process {
        std::fs::create_dir_all(&args.dir).unwrap();
        let stderr = File::create(args.dir.join("stderr")).unwrap();
        let mut command = match &netns {
            Some(netns) => netns.command("setpriv"),
            None => Command::new("setpriv"),
        };
        command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe().unwrap());
        command.arg("worker").args(["--name", &args.name, "--urls", &args.urls]);
        command.args(["--role", args.role.to_possible_value().unwrap().get_name()]);
        command.args(["--project", &args.project, "--seed", &args.seed.to_string()]);
        command.args(["--monitors", &args.monitors.join(",")]).arg("--dir").arg(&args.dir);
        if args.live {
            command.arg("--live");
        }
        if let Some(after) = args.reopen_after {
            command.args(["--reopen-after", &after.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(stderr);
        let child = command.spawn().expect("setpriv and nsenter of util-linux start");
        Process { args, child, netns }
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        history::read(&self.args.history(), &self.args.name)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns whether the process has ended; before it is asked to, only a failure ends it.
    pub(crate) fn has_ended(&self) -> bool {
        let waited = waitid(WaitId::Pid(Pid::from_child(&self.child)), PEEK);
        !matches!(waited, Ok(None))
    }

    /// Asks the process to end after its current operation.
    pub(crate) fn ask_to_end(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for the process to end; returns an error if it failed.
    pub(crate) fn wait_ended(&mut self) -> Result<(), String> {
        self.ask_to_end();
        let status = poll(ENDED, || self.child.try_wait().unwrap());
        let said = std::fs::read_to_string(self.args.dir.join("stderr")).unwrap_or_default();
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("worker {}: {status}: {said}", self.args.name)),
            None => Err(format!("worker {} does not end: {said}", self.args.name)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
