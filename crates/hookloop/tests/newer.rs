//! A newer version of hookloop on the same store: its data is kept and does not stop this version.
//!
//! The newer version writes new types of events on known subjects, events on unknown subjects, and
//! more data about itself. The test puts these messages on the server without this version's code.

use std::fs;
use std::time::Duration;

use hookloop_testbed::Server;
use hookloop_testkit::{TestProject, eventually};
use serde_json::{Value, json};

use crate::nats::machine_on;

const SOON: Duration = Duration::from_secs(60);
/// An agent that works until a file exists.
const WAITS: &str = "command:cat > /dev/null; touch started; while [ ! -f go ]; do sleep 0.05; done; \
     echo '<promise>COMPLETE</promise>'";

/// The newer version.
struct Newer<'a> {
    server: &'a Server,
    /// The subject prefixes of a project's events and of the fleet's events.
    events: [String; 2],
    count: u32,
}

impl Newer<'_> {
    fn new<'a>(server: &'a Server, machine: &TestProject) -> Newer<'a> {
        let told = machine.ok(&["nats", "permissions", "demo"]);
        let start = |project: &str| {
            let end = format!(".{project}.>");
            let found =
                told.split('"').find(|one| one.starts_with("hl.ev.") && one.ends_with(&end));
            found.unwrap_or_else(|| panic!("{told}")).trim_end_matches('>').to_owned()
        };
        Newer { server, events: [start("demo"), start("_fleet")], count: 0 }
    }

    fn put(&self, subject: &str, payload: &Value) {
        let put = self.server.request(subject, &payload.to_string()).unwrap();
        assert!(put["seq"].is_number(), "{subject}: {put}");
    }

    /// Writes an event of an unknown type to a subject of the project or of the fleet.
    fn says(&mut self, of_fleet: bool, subject: &str) {
        self.count += 1;
        let id = format!("01a1b2c3d4e57000800000000000{:04x}", self.count);
        let payload = json!({ "format": 1, "id": id, "at": 1_800_000_000_000_i64,
            "type": "teleported", "actor": "newer", "trace": {"more": true},
            "data": {"to": "mars"} });
        self.put(&format!("{}{subject}", self.events[usize::from(of_fleet)]), &payload);
    }
}

fn count_kept(machine: &TestProject) -> usize {
    machine.json_lines(&["log", "--all", "--type", "teleported"]).len()
}

#[test]
fn unknown_events_of_a_newer_version_do_not_stop_commands() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["task", "add", "One", "--id", "a"]);
    machine.ok(&["task", "add", "Two", "--id", "b", "--depends-on", "a"]);
    machine.ok(&["schedule", "add", "nightly", "--cron", "0 3 * * *", "--goal", "Tidy up"]);
    // A session that is resumed after the newer version wrote its events.
    let mut running = machine.hookloop(&["run", "Work", "--agent", WAITS]).spawn().unwrap();
    eventually("the agent works", SOON, || machine.root().join("started").exists());
    running.kill().unwrap();
    running.wait().unwrap();
    let session = machine.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let own = format!("_s-{session}");
    let subjects = [
        "a",
        "_graph",
        "_cur",
        "_p",
        "_purse",
        &own,
        "_s-0123456789ab",
        "_w-0123456789ab",
        "_w-_slots",
        "_w-_n-0123456789ab",
        "_w-_t-nightly",
        "_w-_v-later",
        "_xyz",
        "_q-abc",
    ];
    let mut newer = Newer::new(&server, &machine);
    for subject in subjects {
        newer.says(false, subject);
        newer.says(false, subject);
    }
    assert_eq!(count_kept(&machine), 2 * subjects.len());
    // Commands on each subject still work, here and on a machine that has read nothing yet.
    let other = machine_on(&server, "demo");
    for (machine, act, switch) in [(&machine, "pause", "disable"), (&other, "resume", "enable")] {
        machine.ok(&["schedule", act, "nightly"]);
        machine.ok(&["hooks", switch, "auto-create-review-task"]);
        machine.ok(&["verify"]);
        machine.ok(&["rebuild"]);
        assert_eq!(count_kept(machine), 2 * subjects.len());
    }
    other.ok(&["task", "claim", "a", "--agent", "ada"]);
    machine.ok(&["task", "complete", "a", "--force"]);
    machine.ok(&["task", "add", "Three", "--id", "c"]);
    machine.ok(&["task", "dep", "add", "c", "--on", "b"]);
    assert_eq!(other.json(&["task", "show", "b"])["state"], "ready");
    fs::write(machine.root().join("go"), "").unwrap();
    let resumed = machine.hookloop(&["resume", &session]).status();
    assert_eq!(resumed.unwrap().code(), Some(6), "there is no gate");
    assert_eq!(other.json(&["sessions", "list"])[0]["state"], "complete");
    for machine in [&machine, &other] {
        machine.ok(&["verify"]);
    }
}

#[test]
fn a_newer_worker_is_listed_and_its_fleet_accepts_directives() {
    let server = Server::single();
    let machine = machine_on(&server, "demo");
    machine.ok(&["fleet", "status"]);
    let mut newer = Newer::new(&server, &machine);
    for subject in ["_fleet", "_purse", "_s-0123456789ab", "_q-abc"] {
        newer.says(true, subject);
    }
    let now = machine.json(&["task", "add", "One", "--id", "a"])["created_at"].clone();
    let presence = json!({ "name": "newer-1", "machine": "m", "pid": 7, "version": "9.0.0", "format": 2,
        "state": "hibernating", "slots": 4, "agent": "claude", "seats": {"gold": 1},
        "projects": [{"project": "demo", "weight": 3}],
        "running": [{"project": "demo", "task": "a", "session": "s", "since": now, "mood": "fine"}],
        "started": now, "seen": now });
    let beat = json!({ "holder": presence.to_string(), "epoch": 0, "signed": "by me" });
    newer.put("hl.pulse._fleet._worker.newer-1", &beat);
    let shown = machine.json(&["fleet", "status"]);
    let worker = &shown["workers"][0];
    assert_eq!(
        (&worker["name"], &worker["state"]),
        (&json!("newer-1"), &json!("other")),
        "{shown}"
    );
    assert_eq!(worker["running"][0]["task"], "a");
    assert!(machine.ok(&["fleet", "status"]).contains("newer-1"));
    machine.ok(&["fleet", "pause", "--reason", "a look"]);
    assert_eq!(machine.json(&["fleet", "status"])["directives"][0]["directive"], "pause");
    let told = machine.json_lines(&["log", "--fleet", "--all", "--type", "teleported"]);
    assert_eq!(told.len(), 4, "{told:?}");
}
