//! Tests of the testbed itself: servers keep their data, elect a leader, and reconnect.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hookloop_testbed::{Cluster, ClusterOptions, Disk, Options, Server, Sync, cut_power, wait_for};

const LIMIT: Duration = Duration::from_secs(15);

/// Creates a stream on subjects that begin with its name.
fn create(server: &Server, stream: &str, replicas: usize) {
    let body = format!(
        r#"{{"name":"{stream}","subjects":["{stream}.>"],"storage":"file","num_replicas":{replicas}}}"#
    );
    let answer = server.request(&format!("$JS.API.STREAM.CREATE.{stream}"), &body).unwrap();
    assert_eq!(answer["error"], serde_json::Value::Null, "{answer}");
}

/// Appends one message and returns its sequence; `None` while there is no leader.
fn append(server: &Server, stream: &str) -> Option<u64> {
    server.request(&format!("{stream}.a"), "{}").ok()?["seq"].as_u64()
}

fn listening(address: SocketAddr) -> bool {
    std::net::TcpStream::connect(address).is_ok()
}

#[test]
fn a_server_keeps_its_data_and_its_ports_over_a_kill() {
    let server = Server::single();
    assert!(server.monitor("/jsz").is_some_and(|page| page["config"]["sync_always"] == true));
    create(&server, "S", 1);
    assert_eq!(append(&server, "S"), Some(1));
    let (url, pid) = (server.url(), server.pid());
    server.restart();
    assert_eq!(server.url(), url);
    assert_ne!(server.pid(), pid);
    assert_eq!(append(&server, "S"), Some(2));
    server.kill9();
    assert!(!server.is_running());
    server.wipe();
    server.restart();
    assert_eq!(append(&server, "S"), None);
}

#[test]
fn the_pid_is_that_of_the_server() {
    let server = Server::with(Options { sync: Sync::Default, ..Options::default() });
    let program = std::fs::read_link(format!("/proc/{}/exe", server.pid())).unwrap();
    assert!(program.ends_with("nats-server"), "{program:?}");
    assert!(server.log().contains("Server is ready"));
}

#[test]
fn a_paused_server_answers_after_sigcont() {
    let server = Server::single();
    server.stop_signal();
    assert!(server.monitor("/jsz").is_none());
    server.cont();
    assert!(server.monitor("/jsz").is_some());
}

#[test]
fn a_dropped_server_is_stopped_and_its_data_removed() {
    let server = Server::single();
    let (address, data) = (server.client_address(), server.store_dir().to_owned());
    assert!(data.exists());
    drop(server);
    assert!(!listening(address));
    assert!(!data.exists());
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = std::thread::spawn(Server::single).join().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(server.is_running());
    assert!(listening(server.client_address()));
}

#[test]
fn a_new_leader_is_elected_after_a_kill() {
    let cluster = Cluster::three();
    create(cluster.node(0), "S", 3);
    let first = cluster.wait_leader_of("S", None);
    assert_eq!(append(cluster.node(first), "S"), Some(1));
    cluster.kill9(first);
    let second = cluster.wait_leader_of("S", Some(first));
    let seq = wait_for(LIMIT, || cluster.logs(), || append(cluster.node(second), "S"));
    assert_eq!(seq, 2);
    cluster.restart(first);
    cluster.wait_whole();
}

#[test]
fn a_partitioned_node_rejoins_the_cluster() {
    let cluster = Cluster::in_namespaces();
    create(cluster.node(0), "S", 3);
    let leader = cluster.wait_leader_of("S", None);
    let (parted, other) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.partition(&[parted]);
    assert!(wait_for(LIMIT, || cluster.logs(), || append(cluster.node(other), "S")) > 0);
    // The node is reachable from this process, but not from the other nodes.
    let route = cluster.node(leader).client_address();
    let inside = cluster.node(parted).netns().unwrap();
    let reach = |address: SocketAddr| {
        let script = format!("timeout 1 bash -c '</dev/tcp/{}/{}'", address.ip(), address.port());
        inside.command("sh").args(["-c", &script]).output().unwrap().status.success()
    };
    assert!(!reach(route));
    assert!(listening(cluster.node(parted).client_address()));
    cluster.heal();
    assert!(reach(route));
    let start = Instant::now();
    cluster.wait_whole();
    assert!(start.elapsed() < LIMIT);
}

/// Appends to a new server, cuts its power and returns the number of surviving messages.
fn survivors(sync: Sync, appends: u64) -> u64 {
    let disk = Disk::new();
    let store_dir = Some(disk.path().to_owned());
    let server = Server::with(Options { sync, store_dir, ..Options::default() });
    create(&server, "S", 1);
    (1..=appends).for_each(|seq| assert_eq!(append(&server, "S"), Some(seq)));
    cut_power([&server], [&disk]);
    server.restart();
    messages(&server, "S")
}

fn messages(server: &Server, stream: &str) -> u64 {
    let info = server.request(&format!("$JS.API.STREAM.INFO.{stream}"), "").unwrap();
    info["state"]["messages"].as_u64().unwrap_or(0)
}

#[test]
fn a_power_cut_loses_unsynced_messages() {
    assert_eq!(survivors(Sync::Default, 50), 0);
}

#[test]
fn a_power_cut_keeps_synced_messages() {
    assert_eq!(survivors(Sync::Always, 50), 50);
}

#[test]
fn a_cluster_keeps_synced_messages_after_a_power_cut() {
    let disks = [Disk::new(), Disk::new(), Disk::new()];
    let cluster = Cluster::with(ClusterOptions {
        store_dirs: Some(disks.each_ref().map(|disk| disk.path().to_owned())),
        ..ClusterOptions::default()
    });
    create(cluster.node(0), "S", 3);
    // A stream accepts messages once its replicas have elected a leader.
    cluster.wait_leader_of("S", None);
    (1..=50).for_each(|seq| assert_eq!(append(cluster.node(0), "S"), Some(seq)));
    cut_power(cluster.nodes(), &disks);
    cluster.start_all();
    let leader = cluster.wait_leader_of("S", None);
    assert_eq!(messages(cluster.node(leader), "S"), 50);
}
