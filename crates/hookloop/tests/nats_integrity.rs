//! A log on servers that another client purged, replaced or wrote to, as a user sees it.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use hookloop_testbed::{Options, Server, wire};
use hookloop_testkit::TestProject;
use serde_json::{Value, json};

use crate::nats::{bare_machine, machine_on};

const REFUSED: i32 = 1;
const SYSTEM: i32 = 70;
/// The stream of the project `demo`, and the prefix of its subjects.
const STREAM: &str = "HL_EV_151";
const EVENTS: &str = "hl.ev.151.demo";

/// Returns the stream configuration of versions that did not deny purges.
fn older_stream() -> Value {
    json!({
        "name": STREAM, "subjects": ["hl.ev.151.>"], "num_replicas": 1, "storage": "file",
        "retention": "limits", "discard": "new", "allow_direct": true, "allow_atomic": true,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0, "deny_delete": true,
    })
}

/// Returns a server on which every client may purge a stream, and none may change its
/// configuration.
fn purgeable() -> Server {
    let extra = "accounts { A { jetstream: enabled, users: [ { user: open, password: open, \
        permissions: { publish: { deny: [\"$JS.API.STREAM.UPDATE.>\"] } } } ] } }\n\
        no_auth_user: open\n";
    let server = Server::with(Options { extra: extra.to_owned(), ..Options::default() });
    let made = request(&server, &format!("$JS.API.STREAM.CREATE.{STREAM}"), &older_stream());
    assert_eq!(made["error"], Value::Null, "{made}");
    server
}

fn request(server: &Server, subject: &str, body: &Value) -> Value {
    server.request(subject, &body.to_string()).unwrap()
}

fn put(server: &Server, subject: &str, body: &str) {
    let put = server.request(subject, body).unwrap();
    assert!(put["seq"].is_number(), "{subject}: {put}");
}

#[test]
fn a_purge_is_refused_by_the_server() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Kept", "--id", "kept"]);
    let purged = request(&server, &format!("$JS.API.STREAM.PURGE.{STREAM}"), &json!({}));
    assert!(purged["error"].is_object(), "{purged}");
    assert_eq!(machine.ok(&["verify"]), "The log is intact: 1 events\n");
}

#[test]
fn a_stream_of_an_older_version_is_changed_so_that_it_denies_purges() {
    let server = Server::single();
    request(&server, &format!("$JS.API.STREAM.CREATE.{STREAM}"), &older_stream());
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Kept", "--id", "kept"]);
    let purged = request(&server, &format!("$JS.API.STREAM.PURGE.{STREAM}"), &json!({}));
    assert!(purged["error"].is_object(), "{purged}");
    let info = request(&server, &format!("$JS.API.STREAM.INFO.{STREAM}"), &json!({}));
    assert_eq!(info["config"]["deny_purge"], true, "{info}");
}

#[test]
fn a_purged_log_is_refused_until_a_person_accepts_the_loss() {
    let server = purgeable();
    let [machine, other] = [(); 2].map(|()| machine_on(&server, "demo"));
    for id in ["a", "b", "c"] {
        machine.ok(&["task", "add", "Lost", "--id", id]);
    }
    assert_eq!(other.json(&["task", "list"]).as_array().unwrap().len(), 3);
    let findings = machine.run(&["doctor", "--json"]).stdout;
    assert!(findings.contains("can be purged"));
    let purged = request(&server, &format!("$JS.API.STREAM.PURGE.{STREAM}"), &json!({}));
    assert_eq!(purged["purged"], 3, "{purged}");
    for command in [&["status"][..], &["task", "add", "More"]] {
        let refused = machine.refused(command);
        assert_eq!(refused.code, SYSTEM, "{}", refused.error);
        assert!(refused.error.contains("acknowledged events are gone"), "{}", refused.error);
        assert!(refused.error.contains("hookloop rebuild --accept-loss"), "{}", refused.error);
    }
    for command in ["verify", "rebuild"] {
        let refused = machine.refused(&[command]);
        assert_eq!(refused.code, REFUSED, "{}", refused.error);
        assert!(refused.error.contains("but 3 were acknowledged"), "{}", refused.error);
        assert!(refused.error.contains("--accept-loss"), "{}", refused.error);
    }
    // A machine that never read an event learns the loss from the server.
    let other = machine_on(&server, "demo");
    let refused = other.refused(&["verify"]);
    assert!(refused.error.contains("3 messages were removed"), "{}", refused.error);
    // Accepting the loss makes the log usable again.
    let rebuilt = machine.json(&["rebuild", "--accept-loss"]);
    assert!(
        rebuilt["accepted_loss"].as_str().unwrap().contains("3 were acknowledged"),
        "{rebuilt}"
    );
    machine.ok(&["task", "add", "New", "--id", "new"]);
    for machine in [&machine, &other, &other] {
        assert_eq!(machine.json(&["task", "list"])[0]["id"], "new");
        assert_eq!(machine.ok(&["verify"]), "The log is intact: 2 events\n");
        assert_eq!(machine.json_lines(&["log", "--type", "log_loss_accepted"]).len(), 1);
    }
}

