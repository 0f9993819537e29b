//! One budget for the sessions of two machines, whose log is on a server.

use std::process::Child;
use std::thread;
use std::time::Duration;

use hookloop_testbed::Server;
use hookloop_testkit::{SeededRandom, TestProject};
use serde_json::Value;

use crate::nats::machine_on;
use crate::usage::{account, turns};

const SESSIONS: usize = 10;
const BUDGET: u64 = 1_000_000;
const RESERVED: u64 = 100_000;

fn start(machine: &TestProject, args: &[&str]) -> Child {
    machine.json_command(args).spawn().unwrap()
}

#[test]
fn sessions_of_two_machines_share_a_budget() {
    let server = Server::single();
    let machines = [machine_on(&server, "shared"), machine_on(&server, "shared")];
    let mut random = SeededRandom::new(u64::from(std::process::id()));
    for machine in &machines {
        machine.append_user_config("limits: {budget: {cost: 1}, reserve_per_turn: {cost: 0.1}}\n");
    }
    let run = |number: usize| {
        let (name, agent) = (format!("s{number}"), format!("scripted:{number}.json"));
        start(
            &machines[number % 2],
            &["run", "work", "--share-checkout", "--name", &name, "--agent", &agent],
        )
    };
    let mut sessions: Vec<Child> = (0..SESSIONS)
        .map(|number| {
            let turns = turns(&mut random, 4, RESERVED).to_string();
            machines[number % 2].write(&format!("{number}.json"), &turns);
            run(number)
        })
        .collect();
    thread::sleep(Duration::from_millis(800));
    for session in sessions.iter_mut().take(2) {
        session.kill().unwrap();
    }
    // The other machine cannot detect that these sessions are dead. Another session of their own
    // machine can.
    for (number, killed) in sessions.drain(..2).collect::<Vec<_>>().into_iter().enumerate() {
        killed.wait_with_output().unwrap();
        sessions.push(run(number));
    }
    for session in sessions {
        let output = session.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    }
    let usages: Vec<Value> = machines.iter().map(|machine| machine.json(&["usage"])).collect();
    assert_eq!(usages[0], usages[1]);
    let account = account(&machines[0].json_lines(&["log", "--all"]));
    assert!(account.most <= BUDGET + RESERVED && account.refusals > 0, "{account:?}");
    assert_eq!(usages[0]["total"]["cost_micros"], account.used, "{account:?}");
    for machine in &machines {
        assert_eq!(machine.json(&["rebuild"])["equal"], true);
        assert_eq!(machine.json(&["usage"]), usages[0]);
    }
}
