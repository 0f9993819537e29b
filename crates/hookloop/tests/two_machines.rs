//! Two machines, each with its own home and network namespace, on one project.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::time::{Duration, Instant};

use hookloop_testbed::{Cluster, Server, network::Netns};
use hookloop_testkit::TestProject;
use serde_json::Value;

use crate::support::builder;

/// A completion on one machine is visible on the other within this time, in 99 of 100 cases.
const BOUND: Duration = Duration::from_millis(200);
const ROUNDS: usize = 100;

/// A project in a network namespace.
struct NetworkedProject<'a> {
    network: &'a Netns,
    project: TestProject,
}

impl NetworkedProject<'_> {
    fn new<'a>(network: &'a Netns, store: &str, monitors: &[String]) -> NetworkedProject<'a> {
        let monitors = serde_json::to_string(monitors).unwrap();
        let project = builder()
            .config("version: 1\nproject: shared\n")
            .user_config(format!(
                "version: 1\nstores:\n  \"{store}\": {{monitoring_urls: {monitors}}}\n"
            ))
            .variable("HOOKLOOP_STORE", store)
            .build();
        NetworkedProject { network, project }
    }

    fn hookloop(&self, args: &[&str]) -> Value {
        let command = self.network.command(self.project.program_path());
        let out = self.project.prepare(command).args(args).arg("--json").output().unwrap();
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{args:?}: {error}");
        serde_json::from_slice(&out.stdout).unwrap_or(Value::Null)
    }

    fn has_ready(&self, task: &str) -> bool {
        let ready = self.hookloop(&["task", "ready"]);
        ready.as_array().unwrap().iter().any(|found| found["id"] == task)
    }
}

#[test]
fn a_task_completed_on_one_machine_soon_readies_its_dependent_on_another() {
    let cluster = Cluster::in_namespaces();
    let (store, monitors) =
        (cluster.urls().join(","), cluster.nodes().iter().map(Server::monitor_url));
    let monitors: Vec<String> = monitors.collect();
    let networks = [cluster.network().netns(), cluster.network().netns()];
    let [a, b] = [0, 1].map(|i| NetworkedProject::new(&networks[i], &store, &monitors));
    let mut waits = Vec::new();
    for round in 0..ROUNDS {
        let (first, then) = (format!("first-{round}"), format!("then-{round}"));
        a.hookloop(&["task", "add", "first", "--id", &first]);
        b.hookloop(&["task", "add", "then", "--id", &then, "--depends-on", &first]);
        assert!(!b.has_ready(&then));
        a.hookloop(&["task", "complete", &first]);
        let completed = Instant::now();
        while !b.has_ready(&then) {
            assert!(completed.elapsed() < Duration::from_secs(10), "{then} did not get ready");
        }
        waits.push(completed.elapsed());
        b.hookloop(&["task", "complete", &then]);
    }
    waits.sort_unstable();
    let (median, p99) = (waits[ROUNDS / 2], waits[ROUNDS * 99 / 100 - 1]);
    assert!(p99 <= BOUND, "median {median:?}, p99 {p99:?}, longest {:?}", waits[ROUNDS - 1]);
    let hashes = [&a, &b].map(|machine| machine.hookloop(&["rebuild"])["after"].clone());
    assert_eq!(hashes[0], hashes[1]);
    assert!(hashes[0].is_string());
}