/// Only the events of one task are purged: the log still has its last event.
#[test]
fn a_purge_of_one_task_is_found_and_can_be_accepted() {
    let server = purgeable();
    let machine = machine_on(&server, "demo");
    for id in ["a", "b", "c"] {
        machine.ok(&["task", "add", "Some", "--id", id]);
    }
    let filter = json!({ "filter": format!("{EVENTS}.a") });
    let purged = request(&server, &format!("$JS.API.STREAM.PURGE.{STREAM}"), &filter);
    assert_eq!(purged["purged"], 1, "{purged}");
    for command in ["verify", "rebuild"] {
        let refused = machine.refused(&[command]);
        assert_eq!(refused.code, REFUSED, "{}", refused.error);
        assert!(
            refused.error.contains("are not those that were acknowledged"),
            "{}",
            refused.error
        );
    }
    machine.ok(&["rebuild", "--accept-loss"]);
    assert_eq!(machine.json(&["task", "list"]).as_array().unwrap().len(), 2);
    assert_eq!(machine.ok(&["verify"]), "The log is intact: 3 events\n");
}

#[test]
fn a_recreated_stream_fails_verification_until_the_loss_is_accepted() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "Old", "--id", "old"]);
    server.kill9();
    server.wipe();
    server.restart();
    machine.ok(&["task", "add", "New", "--id", "new"]);
    let told = machine.ok(&["status"]);
    assert!(told.contains("stream was replaced") && told.contains("hookloop verify"), "{told}");
    for command in ["verify", "rebuild"] {
        let refused = machine.refused(&[command]);
        assert!(refused.error.contains("was deleted and created again"), "{}", refused.error);
        assert!(refused.error.contains("hookloop rebuild --accept-loss"), "{}", refused.error);
    }
    machine.ok(&["rebuild", "--accept-loss"]);
    assert_eq!(machine.ok(&["verify"]), "The log is intact: 2 events\n");
    assert!(!machine.ok(&["status"]).contains("stream was replaced"));
}

