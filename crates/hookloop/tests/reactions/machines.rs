//! Two machines share a log, and only one of them runs the hooks of an event.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use hookloop_testbed::Server;
use hookloop_testkit::{TestProject, eventually};

use super::{HOOK, lines_of};
use crate::cli::DEADLINE;
use crate::nats::machine_on;

/// Returns a machine whose hooks write to `shared`, so that overlapping runs are detected.
fn machine(server: &Server, shared: &std::path::Path, pause: &str) -> TestProject {
    let machine = machine_on(server, "shared");
    let text = std::fs::read_to_string(machine.root().join("hookloop.yaml")).unwrap();
    machine.write(
        "hookloop.yaml",
        &format!("{text}hooks:\n  task_created:\n    - command: sh hook.sh\n"),
    );
    machine.write("hook.sh", &format!("cd {}\n{HOOK}", shared.display()));
    std::fs::write(shared.join("pause"), pause).unwrap();
    machine.trust();
    machine
}

fn start(machine: &TestProject, args: &[&str]) -> Child {
    machine.hookloop(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn due(machine: &TestProject) -> serde_json::Value {
    machine.json(&["status"])["reactions_due"].clone()
}

#[test]
fn a_slow_hook_runs_once_beside_observers_on_two_machines() {
    let server = Server::single();
    let shared = tempfile::tempdir().unwrap();
    let [here, there] = [0, 1].map(|_| machine(&server, shared.path(), "1"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        for machine in [&here, &there] {
            for args in [&["status"][..], &["task", "list"], &["log"], &["task", "ready"]] {
                scope.spawn(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        machine.ok(args);
                    }
                });
            }
        }
        let adders = [(&here, "a"), (&there, "b"), (&here, "c"), (&there, "d")]
            .map(|(m, id)| scope.spawn(move || m.ok(&["task", "add", "work", "--id", id])));
        for adder in adders {
            adder.join().unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let mut runs = lines_of(shared.path(), "runs");
    runs.sort_unstable();
    let once = ["end a", "end b", "end c", "end d", "start a", "start b", "start c", "start d"];
    assert_eq!(runs, once);
    assert_eq!(lines_of(shared.path(), "overlaps"), [""; 0], "two runs at a time");
    assert_eq!((due(&here), due(&there)), (0.into(), 0.into()));
}

#[test]
fn a_reaction_is_taken_over_from_a_machine_that_died() {
    let server = Server::single();
    let shared = tempfile::tempdir().unwrap();
    let [here, there] = [0, 1].map(|_| machine(&server, shared.path(), "2"));
    let mut holder = start(&here, &["task", "add", "work", "--id", "a"]);
    eventually("the start of a hook", DEADLINE, || {
        (!lines_of(shared.path(), "runs").is_empty()).then_some(())
    });
    holder.kill().unwrap();
    holder.wait().unwrap();
    there.ok(&["task", "add", "work", "--id", "b"]);
    assert_eq!(
        lines_of(shared.path(), "runs"),
        ["start a", "start a", "end a", "start b", "end b"]
    );
    assert_eq!(lines_of(shared.path(), "overlaps"), [""; 0], "two runs at a time");
}

/// Starts a dispatcher as a daemon, and waits until it reports `state`.
fn start_dispatcher(machine: &TestProject, state: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = machine.hookloop(&["dispatch", "--daemon", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said["dispatcher"], state);
    (child, output)
}

#[test]
fn a_dispatcher_stays_leader_while_a_hook_runs_longer_than_its_lease() {
    let server = Server::single();
    let shared = tempfile::tempdir().unwrap();
    let [here, there] = [0, 1].map(|_| machine(&server, shared.path(), "7"));
    let (mut leading, _) = start_dispatcher(&here, "leading");
    let (mut standby, mut standby_output) = start_dispatcher(&there, "standby");
    here.ok(&["task", "add", "work", "--id", "a"]);
    eventually("the end of the hook", DEADLINE, || (due(&there) == 0).then_some(()));
    for dispatcher in [&mut leading, &mut standby] {
        dispatcher.kill().unwrap();
        dispatcher.wait().unwrap();
    }
    assert_eq!(lines_of(shared.path(), "runs"), ["start a", "end a"]);
    assert_eq!(lines_of(shared.path(), "overlaps"), [""; 0], "two runs at a time");
    let mut taken = String::new();
    standby_output.read_to_string(&mut taken).unwrap();
    assert_eq!(taken, "", "the standby dispatcher became leader");
}
