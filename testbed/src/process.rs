//! Child processes that die with the test process, however it ends.
//!
//! `setpriv --pdeathsig` asks the kernel for that and executes the program, so the pid stays the
//! same. The setting applies to the *thread* that started the child, and a test's thread ends with
//! the test. One thread that never ends therefore starts all children.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};

use rustix::process::{Pid, Signal, kill_process};

type Started = io::Result<Child>;

static STARTER: LazyLock<Sender<(Command, Sender<Started>)>> = LazyLock::new(|| {
    let (jobs, queue) = channel::<(Command, Sender<Started>)>();
    std::thread::Builder::new()
        .name("starter".into())
        .spawn(move || {
            for (mut command, reply) in queue {
                let _ = reply.send(command.spawn());
            }
        })
        .unwrap();
    jobs
});

/// Returns a command for `program` that dies with this process; start it with [`spawn`].
pub(crate) fn mortal(mut outer: Option<Command>, program: impl AsRef<OsStr>) -> Command {
    let mut command = match outer.take() {
        Some(mut outer) => {
            outer.arg("setpriv");
            outer
        }
        None => Command::new("setpriv"),
    };
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

pub(crate) fn spawn(command: Command) -> Child {
    let (reply, started) = channel();
    STARTER.send((command, reply)).unwrap();
    started.recv().unwrap().expect("setpriv and nsenter of util-linux start")
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Runs a command to completion; panics with its output if it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {said}");
    String::from_utf8(output.stdout).unwrap()
}