/// Messages that are not events on every subject of the log, and events that contradict the log.
#[test]
fn foreign_messages_on_every_subject_of_a_log_stop_no_command() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    for id in ["a", "b"] {
        machine.ok(&["task", "add", "Goal", "--id", id]);
    }
    machine.ok(&["schedule", "add", "nightly", "--cron", "0 3 * * *", "--goal", "Tidy up"]);
    let event = |id: u8, kind: &str, after: Option<u64>, data: Value| {
        let id = format!("01a1b2c3d4e570008000000000000{id:03x}");
        json!({ "format": 1, "id": id, "at": 1, "type": kind, "actor": "mallory",
            "after": after, "data": data })
        .to_string()
    };
    let created = json!({"goal": "x", "deliverables": [], "labels": [], "priority": 2});
    let subjects = [
        "a",
        "not-yet",
        "_graph",
        "_cur",
        "_p",
        "_purse",
        "_s-0123456789ab",
        "_w-0123456789ab",
        "_w-_slots",
        "_w-_n-0123456789ab",
        "_w-_t-nightly",
        "_fleet",
        "_xyz",
        "deep.er.still",
        "_!",
    ];
    let mut count = 0;
    for subject in subjects {
        for garbage in ["no event", "", "{}", "[1]", "\u{0}\u{1}"] {
            put(&server, &format!("{EVENTS}.{subject}"), garbage);
            count += 1;
        }
    }
    let forged = [
        ("a", event(1, "task_created", None, created.clone())),
        ("nobody", event(2, "task_started", None, json!({}))),
        ("b", event(3, "task_deleted", Some(999), json!({"edges_removed": 0}))),
        ("a", event(4, "task_created", None, json!({"goal": 7}))),
    ];
    for (subject, payload) in &forged {
        put(&server, &format!("{EVENTS}.{subject}"), payload);
        count += 1;
    }
    // All commands still work here, and on a machine that has read nothing yet.
    let other = machine_on(&server, "demo");
    for machine in [&machine, &other] {
        let refused = machine.refused(&["verify"]);
        assert_eq!(refused.code, REFUSED, "{}", refused.error);
        assert!(refused.error.contains(&format!("{count} foreign messages")), "{}", refused.error);
        assert!(refused.error.contains("hookloop verify --accept-foreign"), "{}", refused.error);
        let told = machine.ok(&["status"]);
        assert!(told.contains("foreign messages"), "{told}");
        assert_eq!(machine.json(&["status"])["foreign_messages"], count);
        let doctor = machine.run(&["doctor", "--json"]).stdout;
        assert!(doctor.contains("hookloop verify --accept-foreign"));
    }
    machine.ok(&["task", "add", "Later", "--id", "not-yet"]);
    other.ok(&["task", "add", "Later still", "--id", "nobody", "--depends-on", "a"]);
    machine.ok(&["task", "claim", "a", "--agent", "ada"]);
    other.ok(&["task", "complete", "a", "--force"]);
    other.ok(&["schedule", "pause", "nightly"]);
    machine.ok(&["hooks", "disable", "auto-create-review-task"]);
    machine.ok(&["fleet", "status"]);
    assert_eq!(machine.json(&["task", "show", "b"])["state"], "ready");
    let hashes = [&machine, &other].map(|machine| {
        let rebuilt = machine.json(&["rebuild"]);
        assert_eq!(rebuilt["equal"], true, "{rebuilt}");
        rebuilt["after"].clone()
    });
    assert_eq!(hashes[0], hashes[1]);
    // A person accepts the foreign messages, once for all machines.
    machine.ok(&["verify", "--accept-foreign"]);
    for machine in [&machine, &other] {
        let told = machine.ok(&["verify"]);
        assert!(told.starts_with("The log is intact"), "{told}");
        assert!(!machine.ok(&["status"]).contains("foreign messages"));
    }
    put(&server, &format!("{EVENTS}.a"), "again");
    let refused = other.refused(&["verify"]);
    assert!(refused.error.contains("1 foreign messages"), "{}", refused.error);
}

#[test]
fn foreign_messages_on_heartbeat_and_snapshot_subjects_stop_no_command() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    for id in ["a", "b"] {
        machine.ok(&["task", "add", "Goal", "--id", id]);
    }
    let epoch = machine.json(&["task", "claim", "a", "--agent", "ada"])["epoch"].to_string();
    for held in ["a", "b", "_dispatcher", "_second", "_third", "_train", "_worker.w1", "x.y"] {
        for garbage in ["no heartbeat", "{}", "[]"] {
            put(&server, &format!("hl.pulse.demo.{held}"), garbage);
            put(&server, &format!("hl.pulse._fleet.{held}"), garbage);
        }
    }
    let manifest = json!({ "name": "1-x", "head": 900_000, "schema": 12, "chunks": u64::MAX,
        "bytes": 10, "sha256": "" });
    for garbage in ["no snapshot", "{}", &manifest.to_string()] {
        put(&server, "hl.snap.demo.manifest", garbage);
        let new = machine_on(&server, "demo");
        assert_eq!(new.json(&["task", "list"]).as_array().unwrap().len(), 2);
    }
    machine.ok(&["fleet", "status"]);
    machine.ok(&["task", "heartbeat", "a", "--epoch", &epoch]);
    machine.ok(&["task", "claim", "b", "--agent", "bob"]);
    machine.ok(&["dispatch"]);
    machine.ok(&["task", "complete", "a", "--epoch", &epoch]);
    machine.ok(&["verify"]);
}

