//! Guarantees that a server must give before hookloop uses it, as a user sees them.

use std::time::Duration;

use hookloop_testbed::{Cluster, ClusterOptions, Options, Server, Sync};
use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::nats::{bare_machine, machine_on};

/// The exit code of an error of the system.
const SYSTEM: i32 = 70;
const USAGE: i32 = 2;
const REFUSED: i32 = 1;

/// The time for which a server is stopped.
const AWAY: Duration = Duration::from_secs(3);

fn careless() -> Options {
    Options { sync: Sync::Default, ..Options::default() }
}

/// Returns the number of events in all streams of a server.
fn events(server: &Server) -> u64 {
    let page = server.monitor("/jsz").unwrap();
    page["messages"].as_u64().unwrap()
}

#[test]
fn a_server_that_does_not_sync_is_refused_with_the_fix() {
    let server = Server::with(careless());
    let machine = machine_on(&server, "demo");
    for command in [&["init"][..], &["task", "add", "Lost soon"], &["status"]] {
        let refused = machine.refused(command);
        assert_eq!(refused.code, SYSTEM, "{}", refused.error);
        assert!(refused.error.contains("sync_interval: always"), "{}", refused.error);
        assert!(refused.error.contains("durability: unsafe"), "{}", refused.error);
    }
    assert_eq!(events(&server), 0, "events were written");
}

#[test]
fn unsafe_durability_set_by_the_user_is_allowed_with_repeated_warnings() {
    let server = Server::with(careless());
    let machine = machine_on(&server, "demo");
    machine.replace_in_user_config("{monitoring_urls", "{durability: unsafe, monitoring_urls");
    machine.ok(&["task", "add", "Risky", "--id", "risky"]);
    // The warning appears on every run, not only on the first one, which checks the server.
    for _ in 0..2 {
        let told = machine.ok(&["status"]);
        assert!(told.contains("UNSAFE") && told.contains("power cut"), "{told}");
        let store = machine.json(&["status"])["store"].clone();
        assert!(store["unsafe"][0].as_str().unwrap().contains("synced"), "{store}");
    }
    machine.replace_in_user_config("durability: unsafe", "durability: safe");
    assert_eq!(machine.refused(&["status"]).code, SYSTEM);

    let everywhere = machine_on(&server, "demo");
    everywhere.replace_in_user_config("version: 1\n", "version: 1\ndurability: unsafe\n");
    assert_eq!(everywhere.json(&["task", "list"])[0]["id"], "risky");
}

#[test]
fn a_repository_cannot_set_durability_to_unsafe() {
    let server = Server::with(careless());
    let machine = machine_on(&server, "demo");
    let url = server.url();
    machine.write(
        "hookloop.yaml",
        &format!("version: 1\nproject: demo\nstore: {url}\ndurability: unsafe\n"),
    );
    let refused = machine.refused(&["task", "add", "Lost soon"]);
    assert_eq!(refused.code, USAGE, "{}", refused.error);
    assert!(refused.error.contains("durability"), "{}", refused.error);
    assert!(refused.error.contains("hookloop.yaml"), "{}", refused.error);
}

#[test]
fn a_stream_with_one_copy_in_a_cluster_is_refused() {
    let cluster = Cluster::with(ClusterOptions::default());
    let node = cluster.node(0);
    let config = json!({
        "name": "HL_EV_151", "subjects": ["hl.ev.151.>"], "num_replicas": 1, "storage": "file",
        "retention": "limits", "discard": "new", "allow_direct": true, "allow_atomic": true,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0,
    });
    let made = node.request("$JS.API.STREAM.CREATE.HL_EV_151", &config.to_string()).unwrap();
    assert_eq!(made["error"], Value::Null, "{made}");
    let machine = machine_on(node, "demo");
    let monitors: Vec<String> = cluster.nodes().iter().map(Server::monitor_url).collect();
    machine
        .replace_in_user_config(&format!("[\"{}\"]", node.monitor_url()), &format!("{monitors:?}"));
    let refused = machine.refused(&["task", "add", "One copy"]);
    assert_eq!(refused.code, SYSTEM, "{}", refused.error);
    assert!(refused.error.contains("1 of the 3 copies"), "{}", refused.error);
    assert!(refused.error.contains("nats stream edit HL_EV_151 --replicas 3"), "{}", refused.error);
    // The stream of another project gets three copies.
    machine.write("hookloop.yaml", &format!("version: 1\nproject: other\nstore: {}\n", node.url()));
    assert_eq!(machine.json(&["status"])["store"]["copies"], 3);
    // Of three servers, two may have an acknowledged event, so each must prove that it syncs.
    machine.replace_in_user_config(&format!("{monitors:?}"), &format!("{:?}", &monitors[..2]));
    std::fs::remove_dir_all(machine.root().with_file_name("home").join(".local")).unwrap();
    let refused = machine.refused(&["status"]);
    assert!(refused.error.contains("1 of 3 servers do not show"), "{}", refused.error);
}

