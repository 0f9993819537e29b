//! An interrupted step does not change the result of a task.

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::delivery_project::DeliveryProject;

/// No step takes longer.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_worker_stopped_during_worktree_setup_releases_its_task() {
    let project = DeliveryProject::new("delivery: {base: main}\n", &[]);
    let home = project.root().parent().unwrap().join("home");
    // A remote that is slow to answer, by the user's own git configuration.
    let asked = home.join("asked");
    let ssh = format!("touch {}; sleep 600; :", asked.display());
    fs::write(home.join(".gitconfig"), format!("[core]\n\tsshCommand = {ssh:?}\n")).unwrap();
    project.git(&["remote", "set-url", "origin", "ssh://slow.invalid/app.git"]);
    project.add("a", &[]);
    let worker = ["worker", "--name", "w", "--agent", "command:true"];
    let mut worker = project.json_command(&worker).spawn().unwrap();
    let begun = Instant::now();
    while !asked.exists() {
        assert!(begun.elapsed() < SOON, "the remote got no request");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut told = BufReader::new(worker.stdout.take().unwrap()).lines();
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    assert!(told.any(|line| line.unwrap().contains("draining")));
    // After the second signal the worker releases the task.
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    let ended = worker.wait().unwrap();
    assert!(ended.success());
    assert_eq!(project.state("a"), "ready");
}