#[test]
fn foreign_messages_in_the_fleet_log_stop_no_command_and_can_be_accepted() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["fleet", "status"]);
    let told = machine.ok(&["nats", "permissions", "demo"]);
    let is_fleets = |one: &&str| one.starts_with("hl.ev.") && one.ends_with("._fleet.>");
    let start = told.split('"').find(is_fleets).unwrap().trim_end_matches('>').to_owned();
    for subject in ["_fleet", "_purse", "_s-0123456789ab", "x.y"] {
        put(&server, &format!("{start}{subject}"), "no event");
    }
    machine.ok(&["fleet", "pause", "--reason", "look"]);
    assert_eq!(machine.json(&["fleet", "status"])["directives"][0]["directive"], "pause");
    machine.ok(&["fleet", "resume"]);
    let refused = machine.refused(&["verify", "--fleet"]);
    assert!(refused.error.contains("4 foreign messages"), "{}", refused.error);
    assert!(
        refused.error.contains("hookloop verify --accept-foreign --fleet"),
        "{}",
        refused.error
    );
    machine.ok(&["verify", "--accept-foreign", "--fleet"]);
    machine.ok(&["verify", "--fleet"]);
    machine.ok(&["verify"]);
}

/// Runs a command on a machine with the server program and the store of `nats up`.
fn with_own_server(machine: &TestProject, port: u16, args: &[&str]) -> Output {
    machine
        .hookloop(args)
        .env("NATS_SERVER", hookloop_testbed::nats_server())
        .env("HOOKLOOP_STORE", format!("nats://127.0.0.1:{port}"))
        .output()
        .unwrap()
}

/// Stops the server of a test when the test ends.
struct OwnServer<'m>(&'m TestProject, u16);

impl Drop for OwnServer<'_> {
    fn drop(&mut self) {
        let _ = with_own_server(self.0, self.1, &["nats", "down", "--port", &self.1.to_string()]);
    }
}

#[test]
fn the_server_of_nats_up_requires_its_token() {
    let machine = bare_machine();
    machine.write("hookloop.yaml", "version: 1\nproject: demo\n");
    // The port is free now, and so is the monitoring port above it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = if port > 61_000 { port - 5_000 } else { port };
    let run = |args: &[&str]| {
        let output = with_own_server(&machine, port, args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let _server = OwnServer(&machine, port);
    run(&["nats", "up", "--port", &port.to_string()]);
    let home = machine.home().join(format!(".local/state/hookloop/nats-{port}"));
    for name in ["token", "nats.conf"] {
        let mode = std::fs::metadata(home.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    run(&["task", "add", "Mine", "--id", "mine"]);
    let doctor = with_own_server(&machine, port, &["doctor", "--json"]).stdout;
    let doctor = String::from_utf8(doctor).unwrap();
    assert!(doctor.contains("durability") && !doctor.contains("lets in anyone"), "{doctor}");
    // A message without the token is not accepted. The server may close the connection before the
    // client reads the reason.
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let forged = wire::request(address, &format!("{EVENTS}.mine"), "forged");
    assert!(forged.is_err(), "{forged:?}");
    assert_eq!(run(&["verify"]), "The log is intact: 1 events\n");
    // Another user has another home, and gets the reason of the refusal.
    let other = bare_machine();
    other.write("hookloop.yaml", "version: 1\nproject: demo\n");
    let refused = with_own_server(&other, port, &["status"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("does not let this user in") && error.contains("`token`"), "{error}");
    // With the token of the user who started the server, the other user has access.
    let token = std::fs::read_to_string(home.join("token")).unwrap();
    other.write_user_secret("token", &token);
    other.write_user_config(&format!(
        "version: 1\nstores:\n  nats://127.0.0.1:{port}: {{token: token}}\n"
    ));
    let let_in = with_own_server(&other, port, &["task", "list"]);
    assert!(String::from_utf8_lossy(&let_in.stdout).contains("mine"));
    // The token stays the same after a restart of the server.
    run(&["nats", "down", "--port", &port.to_string()]);
    run(&["nats", "up", "--port", &port.to_string()]);
    assert!(run(&["task", "list"]).contains("mine"));
    assert_eq!(std::fs::read_to_string(home.join("token")).unwrap(), token);
}