/// A command that checks the servers again waits for one that is restarting.
#[test]
fn a_command_waits_for_a_server_that_restarts() {
    let cluster = Cluster::three();
    let machine = machine_on(cluster.node(0), "demo");
    let monitors: Vec<String> = cluster.nodes().iter().map(Server::monitor_url).collect();
    machine.replace_in_user_config(&format!("[\"{}\"]", monitors[0]), &format!("{monitors:?}"));
    machine.ok(&["task", "add", "Before", "--id", "before"]);
    std::fs::remove_dir_all(machine.home().join(".local")).unwrap();
    cluster.kill9(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(AWAY);
            cluster.restart(2);
        });
        assert_eq!(machine.json(&["task", "list"])[0]["id"], "before");
    });
}

#[test]
fn a_server_that_does_not_show_whether_it_syncs_is_refused() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.replace_in_user_config(&server.monitor_url(), "http://127.0.0.1:9");
    let refused = machine.refused(&["status"]);
    assert_eq!(refused.code, SYSTEM, "{}", refused.error);
    assert!(refused.error.contains("http://127.0.0.1:9"), "{}", refused.error);
    assert!(refused.error.contains("`monitoring_urls`"), "{}", refused.error);
}

#[test]
fn a_repository_cannot_name_a_server_that_the_user_did_not_configure() {
    let machine = bare_machine();
    machine.write("hookloop.yaml", "version: 1\nproject: demo\nstore: nats://192.0.2.1:4222\n");
    let refused = machine.refused(&["status"]);
    assert_eq!(refused.code, REFUSED, "{}", refused.error);
    assert!(refused.error.contains("nats://192.0.2.1:4222"), "{}", refused.error);
    assert!(refused.error.contains(".config/hookloop/config.yaml"), "{}", refused.error);
}

#[test]
fn a_shared_project_needs_a_name() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.write("hookloop.yaml", &format!("version: 1\nstore: {}\n", server.url()));
    let refused = machine.refused(&["status"]);
    assert_eq!(refused.code, USAGE, "{}", refused.error);
    assert!(refused.error.contains("echo 'project: "), "{}", refused.error);
    let refused = machine.refused(&["nats", "permissions"]);
    assert!(refused.error.contains("echo 'project: "), "{}", refused.error);
}

#[test]
fn an_unreachable_server_is_reported_at_once() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Before", "--id", "before"]);
    server.terminate();
    let refused = machine.refused(&["status"]);
    assert_eq!(refused.code, SYSTEM, "{}", refused.error);
    assert!(refused.error.contains("no NATS server answers"), "{}", refused.error);
    assert!(refused.error.contains("hookloop nats up"), "{}", refused.error);
    assert!(refused.took < Duration::from_secs(10), "{:?}", refused.took);
    server.restart();
    assert_eq!(machine.json(&["task", "list"])[0]["id"], "before");
}

#[test]
fn two_homes_share_a_project() {
    let server = Server::single();
    let [one, other] = [(); 2].map(|()| machine_on(&server, "demo"));
    one.ok(&["task", "add", "Shared", "--id", "shared"]);
    let claim = other.json(&["task", "claim", "--agent", "other"]);
    assert_eq!(claim["id"], "shared", "{claim}");
    assert_eq!(one.refused(&["task", "claim", "shared", "--agent", "one"]).code, REFUSED);
    let epoch = claim["epoch"].to_string();
    other.ok(&["task", "complete", "shared", "--epoch", &epoch]);
    assert_eq!(one.json(&["task", "show", "shared"])["state"], "completed");
    assert_eq!(one.json_lines(&["log"]), other.json_lines(&["log"]));
    // Another project on the same server has its own log.
    let other = machine_on(&server, "unlike");
    assert_eq!(other.json(&["task", "list"]), json!([]));
}

#[test]
fn a_wiped_server_has_a_new_empty_log() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Old", "--id", "old"]);
    server.kill9();
    server.wipe();
    server.restart();
    assert_eq!(machine.json(&["task", "list"]), json!([]));
    machine.ok(&["task", "add", "New", "--id", "new"]);
    assert_eq!(machine.json(&["task", "list"])[0]["id"], "new");
    assert_eq!(machine.json_lines(&["log"]).len(), 1);
}

/// The server was checked a moment ago, so the client does not ask again which stream it has.
#[test]
fn a_stream_recreated_after_the_server_check_is_detected() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Old", "--id", "old"]);
    server.request("$JS.API.STREAM.DELETE.HL_EV_151", "").unwrap();
    machine_on(&server, "demo").ok(&["status"]);
    let refused = machine.refused(&["task", "add", "New", "--id", "new"]);
    assert!(refused.error.contains("acknowledged events are gone"), "{}", refused.error);
    assert_eq!(machine.json(&["task", "list"]), json!([]));
    machine.ok(&["task", "add", "New", "--id", "new"]);
    assert_eq!(machine.json_lines(&["log"]).len(), 1);
}

