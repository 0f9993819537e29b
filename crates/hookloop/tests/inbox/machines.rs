//! Two machines with a log on a server: both have the same problems, and each is notified once.

use std::process::Stdio;

use hookloop_testbed::Server;

use crate::cli::strings;
use crate::inbox::receivers::Hook;
use crate::nats::machine_on;

const PROBLEMS: usize = 5;

#[test]
fn two_machines_list_the_same_problems_and_notify_once_about_each() {
    let (server, hook) = (Server::single(), Hook::start());
    let machines = [machine_on(&server, "shared"), machine_on(&server, "shared")];
    for machine in &machines {
        machine.append_user_config(&format!(
            "notify: [{{name: hook, webhook: '{}'}}]\n",
            hook.url("x")
        ));
    }
    for number in 0..PROBLEMS {
        let id = format!("t{number}");
        machines[number % 2].ok(&["task", "add", "Goal", "--id", &id]);
        machines[number % 2].ok(&["task", "block", &id, "--reason", "why"]);
    }
    let lists = machines.each_ref().map(|machine| machine.json(&["inbox", "list"]));
    assert_eq!(lists[0], lists[1]);
    let keys = strings(&lists[0], "key");
    assert_eq!(keys.len(), PROBLEMS);
    let start = |number: usize| {
        let machine = &machines[number % 2];
        let mut command = machine.hookloop(&["inbox", "notify"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for process in (0..6).map(start).collect::<Vec<_>>() {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let mut told = hook.told().concat();
    told.sort();
    assert_eq!(told, keys);
    // If several people decide on two machines, one decision counts.
    let decide = |number: usize| {
        let machine = &machines[number % 2];
        let mut command = machine.hookloop(&["inbox", "answer", &keys[0], "go on"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let people: Vec<_> = (0..4).map(decide).collect();
    let codes: Vec<_> = people.into_iter().map(|mut one| one.wait().unwrap().code()).collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    for machine in &machines {
        assert_eq!(machine.json(&["rebuild"])["equal"], true);
        assert_eq!(strings(&machine.json(&["inbox", "list"]), "key"), keys[1..]);
    }
}
