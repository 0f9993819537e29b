//! A worker as the first process of a container, without an init.

use std::fs;
use std::process::{Child, Command};

use hookloop_testkit::eventually;

use crate::cli::{BINARY, DEADLINE, Project};

/// An agent that leaves two daemons, one that stays and one that ends at once, and reports
/// completion.
const AGENT: &str = "command:setsid -f sh -c 'echo > left; sleep 600'; setsid -f true; \
                     echo '<promise>COMPLETE</promise>'";

/// Kills the process at the end of the test.
struct Container(Child);

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the children of a process, with their names and states.
fn children(pid: u32) -> Vec<(u32, String, String)> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let known = |child: &str| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        let (name, rest) = stat.split_once(") ")?;
        let name = name.split_once(" (")?.1.to_owned();
        Some((child.parse().ok()?, name, rest.chars().take(1).collect()))
    };
    listed.split_whitespace().filter_map(known).collect()
}

fn first_process(unshare: &Child) -> u32 {
    eventually("the first process", DEADLINE, || {
        let below = children(unshare.id());
        below.iter().find(|(_, name, _)| name == "hookloop").map(|(pid, ..)| *pid)
    })
}

#[test]
fn a_worker_as_pid_1_reaps_children_and_ends_on_sigterm() {
    let project = Project::new();
    project.add("Leave something behind", &["--id", "a"]);
    let mut command = project.command("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", BINARY]);
    command.args(["worker", "--name", "first", "--agent", AGENT]);
    let mut unshare = Container(command.spawn().unwrap());
    eventually("the task", DEADLINE, || (project.state_of("a") == "completed").then_some(()));
    assert!(project.root().join("left").exists());
    let first = first_process(&unshare.0);
    // Only keepers are left, which wait for the next hook.
    let left = children(first);
    let is_keeper = |name: &str, state: &str| name.starts_with("hookloop") && state != "Z";
    assert!(left.iter().all(|(_, name, state)| is_keeper(name, state)), "{left:?}");
    for (keeper, ..) in left {
        assert_eq!(children(keeper), []);
    }
    // A first process without a signal handler would ignore SIGTERM.
    assert!(Command::new("kill").args(["-TERM", &first.to_string()]).status().unwrap().success());
    let status = eventually("its end", DEADLINE, || unshare.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