#[test]
fn a_log_that_lost_its_last_events_is_refused() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Kept", "--id", "kept"]);
    server.terminate();
    let backup = tempfile::tempdir().unwrap();
    copy(server.store_dir(), backup.path());
    server.restart();
    machine.ok(&["task", "add", "Lost", "--id", "lost"]);
    server.kill9();
    server.wipe();
    copy(backup.path(), server.store_dir());
    server.restart();
    for command in [&["status"][..], &["task", "add", "More"]] {
        let refused = machine.refused(command);
        assert_eq!(refused.code, SYSTEM, "{}", refused.error);
        assert!(refused.error.contains("acknowledged events are gone"), "{}", refused.error);
        assert!(refused.error.contains("hookloop rebuild"), "{}", refused.error);
    }
    assert_eq!(machine.refused(&["rebuild"]).code, REFUSED);
    machine.ok(&["rebuild", "--accept-loss"]);
    let tasks = machine.json(&["task", "list"]);
    assert_eq!((tasks.as_array().unwrap().len(), &tasks[0]["id"]), (1, &json!("kept")));
    machine.ok(&["task", "add", "More"]);
}

/// A process that opens the view exclusively reads the whole WAL, so short commands must not let it
/// grow.
#[test]
fn commands_leave_a_short_wal() {
    const WAL_BYTES_MAX: u64 = 256 * 1024;
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    for n in 0..30 {
        machine.ok(&["task", "add", "One of many", "--id", &format!("t{n}")]);
    }
    let states = std::fs::read_dir(machine.home().join(".local/state/hookloop")).unwrap();
    let files = states.flat_map(|state| std::fs::read_dir(state.unwrap().path()).unwrap());
    let is_view = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "db");
    let views: Vec<_> = files.map(|file| file.unwrap().path()).filter(is_view).collect();
    let [view] = &views[..] else { panic!("{views:?}") };
    let wal = std::fs::metadata(view.with_extension("db-wal")).map_or(0, |wal| wal.len());
    assert!(wal < WAL_BYTES_MAX, "{wal} bytes");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    let from = format!("{}/.", from.display());
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Returns the findings of `doctor` about the store: names, states, messages and commands.
fn doctor(machine: &TestProject) -> Vec<(String, String, String, Value)> {
    let output = machine.run(&["doctor", "--json"]);
    let findings: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let of_store = findings.iter().filter(|finding| finding["group"] == "store");
    let line = |finding: &Value| {
        let words = (text(finding, "about"), text(finding, "status"), text(finding, "message"));
        (words.0, words.1, words.2, finding["command"].clone())
    };
    of_store.map(line).collect()
}

#[test]
fn doctor_reports_the_servers_and_their_problems() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Something"]);
    let found = doctor(&machine);
    let states: Vec<_> = found.iter().map(|line| (line.0.as_str(), line.1.as_str())).collect();
    let expected =
        [("servers", "ok"), ("copies", "ok"), ("durability", "ok"), ("access", "warning")];
    assert_eq!(states, expected, "{found:?}");
    assert!(found[0].2.contains(&server.url()), "{found:?}");
    assert!(found[3].2.contains("lets in anyone"), "{found:?}");
    assert!(found[1].2.contains("one copy") && found[2].2.contains("syncs"), "{found:?}");
    // A stopped server is reported with the command that starts one.
    server.terminate();
    let (name, status, message, command) = doctor(&machine).remove(0);
    assert_eq!((name.as_str(), status.as_str()), ("store", "error"), "{message}");
    assert!(message.contains("no NATS server answers"), "{message}");
    // The rest of the line is a comment for a shell.
    assert!(command.as_str().unwrap().starts_with("hookloop nats up  #"), "{command}");
    // A server that could lose acknowledged events is an error, until the user accepts the risk.
    let careless = Server::with(careless());
    let machine = machine_on(&careless, "demo");
    let (name, status, message, _) = doctor(&machine).remove(0);
    assert_eq!((name.as_str(), status.as_str()), ("store", "error"), "{message}");
    assert!(message.contains("sync"), "{message}");
    machine.replace_in_user_config("{monitoring_urls", "{durability: unsafe, monitoring_urls");
    machine.ok(&["task", "add", "Risky"]);
    let found = doctor(&machine);
    let (name, status, message, _) = &found[2];
    assert_eq!((name.as_str(), status.as_str()), ("durability", "warning"), "{found:?}");
    assert!(message.contains("durability: unsafe"), "{found:?}");
}
